"""The tables and figures of a study of target sampling: curves over the number of unrated targets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import polars as pl

from cranfield._figures import altair, data_of, series, themed, tips
from cranfield._table import Cell, Table
from cranfield.studies._study import Exhibit
from cranfield.studies._targets import (
    AGREEMENT,
    COVERAGE,
    INTERSECTION,
    METRICS,
    PAIRS,
    SIZES,
    SUM_OF_P,
    TIES,
    TIES_AT_ZERO,
    UNBIASED,
    agreement,
)
from cranfield.studies._targets_grid import PRINTED_SUMS, Floats

TEST, LARGEST = SIZES[0], SIZES[-1]
"""Condensed lists, and full ones on MovieLens 1M."""

PRINTED_FULL = 2000
"""The size whose numbers Figure 1 of the paper prints as those of full lists (compare its Figure 3)."""

PRINTED = {
    "Random": (0.551, 0.010),
    "Popularity": (0.625, 0.194),
    "Average Rating": (0.665, 0.044),
    "kNN (full/test)": (0.659, 0.310),
    "Normalized kNN (full)": (0.643, 0.209),
    "Normalized kNN (test)": (0.671, 0.086),
    "iMF (full)": (0.659, 0.354),
    "iMF (test)": (0.685, 0.178),
}
"""P@10 in Figure 1 of the paper, on MovieLens 1M: condensed, and what the paper calls full."""

_STEMS = dict(zip(METRICS, ("precision", "recall", "ndcg")))


def exhibits_of(numbers: pl.DataFrame, sums_of_p: Floats | None = None) -> list[Exhibit]:
    """Return Figures 1 to 5 with their numbers as tables, from the numbers of all folds.

    ``sums_of_p`` has the sums of p-values over the 78 systems of the paper, sizes × metrics, if they are known.
    """
    means = numbers.group_by("system", "unrated", "metric", maintain_order=True).agg(
        pl.col("value").mean(), lowest=pl.col("value").min(), highest=pl.col("value").max()
    )
    curves = {
        **{f"figure-03-{stem}": (metric, f"Figure 3: {metric}") for metric, stem in _STEMS.items()},
        "figure-05": (COVERAGE, f"Figure 5: {COVERAGE} without fill"),
    }
    exhibits = [*_figure_1(means), *_figure_2(means)]
    for stem, (metric, caption) in curves.items():
        exhibits += _curves(stem, f"{caption} by the number of unrated targets", means.filter(metric=metric), metric)
    for metric, stem in _STEMS.items():
        rows = [
            (PAIRS, size, f"{AGREEMENT}, {metric}", *[tau] * 3) for size, tau in zip(SIZES, agreement(means, metric))
        ]
        if sums_of_p is not None:
            sums = sums_of_p[:, METRICS.index(metric)].tolist()
            rows += [(PAIRS, size, f"{SUM_OF_P} of {metric}, 78 systems", *[own] * 3) for size, own in zip(SIZES, sums)]
        further = pl.DataFrame(rows, schema=means.schema, orient="row")
        exhibits += _figure_4(f"figure-04-{stem}", metric, pl.concat([means.filter(system=PAIRS), further]))
    return exhibits


def _figure_1(means: pl.DataFrame) -> list[Exhibit]:
    """Return P@10 with condensed and with full lists, next to the printed numbers for MovieLens 1M."""
    metric = METRICS[0]
    sizes = {"Test": TEST, f"{PRINTED_FULL:,} unrated": PRINTED_FULL, "Full": LARGEST}
    part = means.filter(pl.col("unrated").is_in(list(sizes.values())), metric=metric)
    part = part.with_columns(
        targets=pl.col("unrated").replace_strict({size: name for name, size in sizes.items()}, return_dtype=pl.String),
        printed=pl.struct("system", "unrated").map_elements(_printed, return_dtype=pl.Float64),
    )
    caption = "Figure 1: P@10 with condensed (Test) and full lists"
    header = ["System", *sizes, "Test, printed", "Full, printed"]
    rows: list[list[str | Cell]] = []
    for system, printed in PRINTED.items():
        own = [part.filter(system=system, unrated=size)["value"].item() for size in sizes.values()]
        rows.append([system, *(f"{value:.3f}" for value in own), *(f"{value:.3f}" for value in printed)])
    note = (
        f"printed for MovieLens 1M; the values printed as full are the row of {PRINTED_FULL:,} unrated targets in "
        "Figure 3"
    )
    return [
        Exhibit("figure-01-numbers", caption, part, Table(header, rows, caption, (note,))),
        Exhibit("figure-01", caption, part, draw=lambda: themed(_bar_chart(part, list(sizes), metric))),
    ]


def _figure_2(means: pl.DataFrame) -> list[Exhibit]:
    """Return the metrics with full lists, by unbiased ratings if these are known, and with condensed lists."""
    caption = "Figure 2: full and condensed (Test) lists, and full lists measured by ratings of random items (Unbiased)"
    settings = {"Full": (LARGEST, ""), "Unbiased": (LARGEST, f"{UNBIASED} "), "Test": (TEST, "")}
    parts = [
        means.filter(unrated=size, metric=f"{prefix}{metric}").with_columns(targets=pl.lit(name), metric=pl.lit(metric))
        for metric in METRICS
        for name, (size, prefix) in settings.items()
    ]
    part = pl.concat(parts)
    known = not part.filter(targets="Unbiased").is_empty()
    header = ["System", *(f"{metric}: {name}" for metric in METRICS for name in settings)]
    rows: list[list[str | Cell]] = []
    for system in PRINTED:
        own = [
            part.filter(system=system, metric=metric, targets=name)["value"] for metric in METRICS for name in settings
        ]
        rows.append([system, *("not run" if value.is_empty() else f"{value.item():.4f}" for value in own)])
    note = (
        "the systems have their parameters for MovieLens 1M; the paper uses others on Yahoo R3"
        if known
        else "unbiased numbers are missing, because they need ratings of random items. The paper has those of "
        "Yahoo R3, which may not be redistributed; cm100k, coat and --known FILE have some too"
    )
    numbers = Exhibit("figure-02-numbers", caption, part, Table(header, rows, caption, (note,)))
    draw = partial(_bars_by_metric, part, list(settings))
    return [numbers, Exhibit("figure-02", caption, part, draw=draw)] if known else [numbers]


def _bars_by_metric(part: pl.DataFrame, targets: Sequence[str]) -> Any:
    alt = altair()
    return themed(alt.hconcat(*(_bar_chart(part.filter(metric=metric), targets, metric) for metric in METRICS)))


def _printed(row: dict[str, Any]) -> float | None:
    places = {TEST: 0, PRINTED_FULL: 1}
    return PRINTED[row["system"]][places[row["unrated"]]] if row["unrated"] in places else None


def _bar_chart(part: pl.DataFrame, targets: Sequence[str], metric: str) -> Any:
    alt = altair()
    shown = part.select("system", "targets", "value")
    return (
        alt.Chart(data_of(shown))
        .mark_bar()
        .encode(
            x=alt.X("system:N", sort=list(PRINTED), title=None, axis=alt.Axis(labelAngle=-40)),
            xOffset=alt.XOffset("targets:N", sort=list(targets)),
            y=alt.Y("value:Q", title=metric),
            color=alt.Color("targets:N", sort=list(targets), title="targets"),
            tooltip=tips(system="system", targets="targets", value=(metric, ".4f")),
        )
        .properties(width=420, height=220)
    )


def _figure_4(stem: str, metric: str, pairs: pl.DataFrame) -> list[Exhibit]:
    """Return ties and p-values over all pairs of systems."""
    own_sums, all_sums = f"{SUM_OF_P} of {metric}", f"{SUM_OF_P} of {metric}, 78 systems"
    ratios = [f"{AGREEMENT}, {metric}", INTERSECTION, *(f"{what} of {metric}" for what in (TIES, TIES_AT_ZERO))]
    names = [name for name in (*ratios, own_sums, all_sums) if name in pairs["metric"]]
    part = pairs.filter(pl.col("metric").is_in(names)).with_columns(system=pl.col("metric")).drop("metric")
    caption = f"Figure 4: ties and p-values of {metric} over the 28 pairs of systems, by the number of unrated targets"
    header, rows = ["Unrated", *names], list[list[str | Cell]]()
    for place, size in enumerate(SIZES):
        rows.append([str(size), *(f"{part.filter(system=name, unrated=size)['value'].item():.4f}" for name in names)])
        if all_sums in names and metric == METRICS[0]:
            rows[-1].append(f"{PRINTED_SUMS[place]:.2f}")
    if all_sums in names and metric == METRICS[0]:
        header.append("printed sum, 78 systems")
    note = (
        "the paper sums the p-values of the 3,003 pairs of 78 systems, the users of all folds taken together; the sum "
        "over 28 pairs is a mean over folds"
    )
    shown = all_sums if all_sums in names else own_sums
    return [
        Exhibit(f"{stem}-numbers", caption, part, Table(header, rows, caption, (note,))),
        Exhibit(
            stem, caption, part, draw=partial(_two_panels, part, [name for name in names if name in ratios], shown)
        ),
    ]


def _two_panels(part: pl.DataFrame, ratios: Sequence[str], sums: str) -> Any:
    alt = altair()
    panels = (part.filter(pl.col("system").is_in(list(names))) for names in (ratios, [sums]))
    return themed(alt.hconcat(*(_lines(own, title) for own, title in zip(panels, ("ratio", "sum of p-values")))))


def _curves(stem: str, caption: str, part: pl.DataFrame, metric: str) -> list[Exhibit]:
    systems = part["system"].unique(maintain_order=True).to_list()
    rows: list[list[str | Cell]] = []
    for size in SIZES:
        values = [part.filter(system=system, unrated=size)["value"].item() for system in systems]
        rows.append([str(size), *(Cell(f"{value:.4f}", best=value == max(values)) for value in values)])
    return [
        Exhibit(f"{stem}-numbers", caption, part, Table(["Unrated", *systems], rows, caption)),
        Exhibit(stem, caption, part, draw=lambda: themed(_lines(part, metric))),
    ]


def _lines(part: pl.DataFrame, title: str) -> Any:
    alt = altair()
    order = [str(size) for size in SIZES]
    names = part["system"].unique(maintain_order=True).to_list()
    rows = part.with_columns(unrated=pl.col("unrated").cast(pl.String))
    chart = alt.Chart(data_of(rows)).mark_line(point={"size": 18, "filled": True})
    return chart.encode(
        x=alt.X("unrated:O", sort=order, title="unrated targets"),
        y=alt.Y("value:Q", title=title),
        tooltip=tips(system="system", unrated="unrated targets", value=(title, ".4f")),
        **series("system", names),
    ).properties(width=360, height=240)
