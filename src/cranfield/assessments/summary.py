"""What the studies of an assessment say: robustness over all samples, agreement between metrics, and cut-offs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield.assessments.fold import correlations

QUANTILES: Mapping[str, float] = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}
_BY = ["scenario", "size", "average", "metric"]


def robustness_frame(samples: pl.DataFrame) -> pl.DataFrame:
    """Return defined tau over samples of all folds, and what flips, by scenario, size, average and metric."""
    tau = pl.col("tau").drop_nans()
    each = samples.group_by([*_BY, "fold"], maintain_order=True).agg(tau=tau.mean())
    between = each.group_by(_BY, maintain_order=True).agg(fold_sd=pl.col("tau").std())
    return (
        samples.group_by(_BY, maintain_order=True)
        .agg(
            samples=pl.len(),
            undefined=pl.col("tau").is_nan().sum(),
            tau=tau.mean(),
            standard_error=tau.std() / tau.len().sqrt(),
            **{name: tau.quantile(share, "linear") for name, share in QUANTILES.items()},
            flipped=pl.col("flipped").drop_nans().mean(),
            verdicts_lost=pl.col("verdicts_lost").drop_nans().mean(),
            verdicts_reversed=pl.col("verdicts_reversed").drop_nans().mean(),
            ratings=pl.col("ratings").mean(),
            users=pl.col("users").mean(),
        )
        .join(between, on=_BY, how="left", maintain_order="left")
    )


def values_frame(samples: pl.DataFrame, systems: Sequence[str]) -> pl.DataFrame:
    """Return one row per scenario, size, average, metric and system: its value, averaged over samples and folds."""
    names = {str(s): system for s, system in enumerate(systems)}

    def means(by: list[str]) -> pl.DataFrame:
        wide = samples.group_by(by, maintain_order=True).agg(
            pl.col("values").arr.get(s).drop_nans().mean().alias(str(s)) for s in range(len(systems))
        )
        long = wide.unpivot(index=by, on=list(names), variable_name="system", value_name="value")
        return long.with_columns(pl.col("system").replace_strict(names, return_dtype=pl.String))

    between = means([*_BY, "fold"]).group_by([*_BY, "system"]).agg(fold_sd=pl.col("value").std())
    return means(_BY).join(between, on=[*_BY, "system"], how="left", maintain_order="left")


def correlation_frame(
    averages: NDArray[np.float64], names: Sequence[str], metrics: Sequence[str], kind: str = "tau-b"
) -> pl.DataFrame:
    """Return the correlation of every pair of metrics, and of every metric with itself under other averages.

    ``averages`` are folds × averages × metrics × systems, higher is better. ``tau`` is the mean over the folds, and
    ``fold_sd`` the standard deviation between them. Each pair occurs in both directions; ``tau-ap`` is symmetrised, so
    that a pair has one value.
    """
    n_folds, n_averages, n_metrics, _ = averages.shape
    each_metric, each_average = range(n_metrics), range(n_averages)
    pairs = [((a, m), (a, other)) for a, m, other in product(each_average, each_metric, each_metric)]
    pairs += [((a, m), (other, m)) for m, a, other in product(each_metric, each_average, each_average) if a != other]
    first, second = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    tau = np.empty((n_folds, len(pairs)))
    for fold, table in enumerate(averages):
        x, y = table[first[:, 0], first[:, 1]], table[second[:, 0], second[:, 1]]
        tau[fold] = correlations(x, y, kind)
        if kind == "tau-ap":
            tau[fold] = (tau[fold] + correlations(y, x, kind)) / 2.0
    mean, spread = mean_and_spread(tau)
    columns = {
        f"{kind}_{side}": [of[place] for place in places[:, axis]]
        for side, places in (("a", first), ("b", second))
        for axis, (kind, of) in enumerate((("average", names), ("metric", metrics)))
    }
    return pl.DataFrame({**columns, "tau": mean, "fold_sd": spread})


def mean_and_spread(tables: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation (n − 1) along the first axis, ignoring NaN; NaN if too few values remain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # too few values
        return np.nanmean(tables, axis=0), np.nanstd(tables, axis=0, ddof=1)


def groups(tau: NDArray[np.float64], same: float = 0.9) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Group metrics whose orders agree: average linkage on 1 − tau, cut where the mean tau falls below ``same``.

    Returns the group of each metric, numbered from 1 in the order of the metrics, and an order of the metrics in which
    groups are contiguous. An undefined tau counts as -1.
    """
    from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(tau) < 2:
        return np.ones(len(tau), dtype=np.int64), np.arange(len(tau))
    distance = np.nan_to_num(1.0 - tau, nan=2.0)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform((distance + distance.T) / 2.0, checks=False), method="average")
    raw = fcluster(tree, t=1.0 - same + 1e-12, criterion="distance")
    numbers = {int(group): place for place, group in enumerate(dict.fromkeys(raw.tolist()), start=1)}
    return np.array([numbers[int(group)] for group in raw]), leaves_list(tree).astype(np.int64)


def family_of(metric: str) -> str:
    """Return a metric's name without its cut-off. Only the text counts: in a part, a metric may have any name."""
    return re.sub(r"(?<=.)@[0-9]+$", "", metric)


def cutoff_frame(evidence: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `Advice` for metrics at several cut-offs, with ``family`` and ``cutoff`` in front."""
    families = {name: family_of(name) for name in evidence["metric"].unique(maintain_order=True)}
    return (
        evidence.select(
            pl.col("metric").replace_strict(families, return_dtype=pl.String).alias("family"),
            pl.col("metric").str.extract(r".@([0-9]+)$").cast(pl.Int64).alias("cutoff"),
            pl.all(),
        )
        .filter(pl.col("metric").n_unique().over("family") > 1)
        .sort("family", "average", "cutoff", nulls_last=True, maintain_order=True)
    )
