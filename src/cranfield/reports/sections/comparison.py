"""The verdict in sentences, and every pair of systems: a matrix of p-values, differences or effect sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._numbers import count_text
from cranfield._terminal import shown
from cranfield.comparisons import Comparison
from cranfield.facts import Fact, sentences
from cranfield.facts import experiment as experiment_facts
from cranfield.measures import Averaging, Scores
from cranfield.reports import figures
from cranfield.reports.html_page import Section, on_page
from cranfield.reports.markup import downloads, figure, notes, paragraphs, text
from cranfield.reports.tables import best_first

_MOST_METRICS = 6


@on_page(10, "scores", "comparison", "averaging")
def verdict(scores: Scores, comparison: Comparison | None, averaging: Averaging) -> Section:
    """Return the verdict: that of the comparison if there is one, otherwise who has the best averages."""
    if comparison is None:
        every = untested(scores, scores.average(averaging))
        said, tested = every[:_MOST_METRICS], "not tested for significance"
    else:
        every, said = comparison.facts(), comparison.facts(_MOST_METRICS)
        tested = f"{comparison.caption}. In brackets: {comparison.intervals}"
    others = [sentence for sentence in sentences(every) if sentence not in sentences(said)]
    folded = f"<details><summary>The other metrics</summary>{paragraphs(others)}</details>" if others else ""
    whom = (
        f"{count_text(len(scores.systems), 'system')} on {scores.whom} by {count_text(len(scores.metrics), 'metric')}"
    )
    markup = f'<div class="verdict">{paragraphs(said)}{folded}</div>' + paragraphs([f"{whom}; {tested}."])
    return Section("verdict", "The verdict", markup)


def untested(scores: Scores, means: NDArray[np.float64]) -> list[Fact]:
    """Return the best average of each metric; or, if there is none, why nothing can be concluded from these scores."""
    nothing_relevant = scores.nothing_relevant
    if scores.n_lists == 0:
        return [experiment_facts.Inconclusive("no users")]
    if np.isnan(means).all():
        return [experiment_facts.Inconclusive("no values", nothing_relevant=nothing_relevant)]
    if len(scores.systems) == 1:
        return [experiment_facts.Inconclusive("one system", scores.systems[0])]
    if all(len({float(value) for value in means[:, m]}) == 1 for m in range(len(scores.metrics))):
        return [experiment_facts.Inconclusive("equal averages")]
    said: list[Fact] = []
    for m, metric in enumerate(scores.metrics):
        best = best_first(means[:, m], scores.lower_is_better[m])[0]
        mean = None if np.isnan(means[best, m]) else float(means[best, m])
        said.append(experiment_facts.UntestedAverage(metric, scores.systems[best], mean, True, nothing_relevant))
    return said


# Maximum systems in a table that a browser shows quickly; and maximum pairs in a file that stays small.
_MOST_SYSTEMS, _MOST_PAIRS = 40, 20_000
# What the matrix can show of a pair, in the order in which the page's script reads the numbers.
_NUMBERS = (
    "p_corrected",
    "effect",
    *("difference", "lower", "upper"),
    *("relative", "relative_lower", "relative_upper"),
)


@on_page(30, "comparison")
def pairs(comparison: Comparison | None, *, name: str = "pairs", title: str = "Pair by pair") -> Section | None:
    """Return the matrix of all pairs with a choice of metric, and a figure of wins and losses of the best system."""
    if comparison is None:
        return None
    rows = comparison.rows
    said: list[object] = [] if rows["significant"].any() else [experiment_facts.Inconclusive("no significant pair")]
    kept = min(len(comparison.systems), _MOST_SYSTEMS)
    if kept < len(comparison.systems):
        said.append(f"The matrix shows the best {kept} of {len(comparison.systems)} systems.")
    tables = {name: rows}
    if len(rows) > _MOST_PAIRS:
        tables = {name: _of_leaders(comparison)}
        said.append(
            f"There are {len(rows):,} pairs and metrics; the table to download holds only those with the best system "
            "of each metric. Comparison.frame() returns all of them."
        )
    options = "".join(f'<option value="{m}">{text(metric)}</option>' for m, metric in enumerate(comparison.metrics))
    shows = "".join(
        f'<option value="{value}">{label}</option>'
        for value, label in (
            ("p", "p-value" if comparison.correction == "none" else "p-value, corrected for all pairs"),
            ("difference", "difference, with its interval"),
            ("relative", "relative difference, with its interval"),
            ("effect", "effect size d_z"),
        )
    )
    markup = (
        paragraphs(said)
        + f'<p class="choices"><label>Metric <select id="pairs-metric">{options}</select></label>'
        + f'<label>Show <select id="pairs-show">{shows}</select></label></p>'
        + '<div class="scroll" id="pairs-root" tabindex="0" role="region" aria-label="Matrix of pairs"></div>'
        + "<noscript><p>The matrix needs the script of this page.</p></noscript>"
        + '<p class="key"><i class="better"></i>the row is significantly better <i class="worse"></i>the row is '
        + f"significantly worse. {text(comparison.caption)}. Differences come with {text(comparison.intervals)}.</p>"
        + _wins(comparison, name)
        + notes(comparison.notes)
        + downloads(*tables)
    )
    data = {
        "systems": list(map(shown, comparison.systems)),
        "metrics": [_matrix(comparison, m, kept) for m in range(len(comparison.metrics))],
    }
    return Section(name, title, markup, tables=tables, data=data)


def _order(comparison: Comparison, m: int) -> list[int]:
    return best_first(comparison.averages[:, m], comparison.lower_is_better[m])


def _wins(comparison: Comparison, name: str) -> str:
    if not len(comparison.rows):
        return ""
    metric = comparison.metrics[0]
    chart = figures.wins(comparison, metric)
    best = comparison.baseline or comparison.systems[_order(comparison, 0)[0]]
    said = f"Share of the users for whom {best} has a better, an equal and a worse {metric} than each other system."
    return figure(f"{name}-wins", chart, said)


def _matrix(comparison: Comparison, m: int, kept: int) -> dict[str, Any]:
    """Return the pairs of a metric among its best systems: a, b, the numbers of `_NUMBERS`, and the winner or null."""
    order = _order(comparison, m)[:kept]
    place = {system: s for s, system in enumerate(comparison.systems)}
    kept_ones = set(order)
    columns = ("system_a", "system_b", "better", *_NUMBERS)
    cells = []
    for a, b, better, *numbers in comparison.of_metric(comparison.metrics[m]).select(columns).iter_rows():
        if place[a] in kept_ones and place[b] in kept_ones:
            shortened = [_short(number) for number in numbers]
            cells.append([place[a], place[b], *shortened, None if better is None else place[better]])
    return {"name": comparison.metrics[m], "order": order, "pairs": cells}


def _short(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")


def _of_leaders(comparison: Comparison) -> pl.DataFrame:
    leaders = {metric: comparison.systems[_order(comparison, m)[0]] for m, metric in enumerate(comparison.metrics)}
    leader = pl.col("metric").replace_strict(leaders, return_dtype=pl.String)
    return comparison.rows.filter((pl.col("system_a") == leader) | (pl.col("system_b") == leader))
