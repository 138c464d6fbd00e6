"""How likely two sign patterns are to have the same sum: what an inversion without a common step cannot see."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cranfield._random import stream
from cranfield.comparisons.sample import Floats

# So many random patterns make 2^23 pairs of them, which show chances above some 2e-7.
_PATTERNS = 4096
# Sums are looked at over the first of these numbers of users that is free of ties, then over all.
_USERS = (64, 512)


def tie_chance(ordered: Floats, slack: float, step: float = 0.0) -> float:
    """Return how likely |Σ ±d_u| is to be the same under two sign patterns, of ascending, non-zero differences.

    ``slack`` is how far rounding may move the sum of any of the differences, so |Σ ±d_u| moves by twice that.

    Few distinct values make many equal sums, even where they have no common step: with one relevant item nDCG is 1 or
    1/log₂ 3 or ..., and of those sums that differ in no count of any value many are equal. Here random patterns are
    drawn and the pairs of them counted that meet. Fewer users meet no less often, so some of them may suffice to
    show that ties are rare. With a step h, chance 2h / σ√π is what any sums on that lattice have, and is left out.

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
    sums = np.sort(np.abs(_random_sums(d)))
    starts = np.flatnonzero(np.diff(sums, prepend=-np.inf) > 2 * slack)
    runs = np.diff(starts, append=len(sums)).astype(np.float64)
    chance = float((runs * (runs - 1)).sum()) / (_PATTERNS * (_PATTERNS - 1))
    on_the_lattice = 2 * step / float(np.sqrt(np.pi * (d**2).sum()))
    return chance if chance > 2 * on_the_lattice else 0.0


def _random_sums(d: Floats) -> Floats:
    """Return Σ ±d_u under random patterns: the 256 sums of every eight users are looked up by a random byte."""
    eights = np.append(d, np.zeros(-len(d) % 8)).reshape(-1, 8)
    signs = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    sums = np.zeros(_PATTERNS)
    # Powers of 2, so that pairs of systems with other numbers of users share what is drawn.
    for eight, byte in zip(eights, _bytes(1 << (len(eights) - 1).bit_length())):
        sums += (signs * eight).sum(axis=1)[byte]
    return sums


@cache
def _bytes(rows: int) -> NDArray[np.uint8]:
    """Return rows of random bytes, one a pattern; the same in every call."""
    raw = stream(0, "compare", "ties").bit_generator.random_raw(rows * _PATTERNS // 8)
    return np.asarray(raw, dtype="<u8").view(np.uint8).reshape(rows, _PATTERNS)
