"""What was compared, and the verdict, in sentences."""

from __future__ import annotations

from cranfield.compare import Comparison
from cranfield.measure import Scores
from cranfield.report.markup import paragraphs
from cranfield.report.section import Section

_MOST_METRICS = 6


def verdict(scores: Scores, comparison: Comparison | None) -> Section:
    """Return the verdict: of the comparison where there is one, else who has the highest averages."""
    said = _degenerate(scores)
    if not said:
        said = comparison.sentences()[:_MOST_METRICS] if comparison is not None else _averages_only(scores)
    metrics = f"{len(scores.metrics)} metric{'s' if len(scores.metrics) > 1 else ''}"
    compared = (
        f"{_count(len(scores.systems), 'system')} on {_count(scores.n_lists, 'list')} by {metrics}"
        + (f"; {comparison.caption}" if comparison is not None else "; not tested for significance")
        + "."
    )
    return Section("verdict", "The verdict", f'<div class="verdict">{paragraphs(said)}</div>' + paragraphs([compared]))


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _degenerate(scores: Scores) -> list[str]:
    """Return what keeps these scores from saying anything, if something does."""
    if scores.n_lists == 0:
        return ["There are no lists to measure, so nothing can be said."]
    if len(scores.systems) == 1:
        return [f"There is one system, {scores.systems[0]}, and nothing to compare it with."]
    means = scores.average()
    if all(len({float(value) for value in means[:, m]}) == 1 for m in range(len(scores.metrics))):
        return ["All systems have the same averages, by every metric: these data do not tell them apart."]
    return []


def _averages_only(scores: Scores) -> list[str]:
    means, said = scores.average(), []
    for m, metric in enumerate(scores.metrics[:_MOST_METRICS]):
        signed = -means[:, m] if scores.lower_is_better[m] else means[:, m]
        best = max(range(len(scores.systems)), key=lambda s: (signed[s] == signed[s], signed[s]))
        said.append(f"{metric}: {scores.systems[best]} has the best average ({means[best, m]:.4f}).")
    return said
