"""Target sampling: which numbers of unrated targets are tried, and what is measured."""

from __future__ import annotations

import polars as pl

from cranfield.metrics import kendall_tau_b

SIZES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 3706)
"""The numbers of unrated targets; 0 is a condensed list, and 3706 a full one on MovieLens 1M."""

METRICS = ("P@10", "Recall@10", "nDCG(gain=binary)@10")
COVERAGE = "Coverage@10"

PAIRS = "all pairs"
"""The entry in the column ``system`` for numbers of all pairs of systems."""

TIES, TIES_AT_ZERO, SUM_OF_P = "ratio of ties", "ratio of ties at zero", "sum of p-values"
"""The numbers of all pairs, for each metric."""

INTERSECTION = "expected intersection ratio in the top ten"
"""The expected overlap of two random lists: the mean of min(10, targets)/targets, 1 for a user without targets."""

UNBIASED = "unbiased"
"""Prefix of the name of a metric that is measured on ratings of randomly drawn items."""

AGREEMENT = "Kendall's tau with the unbiased order"


def agreement(means: pl.DataFrame, metric: str) -> list[float]:
    """Return for each size Kendall's tau between the values of the systems and their values by unbiased ratings.

    The result is empty if no unbiased ratings are known.
    """
    true = dict(means.filter(metric=f"{UNBIASED} {metric}").select("system", "value").iter_rows())
    if not true:
        return []
    by_size = [dict(means.filter(metric=metric, unrated=size).select("system", "value").iter_rows()) for size in SIZES]
    return [kendall_tau_b([own[system] for system in true], list(true.values())) for own in by_size]
