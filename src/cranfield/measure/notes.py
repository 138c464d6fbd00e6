"""What a reader should know about a measurement: each thing that happened, in a sentence, when it happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cranfield.measure.judgments import Judgments
from cranfield.measure.metric import Metric
from cranfield.rank.run import Run

_SENTENCES: Mapping[str, str] = {
    "nan_scores": "{n} with a NaN score, dropped as not computable",
    "duplicate_items": "{n} repeated in the same list, of which the best ranked stays",
    "rank_disagreements": "{n} where the ranks contradict the scores: the scores rule",
    "users without test ratings": "{n} for users without a test rating, not measured",
    "test users without a list": "{n} without a list: 0 in full averages, left out of reduced ones",
    "recommended items unknown to the test set": "{n} that the test set does not know, counted as unjudged",
    "lists whose relevant item was not ranked": "{n} whose relevant item the system could not rank",
}
_THINGS: Mapping[str, str] = {
    "nan_scores": "items",
    "duplicate_items": "items",
    "rank_disagreements": "lists",
    "users without test ratings": "lists",
    "test users without a list": "test users",
    "recommended items unknown to the test set": "recommended items",
    "lists whose relevant item was not ranked": "lists",
}


def notes_on(
    runs: Sequence[Run],
    counts: Sequence[Mapping[str, int]],
    judgments: Judgments,
    metrics: Sequence[Metric],
    threshold: float | None,
) -> tuple[str, ...]:
    """Return the sentences a reader should see beside the scores."""
    return (
        *_on_judgments(judgments, threshold),
        *(note for run, count in zip(runs, counts) for note in _on_run(run, count)),
        *_on_ties(runs, metrics),
    )


def _on_judgments(judgments: Judgments, threshold: float | None) -> Iterator[str]:
    if threshold is None and (judgments.top_grade > 1.0 or not judgments.relevant.all()):
        yield "no threshold was given: every rating of at least 1 counts as relevant, as in trec_eval"
    lists = judgments.n_lists
    none = int((judgments.n_relevant == 0).sum())
    if none:
        yield f"{none:,} of {lists:,} test users have no relevant item: metrics of relevance are undefined for them"


def _on_run(run: Run, counts: Mapping[str, int]) -> Iterator[str]:
    for name, sentence in _SENTENCES.items():
        if counts.get(name):
            yield f"{run.name}: " + sentence.format(n=f"{counts[name]:,} {_THINGS[name]}")


def _on_ties(runs: Sequence[Run], metrics: Sequence[Metric]) -> Iterator[str]:
    cutoffs = sorted({metric.cutoff for metric in metrics if metric.cutoff is not None})
    unsupported = [str(metric) for metric in metrics if not metric.definition.averages_ties]
    for run in runs:
        if not run.counts.get("tied_items"):
            continue
        shares = [(n, float(run.ties_across(n).mean())) for n in cutoffs]
        told = ", ".join(f"{tied:.1%} of the lists across rank {n}" for n, tied in shares if tied)
        if told:
            yield f"{run.name}: scores tie in {told}"
        if run.ties == "average" and unsupported:
            yield f"{run.name}: ties are not averaged but broken as trec_eval does in {', '.join(unsupported)}"
