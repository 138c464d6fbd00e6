"""Tables 1 to 3 and Figures 3 and 4 of Aftab and Ramampiaro (2022), reproduced, and what the paper does not show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from cranfield._figures import altair, themed
from cranfield._numbers import DASH, number_text
from cranfield._table import Cell
from cranfield.studies.aftab2022 import work
from cranfield.studies.aftab2022.work import ErrorNumbers
from cranfield.studies.frame.exhibits import CellRow, Exhibit, Printed, curve, exhibit, marked

COLUMNS = {
    "ML": "MovieLens 25M", "RR": "RentTheRunway", "BOOK": "Book-Crossing", "RP": "research papers",
    "AMZ": "Amazon clothing",
}  # fmt: skip
"""The paper's datasets, by the columns of its tables."""
PRINTED = Printed(__package__)
_SIZE = {"width": 200, "height": 150}
_SHOWN = {work.SDCSE: "1 − SDCSE"}


def exhibits_of(panels: Sequence[ErrorNumbers]) -> list[Exhibit]:
    """Return all tables and figures."""
    migration = (
        "us-ds: the share of the first ten rated items predicted too high or too low by more than the margin: half a "
        "step of the scale, or the spread of the residuals on held-out ratings; us and ds with half a step"
    )
    sells = {name: name for name in work.SELLS}
    implicit = "1 − SDCSE on implicit feedback, liked (1) or not (0); the form that the paper prints"
    return [
        _setup(panels),
        _power_table(panels),
        _model_table(panels, 2, "migration of ratings (us-ds; lower is better)", sells, work.EXPLICIT, migration),
        _model_table(panels, 3, implicit, {"1 − SDCSE": "SDCSEacc"}, work.IMPLICIT),
        _models_table(panels),
        _beside_table(panels),
        _levels_table(panels),
        _time_table(panels),
        _curves(panels),
        _robustness(panels, "ratings", "Figure 3: tau with the whole test set as ratings are missing"),
        _robustness(panels, "popular", "The same as the most popular items are missing (section V-E)"),
        _levels_figure(panels),
    ]


def missing(panels: Sequence[ErrorNumbers]) -> list[str]:
    """Return the datasets of the paper that were not given."""
    same = {panel.known for panel in panels if panel.same}
    return [name for column, name in COLUMNS.items() if column not in same]


def _setup(panels: Sequence[ErrorNumbers]) -> Exhibit:
    """Return a description of each set of ratings, and what was not run on it."""
    rows = []
    for panel in panels:
        data = panel.work.data
        facts = ("users", "lists of one rated item")
        users, single = (_mean(panel.rows("lists", setting=work.EXPLICIT, metric=fact)) for fact in facts)
        orientation = "" if panel.same else ", for orientation"
        beside = DASH if panel.known is None else f"{COLUMNS[panel.known]}{orientation}"
        rows.append([
            panel.name, f"{np.count_nonzero(data.user_counts):,}", f"{np.count_nonzero(data.item_counts):,}",
            f"{len(data):,}", f"{data.grades[0]:g} to {data.grades[-1]:g}", f"{panel.work.threshold:g}",
            f"{users:,.0f}", f"{single:.1%}", beside,
        ])  # fmt: skip
    absent = {f"{panel.name}: {name} was not run: {why}" for panel in panels for name, why in panel.absent().items()}
    others = missing(panels)
    notes = [*sorted(absent), f"datasets of the paper that were not given: {', '.join(others)}"] if others else []
    notes += ["a list of one rated item has SDCSE 1 whatever its error; users measured have training and test ratings"]
    header = ["Ratings", "Users", "Items", "Ratings in all", "Scale", "Liked from", "Users measured", "One rated item",
              "Printed beside"]  # fmt: skip
    caption = "The ratings of this run; the paper does not describe its own in more detail"
    return exhibit("ratings", caption, header, rows, notes)


def _mean(rows: pl.DataFrame) -> float:
    return float(rows["value"].drop_nans().mean() or 0.0)  # type: ignore[arg-type]


def _printed(panel: ErrorNumbers, table: int, row: str) -> str:
    """Return what the paper prints for a set of ratings."""
    value = PRINTED.number(f"table {table}", panel.known, row)
    return DASH if value is None else f"{value:g}"


def _power_table(panels: Sequence[ErrorNumbers]) -> Exhibit:
    rows: list[CellRow] = []
    for panel in panels:
        means = {metric: float(panel.power(metric)[0].mean()) for metric in work.METRICS}
        pairs, printed = panel.power(work.MAP)[1], [_printed(panel, 1, metric) for metric in work.METRICS]
        rows.append([panel.name, f"{pairs}", *marked(means, _sum, min), *printed])
    models = "; ".join(f"{panel.name}: {', '.join(panel.paper_models)}" for panel in panels)
    notes = [
        "p-values by Fisher's randomisation test, exact; means over splits. DP compares metrics within a row only: the "
        "paper sums 6 pairs for ML and RR, and a single one for BOOK, RP and AMZ",
        f"pairs of {models}",
    ]
    header = ["Ratings", "Pairs", *work.METRICS, *(f"{metric}, printed" for metric in work.METRICS)]
    caption = "Table 1: discriminative power (DP, the sum of p-values over pairs of models; lower is better)"
    return exhibit("table-1", caption, header, rows, notes)


def _sum(value: float) -> str:
    """Return a sum of p-values with four decimals, or in scientific notation if these would all be 0."""
    return f"{value:.1e}" if 0 < value < 5e-5 else number_text(value, 4)


def _by_model(values: Mapping[str, Mapping[str, float]], digits: int, lowest: Sequence[str]) -> dict[str, list[Cell]]:
    """Return the cells of each model; the best value of each column is marked, which may be the lowest."""
    columns = list(next(iter(values.values())))
    best = {key: (min if key in lowest else max)(own[key] for own in values.values()) for key in columns}
    return {
        model: [Cell(number_text(own[key], digits), best=own[key] == best[key]) for key in columns]
        for model, own in values.items()
    }


def _model_table(
    panels: Sequence[ErrorNumbers], number: int, caption: str, names: Mapping[str, str], version: str, *notes: str
) -> Exhibit:
    """Return a table of models by ratings with printed values; the columns are metrics; sells are better if lower."""
    rows: list[CellRow] = []
    for panel in panels:
        values = {
            model: {name: panel.mean(metric, model, version) for name, metric in names.items()}
            for model in panel.models
        }
        for model, cells in _by_model(values, 3, [name for name in names if name in work.SELLS]).items():
            line = work.BPR if model == work.BPRMF and work.BPR not in panel.models else model
            rows.append([panel.name, model, *cells, _printed(panel, number, line)])
    header = ["Ratings", "Model", *names, "printed"]
    return exhibit(f"table-{number}", f"Table {number}: {caption}", header, rows, notes)


def _models_table(panels: Sequence[ErrorNumbers]) -> Exhibit:
    highest = (work.MAP, work.NDCG, "SDCSEacc")
    names = (*work.METRICS, "SDCSEacc", "DCSE", "WDCSE", "RMSE", "RMSE, all items", "ECE by rating", "ECE by rank")
    rows: list[CellRow] = []
    for panel in panels:
        values = {model: {name: panel.mean(name, model) for name in names} for model in panel.models}
        lowest = [name for name in names if name not in highest]
        rows += [[panel.name, model, *cells] for model, cells in _by_model(values, 4, lowest).items()]
    caption = "Scores of every model on the explicit ratings: means over users and splits"
    return exhibit("models", caption, ["Ratings", "Model", *names], rows)


def _beside_table(panels: Sequence[ErrorNumbers]) -> Exhibit:
    """Return SDCSE and DCSE for each pair, and whether SDCSE is lower only because the worst case is worse."""
    rows = []
    for panel in panels:
        for a, b in combinations(panel.models, 2):
            by = {metric: _difference(panel, metric, a, b) for metric in (work.SDCSE, "DCSE", "WDCSE")}
            sign = -1.0 if by[work.SDCSE][0] <= 0 else 1.0
            better, worse = (a, b) if sign < 0 else (b, a)
            signed = {metric: -sign * difference for metric, (difference, _) in by.items()}
            opposite = _mean(panel.rows("opposite", setting=work.EXPLICIT, system=f"{a} | {b}"))
            rows.append([
                panel.name, better, worse, f"{signed[work.SDCSE]:+.4f}", number_text(by[work.SDCSE][1], 3),
                f"{signed['DCSE']:+.4f}", number_text(by["DCSE"][1], 3), f"{signed['WDCSE']:+.4f}",
                reading(signed), f"{opposite:.1%}",
            ])  # fmt: skip
    header = ["Ratings", "Lower SDCSE", "than", "SDCSE", "p", "DCSE", "p", "WDCSE", "So", "Opposite preferences"]
    caption = "Is SDCSE lower for a model only because its worst case is worse? Compared with DCSE (explicit ratings)"
    notes = [
        "differences of means over splits, the model with the lower SDCSE minus the other, and the median p-value. "
        "smaller errors: DCSE is lower too. only its worst case is worse: DCSE is not lower, and WDCSE is higher",
        "the last column: of the users for whom both differ, the share for whom SDCSE and DCSE prefer different models",
    ]
    return exhibit("sdcse-beside-dcse", caption, header, rows, notes)


def _difference(panel: ErrorNumbers, metric: str, a: str, b: str) -> tuple[float, float]:
    rows = panel.pair(metric, [a, b])
    return float(rows["value"].mean() or 0.0), float(rows["p"].median() or 0.0)  # type: ignore[arg-type]


def reading(differences: Mapping[str, float]) -> str:
    """Return what a lower SDCSE is due to, given the differences of the model that has it."""
    if differences["DCSE"] < 0:
        return "smaller errors"
    return "only its worst case is worse" if differences["WDCSE"] > 0 else "the order of errors"


def _levels_table(panels: Sequence[ErrorNumbers]) -> Exhibit:
    models = list(dict.fromkeys(model for panel in panels for model in panel.models))
    rows: list[CellRow] = []
    for panel in panels:
        levels = panel.rows("level").select("setting", "x").unique(maintain_order=True).rows()
        for metric in work.METRICS:
            for level, lowest in levels:
                values = {model: panel.level(level, metric, model) for model in panel.models}
                means = {model: float(own.mean()) for model, own in values.items() if len(own)}
                cells = dict(zip(means, marked(means, number_text)))
                first = [panel.name, level, f"{lowest:g}", _SHOWN.get(metric, metric)]
                rows.append([*first, *(cells.get(model, DASH) for model in models)])
    caption = "Figure 4 in numbers: three metrics by model and level of relevance; means over splits"
    return exhibit("figure-04-numbers", caption, ["Ratings", "Level", "From", "Metric", *models], rows)


def _time_table(panels: Sequence[ErrorNumbers]) -> Exhibit:
    rows = [
        [panel.name, version, model, f"{_mean(taken):.1f}"]
        for panel in panels
        for version in work.VERSIONS
        for model in panel.models
        if len(taken := panel.rows("time", setting=version, system=model))
    ]
    header = ["Ratings", "Version", "Model", "Seconds to train and rank, per split"]
    return exhibit("times", "How long each model took on this machine", header, rows)


def _curves(panels: Sequence[ErrorNumbers]) -> Exhibit:
    """Return the p-value curves of Table 1: for each metric, the pairs of models by decreasing p."""
    parts = []
    for panel in panels:
        for metric in work.METRICS:
            pairs = panel.pair(metric, panel.paper_models)
            rows = pairs.group_by("system").agg(pl.col("p").mean()).sort("p", descending=True)
            labels = {"panel": pl.lit(panel.name), "metric": pl.lit(metric), "place": pl.int_range(1, pl.len() + 1)}
            parts.append(rows.select(**labels, system="system", p="p"))
    caption = "The p-value curves behind Table 1; means over splits"
    return _figure("table-1-curves", caption, pl.concat(parts), ("place", "pairs of models, by decreasing p"), "p")


def _robustness(panels: Sequence[ErrorNumbers], scenario: str, caption: str) -> Exhibit:
    frame = pl.concat(
        panel.frame.filter(part="robust", setting=scenario)
        .group_by("metric", "x", maintain_order=True)
        .agg(pl.col("value").drop_nans().mean().alias("tau"))
        .select(pl.lit(panel.name).alias("panel"), "metric", pl.col("x").alias("remains"), "tau")
        for panel in panels
    )
    name, remains = f"figure-03-{scenario}", ("remains", "share of test ratings left")
    return _figure(name, f"{caption}; means over splits", frame, remains, "tau")


def _figure(name: str, caption: str, frame: pl.DataFrame, x: tuple[str, str], y: str) -> Exhibit:
    """Return curves of the metrics, one panel per set of ratings."""

    def draw() -> Any:
        charts, title = [], "p-value" if y == "p" else y
        for (panel,), rows in frame.group_by("panel", maintain_order=True):
            chart = curve(rows.drop("panel"), x, (y, title), "metric", list(work.METRICS))
            charts.append(chart.properties(title=panel, **_SIZE))
        return themed(altair().concat(*charts, columns=2))

    return Exhibit(name, caption, frame, draw=draw)


def _levels_figure(panels: Sequence[ErrorNumbers]) -> Exhibit:
    frame = pl.concat(
        panel.frame.filter(pl.col("system").is_in(panel.models), part="level")
        .group_by("metric", "setting", "system", maintain_order=True)
        .agg(pl.col("value").mean())
        .select(pl.lit(panel.name).alias("panel"), "metric", pl.col("setting").alias("level"), "system", "value")
        for panel in panels
    )

    def draw() -> Any:
        charts = []
        for panel in panels:
            for metric in work.METRICS:
                rows = frame.filter(panel=panel.name, metric=metric).drop("panel", "metric")
                levels = rows["level"].unique(maintain_order=True).to_list()
                chart = curve(rows, ("level", None), ("value", None), "system", panel.models, order=levels)
                charts.append(chart.properties(title=f"{panel.name}: {_SHOWN.get(metric, metric)}", **_SIZE))
        return themed(altair().concat(*charts, columns=len(work.METRICS)).resolve_scale(color="independent"))

    caption = "Figure 4: NDCG, MAP and 1 − SDCSE by model and level of relevance; means over splits"
    return Exhibit("figure-04", caption, frame, draw=draw)
