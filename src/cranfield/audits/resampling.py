"""Resampled users: how shares, ranks and influences would vary with other users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.audits.leads import Floats, effect_of
from cranfield.audits.terms import Singles, Terms
from cranfield.recommenders import blas_threads, in_threads

Result = TypeVar("Result")

RESAMPLES = 200
"""Default number of times the users are resampled."""

# Number of universes per matrix product: fixed, so that sums do not depend on the number of threads.
_BLOCK = 128


@dataclass(frozen=True, eq=False)
class Resampled:
    """The universes of one pair of systems under resampled users.

    Parameters
    ----------
    d_z
        Resamples × universes: the standardised difference. The number of users of a universe is fixed.
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
    """Return d_z and the sign of one pair under the counts of `user_counts`; x is universes × users."""

    def block(rows: slice) -> tuple[Singles, Singles]:
        part = x[rows]
        return counts @ part.T, counts @ np.square(part).T

    sums, squares = (np.concatenate(parts, axis=1) for parts in zip(*_in_blocks(block, len(x))))
    z = np.divide(sums, np.sqrt(squares), out=np.zeros(sums.shape), where=squares > 0)
    return Resampled(effect_of(z, terms.users), np.sign(sums).astype(np.int8))


def _sums(values: Singles, counts: Singles) -> Singles:
    """Return resamples × universes: the sums over the drawn users."""
    return np.concatenate(_in_blocks(lambda rows: counts @ values[rows].T, len(values)), axis=1)


def resampled_averages(terms: Terms, counts: Singles) -> Floats:
    """Return systems × resamples × universes: numbers that order the systems as their averages do."""
    return np.stack([_sums(values, counts).astype(np.float64) for values in terms.values])


def interval(observed: float, drawn: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return an interval of a share: the middle ``level`` of its resampled values, with their median shifted to it.

    Resampled users contain the noise of the users twice. This pulls shares towards one half and influences towards each
    other; the shift removes that bias.

    Examples
    --------
    >>> [round(end, 3) for end in interval(0.5, np.array([0.2, 0.3, 0.4]))]
    [0.405, 0.595]
    """
    low, middle, high = np.quantile(drawn, [(1 - level) / 2, 0.5, (1 + level) / 2])
    return float(max(observed + low - middle, 0.0)), float(min(observed + high - middle, 1.0))


def _in_blocks(function: Callable[[slice], Result], n_universes: int) -> list[Result]:
    rows = [slice(start, min(start + _BLOCK, n_universes)) for start in range(0, n_universes, _BLOCK)]
    with progress("Resampling users", total=len(rows), unit="blocks") as bar, blas_threads(1):
        return in_threads(function, rows, bar)
