"""The permutation distribution by counting every sum, in two halves that meet in the middle."""

from __future__ import annotations

import numpy as np

from cranfield.comparisons.sample import Floats

# Sums closer than this share of the sum of all absolute differences are equal.
TIE = 1e-10
# A half with more sums than 2^16 has its equal sums merged, while there are no more than 2^17 of them; what cannot be
# merged may hold 2^20.
EASY_HALF, LARGEST_HALF = 16.0, 20.0
_MOST_MERGED = 1 << 17


def size(d: Floats) -> float:
    """Return log2 of the number of distinct sign patterns of ``d``, equal differences being interchangeable.

    Examples
    --------
    >>> size(np.array([0.5, 0.5, 0.5, 0.2]))
    3.0
    """
    _, counts = _distinct(d)
    return float(np.log2(counts + 1.0).sum())


def enumerate_sums(d: Floats) -> float | None:
    """Return P(|Σ ±d_u| ≥ |Σ d_u|) by enumeration, or None when there are too many sums.

    c equal differences v add v (2B − c) with B binomial(c, 1/2), so they cost c + 1 sums and not 2^c. The sums of one
    half of the differences are sorted once, and each sum of the other half looks up how many of them suffice.

    Examples
    --------
    >>> enumerate_sums(np.array([0.5, 0.3, 0.1]))
    0.25
    """
    values, counts = _distinct(d)
    halves = _halve(counts)
    enough = abs(d.sum()) - TIE * np.abs(d).sum()
    if enough <= 0:
        return 1.0
    found = []
    for half in halves:
        sums = _sums(values[half], counts[half])
        if sums is None:
            return None
        found.append(sums)
    (a, weight_a), (b, weight_b) = found
    # Sorted, the sums of one half are looked up in those of the other from end to end, which stays in the cache.
    a, weight_a = _ascending(a, weight_a)
    b, weight_b = _ascending(b, weight_b)
    below = np.searchsorted(b, enough - a, side="left")
    # Every sum is as likely as its opposite, so the two tails are one twice.
    if weight_a is None and weight_b is None:
        return 2.0 * float((len(b) - below).sum()) / (len(a) * len(b))
    chance = np.append(0.0, np.cumsum(np.full(len(b), 1 / len(b)) if weight_b is None else weight_b))
    high = chance[-1] - chance[below]
    return 2.0 * float(high.mean() if weight_a is None else weight_a @ high)


def _ascending(sums: Floats, weights: Floats | None) -> tuple[Floats, Floats | None]:
    if weights is None:
        return np.sort(sums), None
    order = np.argsort(sums, kind="stable")
    return sums[order], weights[order]


def _distinct(d: Floats) -> tuple[Floats, Floats]:
    """Return the distinct absolute differences and how often each occurs; what differs by rounding is equal."""
    values = np.sort(np.abs(d[d != 0]))
    if len(values) == 0:
        return values, values
    starts = np.flatnonzero(np.diff(values, prepend=-np.inf) > 1e-12 * values[-1])
    counts = np.diff(starts, append=len(values)).astype(np.float64)
    return np.add.reduceat(values, starts) / counts, counts


def _halve(counts: Floats) -> tuple[list[int], list[int]]:
    """Share out the distinct values so that both halves have about as many sums."""
    halves: tuple[list[int], list[int]] = ([], [])
    sizes = [0.0, 0.0]
    for place in np.argsort(-counts, kind="stable"):
        half = int(sizes[1] < sizes[0])
        halves[half].append(int(place))
        sizes[half] += np.log2(counts[place] + 1.0)
    return halves


def _sums(values: Floats, counts: Floats) -> tuple[Floats, Floats | None] | None:
    """Return every sum of the signed values, and its probability, or None if there are too many.

    The probabilities are None if all are equally likely.
    """
    bits = np.log2(counts + 1.0).sum()
    if bits > EASY_HALF:
        merged = _merged_sums(values, counts)
        if merged is not None or bits > LARGEST_HALF:
            return merged
    sums = np.zeros(1)
    for value, count in zip(values, counts):
        sums = np.add.outer(sums, _splits(value, count)).ravel()
    if (counts == 1).all():
        return sums, None
    weights = np.ones(1)
    for count in counts:
        weights = np.multiply.outer(weights, _chances(count)).ravel()
    return sums, weights


def _merged_sums(values: Floats, counts: Floats) -> tuple[Floats, Floats] | None:
    """Return every distinct sum of the signed values, and its probability, or None if there are too many.

    Few distinct values, or those of a lattice, have far fewer sums than sign patterns.
    """
    sums, weights = np.zeros(1), np.ones(1)
    same = 1e-12 * float(values @ counts)
    for value, count in zip(values, counts):
        if len(sums) * (count + 1) > _MOST_MERGED:
            return None
        # One ascending run after the other, which a stable sort merges in little time.
        sums = np.add.outer(_splits(value, count), sums).ravel()
        weights = np.multiply.outer(_chances(count), weights).ravel()
        order = np.argsort(sums, kind="stable")
        starts = np.flatnonzero(np.diff(sums[order], prepend=-np.inf) > same)
        sums, weights = sums[order][starts], np.add.reduceat(weights[order], starts)
    return sums, weights


def _splits(value: float, count: float) -> Floats:
    """Return the sums of so many equal values with every number of plus signs."""
    return value * (2 * np.arange(count + 1) - count)


def _chances(count: float) -> Floats:
    """Return the probability of every number of plus signs."""
    from scipy.special import comb
    from scipy.stats import binom

    k = np.arange(count + 1)
    # The coefficients are exact while they fit a float; their powers of 2 always are.
    chances: Floats = comb(count, k) * np.exp2(-count) if count < 1000 else binom.pmf(k, count, 0.5)
    return chances
