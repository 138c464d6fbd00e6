"""A part of an assessment: some of its metrics under one average, by the names that a paper gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from cranfield.assess import Assessment


def part(found: Assessment, labels: Mapping[str, str], average: str = "mean") -> Assessment:
    """Return the assessment of some metrics under one average.

    Parameters
    ----------
    found
        The whole assessment.
    labels
        What the paper calls each metric, in the order of the metrics.
    average
        One of its averages.
    """
    metrics = [metric for metric in found.metrics if metric in labels]
    places = [found.metrics.index(metric) for metric in metrics]
    tested = "mean" if average not in found.power["average"].to_list() else average
    return replace(
        found,
        metrics=tuple(labels[metric] for metric in metrics),
        averages=(average,),
        lower_is_better=tuple(found.lower_is_better[m] for m in places),
        samples=_named(found.samples, labels, average),
        whole=found.whole[:, [found.averages.index(average)]][:, :, places],
        power=_named(found.power, labels, tested),
        curves=_named(found.curves, labels, tested),
    )


def _named(frame: pl.DataFrame, labels: Mapping[str, str], average: str) -> pl.DataFrame:
    own = frame.filter((pl.col("average") == average) & pl.col("metric").is_in(list(labels)))
    return own.with_columns(pl.col("metric").replace_strict(dict(labels), return_dtype=pl.String))
