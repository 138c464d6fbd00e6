"""`MaskedScores`: the scores of every system if only some of the test ratings are known."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cranfield.assessments.sampling_plan import Hits, SamplingPlan, compiled, is_known, is_summable
from cranfield.judgments import Judged, Judgments
from cranfield.measures import Average
from cranfield.metrics import Metric

# Maximum number of values (64 MB) per block of metrics in each thread.
_CELLS = 1 << 23


@dataclass(frozen=True, eq=False)
class SubsetScores:
    """The values of some metrics under a mask.

    Parameters
    ----------
    places
        The indices of these metrics among all.
    values
        metrics × systems × remaining lists; NaN where undefined, unless undefined values count as 0.
    judged, relevant
        The remaining test ratings of each list, and the relevant ones.
    overall
        metrics × systems, for metrics of all lists together; None for others.
    complete
        Whether no value can be NaN, so that no check for NaN is needed.
    """

    places: Sequence[int]
    values: NDArray[np.float64]
    judged: NDArray[np.int64]
    relevant: NDArray[np.int64]
    overall: NDArray[np.float64] | None = None
    complete: bool = False

    def averages(self, average: Average) -> NDArray[np.float64]:
        """Return metrics × systems averages over the lists where the value is defined."""
        if self.overall is not None:
            return self.overall
        weights = None
        if average.weights is not None:
            weights = (self.judged if average.weights == "judged" else self.relevant).astype(np.float64)
        if self.complete:
            return np.array([average.of_rows(table, weights) for table in self.values])
        return np.array([[_average(average, row, weights) for row in table] for table in self.values])


def _average(average: Average, row: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    """Return the average of the values that are defined."""
    undefined = np.isnan(row)
    if undefined.any():
        row, weights = row[~undefined], None if weights is None else weights[~undefined]
    return average(row, weights)


class MaskedScores:
    """The values of metrics for every system, under any mask of the test ratings.

    An item whose rating is masked out is unjudged, and a user without remaining ratings is not in the test set, just as
    in a smaller test file. The common ranking metrics are computed by one compiled walk over the judged items of all
    lists; the others use `Judged.only`.

    Parameters
    ----------
    judged
        The judged lists of every system, all over the same judgments.
    metrics
        The metrics to measure.
    undefined
        What to do with lists for which a metric is undefined: ``zero``, if the metric allows it, or ``leave out``.
    """

    def __init__(self, judged: Sequence[Judged], metrics: Sequence[Metric], undefined: str = "zero") -> None:
        self.judged, self.metrics, self._undefined = tuple(judged), tuple(metrics), undefined
        self._local = threading.local()
        walked = [m for m, metric in enumerate(self.metrics) if self._is_walked(metric)]
        self.slow = tuple(str(metric) for m, metric in enumerate(self.metrics) if m not in walked)
        self._plans = self._make_plans(walked)
        self._others = [m for m in range(len(self.metrics)) if m not in walked]

    @property
    def judgments(self) -> Judgments:
        """The whole test set."""
        return self.judged[0].judgments

    def parts(self, mask: NDArray[np.bool_], top: float | None = None) -> Iterator[SubsetScores]:
        """Yield the values under a mask, one block of metrics at a time.

        The memory of a part's values is reused by the next part. ``top`` is the highest rating that remains in the
        whole test set, if the lists are those of some of its users.
        """
        for places, plan in self._plans:
            yield self._walk(places, plan, mask, top)
        yield from self._measure(mask, top)

    def averages(self, mask: NDArray[np.bool_], averages: Sequence[Average]) -> NDArray[np.float64]:
        """Return averages × metrics × systems under a mask."""
        means = np.empty((len(averages), len(self.metrics), len(self.judged)))
        for part in self.parts(mask):
            for a, average in enumerate(averages):
                means[a, part.places] = part.averages(average)
        return means

    def _is_walked(self, metric: Metric) -> bool:
        if compiled() is None or not (is_known(metric) and is_summable(metric, self.judgments)):
            return False
        # The walk supports neither ties nor items that were pooled and not judged.
        if metric.definition.name == "infAP" and any(lists.pooled_above is not None for lists in self.judged):
            return False
        return all(lists.tied_from is None for lists in self.judged)

    def _make_plans(self, walked: Sequence[int]) -> list[tuple[list[int], SamplingPlan]]:
        if not walked:
            return []
        hits = Hits.of(self.judged)
        groups: dict[tuple[float, bool], list[int]] = {}
        for m in walked:
            parameters = dict(self.metrics[m].parameters)
            threshold = float(parameters.get("rel", self.judgments.threshold))
            groups.setdefault(
                (threshold, self.judged[0].is_condensed or parameters.get("condensed", False)), []
            ).append(m)
        plans = []
        for (threshold, condensed), places in groups.items():
            judgments = self.judgments.at(threshold)
            for block in self._blocks(places):
                plans.append((block, SamplingPlan([self.metrics[m] for m in block], judgments, hits, condensed)))
        return plans

    def _blocks(self, places: list[int]) -> list[list[int]]:
        size = max(1, _CELLS // max(1, len(self.judged) * self.judgments.n_lists))
        ends = [*range(0, len(places), size), len(places)]
        return [places[start:stop] for start, stop in pairwise(ends)]

    def _walk(self, places: list[int], plan: SamplingPlan, mask: NDArray[np.bool_], top: float | None) -> SubsetScores:
        values = self._room((len(places), len(self.judged), self.judgments.n_lists))
        judged, relevant = plan(mask, 0.0 if self._undefined == "zero" else np.nan, values, top)
        values = values[:, :, : len(judged)]
        if plan.threshold != self.judgments.threshold:  # weights do not depend on the threshold of a metric
            smaller = self.judgments.only(mask)[0]
            judged, relevant = smaller.n_judged, smaller.n_relevant
        return SubsetScores(places, values, judged, relevant, complete=self._undefined == "zero")

    def _room(self, shape: tuple[int, int, int]) -> NDArray[np.float64]:
        """Return memory for values of this shape, reused for each mask: new pages are expensive."""
        room, cells = vars(self._local), shape[0] * shape[1] * shape[2]
        if len(room.get("values", ())) < cells:
            room["values"] = np.empty(cells)
        values: NDArray[np.float64] = room["values"][:cells].reshape(shape)
        return values

    def _measure(self, mask: NDArray[np.bool_], top: float | None) -> Iterator[SubsetScores]:
        """Measure the other metrics one by one, as `measure` does on a smaller test set."""
        if not self._others:
            return
        smaller = self._smaller(mask, top)
        judgments = smaller[0].judgments
        counts = judgments.n_judged, judgments.n_relevant
        for m in self._others:
            metric = self.metrics[m]
            values = np.array([metric(lists) for lists in smaller], dtype=np.float64)
            if metric.definition.whole_system:
                yield SubsetScores([m], np.empty((1, len(smaller), 0)), *counts, overall=values[None])
                continue
            if self._undefined == "zero" and metric.zero_if_undefined:
                values = np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)
            yield SubsetScores([m], values[None], *counts)

    def _smaller(self, mask: NDArray[np.bool_], top: float | None) -> list[Judged]:
        """Return all systems' lists under a mask, over the same smaller set of judgments."""
        smaller = [lists.only(mask) for lists in self.judged]
        judgments, of_all = smaller[0].judgments, self.judgments.grades_of_all
        if top is not None and of_all is not None:
            judgments = replace(judgments, grades_of_all=of_all[of_all <= top])
        return [replace(lists, judgments=judgments, _views={}) for lists in smaller]
