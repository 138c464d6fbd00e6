"""The tables and figures of Bellogín et al. (2017): a panel for each set of ratings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from cranfield._figures import altair, data_of, series, themed, tips
from cranfield._numbers import DASH
from cranfield.data import Ratings, by_popularity
from cranfield.rankings import Ranking, Targets
from cranfield.splits import predefined, uniform_test
from cranfield.studies.bellogin2017 import work
from cranfield.studies.bellogin2017.work import BiasNumbers, cumulated
from cranfield.studies.frame.exhibits import CellRow, Exhibit, Printed, bars, curve, exhibit, marked

MOVIELENS, HETREC, LASTFM = "MovieLens 1M", "HetRec 2011 Last.fm", "Last.fm (lastfm-1k)"
PRINTED = Printed(__package__)  # the numbers printed in the text; the figures print none
DESIGNS = tuple(dict.fromkeys((*work.FIGURE_2, *work.FIGURE_8)))

_SIZE = {"width": 220, "height": 160}
_BAR = {"width": 110, "height": 130}
_SEGMENTS = 100
_LABELS = {work.NDCG: "nDCG@10", work.STRATIFIED: "stratified recall@10"}


def exhibits_of(panels: Sequence[BiasNumbers]) -> list[Exhibit]:
    """Return all tables and figures."""
    missing = "".join(f" ({note})" for note in absent(panels))
    neutral = f"Figure 8: P@10 and nDCG@10 in 1R, AR and the designs that neutralise popularity{missing}"
    # bpref is 1 for all systems in 1R, so it is not measured there.
    incomplete = f"Figure 9: bpref, infAP and stratified recall (γ = 1), also in the designs of Figure 8{missing}"
    return [
        _toy_example(),
        _printed_numbers(panels),
        _design_table(panels),
        _significance(panels),
        _by_design("figure-02", f"Figure 2: P@10 in AR and 1R{missing}", panels, work.FIGURE_2, [work.PRECISION]),
        _bounds(panels, missing),
        _density_and_size(panels, missing),
        _skewness(panels, missing),
        _rating_splits(panels),
        _positive_ratio(panels),
        _by_design("figure-08", neutral, panels, work.FIGURE_8, [work.PRECISION, work.NDCG]),
        _by_design("figure-09", incomplete, panels, DESIGNS, [work.BPREF, work.INFAP, work.STRATIFIED]),
    ]


def absent(panels: Iterable[BiasNumbers]) -> list[str]:
    """Return which datasets of the paper are not among the panels."""
    known = {panel.known for panel in panels}
    return [] if LASTFM in known else [f"not run: {LASTFM}, the paper's own extract of nearly 1,000 listeners"]


_USER, _THRESHOLD = "u", 5
_TRAIN = [("u", "f", 5), ("u", "g", 2), ("v", "a", 5), ("v", "d", 4), ("w", "a", 3), ("w", "e", 5), ("w", "b", 1)]
_TEST = [("u", "d", 5), ("u", "e", 5), ("u", "c", 1), ("v", "b", 5), ("v", "c", 4), ("w", "f", 5)]
_DESIGNS: Mapping[str, dict[str, Any]] = {
    "AI-AR-AN": {"candidates": "all"},
    "TI-AR-AN": {"candidates": "test"},
    "TI-AR-NN": {"candidates": "test", "nonrelevant": 1},
    "AI-1R-AN": {"candidates": "all", "relevant": "one"},
    "TI-1R-AN": {"candidates": "test", "relevant": "one"},
    "TI-1R-NN": {"candidates": "test", "relevant": "one", "nonrelevant": 1},
}


def _toy_example() -> Exhibit:
    """Return Figure 1: the items in the lists of user u in each design, on a toy example."""
    train, test = (Ratings.of(*zip(*rows)) for rows in (_TRAIN, _TEST))
    split = predefined(train, test)
    user = np.flatnonzero(split.train.user_ids.all == _USER).astype(np.int32)
    names = np.array(split.train.item_ids.all.to_list())
    relevant = split.test.items[(split.test.users == user) & (split.test.values >= _THRESHOLD)]
    rows = []
    for design, decisions in _DESIGNS.items():
        ranking = Ranking(threshold=_THRESHOLD, **decisions)
        pool = Targets(split.train, split.test, ranking).drawn_for(user).pool(user)[0]
        others = names[np.setdiff1d(np.flatnonzero(pool), relevant)]
        parts = np.split(relevant, len(relevant)) if ranking.one_relevant else [relevant]
        for number, wanted in enumerate(parts, start=1):
            sets = f"T_u^{number}" if ranking.one_relevant else "T_u"
            rows.append([design, sets, " ".join(names[wanted]), " ".join(others)])
    said = [", ".join(f"{user} {item} {value}" for user, item, value in part) for part in (_TRAIN, _TEST)]
    notes = [
        f"training: {said[0]}; test: {said[1]}; threshold {_THRESHOLD}",
        "u has rated f and g in training; a has no test rating, so only AI contains it",
    ]
    caption = "Figure 1: target items of the user u on a toy example"
    return exhibit("figure-01", caption, ["design", "set", "relevant", "non-relevant"], rows, notes)


def _printed_numbers(panels: Sequence[BiasNumbers]) -> Exhibit:
    """Return the numbers printed in the text next to those of this run."""
    rows = [
        [number, where, *(PRINTED.text("text", data, number) for data in (MOVIELENS, LASTFM)), *map(here, panels)]
        for number, where, here in _NUMBERS
    ]
    header = ["Number", "Section", f"printed, {MOVIELENS}", f"printed, {LASTFM}", *(panel.name for panel in panels)]
    caption = "Numbers that the text prints; the figures of the paper print none"
    return exhibit("numbers", caption, header, rows, [*absent(panels), *_notes(panels)])


def _most_liked(panel: BiasNumbers) -> str:
    data = panel.work.data
    liked = np.bincount(data.items[data.values >= panel.work.threshold], minlength=data.n_items).max()
    return f"{100 * liked / np.count_nonzero(data.user_counts):.1f}%"


def _popularity_in(panel: BiasNumbers, design: str) -> str:
    return f"{panel.of(design, work.POPULARITY).mean():.4f}"


def _skewed(panel: BiasNumbers, system: str) -> str:
    values = panel.series("skew", setting="1R", system=system, x=0.0)
    return f"{values.mean():.4f}" if len(values) else DASH


_NUMBERS: Sequence[tuple[str, str, Callable[[BiasNumbers], str]]] = [
    ("P@10 of popularity in AR", "3.3", lambda panel: _popularity_in(panel, panel.work.plain)),
    ("|T|, the items of a uniform test", "6.2", lambda panel: f"{panel.work.sizes['zeta']:,}"),
    ("η, test ratings of each of them", "6.2", lambda panel: f"{panel.work.sizes['eta']:,}"),
    ("items of a percentile", "6.1", lambda panel: f"{np.count_nonzero(panel.work.data.item_counts) // work.GROUPS:,}"),
    ("users who like the most popular item", "5.2", _most_liked),
    ("1RP@10 of popularity at α = 0", "5.2", lambda panel: _skewed(panel, work.POPULARITY)),
    ("1RP@10 of random at α = 0", "5.2", lambda panel: _skewed(panel, work.RANDOM)),
    ("1RP@10 of popularity in P1R", "6.3", lambda panel: _popularity_in(panel, work.PERCENTILE)),
    ("1RP@10 of popularity in U1R", "6.3", lambda panel: _popularity_in(panel, work.U1R)),
]
"""Numbers that the text prints, with their section and how they are computed here."""


def _notes(panels: Sequence[BiasNumbers]) -> list[str]:
    """Return notes on each set of ratings."""
    notes = []
    for panel in panels:
        name, own = panel.name, panel.work
        notes.append(
            f"{name} is {panel.known} by its numbers"
            if panel.known
            else f"{name} is none of the known datasets: printed numbers are for orientation"
        )
        if own.dropped:
            without = f"so uniform tests leave out the {own.dropped:,} rarest"
            notes.append(f"{name}: σ = ε = 0.2 has no solution with all items, {without}")
        if own.divided is not None:
            notes.append(f"{name} was already divided: there is one split, and uniform tests are drawn from both parts")
        if own.positive:
            notes.append(
                f"{name}: there are no non-positive ratings, so bpref mostly measures coverage (section 7), "
                "and popularity is expected at random in U1R and UAR (section 6.2)"
            )
    return notes


def _significance(panels: Sequence[BiasNumbers]) -> Exhibit:
    """Return the p-values of Wilcoxon's test for all pairs of Figure 2."""
    difference, p = pl.col("value").mean().alias("difference"), pl.col("p")
    frame = pl.concat(
        panel.rows("wilcoxon")
        .group_by(design="setting", systems="system", maintain_order=True)
        .agg(difference, median_p=p.median(), largest_p=p.max())
        .select(pl.lit(panel.name).alias("panel"), pl.all())
        for panel in panels
    )
    rows = [[*row[:3], f"{row[3]:+.4f}", f"{row[4]:.1e}", f"{row[5]:.1e}"] for row in frame.iter_rows()]
    header = ["Ratings", "Design", "Systems", "Difference", "p, median", "p, largest"]
    caption = "Figure 2: Wilcoxon's test of all pairs of systems over users, P@10, over the folds"
    above = (frame["largest_p"] >= 0.001).sum()
    note = f"the paper states p well below 0.001 for all pairs; here {above} of {len(frame)} reach 0.001 in some fold"
    return exhibit("figure-02-significance", caption, header, rows, [note], frame)


def _design_table(panels: Sequence[BiasNumbers]) -> Exhibit:
    """Return the score of every system in every design, averaged over splits."""
    rows: list[CellRow] = []
    for panel in panels:
        for design in DESIGNS:
            for metric in work.METRICS:
                values = {system: panel.of(design, system, metric) for system in panel.work.systems}
                if all(map(len, values.values())):
                    means = {system: float(own.mean()) for system, own in values.items()}
                    rows.append([panel.name, design, metric, *marked(means, "{:.4f}".format)])
    caption = "Figures 2, 8 and 9 in numbers: means over splits"
    return exhibit("designs", caption, ["Ratings", "Design", "Metric", *panels[0].work.systems], rows)


def _by_design(
    name: str, caption: str, panels: Sequence[BiasNumbers], designs: Sequence[str], metrics: Sequence[str]
) -> Exhibit:
    """Return bars of systems for each design, with the range over the splits; one row per metric."""
    frame = pl.concat(
        panel.spread("design", "setting", "metric", "system", x=panel.work.threshold)
        .filter(pl.col("setting").is_in(designs), pl.col("metric").is_in(metrics))
        .select(pl.lit(panel.name).alias("panel"), pl.col("setting").alias("design"), pl.exclude("setting"))
        for panel in panels
    )

    def draw() -> Any:
        alt, charts = altair(), []
        for (panel, metric), rows in frame.group_by("panel", "metric", maintain_order=True):
            y = ("value", _LABELS.get(str(metric), str(metric)))
            systems = rows["system"].unique(maintain_order=True).to_list()
            layers = bars(rows, ("system", systems), y, ("system", systems), ends=("lowest", "highest"))
            by_design = alt.Column("design:N", sort=list(designs), title=None)
            chart = layers.properties(**_BAR).facet(column=by_design).resolve_scale(y="independent")
            charts.append(chart.properties(title=panel))
        return themed(alt.vconcat(*charts))

    return Exhibit(name, caption, frame, draw=draw)


def _joined(panels: Sequence[BiasNumbers], parts: Mapping[str, str]) -> pl.DataFrame:
    """Return the means and ranges of several parts for all panels."""
    return pl.concat(
        panel.spread(part, "setting", "x", "metric", "system").select(
            pl.lit(panel.name).alias("panel"), pl.lit(name).alias("part"), pl.all()
        )
        for panel in panels
        for part, name in parts.items()
    )


def _drawn(name: str, caption: str, frame: pl.DataFrame, draw: Callable[[pl.DataFrame], list[Any]]) -> Exhibit:
    """Return a figure with one row of charts per panel."""

    def chart() -> Any:
        alt = altair()
        names = frame["panel"].unique(maintain_order=True).to_list()
        rows = [[view.properties(title=panel, **_SIZE) for view in draw(frame.filter(panel=panel))] for panel in names]
        own_legends = {"color": "independent", "strokeDash": "independent"}
        return themed(alt.vconcat(*(alt.hconcat(*row).resolve_scale(**own_legends) for row in rows)))

    return Exhibit(name, caption, frame, draw=chart)


def _lines(rows: pl.DataFrame, x: str, y: str, by: str = "system", names: Sequence[str] = ()) -> Any:
    names = names or rows[by].unique(maintain_order=True).to_list()
    return curve(rows.select("x", "value", by), ("x", x), ("value", y), by, names, zero=True)


def _bounds(panels: Sequence[BiasNumbers], missing: str) -> Exhibit:
    """Return Figure 3: 1R precision and its bounds by lemma (2)."""
    caption = f"Figure 3: 1RP@10 and its bounds as test ratings are removed, and by |T_u|{missing}"
    frame = _joined(panels, {"bounds-density": "density", "bounds-size": "size"})

    def draw(rows: pl.DataFrame) -> list[Any]:
        return [
            _bounded(rows.filter(part=part, system=system), x, f"{system}, 1RP@10")
            for system in work.BOUNDED
            for part, x in (("density", "share of test ratings"), ("size", "|T_u|"))
        ]

    return _drawn("figure-03", caption, frame, draw)


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


def _density_and_size(panels: Sequence[BiasNumbers], missing: str) -> Exhibit:
    """Return Figure 4: precision by test density and by the size of target sets."""
    caption = f"Figure 4: P@10 as test ratings are removed (AR and 1R), and by |T_u| (1R){missing}"
    frame = _joined(panels, {"density": "density", "size": "size"})
    share = "share of test ratings"

    def draw(rows: pl.DataFrame) -> list[Any]:
        return [
            _lines(rows.filter(part=part, setting=setting, metric=work.PRECISION), x, f"{setting} P@10")
            for part, setting, x in (("density", "AR", share), ("density", "1R", share), ("size", "1R", "|T_u|"))
        ]

    return _drawn("figure-04", caption, frame, draw)


def _skewness(panels: Sequence[BiasNumbers], missing: str) -> Exhibit:
    """Return Figure 5: simulated ratings of increasing skewness, and how the given ratings are spread over items."""
    caption = f"Figure 5: cumulated popularity of simulated ratings, P@10 in 1R on them, and the given data{missing}"
    frame = _joined(panels, {"skew": "skew", "cumulated": "cumulated"})
    given = [
        (panel.name, "given", "positive ratings", share, "ratings", "", *[value] * 3, 1)
        for panel in panels
        for share, value in cumulated(panel.work.data, panel.work.threshold)
    ]
    frame = pl.concat([frame, pl.DataFrame(given, schema=frame.schema, orient="row")])

    def draw(rows: pl.DataFrame) -> list[Any]:
        curves = rows.filter(part="cumulated")
        shares = [_shares(curves), _lines(rows.filter(part="skew"), "skewness α", "1R P@10")]
        return [*(shares if len(curves) else ()), _shares(rows.filter(part="given"))]

    return _drawn("figure-05", caption, frame, draw)


def _shares(frame: pl.DataFrame) -> Any:
    """Return curves of cumulative popularity, one per setting, without their points."""
    alt = altair()
    return alt.Chart(data_of(frame)).mark_line().encode(
        x=alt.X("x:Q", title="items, most popular first"),
        y=alt.Y("value:Q", title="cumulated ratings"),
        tooltip=tips(setting="α", x=("items", ".2f"), value=("ratings", ".3f")),
        **series("setting", frame["setting"].unique(maintain_order=True).to_list()),
    )  # fmt: skip


def _rating_splits(panels: Sequence[BiasNumbers]) -> Exhibit:
    """Return Figure 6: the ratings and test ratings of each item, for percentile and uniform-test splits."""
    caption = (
        f"Figure 6: ratings of each item and how many are for testing: a) random split, {work.GROUPS} percentiles "
        f"(expected number), b) uniform test items (σ = ε = {work.SIGMA:g})"
    )
    parts = []
    for panel in panels:
        own = panel.work
        counts = own.data.item_counts[by_popularity(own.data)]
        percentile = np.repeat(np.arange(work.GROUPS) + 1, [len(part) for part in np.array_split(counts, work.GROUPS)])
        uniform = uniform_test(own.uniform_data, sigma=work.SIGMA, epsilon=work.EPSILON, seed=own.seed)
        order = by_popularity(own.uniform_data)
        ratings, test = own.uniform_data.item_counts[order], uniform.test.item_counts[order]
        parts += [
            pl.DataFrame({
                "panel": panel.name, "way": way, "rank": np.arange(1, len(ratings) + 1),
                "ratings": ratings.astype(np.float64), "test": test.astype(np.float64), "percentile": groups,
            })
            for way, ratings, test, groups in (
                ("a) percentiles", counts, work.SIGMA * counts, percentile),
                ("b) uniform test", ratings, test, np.zeros(len(ratings), dtype=np.int64)),
            )
        ]  # fmt: skip

    def draw(rows: pl.DataFrame) -> list[Any]:
        return [_counts(rows.filter(way=way)) for way in rows["way"].unique(maintain_order=True)]

    return _drawn("figure-06", caption, pl.concat(parts), draw)


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


def _positive_ratio(panels: Sequence[BiasNumbers]) -> Exhibit:
    """Return Figure 7: the share of positive ratings by popularity rank, in 100 segments."""
    parts = []
    for panel in panels:
        data = panel.work.data
        order = by_popularity(data)
        liked = np.bincount(data.items[data.values >= panel.work.threshold], minlength=data.n_items)[order]
        segments = np.array_split(liked / data.item_counts[order], min(_SEGMENTS, len(order)))
        ends = np.cumsum([len(segment) for segment in segments]).astype(np.float64)
        means = [float(segment.mean()) for segment in segments]
        parts.append(pl.DataFrame({"panel": panel.name, "x": ends, "value": means, "system": "items"}))
    caption = "Figure 7: share of positive ratings, |PR(i)|/|R(i)|, by popularity rank (averages of 100 segments)"

    def draw(rows: pl.DataFrame) -> list[Any]:
        return [_lines(rows, "popularity rank", "|PR(i)|/|R(i)|", names=["items"])]

    return _drawn("figure-07", caption, pl.concat(parts), draw)
