"""Latent tastes, which say what each user would think of every item, and how some of the pairs are observed."""

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
# Probabilities are multiples of this, so that sums of millions of them are exact.
_GRAIN = 2.0**-30
# Maximum number of Newton steps for the time of a row, and the tolerance of its expected size.
_STEPS, _NEAR = 200, 1e-10
_DAY = 86_400
_BEGIN = 946_684_800  # the year 2000, in seconds since 1970
_YEARS = 3


@dataclass(frozen=True, eq=False)
class Tastes:
    r"""Latent tastes of users and items, and the grades that follow from them.

    The score of a pair is

    .. math:: s_{ui} = \sqrt{\tau}\; p_u \cdot q_i + \sqrt{1 - \tau}\; z_i

    where :math:`p_u` is how much the user likes each taste (standard normal), :math:`q_i \ge 0`, of length 1, how much
    of each taste is in the item, and :math:`z_i` its general quality (standard normal), the same for all users.
    The share :math:`\tau` of the variance of the scores is taste. The grade of a pair is the number of ``cuts`` at or
    below its score, as an index of ``grades``.
    """

    users: NDArray[np.float64]  # users × tastes: p_u
    items: NDArray[np.float64]  # items × tastes: q_i
    quality: NDArray[np.float64]  # z_i
    share: float  # τ
    grades: NDArray[np.float32]  # ascending
    cuts: NDArray[np.float64]  # the lowest score of each grade but the first

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


def rates(grades: NDArray[np.floating], exposure: NDArray[np.float64], relevance_bias: float) -> NDArray[np.float64]:
    """Return the rate at which each pair is met, up to a constant; see `world`."""
    if relevance_bias == 0:
        return np.tile(exposure, (len(grades), 1))
    liking = relevance_bias * grades.astype(np.float64)
    liking -= liking.max(axis=1, keepdims=True)  # so that no power is above 1
    return np.asarray(exposure * np.exp(liking))


def inclusion(weights: NDArray[np.float64], sizes: NDArray[np.integer]) -> NDArray[np.float64]:
    r"""Return the probability that each item is in a row's sample of the given size.

    The formula is that of `World.propensity`; the weights are the rates, and the time of each row is chosen here.
    """
    met = weights / weights.mean(axis=1, keepdims=True)
    items = met.shape[1]
    wanted = np.asarray(sizes, dtype=np.float64)
    time = wanted / items
    # The sum is concave in the time, so Newton steps from the left never overshoot the solution. A row that has
    # converged is not changed again, so its result does not depend on the other rows.
    rows = np.flatnonzero((wanted > 0) & (wanted < items))
    for _ in range(_STEPS):
        missed = np.exp(-time[rows, None] * met[rows])
        short = wanted[rows] - (items - missed.sum(axis=1))
        going = short > _NEAR * wanted[rows]
        rows = rows[going]
        if not len(rows):
            break
        time[rows] += short[going] / (missed[going] * met[rows]).sum(axis=1)
    probabilities = -np.expm1(-time[:, None] * met)
    probabilities[wanted >= items] = 1.0
    return probabilities


def systematic_sample(
    probabilities: NDArray[np.float64], sizes: NDArray[np.integer], draws: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Sample items in each row, each with its probability (to a millionth), and exactly as many as the row's size.

    Systematic sampling in random order (Hartley and Rao 1962): the items of a row are put in random order, each as an
    interval as long as its probability. Points one apart, from a random start, choose the intervals they hit. The
    ``draws`` are uniform, rows × (items + 1): the order of the items, and the start.
    """
    rows, items = probabilities.shape
    order = _random_order(draws[:, :items])
    wanted = np.asarray(sizes, dtype=np.float64)
    ends = np.cumsum(np.take_along_axis(_grained(probabilities, wanted), order, axis=1), axis=1)
    start = np.floor(draws[:, items:] / _GRAIN) * _GRAIN
    hits = np.minimum(np.floor(ends + start), wanted[:, None])
    chosen = np.zeros((rows, items), dtype=np.bool_)
    np.put_along_axis(chosen, order, np.diff(hits, axis=1, prepend=0.0) > 0, axis=1)
    return chosen


def _grained(probabilities: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round probabilities up to the grain, so that they add up to the size of their row or a little more."""
    grained = np.minimum(np.ceil(probabilities / _GRAIN) * _GRAIN, 1.0)
    # If the sum is still too small, the least certain item of the row takes the rest.
    missing = np.maximum(sizes - grained.sum(axis=1), 0.0)
    for row in np.flatnonzero(missing):
        grained[row, np.argmin(np.abs(grained[row] - 0.5))] += missing[row]
    return grained


def _random_order(draws: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return a random order of each row's positions: draws with the position in their last bits, sorted."""
    places = draws.shape[1]
    bits = max(1, (places - 1).bit_length())
    keys = (draws * 2.0 ** (62 - bits)).astype(np.int64) << bits
    keys |= np.arange(places)
    keys.sort(axis=1)
    return keys & ((1 << bits) - 1)


def times_of(
    users: NDArray[np.integer], items: NDArray[np.integer], n_users: int, n_items: int, drift: float, seed: int
) -> NDArray[np.int64]:
    """Return when each rating was given, in seconds since 1970, within three years from 2000.

    A user is present from a random arrival to a random departure. Within that time ratings are at random moments if
    ``drift`` is 0, and in the order of the items' random release dates if it is 1, so that popularity changes with
    time.
    """
    arrival, stay = stream(seed, "simulate.world", "presence").random((2, n_users))
    release = stream(seed, "simulate.world", "release").random(n_items)
    draws = stream(seed, "simulate.world", "times").random(len(users))
    place = drift * release[items] + (1.0 - drift) * draws
    moment = arrival[users] + (1.0 - arrival[users]) * stay[users] * place
    return _BEGIN + np.floor(_YEARS * 365 * _DAY * moment).astype(np.int64)
