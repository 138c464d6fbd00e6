"""Which metrics the compiled walk knows, and the tables that tell it what to compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.measure.judged import Judged
from cranfield.measure.judgments import Judgments
from cranfield.measure.metric import Metric
from cranfield.measure.metrics.graded import GAINS, logarithmic

# In the order of the numbers in `_kernel`; infAP has two, one for each pool.
OPERATIONS = ("P", "Recall", "F1", "HitRate", "RR", "AP", "bpref", "infAP", "infAP(pool=judged)", "nDCG", "RBP", "ERR")
_BEYOND = np.iinfo(np.int64).max
_ERR_TOPS = {"dataset": 0, "user": 1}
_ERR_GIVEN = 2


def _chapelle(judgments: Judgments) -> NDArray[np.float64]:
    """Return 2^(r−1) − 1, which the highest rating of the test set scales."""
    return np.exp2(np.maximum(judgments.grades - 1.0, 0.0)) - 1.0


# Gains that look at a judgment by itself, and, for those that the highest rating scales, in which way.
_GAINS: Mapping[str, tuple[Callable[[Judgments], NDArray[np.float64]], int]] = {
    "rating": (GAINS["rating"], 0),
    "binary": (GAINS["binary"], 0),
    "exp": (GAINS["exp"], 0),
    "exp1": (_chapelle, 1),
    "exp1full": (_chapelle, 2),
}


@cache
def compiled() -> Any:
    """Return the compiled walk, or None where numba is not installed."""
    try:
        from cranfield.assess import _kernel
    except ImportError:
        return None
    return _kernel.evaluate


def is_known(metric: Metric) -> bool:
    """Say whether the compiled walk knows a metric."""
    parameters = dict(metric.parameters)
    if metric.dialect is not None or metric.definition.name not in OPERATIONS:
        return False
    own = {key: value for key, value in parameters.items() if key not in ("rel", "condensed")}
    return own.get("gain", "binary") in _GAINS


@dataclass(frozen=True, eq=False)
class Hits:
    """The hits of all systems as the compiled walk wants them."""

    starts: NDArray[np.int64]
    ranks: NDArray[np.int32]
    pointers: NDArray[np.int32]
    lengths: NDArray[np.int32]

    @classmethod
    def of(cls, judged: Sequence[Judged]) -> Hits:
        """Put the hits of the systems one after the other."""
        before = np.cumsum([0, *(len(one) for one in judged)])
        starts = [np.append(one.starts, len(one)) + offset for one, offset in zip(judged, before)]
        return cls(
            np.array(starts, dtype=np.int64),
            np.concatenate([one.ranks for one in judged]).astype(np.int32),
            np.concatenate([one.pointers for one in judged]).astype(np.int32),
            np.array([one.lengths for one in judged], dtype=np.int32),
        )


class Plan:
    """The tables of some metrics that share a threshold and are condensed, or not, alike.

    Parameters
    ----------
    metrics
        Metrics of which `is_known` says yes.
    judgments
        The whole test set, under the threshold of these metrics.
    hits
        The hits of all systems in it.
    condensed
        Whether items without a test rating are taken out of the lists.
    """

    def __init__(self, metrics: Sequence[Metric], judgments: Judgments, hits: Hits, condensed: bool) -> None:
        self.threshold = judgments.threshold
        depth = int(max(hits.lengths.max(initial=0), judgments.n_judged.max(initial=0), hits.ranks.max(initial=0))) + 1
        cutoffs = sorted({metric.cutoff or _BEYOND for metric in metrics} | {_BEYOND})
        gains: list[str] = []
        sums: list[tuple[str, float | None]] = []
        tops: list[Any] = []
        table = np.zeros((4, len(metrics)), dtype=np.int64)
        for m, metric in enumerate(metrics):
            own, name = dict(metric.parameters), metric.definition.name
            variant = 0
            if name == "nDCG":
                variant = _place(sums, (own.get("gain", "rating"), None))
            elif name == "RBP":
                variant = _place(sums, (own.get("gain", "binary"), float(own.get("p", 0.8))))
            elif name == "ERR":
                variant = _place(tops, own.get("rmax", "dataset"))
            elif name == "infAP" and own.get("pool", "all") == "judged":
                name = "infAP(pool=judged)"
            cut = cutoffs.index(metric.cutoff or _BEYOND)
            table[:, m] = OPERATIONS.index(name), variant, cut, metric.cutoff or 0
        sum_gain = [_place(gains, gain) for gain, _ in sums]
        of_gain = np.array([_GAINS[name][0](judgments) for name in gains]).reshape(len(gains), len(judgments))
        orders = [np.lexsort((-one, judgments.lists)).astype(np.int32) for one in of_gain]
        names = {OPERATIONS[place] for place in table[0]}
        self._tables = (
            judgments.indptr,
            judgments.relevant,
            judgments.grades,
            np.exp2(np.maximum(judgments.grades, 0.0)) - 1.0,
            of_gain,
            np.array([_GAINS[name][1] for name in gains], dtype=np.int64),
            np.array(orders, dtype=np.int32).reshape(len(gains), len(judgments)),
            hits.starts,
            hits.ranks,
            hits.pointers,
            hits.lengths,
            condensed,
            np.array(cutoffs, dtype=np.int64),
            np.array(sum_gain, dtype=np.int64),
            np.array([_discount(p, depth) for _, p in sums]).reshape(len(sums), depth),
            np.array([p is None for _, p in sums], dtype=np.bool_),
            np.array([_ERR_TOPS.get(top, _ERR_GIVEN) for top in tops], dtype=np.int64),
            np.array([0.0 if top in _ERR_TOPS else float(top) for top in tops], dtype=np.float64),
            *table,
            np.array(["AP" in names, "bpref" in names, bool(names & {"infAP", "infAP(pool=judged)"})]),
        )

    def __call__(
        self,
        mask: NDArray[np.bool_],
        undefined: float,
        values: NDArray[np.float64],
        counts: NDArray[np.int64],
    ) -> int:
        """Fill ``values`` (metrics × systems × lists) and ``counts``; return how many lists remain."""
        return int(compiled()(*self._tables, mask, undefined, values, counts))


def _place(known: list[Any], one: Any) -> int:
    if one not in known:
        known.append(one)
    return known.index(one)


def _discount(p: float | None, depth: int) -> NDArray[np.float64]:
    """Return the weights of the ranks: 1 / log2(k + 1), or (1 − p) p^(k − 1)."""
    return logarithmic(depth) if p is None else (1.0 - p) * np.power(p, np.arange(depth))
