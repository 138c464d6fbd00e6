"""Agreement between two rankings of the same items: Kendall's tau-b, tau-ap, Spearman's rho and rank-biased overlap.

A ranking is given as scores, higher is better, and equal scores are ties. `Paired` compares many pairs of rankings at
once (one per user); the functions compare a single pair, such as two orders of systems.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cranfield._checks import one_of, share
from cranfield._errors import SettingError
from cranfield.metrics.arithmetic import Values, expanded
from cranfield.rankings import stable_argsort


def kendall_tau_b(x: ArrayLike, y: ArrayLike) -> float:
    """Return Kendall's tau-b: (C − D) / √((n₀ − t_x)(n₀ − t_y)).

    C and D are the pairs that both rankings order in the same and in the opposite way, n₀ = n(n − 1)/2, and t_x, t_y
    the pairs tied in either. NaN if there are fewer than two items or a ranking is constant.

    Examples
    --------
    >>> round(kendall_tau_b([0.3, 0.3, 0.2, 0.1], [0.4, 0.3, 0.3, 0.1]), 12)
    0.8
    """
    return float(_pair(x, y).kendall_tau_b()[0])


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Return Spearman's rho: Pearson's correlation of the ranks, where tied items have their mean rank.

    Examples
    --------
    >>> spearman([1, 2, 3], [1, 2, 3])
    1.0
    """
    return float(_pair(x, y).spearman()[0])


def tau_ap(truth: ArrayLike, estimate: ArrayLike, *, ties: Literal["a", "b"] = "a", symmetric: bool = False) -> float:
    """Return the AP correlation of Yilmaz, Aslam and Robertson (2008), in which errors at the top weigh more.

    τ_ap = 2/(n − 1) Σ_{r=2..n} C(r)/(r − 1) − 1, where C(r) is the number of items above rank r in the estimate that
    the truth also ranks above the item at r.

    Parameters
    ----------
    truth, estimate
        The scores of the items in either ranking.
    ties
        ``"a"``: the expected value over random orders of tied items. ``"b"``: corrected for ties, like tau-b, and
        symmetric (Urbano and Marrero 2017).
    symmetric
        With ``ties="a"``: the mean of both directions.

    Examples
    --------
    >>> round(tau_ap([4, 3, 2, 1], [3, 4, 2, 1]), 4), round(tau_ap([4, 3, 2, 1], [4, 3, 1, 2]), 4)
    (0.3333, 0.7778)
    """
    there = float(_pair(truth, estimate).tau_ap(ties)[0])
    return (there + float(_pair(estimate, truth).tau_ap(ties)[0])) / 2.0 if symmetric else there


def rbo(x: ArrayLike, y: ArrayLike, *, p: float = 0.9, ties: Literal["a", "b", "w"] = "a") -> float:
    """Return the extrapolated rank-biased overlap of Webber, Moffat and Zobel (2010).

    RBO = (1 − p) Σ_d p^(d−1) A_d, where A_d is the agreement of both rankings down to depth d, extrapolated beyond
    their ends. A score of NaN means that a ranking does not contain the item, so rankings may have different lengths.

    Parameters
    ----------
    x, y
        The scores of the items in either ranking.
    p
        The probability of continuing to the next depth (φ in Cañamares et al. 2020).
    ties
        ``"a"``: the expected value over random orders of tied items. ``"b"``: corrected for ties, so that a ranking
        agrees perfectly with itself. ``"w"``: tied items share one rank (Corsi and Urbano 2024).

    Examples
    --------
    >>> round(rbo([3, 2, 1], [3, 2, 1]), 12), round(rbo([3, 2, 1], [2, 3, 1], p=0.8), 4)
    (1.0, 0.8)
    """
    return float(_pair(x, y).rbo(p, ties)[0])


def rbo_of_lists(first: Sequence[Hashable], second: Sequence[Hashable], *, p: float = 0.9) -> float:
    """Return the rank-biased overlap of two lists of ids, best first, which may differ in items and in length.

    Examples
    --------
    >>> round(rbo_of_lists(["a", "b", "c"], ["a", "c", "d", "e"], p=0.9), 4)
    0.685
    """
    places = {item: place for place, item in enumerate(dict.fromkeys([*first, *second]))}
    scores = np.full((2, len(places)), np.nan)
    for row, ids in enumerate((first, second)):
        if len(set(ids)) < len(ids):
            raise SettingError("a list holds an item twice; give each item once")
        scores[row, [places[item] for item in ids]] = -np.arange(len(ids), dtype=np.float64)
    return rbo(scores[0], scores[1], p=p)


def _pair(x: ArrayLike, y: ArrayLike) -> Paired:
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise SettingError(
            f"two rankings of shapes {first.shape} and {second.shape} cannot be compared; "
            "give two sequences with one score for each item"
        )
    return Paired(np.zeros(len(first), dtype=np.int64), 1, first, second)


@dataclass(frozen=True, eq=False)
class Paired:
    """Two scores for each item, in groups: every group is a pair of rankings of its items."""

    groups: NDArray[Any]  # the group of each item, ascending
    n_groups: int  # the number of groups, including empty ones
    x: Values  # the scores of the truth, where that matters
    y: Values  # those of the estimate

    @cached_property
    def sizes(self) -> Values:
        """The number of items of each group."""
        return np.bincount(self.groups, minlength=self.n_groups).astype(np.float64)

    @cached_property
    def _of_x(self) -> _TiedRanks:
        return _TiedRanks.of(self.groups, self.x)

    @cached_property
    def _of_y(self) -> _TiedRanks:
        return _TiedRanks.of(self.groups, self.y)

    @cached_property
    def _counts(self) -> _PairCounts:
        return _PairCounts.of(self.groups, self._of_x, self._of_y)

    def _sum(self, values: Values) -> Values:
        return np.bincount(self.groups, weights=values, minlength=self.n_groups).astype(np.float64)

    @cached_property
    def defined(self) -> NDArray[np.bool_]:
        """Whether each group has an order to compare: at least two items, and neither ranking constant."""
        whole = self.sizes[self.groups]
        constant = (self._of_x.ties == whole) | (self._of_y.ties == whole) | np.isnan(self.x) | np.isnan(self.y)
        return (self.sizes > 0) & (self._sum(constant) == 0)

    def _defined(self, values: Values) -> Values:
        return np.where(self.defined, values, np.nan)

    def kendall_tau_b(self) -> Values:
        """Return Kendall's tau-b of each group."""
        pairs = self.sizes * (self.sizes - 1.0) / 2.0
        tied_x, tied_y = (self._sum(ranks.ties - 1.0) / 2.0 for ranks in (self._of_x, self._of_y))
        tied_both = self._sum(self._counts.same - 1.0) / 2.0
        concordant = self._sum(self._counts.both)
        discordant = pairs - tied_x - tied_y + tied_both - concordant
        with np.errstate(invalid="ignore", divide="ignore"):
            return self._defined((concordant - discordant) / np.sqrt((pairs - tied_x) * (pairs - tied_y)))

    def spearman(self) -> Values:
        """Return Spearman's rho of each group."""
        middle = ((self.sizes + 1.0) / 2.0)[self.groups]
        x, y = (ranks.first + (ranks.ties - 1.0) / 2.0 - middle for ranks in (self._of_x, self._of_y))
        with np.errstate(invalid="ignore", divide="ignore"):
            return self._defined(self._sum(x * y) / np.sqrt(self._sum(x * x) * self._sum(y * y)))

    def tau_ap(self, ties: str = "a") -> Values:
        """Return τ_ap of each group, with x as the truth and y as the estimate."""
        if one_of("ties", ties, ("a", "b")) == "b":
            return self._defined((self._tau_ap_b(self._of_x) + self._tau_ap_b(self._of_y)) / 2.0)
        first, size = self._of_y.first, self._of_y.ties
        # In a random order of the truth, a tied pair agrees with the estimate half of the time.
        above = self._counts.both + self._counts.same_x / 2.0
        harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, len(self.x) + 1)))
        before, last = np.maximum(first - 2, 0).astype(np.intp), (first + size - 2).astype(np.intp)
        from_above = np.where(first > 1, above * (harmonic[last] - harmonic[before]) / size, 0.0)
        inside = harmonic[last] - harmonic[(first - 1).astype(np.intp)]
        within = ((size - 1.0) - (first - 1.0) * inside) / (2.0 * size)
        with np.errstate(invalid="ignore", divide="ignore"):
            return self._defined(2.0 / (self.sizes - 1.0) * self._sum(from_above + within) - 1.0)

    def _tau_ap_b(self, ranks: _TiedRanks) -> Values:
        """Return 2/|below the top group| Σ C/(p − 1) − 1, where p is the first rank of an item's tied group."""
        below = (ranks.first > 1).astype(np.float64)
        shares = np.where(ranks.first > 1, self._counts.both / np.maximum(ranks.first - 1.0, 1.0), 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return 2.0 * self._sum(shares) / self._sum(below) - 1.0

    def rbo(self, p: float = 0.9, ties: str = "a") -> Values:
        """Return the extrapolated rank-biased overlap of each group; NaN if a ranking is empty.

        Besides the ``ties`` of the function `rbo`, ``"y"`` orders items that are tied in x as y does.
        """
        ties, p = one_of("ties", ties, ("a", "b", "w", "y")), share("p", p)
        x, y = self._of_x, self._of_y
        unranked = np.isnan(self.x) | np.isnan(self.y)
        whole = not unranked.any() and bool((y.ties == 1.0).all())
        if ties == "y":
            ranks = x.first + self._counts.same_x
            if whole:
                return self._overlap_of_orders(ranks, y.first, p)
            ranks[np.isnan(self.x)] = np.nan
            return Paired(self.groups, self.n_groups, -ranks, self.y).rbo(p)
        if whole and bool((x.ties == 1.0).all()):
            return self._overlap_of_orders(x.first, y.first, p)
        return _Overlap.of(self, ties).extrapolated(p)

    def _overlap_of_orders(self, x: Values, y: Values, p: float) -> Values:
        """Return the overlap of rankings of the same items without ties, for which all variants are the same.

        An item is in both from the depth of its lower rank m on, so Σ_d A_d p^d = Σ_items Σ_{d=m..n} p^d / d, and the
        agreement beyond the n items is 1.
        """
        depth = np.arange(1, int(self.sizes.max(initial=0.0)) + 1)
        upto = np.append(0.0, np.cumsum(p**depth / depth))
        lower = np.maximum(x, y).astype(np.intp)
        total = self._sum(upto[self.sizes.astype(np.intp)][self.groups] - upto[lower - 1])
        return np.where(self.sizes > 0, (1.0 - p) / p * total + p**self.sizes, np.nan)


@dataclass(frozen=True)
class _TiedRanks:
    """First rank and size of the tied group of each item; an unranked item (NaN) comes last, alone."""

    first: Values
    ties: Values
    levels: NDArray[np.int64]  # the number of distinct scores in its group that are higher than the item's

    @classmethod
    def of(cls, groups: NDArray[Any], values: Values) -> _TiedRanks:
        order = _descending(groups, values)
        g, v = (groups, values) if order is None else (groups[order], values[order])
        start, new = np.ones(len(g), dtype=bool), np.ones(len(g), dtype=bool)
        start[1:] = g[1:] != g[:-1]
        new[1:] = start[1:] | (v[1:] != v[:-1])
        bounds = np.flatnonzero(new)
        sizes = np.diff(bounds, append=len(g))
        # For each tied group: the start of its group, and the number of the first tied group in it.
        opens = np.flatnonzero(start[bounds])
        spans = np.diff(opens, append=len(bounds))
        first = bounds - np.repeat(bounds[opens], spans) + 1.0
        levels = np.arange(len(bounds)) - np.repeat(opens, spans)
        columns: list[NDArray[Any]] = [first, sizes.astype(np.float64), levels]
        if len(bounds) < len(g):
            columns = [np.repeat(column, sizes) for column in columns]
        if order is not None:
            columns = [_put_back(column, order) for column in columns]
        return cls(*columns)


def _descending(groups: NDArray[Any], values: Values) -> NDArray[np.int64] | None:
    """Return an order by group and descending value, NaN last; None if the items are already in this order."""
    if bool(((values[1:] <= values[:-1]) | (groups[1:] != groups[:-1])).all()):
        return None
    by_value = np.argsort(-values)
    return by_value[stable_argsort(groups[by_value])]


def _put_back(values: NDArray[Any], order: NDArray[np.int64]) -> NDArray[Any]:
    original = np.empty_like(values)
    original[order] = values
    return original


# Groups with fewer different scores than this are counted together.
_FEW_LEVELS = 4


@dataclass(frozen=True)
class _PairCounts:
    """For each item, the number of items of its group that are above it in both rankings, or tied with it."""

    both: Values  # items above it in both rankings
    same_x: Values  # items with the same score in x that are above it in y
    same: Values  # items with the same scores in both rankings, including itself

    @classmethod
    def of(cls, groups: NDArray[Any], x: _TiedRanks, y: _TiedRanks) -> _PairCounts:
        order = _descending(groups, -y.first)
        counts = np.zeros((3, len(groups)))
        if len(groups) == 0:
            return cls(*counts)
        g, levels, first, ties = (
            column if order is None else column[order] for column in (groups, x.levels, y.first.astype(np.intp), y.ties)
        )
        # Groups with similar numbers of different scores are counted together: the cost is items times scores.
        opens = np.flatnonzero(np.append(True, g[1:] != g[:-1]))
        sizes = np.diff(opens, append=len(g))
        magnitude = np.maximum(np.frexp(np.maximum.reduceat(levels, opens) + 1.0)[1], _FEW_LEVELS)
        for size in np.unique(magnitude):
            chosen = magnitude == size
            entries = slice(None) if chosen.all() else np.repeat(chosen, sizes)
            starts = np.cumsum(sizes[chosen]) - sizes[chosen]
            counts[:, entries] = _count(
                np.repeat(starts, sizes[chosen]), levels[entries], first[entries], ties[entries]
            )
        return cls(*(column if order is None else _put_back(column, order) for column in counts))


def _count(starts: NDArray[Any], levels: NDArray[Any], first: NDArray[Any], ties: NDArray[Any]) -> Values:
    """Count, by level of x, the items of better levels and of the same level that are above in y, and the ties."""
    above, upto = starts + first - 1, starts + first - 1 + ties.astype(np.intp)
    counts = np.ones((3, len(levels)))
    tied = bool((ties > 1).any())
    better = np.zeros(len(levels) + 1, dtype=np.int32)
    for level in range(int(levels.max()) + 1):
        as_good = np.zeros_like(better)
        np.cumsum(levels <= level, out=as_good[1:])
        here = np.flatnonzero(levels == level)
        start, top = starts[here], above[here]
        ahead = better[top] - better[start]
        counts[0, here] = ahead
        counts[1, here] = as_good[top] - as_good[start] - ahead
        if tied:
            end = upto[here]
            counts[2, here] = (as_good[end] - as_good[top]) - (better[end] - better[top])
        better = as_good
    return counts


@dataclass(frozen=True)
class _Overlap:
    """The agreement A_d of two rankings at each depth d, one cell per group and depth (Corsi and Urbano 2024).

    The shorter ranking has length s, the longer one l. At depth d an item counts in a ranking for c_d: 0 before its
    tied group begins, then growing to 1 at its end (variants a and b), or at once (variant w).
    """

    cells: NDArray[np.int64]  # the index of the first cell of each group
    shorter: NDArray[np.int64]
    agreement: Values
    overlap: Values

    @classmethod
    def of(cls, paired: Paired, ties: str) -> _Overlap:
        groups = paired.groups
        lengths = np.array([paired._sum((~np.isnan(scores)).astype(np.float64)) for scores in (paired.x, paired.y)])
        shorter, longer = lengths.min(axis=0).astype(np.int64), lengths.max(axis=0).astype(np.int64)
        swapped = (lengths[0] > lengths[1])[groups]
        ends = _ends(paired._of_x, paired.x), _ends(paired._of_y, paired.y)
        short = [np.where(swapped, b, a) for a, b in zip(*ends)]
        long = [np.where(swapped, a, b) for a, b in zip(*ends)]
        alone = np.isinf(short[0])
        cells = np.append(0, np.cumsum(longer))
        # Sums over the items: of c_S·c_L, of each norm, and of the items that only the longer ranking contains.
        sums = np.zeros((5, cells[-1]))
        for _, items, step in expanded(longer[groups]):
            depth, cell = (step + 1).astype(np.float64), cells[groups[items]] + step
            in_short, in_long = (_contribution(depth, top[items], bottom[items], ties) for top, bottom in (short, long))
            norms = (in_short, in_long) if ties == "w" else (in_short**2, in_long**2)
            only_long = in_long * alone[items]
            for row, part in enumerate((in_short * in_long, *norms, only_long, only_long > 0)):
                sums[row] += np.bincount(cell, weights=part, minlength=cells[-1])
        depth, s = _depths(cells), np.repeat(shorter, longer)
        seen = depth <= s
        norms = np.where(seen, sums[1], depth), sums[2]
        size = {"a": depth, "b": np.sqrt(norms[0] * norms[1]), "w": (norms[0] + norms[1]) / 2.0}[ties]
        with np.errstate(invalid="ignore", divide="ignore"):
            agreement = sums[0] / size
            at_end = np.repeat(agreement[np.maximum(cells[:-1] + shorter - 1, 0)] if cells[-1] else shorter, longer)
            extra = np.where(seen, 0.0, (depth - s) * at_end * sums[3] / np.maximum(sums[4], 1.0))
            return cls(cells, shorter, (sums[0] + extra) / size, sums[0])

    def extrapolated(self, p: float) -> Values:
        """Return (1 − p)/p [Σ_d A_d p^d + tail], where the tail continues the agreement at the end."""
        longer = np.diff(self.cells)
        defined = self.shorter > 0
        group = np.repeat(np.arange(len(longer)), longer)
        total = np.bincount(group, weights=self.agreement * p ** _depths(self.cells), minlength=len(longer))
        value = np.full(len(longer), np.nan)
        s, ell, start = self.shorter[defined], longer[defined], self.cells[:-1][defined]
        at_end = self.overlap[start + ell - 1] + (ell - s) * self.agreement[start + s - 1]
        value[defined] = (1.0 - p) / p * total[defined] + at_end / ell * p**ell
        return value


def _depths(cells: NDArray[np.int64]) -> Values:
    return np.arange(cells[-1]) - np.repeat(cells[:-1], np.diff(cells)) + 1.0


def _ends(ranks: _TiedRanks, scores: Values) -> tuple[Values, Values]:
    """Return the first and last rank of each item's tied group; infinite for unranked items."""
    unranked = np.isnan(scores)
    return np.where(unranked, np.inf, ranks.first), np.where(unranked, np.inf, ranks.first + ranks.ties - 1.0)


def _contribution(depth: Values, top: Values, bottom: Values, ties: str) -> Values:
    if ties == "w":
        return (depth >= top).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.clip((depth - top + 1.0) / (bottom - top + 1.0), 0.0, 1.0), nan=0.0)
