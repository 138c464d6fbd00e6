"""Filters: which ratings an experiment is about (decision A1).

Each filter takes `Ratings` and returns new ones. Their vocabularies hold only users and items that still have a rating,
and their history has one more `Step`: the filter, its settings, and the users, items and ratings before and after. A
chain of filters is therefore part of the record. A filter that would leave nothing raises `NothingLeftError`.

Examples
--------
>>> import cranfield as cf
>>> len(cf.filters.k_core(cf.Ratings.of([1, 1, 2, 2], ["x", "y", "x", "y"]), k=2))
4
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._decisions import DecisionGroup, decision
from cranfield._errors import NothingLeftError, SettingError
from cranfield._numbers import nearest_count
from cranfield._record import Step
from cranfield._registry import Registry
from cranfield._streams import stream
from cranfield.data.ratings import Ratings, check_ratings, head_items
from cranfield.facts import Fact
from cranfield.facts import ratings as rating_facts
from cranfield.tables import day, seconds

__all__ = [
    "apply",
    "drop_head",
    "k_core",
    "max_ratings",
    "min_ratings",
    "only",
    "positives",
    "registry",
    "sample",
    "time_window",
]

registry: Registry[Callable[..., Ratings]] = Registry("filter")
"""The filters that can be spelled; a new one is a function with ``@registry.register`` above it."""


def apply(ratings: Ratings, filters: str | Iterable[str], *, seed: int = 0) -> Ratings:
    """Apply spelled filters in order.

    Parameters
    ----------
    filters
        Spellings such as ``"k_core(k=5)"``, applied in this order.
    seed
        Seed of the filters that draw at random.

    Examples
    --------
    >>> ratings = Ratings.of([1, 1, 2], ["a", "b", "a"], [5, 2, 4])
    >>> kept = apply(ratings, ["positives(threshold=4)", "min_ratings(item=2)"])
    >>> for step in kept.history:
    ...     print(step)
    positives(threshold=4.0): users [2, 2], items [2, 1], ratings [3, 2]
    min_ratings(item=2): users [2, 2], items [1, 1], ratings [2, 2]
    """
    check_ratings(ratings)
    for spelling in [filters] if isinstance(filters, str) else filters:
        ratings = registry.call(spelling, ratings, seed=seed)
    return ratings


@registry.register
def min_ratings(ratings: Ratings, *, user: int | None = None, item: int | None = None, repeat: bool = False) -> Ratings:
    """Keep users with at least ``user`` ratings and items with at least ``item``.

    Both counts are taken before anything is removed, so the order does not matter. Removing items may therefore leave a
    user with fewer than ``user`` ratings. The step's notes say how many; ``repeat`` filters again until there are none.

    Examples
    --------
    >>> ratings = Ratings.of([1, 1, 2], ["a", "b", "a"])
    >>> min_ratings(ratings, user=2)
    Ratings(1 users, 2 items, 2 ratings)
    """
    check_ratings(ratings)
    if user is None and item is None:
        raise SettingError("min_ratings needs user or item; write min_ratings(user=5), for instance")
    least_user = 0 if user is None else check.whole("user", user)
    least_item = 0 if item is None else check.whole("item", item)
    settings = _given(user=user, item=item) | ({"repeat": True} if check.flag("repeat", repeat) else {})
    kept = _at_least(ratings, least_user, least_item, repeat)
    notes = []
    for kind, least, counts in (("users", least_user, kept.user_counts), ("items", least_item, kept.item_counts)):
        short = np.count_nonzero((counts > 0) & (counts < least))
        if short:
            notes.append(rating_facts.FewRatings(int(short), kind, least))
    return _filtered(ratings, kept, "min_ratings", settings, notes)


@registry.register
def max_ratings(ratings: Ratings, *, user: int | None = None, item: int | None = None) -> Ratings:
    """Keep users with at most ``user`` ratings and items with at most ``item``, counted before anything is removed.

    Examples
    --------
    >>> max_ratings(Ratings.of([1, 1, 2], ["a", "b", "a"]), user=1)
    Ratings(1 users, 1 items, 1 ratings)
    """
    check_ratings(ratings)
    if user is None and item is None:
        raise SettingError("max_ratings needs user or item; write max_ratings(user=1000), for instance")
    settings = _given(user=user, item=item)
    keep_user = None if user is None else ratings.user_counts <= check.whole("user", user)
    keep_item = None if item is None else ratings.item_counts <= check.whole("item", item)
    return _filtered(ratings, _of(ratings, keep_user, keep_item), "max_ratings", settings)


@registry.register
def k_core(ratings: Ratings, *, k: int = 5) -> Ratings:
    """Keep the k-core: the largest part in which every user and every item has at least ``k`` ratings.

    For different minimums of users and items, see ``repeat`` of `min_ratings`.

    Examples
    --------
    >>> ratings = Ratings.of([1, 1, 2, 2, 3], ["a", "b", "a", "b", "b"])
    >>> k_core(ratings, k=2)
    Ratings(2 users, 2 items, 4 ratings)
    """
    check_ratings(ratings)
    k = check.whole("k", k)
    return _filtered(ratings, _at_least(ratings, k, k, repeat=True), "k_core", {"k": k})


@registry.register
def drop_head(ratings: Ratings, *, share: float = 0.1, of: str = "items") -> Ratings:
    """Drop the most popular items, the head of the distribution.

    Parameters
    ----------
    share
        The share to drop.
    of
        ``"items"``: that share of the items, rounded to the nearest number (halves up). ``"ratings"``: the fewest
        most popular items that hold at least that share of the ratings, like the short head of Cremonesi et al. (2010),
        which holds 33 %.

    Notes
    -----
    Popularity is |R(i)|; among equally popular items those with the smaller id are dropped first.

    References
    ----------
    P. Cremonesi, Y. Koren, R. Turrin (2010). Performance of recommender algorithms on top-N recommendation tasks.
    RecSys.

    Examples
    --------
    >>> ratings = Ratings.of([1, 2, 3, 1, 2], ["a", "a", "a", "b", "c"])
    >>> drop_head(ratings, share=0.34).item_ids.all.to_list()
    ['b', 'c']
    """
    check_ratings(ratings)
    share, of = check.share("share", share), check.one_of("of", of, ("items", "ratings"))
    keep_item = ~head_items(ratings, share, of)
    return _filtered(ratings, _of(ratings, None, keep_item), "drop_head", {"share": share, "of": of})


@registry.register
def sample(ratings: Ratings, *, share: float = 0.1, of: str = "ratings", seed: int = 0) -> Ratings:
    """Keep a random share of the ratings, of the users with all their ratings, or of the items with all of theirs.

    The number kept is exact: the share rounded to the nearest number (halves up).

    Examples
    --------
    >>> ratings = Ratings.of(range(10), range(10))
    >>> sample(ratings, share=0.3, of="users", seed=7)
    Ratings(3 users, 3 items, 3 ratings)
    """
    check_ratings(ratings)
    share, of = check.share("share", share), check.one_of("of", of, ("ratings", "users", "items"))
    seed = check.whole("seed", seed, at_least=0)
    counts = {"ratings": np.ones(len(ratings)), "users": ratings.user_counts, "items": ratings.item_counts}
    present = counts[of] > 0
    places = np.flatnonzero(present)
    order = np.argsort(stream(seed, "filters", "sample", of).random(len(places)), kind="stable")
    chosen = np.zeros(len(present), dtype=bool)
    chosen[places[order[: int(nearest_count(share, len(places)))]]] = True
    if of == "ratings":
        kept = ratings.keep(chosen)
    else:
        kept = _of(ratings, chosen, None) if of == "users" else _of(ratings, None, chosen)
    return _filtered(ratings, kept, "sample", {"share": share, "of": of, "seed": seed})


@registry.register
def time_window(ratings: Ratings, *, start: Any = None, end: Any = None) -> Ratings:
    """Keep the ratings given from ``start`` on and before ``end``; they must have times.

    Parameters
    ----------
    start, end
        Dates, datetimes, ISO texts (``"2001-12-31"``, in UTC unless they name a zone) or seconds since 1970. The start
        is inclusive, the end exclusive. Give at least one of them.

    Examples
    --------
    >>> ratings = Ratings.of([1, 2], ["a", "b"], times=[0, 86_400])
    >>> time_window(ratings, start="1970-01-02").user_ids.all.to_list()
    [2]
    """
    check_ratings(ratings)
    if start is None and end is None:
        raise SettingError("time_window needs start or end; write time_window(start=2001-01-01), for instance")
    times = ratings.rows().times
    if times is None:
        raise SettingError("time_window needs times, and these ratings have none; name the column of times on reading")
    inside = np.ones(len(times), dtype=bool)
    window = {}
    for name, moment in _given(start=start, end=end).items():
        edge = seconds(name, moment)
        inside &= times >= edge if name == "start" else times < edge
        window[name] = day(edge)
    if len(ratings) and not inside.any():
        raise NothingLeftError(
            f"time_window({', '.join(f'{name}={value}' for name, value in window.items())}) would leave no ratings; "
            f"they span {day(times.min())} to {day(times.max())}"
        )
    return _filtered(ratings, ratings.keep_rows(inside), "time_window", window)


@registry.register
def positives(ratings: Ratings, *, threshold: float) -> Ratings:
    """Keep the positive ratings: those of ``threshold`` or more.

    Examples
    --------
    >>> positives(Ratings.of([1, 2], ["a", "a"], [3, 4]), threshold=4).user_ids.all.to_list()
    [2]
    """
    check_ratings(ratings)
    threshold = check.number("threshold", threshold)
    return _filtered(ratings, ratings.keep(ratings.values >= threshold), "positives", {"threshold": threshold})


def only(ratings: Ratings, *, users: Any = None, items: Any = None) -> Ratings:
    """Keep only the ratings of the given users, of the given items, or of both; unknown ids are ignored.

    Examples
    --------
    >>> only(Ratings.of([1, 1, 2], ["a", "b", "a"]), users=[1, 9], items=["a"])
    Ratings(1 users, 1 items, 1 ratings)
    """
    check_ratings(ratings)
    if users is None and items is None:
        raise SettingError("only needs users or items; give the ids to keep")
    keeps: list[NDArray[np.bool_] | None] = []
    settings, notes = {}, []
    for kind, vocabulary, ids in (("users", ratings.user_ids, users), ("items", ratings.item_ids, items)):
        if ids is None:
            keeps.append(None)
            continue
        codes = vocabulary.codes(list(ids) if isinstance(ids, set | frozenset | range) else ids)
        keeps.append(np.isin(np.arange(len(vocabulary)), codes))
        settings[kind] = f"{len(codes)} ids"
        if (codes < 0).any():
            notes.append(rating_facts.UnknownIds(int(np.count_nonzero(codes < 0)), kind))
    return _filtered(ratings, _of(ratings, *keeps), "only", settings, notes)


def _given(**settings: Any) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _of(ratings: Ratings, keep_user: NDArray[np.bool_] | None, keep_item: NDArray[np.bool_] | None) -> Ratings:
    """Return the ratings of the users and items to keep (None: all of them)."""
    mask = np.ones(len(ratings), dtype=bool) if keep_item is None else keep_item[ratings.items]
    if keep_user is not None:
        mask &= np.repeat(keep_user, ratings.user_counts)
    return ratings.keep(mask)


def _at_least(ratings: Ratings, user: int, item: int, repeat: bool) -> Ratings:
    while True:
        before = len(ratings)
        ratings = _of(ratings, ratings.user_counts >= user, ratings.item_counts >= item)
        if not repeat or len(ratings) == before:
            return ratings


def _filtered(
    before: Ratings, after: Ratings, action: str, settings: Mapping[str, Any], notes: Iterable[Fact] = ()
) -> Ratings:
    """Return the compact result with its step in the history."""
    if len(after) == 0:
        stated = ", ".join(f"{name}={value}" for name, value in settings.items())
        raise NothingLeftError(
            f"{action}({stated}) would leave none of the {len(before):,} ratings; choose a milder setting"
            if len(before)
            else f"there are no ratings for {action}({stated}) to filter; read some first"
        )
    both = (before, after)
    effect = {
        "users": [int(np.count_nonzero(ratings.user_counts)) for ratings in both],
        "items": [int(np.count_nonzero(ratings.item_counts)) for ratings in both],
        "ratings": [len(ratings) for ratings in both],
    }
    step = Step(action, settings, effect, tuple(notes))
    return replace(after, history=(*before.history, step)).compact()


def _spelled(name: str, value: Any) -> tuple[str, ...]:
    """Return each filter in its standard spelling."""
    spelled = []
    for text in (value,) if isinstance(value, str) else tuple(value):
        try:
            spelled.append(str(registry.spelling(text)))
        except SettingError as error:
            raise SettingError(f"{name}={text!r}: {error}") from error
    return tuple(spelled)


def _phrase(filters: tuple[str, ...]) -> str | None:
    return ", ".join(f"{spelling} ratings" for spelling in filters) or None


@dataclass(frozen=True)
class Filtering(DecisionGroup):
    """Which ratings count: filters as they are spelled, applied in order.

    Examples
    --------
    >>> Filtering(["k_core( k=5 )"]).filters
    ('k_core(k=5)',)
    """

    filters: Any = decision(
        "A1", (), "filters of the ratings, applied in order, as in ['k_core(k=5)']", check=_spelled, phrase=_phrase
    )
