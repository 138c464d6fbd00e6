"""Ratings, splits, runs and scores in the store, as codes over one vocabulary per set of ratings.

Ids are encoded once, when the ratings are read, and decoded on export. Reading returns exactly what was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._files import whole_file
from cranfield._polars import read_parquet
from cranfield._record import Step
from cranfield.comparisons import Comparison, SegmentComparison
from cranfield.data import Events, Features, Merging, Ratings
from cranfield.facts import Fact
from cranfield.measures import Averaging, Scores, Segments
from cranfield.rankings import Calibration, Run
from cranfield.splits import Split
from cranfield.tables import Vocabulary, write_table

ID_FILES = ("users.parquet", "items.parquet")
FEATURE_FILES = ("users-features.parquet", "items-features.parquet")

PARTS = ("train", "validation", "test", "profiles")
"""The parts of a split; the code of a part is its position here."""

_NO_PART = 255


class Vocabularies(NamedTuple):
    """The users and items of a set of ratings, with their features if there are any."""

    users: Vocabulary
    items: Vocabulary
    user_features: Features | None = None
    item_features: Features | None = None


# vocabularies and ratings


def save_vocabularies(ratings: Ratings, folder: Path) -> list[Path]:
    """Write the ids of users and items in the order of their codes, and their features."""
    both = (ratings.user_ids, ratings.item_ids)
    paths = [write_table(pl.DataFrame({"id": ids.all}), folder / file) for file, ids in zip(ID_FILES, both)]
    for file, ids, features in zip(FEATURE_FILES, both, (ratings.user_features, ratings.item_features)):
        if features is not None:
            paths.append(write_table(features.rows(ids), folder / file))
    return paths


def read_vocabularies(folder: Path) -> Vocabularies:
    """Return the vocabularies that `save_vocabularies` wrote."""
    users, items = (Vocabulary(read_parquet(folder / file)["id"]) for file in ID_FILES)
    features = [
        Features(ids, read_parquet(folder / file)) if (folder / file).exists() else None
        for file, ids in zip(FEATURE_FILES, (users, items))
    ]
    return Vocabularies(users, items, *features)


def save_ratings(ratings: Ratings, path: Path) -> Path:
    """Write ratings as codes, in their order."""
    columns: dict[str, Any] = {"user": ratings.users, "item": ratings.items, "rating": ratings.values}
    if ratings.times is not None:
        columns["time"] = ratings.times
    if ratings.events is None:
        return write_table(pl.DataFrame(columns), path)
    # A row for each event, after the rating that it is part of; the first row of a rating has the number of its events.
    events = ratings.events
    rows = {"value": events.values, "event_time": events.times}
    if events.baskets is not None:
        rows["basket"] = events.baskets
    first = np.repeat(np.arange(len(ratings)), events.counts)
    frame = pl.DataFrame(columns)[first].with_columns(pl.Series(name, array) for name, array in rows.items())
    return write_table(frame.with_columns(merging=pl.lit(str(events.merging))), path)


def read_ratings(
    path: Path, vocabularies: Vocabularies, name: str | None = None, history: Sequence[Step] = ()
) -> Ratings:
    """Return the ratings that `save_ratings` wrote."""
    frame = read_parquet(path)
    events = None
    if "event_time" in frame.columns:
        first, events = _events_of(frame)
        frame = frame[first]
    counts = np.bincount(frame["user"].to_numpy(), minlength=len(vocabularies.users))
    return Ratings(
        vocabularies.users,
        vocabularies.items,
        np.append(np.int64(0), np.cumsum(counts)),
        frame["item"].to_numpy(),
        frame["rating"].to_numpy(),
        frame["time"].to_numpy() if "time" in frame.columns else None,
        name,
        tuple(history),
        vocabularies.user_features,
        vocabularies.item_features,
        events,
    )


def _events_of(frame: pl.DataFrame) -> tuple[NDArray[np.int64], Events]:
    """Return the first row of each rating in a table of events, and the events."""
    users, items = frame["user"].to_numpy(), frame["item"].to_numpy()
    first = np.flatnonzero(np.append(True, (np.diff(users) != 0) | (np.diff(items) != 0))[: len(frame)])
    baskets = frame["basket"].to_numpy() if "basket" in frame.columns else None
    times, merging = frame["event_time"].to_numpy(), Merging.of(frame["merging"][0])
    return first, Events(np.append(first, len(frame)), frame["value"].to_numpy(), times, baskets, merging)


# splits


def save_splits(splits: Sequence[Split], whole: Ratings, folder: Path) -> list[Path]:
    """Write splits of ratings: for each fold, the part of each rating as a small number, and the group of each item.

    A split that changes some of the ratings cannot be stored this way; its parts are written in full.
    """
    paths: list[Path] = []
    parts: dict[str, Any] = {}
    for fold, split in enumerate(splits):
        numbers = _part_numbers(split, whole)
        if numbers is not None:
            parts[f"fold-{fold + 1}"] = numbers
            continue
        home = folder / f"fold-{fold + 1}"
        paths += save_vocabularies(split.train, home)
        paths += [save_ratings(part, home / f"{name}.parquet") for name, part in split.parts.items()]
    groups: dict[str, Any] = {
        f"fold-{k + 1}": split.item_groups for k, split in enumerate(splits) if split.item_groups is not None
    }
    for name, columns in {"parts": parts, "groups": groups}.items():
        if columns:
            paths.append(write_table(pl.DataFrame(columns), folder / f"{name}.parquet"))
    return paths


def _part_numbers(split: Split, whole: Ratings) -> NDArray[np.uint8] | None:
    """Return the number of the part of each rating; None if the parts do not consist of these ratings."""
    if split.train.user_ids != whole.user_ids or split.train.item_ids != whole.item_ids or whole.events is not None:
        return None
    numbers = np.full(len(whole), _NO_PART, dtype=np.uint8)
    for name, part in split.parts.items():
        places = whole.places(part.users, part.items)
        numbers[places] = PARTS.index(name)
        same = bool((places >= 0).all()) and np.array_equal(whole.values[places], part.values)
        if whole.times is not None and part.times is not None:
            same &= np.array_equal(whole.times[places], part.times)
        if not same or (whole.times is None) != (part.times is None):
            return None
    return numbers


def read_split(folder: Path, whole: Ratings, records: Sequence[Mapping[str, Any]], fold: int) -> Split:
    """Return a fold of the splits that `save_splits` wrote.

    ``records`` are the results of `Split.record` for each fold.
    """
    step, name = Step.of(records[fold]["split"]), f"fold-{fold + 1}"
    history = (*whole.history, step)
    known = [part for part in PARTS if part in records[fold]["fingerprints"]]
    if (folder / name).is_dir():
        ids = read_vocabularies(folder / name)
        parts = {part: read_ratings(folder / name / f"{part}.parquet", ids, whole.name, history) for part in known}
    else:
        numbers = read_parquet(folder / "parts.parquet")[name].to_numpy()
        parts = {part: replace(whole.keep(numbers == PARTS.index(part)), history=history) for part in known}
    groups = folder / "groups.parquet"
    return Split(
        parts["train"],
        parts["test"],
        step,
        parts.get("validation"),
        fold,
        len(records),
        read_parquet(groups)[name].to_numpy() if groups.exists() else None,
        parts.get("profiles"),
    )


# runs


def save_run(run: Run, path: Path) -> Path:
    """Write ranked lists as codes, one row per item; empty lists are left out, as in any file of lists."""
    lengths = np.diff(run.indptr)
    columns: dict[str, Any] = {
        "user": np.repeat(run.users, lengths),
        "item": run.items,
        # Where there are predictions but no separate scores, the predictions are the scores; see `read_run`.
        "score": None if run.scores is run.predictions else run.scores,
        "prediction": run.predictions,
        "rank": run.ranks,
        # Lists that leave places out end at their last rank.
        "length": run.lengths if run.one_relevant else None,
        "group": None if run.groups is None else np.repeat(run.groups, lengths),
    }
    return write_table(pl.DataFrame({name: values for name, values in columns.items() if values is not None}), path)


def run_facts(run: Run) -> dict[str, Any]:
    """Return the properties of ranked lists that the rows of their file do not hold, ready for JSON."""
    calibration = None if run.calibration is None else run.calibration.as_dict()
    return {"counts": dict(run.counts), "only_ranks": run.only_ranks, "calibration": calibration}


def read_run(
    path: Path, name: str, vocabularies: Vocabularies, facts: Mapping[str, Any], groups: Sequence[str] = ()
) -> Run:
    """Return the lists that `save_run` wrote, as a run named ``name``; ``groups`` are the names of their groups.

    ``facts`` is the result of `run_facts`.
    """
    columns = {column: values.to_numpy() for column, values in read_parquet(path).to_dict().items()}
    users, one_relevant = columns["user"], "length" in columns
    first = np.ones(len(users), dtype=np.bool_)
    if not one_relevant:
        first[1:] = users[1:] != users[:-1]
    starts = np.flatnonzero(first)
    indptr = np.append(starts, len(users)).astype(np.int64)
    predictions, ranks, lengths = (columns.get(name) for name in ("prediction", "rank", "length"))
    return Run(
        name=name,
        user_ids=vocabularies.users,
        item_ids=vocabularies.items,
        users=users[starts],
        indptr=indptr,
        items=columns["item"],
        scores=columns.get("score", predictions),
        predictions=predictions,
        ranks=ranks,
        lengths=lengths,
        one_relevant=one_relevant,
        groups=columns["group"][starts] if "group" in columns else None,
        group_names=tuple(groups),
        counts=dict(facts["counts"]),
        only_ranks=facts.get("only_ranks", False),
        calibration=Calibration.of(facts["calibration"]) if facts.get("calibration") else None,
    )


# scores

_ARRAYS = ("values", "covered", "users", "judged", "relevant", "groups", "recommended", "trained", "repetitions")
_TABLES = ("overall", "filled", "unjudged", "liked", "nonexistent", "item_coverage")
_TUPLES = (
    *("systems", "metrics", "lower_is_better", "zero_if_undefined", "group_names"),
    *("notes", "warnings", "made_for", "trained_once", "outside_catalogue"),
)
_VALUES = ("longest", "catalogue", "highest_rating")


def save_scores(scores: Scores, path: Path) -> tuple[Path, dict[str, Any]]:
    """Write scores; return the path and the facts that the file does not hold."""
    facts = {
        **{name: Fact.plain(getattr(scores, name)) for name in _TUPLES},
        **{name: getattr(scores, name) for name in _VALUES},
        **{name: plain(getattr(scores, name)) for name in _TABLES},
        "step": scores.step.as_dict(),
        "counts": {system: dict(counts) for system, counts in scores.counts.items()},
    }
    arrays = {name: array for name in _ARRAYS if (array := getattr(scores, name)) is not None}
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)
    return path, facts


def read_scores(path: Path, facts: Mapping[str, Any], users: Vocabulary) -> Scores:
    """Return the scores that `save_scores` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        known: dict[str, Any] = dict(arrays)
    known |= {
        **{name: Fact.read(facts[name]) for name in _TUPLES},
        **{name: facts[name] for name in _VALUES},
        **{name: None if facts[name] is None else np.array(facts[name], dtype=np.float64) for name in _TABLES},
    }
    return Scores(user_ids=users, step=Step.of(facts["step"]), counts=facts["counts"], **known)


def scores_table(scores: Scores) -> pl.DataFrame:
    """Return scores as a readable table: one row per system and list, one column per metric, empty where undefined."""
    lists, systems = scores.n_lists, len(scores.systems)
    columns: dict[str, Any] = {
        "system": pl.Series(scores.systems, dtype=pl.String).gather(np.repeat(np.arange(systems), lists)),
        "user": pl.concat([scores.user_ids.ids(scores.users)] * systems),
        "covered": scores.covered.reshape(-1),
        "judged": np.tile(scores.judged, systems),
        "relevant": np.tile(scores.relevant, systems),
    }
    if scores.groups is not None:
        columns["group"] = np.tile(scores.groups, systems)
    for m, metric in enumerate(scores.metrics):
        columns[metric] = pl.Series(scores.values[:, m].reshape(-1)).fill_nan(None)
    return pl.DataFrame(columns)


def plain(table: NDArray[np.float64] | None) -> Any:
    """Return an array as nested lists for JSON, with None for NaN, which JSON does not have."""
    return None if table is None else np.where(np.isnan(table), None, table.astype(object)).tolist()  # type: ignore[call-overload]


# comparisons


def save_comparison(comparison: Comparison, path: Path) -> tuple[list[Path], dict[str, Any]]:
    """Write a comparison; return the paths and the facts that the files do not hold."""
    kept = [
        field.name
        for field in fields(comparison)
        if field.name not in ("rows", "samples", "entries", "gate", "common", "same_split")
    ]
    facts = {name: Fact.plain(getattr(comparison, name)) for name in kept}
    facts |= {"averages": plain(comparison.averages), "step": comparison.step.as_dict()}
    facts |= {"same_split": True} if comparison.same_split else {}
    facts |= {"spread": plain(np.array(comparison.spread, dtype=np.float64))}
    paths, facts["common"] = [write_table(comparison.rows, path)], None
    if comparison.common is not None:
        common, facts["common"] = save_comparison(comparison.common, path.with_stem(f"{path.stem}-common"))
        paths += common
    return paths, facts


def read_comparison(path: Path, facts: Mapping[str, Any]) -> Comparison:
    """Return the comparison that `save_comparison` wrote."""
    named: dict[str, Any] = {name: Fact.read(value) for name, value in facts.items()}
    named |= {"averages": np.array(facts["averages"], dtype=np.float64), "step": Step.of(facts["step"])}
    named["spread"] = tuple(map(tuple, np.array(facts["spread"], dtype=np.float64).tolist()))
    if facts["common"] is not None:
        named["common"] = read_comparison(path.with_stem(f"{path.stem}-common"), facts["common"])
    return Comparison(rows=read_parquet(path), **named)


# segments


def save_segments(segment: Segments | SegmentComparison, folder: Path, stem: str) -> tuple[list[Path], dict[str, Any]]:
    """Write the results by a grouping to files named after a stem; return the paths and the facts they do not hold."""
    segments = segment.segments if isinstance(segment, SegmentComparison) else segment
    scores, facts = save_scores(segments.scores, folder / f"{stem}-scores.npz")
    about: dict[str, Any] = {"name": segments.name, "of": segments.of, "notes": Fact.plain(segments.notes)}
    about |= {"scores": facts, "comparisons": None}
    if not isinstance(segment, SegmentComparison):
        return [scores], about
    paths = [scores, write_table(segment.interactions, folder / f"{stem}-interactions.parquet")]
    about |= {"comparisons": {}, "averaging": segment.averaging.as_dict(), "alpha": segment.alpha}
    for place, (group, comparison) in enumerate(segment.comparisons.items()):
        about["comparisons"][group] = None
        if comparison is not None:
            files, about["comparisons"][group] = save_comparison(comparison, folder / f"{stem}-{place}.parquet")
            paths += files
    return paths, about


def read_segments(
    folder: Path, stem: str, about: Mapping[str, Any], users: Vocabulary, columns: Mapping[str, pl.DataFrame]
) -> Segments | SegmentComparison:
    """Return the results by a grouping that `save_segments` wrote, with columns of users for weighted averages."""
    scores = replace(read_scores(folder / f"{stem}-scores.npz", about["scores"], users), user_columns=columns)
    segments = Segments(about["name"], about["of"], scores, Fact.read(about["notes"]))
    if about["comparisons"] is None:
        return segments
    comparisons = {
        group: None if facts is None else read_comparison(folder / f"{stem}-{place}.parquet", facts)
        for place, (group, facts) in enumerate(about["comparisons"].items())
    }
    interactions = read_parquet(folder / f"{stem}-interactions.parquet")
    return SegmentComparison(segments, comparisons, interactions, Averaging(**about["averaging"]), about["alpha"])
