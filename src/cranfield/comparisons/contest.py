"""`Contest`: the difference of two systems as a sum over unjudged pairs, and whether judgments can change its sign."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.comparisons.unjudged_pairs import LINEAR, Pairs, TwoSystems, check_metric
from cranfield.data import Ratings
from cranfield.judgments import judge
from cranfield.measures import measure
from cranfield.metrics import Metric
from cranfield.rankings import Run

Floats = NDArray[np.float64]

_DAMPING = 5.0
"""Number of ratings by which an item's share of likes is shrunk towards the overall share."""
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Contest:
    r"""The difference of two systems, :math:`D = D_0 + \sum_i s_i x_i` over unjudged pairs, :math:`x_i` 1 if liked.

    Parameters
    ----------
    names
        The first system and the second.
    difference
        :math:`D_0`: the first system's average minus the second's, with unjudged pairs counted as 0.
    pairs
        The unjudged pairs that matter: those in only one of the two lists, or in both at different ranks.
    effects
        :math:`s_i`: how much the difference grows if the pair is liked.
    likely
        The estimated probability that each pair is liked.
    """

    names: tuple[str, str]
    difference: float
    pairs: Pairs
    effects: Floats
    likely: Floats

    @staticmethod
    def of(systems: TwoSystems, metric: Metric) -> Contest:
        """Make the contest of two systems by a metric that is a sum over the items of a list."""
        check_linear(metric)
        sums: dict[int, float] = {}
        for sign, run in zip((1.0, -1.0), systems.runs):
            keys, effects = _effects(systems, run, metric)
            for key, effect in zip(keys.tolist(), (sign * effects).tolist()):
                sums[key] = sums.get(key, 0.0) + effect
        keys = np.array(sorted(key for key, effect in sums.items() if abs(effect) > _ROUNDING), dtype=np.int64)
        pairs = Pairs(keys // len(systems.item_ids), keys % len(systems.item_ids))
        effects = np.array([sums[key] for key in keys.tolist()])
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


def _effects(systems: TwoSystems, run: Run, metric: Metric) -> tuple[NDArray[np.int64], Floats]:
    """Return the unjudged pairs of a run as keys, and how much each adds to the average if it is liked."""
    judged = judge(run, systems.test, threshold=systems.threshold)
    entries = judged.entries
    assert judged.places is not None  # it has entries
    assert metric.cutoff is not None
    missing = ~np.isin(entries.places, judged.places) & (entries.ranks <= metric.cutoff)
    codes = systems.item_ids.codes(run.item_ids.all)
    users = judged.judgments.users[entries.lists[missing]].astype(np.int64)
    worth = _worth(metric, systems) / judged.n_lists
    return users * len(systems.item_ids) + codes[entries.items[missing]], worth[entries.ranks[missing] - 1]


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
    places = scores.user_ids.codes(users)
    by_user = dict(zip(scores.users.tolist(), scores.values[0, 0].tolist()))
    return np.array([by_user[int(place)] for place in places])


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
