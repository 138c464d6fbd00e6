"""Samples of users that are kept in parts: passes over the parts, and what they add up to."""

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
"""What a pass does with the sample of one metric in one part; the last argument is that of the metric."""


@dataclass(frozen=True, eq=False)
class SampleParts:
    """The samples of all metrics of a comparison, whose users are kept in parts.

    Parameters
    ----------
    scores, averaging, baseline
        What they are samples of.
    metrics
        Those that are compared.
    totals
        What is known of all users, for each metric; none before the first pass.
    epsilon
        Where samples are of logarithms: what is added to each value.
    """

    scores: ScoreParts
    averaging: Averaging
    baseline: str | None
    metrics: tuple[str, ...]
    totals: tuple[Totals, ...] = ()
    epsilon: float | None = None

    def sum(self, function: SampleFunction, arguments: Sequence[Any] | None = None) -> list[Any]:
        """Return for each metric the sum over all parts of what a function makes of its sample; None without argument.

        The function and its arguments go to where the parts are, so they must be such as can be sent.
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
    """Results of several metrics, which add up one by one."""

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
    """What a first pass adds up for one metric: by system, unless it says otherwise.

    Parameters
    ----------
    n, total, weight
        How many users count; the sum of their weighted values, on the scale that is averaged, and of their weights.
    largest, largest_tested, least
        The largest absolute value, also on the scale of the test, and the lowest value.
    users, all_weight
        How many users there are, whether they count or not, and their weight.
    missing
        For how many lists the metric is undefined.
    step
        The step that all values on the scale of the test have in common.
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
        """Look at the sample of a part; the argument is how lists are averaged."""
        counted, averaged = sample.counted, sample.tested if sample.geometric else sample.values
        weights = counted.astype(np.float64) if sample.weights is None else counted * sample.weights
        scaled = argument.with_kind().taken_of(scores)
        missing = np.isnan(scaled.values[:, scaled.metric(sample.metric)])
        # What a weighted test looks at is divided by the mean weight, which is not known yet.
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
        """The mean weight of all users; 1 without weights, or if nobody has any."""
        weighted = self.kind[3]
        return (self.all_weight / self.users or 1.0) if weighted else 1.0

    @property
    def totals(self) -> Totals:
        """What the values of a part must know of all users."""
        geometric, shift, *_ = self.kind
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(self.weight > 0, self.total / self.weight, np.nan)
        averages = np.exp(mean) - shift if geometric else mean
        place = int(np.argmax(self.n))
        counted = float(self.weight[place] / max(int(self.n[place]), 1))
        return Totals(averages, self.largest, self.largest_tested / self.mean_weight, self.mean_weight, counted)

    @property
    def common_step(self) -> float:
        """The step that all values on the scale of the test have in common, as far as is known; 0 if there is none."""
        return self.step.value / self.mean_weight


def unit_for(largest: Floats) -> float:
    """Return a power of 2 near the largest of some numbers: dividing by it rounds nothing, and squares then fit."""
    top = float(largest.max(initial=0.0))
    return float(np.ldexp(1.0, int(np.frexp(top)[1]) - 1)) if top > 0 and np.isfinite(top) else 1.0


@dataclass(frozen=True, eq=False)
class PairTotals:
    """What a second pass adds up for one metric: by pair, in units of a power of 2.

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
        """Look at the sample of a part."""
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
    """Return the moments of some pairs and of others, one after the other."""
    return Moments(*(np.concatenate([getattr(block, name) for block in blocks]) for name in ("n", "mean", "squares")))


@dataclass(frozen=True, eq=False)
class BlockSums:
    """Sums over blocks of users, rows × blocks; ``ids`` are the users where each is a block."""

    values: Floats
    influences: Floats
    ids: pl.Series | None

    @classmethod
    def of(cls, sample: Sample, scores: Scores, argument: tuple[int, int]) -> BlockSums:
        """Look at the sample of a part; the arguments are the seed, and how many users there are in all."""
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
        """Return the sums with the users in the order of their ids, whatever part they are in."""
        if self.ids is None:
            return self
        order = self.ids.arg_sort().to_numpy()
        return BlockSums(self.values[:, order], self.influences[:, order], self.ids)


def _in_blocks(rows: Floats, block: NDArray[np.intp]) -> Floats:
    return np.stack([np.bincount(block, row, MOST_BLOCKS) for row in rows])


@dataclass(frozen=True, eq=False)
class ComparedParts:
    """What the passes of a comparison have added up: the parts, and for each metric sums and samples."""

    parts: SampleParts
    first: list[FirstSums]
    pairs: list[PairTotals]
    units: list[float]
    samples: list[PartedSample]
    notes: tuple[str, ...]


def gather(
    scores: ScoreParts, averaging: Averaging, *, metrics: Sequence[str] | None, baseline: str | None, seed: int
) -> ComparedParts:
    """Make the passes over the parts that every comparison needs."""
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
