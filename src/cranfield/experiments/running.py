"""The verb `run`: turns an experiment file into a folder of results; artifacts that exist are not made again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield import _checks as check
from cranfield._errors import CranfieldWarning, SettingError
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.file import read_experiment
from cranfield.experiments.inputs import check_inputs
from cranfield.experiments.pipeline import Pipeline, Stages, silent
from cranfield.experiments.rehearse import rehearse
from cranfield.experiments.results import Results
from cranfield.experiments.source import Source  # noqa: F401  (an example names it)
from cranfield.experiments.stage import Stage
from cranfield.experiments.stages import STAGES, Report
from cranfield.experiments.stages.experiment import stated
from cranfield.experiments.user_code import allowed_code
from cranfield.experiments.weights import check_weights
from cranfield.store import open_store


def run(
    experiment: Experiment | str | Path,
    out: str | Path | None = None,
    *,
    seed: int | None = None,
    jobs: int | None = None,
    stages: Stages = silent,
    further: Sequence[Stage[Any]] = (),
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
    further
        Additional stages from packages that build on experiments, such as the audit; they come before the report.
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
    check_inputs(experiment)
    check_weights(experiment)
    if experiment.audit is not None and not further:
        warnings.warn("[audit] is ignored; cranfield.audit runs the experiment with it", CranfieldWarning, stacklevel=2)
    with allowed_code(experiment, check.flag("allow_code", allow_code)):
        for stage in further:
            stage.check_experiment(experiment)
        return _run(experiment, out, jobs, stages, further, report, check.flag("strict", strict))


def _run(
    experiment: Experiment,
    out: Path,
    jobs: int | None,
    stages: Stages,
    further: Sequence[Stage[Any]],
    report: Callable[[Results, Path], list[Path]] | None,
    strict: bool,
) -> Results:
    """Take a checked experiment through its stages."""
    with open_store(out) as store:
        last = () if report is None else (Report(report),)
        line = Pipeline(experiment, store, (*STAGES, *further, *last), jobs, strict=strict)
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
