"""The figures of a study of decisions: one panel per set of ratings, and a note on each that was not run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from cranfield._figures import altair, data_of, series, themed, tips
from cranfield.studies._options_panel import Panel
from cranfield.studies._options_work import FILLS, KNN, MF, NDCG, PRECISION, START, UNRATED
from cranfield.studies._study import Exhibit

_SIZE = {"width": 300, "height": 200}
_POINT = {"size": 18, "filled": True}
_POINTS = 200
"""Maximum number of points to draw a distribution."""

Frame = Callable[[Panel], pl.DataFrame]
DrawFigure = Callable[[pl.DataFrame], Any]


def distributions(panels: Sequence[Panel], missing: Sequence[str]) -> Exhibit:
    """Return Figure 1: the cumulative share of users and items by number of ratings."""
    caption = "Figure 1: cumulative distribution of ratings per user and per item"
    draw = partial(_lines, x="number of ratings, at most", y="cumulative share", names=("users", "items"), log=True)
    return _exhibit("figure-01", caption, panels, missing, _cumulative, draw)


def by_ratio(
    panels: Sequence[Panel], missing: Sequence[str], number: int, metric: str, lists: str, caption: str
) -> Exhibit:
    """Return Figures 2 to 4: a metric against the share of ratings used for training."""
    draw = partial(_lines, x="split ratio", y="unrated share" if metric == UNRATED else "NDCG@10")
    return _exhibit(
        f"figure-{number:02}",
        f"Figure {number}: {caption}",
        panels,
        missing,
        lambda panel: panel.spread("ratio", lists, metric),
        draw,
    )


def depths(panels: Sequence[Panel], missing: Sequence[str]) -> Exhibit:
    """Return Figure 5: the ranks of the first ten items of a condensed list in the full one."""
    caption = "Figure 5: mean position in the full list of the first ten items of the condensed list"
    draw = partial(_lines, x="place in the condensed list", y="position in the full list")
    return _exhibit(
        "figure-05", caption, panels, missing, lambda panel: panel.spread("depth", "full", "position"), draw
    )


def cutoffs(panels: Sequence[Panel], missing: Sequence[str]) -> Exhibit:
    """Return Figure 6: NDCG against its cut-off."""
    caption = "Figure 6: NDCG@d by cut-off d"
    draw = partial(_lines, x="cut-off d", y="NDCG@d", log=True)
    return _exhibit("figure-06", caption, panels, missing, lambda panel: panel.spread("cutoff", "full", "NDCG@d"), draw)


def gaps(panels: Sequence[Panel], missing: Sequence[str]) -> Exhibit:
    """Return Figure 7: kNN with 1 to 100 neighbours, with items that it cannot score left out or filled in."""
    caption = (
        "Figure 7: NDCG@10 (bars) and Coverage@10 (crosses) of kNN by k and by what fills the gaps, condensed lists"
    )

    def frame(panel: Panel) -> pl.DataFrame:
        parts = []
        for fill in FILLS:
            covered = panel.spread("gaps", fill, "Coverage@10").select("x", coverage="value")
            parts.append(panel.spread("gaps", fill, NDCG).join(covered, on="x").with_columns(fill=pl.lit(fill)))
        return pl.concat(parts).with_columns(k=pl.col("x").cast(pl.Int64)).drop("x")

    return _exhibit("figure-07", caption, panels, missing, frame, _bars)


def overlaps(panels: Sequence[Panel], missing: Sequence[str]) -> Exhibit:
    """Return Figure 8: kNN by the minimum number of shared items, over all users and over covered ones, and MF."""
    caption = "Figure 8: Prec@10 of kNN and MF, and user coverage, by the fewest items that neighbours share"
    ways = {"as printed": "k = 10", "liked items": "liked items"}
    names = [f"{KNN} ({way}), {what}" for way in ways.values() for what in ("full", "reduced", "User-coverage")]

    def frame(panel: Panel) -> pl.DataFrame:
        parts = [
            panel.spread("overlap", setting, what).with_columns(system=pl.lit(f"{KNN} ({way}), {what}"))
            for setting, way in ways.items()
            for what in ("full", "reduced", "User-coverage")
        ]
        places = parts[0].select("x")
        mf = panel.spread("ratio", "full", PRECISION).filter((pl.col("x") == START) & (pl.col("system") == MF))
        return pl.concat([*parts, places.join(mf.drop("x"), how="cross").select(parts[0].columns)])

    draw = partial(_lines, x="fewest shared items", y="Prec@10, coverage", names=[*names, MF])
    return _exhibit("figure-08", caption, panels, missing, frame, draw)


def _exhibit(
    name: str, caption: str, panels: Sequence[Panel], missing: Sequence[str], frame: Frame, draw: DrawFigure
) -> Exhibit:
    frames = {panel.name: frame(panel) for panel in panels}
    whole = pl.concat([rows.select(pl.lit(panel).alias("panel"), pl.all()) for panel, rows in frames.items()])
    not_run = f" (not run: {'; '.join(missing)})" if missing else ""

    def chart() -> Any:
        drawn = [draw(rows).properties(title=panel, **_SIZE) for panel, rows in frames.items()]
        return themed(altair().hconcat(*drawn, *map(_not_run, missing)))

    return Exhibit(name, caption + not_run, whole, draw=chart)


def _not_run(name: str) -> Any:
    alt = altair()
    text = alt.Chart(data_of([{"text": "not run"}])).mark_text(fontSize=14).encode(text="text:N")
    return text.properties(title=name, width=120, height=_SIZE["height"])


def _lines(frame: pl.DataFrame, *, x: str, y: str, names: Sequence[str] = (KNN, MF), log: bool = False) -> Any:
    """Return one line per system, with its lowest and highest values over the splits as a band."""
    alt = altair()
    across = alt.X("x:Q", title=x, scale=alt.Scale(type="log") if log else alt.Scale(zero=False))
    tooltip = tips(system="system", x=(x, ",.4~g"), value=(y, ".4f"))
    lines = series("system", list(names))
    base = alt.Chart(data_of(frame)).encode(x=across)
    up = alt.Y("value:Q", title=y, scale=alt.Scale(zero=False))
    line = base.mark_line(point=_POINT).encode(y=up, tooltip=tooltip, **lines)
    if "lowest" not in frame.columns:
        return line
    band = base.mark_area(opacity=0.15).encode(
        y=alt.Y("lowest:Q", title=y, scale=alt.Scale(zero=False)), y2="highest:Q", color=lines["color"]
    )
    return band + line


def _bars(frame: pl.DataFrame) -> Any:
    alt = altair()
    order = [str(k) for k in sorted(frame["k"].unique())]
    rows = frame.with_columns(k=pl.col("k").cast(pl.String))
    base = alt.Chart(data_of(rows)).encode(
        x=alt.X("fill:N", title=None, sort=list(FILLS)), xOffset=alt.XOffset("k:N", sort=order)
    )
    tooltip = tips(fill="gaps", k="k", value=("NDCG@10", ".4f"), coverage=("Coverage@10", ".4f"))
    bars = base.mark_bar().encode(
        y=alt.Y("value:Q", title="NDCG@10"), tooltip=tooltip, **series("k", order, mark="point")
    )
    return bars + base.mark_point(shape="cross", color="black", size=30).encode(y="coverage:Q")


def _cumulative(panel: Panel) -> pl.DataFrame:
    """Return the share of users and of items with at most x ratings, in at most 200 points each."""
    parts = []
    for name, counts in (("users", panel.data.user_counts), ("items", panel.data.item_counts)):
        ordered = np.sort(counts[counts > 0])
        sizes = np.unique(ordered[np.linspace(0, len(ordered) - 1, min(_POINTS, len(ordered))).astype(np.int64)])
        share = np.searchsorted(ordered, sizes, side="right") / len(ordered)
        parts.append(pl.DataFrame({"x": sizes.astype(np.float64), "system": name, "value": share}))
    return pl.concat(parts)
