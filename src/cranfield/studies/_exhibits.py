"""Tables and figures that several papers share, made from an assessment with the paper's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from cranfield._numbers import number_text
from cranfield._table import Cell, Table
from cranfield.assessments import Assessment, figures
from cranfield.data import Description
from cranfield.studies._claims import title_of
from cranfield.studies._study import Exhibit

HERE = "this run"


@dataclass(frozen=True)
class Printed:
    """The numbers that a paper prints for one of its datasets.

    Parameters
    ----------
    users, items, ratings
        Its size, which identifies it.
    statistics
        The further columns of the paper's table of datasets, as printed.
    dp
        Its discriminative power by metric, as printed.
    """

    users: int
    items: int
    ratings: int
    statistics: tuple[str, ...]
    dp: Mapping[str, float]

    def is_of(self, data: Description) -> bool:
        """Whether these are the same ratings, judging by their numbers."""
        return (self.users, self.items, self.ratings) == (data.users, data.items, data.ratings)


def same_data(data: Description, printed: Mapping[str, Printed]) -> str | None:
    """Return which of the paper's datasets the ratings are, if any."""
    return next((name for name, dataset in printed.items() if dataset.is_of(data)), None)


def dataset_table(
    data: Description, printed: Mapping[str, Printed], further: Mapping[str, float], caption: str
) -> Exhibit:
    """Return the table of datasets: the printed rows, and this run's below.

    ``further`` are this run's columns after the density, with the paper's names.
    """
    header = ["Dataset", "Users", "Items", "Ratings", "Density", *further]
    rows = [
        [name, f"{dataset.users:,}", f"{dataset.items:,}", f"{dataset.ratings:,}", *dataset.statistics]
        for name, dataset in printed.items()
    ]
    numbers = [f"{data.users:,}", f"{data.items:,}", f"{data.ratings:,}", f"{100 * data.density:.3f}%"]
    rows.append([f"{HERE}: {data.name or 'ratings'}", *numbers, *(f"{value:.3f}" for value in further.values())])
    frame = pl.DataFrame(rows, schema=header, orient="row")
    return Exhibit("table-2", caption, frame, Table(header, rows, caption, _sameness(data, printed)))


def power_table(
    assessment: Assessment,
    data: Description,
    printed: Mapping[str, Printed],
    caption: str,
    *,
    ordered: bool,
    total: bool,
) -> Exhibit:
    """Return the table of discriminative power: the printed rows, and this run's below.

    With ``ordered``, the paper sums over ordered pairs, so the sums of this run are doubled to be comparable;
    with ``total``, it adds up its datasets.
    """
    dp = dict(assessment.power.select("metric", "dp").iter_rows())
    dp_here = {name: (2.0 if ordered else 1.0) * dp.get(name, float("nan")) for name in assessment.metrics}
    values = {name: dict(dataset.dp) for name, dataset in printed.items()}
    if total:
        values["Total"] = {name: sum(dataset.dp[name] for dataset in printed.values()) for name in assessment.metrics}
    values[f"{HERE}: {data.name or 'ratings'}"] = dp_here
    cells: list[list[str | Cell]] = [
        [name, *_lowest_marked(row, assessment.metrics, 1 if ordered and name in printed else 3)]
        for name, row in values.items()
    ]
    notes = list(_sameness(data, printed))
    if ordered:
        notes.append("the paper counts each pair of systems twice, so the sums of this run are doubled here")
    notes.append(f"{len(assessment.systems)} systems here, 21 in the paper; DP compares metrics within a row only")
    frame = pl.DataFrame(
        [{"dataset": name, "metric": metric, "dp": row[metric]} for name, row in values.items() for metric in row]
    )
    return Exhibit("table-3", caption, frame, Table(["Dataset", *assessment.metrics], cells, caption, notes))


def _lowest_marked(row: Mapping[str, float], names: Sequence[str], digits: int) -> list[Cell]:
    known = [row[name] for name in names if not np.isnan(row[name])]
    return [Cell(number_text(row[name], digits), best=bool(known) and row[name] == min(known)) for name in names]


def _sameness(data: Description, printed: Mapping[str, Printed]) -> tuple[str, ...]:
    same = same_data(data, printed)
    relation = (
        "none of the paper's datasets, so printed numbers are for orientation" if same is None else f"the {same} data"
    )
    return (f"by their numbers of users, items and ratings, the ratings of this run are {relation}",)


def numbers_table(
    data: Description, printed: Mapping[str, Printed], rows: Sequence[tuple[str, str, str, float]], caption: str
) -> Exhibit:
    """Return the numbers in the paper's text: rows of (what, dataset, printed, this run)."""
    header = ["Number", "Printed for", "Printed", HERE.capitalize()]
    cells = [[number, dataset, printed_value, number_text(value, 3)] for number, dataset, printed_value, value in rows]
    frame = pl.DataFrame(rows, schema=["number", "dataset", "printed", "here"], orient="row")
    return Exhibit("numbers-in-the-text", caption, frame, Table(header, cells, caption, _sameness(data, printed)))


def systems_table(assessment: Assessment) -> Exhibit:
    """Return the average of every system by every metric, over the folds, best first by the first metric."""
    means = assessment.whole[:, 0].mean(axis=0)
    order = np.argsort(-np.nan_to_num(means[0], nan=-np.inf), kind="stable")
    best = np.nanmax(np.where(np.isnan(means), -np.inf, means), axis=1)
    rows = [
        [assessment.systems[s], *(Cell(f"{means[m, s]:.4f}", best=means[m, s] == best[m]) for m in range(len(means)))]
        for s in order
    ]
    caption = "Scores of every system, averaged over users and folds"
    frame = pl.DataFrame(
        {"system": assessment.systems, **{name: means[m] for m, name in enumerate(assessment.metrics)}}
    )
    return Exhibit("systems", caption, frame, Table(["System", *assessment.metrics], rows, caption))


def robustness_table(assessment: Assessment, name: str, caption: str) -> Exhibit:
    """Return the mean tau with the whole test set, over all sizes below 1; one row per scenario."""
    frame = (
        assessment.frame("robustness")
        .filter(pl.col("size") < 1.0)
        .group_by("scenario", "metric", maintain_order=True)
        .agg(tau=pl.col("tau").drop_nans().mean(), fold_sd=pl.col("fold_sd").mean(), sizes=pl.len())
    )
    tau = {(scenario, metric): value for scenario, metric, value in frame.select("scenario", "metric", "tau").rows()}
    rows: list[list[str | Cell]] = []
    for scenario in assessment.scenarios:
        values = [tau.get((scenario, metric)) for metric in assessment.metrics]
        best = max((value for value in values if value is not None), default=None)
        rows.append([title_of(scenario), *(Cell(number_text(value, 3), best=value == best) for value in values)])
    return Exhibit(name, caption, frame, Table(["Missing", *assessment.metrics], rows, caption))


def robustness_figure(assessment: Assessment, scenario: str, name: str, caption: str) -> Exhibit:
    """Return tau with the whole test set against the share of it that remains."""
    frame = assessment.frame("robustness").filter(pl.col("scenario") == scenario)
    return Exhibit(name, caption, frame, draw=lambda: figures.robustness(assessment, scenario=scenario))


def values_figure(assessment: Assessment, scenario: str, name: str, caption: str) -> Exhibit:
    """Return the average of each metric against the share of the test set that remains."""
    selected = replace(assessment, samples=assessment.samples.filter(pl.col("scenario") == scenario))
    return Exhibit(name, caption, selected.frame("values").drop("fold_sd"), draw=lambda: figures.values(selected))


def power_figure(assessment: Assessment, name: str, caption: str) -> Exhibit:
    """Return the p-value curves, the 20 largest of each metric."""
    return Exhibit(name, caption, assessment.curves, draw=lambda: figures.power(assessment, first=20))


def correlation_figure(assessment: Assessment, name: str, caption: str) -> Exhibit:
    """Return the heat map of tau between the metrics, in the order of the paper."""
    tau = assessment.correlation()
    frame = pl.DataFrame(
        {"metric": assessment.metrics, **{metric: tau[:, m] for m, metric in enumerate(assessment.metrics)}}
    )
    return Exhibit(name, caption, frame, draw=lambda: _in_order(figures.correlation(assessment), assessment.metrics))


def _in_order(chart: Any, names: Sequence[str]) -> Any:
    """Return a heat map with its rows and columns in a given order instead of the order of the groups."""
    for layer in getattr(chart, "layer", [chart]):
        layer.encoding.x.sort = layer.encoding.y.sort = list(names)
    return chart
