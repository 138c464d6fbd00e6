"""Simultaneous intervals: the level of each pair at which the intervals of all pairs hold together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._random import stream
from cranfield.comparisons.sample import Floats, Sample
from cranfield.comparisons.student import moments

_FLIPS = 5000
# More users than these are put at random into so many blocks, and blocks are flipped: their sums are spread alike.
_MOST_BLOCKS = 10_000
# Signs are made for about this many users and flips at a time, and statistics of about as many pairs and flips.
_BLOCK = 1 << 22
# Of so many pairs at once, where the users differ from pair to pair.
_LARGE = 1e9
_PAIRS_AT_ONCE = 256


def pair_level(sample: Sample, alpha: float, seed: int) -> float:
    """Return the level of each pair's interval at which all of them hold together with probability 1 − α.

    The max-|t| method (Westfall and Young 1993; Romano and Wolf 2005). The users' influences on the difference of each
    pair (`Sample.influences`) are centred, and 5,000 sign patterns, the same for all pairs, flip them: each gives a
    |t| for every pair and the largest of these. With c the 1 − α quantile of the largest |t|, the intervals
    difference ± c · standard error hold for all pairs at once. Returned is the level α' of a t interval of that
    reach. It lies between α / pairs (Bonferroni) and α (a pair alone), and does not depend on the number of threads.
    """
    from scipy.special import stdtr

    if sample.n_pairs < 2:
        return alpha
    largest = np.zeros(_FLIPS)
    for largest_of_pairs in _largest(sample, seed):
        np.maximum(largest, largest_of_pairs, out=largest)
    np.minimum(largest, _LARGE, out=largest)  # among few users a flip may leave no spread, and |t| is infinite
    # Sums of matrices on several threads may differ in their last digits.
    critical = round(float(np.quantile(largest, 1 - alpha)), 6)
    level = 2 * float(stdtr(max(int(sample.n.max()) - 1, 1), -critical))
    return float(np.clip(level, alpha / sample.n_pairs, alpha))


def _largest(sample: Sample, seed: int) -> Iterator[Floats]:
    """Yield, for some pairs at a time, the largest |t| of each flip."""
    signs = _Signs(sample.values.shape[1], seed)
    if sample.same_users:
        sd = np.concatenate([moments(sample.influences(pairs))[2] for pairs in sample.blocks()])
        yield _statistics(signs, sample.system_influences(), (sample.first, sample.second), sd, sample.n)
        return
    for start in range(0, sample.n_pairs, _PAIRS_AT_ONCE):
        pairs = slice(start, min(start + _PAIRS_AT_ONCE, sample.n_pairs))
        influences = sample.influences(pairs)
        n, mean, sd = moments(influences)
        rows = np.nan_to_num(influences - mean[:, None])
        yield _statistics(signs, rows, (np.arange(len(rows)),), sd, n)


def _statistics(
    signs: _Signs, rows: Floats, places: tuple[NDArray[np.intp], ...], sd: Floats, n: NDArray[Any]
) -> Floats:
    """Return the largest |t| of each flip, over pairs with ``n`` users whose influences have the deviations ``sd``.

    ``rows`` are centred influences of systems, with the places of each pair's two, or of pairs, with one place each.
    With S = Σ ± w_u and Q = Σ w_u², t² = (n − 1) S² / (n Q − S²): a flip changes S alone.
    """
    usable = (sd > 0) & (n > 1)
    if not usable.any():
        return np.zeros(_FLIPS)
    places, n = tuple(place[usable] for place in places), n[usable].astype(np.float64)
    unit = sd[usable] * np.sqrt(n - 1)
    largest = np.zeros(_FLIPS)
    for flips, sums in signs.sums(rows):
        step = max(1, _BLOCK // len(sums))
        for start in range(0, len(n), step):
            pairs = slice(start, start + step)
            total, *other = (sums[:, place[pairs]] for place in places)
            total = total - other[0] if other else total
            ratio = (total / unit[pairs]) ** 2
            with np.errstate(divide="ignore"):
                t = np.sqrt((n[pairs] - 1) * ratio / np.maximum(n[pairs] - ratio, 0.0))
            np.maximum(largest[flips], t.max(axis=1), out=largest[flips])
    return largest


class _Signs:
    """The sign patterns that all pairs and metrics see."""

    def __init__(self, n_users: int, seed: int) -> None:
        random = stream(seed, "compare", "simultaneous")
        self._n = min(n_users, _MOST_BLOCKS)
        self._block: NDArray[np.intp] | None = None
        if self._n < n_users:
            self._block = np.argsort(random.random(n_users), kind="stable") % self._n
        self._words = (self._n + 63) // 64
        self._bits = np.asarray(random.bit_generator.random_raw(_FLIPS * self._words), dtype="<u8").view(np.uint8)

    def sums(self, rows: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield some flips at a time, and their sums of each row, flips × rows."""
        if self._block is not None:
            rows = np.stack([np.bincount(self._block, row, self._n) for row in rows])
        columns, totals = np.ascontiguousarray(rows.T), rows.sum(axis=1)
        bits = self._bits.reshape(_FLIPS, self._words * 8)
        count = max(1, _BLOCK // max(1, self._n))
        for start in range(0, _FLIPS, count):
            flips = slice(start, min(start + count, _FLIPS))
            heads = np.unpackbits(bits[flips], axis=1, count=self._n).astype(np.float64)
            yield flips, 2 * (heads @ columns) - totals
