"""Whether the advice on metrics is the same under each split and target design."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cranfield._errors import CranfieldError
from cranfield._terminal import progress, unheard
from cranfield.assessments import Advice, Assessment, assess_folds
from cranfield.audits.advice import ADVICE_KINDS
from cranfield.audits.children import Children
from cranfield.audits.crossing import Crossing
from cranfield.audits.menu import question_text
from cranfield.experiments import Experiment, Pipeline, decided, lists_of, options_of, split_of
from cranfield.metrics import kendall_tau_b

DESIGNS = ("split", "lists", "candidates", "relevant", "nonrelevant", "unrated", "keep_seen")
"""The decisions about the split and about which items a list may hold."""


def advice_rows(children: Children, experiment: Experiment) -> list[dict[str, Any]]:
    """Assess the metrics of an experiment under each split and target design, with all else as at the starting point.

    Returns one row per set-up, metric and average, as `Advice.frame` ranks them, with tau-b between the scores of the
    metrics and those under the starting point; a set-up that cannot be assessed has one row with the reason. There are
    no rows if none of these decisions is opened.
    """
    rows, first = [], None
    for setup, advice in _advised(children, experiment):
        if isinstance(advice, str):
            rows.append({**dict.fromkeys(ADVICE_KINDS), "setup": setup, "reason": advice})
            continue
        frame = advice.frame().select("metric", "average", "rank", "score", "lower", "upper", "first")
        scores = {(row["metric"], row["average"]): row["score"] or 0.0 for row in frame.iter_rows(named=True)}
        first = scores if first is None else first
        tau = kendall_tau_b([first[name] for name in scores], list(scores.values()))
        shared = {"tau": None if np.isnan(tau) else tau, "clear": not advice.unclear, "reason": None}
        rows += [{"setup": setup, **row, **shared} for row in frame.iter_rows(named=True)]
    return rows


def _advised(children: Children, experiment: Experiment) -> Iterator[tuple[str, Advice | str]]:
    """Yield each set-up in words with its advice, or the reason why there is none."""
    designs = designs_of(children.crossing)
    with progress("Assessing", total=len(designs), unit="set-ups") as bar:
        for number, words in designs.items():
            try:
                with unheard():  # only the time left for all set-ups is shown
                    advice: Advice | str = _assessed(children, number, experiment).advice()
            except CranfieldError as error:
                advice = str(error)
            yield question_text(words), advice
            bar.advance()


def designs_of(crossing: Crossing) -> dict[int, dict[str, str]]:
    """Return the starting point and the set-ups that differ from it only in split and target design."""
    names = crossing.menu.names
    varied = [place for place, name in enumerate(names) if name in DESIGNS]
    if not varied:
        return {}
    others = [place for place in range(len(names)) if place not in varied]
    start = crossing.cells[crossing.start]
    alike = np.flatnonzero((crossing.cells[:, others] == start[others]).all(axis=1))
    setups: dict[int, dict[str, str]] = {}
    for cell in (crossing.start, *alike.tolist()):
        options = crossing.cells[cell]
        words = {names[place]: crossing.menu.openings[place].opened.options[options[place]] for place in varied}
        setups.setdefault(crossing.universes[crossing.universe[cell]].setup, words)
    return setups


def _assessed(children: Children, number: int, experiment: Experiment) -> Assessment:
    if number in children.reasons:
        raise CranfieldError(children.reasons[number])
    line: Pipeline = children.lines[number]
    parts = line.units("part")
    measuring = decided(line, line.units("source")[0]).measuring
    assessment = assess_folds(
        [(lists_of(line, part), None) for part in parts],
        threshold=measuring.threshold,
        lists=measuring.lists,
        trains=[split_of(line, part).train for part in parts],
        seed=experiment.seed,
        **options_of(experiment),
    )
    line.forget()
    return assessment
