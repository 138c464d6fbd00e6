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
from cranfield._figures import ACCENT, Style, altair, data_of, look, save, series, themed, tips
from cranfield.assessments.scenarios import SCENARIOS
from cranfield.assessments.summary import groups
from cranfield.rankings import file_name

if TYPE_CHECKING:
    from cranfield.assessments.assessment import Assessment

_FORMATS = ("svg", "pdf", "png")
# Points are small enough for curves with many of them; they are targets for the mouse pointer.
_POINT = {"size": 18, "filled": True}
_MOST_BANDS = 3


def advice(assessment: Assessment, *, average: str | None = None, style: Style = "screen") -> Any:
    """Return the score of each metric with its interval over draws of the systems, best first."""
    alt = altair()
    rows = _under(assessment, "advice", average).select("metric", "score", "lower", "upper", "first")
    tooltip = tips(metric="metric", score=("score", ".3f"), lower=("from", ".3f"), upper=("to", ".3f"),
                   first=("comes first", ".0%"))  # fmt: skip
    y = alt.Y("metric:N", sort=rows["metric"].to_list(), title=None)
    base = alt.Chart(data_of(rows)).encode(y=y, tooltip=tooltip)
    line = base.mark_rule(color=ACCENT, strokeWidth=2).encode(x=alt.X("lower:Q", title="score"), x2="upper:Q")
    point = base.mark_point(filled=True, size=70, color=ACCENT, opacity=1).encode(x="score:Q")
    return themed((line + point).properties(width=look(style)["width"]), style)


def robustness(
    assessment: Assessment,
    *,
    scenario: str | None = None,
    average: str | None = None,
    family: str | None = None,
    style: Style = "screen",
) -> Any:
    """Return tau with the whole test set against the size of the test set, one line per metric.

    A few lines have bands from the lower to the upper quartile; many bands would hide each other. With ``family``, the
    lines are its cut-offs (Figures 2 and 3 of Valcarce et al. 2018).
    """
    metrics = _members(assessment, family)
    frame = _under(assessment, "robustness", average).filter(pl.col("metric").is_in(metrics))
    names = assessment.scenarios if scenario is None else [_checks.one_of("scenario", scenario, assessment.scenarios)]
    alt, lines = altair(), series("metric", metrics, ordered=family is not None)
    title, scale = "tau with the whole test set", alt.Scale(zero=False)
    tooltip = tips(metric="metric", size=("remains", ".0%"), tau=("tau", ".3f"), q25=("lower quartile", ".3f"),
                   q75=("upper quartile", ".3f"))  # fmt: skip
    charts = []
    for name in names:
        rows = frame.filter(pl.col("scenario") == name).select("metric", "size", "tau", "q25", "q75")
        base = alt.Chart(data_of(rows)).encode(x=_remaining(), color=lines["color"])
        band = base.mark_area(opacity=0.15).encode(y=alt.Y("q25:Q", title=title, scale=scale), y2="q75:Q")
        line = base.mark_line(point=_POINT).encode(y=alt.Y("tau:Q", title=title, scale=scale), tooltip=tooltip, **lines)
        drawn = band + line if len(metrics) <= _MOST_BANDS else line
        charts.append(drawn.properties(title=SCENARIOS[name].title, **_panel(style)))
    return _grid(charts, style)


def values(assessment: Assessment, *, average: str | None = None, style: Style = "screen") -> Any:
    """Return the value of each metric, averaged over the systems, against the size of the test set."""
    by = ("scenario", "size", "metric")
    rows = _under(assessment, "values", average).group_by(by, maintain_order=True).agg(pl.col("value").mean())
    charts = [_lines(rows, name, "value", "average value", assessment.metrics, style) for name in assessment.scenarios]
    return _grid(charts, style)


def flips(assessment: Assessment, *, average: str | None = None, style: Style = "screen") -> Any:
    """Return the shares of reversed pairs and of lost verdicts against the size of the test set.

    One panel per scenario: pairs of systems in the top row, significant differences in the bottom row.
    """
    rows = _under(assessment, "robustness", average)
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
    metrics = _members(assessment, family)
    tested = assessment.curves["average"].unique(maintain_order=True).to_list()
    rows = assessment.curves.filter(
        (pl.col("average") == _average(average, tested)) & (pl.col("place") <= first) & pl.col("metric").is_in(metrics)
    ).select("metric", "place", "p")
    alt = altair()
    x = alt.X("place:Q", title="pairs of systems, by decreasing p-value")
    tooltip = tips(metric="metric", place="pair", p=("p-value", ".4g"))
    chart = _curves(
        rows, x, alt.Y("p:Q", title="p-value"), tooltip, series("metric", metrics, ordered=family is not None)
    )
    width, height = look(style)["panel"]
    return themed(chart.properties(width=1.6 * width, height=1.3 * height), style)


def correlation(
    assessment: Assessment, *, average: str | None = None, family: str | None = None, style: Style = "screen"
) -> Any:
    """Return a heat map of tau between metrics, with agreeing ones adjacent; with ``family``, between its cut-offs."""
    tau = assessment.correlation(_average(average, assessment.averages))
    names = [assessment.metrics[place] for place in groups(tau)[1]] if family is None else assessment.of_family(family)
    places = [assessment.metrics.index(name) for name in names]
    rows = [
        {"metric_a": a, "metric_b": b, "tau": None if np.isnan(tau[i, j]) else float(tau[i, j])}
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
    """Return significant pairs, robustness and agreement of each metric against its cut-off."""
    frame = _under(assessment, "cutoffs", average).filter(pl.col("cutoff").is_not_null())
    if frame.height == 0:
        raise SettingError("no metric was assessed at several cut-offs; ask for cutoffs=[5, 10, 20] or cutoffs=True")
    families = frame["family"].unique(maintain_order=True).to_list()
    alt = altair()
    titles = {"significant": "share of significant pairs", "agreement": "mean tau with the other metrics"}
    titles |= {name: f"mean tau, {SCENARIOS[name].title}" for name in assessment.scenarios if name in frame.columns}
    x, y = alt.X("cutoff:Q", title="cut-off"), alt.Y("value:Q", title=None, scale=alt.Scale(zero=False))
    charts = []
    for criterion, title in titles.items():
        tooltip = tips(family="metric", cutoff="cut-off", value=(title, ".3f"))
        rows = frame.select("family", "cutoff", value=criterion)
        curves = _curves(rows, x, y, tooltip, series("family", families))
        charts.append(curves.properties(title=title, **_panel(style)))
    return _grid(charts, style)


def aggregation(assessment: Assessment, *, style: Style = "screen") -> Any:
    """Return the correlation of each metric with itself under the other averages."""
    if len(assessment.averages) < 2:
        raise SettingError("only one average was assessed; ask for averages=['mean', 'geometric']")
    frame = assessment.frame("aggregation").select("metric", "average", "tau_with_first")
    alt, first = altair(), assessment.averages[0]
    chart = (
        alt.Chart(data_of(frame.filter(pl.col("average") != first)))
        .mark_point(filled=True, size=70)
        .encode(
            x=alt.X("tau_with_first:Q", title=f"tau with the metric's {first}", scale=alt.Scale(zero=False)),
            y=alt.Y("metric:N", sort=list(assessment.metrics), title=None),
            tooltip=tips(metric="metric", average="average", tau_with_first=("tau", ".3f")),
            **series("average", assessment.averages[1:], mark="point"),
        )
        .properties(width=look(style)["width"])
    )
    return themed(chart, style)


FIGURES: Mapping[str, Callable[..., Any]] = {
    drawing.__name__: drawing
    for drawing in (advice, robustness, values, flips, power, correlation, cutoffs, aggregation)
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
    y = alt.Y(f"{value}:Q", title=title, axis=alt.Axis(format="%") if percent else alt.Undefined)
    tooltip = tips(metric="metric", size=("remains", ".0%"), **{value: (title, ".1%" if percent else ".4f")})
    curves = _curves(points, _remaining(), y, tooltip, series("metric", metrics))
    return curves.properties(title=SCENARIOS[scenario].title, **_panel(style))


def _curves(rows: pl.DataFrame, x: Any, y: Any, tooltip: Any, lines: Mapping[str, Any]) -> Any:
    return altair().Chart(data_of(rows)).mark_line(point=_POINT).encode(x=x, y=y, tooltip=tooltip, **lines)


def _grid(charts: Sequence[Any], style: Style, columns: int | None = None) -> Any:
    columns = columns or (3 if style == "screen" else 2)  # that fit on a web page, and into the columns of a paper
    return themed(charts[0] if len(charts) == 1 else altair().concat(*charts, columns=columns), style)


def _panel(style: Style) -> dict[str, int]:
    return dict(zip(("width", "height"), look(style)["panel"]))


def _remaining() -> Any:
    alt = altair()
    scale, axis = alt.Scale(reverse=True, zero=False), alt.Axis(format="%")
    return alt.X("size:Q", title="what remains of the test set", scale=scale, axis=axis)


def _under(assessment: Assessment, study: str, average: str | None) -> pl.DataFrame:
    """Return a study under one average."""
    return assessment.frame(study).filter(pl.col("average") == _average(average, assessment.averages))


def _average(name: str | None, known: Sequence[str]) -> str:
    return known[0] if name is None and known else _checks.one_of("average", name, known)


def _members(assessment: Assessment, family: str | None) -> Sequence[str]:
    return assessment.metrics if family is None else assessment.of_family(family)
