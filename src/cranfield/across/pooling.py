"""The average of effects over datasets: on these datasets, for datasets like these, and on a new one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield._roots import enclosed
from cranfield.across.effects import Floats
from cranfield.comparisons import p_of_t

WEIGHTS = ("equal", "precision")

FEWEST_FOR_LIKE, FEWEST_FOR_NEW = 3, 4
"""The numbers of datasets from which an interval for datasets like these, and one for a new dataset, says anything."""

# In place of the variance of users where they have none, so that its inverse is finite.
_SMALLEST = 1e-300


@dataclass(frozen=True, eq=False)
class DatasetAverages:
    """The averages of each pair's effects, one entry per pair; NaN for what so few datasets do not tell."""

    k: NDArray[np.int64]  # the number of datasets that both systems have
    mean: Floats
    spread: Floats  # the standard deviation of the effects, n − 1
    users_error: Floats
    error: Floats
    these_mean: Floats  # with equal weights
    these_lower: Floats
    these_upper: Floats
    lower: Floats
    upper: Floats
    p: Floats
    tau: Floats
    tau_lower: Floats
    tau_upper: Floats
    q: Floats
    i2: Floats
    new_lower: Floats
    new_upper: Floats
    chance: Floats  # that the order holds on a new dataset
    new_better: Floats  # with a margin: the chances that the first is better by more, neither is, the second is
    new_equal: Floats
    new_worse: Floats


def pooled(
    effects: Floats, errors: Floats, *, alpha: float = 0.05, weights: str = "equal", margin: float | None = None
) -> DatasetAverages:
    """Return the averages of effects over datasets, from pairs × datasets; NaN where there is no effect.

    With k effects y_i and the users' errors s_i, m = mean(y) has the error s = max(sd(y)/√k, √(Σ s_i²)/k). On these
    datasets the interval is m ± z √(Σ s_i²)/k; for datasets like these it is m ± t_{k−1} s. The variance τ² between
    datasets is that of Paule and Mandel (1982), the root of Σ w (y − μ_w)² = k − 1 with w = 1/(s_i² + τ²); its interval
    has the χ² quantiles in place of k − 1 (Viechtbauer 2007). The effect on a new dataset is m ± t_{k−2} √(τ² + s²)
    (Higgins, Thompson and Spiegelhalter 2009). The chance that the order holds there is at most (k + 1)/(k + 2). With
    weights by ``precision``, m is μ_w and s is 1/√Σw.

    Without users' errors, the spread of a new dataset's measured effect is sd(y) √(1 + 1/k), with k − 1 degrees.
    """
    from scipy.special import ndtri, stdtr, stdtrit

    known = ~np.isnan(effects)
    k = known.sum(axis=1)
    with_errors = (~np.isnan(errors) | ~known).all(axis=1) & (k > 0)
    y, variances = np.where(known, effects, 0.0), np.where(known & with_errors[:, None], errors, 0.0) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = y.sum(axis=1) / np.where(k > 0, k, np.nan)
        centred = np.where(known, effects - mean[:, None], 0.0)
        spread = np.sqrt((centred**2).sum(axis=1) / np.where(k > 1, k - 1, np.nan))
        # Effects that differ by rounding are equal.
        spread = np.where(spread <= 1e-14 * np.abs(mean), 0.0, spread)
        users_error = np.where(with_errors, np.sqrt(variances.sum(axis=1)) / k, np.nan)
    error, average = np.fmax(spread / np.sqrt(np.maximum(k, 1)), users_error), mean
    tau, tau_lower, tau_upper, q, precise, precise_error = _between(y, variances, known, alpha)
    tau, tau_lower, tau_upper, q = (
        np.where(with_errors & (k > 1), part, np.nan) for part in (tau, tau_lower, tau_upper, q)
    )
    if weights == "precision":
        average, error = np.where(with_errors, precise, mean), np.where(with_errors, precise_error, error)
    like = np.where(k >= FEWEST_FOR_LIKE, error, np.nan)
    reach = stdtrit(np.maximum(k - 1, 1), 1 - alpha / 2) * like
    of_these = -ndtri(alpha / 2) * users_error
    new_error = np.where(with_errors, np.sqrt(tau**2 + like**2), spread * np.sqrt(1 + 1 / np.maximum(k, 1)))
    degrees = np.maximum(np.where(with_errors, k - 2, k - 1), 1)
    new_reach = np.where(k >= FEWEST_FOR_NEW, stdtrit(degrees, 1 - alpha / 2) * new_error, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        i2 = np.where(q > 0, np.maximum(0.0, 1 - (k - 1) / q), 0.0 * q)

        def chance_below(limit: Floats) -> Floats:
            t = np.where(limit == average, 0.0, (limit - average) / new_error)
            return np.where(with_errors & (k >= FEWEST_FOR_LIKE), stdtr(degrees, t), np.nan)

        cap, none = (k + 1) / (k + 2), np.full(len(k), np.nan)
        holds = np.minimum(1 - chance_below(average - np.abs(average)), cap)
        split = (none, none, none)
        if margin is not None:
            low, high = chance_below(np.full(len(k), -margin)), chance_below(np.full(len(k), margin))
            split = (1 - high, high - low, low)
    p = np.where(k >= FEWEST_FOR_LIKE, p_of_t(average, error, k), np.nan)
    return DatasetAverages(
        k, average, spread, users_error, error, mean, mean - of_these, mean + of_these, average - reach,
        average + reach, p, tau, tau_lower, tau_upper, q, i2, average - new_reach, average + new_reach, holds,
        *(np.minimum(part, cap) for part in split),
    )  # fmt: skip


def _between(
    y: Floats, variances: Floats, known: NDArray[np.bool_], alpha: float
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    """Return τ and its interval, Q, and the mean with weights by precision and its error; 0 for what is not known."""
    from scipy.special import chdtri

    k = known.sum(axis=1)
    variances = np.maximum(variances, _SMALLEST)

    def weighted(tau2: Floats) -> tuple[Floats, Floats, Floats]:
        w = np.where(known, 1 / (variances + tau2[:, None]), 0.0)
        total = np.where(k > 0, w.sum(axis=1), 1.0)
        mean = (w * y).sum(axis=1) / total
        away = np.where(known & (np.abs(y - mean[:, None]) > 1e-14 * np.abs(mean[:, None])), y - mean[:, None], 0.0)
        return (w * away**2).sum(axis=1), mean, 1 / np.sqrt(total)

    zero, degrees = np.zeros(len(k)), np.maximum(k - 1, 1)
    q = weighted(zero)[0]
    centred = np.where(known, y - (y.sum(axis=1) / np.maximum(k, 1))[:, None], 0.0)
    squares = (centred**2).sum(axis=1)
    roots = []
    for target in (degrees, chdtri(degrees, alpha / 2), chdtri(degrees, 1 - alpha / 2)):
        # At this variance the sum is certainly below the target.
        far = 1.01 * squares / target + _SMALLEST

        def above(tau2: Floats, target: Floats = target) -> Floats:
            return np.minimum(weighted(tau2)[0], 1e150) - target

        root = enclosed(above, zero, far, above(zero), above(far), 1e-12 * far)
        roots.append(np.where(q > target, (root[0] + root[1]) / 2, 0.0))
    _, mean, error = weighted(roots[0])
    tau, lower, upper = np.sqrt(roots)
    return tau, lower, upper, np.where(q > 1e200, np.inf, q), mean, error


def shrunken(effects: Floats, errors: Floats, pools: DatasetAverages) -> Floats:
    """Return each dataset's effect drawn towards the average: (τ² y_i + s_i² m) / (τ² + s_i²)."""
    tau2, own = pools.tau[:, None] ** 2, errors**2
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = (tau2 * effects + own * pools.mean[:, None]) / (tau2 + own)
    return np.where(tau2 + own == 0, effects, drawn)


def without_each(
    effects: Floats, errors: Floats, *, alpha: float = 0.05, weights: str = "equal"
) -> list[DatasetAverages]:
    """Return the averages without each of the datasets."""
    kept = np.eye(effects.shape[1], dtype=bool)
    return [pooled(np.where(left_out, np.nan, effects), errors, alpha=alpha, weights=weights) for left_out in kept]
