r"""Metrics in expectation over the draw of non-relevant targets, without drawing any.

A sampled list contains fixed items (the relevant ones, or all test items) and a random N of the M other candidates. Of
the a candidates that the system ranks above a fixed item, the number X that is drawn is hypergeometric:

.. math:: P(X = x) = \binom{a}{x}\binom{M - a}{N - x} / \binom{M}{N}

So the rank of the item, and every metric that is a sum over ranks, has an exact expectation. It only needs the ranks in
the whole ranking.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.judgments import Draw, Judged
from cranfield.metrics.arithmetic import Values, ratio
from cranfield.metrics.definition import Metric
from cranfield.metrics.gains import gain_of, kept_name, relative_gain_of
from cranfield.metrics.graded import gains_and_ideal, logarithmic

SUPPORTED = ("P", "Recall", "HitRate", "RR", "AP", "DCG", "nDCG")
"""The metrics whose expectation over the draw is known exactly."""

# Number of probabilities in memory at a time.
_CELLS = 1 << 22


def check_expected(metrics: Iterable[Metric]) -> None:
    """Refuse metrics without an exact expectation over draws."""
    for metric in metrics:
        extra = {name for name, _ in metric.parameters} - {"gain"}
        if metric.definition.name not in SUPPORTED or extra:
            raise SettingError(
                f"{metric} has no exact expectation over draws; ask for {', '.join(SUPPORTED)}, or measure drawn lists"
            )
        if metric.definition.name == "P" and metric.cutoff is None:
            raise SettingError("P without cut-off divides by the length of the list; give it a cut-off, as in P@10")


def expected(metric: Metric, judged: Judged) -> Values:
    """Return the expected value of a metric for each list of a judged ranking of all candidates."""
    check_expected([metric])
    assert judged.draw is not None
    if judged.tied_from is not None:
        raise SettingError("the expectation over draws needs lists without averaged ties; choose ties='trec_eval'")
    return _expected(metric, _DrawnLists(judged, judged.draw))


@dataclass(frozen=True, eq=False)
class _DrawnLists:
    """Whole rankings, with the number of candidates of each list and how many of them are drawn."""

    judged: Judged
    draw: Draw

    @cached_property
    def others(self) -> NDArray[np.int64]:
        """M: the candidates of each list that may or may not be drawn."""
        judgments = self.judged.judgments
        fixed = judgments.n_judged if self.draw.unrated else judgments.n_relevant
        return np.maximum(self.draw.sizes - fixed, 0)

    @cached_property
    def drawn(self) -> NDArray[np.int64]:
        """N: the number of them that are drawn."""
        return np.minimum(self.draw.number, self.others)

    @property
    def fixed(self) -> NDArray[np.bool_]:
        """Whether each hit is in every list."""
        return np.ones(len(self.judged), dtype=np.bool_) if self.draw.unrated else self.judged.relevant

    def ranks(self, cutoff: int | None) -> Values:
        """Return the ranks that count: down to the cut-off, or to the end of the longest drawn list."""
        longest = int((self.drawn + self.judged.judgments.n_judged).max(initial=0))
        ends = [end for end in (cutoff, self.draw.longest) if end is not None]
        return np.arange(1, min([longest, *ends]) + 1, dtype=np.float64)

    def weighed(self, weights: Values, where: NDArray[np.bool_]) -> Values:
        """Return E[weight of its rank] for the hits in ``where``, 0 for others; ``weights`` are of ranks 1, 2, ..."""
        judged, fixed = self.judged, self.fixed
        fixed_above = judged.above(fixed)
        above = judged.ranks - 1 - fixed_above
        others, drawn = self.others[judged.lists], self.drawn[judged.lists]
        # If the hit itself is drawn, there is one candidate and one draw less.
        own = (~fixed).astype(np.int64)
        share = np.where(fixed, 1.0, np.divide(drawn, others, out=np.zeros(len(judged)), where=others > 0))
        values = np.zeros(len(judged))
        chosen = np.flatnonzero(where & (share > 0))
        values[chosen] = share[chosen] * mean_weight(
            weights, fixed_above[chosen], above[chosen], (others - own)[chosen], (drawn - own)[chosen]
        )
        return values


def mean_weight(
    weights: Values,
    before: NDArray[np.int64],
    above: NDArray[np.int64],
    others: NDArray[np.int64],
    drawn: NDArray[np.int64],
) -> Values:
    """Return E[w(before + 1 + X)], where X is how many of ``drawn`` from ``others`` are among those ``above``.

    ``weights`` are w(1), w(2), ...; w is 0 beyond.
    """
    logs = np.append(0.0, np.cumsum(np.log(np.arange(1, int(others.max(initial=0)) + 1))))
    result = np.zeros(len(before))
    depth = int(np.minimum(np.minimum(drawn, above), len(weights) - 1 - before).max(initial=-1)) + 1
    if depth <= 0:
        return result
    places = np.arange(depth)
    padded = np.append(weights, 0.0)
    block = max(1, _CELLS // depth)
    for start in range(0, len(before), block):
        part = slice(start, start + block)
        chance = _hypergeometric(places, above[part, None], others[part, None], drawn[part, None], logs)
        at = np.minimum(before[part, None] + places, len(weights))
        result[part] = (chance * padded[at]).sum(axis=1)
    return result


def _hypergeometric(
    x: NDArray[np.int64],
    good: NDArray[np.int64],
    total: NDArray[np.int64],
    drawn: NDArray[np.int64],
    logs: NDArray[Any],
) -> Values:
    """Return P(x of the drawn are good); ``logs`` are the logarithms of factorials."""
    bad, rest = total - good, drawn - x
    possible = (x <= good) & (rest >= 0) & (rest <= bad)
    inside = np.where(possible, x, 0), np.where(possible, rest, 0)

    def choose(n: NDArray[np.int64], k: NDArray[np.int64]) -> Values:
        return np.asarray(logs[n] - logs[k] - logs[np.maximum(n - k, 0)])

    log = choose(good, inside[0]) + choose(bad, inside[1]) - choose(total, drawn)
    return np.where(possible, np.exp(np.minimum(log, 0.0)), 0.0)


def _expected(metric: Metric, draws: _DrawnLists) -> Values:
    judged, ranks, name = draws.judged, draws.ranks(metric.cutoff), metric.definition.name
    relevant, n_relevant = judged.relevant, judged.n_relevant.astype(np.float64)
    if name in ("DCG", "nDCG"):
        return _expected_dcg(metric, draws, logarithmic(len(ranks)))
    first = relevant & (judged.relevant_above == 0)
    if name == "P":
        assert metric.cutoff is not None
        values = judged.total(draws.weighed(np.ones(len(ranks)), relevant)) / metric.cutoff
    elif name == "Recall":
        values = judged.total(draws.weighed(np.ones(len(ranks)), relevant)) / np.maximum(n_relevant, 1.0)
    elif name == "AP":
        terms = draws.weighed(1.0 / ranks, relevant) * (judged.relevant_above + 1)
        values = judged.total(terms) / np.maximum(n_relevant, 1.0)
    else:
        values = judged.total(draws.weighed(np.ones(len(ranks)) if name == "HitRate" else 1.0 / ranks, first))
    return np.where(n_relevant > 0, values, np.nan)


def _expected_dcg(metric: Metric, draws: _DrawnLists, discount: Values) -> Values:
    judged, judgments = draws.judged, draws.judged.judgments
    gain = str(dict(metric.parameters).get("gain", "rating"))
    if metric.definition.name == "DCG":
        gains = gain_of(gain)(judgments)[judged.pointers]
        return judged.total(draws.weighed(discount, gains != 0) * gains)
    of_all, ideal = gains_and_ideal(judgments, metric.cutoff, kept_name(gain), relative_gain_of(gain), logarithmic)
    gains = of_all[judged.pointers]
    return ratio(judged.total(draws.weighed(discount, gains != 0) * gains), ideal)
