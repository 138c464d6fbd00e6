"""The permutation distribution by counting every sum (meet in the middle)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield.comparisons.sample import ROUNDING, Floats

# If all sums are either within rounding of each other or this many times further apart, ties are unambiguous.
_CLEAR = 100
# Merging almost equal differences may move their sum by this share of all rounding errors.
_MOVED = 0.1
# In a half with more than 2^16 sums, equal sums are merged as long as there are at most 2^17; without merging, up to
# 2^20 sums are allowed.
EASY_HALF, LARGEST_HALF = 16.0, 20.0
_MOST_MERGED = 1 << 17
# If this many users or more have the same difference, the numbers of plus signs further than this many standard
# deviations from their mean are left out; their probability is below 1e-17.
MANY, _REACH = 1000, 9.0


class Count(NamedTuple):
    """A p-value, and the share of it due to sums that may or may not be ties because of rounding."""

    p: float
    unsure: float


def size(d: Floats, noise: Floats | None = None) -> float:
    """Return log2 of the number of distinct sign patterns of ``d``, where equal differences are interchangeable."""
    _, counts = distinct(d, noise)
    return float(np.log2(counts + 1.0).sum())


def distinct(d: Floats, noise: Floats | None = None) -> tuple[Floats, Floats]:
    """Return the distinct absolute differences that are not 0, up to rounding, and how many users have each."""
    return _distinct(*_non_zero(d, noise))


def enumerate_sums(d: Floats, noise: Floats | None = None, hidden: float = 0.0) -> Count | None:
    """Return P(|Σ ±d_u| ≥ |Σ d_u|) by enumeration, or None if there are too many sums.

    With Σ d_u > 0 and F the set of users whose sign is flipped, Σ ±d_u ≥ Σ d_u if and only if Σ_F d_u ≤ 0, and the
    other tail has the same probability: p = 2 P(Σ_F d_u ≤ 0) for a random set F. Rounding moves Σ_F d_u by no more than
    Σ ``noise`` + ``hidden``, the slack, and sums that close to 0 count as equal to 0.

    A difference larger than all others together decides the sign of Σ_F d_u, so its own rounding does not matter: such
    differences are handled first.

    ``unsure`` is 0 if ties are unambiguous: no sum lies between the slack and a hundred times the slack, and no
    difference is that small itself. Otherwise it is the share of sums within the slack, or of those just
    outside it if that is smaller.
    """
    d, noise = _non_zero(d, noise)
    certain, share, d, noise = _set_apart(d, noise, hidden)
    sums = _Sums.of(*_distinct(d, noise))
    if sums is None:
        return None
    slack = float(noise.sum()) + hidden
    total, near = float(d.sum()), 2 * (1 + _MOVED) * slack + sums.drift
    reached = sums.at_least(total - near)
    tied = reached - sums.at_least(total + near)
    smallest = float(np.abs(d).min(initial=np.inf))
    if smallest > 2 * near and hidden == 0:
        around = sums.at_least(total - _CLEAR * near) - sums.at_least(total + _CLEAR * near) - tied
        tied = min(tied, around)
    return Count(min(certain + share * reached, 1.0), min(max(share * tied, 0.0), 1.0))


def _non_zero(d: Floats, noise: Floats | None) -> tuple[Floats, Floats]:
    noise = ROUNDING * np.abs(d) if noise is None else noise
    return d[d != 0], noise[d != 0]


def _set_apart(d: Floats, noise: Floats, hidden: float) -> tuple[float, float, Floats, Floats]:
    """Return c, m and the remaining differences such that p = c + m P(Σ_F d_u ≤ 0) for a random set F of these.

    The largest difference is removed as long as it outweighs all others. If it is positive, Σ_F d_u ≤ 0 only if it is
    not in F; if it is negative, Σ_F d_u ≤ 0 whenever it is in F.
    """
    if d.sum() < 0:
        d = -d
    sizes = np.abs(d)
    if 2 * sizes.max(initial=0.0) <= sizes.sum():
        return 0.0, 2.0, d, noise
    order = np.argsort(sizes)
    d, noise = d[order], noise[order]
    others = np.cumsum(np.abs(d)) - np.abs(d)
    slack = np.cumsum(noise) + hidden
    certain, share, rest = 0.0, 2.0, len(d)
    while rest and abs(d[rest - 1]) > others[rest - 1] + 2 * slack[rest - 1]:
        rest -= 1
        share /= 2
        certain += share if d[rest] < 0 else 0.0
    return certain, share, d[:rest], noise[:rest]


class _Sums:
    """All sums of signed values, as two sorted halves with their probabilities (None: all equally likely)."""

    def __init__(self, a: _Half, b: _Half) -> None:
        # Both halves are sorted, so that look-ups of one in the other move in order and stay in the cache.
        self._a, self._weight_a = _ascending(a.sums, a.weights)
        self._b, weight_b = _ascending(b.sums, b.weights)
        self._chance = None
        if self._weight_a is not None or weight_b is not None:
            weight_b = np.full(len(self._b), 1 / len(self._b)) if weight_b is None else weight_b
            self._chance = np.append(0.0, np.cumsum(weight_b))
        self.drift = a.drift + b.drift
        self._edges = np.concatenate([[-np.inf], self._b, [np.inf]])
        self._places: NDArray[np.intp] | None = None

    @classmethod
    def of(cls, values: Floats, counts: Floats) -> _Sums | None:
        halves = []
        for half in _halve(counts):
            sums = _sums(values[half], counts[half])
            if sums is None:
                return None
            halves.append(sums)
        return cls(*halves)

    def at_least(self, enough: float) -> float:
        """Return the probability of a sum of at least ``enough``."""
        below = self._below(enough - self._a)
        if self._chance is None:
            return float((len(self._b) - below).sum()) / (len(self._a) * len(self._b))
        high = self._chance[-1] - self._chance[below]
        return float(high.mean() if self._weight_a is None else self._weight_a @ high)

    def _below(self, wanted: Floats) -> NDArray[np.intp]:
        """Return how many sums of the second half lie below each threshold; close thresholds share one look-up."""
        if self._places is None:
            self._places = np.searchsorted(self._b, wanted, side="left")
            return self._places
        still = (self._edges[self._places] < wanted) & (self._edges[self._places + 1] >= wanted)
        moved = np.flatnonzero(~still)
        places = self._places.copy()
        places[moved] = np.searchsorted(self._b, wanted[moved], side="left")
        return places


class _Half(NamedTuple):
    """Sums, their probabilities (None: all equally likely), and the largest distance that merging moved them."""

    sums: Floats
    weights: Floats | None
    drift: float


def _ascending(sums: Floats, weights: Floats | None) -> tuple[Floats, Floats | None]:
    if weights is None:
        return np.sort(sums), None
    order = np.argsort(sums, kind="stable")
    return sums[order], weights[order]


def _distinct(d: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Return the distinct absolute differences and how often each occurs, up to rounding.

    Neighbours are the same if the rounding error of either explains their distance, unless that would move the
    differences by more than a small share of all rounding errors; then it must be that of both.
    """
    order = np.argsort(np.abs(d))
    values, noise = np.abs(d)[order], noise[order]
    if len(values) == 0:
        return values, values
    for explains in (np.maximum, np.minimum):
        apart = np.diff(values) > explains(noise[1:], noise[:-1])
        starts = np.append(0, 1 + np.flatnonzero(apart))
        counts = np.diff(starts, append=len(values))
        means = np.add.reduceat(values, starts) / counts
        if np.abs(values - np.repeat(means, counts)).sum() <= _MOVED * noise.sum():
            break
    return means, counts.astype(np.float64)


def _halve(counts: Floats) -> tuple[list[int], list[int]]:
    """Split the distinct values so that both halves have about the same number of sums."""
    halves: tuple[list[int], list[int]] = ([], [])
    sizes, bits = [0.0, 0.0], np.log2(_widths(counts)).tolist()
    for place in np.argsort(-counts, kind="stable").tolist():
        half = int(sizes[1] < sizes[0])
        halves[half].append(place)
        sizes[half] += bits[place]
    return halves


def _sums(values: Floats, counts: Floats) -> _Half | None:
    """Return every sum of the signed values, and its probability, or None if there are too many.

    The probabilities are None if all are equally likely.
    """
    bits = np.log2(_widths(counts)).sum()
    if bits > EASY_HALF:
        merged = _merged_sums(values, counts)
        if merged is not None or bits > LARGEST_HALF:
            return merged
    sums = np.zeros(1)
    for value, count in zip(values, counts):
        sums = np.add.outer(sums, _splits(value, count)).ravel()
    if (counts == 1).all():
        return _Half(sums, None, 0.0)
    weights = np.ones(1)
    for count in counts:
        weights = np.multiply.outer(weights, _chances(count)).ravel()
    return _Half(sums, weights, 0.0)


def _merged_sums(values: Floats, counts: Floats) -> _Half | None:
    """Return every distinct sum of the signed values, and its probability, or None if there are too many.

    Few distinct values, or those of a lattice, have far fewer sums than sign patterns.
    """
    sums, weights, drift = np.zeros(1), np.ones(1), 0.0
    same = ROUNDING * float(values @ counts)
    for value, count, width in zip(values, counts, _widths(counts)):
        if len(sums) * width > _MOST_MERGED:
            return None
        # The sums consist of ascending runs, which a stable sort merges quickly.
        sums = np.add.outer(_splits(value, count), sums).ravel()
        weights = np.multiply.outer(_chances(count), weights).ravel()
        order = np.argsort(sums, kind="stable")
        sums, weights = sums[order], weights[order]
        starts = np.flatnonzero(np.diff(sums, prepend=-np.inf) > same)
        lasts = np.append(starts[1:], len(sums)) - 1
        drift += float((sums[lasts] - sums[starts]).max())
        sums, weights = sums[starts], np.add.reduceat(weights, starts)
    return _Half(sums, weights, drift)


def drawn_sums(values: Floats, counts: NDArray[Any], n_samples: int, random: np.random.Generator) -> Floats:
    """Return Σ ±d_u under random sign patterns, where ``counts`` users have the difference of each of the ``values``.

    Σ v (2 B − c) with B binomial(c, 1/2), by its inverse distribution function: the time does not depend on the number
    of users.
    """
    sums = np.zeros(n_samples)
    for value, count in zip(values, counts):
        upto = np.cumsum(_chances(count))
        sums += _splits(value, count)[np.searchsorted(upto[:-1], random.random(n_samples), side="right")]
    return sums


def _widths(counts: Floats) -> Floats:
    """Return how many numbers of plus signs are considered for each count."""
    return np.where(counts < MANY, counts + 1.0, np.floor(_REACH * np.sqrt(counts)) + 1)


def _splits(value: float, count: float) -> Floats:
    """Return the sums of ``count`` equal values for every number of plus signs."""
    return value * (2 * _plus_signs(count) - count)


def _plus_signs(count: float) -> Floats:
    """Return the numbers of plus signs: all of them, or those near the mean if there are many users."""
    reach = count / 2 if count < MANY else _REACH / 2 * np.sqrt(count)
    return np.arange(np.ceil(count / 2 - reach), np.floor(count / 2 + reach) + 1)


def _chances(count: float) -> Floats:
    """Return the probability of every number of plus signs."""
    from scipy.special import comb

    k = _plus_signs(count)
    if count < MANY:
        # The coefficients are exact as long as they fit a float; the powers of 2 are always exact.
        exact: Floats = comb(count, k) * np.exp2(-count)
        return exact
    # P(k + 1) / P(k) = (c − k) / (k + 1), from the middle to the end, and the same to the other end.
    middle = len(k) // 2
    half = np.append(1.0, np.cumprod((count - k[middle:-1]) / (k[middle:-1] + 1)))
    chances = np.concatenate([half[::-1][:middle], half])
    return chances / chances.sum()
