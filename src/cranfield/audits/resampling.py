"""Resampled users: what shares, ranks and influences would have been with other users of the same kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield._progress import progress
from cranfield._random import stream
from cranfield.audits.leads import Floats, effect_of
from cranfield.audits.terms import Singles, Terms
from cranfield.recommenders.work import blas_threads, in_threads

RESAMPLES = 200
"""How many times the users are drawn again, by default."""

# Products are made of so many universes at a time, whatever the number of threads: the same sums in the same order.
_BLOCK = 128


@dataclass(frozen=True, eq=False)
class Resampled:
    """The universes of one pair of systems under resampled users.

    Parameters
    ----------
    d_z
        Resamples × universes: the standardised difference. The number of users of a universe is taken as fixed.
    sign
        Resamples × universes: the sign of the sum.
    """

    d_z: Floats
    sign: NDArray[np.int8]


def user_counts(n_users: int, resamples: int = RESAMPLES, seed: int = 0) -> Singles:
    """Return resamples × users: how often each user is in each resample of ``n_users`` users, with replacement."""
    draws = stream(seed, "audit", "resamples")
    counts = np.empty((resamples, n_users), dtype=np.float32)
    for row in counts:
        row[:] = np.bincount((draws.random(n_users) * n_users).astype(np.int64), minlength=n_users)
    return counts


def resampled(x: Singles, terms: Terms, counts: Singles) -> Resampled:
    """Return d_z and the sign of one pair, x being universes × users, under the counts of `user_counts`."""

    def block(rows: slice) -> tuple[Singles, Singles]:
        part = x[rows]
        return counts @ part.T, counts @ np.square(part).T

    sums, squares = (np.concatenate(parts, axis=1) for parts in zip(*_in_blocks(block, len(x))))
    z = np.divide(sums, np.sqrt(squares), out=np.zeros(sums.shape), where=squares > 0)
    return Resampled(effect_of(z, terms.users), np.sign(sums).astype(np.int8))


def resampled_averages(terms: Terms, counts: Singles) -> Floats:
    """Return systems × resamples × universes: numbers that order the systems as their averages would be ordered."""
    averages = []
    for values in terms.values:
        parts = _in_blocks(lambda rows, own=values: counts @ own[rows].T, len(values))
        averages.append(np.concatenate(parts, axis=1).astype(np.float64))
    for universe, covered in terms.reduced.items():
        for system, weights in enumerate(covered):
            total = (counts @ weights).astype(np.float64)
            own = averages[system][:, universe]
            averages[system][:, universe] = np.divide(own, total, out=np.zeros(len(own)), where=total > 0)
    return np.stack(averages)


def interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return the middle ``level`` of resampled values."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _in_blocks(function, n_universes: int) -> list:  # type: ignore[no-untyped-def, type-arg]
    rows = [slice(start, min(start + _BLOCK, n_universes)) for start in range(0, n_universes, _BLOCK)]
    with progress("Resampling users", total=len(rows), unit="blocks") as bar, blas_threads(1):
        return in_threads(function, rows, bar)
