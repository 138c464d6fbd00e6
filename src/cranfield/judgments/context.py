"""What belongs to judged lists besides their hits: facts about their run and draw, the catalogue, training ratings."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._decisions import DecisionGroup, decision, unless
from cranfield._errors import InputError, SettingError
from cranfield._files import meant
from cranfield._polars import read_parquet, readable
from cranfield.data import Ratings
from cranfield.facts import scores as scores_facts
from cranfield.rankings import Run, Ties
from cranfield.tables import UNKNOWN, Vocabulary, check_exact, contents, is_parquet, place_by_name

NONE, TRAIN = "none", "train"
"""No catalogue, and the items with training ratings."""

# Separators of columns in a text file; a line without any of them is one id.
_SEPARATORS = ("\t", "::", ";", ",", "|")


@dataclass(frozen=True, eq=False)
class Context:
    """What some metrics need besides lists and test ratings."""

    train: Ratings | None = None  # the training ratings: popularity, novelty and propensities come from them
    # For diversity: a square array with a row for each item of the test set's vocabulary, or a function of two Polars
    # Series of item ids.
    similarity: Any = None
    # The items that can be recommended, if a catalogue is given: its items, and those with a test rating. Other items
    # keep their places in the lists and earn nothing. None: every item is live.
    live: Vocabulary | None = None
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Cache of what metrics compute from these, shared by all systems."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is given."""
        return self.train is None and self.similarity is None and self.live is None


@dataclass(frozen=True)
class Drawing(DecisionGroup):
    """Whether non-relevant or unrated items are drawn for lists, or all draws are averaged."""

    draws: str = decision(
        "C1",
        "sampled",
        "items that are drawn for a list: one random draw, or the exact expectation over all draws",
        choices=("sampled", "exact"),
        phrase=unless("sampled", "in expectation over all draws"),
        help="Draw items for each list once, or measure in expectation over all draws.",
    )


@dataclass(frozen=True, eq=False)
class Draw:
    """A draw to average over: the lists rank all candidates, of which a sampled list would contain some."""

    number: int  # the number of candidates drawn for a list; a list with fewer has all of them
    sizes: NDArray[np.int64]  # the number of candidates of each list, including those that are in every draw
    unrated: bool = False  # whether all test items of the user are in every draw, and not only the relevant ones
    longest: int | None = None  # the length that sampled lists are cut at; None if they are not

    def __post_init__(self) -> None:
        check.whole("unrated" if self.unrated else "nonrelevant", self.number, at_least=0 if self.unrated else 1)

    def cut(self, n: int) -> Draw:
        """Return the same draw for lists that are cut at rank ``n``."""
        return replace(self, longest=n if self.longest is None else min(n, self.longest))

    def of_lists(self, kept: NDArray[np.bool_]) -> Draw:
        """Return the draw of some of the lists."""
        return replace(self, sizes=self.sizes[kept])


@dataclass(frozen=True)
class RunFacts:
    """What a measurement reports about a system besides its values; fields of `Run` are as there."""

    name: str
    ties: Ties = "trec_eval"
    one_relevant: bool = False
    group_names: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)  # counts from reading the lists
    n_lists: int = 0
    n_entries: int = 0
    longest: int = 0  # the length of the longest list
    n_distinct_items: int = 0
    shares_items: bool = False  # whether it has the item vocabulary of the test set, as when both come from one split
    unknown_items: tuple[str, ...] = ()  # the items of its vocabulary that are not in the test set, as text
    tied_across: tuple[int, ...] = ()  # the number of lists in which the items of ranks 1 and 2, 2 and 3, ... tie
    has_scores: bool = False
    has_predictions: bool = False  # besides scores
    draws: bool = False
    only_ranks: bool = False
    made_for: scores_facts.ServedUsers | None = None

    @classmethod
    def of(cls, run: Run, item_ids: Vocabulary | None = None) -> RunFacts:
        """Return the facts about a run; ``item_ids`` are those of the test set, without which items are not counted."""
        codes = None if item_ids is None else item_ids.translation(run.item_ids)
        unknown = () if codes is None else run.item_ids.text.filter(pl.Series(codes == UNKNOWN)).to_list()
        return cls(
            name=run.name,
            ties=run.ties,
            one_relevant=run.one_relevant,
            group_names=run.group_names,
            counts=dict(run.counts),
            n_lists=len(run),
            n_entries=len(run.items),
            longest=int(run.list_lengths.max(initial=0)),
            n_distinct_items=0 if item_ids is None else run.n_distinct_items,
            shares_items=codes is None,
            unknown_items=tuple(unknown),
            tied_across=tuple(_tied_across(run).tolist()) if run.counts.get("tied_items") else (),
            has_scores=run.scores is not None,
            has_predictions=run.predictions is not None,
            draws=run.draws,
            only_ranks=run.only_ranks,
            made_for=run.made_for,
        )

    def __add__(self, other: RunFacts) -> RunFacts:
        """Return the facts about a run from two parts of it, whose items are counted elsewhere."""
        return replace(
            self,
            counts=sum_of_counts([self.counts, other.counts]),
            n_lists=self.n_lists + other.n_lists,
            n_entries=self.n_entries + other.n_entries,
            longest=max(self.longest, other.longest),
            tied_across=tuple(map(sum, zip_longest(self.tied_across, other.tied_across, fillvalue=0))),
            has_scores=self.has_scores or other.has_scores,
            has_predictions=self.has_predictions or other.has_predictions,
        )

    def share_tied_across(self, n: int) -> float:
        """Return the share of the lists that have a tie across rank ``n``; see `Run.ties_across`."""
        return self.tied_across[n - 1] / self.n_lists if n <= len(self.tied_across) else 0.0


def _tied_across(run: Run) -> NDArray[np.int64]:
    """Return for each rank, from 1, the number of lists in which this item and the next have the same score."""
    if run.scores is None:
        return np.zeros(0, dtype=np.int64)
    same: NDArray[Any] = run.scores[1:] == run.scores[:-1]
    first = run.indptr[1:-1]
    same[first[(first > 0) & (first < len(run.scores))] - 1] = False  # there are no ties between lists
    places = np.flatnonzero(same)
    if run.ranks is None:
        ranks = places - run.indptr[np.searchsorted(run.indptr, places, side="right") - 1] + 1
    else:
        ranks = run.ranks[places][run.ranks[places + 1] == run.ranks[places] + 1]
    return np.bincount(ranks, minlength=1)[1:]


def sum_of_counts(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of counts by name."""
    names = dict.fromkeys(name for counts in parts for name in counts)
    return {name: sum(counts.get(name, 0) for counts in parts) for name in names}


def _catalogue(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise SettingError(f"{name}={value!r} is not a catalogue; give a file, 'train' or 'none'")
    return value


@dataclass(frozen=True)
class Cataloguing(DecisionGroup):
    """Which items exist, so that recommended items that do not exist are counted separately."""

    catalogue: Any = decision(
        "C1",
        NONE,
        "the items that exist: a file, 'train' for the training items; recommended items outside it are counted "
        "separately",
        check=_catalogue,
        phrase=unless(
            NONE, "items outside {} counted separately", {TRAIN: "items outside training counted separately"}
        ),
        help="The items that exist: a file with a column of items or one id per line, or train for the training items. "
        "Recommended items outside it are counted separately from unjudged ones.",
    )


def is_no_catalogue(catalogue: Any) -> bool:
    """Whether there is no catalogue."""
    return catalogue is None or (isinstance(catalogue, str) and catalogue == NONE)


def catalogue_ids(catalogue: Any, train: Ratings | None = None) -> Vocabulary:
    """Return the ids of the items that exist.

    The catalogue is ``"train"`` for the items with training ratings; a file or a frame with a column of items, or with
    one id per line; ratings, for their items; or the ids themselves.
    """
    if isinstance(catalogue, str) and catalogue == TRAIN:
        if train is None:
            raise SettingError("catalogue='train' needs the training ratings; give them as train=...")
        return catalogue_ids(train)
    if isinstance(catalogue, Vocabulary):
        return catalogue
    if isinstance(catalogue, Ratings):
        return catalogue.compact().item_ids
    if isinstance(catalogue, str | Path):
        ids = _of_file(meant(catalogue))
    elif hasattr(catalogue, "columns"):
        ids = _item_column(catalogue if isinstance(catalogue, pl.DataFrame) else pl.DataFrame(catalogue), "catalogue")
    else:
        ids = _of_ids(catalogue)
    try:
        check_exact(ids)
    except InputError as error:
        source = str(catalogue) if isinstance(catalogue, str | Path) else "the catalogue"
        raise InputError(error.problem, source=source, row=error.row, remedy=error.remedy) from None
    ids = ids.drop_nulls()
    if len(ids) == 0:
        raise InputError("the catalogue holds no items", remedy="give one with at least one id")
    return Vocabulary.of(ids)


def _of_ids(catalogue: Any) -> pl.Series:
    try:
        return pl.Series(list(catalogue))
    except TypeError:  # not a collection, or a mix of numbers and text
        raise SettingError(
            f"catalogue={reprlib.repr(catalogue)} is not a catalogue; give a file, a frame, ratings, or ids of one type"
        ) from None


def _of_file(path: Path) -> pl.Series:
    if is_parquet(path):
        with readable(path):
            return _item_column(read_parquet(path), str(path))
    lines = contents(path).decode("utf-8", errors="replace").lstrip("\ufeff").splitlines()
    lines = [line for line in lines if line.strip()]
    separator = next((mark for mark in _SEPARATORS if lines and mark in lines[0]), None)
    rows = [[line.strip()] if separator is None else line.split(separator) for line in lines]
    head = [cell.strip().strip('"') for cell in rows[0]] if rows else []
    place = place_by_name(head, "item")
    if separator is not None and place is None:
        raise InputError(
            f"no column is known to hold the items (columns: {', '.join(head)})",
            source=str(path),
            remedy="name one of them item, or give a file with one id per line",
        )
    column = 0 if place is None else place
    return pl.Series([row[column].strip().strip('"') for row in rows[0 if place is None else 1 :] if len(row) > column])


def _item_column(frame: pl.DataFrame, label: str) -> pl.Series:
    place = place_by_name(frame.columns, "item")
    if place is None and frame.width != 1:
        raise InputError(
            f"no column is known to hold the items (columns: {', '.join(frame.columns)})",
            source=label,
            remedy="name one of them item",
        )
    return frame.to_series(place or 0)
