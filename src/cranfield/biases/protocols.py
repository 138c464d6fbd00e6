"""The same systems under a protocol in which popular items have an advantage, and under neutral ones.

* AR: all relevant items of a user in one list, among all items that the user has not rated in training.
* P1R: each relevant item among the items of its popularity percentile; the percentiles are averaged.
* U1R: each relevant item separately, with the same number of test ratings for every item.
* UAR: all relevant items in one list, with the same test ratings as U1R, among the items that have them.

Bellogín, Castells and Cantador (2017), sections 3 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cranfield._errors import CranfieldError, ImpossibleSplitError, SettingError
from cranfield.biases.neutral_lists import CodedLists, among_targets, each_relevant_alone, thinned_uniformly
from cranfield.data import Ratings, Relevance
from cranfield.judgments import Context, Judged, as_runs
from cranfield.measures import Averaging, Measuring, Scores, as_judged, measure, measure_judged
from cranfield.rankings import Ranking, Run, fit_each, rank_under
from cranfield.recommenders import named_systems
from cranfield.splits import Split, popularity_groups, random, uniform_test

CHOSEN = "AR"

SAYS = {
    "AR": "all test ratings, all items",
    "P1R": "each relevant item among items of its popularity percentile",
    "U1R": "each relevant item alone, the same number of test ratings per item",
    "UAR": "the same number of test ratings per item, items with test ratings only",
}


@dataclass(frozen=True, eq=False)
class Protocol:
    """Systems measured under one protocol, and how the lists are averaged."""

    name: str
    scores: Scores
    averaging: Averaging


@dataclass(frozen=True, eq=False)
class Protocols:
    """Systems under all protocols that the ratings allow.

    Parameters
    ----------
    every
        The protocols, the chosen one first.
    split, judged
        The split and the judged lists of the chosen one.
    notes
        Which protocols are not possible, and why.
    """

    every: tuple[Protocol, ...]
    split: Split
    judged: tuple[Judged, ...]
    notes: tuple[str, ...]

    @property
    def runs(self) -> list[Run]:
        """The lists of the chosen protocol."""
        return as_runs(self.judged)


_PLAIN = Averaging(by="user")
_BY_GROUP = Averaging(by="user", groups="equal")


def protocols_of_lists(
    judged: Sequence[Judged],
    split: Split,
    metric: str,
    *,
    groups: int = 10,
    seed: int = 0,
    strict: bool = False,
) -> Protocols:
    """Measure lists judged by the test part of a split under each protocol; nothing is trained again.

    Candidates that are not in a list are assumed to follow it in random order.
    """
    test, threshold = split.test, judged[0].judgments.threshold
    scores = measure(list(judged), test, metric, strict=strict)
    chosen = Protocol(CHOSEN, scores, _PLAIN)
    warnings = [f"Warning: {warning}." for warning in scores.warnings]
    measuring = Measuring(metrics=[metric], threshold=threshold)
    if not measuring.wanted[0].definition.averages_ties:
        note = f"neutral protocols are left out: {metric} has no expectation over the unknown order below a list"
        return Protocols((chosen,), split, tuple(judged), (*warnings, note))
    protocols, notes = [chosen], warnings
    lists = [CodedLists.of(given, split) for given in judged]
    cutoff, smallest = measuring.wanted[0].cutoff or 1, int(np.count_nonzero(split.train.item_counts)) // groups
    if smallest > cutoff:
        percentile = popularity_groups(split.train, groups).astype(np.int64)
        names = [str(group) for group in range(groups)]
        every = np.ones(len(test), dtype=np.bool_)
        alone = [each_relevant_alone(given, percentile, every, names) for given in lists]
        protocols.append(Protocol("P1R", measure_judged(alone, measuring), _BY_GROUP))
    else:
        notes.append(
            f"P1R is left out: its {groups:,} popularity groups have {smallest:,} items, no more than the {cutoff:,} "
            "that the metric looks at; choose fewer groups"
        )
    thin = thinned_uniformly(test, seed)
    if not (thin.kept & (test.values >= threshold)).any():
        notes.append("U1R and UAR are left out: no relevant test rating is left when every item has the same number")
        return Protocols(tuple(protocols), split, tuple(judged), tuple(notes))
    target = np.where(thin.is_target, 0, -1).astype(np.int64)
    alone = [each_relevant_alone(given, target, thin.kept) for given in lists]
    protocols.append(Protocol("U1R", measure_judged(alone, measuring), _PLAIN))
    protocols.append(
        Protocol("UAR", measure_judged([among_targets(given, thin) for given in lists], measuring), _PLAIN)
    )
    notes.append(
        f"U1R and UAR: {thin.each:,} test ratings of each of {int(thin.is_target.sum()):,} items, "
        f"{int(thin.kept.sum()):,} of {len(test):,} in all"
    )
    return Protocols(tuple(protocols), split, tuple(judged), tuple(notes))


def protocols_of_data(
    ratings: Ratings,
    systems: Any,
    metric: str,
    threshold: float | str | None,
    *,
    train: float = 0.8,
    groups: int = 10,
    nonrelevant: int = 99,
    length: int = 100,
    seed: int = 0,
    jobs: int | None = None,
) -> Protocols:
    """Train systems on ratings and measure them under each protocol."""
    level = Relevance.of(ratings, threshold).threshold
    split = random(ratings, train=train, seed=seed)
    notes: list[str] = []
    rankings = {"AR": Ranking(length=length, threshold=level)}
    smallest = ratings.n_items // groups
    if smallest > nonrelevant:
        split = replace(split, item_groups=popularity_groups(ratings, groups))
        rankings["P1R"] = Ranking(
            relevant="one", candidates="group", nonrelevant=nonrelevant, length="all", threshold=level
        )
    else:
        notes.append(
            f"P1R is left out: its {groups} popularity groups have {smallest:,} items, fewer than the "
            f"{nonrelevant + 1:,} targets of a list; choose fewer groups or fewer targets"
        )
    runs = _ranked(split, systems, rankings, seed, jobs)
    lists = {name: runs[name] for name in rankings}
    tests = dict.fromkeys(rankings, split.test)
    try:
        uniform = uniform_test(ratings, sigma=1.0 - train, epsilon=0.2, seed=seed)
    except ImpossibleSplitError as error:
        notes.append(f"U1R and UAR are left out: {error}")
    else:
        wanted = {
            "U1R": Ranking(relevant="one", candidates="test", nonrelevant=nonrelevant, length="all", threshold=level),
            "UAR": Ranking(candidates="test", length=length, threshold=level),
        }
        lists |= _ranked(uniform, systems, wanted, seed, jobs)
        tests |= dict.fromkeys(wanted, uniform.test)
        notes += [f"U1R and UAR: {note}" for note in uniform.notes]
    protocols = []
    for name, runs_under in lists.items():
        averaging = _BY_GROUP if name == "P1R" else _PLAIN
        known = split.train if name == CHOSEN else None
        try:
            protocols.append(
                Protocol(name, measure(runs_under, tests[name], metric, threshold=level, train=known), averaging)
            )
        except CranfieldError as error:
            if name == CHOSEN:
                raise
            notes.append(f"{name} is left out: {error}")
    judged = as_judged(lists[CHOSEN], split.test, level, Context(split.train))
    return Protocols(tuple(protocols), split, tuple(judged), tuple(notes))


def _ranked(
    split: Split, systems: Any, rankings: dict[str, Ranking], seed: int, jobs: int | None
) -> dict[str, list[Run]]:
    """Train each system once, and rank under each ranking."""
    names = list(named_systems(systems, seed))
    by_place: dict[int, list[Run]] = {}
    for done in fit_each(split.train, systems, seed=seed, jobs=jobs):
        by_place[done.place] = rank_under(
            done.result, split, list(rankings.values()), seed=seed, name=names[done.place]
        )
    if not by_place:
        raise SettingError("no system is given; name at least one, such as popularity")
    return {name: [by_place[place][k] for place in sorted(by_place)] for k, name in enumerate(rankings)}
