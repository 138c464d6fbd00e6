"""The permutation test by sampling: one matrix of signs for all systems and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cranfield._progress import progress
from cranfield._random import stream
from cranfield.comparisons.sample import ROUNDING, Floats, Sample, vague
from cranfield.comparisons.verdict import Verdict

# Maximum number of signs (users × samples) drawn per block.
_BLOCK = 1 << 23


def monte_carlo(samples: Sequence[Sample], n_samples: int, seed: int, plus_one: bool) -> list[Verdict]:
    """Return the share of ``n_samples`` random sign patterns ε with |Σ ε_u d_u| ≥ |Σ d_u|.

    Σ ε_u (a_u − b_u) = Σ ε_u a_u − Σ ε_u b_u, so the signs are multiplied with systems instead of pairs, unless the
    users differ from pair to pair. The signs of one sample are whole words of random bits, so the result depends
    neither on the size of the blocks nor on the number of threads.
    """
    counters = [_Counter(sample) for sample in samples]
    # All metrics are in one matrix: the signs are read once, and one wide product is faster than many narrow ones.
    columns = np.concatenate([counter.take_rows() for counter in counters]).T.copy()
    totals = columns.sum(axis=0)
    parts = np.cumsum([counter.n_rows for counter in counters])[:-1]
    n_users = len(columns)
    bits = stream(seed, "compare", "signs").bit_generator
    words = (n_users + 63) // 64
    rows = max(1, _BLOCK // max(1, n_users))
    with progress("Permuting", total=n_samples, unit="samples") as bar:
        for start in range(0, n_samples, rows):
            count = min(rows, n_samples - start)
            raw = np.asarray(bits.random_raw(count * words), dtype="<u8").view(np.uint8).reshape(count, words * 8)
            heads = np.unpackbits(raw, axis=1, count=n_users).astype(np.float64)
            sums = np.ascontiguousarray((2 * (heads @ columns) - totals).T)
            for counter, part in zip(counters, np.split(sums, parts)):
                counter.add(part)
            bar.advance(count)
    return [counter.verdict(n_samples, plus_one) for counter in counters]


class _Counter:
    """Counts, for every pair, the sign patterns that reach the observed sum."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.by_system = sample.same_users
        kept, limits = [], []
        for pairs in sample.blocks():
            differences = sample.rounded_differences(pairs)
            slack = differences.slack + self._rounding_of_systems(pairs)
            s = np.abs(differences.d.sum(axis=1))
            unclear = vague(differences.smallest, slack, differences.hidden)
            limits.append((s - 2 * slack, np.where(unclear, s + 2 * slack, -np.inf)))
            if not self.by_system:
                kept.append(differences.d)
        # The sum from which a sign pattern counts and, if ties are ambiguous, the sum from which it certainly counts.
        self.enough, self.surely = (np.concatenate(parts) for parts in zip(*limits))
        self._rows: Floats | None = np.nan_to_num(sample.tested) if self.by_system else np.concatenate(kept)
        self.n_rows = len(self._rows)
        self.exceeded: Floats = np.zeros(sample.n_pairs)
        self.unsure: Floats = np.zeros(sample.n_pairs)

    def _rounding_of_systems(self, pairs: slice) -> Floats | float:
        """Return the rounding error of sums by system, which include users for whom a pair does not differ."""
        if not self.by_system:
            return 0.0
        totals = ROUNDING / 2 * np.nansum(np.abs(self.sample.tested), axis=1)
        added: Floats = totals[self.sample.first[pairs]] + totals[self.sample.second[pairs]]
        return added

    def take_rows(self) -> Floats:
        """Return the values to be summed under each sign pattern, and release them."""
        rows, self._rows = self._rows, None
        assert rows is not None
        return rows

    def add(self, sums: Floats) -> None:
        """Count the sign patterns that reach the observed sum, given the sum of each row under each pattern."""
        for pair in range(self.sample.n_pairs):
            if self.by_system:
                s = np.abs(sums[self.sample.first[pair]] - sums[self.sample.second[pair]])
            else:
                s = np.abs(sums[pair])
            self.exceeded[pair] += np.count_nonzero(s >= self.enough[pair])
            if self.surely[pair] > self.enough[pair]:
                self.unsure[pair] += np.count_nonzero((s >= self.enough[pair]) & (s < self.surely[pair]))

    def verdict(self, n_samples: int, plus_one: bool) -> Verdict:
        """Return the share of sign patterns; those that are undecided because of rounding are added to its error."""
        verdict = Verdict.by_sampling(self.exceeded, n_samples, plus_one, "monte-carlo", self.sample)
        return replace(verdict, error=verdict.error + self.unsure / n_samples)
