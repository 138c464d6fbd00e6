"""Full and condensed lists side by side: they answer two questions about the same recommendations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._numbers import listed, number_text
from cranfield.measures import PLAIN, Averaging, Scores
from cranfield.metrics import kendall_tau_b
from cranfield.reports.markup import Column, Value, downloads, paragraphs, table, text
from cranfield.reports.orders import best_first
from cranfield.reports.section import Reported, Section, on_page
from cranfield.reports.sections.leaderboard import chooser

_WHAT_EACH_ANSWERS = (
    "Full lists measure how much of what is shown is known to be relevant: an item without a test rating counts as not "
    "relevant, which favours systems that recommend what many people have rated. Condensed lists leave such items out "
    "and measure how well a system orders the items with a test rating; they say nothing about the rest of the list. "
    "Cañamares, Castells and Moffat (2020) ask for both. An order that holds for both does not depend on the items "
    "that nobody rated."
)
_KINDS = ("full", "condensed")
# Number of metrics that fit on a printed page, twice.
_SHOWN = 3


def full_and_condensed(full: Scores, condensed: Scores, averaging: Averaging = PLAIN) -> Section:
    """Return the averages and ranks of all systems with full and with condensed lists, for each metric."""
    means = [scores.average(averaging) for scores in (full, condensed)]
    places = [_places(values, full.lower_is_better) for values in means]
    columns = [Column("system", numeric=False)]
    columns += [Column(f"{metric}, {kind}", group=metric) for metric in full.metrics for kind in _KINDS]
    first = best_first(means[0][:, 0], full.lower_is_better[0])
    cells = [[Value(text(full.systems[s]), full.systems[s]), *_row(s, means, places)] for s in first]
    hidden = full.metrics[_SHOWN:]
    shown = table("The same recommendations as full and as condensed lists", columns, cells, hidden=hidden)
    sentences = [_sentence(full, m, means, places) for m in range(len(full.metrics))]
    frame = _frame(full, means, places)
    markup = paragraphs([_WHAT_EACH_ANSWERS, *sentences[:_SHOWN]]) + chooser(full.metrics, hidden) + shown
    return Section(
        "full-and-condensed",
        "Full and condensed lists",
        markup + downloads("full-and-condensed"),
        tables={"full-and-condensed": frame},
    )


@on_page(25)
def _on_page(reported: Reported) -> Section | None:
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
        if alike and _threshold(variant) == _threshold(scores) and _kind(variant) != _kind(scores):
            return variant.only(scores.metrics)
    return None


def _kind(scores: Scores) -> str:
    return str(scores.step.settings.get("lists", "full"))


def _threshold(scores: Scores) -> float | None:
    return scores.step.settings.get("threshold")


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


def _sentence(
    scores: Scores, m: int, means: Sequence[NDArray[np.float64]], places: Sequence[NDArray[np.float64]]
) -> str:
    """Return whether both kinds of lists agree on the best system, and how well they agree on the order."""
    metric = scores.metrics[m]
    known = ~np.isnan(means[0][:, m]) & ~np.isnan(means[1][:, m])
    if np.count_nonzero(known) < 2:
        return f"{metric}: there is nothing to compare."
    first = [[scores.systems[s] for s in np.flatnonzero(place[:, m] == 1)] for place in places]
    full, condensed = (f"{listed(names)} {'is' if len(names) == 1 else 'are'} first" for names in first)
    leaders = (
        f"{full} with both" if first[0] == first[1] else f"{full} with full lists, {condensed} with condensed ones"
    )
    tau = kendall_tau_b(means[0][known, m], means[1][known, m])
    if np.isnan(tau):
        return (
            f"{metric}: {leaders}; there is no order to correlate, because all systems are equal with one kind of list."
        )
    return f"{metric}: {leaders}; Kendall's tau between the two orders is {number_text(tau, 2)}."


def _frame(scores: Scores, means: Sequence[NDArray[np.float64]], places: Sequence[NDArray[np.float64]]) -> pl.DataFrame:
    shape = len(scores.systems), len(scores.metrics)
    columns = {
        "system": np.repeat(scores.systems, shape[1]).tolist(),
        "metric": list(scores.metrics) * shape[0],
    }
    for kind, mean, place in zip(_KINDS, means, places):
        columns |= {kind: mean.reshape(-1).tolist(), f"place_{kind}": place.reshape(-1).tolist()}
    return pl.DataFrame(columns).with_columns(pl.selectors.starts_with("place").fill_nan(None).cast(pl.Int64))
