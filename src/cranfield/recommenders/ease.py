"""EASE: the closed-form linear item model (Steck 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.recommenders._sparse import nan_for_untrained, ones_like, rating_matrix, without_rounding_errors
from cranfield.recommenders.model import setting
from cranfield.recommenders.profiles import ProfileModel
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import blas_threads, need_memory


@register("ease")
@dataclass
class EmbarrassinglyShallow(ProfileModel):
    r"""Ridge regression of every item on all other items, solved in closed form.

    .. math::
        \min_B \lVert X - X B \rVert_F^2 + λ \lVert B \rVert_F^2 \;\text{s.t.}\; diag(B) = 0, \qquad
        B_{ij} = -P_{ij} / P_{jj} \; (i \ne j), \; P = (X^T X + λ I)^{-1}, \qquad s(u, \cdot) = x_u B

    It needs a dense items × items matrix, and raises an error at once if that does not fit into memory. NaN for users
    and items without training ratings.

    Parameters
    ----------
    l2
        λ.
    binary
        Whether every rating counts 1.
    """

    l2: float = setting(1000.0, above=0)
    binary: bool = setting(True)

    def _fit(self, train: Ratings) -> None:
        from scipy import linalg

        n_items = train.n_items
        # The Gram matrix, its inverse and the workspace of LAPACK.
        need_memory(
            self.name,
            3 * 8 * n_items**2,
            f"a dense matrix of {n_items:,} × {n_items:,} items",
            "use itemknn or slim, which keep only the nearest items",
        )
        ratings = rating_matrix(train)
        self._ratings = ones_like(ratings) if self.binary else ratings
        self._user_counts, self._item_counts = train.user_counts, train.item_counts
        gram = (self._ratings.T @ self._ratings).toarray()
        gram[np.diag_indices(n_items)] += self.l2
        with blas_threads(1):  # more threads change the last digits, and so the order of near ties
            try:
                factor = linalg.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
            except linalg.LinAlgError as error:
                raise SettingError(
                    f"l2={self.l2:g} of ease is too small for these ratings; give a larger one"
                ) from error
            inverse = linalg.cho_solve(factor, np.eye(n_items), overwrite_b=True, check_finite=False)
        inverse /= -np.diag(inverse).copy()
        inverse[np.diag_indices(n_items)] = 0
        self._weights = inverse

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._score_profiles(self._ratings[users])

    def _score_profiles(self, profiles: Any) -> NDArray[np.float64]:
        rows = ones_like(profiles) if self.binary else profiles
        block = without_rounding_errors(rows @ self._weights)
        return nan_for_untrained(block, self._item_counts, np.diff(rows.indptr))
