"""The verb `run`: an experiment file in, a folder of results out; what is there already is not made again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from cranfield import _checks as check
from cranfield._errors import SettingError
from cranfield._files import write_text
from cranfield.comparisons.corrections import corrections
from cranfield.comparisons.verdict import significance_tests
from cranfield.experiments.assessing import assessed
from cranfield.experiments.card import card, write_card
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.file import moved, read_experiment, toml_of
from cranfield.experiments.findings import findings
from cranfield.experiments.folder import Folder, Made, open_folder
from cranfield.experiments.inputs import check_inputs
from cranfield.experiments.rehearse import rehearse
from cranfield.experiments.results import Results
from cranfield.experiments.source import Source
from cranfield.experiments.stages import Pipeline
from cranfield.experiments.user_code import own, own_of
from cranfield.experiments.versions import versions

# What draws the figures of a report.
_DRAWING = ("altair", "vl-convert-python")


class Stages(Protocol):
    """Whoever wants to know how far it is: a context for each stage, with a function to report steps."""

    def __call__(self, what: str, steps: int = 1) -> AbstractContextManager[Callable[[], None]]:
        """Open a stage of so many steps."""


def silent(what: str, steps: int = 1) -> AbstractContextManager[Callable[[], None]]:  # noqa: ARG001
    """Tell nobody how far it is."""
    return nullcontext(lambda: None)


def run(
    experiment: Experiment | str | Path,
    out: str | Path | None = None,
    *,
    seed: int | None = None,
    jobs: int | None = None,
    stages: Stages = silent,
    report: Callable[[Results], list[Path]] | None = None,
) -> Results:
    """Run an experiment from data to results.

    Every step is kept in the folder under a hash of what it depends on. A second run makes only what a change in the
    file, or a missing or damaged artifact, asks for; a run that was interrupted goes on where it stopped. The files end
    up the same, byte for byte.

    Parameters
    ----------
    experiment
        The experiment, or its file.
    out
        The folder; by default the file's name without its ending.
    seed
        Counts instead of the experiment's, if given.
    jobs
        How many systems are trained at a time; see `recommend`.
    stages
        Told how far it is.
    report
        Writes what is made of the results, and returns the files.

    Returns
    -------
    Results
        What was found, read from the folder.

    Examples
    --------
    >>> import tempfile
    >>> tiny = Experiment(data=(Source("tiny", simulate="world(users=60, items=40, ratings=900)"),))
    >>> results = run(tiny, tempfile.mkdtemp())
    >>> print(results.sentences("tiny")[0])
    P@10: knn(k=100) is best (0.1655), significantly better than 0 of 2 others; not than popularity ...
    """
    experiment, out = stated(experiment, out, seed)
    if jobs is not None:
        check.whole("jobs", jobs)
    check_inputs(experiment)
    with open_folder(out) as folder:
        folder.log(did="started")
        line = Pipeline(experiment, folder, jobs)
        rehearse(line)
        go(line, stages)
        if report is not None:
            with stages("Writing the report"):
                reported(line, report)
        folder.prune()
        folder.log(did="finished")
    return Results(out)


def stated(experiment: Experiment | str | Path, out: str | Path | None, seed: int | None) -> tuple[Experiment, Path]:
    """Return the experiment, read if need be, and its folder."""
    if isinstance(experiment, Experiment):
        if out is None:
            raise SettingError("an experiment that is no file has no folder of its own; give out")
    else:
        path = Path(experiment)
        experiment = read_experiment(path)
        out = path.with_suffix("") if out is None else out
    return experiment if seed is None else replace(experiment, seed=seed), Path(out)


def go(line: Pipeline, stages: Stages = silent) -> None:
    """Take every stage, in the order of the line; nothing is trained before all data are read and split."""
    experiment, folder = line.experiment, line.folder
    text = toml_of(moved(experiment, folder.path))
    line.made["experiment"] = folder.artifact("experiment", {"text": text}, lambda: _stated(folder, text))
    with stages("Reading and splitting", len(experiment.data)) as advance:
        for source in experiment.data:
            line.data(source)
            for repetition in range(experiment.repetitions):
                line.split(source, repetition)
            advance()
    line.check_served()
    parts = list(line.all_parts)
    tuned = [system for system in experiment.systems if system.tuning is not None]
    if tuned:
        with stages("Searching settings", len(parts) * len(tuned)) as advance:
            for part in parts:
                for system in tuned:
                    line.search(part, system)
                    advance()
    with stages("Training and ranking", len(parts) * len(experiment.systems)) as advance:
        for part in parts:
            line.runs(part, advance)
    with stages("Measuring", len(parts)) as advance:
        for part in parts:
            line.scores(part)
            advance()
    with stages("Comparing", len(experiment.data)) as advance:
        for source in experiment.data:
            _compared(line, source)
            advance()
    if experiment.assess is not None:
        with stages("Assessing", len(experiment.data)) as advance:
            for source in experiment.data:
                assessed(line, source)
                advance()
    with stages("Writing the card"):
        told = {name: artifact.digest for name, artifact in line.made.items()}
        made_of = {"made": told, "versions": folder.versions(), "notes": dict(experiment.notes)}
        line.made["card"] = folder.artifact("card", made_of, lambda: write_card(folder.path, card(line)))


def reported(line: Pipeline, report: Callable[[Results], list[Path]] = lambda _: []) -> None:
    """Write what is made of the results."""
    told = {name: artifact.digest for name, artifact in line.made.items()}
    made_of = {"made": told, "own": own(report), "versions": versions(_DRAWING)}
    line.folder.artifact("report", made_of, lambda: (report(Results(line.folder.path)), {}))


def _stated(folder: Folder, text: str) -> Made:
    path = folder.path / "experiment.toml"
    write_text(path, text)
    return [path], {}


def _compared(line: Pipeline, source: Source) -> None:
    decisions, seed = line.decisions, line.experiment.seed
    parts = line.parts(source)
    made_of = {
        "scores": [line.made[f"scores/{part.place}"].digest for part in parts],
        "averaging": decisions.averaging(),
        "comparing": decisions.comparing(),
        "own": [*own_of(significance_tests, [decisions.test]), *own_of(corrections, [decisions.correction])],
        "seed": seed,
    }

    def make() -> Made:
        folds = [(part.repetition, part.fold, line.scores_of(part)) for part in parts]
        found = findings(source.name, folds, decisions, seed=seed)
        return found.write(line.folder.path, decisions), {"sentences": found.sentences}

    name = f"results/{source.name}"
    line.made[name] = line.folder.artifact(name, made_of, make)
