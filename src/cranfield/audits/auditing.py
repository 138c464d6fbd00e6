"""The verb `audit` of an experiment or of given lists, its plan, and the optional stage of an experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cranfield._checks import flag
from cranfield._errors import SettingError
from cranfield._numbers import count_text, time_text
from cranfield._registry import parse
from cranfield._terminal import Stages, silent
from cranfield.audits.enumeration import Enumeration, check_options, enumerate_universes
from cranfield.audits.files import read_audit
from cranfield.audits.measured_lists import SetupLists
from cranfield.audits.options import GIVEN, check_baseline, preset_options
from cranfield.audits.parsing import AuditSettings, audit_settings
from cranfield.audits.result import Audit
from cranfield.audits.setup_runs import SetupRuns, advice_rows, designs_of, planned_scale
from cranfield.audits.truth import check_truth, from_here, given_truth, true_values, truth_made_of
from cranfield.audits.universes import AVERAGED, MEASURED, UserPlaces, audit_universes, deepest
from cranfield.audits.verdict import facts_of_enumeration, left_out
from cranfield.data import AUTO, Ratings
from cranfield.experiments import (
    OUT,
    Decisions,
    Experiment,
    Pipeline,
    Plan,
    Results,
    Size,
    Source,
    Stage,
    System,
    Unit,
    catalogue_digest,
    experiment_and_folder,
    own_metrics,
    plan,
    run,
    stages,
)
from cranfield.facts import comparison as comparison_facts
from cranfield.facts import sentences
from cranfield.judgments import Context, as_judged, as_test, check_inputs
from cranfield.rankings import Gaps
from cranfield.recommenders import system_among
from cranfield.store import Made

HOME = "audit"
"""The folder of an audit within that of its experiment."""
_STEPS = {"searches": "searches", "models": "trainings", "runs": "rankings", "judged": "judged"}
_COMPUTED = 1e-6  # seconds to measure a list and average the values of a user in a universe
_TESTED = 3e-3  # seconds for a further test of a pair of systems in a universe


class Audited(Stage[Audit]):
    """The audit of an experiment: all set-ups in its store, and the answers."""

    name, title, level, inputs = "audit", "Auditing", "experiment", ("data",)
    exported, version = True, 7

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
        opened = [[own.name, own.kind, list(own.options), own.weights, dict(own.invalid)] for own in settings.varied]
        metrics = sorted({universe.measurement.metric for universe in setup_runs.enumeration.universes})
        return {
            "opened": opened,
            "budget": settings.budget,
            "fewest": settings.fewest,
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
        base = settings.experiment.decisions.comparing.base
        audit = replace(audit, baseline=None if base is None else system_among(base, systems))
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
    fewest: float | None = None,
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
    preset, vary, budget, fewest
        These override the table ``[audit]``: the preset, the options of individual decisions, the maximum number of
        universes to compute (5,000), and the users that a universe must have to count: a number, or below 1 a share of
        those of the largest universe (0.1).
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
            experiment,
            test,
            preset=preset,
            vary=vary,
            budget=budget,
            fewest=fewest,
            truth=truth,
            seed=seed or 0,
            **of_lists,
        )
        if out is not None:
            audited.save(Path(out))
        return audited
    is_file = isinstance(experiment, Mapping) and "data" in experiment  # its content; otherwise lists by system
    if not (is_file or isinstance(experiment, Experiment | str | Path)):
        raise SettingError("ranked lists are audited with the test ratings; give them as test=...")
    _refuse("an experiment", of_lists)
    experiment, out = experiment_and_folder(experiment, out, seed)
    experiment = with_audit(experiment, preset=preset, vary=vary, budget=budget, fewest=fewest, truth=truth)
    extra = (AUDITED,)
    results = run(experiment, out, jobs=jobs, stages=stages, extra_stages=extra, report=report, allow_code=allow_code)
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
        table["vary"] = {name: list(own) if isinstance(own, tuple) else own for name, own in vary.items()}
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
        """The numbers of searches, trainings, rankings and sets of judged lists that are still to be made."""
        counts = Counter(task.stage for task in self.plan.tasks if task.state != "kept")
        searched = any(task.stage == "searches" for task in self.plan.tasks)
        return {name: counts[stage] for stage, name in _STEPS.items() if searched or stage != "searches"}

    @property
    def estimate(self) -> str:
        """The amount of work and about how long it takes, in one line."""
        counts = {name: count for name, count in self.to_make.items() if name != "judged"}
        work = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        setups = count_text(len(self.enumeration.cells), "set-up")
        return f"{setups}; to make: {work}; roughly {time_text(self.plan.seconds)}"

    def __str__(self) -> str:
        enumeration = self.enumeration
        varied = enumeration.settings.varied
        lines = [f"{opened.name:<16} {opened.kind:<11} {', '.join(opened.options)}" for opened in varied]
        distinct = f", {len(enumeration.universes):,} of them distinct"
        distinct = "" if len(enumeration.universes) == len(enumeration.cells) else distinct
        lines += ["", f"{'set-ups':<16} {len(enumeration.cells):,}{distinct}"]
        kept = Counter(task.stage for task in self.plan.tasks if task.state == "kept")
        if enumeration.settings.testings:
            lines.append(f"{'tests':<16} {', '.join(map(str, enumeration.settings.testings))}")
        for stage, name in _STEPS.items():
            if name in self.to_make:
                lines.append(f"{name:<16} {self.to_make[name]:,} to make, {kept[stage]:,} kept")
        notes = sentences([*facts_of_enumeration(enumeration), *left_out(enumeration.invalid)])
        return "\n".join([*lines, *notes, f"roughly {time_text(self.plan.seconds)}"])


def plan_audit(
    experiment: Experiment | Mapping[str, Any] | str | Path,
    out: str | Path | None = None,
    *,
    preset: str | None = None,
    vary: Mapping[str, Any] | None = None,
    budget: int | None = None,
    fewest: float | None = None,
    truth: Mapping[str, float] | str | None = None,
    seed: int | None = None,
) -> AuditPlan:
    """Plan an audit: its trainings, rankings and universes, with those of the start, and the time; writes nothing."""
    experiment, out = experiment_and_folder(experiment, out, seed)
    experiment = with_audit(experiment, preset=preset, vary=vary, budget=budget, fewest=fewest, truth=truth)
    enumeration = enumerate_universes(audit_settings(experiment, scale=planned_scale(experiment)))
    return AuditPlan(enumeration, plan(experiment, out, extra_stages=(AUDITED,)))


OPENED_ON_LISTS = ("lists", *MEASURED, *AVERAGED)  # the decisions that can be opened on given lists


def audit_runs(
    runs: Any,
    test: Any,
    *,
    train: Ratings | None = None,
    metric: str = "P@10",
    threshold: float | str | None = AUTO,
    preset: str | None = None,
    vary: Mapping[str, Any] | None = None,
    kinds: Mapping[str, str] | None = None,
    budget: int | None = None,
    fewest: float | None = None,
    truth: Mapping[str, float] | str | None = None,
    gaps: Gaps = "keep",
    seed: int = 0,
    strict: bool = False,
) -> Audit:
    """Audit given ranked lists; the options are those of `cranfield.audits.audit`.

    Only decisions that need no training can be opened: which items count (``lists``), metrics, cut-offs, thresholds,
    averages, coverage. Condensed lists are left out, with the reason, if the given lists are too short for them: each
    list was cut somewhere, and the rated items below the cut are not known. Cut-offs that the lists do not reach are
    left out of a preset.
    """
    test = as_test(test)
    judged = as_judged(runs, test, threshold, Context(train), gaps=gaps)
    checked = check_inputs(judged, test, strict=flag("strict", strict))
    longest = max(lists.depth for lists in judged)
    scale = (float(test.values.min()), float(test.values.max())) if len(test) else (1.0, 5.0)
    table = _table_of_lists(longest, metric, preset, vary, kinds, scale)
    table |= {key: value for key, value in (("budget", budget), ("fewest", fewest)) if value is not None}
    judgments = judged[0].judgments
    decisions = Decisions(split="predefined", length="all", metrics=metric, threshold=judgments.threshold)
    data = (Source("given", train="train", test="test"),)
    systems = tuple(System(f"system {number}", run=GIVEN) for number in range(len(judged)))
    experiment = Experiment(data=data, systems=systems, decisions=decisions, seed=seed, audit=table)
    settings = audit_settings(experiment)
    names = SetupLists([judged], []).systems
    known = given_truth(truth, names)
    _check_shown(settings, longest, names)
    enumeration = enumerate_universes(settings)

    def lists_of(number: int, places: UserPlaces) -> SetupLists:
        lists = SetupLists([judged], [places.of("given", judgments.user_ids.ids(judgments.users))])
        condensed = enumeration.setups[number].experiment.decisions.lists == "condensed"
        return lists.with_given([True] * len(judged), condensed=condensed)

    return audit_universes(enumeration, names, lists_of, known, list(map(comparison_facts.Warned, checked)))


def _table_of_lists(
    longest: int, metric: str, preset: str | None, vary: Any, kinds: Any, scale: tuple[float, float]
) -> dict[str, Any]:
    """Return the table ``[audit]``; options of a preset that need training, or longer lists, are left out."""
    options: dict[str, Any] = {}
    if preset is not None or not vary:
        if (start := parse(metric).cutoff) is None:
            raise SettingError(
                f"{metric} has no cut-off, and an audit of given lists opens it; start from one such as P@10"
            )
        options = {"lists": ("full", "condensed"), **preset_options(preset or "measuring", scale)}
        options = {name: list(values) for name, values in options.items() if name in OPENED_ON_LISTS}
        options["cutoff"] = [cutoff for cutoff in options["cutoff"] if cutoff <= longest]
        if {*options["cutoff"], start} == {start}:  # every metric then has the cut-off of the starting point
            options |= {"cutoff": None, "metrics": [f"{name}@{start}" for name in options["metrics"]]}
    opened = {name: values for name, values in {**options, **(vary or {})}.items() if values is not None}
    return {"vary": opened, "kinds": dict(kinds or {})}


def _check_shown(settings: AuditSettings, longest: int, systems: Sequence[str]) -> None:
    """Raise an error for decisions that given lists cannot show."""
    for average in next((decision.values for decision in settings.varied if decision.name == "average"), ()):
        check_baseline(average, systems)
    for name in settings.names:
        if name not in OPENED_ON_LISTS:
            raise SettingError(
                f"audit: {name} cannot be opened on given lists, because it needs systems that are trained here; "
                "leave it out, or audit an experiment file"
            )
    if (deep := max(deepest(settings), default=0)) > longest:
        raise SettingError(
            f"audit: the longest list has {longest} items, so a cut-off of {deep} cannot be shown; give longer lists, "
            f"or cut-offs of at most {longest}"
        )
