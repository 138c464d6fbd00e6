"""Decisions B1 (who is served), B2 (how scores become lists) and C1 (the items that a list may hold)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._decisions import DecisionGroup, checked_field, decision, unless
from cranfield._errors import SettingError
from cranfield._numbers import nearest_count
from cranfield._own_code import names_code
from cranfield._record import Step
from cranfield._registry import parse
from cranfield._streams import stream
from cranfield.data import AUTO, Ratings, auto_or_number
from cranfield.rankings.calibration import CALIBRATIONS
from cranfield.recommenders import as_recommender
from cranfield.splits import Split, counted_test


def _sample(name: str, value: object) -> str | int | float:
    """Return ``"all"``, a number of users, or a share below 1."""
    if value is None or (isinstance(value, str) and value == "all"):
        return "all"
    fractional = isinstance(value, Real) and not isinstance(value, Integral)
    if fractional and 0 < float(value) < 1:  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    try:
        # 1.0 is ambiguous: one user, or all of them.
        return check.whole(name, None if fractional else value)
    except SettingError:
        raise SettingError(f"{name}={value!r} is neither 'all' nor a number of users nor a share below 1") from None


@dataclass(frozen=True)
class Serving(DecisionGroup):
    """Which users are measured and served: by default every user of the test part, but new users have no list."""

    # Users with fewer training ratings are removed: they are neither served nor measured.
    min_ratings: int = decision(
        "B1",
        0,
        "users with fewer training ratings are removed from the experiment",
        check=partial(check.whole, at_least=0),
        phrase=unless(0, "users with {} training ratings", {1: "users with a training rating"}),
        help="Serve only users with at least this many training ratings.",
    )
    sample: str | int | float = decision(
        "B1",
        "all",
        "how many of these users are served: 'all', a number, or a share",
        check=_sample,
        phrase=unless("all", "{!r} of the users drawn"),
        help="Serve only this many users, or this share of them, drawn at random.",
    )
    # Users without training ratings, if they are not removed: ``unserved``, without lists, as in a file of lists that
    # was made from training ratings alone; or ``served`` by the systems that can, such as popularity.
    new_users: str = decision(
        "B1",
        "unserved",
        "users without training ratings: no list, or one from the systems that can serve them",
        choices=("unserved", "served"),
        phrase=unless("unserved", "new users served"),
        help="Whether users without training ratings get a list from the systems that can serve them.",
    )

    @property
    def everyone(self) -> bool:
        """Whether nobody is removed."""
        return self.min_ratings == 0 and self.sample == "all"


class ServingOptions(TypedDict, total=False):
    """The decisions as keyword arguments of `recommend`."""

    min_ratings: int
    sample: float | str | None
    new_users: str


EVERYONE = Serving()
"""All users are served; those without training ratings get no list."""


def served_users(train: Ratings, serving: Serving = EVERYONE, seed: int = 0) -> tuple[NDArray[np.int32], Step]:
    """Return the codes of the users who are served, and counts of those who are not, by reason."""
    population, enough = _population(train, serving, seed)
    users = population if serving.new_users == "served" else population[train.user_counts[population] > 0]
    if len(users) == 0:
        raise SettingError(
            "none of the users who are drawn has a training rating, so nobody is served; raise sample, or set "
            "min_ratings=1"
        )
    step = Step(
        "serve",
        serving.as_dict(),
        {
            "users": train.n_users,
            "served": len(users),
            "too few ratings": train.n_users - enough,
            "not sampled": enough - len(population),
            "new users": len(population) - len(users),
        },
    )
    return users, step


def _population(train: Ratings, serving: Serving, seed: int) -> tuple[NDArray[np.int32], int]:
    """Return the codes of the users of the experiment, and how many had enough ratings to be drawn."""
    users = np.flatnonzero(train.user_counts >= serving.min_ratings).astype(np.int32)
    enough = len(users)
    if enough == 0:
        raise SettingError(
            f"nobody has {serving.min_ratings} training ratings, so nobody is served; "
            f"give min_ratings={train.user_counts.max(initial=0)} or less"
        )
    if not isinstance(serving.sample, str):
        share = isinstance(serving.sample, float)
        wanted = max(1, int(nearest_count(serving.sample, enough))) if share else int(serving.sample)
        # Every user has a key, so that the draw does not depend on which other users have enough ratings.
        keys = stream(seed, "serve").random(train.n_users)[users]
        users = np.sort(users[np.argsort(keys, kind="stable")[:wanted]])
    return users, enough


def measured_ratings(split: Split, serving: Serving = EVERYONE, seed: int = 0, repeats: str = "exclude") -> Ratings:
    """Return the test ratings of the users of the experiment: all, unless some are removed.

    If events were divided, ``repeats`` says whether items that the user had before are test items (`Ranking.repeats`).
    """
    test = split.test
    if split.repeated is not None:
        test = counted_test(test, None, repeats, split.repeated)
    if not serving.everyone:
        users, _ = _population(split.inputs, serving, seed)
        measured = np.zeros(split.inputs.n_users, dtype=np.bool_)
        measured[users] = True
        test = test.keep(measured[test.users])
    served = test.user_counts > 0
    if serving.new_users == "unserved":
        served &= split.inputs.user_counts > 0
    if not served.any():
        some = "a training rating" if serving.min_ratings <= 1 else f"{serving.min_ratings} training ratings"
        raise SettingError(
            f"none of the {np.count_nonzero(split.test.user_counts):,} users with test ratings is served: "
            + (f"none has {some}" if serving.sample == "all" else f"none of those with {some} is drawn")
            + "; lower min_ratings, raise sample, or fix the split: both parts need the same user ids"
        )
    return test


def _fill(name: str, value: Any) -> Any:
    """Return ``"none"``, the spelling of a system, or a system object."""
    if value is None or (isinstance(value, str) and value == "none"):
        return "none"
    if names_code(value):
        raise SettingError(f"{name}={value!r} names code, which can be a system or a metric only; give a known system")
    try:
        as_recommender(value)
    except SettingError as error:
        raise SettingError(f"{name}={value!r}: {error}; or write 'none'") from None
    return str(parse(value)) if isinstance(value, str) else value


@dataclass(frozen=True)
class Ranking(DecisionGroup):
    """How scores become lists.

    ``fill`` puts items that a system cannot score after all others, in the order of another system. The other fields
    determine which items a list may hold, and how many of them it shows; see `Targets`. ``threshold``, the lowest test
    rating of a relevant item, is used if lists depend on which items are relevant; ``auto`` derives it from the
    ratings.

    Examples
    --------
    >>> Ranking(length=10, fill="popularity").with_(lists="condensed").lists
    'condensed'
    >>> Ranking(nonrelevant=100, threshold=None)
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: it is not known which test items are relevant; give a threshold, such as threshold=4
    """

    fill: Any = decision(
        "B2",
        "none",
        "items that a system cannot score: 'none' leaves them out, a system's name puts them last",
        check=_fill,
        phrase=unless("none", "gaps filled by {}"),
        help="The system that orders the items that cannot be scored, after all others; none: leave them out.",
    )
    calibration: str = decision(
        "B2",
        "none",
        "how scores become predicted ratings for error metrics, fitted on held-out training ratings",
        choices=("none", *CALIBRATIONS),
        phrase=unless("none", "{} calibration of scores"),
        help="Turn scores into predicted ratings, with a line or a step function fitted on held-out training ratings.",
    )
    lists: str = decision(
        "C1",
        "full",
        "rank every item, or only those the user rated in the test set",
        choices=("full", "condensed"),
        phrase="{} lists".format,
        help="Rank all items, or only those that the user rated in the test set.",
    )
    candidates: str = decision(
        "C1",
        "all",
        "the items to rank: all, those with a test rating, or those of the relevant item's popularity group",
        choices=("all", "test", "group"),
        phrase=unless(
            "all", "{} items", {"test": "test items only", "group": "items of the same popularity group only"}
        ),
        help="The items to rank: all, those with a test rating, or those of the relevant item's popularity group.",
    )
    relevant: str = decision(
        "C1",
        "all",
        "one list per user, or one for each relevant item",
        choices=("all", "one"),
        phrase=unless("all", "one relevant item per list"),
        help="One list per user, or one list for each relevant item.",
    )
    nonrelevant: str | int = decision(
        "C1",
        "all",
        "non-relevant items in a list: 'all', or a number drawn at random",
        check=check.all_or_whole,
        phrase=unless("all", "{} non-relevant items drawn"),
        help="Rank only this many non-relevant items, drawn at random for each user.",
    )
    unrated: str | int = decision(
        "C1",
        "all",
        "unrated items in a list, in addition to all test items of the user: 'all', or a number drawn at random",
        check=partial(check.all_or_whole, at_least=0),
        phrase=unless("all", "all test items and {} unrated ones drawn"),
        help="Rank all test items of a user and only this many items that the user never rated, drawn at random.",
    )
    repeats: str = decision(
        "C1",
        "exclude",
        "whether items that the user had before count; 'hide' counts and does not recommend them",
        choices=("exclude", "allow", "only", "hide"),
        phrase=unless(
            "exclude",
            "{}",
            {"allow": "repeats count", "only": "only repeats count", "hide": "repeats count but are not recommended"},
        ),
        help="Items that the user had before the test: exclude them, allow both, only them, or hide them (they count, "
        "but are not recommended).",
    )
    keep_seen: bool = decision(
        "C1",
        False,
        "whether training items may be recommended again",
        check=check.flag,
        phrase=unless(False, "training items kept"),
        help="Also recommend items that the user rated in the training set.",
    )
    length: str | int = decision(
        "C1",
        100,
        "the length of the lists, or 'all'",
        check=check.all_or_whole,
        phrase=unless(100, "lists of {}"),
        help="The length of the lists, or all.",
    )
    threshold: float | str | None = checked_field(AUTO, auto_or_number)

    @property
    def one_relevant(self) -> bool:
        """Whether there is a list for each relevant item."""
        return self.relevant == "one"

    @property
    def offered(self) -> Literal["new", "all", "seen"]:
        """The items that a list may hold: those new to the user, all, or those that the user had before."""
        if self.repeats == "only":
            return "seen"
        return "all" if self.repeats == "allow" or self.keep_seen else "new"

    @property
    def drawn(self) -> int | None:
        """The number of items drawn for each user; None if none are drawn."""
        count = self.unrated if isinstance(self.nonrelevant, str) else self.nonrelevant
        return None if isinstance(count, str) else count

    @property
    def needs_relevance(self) -> bool:
        """Whether the lists depend on which test items are relevant."""
        return self.one_relevant or self.nonrelevant != "all"

    @property
    def needs_test(self) -> str | None:
        """The first decision that needs the test ratings; None if there is none."""
        asks = {
            f"candidates='{self.candidates}'": self.candidates != "all",
            "relevant='one'": self.one_relevant,
            f"nonrelevant={self.nonrelevant}": self.nonrelevant != "all",
            f"unrated={self.unrated}": self.unrated != "all",
            "lists='condensed'": self.lists == "condensed",
        }
        return next((name for name, needed in asks.items() if needed), None)

    def most(self, items: int) -> int:
        """Return the maximum length of a list, given the number of items."""
        return items if isinstance(self.length, str) else self.length

    def _check_together(self) -> None:
        if self.candidates == "group" and not self.one_relevant:
            raise SettingError(
                "candidates='group' ranks a relevant item among the items of its popularity group; set relevant='one'"
            )
        if self.calibration != "none" and self.one_relevant:
            raise SettingError(
                f"calibration={self.calibration!r} needs scores, and relevant='one' keeps only ranks; leave one of "
                "them out"
            )
        if self.calibration != "none" and self.fill != "none":
            raise SettingError(
                f"calibration={self.calibration!r} predicts ratings of items that a system scores, and fill="
                f"{self.fill!r} lists others too; leave one of them out"
            )
        if self.keep_seen and self.repeats == "hide":
            raise SettingError("repeats='hide' recommends new items only, and keep_seen=True others; leave one out")
        others = {
            f"lists='{self.lists}'": self.lists != "full",
            f"relevant='{self.relevant}'": self.one_relevant,
            f"nonrelevant={self.nonrelevant}": self.nonrelevant != "all",
            "keep_seen=True": self.keep_seen,
            f"repeats='{self.repeats}'": self.offered != "new" and not self.keep_seen,
        }
        for other, contradicts in others.items():
            if self.unrated != "all" and contradicts:
                raise SettingError(
                    f"unrated={self.unrated} ranks all test items of a user and items that the user never rated, and "
                    f"{other} asks for others; leave one of them out"
                )
        if self.needs_relevance and self.threshold is None:
            raise SettingError("it is not known which test items are relevant; give a threshold, such as threshold=4")


class RankingOptions(TypedDict, total=False):
    """The decisions as keyword arguments of `recommend`, which declares ``length`` and ``threshold`` itself."""

    fill: Any
    lists: str
    candidates: str
    relevant: str
    nonrelevant: int | str | None
    unrated: int | str | None
    repeats: str
    keep_seen: bool
    calibration: str
