"""iALS: implicit alternating least squares with frequency-scaled regularisation (Rendle et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.recommenders._sparse import nan_for_untrained, ones_like, rating_matrix
from cranfield.recommenders.epochs import Epoch, EpochModel, Numbers, from_threshold
from cranfield.recommenders.model import PairModel, setting
from cranfield.recommenders.profiles import ProfileModel
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import blas_threads, blocks, in_threads

# Initial vectors are drawn from N(0, _SPREAD / sqrt(factors)).
_SPREAD = 0.1


@register("ials")
@dataclass
class ImplicitLeastSquares(EpochModel, ProfileModel, PairModel):
    r"""Implicit alternating least squares, with regularisation that depends on the number of ratings.

    .. math::
        \min \sum_{(u, i) \in S} (x_u \cdot y_i - 1)^2 + α_0 \sum_{u, i} (x_u \cdot y_i)^2
        + λ \Bigl(\sum_u (|S_u| + α_0 |I|)^ν \lVert x_u \rVert^2
        + \sum_i (|S_i| + α_0 |U|)^ν \lVert y_i \rVert^2\Bigr)

    (S. Rendle, W. Krichene, L. Zhang and Y. Koren 2022, Revisiting the performance of iALS on item recommendation
    benchmarks, RecSys; after Hu, Koren and Volinsky 2008), solved exactly for all users, then for all items, in every
    epoch. Each vector is solved independently, so results do not depend on the number of threads. NaN for users and
    items without training ratings.

    Parameters
    ----------
    factors, epochs
        The length of the vectors, and how often both sides are solved.
    unobserved, regularization, exponent
        α₀, the weight of unrated cells; λ; and ν: with 1, the regularisation of a vector grows with its number of
        ratings; with 0, it is the same for all.
    threshold
        Only ratings of at least this much count; None for all.
    patience
        With a validation part: stop after this many epochs without improvement; 0 for never.
    seed
        Seed of the initial vectors.
    """

    steps_by = ("regularization",)

    factors: int = setting(128, low=1)
    epochs: int = setting(12, low=1)
    unobserved: float = setting(0.3, low=0)
    regularization: float = setting(0.007, low=0)
    exponent: float = setting(1.0, low=0)
    threshold: float | None = setting(None, or_none=float)
    patience: int = setting(5, low=0)
    seed: int = setting(0, low=0)

    def _start(self, train: Ratings) -> tuple[Numbers, Epoch]:
        self._user_counts, self._item_counts = train.user_counts, train.item_counts
        kept = from_threshold(train, self.threshold, self.name)
        by_user = ones_like(rating_matrix(kept))
        by_item = by_user.T.tocsr()
        draw = stream(self.seed, "ials")
        sizes = {"users": train.n_users, "items": train.n_items}
        numbers = {
            name: (draw.standard_normal((size, self.factors)) * _SPREAD / np.sqrt(self.factors)).astype(np.float32)
            for name, size in sizes.items()
        }

        def epoch(numbers: Numbers, _: int) -> tuple[Numbers, float]:
            with blas_threads(1):
                users = self._solved(by_user, numbers["items"])
                items = self._solved(by_item, users)
                return {"users": users, "items": items}, self._loss(by_user, users, items)

        return numbers, epoch

    def _take(self, numbers: Numbers) -> None:
        self._users, self._items = numbers["users"], numbers["items"]

    def _solved(self, rated: Any, fixed: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the vectors of the rows of ``rated``, given the ``fixed`` vectors of its columns."""
        from scipy.linalg import lapack

        gram = np.float32(self.unobserved) * (fixed.T @ fixed)
        shrinkage = self._shrinkage(np.diff(rated.indptr), len(fixed))
        solved = np.zeros((rated.shape[0], self.factors), dtype=np.float32)
        diagonal = np.diag_indices(self.factors)

        def solve(block: slice) -> None:
            for row in range(block.start, block.stop):
                own = fixed[rated.indices[rated.indptr[row] : rated.indptr[row + 1]]]
                if len(own):
                    system = gram + own.T @ own
                    system[diagonal] += shrinkage[row]
                    _, vector, failed = lapack.sposv(system, own.sum(axis=0))
                    if failed:
                        raise SettingError(
                            f"{self.name} has no solution with regularization={self.regularization:g} and "
                            f"unobserved={self.unobserved:g}; give a larger regularization"
                        )
                    solved[row] = vector

        in_threads(solve, blocks(rated.shape[0], self.factors**2))
        return solved

    def _shrinkage(self, counts: NDArray[Any], others: int) -> NDArray[np.float32]:
        """Return λ (|S| + α₀ n)^ν for each row, with n the number of rows on the other side."""
        scale = (counts + self.unobserved * others) ** self.exponent
        return (self.regularization * scale).astype(np.float32)

    def _loss(self, rated: Any, users: NDArray[np.float32], items: NDArray[np.float32]) -> float:
        """Return the objective divided by the number of ratings."""
        sides = [side.astype(np.float64) for side in (users, items)]
        total = self.unobserved * float(np.sum((sides[0].T @ sides[0]) * (sides[1].T @ sides[1])))
        for block in blocks(len(users), self.factors):
            part = rated[block]
            rows = np.repeat(np.arange(block.start, block.stop), np.diff(part.indptr))
            total += float(np.square(np.einsum("rf,rf->r", users[rows], items[part.indices]) - 1.0).sum())
        for side, counts, others in (
            (sides[0], np.diff(rated.indptr), len(items)),
            (sides[1], np.bincount(rated.indices, minlength=len(items)), len(users)),
        ):
            total += float(self._shrinkage(counts, others) @ np.square(side).sum(axis=1))
        return total / max(rated.nnz, 1)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float32]:
        return nan_for_untrained(self._users[users] @ self._items.T, self._item_counts, self._user_counts[users])

    def _score_pairs(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.asarray(np.einsum("pf,pf->p", self._users[users], self._items[items]))

    def _score_profiles(self, profiles: Any) -> NDArray[np.float32]:
        """Solve for the factors of each profile, with fixed item factors."""
        rated = ones_like(profiles)
        if self.threshold is not None:
            rated.data[profiles.data < self.threshold] = 0
            rated.eliminate_zeros()
        with blas_threads(1):
            folded = self._solved(rated, self._items)
        return nan_for_untrained(folded @ self._items.T, self._item_counts, np.diff(profiles.indptr))
