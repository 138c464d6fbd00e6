"""Effect sizes: how large a difference is, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cranfield.comparisons.errors import standard_errors
from cranfield.comparisons.gate import enclosed
from cranfield.comparisons.power import chance_above
from cranfield.comparisons.sample import Floats, Sample
from cranfield.comparisons.student import moments


@dataclass(frozen=True, eq=False)
class Effects:
    """The effect sizes of every pair of a sample.

    Parameters
    ----------
    mean_a, mean_b, difference, standard_error
        The averages, their difference and its standard error.
    degrees
        The degrees of freedom of the standard error.
    lower, upper
        The interval of the difference, by Student's t.
    widened
        The ratio of its width to that of the 1 − α interval for this pair alone, over users alone.
    spread
        The standard deviation of the difference between repetitions; None without repetitions.
    effect, effect_lower, effect_upper
        d_z = mean(d) / sd(d), the standardised paired difference, and its interval: that of the non-centrality of t,
        times the standard error over sd(d), which is 1/√n without repetitions.
    wins, ties, losses
        For how many users the first system is better than, as good as or worse than the second.
    superiority
        (wins + ties/2) / n: the chance that the first system serves a user better.
    """

    mean_a: Floats
    mean_b: Floats
    difference: Floats
    standard_error: Floats
    degrees: Floats
    lower: Floats
    upper: Floats
    widened: Floats
    spread: Floats | None
    effect: Floats
    effect_lower: Floats
    effect_upper: Floats
    wins: Floats
    ties: Floats
    losses: Floats
    superiority: Floats

    @property
    def p_of_t(self) -> Floats:
        """The two-sided p-value of difference / standard error; NaN where there is no standard error."""
        from scipy.special import stdtr

        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(self.difference == 0, 0.0, np.abs(self.difference) / self.standard_error)
        return np.where(np.isnan(self.standard_error), np.nan, 2 * stdtr(self.degrees, -t))


def effects(sample: Sample, outcomes: Outcomes, alpha: float, level: float | None = None) -> Effects:
    """Return the effect sizes of every pair, given its `Outcomes`; NaN if there are too few users.

    ``level`` is the level of each pair's interval, if it is not α: see `LargestStatistics.level`.
    """
    from scipy.special import stdtrit

    a, b = sample.averages(slice(0, sample.n_pairs))
    n, sd, wins, losses = outcomes
    ties, errors, difference = n - wins - losses, standard_errors(sample, n, sd), a - b
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = stdtrit(errors.degrees, 1 - (alpha if level is None else level) / 2) * errors.error
        alone = stdtrit(np.maximum(n - 1, 1), 1 - alpha / 2)
        widened = np.where(errors.users_error > 0, reach / (alone * errors.users_error), 1.0)
        d_z = np.where((sd > 0) & (n > 1), difference / sd, np.where(difference == 0, 0.0, np.nan))
        t = np.where(difference == 0, 0.0, difference / errors.error)
        scale = np.where(sd > 0, errors.error / sd, 1 / np.sqrt(n))
        least, most = noncentralities(t, errors.degrees, alpha if level is None else level)
        superiority = (wins + ties / 2) / n
    if sample.lower_is_better:
        wins, losses, superiority = losses, wins, 1 - superiority
    return Effects(
        a,
        b,
        difference,
        errors.error,
        errors.degrees,
        difference - reach,
        difference + reach,
        widened,
        errors.spread,
        d_z,
        np.where(n > 1, scale * least, np.nan),
        np.where(n > 1, scale * most, np.nan),
        wins,
        ties,
        losses,
        superiority,
    )


def noncentralities(t: Floats, degrees: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return the 1 − α interval of the non-centrality behind each t: where P(T ≥ t), and P(T ≤ t), is α/2.

    Examples
    --------
    >>> [end.round(3).tolist() for end in noncentralities(np.array([2.0, -50.0]), np.array([10.0, 10.0]), 0.05)]
    [[-0.184, -71.64], [4.101, -28.39]]
    """
    from scipy.special import ndtri

    size, ends = np.where(np.isfinite(t), np.abs(t), 0.0), []
    degrees, z = np.maximum(np.nan_to_num(degrees), 1.0), -float(ndtri(alpha / 2))
    for side in (-1.0, 1.0):

        def inside(shift: Floats, side: float = side) -> Floats:
            """Return how far inside the interval a shift is, in normal deviates, which are almost linear in it."""
            chance = np.clip(chance_above(size, shift, degrees), 1e-300, 1 - 1e-16)
            return np.asarray(z - side * ndtri(chance))

        far = size + side * (1.5 * z * np.sqrt(1 + size**2 / (2 * degrees)) + 1)
        ends.append(enclosed(inside, size, far, inside(size), inside(far), np.full(len(size), 1e-8))[1])
    lower, upper = (np.where(np.isfinite(t), end, np.nan) for end in ends)
    return np.where(t < 0, -upper, lower), np.where(t < 0, -lower, upper)


Outcomes = tuple[Floats, Floats, Floats, Floats]
"""For each pair: n, the deviation of the influences, and for how many users each system has the larger value."""


def outcomes_of(sample: Sample) -> Outcomes:
    """Return the `Outcomes` of every pair."""
    parts = []
    for pairs in sample.blocks():
        d = influences = sample.raw_differences(pairs)
        if sample.geometric or sample.weights is not None:
            influences = sample.influences(pairs)
        n, _, sd = moments(influences)
        parts.append((n, sd, np.count_nonzero(d > 0, axis=1), np.count_nonzero(d < 0, axis=1)))
    n, sd, wins, losses = (np.concatenate(column) for column in zip(*parts))
    return n, sd, wins, losses
