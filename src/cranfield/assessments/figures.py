"""The figures of an assessment, as in the papers: lines with bands, p-value curves, heat maps.

Each figure is an Altair chart of a frame of `Assessment.frame`, in the style of a web page (``screen``) or a paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield._figures import Style, altair, data_of, look, save, series, themed, tips
from cranfield.assessments.scenarios import SCENARIOS
from cranfield.assessments.summary import groups
from cranfield.rankings import file_name

if TYPE_CHECKING:
    from cranfield.assessments.assessment import Assessment

_FORMATS = ("svg", "pdf", "png")
# Points are small enough for curves with many of them; they are targets for the mouse pointer.
_POINT = {"size": 18, "filled": True}


def robustness(
    assessment: Assessment,
    *,
    scenario: str | None = None,
    average: str | None = None,
    family: str | None = None,
    style: Style = "screen",
) -> Any:
    """Return tau with the whole test set against the size of the test set, one line per metric with a quartile band.

    With ``family``, the lines are its cut-offs (Figures 2 and 3 of Valcarce et al. 2018).
    """
    metrics = assessment.metrics if family is None else assessment.of_family(family)
    frame = assessment.frame("robustness").filter(
        (pl.col("average") == _one(average, assessment.averages, "average")) & pl.col("metric").is_in(metrics)
    )
    names = assessment.scenarios if scenario is None else [_checks.one_of("scenario", scenario, assessment.scenarios)]
    alt = altair()
    charts = []
    for name in names:
        rows = frame.filter(pl.col("scenario") == name).select("metric", "size", "tau", "q25", "q75")
        lines = series("metric", metrics)
        base = alt.Chart(data_of(rows)).encode(x=_remaining(), color=lines["color"])
        title, scale = "tau with the whole test set", alt.Scale(zero=False)
        band = base.mark_area(opacity=0.15).encode(y=alt.Y("q25:Q", title=title, scale=scale), y2="q75:Q")
        tooltip = tips(metric="metric", size=("remains", ".0%"), tau=("tau", ".3f"), q25=("lower quartile", ".3f"),
                    q75=("upper quartile", ".3f"))  # fmt: skip
        line = base.mark_line(point=_POINT).encode(y=alt.Y("tau:Q", title=title, scale=scale), tooltip=tooltip, **lines)
        charts.append((band + line).properties(title=SCENARIOS[name].title, **_panel(style)))
    return _grid(charts, style)


def values(assessment: Assessment, *, average: str | None = None, style: Style = "screen") -> Any:
    """Return the value of each metric, averaged over the systems, against the size of the test set."""
    rows = (
        assessment.frame("values")
        .filter(pl.col("average") == _one(average, assessment.averages, "average"))
        .group_by("scenario", "size", "metric", maintain_order=True)
        .agg(pl.col("value").mean())
    )
    charts = [_lines(rows, name, "value", "average value", assessment.metrics, style) for name in assessment.scenarios]
    return _grid(charts, style)


def flips(assessment: Assessment, *, average: str | None = None, style: Style = "screen") -> Any:
    """Return the shares of reversed pairs and of lost verdicts against the size of the test set.

    One panel per scenario: pairs of systems in the top row, significant differences in the bottom row.
    """
    rows = assessment.frame("robustness").filter(pl.col("average") == _one(average, assessment.averages, "average"))
    titles = {"flipped": "pairs in another order", "verdicts_lost": "significant verdicts lost"}
    charts = [
        _lines(rows, name, share, title, assessment.metrics, style, percent=True)
        for share, title in titles.items()
        for name in assessment.scenarios
    ]
    return _grid(charts, style, columns=len(assessment.scenarios) if style == "screen" else 2)


def power(
    assessment: Assessment,
    *,
    average: str | None = None,
    family: str | None = None,
    first: int = 20,
    style: Style = "screen",
) -> Any:
    """Return the p-value curves: the ``first`` largest p-values of each metric, or of the cut-offs of a ``family``."""
    first = _checks.whole("first", first)
    metrics = assessment.metrics if family is None else assessment.of_family(family)
    tested = assessment.curves["average"].unique(maintain_order=True).to_list()
    rows = assessment.curves.filter(
        (pl.col("average") == _one(average, tested, "average"))
        & (pl.col("place") <= first)
        & pl.col("metric").is_in(metrics)
    ).select("metric", "place", "p")
    alt = altair()
    width, height = look(style)["panel"]
    chart = (
        alt.Chart(data_of(rows))
        .mark_line(point=_POINT)
        .encode(
            x=alt.X("place:Q", title="pairs of systems, by decreasing p-value"),
            y=alt.Y("p:Q", title="p-value"),
            tooltip=tips(metric="metric", place="pair", p=("p-value", ".4g")),
            **series("metric", metrics),
        )
        .properties(width=1.6 * width, height=1.3 * height)
    )
    return themed(chart, style)


def correlation(
    assessment: Assessment, *, average: str | None = None, family: str | None = None, style: Style = "screen"
) -> Any:
    """Return a heat map of tau between metrics, with agreeing ones adjacent; with ``family``, between its cut-offs."""
    average = _one(average, assessment.averages, "average")
    tau = assessment.correlation(average)
    names = [assessment.metrics[place] for place in groups(tau)[1]] if family is None else assessment.of_family(family)
    places = [assessment.metrics.index(name) for name in names]
    rows = [
        {"metric_a": a, "metric_b": b, "tau": _plain(tau[i, j])}
        for a, i in zip(names, places)
        for b, j in zip(names, places)
    ]
    alt = altair()
    base = alt.Chart(data_of(rows)).encode(
        x=alt.X("metric_a:N", sort=names, title=None),
        y=alt.Y("metric_b:N", sort=names, title=None),
        tooltip=tips(metric_a="metric", metric_b="and", tau=("tau", ".3f")),
    )
    lowest = float(np.nanmin(tau)) if np.isfinite(tau).any() else 0.0
    colour = alt.Color("tau:Q", scale=alt.Scale(scheme="yellowgreenblue", domain=[min(lowest, 0.9), 1.0]))
    heat = base.mark_rect().encode(color=colour)
    # A cell is wide enough for its number: three digits and a point.
    side = max(look(style)["panel"][0], int(2.7 * look(style)["size"]) * len(names))
    if len(names) > 20:
        return themed(heat.properties(width=side, height=side), style)
    dark = alt.condition(f"datum.tau > {(1 + min(lowest, 0.9)) / 2}", alt.value("white"), alt.value("black"))
    text = base.mark_text(fontSize=look(style)["size"] - 2).encode(text=alt.Text("tau:Q", format=".2f"), color=dark)
    return themed((heat + text).properties(width=side, height=side), style)


def cutoffs(assessment: Assessment, *, average: str | None = None, style: Style = "screen") -> Any:
    """Return power, robustness and agreement of each metric against its cut-off."""
    frame = assessment.frame("cutoffs").filter(
        (pl.col("average") == _one(average, assessment.averages, "average")) & pl.col("cutoff").is_not_null()
    )
    if frame.height == 0:
        raise SettingError("no metric was assessed at several cut-offs; ask for cutoffs=[5, 10, 20] or cutoffs=True")
    families = frame["family"].unique(maintain_order=True).to_list()
    alt = altair()
    titles = {"power": "share of pairs told apart", "agreement": "mean tau with the other metrics"}
    titles |= {name: f"mean tau, {SCENARIOS[name].title}" for name in assessment.scenarios if name in frame.columns}
    charts = [
        alt.Chart(data_of(frame.select("family", "cutoff", value=criterion)))
        .mark_line(point=_POINT)
        .encode(
            x=alt.X("cutoff:Q", title="cut-off"),
            y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False)),
            tooltip=tips(family="metric", cutoff="cut-off", value=(title, ".3f")),
            **series("family", families),
        )
        .properties(title=title, **_panel(style))
        for criterion, title in titles.items()
    ]
    return _grid(charts, style)


def aggregation(assessment: Assessment, *, style: Style = "screen") -> Any:
    """Return the correlation of each metric with itself under the other averages."""
    if len(assessment.averages) < 2:
        raise SettingError("only one average was assessed; ask for averages=['mean', 'geometric']")
    frame = assessment.frame("aggregation").select("metric", "average", "tau_with_first")
    alt = altair()
    chart = (
        alt.Chart(data_of(frame.filter(pl.col("average") != assessment.averages[0])))
        .mark_point(filled=True, size=70)
        .encode(
            x=alt.X(
                "tau_with_first:Q", title=f"tau with the metric's {assessment.averages[0]}", scale=alt.Scale(zero=False)
            ),
            y=alt.Y("metric:N", sort=list(assessment.metrics), title=None),
            tooltip=tips(metric="metric", average="average", tau_with_first=("tau", ".3f")),
            **series("average", assessment.averages[1:], mark="point"),
        )
        .properties(width=look(style)["width"])
    )
    return themed(chart, style)


FIGURES: Mapping[str, Callable[..., Any]] = {
    "robustness": robustness,
    "values": values,
    "flips": flips,
    "power": power,
    "correlation": correlation,
    "cutoffs": cutoffs,
    "aggregation": aggregation,
}
"""The figures, by the study that they show."""


def save_all(assessment: Assessment, folder: Path, *, style: Style = "paper") -> list[Path]:
    """Write every figure that these studies allow as SVG, PDF and PNG in a style; return the files."""
    wanted = ["robustness", "values", "flips", "correlation"] if assessment.scenarios else ["correlation"]
    wanted += ["power"] if assessment.curves.height else []
    wanted += ["cutoffs"] if assessment.frame("cutoffs").height else []
    wanted += ["aggregation"] if len(assessment.averages) > 1 else []
    charts = {name: FIGURES[name](assessment, style=style) for name in wanted}
    families = assessment.frame("cutoffs")["family"].unique(maintain_order=True).to_list()
    for family, stem in file_name(families).items():
        for name in [figure for figure in wanted if figure in ("robustness", "power", "correlation")]:
            charts[f"{name}-{stem}"] = FIGURES[name](assessment, family=family, style=style)
    files = {name: [folder / f"{name}.{ending}" for ending in _FORMATS] for name in charts}
    for name, chart in charts.items():
        save(chart, *files[name])
    return [path for paths in files.values() for path in paths]


def _lines(
    rows: pl.DataFrame,
    scenario: str,
    value: str,
    title: str,
    metrics: Sequence[str],
    style: Style,
    *,
    percent: bool = False,
) -> Any:
    """Return a panel of one scenario: a value against the size of the test set, one line per metric."""
    alt = altair()
    points = rows.filter(pl.col("scenario") == scenario).select("metric", "size", value)
    return (
        alt.Chart(data_of(points))
        .mark_line(point=_POINT)
        .encode(
            x=_remaining(),
            y=alt.Y(f"{value}:Q", title=title, axis=alt.Axis(format="%") if percent else alt.Undefined),
            tooltip=tips(metric="metric", size=("remains", ".0%"), **{value: (title, ".1%" if percent else ".4f")}),
            **series("metric", metrics),
        )
        .properties(title=SCENARIOS[scenario].title, **_panel(style))
    )


def _grid(charts: Sequence[Any], style: Style, columns: int | None = None) -> Any:
    # A web page fits three panels per row, the two columns of a paper fit two.
    columns = columns or (3 if style == "screen" else 2)
    return themed(charts[0] if len(charts) == 1 else altair().concat(*charts, columns=columns), style)


def _panel(style: Style) -> dict[str, int]:
    width, height = look(style)["panel"]
    return {"width": width, "height": height}


def _remaining() -> Any:
    alt = altair()
    return alt.X(
        "size:Q",
        title="what remains of the test set",
        scale=alt.Scale(reverse=True, zero=False),
        axis=alt.Axis(format="%"),
    )


def _one(name: str | None, known: Sequence[str], setting: str) -> str:
    return known[0] if name is None and known else _checks.one_of(setting, name, known)


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
