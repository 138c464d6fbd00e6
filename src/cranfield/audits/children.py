"""`Children`: the experiments of an audit, one for each set-up, in the store of the audited experiment.

Artifacts that set-ups share are stored once: a model depends on a training set and a system, not on what is ranked with
it, and judged lists depend on a set of targets, not on what is measured on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cranfield._errors import CranfieldError
from cranfield.audits.asking import menu_of
from cranfield.audits.computing import UserPlaces
from cranfield.audits.crossing import Crossing, cross
from cranfield.audits.given_lists import given_lists
from cranfield.audits.setups import Setup
from cranfield.audits.universes import SetupLists
from cranfield.experiments import DATA, JUDGED, MODELS, RUNS, SEARCHES, SPLITS, Pipeline, Stage, Unit, lists_of
from cranfield.judgments import Judged, Judgments
from cranfield.rankings import Ranking

STAGES: tuple[Stage[Any], ...] = (DATA, SPLITS, SEARCHES, MODELS, RUNS, JUDGED)
"""The stages that every set-up runs; everything after them is a view of the judged lists."""


class Children:
    """The experiments of all set-ups of an audit.

    Parameters
    ----------
    line
        The audited experiment.
    """

    def __init__(self, line: Pipeline) -> None:
        self.crossing: Crossing = cross(menu_of(line.experiment, scale=_scale(line)))
        self.outer = line
        self.lines = [_child(line, setup) for setup in self.crossing.setups]
        self.reasons: dict[int, str] = {}
        self._judgments: list[Judgments] = []

    def go(self, advance: Callable[[], None]) -> None:
        """Train, rank and judge what does not exist yet; record the reason if a set-up fails.

        Progress counts whole set-ups: their first stages take no time and would make the estimate too optimistic.
        """
        for number, line in enumerate(self.lines):
            for stage in STAGES:
                if number not in self.reasons:
                    self._take(number, line, stage)
            line.forget()
            advance()

    def _take(self, number: int, line: Pipeline, stage: Stage[Any]) -> None:
        try:
            line.take(stage)
        except CranfieldError as error:
            if isinstance(error.__cause__, OSError):  # the folder is not writable, for any set-up
                raise
            self.reasons[number] = str(error)

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
            self.reasons.get(number) or [line.artifact(JUDGED, cell).digest for cell in line.units("cell")]
            for number, line in enumerate(self.lines)
        ]

    def lists(self, number: int, places: UserPlaces) -> SetupLists:
        """Return the judged lists of a set-up, or raise an error with the reason why there are none."""
        if number in self.reasons:
            raise CranfieldError(self.reasons[number])
        line = self.lines[number]
        start, data = self.crossing.menu.experiment.decisions, line.experiment.data[0].name
        parts = [self._with_shared(lists_of(line, part)) for part in line.units("part")]
        self._judgments = [part[0].judgments for part in parts]
        lists = SetupLists(
            parts,
            [places.of(data, _ids(part[0])) for part in parts],
            None if isinstance(start.length, str) else start.length,
            windows=[part.fold for part in line.units("part")] if line.decisions.has_windows else None,
        )
        line.forget()
        return given_lists(lists, _given(line), condensed=line.decisions.measuring.lists == "condensed")

    def _with_shared(self, part: Sequence[Judged]) -> list[Judged]:
        """Return judged lists with the judgments of the previous set-up if it had the same test ratings.

        Data that metrics cache per judgments, such as sorted gains, are then computed once.
        """
        own = part[0].judgments
        shared = next((before for before in self._judgments if before.is_same_as(own)), own)
        return [judged.fresh(judgments=shared.at(own.threshold)) for judged in part]


def _work(line: Pipeline, stage: Stage[Any], unit: Unit) -> tuple[Any, ...]:
    """Return everything that an artifact depends on and in which set-ups can differ."""
    decisions = line.experiment.decisions
    work = (stage.name, unit.repetition, unit.fold, unit.source.name, decisions.filters)
    if stage is DATA:
        return work
    if stage is SPLITS:
        return (*work, decisions.split)
    trained = (*work, decisions.split, unit.system.name, unit.system.spelling)
    if stage is MODELS:
        return trained
    ranked = (*trained, decisions.serving, decisions.ranking)
    return (*ranked, decisions.group(Ranking)) if stage is JUDGED and decisions.averages_draws else ranked


def _child(line: Pipeline, setup: Setup) -> Pipeline:
    return Pipeline(setup.experiment, line.store, STAGES, line.jobs, within=f"audit/{setup.name}")


def _scale(line: Pipeline) -> tuple[float, float]:
    """Return the lowest and the highest rating of the first set of ratings; 1 and 5 if it has not been read."""
    artifact = line.made(DATA, line.units("source")[0])
    histogram = None if artifact is None else artifact.facts.get("description", {}).get("histogram")
    return (min(row["low"] for row in histogram), max(row["high"] for row in histogram)) if histogram else (1.0, 5.0)


def _given(line: Pipeline) -> list[bool]:
    """Return, for each system, whether its lists come from a file."""
    return [system.run is not None for system in line.experiment.systems]


def _ids(judged: Judged) -> list[Any]:
    judgments = judged.judgments
    return list(judgments.user_ids.ids(judgments.users))
