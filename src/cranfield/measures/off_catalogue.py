"""Items of lists outside a catalogue: their counts, and notes on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield._numbers import percent_text
from cranfield.judgments import Judged, accepted
from cranfield.metrics import Metric
from cranfield.tables import UNKNOWN

if TYPE_CHECKING:
    from cranfield.measures.scores import Scores

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


def outside_of(judged: Judged, cutoffs: Sequence[int]) -> tuple[Outside, NDArray[np.float64], float]:
    """Count the entries of judged lists that are not live, their share down to each cut-off, and the live items shown.

    The first shares are NaN if there are no entries; the last is the share of the live items that the run contains.
    """
    run, entries, live = judged.run, judged.entries, judged.context.live
    assert run is not None
    assert live is not None
    strange = live.codes(run.item_ids.all) == UNKNOWN
    there = strange[entries.items]
    items = np.unique(entries.items[there])
    examples = tuple(str(name) for name in run.item_ids.text.gather(items[:EXAMPLES]))
    strangers = np.array([np.count_nonzero(there & (entries.ranks <= cutoff)) for cutoff in cutoffs])
    places = np.array([np.minimum(judged.lengths, cutoff).sum() for cutoff in cutoffs])
    shares = np.divide(strangers, places, out=np.full(len(cutoffs), np.nan), where=places > 0)
    shown = np.count_nonzero(~strange[np.unique(run.items)]) / max(len(live), 1)
    outside = Outside(int(np.count_nonzero(there)), int(judged.lengths.sum()), len(items), examples)
    return outside, shares, shown


def with_catalogue(scores: Scores, judged: Sequence[Judged], *, strict: bool) -> Scores:
    """Return scores that count items outside a catalogue separately from unjudged items."""
    cutoffs = [Metric.of(metric).cutoff or max(scores.longest, 1) for metric in scores.metrics]
    return with_outside(scores, *zip(*(outside_of(lists, cutoffs) for lists in judged)), strict=strict)


def with_outside(
    scores: Scores,
    outside: tuple[Outside, ...],
    of_systems: Sequence[NDArray[np.float64]],
    shown: Sequence[float],
    *,
    strict: bool,
) -> Scores:
    """Return scores with the items of each system outside a catalogue, their share by metric, and item coverage."""
    shares = np.stack(of_systems)
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
