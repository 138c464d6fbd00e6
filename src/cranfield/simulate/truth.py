"""`World`: users and items whose preferences are known, and the true quality of ranked lists, all items judged."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import SettingError, nearest
from cranfield._record import Step
from cranfield._registry import Spelling, parse
from cranfield._streams import stream
from cranfield.data import Ratings, check_ratings
from cranfield.simulate.tastes import Tastes, blocks, inclusion, normal, rates, sample_users
from cranfield.tables import UNKNOWN, Vocabulary

METRICS = ("P", "Recall", "nDCG")
"""The metrics whose true value is known."""

_MOST_PAIRS = 50_000_000


@dataclass(frozen=True, eq=False)
class World:
    """A simulated world: the truth about every pair of a user and an item, and the observed ratings.

    Made by `world`. Users and items are given by their codes, their positions in the vocabularies of ``ratings``. The
    matrix of all pairs is never stored: it is computed again for the requested users.

    Examples
    --------
    >>> from cranfield import simulate
    >>> small = simulate.world(users=200, items=100, ratings=3_000)
    >>> small
    World(200 users, 100 items, 3,000 ratings observed, 32.0 % of all pairs relevant)
    >>> small.preference([0, 1]).shape
    (2, 100)
    >>> best = {1: (small.preference([0])[0].argsort()[::-1] + 1).tolist()}
    >>> small.true_value(best, "nDCG@10")
    array([1.])
    """

    ratings: Ratings  # the observed ratings
    tastes: Tastes  # the latent tastes that determine every preference
    exposure: NDArray[np.float64]  # how often each item is met for reasons other than being liked
    # How strongly users prefer to rate what they like: one grade more makes a rating e to this power times as likely.
    relevance_bias: float
    # The standard deviation of the error of a single rating, in standard deviations of the preference score.
    noise: float
    threshold: float  # the lowest relevant grade
    seed: int  # the seed it was made with

    def __repr__(self) -> str:
        relevant = self.relevant(sample_users(self.ratings.n_users, self.ratings.n_items)).mean()
        return (
            f"World({self.ratings.n_users:,} users, {self.ratings.n_items:,} items, {len(self.ratings):,} ratings "
            f"observed, {100 * relevant:.1f} % of all pairs relevant)"
        )

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.ratings._repr_html_()}"

    def preference(self, users: Any = None) -> NDArray[np.float32]:
        """Return the true grade of every item, one row per requested user code (everybody by default)."""
        codes = self._codes(users)
        grades = np.empty((len(codes), self.ratings.n_items), dtype=np.float32)
        for rows, _, own in self._graded(codes):
            grades[rows] = own
        return grades

    def relevant(self, users: Any = None) -> NDArray[np.bool_]:
        """Return whether each item is truly relevant, one row per requested user code (everybody by default)."""
        return self.preference(users) >= np.float32(self.threshold)

    def propensity(self, users: Any = None) -> NDArray[np.float64]:
        r"""Return the probability with which each pair was observed, one row per requested user code.

        An item is met at the rate :math:`w_{ui} = x_i\, e^{b\, r_{ui}}`, its exposure times a function of its true
        grade. The probability is :math:`\pi_{ui} = 1 - e^{-\tau_u w_{ui}}`, with :math:`\tau_u` chosen so that
        :math:`\sum_i \pi_{ui}` is the user's profile size. Pairs are drawn with exactly these probabilities (to a
        millionth), given the profile sizes.
        """
        codes = self._codes(users)
        probabilities = np.empty((len(codes), self.ratings.n_items))
        for rows, block, grades in self._graded(codes):
            weights = rates(grades, self.exposure, self.relevance_bias)
            probabilities[rows] = inclusion(weights, self.ratings.user_counts[block])
        return probabilities

    def truth(self, users: Any = None) -> Ratings:
        """Return the true grade of every item for the requested user codes as ratings: complete judgments."""
        codes = np.unique(self._codes(users))
        n_items = self.ratings.n_items
        check_pairs(len(codes), n_items)
        counts = np.zeros(self.ratings.n_users + 1, dtype=np.int64)
        counts[codes + 1] = n_items
        return Ratings(
            self.ratings.user_ids,
            self.ratings.item_ids,
            np.cumsum(counts),
            np.tile(np.arange(n_items, dtype=np.int32), len(codes)),
            self.preference(codes).ravel(),
            name="simulated truth",
            history=(*self.ratings.history, Step("simulate.truth", {"users": len(codes)})),
        )

    def random_test(self, per_user: int = 10, users: Any = None) -> Ratings:
        """Return ratings of items drawn uniformly at random: an unbiased test set, like those of Yahoo R3 and Coat.

        Observed pairs are not drawn again; a user with fewer unobserved items than ``per_user`` rates all of them. The
        ratings have the same noise as the observed ones. Each user has their own random stream, so a draw does not
        depend on which other users are requested.
        """
        per_user = check.whole("per_user", per_user)
        codes = np.unique(self._codes(users))
        drawn = [self._random_items(int(user), per_user) for user in codes]
        sizes = np.array([len(items) for items in drawn], dtype=np.int64)
        who = np.repeat(codes.astype(np.int32), sizes)
        what = np.concatenate([np.empty(0, dtype=np.int32), *drawn])
        errors = [stream(self.seed, "simulate.random_test", "noise", int(user)).random(per_user) for user in codes]
        noise = np.concatenate([np.empty(0), *(error[:size] for error, size in zip(errors, sizes.tolist()))])
        return Ratings.from_codes(
            self.ratings.user_ids,
            self.ratings.item_ids,
            who,
            what,
            self.tastes.grade(self.tastes.pair_score(who, what) + self.noise * normal(noise)),
            name="simulated random test",
            history=(
                *self.ratings.history,
                Step("simulate.random_test", {"per_user": per_user, "users": len(codes)}, {"ratings": len(who)}),
            ),
        )

    def true_value(self, lists: Any, metric: str = "nDCG@10", *, exclude: Ratings | None = None) -> NDArray[np.float64]:
        r"""Return the true value of each ranked list, with every item judged.

        Parameters
        ----------
        lists
            A `Run`, or a mapping of user ids to item ids, best first.
        metric
            ``P@n``, ``Recall@n`` or ``nDCG@n`` (the gain is the grade, the discount :math:`\log_2(k + 1)`).
        exclude
            Ratings whose pairs no list should hold, usually the training set that the lists were made from. They are
            not candidates: such an item adds nothing to a list that holds it, nor to the best possible list.

        Returns
        -------
        array
            A value for each list, in the order of the lists; NaN if it is undefined, because a user has no
            relevant candidate (Recall) or no candidate with a gain (nDCG).
        """
        spelling = parse_metric(metric)
        users, indptr, items = lists_as_codes(lists, self.ratings.user_ids, self.ratings.item_ids)
        lists_of = np.repeat(np.arange(len(users), dtype=np.int64), np.diff(indptr))
        again = pl.Series(lists_of * self.ratings.n_items + items).is_first_distinct().not_().arg_true()
        if len(again):
            item = self.ratings.item_ids.ids([items[again[0]]])[0]
            raise SettingError(f"item {item!r} is in one list twice; list an item once")
        if exclude is not None:
            check_ratings(exclude)
            exclude = _over(exclude, self.ratings)
        values = np.empty(len(users))
        for rows, block, grades in self._graded(users):
            held, places = _held(exclude, block, self.ratings.n_items), indptr[rows.start : rows.stop + 1]
            values[rows] = list_values(spelling, places, items, grades, self.threshold, held)
        return values

    def _random_items(self, user: int, size: int) -> NDArray[np.int32]:
        keys = stream(self.seed, "simulate.random_test", user).random(self.ratings.n_items)
        keys[self.ratings.items[self.ratings.profile(user)]] = np.inf
        size = min(size, int(np.isfinite(keys).sum()))
        return np.sort(np.argsort(keys, kind="stable")[:size]).astype(np.int32)

    def _graded(self, codes: NDArray[np.integer]) -> Iterator[tuple[slice, NDArray[np.integer], NDArray[np.float32]]]:
        """Yield blocks of a bounded number of pairs: the position of each, its user codes and its true grades."""
        for rows in blocks(len(codes), self.ratings.n_items):
            yield rows, codes[rows], self.tastes.grade(self.tastes.score(codes[rows]))

    def _codes(self, users: Any) -> NDArray[np.int64]:
        if users is None:
            return np.arange(self.ratings.n_users)
        codes = np.atleast_1d(np.asarray(users))
        if not np.issubdtype(codes.dtype, np.integer):
            raise SettingError(f"give users as codes, whole numbers from 0, not as {codes.dtype}")
        if len(codes) and not (codes.min() >= 0 and codes.max() < self.ratings.n_users):
            raise SettingError(
                f"user codes go from 0 to {self.ratings.n_users - 1}, not from {codes.min()} to {codes.max()}"
            )
        return codes.astype(np.int64)


def check_pairs(users: int, items: int) -> None:
    """Refuse to hold the truth about more pairs than fit in memory."""
    if users * items > _MOST_PAIRS:
        raise SettingError(
            f"the truth about {users:,} users x {items:,} items is {users * items:,} pairs, more than {_MOST_PAIRS:,}; "
            "ask for fewer users"
        )


def _over(ratings: Ratings, world: Ratings) -> Ratings:
    """Return ratings with the codes of the world's vocabularies."""
    if ratings.user_ids == world.user_ids and ratings.item_ids == world.item_ids:
        return ratings
    users = world.user_ids.codes(ratings.user_ids.ids(ratings.users))
    items = world.item_ids.codes(ratings.item_ids.ids(ratings.items))
    known = (users != UNKNOWN) & (items != UNKNOWN)
    return Ratings.from_codes(world.user_ids, world.item_ids, users[known], items[known], ratings.values[known])


def _held(ratings: Ratings | None, users: NDArray[np.integer], n_items: int) -> NDArray[np.bool_]:
    """Return which items each user has in ``ratings``."""
    held = np.zeros((len(users), n_items), dtype=np.bool_)
    if ratings is not None:
        for row, user in enumerate(users.tolist()):
            held[row, ratings.items[ratings.profile(user)]] = True
    return held


def parse_metric(text: str) -> Spelling:
    """Read ``P@10``, ``Recall@10`` or ``nDCG@10``."""
    spelling = parse(text)
    if spelling.name not in METRICS:
        raise SettingError(f"the true value of {spelling.name!r} is not known{nearest(spelling.name, METRICS)}")
    if spelling.cutoff is None or spelling.parameters:
        raise SettingError(f"{text!r} is not a metric with a cut-off and no parameters; write {spelling.name}@10")
    return spelling


def lists_as_codes(
    lists: Any, user_ids: Vocabulary, item_ids: Vocabulary
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Return the users, ``indptr`` and items of a `Run`, or of ``{user: [item, ...]}``, as codes of vocabularies."""
    if isinstance(lists, Mapping):
        names: tuple[Any, Any] = (list(lists), [item for ranked in lists.values() for item in ranked])
        users, items = user_ids.codes(names[0]), item_ids.codes(names[1])
        indptr = np.cumsum([0, *map(len, lists.values())], dtype=np.int64)
    elif all(hasattr(lists, name) for name in ("users", "indptr", "items", "user_ids", "item_ids")):
        if getattr(lists, "one_relevant", False):
            raise SettingError("lists made for one relevant item each have no true value; rank all items instead")
        users, indptr, items = lists.users, lists.indptr, lists.items
        names = (lists.user_ids.ids(users), lists.item_ids.ids(items))
        users = users if lists.user_ids == user_ids else user_ids.codes(names[0])
        items = items if lists.item_ids == item_ids else item_ids.codes(names[1])
    else:
        raise SettingError(f"{type(lists).__name__} is not ranked lists; give a Run or {{user: [item, ...]}}")
    for what, codes, ids in (("user", users, names[0]), ("item", items, names[1])):
        if (codes == UNKNOWN).any():
            stranger = ids[int(np.flatnonzero(codes == UNKNOWN)[0])]
            raise SettingError(f"{what} {stranger!r} of the lists is not in this world; use lists over its {what}s")
    return users, indptr, items


def list_values(
    metric: Spelling,
    indptr: NDArray[np.int64],
    items: NDArray[np.int32],
    grades: NDArray[np.float32],
    threshold: float,
    excluded: NDArray[np.bool_],
) -> NDArray[np.float64]:
    r"""Return the value of each list, given its user's true grades of all items as a row.

    - ``P@n``: the share of relevant items among the first *n* positions; missing items of shorter lists count as not
      relevant.
    - ``Recall@n``: the share of the user's relevant items that are among the first *n* positions.
    - ``nDCG@n``: :math:`\sum_{k \le n} g_k / \log_2(k + 1)` divided by that of the best possible list; the gain is the
      grade itself, or 0 for a grade below 0.

    Excluded items are not candidates: they have neither relevance nor gain. NaN if a user has no relevant candidate
    (Recall) or no gain is possible (nDCG).
    """
    cutoff = metric.cutoff or 0
    worth = np.maximum(grades, 0.0) if metric.name == "nDCG" else grades >= threshold
    gains = np.where(excluded, 0.0, worth)
    depth = min(cutoff, gains.shape[1])
    places = indptr[:-1, None] + np.arange(depth)
    inside = places < indptr[1:, None]
    listed = items[np.where(inside, places, 0)] if len(items) else np.zeros(places.shape, dtype=np.int32)
    got = np.where(inside, np.take_along_axis(gains, listed.astype(np.int64), axis=1), 0.0)
    if metric.name == "P":
        return np.asarray(got.sum(axis=1) / cutoff)
    if metric.name == "Recall":
        return _ratio(got.sum(axis=1), gains.sum(axis=1))
    discount = 1.0 / np.log2(np.arange(2, depth + 2))
    best = -np.sort(np.partition(-gains, depth - 1, axis=1)[:, :depth], axis=1)
    return _ratio((got * discount).sum(axis=1), (best * discount).sum(axis=1))


def _ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
