"""Which metrics the compiled walk supports, and the tables that tell it what to compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.judgments import Judged, Judgments
from cranfield.metrics import EXPONENTIAL, GAINS, Metric, above_one, logarithmic, powers_less_one

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


@dataclass(frozen=True, eq=False)
class Hits:
    """The hits of all systems in the layout of the compiled walk."""

    starts: NDArray[np.int64]
    ranks: NDArray[np.uint32]
    pointers: NDArray[np.uint32]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, judged: Sequence[Judged]) -> Hits:
        """Concatenate the hits of the systems."""
        before = np.cumsum([0, *(len(lists) for lists in judged)])
        starts = [np.append(lists.starts, len(lists)) + offset for lists, offset in zip(judged, before)]
        return cls(
            np.array(starts, dtype=np.int64),
            np.concatenate([lists.ranks for lists in judged]).astype(np.uint32),
            np.concatenate([lists.pointers for lists in judged]).astype(np.uint32),
            np.array([lists.lengths for lists in judged], dtype=np.int64),
        )


class SamplingPlan:
    """The tables of metrics that share a threshold and are either all condensed or all not.

    Parameters
    ----------
    metrics
        Metrics for which `is_known` and `is_summable` are true.
    judgments
        The whole test set, under the threshold of these metrics.
    hits
        The hits of all systems in it.
    condensed
        Whether items without a test rating are removed from the lists.
    """

    def __init__(self, metrics: Sequence[Metric], judgments: Judgments, hits: Hits, condensed: bool) -> None:
        self._judgments, self._hits, self._condensed = judgments, hits, condensed
        self._lay_out_sums(metrics)
        ratings = np.maximum(judgments.grades, 0.0) if self._tops else np.zeros(len(judgments))
        self._strengths = powers_less_one(ratings)
        self._lay_out_gains()
        self._lay_out_metrics(metrics)

    @property
    def threshold(self) -> float:
        """The lowest relevant rating for these metrics."""
        return self._judgments.threshold

    def _lay_out_sums(self, metrics: Sequence[Metric]) -> None:
        """Find the cut-offs, the discounted sums (gain and p, None for the logarithmic one) and the forms of ERR."""
        self._cutoffs = sorted({metric.cutoff or _BEYOND for metric in metrics} | {_BEYOND})
        of = {name: [metric for metric in metrics if metric.definition.name == name] for name in ("nDCG", "RBP", "ERR")}
        self._sums = list(dict.fromkeys([_sum(metric) for metric in (*of["nDCG"], *of["RBP"])]))
        self._tops = list(dict.fromkeys(_top(metric) for metric in of["ERR"]))

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
        self,
        mask: NDArray[np.bool_],
        undefined: float,
        values: NDArray[np.float64],
        top: float | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Fill ``values`` (metrics × systems × lists) for the judgments in ``mask``, starting at the first column.

        Returns the numbers of judgments and of relevant ones of each remaining list. An undefined value becomes
        ``undefined``: 0 or NaN. ``top`` is the highest rating that remains in the whole test set, if these judgments
        are a part of it.
        """
        kernel, judgments, hits = compiled(), self._judgments, self._hits
        counts, top_grades = np.empty((2, judgments.n_lists), dtype=np.int64), np.empty(judgments.n_lists)
        relevant, cutoffs = judgments.relevant, np.array(self._cutoffs, dtype=np.int64)
        highest_here = kernel.count_lists(judgments.indptr, mask, relevant, judgments.grades, counts, top_grades)
        top = highest_here if top is None else top
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
        highest = [top if rmax == "dataset" else top_grades if rmax == "user" else float(rmax) for rmax in self._tops]
        satisfied_by = np.empty((len(highest), judgments.n_lists))
        for e, grade in enumerate(highest):
            satisfied_by[e] = np.exp2(-np.asarray(grade))
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
    parameters = dict(metric.parameters)
    if metric.definition.name == "nDCG":
        return parameters.get("gain", "rating"), None
    return parameters.get("gain", "binary"), float(parameters.get("p", 0.8))


def _top(metric: Metric) -> Any:
    return dict(metric.parameters).get("rmax", "dataset")


def _scale(kind: str, top: float) -> float:
    """Return the factor by which the highest rating of the test set scales a gain."""
    if kind == "none":
        return 1.0
    reach = 2.0 ** (top - 1.0) - (1.0 if kind == "full range" else 0.0)
    return 1.0 / (reach if reach > 0 else 1.0)
