"""Notes for the reader of a measurement, one sentence for each thing that happened, and items outside a catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield._numbers import count_text, listed, percent_text
from cranfield.facts import scores as scores_facts
from cranfield.judgments import IdCounts, Judged, Judgments, Ranked, accepted, counted_items
from cranfield.metrics import EXPONENTIAL, Metric
from cranfield.tables import UNKNOWN, Vocabulary

if TYPE_CHECKING:
    from cranfield.measures.scores import Scores

# A rating this much below the highest has 2^-50 of its gain, which is lost to rounding in a sum of thousands of gains.
_LONG_SCALE = 50

_SENTENCES: Mapping[str, str] = {
    "lists_in_row_order": "{n} without scores and ranks, taken in the order of the rows",
    "joined_lists": "{n} written in one cell each, and split",
    "nan_scores": "{n} with a NaN score, dropped as not computable",
    "duplicate_items": "{n} repeated in the same list: only the best ranked is kept",
    "rank_disagreements": "{n} where the ranks contradict the scores: the scores decide",
    "missing_ranks": "{n} missing in {lists}: each is a place with an unknown item; gaps=close leaves these places out",
    "users without test ratings": "{n} for users without a test rating, not measured",
    "test users without a list": "{n} without a list: 0 in full averages, left out of reduced ones",
    "recommended items unknown to the test set": "{n} in the lists with an item that nobody rated in the test set",
    "lists whose relevant item was not ranked": "{n} whose relevant item the system could not rank",
}
_THINGS: Mapping[str, str] = {
    "lists_in_row_order": "list",
    "joined_lists": "list",
    "nan_scores": "item",
    "duplicate_items": "item",
    "rank_disagreements": "list",
    "missing_ranks": "rank",
    "users without test ratings": "list",
    "test users without a list": "test user",
    "recommended items unknown to the test set": "place",
    "lists whose relevant item was not ranked": "list",
}


class Graded(NamedTuple):
    """Facts about a test set: notes on its grades, the highest grade, the threshold, lists without relevant items."""

    notes: tuple[str, ...]
    top_grade: float
    threshold: float
    n_lists: int
    n_without_relevant: int

    @classmethod
    def of(cls, judgments: Judgments) -> Graded:
        """Return the facts about judgments."""
        without = int((judgments.n_relevant == 0).sum())
        return cls(judgments.notes, judgments.highest_grade, judgments.threshold, judgments.n_lists, without)


def notes_on(
    systems: Sequence[Ranked],
    counts: Sequence[Mapping[str, int]],
    graded: Graded,
    metrics: Sequence[Metric],
) -> tuple[str, ...]:
    """Return the notes that a reader should see with the scores; a note on several systems appears once."""
    said: dict[str, list[str]] = {}
    for system, count in zip(systems, counts):
        for note in (*_on_counts(count), *_on_ties(system, metrics), *_on_predictions(system, metrics)):
            said.setdefault(note, []).append(system.name)
    everybody = len(systems) if len(systems) > 1 else 0
    return (
        *graded.notes,
        *notes_on_scale(graded.top_grade, metrics),
        *_on_judgments(graded),
        *(f"{'every run' if len(who) == everybody else ', '.join(who)}: {note}" for note, who in said.items()),
    )


def notes_on_whom(systems: Sequence[Ranked]) -> tuple[str, ...]:
    """Return notes on the users that lists were made for, if their records say that users were left out.

    Examples
    --------
    >>> notes_on_whom([Ranked("knn", made_for=scores_facts.ServedUsers(sample=100)), Ranked("mine")])
    ('The lists of knn were made for 100 users, drawn at random; the other users of the test set count as users \
without a list, unless coverage is reduced.',)
    """
    names: dict[scores_facts.ServedUsers | None, list[str]] = {}
    for system in systems:
        names.setdefault(system.made_for, []).append(system.name)
    return tuple(
        f"The lists of {listed(who)} were made for {users}; the other users of the test set count as users without a "
        "list, unless coverage is reduced."
        for users, who in names.items()
        if users
    )


def notes_on_scale(top: float, metrics: Sequence[Metric]) -> Iterator[str]:
    """Yield notes on scales for which exponential gains are of little use."""
    exponential = [metric for metric in metrics if _is_exponential(metric)]
    if exponential and top > _LONG_SCALE:
        yield (
            f"test ratings reach {top:,.15g}, and 2^r makes a rating {_LONG_SCALE} lower worth nothing in comparison: "
            f"only the highest count in {', '.join(map(str, exponential))}; use gain=rating, or ratings on a shorter "
            "scale"
        )
    above_one = [str(metric) for metric in exponential if dict(metric.parameters).get("gain") in ("exp1", "exp1full")]
    if above_one and top <= 1.0:
        yield f"no test rating is above 1, so nothing has a gain in {', '.join(above_one)}; use gain=exp"


def _is_exponential(metric: Metric) -> bool:
    if metric.definition.name == "ERR" or (metric.definition.name, metric.dialect) == ("nDCG", "elliot"):
        return True
    return dict(metric.parameters).get("gain") in EXPONENTIAL


def _on_judgments(graded: Graded) -> Iterator[str]:
    lists, without = graded.n_lists, graded.n_without_relevant
    if without and without == lists:
        yield (
            f"no test rating is {graded.threshold:g} or more (the highest is {graded.top_grade:g}): nothing is "
            "relevant, and metrics of relevance are undefined"
        )
    elif without:
        yield f"{without:,} of {lists:,} test users have no relevant item: metrics of relevance are undefined for them"


def _on_counts(counts: Mapping[str, int]) -> Iterator[str]:
    for name, sentence in _SENTENCES.items():
        if counts.get(name):
            lists = count_text(counts.get("lists_with_gaps", 0), "list")
            yield sentence.format(n=count_text(counts[name], _THINGS[name]), lists=lists)


def _on_ties(system: Ranked, metrics: Sequence[Metric]) -> Iterator[str]:
    if not system.counts.get("tied_items"):
        return
    cutoffs = sorted({metric.cutoff for metric in metrics if metric.cutoff is not None})
    shares = [(n, system.share_tied_across(n)) for n in cutoffs]
    ties = ", ".join(f"{tied:.1%} of the lists across rank {n}" for n, tied in shares if tied)
    if ties:
        yield f"scores tie in {ties}"
    unsupported = [str(metric) for metric in metrics if not metric.definition.averages_ties]
    if system.ties == "average" and unsupported:
        yield f"ties are broken as in trec_eval, not averaged, in {', '.join(unsupported)}"


def _on_predictions(system: Ranked, metrics: Sequence[Metric]) -> Iterator[str]:
    of_predictions = [str(metric) for metric in metrics if "predictions" in metric.definition.needs]
    if of_predictions and system.has_scores and not system.has_predictions:
        yield f"no predicted ratings were given: {', '.join(of_predictions)} used the scores instead"


EXAMPLES = 3
"""Number of items outside the catalogue that a sentence names as examples."""


class Outside(NamedTuple):
    """The items in the whole lists of a system that are not in the catalogue.

    Parameters
    ----------
    entries, recommended
        The number of entries outside, and of all entries.
    items
        The number of distinct items outside; None for several folds together, whose items are not compared.
    examples
        Some of these items.
    """

    entries: int
    recommended: int
    items: int | None
    examples: tuple[str, ...]


def outside_in_folds(folds: Sequence[Sequence[Outside]]) -> tuple[Outside, ...]:
    """Return the items of each system outside the catalogue in all folds together.

    Examples
    --------
    >>> outside_in_folds([[Outside(1, 10, 1, ("x",))], [Outside(2, 10, 2, ("x", "y"))]])
    (Outside(entries=3, recommended=20, items=None, examples=('x', 'y')),)
    """
    return tuple(
        Outside(
            sum(fold.entries for fold in of_system),
            sum(fold.recommended for fold in of_system),
            None,
            tuple(dict.fromkeys(name for fold in of_system for name in fold.examples))[:EXAMPLES],
        )
        for of_system in zip(*folds)
    )


def catalogue_notes(names: Sequence[str], outside: Sequence[Outside]) -> Iterator[str]:
    """Yield a note for each system that recommends items outside the catalogue."""
    for name, of_system in zip(names, outside):
        if of_system.entries:
            examples = ", ".join(of_system.examples)
            number = "" if of_system.items is None else f"{of_system.items:,} "
            items = "item that is" if of_system.items == 1 else "items that are"
            yield (
                f"{name} recommends {number}{items} not in the catalogue, such as {examples}: "
                f"{of_system.entries:,} of its {of_system.recommended:,} recommendations "
                f"({percent_text(of_system.entries / of_system.recommended)}), counted separately from unjudged ones"
            )


def catalogue_warnings(judged: Sequence[Judged]) -> list[str]:
    """Return a warning for each system whose lists contain items that are not live."""
    names = ["the run" if lists.ranked is None else lists.ranked.name for lists in judged]
    live = judged[0].context.live
    assert live is not None
    return list(catalogue_notes(names, [_outside(*counted_items(lists), live)[0] for lists in judged]))


def _outside(
    items: IdCounts, places: NDArray[np.int64], live: Vocabulary
) -> tuple[Outside, NDArray[np.float64], float]:
    """Return the items of a system that are not live, their share of its places, and the share of live items shown.

    The share of places is that of whole lists, and down to each cut-off; NaN if there are no places.
    """
    strange = live.codes(items.ids.all) == UNKNOWN
    there = items.counts[1:, strange].sum(axis=1)
    shares = np.divide(there, places, out=np.full(len(places), np.nan), where=places > 0)
    known = np.flatnonzero(strange & (items.counts[1] > 0))
    examples = tuple(str(name) for name in items.ids.text.gather(known[:EXAMPLES]))
    shown = np.count_nonzero(items.counts[0, ~strange]) / max(len(live), 1)
    return Outside(int(there[0]), int(places[0]), len(known), examples), shares, shown


def with_outside(
    scores: Scores, counted: Sequence[tuple[IdCounts, NDArray[np.int64]]], live: Vocabulary, *, strict: bool
) -> Scores:
    """Return scores that count items outside a catalogue separately from unjudged items.

    ``counted`` are the items and places of each system in whole lists, and down to each cut-off of the metrics.
    """
    cutoffs = [Metric.of(metric).cutoff for metric in scores.metrics]
    rows = [None, *sorted({cutoff for cutoff in cutoffs if cutoff is not None})]
    outside, of_systems, shown = zip(*(_outside(*of_system, live) for of_system in counted))
    shares = np.stack(of_systems)[:, [rows.index(cutoff) for cutoff in cutoffs]]
    notes = accepted(list(catalogue_notes(scores.systems, outside)), strict=strict)
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
