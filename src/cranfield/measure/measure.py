"""The verb `measure`: runs and a test set in, `Scores` out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield.data import Ratings
from cranfield.measure.context import Context
from cranfield.measure.judge import judge, one_relevant_judgments
from cranfield.measure.judgments import Judgments
from cranfield.measure.metric import Metric
from cranfield.measure.scores import Scores
from cranfield.rank.run import Run

DEFAULT_METRICS = ("P@10", "Recall@10", "nDCG@10", "nDCG@100", "AP@100", "RR@100")


def measure(
    runs: Run | Sequence[Run] | Mapping[str, Any],
    test: Ratings,
    metrics: Sequence[str | Metric] | str = DEFAULT_METRICS,
    *,
    threshold: float | None = None,
    train: Ratings | None = None,
    similarity: Any = None,
) -> Scores:
    """Measure the lists of one or more systems against a test set."""
    runs = _as_runs(runs)
    wanted = [Metric.of(one) for one in ([metrics] if isinstance(metrics, str) else metrics)]
    judgments = Judgments.of(test, 1.0 if threshold is None else float(threshold))
    if runs and runs[0].one_relevant:
        judgments = one_relevant_judgments(runs[0], judgments)
    context = Context(train, similarity)
    values = np.full((len(runs), len(wanted), judgments.n_lists), np.nan)
    covered = np.zeros((len(runs), judgments.n_lists), dtype=bool)
    counts: dict[str, dict[str, int]] = {}
    for s, run in enumerate(runs):
        judged, strangers = judge(run, judgments, context)
        covered[s] = judged.lengths > 0
        counts[run.name] = {**run.counts, **strangers}
        for m, one in enumerate(wanted):
            values[s, m] = one(judged)
    return Scores(
        systems=tuple(run.name for run in runs),
        metrics=tuple(str(one) for one in wanted),
        values=values,
        covered=covered,
        users=judgments.users,
        user_ids=judgments.user_ids,
        judged=judgments.n_judged,
        relevant=judgments.n_relevant,
        lower_is_better=tuple(one.lower_is_better for one in wanted),
        step=Step("measure", {"threshold": threshold}, counts),
    )


def _as_runs(runs: Any) -> list[Run]:
    if isinstance(runs, Run):
        return [runs]
    if isinstance(runs, Sequence) and all(isinstance(run, Run) for run in runs):
        return list(runs)
    raise SettingError("give runs")
