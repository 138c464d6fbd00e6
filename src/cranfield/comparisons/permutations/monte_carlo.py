"""The permutation test by sampling: one matrix of signs for all systems and metrics, or signs of equal differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.comparisons.p_values import TestResult
from cranfield.comparisons.permutations.enumeration import distinct, drawn_sums
from cranfield.comparisons.sample import ROUNDING, Differences, Floats, Sample, vague

# Maximum number of signs (users × samples) drawn per block; with few pairs, blocks that fit in the cache are faster.
_BLOCK, _BLOCK_PER_PAIR = 1 << 23, 1 << 18
# With at least this many users per distinct size, over all pairs, the signs of each size are drawn together.
_USERS_PER_SIZE = 16
# Maximum number of samples of the signs of sizes that are drawn at once.
_SAMPLES = 1 << 20


def monte_carlo(
    samples: Sequence[Sample], n_samples: int, seed: int, plus_one: bool, most_signs: float = np.inf
) -> list[TestResult]:
    """Return the share of ``n_samples`` random sign patterns ε with |Σ ε_u d_u| ≥ |Σ d_u|.

    Σ ε_u (a_u − b_u) = Σ ε_u a_u − Σ ε_u b_u, so the signs are multiplied with systems instead of pairs, unless the
    users differ from pair to pair. The signs of one sample are whole words of random bits, so the result depends
    neither on the size of the blocks nor on the number of threads.

    If the differences of a sample have few distinct sizes, as those of two-valued metrics, only the number of plus
    signs among the users of each size matters: it is drawn instead (`drawn_sums`), in a time that does not grow with
    the users. Other samples are left out, with an infinite error, if they need more than ``most_signs`` (users ×
    samples).
    """
    counters = [_Counter(sample, n_samples, seed, most_signs) for sample in samples]
    if all(counter.is_done for counter in counters):
        return [counter.test_result(n_samples, plus_one) for counter in counters]
    # All metrics are in one matrix: the signs are read once, and one wide product is faster than many narrow ones.
    columns = np.concatenate([counter.take_rows() for counter in counters]).T.copy()
    totals = columns.sum(axis=0)
    parts = np.cumsum([counter.n_rows for counter in counters])[:-1]
    n_users = len(columns)
    bits = stream(seed, "compare", "signs").bit_generator
    words = (n_users + 63) // 64
    n_pairs = sum(counter.sample.n_pairs for counter in counters)
    rows = max(1, min(_BLOCK, n_pairs * _BLOCK_PER_PAIR) // max(1, n_users))
    with progress("Permuting", total=n_samples, unit="samples") as bar:
        for start in range(0, n_samples, rows):
            count = min(rows, n_samples - start)
            raw = np.asarray(bits.random_raw(count * words), dtype="<u8").view(np.uint8).reshape(count, words * 8)
            heads = np.unpackbits(raw, axis=1, count=n_users).astype(np.float64)
            sums = np.ascontiguousarray((2 * (heads @ columns) - totals).T)
            for counter, part in zip(counters, np.split(sums, parts)):
                counter.add(part)
            bar.advance(count)
    return [counter.test_result(n_samples, plus_one) for counter in counters]


class _Counter:
    """Counts, for every pair, the sign patterns that reach the observed sum."""

    def __init__(self, sample: Sample, n_samples: int, seed: int, most_signs: float) -> None:
        self.sample = sample
        self.by_system = sample.same_users
        self.exceeded: Floats = np.zeros(sample.n_pairs)
        self.unsure: Floats = np.zeros(sample.n_pairs)
        # The sum from which a sign pattern counts and, if ties are ambiguous, the sum from which it certainly counts.
        self.enough, self.surely = np.zeros(sample.n_pairs), np.zeros(sample.n_pairs)
        sizes = _sizes(sample)
        self.is_done = sizes is not None or n_samples * sample.n_users > most_signs
        kept = []
        for pairs in sample.blocks():
            differences = sample.rounded_differences(pairs)
            self._set_limits(pairs, differences)
            if not (self.by_system or self.is_done):
                kept.append(differences.d)
        self._rows: Floats | None = np.zeros((0, sample.n_users))
        if not self.is_done:
            self._rows = np.nan_to_num(sample.tested) if self.by_system else np.concatenate(kept)
        self.n_rows = len(self._rows)
        if sizes is None and self.is_done:
            self.unsure[:] = np.inf
        for pair, of_pair in enumerate(sizes or ()):
            random = stream(seed, "compare", "sizes")
            for start in range(0, n_samples, _SAMPLES):
                self._count(pair, np.abs(drawn_sums(*of_pair, min(_SAMPLES, n_samples - start), random)))

    def _set_limits(self, pairs: slice, differences: Differences) -> None:
        slack = differences.slack
        if self.by_system:
            slack = slack + self._rounding[self.sample.first[pairs]] + self._rounding[self.sample.second[pairs]]
        s = np.abs(differences.d.sum(axis=1))
        unclear = vague(differences.smallest, slack, differences.hidden)
        self.enough[pairs], self.surely[pairs] = s - 2 * slack, np.where(unclear, s + 2 * slack, -np.inf)

    @cached_property
    def _rounding(self) -> Floats:
        """The rounding error of sums by system, which include users for whom a pair does not differ."""
        rows = (self.sample.tested_row(system) for system in range(len(self.sample.systems)))
        return np.array([ROUNDING / 2 * np.nansum(np.abs(row)) for row in rows])

    def take_rows(self) -> Floats:
        """Return the values to be summed under each sign pattern, and release them."""
        rows, self._rows = self._rows, None
        assert rows is not None
        return rows

    def add(self, sums: Floats) -> None:
        """Count the sign patterns that reach the observed sum, given the sum of each row under each pattern."""
        for pair in range(0 if self.is_done else self.sample.n_pairs):
            if self.by_system:
                self._count(pair, np.abs(sums[self.sample.first[pair]] - sums[self.sample.second[pair]]))
            else:
                self._count(pair, np.abs(sums[pair]))

    def _count(self, pair: int, sums: Floats) -> None:
        self.exceeded[pair] += np.count_nonzero(sums >= self.enough[pair])
        if self.surely[pair] > self.enough[pair]:
            self.unsure[pair] += np.count_nonzero((sums >= self.enough[pair]) & (sums < self.surely[pair]))

    def test_result(self, n_samples: int, plus_one: bool) -> TestResult:
        """Return the share of sign patterns; those that are undecided because of rounding are added to its error."""
        test_result = TestResult.by_sampling(self.exceeded, n_samples, plus_one, "monte-carlo", self.sample)
        return replace(test_result, error=test_result.error + self.unsure / n_samples)


def _sizes(sample: Sample) -> list[tuple[Floats, Floats]] | None:
    """Return the distinct sizes of each pair's differences and their counts; None if there are too many sizes."""
    by_pair: list[tuple[Floats, Floats]] = []
    total = 0
    for pairs in sample.blocks():
        differences = sample.rounded_differences(pairs)
        for d, noise in zip(differences.d, differences.noise):
            by_pair.append(distinct(d, noise))
            total += len(by_pair[-1][0])
            if _USERS_PER_SIZE * total > sample.n_users:
                return None
    return by_pair
