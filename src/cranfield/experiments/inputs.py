"""The files and the code that an experiment names: ratings, ranked lists, weights of users, and hashes of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from cranfield import judgments
from cranfield._errors import InputError, SettingError
from cranfield._own_code import allowing, code_hash, is_ours, names_code, source_hash
from cranfield._polars import read_parquet, readable, scan_parquet
from cranfield._record import Step, file_checksum
from cranfield._registry import Registry, parse
from cranfield.data import Ratings, filters, read, with_features
from cranfield.experiments.experiment import Experiment, System
from cranfield.experiments.source import Source, at_key, simulated
from cranfield.measures import Average, Segmenting, catalogue_warnings, read_column
from cranfield.metrics import GAINS, Metric
from cranfield.rankings import Run, measured_ratings, read_run
from cranfield.recommenders import recommender
from cranfield.splits import Split, apply, predefined
from cranfield.store import fingerprint
from cranfield.tables import contents, file_and_member, is_parquet, write_table

if TYPE_CHECKING:
    from cranfield.experiments.pipeline import Pipeline, Unit


# Average bytes of a rating in a text file, and the compression ratio of compressed files.
_BYTES_A_RATING, _PACKED = 22, 4


def check_files(experiment: Experiment) -> None:
    """Reject files that are missing or cannot be read, before anything starts."""
    for key, file in _named_files(experiment):
        try:
            for path in _files(experiment.path(file)):
                if not path.is_file():
                    raise InputError("this is a pipe or a device, which cannot be read again", source=str(path))
                contents(path, 1)
        except InputError as error:
            remedy = "fix its path, which is relative to the experiment file"
            raise InputError(f"{error.source}: {error.problem}", source=key, remedy=remedy) from error
    for text in experiment.decisions.segment:
        for source in experiment.data:
            _check_segment(experiment, source, text)
    catalogue = catalogue_of(experiment)
    if isinstance(catalogue, Path):
        try:
            judgments.catalogue_ids(catalogue)
        except InputError as error:
            problem = error.problem if error.source is None else f"{error.source}: {error.problem}"
            raise InputError(problem, source="decisions: catalogue", remedy=error.remedy) from error
    if (weights := _weights_file(experiment)) is not None:
        read_column(*weights)


def _named_files(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Yield the files of ratings, features and ranked lists, each with its key in the experiment file."""
    for source in experiment.data:
        yield from ((f"data.{source.name}", file) for file in (*source.files.values(), *source.features.values()))
    for system in experiment.systems:
        files = (system.run_file(source.name) for source in experiment.data)
        yield from ((f"systems.{system.name}", file) for file in files if file is not None)


def _check_segment(experiment: Experiment, source: Source, text: str) -> None:
    """Reject a segment that does not exist, or that needs columns the data do not have."""
    if Segmenting.is_built_in(text):
        if parse(text).name == "period" and source.timeless:
            raise SettingError(f"decisions: segment='{text}' needs times, and data.{source.name} has none")
        return
    with at_key("decisions: segment"):
        Segmenting.check(text, experiment.path, segment_data(experiment, source), source.reading)


def catalogue_of(experiment: Experiment) -> str | Path:
    """Return the path of the catalogue file, or the keyword that the experiment gives instead."""
    catalogue = experiment.decisions.catalogue
    return catalogue if catalogue in (judgments.NONE, judgments.TRAIN) else experiment.path(catalogue)


def catalogue_digest(experiment: Experiment) -> str:
    """Return a hash of the catalogue file, or the keyword given instead of a file."""
    catalogue = catalogue_of(experiment)
    return input_checksum(catalogue) if isinstance(catalogue, Path) else catalogue


def segment_data(experiment: Experiment, source: Source) -> Path | None:
    """Return the file of a source whose columns can be used as segments; None if there is no file."""
    file = source.files.get("test") or source.files.get("ratings")
    return None if file is None else experiment.path(file)


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
    checksums = {key: input_checksum(experiment.path(file)) for key, file in source.features.items()}
    features = {"features": checksums} if checksums else {}
    if source.simulate is not None:
        return {"simulate": source.simulate, **features}
    if source.dataset is not None:
        from cranfield.datasets import cached, fetch, find

        there = fetch(source.dataset) if fetching else cached(find(source.dataset))
        parts = {} if there is None else {name: part.sha256 for name, part in {**there.parts, **there.features}.items()}
        return {"dataset": source.dataset, "parts": parts, **features}
    # File names belong here because the history of the ratings records them.
    files = {part: [Path(file).name, input_checksum(experiment.path(file))] for part, file in source.files.items()}
    return {"files": files, "reading": dict(source.reading), **features}


def load(experiment: Experiment, source: Source, overlap: str | None) -> dict[str, Ratings]:
    """Return the ratings of a source; unless ``overlap`` is None, as the parts it is already divided into."""
    parts = _load(experiment, source, overlap)
    if source.features:
        features = {key: experiment.path(file) for key, file in source.features.items()}
        parts = {part: with_features(ratings, **features) for part, ratings in parts.items()}
    if source.files or source.features:
        parts = {part: replace(ratings, history=_at_home(ratings.history)) for part, ratings in parts.items()}
    return parts


def _load(experiment: Experiment, source: Source, overlap: str | None) -> dict[str, Ratings]:
    if source.simulate is not None:
        return {"ratings": simulated(source.simulate)}
    if source.dataset is not None:
        from cranfield import datasets

        if overlap is None:
            return {"ratings": datasets.load(source.dataset)}
        return _disjoint(*datasets.load_pair(source.dataset), overlap)
    files = {part: experiment.path(file) for part, file in source.files.items()}
    parts = {part: read(path, name=source.name, **source.reading) for part, path in files.items()}
    return parts if overlap is None else _disjoint(parts["train"], parts["test"], overlap)


def filtered(experiment: Experiment, ratings: Ratings) -> Ratings:
    """Apply the filters of an experiment (decision A1)."""
    with at_key("decisions: filters"):
        return filters.apply(ratings, experiment.decisions.filters, seed=experiment.seed)


def divided(experiment: Experiment, parts: Mapping[str, Ratings], seed: int) -> Sequence[Split]:
    """Return the folds that an experiment divides ratings into (decision A2), or the parts they come in."""
    if experiment.decisions.overlap is not None:
        return [predefined(parts["train"], parts["test"])]
    method = experiment.decisions.split
    with at_key(f"decisions: split='{method}'"):
        splits: Split | Sequence[Split] = apply(parts["ratings"], method, seed=seed)
    return [splits] if isinstance(splits, Split) else splits


def served_ratings(experiment: Experiment, split: Split, seed: int) -> Ratings:
    """Return the test ratings of the users who are served: B1 removes the others from the experiment."""
    with at_key("decisions: min_ratings, sample"):
        return measured_ratings(split, experiment.decisions.serving, seed, experiment.decisions.repeats)


def _disjoint(train: Ratings, test: Ratings, overlap: str) -> dict[str, Ratings]:
    """Return both parts with ids of the same type and without common pairs."""
    split = predefined(train, test, overlap=overlap)
    dropped = split.step.effect["repeated_pairs"]
    step = Step("predefined", {"overlap": overlap}, {"repeated_pairs": dropped}, split.notes[:1] if dropped else ())
    return {
        "train": replace(split.train, history=(*train.history, step)),
        "test": replace(split.test, history=(*test.history, step)),
    }


def _at_home(history: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps with file names instead of full paths, so that the record does not depend on the machine."""
    return tuple(
        replace(step, settings={**step.settings, "source": Path(step.settings["source"]).name})
        if "source" in step.settings
        else step
        for step in history
    )


def given_checksum(line: Pipeline, cell: Unit) -> str:
    """Return a hash of the file of a system's ranked lists, and how it is read."""
    checksum = input_checksum(line.experiment.path(str(cell.system.run_file(cell.source.name))))
    return ", ".join([checksum, *(f"{key} {value}" for key, value in cell.system.reading.items())])


def given_run(experiment: Experiment, source: Source, system: System) -> Run:
    """Return the ranked lists of a system from its file, for a set of ratings."""
    return read_run(experiment.path(str(system.run_file(source.name))), name=system.name, **system.reading)


def check_given_runs(line: Pipeline, unit: Unit, test: Ratings, train: Ratings) -> None:
    """Reject files of ranked lists that are certainly wrong; with ``strict`` also those that are probably wrong.

    Without ``strict``, the stage that measures adds warnings to the verdict instead.
    """
    systems = [system for system in line.experiment.systems if system.run is not None]
    if systems:
        runs = [given_run(line.experiment, unit.source, system) for system in systems]
        judged = judgments.as_judged(runs, test, None, judgments.Context(train))
        judgments.check_inputs(judged, strict=line.strict)
        catalogue = catalogue_of(line.experiment)
        if line.strict and not judgments.is_no_catalogue(catalogue):
            judgments.accepted(catalogue_warnings(judgments.with_live(judged, catalogue, train)), strict=True)


# Weights of users, from a column of a file that an experiment names: ``average = "weighted(by=users.csv:spend)"``.

_WEIGHTS = "weights.parquet"


def _weights_file(experiment: Experiment) -> tuple[Path, str] | None:
    """Return the file (relative to the experiment) and the column of user weights; None if users are not weighted."""
    file, colon, column = (Average.of(experiment.decisions.average).weights or "").rpartition(":")
    return (experiment.path(file), column) if colon else None


def weights_checksum(experiment: Experiment) -> str | None:
    """Return a hash of the file of user weights; None if there is none."""
    file = _weights_file(experiment)
    return None if file is None else input_checksum(file[0])


def user_weights(experiment: Experiment, kept: Path | None = None) -> dict[str, pl.DataFrame]:
    """Return the column of user weights by its name, from its file or where it is kept; none without weights."""
    file = _weights_file(experiment)
    if file is None:
        return {}
    column = read_column(*file) if kept is None else read_parquet(kept / _WEIGHTS)
    return {str(Average.of(experiment.decisions.average).weights): column}


def keep_weights(experiment: Experiment, place: Path) -> list[Path]:
    """Write the column of user weights into a folder; return the file, or nothing if users are not weighted."""
    file = _weights_file(experiment)
    return [] if file is None else [write_table(read_column(*file), place / _WEIGHTS)]


def own(*functions: Callable[..., Any]) -> list[str]:
    """Return a hash of each function that is not ours; the version of cranfield covers the others."""
    return [code_hash(function) for function in functions if not is_ours(function)]


def own_of(registry: Registry[Any], spellings: Iterable[str]) -> list[str]:
    """Return a hash of each spelled function that is not ours."""
    return own(*(registry[parse(spelling).name] for spelling in spellings))


def own_system(spelling: str, experiment: Experiment) -> list[str]:
    """Return what the algorithm of a system depends on, without importing the user's code: see `system_code`."""
    if names_code(spelling):
        return [source_hash(spelling, experiment.base)]
    return system_code(type(recommender(spelling)))


def system_code(system: type[Any]) -> list[str]:
    """Return the version of one of our systems, or a hash of the class of another."""
    return own(system) or [f"version {system.version}"]


def own_metrics(spellings: Iterable[str], experiment: Experiment) -> list[str]:
    """Return a hash of each metric that is not ours, of its declared properties, and of each gain that is not ours.

    If a spelling names code, its source file is hashed without importing it.
    """
    spellings = list(spellings)
    named = [source_hash(spelling, experiment.base) for spelling in spellings if names_code(spelling)]
    metrics = [Metric.of(spelling) for spelling in spellings if not names_code(spelling)]
    definitions = [metric.definition for metric in metrics if not is_ours(metric.definition.function)]
    hashes = [code_hash(getattr(definition, about.name)) for definition in definitions for about in fields(definition)]
    gains = [value for metric in metrics for name, value in parse(str(metric)).parameters if name == "gain"]
    return [*named, *hashes, *own_of(GAINS, gains)]


def _metrics(experiment: Experiment) -> Iterator[tuple[str, Any]]:
    """Yield all metrics that an experiment names, each with its key in the file."""
    yield from (("decisions.metrics", metric) for metric in experiment.decisions.metrics)
    for system in experiment.systems:
        if system.tuning is not None:
            yield f"systems.{system.name}.metric", system.tuning.metric
    assessed = (experiment.assess or {}).get("metrics", ())
    varied = (experiment.audit or {}).get("vary", {}).get("metrics", ())
    for key, metrics in (("assess.metrics", assessed), ("audit.vary", varied)):
        yield from ((key, metric) for metric in ([metrics] if isinstance(metrics, str) else metrics))


@contextmanager
def allowed_code(experiment: Experiment, allow_code: bool) -> Iterator[None]:
    """Allow the code that an experiment names to run; reject the experiment if that is not allowed.

    Code that does not exist, is not a system or metric, or has other parameters is rejected before anything is trained.
    """
    systems = [(f"systems.{system.name}", str(system.spelling)) for system in experiment.systems]
    systems = [(key, spelling) for key, spelling in systems if names_code(spelling)]
    metrics = [(key, spelling) for key, spelling in _metrics(experiment) if names_code(spelling)]
    named = [*systems, *metrics]
    if named and not allow_code:
        key, spelling = named[0]
        raise SettingError(
            f"{key} names code, {parse(spelling).name}, which is only run if it is allowed; look at it first, and then "
            "give allow_code=True"
        )
    with allowing([spelling for _, spelling in named], experiment.base):
        for key, spelling in systems:
            with at_key(key):
                recommender(spelling)
        for key, spelling in metrics:
            with at_key(key):
                Metric.of(spelling)
        for system in experiment.systems:
            if system.tuning is not None and names_code(system.spelling):
                with at_key(f"systems.{system.name}"):
                    system.tuning.check(str(system.spelling))
        yield
