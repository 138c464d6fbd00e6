"""The decision explorer: the reader takes the decisions, and sees the order change."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cranfield.reports.explore import Explored
from cranfield.reports.markup import paragraphs
from cranfield.reports.section import Section


def explorer(explored: Explored, start: int, truth: Mapping[str, float] | None = None) -> Section:
    """Return the explorer, which begins at one of the combinations.

    Parameters
    ----------
    explored
        The numbers.
    start
        The row of the combination that this page reports.
    truth
        The true values of the systems, higher is better, where they are known.
    """
    told = [
        "Every number here was computed beforehand from the same recommendations: take another decision and see what "
        "it does to the order. Arrows count places against the decisions of this page. Blue systems are the best one "
        "and those not significantly worse (Student's paired t-test against the best, Holm's correction, 5\u00a0%). "
        "These p-values are of the pairs with the best system alone; the matrix above has those of the chosen test."
    ]
    if explored.left_out:
        told.append(f"To keep this page small it leaves out {explored.left_out}.")
    data = {**explored.as_dict(), "start": start}
    if truth is not None:
        data["truth"] = [float(np.float32(truth[system])) for system in explored.systems]
    markup = paragraphs(told) + '<div id="explorer-root" class="explorer"></div>'
    markup += "<noscript><p>The explorer needs the script of this page.</p></noscript>"
    return Section("explorer", "Take the decisions yourself", markup, data=data)
