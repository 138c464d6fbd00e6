"""What a reader should know of a measurement in which users have items again: bounds, and what lists find of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings
from cranfield.facts import Fact
from cranfield.facts import scores as scores_facts
from cranfield.judgments import Judged, RunFacts
from cranfield.measures.scores import Scores
from cranfield.metrics import Metric


def with_repeats(scores: Scores, judged: Sequence[Judged], test: Ratings, train: Ratings | None) -> Scores:
    """Return scores with notes on repeated items, if the test ratings were chosen by them (see `counted_test`).

    If they count and are not recommended, what a perfect list would have is a warning.
    """
    step = next((step for step in test.history if step.action == "repeats"), None)
    if step is None or train is None:
        return scores
    repeats, had = step.settings["repeats"], judged[0].judgments.had_in(train)
    metrics = [Metric.of(name) for name in scores.metrics]
    warnings, on_lists = list[Fact](), list[Fact]()
    if repeats == "hide" and (most := _most(judged[0], had, metrics)):
        warnings.append(scores_facts.RepeatsHidden(most))
    cutoffs = sorted({metric.cutoff for metric in metrics if metric.cutoff is not None})
    if repeats == "only" and cutoffs:
        had_items = train.user_counts[train.user_ids.recoded(judged[0].judgments.users, judged[0].judgments.user_ids)]
        random = ((f"Recall@{n}", float(np.minimum(1, n / had_items).mean())) for n in cutoffs)
        on_lists.append(scores_facts.RepeatsAlone(tuple(random)))
    if repeats == "allow" and cutoffs:
        on_lists = [_repeats_in(name, lists, had, cutoffs[0]) for name, lists in zip(scores.systems, judged)]
    notes = (*warnings, *scores.notes, *step.notes, *on_lists)
    return replace(scores, notes=notes, warnings=(*scores.warnings, *warnings))


def _most(judged: Judged, had: NDArray[np.bool_], metrics: Sequence[Metric]) -> tuple[tuple[str, float], ...]:
    """Return the averages of lists of all test items that are new to their user, the best first."""
    judgments = judged.judgments
    new = np.flatnonzero(~had)
    new = new[np.lexsort((-judgments.grades[new], judgments.lists[new]))]
    counts = np.bincount(judgments.lists[new], minlength=judgments.n_lists)
    ranks = 1 + np.arange(len(new)) - np.repeat(np.cumsum(counts) - counts, counts)
    best = Judged(
        judgments,
        judgments.lists[new],
        ranks.astype(np.int32),
        new,
        counts.astype(np.int32),
        context=judged.context,
        ranked=RunFacts("perfect", longest=int(counts.max(initial=0))),
    )
    bounded = [metric for metric in metrics if metric.definition.bounds]
    return tuple((str(metric), float(np.nan_to_num(metric(best)).mean())) for metric in bounded)


def _repeats_in(name: str, judged: Judged, had: NDArray[np.bool_], cutoff: int) -> Fact:
    cut, judgments = judged.cut(cutoff), judged.judgments
    recall = []
    for kind in (had, ~had):
        hits = cut.total(where=cut.relevant & kind[cut.pointers])
        relevant = np.bincount(judgments.lists, judgments.relevant & kind, minlength=judgments.n_lists)
        some = relevant > 0
        recall.append(float((hits[some] / relevant[some]).mean()) if some.any() else np.nan)
    share = float(np.nanmean(Metric.of(f"RepeatShare@{cutoff}")(judged)))
    return scores_facts.RepeatsFound(name, cutoff, share, *recall)
