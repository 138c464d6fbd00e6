"""`SetupRuns`: the experiments of an audit, one for each set-up, in the store of the audited experiment.

Artifacts that set-ups share are stored once: a model depends on a training set and a system, not on what is ranked with
it, and judged lists depend on a set of targets, not on what is measured on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from cranfield._errors import CranfieldError
from cranfield._registry import parse
from cranfield._terminal import progress, unheard
from cranfield.assessments import Assessment, assess_folds
from cranfield.audits.enumeration import Enumeration, enumerate_universes
from cranfield.audits.grid import number_or_none
from cranfield.audits.measured_lists import SetupLists
from cranfield.audits.parsing import audit_settings
from cranfield.audits.result import ADVICE_KINDS
from cranfield.audits.universes import UserPlaces
from cranfield.data import read
from cranfield.experiments import Experiment, Pipeline, Stage, Unit, stages
from cranfield.facts import audit as audit_facts
from cranfield.judgments import Judged, Judgments
from cranfield.metrics import kendall_tau_b
from cranfield.rankings import Ranking

STAGES: tuple[Stage[Any], ...] = (
    *(stages.DATA, stages.SPLITS, stages.SEARCHES),
    *(stages.MODELS, stages.CALIBRATED, stages.RUNS, stages.JUDGED),
)
"""The stages that every set-up runs; everything after them is a view of the judged lists."""

DESIGNS = ("split", "lists", "candidates", "relevant", "nonrelevant", "unrated", "repeats", "keep_seen")
"""The decisions about the split and about which items a list may hold."""


_READ_AT_ONCE = 50_000_000  # bytes of ratings that a plan reads to know their scale


class SetupRuns:
    """The experiments of all set-ups of an audit, given the pipeline of the audited experiment."""

    def __init__(self, line: Pipeline) -> None:
        self.enumeration: Enumeration = enumerate_universes(audit_settings(line.experiment, scale=_scale(line)))
        self.outer = line
        self.lines = [
            Pipeline(setup.experiment, line.store, STAGES, line.jobs, within=f"audit/{setup.name}")
            for setup in self.enumeration.setups
        ]
        self.reasons: dict[int, str] = {}
        self._judgments: list[Judgments] = []

    def go(self, advance: Callable[[], None]) -> None:
        """Train, rank and judge what does not exist yet; record the reason if a set-up fails."""
        for number, line in enumerate(self.lines):
            try:
                for stage in STAGES:
                    line.take(stage)
            except CranfieldError as error:
                if isinstance(error.__cause__, OSError):  # the folder is not writable, for any set-up
                    raise
                self.reasons[number] = str(error)
            line.forget()
            advance()  # of whole set-ups, since their first stages take no time

    def artifacts(self) -> Iterator[tuple[Pipeline, Stage[Any], Unit]]:
        """Yield the artifacts of all set-ups, each once, except those of the experiment itself."""
        outer = self.outer
        seen = {_work(outer, stage, unit) for stage in STAGES for unit in stage.units(outer)}
        for line in self.lines:
            for stage in STAGES:
                for unit in stage.units(line):
                    work = _work(line, stage, unit)
                    if work not in seen and stage.name_for(unit) in line.artifacts:
                        seen.add(work)
                        yield line, stage, unit

    def digests(self) -> list[Any]:
        """Return, for each set-up, the digests of its judged lists, or the reason why there are none."""
        return [
            self.reasons.get(number) or [line.artifact(stages.JUDGED, cell).digest for cell in line.units("cell")]
            for number, line in enumerate(self.lines)
        ]

    def line(self, number: int) -> Pipeline:
        """Return the pipeline of a set-up, or raise an error with the reason why it failed."""
        if number in self.reasons:
            raise CranfieldError(self.reasons[number])
        return self.lines[number]

    def lists(self, number: int, places: UserPlaces) -> SetupLists:
        """Return the judged lists of a set-up, or raise an error with the reason why there are none."""
        line = self.line(number)
        start, data = self.enumeration.settings.experiment.decisions, line.experiment.data[0].name
        parts = [self._with_shared(stages.lists_of(line, part)) for part in line.units("part")]
        self._judgments = [part[0].judgments for part in parts]
        lists = SetupLists(
            parts,
            [places.of(data, part[0].judgments.user_ids.ids(part[0].judgments.users)) for part in parts],
            None if isinstance(start.length, str) else start.length,
            windows=[part.fold for part in line.units("part")] if line.decisions.has_windows else None,
        )
        line.forget()
        given = [system.run is not None for system in line.experiment.systems]
        return lists.with_given(given, condensed=line.decisions.measuring.lists == "condensed")

    def _with_shared(self, part: Sequence[Judged]) -> list[Judged]:
        """Return lists with the judgments of the previous set-up if they are equal, for what metrics cache there."""
        own = part[0].judgments
        shared = next((before for before in self._judgments if before.is_same_as(own)), own)
        return [judged.fresh(judgments=shared.at(own.threshold)) for judged in part]


def _work(line: Pipeline, stage: Stage[Any], unit: Unit) -> tuple[Any, ...]:
    """Return everything that an artifact depends on and in which set-ups can differ."""
    decisions = line.experiment.decisions
    work = (stage.name, unit.repetition, unit.fold, unit.source.name, decisions.filters)
    if stage is stages.DATA:
        return work
    if stage is stages.SPLITS:
        return (*work, decisions.split)
    system = (*work, decisions.split, unit.system.name, unit.system.spelling)
    chosen = (decisions.validation, decisions.validation_windows)
    if stage is stages.SEARCHES:
        return (*system, *chosen, decisions.metrics[0], decisions.threshold, decisions.serving, decisions.ranking)
    # A calibration may hold out training ratings, and a system may learn from the validation part in the end.
    sets_aside = "validation" in dict(parse(decisions.split).parameters)
    if not decisions.refit:
        sets_aside |= any(stated.tuning is not None for stated in line.experiment.systems)
    validates = sets_aside or unit.system.tuning is not None
    trained = (*system, decisions.calibration != "none", *((*chosen, decisions.refit) if validates else ()))
    if stage is stages.MODELS:
        return trained
    if stage is stages.CALIBRATED:
        return (*trained, decisions.calibration)
    ranked = (*trained, decisions.serving, decisions.ranking)
    return (*ranked, decisions.group(Ranking)) if stage is stages.JUDGED and decisions.averages_draws else ranked


def _scale(line: Pipeline) -> tuple[float, float]:
    """Return the lowest and the highest rating of the first set of ratings, as far as it is known."""
    artifact = line.made(stages.DATA, line.units("source")[0])
    histogram = None if artifact is None else artifact.facts.get("description", {}).get("histogram")
    if not histogram:
        return planned_scale(line.experiment)
    return min(row["low"] for row in histogram), max(row["high"] for row in histogram)


def planned_scale(experiment: Experiment) -> tuple[float, float]:
    """Return the lowest and the highest rating of a file of ratings that is read in no time; 1 and 5 for others."""
    source = experiment.data[0]
    files = [experiment.path(file) for file in source.files.values()]
    if not files or sum(file.stat().st_size for file in files if file.is_file()) > _READ_AT_ONCE:
        return 1.0, 5.0
    values = np.concatenate([read(file, **source.reading).values for file in files])
    return float(values.min()), float(values.max())


def advice_rows(setup_runs: SetupRuns, experiment: Experiment) -> list[dict[str, Any]]:
    """Assess the metrics of an experiment under each split and target design, with all else as at the starting point.

    Returns one row per set-up, metric and average, as `Advice.frame` ranks them, with tau-b between the scores of the
    metrics and those under the starting point; a set-up that cannot be assessed has one row with the reason. There are
    no rows if none of these decisions is opened.
    """
    rows, first = list[dict[str, Any]](), None
    designs = designs_of(setup_runs.enumeration)
    with progress("Assessing", total=len(designs), unit="set-ups") as bar:
        for number, words in designs.items():
            setup = audit_facts.question_text(words)
            try:
                with unheard():  # only the time left for all set-ups is shown
                    advice = _assessed(setup_runs, number, experiment).advice()
            except CranfieldError as error:
                rows.append({**dict.fromkeys(ADVICE_KINDS), "setup": setup, "reason": str(error)})
            else:
                frame = advice.frame().select("metric", "average", "rank", "score", "lower", "upper", "first")
                scores = {(row["metric"], row["average"]): row["score"] or 0.0 for row in frame.iter_rows(named=True)}
                first = scores if first is None else first
                tau = number_or_none(kendall_tau_b([first[name] for name in scores], list(scores.values())))
                shared = {"tau": tau, "clear": not advice.unclear, "reason": None}
                rows += [{"setup": setup, **row, **shared} for row in frame.iter_rows(named=True)]
            bar.advance()
    return rows


def designs_of(enumeration: Enumeration) -> dict[int, dict[str, str]]:
    """Return the starting point and the set-ups that differ from it only in split and target design."""
    names = enumeration.settings.names
    varied = [place for place, name in enumerate(names) if name in DESIGNS]
    if not varied:
        return {}
    others = [place for place in range(len(names)) if place not in varied]
    start = enumeration.cells[enumeration.start]
    alike = np.flatnonzero((enumeration.cells[:, others] == start[others]).all(axis=1))
    setups: dict[int, dict[str, str]] = {}
    for cell in (enumeration.start, *alike.tolist()):
        options = enumeration.cells[cell]
        words = {names[place]: enumeration.settings.varied[place].options[options[place]] for place in varied}
        setups.setdefault(enumeration.universes[enumeration.universe[cell]].setup, words)
    return setups


def _assessed(setup_runs: SetupRuns, number: int, experiment: Experiment) -> Assessment:
    line = setup_runs.line(number)
    parts = line.units("part")
    measuring = stages.decided(line, line.units("source")[0]).measuring
    folds = [(stages.lists_of(line, part), None) for part in parts]
    trains = [stages.split_of(line, part).train for part in parts]
    how = {"threshold": measuring.threshold, "lists": measuring.lists, "seed": experiment.seed}
    assessment = assess_folds(folds, trains=trains, **how, **stages.options_of(experiment))
    line.forget()
    return assessment
