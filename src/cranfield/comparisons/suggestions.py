"""Labelling: which judgments would settle the comparison of two systems soonest, and whether any could."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import InputError, SettingError
from cranfield._figures import Style, intervals
from cranfield._result import Figures, Result
from cranfield._streams import stream
from cranfield._table import Table
from cranfield.comparisons.tipping import LINEAR, Pairs, TwoSystems, check_metric
from cranfield.data import AUTO, Ratings, Relevance
from cranfield.facts import Fact
from cranfield.facts import unjudged as unjudged_facts
from cranfield.judgments import as_runs, as_test
from cranfield.measures import measure
from cranfield.metrics import Metric, as_metrics

Floats = NDArray[np.float64]

_DAMPING = 5.0
"""Number of ratings by which an item's share of likes is shrunk towards the overall share."""
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Contest:
    r"""The difference of two systems, :math:`D = D_0 + \sum_i s_i x_i` over unjudged pairs, :math:`x_i` 1 if liked."""

    names: tuple[str, str]
    difference: float  # D_0: the first system's average minus the second's, with unjudged pairs counted as 0
    pairs: Pairs  # the unjudged pairs that matter: in only one of the two lists, or in both at different ranks
    effects: Floats  # s_i: how much the difference grows if the pair is liked
    likely: Floats  # the estimated probability that each pair is liked

    @staticmethod
    def of(systems: TwoSystems, metric: Metric) -> Contest:
        """Make the contest of two systems by a metric that is a sum over the items of a list."""
        check_linear(metric)
        worth = _worth(metric, systems) / np.count_nonzero(systems.test.user_counts)
        (first, ranks), (second, others) = (systems.unjudged_of(run, metric) for run in systems.runs)
        keys, place = np.unique(np.concatenate([first, second]), return_inverse=True)
        effects = np.bincount(place, np.concatenate([worth[ranks - 1], -worth[others - 1]])).astype(np.float64)
        matter = np.abs(effects) > _ROUNDING
        pairs, effects = systems.pairs(keys[matter]), effects[matter]
        names = (systems.runs[0].name, systems.runs[1].name)
        return Contest(names, systems.difference(metric), pairs, effects, _likely(systems)[pairs.items])

    @property
    def bounds(self) -> tuple[float, float]:
        """The difference if every answer is the worst, and the best, for the first system."""
        worst, best = np.minimum(self.effects, 0.0).sum(), np.maximum(self.effects, 0.0).sum()
        return self.difference + float(worst), self.difference + float(best)

    @property
    def settled(self) -> bool:
        """Whether no answer can change the sign of the difference."""
        low, high = self.bounds
        return low > _ROUNDING or high < -_ROUNDING or not len(self.pairs)

    @property
    def level(self) -> bool:
        """Whether the two systems are equally good and no remaining answer can change that."""
        return not len(self.pairs) and abs(self.difference) <= _ROUNDING

    @property
    def expected(self) -> float:
        """The expected difference under the estimated probabilities."""
        return self.difference + float(self.effects @ self.likely)

    @property
    def ahead(self) -> int:
        """The index of the system that is expected to be ahead: 0 or 1."""
        return 0 if self.expected >= 0 else 1

    @property
    def probability(self) -> float:
        """The probability that the system expected to be ahead really is, under the estimated probabilities.

        The sum is approximated by a normal distribution; 1 if the contest is settled.
        """
        if self.settled:
            return 1.0
        from scipy.special import ndtr

        spread = float(np.sqrt((self.effects**2) @ (self.likely * (1.0 - self.likely))))
        return float(ndtr(abs(self.expected) / spread)) if spread > 0 else 1.0

    def order(self) -> NDArray[np.int64]:
        """Return the indices of the pairs, ordered by how much their answers are expected to settle.

        An answer helps to settle the contest if it favours the system that is ahead: its own item is liked, or the
        other system's item is not. Pairs are ordered by their effect times the probability of that answer.
        """
        sign = 1.0 if self.ahead == 0 else -1.0
        helps = np.where(sign * self.effects > 0, self.likely, 1.0 - self.likely)
        return np.argsort(-np.round(np.abs(self.effects) * helps, 15), kind="stable")

    def answered(self, places: NDArray[np.int64], liked: NDArray[np.bool_]) -> Contest:
        """Return the contest after the pairs at these indices are judged."""
        rest = np.ones(len(self.pairs), dtype=np.bool_)
        rest[places] = False
        return replace(
            self,
            difference=self.difference + float(self.effects[places] @ liked),
            pairs=self.pairs.only(rest),
            effects=self.effects[rest],
            likely=self.likely[rest],
        )


def check_linear(metric: Metric) -> None:
    """Raise an error for metrics that are not a sum over items, and for metrics without a cut-off."""
    check_metric(metric, "list of judgments to ask for")
    if metric.definition.name not in LINEAR:
        raise SettingError(
            f"the effect of one judgment on {metric} depends on the others; use P, DCG or RBP, such as P@10"
        )
    if metric.cutoff is None:
        raise SettingError(f"{metric} has no cut-off, so every item of a list would be asked about; write {metric}@10")


def _worth(metric: Metric, systems: TwoSystems) -> Floats:
    """Return, for each rank, the score of an artificial list whose only liked item is at that rank."""
    depth = metric.cutoff or 0
    users = [f"rank {rank}" for rank in range(1, depth + 1)]
    lists = {user: [f"item {rank}" for rank in range(1, depth + 1)] for user in users}
    # Two extra users carry the rating scale of the test set.
    scale = [float(systems.test.values.min()), float(systems.test.values.max())]
    test = Ratings.of(
        [*users, "lowest", "highest"],
        [*(f"item {rank}" for rank in range(1, depth + 1)), "another", "another"],
        [systems.grade] * depth + scale,
    )
    scores = measure({"any": lists}, test, [metric], threshold=systems.threshold)
    return scores.values[0, 0, np.searchsorted(scores.users, scores.user_ids.codes(users))]


def _likely(systems: TwoSystems) -> Floats:
    """Return the share of each item's test ratings that are relevant, shrunk towards the overall share."""
    test = systems.test
    relevant = test.values >= systems.threshold
    share = float(relevant.mean()) if len(relevant) else 0.5
    liked = np.bincount(test.items[relevant], minlength=test.n_items)
    own = (liked + _DAMPING * share) / (test.item_counts + _DAMPING)
    of_all = np.full(len(systems.item_ids), share)
    of_all[systems.item_ids.codes(test.item_ids.all)] = own
    return of_all


CAVEATS = (
    "Only the users themselves can judge: ask the user whom a row names, nobody else.",
    "These judgments are chosen for two systems. A third one has not had its items judged, so comparing it with these "
    "judgments is unfair to it.",
)
"""What a reader must know about judgments that were requested."""

SHOWN = 10


@dataclass(frozen=True, eq=False)
class Labelling(Result):
    """Where a comparison of two systems stands, and which pairs to ask about.

    Parameters
    ----------
    metric
        The metric and its parameters.
    contest
        The two systems as a sum over unjudged pairs.
    ask
        The pairs to ask about, the most informative first: ``user, item, rating, listed_by, liked``. The rating is
        empty, and ``liked`` is the estimated probability that the item is liked.
    """

    metric: str
    contest: Contest
    ask: pl.DataFrame

    @property
    def settled(self) -> bool:
        """Whether no judgment of the unjudged pairs can change the sign of the difference for these users."""
        return self.contest.settled

    @property
    def probability(self) -> float:
        """The probability that the system expected to be ahead really is; 1 if the comparison is settled."""
        return self.contest.probability

    @property
    def state(self) -> unjudged_facts.ContestState:
        """Where the comparison stands."""
        contest = self.contest
        ahead, behind = contest.names[contest.ahead], contest.names[1 - contest.ahead]
        by_judged = None if contest.difference == 0 else contest.names[0 if contest.difference > 0 else 1]
        numbers = (len(contest.pairs), contest.difference, *contest.bounds, self.probability)
        state = (self.settled, contest.level)
        return unjudged_facts.ContestState(self.metric, ahead, behind, by_judged, *numbers, *state)

    def facts(self) -> list[Fact]:
        """Return where the comparison stands."""
        return [self.state]

    def frame(self) -> pl.DataFrame:
        """Return the pairs to ask about."""
        return self.ask

    def table(self) -> Table:
        """Return the first pairs to ask about as a table for people."""
        rows = [
            [str(user), str(item), listed_by, f"{liked:.2f}"]
            for user, item, listed_by, liked in self.ask.head(SHOWN).select("user", "item", "listed_by", "liked").rows()
        ]
        more = [f"and {self.ask.height - SHOWN:,} more"] if self.ask.height > SHOWN else []
        return Table(["user", "item", "listed by", "guess"], rows, "", [*more, *CAVEATS])

    @property
    def figures(self) -> Figures:
        """``bounds``: the difference by the judged items, between its bounds under any judgments of the others."""
        return {"bounds": _bounds}

    def __str__(self) -> str:
        return f"{self.state}\n\n{self.table().text()}"

    def __repr__(self) -> str:
        state = "settled" if self.settled else f"probability {self.probability:.3f}"
        names = " against ".join(self.contest.names)
        return f"Labelling({names} by {self.metric}: {state}, {self.ask.height:,} to ask)"


def _bounds(labelling: Labelling, *, style: Style = "screen") -> Any:
    state = labelling.state
    rows = pl.DataFrame({"metric": [state.metric], **{name: [getattr(state, name)] for name in _BOUNDS}})
    return intervals(rows, *_BOUNDS[:1], _BOUNDS[1:], ["metric"], style=style)


_BOUNDS = ("difference", "lower", "upper")


def suggest_judgments(
    runs: Any, test: Any, metric: str | Metric = "P@10", *, budget: int = 200, threshold: float | str | None = AUTO
) -> Labelling:
    r"""List the (user, item) pairs whose judgments would settle a comparison of two systems soonest.

    The idea is that of minimal test collections (Carterette, Allan and Sitaraman 2006). The difference of two systems
    is a sum over pairs, :math:`D = D_0 + \sum_i s_i x_i`; items that both lists have at the same rank cancel out. The
    comparison is settled once no judgment of the rest can change the sign of :math:`D` for these users. A judgment
    helps if it favours the system that is ahead, so pairs are ordered by :math:`|s_i|` times the probability of such a
    judgment. That probability is the share of the item's test ratings that are relevant, shrunk towards the overall
    share.

    Parameters
    ----------
    runs
        Two runs, in any form that `measure` accepts.
    test
        The held-out ratings, including the judgments made so far (`add_judgments`).
    metric
        P, DCG or RBP with a cut-off: metrics in which the contribution of an item does not depend on other items.
    budget
        The maximum number of pairs.
    threshold
        The lowest rating of a relevant item.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"], [5, 5, 2])
    >>> lists = {"a": {"ann": ["x", "y"], "bob": ["p", "x"]}, "b": {"ann": ["x", "z"], "bob": ["q", "r"]}}
    >>> suggest_judgments(lists, test, "P@2", budget=2, threshold=4).ask.select("user", "item", "listed_by").rows()
    [('ann', 'z', 'b'), ('bob', 'q', 'b')]
    """
    systems = _two(runs, test, threshold)
    wanted = as_metrics(metric)
    if len(wanted) != 1:
        raise SettingError(f"judgments are chosen by one metric, and {len(wanted)} are given; give one")
    contest = Contest.of(systems, wanted[0])
    order = np.empty(0, dtype=np.int64) if contest.settled else contest.order()[: check.whole("budget", budget)]
    pairs, listed = contest.pairs, contest.effects[order] > 0
    ask = pl.DataFrame(
        {
            "user": systems.test.user_ids.ids(pairs.users[order]),
            "item": systems.item_ids.ids(pairs.items[order]),
            "rating": pl.Series([None] * len(order), dtype=pl.Float64),
            "listed_by": np.where(listed, *contest.names).tolist(),
            "liked": contest.likely[order],
        }
    )
    return Labelling(str(wanted[0]), contest, ask)


def labelling_curve(
    runs: Any,
    test: Any,
    truth: Any,
    metric: str | Metric = "P@10",
    *,
    step: int = 20,
    threshold: float | str | None = AUTO,
    seed: int = 0,
) -> pl.DataFrame:
    """Count how many judgments settle a comparison, in the order of `suggest_judgments` and in random order.

    The truth is known, so answers are looked up instead of asked for. The order is computed again after every ``step``
    answers. ``chosen`` follows `suggest_judgments`; ``random`` draws from all unjudged pairs of the two systems' lists,
    including those that both have at the same rank, which change nothing.

    Parameters
    ----------
    runs, test, metric, threshold
        As for `suggest_judgments`.
    truth
        Ratings of every pair in the lists, such as those of `World.truth`.
    step
        The number of answers per step.
    seed
        Fixes the random order.

    Returns
    -------
    pl.DataFrame
        One row per strategy and step: ``strategy, judgments, settled, probability, ahead``.
    """
    systems = _two(runs, test, threshold)
    step, seed = check.whole("step", step), check.whole("seed", seed, at_least=0)
    (wanted,) = as_metrics(metric)
    start = Contest.of(systems, wanted)
    liked = _truly_liked(start, systems, as_test(truth))
    idle = sum(map(len, systems.unjudged(wanted))) - len(start.pairs)
    batches = {
        "chosen": lambda contest, _: contest.order()[:step],
        "random": _random_batches(len(start.pairs), idle, step, seed),
    }
    rows = [row for strategy, batch in batches.items() for row in _asked(strategy, start, liked, batch, step)]
    columns = ["strategy", "judgments", "settled", "probability", "ahead"]
    return pl.DataFrame(rows, schema=columns, orient="row")


Batch = Callable[[Contest, NDArray[np.int64]], NDArray[np.int64]]
"""Takes the contest and the initial positions of the pairs that are left; returns which of these to ask about next."""


def _random_batches(pairs: int, idle: int, step: int, seed: int) -> Batch:
    """Return a function that gives batches of all unjudged pairs in random order; ``idle`` pairs change nothing."""
    order = np.argsort(stream(seed, "labelling", "random").random(pairs + idle), kind="stable")
    starts = iter(range(0, len(order), step))

    def batch(_: Contest, left: NDArray[np.int64]) -> NDArray[np.int64]:
        start = next(starts)
        return np.flatnonzero(np.isin(left, order[start : start + step]))

    return batch


def _asked(
    strategy: str, contest: Contest, liked: NDArray[np.bool_], batch: Batch, step: int
) -> Iterator[tuple[str, int, bool, float, str]]:
    """Yield the state of a contest after every batch of answers, until it is settled."""
    left, count, total = np.arange(len(contest.pairs)), 0, len(contest.pairs)
    while True:
        yield strategy, count, contest.settled, contest.probability, contest.names[contest.ahead]
        if contest.settled or not len(contest.pairs):
            return
        places = batch(contest, left)
        contest = contest.answered(places, liked[left[places]])
        left = np.delete(left, places)
        count += step if strategy == "random" else min(step, total - count)


def _truly_liked(contest: Contest, systems: TwoSystems, truth: Ratings) -> NDArray[np.bool_]:
    """Return whether each unjudged pair of a contest is liked in truth."""
    users = truth.user_ids.codes(systems.test.user_ids.ids(contest.pairs.users))
    places = truth.places(users, truth.item_ids.codes(systems.item_ids.ids(contest.pairs.items)))
    absent = places < 0
    if absent.any():
        raise InputError(
            f"the truth has no rating of {int(absent.sum()):,} of {len(places):,} pairs that the lists hold",
            remedy="give a truth that judges every item of the lists",
        )
    return np.asarray(truth.values[places] >= systems.threshold)


def _two(runs: Any, test: Any, threshold: float | str | None) -> TwoSystems:
    systems, ratings = as_runs(runs), as_test(test)
    if len(systems) != 2:
        given = "1 is" if len(systems) == 1 else f"{len(systems)} are"
        raise SettingError(f"judgments are collected to compare two systems, and {given} given; give two")
    return TwoSystems(systems[0], systems[1], ratings, Relevance.of(ratings, threshold).threshold)
