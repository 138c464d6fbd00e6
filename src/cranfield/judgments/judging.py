"""`judge`: join a run with a test set to `Judged` lists, once for each pair of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cranfield._checks import number
from cranfield._errors import InputError, SettingError
from cranfield.data import ANY, AUTO, Ratings
from cranfield.judgments.context import Context
from cranfield.judgments.inputs import as_judgments, as_runs
from cranfield.judgments.joining import Join, join, one_relevant
from cranfield.judgments.judged import Judged
from cranfield.judgments.judgments import Judgments, NegativeGrades
from cranfield.rankings import Gaps, Run, Ties
from cranfield.tables import UNKNOWN

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
    test: Any,
    threshold: float | str | None,
    negative_grades: NegativeGrades = "judged",
    train: Ratings | None = None,
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
    group_of_list, names = joined.groups, run.group_names
    if groups is not None:
        group_of_list, names = _given_groups(groups, judgments)
    return Judged(
        judgments=judgments,
        lists=joined.lists,
        ranks=joined.ranks,
        pointers=joined.pointers,
        lengths=joined.lengths,
        tied_from=joined.tied_from,
        tied_to=joined.tied_to,
        source=run,
        places=joined.places,
        offsets=joined.offsets,
        pooled_above=joined.pooled_above,
        context=context,
        groups=group_of_list,
        group_names=names,
        counts=joined.counts,
        ranked=joined.ranked,
    )


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


def _given_groups(groups: Groups, judgments: Judgments) -> tuple[NDArray[np.int16], tuple[str, ...]]:
    """Return the group of each list as an index of the names; -1 for a list without one."""
    of_list: list[Any]
    if isinstance(groups, Mapping):
        codes = judgments.user_ids.codes(list(groups))
        of_user = {int(code): name for code, name in zip(codes, groups.values()) if code != UNKNOWN}
        of_list = [of_user.get(int(user)) for user in judgments.users]
    else:
        of_list = list(groups)
    if len(of_list) != judgments.n_lists:
        raise InputError(
            f"there are {len(of_list):,} groups for {judgments.n_lists:,} lists",
            remedy="give one for each list, or a mapping from user to group",
        )
    known = sorted({group for group in of_list if group is not None}, key=lambda group: (isinstance(group, str), group))
    names = tuple(str(group) for group in known)
    if len(names) > np.iinfo(np.int16).max:
        raise InputError(f"{len(names):,} groups are too many", remedy="give fewer, larger groups")
    place = {group: number for number, group in enumerate(known)}
    return np.array([UNKNOWN if group is None else place[group] for group in of_list], dtype=np.int16), names
