"""The verb `audit`, its plan, and the optional stage: whether the winner remains the same under other decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cranfield._errors import SettingError
from cranfield._numbers import count_text, time_text
from cranfield._terminal import Stages, silent
from cranfield.audits.enumeration import Enumeration, check_options, enumerate_universes
from cranfield.audits.files import read_audit
from cranfield.audits.from_runs import audit_runs
from cranfield.audits.parsing import audit_settings
from cranfield.audits.result import Audit
from cranfield.audits.setup_runs import SetupRuns, advice_rows, designs_of
from cranfield.audits.truth import check_truth, from_here, true_values, truth_made_of
from cranfield.audits.universes import audit_universes
from cranfield.audits.verdict import facts_of_enumeration, left_out
from cranfield.experiments import (
    OUT,
    Experiment,
    Pipeline,
    Plan,
    Results,
    Size,
    Stage,
    Unit,
    catalogue_digest,
    experiment_and_folder,
    own_metrics,
    plan,
    run,
    stages,
)
from cranfield.facts import sentences
from cranfield.store import Made

HOME = "audit"
"""The folder of an audit within that of its experiment."""

_STEPS = {"models": "trainings", "runs": "rankings", "judged": "judged"}
# Seconds to measure a list and average the values of a user in a universe.
_COMPUTED = 1e-6
# Seconds for a further test of a pair of systems in a universe.
_TESTED = 3e-3


class Audited(Stage[Audit]):
    """The audit of an experiment: all set-ups in its store, and the answers."""

    name, title, level, inputs = "audit", "Auditing", "experiment", ("data",)
    exported, version = True, 2

    def check_experiment(self, experiment: Experiment) -> None:
        """Raise an error for decisions that cannot be opened."""
        if experiment.audit is not None:
            settings = audit_settings(experiment)
            check_options(settings)
            if settings.truth is not None:
                check_truth(settings.truth, experiment)

    def wants(self, line: Pipeline, unit: Unit) -> bool:  # noqa: ARG002
        """Whether the experiment opens decisions."""
        return line.experiment.audit is not None

    def prepare(self, line: Pipeline, stages: Stages) -> None:
        """Train, rank and judge what does not exist yet for every set-up."""
        setup_runs = setup_runs_of(line)
        # This bar has its own clock, because its steps do not take as long as those of pairs of systems.
        with stages("Lists for the audit", len(setup_runs.lines)) as advance:
            setup_runs.go(advance)

    def inner(self, line: Pipeline) -> Iterator[tuple[Pipeline, Stage[Any], Unit]]:
        """Yield the artifacts of the set-ups."""
        yield from setup_runs_of(line).artifacts()

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:  # noqa: ARG002
        """Return the opened decisions, and the digests of the judged lists of every set-up."""
        setup_runs = setup_runs_of(line)
        settings = setup_runs.enumeration.settings
        opened = [
            [decision.name, decision.kind, list(decision.options), decision.weights, dict(decision.invalid)]
            for decision in settings.varied
        ]
        metrics = sorted({universe.measurement.metric for universe in setup_runs.enumeration.universes})
        return {
            "opened": opened,
            "budget": settings.budget,
            "tests": [str(testing) for testing in settings.testings],
            "truth": truth_made_of(settings.truth, settings.experiment),
            "start": settings.experiment.decisions.as_dict(),
            "systems": [system.name for system in settings.experiment.systems],
            "judged": setup_runs.digests(),
            "catalogue": catalogue_digest(line.experiment),
            "own": own_metrics(metrics, line.experiment),
            "assess": None if line.experiment.assess is None else stages.options_of(line.experiment),
            "seed": settings.experiment.seed,
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:  # noqa: ARG002
        """Compute every universe, and write the audit."""
        setup_runs = setup_runs_of(line)
        settings = setup_runs.enumeration.settings
        systems = tuple(system.name for system in line.experiment.systems)
        truth = None if settings.truth is None else true_values(settings.truth, settings)
        audit = audit_universes(setup_runs.enumeration, systems, setup_runs.lists, truth)
        if line.experiment.assess is not None:
            audit = replace(audit, advised=tuple(advice_rows(setup_runs, line.experiment)))
        return audit.save(place / OUT / HOME), {}

    def read(self, line: Pipeline, unit: Unit) -> Audit:
        """Return the audit."""
        return read_audit(line.artifact(self, unit).path(f"{OUT}/{HOME}/audit.json").parent)

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        """Return about how long the universes take, once all lists are judged."""
        enumeration = setup_runs_of(line).enumeration
        systems = len(line.experiment.systems)
        tests = len({testing.significance for testing in enumeration.settings.testings})
        tested = _TESTED * tests * len(enumeration.universes) * systems * (systems - 1) / 2
        assessed = 0.0
        if line.experiment.assess is not None:
            assessed = len(designs_of(enumeration)) * stages.ASSESS.seconds(line, line.units("source")[0], size)
        return tested + assessed + _COMPUTED * len(enumeration.universes) * size.users * systems


def setup_runs_of(line: Pipeline) -> SetupRuns:
    """Return the experiments of all set-ups; the same object for each call within a run."""
    return line.remember("set-ups of the audit", line.experiment.title, lambda: SetupRuns(line))


AUDITED = Audited()


def audit(
    experiment: Any,
    out: str | Path | None = None,
    *,
    test: Any = None,
    preset: str | None = None,
    vary: Mapping[str, Any] | None = None,
    budget: int | None = None,
    truth: Mapping[str, float] | str | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    stages: Stages = silent,
    report: Callable[[Results, Path], list[Path]] | None = None,
    allow_code: bool = False,
    **of_lists: Any,
) -> Audit:
    """Audit an experiment, or given ranked lists: compute whether the winner remains the same under other decisions.

    Every combination of the options of all opened decisions is computed; each is a *universe*. Systems are trained once
    for each training set; lists are ranked once for each set of targets, and judged once. All other options reuse these
    lists. Everything is stored in the folder of the experiment, so an interrupted audit continues where it stopped.

    Parameters
    ----------
    experiment
        The starting point, or its file. The table ``[audit]`` opens decisions; without it, the preset is ``usual``. Or
        ranked lists, as for `measure`: only decisions that need no training can be opened on them. The preset is then
        ``measuring``, with full and condensed lists.
    out
        The folder; by default, the name of the file without its extension. An audit of lists is only written if it is
        given.
    test
        The test ratings, if ranked lists are given.
    preset, vary, budget
        These override the table ``[audit]``: the preset, the options of individual decisions, and the maximum number of
        universes to compute (5,000).
    truth
        The true value of every system, if known: by name; in a file with the columns ``system`` and ``value``; or
        ``P@n``, ``Recall@n`` or ``nDCG@n`` for simulated worlds, in which it can be computed (`true_values`).
    seed, jobs, stages, report, allow_code
        As for `cranfield.experiments.run`.
    of_lists
        Further options for ranked lists. ``train``: the training ratings, which determine which test items a system
        could score. ``metric`` and ``threshold``: the starting point, by default P@10 and the threshold of `measure`.
        ``kinds``: as in the table ``[audit]``. ``gaps`` and ``strict``: as for `measure`.

    Returns
    -------
    Audit
        The result, which is also written to the folder ``audit`` inside the folder of the experiment.

    Examples
    --------
    >>> import tempfile
    >>> from cranfield.experiments import Source, System
    >>> tiny = Experiment(
    ...     data=(Source("tiny", simulate="world(users=60, items=40, ratings=900)"),),
    ...     systems=(System("popularity", "popularity"), System("near", "knn(k=5)")),
    ... )
    >>> found = audit(tiny, tempfile.mkdtemp(), vary={"cutoff": [5, 10], "average": ["mean", "weighted"]})
    >>> found.grid
    Grid(2 decisions, 4 cells, 4 universes)
    """
    if test is not None:
        _refuse("ranked lists", {"jobs": jobs, "report": report, "allow_code": allow_code or None})
        audited = audit_runs(
            experiment, test, preset=preset, vary=vary, budget=budget, truth=truth, seed=seed or 0, **of_lists
        )
        if out is not None:
            audited.save(Path(out))
        return audited
    if not isinstance(experiment, Experiment | str | Path):
        raise SettingError("ranked lists are audited with the test ratings; give them as test=...")
    _refuse("an experiment", of_lists)
    experiment, out = experiment_and_folder(experiment, out, seed)
    results = run(
        with_audit(experiment, preset=preset, vary=vary, budget=budget, truth=truth),
        out,
        jobs=jobs,
        stages=stages,
        extra_stages=(AUDITED,),
        report=report,
        allow_code=allow_code,
    )
    return audit_of(results)


def _refuse(audited: str, options: Mapping[str, Any]) -> None:
    for name in (name for name, value in options.items() if value is not None):
        raise SettingError(f"{name}=... does nothing in an audit of {audited}; leave it out")


def with_audit(
    experiment: Experiment, *, vary: Mapping[str, Any] | None = None, truth: Any = None, **stated: Any
) -> Experiment:
    """Return an experiment with a table ``[audit]``, overridden by what is given here."""
    table = dict(experiment.audit or {})
    if vary is not None:
        table["vary"] = {
            name: list(options) if isinstance(options, tuple) else options for name, options in vary.items()
        }
    table |= {key: value for key, value in {**stated, "truth": from_here(truth)}.items() if value is not None}
    return replace(experiment, audit=table)


def audit_of(results: Results) -> Audit:
    """Return the audit of an experiment that was run with one."""
    return results.line.read(AUDITED, results.line.units("experiment")[0])


@dataclass(frozen=True, eq=False)
class AuditPlan:
    """What an audit would do: the cells and universes, and what would be made, including every set-up."""

    enumeration: Enumeration
    plan: Plan

    @property
    def to_make(self) -> dict[str, int]:
        """The numbers of trainings, rankings and sets of judged lists that are still to be made."""
        counts = Counter(task.stage for task in self.plan.tasks if task.state != "kept")
        return {name: counts[stage] for stage, name in _STEPS.items()}

    @property
    def estimate(self) -> str:
        """The amount of work and about how long it takes, in one line."""
        counts, setups = self.to_make, count_text(len(self.enumeration.setups), "set-up")
        return (
            f"{len(self.enumeration.universes):,} universes in {setups}; to make: {counts['trainings']:,} trainings, "
            f"{counts['rankings']:,} rankings; roughly {time_text(self.plan.seconds)}"
        )

    def __str__(self) -> str:
        enumeration = self.enumeration
        lines = [
            f"{decision.name:<16} {decision.kind:<11} {', '.join(decision.options)}"
            for decision in enumeration.settings.varied
        ]
        lines += ["", f"{'cells':<16} {len(enumeration.cells):,}", f"{'universes':<16} {len(enumeration.universes):,}"]
        kept = Counter(task.stage for task in self.plan.tasks if task.state == "kept")
        if enumeration.settings.testings:
            lines.append(f"{'tests':<16} {', '.join(map(str, enumeration.settings.testings))}")
        for stage, name in _STEPS.items():
            lines.append(f"{name:<16} {self.to_make[name]:,} to make, {kept[stage]:,} kept")
        notes = sentences([*facts_of_enumeration(enumeration), *left_out(enumeration.invalid)])
        return "\n".join([*lines, *notes, f"roughly {time_text(self.plan.seconds)}"])


def plan_audit(
    experiment: Experiment | str | Path,
    out: str | Path | None = None,
    *,
    preset: str | None = None,
    vary: Mapping[str, Any] | None = None,
    budget: int | None = None,
    truth: Mapping[str, float] | str | None = None,
    seed: int | None = None,
) -> AuditPlan:
    """Plan an audit: the numbers of trainings, rankings and universes, and about how long; nothing is written.

    The trainings and rankings of the starting point are counted too.
    """
    experiment, out = experiment_and_folder(experiment, out, seed)
    experiment = with_audit(experiment, preset=preset, vary=vary, budget=budget, truth=truth)
    enumeration = enumerate_universes(audit_settings(experiment))
    return AuditPlan(enumeration, plan(experiment, out, extra_stages=(AUDITED,)))
