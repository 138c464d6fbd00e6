"""The answer, and every pair of systems: a matrix of p-values, differences or effect sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from cranfield._terminal import shown
from cranfield.comparisons import Comparison
from cranfield.facts import comparison as comparison_facts
from cranfield.facts import p_equals, sentences
from cranfield.measures import Averaging, Scores
from cranfield.metrics import metric_label
from cranfield.reports.html_page import Section, on_page
from cranfield.reports.markup import Column, Value, downloads, figure, folded, notes, paragraphs, sortable, table, text
from cranfield.reports.tables import best_first

_MOST_WARNINGS = 3


@on_page(10, "scores", "comparison", "averaging")
def answer(scores: Scores, comparison: Comparison | None, averaging: Averaging) -> Section:
    """Return the answer: a sentence on the main metric, the differences as a figure, and at most three warnings."""
    title = "The answer" if comparison is not None else "Who has the best averages?"
    if comparison is None or comparison.main is None:
        facts = scores.facts(averaging) if comparison is None else comparison.facts()
        return Section("answer", title, _answered(str(facts[0])) + folded("By the other metrics", notes(facts[1:])))
    said = comparison.gate.facts()[0].brief if comparison.gate is not None else comparison.main.answer
    doubts = comparison.doubts
    folds = {
        "By the other metrics": _other_metrics(comparison),
        "How to write it": paragraphs([comparison.paragraph]),
        "What to doubt": notes(sentences(doubts))
        or paragraphs(["Nothing in the inputs and the tests speaks against it."]),
    }
    html = _answered(said) + differences(comparison, "answer")
    html += warnings([doubt.brief for doubt in doubts if not isinstance(doubt, comparison_facts.Spread)])
    html += "".join(folded(name, inside) for name, inside in folds.items())
    return Section("answer", title, html, tables={} if comparison.baseline is None else {"pairs": comparison.rows})


def _answered(said: str) -> str:
    return f'<p class="answer">{text(said)}</p>'


def warnings(said: Sequence[str]) -> str:
    """Return what changes the answer, at most three of it."""
    lines = "".join(f"<li>{text(warning)}</li>" for warning in said[:_MOST_WARNINGS])
    return f'<ul class="warnings">{lines}</ul>' if lines else ""


def differences(comparison: Comparison, name: str) -> str:
    """Return the figure of the differences from the baseline, or from the best system, by the main metric."""
    main = comparison.main
    if main is None or main.is_equal or main.role == "description":
        return ""
    hidden = len(main.against) - comparison.most_drawn
    more = f"; {hidden} more systems are in the leaderboard" if hidden > 0 else ""
    judged = " and told by the judgments" if "untold" in main.against.values() else ""
    caption = f"{main.name} against {main.reference}; filled: significant{judged}; {comparison.intervals}{more}."
    return figure(f"{name}-differences", comparison.plot(), caption)


def _other_metrics(comparison: Comparison) -> str:
    """Return what the other metrics say: a sentence, and each system against the reference of the main metric."""
    main, standings = comparison.main, comparison.standings
    assert main is not None
    kinds = (comparison_facts.OtherMetrics, comparison_facts.Unmeasured)
    said = paragraphs(fact for fact in comparison.facts() if isinstance(fact, kinds))
    pairs = ""
    if comparison.baseline is not None:  # then there is no matrix of all pairs
        pairs = sortable(comparison.table(), names=3) + notes(comparison.notes) + downloads("pairs")
    if len(standings) < 2:
        return said + pairs
    columns = [Column("metric", numeric=False), *(Column(system) for system in main.against)]
    rows = []
    for standing in standings:
        cells = [_against(standing, system, main.reference) for system in main.against]
        rows.append([Value(text(standing.name), standing.name), *cells])
    return said + table(f"Differences from {main.reference}; significant ones in colour", columns, rows) + pairs


def _against(standing: comparison_facts.MetricStanding, system: str, reference: str) -> Value:
    if not {system, reference} <= set(standing.means):
        return Value("–")
    lead = standing.pair(system, reference)
    better = lead.row["better"]
    kind = "" if better is None else "better" if better == system else "worse"
    return Value(f"{text(lead.signed)}<small>p {text(p_equals(lead.row['p_corrected']))}</small>", lead.gain, kind)


# Maximum systems in a table that a browser shows quickly; and maximum pairs in a file that stays small.
_MOST_SYSTEMS, _MOST_PAIRS = 40, 20_000
# What the matrix can show of a pair, in the order in which the page's script reads the numbers.
_NUMBERS = (
    "p_corrected",
    "effect",
    *("difference", "lower", "upper"),
    *("relative", "relative_lower", "relative_upper"),
)


_PAIRS = "Which systems differ?"


@on_page(30, "comparison")
def pairs(comparison: Comparison | None, *, name: str = "pairs", title: str = _PAIRS) -> Section | None:
    """Return the matrix of all pairs with a choice of metric; None with a baseline, whose pairs are in the answer."""
    if comparison is None or comparison.baseline is not None:
        return None
    rows = comparison.rows
    of_main = comparison.of_metric(comparison.metrics[0] if comparison.main is None else comparison.main.metric)
    differing = int(of_main["significant"].sum())
    first = of_main["metric"][0] if len(of_main) else comparison.metrics[0]
    said: list[object] = [comparison_facts.PairsThatDiffer(first, differing, len(of_main))]
    kept = min(len(comparison.systems), _MOST_SYSTEMS)
    if kept < len(comparison.systems):
        said.append(f"The matrix shows the best {kept} of {len(comparison.systems)} systems.")
    tables = {name: rows}
    if len(rows) > _MOST_PAIRS:
        tables = {name: _of_leaders(comparison)}
        said.append(
            f"There are {len(rows):,} pairs and metrics; the table to download holds only those with the best system "
            "of each metric. Comparison.frame(detail=True) returns all of them."
        )
    options = "".join(
        f'<option value="{m}">{text(metric_label(metric))}</option>' for m, metric in enumerate(comparison.metrics)
    )
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
        + "significantly worse.</p>"
    )
    more = paragraphs([f"{comparison.caption}. Differences come with {comparison.intervals}."])
    more += notes(comparison.notes) + downloads(*tables)
    data = {
        "systems": list(map(shown, comparison.systems)),
        "metrics": [_matrix(comparison, m, kept) for m in range(len(comparison.metrics))],
    }
    return Section(name, title, markup, more, tables, data=data)


def _order(comparison: Comparison, m: int) -> list[int]:
    return best_first(comparison.averages[:, m], comparison.lower_is_better[m])


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
