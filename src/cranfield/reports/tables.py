"""The leaderboard as a table for a paper: LaTeX (booktabs), Markdown, or a tidy frame for CSV."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._table import Table
from cranfield.comparisons import Comparison
from cranfield.measures import LEVEL, PLAIN, Averaging, Scores
from cranfield.metrics import properties_of


def best_first(values: NDArray[np.float64], lower_is_better: bool = False) -> list[int]:
    """Return the indices of values from best to worst; equal values keep their order, NaN comes last."""
    return [int(place) for place in np.argsort(values if lower_is_better else -values, kind="stable")]


def leaderboard_table(scores: Scores, comparison: Comparison | None = None, *, averaging: Averaging = PLAIN) -> Table:
    """Return systems × metrics, best system first: best in bold, second underlined, what is significant marked.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "y"], [5, 2, 4])
    >>> runs = {"mine": {"ann": ["x", "z"], "bob": ["z", "y"]}, "other": {"ann": ["z", "y"], "bob": ["y"]}}
    >>> scores = cf.measure(runs, test, ["P@2", "RR"], threshold=4)
    >>> print(leaderboard_table(scores, cf.compare(scores)).markdown().splitlines()[4])
    | mine | **0.5000**<sup>a</sup> | **0.7500**<sup>a</sup> | 100.0% | 50.0% |
    """
    table = scores.table(averaging)
    return table if comparison is None else comparison.marked(table)


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
    ranked = pl.col("metric").is_in([metric for metric in scores.metrics if properties_of(metric).has_winners])
    frame = frame.with_columns(place=pl.when(ranked).then(equal.rank("min").over("metric")).cast(pl.Int64))
    marks = {} if comparison is None else comparison.marks()
    if not marks:
        return frame
    of_rows = [marks.get(key) for key in frame.select("metric", "system").iter_rows()]
    return frame.with_columns(letters=pl.Series(of_rows, dtype=pl.String))
