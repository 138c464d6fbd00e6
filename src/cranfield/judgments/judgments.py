"""`Judgments`: the test side of a measurement, shared by all systems and metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._streams import Keys
from cranfield.data import Ratings
from cranfield.facts import Fact
from cranfield.facts import scores as scores_facts
from cranfield.tables import Vocabulary

NegativeGrades = Literal["judged", "unjudged", "pooled"]
"""What a grade below 0 means: judged and not relevant; not judged at all; or in the pool but not judged."""

V = TypeVar("V")

# Gains that are multiples of 1/_GRAIN, such as ratings, can be sorted by a key that includes the list.
_GRAIN = 2.0**20
# Approximate number of cells of the look-up table of a block of lists.
_TABLE_CELLS = 1 << 19


def once(kept: dict[Any, Any], key: Any, make: Callable[[], V]) -> V:
    """Return the result of ``make``, which is called once and cached under ``key``."""
    if key not in kept:
        kept[key] = make()
    value: V = kept[key]
    return value


class of_base(Generic[V]):
    """A cached property that does not depend on the threshold, and is shared by the views under all thresholds."""

    def __init__(self, make: Callable[[Any], V]) -> None:
        self._make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, judgments: Any, owner: type | None = None) -> V:
        if judgments is None:
            return self  # type: ignore[return-value]
        base = judgments.base
        if self._name not in base.__dict__:
            base.__dict__[self._name] = self._make(base)
        value: V = base.__dict__[self._name]
        if judgments is not base:
            judgments.__dict__[self._name] = value
        return value


@dataclass(frozen=True, eq=False)
class Judgments:
    """The judgments of each list: the test ratings of its user, and which of them are relevant.

    With one list per user, the judgments of a list are the user's test profile. In the one-relevant design they are the
    single test rating that the list was made for.
    """

    users: NDArray[np.int32]  # the user code of each list
    # The judgments of list ``l`` are the slice ``indptr[l]:indptr[l + 1]`` of the arrays below.
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]  # item code and rating of each judgment
    grades: NDArray[np.float64]
    threshold: float  # a judgment is relevant if its rating is at least this
    user_ids: Vocabulary  # the vocabularies of the codes
    item_ids: Vocabulary
    # The pooled but unjudged items, as user × items + item, ascending; None if there are none.
    pool: NDArray[np.int64] | None = None
    # The fingerprint of the test set, how its grades below 0 were read, and notes on them for the reader.
    fingerprint: str = ""
    negative_grades: str = "judged"
    notes: tuple[Fact, ...] = ()
    level: float | None = None  # the rating below which there is no gain, if a metric sets one; see `gaining_from`
    # The distinct ratings of the whole test set, if these are the judgments of some of its users; otherwise None.
    grades_of_all: NDArray[np.float64] | None = None
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False)
    _base: Judgments | None = field(default=None, repr=False)
    _whole: Judgments | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        test: Ratings,
        threshold: float,
        negative_grades: NegativeGrades = "judged",
        *,
        whole: Judgments | None = None,
    ) -> Judgments:
        """Make the judgments of a test set: one list per user with a test rating.

        If ``negative_grades`` are not judged, a user with only such grades has no list. ``whole`` are the judgments of
        all users, if these are those of some of them; the rating scale and the catalogue follow from it.
        """
        pool = None
        if negative_grades != "judged" and (test.values < 0).any():
            judged = test.values >= 0
            if negative_grades == "pooled":
                users = np.repeat(np.arange(test.n_users), test.user_counts)
                pool = (users * len(test.item_ids) + test.items)[~judged]
            test = test.keep(judged)
            if len(test) == 0:
                raise nothing_judged(negative_grades)
        raters = np.flatnonzero(test.user_counts)
        return cls(
            users=raters.astype(np.int32),
            indptr=np.append(test.indptr[raters], len(test)),
            items=test.items,
            grades=test.values.astype(np.float64),
            threshold=threshold,
            user_ids=test.user_ids,
            item_ids=test.item_ids,
            pool=pool,
            _whole=whole,
        )

    def changed(self, **changes: Any) -> Judgments:
        """Return changed judgments with an empty cache."""
        return replace(self, **{"_whole": None, "grades_of_all": None, **changes}, _kept={}, _base=None)

    def regraded(self, grade: Callable[[NDArray[np.float64]], NDArray[np.float64]], **changes: Any) -> Judgments:
        """Return judgments with other ratings, each computed from the rating that it replaces."""
        of_all = None if self.grades_of_all is None else np.unique(grade(self.grades_of_all))
        return self.changed(grades=grade(self.grades), grades_of_all=of_all, **changes)

    @property
    def base(self) -> Judgments:
        """The judgments that these are a view of; themselves if they are not a view."""
        return self if self._base is None else self._base

    def __len__(self) -> int:
        return len(self.items)

    @property
    def n_lists(self) -> int:
        """The number of lists."""
        return len(self.users)

    @of_base
    def lists(self) -> NDArray[np.int32]:
        """The list of each judgment."""
        return np.repeat(np.arange(self.n_lists, dtype=np.int32), np.diff(self.indptr))

    def had_in(self, train: Ratings) -> NDArray[np.bool_]:
        """Return whether the user of each judgment has its item in training."""
        users = train.user_ids.recoded(self.users, self.user_ids)[self.lists]
        return train.places(users, train.item_ids.recoded(self.items, self.item_ids)) >= 0

    @cached_property
    def relevant(self) -> NDArray[np.bool_]:
        """Whether each judgment is relevant: r >= threshold."""
        return self.grades >= self.threshold

    @of_base
    def n_judged(self) -> NDArray[np.int64]:
        """The number of judgments of each list."""
        return np.diff(self.indptr)

    @cached_property
    def n_relevant(self) -> NDArray[np.int64]:
        """R: the number of relevant judgments of each list."""
        if self.n_lists == 0:
            return np.zeros(0, dtype=np.int64)
        return np.add.reduceat(self.relevant, self.indptr[:-1], dtype=np.int64)

    @cached_property
    def n_nonrelevant(self) -> NDArray[np.int64]:
        """N: the number of judgments of each list that are not relevant."""
        return self.n_judged - self.n_relevant

    @of_base
    def keys(self) -> NDArray[np.int64]:
        """One number per judgment, user × items + item, ascending."""
        return self.users.astype(np.int64)[self.lists] * len(self.item_ids) + self.items

    @of_base
    def id_keys(self) -> tuple[Keys, Keys]:
        """Keys for randomness by id: of the user and of the item of each judgment."""
        return self.user_ids.keys[self.users[self.lists]], self.item_ids.keys[self.items]

    @of_base
    def block(self) -> int:
        """The number of lists joined at a time, so that the look-up table stays in the processor's cache."""
        return max(16, _TABLE_CELLS // self.width)

    @property
    def width(self) -> int:
        """The number of columns of the look-up table: the items, and one for items that are not in the test set."""
        return len(self.item_ids) + 1

    @of_base
    def cells(self) -> NDArray[np.intp]:
        """The cell of each judgment in the table of its block."""
        cells = self.lists.astype(np.intp)
        cells %= self.block
        cells *= self.width
        cells += self.items
        return cells

    @of_base
    def judged_items(self) -> Vocabulary:
        """The items with a rating in the whole test set that these judgments may be a part of."""
        if self._whole is not None:
            return self._whole.judged_items
        return Vocabulary(self.item_ids.ids(np.unique(self.items)))

    @of_base
    def distinct(self) -> NDArray[np.float64]:
        """The distinct ratings, ascending, of the whole test set that these judgments may be a part of."""
        if self._whole is not None:
            return self._whole.distinct
        return np.unique(self.grades if self.grades_of_all is None else self.grades_of_all)

    @property
    def highest_grade(self) -> float:
        """The highest rating of all users of the test set; 0 without ratings."""
        return float(self.distinct[-1]) if len(self.distinct) else 0.0

    @property
    def top_grade(self) -> float:
        """The highest rating of all users of the test set, but at least 0."""
        return float((self.grades if self.grades_of_all is None else self.grades_of_all).max(initial=0.0))

    def need_all_users(self, what: str) -> None:
        """Refuse to measure something that needs all users on some of them."""
        if self.grades_of_all is not None:
            raise SettingError(
                f"{what} looks at all users together, and these lists are measured in blocks of users; leave it out, "
                "or give files and enough memory for all of them at once (memory=...)"
            )

    @of_base
    def top_grades(self) -> NDArray[np.float64]:
        """The highest rating of each list."""
        return self.highest(self.grades)

    def highest(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the highest value of each list, given one value per judgment."""
        return np.maximum.reduceat(values, self.indptr[:-1]) if len(self) else np.zeros(self.n_lists)

    def at(self, threshold: float) -> Judgments:
        """Return a view of the judgments with another threshold, which shares everything that does not depend on it."""
        if threshold == self.threshold:
            return self
        if threshold == self.base.threshold:
            return self.base
        return replace(self, threshold=threshold, _base=self.base)

    def gaining_from(self, level: float) -> Judgments:
        """Return the judgments with a threshold below which ratings have no gain: they become 0, or stay below 0."""

        def make() -> Judgments:
            # A rating below 0 has no gain in any case.
            return self.regraded(
                lambda grades: np.where(grades >= level, grades, np.minimum(grades, 0.0)),
                threshold=level,
                level=level,
                _whole=self._whole or self.base,
            )

        return once(self.base._kept, ("gaining from", level), make)

    def is_same_as(self, other: Judgments) -> bool:
        """Whether two have the same ratings for the same lists, whatever their thresholds."""
        if self.base is other.base:
            return True
        arrays = ("users", "indptr", "items", "grades")
        return (
            all(np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays)
            and self.user_ids == other.user_ids
            and self.item_ids == other.item_ids
        )

    def is_part_of(self, other: Judgments) -> bool:
        """Whether every rating is also in another test set, as for one-relevant lists."""
        if self.user_ids != other.user_ids or self.item_ids != other.item_ids:
            return False
        place = np.searchsorted(other.keys, self.keys)
        same_pairs = np.append(other.keys, -1)[place] == self.keys
        return bool(same_pairs.all() and np.array_equal(other.grades[place], self.grades))

    def only(self, mask: NDArray[np.bool_]) -> tuple[Judgments, NDArray[np.int64], NDArray[np.int64]]:
        """Return the judgments in ``mask``, as if the test set had no others.

        Also returns the new position of each judgment and the new number of each list, -1 for those that are removed: a
        user without any judgment is not in the smaller test set.
        """
        kept = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(mask, out=kept[1:])
        bounds = kept[self.indptr]
        alive = np.diff(bounds) > 0
        smaller = self.changed(
            users=self.users[alive],
            indptr=np.append(bounds[:-1][alive], bounds[-1]),
            items=self.items[mask],
            grades=self.grades[mask],
            _whole=self._whole or self.base,
        )
        return smaller, np.where(mask, kept[1:] - 1, -1), np.where(alive, np.cumsum(alive) - 1, -1)

    def gains(self, name: str | None, gain: Callable[[Judgments], NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the gain of each judgment, cached under ``name`` and the threshold if there is a name."""
        if name is None:
            return gain(self)
        return once(self._kept, ("gains", name, self.threshold), lambda: gain(self))

    def ideal(
        self, name: str | None, gain: Callable[[Judgments], NDArray[np.float64]], discount: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the best that each list could score: its gains in descending order, discounted by rank.

        The sorted gains are cached under ``name`` (and the threshold), so that further cut-offs are cheap, and so is
        the result, since it is the same for every system. Without a name nothing is cached, so the gain may change
        between calls.
        """
        if self.n_lists == 0:
            return np.zeros(0)
        kept, key = {} if name is None else self._kept, (name, self.threshold)

        def best() -> NDArray[np.float64]:
            gains = once(kept, key, lambda: self._descending(self.gains(name, gain)))
            weights = np.append(discount, 0.0)[np.minimum(self._places, len(discount))]
            return np.add.reduceat(gains * weights, self.indptr[:-1])

        return once(kept, (*key, discount.tobytes()), best)

    @of_base
    def _places(self) -> NDArray[np.int64]:
        """The position of each judgment in its list, from 0."""
        return np.arange(len(self)) - np.repeat(self.indptr[:-1], self.n_judged)

    def _descending(self, gains: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sort the gains of each list in descending order, by one key of list and gain if a float can hold it."""
        grains = gains * _GRAIN
        room = 2.0 * float(gains.max(initial=0.0) - gains.min(initial=0.0)) + 1.0
        if self.n_lists * room * _GRAIN < 2.0**53 and (grains == np.rint(grains)).all():
            base = self.lists.astype(np.float64) * room
            return base - np.sort(base - gains)  # lists stay in order, so gains can be recovered from the keys
        return gains[np.lexsort((-gains, self.lists))]


def nothing_judged(negative_grades: str) -> SettingError:
    """Return the error for a test set without judged grades."""
    return SettingError(
        f"every grade of the test set is below 0, so nothing is judged with negative_grades={negative_grades!r}; set "
        "negative_grades='judged'"
    )


def notes_on_negative_grades(test: Ratings, reading: NegativeGrades) -> tuple[Fact, ...]:
    """Return a note on grades below 0, if they come from relevance judgments or were not read as judged."""
    count, without = negative_grades_of(test)
    is_qrels = bool(test.history) and test.history[-1].settings.get("format") == "qrels"
    is_told = count and (reading != "judged" or is_qrels)
    return (scores_facts.GradesBelowZero(count, without, reading),) if is_told else ()


def negative_grades_of(test: Ratings) -> tuple[int, int]:
    """Return the number of grades below 0, and of users with only such grades."""
    negative = test.values < 0
    if not negative.any():
        return 0, 0
    without = np.count_nonzero(test.user_counts) - np.count_nonzero(test.keep(~negative).user_counts)
    return int(negative.sum()), int(without)
