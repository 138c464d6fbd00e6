"""`PartFold`: systems whose lists are on Spark, studied on smaller test sets in the pass that measures them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._progress import Progress
from cranfield.assessments.chunks import Chunks
from cranfield.assessments.robustness import AgainstWhole, Sampling, SmallerTest, signs_of
from cranfield.assessments.scenarios import Scenario
from cranfield.assessments.subset_scores import MaskedScores, SubsetScores
from cranfield.assessments.verdicts import verdicts_of_sums
from cranfield.measures.averages import Average
from cranfield.measures.averaging import Averaging, Undefined
from cranfield.measures.judged import Judged
from cranfield.measures.measuring import Measuring
from cranfield.measures.part_averages import check_additive
from cranfield.measures.score_parts import ScoreParts
from cranfield.measures.spark import measure_on_spark

Floats = NDArray[np.float64]


class SmallerBy(NamedTuple):
    """How a smaller test set is drawn; ``size`` 1 is the whole test set."""

    scenario: Scenario
    size: float
    sample: int


@dataclass(frozen=True, eq=False)
class SampleSums:
    """The sums that give the results of smaller test sets; sums of disjoint parts of the users can be added.

    Parameters
    ----------
    ratings, users, top
        By test set: the numbers of ratings and users that remain, and the highest remaining rating.
    totals, weights
        Test sets × averages × metrics × systems: Σ w x and Σ w, with x on the scale that is averaged.
    lists, sums, products
        Test sets × metrics (× systems (× systems)): the number of lists where every system has a value, and Σ x and Σ x
        x' over these lists.
    """

    ratings: NDArray[np.int64]
    users: NDArray[np.int64]
    top: Floats
    totals: Floats
    weights: Floats
    lists: NDArray[np.int64]
    sums: Floats
    products: Floats

    @classmethod
    def nothing(cls, tests: int, averages: int, metrics: int, systems: int) -> SampleSums:
        """Return sums over no users."""
        counts, cells = np.zeros((3, tests), dtype=np.int64), np.zeros((2, tests, averages, metrics, systems))
        lists, sums = np.zeros((tests, metrics), dtype=np.int64), np.zeros((tests, metrics, systems))
        return cls(
            counts[0], counts[1], np.zeros(tests), cells[0], cells[1], lists, sums, np.zeros((*sums.shape, systems))
        )

    def __add__(self, other: SampleSums) -> SampleSums:
        added = {name: values + getattr(other, name) for name, values in vars(self).items() if name != "top"}
        return SampleSums(**added, top=np.maximum(self.top, other.top))

    def put(self, places: Sequence[int], others: SampleSums) -> None:
        """Replace the sums of some of the test sets."""
        for name, values in vars(self).items():
            values[places] = getattr(others, name)

    def add(self, test: int, part: SubsetScores, averages: Sequence[Average]) -> None:
        """Add the values of some metrics under a mask."""
        for m, values in zip(part.places, part.values):
            for a, average in enumerate(averages):
                assert average.scale is not None
                weights = np.ones(len(part.judged))
                if average.weights is not None:
                    weights = (part.judged if average.weights == "judged" else part.relevant).astype(np.float64)
                scaled = average.scale(values)
                self.totals[test, a, m] += np.nansum(scaled * weights, axis=1)
                self.weights[test, a, m] += (~np.isnan(scaled) * weights).sum(axis=1)
            common = values[:, ~np.isnan(values).any(axis=0)]
            self.lists[test, m] += common.shape[1]
            self.sums[test, m] += common.sum(axis=1)
            self.products[test, m] += common @ common.T

    def smaller_test(self, test: int, sampling: Sampling, signs: Floats) -> SmallerTest:
        """Return the result of a smaller test set."""
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.where(self.weights[test] > 0, self.totals[test] / self.weights[test], np.nan)
        averages = np.empty_like(means)
        for average, row, mean in zip(sampling.averages, averages, means):
            assert average.back is not None
            row[:] = np.vectorize(average.back, otypes=[float])(mean)
        verdicts = [
            verdicts_of_sums(int(n), sums, products, sampling.alpha)
            for n, sums, products in zip(self.lists[test], self.sums[test], self.products[test])
        ]
        better = (np.array(verdicts) * signs[:, None]).astype(np.int8)
        return SmallerTest(averages, better, int(self.ratings[test]), int(self.users[test]))


@dataclass(frozen=True)
class SampleStudy:
    """Computes the sums of smaller test sets from the judged lists of some users. It is sent to the workers.

    ``tops`` are the highest ratings of the smaller test sets over all users; None: that of the whole test set.
    """

    tests: tuple[SmallerBy, ...]
    measuring: Measuring
    sampling: Sampling
    undefined: Undefined
    tops: tuple[float, ...] | None = None

    def __call__(self, judged: Sequence[Judged]) -> SampleSums:
        """Apply every mask to the ratings of these users, and add up the values."""
        views = [lists.condensed() for lists in judged] if self.measuring.lists == "condensed" else judged
        metrics, averages = self.measuring.wanted, self.sampling.averages
        masked, judgments = MaskedScores(views, metrics, self.undefined), judged[0].judgments
        sums = SampleSums.nothing(len(self.tests), len(averages), len(metrics), len(judged))
        for test, (scenario, size, sample) in enumerate(self.tests):
            mask = scenario.mask(judgments, size, sample, self.sampling.seed, "hash")
            if not mask.any():
                continue
            sums.ratings[test] = np.count_nonzero(mask)
            sums.top[test] = judgments.grades[mask].max(initial=0.0)
            for part in masked.parts(mask, judgments.top_grade if self.tops is None else self.tops[test]):
                sums.users[test] = len(part.judged)
                sums.add(test, part, averages)
        return sums


class PartFold:
    """A `Fold` whose lists are on Spark: random scenarios with hashed masks, all test sets measured in one pass.

    If a smaller test set lacks the highest rating of the whole one, which some metrics depend on, a second pass
    measures it again.
    """

    slow: tuple[str, ...] = ()

    def __init__(
        self,
        runs: Any,
        test: Any,
        measuring: Measuring,
        sampling: Sampling,
        *,
        scenarios: Sequence[Scenario],
        sizes: Mapping[str, Sequence[float]],
        undefined: Undefined = "zero",
        **options: Any,
    ) -> None:
        _refuse_all_at_once(measuring, sampling, scenarios)
        smaller = [
            SmallerBy(way, size, sample)
            for way in scenarios
            for size in sizes[way.name]
            for sample in range(sampling.samples)
            if size < 1.0
        ]
        tests = (SmallerBy(scenarios[0], 1.0, 0), *smaller)
        # Workers do not know metrics that were registered in this process.
        study = SampleStudy(tests, measuring.with_(metrics=measuring.wanted), sampling, undefined)
        self.scores: ScoreParts = measure_on_spark(runs, test, measuring, study=study, **options)
        if len(self.scores.systems) < 2:
            raise SettingError("an assessment compares orders of systems; give at least two runs")
        sums = self.scores.studied
        places = np.flatnonzero((sums.top != sums.top[0]) & (sums.ratings > 0))
        if len(places):
            again = replace(study, tests=tuple(tests[p] for p in places), tops=tuple(sums.top[places].tolist()))
            sums.put(places, measure_on_spark(runs, test, measuring, study=again, **options).studied)
        signs = signs_of(measuring.wanted)
        self._tests = {by: sums.smaller_test(place, sampling, signs) for place, by in enumerate(tests)}
        self._whole = self._tests[tests[0]]
        self._against = AgainstWhole(measuring.wanted, sampling, self._whole)

    @property
    def whole(self) -> Floats:
        """The averages × metrics × systems of the whole test set."""
        return self._whole.averages

    def n_samples(self, scenarios: Sequence[Scenario], sizes: Mapping[str, Sequence[float]]) -> int:
        """Return the number of test sets in a study; ``sizes`` are by name of the scenario."""
        return sum(
            1 if size == 1.0 else self._against.sampling.samples for way in scenarios for size in sizes[way.name]
        )

    def study(
        self, scenarios: Sequence[Scenario], sizes: Mapping[str, Sequence[float]], bar: Progress, _: Chunks
    ) -> pl.DataFrame:
        """Return the samples of all scenarios and sizes, which are already measured; nothing is stored."""
        frames = []
        for way in scenarios:
            for size in sizes[way.name]:
                samples = [self._whole] if size == 1.0 else [
                    self._tests[SmallerBy(way, size, sample)] for sample in range(self._against.sampling.samples)
                ]  # fmt: skip
                frames.append(self._against.rows(way, size, samples))
                bar.advance(len(samples))
        return pl.concat(frames)


def _refuse_all_at_once(measuring: Measuring, sampling: Sampling, scenarios: Sequence[Scenario]) -> None:
    """Raise an error for options that need all users at once."""
    for way in scenarios:
        if way.largest_first:
            raise SettingError(
                f"the scenario {way} looks at all users at once, and these are on Spark; assess the random ones there: "
                "ratings, items, users"
            )
    for average in sampling.averages:
        check_additive(Averaging(average=str(average)))
    for metric in measuring.wanted:
        if metric.definition.whole_system:
            raise SettingError(
                f"{metric} belongs to all lists together, which cannot be assessed on Spark; leave it out"
            )
    if sampling.masks != "hash":
        raise SettingError("masks='count' counts all ratings at once, and these are on Spark; use masks='hash'")
