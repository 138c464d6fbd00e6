"""`judge`: join a run with a test set to `Judged` lists, once for each pair of them; and the reading of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cranfield._checks import number, one_of
from cranfield._errors import InputError, SettingError
from cranfield.data import ANY, AUTO, Ratings, Relevance
from cranfield.judgments.context import Context, catalogue_ids, is_no_catalogue
from cranfield.judgments.joining import Join, join, one_relevant
from cranfield.judgments.judged import Judged
from cranfield.judgments.judgments import Judgments, NegativeGrades, notes_on_negative_grades
from cranfield.rankings import Gaps, Run, RunReading, Ties, is_one_source, read_runs, read_test
from cranfield.tables import UNKNOWN, Vocabulary

Groups = Mapping[Any, Any] | Sequence[Any] | NDArray[Any]
"""The group of each list: by the id of its user, or one group per list."""


def judge(
    run: Any,
    test: Any,
    *,
    threshold: float | str | None = AUTO,
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    train: Ratings | None = None,
    similarity: Any = None,
    negative_grades: NegativeGrades = "judged",
    groups: Groups | None = None,
) -> Judged:
    """Join the lists of a run with a test set, for `measure`, `compare`, `assess` and the report.

    A run and a test set are joined only once: judging the same two objects again, with any threshold, returns the same
    arrays. They are kept as long as both objects exist.

    Lists of users without a test rating are not measured; test users without a list have one of length 0. ``counts`` of
    the result contains their numbers. Items that the test set does not know are counted in the lists of users who have
    test ratings, and in no others.

    Parameters
    ----------
    run
        One run, or anything that `read_runs` accepts as one.
    test
        The held-out `Ratings`, anything that `read_test` accepts, or `Judgments` made from them.
    threshold, ties, gaps, train, similarity, negative_grades
        As for `measure`; ``Judged.at`` returns the same lists under another threshold. `Judgments` keep their own
        threshold with ``auto``.
    groups
        The name of the group of each list: by the id of its user, or one per list in the order of the judgments; by
        default the groups of the run.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "y"], [5, 2, 4])
    >>> judged = judge({"mine": {"ann": ["x", "z", "y"]}}, test, threshold=4)
    >>> judged.ranks.tolist(), judged.relevant.tolist(), judged.counts["test users without a list"]
    ([1, 3], [True, False], 1)
    >>> cf.measure(judged, metrics="P@2").average().tolist()
    [[0.25]]
    """
    runs = as_runs(run, ties, gaps)
    if len(runs) > 1:
        raise SettingError(f"judge takes one run, and {len(runs)} were given; judge each one separately")
    judgments = judgments_under(test, threshold, negative_grades, train)
    return judged_by(runs[0], judgments, Context(train, similarity), groups)


def judgments_under(
    test: Any, threshold: float | str | None, negative_grades: NegativeGrades = "judged", train: Ratings | None = None
) -> Judgments:
    """Return the judgments of a test set under a threshold; existing ones keep theirs with ``auto``."""
    if not isinstance(test, Judgments):
        return as_judgments(test, threshold, negative_grades, train)
    if negative_grades != "judged":
        raise SettingError(
            f"negative_grades={negative_grades!r} was decided when these judgments were made; leave it out here"
        )
    return test if threshold == AUTO else test.at(ANY if threshold is None else number("threshold", threshold))


def judged_by(run: Run, judgments: Judgments, context: Context, groups: Groups | None = None) -> Judged:
    """Return a run joined with judgments; an existing join is reused."""
    joined = _joined(run, judgments.base)
    if joined.chosen is not None:
        judgments = _of_lists(judgments.base, joined.chosen).at(judgments.threshold)
    judged = Judged(judgments, source=run, context=context, group_names=run.group_names, **joined.fields)
    if groups is None:
        return judged
    group_of_list, names = group_of_lists(groups, judgments.user_ids, judgments.users)
    return replace(judged, groups=group_of_list, group_names=names)


# A join does not reference the run or the judgments, so that it is freed with either of them.
_JOINS: WeakKeyDictionary[Run, WeakKeyDictionary[Judgments, Join]] = WeakKeyDictionary()
# All one-relevant runs of an experiment have the same lists, and so share their judgments.
_OF_LISTS: WeakKeyDictionary[Judgments, tuple[NDArray[np.int64], Judgments]] = WeakKeyDictionary()


def _joined(run: Run, judgments: Judgments) -> Join:
    known = _JOINS.setdefault(run, WeakKeyDictionary())
    if judgments not in known:
        known[judgments] = join(run, judgments)
    return known[judgments]


def _of_lists(judgments: Judgments, chosen: NDArray[np.int64]) -> Judgments:
    """Return the judgments of one-relevant lists, the same object for the same lists."""
    if len(chosen) == len(judgments) == judgments.n_lists:
        return judgments  # already those of one-relevant lists
    if judgments in _OF_LISTS and np.array_equal(_OF_LISTS[judgments][0], chosen):
        return _OF_LISTS[judgments][1]
    _OF_LISTS[judgments] = chosen, one_relevant(judgments, chosen)
    return _OF_LISTS[judgments][1]


def group_of_lists(
    groups: Groups, user_ids: Vocabulary, users: NDArray[Any]
) -> tuple[NDArray[np.int16], tuple[str, ...]]:
    """Return the group of each list as an index of the names, given their users; -1 for a list without one."""
    of_list: list[Any]
    if isinstance(groups, Mapping):
        codes = user_ids.codes(list(groups))
        of_user = {int(code): name for code, name in zip(codes, groups.values()) if code != UNKNOWN}
        of_list = [of_user.get(int(user)) for user in users]
    else:
        of_list = list(groups)
    if len(of_list) != len(users):
        raise InputError(
            f"there are {len(of_list):,} groups for {len(users):,} lists",
            remedy="give one for each list, or a mapping from user to group",
        )
    known = sorted({group for group in of_list if group is not None}, key=lambda group: (isinstance(group, str), group))
    names = tuple(str(group) for group in known)
    if len(names) > np.iinfo(np.int16).max:
        raise InputError(f"{len(names):,} groups are too many", remedy="give fewer, larger groups")
    place = {group: number for number, group in enumerate(known)}
    return np.array([UNKNOWN if group is None else place[group] for group in of_list], dtype=np.int16), names


def as_runs(runs: Any, ties: Ties | None = None, gaps: Gaps = "keep") -> list[Run]:
    """Return runs, including those of judged lists; read other sources. Names must be unique.

    Runs keep their order of tied items unless ``ties`` is given; others are read in trec_eval's order by default.
    """
    if isinstance(runs, Run | Judged):
        runs = [runs]
    if isinstance(runs, Iterable) and not isinstance(runs, Mapping) and not is_one_source(runs):
        runs = [_run_of(run) if isinstance(run, Judged) else run for run in runs]
    return read_runs(runs, ties=ties, gaps=gaps)


def _run_of(judged: Judged) -> Run:
    run = judged.run
    if run is None:
        raise SettingError("these judged lists were read without their run, which is needed; give it to read_judged")
    return run


def as_test(test: Any) -> Ratings:
    """Return a test set, which is read if necessary."""
    return test if isinstance(test, Ratings) else read_test(test)


def as_judgments(
    test: Any, threshold: float | str | None, negative_grades: NegativeGrades = "judged", train: Ratings | None = None
) -> Judgments:
    """Return the judgments of a test set, which are cached by its ratings, as a view under the threshold.

    A threshold of ``auto`` is chosen from the test set and the training ratings, if they are known.
    """
    test = as_test(test)
    if len(test) == 0:
        raise SettingError("the test set holds no rating; there is nothing to measure against")
    one_of("negative_grades", negative_grades, get_args(NegativeGrades))
    return _judgments_of(test, negative_grades).at(Relevance.of(test, threshold, train).threshold)


# A test set is usually used more than once, and its judgments (totals, ideal lists) are the same each time. They are
# kept as long as the ratings exist.
_KEPT: WeakKeyDictionary[Ratings, dict[str, Judgments]] = WeakKeyDictionary()


def _judgments_of(test: Ratings, negative_grades: NegativeGrades) -> Judgments:
    kept = _KEPT.setdefault(test, {})
    if negative_grades not in kept:
        notes = notes_on_negative_grades(test, negative_grades)
        judgments = Judgments.of(test, 1.0, negative_grades)
        kept[negative_grades] = replace(
            judgments, fingerprint=test.fingerprint, negative_grades=negative_grades, notes=notes
        )
    return kept[negative_grades]


def as_judged(
    runs: Any,
    test: Any,
    threshold: float | str | None,
    context: Context,
    *,
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    negative_grades: NegativeGrades = "judged",
    groups: Groups | None = None,
) -> list[Judged]:
    """Return runs joined with a test set, or given judged lists, under the threshold; all have the same lists."""
    given = [runs] if isinstance(runs, Judged) else runs
    if isinstance(given, list | tuple) and given and all(isinstance(lists, Judged) for lists in given):
        judged = _as_given(given, test, threshold, context, ties, gaps, negative_grades, groups)
    else:
        runs = as_runs(runs, ties, gaps)
        if len({run.one_relevant for run in runs}) > 1:
            raise SettingError("some runs hold one-relevant lists and others do not; measure them separately")
        judgments = as_judgments(test, threshold, negative_grades, context.train)
        judged = [judged_by(run, judgments, context, groups) for run in runs]
    first = judged[0]
    for lists in judged[1:]:
        if not lists.judgments.is_same_as(first.judgments):
            raise InputError(
                f"the run {lists.known_run.name} has other lists than {first.known_run.name}, or was judged by another "
                "test set",
                remedy="judge all runs by the same test set; make one-relevant runs with the same targets and seed",
            )
    return [first, *(lists.fresh(judgments=first.judgments) for lists in judged[1:])]


def _as_given(
    given: Sequence[Judged],
    test: Any,
    threshold: float | str | None,
    context: Context,
    ties: Ties | None,
    gaps: Gaps,
    negative_grades: NegativeGrades,
    groups: Groups | None,
) -> list[Judged]:
    """Return given judged lists with an empty cache; decisions made when they were judged cannot be changed."""
    with_gaps = any(lists.known_run.counts.get("missing_ranks") for lists in given)
    decided = {
        "gaps": RunReading(gaps=gaps).gaps == "close" and with_gaps,
        "groups": groups is not None,
        "negative_grades": test is None and negative_grades != "judged",
        "ties": ties is not None and any(lists.known_run.ties != ties for lists in given),
    }
    for name in (name for name, is_changed in decided.items() if is_changed):
        raise SettingError(f"{name} was decided when these lists were judged; leave it out here, or give it to judge")
    if test is not None and not any(_is_judged_by(lists, as_judgments(test, None, negative_grades)) for lists in given):
        raise InputError(
            "the lists were judged by another test set than the given one",
            remedy="leave the test set out, or judge the runs by it",
        )
    names = [lists.known_run.name for lists in given]
    for name in names:
        if names.count(name) > 1:
            raise SettingError(f"{names.count(name)} judged lists are called {name!r}; give each run its own name")
    level = judgments_under(given[0].judgments, threshold).threshold
    fresh = [
        lists.fresh() if context.is_empty else lists.fresh(context=replace(context, live=lists.context.live))
        for lists in given
    ]
    return [lists.fresh(judgments=lists.judgments.at(level)) for lists in fresh]


def _is_judged_by(lists: Judged, judgments: Judgments) -> bool:
    if lists.ranked is not None and lists.ranked.one_relevant:
        return lists.judgments.is_part_of(judgments)
    return lists.judgments.is_same_as(judgments)


def with_live(judged: Sequence[Judged], catalogue: Any, train: Ratings | None) -> list[Judged]:
    """Return lists in which items outside a catalogue earn nothing; an item with a test rating is always live.

    Without a catalogue (``none``), the lists are returned as they are.
    """
    if is_no_catalogue(catalogue):
        return list(judged)
    if any(lists.ranked is not None and lists.ranked.one_relevant for lists in judged):
        raise SettingError(
            "a catalogue needs whole lists, but these hold only their relevant item; leave the catalogue out"
        )
    live = Vocabulary.union([catalogue_ids(catalogue, train), judged[0].judgments.judged_items])
    return [lists.fresh(context=replace(lists.context, live=live)) for lists in judged]
