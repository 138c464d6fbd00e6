"""The inputs of an experiment: files, datasets and simulations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import InputError, SettingError
from cranfield._polars import readable, scan_parquet
from cranfield._record import Step, file_checksum
from cranfield._registry import parse
from cranfield.data import Ratings, filters, read, with_features
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.source import Source, simulated
from cranfield.judgments import NONE, TRAIN, catalogue_ids
from cranfield.measures import check_column, file_and_column, given_groups, is_built_in
from cranfield.splits import Split, apply, predefined
from cranfield.store import fingerprint
from cranfield.tables import contents, file_and_member, is_parquet

# Average bytes of a rating in a text file, and the compression ratio of compressed files.
_BYTES_A_RATING, _PACKED = 22, 4


def check_inputs(experiment: Experiment) -> None:
    """Reject files that are missing or cannot be read, before anything starts."""
    named = [(f"data.{source.name}", file) for source in experiment.data for file in _input_files(source)]
    for system in experiment.systems:
        files = (system.run_file(source.name) for source in experiment.data)
        named += [(f"systems.{system.name}", file) for file in files if file is not None]
    for key, file in named:
        try:
            for path in _files(experiment.path(file)):
                if not path.is_file():
                    raise InputError("this is a pipe or a device, which cannot be read again", source=str(path))
                contents(path, 1)
        except InputError as error:
            raise InputError(
                f"{error.source}: {error.problem}",
                source=key,
                remedy="fix its path, which is relative to the experiment file",
            ) from error
    check_segments(experiment)
    check_catalogue(experiment)


def check_catalogue(experiment: Experiment) -> None:
    """Reject a catalogue that cannot be read, before anything starts."""
    catalogue = catalogue_of(experiment)
    if isinstance(catalogue, Path):
        try:
            catalogue_ids(catalogue)
        except InputError as error:
            raise InputError(
                error.problem if error.source is None else f"{error.source}: {error.problem}",
                source="decisions: catalogue",
                remedy=error.remedy,
            ) from error


def catalogue_digest(experiment: Experiment) -> str:
    """Return a hash of the catalogue file, or the keyword given instead of a file."""
    catalogue = catalogue_of(experiment)
    return input_checksum(catalogue) if isinstance(catalogue, Path) else catalogue


def catalogue_of(experiment: Experiment) -> str | Path:
    """Return the path of the catalogue file, or the keyword that the experiment gives instead."""
    catalogue = experiment.decisions.catalogue
    return catalogue if catalogue in (NONE, TRAIN) else experiment.path(catalogue)


def _input_files(source: Source) -> list[str]:
    return [*source.files.values(), *source.features.values()]


def segment_data(experiment: Experiment, source: Source) -> Path | None:
    """Return the file of a source whose columns can be used as segments; None if there is no file."""
    file = source.files.get("test") or source.files.get("ratings")
    return None if file is None else experiment.path(file)


def check_segments(experiment: Experiment) -> None:
    """Reject segments that do not exist, or that need columns the data do not have, before anything starts."""
    for text in experiment.decisions.segment:
        for source in experiment.data:
            if is_built_in(text):
                if parse(text).name == "period" and source.timeless:
                    raise SettingError(f"decisions: segment='{text}' needs times, and data.{source.name} has none")
                continue
            own_file = file_and_column(text, experiment.path)
            with named("segment"):
                if own_file is not None:
                    given_groups(*own_file)
                else:
                    data = segment_data(experiment, source)
                    check_column(data, text, source.reading)
                    given_groups(data, text, source.reading)


def input_checksum(path: Path) -> str:
    """Return a hash of the bytes of a file, or of all files in a folder."""
    checksums = [file_checksum(file) for file in _files(path)]
    if path.is_file():
        return checksums[0]
    # For a member of an archive, hash the whole archive and the name of the member.
    return fingerprint([None if path.is_dir() else file_and_member(path)[1], checksums])


def about_ratings(path: Path) -> int:
    """Estimate the number of ratings in a file without reading them."""
    return sum(_rows(file) for file in _files(path))


def _rows(path: Path) -> int:
    if is_parquet(path):
        with readable(path):
            return int(scan_parquet(path).select(pl.len()).collect().item())
    packed = path.suffix.lower() in (".gz", ".zip", ".zst", ".bz2", ".xz")
    return path.stat().st_size // (_BYTES_A_RATING // _PACKED if packed else _BYTES_A_RATING) + 1


def _files(path: Path) -> list[Path]:
    if path.is_dir() and (parts := sorted(path.glob("part-*")) or sorted(path.rglob("*.parquet"))):
        return parts
    return [file_and_member(path)[0]]


def origin(experiment: Experiment, source: Source, fetching: bool) -> dict[str, Any]:
    """Return what the ratings of a source depend on: the bytes of its files, its dataset or its simulation."""
    # The key is left out without features, so that artifacts from before there were features are still found.
    features = {key: input_checksum(experiment.path(file)) for key, file in source.features.items()}
    return {**_origin(experiment, source, fetching), **({"features": features} if features else {})}


def _origin(experiment: Experiment, source: Source, fetching: bool) -> dict[str, Any]:
    if source.simulate is not None:
        return {"simulate": source.simulate}
    if source.dataset is not None:
        from cranfield.datasets import cached, fetch, find

        there = fetch(source.dataset) if fetching else cached(find(source.dataset))
        parts = {} if there is None else {name: part.sha256 for name, part in {**there.parts, **there.features}.items()}
        return {"dataset": source.dataset, "parts": parts}
    # File names belong here because the history of the ratings records them.
    files = {part: [Path(file).name, input_checksum(experiment.path(file))] for part, file in source.files.items()}
    return {"files": files, "reading": dict(source.reading)}


def load(experiment: Experiment, source: Source, overlap: str | None) -> dict[str, Ratings]:
    """Return the ratings of a source; unless ``overlap`` is None, as the parts it is already divided into."""
    features = {key: experiment.path(file) for key, file in source.features.items()}
    parts = _load(experiment, source, overlap)
    if not features:
        return parts
    parts = {part: with_features(ratings, **features) for part, ratings in parts.items()}
    return {part: replace(ratings, history=_at_home(ratings.history)) for part, ratings in parts.items()}


def _load(experiment: Experiment, source: Source, overlap: str | None) -> dict[str, Ratings]:
    if source.simulate is not None:
        return {"ratings": simulated(source.simulate)}
    if source.dataset is not None:
        from cranfield import datasets

        if overlap is None:
            return {"ratings": datasets.load(source.dataset)}
        return _disjoint(*datasets.load_pair(source.dataset), overlap)
    parts = {
        part: read(experiment.path(file), name=source.name, **source.reading) for part, file in source.files.items()
    }
    parts = {part: replace(ratings, history=_at_home(ratings.history)) for part, ratings in parts.items()}
    return parts if overlap is None else _disjoint(parts["train"], parts["test"], overlap)


def filtered(experiment: Experiment, ratings: Ratings) -> Ratings:
    """Apply the filters of an experiment (decision A1)."""
    with named("filters"):
        return filters.apply(ratings, experiment.decisions.filters, seed=experiment.seed)


def divided(experiment: Experiment, ratings: Ratings, seed: int) -> Split | Sequence[Split]:
    """Split ratings as the experiment specifies (decision A2)."""
    method = experiment.decisions.split
    with named(f"split='{method}'"):
        split: Split | Sequence[Split] = apply(ratings, method, seed=seed)
    return split


@contextmanager
def named(decision: str) -> Iterator[None]:
    """Add the name of the decision to setting errors."""
    try:
        yield
    except SettingError as error:
        raise SettingError(f"decisions: {decision}: {error}") from error


def _disjoint(train: Ratings, test: Ratings, overlap: str) -> dict[str, Ratings]:
    """Return both parts with ids of the same type and without common pairs."""
    split = predefined(train, test, overlap=overlap)
    dropped = split.step.effect["repeated_pairs"]
    step = Step("predefined", {"overlap": overlap}, {"repeated_pairs": dropped}, split.notes[:1] if dropped else ())
    return {
        "train": replace(split.train, history=(*train.history, step)),
        "test": replace(split.test, history=(*test.history, step)),
    }


def together(parts: Sequence[Ratings]) -> Ratings:
    """Return the ratings of all parts combined; the parts share one vocabulary and have no pair in common."""
    first = parts[0]
    if len(parts) == 1:
        return first
    timed = all(part.times is not None for part in parts)
    whole = Ratings.from_codes(
        first.user_ids,
        first.item_ids,
        np.concatenate([part.users for part in parts]),
        np.concatenate([part.items for part in parts]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.times for part in parts if part.times is not None]) if timed else None,
    )
    return replace(whole, user_features=first.user_features, item_features=first.item_features)


def _at_home(history: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps with file names instead of full paths, so that the record does not depend on the machine."""
    return tuple(
        replace(step, settings={**step.settings, "source": Path(step.settings["source"]).name})
        if "source" in step.settings
        else step
        for step in history
    )
