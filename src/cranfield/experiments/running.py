"""The verb `run`: turns an experiment file into a folder of results; artifacts that exist are not made again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield import _checks as check
from cranfield import splits
from cranfield._errors import CranfieldWarning, MissingExtraError, SettingError
from cranfield._own_code import may_be_called
from cranfield._registry import parse
from cranfield._terminal import Stages, silent, unheard
from cranfield.comparisons import as_scores, compare
from cranfield.data import Ratings
from cranfield.experiments.decisions import Decisions
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.file import read_experiment
from cranfield.experiments.inputs import check_files
from cranfield.experiments.pipeline import Pipeline, Stage
from cranfield.experiments.results import Results
from cranfield.experiments.searching import Range, search
from cranfield.experiments.source import Source  # noqa: F401  (an example names it)
from cranfield.experiments.stages import STAGES, Report
from cranfield.experiments.stages.assess import options_of
from cranfield.experiments.stages.documents import stated
from cranfield.experiments.user_code import allowed_code
from cranfield.measures import Average, Scores, measure
from cranfield.rankings import Calibration, recommend
from cranfield.splits import Split, random
from cranfield.store import open_store


def run(
    experiment: Experiment | str | Path,
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
        The experiment, or its file.
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
    knn(k=100) and popularity are level at the top by all 6 metrics.
    """
    experiment, out = experiment_and_folder(experiment, out, seed)
    if jobs is not None:
        check.whole("jobs", jobs)
    check_files(experiment)
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
    experiment: Experiment | str | Path, out: str | Path | None, seed: int | None
) -> tuple[Experiment, Path]:
    """Return the experiment, read from its file if necessary, and its folder."""
    if isinstance(experiment, Experiment):
        if out is None:
            raise SettingError("an experiment that is not a file has no folder; give out")
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
            assess(runs, few.test, threshold=decisions.measuring.threshold, **{**options, "samples": 1})


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
