"""Ranks of systems over datasets: Friedman's test, Nemenyi's critical difference, and Wilcoxon's test of pairs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import permutations
from math import factorial

import numpy as np

from cranfield.across.effects import DatasetEffects, Floats
from cranfield.comparisons import SIGNIFICANCE_TESTS, Sample, holm

# The exact p-value is computed while it takes about a second.
_MOST_PERMUTATIONS, _MOST_STATES = 120, 2_000


@dataclass(frozen=True, eq=False)
class DatasetRanks:
    """The ranks of systems on the datasets that all of them have, 1 for the best."""

    systems: tuple[str, ...]
    datasets: tuple[str, ...]
    table: Floats  # systems × datasets
    chi2: float
    p_chi2: float
    f: float  # Iman and Davenport's
    p_f: float
    p_exact: float  # NaN if the table is too large for it
    critical: float  # difference of average ranks (Nemenyi)
    alpha: float

    @property
    def averages(self) -> Floats:
        """The average rank of each system."""
        return np.asarray(self.table.mean(axis=1)) if self.datasets else np.full(len(self.systems), np.nan)

    @property
    def p(self) -> float:
        """The exact p-value if it is known, otherwise that of F."""
        return self.p_f if np.isnan(self.p_exact) else self.p_exact

    @property
    def order(self) -> list[int]:
        """The systems from best to worst."""
        return [int(place) for place in np.argsort(self.averages, kind="stable")]

    @property
    def bars(self) -> list[tuple[str, ...]]:
        """The longest runs of neighbours whose average ranks differ by less than the critical difference."""
        order, averages = self.order, self.averages
        runs: list[tuple[int, int]] = []
        for start in range(len(order)):
            end = max(
                e
                for e in range(start, len(order))
                if averages[order[e]] - averages[order[start]] < self.critical or e == start
            )
            if end > start and not (runs and runs[-1][1] >= end):
                runs.append((start, end))
        return [tuple(self.systems[place] for place in order[start : end + 1]) for start, end in runs]


def ranks_of(values: Floats, *, lower_is_better: bool = False) -> Floats:
    """Return the rank of each system (rows) on each dataset; ties share the average rank."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values if lower_is_better else -values, axis=0), dtype=np.float64)


def rank_tests(table: Floats, alpha: float = 0.05) -> tuple[float, float, float, float, float, float]:
    """Return Friedman's χ² and its p, Iman and Davenport's F and its p, the exact p, and the critical difference.

    With m systems on k datasets and R̄ the average ranks, χ² = 12k/(m(m+1)) Σ(R̄ − (m+1)/2)², divided by
    1 − Σ(t³ − t)/(k m (m² − 1)) for ties of t systems; F = (k − 1)χ²/(k(m − 1) − χ²) with m − 1 and (m − 1)(k − 1)
    degrees (Iman and Davenport 1980). The exact p permutes the ranks within each dataset. The critical difference is
    q √(m(m + 1)/(6k)), with q the quantile of the studentised range over √2 (Nemenyi 1963; Demšar 2006).
    """
    from scipy.special import chdtrc, fdtrc

    m, k = table.shape
    if m < 2 or k < 2:
        return (np.nan,) * 6
    ties = sum(
        float((counts**3 - counts).sum()) for counts in (np.unique(row, return_counts=True)[1] for row in table.T)
    )
    correction, away = 1 - ties / (k * m * (m**2 - 1)), table.mean(axis=1) - (m + 1) / 2
    chi2 = 0.0 if correction == 0 else float(12 * k / (m * (m + 1)) * (away**2).sum() / correction)
    rest = k * (m - 1) - chi2
    f = np.inf if rest <= 1e-9 else (k - 1) * chi2 / rest
    p_f = 0.0 if np.isinf(f) else float(fdtrc(m - 1, (m - 1) * (k - 1), f))
    critical = critical_quantile(m, alpha) * np.sqrt(m * (m + 1) / (6 * k))
    return chi2, float(chdtrc(m - 1, chi2)), float(f), p_f, exact_p(table), float(critical)


def critical_quantile(systems: int, alpha: float = 0.05) -> float:
    """Return the quantile of the studentised range with infinitely many degrees of freedom, over √2."""
    from scipy.stats import studentized_range

    return float(studentized_range.isf(alpha, systems, np.inf) / np.sqrt(2))


def exact_p(table: Floats) -> float:
    """Return the share of all permutations within datasets whose rank sums vary at least as much; NaN if too many.

    Datasets are added one after the other. Rank sums that are equal up to the order of the systems are merged, because
    permutations treat all systems alike.
    """
    m = len(table)
    if factorial(m) > _MOST_PERMUTATIONS:
        return float("nan")
    doubled = np.rint(2 * table).astype(np.int64)  # so that shared ranks are whole numbers
    states: dict[tuple[int, ...], float] = {(0,) * m: 1.0}
    for column in doubled.T:
        orders = Counter(permutations(column.tolist()))
        if len(states) > _MOST_STATES:
            return float("nan")
        rows, weights = np.array([*orders]), np.array([*orders.values()]) / factorial(m)
        merged: dict[tuple[int, ...], float] = {}
        for sums, chance in states.items():
            totals, places = np.unique(np.sort(rows + np.array(sums), axis=1), axis=0, return_inverse=True)
            shares = np.bincount(places.reshape(-1), weights) * chance
            for total, share in zip(map(tuple, totals.tolist()), shares.tolist()):
                merged[total] = merged.get(total, 0.0) + share
        states = merged
    observed = int((doubled.sum(axis=1) ** 2).sum())
    return min(1.0, sum(chance for sums, chance in states.items() if sum(part**2 for part in sums) >= observed))


def dataset_ranks(table: DatasetEffects, alpha: float = 0.05) -> DatasetRanks:
    """Return the ranks of systems over the datasets on which all of them have a result."""
    complete = np.atleast_1d(~np.isnan(table.means).any(axis=0))
    ranks = ranks_of(table.means[:, complete], lower_is_better=table.lower_is_better)
    names = tuple(name for name, has_all in zip(table.datasets, complete) if has_all)
    return DatasetRanks(table.systems, names, ranks, *rank_tests(ranks, alpha), alpha)


def wilcoxon_p(table: DatasetEffects) -> tuple[Floats, Floats]:
    """Return the p-value of Wilcoxon's signed rank test of each pair's effects over datasets, and Holm's correction."""
    p = np.full(len(table.effects), np.nan)
    for pair, effects in enumerate(table.effects):
        known = effects[~np.isnan(effects)]
        if len(known) > 1:
            sample = Sample("", ("a", "b"), np.stack([known, 0 * known]), np.array([0]), np.array([1]))
            (result,) = SIGNIFICANCE_TESTS.call("wilcoxon", [sample])
            p[pair] = result.p[0]
    return p, holm(p)
