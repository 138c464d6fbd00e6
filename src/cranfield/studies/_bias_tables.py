"""The tables of a study of biases: printed numbers next to this run, and the tests of Figure 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from cranfield._numbers import DASH
from cranfield._table import Cell, Table
from cranfield.studies._bias_numbers import BiasNumbers
from cranfield.studies._bias_panel import ABSENT, LASTFM, MOVIELENS
from cranfield.studies._bias_work import GROUPS, PERCENTILE, POPULARITY, PRECISION, RANDOM, SYSTEMS, U1R
from cranfield.studies._study import Exhibit


@dataclass(frozen=True)
class PrintedNumber:
    """A number that the text prints, and how it is computed here.

    Parameters
    ----------
    what
        What it is.
    where
        The section.
    values
        The printed values, by dataset.
    here
        Function that returns its value on a set of ratings; None if it is not measured there.
    """

    what: str
    where: str
    values: dict[str, str]
    here: Callable[[BiasNumbers], str | None]


def _most_liked(panel: BiasNumbers) -> str:
    data = panel.of.work.data
    liked = np.bincount(data.items[data.values >= panel.of.work.threshold], minlength=data.n_items).max()
    return f"{100 * liked / np.count_nonzero(data.user_counts):.1f}%"


def _popularity_in(design: str | None) -> Callable[[BiasNumbers], str]:
    """Return a function that gives the precision of popularity in a design; None for AR of Figure 2."""

    def here(panel: BiasNumbers) -> str:
        return f"{panel.design(design or panel.of.work.plain, PRECISION, POPULARITY).mean():.4f}"

    return here


def _uniform(key: str) -> Callable[[BiasNumbers], str]:
    def here(panel: BiasNumbers) -> str:
        return f"{panel.of.uniform[key]:,}"

    return here


def _skewed(system: str) -> Callable[[BiasNumbers], str | None]:
    def here(panel: BiasNumbers) -> str | None:
        rows = panel.rows("skew", setting="1R", system=system, x=0.0)
        return None if rows.is_empty() else f"{rows['value'].to_numpy().mean():.4f}"

    return here


PRINTED = [
    PrintedNumber("P@10 of popularity in AR", "3.3", {MOVIELENS: "0.08", LASTFM: "0.35"},
            _popularity_in(None)),
    PrintedNumber("|T|, the items of a uniform test", "6.2", {MOVIELENS: "1,703"}, _uniform("zeta")),
    PrintedNumber("η, test ratings of each of them", "6.2", {MOVIELENS: "118"}, _uniform("eta")),
    PrintedNumber("items of a percentile", "6.1", {MOVIELENS: "~370"},
            lambda panel: f"{np.count_nonzero(panel.of.work.data.item_counts) // GROUPS:,}"),
    PrintedNumber("users who like the most popular item", "5.2", {MOVIELENS: "32.7%", LASTFM: "73%"}, _most_liked),
    PrintedNumber("1RP@10 of popularity at α = 0", "5.2", {MOVIELENS: "0.0077"}, _skewed(POPULARITY)),
    PrintedNumber("1RP@10 of random at α = 0", "5.2", {MOVIELENS: "0.0100"}, _skewed(RANDOM)),
    PrintedNumber("1RP@10 of popularity in P1R", "6.3", {}, _popularity_in(PERCENTILE)),
    PrintedNumber("1RP@10 of popularity in U1R", "6.3", {}, _popularity_in(U1R)),
]  # fmt: skip
"""The numbers printed in the text; the figures print none."""


def printed_numbers(panels: Sequence[BiasNumbers]) -> Exhibit:
    """Return the numbers printed in the text next to those of this run."""
    header = ["Number", "Section", f"printed, {MOVIELENS}", f"printed, {LASTFM}", *(panel.name for panel in panels)]
    rows: list[list[str | Cell]] = [
        [
            line.what, line.where, line.values.get(MOVIELENS, DASH), line.values.get(LASTFM, DASH),
            *(line.here(panel) or DASH for panel in panels),
        ]
        for line in PRINTED
    ]  # fmt: skip
    caption = "Numbers that the text prints; the figures of the paper print none"
    frame = pl.DataFrame(rows, schema=header, orient="row")
    return Exhibit("numbers", caption, frame, Table(header, rows, caption, [*absent(panels), *_notes(panels)]))


def absent(panels: Sequence[BiasNumbers]) -> list[str]:
    """Return which datasets of the paper are not among the panels."""
    return [] if any(panel.of.known == LASTFM for panel in panels) else [f"not run: {ABSENT}"]


def _notes(panels: Sequence[BiasNumbers]) -> list[str]:
    """Return notes on each set of ratings."""
    notes = []
    for panel in panels:
        known = panel.of.known
        notes.append(
            f"{panel.name} is {known} by its numbers"
            if known
            else f"{panel.name} is none of the known datasets: printed numbers are for orientation"
        )
        if panel.of.dropped:
            notes.append(
                f"{panel.name}: σ = ε = 0.2 has no solution with all items, so uniform tests leave out the "
                f"{panel.of.dropped:,} rarest"
            )
        if panel.of.work.divided is not None:
            notes.append(
                f"{panel.name} was already divided: there is one split, and uniform tests are drawn from both parts"
            )
        if panel.of.positive:
            notes.append(
                f"{panel.name}: there are no non-positive ratings, so bpref mostly measures coverage (section 7), "
                "and popularity is expected at random in U1R and UAR (section 6.2)"
            )
    return notes


def significance(panels: Sequence[BiasNumbers]) -> Exhibit:
    """Return the p-values of Wilcoxon's test for all pairs of Figure 2."""
    rows, tidy = [], []
    for panel in panels:
        tests = panel.rows("wilcoxon").group_by("setting", "system", maintain_order=True)
        summary = tests.agg(pl.col("value").mean(), median=pl.col("p").median(), largest=pl.col("p").max())
        for setting, pair, difference, median, largest in summary.iter_rows():
            rows.append([panel.name, setting, pair, f"{difference:+.4f}", f"{median:.1e}", f"{largest:.1e}"])
            tidy.append((panel.name, setting, pair, difference, median, largest))
    header = ["Ratings", "Design", "Systems", "Difference", "p, median", "p, largest"]
    caption = "Figure 2: Wilcoxon's test of all pairs of systems over users, P@10, over the folds"
    above = sum(row[5] >= 0.001 for row in tidy)
    note = f"the paper states p well below 0.001 for all pairs; here {above} of {len(tidy)} reach 0.001 in some fold"
    frame = pl.DataFrame(
        tidy, schema=["panel", "design", "systems", "difference", "median_p", "largest_p"], orient="row"
    )
    return Exhibit("figure-02-significance", caption, frame, Table(header, rows, caption, [note]))


def design_table(panels: Sequence[BiasNumbers], designs: Sequence[str], metrics: Sequence[str]) -> Exhibit:
    """Return the score of every system in every design, averaged over splits."""
    header = ["Ratings", "Design", "Metric", *SYSTEMS]
    rows: list[list[str | Cell]] = []
    for panel in panels:
        for design in designs:
            for metric in metrics:
                values = [panel.design(design, metric, system) for system in SYSTEMS]
                if not len(values[0]):
                    continue
                means = [float(scores.mean()) for scores in values]
                cells = [Cell(f"{mean:.4f}", best=mean == max(means)) for mean in means]
                rows.append([panel.name, design, metric, *cells])
    caption = "Figures 2, 8 and 9 in numbers: means over splits"
    plain = [[cell.text if isinstance(cell, Cell) else cell for cell in row] for row in rows]
    return Exhibit("designs", caption, pl.DataFrame(plain, schema=header, orient="row"), Table(header, rows, caption))
