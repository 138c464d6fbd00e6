"""Latent tastes: what each user would think of every item, rated or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream

# Power of the exponential draws: it makes an item's tastes uneven, so that it mostly has one or two of them.
_CONCENTRATION = 2.0
# Statistics over all pairs are measured on this many, those of the first users.
_SAMPLE = 1 << 21
# Number of pairs per block.
_CELLS = 1 << 19


@dataclass(frozen=True, eq=False)
class Tastes:
    r"""Latent tastes of users and items, and the grades that follow from them.

    The score of a pair is

    .. math:: s_{ui} = \sqrt{\tau}\; p_u \cdot q_i + \sqrt{1 - \tau}\; z_i

    where :math:`p_u` is how much the user likes each taste (standard normal), :math:`q_i \ge 0`, of length 1, how much
    of each taste is in the item, and :math:`z_i` its general quality (standard normal), the same for all users.
    The grade of a pair is the number of ``cuts`` at or below its score, as an index of ``grades``.

    Parameters
    ----------
    users
        Users × tastes: :math:`p_u`.
    items
        Items × tastes: :math:`q_i`.
    quality
        The general quality of each item: :math:`z_i`.
    share
        τ, the share of the variance of the scores that is taste; the rest is quality.
    grades
        The grades, ascending.
    cuts
        The lowest score of each grade but the first.
    """

    users: NDArray[np.float64]
    items: NDArray[np.float64]
    quality: NDArray[np.float64]
    share: float
    grades: NDArray[np.float32]
    cuts: NDArray[np.float64]

    @classmethod
    def draw(
        cls,
        users: int,
        items: int,
        tastes: int,
        *,
        share: float,
        grades: NDArray[np.float64],
        shares: NDArray[np.float64],
        seed: int,
    ) -> Tastes:
        """Draw tastes, and choose the cuts so that the grades have the given shares over all pairs."""
        user_tastes = normal(stream(seed, "simulate.world", "user tastes").random((users, tastes)))
        mixed = -np.log1p(-stream(seed, "simulate.world", "item tastes").random((items, tastes)))
        mixed = mixed**_CONCENTRATION + 1e-12
        item_tastes = mixed / np.sqrt((mixed**2).sum(axis=1, keepdims=True))
        quality = normal(stream(seed, "simulate.world", "quality").random(items))
        uncut = cls(user_tastes, item_tastes, quality, share, grades.astype(np.float32), np.empty(0))
        sample = uncut.score(sample_users(users, items))
        cuts = np.quantile(sample, np.cumsum(shares)[:-1].clip(0.0, 1.0)) if len(shares) > 1 else np.empty(0)
        return cls(user_tastes, item_tastes, quality, share, uncut.grades, cuts)

    def score(self, users: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the scores of the given users for all items."""
        # One taste at a time rather than a matrix product, whose last bits depend on the shape of the block.
        weighted = np.sqrt(self.share) * self.users[users]
        scores = np.tile(np.sqrt(1.0 - self.share) * self.quality, (len(weighted), 1))
        for taste in range(weighted.shape[1]):
            scores += weighted[:, taste, None] * self.items[None, :, taste]
        return scores

    def pair_score(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the score of each pair of a user and an item."""
        scores = np.sqrt(1.0 - self.share) * self.quality[items]
        for taste in range(self.users.shape[1]):
            scores += np.sqrt(self.share) * self.users[users, taste] * self.items[items, taste]
        return scores

    def grade(self, scores: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return the grades of scores."""
        # Comparing with each of the few cuts is faster than searching for each score among them.
        places = np.zeros(scores.shape, dtype=np.int8)
        for cut in self.cuts:
            places += scores >= cut
        return np.asarray(self.grades[places])


def normal(uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn uniform draws into standard normal ones, by the inverse distribution function."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.maximum(uniform, 2.0**-54)))


def sample_users(users: int, items: int) -> NDArray[np.int64]:
    """Return the codes of the users that statistics over all pairs are measured on: everybody in a small world."""
    return np.arange(min(users, max(1, _SAMPLE // items)))


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Yield slices of rows that hold a bounded number of cells each."""
    step = max(1, _CELLS // max(1, columns))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
