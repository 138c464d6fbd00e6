"""Tables that compare two systems: the results over the splits, and the printed numbers below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from cranfield._numbers import DASH
from cranfield._table import Cell, Table
from cranfield.studies._options_panel import Panel
from cranfield.studies._options_work import KNN, MF
from cranfield.studies._study import Exhibit

PrintedValues = tuple[float, float, float]


@dataclass(frozen=True)
class Line:
    """One comparison of the paper.

    Parameters
    ----------
    label
        What the first columns of the table say.
    part, setting, metric
        Where to find its numbers in a `Panel`.
    printed
        kNN, MF and p as printed, by dataset.
    """

    label: tuple[str, ...]
    part: str
    setting: str
    metric: str
    printed: Mapping[str, PrintedValues]


def comparison_table(
    name: str,
    caption: str,
    header: Sequence[str],
    lines: Iterable[Line],
    panels: Sequence[Panel],
    missing: Sequence[str],
    *notes: str,
) -> Exhibit:
    """Return a table with columns of kNN, MF and p for each panel, and for each of the paper's datasets not run."""
    lines = list(lines)
    columns = [(panel.name, panel, panel.printed) for panel in panels] + [(absent, None, absent) for absent in missing]
    rows: list[list[str | Cell]] = []
    tidy: list[dict[str, Any]] = []
    for line in lines:
        here: list[str | Cell] = [*line.label, "this run"]
        printed: list[str | Cell] = [*line.label, "printed"]
        for title, panel, dataset in columns:
            measured = None if panel is None else _found(panel, line)
            said = line.printed.get(dataset) if dataset else None
            here += ["not run"] * 3 if measured is None else _found_cells(measured)
            printed += _printed_cells(said)
            tidy += _tidy(header, line, title, measured, said)
        rows += [here, printed]
    titles = [f"{title}: {what}" for title, _, _ in columns for what in (KNN, MF, "p")]
    splits = max((panel.numbers["seed"].n_unique() for panel in panels), default=0)
    spread = (
        f"means over {splits} splits, with the lowest and the highest value; p is the median, by Student's paired test"
    )
    return Exhibit(name, caption, pl.DataFrame(tidy), Table([*header, "", *titles], rows, caption, [spread, *notes]))


_Found = dict[str, np.ndarray[Any, np.dtype[np.float64]]]


def _found(panel: Panel, line: Line) -> _Found:
    values = {system: panel.values(line.part, line.setting, line.metric, system)[:, 0] for system in (KNN, MF)}
    return {**values, "p": panel.values(line.part, line.setting, line.metric, KNN, "p")[:, 0]}


def _found_cells(measured: _Found) -> list[Cell]:
    knn, mf = measured[KNN].mean(), measured[MF].mean()
    cells = [
        Cell(f"{values.mean():.3f} ({values.min():.3f} to {values.max():.3f})", best=best)
        for values, best in ((measured[KNN], knn > mf), (measured[MF], mf > knn))
    ]
    p = measured["p"]
    return [*cells, Cell(f"{_p(np.median(p))} ({_p(p.min())} to {_p(p.max())})")]


def _printed_cells(said: PrintedValues | None) -> list[Cell]:
    if said is None:
        return [Cell(DASH)] * 3
    knn, mf, p = said
    return [Cell(f"{knn:.3f}", best=knn > mf), Cell(f"{mf:.3f}", best=mf > knn), Cell(_p(p))]


def _p(value: float) -> str:
    """Return a p-value as the paper prints it: three decimals, and powers of ten below a thousandth."""
    return f"{value:.3f}" if value >= 0.001 or value == 0 else f"{value:.1e}"


def _tidy(
    header: Sequence[str], line: Line, dataset: str, measured: _Found | None, said: PrintedValues | None
) -> list[dict[str, Any]]:
    """Return the numbers of one comparison, one row each for kNN, MF and p."""
    label = dict(zip((column.lower() for column in header), line.label))
    rows = []
    for place, what in enumerate((KNN, MF, "p")):
        values = None if measured is None else measured[what]
        middle = None if values is None else float(np.median(values) if what == "p" else values.mean())
        rows.append({
            "dataset": dataset, **label, "spelling": line.metric, "what": what,
            "here": middle,
            "lowest": None if values is None else float(values.min()),
            "highest": None if values is None else float(values.max()),
            "splits": 0 if values is None else len(values),
            "printed": None if said is None else said[place],
        })  # fmt: skip
    return rows
