"""How a world is observed: which pairs get a rating, with what probability, and when."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream

# Probabilities are multiples of this, so that sums of millions of them are exact.
_GRAIN = 2.0**-30
# Maximum number of Newton steps for the time of a row, and the tolerance of its expected size.
_STEPS, _NEAR = 200, 1e-10
_DAY = 86_400
_BEGIN = 946_684_800  # the year 2000, in seconds since 1970
_YEARS = 3


def rates(grades: NDArray[np.floating], exposure: NDArray[np.float64], relevance_bias: float) -> NDArray[np.float64]:
    r"""Return the rate :math:`w_{ui} = x_i\, e^{b\, r_{ui}}` at which each pair is met, up to a constant.

    :math:`x_i` is the item's exposure, :math:`r_{ui}` the true grade and :math:`b` the relevance bias.
    """
    if relevance_bias == 0:
        return np.tile(exposure, (len(grades), 1))
    liking = relevance_bias * grades.astype(np.float64)
    liking -= liking.max(axis=1, keepdims=True)  # so that no power is above 1
    return np.asarray(exposure * np.exp(liking))


def inclusion(weights: NDArray[np.float64], sizes: NDArray[np.integer]) -> NDArray[np.float64]:
    r"""Return the probability that each item is in a row's sample of the given size.

    An item is met at the rate of its weight, so within a time :math:`\tau_u` it is met with probability
    :math:`\pi_{ui} = 1 - e^{-\tau_u w_{ui}}`. The time of each row is chosen so that :math:`\sum_i \pi_{ui}` is its
    size.

    Examples
    --------
    >>> inclusion(np.array([[1.0, 1.0, 1.0, 1.0]]), np.array([1]))
    array([[0.25, 0.25, 0.25, 0.25]])
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
    interval as long as its probability. Points one apart, from a random start, choose the intervals they hit.

    Parameters
    ----------
    probabilities
        Rows × items; a row adds up to its size.
    sizes
        The number of items to draw in each row.
    draws
        Rows × (items + 1) uniform draws: the order of the items, and the start.
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
