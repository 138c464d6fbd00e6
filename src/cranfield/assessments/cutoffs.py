"""Comparing cut-offs: every metric at many cut-offs (Valcarce et al. 2018, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from cranfield import _checks
from cranfield.metrics import Metric

PAPER_CUTOFFS = tuple(range(5, 101, 5))
"""5 to 100 in steps of 5, as in Valcarce et al. (2018)."""


def at_cutoffs(metrics: Sequence[Metric], cutoffs: Sequence[int]) -> list[Metric]:
    """Return the metrics, and those that accept a cut-off at each of the given ones, without duplicates.

    Examples
    --------
    >>> [str(one) for one in at_cutoffs([Metric.of("P@10"), Metric.of("Rprec")], [5, 10])]
    ['P@10', 'P@5', 'Rprec']
    """
    by_name: dict[str, Metric] = {}
    for metric in metrics:
        by_name.setdefault(str(metric), metric)
        for cutoff in cutoffs if metric.definition.cutoff != "none" else ():
            deeper = replace(metric, cutoff=_checks.whole("cutoffs", cutoff))
            by_name.setdefault(str(deeper), deeper)
    return list(by_name.values())


def without_cutoff(metric: str) -> str:
    """Return a metric's name without its cut-off.

    Examples
    --------
    >>> without_cutoff("nDCG(gain=exp)@100"), without_cutoff("Rprec")
    ('nDCG(gain=exp)', 'Rprec')
    """
    return _parted(metric)[0]


def _parted(metric: str) -> tuple[str, int | None]:
    """Split a metric's name into name and cut-off. Only the text counts: in a part, a metric may have any name."""
    family, _, cutoff = metric.rpartition("@")
    return (family, int(cutoff)) if family and cutoff.isdecimal() else (metric, None)


def cutoff_frame(evidence: pl.DataFrame) -> pl.DataFrame:
    """Return the evidence on metrics that were measured at several cut-offs, with ``family`` and ``cutoff`` in front.

    ``evidence`` has one row per metric and average, as in `Advice`.
    """
    names = evidence["metric"].unique(maintain_order=True).to_list()
    families = {name: _parted(name)[0] for name in names}
    cutoffs = {name: _parted(name)[1] for name in names}
    several = {name for name in names if sum(family == families[name] for family in families.values()) > 1}
    return (
        evidence.filter(pl.col("metric").is_in(several))
        .with_columns(
            family=pl.col("metric").replace_strict(families, return_dtype=pl.String),
            cutoff=pl.col("metric").replace_strict(cutoffs, return_dtype=pl.Int64),
        )
        .select("family", "cutoff", pl.exclude("family", "cutoff"))
        .sort("family", "average", "cutoff", nulls_last=True, maintain_order=True)
    )
