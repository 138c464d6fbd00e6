"""Ratings, splits, runs and scores as files, and back: what is read is what was written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._polars import read_parquet
from cranfield._record import Step
from cranfield.data import Ratings, Vocabulary
from cranfield.data.writing import write_table
from cranfield.measures import Scores
from cranfield.rankings import Run
from cranfield.splits import Split


def step_of(record: Mapping[str, Any]) -> Step:
    """Return a step from what `Step.as_dict` made of it."""
    return Step(record["action"], record["settings"], record["effect"], tuple(record["notes"]))


def read_parts(files: Mapping[str, Path], name: str, history: Sequence[Step]) -> dict[str, Ratings]:
    """Return the ratings of an experiment, whole or in parts, over one vocabulary."""
    frames = {part: read_parquet(path) for part, path in files.items()}
    users, items = (Vocabulary.of(pl.concat([one[role] for one in frames.values()])) for role in ("user", "item"))
    return {part: _ratings(frame, users, items, name, history) for part, frame in frames.items()}


def read_split(folder: Path, whole: Ratings, fold: int, folds: int) -> Split:
    """Return a split that `cranfield.splits.write` wrote, over the vocabularies of the ratings that it divides."""
    record = json.loads((folder / "split.json").read_text(encoding="utf-8"))["splits"][fold]
    step = step_of(record["split"])
    home = folder / f"fold-{fold + 1}" if folds > 1 else folder
    parts = {
        name: _ratings(
            read_parquet(home / f"{name}.parquet"),
            whole.user_ids,
            whole.item_ids,
            whole.name,
            (*whole.history, step),
        )
        for name in ("train", "validation", "test")
        if (home / f"{name}.parquet").exists()
    }
    return Split(parts["train"], parts["test"], step, parts.get("validation"), fold, folds)


def _ratings(
    frame: pl.DataFrame, users: Vocabulary, items: Vocabulary, name: str | None, history: Sequence[Step]
) -> Ratings:
    return Ratings.from_codes(
        users,
        items,
        users.codes(frame["user"]),
        items.codes(frame["item"]),
        frame["rating"].to_numpy(),
        frame["time"].to_numpy() if "time" in frame.columns else None,
        name=name,
        history=tuple(history),
    )


def read_own_run(path: Path, name: str, split: Split, counts: Mapping[str, int]) -> Run:
    """Return a run that `write_run` wrote, list for list, over the vocabularies of its split.

    Examples
    --------
    >>> import tempfile
    >>> from cranfield.rankings import recommend, write_run
    >>> from cranfield.splits import random
    >>> split = random(Ratings.of([1] * 4 + [2] * 4, [*"abcd"] * 2), train=0.5, exact=True)
    >>> run, = recommend(split, "popularity")
    >>> path = write_run(run, Path(tempfile.mkdtemp()) / "popularity.parquet")
    >>> read_own_run(path, "popularity", split, run.counts).frame().equals(run.frame())
    True
    """
    frame = read_parquet(path)
    train = split.train
    users, items = train.user_ids.codes(frame["user"]), train.item_ids.codes(frame["item"])
    one_relevant = "length" in frame.columns
    ranks = frame["rank"].to_numpy()
    starts = np.arange(len(frame)) if one_relevant else np.flatnonzero(ranks == 1)
    return Run(
        name=name,
        user_ids=train.user_ids,
        item_ids=train.item_ids,
        users=users[starts],
        indptr=np.append(starts, len(frame)).astype(np.int64),
        items=items,
        scores=_column(frame, "score"),
        predictions=_column(frame, "prediction"),
        ranks=ranks.astype(np.int32) if one_relevant else None,
        lengths=frame["length"].to_numpy().astype(np.int32) if one_relevant else None,
        one_relevant=one_relevant,
        counts=dict(counts),
    )


def _column(frame: pl.DataFrame, name: str) -> NDArray[np.float64] | None:
    return frame[name].to_numpy().astype(np.float64) if name in frame.columns else None


def save_scores(scores: Scores, path: Path) -> tuple[Path, dict[str, Any]]:
    """Write scores, a row a system and list with a column a metric; return the path and what else there is to know.

    A value that is not defined is empty in the file.
    """
    lists = scores.n_lists
    systems = len(scores.systems)
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
    facts = {
        "systems": list(scores.systems),
        "metrics": list(scores.metrics),
        "lower_is_better": list(scores.lower_is_better),
        "zero_if_undefined": list(scores.zero_if_undefined),
        "step": scores.step.as_dict(),
        "counts": {system: dict(counts) for system, counts in scores.counts.items()},
        "notes": list(scores.notes),
        "group_names": list(scores.group_names),
        "longest": scores.longest,
        "recommended": None if scores.recommended is None else scores.recommended.tolist(),
        **{name: plain(getattr(scores, name)) for name in _TABLES},
    }
    return write_table(pl.DataFrame(columns), path), facts


_TABLES = ("overall", "filled", "unjudged", "item_coverage")


def plain(table: NDArray[np.float64] | None) -> Any:
    """Return an array as lists for JSON, which has no NaN."""
    return None if table is None else np.where(np.isnan(table), None, table.astype(object)).tolist()  # type: ignore[call-overload]


def read_scores(path: Path, facts: Mapping[str, Any]) -> Scores:
    """Return the scores that `save_scores` wrote."""
    frame = read_parquet(path)
    systems, metrics = facts["systems"], facts["metrics"]
    lists = len(frame) // len(systems)
    first = frame.head(lists)
    users = Vocabulary.of(first["user"])
    values = np.stack(
        [frame[one].to_numpy().astype(np.float64).reshape(len(systems), lists) for one in metrics], axis=1
    )
    recommended = facts.get("recommended")
    tables: dict[str, Any] = {
        name: None if facts[name] is None else np.array(facts[name], dtype=np.float64) for name in _TABLES
    }
    return Scores(
        systems=tuple(systems),
        metrics=tuple(metrics),
        values=values,
        covered=frame["covered"].to_numpy().reshape(len(systems), lists),
        users=users.codes(first["user"]),
        user_ids=users,
        judged=first["judged"].to_numpy().astype(np.int64),
        relevant=first["relevant"].to_numpy().astype(np.int64),
        lower_is_better=tuple(facts["lower_is_better"]),
        step=step_of(facts["step"]),
        counts=facts["counts"],
        notes=tuple(facts["notes"]),
        zero_if_undefined=tuple(facts["zero_if_undefined"]),
        groups=first["group"].to_numpy().astype(np.int16) if "group" in first.columns else None,
        group_names=tuple(facts.get("group_names", ())),
        longest=facts.get("longest", 0),
        recommended=None if recommended is None else np.array(recommended, dtype=np.int64),
        **tables,
    )
