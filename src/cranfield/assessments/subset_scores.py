"""`MaskedScores`: the scores of every system if only some of the test ratings are known.

`SamplingPlan` says which metrics the compiled walk of `_kernel` supports, and makes the tables that tell it what to
compute.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.judgments import Judged, Judgments
from cranfield.measures import Average
from cranfield.metrics import EXPONENTIAL, GAINS, Metric, above_one, logarithmic, powers_less_one

_CELLS = 1 << 23  # maximum number of values (64 MB) per block of metrics in each thread


@dataclass(frozen=True, eq=False)
class SubsetScores:
    """The values of some metrics under a mask."""

    places: Sequence[int]  # the indices of these metrics among all
    values: NDArray[np.float64]  # metrics × systems × remaining lists; NaN where undefined, unless that counts as 0
    judged: NDArray[np.int64]  # the remaining test ratings of each list
    relevant: NDArray[np.int64]  # the relevant ones among them
    overall: NDArray[np.float64] | None = None  # metrics × systems, for metrics of all lists together
    complete: bool = False  # whether no value can be NaN, so that no check for NaN is needed

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
    lists; the others use `Judged.only`. The judged lists of all systems are over the same judgments. ``undefined`` is
    ``zero``, which counts where a metric allows it, or ``leave out``.
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

    def parts(self, mask: NDArray[np.bool_]) -> Iterator[SubsetScores]:
        """Yield the values under a mask, one block of metrics at a time; its memory is reused by the next one."""
        for places, plan in self._plans:
            yield self._walk(places, plan, mask)
        if self._others:
            yield from self._measure(mask)

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
        hits = Hits(self.judged)
        groups: dict[tuple[float, bool], list[int]] = {}
        for m in walked:
            parameters = dict(self.metrics[m].parameters)
            condensed = self.judged[0].is_condensed or parameters.get("condensed", False)
            groups.setdefault((float(parameters.get("rel", self.judgments.threshold)), condensed), []).append(m)
        plans, size = [], max(1, _CELLS // max(1, len(self.judged) * self.judgments.n_lists))
        for (threshold, condensed), places in groups.items():
            judgments = self.judgments.at(threshold)
            for start in range(0, len(places), size):
                block = places[start : start + size]
                plans.append((block, SamplingPlan([self.metrics[m] for m in block], judgments, hits, condensed)))
        return plans

    def _walk(self, places: list[int], plan: SamplingPlan, mask: NDArray[np.bool_]) -> SubsetScores:
        values = self._room((len(places), len(self.judged), self.judgments.n_lists))
        judged, relevant = plan(mask, 0.0 if self._undefined == "zero" else np.nan, values)
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
        return room["values"][:cells].reshape(shape)

    def _measure(self, mask: NDArray[np.bool_]) -> Iterator[SubsetScores]:
        """Measure the other metrics one by one, as `measure` does on a smaller test set."""
        smaller = [lists.only(mask) for lists in self.judged]
        # All lists are over the same smaller set of judgments.
        judgments = smaller[0].judgments
        smaller = [replace(lists, judgments=judgments, _views={}) for lists in smaller]
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


_BEYOND = np.iinfo(np.int64).max
# The compiled walk adds up gains without scaling. Sums and quotients of ratings within these bounds neither overflow
# nor underflow; for 2^r, ratings must be below the logarithm of the upper bound.
_HIGHEST, _LOWEST = 2.0**500, 2.0**-500


def _chapelle(judgments: Judgments) -> NDArray[np.float64]:
    """Return 2^(r−1) − 1, before it is scaled by the highest rating of the test set."""
    return powers_less_one(above_one(judgments))


# Gains that depend on a single judgment, and how the highest rating scales them.
_GAINS: Mapping[str, tuple[Callable[[Judgments], NDArray[np.float64]], str]] = {
    "rating": (GAINS["rating"], "none"),
    "binary": (GAINS["binary"], "none"),
    "exp": (GAINS["exp"], "none"),
    "exp1": (_chapelle, "chapelle"),
    "exp1full": (_chapelle, "full range"),
}


# The running sum of each metric, and its factor with a cut-off and without, named as in `_kernel`.
_METRICS: Mapping[str, tuple[str, str, str]] = {
    "P": ("HITS", "PER_CUTOFF", "PER_LENGTH"),
    "Recall": ("HITS", "PER_RELEVANT", "PER_RELEVANT"),
    "F1": ("HITS", "PER_CUTOFF_AND_RELEVANT", "PER_LENGTH_AND_RELEVANT"),
    "HitRate": ("ANY_HIT", "ONE", "ONE"),
    "RR": ("FIRST", "ONE", "ONE"),
    "AP": ("PRECISIONS", "PER_RELEVANT", "PER_RELEVANT"),
    "bpref": ("PREFERENCES", "PER_RELEVANT", "PER_RELEVANT"),
    "infAP": ("INFERRED_ALL", "PER_RELEVANT", "PER_RELEVANT"),
    "nDCG": ("discounted", "PER_IDEAL", "PER_IDEAL"),
    "RBP": ("discounted", "SCALE", "SCALE"),
    "ERR": ("expected", "IF_RATED", "IF_RATED"),
}


@cache
def compiled() -> Any:
    """Return the module of compiled loops, or None if numba is not installed."""
    try:
        from cranfield.assessments import _kernel
    except ImportError:
        return None
    return _kernel


def is_known(metric: Metric) -> bool:
    """Return whether the compiled walk supports a metric."""
    # With a level of relevance, other items have no gain, which the walk does not support.
    at_level = metric.definition.family == "graded" and "rel" in dict(metric.parameters) and _gain(metric) != "binary"
    return metric.dialect is None and metric.definition.name in _METRICS and _gain(metric) in _GAINS and not at_level


def is_summable(metric: Metric, judgments: Judgments) -> bool:
    """Return whether the gains of a supported metric can be added up without scaling."""
    gain, above_zero = _gain(metric), judgments.grades[judgments.grades > 0.0]
    highest = np.log2(_HIGHEST) if gain in EXPONENTIAL else _HIGHEST
    return gain == "binary" or bool((above_zero >= _LOWEST).all() and (above_zero <= highest).all())


def _gain(metric: Metric) -> str:
    name = metric.definition.name
    if name == "ERR":
        return "exp"
    return str(dict(metric.parameters).get("gain", "rating" if name == "nDCG" else "binary"))


class Hits:
    """The hits of all systems, one after another, in the layout of the compiled walk."""

    def __init__(self, judged: Sequence[Judged]) -> None:
        before = np.cumsum([0, *(len(lists) for lists in judged)])
        starts = [np.append(lists.starts, len(lists)) + offset for lists, offset in zip(judged, before)]
        self.starts = np.array(starts, dtype=np.int64)
        self.ranks = np.concatenate([lists.ranks for lists in judged]).astype(np.uint32)
        self.pointers = np.concatenate([lists.pointers for lists in judged]).astype(np.uint32)
        self.lengths = np.array([lists.lengths for lists in judged], dtype=np.int64)


class SamplingPlan:
    """The tables of metrics that the walk supports and that share a threshold and the kind of lists."""

    def __init__(self, metrics: Sequence[Metric], judgments: Judgments, hits: Hits, condensed: bool) -> None:
        self._judgments, self._hits, self._condensed = judgments, hits, condensed
        self._cutoffs = sorted({metric.cutoff or _BEYOND for metric in metrics} | {_BEYOND})
        of = {name: [metric for metric in metrics if metric.definition.name == name] for name in ("nDCG", "RBP", "ERR")}
        self._sums = list(dict.fromkeys(_sum(metric) for metric in (*of["nDCG"], *of["RBP"])))
        self._tops = list(dict.fromkeys(_top(metric) for metric in of["ERR"]))
        ratings = np.maximum(judgments.grades, 0.0) if self._tops else np.zeros(len(judgments))
        self._strengths = powers_less_one(ratings)
        self._lay_out_gains()
        self._lay_out_metrics(metrics)

    @property
    def threshold(self) -> float:
        """The lowest relevant rating for these metrics."""
        return self._judgments.threshold

    def _lay_out_gains(self) -> None:
        """Compute the gains of all judgments, their order in each list, and the discounts."""
        judgments, names = self._judgments, list(dict.fromkeys(gain for gain, _ in self._sums))
        self._gains = np.array([_GAINS[name][0](judgments) for name in names]).reshape(len(names), len(judgments))
        self._orders = [np.lexsort((-gains, judgments.lists)).astype(np.uint32) for gains in self._gains]
        self._sum_gain = np.array([names.index(gain) for gain, _ in self._sums], dtype=np.int64)
        longest = (self._hits.ranks, self._hits.lengths, judgments.n_judged)
        depth = max(int(lengths.max(initial=0)) for lengths in longest)
        self._discounts = np.zeros((len(self._sums), depth + 1))
        for v, (_, p) in enumerate(self._sums):
            self._discounts[v, 1:] = logarithmic(depth) if p is None else (1.0 - p) * np.power(p, np.arange(depth))

    def _lay_out_metrics(self, metrics: Sequence[Metric]) -> None:
        """Find the sum, the cut-off and the factor of each metric."""
        kernel = compiled()
        table = np.zeros((4, len(metrics)), dtype=np.int64)
        for m, metric in enumerate(metrics):
            name, cut = metric.definition.name, self._cutoffs.index(metric.cutoff or _BEYOND)
            source, with_cutoff, without = _METRICS[name]
            variant = 0
            if source == "discounted":
                variant = self._sums.index(_sum(metric))
                place = kernel.FIXED + variant
            elif source == "expected":
                place = kernel.FIXED + len(self._sums) + self._tops.index(_top(metric))
            else:
                judged_pool = name == "infAP" and dict(metric.parameters).get("pool") == "judged"
                place = getattr(kernel, "INFERRED_JUDGED" if judged_pool else source)
            kind = getattr(kernel, without if metric.cutoff is None else with_cutoff)
            table[:, m] = place, kind, variant, cut
        self._sources, self._kinds, self._variants, self._cuts = table
        names = {metric.definition.name for metric in metrics}
        self._needs = np.array([name in names for name in ("bpref", "infAP")])

    def __call__(
        self, mask: NDArray[np.bool_], undefined: float, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Fill ``values`` for the judgments in ``mask``; return the numbers of (relevant) ones of each list."""
        kernel, judgments, hits = compiled(), self._judgments, self._hits
        counts, top_grades = np.empty((2, judgments.n_lists), dtype=np.int64), np.empty(judgments.n_lists)
        relevant, cutoffs = judgments.relevant, np.array(self._cutoffs, dtype=np.int64)
        top = kernel.count_lists(judgments.indptr, mask, relevant, judgments.grades, counts, top_grades)
        ideals = np.zeros((len(self._sums), len(cutoffs), judgments.n_lists))
        for v, (gain, discount) in enumerate(zip(self._sum_gain, self._discounts)):
            if self._sums[v][1] is None:
                order, gains = self._orders[gain], self._gains[gain]
                kernel.ideal_sums(judgments.indptr, mask, order, gains, discount, cutoffs, ideals[v])
        scales = np.array([_scale(_GAINS[gain][1], top) for gain, _ in self._sums])
        factors = np.empty((len(self._kinds), judgments.n_lists))
        kernel.fill_factors(
            self._kinds, self._variants, self._cuts, cutoffs, counts, top_grades, ideals, scales, undefined, factors
        )
        satisfied_by = np.empty((len(self._tops), judgments.n_lists))
        for e, rmax in enumerate(self._tops):
            highest = top if rmax == "dataset" else top_grades if rmax == "user" else float(rmax)
            satisfied_by[e] = np.exp2(-np.asarray(highest))
        lists = np.flatnonzero(counts[0])
        for s, starts in enumerate(hits.starts):
            kernel.walk(
                lists, starts, hits.ranks, hits.pointers, hits.lengths[s], self._condensed, mask, relevant, counts,
                self._strengths, satisfied_by, self._gains, self._sum_gain, self._discounts, cutoffs, self._needs,
                self._sources, self._cuts, self._kinds, factors, values[:, s],
            )  # fmt: skip
        return counts[0, lists], counts[1, lists]


def _sum(metric: Metric) -> tuple[str, float | None]:
    """Return the gain of a discounted sum and the p of its discount; None for the discount of nDCG."""
    p = None if metric.definition.name == "nDCG" else float(dict(metric.parameters).get("p", 0.8))
    return _gain(metric), p


def _top(metric: Metric) -> Any:
    return dict(metric.parameters).get("rmax", "dataset")


def _scale(kind: str, top: float) -> float:
    """Return the factor by which the highest rating of the test set scales a gain."""
    if kind == "none":
        return 1.0
    reach = 2.0 ** (top - 1.0) - (1.0 if kind == "full range" else 0.0)
    return 1.0 / (reach if reach > 0 else 1.0)
