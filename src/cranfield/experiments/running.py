"""The verbs `run`, which turns an experiment file into a folder of results, and `plan`, which says what it would do."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield import _checks as check
from cranfield import splits
from cranfield._errors import CranfieldWarning, MissingExtraError, SettingError
from cranfield._numbers import time_text
from cranfield._own_code import may_be_called
from cranfield._registry import parse
from cranfield._terminal import Stages, silent, unheard
from cranfield.comparisons import as_scores, compare
from cranfield.data import Ratings, together
from cranfield.experiments import inputs
from cranfield.experiments.decisions import Decisions
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.file import experiment_of, named, read_experiment
from cranfield.experiments.inputs import allowed_code
from cranfield.experiments.pipeline import Pipeline, Size, Stage, Unit
from cranfield.experiments.results import Results
from cranfield.experiments.searching import search
from cranfield.experiments.source import Source
from cranfield.experiments.stages import DATA, ORDER, SPLITS, STAGES, Report
from cranfield.experiments.stages.documents import stated
from cranfield.experiments.stages.results import options_of
from cranfield.experiments.trials import Range
from cranfield.facts import Fact
from cranfield.facts import experiment as experiment_facts
from cranfield.measures import Average, Scores, measure
from cranfield.rankings import Calibration, recommend
from cranfield.splits import Split, random
from cranfield.store import Artifact, State, Store, check_folder, open_store


def run(
    experiment: Experiment | Mapping[str, Any] | str | Path,
    out: str | Path | None = None,
    *,
    seed: int | None = None,
    jobs: int | None = None,
    stages: Stages = silent,
    extra_stages: Sequence[Stage[Any]] = (),
    report: Callable[[Results, Path], list[Path]] | None = None,
    allow_code: bool = False,
    strict: bool = False,
) -> Results:
    """Run an experiment from data to results.

    The result of every step is stored in the folder under a hash of its inputs. A second run makes only what a change
    in the file, or a missing or damaged artifact, requires. An interrupted run continues where it stopped. An earlier
    experiment in the same folder finds its artifacts again. The resulting files are the same, byte for byte.

    Parameters
    ----------
    experiment
        The experiment, its file, or the content of a file as a dictionary.
    out
        The folder for the results; by default the file name without its extension.
    seed
        Replaces the seed of the experiment, if given.
    jobs
        Number of systems trained in parallel; see `recommend`.
    stages
        Shows progress.
    extra_stages
        Stages from packages that build on experiments, such as the audit; they come before the report.
    report
        Function that writes a report on the results into a folder, and returns the files.
    allow_code
        Whether code that the experiment names (``mine = "my_module:Mine(k=5)"``) may be imported and run. It can do
        anything that you can, so look at it first if it is not yours.
    strict
        Raise an error before training, instead of a warning, for files of ranked lists that are probably wrong.

    Returns
    -------
    Results
        The results, read from the folder.

    Examples
    --------
    >>> import tempfile
    >>> tiny = Experiment(data=(Source("tiny", simulate="world(users=60, items=40, ratings=900)"),))
    >>> results = run(tiny, tempfile.mkdtemp())
    >>> print(results.sentences("tiny")[0])
    P@10: knn(k=100) and popularity lead, undecided among them (up to 6.0 %, -4 to 15 %); puresvd(factors=50) is worse.
    """
    experiment, out = experiment_and_folder(experiment, out, seed)
    if jobs is not None:
        check.whole("jobs", jobs)
    inputs.check_files(experiment)
    if experiment.audit is not None and not extra_stages:
        warnings.warn("[audit] is ignored; cranfield.audit runs the experiment with it", CranfieldWarning, stacklevel=2)
    strict = check.flag("strict", strict)
    all_stages = (*STAGES, *extra_stages, *(() if report is None else (Report(report),)))
    with allowed_code(experiment, check.flag("allow_code", allow_code)):
        for stage in extra_stages:
            stage.check_experiment(experiment)
        with open_store(out) as store:
            line = Pipeline(experiment, store, all_stages, jobs, strict=strict)
            store.begin(experiment.title, stated(line))
            rehearse(line)
            line.go(stages)
            line.exports.withdraw()
            store.finish()
        return Results(out)


def experiment_and_folder(
    experiment: Experiment | Mapping[str, Any] | str | Path, out: str | Path | None, seed: int | None
) -> tuple[Experiment, Path]:
    """Return the experiment, read from its file if necessary, and its folder."""
    if isinstance(experiment, Experiment | Mapping):
        if out is None:
            raise SettingError("an experiment that is not a file has no folder; give out=...")
        experiment = experiment if isinstance(experiment, Experiment) else named(experiment_of(experiment))
    else:
        path = Path(experiment)
        experiment = read_experiment(path)
        out = path.with_suffix("") if out is None else out
    return experiment if seed is None else replace(experiment, seed=seed), Path(out)


def rehearse(line: Pipeline) -> None:
    """Try the test, the metrics, and the systems that have not been trained yet."""
    decisions, few, known = line.decisions, _few(), line.store.before()
    compare(_two(decisions), **{**decisions.comparing.as_dict(), **decisions.tested.as_dict(), "baseline": None})
    # Metrics may need predicted ratings and their spread; the values do not matter here.
    spread = Calibration("own", (), (), 2, "a rehearsal", 1.0)
    runs = [
        replace(run, predictions=run.scores, calibration=spread) for run in recommend(few, ["popularity", "random"])
    ]
    metrics = [metric for metric in decisions.metrics if may_be_called(metric)]
    if metrics:
        with _forgiving():
            measure(runs, few.test, train=few.train, **{**decisions.measuring.as_dict(), "metrics": metrics})
    trained = {record.made_of["system"] for name, record in known.items() if name.startswith("models/")}
    for spelling in {system.spelling for system in line.experiment.systems} - trained - {None}:
        if may_be_called(spelling):
            with _forgiving(), unheard():
                recommend(few, spelling, fill=decisions.fill)
    for system in line.experiment.systems:
        if (tuning := system.tuning) is None or not may_be_called(system.spelling):
            continue
        metric = tuning.metric if tuning.metric is not None and may_be_called(tuning.metric) else "P@1"
        first = {name: values if isinstance(values, Range) else values[:1] for name, values in tuning.space.items()}
        with _forgiving(), unheard():
            search(few, str(system.spelling), first, metric, trials=tuning.trials and 1, threshold=4)
    if line.experiment.assess is not None and not any(name.startswith("assess/") for name in known):
        from cranfield.assessments import assess

        options = options_of(line.experiment)
        options["metrics"] = [metric for metric in options["metrics"] if may_be_called(metric)] or ["P@1"]
        check.whole("samples", options.get("samples", 1))
        with _forgiving():
            assess(
                runs, few.test, train=few.train, threshold=decisions.measuring.threshold, **{**options, "samples": 1}
            )


@contextmanager
def _forgiving() -> Iterator[None]:
    """Raise only errors that the user can fix; others may be due to the small number of ratings."""
    try:
        yield
    except (SettingError, MissingExtraError):
        raise
    except Exception:
        return


def _two(decisions: Decisions) -> Scores:
    """Return the scores of two systems; one is the baseline of the average, if it has one."""
    base = str(dict(parse(decisions.average).parameters).get("baseline", "a"))
    scores = as_scores({base: [0.1, 0.5, 0.3, 0.2], f"not {base}": [0.2, 0.1, 0.4, 0.3]})
    groups = np.arange(scores.n_lists, dtype=np.int16) % 2 if _has_groups(decisions) else None
    names = () if groups is None else ("0", "1")
    column = pl.DataFrame({"user": [str(user) for user in range(scores.n_lists)], "value": [1.0] * scores.n_lists})
    weights = Average.of(decisions.average).weights or ""
    trained = np.ones(scores.n_lists, dtype=np.int64)
    return replace(scores, trained=trained, groups=groups, group_names=names, user_columns={weights: column})


def _has_groups(decisions: Decisions) -> bool:
    """Whether lists may be in groups: time windows, or popularity groups of lists for one relevant item."""
    split = parse(decisions.split).name
    if split == "rolling":
        return True
    return decisions.relevant == "one" and (split == "percentiles" or split not in splits.__all__)


def _few() -> Split:
    pairs = [(user, item) for user in range(12) for item in range(8) if (user + item) % 3]
    users, items = zip(*pairs)
    return random(Ratings.of(list(users), list(items), [1 + (u * i) % 5 for u, i in pairs]), train=0.5)


_WHY = {"new": "not made yet", "changed": "inputs or code have changed", "damaged": "missing or damaged"}
# A plan checks decisions on the actual ratings up to these sizes: ratings to read, and user-item pairs to simulate.
_READ_AT_ONCE, _SIMULATED_AT_ONCE = 5_000_000, 20_000_000


@dataclass(frozen=True)
class Task:
    """An artifact: whether it is kept or made, why, and the estimated seconds it takes (None if unknown)."""

    name: str
    state: State
    seconds: float | None

    @property
    def stage(self) -> str:
        """The stage that it belongs to."""
        return self.name.split("/", 1)[0]


@dataclass(frozen=True)
class Plan:
    """What a run would do, in order, and notes on results known in advance, such as metrics without any value."""

    tasks: tuple[Task, ...]
    notes: tuple[Fact, ...] = ()

    @property
    def seconds(self) -> float:
        """Estimated time: what earlier runs took, or an estimate from a small world."""
        return sum(task.seconds or 0.0 for task in self.tasks if task.state != "kept")

    def __str__(self) -> str:
        lines = []
        timed = [stage.name for stage in STAGES if stage.timed]
        for stage in ORDER:
            tasks = [task for task in self.tasks if task.stage == stage]
            counts = Counter[str](task.state for task in tasks)
            if not tasks:
                continue
            kept = [f"{counts['kept']} kept"] if counts["kept"] else []
            make = [f"{counts[why]} to make, {said}" for why, said in _WHY.items() if counts[why]]
            lines.append(f"{stage:<11} {'; '.join(make + kept)}")
            for task in tasks if stage in timed else ():
                # Artifacts of an inner experiment, such as one of an audit, are only counted.
                if task.state != "kept" and not task.name.startswith(f"{stage}/audit/"):
                    lines.append(f"  {task.name.removeprefix(f'{stage}/')}: {time_text(task.seconds)}")
        if all(task.state == "kept" for task in self.tasks):
            return "\n".join([*lines, "nothing to do"])
        return "\n".join([*lines, f"roughly {time_text(self.seconds)}", *map(str, self.notes)])


class _Rehearsal(Store):
    """A store that looks up artifacts but makes none."""

    makes = False

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.seen: dict[str, State] = {}
        self.notes: list[Fact] = []

    def kept(self, name: str, made_of: Mapping[str, Any]) -> Artifact:
        """Record what a run would do with an artifact, without doing it."""
        self.seen[name], artifact = self.state(name, made_of)
        return artifact


def plan(
    experiment: Experiment | Mapping[str, Any] | str | Path,
    out: str | Path | None = None,
    *,
    seed: int | None = None,
    extra_stages: Sequence[Stage[Any]] = (),
    report: bool = False,
    strict: bool = False,
) -> Plan:
    """Return what `run` would do, optionally with ``extra_stages`` and a ``report``; nothing is written.

    Files of ranked lists are checked as in `run`, including ``strict``.

    Everything that depends on something to be made is to be made as well. Times are those of earlier runs in the
    folder. If there are none, each new system is timed on two small simulated worlds of the same shape as the data, and
    its time is extrapolated. The estimate is right to a factor of two or three.

    Examples
    --------
    >>> import tempfile
    >>> tiny = Experiment(data=(Source("tiny", simulate="world(users=60, items=40, ratings=900)"),))
    >>> found = plan(tiny, tempfile.mkdtemp())
    >>> {task.state for task in found.tasks}, [task.name for task in found.tasks if task.stage == "runs"][0]
    ({'new'}, 'runs/tiny/popularity')
    """
    experiment, out = experiment_and_folder(experiment, out, seed)
    inputs.check_files(experiment)
    for stage in extra_stages:
        stage.check_experiment(experiment)
    check_folder(out)
    store = _Rehearsal(out)
    line = Pipeline(experiment, store, (*STAGES, *extra_stages, *((Report(),) if report else ())), strict=strict)
    rehearse(line)
    line.go()
    for stage in line.stages:
        for unit in stage.units(line):
            name = stage.name_for(unit)
            if stage.exported and store.seen[name] == "kept" and line.exports.damaged(line.artifacts[name]):
                store.seen[name] = "damaged"
    return Plan(tuple(_tasks(line, store)), tuple(store.notes))


def _tasks(line: Pipeline, store: _Rehearsal) -> list[Task]:
    """Return every artifact with the time it took, or an estimate if it is to be made for the first time."""
    took, sizes = store.took(), {unit.place: _size(line, unit, store) for unit in line.units("source")}
    whole = Size(*(sum(column) for column in zip(*sizes.values())))
    tasks = []
    for inner, stage, unit in _artifacts(line):
        name = stage.name_for(unit)
        state, seconds = store.seen[name], took.get(name)
        if state != "kept" and seconds is None:
            # An artifact of the whole experiment depends on all sets of ratings.
            size = whole if unit.level == "experiment" else sizes[unit.source.name]
            seconds = stage.seconds(inner, unit, size)
        tasks.append(Task(name, state, seconds))
    return tasks


def _artifacts(line: Pipeline) -> Iterator[tuple[Pipeline, Stage[Any], Unit]]:
    """Yield every artifact as its experiment (which may be an inner one), its stage and its unit."""
    for stage in line.stages:
        units = stage.units(line)
        if units:
            yield from stage.inner(line)
        yield from ((line, stage, unit) for unit in units)


def _size(line: Pipeline, unit: Unit, store: _Rehearsal) -> Size:
    """Return the number of users, items and ratings of a source, as far as it can be known quickly.

    Unless the splits are kept, decisions that do not fit the ratings are found now if the data are small: as an error,
    or as a note.
    """
    source, data = unit.source, line.artifact(DATA, unit)
    kept = all(store.seen[SPLITS.name_for(division)] == "kept" for division in line.units("division", unit))
    if kept and data.home is not None:
        return Size(*(data.facts["description"][name] for name in ("users", "items", "ratings")))
    users, items, ratings = guess = _guessed_size(line, source)
    if ratings > _READ_AT_ONCE or (source.simulate is not None and users * items > _SIMULATED_AT_ONCE):
        return guess
    if source.dataset is not None and not inputs.origin(line.experiment, source, fetching=False)["parts"]:
        return guess
    there = inputs.load(line.experiment, source, line.decisions.overlap)
    whole = together(list(there.values()))
    if line.decisions.overlap is None:
        whole = inputs.filtered(line.experiment, whole)
        there = {"ratings": whole}
    scale = float(whole.values.min()), float(whole.values.max())
    tests = (test for test, _ in _measured(line, there))
    if without := line.decisions.on(*scale).measuring.check_relevance(tests):
        store.notes.append(experiment_facts.OnData(source.name, without))
    if any(system.run is not None for system in line.experiment.systems):
        for test, train in _measured(line, there):
            inputs.check_given_runs(line, unit, test, train)
    return Size(whole.n_users, whole.n_items, len(whole))


def _measured(line: Pipeline, parts: Mapping[str, Ratings]) -> Iterator[tuple[Ratings, Ratings]]:
    """Yield the test ratings of the users who are served, and the training ratings, for each repetition and fold."""
    for seed in line.experiment.seeds:
        for split in inputs.divided(line.experiment, parts, seed):
            whole = split.joined
            yield inputs.served_ratings(line.experiment, whole, seed), whole.train


def _guessed_size(line: Pipeline, source: Source) -> Size:
    """Estimate the number of users, items and ratings without reading them."""
    if source.simulate is not None:
        size = {"users": 1_000, "items": 500, "ratings": 50_000, **dict(parse(source.simulate).parameters)}
        # Values of another type are reported when the ratings are simulated.
        users, items, ratings = (
            size[key] if isinstance(size[key], int) else 0 for key in ("users", "items", "ratings")
        )
        return Size(users, items, ratings)
    if source.dataset is not None:
        from cranfield.datasets import find

        counts = find(source.dataset).counts
        ratings = counts.ratings or counts.rows or 1_000_000
        return Size(counts.users or ratings // 100, counts.items or ratings // 200, ratings)
    ratings = sum(inputs.about_ratings(line.experiment.path(file)) for file in source.files.values())
    return Size(max(ratings // 100, 1), max(ratings // 200, 1), ratings)
