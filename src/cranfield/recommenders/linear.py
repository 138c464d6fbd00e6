"""Linear item models: PureSVD, EASE and SLIM."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._settings import available_memory
from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.data import Ratings, RatingScale
from cranfield.recommenders.factors import average_profile
from cranfield.recommenders.matrices import (
    cosine_neighbours,
    nan_for_empty,
    ones_like,
    product_or_nan,
    rating_matrix,
    without_rounding_errors,
)
from cranfield.recommenders.model import ProfileModel, setting
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import blas_threads, compiled_loops, need_memory, over_rows


@register("puresvd")
class PureSVD(ProfileModel):
    r"""The user's ratings projected on the f leading right singular vectors of the rating matrix.

    .. math:: R \approx U Σ Q^T, \qquad s(u, \cdot) = r_u Q Q^T

    Missing ratings count as 0. NaN for users and items without training ratings.

    Parameters
    ----------
    factors
        f; None for the average number of training ratings per user, at most 30, which reproduces the published run on
        MovieLens 1M. If a user has fewer ratings than factors, the list is little better than chance.
    binary
        Whether every rating counts 1.
    """

    factors: int | None = setting(None, low=1, or_none=int)
    binary: bool = setting(False)

    def _fit(self, train: Ratings) -> None:
        self._ratings = rating_matrix(train, binary=self.binary)
        self._factors = average_profile(train, at_most=30) if self.factors is None else self.factors
        self._items = np.ascontiguousarray(self._vectors().T)

    def _vectors(self) -> NDArray[np.float64]:
        """Return the leading right singular vectors, one per row."""
        from scipy.sparse.linalg import ArpackError, svds

        if not self._ratings.data.any():
            return np.zeros((1, self._ratings.shape[1]))
        least = min(self._ratings.shape)
        if self._factors >= least:
            return np.asarray(np.linalg.svd(self._ratings.toarray(), full_matrices=False)[2][: self._factors])

        def found(start: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(svds(self._ratings, k=self._factors, v0=start, return_singular_vectors="vh")[2])

        # A fixed start makes the vectors reproducible.
        try:
            return found(np.ones(least))
        except ArpackError:  # a vector of ones fails if the ratings sum to 0
            return found(stream(0, "puresvd").random(least))

    def _score_profiles(self, profiles: Any) -> NDArray[np.float64]:
        rows = ones_like(profiles) if self.binary else profiles
        block = without_rounding_errors((rows @ self._items) @ self._items.T)
        return nan_for_empty(block, rows)


@register("ease")
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
        need_memory(self.name, n_items, 3, "use itemknn or slim, which keep only the nearest items")
        self._ratings = rating_matrix(train, binary=self.binary)
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

    def _score_profiles(self, profiles: Any) -> NDArray[np.float64]:
        rows = ones_like(profiles) if self.binary else profiles
        block = without_rounding_errors(rows @ self._weights)
        return nan_for_empty(block, rows)


# Number of columns solved between updates of the progress bar.
_COLUMNS = 256


@register("slim")
class SparseLinear(ProfileModel):
    r"""Each item as a sparse, non-negative combination of the others.

    .. math::
        \min_W \tfrac12 \lVert A - A W \rVert_F^2 + \tfrac{β}{2} \lVert W \rVert_F^2 + λ \lVert W \rVert_1
        \quad\text{s.t.}\quad W \ge 0,\; diag(W) = 0, \qquad s(u, \cdot) = a_u W

    by coordinate descent, separately for each column. NaN if no item of the user has a weight for the target.

    Parameters
    ----------
    l1, l2
        λ and β; None for 0.35 and 150 times the mean squared entry of A, which suits ratings of any scale.
    neighbours
        Number of items per column, the nearest by the cosine (fsSLIM); None for all items, which needs a dense matrix
        of items × items.
    binary
        Whether every rating counts 1; None to do so only if ratings are counts, some of them above 10.
    sweeps, tolerance
        The descent of a column ends after this many sweeps, or when no weight changes by more than the tolerance.
    """

    l1: float | None = setting(None, low=0, or_none=float)
    l2: float | None = setting(None, low=0, or_none=float)
    neighbours: int | None = setting(200, low=1, or_none=int)
    binary: bool | None = setting(None, or_none=bool)
    sweeps: int = setting(100, low=1)
    tolerance: float = setting(1e-4, above=0)

    def _fit(self, train: Ratings) -> None:
        loops = compiled_loops(self.name)
        self._binary = RatingScale.of(train.values).are_counts if self.binary is None else self.binary
        self._ratings = rating_matrix(train, binary=self._binary)
        square = float(np.square(self._ratings.data).mean())
        self._l1 = 0.35 * square if self.l1 is None else self.l1
        self._l2 = 150 * square if self.l2 is None else self.l2
        if self.neighbours is None:
            need_memory(self.name, train.n_items, 2, "restrict it, as in slim(neighbours=200)")
            self._weights = self._fit_whole(loops)
        else:
            self._weights = self._fit_near(loops, self.neighbours)

    @property
    def _settings(self) -> tuple[float, float, int, float]:
        """The settings as floats, since integers would compile the loop again."""
        return float(self._l1), float(self._l2), self.sweeps, float(self.tolerance)

    def _fit_whole(self, loops: Any) -> Any:
        from scipy import sparse

        gram = (self._ratings.T @ self._ratings).toarray()
        count = len(gram)
        pieces = []
        with progress("Fitting slim", total=count, unit="items") as bar:
            for first in range(0, count, _COLUMNS):
                weights = np.zeros((min(_COLUMNS, count - first), count))
                rows = range(len(weights))
                over_rows(loops.slim_whole, rows, self._ratings.nnz, gram, first, self._settings, weights)
                pieces.append(sparse.csr_array(weights))
                bar.advance(len(weights))
        return sparse.vstack(pieces, format="csr").T.tocsr()

    def _fit_near(self, loops: Any, k: int) -> Any:
        from scipy import sparse

        raters = self._ratings.T.tocsr()
        near = _padded(cosine_neighbours(raters, k), k)
        weights = np.zeros(near.shape)
        count = len(near)
        # The Gram matrix of a small catalogue is cheap; that of a large one does not fit into memory.
        whole = 8 * count**2 < available_memory() / 4 and count <= 20_000
        loop = loops.slim_near if whole else loops.slim_sparse
        sparse_items = (raters.indptr, raters.indices, raters.data, raters.shape[1])
        items = ((raters @ self._ratings).toarray(),) if whole else sparse_items
        with progress("Fitting slim", total=count, unit="items") as bar:
            for first in range(0, count, _COLUMNS):
                rows = range(first, min(first + _COLUMNS, count))
                over_rows(loop, rows, raters.nnz, *items, near, self._settings, weights)
                bar.advance(len(rows))
        target, place = np.nonzero(weights)
        return sparse.csr_array((weights[target, place], (near[target, place], target)), shape=(count, count))

    def _score_profiles(self, profiles: Any) -> NDArray[np.float64]:
        return product_or_nan(ones_like(profiles) if self._binary else profiles, self._weights)


def _padded(neighbours: Any, k: int) -> NDArray[np.int64]:
    """Return the neighbours of each row as a matrix padded with −1."""
    sizes = np.diff(neighbours.indptr)
    padded = np.full((len(sizes), max(1, min(k, int(sizes.max(initial=1))))), -1, dtype=np.int64)
    padded[np.arange(padded.shape[1]) < sizes[:, None]] = neighbours.indices
    return padded
