"""Tables 1 to 3 and Figures 3 and 4 of Aftab and Ramampiaro (2022), reproduced, and what the paper does not show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from cranfield._figures import altair, data_of, series, themed, tips
from cranfield._numbers import DASH, number_text
from cranfield._table import Cell, Table
from cranfield.studies._error_models import BPR, BPRMF, LCNN, MF, NCF
from cranfield.studies._error_numbers import ErrorNumbers
from cranfield.studies._error_work import EXPLICIT, IMPLICIT, MAP, METRICS, NDCG, SDCSE, VERSIONS
from cranfield.studies._study import Exhibit

ML, RR, BOOK, RP, AMZ = "ML", "RR", "BOOK", "RP", "AMZ"
COLUMNS = {
    ML: "MovieLens 25M", RR: "RentTheRunway", BOOK: "Book-Crossing", RP: "research papers", AMZ: "Amazon clothing",
}  # fmt: skip
"""The paper's datasets."""

TABLE_1: Mapping[str, Mapping[str, float]] = {
    MAP: {ML: 0.8883, RR: 2.9790, BOOK: 0.3100, RP: 0.6007, AMZ: 0.0703},
    NDCG: {ML: 0.2415, RR: 0.9509, BOOK: 0.0001, RP: 0.77, AMZ: 0.2250},
    SDCSE: {ML: 1.7311, RR: 0.0003, BOOK: 0.0001, RP: 0.0002, AMZ: 0.0041},
}
TABLE_2: Mapping[str, Mapping[str, float]] = {
    MF: {ML: 0.87, RR: 0.70, BOOK: 0.85, RP: 0.65, AMZ: 0.65},
    BPR: {ML: 0.91, RR: 0.74, BOOK: 0.87, RP: 0.77, AMZ: 0.78},
    NCF: {ML: 0.95, RR: 0.73},
    LCNN: {ML: 0.90, RR: 0.69},
}
TABLE_3: Mapping[str, Mapping[str, float]] = {
    MF: {ML: 0.47, RR: 0.17, BOOK: 0.29, RP: 0.38, AMZ: 0.47},
    BPR: {ML: 0.45, RR: 0.14, BOOK: 0.27, RP: 0.45, AMZ: 0.45},
    NCF: {ML: 0.46, RR: 0.13},
    LCNN: {ML: 0.44, RR: 0.11},
}
_SIZE = {"width": 200, "height": 150}
_POINT = {"size": 18, "filled": True}


def exhibits_of(panels: Sequence[ErrorNumbers]) -> list[Exhibit]:
    """Return all tables and figures."""
    return [
        _setup(panels),
        _power_table(panels),
        _sells_table(panels),
        _implicit_table(panels),
        _models_table(panels),
        _beside_table(panels),
        _levels_table(panels),
        _time_table(panels),
        _curves(panels),
        _robustness(
            panels, "ratings", "figure-03-ratings", "Figure 3: tau with the whole test set as ratings are missing"
        ),
        _robustness(
            panels, "popular", "figure-03-popular", "The same as the most popular items are missing (section V-E)"
        ),
        _levels_figure(panels),
    ]


def _setup(panels: Sequence[ErrorNumbers]) -> Exhibit:
    """Return a description of each set of ratings, and what was not run on it."""
    header = ["Ratings", "Users", "Items", "Ratings in all", "Scale", "Liked from", "Users measured", "One rated item",
              "Printed beside"]  # fmt: skip
    rows: list[list[str | Cell]] = []
    for panel in panels:
        data = panel.work.data
        facts = {name: _mean(panel.rows("lists", setting=EXPLICIT, metric=name)) for name in _FACTS}
        printed = (
            DASH if panel.column is None else f"{COLUMNS[panel.column]}{'' if panel.same else ', for orientation'}"
        )
        rows.append([
            panel.name, f"{np.count_nonzero(data.user_counts):,}", f"{np.count_nonzero(data.item_counts):,}",
            f"{len(data):,}", f"{data.grades[0]:g} to {data.grades[-1]:g}", f"{panel.work.threshold:g}",
            f"{facts['users']:,.0f}", f"{facts['lists of one rated item']:.1%}", printed,
        ])  # fmt: skip
    absent = {f"{panel.name}: {name} was not run: {why}" for panel in panels for name, why in panel.absent().items()}
    missing = [COLUMNS[column] for column in COLUMNS if column not in {panel.column for panel in panels if panel.same}]
    notes = [*sorted(absent), f"datasets of the paper that were not given: {', '.join(missing)}"] if missing else []
    notes.append(
        "a list of one rated item has SDCSE 1 whatever its error; users measured have training and test ratings"
    )
    caption = "The ratings of this run; the paper does not describe its own in more detail"
    return Exhibit("ratings", caption, _plain(rows, header), Table(header, rows, caption, notes))


_FACTS = ("users", "lists of one rated item")


def _mean(rows: pl.DataFrame) -> float:
    return float(rows["value"].drop_nans().mean() or 0.0)  # type: ignore[arg-type]


def _power_table(panels: Sequence[ErrorNumbers]) -> Exhibit:
    header = ["Ratings", "Pairs", *METRICS, *(f"{metric}, printed" for metric in METRICS)]
    rows: list[list[str | Cell]] = []
    for panel in panels:
        power = {metric: panel.power(metric) for metric in METRICS}
        means = [float(values.mean()) for values, _ in power.values()]
        best = min(means)
        here = [Cell(_sum(value), best=value == best) for value in means]
        rows.append([panel.name, f"{power[MAP][1]}", *here, *_printed(panel, {m: TABLE_1[m] for m in METRICS})])
    caption = "Table 1: discriminative power (DP, the sum of p-values over pairs of models; lower is better)"
    notes = [
        "p-values by Fisher's randomisation test, exact; means over splits. DP compares metrics within a row only: the "
        "paper sums 6 pairs for ML and RR, and a single one for BOOK, RP and AMZ",
        _which(panels),
    ]
    return Exhibit("table-1", caption, _plain(rows, header), Table(header, rows, caption, notes))


def _sum(value: float) -> str:
    """Return a sum of p-values with four decimals, or in scientific notation if these would all be 0."""
    return f"{value:.1e}" if 0 < value < 5e-5 else number_text(value, 4)


def _which(panels: Sequence[ErrorNumbers]) -> str:
    """Return the models whose pairs are shown."""
    names = {panel.name: panel.paper_models if len(panel.paper_models) > 1 else panel.models for panel in panels}
    return "pairs of " + "; ".join(f"{name}: {', '.join(models)}" for name, models in names.items())


def _printed(panel: ErrorNumbers, values: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return what the paper prints for a set of ratings, one text per line."""
    return [_shown(panel, line) for line in values.values()]


def _shown(panel: ErrorNumbers, line: Mapping[str, float]) -> str:
    return DASH if panel.column is None or panel.column not in line else f"{line[panel.column]:g}"


def _model_table(
    panels: Sequence[ErrorNumbers],
    name: str,
    caption: str,
    value: Callable[[ErrorNumbers, str], Mapping[str, float]],
    printed: Mapping[str, Mapping[str, float]],
    notes: Sequence[str],
    *,
    lowest: bool,
) -> Exhibit:
    """Return a table of models by ratings, each with its printed value."""
    first = value(panels[0], panels[0].models[0])
    header = ["Ratings", "Model", *first, "printed"]
    rows: list[list[str | Cell]] = []
    for panel in panels:
        values = {model: value(panel, model) for model in panel.models}
        best = {key: (min if lowest else max)(own[key] for own in values.values()) for key in first}
        for model, own in values.items():
            line = printed.get(BPR if model == BPRMF and BPR not in panel.models else model, {})
            here = [Cell(number_text(own[key], 3), best=own[key] == best[key]) for key in first]
            rows.append([panel.name, model, *here, _shown(panel, line)])
    return Exhibit(name, caption, _plain(rows, header), Table(header, rows, caption, list(notes)))


def _sells_table(panels: Sequence[ErrorNumbers]) -> Exhibit:
    def value(panel: ErrorNumbers, model: str) -> dict[str, float]:
        names = ("us-ds, half a step", "us-ds, spread", "us", "ds")
        return {name: float(panel.of(name, model).mean()) for name in names}

    notes = [
        "us-ds: the share of the first ten rated items predicted too high or too low by more than the margin: half a "
        "step of the scale, or the spread of the residuals on held-out ratings; us and ds with half a step"
    ]
    caption = "Table 2: migration of ratings (us-ds; lower is better)"
    return _model_table(panels, "table-2", caption, value, TABLE_2, notes, lowest=True)


def _implicit_table(panels: Sequence[ErrorNumbers]) -> Exhibit:
    def value(panel: ErrorNumbers, model: str) -> dict[str, float]:
        own = panel.of("SDCSEacc", model, IMPLICIT)
        return {"1 − SDCSE": float(own.mean()) if len(own) else float("nan")}

    caption = "Table 3: 1 − SDCSE on implicit feedback, liked (1) or not (0); the form that the paper prints"
    return _model_table(panels, "table-3", caption, value, TABLE_3, [], lowest=False)


def _models_table(panels: Sequence[ErrorNumbers]) -> Exhibit:
    names = (*METRICS, "SDCSEacc", "DCSE", "WDCSE", "RMSE", "RMSE, all items", "ECE by rating", "ECE by rank")

    def value(panel: ErrorNumbers, model: str) -> dict[str, float]:
        return {name: float(panel.of(name, model).mean()) for name in names}

    header = ["Ratings", "Model", *names]
    rows: list[list[str | Cell]] = []
    for panel in panels:
        values = {model: value(panel, model) for model in panel.models}
        for model, own in values.items():
            cells = []
            for name in names:
                order = max if name in (MAP, NDCG, "SDCSEacc") else min
                cells.append(Cell(number_text(own[name], 4), best=own[name] == order(v[name] for v in values.values())))
            rows.append([panel.name, model, *cells])
    caption = "Scores of every model on the explicit ratings: means over users and splits"
    return Exhibit("models", caption, _plain(rows, header), Table(header, rows, caption))


def _beside_table(panels: Sequence[ErrorNumbers]) -> Exhibit:
    """Return SDCSE and DCSE for each pair, and whether SDCSE is lower only because the worst case is worse."""
    header = ["Ratings", "Lower SDCSE", "than", "SDCSE", "p", "DCSE", "p", "WDCSE", "So", "Opposite preferences"]
    rows: list[list[str | Cell]] = []
    for panel in panels:
        for a, b in combinations(panel.models, 2):
            by = {metric: _difference(panel, metric, a, b) for metric in (SDCSE, "DCSE", "WDCSE")}
            sign = -1.0 if by[SDCSE][0] <= 0 else 1.0
            better, worse = (a, b) if sign < 0 else (b, a)
            signed = {metric: -sign * difference for metric, (difference, _) in by.items()}
            rows.append([
                panel.name, better, worse, f"{signed[SDCSE]:+.4f}", number_text(by[SDCSE][1], 3),
                f"{signed['DCSE']:+.4f}", number_text(by["DCSE"][1], 3), f"{signed['WDCSE']:+.4f}",
                reading(signed), _share(panel, a, b),
            ])  # fmt: skip
    caption = "Is SDCSE lower for a model only because its worst case is worse? Compared with DCSE (explicit ratings)"
    notes = [
        "differences of means over splits, the model with the lower SDCSE minus the other, and the median p-value. "
        "smaller errors: DCSE is lower too. only its worst case is worse: DCSE is not lower, and WDCSE is higher",
        "the last column: of the users for whom both differ, the share for whom SDCSE and DCSE prefer different models",
    ]
    return Exhibit("sdcse-beside-dcse", caption, _plain(rows, header), Table(header, rows, caption, notes))


def _difference(panel: ErrorNumbers, metric: str, a: str, b: str) -> tuple[float, float]:
    rows = panel.pair(metric, paper=False).filter(pl.col("system") == f"{a} | {b}")
    return float(rows["value"].mean() or 0.0), float(rows["p"].median() or 0.0)  # type: ignore[arg-type]


def reading(differences: Mapping[str, float]) -> str:
    """Return what a lower SDCSE is due to, given the differences of the model that has it."""
    if differences["DCSE"] < 0:
        return "smaller errors"
    return "only its worst case is worse" if differences["WDCSE"] > 0 else "the order of errors"


def _share(panel: ErrorNumbers, a: str, b: str) -> str:
    rows = panel.rows("opposite", setting=EXPLICIT, system=f"{a} | {b}")
    return f"{_mean(rows):.1%}"


def _levels_table(panels: Sequence[ErrorNumbers]) -> Exhibit:
    header = ["Ratings", "Level", "From", "Metric"]
    models = list(dict.fromkeys(model for panel in panels for model in panel.models))
    rows: list[list[str | Cell]] = []
    for panel in panels:
        levels = panel.rows("level").select("setting", "x").unique(maintain_order=True).rows()
        for metric in METRICS:
            for level, lowest in levels:
                values = {model: panel.level(level, metric, model) for model in panel.models}
                means = {model: float(own.mean()) for model, own in values.items() if len(own)}
                best = max(means.values())
                cells = [
                    Cell(number_text(means[model], 4), best=means[model] == best) if model in means else DASH
                    for model in models
                ]
                shown = "1 − SDCSE" if metric == SDCSE else metric
                rows.append([panel.name, level, f"{lowest:g}", shown, *cells])
    header += models
    caption = "Figure 4 in numbers: three metrics by model and level of relevance; means over splits"
    return Exhibit("figure-04-numbers", caption, _plain(rows, header), Table(header, rows, caption))


def _time_table(panels: Sequence[ErrorNumbers]) -> Exhibit:
    header = ["Ratings", "Version", "Model", "Seconds to train and rank, per split"]
    rows: list[list[str | Cell]] = []
    for panel in panels:
        for version in VERSIONS:
            for model in panel.models:
                taken = panel.rows("time", setting=version, system=model)
                if len(taken):
                    rows.append([panel.name, version, model, f"{_mean(taken):.1f}"])
    caption = "How long each model took on this machine"
    return Exhibit("times", caption, _plain(rows, header), Table(header, rows, caption))


def _plain(rows: Sequence[Sequence[str | Cell]], header: Sequence[str]) -> pl.DataFrame:
    """Return the cells of a table as a frame of text; repeated titles are numbered."""
    names = [name if header.index(name) == place else f"{name} ({place + 1})" for place, name in enumerate(header)]
    plain = [[cell.text if isinstance(cell, Cell) else cell for cell in row] for row in rows]
    return pl.DataFrame(plain, schema=dict.fromkeys(names, pl.String), orient="row")


def _curves(panels: Sequence[ErrorNumbers]) -> Exhibit:
    """Return the p-value curves of Table 1: for each metric, the pairs of models by decreasing p."""
    parts = []
    for panel in panels:
        for metric in METRICS:
            rows = panel.pair(metric).group_by("system").agg(pl.col("p").mean()).sort("p", descending=True)
            place = pl.int_range(1, pl.len() + 1).alias("place")
            parts.append(
                rows.select(pl.lit(panel.name).alias("panel"), pl.lit(metric).alias("metric"), place, "system", "p")
            )
    frame = pl.concat(parts)

    def draw() -> Any:
        return _panels(
            frame, panels, lambda rows: _line(rows, "place", "p", "pairs of models, by decreasing p", "p-value")
        )

    return Exhibit("table-1-curves", "The p-value curves behind Table 1; means over splits", frame, draw=draw)


def _robustness(panels: Sequence[ErrorNumbers], scenario: str, name: str, caption: str) -> Exhibit:
    parts = [
        panel.rows("robust", setting=scenario)
        .group_by("metric", "x", maintain_order=True)
        .agg(pl.col("value").drop_nans().mean().alias("tau"))
        .select(pl.lit(panel.name).alias("panel"), "metric", pl.col("x").alias("remains"), "tau")
        for panel in panels
    ]
    frame = pl.concat(parts)

    def draw() -> Any:
        return _panels(frame, panels, lambda rows: _line(rows, "remains", "tau", "share of test ratings left", "tau"))

    return Exhibit(name, f"{caption}; means over splits", frame, draw=draw)


def _levels_figure(panels: Sequence[ErrorNumbers]) -> Exhibit:
    frame = pl.concat(
        [
            panel.rows("level")
            .filter(pl.col("system").is_in(panel.models))
            .group_by("metric", "setting", "system", maintain_order=True)
            .agg(pl.col("value").mean())
            .select(pl.lit(panel.name).alias("panel"), "metric", pl.col("setting").alias("level"), "system", "value")
            for panel in panels
        ]
    )

    def draw() -> Any:
        alt = altair()
        charts = []
        for panel in panels:
            for metric in METRICS:
                rows = frame.filter(panel=panel.name, metric=metric)
                levels = rows["level"].unique(maintain_order=True).to_list()
                title = f"{panel.name}: {'1 − SDCSE' if metric == SDCSE else metric}"
                charts.append(
                    alt.Chart(data_of(rows.drop("panel", "metric")), title=title)
                    .mark_line(point=_POINT)
                    .encode(
                        x=alt.X("level:N", sort=levels, title=None, axis=alt.Axis(labelAngle=0)),
                        y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False)),
                        tooltip=tips(system="model", level="level", value=(metric, ".4f")),
                        **series("system", panel.models),
                    )
                    .properties(**_SIZE)
                )
        return themed(alt.concat(*charts, columns=len(METRICS)).resolve_scale(color="independent"))

    caption = "Figure 4: NDCG, MAP and 1 − SDCSE by model and level of relevance; means over splits"
    return Exhibit("figure-04", caption, frame, draw=draw)


def _line(rows: pl.DataFrame, x: str, y: str, x_title: str, y_title: str) -> Any:
    alt = altair()
    return (
        alt.Chart(data_of(rows.drop("panel")), title=rows["panel"][0])
        .mark_line(point=_POINT)
        .encode(
            x=alt.X(f"{x}:Q", title=x_title, scale=alt.Scale(zero=False)),
            y=alt.Y(f"{y}:Q", title=y_title, scale=alt.Scale(zero=False)),
            tooltip=tips(metric="metric", **{x: (x_title, ".3g"), y: (y_title, ".4g")}),
            **series("metric", list(METRICS)),
        )
        .properties(**_SIZE)
    )


def _panels(frame: pl.DataFrame, panels: Sequence[ErrorNumbers], draw: Callable[[pl.DataFrame], Any]) -> Any:
    charts = [draw(frame.filter(panel=panel.name)) for panel in panels]
    return themed(altair().concat(*charts, columns=2))
