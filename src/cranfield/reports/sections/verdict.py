"""What was compared, and the verdict, in sentences."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cranfield._numbers import count_text
from cranfield.comparisons import Comparison
from cranfield.measures import Averaging, Scores
from cranfield.reports.markup import paragraphs
from cranfield.reports.orders import best_first
from cranfield.reports.section import Reported, Section, on_page

_MOST_METRICS = 6


def verdict(scores: Scores, comparison: Comparison | None, averaging: Averaging) -> Section:
    """Return the verdict: that of the comparison if there is one, otherwise who has the best averages."""
    if comparison is None:
        means = scores.average(averaging)
        every = _degenerate(scores, means) or _averages_only(scores, means)
        said, tested = every[:_MOST_METRICS], "not tested for significance"
    else:
        every, said = comparison.verdict, comparison.sentences(_MOST_METRICS)
        tested = f"{comparison.caption}. In brackets: {comparison.intervals}"
    others = [sentence for sentence in every if sentence not in said]
    folded = f"<details><summary>The other metrics</summary>{paragraphs(others)}</details>" if others else ""
    whom = (
        f"{count_text(len(scores.systems), 'system')} on {scores.whom} by {count_text(len(scores.metrics), 'metric')}"
    )
    markup = f'<div class="verdict">{paragraphs(said)}{folded}</div>' + paragraphs([f"{whom}; {tested}."])
    return Section("verdict", "The verdict", markup)


@on_page(10)
def _on_page(reported: Reported) -> Section:
    return verdict(reported.scores, reported.comparison, reported.averaging)


def _degenerate(scores: Scores, means: NDArray[np.float64]) -> list[str]:
    """Return why nothing can be concluded from these scores, if that is so."""
    if scores.n_lists == 0:
        return ["There are no users to measure, so nothing can be said."]
    if np.isnan(means).all():
        why = scores.nothing_relevant or "no system has a value by any metric"
        return [f"Nothing can be said: {why}."]
    if len(scores.systems) == 1:
        return [f"There is one system, {scores.systems[0]}, and nothing to compare it with."]
    if all(len({float(value) for value in means[:, m]}) == 1 for m in range(len(scores.metrics))):
        return ["All systems have the same averages, by every metric: these data do not tell them apart."]
    return []


def _averages_only(scores: Scores, means: NDArray[np.float64]) -> list[str]:
    said = []
    for m, metric in enumerate(scores.metrics):
        best = best_first(means[:, m], scores.lower_is_better[m])[0]
        if np.isnan(means[best, m]):
            why = scores.nothing_relevant or "it is undefined for every user"
            said.append(f"{metric}: nothing can be said, since {why}.")
            continue
        said.append(f"{metric}: {scores.systems[best]} has the best average ({means[best, m]:.4f}).")
    return said
