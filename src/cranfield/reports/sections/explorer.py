"""The decision explorer: the reader changes decisions and sees how the order changes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cranfield.measures import Averaging, Scores
from cranfield.reports.explore import DIMENSIONS, Explored, explore, label_of
from cranfield.reports.markup import paragraphs
from cranfield.reports.section import Reported, Section, on_page

_QUICK = "They come from a t-test with Bonferroni's correction."
_TESTED = (
    "Under the decisions of this page they are those of the table of pairs; under other decisions they come from a "
    "t-test with Bonferroni's correction, which is quick and a little stricter."
)


def explorer(explored: Explored, start: int, truth: Mapping[str, float] | None = None) -> Section:
    """Return the explorer, which starts at one of the combinations.

    Parameters
    ----------
    explored
        The numbers.
    start
        The row of the combination that the page reports.
    truth
        The true values of the systems, if known; higher is better.
    """
    facts = [
        "Every number here was computed beforehand from the same recommendations: take another decision and see what "
        "it does to the order. Arrows show how many places a system moves compared with the decisions of this page. "
        f"The best system and those not significantly worse (n.s., level {explored.alpha:g}) are blue. p-values "
        "compare each system with the best and are corrected for all pairs. "
        f"{_TESTED if explored.has_tests else _QUICK}"
    ]
    if explored.left_out:
        facts.append(f"To keep this page small it leaves out {explored.left_out}.")
    data = {**explored.as_dict(), "start": start}
    if truth is not None:
        data["truth"] = [float(np.float32(truth[system])) for system in explored.systems]
    markup = paragraphs(facts) + '<div id="explorer-root" class="explorer"></div>'
    markup += "<noscript><p>The explorer needs the script of this page.</p></noscript>"
    return Section("explorer", "Take the decisions yourself", markup, data=data)


@on_page(60)
def _on_page(reported: Reported) -> Section | None:
    scores = reported.scores
    if len(scores.systems) < 2 or scores.n_lists == 0:
        return None
    measured = [("test", part) for part in (scores, *reported.variants)]
    explored = explore(measured, averaging=reported.averaging)
    if reported.comparison is not None:
        explored = explored.with_comparison(reported.comparison, "test", scores, reported.averaging)
    return explorer(explored, _start(explored, scores, reported.averaging))


def _start(explored: Explored, scores: Scores, averaging: Averaging) -> int:
    """Return the row where the explorer starts: the first metric, averaged as in the leaderboard."""
    # If every user has a list, both policies are the same and only one is offered.
    known = averaging.coverage in explored.options[DIMENSIONS.index("coverage")]
    policy = averaging.coverage if known else "full"
    label = label_of("test", scores, scores.metrics[0], average=str(averaging.average), coverage=policy)
    return explored.find(**label)
