"""Checks for implausible inputs, which raise errors or return warnings; they look only at tallies of the inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield._numbers import listed
from cranfield._record import Step
from cranfield.data import Ratings
from cranfield.judgments.judged import Judged
from cranfield.judgments.tallies import RatingsTally, SystemTally, digests, in_both
from cranfield.rankings import Run
from cranfield.tables import UNKNOWN, Vocabulary

# A warning is given if a smaller share of the users or items is in both the run and the test set. It is a share of the
# smaller of the two: a run with more users than the test set is not suspicious, and neither is one with fewer.
_FEW = 0.1
# Columns are swapped if this share of the ids of each is in the other column of the test set.
_MANY = 0.5
# Lists count as equally long, like those of a system, if this share of them is as long as the longest.
_EVEN = 0.5
# Minimum number of users and items for conclusions about columns.
_HANDFUL = 10
_COPY = "the lists hold the items of the test set with their ratings, as a copy of it would"
# Lists without a hit, where this many are expected by chance, were not made for this test set.
_EXPECTED_HITS = 20.0
# If a run of at least this many items equals the test set, ratings included, this is not a coincidence.
_ENOUGH_FOR_A_COPY = 100
# Maximum number of runs named in a warning, and of ids; and the number of ids to compare.
_RUNS_SHOWN, _IDS_SHOWN, _IDS_COMPARED = 4, 3, 2000
# Maximum number of distinct values of ratings, which have steps of a half or more.
_MOST_RATINGS = 21
_SCORES, _RATINGS = ("score", "scores", "prediction", "predictions"), ("rating", "ratings", "stars")


def check_inputs(judged: Sequence[Judged], test: Ratings | None = None, *, strict: bool = False) -> tuple[str, ...]:
    """Refuse inputs that must be mistakes, and return a warning for each that is implausible.

    Only runs in memory are checked, not those that an experiment made and stored.

    Parameters
    ----------
    judged
        Runs joined with the test set; ``context.train`` contains the training ratings, if there are any.
    test
        The test set as it was read.
    strict
        Raise an error instead of returning a warning.
    """
    pairs = [(lists, lists.source) for lists in judged if isinstance(lists.source, Run)]
    _refuse_same_file([run for _, run in pairs], test)
    judgments, train = judged[0].judgments, judged[0].context.train
    systems = [
        SystemTally.of(run, lists, judgments.user_ids, train, digest=digest, whole=True)
        for (lists, run), digest in zip(pairs, digests([run for _, run in pairs]))
    ]
    return check_tallies(RatingsTally.of(test, judgments, train, whole=True), systems, train, strict=strict)


def check_tallies(
    test: RatingsTally, systems: Sequence[SystemTally], train: Ratings | None, *, strict: bool
) -> tuple[str, ...]:
    """Check the tallies of all users: refuse what must be a mistake, and return warnings; see `check_inputs`."""
    of_ratings = list(_on_shared(test, 0 if train is None else len(train)))
    whole = [system for system in systems if not system.ranked.one_relevant]
    of_runs = [
        *((system, note) for system in whole for note in _on_ids(system, test, train)),
        *_on_swapped(systems, test),
        *_on_no_hits(whole, test, len(systems)),
        *((system, _COPY) for system in whole if system.is_copy and system.hits >= _ENOUGH_FOR_A_COPY),
    ]
    names: dict[str, list[str]] = {}
    for system, note in of_runs:
        names.setdefault(note, []).append(system.ranked.name)
    warnings = [
        *of_ratings,
        *(f"{'every run' if len(who) == len(systems) > 1 else listed(who)}: {note}" for note, who in names.items()),
        *_on_seen(systems),
        *_on_same_lists(systems),
    ]
    return accepted(warnings, strict=strict)


def accepted(warnings: Sequence[str], *, strict: bool) -> tuple[str, ...]:
    """Return the warnings, or raise the first as an error if ``strict``."""
    if strict and warnings:
        raise InputError(warnings[0], remedy="fix it, or leave --strict (strict=True) out to continue with a warning")
    return tuple(warnings)


def _place(system: SystemTally) -> str:
    """Return the file that a run was read from, or its name."""
    path = _file(system.history)
    return f"the run {system.ranked.name}" if path is None else str(path)


def _called(system: SystemTally) -> str:
    return "this run" if _file(system.history) is not None else f"the run {system.ranked.name}"


def _file(history: Sequence[Step]) -> Path | None:
    """Return the file that runs or ratings were read from; None if they were changed since, or had no file."""
    if not history or not history[-1].action.startswith("read"):
        return None
    path = Path(str(history[-1].settings.get("source")))
    return path if path.is_file() else None


def _refuse_same_file(runs: Sequence[Run], test: Ratings | None) -> None:
    """Refuse a file that is passed both as the test set and as a run."""
    path = None if test is None else _file(test.history)
    if path is None:
        return
    for run in runs:
        run_path = _file(run.history)
        if run_path is not None and run_path.resolve() == path.resolve():
            raise same_file(run_path)


def same_file(path: Path) -> InputError:
    """Return the error for a file that is passed twice."""
    return InputError(
        "this file is given both as the test set and as a run",
        source=str(path),
        remedy="give the held-out ratings as the test set, and the lists of a system as the run",
    )


def _on_ids(system: SystemTally, test: RatingsTally, train: Ratings | None) -> Iterator[str]:
    """Check how many users and items of a run are in the test set; none is an error."""
    if system.met < max(system.users, 1):
        if not system.met:
            mine, theirs = (Vocabulary.of(ids) for ids in system.unmet)
            _refuse_swapped_columns(system, mine, theirs, test)
            problem = f"no user of {_called(system)} has test ratings"
            raise _strangers(system, problem, mine, theirs, "give the run and the test set of one split")
        yield from _on_few_met("users", system.met, (system.users, test.users), system.unmet)
    if not system.ranked.n_entries:
        yield "every list is empty, and scores 0"
        return
    items, test_items = system.items.ids, test.items.ids
    known, listed_items = in_both(items, test_items)
    if train is not None:
        known = known | in_both(items, train.item_ids)[0]
    if not known.any():
        where = "the test set" if train is None else "the test set or the training set"
        remedy = (
            "give the run and the test set of the same data; if the system ranks other items only, give the training "
            "ratings that hold them (--train)"
        )
        raise _strangers(system, f"no item of {_called(system)} is in {where}", items, test_items, remedy)
    if not known.all():
        unmet = items.all.filter(pl.Series(~known)), test_items.all.filter(pl.Series(~listed_items))
        yield from _on_few_met("items", int(known.sum()), (len(items), len(test_items)), unmet)
    yield from _on_turned_columns(system, test)


def _refuse_swapped_columns(system: SystemTally, mine: Vocabulary, theirs: Vocabulary, test: RatingsTally) -> None:
    """Refuse a run whose users are items of the test set, and whose items are users."""
    if min(_share(mine, test.items.ids), _share(system.items.ids, theirs)) >= _MANY:
        raise InputError(
            f"the users of {_called(system)} are items of the test set, and its items are users",
            source=_file(system.history),
            remedy="name the columns: user=... and item=... (--run-user, --run-item)",
        )


def _on_turned_columns(system: SystemTally, test: RatingsTally) -> Iterator[str]:
    """Warn that users and items seem to be swapped, if the ids of both overlap.

    There are two signs: lists have the same length far more often if users and items are swapped, or the ids of both
    sides fit the other column much better (by 0.5 or more). A handful of lists shows neither.
    """
    own_users, users, own_items, items = system.user_ids, test.user_ids, system.items.ids, test.items.ids
    was_read = bool(system.history) and system.history[-1].action == "read_run"
    if own_users is None or users is None or not was_read or min(len(own_users), len(own_items)) < _HANDFUL:
        return
    if min(_share(own_users, items), _share(own_items, users)) < _MANY:
        return
    as_read = min(_fit(own_users, users), _fit(own_items, items))
    turned = min(_fit(own_users, items), _fit(own_items, users))
    even, even_if_turned = _evenness(system.lengths), _evenness(Counter(system.items.counts[0].tolist()))
    is_far_above = even_if_turned >= _EVEN and even < even_if_turned / 2
    if not is_far_above and turned - as_read < _MANY:
        return
    yield (
        "its users seem to be the items of the test set, and its items the users: their ids fit both columns, and the "
        "lists look like lists only if users and items are swapped; name the columns of the run (--run-user, "
        "--run-item) or of the test set (--user, --item)"
    )


def _share(ids: Vocabulary, others: Vocabulary) -> float:
    """Return the share of ids that are also in another vocabulary."""
    return float(in_both(ids, others)[0].mean()) if len(ids) else 0.0


def _fit(ids: Vocabulary, others: Vocabulary) -> float:
    """Return the share of common ids in either vocabulary, the smaller of the two."""
    return min(_share(ids, others), _share(others, ids))


def _evenness(lengths: Mapping[int, int]) -> float:
    """Return the share of the non-empty lists that are as long as the longest, given the number of each length."""
    counts = {length: count for length, count in lengths.items() if length}
    return counts[max(counts)] / sum(counts.values()) if counts else 1.0


def _strangers(system: SystemTally, problem: str, ids: Vocabulary, others: Vocabulary, remedy: str) -> InputError:
    form = differing_form(ids, others)
    if form is not None:
        remedy = "write the ids the same way in both files"
    return InputError(
        f"{problem}: the run has {examples(ids)}, the test set {examples(others)}"
        f"{'' if form is None else f'; they differ by {form}'}",
        source=_file(system.history),
        remedy=remedy,
    )


def _on_few_met(kind: str, met: int, known: tuple[int, int], unmet: tuple[pl.Series, pl.Series]) -> Iterator[str]:
    """Warn that few ids match, or that more would if run and test set wrote them the same way.

    ``known`` is the number of ids of each side, and ``unmet`` are all or some of those that the other side lacks.
    """
    mine, theirs = map(Vocabulary.of, unmet)
    form = differing_form(mine, theirs) if min(len(mine), len(theirs)) > 1 else None
    if form is None and met >= _FEW * min(known):
        return
    reason = "" if form is None else f"; these differ by {form}"
    yield (
        f"the test set has only {met:,} of the {known[0]:,} {kind} of the run, and {known[1]:,} in all; the others "
        f"of the run are {examples(mine)}, those of the test set {examples(theirs)}{reason}"
    )


def _on_swapped(systems: Sequence[SystemTally], test: RatingsTally) -> Iterator[tuple[SystemTally, str]]:
    """Warn that the test set contains scores of a system, and the run ratings; refuse if there are further signs."""
    if test.values is None or len(test.values) <= _MOST_RATINGS:
        return
    are_scores = not _has_steps(test.values)
    for system in systems:
        if system.values is None or len(system.values) > _MOST_RATINGS or not _has_steps(system.values):
            continue
        named = _named(test.history, "rating") in _SCORES and _named(system.history, "prediction") in _RATINGS
        # Integers may be the scores of a system, such as popularity, or the counts of a test set. A system may also
        # have few different scores, such as 10, 9, 8, ... for ten ranks. Then no two of a list are equal.
        if not named and not (are_scores and system.ranked.counts.get("tied_items")):
            continue
        problem = "the test set and the run seem to be swapped: the test set holds scores, and this run ratings"
        if named or test.is_even:
            raise InputError(
                problem,
                source=_place(system),
                remedy="give the held-out ratings as the test set (--test), and the lists of a system as the run",
            )
        yield system, problem


def _named(history: Sequence[Step], role: str) -> str:
    """Return the name of the column of a role, in lower case; empty if it has none."""
    columns = history[-1].settings.get("columns") or {} if history else {}
    return str(columns.get(role, "")).lower()


def _has_steps(values: NDArray[Any]) -> bool:
    """Return whether numbers have steps of a half or more, as ratings do."""
    return bool((np.remainder(values, 0.5) == 0).all())


def _on_shared(test: RatingsTally, in_train: int) -> Iterator[str]:
    """Warn that test and training set share ratings, or refuse them if they are the same."""
    if not test.shared:
        return
    if test.shared == test.ratings == in_train:
        raise InputError(
            "the test set is the training set: they hold the same users and items",
            source=_file(test.history),
            remedy="give the held-out ratings as the test set",
        )
    yield (
        f"{test.shared:,} of {test.ratings:,} test ratings ({test.shared / test.ratings:.0%}) are in the training set "
        "too: a system that was trained on it has seen them"
    )


def _on_no_hits(systems: Sequence[SystemTally], test: RatingsTally, n_runs: int) -> Iterator[tuple[SystemTally, str]]:
    """Look for lists without any hit, where some are expected by chance; if no run has a hit, it is an error.

    If the training ratings are passed as the test set, there are no hits, since systems do not recommend what a user
    has rated.
    """
    expected = [(system, _by_chance(system, test)) for system in systems if not system.hits]
    without = [(system, hits) for system, hits in expected if hits >= _EXPECTED_HITS]
    for system, hits in without:
        problem = (
            f"no list holds any item that its user has rated in the test set, although chance alone would find about "
            f"{hits:,.0f}"
        )
        if len(without) == n_runs:
            remedy = (
                "this happens if the training ratings are given as the test set, or as the run; give the held-out "
                "ratings as the test set (--test), and the lists of a system as the run"
            )
            raise InputError(problem, source=_place(system), remedy=remedy)
        yield system, problem


def _by_chance(system: SystemTally, test: RatingsTally) -> float:
    """Return the expected number of hits if test profiles were assigned to the users at random.

    With n users, an item in l lists and t profiles has l·t/n expected hits.
    """
    codes = test.items.ids.codes(system.items.ids.all)
    known = codes != UNKNOWN
    return float(system.items.counts[1, known] @ test.items.counts[0, codes[known]]) / max(test.lists, 1)


def _on_seen(systems: Sequence[SystemTally]) -> Iterator[str]:
    """Warn that lists contain items that their user rated in training."""
    seen = [
        f"{system.seen:,} of {system.ranked.n_entries:,} items of {system.ranked.name} "
        f"({system.seen / system.ranked.n_entries:.0%})"
        for system in systems
        if system.seen
    ]
    if seen:
        more = [f"those of {len(seen) - _RUNS_SHOWN} more runs"] if len(seen) > _RUNS_SHOWN else []
        yield (
            f"lists hold items from their user's training ratings, which take up places and are hardly ever in the "
            f"test set: {listed([*seen[:_RUNS_SHOWN], *more])}"
        )


def _on_same_lists(systems: Sequence[SystemTally]) -> Iterator[str]:
    """Warn about runs with the same lists under different names."""
    names: dict[int, list[str]] = {}
    for system in systems:
        names.setdefault(system.digest, []).append(system.ranked.name)
    for alike in names.values():
        if len(alike) > 1:
            yield f"{listed(alike)} hold the same lists, as if one file were given under several names"


_FORMS: Mapping[str, Callable[[pl.Series], pl.Series]] = {
    "Unicode normalisation (é as one character or as two: write both in the form NFC)": lambda ids: ids.str.normalize(),
    "surrounding spaces": lambda ids: ids.str.strip_chars(),
    "upper and lower case": lambda ids: ids.str.to_lowercase(),
    "a prefix (user_7 against 7)": lambda ids: ids.str.replace(r"^[^0-9]+", ""),
    "a decimal part (1.0 against 1)": lambda ids: ids.str.replace(r"\.0+$", ""),
    "leading zeros (007 against 7)": lambda ids: ids.str.replace(r"^0+([0-9])", "$1"),
}
"""Ways in which ids may differ, and functions that normalise them; each is tried alone, then all in sequence."""


def differing_form(own: Vocabulary, others: Vocabulary, share: float = 0.5) -> str | None:
    """Return a description of how the same ids are written in two vocabularies; None if they are not the same ids.

    They are the same if normalising matches more of them, and at least this ``share`` of the smaller vocabulary.

    Examples
    --------
    >>> differing_form(Vocabulary.of(["007", "008"]), Vocabulary.of([7, 8, 9]))
    'leading zeros (007 against 7)'
    >>> differing_form(Vocabulary.of(["ann", "bob"]), Vocabulary.of([7, 8, 9])) is None
    True
    """
    if own.dtype.is_integer() and others.dtype.is_integer():
        return None
    mine, theirs = sorted((own.text, others.text), key=len)
    mine = mine.head(_IDS_COMPARED)
    wanted = max(share * len(mine), _common(mine, theirs) + 1)
    for name, alike in _FORMS.items():
        if _changes(alike, mine, theirs) and _common(alike(mine), alike(theirs)) >= wanted:
            return name
    changing = []
    for name, alike in _FORMS.items():
        if _changes(alike, mine, theirs):
            changing.append(name.partition(" (")[0])
            mine, theirs = alike(mine), alike(theirs)
    return listed(changing) if len(changing) > 1 and _common(mine, theirs) >= wanted else None


def _changes(alike: Callable[[pl.Series], pl.Series], mine: pl.Series, theirs: pl.Series) -> bool:
    """Whether normalising a form changes any of the first ids."""
    return not all(alike(ids).equals(ids) for ids in (mine.head(_IDS_COMPARED), theirs.head(_IDS_COMPARED)))


def examples(ids: Vocabulary) -> str:
    """Return the first ids of a vocabulary, as text for messages.

    Examples
    --------
    >>> examples(Vocabulary.of(["a ", "b"])), examples(Vocabulary.of([3, 1, 2, 4]))
    ("'a ' and 'b'", '1, 2 and 3')
    """
    return listed([repr(example) for example in ids.all.head(_IDS_SHOWN)])


def _common(mine: pl.Series, theirs: pl.Series) -> int:
    distinct = mine.unique()
    # Ids that consisted only of a prefix are empty now, and do not count.
    return int((distinct.is_in(theirs.unique().implode()) & (distinct != "")).sum())
