"""The same systems under designs in which popular items have an advantage, and under neutral ones.

* AR: all relevant items of a user in one list, among all items that the user has not rated in training.
* 1R: each relevant item separately, among N_u items with a test rating (TI-NN).
* P1R: as 1R, among items of its popularity percentile; the percentiles are averaged.
* U1R: as 1R, with the same number of test ratings for every item.
* AR-NN: all relevant items of a user in one list, among N_u items with a test rating (TI-NN), with as many as give a
  random ranking the precision that it has in UAR.
* UAR: as AR among the items with a test rating, with the same test ratings as U1R.

Bellogín, Castells and Cantador (2017), sections 3 and 6. 1R and AR-NN are controls: they change the design of AR, but
keep the advantage of popularity, which P1R, U1R and UAR then take away.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import CranfieldError, ImpossibleSplitError, SettingError
from cranfield._streams import stream
from cranfield.biases.densities import density
from cranfield.biases.given_lists import (
    CodedLists,
    UniformTest,
    among_targets,
    each_relevant_alone,
    over_draws,
    uniform_thinning,
)
from cranfield.data import Ratings
from cranfield.facts import Fact
from cranfield.facts import bias as bias_facts
from cranfield.facts import comparison as comparison_facts
from cranfield.judgments import Context, Draw, Judged, as_judged, as_runs
from cranfield.measures import Averaging, Measuring, Scores, join_folds, measure, measure_judged
from cranfield.metrics import Metric, check_expected
from cranfield.rankings import Ranker, Ranking, RatedRanker, Run, Serving, fit_each, rank_with
from cranfield.recommenders import named_systems
from cranfield.splits import Split, popularity_groups, random, uniform_test

_PLAIN = Averaging()
_UNIFORM = ("U1R", "AR-NN", "UAR")
_USUAL, _LENGTH, _TRAIN = 99, 100, 0.8


class Protocol(NamedTuple):
    """Systems measured under one protocol, and how the lists are averaged."""

    name: str
    scores: Scores
    averaging: Averaging


@dataclass(frozen=True, eq=False)
class Protocols:
    """Systems under all protocols that the ratings allow, and notes on those they do not allow."""

    every: tuple[Protocol, ...]  # the chosen one first
    split: Split  # of the chosen one; the first, if there are several
    judged: tuple[Judged, ...]  # its lists
    notes: tuple[Fact, ...]

    @classmethod
    def of(cls, scores: dict[str, Scores], by: str, split: Split, judged: Sequence[Judged], notes: Any) -> Protocols:
        """Return the protocols with scores in the order in which they are shown; neutral ones need their control."""
        notes = list(notes)
        if by == "user" and scores.pop("P1R", None) is not None:
            notes.append(bias_facts.NoteOn(("P1R",), "averages of percentiles are over lists, as with by='list'"))
        kept = [name for name in bias_facts.SAYS if name in scores and bias_facts.CONTROLS.get(name, name) in scores]
        every = tuple(Protocol(name, scores[name], _averaging(name, by)) for name in kept)
        return cls(every, split, tuple(judged), tuple(dict.fromkeys(notes)))

    @property
    def runs(self) -> list[Run]:
        """The lists of the chosen protocol."""
        return as_runs(self.judged)


def _averaging(name: str, by: str) -> Averaging:
    """Return how the lists of a protocol are averaged: those of P1R within each percentile first."""
    if name not in bias_facts.ONE_RELEVANT or by == "user":
        return _PLAIN
    # Weighted by the number of their lists, the mean over users is the mean over lists; users stay the units.
    return Averaging(average="weighted(by=relevant)", groups="equal" if name == "P1R" else "pooled")


def levelled(relevant: NDArray[np.int64], rho: float, most: int) -> int:
    """Return how many non-relevant items, at most ``most``, give a random ranking of each list the mean precision ρ.

    ``relevant`` are the relevant items of each list: mean of r_u / (N + r_u) = ρ, with the nearest whole N.
    """

    def above(number: int) -> float:
        return float((relevant / np.maximum(relevant + number, 1)).mean()) - rho

    first = bisect_left(range(1, most), 0.0, key=lambda number: -above(number)) + 1
    return first if first == 1 or abs(above(first)) <= abs(above(first - 1)) else first - 1


def _number_drawn(nonrelevant: int | None, smallest: int, cutoff: int) -> int:
    """Return the number of non-relevant items of a list: as wanted, or 99, or as many as a percentile has."""
    if nonrelevant is not None:
        return nonrelevant
    return min(_USUAL, smallest - 1) if smallest > cutoff else max(_USUAL, cutoff)


def _refused(metric: Metric) -> Fact | None:
    """Return why only the chosen protocol is possible: a metric without an exact expectation; None if all are."""
    try:
        check_expected([metric])
    except SettingError as error:
        return bias_facts.NoteOn((), str(error))
    return None


def _group_note(groups: int, smallest: int, number: int, cutoff: int) -> Fact | None:
    """Return why P1R is not possible; None if it is."""
    if smallest > max(number, cutoff):
        return None
    drawn = smallest > cutoff
    return bias_facts.GroupsTooSmall(groups, smallest, number + 1 if drawn else cutoff, drawn=drawn)


def protocols_of_lists(
    judged: Sequence[Judged],
    split: Split,
    metric: Metric,
    groups: int,
    nonrelevant: int | None,
    by: str,
    seed: int,
    strict: bool,
) -> Protocols:
    """Measure judged lists under each protocol, without training; unlisted candidates follow in random order."""
    test, threshold = split.test, judged[0].judgments.threshold
    measured = measure(list(judged), test, str(metric), strict=strict)
    scores = {bias_facts.CHOSEN: measured}
    notes: list[Fact] = [comparison_facts.Warned(warning) for warning in measured.warnings]
    if (refused := _refused(metric)) is not None:
        return Protocols.of(scores, by, split, judged, [*notes, refused])
    cutoff, smallest = metric.cutoff or 1, int(np.count_nonzero(split.train.item_counts)) // groups
    number, measuring = _number_drawn(nonrelevant, smallest, cutoff), Measuring(metrics=[metric], threshold=threshold)
    lists = [CodedLists.of(given, split) for given in judged]

    def alone(group: NDArray[Any], kept: NDArray[np.bool_], names: Sequence[str] = ()) -> Scores:
        every = [each_relevant_alone(own, group.astype(np.int64), kept, names) for own in lists]
        return measure_judged([over_draws(own, number, seed) for own in every], measuring)

    every, tested = np.ones(len(test), dtype=np.bool_), test.item_counts > 0
    scores["1R"] = alone(np.where(tested, 0, -1), every)
    left_out = _group_note(groups, smallest, number, cutoff)
    if left_out is None:
        scores["P1R"] = alone(popularity_groups(split.train, groups), every, [str(group) for group in range(groups)])
    else:
        notes.append(left_out)
    thin = uniform_thinning(test, seed)
    kept = int(thin.kept.sum())
    if not (thin.kept & (test.values >= threshold)).any():
        reason = "no relevant test rating is left when every item has the same number"
        return Protocols.of(scores, by, split, judged, [*notes, bias_facts.NoteOn(_UNIFORM, reason)])
    scores["U1R"] = alone(np.where(thin.is_target, 0, -1), thin.kept)
    uniform = [among_targets(own, thin) for own in lists]
    scores["UAR"] = measure_judged(uniform, measuring)
    # The control has as many test ratings, drawn at random: popular items keep their advantage.
    chosen = np.argsort(stream(seed, "bias", "thinning").random(len(test)), kind="stable")[:kept]
    at_random = UniformTest(np.isin(np.arange(len(test)), chosen), tested, 0)
    plain = [among_targets(own, at_random) for own in lists]
    rho = float((uniform[0].n_relevant / np.maximum(_sizes(uniform), 1)).mean())
    n_relevant = plain[0].n_relevant.astype(np.int64)
    drawn = levelled(n_relevant, rho, int((_sizes(plain) - n_relevant).max(initial=1)))
    scores["AR-NN"] = measure_judged([over_draws(own, drawn, seed) for own in plain], measuring)
    notes.append(bias_facts.UniformRatings(thin.each, int(thin.is_target.sum()), kept, len(test)))
    notes.append(bias_facts.Levelled(drawn, rho))
    return Protocols.of(scores, by, split, judged, [*notes, bias_facts.HowMeasured(number, by, 1)])


def _sizes(judged: Sequence[Judged]) -> NDArray[np.int64]:
    """Return the number of candidates of each list; a system without a list has none."""
    return np.maximum.reduce([lists.lengths for lists in judged]).astype(np.int64)


def protocols_of_data(
    data: Ratings,
    systems: Any,
    metric: Metric,
    level: float,
    groups: int,
    nonrelevant: int | None,
    by: str,
    splits: int,
    seed: int,
    jobs: int | None,
) -> Protocols:
    """Train systems on 80 % of the ratings of each random split, and measure them under each protocol."""
    cutoff, smallest = metric.cutoff or 1, data.n_items // groups
    number = _number_drawn(nonrelevant, smallest, cutoff)
    left_out, notes = _group_note(groups, smallest, number, cutoff), list[Fact]()
    refused = _refused(metric)
    if refused is None and left_out is not None:
        notes.append(left_out)
    group = popularity_groups(data, groups) if left_out is None else None
    parts, first = [], None
    for own_seed in range(seed, seed + splits):
        designs, of_split = _designs(data, group, level, number, own_seed)
        if refused is not None:
            designs, of_split = {bias_facts.CHOSEN: designs[bias_facts.CHOSEN]}, [refused]
        notes += of_split if own_seed == seed else []
        runs = _ranked(designs, systems, own_seed, jobs)
        parts.append(dict(_measured(designs, runs, metric, level, notes)))
        first = first or (designs[bias_facts.CHOSEN].split, runs[bias_facts.CHOSEN])
    assert first is not None
    split, of_first = first
    names = [name for name in parts[0] if all(name in part for part in parts)]
    scores = {name: join_folds([part[name] for part in parts], range(splits)) for name in names}
    judged = as_judged(of_first, split.test, level, Context(split.train))
    notes.append(bias_facts.HowMeasured(number, by, splits))
    return Protocols.of(scores, by, split, judged, notes)


class _Design(NamedTuple):
    """How a protocol ranks on a split, and how many items are drawn in expectation (None: nothing is)."""

    split: Split
    ranker: Ranker
    drawn: int | None = None


def _designs(
    data: Ratings, group: NDArray[np.int16] | None, level: float, number: int, seed: int
) -> tuple[dict[str, _Design], list[Fact]]:
    """Return the designs on a random and on a uniform-test split of the same seed, and notes on those."""
    split, whole = random(data, train=_TRAIN, seed=seed), Ranking(length="all", candidates="test", threshold=level)
    single = whole.with_(relevant="one")

    def design(split: Split, ranking: Ranking, drawn: int | None = None, of: type[Ranker] = Ranker) -> _Design:
        return _Design(split, of.of(split, Serving(), ranking, seed), drawn)

    designs = {bias_facts.CHOSEN: design(split, Ranking(length=_LENGTH, threshold=level))}
    designs["1R"] = design(split, single, number)
    if group is not None:
        designs["P1R"] = design(replace(split, item_groups=group), single.with_(candidates="group"), number)
    try:
        uniform = uniform_test(data, sigma=1.0 - _TRAIN, epsilon=0.2, seed=seed)
    except ImpossibleSplitError as error:
        return designs, [bias_facts.NoteOn(_UNIFORM, str(error))]
    rho, test = density(uniform, threshold=level, candidates="test").rho, split.test
    relevant = np.bincount(test.users[test.values >= level], minlength=test.n_users)[test.user_counts > 0]
    among = levelled(relevant, rho, int(np.count_nonzero(test.item_counts)))
    designs["U1R"] = design(uniform, single, number)
    designs["AR-NN"] = design(split, whole, among, RatedRanker)
    designs["UAR"] = design(uniform, whole.with_(length=_LENGTH))
    notes = [bias_facts.NoteOn(("U1R", "UAR"), note, left_out=False) for note in uniform.notes]
    return designs, [*notes, bias_facts.Levelled(among, rho)]


def _ranked(designs: Mapping[str, _Design], systems: Any, seed: int, jobs: int | None) -> dict[str, list[Run]]:
    """Train each system once on each split, and rank under each of its designs."""
    names, runs = list(named_systems(systems, seed)), dict[str, list[Run]]()
    if not names:
        raise SettingError("no system is given; name at least one, such as popularity")
    by_train: dict[int, list[str]] = {}
    for name, design in designs.items():
        by_train.setdefault(id(design.split.train), []).append(name)
    for alike in by_train.values():
        rankers, by_place = [designs[name].ranker for name in alike], dict[int, list[Run]]()
        for done in fit_each(designs[alike[0]].split.train, systems, seed=seed, jobs=jobs):
            by_place[done.place] = rank_with(done.result, rankers, name=names[done.place])
        runs |= {name: [by_place[place][k] for place in sorted(by_place)] for k, name in enumerate(alike)}
    return runs


def _measured(
    designs: Mapping[str, _Design], runs: Mapping[str, list[Run]], metric: Metric, level: float, notes: list[Fact]
) -> Iterator[tuple[str, Scores]]:
    """Yield the scores under each design; why one cannot be measured is added to the notes."""
    for name, (split, ranker, drawn) in designs.items():
        train = split.train if name == bias_facts.CHOSEN else None
        try:
            if drawn is None:
                yield name, measure(runs[name], split.test, str(metric), threshold=level, train=train)
                continue
            judged = as_judged(runs[name], split.test, level, Context(None))
            judgments = judged[0].judgments
            sizes = ranker.targets.sizes(judgments.users, judgments.items if ranker.ranking.one_relevant else None)
            over_all = [lists.fresh(draw=Draw(drawn, sizes)) for lists in judged]
            yield name, measure_judged(over_all, Measuring(metrics=[metric], threshold=level))
        except CranfieldError as error:
            if name == bias_facts.CHOSEN:
                raise
            notes.append(bias_facts.NoteOn((name,), str(error)))
