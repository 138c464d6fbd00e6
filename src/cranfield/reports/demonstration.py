"""The demo: the whole pipeline on a simulated world where the truth is known, and what it shows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks, simulate
from cranfield._numbers import listed, percent_text
from cranfield._terminal import Stages, silent
from cranfield.assessments import Assessment, assess
from cranfield.audits import Audit, audit
from cranfield.biases import Bias, bias
from cranfield.comparisons import Comparison, compare
from cranfield.data import Ratings
from cranfield.measures import Kind, Scores, measure
from cranfield.metrics import kendall_tau_b
from cranfield.rankings import Run, recommend_each
from cranfield.recommenders import displayed_name
from cranfield.reports.figures import Style
from cranfield.reports.markup import paragraphs
from cranfield.reports.reporting import other_decisions
from cranfield.reports.tables import leaderboard_table
from cranfield.simulate import World
from cranfield.splits import Split
from cranfield.splits import random as random_split

SIZES: Mapping[str, dict[str, int]] = {
    "small": {"users": 400, "items": 250, "ratings": 14_000},
    "medium": {"users": 2_000, "items": 800, "ratings": 100_000},
    "large": {"users": 5_000, "items": 2_000, "ratings": 500_000},
}
"""The sizes of the worlds to choose from."""

WORLD: Mapping[str, Any] = {"taste": 0.98, "popularity_bias": 1.8, "relevance_bias": 0.5}
"""Settings that all worlds share: people differ in what they like, and mostly rate popular items."""

SYSTEMS = ("random", "popularity", "average", "knn", "itemknn", "puresvd", "ease", "kld")
"""Eight systems that need only the base install."""

METRIC = "P@10"
"""The metric of the demo: the share of ten recommended items that the user likes."""

METRICS = (METRIC, "Recall@10", "nDCG@10", "AP@50", "RR@50")
_LENGTH = 50
_SIZES, _SAMPLES = (1.0, 0.8, 0.6, 0.4, 0.2), 10
_THRESHOLD, _THRESHOLDS = 4.0, (3.0, 4.0, 5.0)
# Number of top systems of the published table to audit, and the decisions to vary; none of them needs training again.
_AUDITED = 3
_OPENED: Mapping[str, list[Any]] = {
    "metrics": ["P", "nDCG", "AP"],
    "cutoff": [5, 10, 20, 50],
    "threshold": [3, 4, 5],
    "average": ["mean", "weighted(by=judged)"],
}
# Coat asks each user about 16 of 300 items.
_RANDOM_SHARE = 0.05

HELD_OUT, RANDOM_ITEMS, TRUTH = "held-out ratings", "ratings of random items", "the truth"
"""The names of the test sets: the usual one, the unbiased one, and the true grades of all pairs."""


@dataclass(frozen=True, eq=False)
class Demo:
    """One set of ranked lists under two protocols, compared with the truth.

    Parameters
    ----------
    world
        The simulated world, in which every preference is known.
    split
        The standard protocol: 80 % of the observed ratings for training, the rest for testing.
    runs
        The recommendations of systems trained on the training ratings.
    scores, comparisons
        By the name of the test set: `HELD_OUT` (decision C: what users chose to rate), `RANDOM_ITEMS` (ratings of items
        drawn at random for each user) and, for the scores, `TRUTH` (every pair that was not used for training).
    assessment
        Which metric can be trusted, as far as held-out ratings show.
    variants
        The scores under other decisions (test set, threshold, condensed lists), for the explorer of the page.
    audit
        Whether the winner on held-out ratings survives other metrics, cut-offs, thresholds and averages, for the top
        systems there and the truly best one.
    bias
        How much of the order on held-out ratings is due to popularity.
    """

    world: World
    split: Split
    runs: tuple[Run, ...]
    scores: Mapping[str, Scores]
    comparisons: Mapping[str, Comparison]
    assessment: Assessment
    variants: tuple[tuple[str, Scores], ...]
    audit: Audit
    bias: Bias

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems."""
        return self.scores[TRUTH].systems

    def averages(self, test: str) -> NDArray[np.float64]:
        """Return the average of `METRIC` for every system on one of the test sets."""
        scores = self.scores[test]
        return scores.average()[:, scores.metric(METRIC)]

    def order(self, test: str) -> list[str]:
        """Return the systems from best to worst on one of the test sets."""
        return [self.systems[s] for s in np.argsort(-self.averages(test), kind="stable")]

    def tau(self, test: str) -> float:
        """Return Kendall's tau between the order on a test set and the true order."""
        return self.metric_taus(test)[METRIC]

    def metric_taus(self, test: str) -> dict[str, float]:
        """Return, for each metric, Kendall's tau between its order on a test set and the true order by `METRIC`."""
        means, true = self.scores[test].average(), self.averages(TRUTH)
        return {metric: kendall_tau_b(means[:, m], true) for m, metric in enumerate(self.scores[test].metrics)}

    def protocol_taus(self) -> dict[str, float]:
        """Return Kendall's tau between the order under each protocol on held-out ratings and the true order."""
        true = dict(zip(self.systems, self.averages(TRUTH)))
        return {
            name: kendall_tau_b(rows["mean"].to_numpy(), np.array([true[system] for system in rows["system"]]))
            for (name,), rows in self.bias.orders.group_by("protocol", maintain_order=True)
        }

    def claims(self, test: str) -> tuple[int, int, int]:
        """Return how many pairs there are, how many differ significantly, and how many of these are wrong."""
        true = dict(zip(self.systems, self.averages(TRUTH)))
        rows = self.comparisons[test].of_metric(METRIC)
        significant = list(rows.filter("significant").select("system_a", "system_b", "better").iter_rows())
        wrong = sum(true[better] < max(true[a], true[b]) for a, b, better in significant if better is not None)
        return len(rows), len(significant), wrong

    def leaders(self, test: str) -> list[str]:
        """Return the best system on a test set, and those that are not significantly worse."""
        first = self.order(test)[0]
        rows = self.comparisons[test].of_metric(METRIC).select("system_a", "system_b", "better")
        worse = {b if better == a else a for a, b, better in rows.iter_rows() if better == first}
        return [system for system in self.order(test) if system not in worse]

    def sentences(self) -> list[str]:
        """Return the findings, one per sentence."""
        true = dict(zip(self.systems, self.averages(TRUTH)))
        published, truly = self.order(HELD_OUT), self.order(TRUTH)
        first, best = published[0], truly[0]
        said = [
            f"The table everyone publishes ({METRIC} on {HELD_OUT}) puts {first} first. In truth, users like "
            f"{percent_text(true[first], ' %')} of what it recommends."
        ]
        if first == best:
            said.append(
                f"It is the best system in truth as well; {truly[1]} comes next, with "
                f"{percent_text(true[truly[1]], ' %')}."
            )
        else:
            said.append(
                f"The truly best system is {best}, with {percent_text(true[best], ' %')}; the published table has it "
                f"at rank {published.index(best) + 1} of {len(truly)}."
            )
        measured, true_place = (order.index("popularity") + 1 for order in (published, truly))
        if measured < true_place:
            said.append(
                f"The table overrates popularity: rank {measured} of {len(truly)}, but rank {true_place} in truth."
            )
        said.append(
            f"Kendall's tau with the true order: {self.tau(HELD_OUT):.2f} on {HELD_OUT}, "
            f"{self.tau(RANDOM_ITEMS):.2f} on {RANDOM_ITEMS} (1: the same order, 0: no relation)."
        )
        for test in (HELD_OUT, RANDOM_ITEMS):
            pairs, significant, wrong = self.claims(test)
            said.append(
                f"On {test} {significant} of {pairs} pairs differ significantly; "
                + (
                    f"in {wrong} of them the winner is truly the worse system."
                    if wrong
                    else "no winner is truly worse."
                )
            )
        first, *level = self.leaders(RANDOM_ITEMS)
        leads = f"{first}, truly the best, leads" if first == best else f"{first} leads"
        also = f", and {listed(level)} {'is' if len(level) == 1 else 'are'} not significantly worse" if level else ""
        missed = "" if best in (first, *level) else f"; {best} is missed"
        said.append(
            f"What can be relied on: on {RANDOM_ITEMS}, {leads}{also}{missed}. Significance says that a difference is "
            "not an accident of the sampled users. It does not say that the test set asks the right question."
        )
        return [*said, self.advice_check()]

    def advice_check(self) -> str:
        """Return how well the metric that the assessment ranks first agrees with the truth, next to the best one."""
        taus = self.metric_taus(HELD_OUT)
        advised, most = self.assessment.advice().frame()["metric"][0], max(taus.values())
        nearest = [metric for metric, tau in taus.items() if round(most - tau, 12) == 0]
        opening = f"Which metric to trust, checked: the assessment of the {HELD_OUT} puts {advised} first"
        if len(nearest) == len(taus):
            return f"{opening}, and all {len(taus)} metrics are equally far from the truth (tau {most:.2f})."
        if advised in nearest:
            return f"{opening}, and no metric comes closer to the true order there (tau {most:.2f})."
        return (
            f"{opening} (tau {taus[advised]:.2f} with the truth); {listed(nearest)} "
            f"{'comes' if len(nearest) == 1 else 'come'} closest to the true order (tau {most:.2f}). "
            "An assessment shows how well a metric copes with missing ratings, not what all metrics miss."
        )

    def write(self, folder: str | Path, *, style: Style = "paper") -> Path:
        """Write the report, its tables and its figures (in a style) into a folder; return the path of the page."""
        from cranfield.reports.demo_page import write_demo

        return write_demo(self, Path(folder), style=style)

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def __repr__(self) -> str:
        return f"Demo({len(self.systems)} systems, {self.world!r})"

    def _repr_html_(self) -> str:
        """Show the findings, the table that everyone publishes, and the one that holds."""
        tables = (leaderboard_table(self.scores[test], comparison) for test, comparison in self.comparisons.items())
        return paragraphs(self.sentences()) + "".join(table.html() for table in tables)


def demo(size: str = "medium", *, seed: int = 0, stages: Stages = silent) -> Demo:
    """Run the whole pipeline on a simulated world: the same recommendations under two protocols, and the truth.

    The standard protocol tests on a random part of the observed ratings. These are biased: users rate items that they
    come across and items that they like. The other protocol tests on ratings of items drawn at random for each user, as
    in the datasets Coat and Yahoo R3. Every item is then equally likely to be judged, so P@10 is the true P@10 times a
    constant, up to sampling error. This is why it recovers the true order.

    In this world taste matters (`WORLD`): personalised systems are truly best, and popular items are seen more often
    rather than liked more.

    Parameters
    ----------
    size
        ``small`` (seconds), ``medium`` or ``large`` (minutes); see `SIZES`.
    seed
        Fixes every random choice.
    stages
        Shows progress.

    References
    ----------
    R. Cañamares, P. Castells (2018). Should I follow the crowd? A probabilistic analysis of the effectiveness of
    popularity in recommender systems. SIGIR.

    Examples
    --------
    >>> found = demo("small")  # doctest: +SKIP
    >>> found.tau("held-out ratings") < found.tau("ratings of random items")  # doctest: +SKIP
    True
    """
    shape = SIZES[_checks.one_of("size", size, tuple(SIZES))]
    with stages("Simulating a world"):
        world = simulate.world(shape["users"], shape["items"], shape["ratings"], seed=seed, **WORLD)
        split = random_split(world.ratings, train=0.8, seed=seed)
        tests = _test_sets(world, split)
    by_name = {}
    with stages("Training and ranking", len(SYSTEMS)) as advance:
        for run in recommend_each(split, SYSTEMS, length=_LENGTH, seed=seed):
            by_name[run.name] = run
            advance()
    # Systems trained in parallel may finish in any order.
    runs = [by_name[displayed_name(system)] for system in SYSTEMS]
    with stages("Measuring", len(tests)) as advance:
        scores = {}
        for name, test in tests.items():
            scores[name] = measure(runs, test, METRICS, threshold=_THRESHOLD)
            advance()
    with stages("Comparing"):
        comparisons = {name: compare(scores[name], seed=seed) for name in (HELD_OUT, RANDOM_ITEMS)}
    with stages("Assessing"):
        assessment = assess(runs, split.test, METRICS, threshold=_THRESHOLD, sizes=_SIZES, samples=_SAMPLES, seed=seed)
    variants = []
    with stages("Trying other decisions", len(tests)) as advance:
        for name, test in tests.items():
            # Every item is judged in the truth, so condensed lists equal full lists.
            lists: tuple[Kind, ...] = ("full",) if name == TRUTH else ("full", "condensed")
            others = other_decisions(runs, test, METRICS, thresholds=_THRESHOLDS, lists=lists)
            variants += [(name, other) for other in others]
            advance()
    with stages("Auditing"):
        audit = _audit(runs, split.test, scores, seed)
    with stages("Removing popularity"):
        without = bias(runs=runs, test=split.test, train=split.train, metric=METRIC, threshold=_THRESHOLD, seed=seed)
    return Demo(world, split, tuple(runs), scores, comparisons, assessment, tuple(variants), audit, without)


def _audit(runs: list[Run], test: Ratings, scores: Mapping[str, Scores], seed: int) -> Audit:
    """Return the audit of the top systems on held-out ratings and the truly best one."""
    published, truly = (
        np.argsort(-scores[name].average()[:, scores[name].metric(METRIC)], kind="stable") for name in (HELD_OUT, TRUTH)
    )
    chosen = [runs[system] for system in dict.fromkeys([*published[:_AUDITED].tolist(), int(truly[0])])]
    true_values = dict(zip(scores[TRUTH].systems, scores[TRUTH].average()[:, scores[TRUTH].metric(METRIC)].tolist()))
    known = {run.name: true_values[run.name] for run in chosen}
    return audit(chosen, test=test, metric=METRIC, threshold=_THRESHOLD, vary=_OPENED, truth=known, seed=seed)


def _test_sets(world: World, split: Split) -> dict[str, Ratings]:
    """Return the three test sets; none holds a training pair."""
    train = split.train
    # A survey on random items only excludes the training ratings, because the others are not known yet.
    fair = replace(world, ratings=train).random_test(per_user=math.ceil(_RANDOM_SHARE * train.n_items))
    truth = world.truth()
    learnt = np.zeros(train.n_users * train.n_items, dtype=np.bool_)
    learnt[_pairs(train)] = True
    return {HELD_OUT: split.test, RANDOM_ITEMS: fair, TRUTH: truth.keep(~learnt[_pairs(truth)])}


def _pairs(ratings: Ratings) -> NDArray[np.int64]:
    return ratings.users.astype(np.int64) * ratings.n_items + ratings.items
