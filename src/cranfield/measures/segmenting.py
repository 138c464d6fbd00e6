"""Segments: groups of users, items or test ratings to show results for, and the decision to use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield._checks import Limits
from cranfield._decisions import Decided, decision
from cranfield._errors import SettingError
from cranfield._numbers import listed
from cranfield._registry import Registry, parse
from cranfield.data import Ratings
from cranfield.measures.popularity_groups import HEAD_MID_TAIL, group_of_items, shares_of
from cranfield.metrics import translated
from cranfield.tables import Vocabulary, day

SegmentOf = Literal["users", "items", "ratings"]


class Basis(NamedTuple):
    """The data for groups: the ids of the test set, its ratings, and the training ratings if known."""

    user_ids: Vocabulary
    item_ids: Vocabulary | None = None
    test: Ratings | None = None
    train: Ratings | None = None

    def training(self, name: str) -> Ratings:
        """Return the training ratings, or raise an error that names the segment that needs them."""
        if self.train is None:
            raise SettingError(f"the segment {name} needs the training ratings; give them as train=... (--train FILE)")
        return self.train


@dataclass(frozen=True, eq=False)
class Segment:
    """The group of each user, item or test rating.

    Parameters
    ----------
    name
        The name of the grouping.
    of
        What is grouped: ``users``, ``items`` or (test) ``ratings``.
    codes
        The group of each user code, of each item code, or of each test rating, as an index of ``names``.
    names
        The groups in order.
    notes
        How the groups are made, in sentences.
    unknown
        The index of the group of ids that the grouping does not mention, if it has one.
    examples
        Some of the ids that the grouping mentions, for messages.
    """

    name: str
    of: SegmentOf
    codes: NDArray[np.int16]
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    unknown: int | None = None
    examples: tuple[str, ...] = ()


SEGMENTS: Registry[Callable[..., Segment]] = Registry("segment")
"""The built-in segments by name: functions from a `Basis` to a `Segment`."""


@SEGMENTS.register
def activity(
    basis: Basis,
    new: Annotated[int, Limits(low=1)] = 5,
    light: Annotated[float, Limits(above=0, below=1)] = 0.5,
) -> Segment:
    """New, light and heavy users, by how many training ratings they have.

    A new user has fewer than ``new`` training ratings. Of the training users who have at least ``new``, the share
    ``light`` with the fewest ratings is light and the others are heavy; users with equally many ratings are in the same
    group: the limit is the smallest number of ratings that at least this share of them does not exceed.
    """
    train = basis.training("activity")
    of_user = train.user_counts.astype(np.float64)
    counts = translated(of_user, train.user_ids, basis.user_ids, missing=0.0)
    known = of_user[of_user >= new]
    limit = float(np.quantile(known, light, method="inverted_cdf")) if len(known) else float(new)
    codes = np.where(counts < new, 0, np.where(counts <= limit, 1, 2))
    note = (
        f"new users have fewer than {new} training ratings, light ones {new} to {limit:.0f}, and heavy ones more than "
        f"{limit:.0f}"
    )
    return Segment("activity", "users", codes.astype(np.int16), ("new", "light", "heavy"), (note,))


@SEGMENTS.register
def popularity(
    basis: Basis, groups: Annotated[int | None, Limits(low=2)] = None, of: Literal["ratings", "items"] = "ratings"
) -> Segment:
    """Test items by how many training ratings they have: head, mid and tail, or equal groups from 1, the most popular.

    See `by_popularity`: the head makes up a fifth of the training ratings, and so does the tail.
    """
    train, shares = basis.training("popularity"), shares_of(HEAD_MID_TAIL if groups is None else groups)
    assert basis.item_ids is not None
    of_train = group_of_items(train, list(shares.values()), of)
    codes = translated(of_train, train.item_ids, basis.item_ids, missing=len(shares) - 1.0)
    parts = listed([f"{name} {100 * share:.0f} %" for name, share in shares.items()])
    note = f"items are grouped from most to least popular by their share of the training {of}: {parts}"
    return Segment("popularity", "items", codes.astype(np.int16), tuple(shares), (note,))


@SEGMENTS.register
def period(basis: Basis, parts: Annotated[int, Limits(low=2, high=50)] = 3) -> Segment:
    """Test ratings by time: consecutive periods with equally many test ratings, as far as times differ."""
    if basis.test is None or basis.test.times is None:
        raise SettingError("the segment period needs times, and the test set has none; choose another segment")
    times = basis.test.times
    limits = np.quantile(times, np.arange(1, parts) / parts, method="inverted_cdf")
    codes = np.searchsorted(limits, times, side="left")
    names = tuple(f"period {number}" for number in range(1, parts + 1))
    spans = [(name, times[codes == place]) for place, name in enumerate(names)]
    said = [f"{name} from {day(span.min())} to {day(span.max())}" for name, span in spans if len(span)]
    note = f"test ratings are grouped by their time (UTC): {listed(said)}"
    return Segment("period", "ratings", codes.astype(np.int16), names, (note,))


@SEGMENTS.register
def cold_users(basis: Basis, most: Annotated[int, Limits(low=0)] = 0) -> Segment:
    """Warm and cold users: a cold one has at most ``most`` training ratings."""
    train = basis.training("cold_users")
    counts = translated(train.user_counts.astype(np.float64), train.user_ids, basis.user_ids, missing=0.0)
    return _warm_and_cold("cold_users", "users", counts, most)


@SEGMENTS.register
def cold_items(basis: Basis, most: Annotated[int, Limits(low=0)] = 0) -> Segment:
    """Test ratings of warm and of cold items: a cold one has at most ``most`` training ratings."""
    train = basis.training("cold_items")
    assert basis.item_ids is not None
    counts = translated(train.item_counts.astype(np.float64), train.item_ids, basis.item_ids, missing=0.0)
    return _warm_and_cold("cold_items", "items", counts, most)


def _warm_and_cold(name: str, of: SegmentOf, counts: NDArray[np.float64], most: int) -> Segment:
    few = "no training rating" if most == 0 else f"{most} training ratings or fewer"
    codes = (counts <= most).astype(np.int16)
    return Segment(name, of, codes, ("warm", "cold"), (f"cold {of} have {few}, warm ones more",))


def is_built_in(text: str) -> bool:
    """Whether a text spells a built-in segment, right or wrong.

    Examples
    --------
    >>> is_built_in("activity(new=10)"), is_built_in("users.csv")
    (True, False)
    """
    try:
        return parse(text).name in SEGMENTS
    except SettingError:
        return False


def _segment(name: str, value: Any) -> tuple[str, ...]:
    stated = (value,) if isinstance(value, str) else value
    if not isinstance(stated, list | tuple) or not all(isinstance(text, str) and text for text in stated):
        raise SettingError(f"{name}={value!r} is not text; write a segment such as 'activity' or 'users.csv:age'")
    spelled = [str(SEGMENTS.spelling(text)) if is_built_in(text) else text for text in stated]
    return tuple(dict.fromkeys(spelled))


def _phrase(value: Sequence[str]) -> str | None:
    return f"by {listed(list(value))}" if value else None


@dataclass(frozen=True)
class Segmenting(Decided):
    """The groups that results are also shown by.

    Parameters
    ----------
    segment
        ``activity``, ``popularity``, ``period``, ``cold_users`` or ``cold_items`` (with parameters); a file with a user
        or item column and a group, ``users.csv`` or ``users.csv:age``; or a column of the test file.

    Examples
    --------
    >>> Segmenting("activity( new=10 )").segment
    ('activity(new=10)',)
    """

    segment: Any = decision(
        "D",
        (),
        "groups to show separately: activity, popularity, period, cold_users, cold_items, FILE:COLUMN, a column of the "
        "data",
        check=_segment,
        phrase=_phrase,
    )
