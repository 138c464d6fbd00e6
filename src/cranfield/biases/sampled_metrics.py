"""Estimates for the whole catalogue from metrics measured among sampled items.

A relevant item that was ranked r-th among itself and m sampled others has some rank R among all n candidates, and r − 1
is hypergeometric (or binomial, if the sample was drawn with replacement). The distribution of R that best explains the
sampled ranks gives an estimate of any metric of R (Li et al. 2020); a corrected metric of r trades bias for variance
(Krichene and Rendle 2020). Many distributions of R explain the same sampled ranks: the interval covers all of them, and
if it is wide, the sampled ranks do not determine the metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import InputError, SettingError
from cranfield._result import Result
from cranfield._table import Table
from cranfield.biases.random_rankings import RandomTargets
from cranfield.data import AUTO, Ratings
from cranfield.facts import Fact
from cranfield.facts import bias as bias_facts
from cranfield.judgments import Context, Judgments, as_judged, as_test, judged_by
from cranfield.metrics import Metric, as_metrics
from cranfield.rankings import Run

Floats = NDArray[np.float64]
SUPPORTED = ("HitRate", "Recall", "P", "RR", "AP", "nDCG")
"""The metrics of the rank of a single relevant item that can be corrected."""

# The grid has every rank up to the first number, and beyond it the second number of ranks per factor of e.
_EVERY_RANK = 400
_PER_STEP = 60
_ITERATIONS = 400
_GROUPS = 20
_BANDS = 20
_WIDE = 0.5
# If rows have different m or n, no distribution may fit the bands; they are then widened by these factors.
_WIDER = (1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, eq=False)
class CorrectedMetrics(Result):
    """Metrics of sampled ranks, and their estimates for the whole catalogue.

    Parameters
    ----------
    rows
        One row per metric: its mean among the sampled items (``sampled``), the ``estimate`` for the whole catalogue, an
        interval of all values that agree with the sampled ranks, and whether it is ``identified``: whether the width of
        the interval is at most half the estimate.
    n_ranks
        The number of ranks.
    estimator, level
        The estimator, and the confidence level of the interval.
    """

    rows: pl.DataFrame
    n_ranks: int
    estimator: str
    level: float

    drawn = ("estimate", "lower", "upper", "metric")

    def facts(self) -> list[Fact]:
        """Return what each metric is on the whole catalogue."""
        columns = ("metric", "sampled", "estimate", "lower", "upper", "identified")
        return [bias_facts.WholeCatalogue(*row) for row in self.rows.select(columns).iter_rows()]

    def frame(self) -> pl.DataFrame:
        """Return one row per metric; see ``rows``."""
        return self.rows

    def table(self, system: str = "") -> Table:
        """Return a table for people, optionally with the name of the system; unidentified values are marked."""
        rows = [
            [
                row["metric"],
                f"{row['sampled']:.4f}",
                f"{row['estimate']:.4f}" if row["identified"] else "not identified",
                f"[{row['lower']:.4f}, {row['upper']:.4f}]",
            ]
            for row in self.rows.iter_rows(named=True)
        ]
        header = ["metric", "among sampled", "whole catalogue", f"{self.level:.0%} interval"]
        unclear = "Not identified: values in the whole interval agree with the sampled ranks. Rank all candidates."
        notes = [] if self.rows["identified"].all() else [unclear]
        of_system = f"{system}: sampled" if system else "Sampled"
        return Table(header, rows, f"{of_system} metrics corrected, {self.n_ranks:,} ranks", notes)


def correct_sampled(
    ranks: Any,
    metrics: Sequence[str | Metric] | str | Metric = ("HitRate@10", "nDCG@10"),
    *,
    sampled: int | None = None,
    candidates: int | None = None,
    unranked: int = 0,
    replacement: bool = False,
    estimator: Literal["mle", "bv"] = "mle",
    gamma: float = 0.1,
    level: float = 0.95,
) -> CorrectedMetrics:
    r"""Estimate metrics on the whole catalogue from ranks among sampled items.

    Parameters
    ----------
    ranks
        The rank of each relevant item, from 1, among itself and the items sampled for it: an array, or a frame with a
        column ``rank`` and optionally ``sampled`` and ``candidates``.
    metrics
        HitRate, Recall, P, RR, AP and nDCG of a single relevant item, with or without a cut-off.
    sampled
        m: the number of other items sampled for each.
    candidates
        n: the number of items they were sampled from, without the relevant one.
    unranked
        The number of further relevant items that the system did not rank; they count as 0.
    replacement
        Whether items were sampled with replacement.
    estimator
        ``mle``: the metric of the most likely distribution of full ranks. ``bv``: the corrected metric of Krichene and
        Rendle that minimises squared bias plus γ times variance, if all full ranks are equally likely.
    gamma
        γ of ``bv``: 0 gives the least bias, 1 the least variance.
    level
        The confidence of the interval.

    Notes
    -----
    The interval is the range of the metric over all distributions of full ranks under which the distribution function
    of sampled ranks lies within simultaneous confidence bands, found by linear programming. If rows differ in m or n,
    full ranks are assumed to be independent of them.

    Examples
    --------
    >>> import numpy as np
    >>> result = correct_sampled(np.ones(500), "HitRate@10", sampled=99, candidates=100)
    >>> result.frame()["identified"].to_list()
    [True]
    """
    wanted = as_metrics(metrics)
    for metric in wanted:
        if metric.definition.name not in SUPPORTED or metric.parameters:
            raise SettingError(f"{metric} is not a metric of a single rank; ask for {', '.join(SUPPORTED)}")
        if metric.definition.name == "P" and metric.cutoff is None:
            raise SettingError("P without cut-off divides by the length of the list; give it a cut-off, as in P@10")
    level = check.share("level", level)
    if check.one_of("estimator", estimator, ("mle", "bv")) == "bv":
        gamma = check.number("gamma", gamma)
        if not 0 < gamma <= 1:
            raise SettingError(f"gamma={gamma:g} must be above 0 and at most 1")
    rows = _Rows.of(ranks, sampled, candidates)
    replacement = check.flag("replacement", replacement)
    reached = len(rows.ranks) / (len(rows.ranks) + check.whole("unranked", unranked, at_least=0))
    grid = _grid(int(rows.candidates.max()) + 1)
    mixture = _Mixture.of(rows, grid, replacement)
    explained = mixture.most_likely()
    results = []
    for metric in wanted:
        worth = _worth(metric, grid)
        among = float(_worth(metric, np.arange(1, int(rows.ranks.max()) + 1))[rows.ranks - 1].mean())
        low, high = mixture.range_of(worth, level)
        value = mixture.corrected(worth, gamma) if estimator == "bv" else float(worth @ explained)
        value = float(np.clip(value, low, high))
        identified = high - low <= _WIDE * value
        results.append((str(metric), *(reached * part for part in (among, value, low, high)), bool(identified)))
    numbers = dict.fromkeys(("sampled", "estimate", "lower", "upper"), pl.Float64)
    schema = {"metric": pl.String, **numbers, "identified": pl.Boolean}
    return CorrectedMetrics(pl.DataFrame(results, schema=schema, orient="row"), len(rows.ranks), estimator, level)


def correct_runs(
    runs: Any,
    test: Any,
    metrics: Sequence[str | Metric] | str | Metric = ("HitRate@10", "nDCG@10"),
    *,
    train: Ratings | None,
    candidates: Literal["all", "test"] = "all",
    threshold: float | str | None = AUTO,
    **options: Any,
) -> dict[str, CorrectedMetrics]:
    """Estimate metrics on the whole catalogue from one-relevant runs among drawn items, by system.

    Parameters
    ----------
    runs, test
        One-relevant runs, as made by `recommend` with ``relevant="one"`` and ``nonrelevant=N``, or their files; and the
        test ratings.
    train
        The training ratings: a list's items are drawn from those that its user has not rated in training.
    candidates
        The items they are drawn from: ``all`` items of training set and test set, or those with a ``test`` rating,
        without the relevant test items of the user.
    metrics, options
        As for `correct_sampled`.

    Examples
    --------
    >>> import cranfield as cf
    >>> split = cf.splits.random(cf.simulate.world(60, 50, 900, seed=1).ratings, seed=1)
    >>> runs = cf.recommend(split, "popularity", relevant="one", nonrelevant=20, threshold=4)
    >>> correct_runs(runs, split.test, train=split.train)["popularity"].frame()["metric"].to_list()
    ['HitRate@10', 'nDCG@10']
    """
    judged = as_judged(runs, as_test(test), threshold, Context(train))
    if any(lists.ranked is None or not lists.ranked.one_relevant for lists in judged):
        raise SettingError("only lists of one relevant item among drawn ones can be corrected; see relevant='one'")
    if train is None:
        raise SettingError("the training ratings determine which items could be drawn; give train=...")
    judgments = judged[0].judgments
    whole = Judgments.of(as_test(test), judgments.threshold)
    pool = RandomTargets.of([judged_by(_no_lists(whole), whole, Context(train))], candidates=candidates)
    liked = np.bincount(whole.lists[whole.relevant & pool.inside], minlength=whole.n_lists)
    others = np.zeros(len(whole.user_ids), dtype=np.int64)
    others[whole.users] = pool.sizes - liked
    n = others[judgments.users]
    m = np.minimum(max(int(lists.lengths.max(initial=1)) for lists in judged) - 1, n)
    results = {}
    for lists in judged:
        assert lists.ranked is not None
        frame = pl.DataFrame({"rank": lists.ranks, "sampled": m[lists.lists], "candidates": n[lists.lists]})
        missing = lists.n_lists - len(frame)
        results[lists.ranked.name] = correct_sampled(frame, metrics, unranked=missing, **options)
    return results


def _no_lists(judgments: Judgments) -> Run:
    """Return a run without lists, for what depends only on test and training ratings."""
    nothing = np.zeros(0, dtype=np.int32)
    return Run("", judgments.user_ids, judgments.item_ids, nothing, np.zeros(1, dtype=np.int64), nothing)


def _worth(metric: Metric, ranks: NDArray[Any]) -> Floats:
    """Return the value of a metric for a single relevant item at each rank."""
    ranks = np.asarray(ranks, dtype=np.float64)
    inside = np.ones(len(ranks)) if metric.cutoff is None else (ranks <= metric.cutoff).astype(np.float64)
    name = metric.definition.name
    if name in ("RR", "AP"):
        return inside / ranks
    if name == "nDCG":
        return inside / np.log2(ranks + 1.0)
    return inside / (metric.cutoff or 1) if name == "P" else inside


def _grid(most: int) -> Floats:
    """Return the full ranks of the grid: all small ones, then geometrically spaced ones, and the last."""
    if most <= 10 * _EVERY_RANK:
        return np.arange(1, most + 1, dtype=np.float64)
    steps = int(np.ceil(_PER_STEP * np.log(most / _EVERY_RANK)))
    beyond = np.unique(np.round(np.geomspace(_EVERY_RANK, most, steps)))
    return np.unique(np.concatenate([np.arange(1, _EVERY_RANK + 1), beyond])).astype(np.float64)


class _Rows(NamedTuple):
    """Sampled ranks, each with the numbers of sampled items and of candidates."""

    ranks: NDArray[np.int64]
    sampled: NDArray[np.int64]
    candidates: NDArray[np.int64]

    @classmethod
    def of(cls, ranks: Any, sampled: int | None, candidates: int | None) -> _Rows:
        frame = ranks if isinstance(ranks, pl.DataFrame) else None
        if frame is not None and "rank" not in frame.columns:
            raise InputError("no column is called 'rank'", remedy="name the column of sampled ranks 'rank'")
        values = _whole_numbers("rank", frame["rank"].to_numpy() if frame is not None else ranks)
        if len(values) == 0:
            raise InputError("there are no sampled ranks", remedy="give the rank of at least one relevant item")
        columns = {}
        for name, given in (("sampled", sampled), ("candidates", candidates)):
            if given is not None:
                columns[name] = np.full(len(values), check.whole(name, given))
            elif frame is not None and name in frame.columns:
                columns[name] = _whole_numbers(name, frame[name].to_numpy())
            else:
                raise SettingError(f"{name} is missing: give {name}=..., or a column of that name")
        rows = cls(values, columns["sampled"], columns["candidates"])
        wrong = np.flatnonzero((rows.ranks < 1) | (rows.ranks > rows.sampled + 1))
        if len(wrong):
            row = int(wrong[0])
            raise InputError(
                f"the rank {rows.ranks[row]:,} (row {row + 1}) is not between 1 and {rows.sampled[row] + 1:,}",
                remedy="ranks are those among the relevant item and the sampled ones, counted from 1",
            )
        return rows


def _whole_numbers(name: str, values: Any) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf" or not (np.isfinite(array) & (array == np.floor(array))).all():
        raise InputError(f"the column {name!r} does not hold whole numbers", remedy="give counts and ranks from 1")
    return array.astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Mixture:
    """The mixture model of sampled ranks, for each number of sampled items."""

    grid: Floats  # of full ranks
    counts: list[Floats]  # how many rows have each sampled rank
    chances: list[Floats]  # sampled ranks × grid: their probability, the mean over the rows' numbers of candidates

    @classmethod
    def of(cls, rows: _Rows, grid: Floats, replacement: bool) -> _Mixture:
        if not replacement and (rows.sampled > rows.candidates).any():
            raise SettingError(
                f"{int(rows.sampled.max()):,} items cannot be sampled without replacement from "
                f"{int(rows.candidates.min()):,}; give replacement=True, or the right numbers"
            )
        counts, chances = [], []
        for m in np.unique(rows.sampled):
            own = rows.sampled == m
            counts.append(np.bincount(rows.ranks[own] - 1, minlength=int(m) + 1).astype(np.float64))
            chances.append(_mean_chances(int(m), rows.candidates[own], grid, replacement))
        return cls(grid, counts, chances)

    def most_likely(self) -> Floats:
        """Return the distribution of full ranks with the largest likelihood of the sampled ranks (EM algorithm)."""
        weights = np.full(len(self.grid), 1.0 / len(self.grid))
        total = sum(float(counts.sum()) for counts in self.counts)
        for _ in range(_ITERATIONS):
            update = np.zeros(len(weights))
            for counts, chances in zip(self.counts, self.chances):
                mixed = np.maximum(chances @ weights, 1e-300)
                update += (counts / mixed) @ chances
            new = weights * update / total
            if np.abs(new - weights).max() < 1e-9:
                return new
            weights = new
        return weights / weights.sum()

    def corrected(self, worth: Floats, gamma: float) -> float:
        """Return the mean of Krichene and Rendle's corrected metric of sampled ranks."""
        value, total = 0.0, 0.0
        for counts, chances in zip(self.counts, self.chances):
            # Full ranks are uniform: a grid point represents the ranks from it to the next.
            prior = np.diff(np.append(self.grid, self.grid[-1] + 1.0))
            prior = prior / prior.sum()
            moments = (chances * prior) @ chances.T
            spread = np.diag(chances @ prior)
            system = (1.0 - gamma) * moments + gamma * spread
            corrected = np.linalg.lstsq(system, (chances * prior) @ worth, rcond=None)[0]
            value += float(counts @ corrected)
            total += float(counts.sum())
        return value / total

    def range_of(self, worth: Floats, level: float) -> tuple[float, float]:
        """Return the range of mean worth over distributions within simultaneous limits of the sampled ranks' shares."""
        from scipy.optimize import linprog

        each = max(2, _BANDS // len(self.counts))
        points = []
        for counts in self.counts:
            last = max(len(counts) - 1, 1)
            points.append(np.unique(np.round(np.geomspace(1, last, min(each, last)))).astype(np.int64) - 1)
        matrix = np.concatenate([np.cumsum(own, axis=0)[places] for own, places in zip(self.chances, points)])
        confidence = 1.0 - (1.0 - level) / (2.0 * len(matrix))
        for wider in _WIDER:
            limits = [
                _wilson(np.cumsum(counts)[places] / counts.sum(), counts.sum(), confidence, wider)
                for counts, places in zip(self.counts, points)
            ]
            low, high = (np.concatenate(ends) for ends in zip(*limits))
            within = {"A_ub": np.concatenate([matrix, -matrix]), "b_ub": np.concatenate([high, -low])}
            summed = {"A_eq": np.ones((1, len(worth))), "b_eq": [1.0], "bounds": (0, None)}
            ends = []
            for sign in (1.0, -1.0):
                solution = linprog(sign * worth, **within, **summed, method="highs")
                ends.append(sign * float(solution.fun) if solution.success else np.nan)
            if not np.isnan(ends).any():
                return ends[0], max(ends[0], ends[1])
        return float(worth.min()), float(worth.max())  # no distribution explains the sampled ranks


def _wilson(share: Floats, n: float, confidence: float, wider: float = 1.0) -> tuple[Floats, Floats]:
    """Return Wilson's interval of shares, which is conservative if rows have different probabilities."""
    from scipy.special import ndtri

    z = wider * float(ndtri(confidence))
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return middle - reach, middle + reach


def _mean_chances(m: int, candidates: NDArray[np.int64], grid: Floats, replacement: bool) -> Floats:
    """Return the mean chances over rows, which are grouped by similar numbers of candidates."""
    ends = np.unique(np.quantile(candidates, np.linspace(0, 1, _GROUPS + 1), method="nearest"))
    group = np.searchsorted(ends, candidates)
    chances = np.zeros((m + 1, len(grid)))
    for key in np.unique(group):
        own = group == key
        n = max(int(np.median(candidates[own])), m)
        chances += own.mean() * _chances(m, n, grid, replacement)
    return chances


def _chances(m: int, n: int, grid: Floats, replacement: bool) -> Floats:
    """Return sampled ranks × full ranks: the probability of each sampled rank at each full rank."""
    from scipy.special import gammaln

    def choose(total: Any, number: Any) -> Any:
        return gammaln(total + 1.0) - gammaln(number + 1.0) - gammaln(np.maximum(total - number, 0.0) + 1.0)

    above = np.minimum(grid - 1.0, float(n))[None, :]
    x = np.arange(m + 1, dtype=np.float64)[:, None]
    if replacement:
        with np.errstate(divide="ignore", invalid="ignore"):
            hits, misses = x * np.log(above / n), (m - x) * np.log1p(-above / n)
        return np.asarray(np.exp(choose(m, x) + np.where(x == 0, 0.0, hits) + np.where(x == m, 0.0, misses)))
    possible = (x <= above) & (m - x <= n - above)
    with np.errstate(invalid="ignore"):
        log = choose(above, x) + choose(n - above, m - x) - choose(n, m)
    return np.where(possible, np.exp(np.where(possible, log, 0.0)), 0.0)
