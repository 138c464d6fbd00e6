"""The leaderboard (averages, intervals, coverage, unjudged items), also with full and condensed lists side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._figures import MOST_SYSTEMS
from cranfield._numbers import number_text
from cranfield.comparisons import Comparison
from cranfield.facts import experiment as experiment_facts
from cranfield.facts import sentences
from cranfield.measures import LEVEL, PLAIN, Averaging, Scores
from cranfield.metrics import deepest, kendall_tau_b, metric_label
from cranfield.reports import figures
from cranfield.reports.html_page import Reported, Section, on_page
from cranfield.reports.markup import Column, Value, downloads, figure, notes, paragraphs, percent, table, text
from cranfield.reports.tables import best_first, leaderboard_frame, leaderboard_table

_METRICS_SHOWN = 4
_KEY = "The best value of a metric is blue and bold, the second underlined."

_PAIRED = (
    '<p class="key">Tests are paired by user: systems with different letters can differ significantly although the '
    "intervals of their averages overlap, because each interval is for its system alone.</p>"
)


@on_page(20, "scores", "comparison", "averaging", "level", "data")
def leaderboard(
    scores: Scores,
    comparison: Comparison | None = None,
    *,
    averaging: Averaging = PLAIN,
    level: float = LEVEL,
    name: str = "leaderboard",
    title: str = "How do all systems score?",
    data: str = "",
) -> Section:
    """Return the table of all systems and metrics, and a figure of the first; ``data`` is the name for captions."""
    frame = leaderboard_frame(scores, comparison, averaging=averaging, level=level)
    rows = {(row["system"], row["metric"]): row for row in frame.iter_rows(named=True)}
    marks, hidden = {} if comparison is None else comparison.marks(), scores.metrics[_METRICS_SHOWN:]
    body = [
        [
            Value(text(system), system),
            *(_average(rows[system, metric], marks.get((metric, system), "")) for metric in scores.metrics),
            *_shares(rows[system, deepest(scores.metrics)[0]]),
        ]
        for system in sorted(scores.systems, key=lambda system: _place(rows[system, scores.metrics[0]]))
    ]
    printed = leaderboard_table(scores, comparison, averaging=averaging)
    columns = _columns(scores)
    meanings = [f"{column.title}: {column.hint}" for column in columns if column.hint and column.group is None]
    legend = f'<p class="key">{text("; ".join(meanings))}.</p>'
    key = f" {comparison.key_to_marks} ({comparison.tested})" if marks and comparison is not None else ""
    shown = table(f"Averages with {100 * level:g} % intervals.{key}", columns, body, hidden=hidden)
    drawn = ""
    if len(scores.systems) > 1:
        chart = scores.plot(averaging=averaging, level=level)
        most, systems = MOST_SYSTEMS, len(scores.systems)
        cut = f"; the best {most} of {systems}" if systems > most else ""
        said = f"{scores.metrics[0]} with its {100 * level:g} % interval, best first{cut}."
        drawn = figure(f"{name}-averages", chart, said)
    files = {f"{name}.tex": printed.titled(data, name).latex(), f"{name}.md": printed.markdown()}
    paired = _PAIRED if marks and comparison is not None and _overlaps(rows, comparison) else ""
    markup = chooser(scores.metrics, hidden) + shown + f'<p class="key">{_KEY}</p>'
    more = paragraphs([f"{scores.table(averaging).caption}."]) + drawn + legend + paired
    more += notes(sentences([*scores.notes, *scores.on_left_out(averaging)]))
    return Section(name, title, markup, more + downloads(name, files=files), {name: frame}, files)


def _overlaps(rows: Mapping[tuple[str, str], dict[str, Any]], comparison: Comparison) -> bool:
    """Return a note if the intervals of two systems overlap although they differ significantly."""
    for metric, *pair in comparison.rows.filter("significant").select("metric", "system_a", "system_b").iter_rows():
        ends = [(rows[system, metric]["lower"], rows[system, metric]["upper"]) for system in pair]
        if all(None not in interval for interval in ends) and ends[0][0] <= ends[1][1] and ends[1][0] <= ends[0][1]:
            return True
    return False


def _columns(scores: Scores) -> list[Column]:
    depth = deepest(scores.metrics)[1]
    nonexistent = Column(f"nonexistent{depth}", hint="share of items outside the catalogue")
    return [
        Column("system", numeric=False),
        *(
            Column(metric_label(metric), group=metric, hint="lower is better" if lower else "")
            for metric, lower in zip(scores.metrics, scores.lower_is_better)
        ),
        Column("users served", hint="share of the users who get a list"),
        Column(f"items in {scores.catalogue}", hint="share of these items that is recommended to anyone"),
        Column(f"unjudged{depth}", hint="share of recommended items without a test rating"),
        *([] if scores.nonexistent is None else [nonexistent]),
    ]


def _shares(row: dict[str, Any]) -> list[Value]:
    """Return the shares shown next to a system's averages, from the row of the deepest metric."""
    names = ("coverage", "item_coverage", "unjudged", *(["nonexistent"] if "nonexistent" in row else []))
    shares = [None if row[name] is None or np.isnan(row[name]) else row[name] for name in names]
    return [Value(percent(share), share) for share in shares]


def _place(row: dict[str, Any]) -> float:
    """Return the rank of a row; a system without an average is last."""
    return np.inf if row["place"] is None else float(row["place"])


def _average(row: dict[str, Any], letters: str) -> Value:
    value = row["mean"]
    raised = f"<sup>{text(letters)}</sup>" if letters else ""
    interval = ""
    if row["lower"] is not None and row["upper"] is not None and row["lower"] == row["lower"]:
        interval = f"<small>{number_text(row['lower'])} – {number_text(row['upper'])}</small>"
    if row["spread"] is not None:
        interval += f"<small>sd between repetitions {number_text(row['spread'])}</small>"
    kind = {1: "best", 2: "second"}.get(row["place"], "")
    return Value(f'<span class="average">{number_text(value)}</span>{raised}{interval}', value, kind)


def chooser(metrics: tuple[str, ...], hidden: tuple[str, ...]) -> str:
    """Return checkboxes with which the reader chooses the metrics in the section's tables."""
    if len(metrics) < 2:
        return ""
    boxes = "".join(
        f'<label><input type="checkbox" data-shows="{text(metric)}"{"" if metric in hidden else " checked"}> '
        f"{text(metric_label(metric))}</label>"
        for metric in metrics
    )
    return f'<fieldset class="choices"><legend>Metrics shown</legend>{boxes}</fieldset>'


_WHAT_EACH_ANSWERS = (
    "Full lists measure how much of what is shown is known to be relevant: an item without a test rating counts as not "
    "relevant, which favours systems that recommend what many people have rated. Condensed lists leave such items out "
    "and measure how well a system orders the items with a test rating; they say nothing about the rest of the list. "
    "Cañamares, Castells and Moffat (2020) ask for both. An order that holds for both does not depend on the items "
    "that nobody rated."
)
_KINDS = ("full", "condensed")
_METRICS_TWICE = 3  # number of metrics that fit on a printed page, twice


def full_and_condensed(full: Scores, condensed: Scores, averaging: Averaging = PLAIN) -> Section:
    """Return the averages and ranks of all systems with full and with condensed lists, for each metric."""
    means = [scores.average(averaging) for scores in (full, condensed)]
    places = [_places(values, full.lower_is_better) for values in means]
    columns = [Column("system", numeric=False)]
    columns += [Column(f"{metric}, {kind}", group=metric) for metric in full.metrics for kind in _KINDS]
    first = best_first(means[0][:, 0], full.lower_is_better[0])
    cells = [[Value(text(full.systems[s]), full.systems[s]), *_row(s, means, places)] for s in first]
    hidden = full.metrics[_METRICS_TWICE:]
    shown = table("The same recommendations as full and as condensed lists", columns, cells, hidden=hidden)
    agree = [_order_by_lists(full, m, means, places) for m in range(len(full.metrics[:_METRICS_TWICE]))]
    frame = _frame(full, means, places)
    values = {f"{kind} lists": dict(zip(full.systems, _signed(mean[:, 0], full))) for kind, mean in zip(_KINDS, means)}
    values = {kind: {name: value for name, value in own.items() if np.isfinite(value)} for kind, own in values.items()}
    name = "full-and-condensed"
    markup = paragraphs(agree[:1])
    if all(values.values()):
        caption = f"The order of the systems by {full.metrics[0]}, best on top."
        markup += figure(name, figures.orders(values), caption)
    more = paragraphs([_WHAT_EACH_ANSWERS, *agree[1:]]) + chooser(full.metrics, hidden) + shown
    return Section(name, "Does it hold for condensed lists?", markup, more + downloads(name), {name: frame})


def _signed(means: NDArray[np.float64], scores: Scores) -> list[float]:
    """Return averages of the first metric so that higher is better."""
    return (-means if scores.lower_is_better[0] else means).tolist()


@on_page(25)
def _both_on_page(reported: Reported) -> Section | None:
    scores, other = reported.scores, other_lists(reported)
    if other is None or len(scores.systems) < 2 or scores.n_lists == 0:
        return None
    pair = (other, scores) if _kind(scores) == "condensed" else (scores, other)
    return full_and_condensed(*pair, reported.averaging)


def other_lists(reported: Reported) -> Scores | None:
    """Return the scores with the other kind of lists, if there are any: as given, or from the variants."""
    scores = reported.scores
    offered = reported.variants if reported.other_lists is None else [reported.other_lists]
    for variant in offered:
        alike = variant.systems == scores.systems and set(scores.metrics) <= set(variant.metrics)
        thresholds = {side.step.settings.get("threshold") for side in (variant, scores)}
        if alike and len(thresholds) == 1 and _kind(variant) != _kind(scores):
            return variant.only(scores.metrics)
    return None


def _kind(scores: Scores) -> str:
    return str(scores.step.settings.get("lists", "full"))


def _places(means: NDArray[np.float64], lower_is_better: Sequence[bool]) -> NDArray[np.float64]:
    """Return systems × metrics: the rank of each system, NaN if it has no average."""
    signed = np.where(np.array(lower_is_better), means, -means)
    better = (signed[None, :, :] < signed[:, None, :]).sum(axis=1)
    return np.where(np.isnan(means), np.nan, 1.0 + better)


def _row(s: int, means: Sequence[NDArray[np.float64]], places: Sequence[NDArray[np.float64]]) -> list[Value]:
    return [
        Value(
            f'<span class="average">{number_text(mean[s, m])}</span><small>place {number_text(place[s, m], 0)}</small>',
            float(mean[s, m]),
            "best" if place[s, m] == 1 else "",
        )
        for m in range(means[0].shape[1])
        for mean, place in zip(means, places)
    ]


def _order_by_lists(
    scores: Scores, m: int, means: Sequence[NDArray[np.float64]], places: Sequence[NDArray[np.float64]]
) -> experiment_facts.OrderByLists:
    """Return whether both kinds of lists agree on the best system, and how well they agree on the order."""
    known = ~np.isnan(means[0][:, m]) & ~np.isnan(means[1][:, m])
    if np.count_nonzero(known) < 2:
        return experiment_facts.OrderByLists(scores.metrics[m], (), (), None)
    full, condensed = (tuple(scores.systems[s] for s in np.flatnonzero(place[:, m] == 1)) for place in places)
    tau = kendall_tau_b(means[0][known, m], means[1][known, m])
    return experiment_facts.OrderByLists(scores.metrics[m], full, condensed, None if np.isnan(tau) else float(tau))


def _frame(scores: Scores, means: Sequence[NDArray[np.float64]], places: Sequence[NDArray[np.float64]]) -> pl.DataFrame:
    shape = len(scores.systems), len(scores.metrics)
    columns = {"system": np.repeat(scores.systems, shape[1]).tolist(), "metric": list(scores.metrics) * shape[0]}
    for kind, mean, place in zip(_KINDS, means, places):
        columns |= {kind: mean.reshape(-1).tolist(), f"place_{kind}": place.reshape(-1).tolist()}
    return pl.DataFrame(columns).with_columns(pl.selectors.starts_with("place").fill_nan(None).cast(pl.Int64))
