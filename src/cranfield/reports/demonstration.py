"""The demo: the whole pipeline on a simulated world where the truth is known, and what it shows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks, simulate
from cranfield._figures import Style
from cranfield._table import answer_and_table
from cranfield._terminal import Stages, silent
from cranfield.assessments import Assessment, assess
from cranfield.audits import Audit, audit
from cranfield.biases import Bias, bias
from cranfield.comparisons import Comparison, compare
from cranfield.data import Ratings
from cranfield.facts import Fact, sentences
from cranfield.facts import demo as demo_facts
from cranfield.measures import Kind, Scores, measure
from cranfield.metrics import kendall_tau_b
from cranfield.rankings import Ranking, Run, timed_each
from cranfield.recommenders import displayed_name
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

METRIC = "P@10"  # the metric of the demo: the share of ten recommended items that the user likes

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
_RANDOM_SHARE = 0.05  # Coat asks each user about 16 of 300 items

HELD_OUT, RANDOM_ITEMS, TRUTH = "held-out ratings", "ratings of random items", "the truth"
"""The names of the test sets: the usual one, the unbiased one, and the true grades of all pairs."""


@dataclass(frozen=True, eq=False)
class Demo:
    """One set of ranked lists under two protocols, compared with the truth."""

    world: World  # the simulated world, in which every preference is known
    split: Split  # the standard protocol: 80 % of the observed ratings for training, the rest for testing
    runs: tuple[Run, ...]  # the recommendations of systems trained on the training ratings
    # By the name of the test set: `HELD_OUT` (decision C: what users chose to rate), `RANDOM_ITEMS` (ratings of items
    # drawn at random for each user) and, for the scores, `TRUTH` (every pair that was not used for training).
    scores: Mapping[str, Scores]
    comparisons: Mapping[str, Comparison]
    assessment: Assessment  # which metric can be trusted, as far as held-out ratings show
    # The scores under other decisions (test set, threshold, condensed lists), for the explorer of the page.
    variants: tuple[tuple[str, Scores], ...]
    # Whether the winner on held-out ratings survives other metrics, cut-offs, thresholds and averages, for the top
    # systems there and the truly best one.
    audit: Audit
    bias: Bias  # how much of the order on held-out ratings is due to popularity

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

    def claims(self, test: str) -> demo_facts.SignificantPairs:
        """Return how many pairs there are, how many differ significantly, and how many of these are wrong."""
        true = dict(zip(self.systems, self.averages(TRUTH)))
        rows = self.comparisons[test].of_metric(METRIC)
        significant = rows.filter("significant")
        gains = [true[a] - true[b] for a, b in significant.select("system_a", "system_b").iter_rows()]
        wrong = significant["difference"].sign() * pl.Series(gains, dtype=pl.Float64) < 0
        untold = significant["better"].is_null()
        counts = (len(significant), wrong.sum(), untold.sum(), (wrong & untold).sum())
        return demo_facts.SignificantPairs(test, len(rows), *map(int, counts))

    def leaders(self, test: str) -> list[str]:
        """Return the best system on a test set, and those that are not significantly worse."""
        first = self.order(test)[0]
        rows = self.comparisons[test].of_metric(METRIC).select("system_a", "system_b", "better")
        worse = {b if better == a else a for a, b, better in rows.iter_rows() if better == first}
        return [system for system in self.order(test) if system not in worse]

    @property
    def published_winner(self) -> demo_facts.PublishedWinner:
        """The first system of the published table."""
        first = self.order(HELD_OUT)[0]
        return demo_facts.PublishedWinner(METRIC, HELD_OUT, first, self._liked(first))

    @property
    def truly_best(self) -> demo_facts.TrulyBest:
        """The truly best system."""
        best, second = self.order(TRUTH)[:2]
        place = self.order(HELD_OUT).index(best) + 1
        return demo_facts.TrulyBest(best, self._liked(best), place, len(self.systems), second, self._liked(second))

    def _liked(self, system: str) -> float:
        return float(self.averages(TRUTH)[self.systems.index(system)])

    def facts(self) -> list[Fact]:
        """Return the findings."""
        measured, true_place = (self.order(test).index("popularity") + 1 for test in (HELD_OUT, TRUTH))
        overrated = demo_facts.Overrated("popularity", measured, true_place, len(self.systems))
        both = (HELD_OUT, RANDOM_ITEMS)
        first, *level = self.leaders(RANDOM_ITEMS)
        return [
            demo_facts.DemoAnswer(self.published_winner, self.truly_best),
            self.published_winner,
            self.truly_best,
            *([overrated] if measured < true_place else []),
            demo_facts.TrueOrder({test: self.tau(test) for test in both}),
            *map(self.claims, both),
            demo_facts.ReliedOn(RANDOM_ITEMS, first, tuple(level), self.truly_best.system),
            self.advice_check(),
        ]

    def sentences(self) -> list[str]:
        """Return the findings, one per sentence."""
        return sentences(self.facts())

    def advice_check(self) -> demo_facts.AdviceChecked:
        """Return how well the metric that the assessment ranks first agrees with the truth, next to the best one."""
        advised = self.assessment.advice().frame()["metric"][0]
        return demo_facts.AdviceChecked(HELD_OUT, advised, self.metric_taus(HELD_OUT))

    def write(self, folder: str | Path, *, style: Style = "paper") -> Path:
        """Write the report, its tables and its figures (in a style) into a folder; return the path of the page."""
        from cranfield.reports.demo_page import write_demo

        return write_demo(self, Path(folder), style=style)

    def __str__(self) -> str:
        answer, *others = self.facts()
        table = leaderboard_table(self.scores[HELD_OUT], self.comparisons[HELD_OUT])
        return answer_and_table(answer, replace(table, caption=f"Published: {HELD_OUT}"), others[2:])

    def __repr__(self) -> str:
        return f"Demo({len(self.systems)} systems, {self.world!r})"

    def _repr_html_(self) -> str:
        """Show the findings, the table that everyone publishes, and the one that holds."""
        tables = (leaderboard_table(self.scores[test], comparison) for test, comparison in self.comparisons.items())
        return paragraphs(self.facts()[:1]) + "".join(table.html() for table in tables)


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
        for done in timed_each(split, SYSTEMS, ranking=Ranking(length=_LENGTH), seed=seed):
            by_name[done.result.name] = done.result
            advance()
    # Systems trained in parallel may finish in any order.
    runs = [by_name[displayed_name(system)] for system in SYSTEMS]
    with stages("Measuring", len(tests)) as advance:
        scores = {}
        for name, test in tests.items():
            scores[name] = measure(runs, test, METRICS, threshold=_THRESHOLD)
            advance()
    with stages("Comparing"):
        # Which of the random items are judged is chance, so the judged ones tell of all.
        by_judgments = {HELD_OUT: "check", RANDOM_ITEMS: "ignore"}
        comparisons = {name: compare(scores[name], unjudged=rule, seed=seed) for name, rule in by_judgments.items()}
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
    learnt[train.pairs] = True
    return {HELD_OUT: split.test, RANDOM_ITEMS: fair, TRUTH: truth.keep(~learnt[truth.pairs])}
