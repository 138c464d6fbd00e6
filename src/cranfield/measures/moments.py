"""Counts, means and squares of values that add up over parts of the users."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moments:
    """n, the mean and Σ (x − mean)² of each of several sets of values.

    Examples
    --------
    >>> whole, parts = Moments.of(np.array([[1.0, 3.0, 8.0]])), np.array([[1.0, np.nan], [3.0, 8.0]])
    >>> joined = Moments.of(parts[:1]) + Moments.of(parts[1:])
    >>> bool(np.isclose(joined.mean, whole.mean)[0]), bool(np.isclose(joined.sd, whole.sd)[0])
    (True, True)
    """

    n: Floats
    mean: Floats
    squares: Floats

    @classmethod
    def of(cls, values: Floats) -> Moments:
        """Return the moments of each row, ignoring NaN."""
        counted = ~np.isnan(values)
        n = counted.sum(axis=-1).astype(np.float64)
        mean = np.where(counted, values, 0.0).sum(axis=-1) / np.maximum(n, 1)
        centred = np.where(counted, values - mean[..., None], 0.0)
        return cls(n, mean, np.einsum("...u,...u->...", centred, centred))

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both together (Chan, Golub and LeVeque 1983)."""
        n = self.n + other.n
        share = other.n / np.maximum(n, 1)
        away = other.mean - self.mean
        mean = np.where(self.n == 0, other.mean, self.mean + share * away)
        return Moments(n, mean, self.squares + other.squares + self.n * share * away**2)

    @property
    def sd(self) -> Floats:
        """The standard deviation, with n − 1 in the denominator."""
        sd: Floats = np.sqrt(self.squares / np.maximum(self.n - 1, 1))
        return sd
