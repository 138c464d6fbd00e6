"""Inputs that cannot be meant: looked at before anything is measured, refused or said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield._phrases import listed
from cranfield.data import UNKNOWN, Ratings, Vocabulary
from cranfield.measures.id_forms import differing_form, examples
from cranfield.measures.inputs import as_judgments
from cranfield.measures.joining import count_hits
from cranfield.measures.judged import Judged
from cranfield.rankings.run import Run

FEW = 0.1
"""Fewer of the ids than this share meet: a warning. The share is of the side, run or test set, that has fewer ids."""
# Below this share it is worth finding out whether the two sides write the same ids in two ways.
_MANY = 0.5
# Lists in which chance alone would find so many test ratings, and that hold none, were not made for this test set.
_EXPECTED_HITS = 20.0
# A run that holds so many items, all those of the test set and no others, is not a coincidence.
_COPY = 100
# Ratings have steps of a half or more and few different values; the scores of a system do not.
_MOST_RATINGS, _SAMPLE = 21, 10_000


def check_inputs(judged: Sequence[Judged], test: Ratings | None = None, *, strict: bool = False) -> tuple[str, ...]:
    """Refuse inputs that cannot be meant, and return a sentence for each thing that hardly can.

    Only runs that are at hand are looked at, not those that an experiment made and keeps.

    Parameters
    ----------
    judged
        Runs met with the test set; ``context.train`` holds the training ratings, if there are any.
    test
        The test set as it was read.
    strict
        Raise an error instead of returning a sentence.
    """
    pairs = [(one, one.source) for one in judged if isinstance(one.source, Run)]
    _refuse_same_file([run for _, run in pairs], test)
    train = judged[0].context.train
    warnings = [
        *(note for one, run in pairs if not run.one_relevant for note in _on_ids(one, run)),
        *_on_swapped([run for _, run in pairs], test),
        *_on_training_as_test(train, test),
        *_on_hits(pairs),
        *(note for _, run in pairs for note in _on_seen_items(run, train)),
        *_on_same_lists([run for _, run in pairs]),
    ]
    if strict and warnings:
        raise InputError(warnings[0], remedy="mend it, or leave --strict (strict=True) out to go on with a warning")
    return tuple(warnings)


def _place(run: Run) -> str:
    """Return the file that a run was read from, or its name."""
    path = _file(run.history)
    return f"the run {run.name}" if path is None else str(path)


def _file(history: Sequence[object]) -> Path | None:
    """Return the file that runs or ratings were read from, None if they come from elsewhere."""
    for step in history:
        source = getattr(step, "settings", {}).get("source")
        if source is not None and Path(str(source)).is_file():
            return Path(str(source))
    return None


def _refuse_same_file(runs: Sequence[Run], test: Ratings | None) -> None:
    """Refuse a file that is given both as the test set and as a run."""
    path = None if test is None else _file(test.history)
    if path is None:
        return
    for run in runs:
        own = _file(run.history)
        if own is not None and own.resolve() == path.resolve():
            raise InputError(
                "this file is given both as the test set and as a run",
                source=str(own),
                remedy="give the held-out ratings as the test set, and the lists of a system as the run",
            )


def _on_ids(judged: Judged, run: Run) -> Iterator[str]:
    """Look at how many users and items of a run the test set knows; none is an error."""
    judgments, train = judged.judgments, judged.context.train
    codes = judgments.user_ids.translation(run.user_ids)
    met_users = len(run) - judged.counts.get("users without test ratings", 0)
    if codes is not None and (codes == UNKNOWN).all():
        problem = f"no user of {_called(run)} has test ratings"
        raise _strangers(run, problem, run.user_ids, judgments.user_ids, "give the run and the test set of one split")
    smaller = min(len(run), judgments.n_lists)
    yield from _on_share("users", met_users, smaller, run, run.user_ids, judgments.user_ids)
    known = _known_items(judged, run)
    if not len(known):
        return  # every list is empty
    if not known.any():
        problem = f"no item of {_called(run)} is in the test set{'' if train is None else ' or the training set'}"
        remedy = (
            "give the run and the test set of the same data; if the system ranks other items only, give the training "
            "ratings that hold them (--train)"
        )
        raise _strangers(run, problem, run.item_ids, judgments.item_ids, remedy)
    smaller = min(len(run.item_ids), len(judgments.item_ids))
    yield from _on_share("items", int(known.sum()), smaller, run, run.item_ids, judgments.item_ids)


def _known_items(judged: Judged, run: Run) -> NDArray[np.bool_]:
    """Return which items of a run's vocabulary are in the test set, or in the training set."""
    known = np.zeros(len(run.item_ids), dtype=np.bool_)
    train = judged.context.train
    for vocabulary in (judged.judgments.item_ids, *([] if train is None else [train.item_ids])):
        codes = vocabulary.translation(run.item_ids)
        known |= True if codes is None else codes != UNKNOWN
    return known


def _called(run: Run) -> str:
    return "this run" if _file(run.history) is not None else f"the run {run.name}"


def _strangers(run: Run, problem: str, own: Vocabulary, others: Vocabulary, remedy: str) -> InputError:
    form = differing_form(own, others)
    if form is not None:
        remedy = "write the ids in both files alike"
    path = _file(run.history)
    return InputError(
        f"{problem}: the run has {examples(own)}, the test set {examples(others)}"
        f"{'' if form is None else f'; they differ by {form}'}",
        source=None if path is None else str(path),
        remedy=remedy,
    )


def _on_share(kind: str, met: int, smaller: int, run: Run, own: Vocabulary, others: Vocabulary) -> Iterator[str]:
    """Say that few ids of a run meet those of the test set, or that they would if both were written alike."""
    share = met / smaller
    if share >= _MANY:
        return
    form = differing_form(own, others, share=min(1.0, 2 * share))
    if share >= FEW and form is None:
        return
    reason = "" if form is None else f"; many more would if the ids did not differ by {form}"
    what = "have test ratings" if kind == "users" else "are in the test set"
    yield (
        f"{run.name}: {met:,} {kind} of the run {what}, which has {len(others):,} {kind} (the run: {len(own):,}); the "
        f"run has {examples(own)}, the test set {examples(others)}{reason}"
    )


def _on_swapped(runs: Sequence[Run], test: Ratings | None) -> Iterator[str]:
    """Say that the test set holds the scores of a system, and the run ratings; refuse where more speaks for it."""
    if test is None or not len(test) or _are_ratings(test.values):
        return
    for run in runs:
        if run.scores is None or run.made_scores or not _are_ratings(run.scores):
            continue
        problem = "the test set and the run seem to be swapped: the test set holds scores, and this run ratings"
        counts = test.user_counts[test.user_counts > 0]
        if len(counts) > 1 and counts[0] > 1 and (counts == counts[0]).all():
            raise InputError(
                problem,
                source=_place(run),
                remedy="give the held-out ratings as the test set (--test), and the lists of a system as the run",
            )
        yield f"{run.name}: {problem}"


def _are_ratings(values: NDArray[np.floating]) -> bool:
    """Return whether numbers look like ratings: few different ones, in steps of a half or more."""
    first = np.unique(values[:_SAMPLE])
    return len(first) <= _MOST_RATINGS and bool((np.remainder(first, 0.5) == 0).all())


def _on_training_as_test(train: Ratings | None, test: Ratings | None) -> Iterator[str]:
    """Refuse a test set that is the training set, and say that the two share ratings."""
    if train is None or test is None or not len(train) or not len(test):
        return
    shared = count_hits(_as_run(test), as_judgments(train, None))
    if shared == len(test) == len(train):
        raise InputError(
            "the test set is the training set: they hold the same users and items",
            source=_file(test.history),
            remedy="give the held-out ratings as the test set",
        )
    if shared:
        yield (
            f"{shared:,} of {len(test):,} test ratings ({shared / len(test):.0%}) are in the training set too: a "
            "system that was trained on it has seen them"
        )


def _as_run(ratings: Ratings) -> Run:
    """Return the profiles of users as lists, to be met with other ratings."""
    users = np.flatnonzero(ratings.user_counts).astype(np.int32)
    indptr = np.append(ratings.indptr[users], len(ratings))
    return Run("test", ratings.user_ids, ratings.item_ids, users, indptr, ratings.items)


def _on_hits(pairs: Sequence[tuple[Judged, Run]]) -> Iterator[str]:
    """Look for lists without any test rating where chance alone would find some, and for copies of the test set.

    The training ratings, given as the test set, leave no hit: systems do not recommend what a user has rated. If that
    holds for every run, nothing can be measured.
    """
    empty = [(one, run, _by_chance(one)) for one, run in pairs if not len(one) and not run.one_relevant]
    empty = [one for one in empty if one[-1] >= _EXPECTED_HITS]
    for _, run, expected in empty:
        problem = (
            f"no list holds any item that its user has rated in the test set, where chance alone would find about "
            f"{expected:,.0f}"
        )
        if len(empty) == len(pairs):
            remedy = "this is so if the training ratings are given as the test set; give the held-out ratings"
            raise InputError(problem, source=_place(run), remedy=remedy)
        yield f"{run.name}: {problem}"
    for one, run in pairs:
        if _COPY <= len(one) == len(run.items) == len(one.judgments) and not run.one_relevant:
            yield f"{run.name}: its lists hold the items of the test set and no others; is it a copy of the test set?"


def _by_chance(judged: Judged) -> float:
    """Return how many hits lists of random items of the test set would have."""
    judgments = judged.judgments
    profiles = np.diff(judgments.indptr)
    return float((judged.lengths * profiles).sum()) / max(len(judgments.item_ids), 1)


def _on_seen_items(run: Run, train: Ratings | None) -> Iterator[str]:
    """Say that lists which were read hold items of their user's own training ratings."""
    made_here = bool(run.history) and run.history[-1].action != "read_run"
    if train is None or not len(train) or run.one_relevant or made_here:
        return
    seen = count_hits(run, as_judgments(train, None))
    if seen:
        yield (
            f"{run.name}: {seen:,} of {len(run.items):,} recommended items ({seen / len(run.items):.0%}) are training "
            "ratings of the same user, which take places in the lists and are hardly ever in the test set"
        )


def _on_same_lists(runs: Sequence[Run]) -> Iterator[str]:
    """Say which runs hold the same lists under several names."""
    kinds: dict[tuple[int, bytes], list[list[Run]]] = {}
    for run in runs:
        # Most runs differ in their first lists; only those that do not are compared whole.
        same = kinds.setdefault((len(run.items), run.items[:_SAMPLE].tobytes()), [])
        group = next((group for group in same if _same_lists(group[0], run)), None)
        if group is None:
            same.append([run])
        else:
            group.append(run)
    for group in (group for same in kinds.values() for group in same if len(group) > 1):
        yield f"{listed([run.name for run in group])} hold the same lists; is one file given under several names?"


def _same_lists(one: Run, other: Run) -> bool:
    return (
        all(np.array_equal(mine, theirs) for mine, theirs in zip(_arrays(one), _arrays(other)))
        and one.user_ids == other.user_ids
        and one.item_ids == other.item_ids
    )


def _arrays(run: Run) -> list[NDArray[Any]]:
    """Return what the lists of a run are made of; one-relevant lists differ by ranks alone."""
    ranks = np.zeros(0, dtype=np.int32) if run.ranks is None else run.ranks
    return [run.items, run.users, run.indptr, ranks]
