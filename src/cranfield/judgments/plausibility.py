"""Checks for implausible inputs before measuring, which raise errors or return warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield._numbers import listed
from cranfield._record import Step
from cranfield.data import Ratings
from cranfield.judgments.id_forms import differing_form, examples
from cranfield.judgments.inputs import as_judgments
from cranfield.judgments.joining import count_hits
from cranfield.judgments.judged import Judged
from cranfield.rankings import Run
from cranfield.tables import UNKNOWN, Vocabulary

FEW = 0.1
"""A warning is given if a smaller share of the users or items is in both the run and the test set. It is a share of the
smaller of the two: a run with more users than the test set is not suspicious, and neither is one with fewer."""
# Columns are swapped if this share of the ids of each is in the other column of the test set.
_MANY = 0.5
# Lists count as equally long, like those of a system, if this share of them is as long as the longest.
_EVEN = 0.5
# Minimum number of users and items for conclusions about columns.
_HANDFUL = 10
# Lists without a hit, where this many are expected by chance, were not made for this test set.
_EXPECTED_HITS = 20.0
ENOUGH_FOR_A_COPY = 100
"""If a run of at least this many items equals the test set, ratings included, this is not a coincidence."""
COPY = "the lists hold the items of the test set with their ratings, as a copy of it would"
NO_ITEMS = "every list is empty, and scores 0"
# Maximum number of runs named in a warning.
_SHOWN = 4
# Maximum number of distinct values of ratings, which have steps of a half or more; and the sample size.
_MOST_RATINGS, _SAMPLE = 21, 10_000
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
    train = judged[0].context.train
    of_ratings = list(_on_training_as_test(train, test))
    of_runs = [
        *((run, note) for lists, run in pairs if not run.one_relevant for note in _on_ids(lists, run)),
        *on_swapped([run for _, run in pairs], test),
        *_on_hits(pairs),
    ]
    warnings = [
        *of_ratings,
        *named_once(of_runs, len(pairs)),
        *_on_seen_items([run for _, run in pairs], train),
        *_on_same_lists([run for _, run in pairs]),
    ]
    return accepted(warnings, strict=strict)


def accepted(warnings: Sequence[str], *, strict: bool) -> tuple[str, ...]:
    """Return the warnings, or raise the first as an error if ``strict``."""
    if strict and warnings:
        raise InputError(warnings[0], remedy="fix it, or leave --strict (strict=True) out to continue with a warning")
    return tuple(warnings)


def named_once(notes: Sequence[tuple[Run, str]], n_runs: int) -> Iterator[str]:
    """Yield each note once, with the names of its runs."""
    names: dict[str, list[str]] = {}
    for run, note in notes:
        names.setdefault(note, []).append(run.name)
    for note, who in names.items():
        yield f"{'every run' if len(who) == n_runs > 1 else listed(who)}: {note}"


def _place(run: Run) -> str:
    """Return the file that a run was read from, or its name."""
    path = _file(run.history)
    return f"the run {run.name}" if path is None else str(path)


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


def _on_ids(judged: Judged, run: Run) -> Iterator[str]:
    """Check how many users and items of a run are in the test set; none is an error."""
    judgments = judged.judgments
    users, items = judgments.user_ids, judgments.item_ids
    known_users = _known(run.user_ids, users)
    if not known_users.any():
        refuse_other_users(run, users, items)
    yield from _on_share("users", known_users, run.user_ids, users)
    if not len(run.items):
        yield NO_ITEMS
        return
    yield from on_items(run, items, judged.context.train)
    yield from _on_turned_columns(run, users, items)


def refuse_other_users(run: Run, users: Vocabulary, items: Vocabulary) -> NoReturn:
    """Refuse a run without users of the test set; ``users`` and ``items`` are those of the test set."""
    _refuse_swapped_columns(run, users, items)
    problem = f"no user of {_called(run)} has test ratings"
    raise _strangers(run, problem, run.user_ids, users, "give the run and the test set of one split")


def on_items(run: Run, items: Vocabulary, train: Ratings | None) -> Iterator[str]:
    """Check how many items of a run are in the test set; none is an error."""
    known_items = _known(run.item_ids, items)
    if train is not None:
        known_items = known_items | _known(run.item_ids, train.item_ids)
    if not known_items.any():
        problem = f"no item of {_called(run)} is in the test set{'' if train is None else ' or the training set'}"
        remedy = (
            "give the run and the test set of the same data; if the system ranks other items only, give the training "
            "ratings that hold them (--train)"
        )
        raise _strangers(run, problem, run.item_ids, items, remedy)
    yield from _on_share("items", known_items, run.item_ids, items)


def _known(ids: Vocabulary, others: Vocabulary) -> NDArray[np.bool_]:
    """Return which ids of a vocabulary are also in another."""
    codes = others.translation(ids)
    return np.ones(len(ids), dtype=np.bool_) if codes is None else codes != UNKNOWN


def _refuse_swapped_columns(run: Run, users: Vocabulary, items: Vocabulary) -> None:
    """Refuse a run whose users are items of the test set, and whose items are users."""
    if min(_share(run.user_ids, items), _share(run.item_ids, users)) >= _MANY:
        raise InputError(
            f"the users of {_called(run)} are items of the test set, and its items are users",
            source=_file(run.history),
            remedy="name the columns: user=... and item=... (--run-user, --run-item)",
        )


def _on_turned_columns(run: Run, users: Vocabulary, items: Vocabulary) -> Iterator[str]:
    """Warn that users and items seem to be swapped, if the ids of both overlap.

    There are two signs: lists have the same length far more often if users and items are swapped, or the ids of both
    sides fit the other column much better (by 0.5 or more). A handful of lists shows neither.
    """
    if not run.history or run.history[-1].action != "read_run" or min(len(run.user_ids), len(run.item_ids)) < _HANDFUL:
        return
    if min(_share(run.user_ids, items), _share(run.item_ids, users)) < _MANY:
        return
    as_read = min(_fit(run.user_ids, users), _fit(run.item_ids, items))
    turned = min(_fit(run.user_ids, items), _fit(run.item_ids, users))
    even, even_if_turned = _evenness(np.diff(run.indptr)), _evenness(np.bincount(run.items))
    if not _is_far_above(even_if_turned, even) and turned - as_read < _MANY:
        return
    yield (
        "its users seem to be the items of the test set, and its items the users: their ids fit both columns, and the "
        "lists look like lists only if users and items are swapped; name the columns of the run (--run-user, "
        "--run-item) or of the test set (--user, --item)"
    )


def _share(ids: Vocabulary, others: Vocabulary) -> float:
    """Return the share of ids that are also in another vocabulary."""
    return float(_known(ids, others).mean()) if len(ids) else 0.0


def _fit(ids: Vocabulary, others: Vocabulary) -> float:
    """Return the share of common ids in either vocabulary, the smaller of the two."""
    return min(_share(ids, others), _share(others, ids))


def _evenness(lengths: NDArray[Any]) -> float:
    """Return the share of the non-empty lists that are as long as the longest."""
    lengths = lengths[lengths > 0]
    return float((lengths == lengths.max()).mean()) if len(lengths) else 1.0


def _is_far_above(share: float, other: float) -> bool:
    return share >= _EVEN and other < share / 2


def _called(run: Run) -> str:
    return "this run" if _file(run.history) is not None else f"the run {run.name}"


def _strangers(run: Run, problem: str, ids: Vocabulary, others: Vocabulary, remedy: str) -> InputError:
    form = differing_form(ids, others)
    if form is not None:
        remedy = "write the ids the same way in both files"
    path = _file(run.history)
    return InputError(
        f"{problem}: the run has {examples(ids)}, the test set {examples(others)}"
        f"{'' if form is None else f'; they differ by {form}'}",
        source=None if path is None else str(path),
        remedy=remedy,
    )


def _on_share(kind: str, known: NDArray[np.bool_], run_ids: Vocabulary, others: Vocabulary) -> Iterator[str]:
    """Warn that few ids of a run are in the test set, or that more would be if both were written the same way."""
    if not known.all():
        mine, theirs = (Vocabulary(ids) for ids in (run_ids.all.filter(pl.Series(~known)), _others(run_ids, others)))
        yield from on_few_met(kind, int(known.sum()), (len(run_ids), len(others)), (mine, theirs))


def on_few_met(kind: str, met: int, known: tuple[int, int], unmet: tuple[Vocabulary, Vocabulary]) -> Iterator[str]:
    """Warn that few ids match, or that more would if run and test set wrote them the same way.

    ``known`` is the number of ids of each side, and ``unmet`` are all or some of those that the other side lacks.
    """
    mine, theirs = unmet
    form = differing_form(mine, theirs) if min(len(mine), len(theirs)) > 1 else None
    if form is None and met >= FEW * min(known):
        return
    reason = "" if form is None else f"; these differ by {form}"
    yield (
        f"the test set has only {met:,} of the {known[0]:,} {kind} of the run, and {known[1]:,} in all; the others "
        f"of the run are {examples(mine)}, those of the test set {examples(theirs)}{reason}"
    )


def _others(ids: Vocabulary, others: Vocabulary) -> pl.Series:
    """Return the ids of the second vocabulary that are not in the first."""
    codes = others.translation(ids)
    missing = np.ones(len(others), dtype=np.bool_)
    if codes is not None:
        missing[codes[codes != UNKNOWN]] = False
    return others.all.filter(pl.Series(missing))


def on_swapped(runs: Sequence[Run], test: Ratings | None) -> Iterator[tuple[Run, str]]:
    """Warn that the test set contains scores of a system, and the run ratings; refuse if there are further signs."""
    if test is None or not _has_many_values(test.values):
        return
    are_scores = _are_scores(test.values)
    counts = test.user_counts[test.user_counts > 0]
    even = len(counts) > 1 and counts[0] > 1 and bool((counts == counts[0]).all())
    for run in runs:
        if run.scores is None or run.made_scores or not _are_ratings(run.scores):
            continue
        named = _named(test.history, "rating") in _SCORES and _named(run.history, "prediction") in _RATINGS
        # Integers may be the scores of a system, such as popularity, or the counts of a test set. A system may also
        # have few different scores, such as 10, 9, 8, ... for ten ranks. Then no two of a list are equal.
        if not named and not (are_scores and run.counts.get("tied_items")):
            continue
        problem = "the test set and the run seem to be swapped: the test set holds scores, and this run ratings"
        if named or even:
            raise InputError(
                problem,
                source=_place(run),
                remedy="give the held-out ratings as the test set (--test), and the lists of a system as the run",
            )
        yield run, problem


def _named(history: Sequence[Step], role: str) -> str:
    """Return the name of the column of a role, in lower case; empty if it has none."""
    columns = history[-1].settings.get("columns") or {} if history else {}
    return str(columns.get(role, "")).lower()


def _are_scores(values: NDArray[Any]) -> bool:
    """Return whether numbers look like the scores of a system: many different ones, between the steps of ratings."""
    return _has_many_values(values) and not _has_steps(np.unique(values[:_SAMPLE]))


def _has_many_values(values: NDArray[Any]) -> bool:
    """Return whether numbers have more different values than ratings do."""
    return len(np.unique(values[:_SAMPLE])) > _MOST_RATINGS


def _are_ratings(values: NDArray[Any]) -> bool:
    """Return whether numbers look like ratings: few different ones, in steps of a half or more."""
    first = np.unique(values[:_SAMPLE])
    return len(first) <= _MOST_RATINGS and _has_steps(first)


def _has_steps(values: NDArray[Any]) -> bool:
    return bool((np.remainder(values, 0.5) == 0).all())


def _on_training_as_test(train: Ratings | None, test: Ratings | None) -> Iterator[str]:
    """Refuse a test set that is the training set, and warn if the two share ratings."""
    if train is not None and test is not None and len(train) and len(test):
        yield from on_shared(shared_ratings(test, train), len(test), len(train), _file(test.history))


def shared_ratings(test: Ratings, train: Ratings) -> int:
    """Return the number of test ratings that are also in the training set."""
    return count_hits(_as_run(test), as_judgments(train, None))


def on_shared(shared: int, in_test: int, in_train: int, file: Path | None) -> Iterator[str]:
    """Warn that test and training set share ratings, or refuse them if they are the same."""
    if shared == in_test == in_train:
        raise InputError(
            "the test set is the training set: they hold the same users and items",
            source=file,
            remedy="give the held-out ratings as the test set",
        )
    if shared:
        yield (
            f"{shared:,} of {in_test:,} test ratings ({shared / in_test:.0%}) are in the training set too: a system "
            "that was trained on it has seen them"
        )


def _as_run(ratings: Ratings) -> Run:
    """Return the profiles of users as lists, to be joined with other ratings."""
    users = np.flatnonzero(ratings.user_counts).astype(np.int32)
    indptr = np.append(ratings.indptr[users], len(ratings))
    return Run("test", ratings.user_ids, ratings.item_ids, users, indptr, ratings.items)


def _on_hits(pairs: Sequence[tuple[Judged, Run]]) -> Iterator[tuple[Run, str]]:
    """Look for lists without any hit, where some are expected by chance, and for copies of the test set.

    If the training ratings are passed as the test set, there are no hits, since systems do not recommend what a user
    has rated. If no run has a hit, nothing can be measured.
    """
    without = [(run, _by_chance(lists, run)) for lists, run in pairs if not len(lists) and not run.one_relevant]
    yield from on_no_hits(without, len(pairs))
    for lists, run in pairs:
        if is_copy(lists, run):
            yield run, COPY


def on_no_hits(without: Sequence[tuple[Run, float]], n_runs: int) -> Iterator[tuple[Run, str]]:
    """Check runs without a hit, each with the number of hits expected by chance."""
    without = [(run, expected) for run, expected in without if expected >= _EXPECTED_HITS]
    for run, expected in without:
        problem = (
            f"no list holds any item that its user has rated in the test set, although chance alone would find about "
            f"{expected:,.0f}"
        )
        if len(without) == n_runs:
            remedy = (
                "this happens if the training ratings are given as the test set, or as the run; give the held-out "
                "ratings as the test set (--test), and the lists of a system as the run"
            )
            raise InputError(problem, source=_place(run), remedy=remedy)
        yield run, problem


def is_copy(judged: Judged, run: Run, at_least: int = ENOUGH_FOR_A_COPY) -> bool:
    """Whether a run contains all ratings of the test set, each as a score, and nothing else."""
    if run.scores is None or run.one_relevant or not at_least <= len(judged) == len(run.items) == len(judged.judgments):
        return False
    assert judged.places is not None  # every join has them
    return np.array_equal(run.scores[judged.places], judged.grades)


def _by_chance(judged: Judged, run: Run) -> float:
    """Return the expected number of hits if test profiles were assigned to the users at random.

    With n users, an item in l lists and t profiles has l·t/n expected hits.
    """
    judgments = judged.judgments
    users = judgments.user_ids.translation(run.user_ids)
    items = judgments.item_ids.translation(run.item_ids)
    measured = np.isin(run.users if users is None else users[run.users], judgments.users)
    listed_items = run.items[np.repeat(measured, np.diff(run.indptr))]
    listed_items = listed_items if items is None else items[listed_items]
    n_items = len(judgments.item_ids)
    in_lists = np.bincount(listed_items[listed_items != UNKNOWN], minlength=n_items)
    in_profiles = np.bincount(judgments.items, minlength=n_items)
    return float(in_lists @ in_profiles) / judgments.n_lists


def _on_seen_items(runs: Sequence[Run], train: Ratings | None) -> Iterator[str]:
    """Warn that lists from files contain items that their user rated in training."""
    if train is None or not len(train):
        return
    counts = []
    for run in runs:
        made_here = bool(run.history) and run.history[-1].action != "read_run"
        count = 0 if run.one_relevant or made_here else count_hits(run, as_judgments(train, None))
        counts.append((run.name, count, len(run.items)))
    yield from on_seen(counts)


def on_seen(counts: Sequence[tuple[str, int, int]]) -> Iterator[str]:
    """Warn about systems that recommend items their user has rated; ``counts`` are name, such items, all items."""
    seen = [f"{count:,} of {held:,} items of {name} ({count / held:.0%})" for name, count, held in counts if count]
    if seen:
        more = [f"those of {len(seen) - _SHOWN} more runs"] if len(seen) > _SHOWN else []
        yield (
            f"lists hold items from their user's training ratings, which take up places and are hardly ever in the "
            f"test set: {listed([*seen[:_SHOWN], *more])}"
        )


def _on_same_lists(runs: Sequence[Run]) -> Iterator[str]:
    """Warn about runs with the same lists under different names."""
    kinds: dict[tuple[int, bytes], list[list[Run]]] = {}
    for run in runs:
        # Most runs differ in their first lists; only the others are compared completely.
        same = kinds.setdefault((len(run.items), run.items[:_SAMPLE].tobytes()), [])
        group = next((group for group in same if _same_lists(group[0], run)), None)
        if group is None:
            same.append([run])
        else:
            group.append(run)
    for group in (group for same in kinds.values() for group in same if len(group) > 1):
        yield same_lists_note([run.name for run in group])


def same_lists_note(names: Sequence[str]) -> str:
    """Return the warning that runs have the same lists."""
    return f"{listed(names)} hold the same lists, as if one file were given under several names"


def _same_lists(run: Run, other: Run) -> bool:
    return (
        all(np.array_equal(mine, theirs) for mine, theirs in zip(_arrays(run), _arrays(other)))
        and run.user_ids == other.user_ids
        and run.item_ids == other.item_ids
    )


def _arrays(run: Run) -> list[NDArray[Any]]:
    """Return the arrays of the lists of a run; one-relevant lists differ only in their ranks."""
    ranks = np.zeros(0, dtype=np.int32) if run.ranks is None else run.ranks
    return [run.items, run.users, run.indptr, ranks]
