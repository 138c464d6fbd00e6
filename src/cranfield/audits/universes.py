"""Universes: the set-up, the measurement and the average that each consists of, and computing all of them.

Universes that are measured on the same lists share a set-up. The lists of only one set-up are in memory at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import CranfieldError, SettingError
from cranfield._registry import parse
from cranfield._terminal import progress
from cranfield.audits.contributions import UserContributions
from cranfield.audits.grid import Floats, Grid
from cranfield.audits.measured_lists import Averaged, Measurement, SetupLists
from cranfield.audits.options import SYSTEMS, metric_at, split_parameter, with_parameter
from cranfield.audits.parsing import AuditSettings, without_varied
from cranfield.audits.result import Audit
from cranfield.audits.truth import KnownValues
from cranfield.audits.verdict import facts_of_enumeration
from cranfield.data import AUTO
from cranfield.experiments import DECISIONS, Experiment, System, stages
from cranfield.facts import Fact
from cranfield.measures import Averaging
from cranfield.recommenders import one_ahead, recommender
from cranfield.splits import registry as split_registry

if TYPE_CHECKING:
    from cranfield.audits.enumeration import Enumeration

# Decisions about what is measured on given lists.
MEASURED = ("metrics", "cutoff", "gain", "threshold", "missing_judgments")
AVERAGED = tuple(Averaging.decisions())  # decisions about how the values of many users are combined into one number
_OWN = float("-inf")  # marks the lists' own threshold


@dataclass(frozen=True, eq=False)
class Setup:
    """What is trained and ranked for a universe: an experiment on one set of ratings with sufficiently long lists."""

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


class Universe(NamedTuple):
    """One way to evaluate: the index of its set-up, what is measured, and how values are averaged."""

    setup: int
    measurement: Measurement
    averaging: Averaging


def of_setup(settings: AuditSettings) -> tuple[str, ...]:
    """Return the opened decisions that change what is trained or ranked, the threshold if lists depend on relevance."""
    start = settings.experiment.decisions.ranking
    draws_targets = start.needs_relevance or any(name in ("relevant", "nonrelevant") for name in settings.names)
    later = {*MEASURED, *AVERAGED} - ({"threshold"} if draws_targets else set())
    return tuple(name for name in settings.names if name not in later)


_VALIDATED = ("validation", "validation_windows", "refit")


def setup_of(settings: AuditSettings, values: Mapping[str, Any]) -> Setup:
    """Return the set-up of some options by decision; raise an error if they contradict each other."""
    start = settings.experiment
    changes = {name: value for name, value in values.items() if name in DECISIONS}
    if isinstance(start.decisions.length, int):
        changes["length"] = max(start.decisions.length, *deepest(settings), 1)
    split = str(changes.get("split", start.decisions.split))
    if values.get("split_seed", start.seed) != start.seed and _draws(split):
        changes["split"] = with_parameter(split, "seed", values["split_seed"])
    if not any(system.tuning for system in start.systems) and "validation" not in dict(parse(split).parameters):
        # Nothing is chosen on a validation part.
        changes = {name: value for name, value in changes.items() if name not in _VALIDATED}
    sources = {source.name: source for source in start.data}
    data = sources[values["data"]] if "data" in values else start.data[0]
    systems = tuple(_system(system, start, values) for system in start.systems)
    decisions = start.decisions.with_(**changes)
    return Setup(replace(start, data=(data,), systems=systems, decisions=decisions, assess=None, audit=None))


def deepest(settings: AuditSettings) -> Iterable[int]:
    """Return the opened cut-offs, and those that metrics state."""
    varied = {decision.name: decision.values for decision in settings.varied}
    metrics = varied.get("metrics", ()) or (str(settings.experiment.decisions.metrics[0]),)
    stated = (parse(metric).cutoff for metric in metrics)
    return [*varied.get("cutoff", ()), *(cutoff for cutoff in stated if cutoff is not None)]


def _draws(split: str) -> bool:
    return parse(split).name in split_registry and stages.draws(split_registry, split)


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


def measurement_of(settings: AuditSettings, values: Mapping[str, Any]) -> Measurement:
    """Return the measurement of some options by decision."""
    decisions = settings.experiment.decisions
    base = values.get("metrics") or str(without_varied(parse(str(decisions.metrics[0])), values))
    return Measurement(
        metric_at(base, values.get("cutoff"), values.get("gain")),
        values.get("threshold", None if decisions.threshold == AUTO else decisions.threshold),
        values.get("missing_judgments", "not relevant"),
    )


def averaging_of(settings: AuditSettings, values: Mapping[str, Any]) -> Averaging:
    """Return how the values of a universe are averaged, given its options by decision."""
    # The group as stated: whether windows count equally depends on the split of the universe.
    start = settings.experiment.decisions.group(Averaging)
    return start.with_(**{name: value for name, value in values.items() if name in AVERAGED})


class UserPlaces(dict[tuple[str, Hashable], int]):
    """The number of each user of all set-ups; a user is identified by the set of ratings and the id."""

    def of(self, data: str, ids: Iterable[Hashable]) -> NDArray[np.int64]:
        """Return the numbers of users; new ones come last."""
        return np.array([self.setdefault((data, user), len(self)) for user in ids], dtype=np.int64)


ListsOf = Callable[[int, UserPlaces], SetupLists]
"""Returns the judged lists of a set-up by its number, or raises an error with the reason why there are none."""


@dataclass(frozen=True, eq=False)
class Computed:
    """The computed universes of an audit, and the contributions of users."""

    grid: Grid  # whose failed cells are invalid
    averages: Floats  # systems × universes, as reported
    lower_is_better: NDArray[np.bool_]  # for each universe
    terms: UserContributions


def compute(enumeration: Enumeration, lists_of: ListsOf, advance: Callable[[], None] = lambda: None) -> Computed:
    """Compute every universe; one that fails is invalid, with the reason. ``advance`` is called after each set-up."""
    places, reasons = UserPlaces(), dict[int, str]()
    digests: list[str | None] = [None] * len(enumeration.universes)
    distinct: dict[str | None, Averaged] = {}
    by_setup = _by_setup(enumeration)

    def lists_or_reason(setup: int) -> SetupLists | str:
        try:
            return lists_of(setup, places)
        except CranfieldError as error:
            return str(error)

    # The lists of the next set-up are read while these are measured.
    for numbers, lists in zip(by_setup.values(), one_ahead(lists_or_reason, list(by_setup))):
        universes = [(number, enumeration.universes[number]) for number in numbers]
        for number, result in _averaged(lists, universes):
            if isinstance(result, str):
                reasons[number] = result
            else:
                digests[number] = result.digest
                distinct.setdefault(result.digest, result)
        advance()
    _leave_out_small(enumeration.settings.fewest, digests, reasons, distinct)
    grid, kept_digests = enumeration.grid(digests, reasons)
    kept = [distinct[digest] for digest in kept_digests]
    averages = np.stack([universe.averages for universe in kept], axis=1)
    lower = np.array([universe.lower_is_better for universe in kept])
    return Computed(grid, averages, lower, _contributions(kept, len(places)))


def _leave_out_small(
    fewest: float, digests: list[str | None], reasons: dict[int, str], distinct: Mapping[str | None, Averaged]
) -> None:
    """Mark universes with fewer users than a number, or than a share of the most, as invalid, with the reason."""
    most = max((universe.users for universe in distinct.values()), default=0)
    needed = fewest * most if fewest < 1 else fewest
    for number, digest in enumerate(digests):
        users = most if digest is None else distinct[digest].fewest or distinct[digest].users
        if users < needed:
            digests[number] = None
            reasons[number] = f"{users:,} of {most:,} users count, fewer than {needed:,.0f} (fewest={fewest:g})"


def audit_universes(
    enumeration: Enumeration,
    systems: tuple[str, ...],
    lists_of: ListsOf,
    truth: KnownValues | Mapping[str, float] | None = None,
    warnings: Sequence[Fact] = (),
) -> Audit:
    """Compute every universe and return the audit; warnings come before its notes."""
    # Steps of a set-up: one per measured system, two per pair, two per further test of it, which take twice as long.
    settings, setups, n = enumeration.settings, len(_by_setup(enumeration)), len(systems)
    of_pair = 2 + 2 * len({testing.significance for testing in settings.testings})
    steps = setups * (n + of_pair * n * (n - 1) // 2)
    with progress("Measuring and comparing", total=steps, unit="steps") as bar:
        done = compute(enumeration, lists_of, lambda: bar.advance(n))
        return Audit.of(
            done.grid,
            systems,
            done.averages,
            done.terms,
            lower_is_better=done.lower_is_better,
            alpha=settings.experiment.decisions.alpha,
            seed=settings.experiment.seed,
            notes=(*warnings, *facts_of_enumeration(enumeration)),
            testings=settings.testings,
            truth=truth,
            advance=lambda: bar.advance(2 * setups),
        )


def _by_setup(enumeration: Enumeration) -> dict[int, list[int]]:
    """Return the numbers of the universes of each set-up, in order."""
    numbers: dict[int, list[int]] = {}
    for number, universe in enumerate(enumeration.universes):
        numbers.setdefault(universe.setup, []).append(number)
    return dict(sorted(numbers.items()))


def _averaged(lists: SetupLists | str, universes: list[tuple[int, Universe]]) -> Iterator[tuple[int, Averaged | str]]:
    """Yield the universes of a set-up by number, or why each fails; one threshold at a time, which saves memory."""

    def threshold_of(entry: tuple[int, Universe]) -> float:
        threshold = entry[1].measurement.threshold
        return _OWN if threshold is None else float(threshold)

    def order(entry: tuple[int, Universe]) -> tuple[float, int, str, str]:
        measurement = entry[1].measurement
        cutoff = parse(measurement.metric).cutoff or 0
        return (threshold_of(entry), cutoff, measurement.metric, measurement.missing_judgments)

    if isinstance(lists, str):
        yield from ((number, lists) for number, _ in universes)
        return
    for threshold, at_threshold in groupby(sorted(universes, key=order), key=threshold_of):
        view = lists if threshold == _OWN else lists.at(threshold)
        for measurement, members in groupby(at_threshold, key=lambda entry: entry[1].measurement):
            try:
                measured = view.measured(measurement)
            except SettingError as error:
                yield from [(number, str(error)) for number, _ in members]
                continue
            for number, universe in members:
                try:
                    result: Averaged | str = measured.averaged(universe.averaging)
                except SettingError as error:
                    result = str(error)
                yield number, result


def _contributions(universes: list[Averaged], users: int) -> UserContributions:
    values = np.zeros((len(universes[0].terms), len(universes), users), dtype=np.float32)
    for number, universe in enumerate(universes):
        values[:, number, universe.places] = universe.terms
    facts = np.array([(universe.users, universe.linear, universe.even) for universe in universes])
    return UserContributions(values, *facts.T)
