"""Decisions B2 and C1: how scores become lists, the items without a score, and the items that a list may hold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict

from cranfield import _checks as check
from cranfield._decisions import Decided, borrowed, decision, unless
from cranfield._errors import SettingError
from cranfield._own_code import names_code
from cranfield._registry import parse
from cranfield.data import AUTO, auto_or_number
from cranfield.rankings.calibration import CALIBRATIONS
from cranfield.recommenders import as_recommender


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
class Ranking(Decided):
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
    threshold: float | str | None = borrowed(AUTO, auto_or_number)

    @property
    def one_relevant(self) -> bool:
        """Whether there is a list for each relevant item."""
        return self.relevant == "one"

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
        if self.calibration != "none":
            self._check_calibration()
        if self.unrated != "all":
            self._check_unrated()
        if self.needs_relevance and self.threshold is None:
            raise SettingError("it is not known which test items are relevant; give a threshold, such as threshold=4")

    def _check_calibration(self) -> None:
        """Refuse lists without scores to calibrate."""
        if self.one_relevant:
            raise SettingError(
                f"calibration={self.calibration!r} needs scores, and relevant='one' keeps only ranks; leave one of "
                "them out"
            )
        if self.fill != "none":
            raise SettingError(
                f"calibration={self.calibration!r} predicts ratings of items that a system scores, and fill="
                f"{self.fill!r} lists others too; leave one of them out"
            )

    def _check_unrated(self) -> None:
        """Refuse decisions that contradict a number of unrated items."""
        others = {
            f"lists='{self.lists}'": self.lists != "full",
            f"relevant='{self.relevant}'": self.one_relevant,
            f"nonrelevant={self.nonrelevant}": self.nonrelevant != "all",
            "keep_seen=True": self.keep_seen,
        }
        for other, contradicts in others.items():
            if contradicts:
                raise SettingError(
                    f"unrated={self.unrated} ranks all test items of a user and items that the user never rated, and "
                    f"{other} asks for others; leave one of them out"
                )


class RankingOptions(TypedDict, total=False):
    """The decisions as keyword arguments of `recommend`, which declares ``length`` and ``threshold`` itself."""

    fill: Any
    lists: str
    candidates: str
    relevant: str
    nonrelevant: int | str | None
    unrated: int | str | None
    keep_seen: bool
    calibration: str
