"""PLSA and LDA: users as mixtures of topics, topics as distributions over items."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.data import Ratings
from cranfield.recommenders.factors import average_profile
from cranfield.recommenders.matrices import nan_for_empty, rating_matrix, with_data
from cranfield.recommenders.model import Model, ProfileModel, setting
from cranfield.recommenders.registry import register
from cranfield.recommenders.relevance_models import without_zeros
from cranfield.recommenders.work import compiled_loops, over_rows, read_only


class _Topics(Model):
    r"""The base of PLSA and LDA: θ_uz = p(z|u), φ_zi = p(i|z), and the expected counts of topics.

    The expected counts of a topic,

    .. math:: n_{uz} = \sum_i w_{ui} θ_{uz} φ_{zi}, \qquad n_{zi} = \sum_u w_{ui} θ_{uz} φ_{zi}, \qquad
              w_{ui} = r_{ui} / \sum_z θ_{uz} φ_{zi}

    need no more memory than the ratings.
    """

    needs_positive: ClassVar[bool] = True

    topics: int | None
    iterations: int
    binary: bool
    seed: int

    def _fit(self, train: Ratings) -> None:
        draw = stream(self.seed, self.name)
        self._topics = topics = average_profile(train, at_most=50) if self.topics is None else self.topics
        loops = compiled_loops(self.name)
        explain_users = partial(over_rows, loops.explain_users, range(train.n_users), len(train))
        explain_items = partial(over_rows, loops.explain_items, range(train.n_items), len(train))
        ratings = without_zeros(rating_matrix(train))
        counts = (np.ones(len(ratings.data)) if self.binary else ratings.data).astype(np.float32)
        # The positions of an item's ratings among those of the users.
        by_item = with_data(ratings, np.arange(len(ratings.data), dtype=np.int64)).T.tocsr()
        weights = np.empty_like(counts)
        # Initial expected counts: every rating is assigned to the topics at random.
        of_users = (np.diff(ratings.indptr)[:, None] * _random_shares(draw, train.n_users, topics)).astype(np.float32)
        of_items = (np.diff(by_item.indptr)[:, None] * _random_shares(draw, train.n_items, topics)).astype(np.float32)
        with progress(f"Fitting {self.name}", total=self.iterations, unit="iterations") as bar:
            for _ in range(self.iterations):
                theta, phi = self._mixtures(of_users), self._distributions(of_items)
                explain_users(ratings.indptr, read_only(ratings.indices), counts, theta, phi, weights, of_users)
                explain_items(by_item.indptr, by_item.indices, by_item.data, weights, theta, phi, of_items)
                bar.advance()
        self._theta, self._phi = self._point_estimates(of_users, of_items)

    def _mixtures(self, of_users: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return θ, or what is used in its place while fitting, from the counts of users × topics."""
        raise NotImplementedError

    def _distributions(self, of_items: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return φ, or what is used in its place while fitting, from the counts of items × topics."""
        raise NotImplementedError

    def _point_estimates(self, of_users: NDArray[np.float32], of_items: NDArray[np.float32]) -> tuple[Any, Any]:
        return self._mixtures(of_users), self._distributions(of_items)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float32]:
        scores: NDArray[np.float32] = self._theta[users] @ self._phi.T
        return scores


@register("plsa")
class ProbabilisticLatentSemantics(_Topics, ProfileModel):
    r"""PLSA, fitted by expectation maximisation (Hofmann 2004).

    .. math:: s(u, i) = \sum_z p(z \mid u)\, p(i \mid z), \qquad
              p(z \mid u) \propto n_{uz}, \quad p(i \mid z) \propto n_{zi}

    NaN for users and items without training ratings.

    Parameters
    ----------
    topics, iterations
        The number of topics, and of passes. None for as many topics as a user has training ratings on average, at most
        50: with more, a user's topics overfit the few ratings.
    binary
        Whether every rating counts 1 instead of its value.
    seed
        Fixes the start.
    """

    topics: int | None = setting(None, low=1, or_none=int)
    iterations: int = setting(300, low=1)
    binary: bool = setting(False)
    seed: int = setting(0, low=0)

    def _mixtures(self, of_users: NDArray[np.float32]) -> NDArray[np.float32]:
        return _shares(of_users, axis=1)

    def _distributions(self, of_items: NDArray[np.float32]) -> NDArray[np.float32]:
        return _shares(of_items, axis=0)

    def _score_profiles(self, profiles: Any) -> NDArray[np.float32]:
        """Find the topics of each profile by expectation maximisation, with fixed topics."""
        rows = without_zeros(profiles)
        explain = partial(over_rows, compiled_loops(self.name).explain_users, range(rows.shape[0]), rows.nnz)
        counts = (np.ones(len(rows.data)) if self.binary else rows.data).astype(np.float32)
        theta = np.full((rows.shape[0], self._topics), 1 / self._topics, dtype=np.float32)
        gained, weights = np.empty_like(theta), np.empty_like(counts)
        for _ in range(self.iterations):
            explain(rows.indptr, read_only(rows.indices), counts, theta, self._phi, weights, gained)
            theta = self._mixtures(gained)
        return nan_for_empty(theta @ self._phi.T, rows)


@register("lda")
class LatentDirichlet(_Topics):
    r"""LDA, fitted by variational Bayes (Blei, Ng and Jordan 2003).

    With γ_uz = α + n_uz and λ_zi = β + n_zi, the expected counts are taken with
    exp(ψ(γ_uz) − ψ(Σ_z γ_uz)) for θ and exp(ψ(λ_zi) − ψ(Σ_i λ_zi)) for φ; then

    .. math:: s(u, i) = \sum_z \frac{γ_{uz}}{\sum_y γ_{uy}} \frac{λ_{zi}}{\sum_j λ_{zj}}

    Each rating is a word, and its value is the number of occurrences. NaN for users and items without training ratings.

    Parameters
    ----------
    topics, iterations
        As of ``plsa``.
    alpha, beta
        The Dirichlet priors of a user's topics and of a topic's items.
    binary
        Whether every rating counts 1 instead of its value.
    seed
        Fixes the start.
    """

    topics: int | None = setting(None, low=1, or_none=int)
    iterations: int = setting(100, low=1)
    alpha: float = setting(0.3, above=0, high=1e9)
    beta: float = setting(1.0, above=0, high=1e9)
    binary: bool = setting(False)
    seed: int = setting(0, low=0)

    def _mixtures(self, of_users: NDArray[np.float32]) -> NDArray[np.float32]:
        return _geometric_mean(self.alpha + of_users, axis=1)

    def _distributions(self, of_items: NDArray[np.float32]) -> NDArray[np.float32]:
        return _geometric_mean(self.beta + of_items, axis=0)

    def _point_estimates(self, of_users: NDArray[np.float32], of_items: NDArray[np.float32]) -> tuple[Any, Any]:
        gamma, lambda_ = self.alpha + of_users, self.beta + of_items
        return gamma / gamma.sum(axis=1, keepdims=True), lambda_ / lambda_.sum(axis=0)


def _shares(counts: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    """Return the counts divided by their sums along an axis."""
    shares = counts / np.maximum(counts.sum(axis=axis, keepdims=True), np.float32(1e-30))
    # Vanishing shares would become denormal numbers, which processors multiply very slowly.
    shares[shares < 1e-15] = 0
    return shares


def _geometric_mean(parameters: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    """Return exp(E[log p]) of Dirichlet distributions along an axis."""
    from scipy.special import digamma

    total = parameters.sum(axis=axis, keepdims=True, dtype=np.float64)
    mean: NDArray[np.float32] = np.exp(digamma(parameters.astype(np.float64)) - digamma(total)).astype(np.float32)
    return mean


def _random_shares(draw: np.random.Generator, rows: int, topics: int) -> NDArray[np.float64]:
    shares = 0.5 + draw.random((rows, topics))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
