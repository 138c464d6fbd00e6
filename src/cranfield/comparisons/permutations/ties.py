"""How likely two sign patterns are to have the same sum, which an inversion without a common step cannot detect."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cranfield._random import stream
from cranfield.comparisons.permutations.enumeration import drawn_sums
from cranfield.comparisons.sample import ROUNDING, Floats

# This many random patterns form 2^23 pairs, which detect probabilities above about 2e-7.
_PATTERNS = 4096
# Subsets of these numbers of users are tried first; if one has no ties, all users are taken to have none.
_USERS = (64, 512)
# Up to this many users, the sign of each is drawn; above, the number of plus signs among the users of each size, for
# the sizes that most users have.
_MOST_SIGNS, _MOST_SIZES = 4096, 256


def tie_chance(ordered: Floats, slack: float, step: float = 0.0) -> float:
    """Return the probability that two sign patterns give the same |Σ ±d_u|, for ascending, non-zero differences.

    ``slack`` is how far rounding may move the sum of any of the differences, so |Σ ±d_u| moves by twice that.

    Few distinct values give many equal sums, even without a common step: with one relevant item nDCG is 1 or 1/log₂ 3
    or ..., and patterns with the same count of each value have the same sum. Random patterns are drawn, and the pairs
    with equal sums are counted. Ties are at least as common among fewer users, so a subset may be enough to show
    that ties are rare; the same holds for a subset of the sizes. With a step h, any sums on that lattice tie with
    probability 2h / σ√π; this is not reported.

    Examples
    --------
    >>> tie_chance(np.sqrt(np.arange(1.0, 80.0)), 1e-12)
    0.0
    >>> 0.1 < tie_chance(np.ones(60), 1e-13) < 0.2
    True
    """
    for users in _USERS:
        if users < len(ordered):
            drawn = ordered[np.linspace(0, len(ordered) - 1, users).astype(np.intp)]
            if _met(drawn, slack, step) == 0.0:
                return 0.0
    return _met(ordered, slack, step)


def _met(d: Floats, slack: float, step: float) -> float:
    sums = np.sort(np.abs(_random_sums(d) if len(d) <= _MOST_SIGNS else _sums_of_sizes(d)))
    starts = np.flatnonzero(np.diff(sums, prepend=-np.inf) > 2 * slack)
    runs = np.diff(starts, append=len(sums)).astype(np.float64)
    chance = float((runs * (runs - 1)).sum()) / (_PATTERNS * (_PATTERNS - 1))
    on_the_lattice = 2 * step / float(np.sqrt(np.pi * (d**2).sum()))
    return chance if chance > 2 * on_the_lattice else 0.0


def _random_sums(d: Floats) -> Floats:
    """Return Σ ±d_u under random patterns: a random byte selects one of the 256 sums of each eight users."""
    eights = np.append(d, np.zeros(-len(d) % 8)).reshape(-1, 8)
    signs = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    sums = np.zeros(_PATTERNS)
    # The number is rounded up to a power of 2, so that pairs with different numbers of users share the cached draws.
    for eight, byte in zip(eights, _bytes(1 << (len(eights) - 1).bit_length())):
        sums += (signs * eight).sum(axis=1)[byte]
    return sums


def _sums_of_sizes(ordered: Floats) -> Floats:
    """Return Σ ±d_u under random patterns, over the users of the most common sizes."""
    starts = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > ROUNDING * ordered)
    counts = np.diff(starts, append=len(ordered))
    most = np.argsort(-counts, kind="stable")[:_MOST_SIZES]
    return drawn_sums(ordered[starts[most]], counts[most], _PATTERNS, stream(0, "compare", "ties"))


@cache
def _bytes(rows: int) -> NDArray[np.uint8]:
    """Return rows of random bytes, one byte per pattern; the same in every call."""
    raw = stream(0, "compare", "ties").bit_generator.random_raw(rows * _PATTERNS // 8)
    return np.asarray(raw, dtype="<u8").view(np.uint8).reshape(rows, _PATTERNS)
