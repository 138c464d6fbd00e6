"""RM1 and RM2: relevance-based language models (Parapar et al. 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.recommenders._sparse import dense_product, ones_like, rating_matrix, row_of_entries, with_data
from cranfield.recommenders.language_models import likely_neighbours, without_zeros
from cranfield.recommenders.model import Model, setting
from cranfield.recommenders.neighbourhood import cosine_neighbours
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import blocks, each

_SMOOTHINGS = ("jm", "dirichlet", "absolute", "additive")
_JELINEK_MERCER_OF_NEIGHBOURS = 0.9


@dataclass(frozen=True)
class _UserModels:
    """Smoothed models of the users, p(i|v) = seen_vi + mass_v · background_i."""

    seen: Any
    mass: NDArray[np.float64]
    background: NDArray[np.float64]


def _smoothed(ratings: Any, smoothing: str, amount: float) -> _UserModels:
    """Return p(i|v) under a smoothing method, with |v| the sum and n_v the number of v's ratings.

    ===========  ====================================================
    jm           (1 − a) r_vi / |v| + a p(i|C)
    dirichlet    (r_vi + a p(i|C)) / (|v| + a)
    absolute     (max(r_vi − a, 0) + a n_v p(i|C)) / |v|
    additive     (r_vi + a) / (|v| + a |I|)
    ===========  ====================================================
    """
    sums = np.asarray(ratings.sum(axis=1)).reshape(-1)
    size = np.where(sums > 0, sums, 1)
    counts = np.diff(ratings.indptr)
    background = np.asarray(ratings.sum(axis=0)).reshape(-1) / (sums.sum() or 1)
    if smoothing == "jm":
        kept, scale, mass = (1 - amount) * ratings.data, size, np.full(len(size), amount)
    elif smoothing == "dirichlet":
        kept, scale, mass = ratings.data, size + amount, amount / (size + amount)
    elif smoothing == "absolute":
        kept, scale, mass = np.maximum(ratings.data - amount, 0), size, amount * counts / size
    else:
        scale = size + amount * ratings.shape[1]
        kept, mass, background = ratings.data, amount / scale, np.ones(ratings.shape[1])
    return _UserModels(with_data(ratings, kept / scale[row_of_entries(ratings)]), mass, background)


@dataclass
class _RelevanceModel(Model):
    """The base of RM1 and RM2: the neighbours V_u and the smoothed models of the users.

    Parameters
    ----------
    k
        The number of neighbours.
    neighbours
        How they are found: by the ``cosine``, as published, or by query likelihood (``ql``), which works better.
    smoothing, amount
        ``jm``, ``dirichlet``, ``absolute`` (discounting) or ``additive``, and its parameter.
    """

    needs_positive: ClassVar[bool] = True

    k: int = setting(100, low=1)
    neighbours: str = setting("cosine", choices=("cosine", "ql"))
    smoothing: str = setting("additive", choices=_SMOOTHINGS)
    # In single precision, smaller amounts would be 0.
    amount: float = setting(0.01, low=1e-30)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.smoothing == "jm" and self.amount >= 1:
            raise SettingError(
                f"amount={self.amount} of {self.name} is out of range; with smoothing=jm give one below 1"
            )

    def _fit(self, train: Ratings) -> None:
        self._ratings = without_zeros(rating_matrix(train))
        if self.neighbours == "cosine":
            near = cosine_neighbours(self._ratings, self.k)
        else:
            near = likely_neighbours(self._ratings, self.k, _JELINEK_MERCER_OF_NEIGHBOURS)
        self._neighbours = near
        self._models = _smoothed(self._ratings, self.smoothing, self.amount)


@register("rm1")
@dataclass
class RelevanceModel1(_RelevanceModel):
    r"""RM1: models of the neighbours, weighted by how well each explains the whole profile.

    .. math:: p(i \mid R_u) \propto \sum_{v \in V_u} p(v)\, p(i \mid v) \prod_{j \in I_u} p(j \mid v)

    with uniform p(v). NaN for an item that no neighbour rated. The defaults reproduce the published run on
    MovieLens 1M.
    """

    k: int = setting(150, low=1)
    smoothing: str = setting("absolute", choices=_SMOOTHINGS)
    amount: float = setting(0.1, above=0)

    def _fit(self, train: Ratings) -> None:
        super()._fit(train)
        self._weights = _profile_likelihoods(self._ratings, self._neighbours, self._models)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        models, weights = self._models, self._weights[users]
        seen = dense_product(weights, models.seen)
        block = seen + np.outer(weights @ models.mass, models.background)
        block[dense_product(ones_like(weights), self._ratings) == 0] = np.nan
        return block


def _profile_likelihoods(ratings: Any, neighbours: Any, models: _UserModels) -> Any:
    """Return w_v = Π_{j ∈ I_u} p(j|v), relative to the largest of each user, at the positions of the neighbours."""
    profiles = ones_like(ratings)
    # log p(j|v) = log(mass_v background_j) + log(1 + seen_vj / (mass_v background_j)): a sum over the profile that is
    # the same for all neighbours except for |I_u| log mass_v, and a sparse part over the items that v also rated.
    floor = models.mass[row_of_entries(models.seen)] * models.background[models.seen.indices]
    gain = with_data(models.seen, np.log1p(models.seen.data / floor)).T.tocsr()
    log_mass = np.log(np.where(models.mass > 0, models.mass, 1))
    sizes = np.diff(ratings.indptr)

    def one_block(block: slice) -> NDArray[np.float64]:
        fit = dense_product(profiles[block], gain)
        rows = np.arange(block.start, block.stop)
        entries = slice(neighbours.indptr[block.start], neighbours.indptr[block.stop])
        row = np.repeat(rows, np.diff(neighbours.indptr[block.start : block.stop + 1]))
        column = neighbours.indices[entries]
        return np.asarray(fit[row - block.start, column] + sizes[row] * log_mass[column])

    count = ratings.shape[0]
    logs = np.concatenate(each(one_block, blocks(count, count), "Weighing neighbours"))
    starts = neighbours.indptr[:-1][np.diff(neighbours.indptr) > 0]
    best = np.maximum.reduceat(logs, starts) if len(starts) else logs
    lengths = np.diff(neighbours.indptr)
    return with_data(neighbours, np.exp(logs - np.repeat(best, lengths[lengths > 0])))


@register("rm2")
@dataclass
class RelevanceModel2(_RelevanceModel):
    r"""RM2: each profile item is explained by neighbours who also explain the target item.

    .. math:: p(i \mid R_u) \propto p(i) \prod_{j \in I_u} \sum_{v \in V_u} \frac{p(i \mid v) p(v)}{p(i)} p(j \mid v)

    with uniform p(v) and p(i). The score is the logarithm without its constant terms,
    Σ_{j ∈ I_u} log Σ_{v ∈ V_u} p(i|v) p(j|v). NaN for an item that no neighbour rated.
    """

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        block = np.full((len(users), self._ratings.shape[1]), np.nan)
        for row, user in enumerate(users):
            self._score_one(int(user), block[row])
        return block

    def _score_one(self, user: int, row: NDArray[np.float64]) -> None:
        ratings, models = self._ratings, self._models
        near = self._neighbours.indices[self._neighbours.indptr[user] : self._neighbours.indptr[user + 1]]
        profile = ratings.indices[ratings.indptr[user] : ratings.indptr[user + 1]]
        if not len(near) or not len(profile):
            return
        seen = models.seen[near]
        # Targets are the items that a neighbour rated. Besides these, only the columns of the profile are needed.
        rated, place = np.unique(seen.indices, return_inverse=True)
        columns = np.union1d(rated, profile)
        dense = np.outer(models.mass[near], models.background[columns])
        rater = row_of_entries(seen)
        dense[rater, np.searchsorted(columns, seen.indices)] += seen.data
        # Items with the same ratings by the neighbours are scored once, since BLAS might round each differently.
        mark = np.sin(1.0 + np.arange(len(near)))
        pattern = np.bincount(place, seen.data * mark[rater]) + models.background[rated]
        _, first, alike = np.unique(pattern, return_index=True, return_inverse=True)
        targets = np.searchsorted(columns, rated[first])
        # Single precision is enough once probabilities are near 1.
        dense = (dense * (1 / dense[:, targets].max())).astype(np.float32)
        together = dense[:, targets].T @ dense[:, np.searchsorted(columns, profile)]
        np.log(together, out=together)
        row[rated] = together.sum(axis=1, dtype=np.float64)[alike]
