"""The figures of an assessment, as in the papers: lines with bands, p-value curves, heat maps.

Each is an Altair chart of a frame of `Assessment.frame`. Altair is imported when one is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._errors import MissingExtraError, SettingError
from cranfield._files import whole_file
from cranfield.assess.correlation import groups
from cranfield.assess.scenarios import SCENARIOS
from cranfield.rank import file_name

if TYPE_CHECKING:
    from cranfield.assess.assessment import Assessment

_WIDTH, _HEIGHT = 260, 200
_FORMATS = ("svg", "pdf", "png")


def robustness(
    found: Assessment, *, scenario: str | None = None, average: str | None = None, family: str | None = None
) -> Any:
    """Return tau with the whole test set against what remains of it, a line a metric, with its quartiles as a band.

    Of one ``family``, its cut-offs (Figures 2 and 3 of Valcarce et al. 2018).
    """
    metrics = found.metrics if family is None else found.of_family(family)
    frame = found.frame("robustness").filter(
        (pl.col("average") == _one(average, found.averages, "average")) & pl.col("metric").is_in(metrics)
    )
    names = found.scenarios if scenario is None else [_checks.one_of("scenario", scenario, found.scenarios)]
    alt = _altair()
    charts = []
    for name in names:
        rows = frame.filter(pl.col("scenario") == name).select("metric", "size", "tau", "q25", "q75")
        base = alt.Chart(_values(rows)).encode(x=_remaining(), color=_colour("metric", metrics))
        title, scale = "tau with the whole test set", alt.Scale(zero=False)
        band = base.mark_area(opacity=0.15).encode(y=alt.Y("q25:Q", title=title, scale=scale), y2="q75:Q")
        lines = base.mark_line().encode(y=alt.Y("tau:Q", title=title, scale=scale))
        charts.append((band + lines).properties(title=SCENARIOS[name].title, width=_WIDTH, height=_HEIGHT))
    return _grid(charts)


def values(found: Assessment, *, average: str | None = None) -> Any:
    """Return the value of each metric, averaged over the systems, against what remains of the test set."""
    rows = (
        found.frame("values")
        .filter(pl.col("average") == _one(average, found.averages, "average"))
        .group_by("scenario", "size", "metric", maintain_order=True)
        .agg(pl.col("value").mean())
    )
    alt = _altair()
    charts = [
        alt.Chart(_values(rows.filter(pl.col("scenario") == name)))
        .mark_line()
        .encode(x=_remaining(), y=alt.Y("value:Q", title="average value"), color=_colour("metric", found.metrics))
        .properties(title=SCENARIOS[name].title, width=_WIDTH, height=_HEIGHT)
        for name in found.scenarios
    ]
    return _grid(charts)


def power(found: Assessment, *, average: str | None = None, family: str | None = None, first: int = 20) -> Any:
    """Return the p-value curves: the ``first`` largest p-values of each metric, or of the cut-offs of a ``family``."""
    metrics = found.metrics if family is None else found.of_family(family)
    tested = found.curves["average"].unique(maintain_order=True).to_list()
    rows = found.curves.filter(
        (pl.col("average") == _one(average, tested, "average"))
        & (pl.col("place") <= first)
        & pl.col("metric").is_in(metrics)
    ).select("metric", "place", "p")
    alt = _altair()
    return (
        alt.Chart(_values(rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("place:Q", title="pairs of systems, by decreasing p-value"),
            y=alt.Y("p:Q", title="p-value"),
            color=_colour("metric", metrics),
        )
        .properties(width=2 * _WIDTH, height=1.3 * _HEIGHT)
    )


def correlation(found: Assessment, *, average: str | None = None, family: str | None = None) -> Any:
    """Return a heat map of tau between metrics, those that agree side by side; of one ``family``, its cut-offs."""
    average = _one(average, found.averages, "average")
    tau = found.correlation(average)
    names = [found.metrics[place] for place in groups(tau)[1]] if family is None else found.of_family(family)
    places = [found.metrics.index(name) for name in names]
    rows = [
        {"metric_a": a, "metric_b": b, "tau": _plain(tau[i, j])}
        for a, i in zip(names, places)
        for b, j in zip(names, places)
    ]
    alt = _altair()
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("metric_a:N", sort=names, title=None), y=alt.Y("metric_b:N", sort=names, title=None)
    )
    lowest = float(np.nanmin(tau)) if np.isfinite(tau).any() else 0.0
    colour = alt.Color("tau:Q", scale=alt.Scale(scheme="yellowgreenblue", domain=[min(lowest, 0.9), 1.0]))
    heat = base.mark_rect().encode(color=colour)
    side = max(_WIDTH, 34 * len(names))
    if len(names) > 20:
        return heat.properties(width=side, height=side)
    dark = alt.condition(f"datum.tau > {(1 + min(lowest, 0.9)) / 2}", alt.value("white"), alt.value("black"))
    text = base.mark_text(fontSize=10).encode(text=alt.Text("tau:Q", format=".2f"), color=dark)
    return (heat + text).properties(width=side, height=side)


def cutoffs(found: Assessment, *, average: str | None = None) -> Any:
    """Return power, robustness and agreement of each metric against its cut-off."""
    frame = found.frame("cutoffs").filter(
        (pl.col("average") == _one(average, found.averages, "average")) & pl.col("cutoff").is_not_null()
    )
    if frame.height == 0:
        raise SettingError("no metric was assessed at several cut-offs; ask for cutoffs=[5, 10, 20] or cutoffs=True")
    families = frame["family"].unique(maintain_order=True).to_list()
    alt = _altair()
    titles = {"power": "share of pairs told apart", "agreement": "mean tau with the other metrics"}
    titles |= {name: f"mean tau, {SCENARIOS[name].title}" for name in found.scenarios if name in frame.columns}
    charts = [
        alt.Chart(_values(frame.select("family", "cutoff", value=criterion)))
        .mark_line(point=True)
        .encode(
            x=alt.X("cutoff:Q", title="cut-off"),
            y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False)),
            color=_colour("family", families),
        )
        .properties(title=title, width=_WIDTH, height=_HEIGHT)
        for criterion, title in titles.items()
    ]
    return _grid(charts)


def aggregation(found: Assessment) -> Any:
    """Return the correlation of each metric with itself under the other averages."""
    if len(found.averages) < 2:
        raise SettingError("only one average was assessed; ask for averages=['mean', 'geometric']")
    frame = found.frame("aggregation").select("metric", "average", "tau_with_first")
    alt = _altair()
    return (
        alt.Chart(_values(frame.filter(pl.col("average") != found.averages[0])))
        .mark_point(filled=True, size=70)
        .encode(
            x=alt.X(
                "tau_with_first:Q", title=f"tau with the metric's {found.averages[0]}", scale=alt.Scale(zero=False)
            ),
            y=alt.Y("metric:N", sort=list(found.metrics), title=None),
            color=_colour("average", found.averages[1:]),
        )
        .properties(width=2 * _WIDTH)
    )


FIGURES: Mapping[str, Callable[..., Any]] = {
    "robustness": robustness,
    "values": values,
    "power": power,
    "correlation": correlation,
    "cutoffs": cutoffs,
    "aggregation": aggregation,
}
"""The figures by the study that they show."""


def save_all(found: Assessment, folder: Path) -> list[Path]:
    """Write every figure that these studies admit as SVG, PDF and PNG; return the files."""
    wanted = ["robustness", "values", "correlation"] if found.scenarios else ["correlation"]
    wanted += ["power"] if found.curves.height else []
    wanted += ["cutoffs"] if found.frame("cutoffs").height else []
    wanted += ["aggregation"] if len(found.averages) > 1 else []
    charts = {name: FIGURES[name](found) for name in wanted}
    families = found.frame("cutoffs")["family"].unique(maintain_order=True).to_list()
    for family, stem in file_name(families).items():
        for name in [one for one in wanted if one in ("robustness", "power", "correlation")]:
            charts[f"{name}-{stem}"] = FIGURES[name](found, family=family)
    written = [folder / f"{name}.{ending}" for name in charts for ending in _FORMATS]
    for path in written:
        save(charts[path.stem], path)
    return written


def save(chart: Any, path: str | Path) -> None:
    """Write a figure to a file: SVG, PDF or PNG, by the ending."""
    path = Path(path)
    ending = _checks.one_of("format", path.suffix.lower().lstrip("."), _FORMATS)
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("writing figures", library="vl-convert-python", extra="report") from error
    options = {"scale": 2} if ending == "png" else {}
    made = getattr(vl_convert, f"vegalite_to_{ending}")(chart.to_dict(), **options)
    with whole_file(path) as temporary:
        temporary.write_bytes(made.encode() if isinstance(made, str) else made)


def _grid(charts: Sequence[Any]) -> Any:
    return charts[0] if len(charts) == 1 else _altair().concat(*charts, columns=2)


def _remaining() -> Any:
    alt = _altair()
    return alt.X(
        "size:Q",
        title="what remains of the test set",
        scale=alt.Scale(reverse=True, zero=False),
        axis=alt.Axis(format="%"),
    )


def _colour(column: str, names: Sequence[str]) -> Any:
    alt = _altair()
    scheme = "tableau10" if len(names) <= 10 else "tableau20"
    scale, legend = alt.Scale(domain=list(names), scheme=scheme), alt.Legend(symbolOpacity=1.0, symbolType="square")
    return alt.Color(f"{column}:N", title=None, scale=scale, legend=legend)


def _one(name: str | None, known: Sequence[str], what: str) -> str:
    return known[0] if name is None and known else _checks.one_of(what, name, known)


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _values(frame: pl.DataFrame) -> Any:
    return _altair().Data(values=frame.with_columns(pl.selectors.float().fill_nan(None)).to_dicts())


def _altair() -> Any:
    try:
        import altair
    except ImportError as error:
        raise MissingExtraError("a figure", library="altair", extra="report") from error
    return altair
