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
from cranfield._record import Step
from cranfield.data import Ratings
from cranfield.facts import Fact
from cranfield.facts import scores as scores_facts
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
# Lists without a hit, where this many are expected by chance, were not made for this test set.
_EXPECTED_HITS = 20.0
# If a run of at least this many items equals the test set, ratings included, this is not a coincidence.
_ENOUGH_FOR_A_COPY = 100
# Maximum number of ids named in a warning, and the number of ids to compare.
_IDS_SHOWN, _IDS_COMPARED = 3, 2000
# Maximum number of distinct values of ratings, which have steps of a half or more.
_MOST_RATINGS = 21
_SCORES, _RATINGS = ("score", "scores", "prediction", "predictions"), ("rating", "ratings", "stars")


def check_inputs(judged: Sequence[Judged], test: Ratings | None = None, *, strict: bool = False) -> tuple[Fact, ...]:
    """Refuse inputs that must be mistakes, and return a warning for each that is implausible.

    Only runs in memory are checked, not those that an experiment made and stored. With ``strict``, a warning is an
    error. ``test`` is the test set as it was read; training ratings are those of the lists' context.
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
) -> tuple[Fact, ...]:
    """Check the tallies of all users: refuse what must be a mistake, and return warnings; see `check_inputs`."""
    # Whoever says what counts of the items that users have again knows that there are some.
    decided = any(step.action == "repeats" for step in test.history)
    of_ratings = [] if decided else _on_shared(test, 0 if train is None else len(train))
    whole = [system for system in systems if not system.ranked.one_relevant]
    copies = [system for system in whole if system.is_copy and system.hits >= _ENOUGH_FOR_A_COPY]
    of_runs = [
        *((system, fact) for system in whole for fact in _on_ids(system, test, train)),
        *_on_swapped(systems, test),
        *_on_no_hits(whole, test, len(systems)),
        *((system, scores_facts.Suspicion("copy")) for system in copies),
    ]
    warnings = [
        *of_ratings,
        *scores_facts.OfRuns.of([(system.ranked.name, fact) for system, fact in of_runs], len(systems)),
        *([] if decided else _on_seen(systems, test)),
        *_on_same_lists(systems),
    ]
    return accepted(warnings, strict=strict)


def accepted(warnings: Sequence[Fact], *, strict: bool) -> tuple[Fact, ...]:
    """Return the warnings, or raise the first as an error if ``strict``."""
    if strict and warnings:
        raise InputError(str(warnings[0]), remedy="fix it, or leave strict=True out to continue with a warning")
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
        remedy="give the held-out ratings as the test set (test=...), and the lists of a system as the run",
    )


def _on_ids(system: SystemTally, test: RatingsTally, train: Ratings | None) -> Iterator[scores_facts.OfRun]:
    """Check how many users and items of a run are in the test set; none is an error."""
    if system.met < max(system.users, 1):
        if not system.met:
            mine, theirs = (Vocabulary.of(ids) for ids in system.unmet)
            _refuse_swapped_columns(system, mine, theirs, test)
            problem = f"no user of {_called(system)} has test ratings"
            raise _strangers(system, problem, mine, theirs, "give the run and the test set of one split")
        yield from _on_few_met("users", system.met, (system.users, test.users), system.unmet)
    if not system.ranked.n_entries:
        yield scores_facts.Suspicion("empty")
        return
    items, test_items = system.items.ids, test.items.ids
    known, listed_items = in_both(items, test_items)
    if train is not None:
        known = known | in_both(items, train.item_ids)[0]
    if not known.any():
        where = "the test set" if train is None else "the test set or the training set"
        remedy = (
            "give the run and the test set of the same data; if the system ranks other items only, give the training "
            "ratings that hold them"
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
            remedy="name the columns: user=... and item=...",
        )


def _on_turned_columns(system: SystemTally, test: RatingsTally) -> Iterator[scores_facts.OfRun]:
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
    if is_far_above or turned - as_read >= _MANY:
        yield scores_facts.Suspicion("turned")


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
    forms = differing_forms(ids, others)
    if forms:
        remedy = "write the ids the same way in both files"
    mine, theirs = (scores_facts.ids_text(_examples(known)) for known in (ids, others))
    return InputError(
        f"{problem}: the run has {mine}, the test set {theirs}"
        f"{f'; they differ by {scores_facts.form_text(forms)}' if forms else ''}",
        source=_file(system.history),
        remedy=remedy,
    )


def _on_few_met(
    things: str, met: int, known: tuple[int, int], unmet: tuple[pl.Series, pl.Series]
) -> Iterator[scores_facts.OfRun]:
    """Warn that few ids match, or that more would if run and test set wrote them the same way.

    ``known`` is the number of ids of each side, and ``unmet`` are all or some of those that the other side lacks.
    """
    mine, theirs = map(Vocabulary.of, unmet)
    forms = differing_forms(mine, theirs) if min(len(mine), len(theirs)) > 1 else ()
    if forms or met < _FEW * min(known):
        yield scores_facts.FewInCommon(things, met, *known, _examples(mine), _examples(theirs), forms)


def _on_swapped(systems: Sequence[SystemTally], test: RatingsTally) -> Iterator[tuple[SystemTally, scores_facts.OfRun]]:
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
        problem = scores_facts.Suspicion("swapped")
        if named or test.is_even:
            raise InputError(
                str(problem),
                source=_place(system),
                remedy="give the held-out ratings as the test set (test=...), and the lists of a system as the run",
            )
        yield system, problem


def _named(history: Sequence[Step], role: str) -> str:
    """Return the name of the column of a role, in lower case; empty if it has none."""
    columns = history[-1].settings.get("columns") or {} if history else {}
    return str(columns.get(role, "")).lower()


def _has_steps(values: NDArray[Any]) -> bool:
    """Return whether numbers have steps of a half or more, as ratings do."""
    return bool((np.remainder(values, 0.5) == 0).all())


def _on_shared(test: RatingsTally, in_train: int) -> list[Fact]:
    """Warn that test and training set share ratings, or refuse them if they are the same."""
    if test.shared and test.shared == test.ratings == in_train:
        raise InputError(
            "the test set is the training set: they hold the same users and items",
            source=_file(test.history),
            remedy="give the held-out ratings as the test set",
        )
    return [scores_facts.SharedRatings(test.shared, test.ratings)] if test.shared else []


def _on_no_hits(
    systems: Sequence[SystemTally], test: RatingsTally, n_runs: int
) -> Iterator[tuple[SystemTally, scores_facts.OfRun]]:
    """Look for lists without any hit, where some are expected by chance; if no run has a hit, it is an error.

    If the training ratings are passed as the test set, there are no hits, since systems do not recommend what a user
    has rated.
    """
    expected = [(system, _by_chance(system, test)) for system in systems if not system.hits]
    without = [(system, hits) for system, hits in expected if hits >= _EXPECTED_HITS]
    for system, hits in without:
        problem = scores_facts.NoHits(hits)
        if len(without) == n_runs:
            remedy = (
                "this happens if the training ratings are given as the test set (test=...), or as the run; give the "
                "held-out ratings as the test set, and the lists of a system as the run"
            )
            raise InputError(str(problem), source=_place(system), remedy=remedy)
        yield system, problem


def _by_chance(system: SystemTally, test: RatingsTally) -> float:
    """Return the expected number of hits if test profiles were assigned to the users at random.

    With n users, an item in l lists and t profiles has l·t/n expected hits.
    """
    codes = test.items.ids.codes(system.items.ids.all)
    known = codes != UNKNOWN
    return float(system.items.counts[1, known] @ test.items.counts[0, codes[known]]) / max(test.lists, 1)


def _on_seen(systems: Sequence[SystemTally], test: RatingsTally) -> list[Fact]:
    """Warn that lists contain items that their user rated in training."""
    seen = [(system.ranked.name, system.seen, system.ranked.n_entries) for system in systems if system.seen]
    return [scores_facts.SeenItems(tuple(seen), test.shared / max(test.ratings, 1))] if seen else []


def _on_same_lists(systems: Sequence[SystemTally]) -> list[Fact]:
    """Warn about runs with the same lists under different names."""
    names: dict[int, list[str]] = {}
    for system in systems:
        names.setdefault(system.digest, []).append(system.ranked.name)
    return [scores_facts.SameLists(tuple(alike)) for alike in names.values() if len(alike) > 1]


_FORMS: Mapping[str, Callable[[pl.Series], pl.Series]] = {
    "Unicode normalisation": lambda ids: ids.str.normalize(),
    "surrounding spaces": lambda ids: ids.str.strip_chars(),
    "upper and lower case": lambda ids: ids.str.to_lowercase(),
    "a prefix": lambda ids: ids.str.replace(r"^[^0-9]+", ""),
    "a decimal part": lambda ids: ids.str.replace(r"\.0+$", ""),
    "leading zeros": lambda ids: ids.str.replace(r"^0+([0-9])", "$1"),
}
"""Ways in which ids may differ, and functions that normalise them; each is tried alone, then all in sequence."""


def differing_forms(own: Vocabulary, others: Vocabulary) -> tuple[str, ...]:
    """Return how the same ids are written differently in two vocabularies; empty if they are not the same ids.

    They are the same if normalising matches more of them, and at least half of the smaller vocabulary.
    """
    if own.dtype.is_integer() and others.dtype.is_integer():
        return ()
    mine, theirs = sorted((own.text, others.text), key=len)
    mine = mine.head(_IDS_COMPARED)
    wanted = max(len(mine) / 2, _common(mine, theirs) + 1)
    for name, alike in _FORMS.items():
        if _changes(alike, mine, theirs) and _common(alike(mine), alike(theirs)) >= wanted:
            return (name,)
    changing = []
    for name, alike in _FORMS.items():
        if _changes(alike, mine, theirs):
            changing.append(name)
            mine, theirs = alike(mine), alike(theirs)
    return tuple(changing) if len(changing) > 1 and _common(mine, theirs) >= wanted else ()


def _changes(alike: Callable[[pl.Series], pl.Series], mine: pl.Series, theirs: pl.Series) -> bool:
    """Whether normalising a form changes any of the first ids."""
    return not all(alike(ids).equals(ids) for ids in (mine.head(_IDS_COMPARED), theirs.head(_IDS_COMPARED)))


def _examples(ids: Vocabulary) -> tuple[scores_facts.Id, ...]:
    return tuple(ids.all.head(_IDS_SHOWN))


def _common(mine: pl.Series, theirs: pl.Series) -> int:
    distinct = mine.unique()
    # Ids that consisted only of a prefix are empty now, and do not count.
    return int((distinct.is_in(theirs.unique().implode()) & (distinct != "")).sum())
