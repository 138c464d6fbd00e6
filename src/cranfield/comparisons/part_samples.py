"""Samples of users that are stored in parts: passes over the parts, and the sums that they return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._hashing import hashed
from cranfield.comparisons.parted_sample import PartedSample
from cranfield.comparisons.permutations.lattice import CommonStep
from cranfield.comparisons.sample import MOST_BLOCKS, Floats, Sample, Totals
from cranfield.comparisons.samples import SampleNotes, lists_without, make_samples, pairs_of
from cranfield.comparisons.student import zero_if_rounding
from cranfield.measures.averaging import Averaging
from cranfield.measures.moments import Moments
from cranfield.measures.score_parts import ScoreParts
from cranfield.measures.scores import Scores

SampleFunction = Callable[[Sample, Scores, Any], Any]
"""The work of a pass on the sample of one metric in one part; the last parameter is the metric's own argument."""


@dataclass(frozen=True, eq=False)
class SampleParts:
    """The samples of all metrics of a comparison whose users are stored in parts.

    Parameters
    ----------
    scores, averaging, baseline
        The scores, how they are averaged, and the baseline.
    metrics
        The metrics that are compared.
    totals
        Totals over all users for each metric; none before the first pass.
    epsilon
        The amount added to each value before taking logarithms, if logarithms are tested.
    """

    scores: ScoreParts
    averaging: Averaging
    baseline: str | None
    metrics: tuple[str, ...]
    totals: tuple[Totals, ...] = ()
    epsilon: float | None = None

    def sum(self, function: SampleFunction, arguments: Sequence[Any] | None = None) -> list[Any]:
        """Return, for each metric, the sum over parts of a function of its sample; None without an argument.

        The function and its arguments are sent to where the parts are, so they must be picklable.
        """
        given = [()] * len(self.metrics) if arguments is None else list(arguments)
        task = partial(
            _of_part,
            averaging=self.averaging.with_(average=str(self.averaging.average)),
            baseline=self.baseline,
            metrics=self.metrics,
            totals=self.totals,
            epsilon=self.epsilon,
            function=function,
            arguments=given,
        )
        results: list[Any] = self.scores.sum(task).results
        return results

    @property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The two systems of each pair."""
        return pairs_of(self.scores.systems, self.baseline)


@dataclass(frozen=True, eq=False)
class _Several:
    """Results of several metrics, which are added metric by metric."""

    results: list[Any]

    def __add__(self, other: _Several) -> _Several:
        return _Several([None if mine is None else mine + theirs for mine, theirs in zip(self.results, other.results)])


def _of_part(
    scores: Scores,
    averaging: Averaging,
    baseline: str | None,
    metrics: tuple[str, ...],
    totals: tuple[Totals, ...],
    epsilon: float | None,
    function: SampleFunction,
    arguments: Sequence[Any],
) -> _Several:
    samples, _ = make_samples(scores, averaging, metrics=metrics, baseline=baseline)
    results = []
    for place, (sample, argument) in enumerate(zip(samples, arguments)):
        if epsilon is not None:
            sample = replace(sample, geometric=True, weights=None, floor=0.0, shift=epsilon)
        sample = replace(sample, totals=totals[place] if totals else None)
        results.append(None if argument is None else function(sample, scores, argument))
    return _Several(results)


@dataclass(frozen=True, eq=False)
class FirstSums:
    """The sums of the first pass for one metric, by system unless stated otherwise.

    Parameters
    ----------
    n, total, weight
        The number of users that count, the sum of their weighted values on the scale that is averaged, and of their
        weights.
    largest, largest_tested, least
        The largest absolute value, the same on the scale of the test, and the lowest value.
    users, all_weight
        The number of users, whether they count or not, and their weight.
    missing
        The number of lists for which the metric is undefined.
    step
        The common step of all values on the scale of the test.
    geometric, shift, lower_is_better, weighted
        As in `Sample`.
    """

    n: NDArray[np.int64]
    total: Floats
    weight: Floats
    largest: Floats
    largest_tested: Floats
    least: Floats
    users: int
    all_weight: float
    missing: int
    step: CommonStep
    kind: tuple[bool, float, bool, bool]

    @classmethod
    def of(cls, sample: Sample, scores: Scores, argument: Averaging) -> FirstSums:
        """Compute the sums of a part; the argument is how lists are averaged."""
        counted, averaged = sample.counted, sample.tested if sample.geometric else sample.values
        weights = counted.astype(np.float64) if sample.weights is None else counted * sample.weights
        scaled = argument.with_kind().taken_of(scores)
        missing = np.isnan(scaled.values[:, scaled.metric(sample.metric)])
        # The values of a weighted test are divided by the mean weight later: it is not known yet.
        tested = replace(sample, weights=None).tested if not sample.geometric else sample.tested
        tested = tested if sample.weights is None else tested * sample.weights
        return cls(
            counted.sum(axis=1),
            (np.where(counted, averaged, 0.0) * weights).sum(axis=1),
            weights.sum(axis=1),
            np.fmax.reduce(np.abs(sample.values), axis=1, initial=0.0),
            np.fmax.reduce(np.abs(tested), axis=1, initial=0.0),
            sample.least,
            sample.n_users,
            0.0 if sample.weights is None else float(sample.weights.sum()),
            lists_without(missing, scaled, argument),
            CommonStep.of(tested),
            (sample.geometric, sample.shift, sample.lower_is_better, sample.weights is not None),
        )

    def __add__(self, other: FirstSums) -> FirstSums:
        return FirstSums(
            self.n + other.n,
            self.total + other.total,
            self.weight + other.weight,
            np.maximum(self.largest, other.largest),
            np.maximum(self.largest_tested, other.largest_tested),
            np.minimum(self.least, other.least),
            self.users + other.users,
            self.all_weight + other.all_weight,
            self.missing + other.missing,
            self.step + other.step,
            self.kind,
        )

    @property
    def mean_weight(self) -> float:
        """The mean weight of all users; 1 without weights, or if all weights are 0."""
        weighted = self.kind[3]
        return (self.all_weight / self.users or 1.0) if weighted else 1.0

    @property
    def totals(self) -> Totals:
        """The totals over all users that the values of a part depend on."""
        geometric, shift, *_ = self.kind
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(self.weight > 0, self.total / self.weight, np.nan)
        averages = np.exp(mean) - shift if geometric else mean
        place = int(np.argmax(self.n))
        counted = float(self.weight[place] / max(int(self.n[place]), 1))
        return Totals(averages, self.largest, self.largest_tested / self.mean_weight, self.mean_weight, counted)

    @property
    def common_step(self) -> float:
        """The common step of all values on the scale of the test, as far as known; 0 if there is none."""
        return self.step.value / self.mean_weight


def unit_for(largest: Floats) -> float:
    """Return a power of 2 near the largest number: dividing by it is exact and keeps squares in range."""
    top = float(largest.max(initial=0.0))
    return float(np.ldexp(1.0, int(np.frexp(top)[1]) - 1)) if top > 0 and np.isfinite(top) else 1.0


@dataclass(frozen=True, eq=False)
class PairTotals:
    """The sums of the second pass for one metric, by pair, in units of a power of 2.

    ``influences`` and ``differences`` are moments; ``wins`` and ``losses`` count users; ``reach`` is the largest
    absolute influence.
    """

    influences: Moments
    differences: Moments
    wins: Floats
    losses: Floats
    reach: Floats

    @classmethod
    def of(cls, sample: Sample, _: Scores, unit: float) -> PairTotals:
        """Compute the sums of a part."""
        parts = []
        for pairs in sample.blocks():
            d, influences = sample.raw_differences(pairs), sample.influences(pairs) / unit
            parts.append(
                (
                    Moments.of(influences),
                    Moments.of(sample.differences(pairs) / unit),
                    np.count_nonzero(d > 0, axis=1),
                    np.count_nonzero(d < 0, axis=1),
                    np.fmax.reduce(np.abs(influences), axis=1, initial=0.0),
                )
            )
        moments, of_differences, wins, losses, reach = zip(*parts)
        counts = (np.concatenate(column) for column in (wins, losses, reach))
        return cls(_joined(moments), _joined(of_differences), *counts)

    def __add__(self, other: PairTotals) -> PairTotals:
        return PairTotals(
            self.influences + other.influences,
            self.differences + other.differences,
            self.wins + other.wins,
            self.losses + other.losses,
            np.maximum(self.reach, other.reach),
        )


def _joined(blocks: Sequence[Moments]) -> Moments:
    """Concatenate the moments of blocks of pairs."""
    return Moments(*(np.concatenate([getattr(block, name) for block in blocks]) for name in ("n", "mean", "squares")))


@dataclass(frozen=True, eq=False)
class BlockSums:
    """Sums over blocks of users, rows × blocks; ``ids`` are the users if each user is a block."""

    values: Floats
    influences: Floats
    ids: pl.Series | None

    @classmethod
    def of(cls, sample: Sample, scores: Scores, argument: tuple[int, int]) -> BlockSums:
        """Compute the sums of a part; the arguments are the seed and the total number of users."""
        seed, n_users = argument
        weights = np.ones(sample.n_users) if sample.weights is None else sample.weights
        weights = weights * sample.counted.any(axis=0)
        averaged = np.nan_to_num(sample.tested if sample.geometric else sample.values)
        values, influences = np.vstack([averaged * weights, weights]), sample.system_influences()
        if n_users <= MOST_BLOCKS:
            return cls(values, influences, scores.user_ids.ids(scores.users))
        assert sample.keys is not None
        drawn, flipped = (
            (hashed(sample.keys, seed, "compare", name) % np.uint64(MOST_BLOCKS)).astype(np.intp)
            for name in ("relative", "simultaneous")
        )
        return cls(_in_blocks(values, drawn), _in_blocks(influences, flipped), None)

    def __add__(self, other: BlockSums) -> BlockSums:
        if self.ids is None or other.ids is None:
            return BlockSums(self.values + other.values, self.influences + other.influences, None)
        frames = [ids.to_frame("id") for ids in (self.ids, other.ids)]
        return BlockSums(
            np.hstack([self.values, other.values]),
            np.hstack([self.influences, other.influences]),
            pl.concat(frames, how="vertical_relaxed")["id"],
        )

    def in_order(self) -> BlockSums:
        """Return the sums with the users in the order of their ids, regardless of their parts."""
        if self.ids is None:
            return self
        order = self.ids.arg_sort().to_numpy()
        return BlockSums(self.values[:, order], self.influences[:, order], self.ids)


def _in_blocks(rows: Floats, block: NDArray[np.intp]) -> Floats:
    return np.stack([np.bincount(block, row, MOST_BLOCKS) for row in rows])


@dataclass(frozen=True, eq=False)
class ComparedParts:
    """The results of the passes of a comparison: the parts, and sums and samples for each metric."""

    parts: SampleParts
    first: list[FirstSums]
    pairs: list[PairTotals]
    units: list[float]
    samples: list[PartedSample]
    notes: tuple[str, ...]


def gather(
    scores: ScoreParts, averaging: Averaging, *, metrics: Sequence[str] | None, baseline: str | None, seed: int
) -> ComparedParts:
    """Run the passes over the parts that every comparison needs."""
    notes = SampleNotes(scores, averaging)
    names = tuple(scores.metrics[place] for place in notes.places(metrics))
    parts = SampleParts(scores, averaging, baseline, names)
    first: list[FirstSums] = parts.sum(FirstSums.of, [averaging.with_(average=str(averaging.average))] * len(names))
    for name, sums in zip(names, first):
        zero = averaging.with_kind().taken_of(scores.facts).counts_zero(scores.metric(name), averaging.undefined)
        notes.see(name, sums.missing, zero)
    parts = replace(parts, totals=tuple(sums.totals for sums in first))
    units = [unit_for(sums.largest) for sums in first]
    pairs: list[PairTotals] = parts.sum(PairTotals.of, units)
    blocks: list[BlockSums] = parts.sum(BlockSums.of, [(seed, sums.users) for sums in first])
    samples = [
        _sample(parts, name, sums, of_pairs, unit, of_blocks.in_order())
        for name, sums, of_pairs, unit, of_blocks in zip(names, first, pairs, units, blocks)
    ]
    return ComparedParts(parts, first, pairs, units, samples, notes.sentences())


def _sample(
    parts: SampleParts, metric: str, sums: FirstSums, pairs: PairTotals, unit: float, blocks: BlockSums
) -> PartedSample:
    first, second = parts.pairs
    geometric, shift, lower_is_better, weighted = sums.kind
    n, sd = pairs.influences.n, zero_if_rounding(pairs.influences.sd, pairs.influences.mean)
    return PartedSample(
        metric=metric,
        systems=parts.scores.systems,
        first=first,
        second=second,
        lower_is_better=lower_is_better,
        geometric=geometric,
        shift=shift,
        weighted=weighted,
        n_users=sums.users,
        n=n.astype(np.int64),
        totals=sums.totals,
        least=sums.least,
        outcomes=(n, sd * unit, pairs.wins.astype(np.float64), pairs.losses.astype(np.float64)),
        values_of_blocks=(blocks.values[:-1], blocks.values[-1:]),
        influences_of_blocks=blocks.influences,
    )
