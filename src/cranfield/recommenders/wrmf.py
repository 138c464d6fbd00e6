"""WRMF: weighted matrix factorisation of implicit feedback (Hu, Koren and Volinsky 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.recommenders._sparse import nan_for_untrained, ones_like, rating_matrix
from cranfield.recommenders.factors import check_settled
from cranfield.recommenders.model import setting
from cranfield.recommenders.profiles import ProfileModel
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import compiled_loops, over_rows, read_only


@register("wrmf")
@dataclass
class WeightedFactors(ProfileModel):
    r"""Weighted matrix factorisation: factors fitted to all cells, with more weight on rated ones.

    .. math::
        \min \sum_{u, i} c_{ui} (t_{ui} - x_u \cdot y_i)^2
        + λ \Bigl(\sum_u \lVert x_u \rVert^2 + \sum_i \lVert y_i \rVert^2\Bigr), \qquad c_{ui} = 1 + α r_{ui}

    by alternating least squares, with a few steps of conjugate gradients for each system of equations (Takács, Pilászy
    and Tikk 2011). NaN for users and items without training ratings.

    Parameters
    ----------
    factors, iterations
        The length of the vectors, and how often both sides are solved.
    alpha, regularization
        α and λ.
    target
        The target of a rated cell: ``one`` (the original), or its ``rating``, as in RankSys.
    binary
        Whether every rating counts 1 in the confidence.
    steps
        Steps of conjugate gradients for each solution.
    start
        The initial factors are drawn uniformly from 0 to this. With a large α the start matters for many iterations;
        RankSys uses √(1/factors).
    seed
        Seed of the initial factors.
    """

    needs_positive: ClassVar[bool] = True

    factors: int = setting(50, low=1)
    iterations: int = setting(20, low=1)
    alpha: float = setting(10.0, low=0)
    regularization: float = setting(100.0, low=0)
    target: str = setting("one", choices=("one", "rating"))
    binary: bool = setting(True)
    steps: int = setting(3, low=1)
    start: float = setting(0.01, above=0)
    seed: int = setting(0, low=0)

    def _fit(self, train: Ratings) -> None:
        solve = compiled_loops(self.name).weighted_least_squares
        self._user_counts, self._item_counts = train.user_counts, train.item_counts
        by_user = rating_matrix(train)
        weight = ones_like(by_user) if self.binary else by_user
        by_item, weight_by_item = by_user.T.tocsr(), weight.T.tocsr()
        self._users, self._items = self._start(train)
        sides = (
            (self._users, self._items, *self._system(by_user, weight)),
            (self._items, self._users, *self._system(by_item, weight_by_item)),
        )
        ridge = self.regularization * np.eye(self.factors, dtype=np.float32)
        for _ in range(self.iterations):
            for solved, fixed, ratings, extra, pull in sides:
                gram = (fixed.T @ fixed + ridge).astype(np.float32)
                over_rows(
                    solve, range(len(solved)), len(train),
                    solved, fixed, gram, ratings.indptr, read_only(ratings.indices), extra, pull, self.steps,
                )  # fmt: skip
        check_settled(self.name, (self._users, self._items), alpha=self.alpha, regularization=self.regularization)

    def _start(self, train: Ratings) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        draw = stream(self.seed, "wrmf")
        shapes = (train.n_users, self.factors), (train.n_items, self.factors)
        users, items = ((draw.random(shape) * self.start).astype(np.float32) for shape in shapes)
        return users, items

    def _system(self, ratings: Any, weight: Any) -> tuple[Any, NDArray[np.float32], NDArray[np.float32]]:
        """Return c − 1 and c t at the positions of the ratings."""
        extra = self.alpha * weight.data
        target = ratings.data if self.target == "rating" else 1.0
        return ratings, extra.astype(np.float32), ((1 + extra) * target).astype(np.float32)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float32]:
        block = self._users[users] @ self._items.T
        return nan_for_untrained(block, self._item_counts, self._user_counts[users])

    def _score_profiles(self, profiles: Any) -> NDArray[np.float64]:
        """Solve exactly for the factors of each profile, with fixed item factors."""
        weight = ones_like(profiles) if self.binary else profiles
        _, extra, pull = self._system(profiles, weight)
        items = self._items.astype(np.float64)
        gram = items.T @ items + self.regularization * np.eye(self.factors)
        folded = np.zeros((profiles.shape[0], self.factors))
        for row in range(profiles.shape[0]):
            place = slice(profiles.indptr[row], profiles.indptr[row + 1])
            rated = items[profiles.indices[place]]
            system = gram + (rated * extra[place][:, None]).T @ rated
            # Without regularisation a short profile has many solutions; take the one with the smallest norm.
            folded[row] = np.linalg.lstsq(system, rated.T @ pull[place], rcond=None)[0]
        return nan_for_untrained(folded @ items.T, self._item_counts, np.diff(profiles.indptr))
