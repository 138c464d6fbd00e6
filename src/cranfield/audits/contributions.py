"""`UserContributions` of all universes, `Leads` of a pair of systems, and how both vary with other users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.audits.grid import Floats
from cranfield.recommenders import blas_threads, in_threads

Singles = NDArray[np.float32]
Answered = TypeVar("Answered")

RESAMPLES = 200  # default number of times the users are resampled
_BLOCK = 128  # number of universes per matrix product: fixed, so that sums do not depend on the number of threads
_LARGEST_EFFECT = 1000.0  # if all users differ by the same amount, d_z is infinite, but influences need a finite number
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class UserContributions:
    """The per-user terms of every system and universe, whose differences are summed in tests.

    With v the value of a user, where larger is always better, the term is v for a mean, w v for a weighted mean and
    log(v + ε) for a geometric mean. The difference of two systems' terms is x, and their averages differ in the
    direction of Σ x. A user who is not in a universe has the term 0.
    """

    values: Singles  # systems × universes × users, without NaN
    users: NDArray[np.int64] = None  # type: ignore[assignment]  # the number of users in each universe; by default all
    # For each universe, whether its average is one of the above. A median, a trimmed mean, a risk-sensitive average
    # or an average of ranks is not: its terms are only used for effect sizes, and it is left out of the joint test.
    linear: NDArray[np.bool_] = None  # type: ignore[assignment]
    # For each universe, whether x is the difference of a user's two values with equal weights, so that tests of ranks
    # and signs apply; true by default.
    paired: NDArray[np.bool_] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float32)
        if values.ndim != 3 or not values.size:
            raise SettingError("terms must be systems × universes × users, with at least one of each")
        if not np.isfinite(values).all():
            raise SettingError("terms must be finite; give 0 for a user who is not in a universe")
        n = values.shape[1]
        users = np.full(n, values.shape[2]) if self.users is None else np.asarray(self.users, dtype=np.int64)
        linear, paired = (
            np.ones(n, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
            for mask in (self.linear, self.paired)
        )
        if {users.shape, linear.shape, paired.shape} != {(n,)}:
            raise SettingError(f"users, linear and paired must have one entry for each of the {n} universes")
        for name, array in {"values": values, "users": users, "linear": linear, "paired": paired}.items():
            object.__setattr__(self, name, array)

    def between(self, first: int, second: int) -> Singles:
        """Return universes × users: x for two systems, above 0 if the first is better."""
        return self.values[first] - self.values[second]


@dataclass(frozen=True, eq=False)
class Leads:
    """Which system leads in each universe, for one pair of systems, from averages and from x of `UserContributions`."""

    difference: Floats  # the first average minus the second, as shown
    relative: Floats  # the same divided by the second; NaN where that is 0
    z: Floats  # Σx/√Σx²
    d_z: Floats  # mean(x)/sd(x), the standardised paired difference
    p: Floats  # Student's two-sided p of mean(x)/(sd(x)/√n), not corrected for the number of universes
    lead: NDArray[np.int8]  # 1 if the first system is better, −1 if the second is, 0 if they are equal
    # Whether p, that of the mean difference, is below α, and d_z has the sign of the lead; it may not have it if the
    # average is not a sum over users.
    significant: NDArray[np.bool_]


def leads_of(
    x: Singles, terms: UserContributions, averages: Floats, lower_is_better: NDArray[np.bool_], alpha: float = 0.05
) -> Leads:
    """Return which system leads, from x (universes × users) and the averages (two systems × universes) as shown."""
    difference = averages[0] - averages[1]
    relative = np.divide(difference, np.abs(averages[1]), out=np.full(len(difference), np.nan), where=averages[1] != 0)
    z = z_of(x)
    d_z = effect_of(z, terms.users)
    p = p_of(d_z, terms.users)
    # Sums in another order may differ in their last digits, which does not count as a lead.
    equal = np.abs(difference) <= _ROUNDING * np.abs(averages).max(axis=0)
    lead = np.where(equal, 0, np.sign(np.where(lower_is_better, -difference, difference))).astype(np.int8)
    return Leads(difference, relative, z, d_z, p, lead, (p < alpha) & (np.sign(d_z) == lead))


def z_of(x: Singles) -> Floats:
    """Return Σx/√Σx² of each row; 0 if all values are 0."""
    sums = x.sum(axis=1, dtype=np.float64)
    squares = np.einsum("uv,uv->u", x, x, dtype=np.float64)
    return np.divide(sums, np.sqrt(squares), out=np.zeros(len(x)), where=squares > 0)


def effect_of(z: Floats, users: NDArray[np.int64]) -> Floats:
    """Return d_z = mean(x)/sd(x) from z of n users: z √((n − 1)/n) / √(n − z²); 0 for a single user."""
    n = np.maximum(users, 1).astype(np.float64)
    scale = np.sqrt((n - 1) / n)
    rest = np.maximum(n - z**2, (np.abs(z) * scale / _LARGEST_EFFECT) ** 2)
    return z * scale / np.sqrt(np.where(rest > 0, rest, 1.0))


def p_of(d_z: Floats, users: NDArray[np.int64]) -> Floats:
    """Return Student's two-sided p-value of d_z with n users; 1 for a single user."""
    from scipy.special import stdtr

    return np.where(users > 1, 2 * stdtr(np.maximum(users - 1, 1), -np.abs(d_z) * np.sqrt(users)), 1.0)


def critical_z(users: NDArray[np.int64], alpha: float = 0.05) -> Floats:
    """Return the |z| from which Student's p is below α, t √(n/(n − 1 + t²)), the same for all draws; ∞ for one user."""
    from scipy.special import stdtrit

    n = np.maximum(users, 2).astype(np.float64)
    t = stdtrit(n - 1, 1 - alpha / 2)
    return np.where(users > 1, t * np.sqrt(n / (n - 1 + t**2)), np.inf)


@dataclass(frozen=True, eq=False)
class Resampled:
    """The universes of one pair of systems under resampled users: resamples × universes."""

    d_z: Floats  # the standardised difference, for which the number of users of a universe is fixed
    sign: NDArray[np.int8]  # of the sum


def user_counts(n_users: int, resamples: int = RESAMPLES, seed: int = 0) -> Singles:
    """Return resamples × users: how often each user is in each resample of ``n_users`` users, with replacement."""
    draws = stream(seed, "audit", "resamples")
    counts = np.empty((resamples, n_users), dtype=np.float32)
    for row in counts:
        row[:] = np.bincount((draws.random(n_users) * n_users).astype(np.int64), minlength=n_users)
    return counts


def resampled(x: Singles, terms: UserContributions, counts: Singles) -> Resampled:
    """Return d_z and the sign of one pair under the counts of `user_counts`; x is universes × users."""

    def block(rows: slice) -> tuple[Singles, Singles]:
        part = x[rows]
        return counts @ part.T, counts @ np.square(part).T

    sums, squares = (np.concatenate(parts, axis=1) for parts in zip(*_in_blocks(block, len(x))))
    z = np.divide(sums, np.sqrt(squares), out=np.zeros(sums.shape), where=squares > 0)
    return Resampled(effect_of(z, terms.users), np.sign(sums).astype(np.int8))


def resampled_averages(terms: UserContributions, counts: Singles) -> Floats:
    """Return systems × resamples × universes: numbers that order the systems as their averages do."""

    def sums(values: Singles) -> Floats:
        blocks = _in_blocks(lambda rows: counts @ values[rows].T, len(values))
        return np.concatenate(blocks, axis=1).astype(np.float64)

    return np.stack([sums(values) for values in terms.values])


def interval(observed: float, drawn: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return an interval of a share: the middle ``level`` of its resampled values, with their median shifted to it.

    Resampled users contain the noise of the users twice. This pulls shares towards one half and influences towards each
    other; the shift removes that bias.
    """
    low, middle, high = np.quantile(drawn, [(1 - level) / 2, 0.5, (1 + level) / 2])
    return float(max(observed + low - middle, 0.0)), float(min(observed + high - middle, 1.0))


def _in_blocks(function: Callable[[slice], Answered], n_universes: int) -> list[Answered]:
    rows = [slice(start, min(start + _BLOCK, n_universes)) for start in range(0, n_universes, _BLOCK)]
    with progress("Resampling users", total=len(rows), unit="blocks") as bar, blas_threads(1):
        return in_threads(function, rows, bar)
