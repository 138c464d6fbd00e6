"""The 78 systems whose p-values Figure 4 of Cañamares and Castells (2020) sums, over the users of all folds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cranfield.comparisons import p_of_t

Floats = NDArray[np.float64]

NEIGHBOURS = (*range(10, 100, 10), *range(100, 1000, 100), *range(1000, 7000, 1000))
FACTORS, REGULARIZATION, ALPHA = (5, 10, 50), (0.1, 1.0, 10.0), (1.0, 10.0, 100.0)

PRINTED_SUMS = (64.98, 88.38, 88.06, 74.06, 41.19, 41.56, 28.50, 30.55, 37.71, 22.91, 15.36, 21.75, 36.40)
"""The sums for P@10 on MovieLens 1M as printed, by the number of unrated targets."""


def grid_of(threshold: float, seed: int) -> dict[str, str]:
    """Return the spellings of the 78 systems: three simple ones, and those of a grid of parameters."""
    truncated = f"similarity=cosine, ratings=truncated, threshold={threshold:g}"
    systems = {
        "Random": f"random(seed={seed})",
        "Popularity": "popularity",
        "Average Rating": f"average(threshold={threshold:g}, damping=1)",
    }
    for k in NEIGHBOURS:
        systems[f"kNN (k={k})"] = f"knn(k={k}, {truncated})"
        systems[f"Normalized kNN (k={k})"] = f"knn(k={k}, normalised=true, min_neighbours=3, {truncated})"
    for factors, regularization, alpha in product(FACTORS, REGULARIZATION, ALPHA):
        # Solving the equations takes more steps the larger α is.
        settings = (
            f"factors={factors}, alpha={alpha:g}, regularization={regularization:g}, iterations=20, target=rating, "
            f"binary=false, steps={3 if alpha == 1 else 10}, start={factors**-0.5:.4f}, seed={seed}"
        )
        systems[f"iMF (k={factors}, lambda={regularization:g}, alpha={alpha:g})"] = f"wrmf({settings})"
    return systems


@dataclass(frozen=True, eq=False)
class PairSums:
    """What Student's paired test of all pairs of systems needs: sums of user values and of their products.

    Parameters
    ----------
    users
        The number of users.
    sums
        Sizes × metrics × systems.
    products
        Sizes × metrics × systems × systems.
    """

    users: int
    sums: Floats
    products: Floats

    @classmethod
    def of(cls, values: NDArray[np.float32]) -> PairSums:
        """Return the sums of systems × sizes × metrics × users."""
        exact = values.transpose(1, 2, 0, 3).astype(np.float64)
        return cls(values.shape[-1], exact.sum(axis=-1), exact @ exact.swapaxes(-1, -2))

    def __add__(self, other: PairSums) -> PairSums:
        return PairSums(self.users + other.users, self.sums + other.sums, self.products + other.products)

    def sums_of_p(self) -> Floats:
        """Return sizes × metrics: the p-values of Student's paired test, summed over all pairs of systems."""
        first, second = np.triu_indices(self.sums.shape[-1], 1)
        own = np.diagonal(self.products, axis1=-2, axis2=-1)
        mean = (self.sums[..., first] - self.sums[..., second]) / self.users
        squares = own[..., first] + own[..., second] - 2 * self.products[..., first, second]
        variance = np.maximum(squares - self.users * mean**2, 0.0) / (self.users - 1)
        total: Floats = p_of_t(mean, np.sqrt(variance / self.users), np.full(mean.shape, self.users)).sum(axis=-1)
        return total

    def save(self, path: Path) -> Path:
        """Write the sums to a file."""
        with path.open("wb") as file:
            np.savez(file, users=self.users, sums=self.sums, products=self.products)
        return path

    @classmethod
    def read(cls, path: Path) -> PairSums:
        """Return the sums in a file."""
        with np.load(path) as arrays:
            return cls(int(arrays["users"]), arrays["sums"], arrays["products"])
