"""Tables and figures of Cañamares et al. (2020): a panel per set of ratings, and a note on each that was not run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from cranfield._figures import altair, data_of, themed
from cranfield._numbers import DASH
from cranfield._table import Cell
from cranfield.data import describe
from cranfield.studies.canamares2020 import work
from cranfield.studies.canamares2020.work import SplitNumbers
from cranfield.studies.frame.claims import Floats
from cranfield.studies.frame.exhibits import HERE, CellRow, Exhibit, Printed, bars, curve, exhibit
from cranfield.studies.frame.study import size_of

MOVIELENS, NETFLIX = "MovieLens", "Netflix"
DATASETS = {MOVIELENS: "MovieLens 1M", NETFLIX: "Netflix"}  # the paper's datasets
PRINTED = Printed(__package__)

_SIZE = {"width": 300, "height": 200}
_POINTS = 200  # maximum number of points to draw a distribution
_COLUMNS, _COUNTED = (work.KNN, work.MF, "p"), ("users", "items")
_METRICS = {"Prec@10": work.PRECISION, "NDCG@10": work.NDCG}

# The lines of Tables 2 to 4: what their first columns say, and the part, setting and metric of their numbers.
Line = tuple[tuple[str, ...], str, str, str]
TABLE_2: list[Line] = [((name,), "average", "AM, unweighted", metric) for name, metric in _METRICS.items()]
TABLE_3: list[Line] = [
    *(((name, "g1"), "gain", "full", metric) for name, metric in _METRICS.items()),
    *((label, "gain", "full", metric) for label, metric in work.GAINED.items()),
]
TABLE_4: list[Line] = [
    ((average, name), "average", average, metric) for average in work.AVERAGES for name, metric in _METRICS.items()
]


def exhibits_of(panels: Sequence[SplitNumbers]) -> list[Exhibit]:
    """Return all tables and figures."""
    missing = [name for name in DATASETS if name not in {panel.known for panel in panels}]
    further = [f"{NETFLIX}, k = 100, split of 0.8"] if NETFLIX in missing else []
    figure = partial(_figure, panels, missing)
    return [
        _datasets(panels),
        *_tables(panels, missing),
        figure(1, "cumulative distribution of ratings per user and per item", _cumulative,
               partial(_lines, x="number of ratings, at most", y="cumulative share", names=_COUNTED, log=True)),
        figure(2, "NDCG@10 by split ratio, full lists", _spread("ratio", "full", work.NDCG),
               partial(_lines, x="split ratio", y="NDCG@10")),
        figure(3, "share of unrated items in the top ten, by split ratio", _spread("ratio", "full", work.UNRATED),
               partial(_lines, x="split ratio", y="unrated share")),
        figure(4, "NDCG@10 by split ratio, condensed lists", _spread("ratio", "condensed", work.NDCG),
               partial(_lines, x="split ratio", y="NDCG@10")),
        figure(5, "mean position in the full list of the first ten items of the condensed list",
               _spread("depth", "full", "position"),
               partial(_lines, x="place in the condensed list", y="position in the full list")),
        _figure(panels, [*missing, *further], 6, "NDCG@d by cut-off d", _spread("cutoff", "full", "NDCG@d"),
                partial(_lines, x="cut-off d", y="NDCG@d", log=True)),
        figure(7, "NDCG@10 (bars) and Coverage@10 (crosses) of kNN by k and by what fills the gaps, condensed lists",
               _gaps, _gap_bars),
        figure(8, "Prec@10 of kNN and MF, and user coverage, by the fewest items that neighbours share", _overlaps,
               partial(_lines, x="fewest shared items", y="Prec@10, coverage", names=[*_OVERLAPS, work.MF])),
    ]  # fmt: skip


def _datasets(panels: Sequence[SplitNumbers]) -> Exhibit:
    rows = [
        [name, *(f"{count:,}" for count in size_of(dataset)), PRINTED.text("table 1", name, "Density")]
        for name, dataset in DATASETS.items()
    ]
    notes = []
    for panel in panels:
        own = describe(panel.work.data)
        sizes = [f"{count:,}" for count in (own.users, own.items, own.ratings)]
        rows.append([f"{HERE}: {panel.name}", *sizes, f"{100 * own.density:.2f}%"])
        notes.append(
            f"{panel.name} is the paper's {panel.known} data by its numbers"
            if panel.known
            else f"{panel.name} is none of the paper's datasets: printed numbers are for orientation"
        )
    header = ["Dataset", "Users", "Items", "Ratings", "Density"]
    return exhibit("table-1", "Table 1: the datasets", header, rows, notes)


def _tables(panels: Sequence[SplitNumbers], missing: Sequence[str]) -> list[Exhibit]:
    """Return Tables 2 to 4; in the paper the last two are for MovieLens only."""
    movielens = [name for name in missing if name == MOVIELENS]
    two_gains = (
        "g2 is printed as (2^r − 1)/(2^rmax − 1), and decision C2 has (2^(r−1) − 1)/(2^(rmax−1) − 1); both are shown, "
        "each with the printed numbers"
    )
    geometric = "GM is the adjusted geometric mean with ε = 0.01; its p is that of the logarithms, as in the text"
    start = "kNN and MF at the starting point: random split of 0.5, full lists"
    gains = "gain mappings and metrics on lists of ten"
    return [
        _comparison(2, start, ["Metric"], TABLE_2, panels, missing),
        _comparison(3, gains, ["Metric", "Gain"], TABLE_3, panels, movielens, two_gains),
        _comparison(4, "averages over users", ["Average", "Metric"], TABLE_4, panels, movielens, geometric),
    ]


def _comparison(
    number: int,
    caption: str,
    header: Sequence[str],
    lines: Sequence[Line],
    panels: Sequence[SplitNumbers],
    missing: Sequence[str],
    *notes: str,
) -> Exhibit:
    """Return a table with columns of kNN, MF and p for each panel, and for each of the paper's datasets not run."""
    columns = [(panel.name, panel, panel.known) for panel in panels] + [(absent, None, absent) for absent in missing]
    rows: list[CellRow] = []
    tidy: list[dict[str, Any]] = []
    for label, part, setting, metric in lines:
        here: list[str | Cell] = [*label, HERE]
        beside: list[str | Cell] = [*label, "printed"]
        for title, panel, dataset in columns:
            measured = {} if panel is None else _measured(panel, part, setting, metric)
            printed = [PRINTED.number(f"table {number}", dataset, ", ".join(label), what) for what in _COLUMNS]
            here += _found_cells(measured) if measured else ["not run"] * 3
            beside += _printed_cells(*printed)
            first = {"dataset": title, **dict(zip((column.lower() for column in header), label)), "spelling": metric}
            tidy += [
                {**first, "what": what, **_summary(what, measured.get(what)), "printed": value}
                for what, value in zip(_COLUMNS, printed)
            ]
        rows += [here, beside]
    titles = [f"{title}: {what}" for title, _, _ in columns for what in _COLUMNS]
    splits = max((panel.frame["seed"].n_unique() for panel in panels), default=0)
    spread = (
        f"means over {splits} splits, with the lowest and the highest value; p is the median, by Student's paired test"
    )
    caption = f"Table {number}: {caption}"
    return exhibit(f"table-{number}", caption, [*header, "", *titles], rows, [spread, *notes], pl.DataFrame(tidy))


def _measured(panel: SplitNumbers, part: str, setting: str, metric: str) -> dict[str, Floats]:
    columns = [*panel.both(part, setting, metric), panel.of(part, setting, metric, work.KNN, "p")]
    return {what: values[:, 0] for what, values in zip(_COLUMNS, columns)}


def _summary(what: str, values: Floats | None) -> dict[str, float | None]:
    if values is None:
        return {"here": None, "lowest": None, "highest": None, "splits": 0}
    middle = float(np.median(values) if what == "p" else values.mean())
    return {"here": middle, "lowest": float(values.min()), "highest": float(values.max()), "splits": len(values)}


def _found_cells(measured: Mapping[str, Floats]) -> list[Cell]:
    knn, mf, p = (measured[what] for what in _COLUMNS)
    cells = [
        Cell(f"{values.mean():.3f} ({values.min():.3f} to {values.max():.3f})", best=best)
        for values, best in ((knn, knn.mean() > mf.mean()), (mf, mf.mean() > knn.mean()))
    ]
    return [*cells, Cell(f"{_p(np.median(p))} ({_p(p.min())} to {_p(p.max())})")]


def _printed_cells(knn: float | None, mf: float | None, p: float | None) -> list[Cell]:
    if knn is None or mf is None or p is None:
        return [Cell(DASH)] * 3
    return [Cell(f"{knn:.3f}", best=knn > mf), Cell(f"{mf:.3f}", best=mf > knn), Cell(_p(p))]


def _p(value: float) -> str:
    """Return a p-value as the paper prints it: three decimals, and powers of ten below a thousandth."""
    return f"{value:.3f}" if value >= 0.001 or value == 0 else f"{value:.1e}"


def _figure(
    panels: Sequence[SplitNumbers],
    missing: Sequence[str],
    number: int,
    caption: str,
    frame: Callable[[SplitNumbers], pl.DataFrame],
    draw: Callable[[pl.DataFrame], Any],
) -> Exhibit:
    frames = {panel.name: frame(panel) for panel in panels}
    whole = pl.concat([rows.select(pl.lit(panel).alias("panel"), pl.all()) for panel, rows in frames.items()])
    not_run = f" (not run: {'; '.join(missing)})" if missing else ""

    def chart() -> Any:
        drawn = [draw(rows).properties(title=panel, **_SIZE) for panel, rows in frames.items()]
        return themed(altair().hconcat(*drawn, *map(_not_run, missing)))

    return Exhibit(f"figure-{number:02}", f"Figure {number}: {caption}{not_run}", whole, draw=chart)


def _not_run(name: str) -> Any:
    text = altair().Chart(data_of([{"text": "not run"}])).mark_text(fontSize=14).encode(text="text:N")
    return text.properties(title=name, width=120, height=_SIZE["height"])


def _lines(rows: pl.DataFrame, *, x: str, y: str, names: Sequence[str] = (work.KNN, work.MF), log: bool = False) -> Any:
    return curve(rows, ("x", x), ("value", y), "system", names, log=log)


def _gap_bars(rows: pl.DataFrame) -> Any:
    order = [str(k) for k in sorted(rows["k"].unique())]
    rows = rows.with_columns(k=pl.col("k").cast(pl.String))
    return bars(rows, ("fill", list(work.FILLS)), ("value", "NDCG@10"), ("k", order), crosses="coverage")


def _spread(part: str, setting: str, metric: str) -> Callable[[SplitNumbers], pl.DataFrame]:
    """Return a function that gives the mean over splits for each ``x`` and system, with its range."""
    return lambda panel: panel.spread(part, "x", "system", setting=setting, metric=metric)


def _cumulative(panel: SplitNumbers) -> pl.DataFrame:
    """Return the share of users and of items with at most x ratings, in at most 200 points each."""
    parts = []
    for name, counts in (("users", panel.work.data.user_counts), ("items", panel.work.data.item_counts)):
        ordered = np.sort(counts[counts > 0])
        sizes = np.unique(ordered[np.linspace(0, len(ordered) - 1, min(_POINTS, len(ordered))).astype(np.int64)])
        share = np.searchsorted(ordered, sizes, side="right") / len(ordered)
        parts.append(pl.DataFrame({"x": sizes.astype(np.float64), "system": name, "value": share}))
    return pl.concat(parts)


def _gaps(panel: SplitNumbers) -> pl.DataFrame:
    """Return kNN with 1 to 100 neighbours, with items that it cannot score left out or filled in."""
    parts = []
    for fill in work.FILLS:
        covered = _spread("gaps", fill, "Coverage@10")(panel).select("x", coverage="value")
        parts.append(_spread("gaps", fill, work.NDCG)(panel).join(covered, on="x").with_columns(fill=pl.lit(fill)))
    return pl.concat(parts).with_columns(k=pl.col("x").cast(pl.Int64)).drop("x")


_OVERLAPS = {
    f"{work.KNN} ({way}), {what}": (setting, what)
    for setting, way in (("as printed", "k = 10"), ("liked items", "liked items"))
    for what in ("full", "reduced", "User-coverage")
}


def _overlaps(panel: SplitNumbers) -> pl.DataFrame:
    """Return kNN by the minimum number of shared items, over all users and over covered ones, and MF."""
    parts = [_spread("overlap", *where)(panel).with_columns(system=pl.lit(name)) for name, where in _OVERLAPS.items()]
    mf = _spread("ratio", "full", work.PRECISION)(panel).filter(x=work.START, system=work.MF)
    return pl.concat([*parts, parts[0].select("x").join(mf.drop("x"), how="cross").select(parts[0].columns)])
