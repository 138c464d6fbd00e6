"""Facts for the reader of a measurement, one for each thing that happened, and items outside a catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cranfield.facts import Fact
from cranfield.facts import scores as scores_facts
from cranfield.judgments import IdCounts, Judged, RunFacts, accepted, counted_items
from cranfield.metrics import EXPONENTIAL, Metric
from cranfield.tables import UNKNOWN, Vocabulary

if TYPE_CHECKING:
    from cranfield.measures.scores import Scores


EXAMPLES = 3
"""Number of items outside the catalogue that a note names as examples."""


def with_runs(
    scores: Scores,
    runs: Sequence[RunFacts],
    counts: Sequence[Mapping[str, int]],
    metrics: Sequence[Metric],
    *,
    warnings: tuple[Fact, ...],
    on_test: Sequence[Fact],
    relevant: scores_facts.WithoutRelevant,
    known_items: int,
) -> Scores:
    """Return scores with what is known of whole runs and of the test set, which has so many items.

    Item coverage is the share of the catalogue in the lists of a run; the catalogue is the items of test set and runs.
    A note on several runs appears once.
    """
    strangers = {item for run in runs for item in run.unknown_items}
    catalogue = max(known_items + len(strangers), 1)
    made_for: dict[scores_facts.ServedUsers, list[str]] = {}
    for run, served in zip(runs, scores.n_covered):
        if run.made_for and served < scores.n_lists:
            made_for.setdefault(run.made_for, []).append(run.name)
    of_runs = [
        (run.name, fact)
        for run, count in zip(runs, counts)
        for fact in (*_on_counts(count), *_on_ties(run, metrics), *_on_predictions(run, metrics))
    ]
    notes = (
        *warnings,
        *on_test,
        *notes_on_scale(relevant.highest, metrics),
        *([relevant] if relevant.users else []),
        *scores_facts.OfRuns.of(of_runs, len(runs)),
    )
    return replace(
        scores,
        item_coverage=np.array([run.n_distinct_items / catalogue for run in runs]),
        catalogue="the data" if all(run.shares_items for run in runs) else "test and lists",
        counts={run.name: count for run, count in zip(runs, counts)},
        made_for=tuple(scores_facts.MadeFor(tuple(names), users) for users, names in made_for.items()),
        notes=notes,
        warnings=warnings,
    )


def notes_on_scale(top: float, metrics: Sequence[Metric]) -> Iterator[Fact]:
    """Yield notes on scales for which exponential gains are of little use."""
    exponential = [metric for metric in metrics if _is_exponential(metric)]
    if exponential and top > scores_facts.LONG_SCALE:
        yield scores_facts.ExponentialGains(top, tuple(map(str, exponential)))
    above_one = [str(metric) for metric in exponential if dict(metric.parameters).get("gain") in ("exp1", "exp1full")]
    if above_one and top <= 1.0:
        yield scores_facts.ExponentialGains(top, tuple(above_one))


def _is_exponential(metric: Metric) -> bool:
    if metric.definition.name == "ERR" or (metric.definition.name, metric.dialect) == ("nDCG", "elliot"):
        return True
    return dict(metric.parameters).get("gain") in EXPONENTIAL


def _on_counts(counts: Mapping[str, int]) -> Iterator[scores_facts.OfRun]:
    for kind in scores_facts.LIST_COUNTS:
        if counts.get(kind):
            lists = counts.get("lists_with_gaps", 0) if kind == "missing_ranks" else 0
            yield scores_facts.ListCount(kind, counts[kind], lists)


def _on_ties(system: RunFacts, metrics: Sequence[Metric]) -> Iterator[scores_facts.OfRun]:
    if not system.counts.get("tied_items"):
        return
    cutoffs = sorted({metric.cutoff for metric in metrics if metric.cutoff is not None})
    shares = [(n, tied) for n in cutoffs if (tied := system.share_tied_across(n))]
    if shares:
        yield scores_facts.TiedScores(tuple(shares))
    unsupported = [str(metric) for metric in metrics if not metric.definition.averages_ties]
    if system.ties == "average" and unsupported:
        yield scores_facts.TiesBroken(tuple(unsupported))


def _on_predictions(system: RunFacts, metrics: Sequence[Metric]) -> Iterator[scores_facts.OfRun]:
    of_predictions = [str(metric) for metric in metrics if "predictions" in metric.definition.needs]
    if of_predictions and system.has_scores and not system.has_predictions:
        yield scores_facts.ScoresAsRatings(tuple(of_predictions))


def outside_in_folds(
    folds: Sequence[Sequence[scores_facts.OutsideCatalogue]],
) -> tuple[scores_facts.OutsideCatalogue, ...]:
    """Return the items of each system outside the catalogue in all folds together."""
    return tuple(
        scores_facts.OutsideCatalogue(
            of_system[0].system,
            sum(fold.entries for fold in of_system),
            sum(fold.recommended for fold in of_system),
            None,
            tuple(dict.fromkeys(name for fold in of_system for name in fold.examples))[:EXAMPLES],
        )
        for of_system in zip(*folds)
    )


def catalogue_warnings(judged: Sequence[Judged]) -> list[Fact]:
    """Return a warning for each system whose lists contain items that are not live."""
    live = judged[0].context.live
    assert live is not None
    names = ["the run" if lists.ranked is None else lists.ranked.name for lists in judged]
    outside = [_outside(name, *counted_items(lists), live)[0] for name, lists in zip(names, judged)]
    return [of_system for of_system in outside if of_system.entries]


def _outside(
    system: str, items: IdCounts, places: NDArray[np.int64], live: Vocabulary
) -> tuple[scores_facts.OutsideCatalogue, NDArray[np.float64], float]:
    """Return the items of a system that are not live, their share of its places, and the share of live items shown.

    The share of places is that of whole lists, and down to each cut-off; NaN if there are no places.
    """
    strange = live.codes(items.ids.all) == UNKNOWN
    there = items.counts[1:, strange].sum(axis=1)
    shares = np.divide(there, places, out=np.full(len(places), np.nan), where=places > 0)
    known = np.flatnonzero(strange & (items.counts[1] > 0))
    examples = tuple(str(name) for name in items.ids.text.gather(known[:EXAMPLES]))
    shown = np.count_nonzero(items.counts[0, ~strange]) / max(len(live), 1)
    return scores_facts.OutsideCatalogue(system, int(there[0]), int(places[0]), len(known), examples), shares, shown


def with_outside(
    scores: Scores, counted: Sequence[tuple[IdCounts, NDArray[np.int64]]], live: Vocabulary, *, strict: bool
) -> Scores:
    """Return scores that count items outside a catalogue separately from unjudged items.

    ``counted`` are the items and places of each system in whole lists, and down to each cut-off of the metrics.
    """
    cutoffs = [Metric.of(metric).cutoff for metric in scores.metrics]
    rows = [None, *sorted({cutoff for cutoff in cutoffs if cutoff is not None})]
    parts = [_outside(name, *of_system, live) for name, of_system in zip(scores.systems, counted)]
    outside, of_systems, shown = zip(*parts)
    shares = np.stack(of_systems)[:, [rows.index(cutoff) for cutoff in cutoffs]]
    notes = accepted([of_system for of_system in outside if of_system.entries], strict=strict)
    return replace(
        scores,
        nonexistent=shares,
        outside_catalogue=outside,
        item_coverage=np.array(shown),
        catalogue="the catalogue",
        # Items outside are not also counted as unjudged; condensed lists contain neither.
        unjudged=None if scores.unjudged is None else np.maximum(scores.unjudged - shares, 0.0),
        notes=(*scores.notes, *notes),
        warnings=(*scores.warnings, *notes),
    )
