"""Models of relevance: language models (LM-WSR, RM1, RM2, UIR-Item), and feedback by Rocchio, RSV, CHI2 and KLD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.recommenders.matrices import (
    cosine_neighbours,
    dense_product,
    nearest_rows,
    ones_like,
    product_or_nan,
    rating_matrix,
    row_of_entries,
    row_products,
    unit_rows,
    with_data,
)
from cranfield.recommenders.model import Model, setting
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import blocks, each


def likely_neighbours(rows: Any, k: int, smoothing: float) -> Any:
    r"""Return the ``k`` rows that most likely generated each row, as a sparse matrix of their cosines.

    With rows as documents and Jelinek-Mercer smoothing by λ, the query likelihood ranks like

    .. math::
        QL'(u, v) = \sum_{i \in I_u \cap I_v} r_{ui}
                    \log \Bigl(1 + \frac{1 - λ}{λ} \frac{r_{vi} / \lvert v \rvert}{p(i \mid C)}\Bigr)
    """
    unit = unit_rows(rows)
    sizes = np.asarray(rows.sum(axis=1)).reshape(-1)
    collection = np.asarray(rows.sum(axis=0)).reshape(-1) / (rows.sum() or 1)
    share = rows.data / sizes[row_of_entries(rows)]
    documents = with_data(rows, np.log1p((1 - smoothing) / smoothing * share / collection[rows.indices]))
    return nearest_rows(rows.shape[0], k, row_products(rows, documents), weight=row_products(unit, unit))


@dataclass
class _LikelyNeighbours(Model):
    """The base of both directions: neighbours by query likelihood, and the ratings other than 0."""

    needs_positive: ClassVar[bool] = True

    k: int = setting(100, low=1)
    smoothing: float = setting(0.9, above=0, below=1)


@register("lm-wsr-ub")
class LanguageModelUsers(_LikelyNeighbours):
    r"""LM-WSR-UB: ratings of the users whose profiles best explain the profile of the user.

    .. math:: s(u, i) = \sum_{v \in V_u} cos(u, v) r_{vi}

    V_u are the k users with the largest query likelihood (`likely_neighbours`). NaN if none of them rated i.

    Parameters
    ----------
    k
        The number of neighbours.
    smoothing
        λ of Jelinek-Mercer: the weight of the collection.
    """

    def _fit(self, train: Ratings) -> None:
        self._ratings = without_zeros(rating_matrix(train))
        self._neighbours = likely_neighbours(self._ratings, self.k, self.smoothing)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return product_or_nan(self._neighbours[users], self._ratings)


@register("lm-wsr-ib")
class LanguageModelItems(_LikelyNeighbours):
    r"""LM-WSR-IB: the user's ratings of the items whose raters best explain those of the target item.

    .. math:: s(u, i) = \sum_{j \in J_i \cap I_u} cos(i, j) r_{uj}

    J_i are the k items with the largest query likelihood for the target i, with items as documents and users as terms
    (`likely_neighbours`). NaN if the user rated none of them.

    Parameters
    ----------
    k, smoothing
        As of ``lm-wsr-ub``.
    """

    def _fit(self, train: Ratings) -> None:
        self._ratings = without_zeros(rating_matrix(train))
        self._weights = likely_neighbours(self._ratings.T.tocsr(), self.k, self.smoothing).T.tocsr()

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return product_or_nan(self._ratings[users], self._weights)


def without_zeros(ratings: Any) -> Any:
    """Return the ratings without those of value 0, which have no weight."""
    if (ratings.data == 0).any():
        ratings = ratings.copy()
        ratings.eliminate_zeros()
    return ratings


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
    """The base of RM1 and RM2: the neighbours V_u and the smoothed models of the users."""

    needs_positive: ClassVar[bool] = True

    k: int = setting(100, low=1)
    # How they are found: by the cosine, as published, or by query likelihood, which works better.
    neighbours: str = setting("cosine", choices=("cosine", "ql"))
    smoothing: str = setting("additive", choices=_SMOOTHINGS)
    # The parameter of the smoothing. In single precision, smaller amounts would be 0.
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
    fits = row_products(profiles, with_data(models.seen, np.log1p(models.seen.data / floor)))
    log_mass = np.log(np.where(models.mass > 0, models.mass, 1))
    sizes = np.diff(ratings.indptr)

    def one_block(block: slice) -> NDArray[np.float64]:
        fit = fits(block)
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


@register("uir")
class UserItemRelevance(Model):
    r"""The popularity of the item, increased by each profile item that often occurs with it.

    .. math::
        s(u, i) = \log P(i) + \sum_{b \in I_u,\, c(b, i) > 0}
                  \log \Bigl(1 + \frac{(1 - λ)\, c(b, i) / c(i)}{λ\, P(b)}\Bigr), \qquad P(i) = c(i) / \sum_j c(j)

    c(i) counts the raters of i and c(b, i) those of both. NaN for an item without training ratings.

    Parameters
    ----------
    rest
        1 − λ, the weight of the co-occurrences. The default comes within 1e-4 of the published run on MovieLens 1M,
        which is close to popularity; a larger weight favours rare items.
    """

    rest: float = setting(1e-7, above=0, below=1)

    def _fit(self, train: Ratings) -> None:
        from scipy import sparse

        self._rated = rating_matrix(train, binary=True)
        counts = train.item_counts.astype(np.float64)
        share = counts / counts.sum()
        raters = self._rated.T.tocsr()
        odds = self.rest / (1 - self.rest)

        def one_block(block: slice) -> Any:
            together = (raters[block] @ self._rated).tocsr()
            row = np.repeat(np.arange(block.start, block.stop), np.diff(together.indptr))
            # Single precision is enough, since these corrections are small compared with log P(i).
            data = np.log1p(odds * together.data / counts[together.indices] / share[row]).astype(np.float32)
            return sparse.csr_array((data, together.indices.astype(np.int32), together.indptr), shape=together.shape)

        pieces = each(one_block, blocks(train.n_items, train.n_items), "Counting co-occurrences")
        self._gains = sparse.vstack(pieces, format="csr")
        with np.errstate(divide="ignore"):
            self._prior = np.where(counts > 0, np.log(share), np.nan)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(self._prior + dense_product(self._rated[users], self._gains))

    def _score_new_users(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.tile(self._prior, (len(users), 1))


Values = NDArray[np.float64]


@dataclass
class _Feedback(Model):
    r"""Pseudo-relevance feedback: how much more the neighbours V_u like an item than the collection C does.

    .. math::
        p(i \mid V) = \frac{\sum_{v \in V} r_{vi}}{\sum_{v \in V} \sum_j r_{vj}}, \qquad
        p_n(i \mid V) = p(i \mid V) / \lvert V \rvert

    V_u are the k users nearest to u by the cosine (Valcarce et al. 2016). An item that no neighbour rated has no score.
    """

    needs_positive: ClassVar[bool] = True

    k: int = setting(200, low=1)

    def _fit(self, train: Ratings) -> None:
        self._ratings = rating_matrix(train)
        self._neighbours = ones_like(cosine_neighbours(self._ratings, self.k))
        sums = np.asarray(self._ratings.sum(axis=0)).reshape(-1)
        total = sums.sum()
        self._collection: Values = sums / (total if total else 1) / train.n_users

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        members = self._neighbours[users]
        sums: Any = (members @ self._ratings).tocsr()
        entries = np.diff(sums.indptr)
        size = np.repeat(np.diff(members.indptr), entries)
        share = sums.data / np.repeat(np.asarray(sums.sum(axis=1)).reshape(-1), entries)
        block = np.full(sums.shape, np.nan)
        scores = self._weigh(sums.data / size, share, share / size, self._collection[sums.indices])
        block[np.repeat(np.arange(len(users)), entries), sums.indices] = scores
        return block

    def _weigh(self, mean: Values, share: Values, likelihood: Values, collection: Values) -> Values:
        """Return the scores of items, given Σ_v r_vi / |V_u|, p(i|V_u), p_n(i|V_u) and p_n(i|C)."""
        raise NotImplementedError


@register("rw")
class RocchioWeights(_Feedback):
    r"""Rocchio's Weights: the mean rating of the neighbours, with missing ratings counted as 0.

    .. math:: RW(u, i) = \sum_{v \in V_u} r_{vi} / \lvert V_u \rvert
    """

    def _weigh(self, mean: Values, share: Values, likelihood: Values, collection: Values) -> Values:  # noqa: ARG002
        return mean


@register("rsv")
class RobertsonSelectionValue(_Feedback):
    r"""Robertson Selection Value; for each user it ranks as Rocchio's Weights does.

    .. math:: RSV(u, i) = \sum_{v \in V_u} \frac{r_{vi}}{\lvert V_u \rvert} p(i \mid V_u)
    """

    def _weigh(self, mean: Values, share: Values, likelihood: Values, collection: Values) -> Values:  # noqa: ARG002
        return np.asarray(mean * share)


@register("chi2")
class ChiSquared(_Feedback):
    r"""Chi-squared of the neighbours' normalised likelihood against the collection's.

    .. math:: CHI2(u, i) = \frac{(p_n(i \mid V_u) - p_n(i \mid C))^2}{p_n(i \mid C)}
    """

    def _weigh(self, mean: Values, share: Values, likelihood: Values, collection: Values) -> Values:  # noqa: ARG002
        return np.asarray((likelihood - collection) ** 2 / collection)


@register("kld")
class KullbackLeibler(_Feedback):
    r"""Kullback-Leibler divergence of the neighbours' normalised likelihood from the collection's.

    .. math:: KLD(u, i) = p_n(i \mid V_u) \log \frac{p_n(i \mid V_u)}{p_n(i \mid C)}
    """

    def _weigh(self, mean: Values, share: Values, likelihood: Values, collection: Values) -> Values:  # noqa: ARG002
        return np.asarray(likelihood * np.log(likelihood / collection))
