"""`Setup`: what is trained and ranked for a universe; universes measured on the same lists share one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from cranfield._registry import parse
from cranfield.audits.asking import Menu
from cranfield.audits.options import SYSTEMS, metric_at, split_parameter, with_parameter
from cranfield.data import AUTO
from cranfield.experiments import DECISIONS, Experiment, System, draws
from cranfield.measures import Averaging
from cranfield.recommenders import recommender
from cranfield.splits import registry as split_registry

MEASURED = ("metrics", "cutoff", "gain", "threshold", "unjudged")
"""Decisions about what is measured on given lists."""

AVERAGED = tuple(Averaging.decisions())
"""Decisions about how the values of many users are combined into one number."""


@dataclass(frozen=True, eq=False)
class Setup:
    """What is trained and ranked for a universe: an experiment on one set of ratings with sufficiently long lists.

    Parameters
    ----------
    experiment
        The data, the systems and the decisions.
    """

    experiment: Experiment

    @cached_property
    def key(self) -> str:
        """A text that is the same for equal set-ups."""
        systems = [(system.name, system.spelling, system.run, system.gaps) for system in self.experiment.systems]
        stated = [self.experiment.data[0].name, systems, self.experiment.decisions.as_dict()]
        return json.dumps(stated, default=str)

    @property
    def name(self) -> str:
        """The name of the set-up in the store of artifacts."""
        from cranfield.store import fingerprint

        return fingerprint(self.key)[:12]


def of_setup(menu: Menu) -> tuple[str, ...]:
    """Return the opened decisions that change what is trained or ranked.

    The threshold is one of them if some lists depend on which items are relevant.
    """
    start = menu.experiment.decisions.ranking
    draws_targets = start.needs_relevance or any(name in ("relevant", "nonrelevant") for name in menu.names)
    later = {*MEASURED, *AVERAGED} - ({"threshold"} if draws_targets else set())
    return tuple(name for name in menu.names if name not in later)


def setup_of(menu: Menu, values: Mapping[str, Any]) -> Setup:
    """Return the set-up of some options by decision; raise an error if they contradict each other."""
    start = menu.experiment
    changes = {name: value for name, value in values.items() if name in DECISIONS}
    if isinstance(start.decisions.length, int):
        changes["length"] = max(start.decisions.length, *deepest(menu), 1)
    split = str(changes.get("split", start.decisions.split))
    if values.get("split_seed", start.seed) != start.seed and _draws(split):
        changes["split"] = with_parameter(split, "seed", values["split_seed"])
    sources = {source.name: source for source in start.data}
    return Setup(
        replace(
            start,
            data=(sources[values["data"]] if "data" in values else start.data[0],),
            systems=tuple(_system(system, start, values) for system in start.systems),
            decisions=start.decisions.with_(**changes),
            assess=None,
            audit=None,
        )
    )


def deepest(menu: Menu) -> Iterable[int]:
    """Return the opened cut-offs, and those that metrics state."""
    opened = {opening.name: opening.values for opening in menu.openings}
    metrics = opened.get("metrics", ()) or (str(menu.experiment.decisions.metrics[0]),)
    stated = (parse(metric).cutoff for metric in metrics)
    return [*opened.get("cutoff", ()), *(cutoff for cutoff in stated if cutoff is not None)]


def _draws(split: str) -> bool:
    return parse(split).name in split_registry and draws(split_registry, split)


def _system(system: System, start: Experiment, values: Mapping[str, Any]) -> System:
    """Return a system with the parameters and the training seed of a universe."""
    spelling = system.spelling
    if spelling is None:
        return system
    for name, value in values.items():
        if name.startswith(SYSTEMS) and split_parameter(name)[0] == system.name:
            spelling = with_parameter(spelling, split_parameter(name)[1], value)
    seed = values.get("training_seed", start.seed)
    if seed != start.seed and "seed" in vars(recommender(spelling)):
        spelling = with_parameter(spelling, "seed", seed)
    return system if spelling == system.spelling else replace(system, spelling=spelling)


@dataclass(frozen=True)
class Measurement:
    """What is measured on the lists of a set-up: a metric, the lowest relevant rating, the value of unjudged items.

    Without a threshold, that of the lists is used, which follows from their ratings.
    """

    metric: str
    threshold: float | None
    unjudged: str = "not relevant"


def measurement_of(menu: Menu, values: Mapping[str, Any]) -> Measurement:
    """Return the measurement of some options by decision."""
    decisions = menu.experiment.decisions
    base = values.get("metrics")
    if base is None:
        metric = parse(str(decisions.metrics[0]))
        base = str(
            replace(
                metric,
                parameters=tuple(pair for pair in metric.parameters if pair[0] != "gain" or "gain" not in values),
            )
        )
    return Measurement(
        metric_at(base, values.get("cutoff"), values.get("gain")),
        values.get("threshold", None if decisions.threshold == AUTO else decisions.threshold),
        values.get("unjudged", "not relevant"),
    )


def averaging_of(menu: Menu, values: Mapping[str, Any]) -> Averaging:
    """Return how the values of a universe are averaged, given its options by decision."""
    # The group as stated: whether windows count equally depends on the split of the universe.
    start = menu.experiment.decisions.group(Averaging)
    return start.with_(**{name: value for name, value in values.items() if name in AVERAGED})
