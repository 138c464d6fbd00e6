"""The leaderboard as a table for a paper: LaTeX (booktabs), Markdown, or a tidy frame for CSV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._table import Cell, Table
from cranfield.comparisons import Comparison
from cranfield.measures import LEVEL, PLAIN, Averaging, Scores
from cranfield.metrics import properties_of


def best_first(values: NDArray[np.float64], lower_is_better: bool = False) -> list[int]:
    """Return the indices of values from best to worst; equal values keep their order, NaN comes last."""
    return [int(place) for place in np.argsort(values if lower_is_better else -values, kind="stable")]


MOST_LETTERED = 40  # maximum number of systems with letters; for more, the letters are longer than what they explain


def leaderboard_table(scores: Scores, comparison: Comparison | None = None, *, averaging: Averaging = PLAIN) -> Table:
    """Return systems × metrics, best system first: best in bold, second underlined, letters, decisions in the caption.

    Systems that share a letter do not differ significantly by the comparison.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "y"], [5, 2, 4])
    >>> runs = {"mine": {"ann": ["x", "z"], "bob": ["z", "y"]}, "other": {"ann": ["z", "y"], "bob": ["y"]}}
    >>> scores = cf.measure(runs, test, ["P@2", "RR"], threshold=4)
    >>> print(leaderboard_table(scores, cf.compare(scores)).markdown().splitlines()[4])
    | mine | **0.5000**<sup>a</sup> | **0.7500**<sup>a</sup> | 100.0% | 50.0% |
    """
    table, letters = scores.table(averaging), letters_of(comparison)
    rows = [_lettered(row, scores.metrics, letters) for row in table.rows]
    caption, notes = table.caption, list(table.notes)
    if letters and comparison is not None:
        tested = [phrase for phrase in comparison.caption.split("; ") if phrase not in caption.split("; ")]
        caption = f"{caption}. Systems that share a letter do not differ significantly ({'; '.join(tested)})"
    return Table(table.header, rows, caption, notes)


def leaderboard_frame(
    scores: Scores, comparison: Comparison | None = None, *, averaging: Averaging = PLAIN, level: float = LEVEL
) -> pl.DataFrame:
    """Return `Scores.frame` with the rank of each system by each metric, and its letters if there are any."""
    frame = scores.frame(averaging, level=level)
    signed = pl.col("mean") * pl.col("metric").replace_strict(
        dict(zip(scores.metrics, (1 if lower else -1 for lower in averaging.taken_of(scores).lower_is_better))),
        return_dtype=pl.Float64,
    )
    # Round, because equal averages of different values may differ in their last digits.
    equal = signed.fill_nan(None).round_sig_figs(12)
    ranked = pl.col("metric").is_in([metric for metric in scores.metrics if not properties_of(metric).describes])
    frame = frame.with_columns(place=pl.when(ranked).then(equal.rank("min").over("metric")).cast(pl.Int64))
    letters = letters_of(comparison)
    if not letters:
        return frame
    marks = [letters.get(key) for key in frame.select("metric", "system").iter_rows()]
    return frame.with_columns(letters=pl.Series(marks, dtype=pl.String))


def letters_of(comparison: Comparison | None) -> dict[tuple[str, str], str]:
    """Return letters by metric and system; none without tests of all pairs, or for too many systems."""
    if comparison is None or comparison.baseline is not None or not 1 < len(comparison.systems) <= MOST_LETTERED:
        return {}
    return {(row["metric"], row["system"]): row["letters"] for row in comparison.letters().iter_rows(named=True)}


def _lettered(row: Any, metrics: tuple[str, ...], letters: Mapping[tuple[str, str], str]) -> list[str | Cell]:
    """Return a row of a table of scores (the system, one cell per metric, others) with its letters."""
    cells = [replace(cell, raised=letters.get((metric, row[0].text), "")) for metric, cell in zip(metrics, row[1:])]
    return [row[0], *cells, *row[1 + len(metrics) :]]
