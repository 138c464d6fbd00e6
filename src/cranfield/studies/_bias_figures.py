"""The figures of Bellogín et al. (2017): a panel for each set of ratings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from cranfield._figures import altair, data_of, series, themed, tips
from cranfield.data import by_popularity
from cranfield.splits import uniform_test
from cranfield.studies._bias_numbers import BiasNumbers
from cranfield.studies._bias_work import (
    BOUNDED,
    BPREF,
    EPSILON,
    FIGURE_2,
    FIGURE_8,
    GROUPS,
    INFAP,
    NDCG,
    PRECISION,
    SIGMA,
    STRATIFIED,
    SYSTEMS,
    cumulated,
)
from cranfield.studies._study import Exhibit

_SIZE = {"width": 220, "height": 160}
_BAR = {"width": 110, "height": 130}
_SEGMENTS = 100
_LABELS = {NDCG: "nDCG@10", STRATIFIED: "stratified recall@10"}

DrawFigure = Callable[[pl.DataFrame], Any]


def precision_by_design(panels: Sequence[BiasNumbers], missing: str) -> Exhibit:
    """Return Figure 2: P@10 in AR and 1R."""
    return _designs("figure-02", f"Figure 2: P@10 in AR and 1R{missing}", panels, FIGURE_2, [PRECISION])


def neutral_designs(panels: Sequence[BiasNumbers], missing: str) -> Exhibit:
    """Return Figure 8: every system and protocol side by side."""
    caption = f"Figure 8: P@10 and nDCG@10 in 1R, AR and the designs that neutralise popularity{missing}"
    return _designs("figure-08", caption, panels, FIGURE_8, [PRECISION, NDCG])


def incomplete_metrics(panels: Sequence[BiasNumbers], missing: str) -> Exhibit:
    """Return Figure 9: metrics for incomplete judgments, without bpref in 1R, where it is 1 for all systems."""
    caption = f"Figure 9: bpref, infAP and stratified recall (γ = 1), also in the designs of Figure 8{missing}"
    designs = tuple(dict.fromkeys((*FIGURE_2, *FIGURE_8)))
    return _designs("figure-09", caption, panels, designs, [BPREF, INFAP, STRATIFIED])


def bounds(panels: Sequence[BiasNumbers], missing: str) -> Exhibit:
    """Return Figure 3: 1R precision and its bounds by lemma (2)."""
    caption = f"Figure 3: 1RP@10 and its bounds as test ratings are removed, and by |T_u|{missing}"
    frame = _joined(panels, {"bounds-density": "density", "bounds-size": "size"})

    def draw(rows: pl.DataFrame) -> list[Any]:
        return [
            _bounded(rows.filter(part=part, system=system), x, f"{system}, 1RP@10")
            for system in BOUNDED
            for part, x in (("density", "share of test ratings"), ("size", "|T_u|"))
        ]

    return _drawn("figure-03", caption, frame, draw)


def density_and_size(panels: Sequence[BiasNumbers], missing: str) -> Exhibit:
    """Return Figure 4: precision by test density and by the size of target sets."""
    caption = f"Figure 4: P@10 as test ratings are removed (AR and 1R), and by |T_u| (1R){missing}"
    frame = _joined(panels, {"density": "density", "size": "size"})

    def draw(rows: pl.DataFrame) -> list[Any]:
        views = (
            ("density", "AR", "share of test ratings"),
            ("density", "1R", "share of test ratings"),
            ("size", "1R", "|T_u|"),
        )
        return [
            _lines(rows.filter(part=part, setting=setting, metric=PRECISION), x, f"{setting} P@10")
            for part, setting, x in views
        ]

    return _drawn("figure-04", caption, frame, draw)


def skewness(panels: Sequence[BiasNumbers], missing: str) -> Exhibit:
    """Return Figure 5: simulated ratings of increasing skewness, and how the given ratings are spread over items."""
    caption = f"Figure 5: cumulated popularity of simulated ratings, P@10 in 1R on them, and the given data{missing}"
    frame = _joined(panels, {"skew": "skew", "cumulated": "cumulated"})
    given = [
        pl.DataFrame({
            "panel": panel.name, "part": "given", "setting": "positive ratings", "x": share, "metric": "ratings",
            "system": "", "value": value, "lowest": value, "highest": value, "splits": 1,
        })
        for panel in panels
        for share, value in cumulated(panel.of.work.data, panel.of.work.threshold)
    ]  # fmt: skip
    frame = pl.concat([frame, *(part.select(frame.columns).cast(frame.schema) for part in given)])

    def draw(rows: pl.DataFrame) -> list[Any]:
        curves = rows.filter(part="cumulated")
        real = _shares(rows.filter(part="given"), ["positive ratings"])
        if curves.is_empty():
            return [real]
        names = curves["setting"].unique(maintain_order=True).to_list()
        return [_shares(curves, names), _lines(rows.filter(part="skew"), "skewness α", "1R P@10"), real]

    return _drawn("figure-05", caption, frame, draw)


def rating_splits(panels: Sequence[BiasNumbers]) -> Exhibit:
    """Return Figure 6: the ratings and test ratings of each item, for percentile and uniform-test splits."""
    caption = (
        f"Figure 6: ratings of each item and how many are for testing: a) random split, {GROUPS} percentiles (expected "
        f"number), b) uniform test items (σ = ε = {SIGMA:g})"
    )
    parts = []
    for panel in panels:
        work = panel.of.work
        counts = work.data.item_counts[by_popularity(work.data)]
        percentile = np.repeat(np.arange(GROUPS), [len(part) for part in np.array_split(counts, GROUPS)])
        uniform = uniform_test(work.uniform_data, sigma=SIGMA, epsilon=EPSILON, seed=work.seed)
        order = by_popularity(work.uniform_data)
        for way, ratings, test, groups in (
            ("a) percentiles", counts, SIGMA * counts, percentile),
            ("b) uniform test", work.uniform_data.item_counts[order], uniform.test.item_counts[order], None),
        ):
            parts.append(
                pl.DataFrame({
                    "panel": panel.name, "way": way, "rank": np.arange(1, len(ratings) + 1),
                    "ratings": ratings.astype(np.float64), "test": test.astype(np.float64),
                    "percentile": np.zeros(len(ratings), dtype=np.int64) if groups is None else groups + 1,
                })
            )  # fmt: skip
    frame = pl.concat(parts)

    def draw(rows: pl.DataFrame) -> list[Any]:
        return [_counts(rows.filter(way=way)) for way in rows["way"].unique(maintain_order=True)]

    return _drawn("figure-06", caption, frame, draw)


def positive_ratio(panels: Sequence[BiasNumbers]) -> Exhibit:
    """Return Figure 7: the share of positive ratings by popularity rank, in 100 segments."""
    parts = []
    for panel in panels:
        data, threshold = panel.of.work.data, panel.of.work.threshold
        order = by_popularity(data)
        liked = np.bincount(data.items[data.values >= threshold], minlength=data.n_items)[order]
        ratio = liked / data.item_counts[order]
        segments = np.array_split(ratio, min(_SEGMENTS, len(ratio)))
        ends = np.cumsum([len(segment) for segment in segments])
        parts.append(pl.DataFrame({
            "panel": panel.name, "x": ends.astype(np.float64), "value": [float(segment.mean()) for segment in segments],
            "system": "items",
        }))  # fmt: skip
    caption = "Figure 7: share of positive ratings, |PR(i)|/|R(i)|, by popularity rank (averages of 100 segments)"

    def draw(rows: pl.DataFrame) -> list[Any]:
        return [_lines(rows, "popularity rank", "|PR(i)|/|R(i)|", ["items"])]

    return _drawn("figure-07", caption, pl.concat(parts), draw)


def _joined(panels: Sequence[BiasNumbers], parts: dict[str, str]) -> pl.DataFrame:
    """Return the means and ranges of several parts for all panels."""
    return pl.concat(
        panel.spread(part).select(pl.lit(panel.name).alias("panel"), pl.lit(name).alias("part"), pl.all())
        for panel in panels
        for part, name in parts.items()
    )


def _designs(
    name: str, caption: str, panels: Sequence[BiasNumbers], designs: Sequence[str], metrics: Sequence[str]
) -> Exhibit:
    """Return bars of systems for each design, one row per metric."""
    frame = pl.concat(
        panel.spread("design")
        .filter(pl.col("setting").is_in(designs), pl.col("metric").is_in(metrics), x=panel.of.work.threshold)
        .select(pl.lit(panel.name).alias("panel"), design="setting", metric="metric", system="system", value="value",
                lowest="lowest", highest="highest", splits="splits")
        for panel in panels
    )  # fmt: skip

    def chart() -> Any:
        rows = [
            _bars(rows, designs, _LABELS.get(metric, metric)).properties(title=panel.name)
            for panel in panels
            for metric in metrics
            if len(rows := frame.filter(panel=panel.name, metric=metric))
        ]
        return themed(altair().vconcat(*rows))

    return Exhibit(name, caption, frame, draw=chart)


def _drawn(name: str, caption: str, frame: pl.DataFrame, draw: Callable[[pl.DataFrame], list[Any]]) -> Exhibit:
    """Return a figure with one row of charts per panel."""

    def chart() -> Any:
        alt = altair()
        names = frame["panel"].unique(maintain_order=True).to_list()
        rows = [[view.properties(title=panel, **_SIZE) for view in draw(frame.filter(panel=panel))] for panel in names]
        own_legends = {"color": "independent", "strokeDash": "independent"}
        return themed(alt.vconcat(*(alt.hconcat(*row).resolve_scale(**own_legends) for row in rows)))

    return Exhibit(name, caption, frame, draw=chart)


def _bars(frame: pl.DataFrame, designs: Sequence[str], metric: str) -> Any:
    """Return one bar per system and design, with its lowest and highest value over the splits."""
    alt = altair()
    base = alt.Chart().encode(x=alt.X("system:N", sort=list(SYSTEMS), title=None))
    shown = tips(system="system", value=(metric, ".4f"), lowest=("lowest", ".4f"), highest=("highest", ".4f"))
    bars = base.mark_bar().encode(
        y=alt.Y("value:Q", title=metric), tooltip=shown, **series("system", list(SYSTEMS), mark="point")
    )
    spread = base.mark_rule().encode(y=alt.Y("lowest:Q", title=metric), y2="highest:Q")
    layers = alt.layer(bars, spread, data=data_of(frame)).properties(**_BAR)
    by_design = alt.Column("design:N", sort=list(designs), title=None)
    return layers.facet(column=by_design).resolve_scale(y="independent")


def _lines(frame: pl.DataFrame, x: str, y: str, names: Sequence[str] = SYSTEMS) -> Any:
    alt = altair()
    shown = tips(system="system", x=(x, ",.4~g"), value=(y, ".4f"))
    chart = alt.Chart(data_of(frame)).mark_line(point={"size": 14, "filled": True})
    return chart.encode(
        x=alt.X("x:Q", title=x), y=alt.Y("value:Q", title=y), tooltip=shown, **series("system", list(names))
    )


def _shares(frame: pl.DataFrame, names: Sequence[str]) -> Any:
    """Return curves of cumulative popularity, one per setting."""
    alt = altair()
    return alt.Chart(data_of(frame)).mark_line().encode(
        x=alt.X("x:Q", title="items, most popular first"),
        y=alt.Y("value:Q", title="cumulated ratings"),
        tooltip=tips(setting="α", x=("items", ".2f"), value=("ratings", ".3f")),
        **series("setting", list(names)),
    )  # fmt: skip


def _bounded(frame: pl.DataFrame, x: str, y: str) -> Any:
    """Return 1R precision as a line between its bounds."""
    alt = altair()
    wide = frame.pivot(on="setting", index="x", values="value")
    base = alt.Chart(data_of(wide)).encode(x=alt.X("x:Q", title=x))
    up = alt.Y("1R:Q", title=y)
    shown = tips(x=(x, ",.4~g"), lower=("lower", ".4f"), upper=("upper", ".4f"))
    above = base.mark_area(opacity=0.15).encode(y=up, y2="upper:Q")
    below = base.mark_area(opacity=0.35).encode(y=up, y2="lower:Q")
    return above + below + base.mark_line(point={"size": 14, "filled": True}).encode(y=up, tooltip=shown)


def _counts(frame: pl.DataFrame) -> Any:
    """Return the ratings and test ratings of items by rank, thinned because there are more items than pixels."""
    alt = altair()
    places = np.unique(np.linspace(0, len(frame) - 1, min(300, len(frame))).astype(np.int64))
    base = alt.Chart(data_of(frame[places.tolist()])).encode(x=alt.X("rank:Q", title="items by popularity rank"))
    whole = base.mark_area(opacity=0.25).encode(y=alt.Y("ratings:Q", title="ratings of an item"))
    test = base.mark_line(strokeDash=[4, 2], color="firebrick").encode(y=alt.Y("test:Q", title="ratings of an item"))
    ends = frame.group_by("percentile", maintain_order=True).agg(pl.col("rank").max())
    rules = alt.Chart(data_of(ends)).mark_rule(opacity=0.4).encode(x="rank:Q")
    return whole + test + rules
