"""The tables, figures and claims of Cañamares and Castells (2020): curves over the number of unrated targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from cranfield._figures import altair, themed
from cranfield.studies.canamares_castells2020 import work
from cranfield.studies.canamares_castells2020.work import METRICS, PAIRS, SIZES, SUM_OF_P, agreement
from cranfield.studies.frame.claims import Floats
from cranfield.studies.frame.exhibits import CellRow, Exhibit, Printed, bars, curve, exhibit, marked

TEST, LARGEST = SIZES[0], SIZES[-1]  # condensed lists, and full ones on MovieLens 1M
PRINTED_FULL = 2000  # the size whose numbers Figure 1 of the paper prints as those of full lists (compare its Figure 3)
PRINTED = Printed(__package__)
"""Figure 1 (P@10 with condensed lists and what the paper calls full) and sums of p of Figure 4, on MovieLens 1M."""
MOVIELENS = "MovieLens 1M"

_STEMS = dict(zip(METRICS, ("precision", "recall", "ndcg")))


def exhibits_of(numbers: pl.DataFrame, sums_of_p: Floats | None = None) -> list[Exhibit]:
    """Return Figures 1 to 5 and their tables; ``sums_of_p`` of the 78 systems are sizes × metrics, if known."""
    means = numbers.group_by("system", "unrated", "metric", maintain_order=True).agg(
        pl.col("value").mean(), lowest=pl.col("value").min(), highest=pl.col("value").max()
    )
    curves = {
        **{f"figure-03-{stem}": (metric, f"Figure 3: {metric}") for metric, stem in _STEMS.items()},
        "figure-05": (work.COVERAGE, f"Figure 5: {work.COVERAGE} without fill"),
    }
    exhibits = [*_figure_1(means), *_figure_2(means)]
    for stem, (metric, caption) in curves.items():
        part = means.filter(metric=metric)
        exhibits += _curves(stem, f"{caption} by the number of unrated targets", part, metric)
    for metric, stem in _STEMS.items():
        further = {f"{work.AGREEMENT}, {metric}": agreement(means, metric)}
        if sums_of_p is not None:
            further[f"{SUM_OF_P} of {metric}, 78 systems"] = sums_of_p[:, METRICS.index(metric)].tolist()
        rows = [(PAIRS, size, name, *[own] * 3) for name, values in further.items() for size, own in zip(SIZES, values)]
        more = pl.DataFrame(rows, schema=means.schema, orient="row")
        exhibits += _figure_4(f"figure-04-{stem}", metric, pl.concat([means.filter(system=PAIRS), more]))
    return exhibits


def _values(part: pl.DataFrame, *by: str) -> dict[Any, float]:
    """Return the values by some columns."""
    return {row[:-1]: row[-1] for row in part.select(*by, "value").iter_rows()}


def _systems(part: pl.DataFrame) -> list[str]:
    return part["system"].unique(maintain_order=True).to_list()


def _figure_1(means: pl.DataFrame) -> list[Exhibit]:
    """Return P@10 with condensed and with full lists, next to the printed numbers for MovieLens 1M."""
    metric = METRICS[0]
    sizes = {TEST: "Test", PRINTED_FULL: f"{PRINTED_FULL:,} unrated", LARGEST: "Full"}
    part = means.filter(pl.col("unrated").is_in(list(sizes)), metric=metric)
    printed = [(name, int(size), float(text)) for _, name, size, text in PRINTED.table("figure 1")]
    beside = pl.DataFrame(printed, schema=["system", "unrated", "printed"], orient="row")
    part = part.with_columns(targets=pl.col("unrated").replace_strict(sizes, return_dtype=pl.String))
    part = part.join(beside, on=["system", "unrated"], how="left", maintain_order="left")
    values = {row[:2]: row[2:] for row in part.select("system", "unrated", "value", "printed").iter_rows()}
    rows = [
        [
            name,
            *(f"{values[name, size][0]:.3f}" for size in sizes),
            *(f"{values[name, size][1]:.3f}" for size in (TEST, PRINTED_FULL)),
        ]
        for name in _systems(part)
    ]
    caption = "Figure 1: P@10 with condensed (Test) and full lists"
    header = ["System", *sizes.values(), "Test, printed", "Full, printed"]
    note = (
        f"printed for MovieLens 1M; the values printed as full are the row of {PRINTED_FULL:,} unrated targets in "
        "Figure 3"
    )
    return [
        exhibit("figure-01-numbers", caption, header, rows, (note,), part),
        Exhibit("figure-01", caption, part, draw=lambda: themed(_bar_chart(part, list(sizes.values()), metric))),
    ]


def _figure_2(means: pl.DataFrame) -> list[Exhibit]:
    """Return the metrics with full lists, by unbiased ratings if these are known, and with condensed lists."""
    caption = "Figure 2: full and condensed (Test) lists, and full lists measured by ratings of random items (Unbiased)"
    settings = {"Full": (LARGEST, ""), "Unbiased": (LARGEST, f"{work.UNBIASED} "), "Test": (TEST, "")}
    part = pl.concat(
        means.filter(unrated=size, metric=f"{prefix}{metric}").with_columns(targets=pl.lit(name), metric=pl.lit(metric))
        for metric in METRICS
        for name, (size, prefix) in settings.items()
    )
    known = not part.filter(targets="Unbiased").is_empty()
    columns = [(metric, name) for metric in METRICS for name in settings]
    values = _values(part, "system", "metric", "targets")
    texts = {key: f"{value:.4f}" for key, value in values.items()}
    rows = [[name, *(texts.get((name, *column), "not run") for column in columns)] for name in _systems(part)]
    note = (
        "the systems have their parameters for MovieLens 1M; the paper uses others on Yahoo R3"
        if known
        else "unbiased numbers are missing, because they need ratings of random items. The paper has those of "
        "Yahoo R3, which may not be redistributed; cm100k, coat and known=... have some too"
    )
    header = ["System", *(f"{metric}: {name}" for metric, name in columns)]
    numbers = exhibit("figure-02-numbers", caption, header, rows, (note,), part)

    def draw() -> Any:
        charts = [_bar_chart(part.filter(metric=metric), list(settings), metric) for metric in METRICS]
        return themed(altair().hconcat(*charts))

    return [numbers, Exhibit("figure-02", caption, part, draw=draw)] if known else [numbers]


def _bar_chart(part: pl.DataFrame, targets: Sequence[str], metric: str) -> Any:
    rows, systems = part.select("system", "targets", "value"), _systems(part)
    return bars(rows, ("system", systems), ("value", metric), ("targets", targets)).properties(width=420, height=220)


def _figure_4(stem: str, metric: str, pairs: pl.DataFrame) -> list[Exhibit]:
    """Return ties and p-values over all pairs of systems."""
    own_sums, all_sums = f"{SUM_OF_P} of {metric}", f"{SUM_OF_P} of {metric}, 78 systems"
    ratios = [
        f"{work.AGREEMENT}, {metric}",
        work.INTERSECTION,
        *(f"{what} of {metric}" for what in (work.TIES, work.TIES_AT_ZERO)),
    ]
    names = [name for name in (*ratios, own_sums, all_sums) if name in pairs["metric"]]
    part = pairs.filter(pl.col("metric").is_in(names)).with_columns(system=pl.col("metric")).drop("metric")
    caption = f"Figure 4: ties and p-values of {metric} over all pairs of systems, by the number of unrated targets"
    header, values = ["Unrated", *names], _values(part, "system", "unrated")
    rows = [[str(size), *(f"{values[name, size]:.4f}" for name in names)] for size in SIZES]
    if all_sums in names and metric == METRICS[0]:
        header.append("printed sum, 78 systems")
        for size, row in zip(SIZES, rows):
            row.append(PRINTED.text("figure 4", MOVIELENS, SUM_OF_P, str(size)))
    note = (
        "the paper sums the p-values of the 3,003 pairs of 78 systems, the users of all folds taken together; the sum "
        "over pairs of systems is a mean over folds"
    )

    def draw() -> Any:
        panels = (("ratio", ratios), ("sum of p-values", [all_sums if all_sums in names else own_sums]))
        charts = [_lines(part.filter(pl.col("system").is_in(own)), title) for title, own in panels]
        return themed(altair().hconcat(*charts))

    return [exhibit(f"{stem}-numbers", caption, header, rows, (note,), part), Exhibit(stem, caption, part, draw=draw)]


def _curves(stem: str, caption: str, part: pl.DataFrame, metric: str) -> list[Exhibit]:
    systems, values = _systems(part), _values(part, "system", "unrated")
    rows: list[CellRow] = [
        [str(size), *marked({system: values[system, size] for system in systems}, "{:.4f}".format)] for size in SIZES
    ]
    return [
        exhibit(f"{stem}-numbers", caption, ["Unrated", *systems], rows, frame=part),
        Exhibit(stem, caption, part, draw=lambda: themed(_lines(part, metric))),
    ]


def _lines(part: pl.DataFrame, title: str) -> Any:
    rows = part.select("system", "unrated", "value")
    x, y = ("unrated", "unrated targets"), ("value", title)
    return curve(rows, x, y, "system", _systems(part), order=SIZES, zero=True).properties(width=360, height=240)
