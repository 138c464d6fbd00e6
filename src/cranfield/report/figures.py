"""Figures: one definition each (Altair), for the page and for SVG, PDF and PNG; no browser is needed.

Colours are told apart by people with any colour vision (after Okabe and Ito 2008), and in grey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._errors import MissingExtraError, SettingError
from cranfield._files import whole_file
from cranfield.compare import Comparison
from cranfield.measure import Scores
from cranfield.report.orders import best_first

Style = Literal["screen", "paper"]

INK, MUTED, RULE, ACCENT, WARN = "#1c2430", "#5c6675", "#dfe3e8", "#0b62b0", "#b1480a"
"""The colours of all figures; the page's style sheet has others for each of them in the dark."""

MOST_SYSTEMS = 40
"""Figures of more systems show the best ones."""

# A column of a paper is 3.3 inches wide, and a drawing has 96 units an inch. The fonts are those whose widths are known
# where figures are drawn and common where they are shown.
_STYLES: Mapping[str, Mapping[str, Any]] = {
    "screen": {"width": 560, "font": "Arial, Liberation Sans, sans-serif", "size": 13, "step": 26},
    "paper": {"width": 230, "font": "Times New Roman, Liberation Serif, serif", "size": 10, "step": 15},
}


def averages(
    scores: Scores, metric: str, *, averaging: Mapping[str, Any] = MappingProxyType({}), style: Style = "screen"
) -> Any:
    """Return the average of every system with its interval, best first; ``averaging`` are options of `Scores.frame`."""
    alt = _altair()
    frame = scores.only([metric]).frame(**averaging)
    lower = scores.lower_is_better[scores.metric(metric)]
    rows = frame.select("system", "mean", "lower", "upper").drop_nulls("mean").drop_nans("mean")
    rows = rows.sort("mean", descending=not lower, maintain_order=True).head(MOST_SYSTEMS)
    y = alt.Y("system:N", sort=rows["system"].to_list(), title=None)
    base = alt.Chart(_values(rows))
    interval = base.mark_rule(color=ACCENT, strokeWidth=2).encode(
        y=y, x=alt.X("lower:Q", title=metric, scale=alt.Scale(zero=False)), x2="upper:Q"
    )
    return _styled(interval + base.mark_point(color=ACCENT, filled=True, size=70).encode(y=y, x="mean:Q"), style)


def distributions(scores: Scores, metric: str, *, style: Style = "screen") -> Any:
    """Return how the lists' values are spread, by system: 10 to 90 %, 25 to 75 %, median and mean; best first."""
    alt = _altair()
    m = scores.metric(metric)
    rows = []
    for s, system in enumerate(scores.systems):
        values = scores.values[s, m][np.isfinite(scores.values[s, m])]
        if len(values):
            q10, q25, q50, q75, q90 = np.quantile(values, [0.1, 0.25, 0.5, 0.75, 0.9]).tolist()
            rows.append({"system": system, "q10": q10, "q25": q25, "median": q50, "q75": q75, "q90": q90,
                         "mean": float(values.mean())})  # fmt: skip
    rows = sorted(rows, key=lambda row: row["mean"], reverse=not scores.lower_is_better[m])[:MOST_SYSTEMS]
    y = alt.Y("system:N", sort=[row["system"] for row in rows], title=None)
    base = alt.Chart(alt.Data(values=rows))
    wide = base.mark_rule(color=MUTED, strokeWidth=1.5).encode(y=y, x=alt.X("q10:Q", title=metric), x2="q90:Q")
    narrow = base.mark_bar(color=MUTED, opacity=0.45, height={"band": 0.5}).encode(y=y, x="q25:Q", x2="q75:Q")
    middle = base.mark_tick(color=INK, thickness=2.5, size=16).encode(y=y, x="median:Q")
    mean = base.mark_point(color=ACCENT, filled=True, size=60).encode(y=y, x="mean:Q")
    return _styled(wide + narrow + middle + mean, style)


def wins(comparison: Comparison, metric: str, *, style: Style = "screen") -> Any:
    """Return, for the best system against each other, for which share of the users it is better, equal and worse."""
    alt = _altair()
    m = comparison.metrics.index(metric)
    places = best_first(comparison.averages[:, m], comparison.lower_is_better[m])
    order = [comparison.systems[s] for s in places]
    best, rows = comparison.baseline or order[0], []
    for row in comparison.of_metric(metric).iter_rows(named=True):
        if best not in (row["system_a"], row["system_b"]) or not row["n"]:
            continue
        first = row["system_a"] == best
        counts = (row["wins"], row["ties"], row["losses"])
        for name, count in zip(("better", "equal", "worse"), counts if first else counts[::-1]):
            other = row["system_b"] if first else row["system_a"]
            rows.append({"system": other, "users": name, "share": count / row["n"]})
    shown = [system for system in order if system != best][:MOST_SYSTEMS]
    rows = [row for row in rows if row["system"] in shown]
    chart = (
        alt.Chart(alt.Data(values=rows))
        .transform_calculate(part="indexof(['better', 'equal', 'worse'], datum.users)")
        .mark_bar(height={"band": 0.7})
        .encode(
            y=alt.Y("system:N", sort=shown, title=None),
            x=alt.X("share:Q", title=f"share of users, by {metric}", axis=alt.Axis(format="%"), stack="zero"),
            color=alt.Color(
                "users:N",
                title=f"{best} is",
                scale=alt.Scale(domain=["better", "equal", "worse"], range=[ACCENT, RULE, WARN]),
                legend=alt.Legend(orient="top", titleOrient="left", titleLimit=300),
            ),
            order="part:Q",
        )
    )
    return _styled(chart, style)


def orders(
    columns: Mapping[str, Mapping[str, float]], highlight: Sequence[str] = (), *, style: Style = "screen"
) -> Any:
    """Return how the order of systems changes from column to column: a line a system, best on top.

    ``columns`` hold values by system, higher is better; the systems in ``highlight`` are coloured.
    """
    alt = _altair()
    look = _STYLES[_checks.one_of("style", style, tuple(_STYLES))]
    names, rows = list(columns), []
    for name, values in columns.items():
        ranked = sorted(values, key=lambda system: -values[system])
        rows += [{"column": name, "system": system, "place": place} for place, system in enumerate(ranked, start=1)]
    x = alt.X(
        "column:N",
        sort=names,
        title=None,
        scale=alt.Scale(padding=0.5),
        axis=alt.Axis(labelAngle=0, orient="top", domain=False, ticks=False, labelColor=INK, grid=False),
    )
    y = alt.Y("place:Q", scale=alt.Scale(reverse=True, nice=False), axis=None)
    condition = alt.condition(
        alt.FieldOneOfPredicate(field="system", oneOf=list(highlight)),
        alt.Color("system:N", scale=alt.Scale(domain=list(highlight), range=[ACCENT, WARN, INK]), legend=None),
        alt.value(MUTED),
    )
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, y=y, color=condition, detail="system:N")
    lines = base.mark_line(strokeWidth=2.5, opacity=0.75)
    points = base.mark_point(filled=True, size=90, opacity=1)
    ends = [
        base.transform_filter(alt.FieldEqualPredicate(field="column", equal=name))
        .mark_text(align=align, dx=dx, fontSize=look["size"], limit=0.24 * look["width"])
        .encode(text="system:N")
        for name, align, dx in ((names[0], "right", -10), (names[-1], "left", 10))
    ]
    chart = alt.layer(lines, points, *ends)
    sides = {"width": 1.25 * look["width"], "height": 1.25 * look["step"] * max(map(len, columns.values()))}
    return _styled(chart, style).properties(**sides)


def against_truth(
    measured: Mapping[str, float], truth: Mapping[str, float], name: str, *, style: Style = "screen"
) -> Any:
    """Return what was measured against the truth, a point a system."""
    alt = _altair()
    look = _STYLES[_checks.one_of("style", style, tuple(_STYLES))]
    # Names stand left and right of their points in turn, so that neighbours do not cover each other; not on the axis.
    low, high = min(measured.values()), max(measured.values())
    rows = [
        {"system": one, "measured": measured[one], "truth": truth[one],
         "left": k % 2 == 0 and measured[one] > low + 0.25 * (high - low)}
        for k, one in enumerate(sorted(measured, key=lambda system: truth[system]))
    ]  # fmt: skip
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("measured:Q", title=name, scale=alt.Scale(zero=False)),
        y=alt.Y("truth:Q", title="true value", scale=alt.Scale(zero=False), axis=alt.Axis(grid=True)),
    )
    points = base.mark_point(filled=True, color=ACCENT, size=80, opacity=1)
    names = [
        base.transform_filter(f"datum.left == {str(left).lower()}")
        .mark_text(align=align, dx=dx, color=INK, fontSize=look["size"] - 1)
        .encode(text="system:N")
        for left, align, dx in ((True, "right", -9), (False, "left", 9))
    ]
    return _styled(alt.layer(points, *names), style).properties(width=0.72 * look["width"], height=0.5 * look["width"])


def svg(chart: Any) -> str:
    """Return a figure as SVG."""
    return str(_vl_convert().vegalite_to_svg(_definition(chart)))


def save(chart: Any, path: str | Path) -> None:
    """Write a figure to a file: SVG, PDF, PNG, or its Vega-Lite definition as JSON, by the ending."""
    path, vega = Path(path), _definition(chart)
    made: bytes
    match path.suffix.lower():
        case ".svg":
            made = _vl_convert().vegalite_to_svg(vega).encode()
        case ".pdf":
            made = _vl_convert().vegalite_to_pdf(vega)
        case ".png":
            made = _vl_convert().vegalite_to_png(vega, scale=3)
        case ".json":
            made = chart.to_json().encode()
        case _:
            raise SettingError(f"{path} is no figure that can be written; name it .svg, .pdf, .png or .json")
    with whole_file(path) as temporary:
        temporary.write_bytes(made)


def _definition(chart: Any) -> Any:
    # The charts are ours and tested: validating each again would take longer than drawing it.
    return chart.to_dict(validate=False)


def check_libraries() -> None:
    """Raise an error if a library that draws is missing, before hours of work are lost on it."""
    _altair()
    _vl_convert()


def themed(chart: Any, style: Style = "screen") -> Any:
    """Return any chart in the fonts and colours of a style."""
    look = _STYLES[_checks.one_of("style", style, tuple(_STYLES))]
    small = look["size"] - 1
    return (
        chart.configure(font=look["font"], background="transparent",
                        padding={"left": 12, "right": 8, "top": 4, "bottom": 4})
        .configure_view(stroke=None, step=look["step"])
        .configure_axis(
            labelColor=MUTED, titleColor=INK, domainColor=MUTED, tickColor=MUTED, gridColor=RULE, labelFontSize=small,
            titleFontSize=look["size"], titleFontWeight="normal", labelLimit=220,
        )
        .configure_legend(labelColor=INK, titleColor=MUTED, labelFontSize=small, titleFontSize=small,
                          titleFontWeight="normal", symbolType="square")
        .configure_title(color=INK, fontSize=look["size"], fontWeight="normal", anchor="start")
    )  # fmt: skip


def _styled(chart: Any, style: Style) -> Any:
    """Return a chart of systems in the width, fonts and colours of a style; names of systems stand at its left."""
    look = _STYLES[_checks.one_of("style", style, tuple(_STYLES))]
    names = {"grid": False, "domain": False, "ticks": False, "labelColor": INK, "labelFontSize": look["size"]}
    return themed(chart.properties(width=look["width"]), style).configure_axisY(**names)


def _values(frame: pl.DataFrame) -> Any:
    return _altair().Data(values=frame.with_columns(pl.selectors.float().fill_nan(None)).to_dicts())


def _altair() -> Any:
    try:
        import altair
    except ImportError as error:
        raise MissingExtraError("the report", library="altair", extra="report") from error
    return altair


def _vl_convert() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("the report", library="vl-convert-python", extra="report") from error
    return vl_convert
