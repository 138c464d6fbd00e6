"""Popularity in an experiment's results: times random, and the order without popularity's advantage."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield._errors import CranfieldError
from cranfield._own_code import may_be_called
from cranfield.biases import bias, ratio_to_random
from cranfield.experiments import Decisions, Measured
from cranfield.measures import PLAIN
from cranfield.metrics import Metric
from cranfield.reports.section import Section
from cranfield.reports.sections.bias import bias_section
from cranfield.reports.sections.times_random import beside_random

_MOST = 10_000_000
"""Maximum total number of items in the lists; for more, use `cranfield bias`, because a report should not take long."""


def popularity_sections(parts: Sequence[Measured], decisions: Decisions, seed: int) -> list[Section]:
    """Return the sections for the first part of an experiment; none if its lists have another design.

    The existing lists are measured under neutral protocols, so nothing is trained again.
    """
    part = parts[0]
    metrics = _metrics(decisions)
    if not metrics or not _is_plain(decisions) or _items(part) > _MOST:
        return []
    options = {"test": part.test, "train": part.train, "threshold": decisions.threshold, "seed": seed}
    where = [] if len(parts) == 1 else [f"Measured on the first of {len(parts)} parts (folds, repetitions or windows)."]
    if decisions.averaging != PLAIN:
        where.append("Averages here are plain means over all users; those without a list count as 0.")
    try:
        times = ratio_to_random(part.judged, metrics=metrics, **options)
        answer = bias(runs=part.judged, metric=metrics[0], alpha=decisions.alpha, **options)
    except CranfieldError:  # for example, lists for users who are not test users
        return []
    return [bias_section(answer, " ".join(where)), beside_random(times)]


def _is_plain(decisions: Decisions) -> bool:
    """Whether lists hold all items that the user has not rated in training, relevant or not (AR, AI)."""
    ranking = decisions.ranking
    plain = (ranking.lists, ranking.candidates, ranking.relevant, ranking.keep_seen) == ("full", "all", "all", False)
    return plain and ranking.drawn is None and not decisions.averages_draws


def _metrics(decisions: Decisions) -> list[str]:
    """Return the metrics that have a cut-off and a closed form for a random ranking; the first is the main one."""
    wanted = [Metric.of(metric) for metric in decisions.metrics if may_be_called(metric)]
    return [str(metric) for metric in wanted if metric.definition.averages_ties and metric.cutoff is not None]


def _items(part: Measured) -> int:
    return sum(judged.ranked.n_entries for judged in part.judged if judged.ranked is not None)
