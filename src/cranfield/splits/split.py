"""`Split`: a training and a test set over one vocabulary, and how they were made; split by a spelling (decision A2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._decisions import DecisionGroup, decision, unless
from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._registry import Registry, parse
from cranfield._table import Table
from cranfield._version import __version__
from cranfield.data import Ratings, together
from cranfield.facts import split as split_facts


@dataclass(frozen=True, eq=False)
class Split:
    """Ratings divided into a training part and a test part.

    Parameters
    ----------
    train, test
        Disjoint, over the same user and item vocabularies.
    step
        How the split was made, and its effect; ``step.notes`` names leakage and the rules that were applied.
    validation
        A third part, taken from the training part, for choosing hyper-parameters; None if there is none.
    fold, folds
        Which of how many folds this is; ``(0, 1)`` for a single split.
    item_groups
        The popularity group of each item code, 0 for the most popular (see `percentiles`); None for other splits.
    profiles
        The input of users who are held out whole (see `strong_generalisation`); None for other splits.

    Examples
    --------
    >>> import cranfield as cf
    >>> split = cf.splits.random(cf.Ratings.of([1] * 4, list("abcd")), exact=True, train=0.5)
    >>> len(split.train), len(split.test)
    (2, 2)
    """

    train: Ratings
    test: Ratings
    step: Step
    validation: Ratings | None = None
    fold: int = 0
    folds: int = 1
    item_groups: NDArray[np.int16] | None = None
    profiles: Ratings | None = None

    def __post_init__(self) -> None:
        for part in self.parts.values():
            if part.user_ids != self.train.user_ids or part.item_ids != self.train.item_ids:
                raise SettingError("the parts of a split share one vocabulary; use cf.splits.predefined to join yours")

    def __repr__(self) -> str:
        fold = f", fold {self.fold + 1} of {self.folds}" if self.folds > 1 else ""
        sizes = ", ".join(f"{name} {len(part):,}" for name, part in self.parts.items())
        return f"Split({self.step.action.removeprefix('split.')}: {sizes}{fold})"

    def _repr_html_(self) -> str:
        rows = [
            [
                name,
                *(f"{count:,}" for count in (len(part), *map(np.count_nonzero, (part.user_counts, part.item_counts)))),
            ]
            for name, part in self.parts.items()
        ]
        return Table(["part", "ratings", "users", "items"], rows, repr(self), self.notes).html()

    def __iter__(self) -> Iterator[Ratings]:
        """Yield the training and the test part, for ``train, test = split``."""
        return iter((self.train, self.test))

    @property
    def parts(self) -> dict[str, Ratings]:
        """The parts by name: train, profiles and validation (if there are any) and test."""
        optional = {"profiles": self.profiles, "validation": self.validation}
        there = {name: part for name, part in optional.items() if part is not None}
        return {"train": self.train, **there, "test": self.test}

    @property
    def is_for_search(self) -> bool:
        """Whether the validation part is the test part, as in a search, which measures on what stops its systems."""
        return self.validation is self.test

    @cached_property
    def repeated(self) -> NDArray[np.bool_] | None:
        """Which test items their user had before, in another part; None if no events were divided."""
        if "repeated" not in self.step.settings:
            return None
        names = ("train", "profiles") if self.is_for_search else ("train", "profiles", "validation")
        before = [part for name, part in self.parts.items() if name in names]
        return np.any([part.places(self.test.users, self.test.items) >= 0 for part in before], axis=0)

    @property
    def inputs(self) -> Ratings:
        """The ratings that lists are made from: the profiles of users who are held out whole, else training."""
        return self.train if self.profiles is None else self.profiles

    @cached_property
    def joined(self) -> Split:
        """The split with its validation part in the training part, which is all that users had before the test.

        Users of the validation part who are held out whole are in the training part with their profiles.
        """
        if self.validation is None:
            return self
        parts = [self.train, self.validation]
        if self.profiles is not None:
            parts.append(self.profiles.keep((self.validation.user_counts > 0)[self.profiles.users]))
        whole = together(parts, self.step.settings.get("repeated"))
        return replace(self, train=replace(whole, history=self.train.history), validation=None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader should see: leakage, users left out, rules applied."""
        return tuple(map(str, self.step.notes))

    def record(self) -> dict[str, Any]:
        """Return how the split was made, ready for JSON: the step, the steps before it, and a hash of each part.

        The steps are those of the training part; if another part was made differently, its steps are added.
        """
        data = {name: self._before(part) for name, part in self.parts.items()}
        others = {name: origin for name, origin in data.items() if origin != data["train"]}
        return {
            "cranfield": __version__,
            "split": self.step.as_dict(),
            "fold": self.fold,
            "folds": self.folds,
            "data": data["train"] | ({"parts": others} if others else {}),
            "fingerprints": {name: part.fingerprint for name, part in self.parts.items()},
        }

    def _before(self, part: Ratings) -> dict[str, Any]:
        return {"name": part.name, "history": [step.as_dict() for step in part.history if step is not self.step]}


REPEATS = ("exclude", "allow", "only", "hide")
"""What may count in a test set: items new to the user, all (``allow``, ``hide``), or those the user had before."""


def counted_test(test: Ratings, train: Ratings | None, repeats: str, had: NDArray[np.bool_] | None = None) -> Ratings:
    """Return the test ratings that count, given whether items that their user has in training do (`REPEATS`).

    ``had`` says which of them the user had, if it is known; the two need not share a vocabulary.
    """
    check.one_of("repeats", repeats, REPEATS)
    if train is None and had is None:
        raise SettingError(f"repeats={repeats!r} needs the training ratings; give them as train=...")
    if had is None:
        assert train is not None
        users = train.user_ids.recoded(test.users, test.user_ids)
        had = train.places(users, train.item_ids.recoded(test.items, test.item_ids)) >= 0
    both = repeats in ("allow", "hide")
    counts = np.ones(len(test), dtype=np.bool_) if both else had == (repeats == "only")
    if not counts.any():
        which = "is a repeat" if repeats == "only" else "is new to its user"
        raise SettingError(f"no test item {which}, so repeats={repeats!r} measures nothing; set repeats='allow'")
    effect = {"test": len(test), "repeated": int(np.count_nonzero(had)), "counted": int(np.count_nonzero(counts))}
    sizes = len(np.unique(test.users)), len(np.unique(test.users[counts]))
    note = split_facts.CountedRepeats(repeats, effect["repeated"], len(test), *sizes, len(np.unique(test.users[had])))
    step = Step("repeats", {"repeats": repeats}, effect, (note,))
    return replace(test, history=(*test.history, step)) if both else test.keep(counts, step)


class Splits(Sequence[Split]):
    """Several splits, each made by ``at`` when it is needed, so that only one is in memory."""

    def at(self, place: int) -> Split:
        """Return the split at a position, counted from 0."""
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> Split: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Split]: ...
    def __getitem__(self, index: int | slice) -> Split | Sequence[Split]:
        """Return a split, or the splits of a slice."""
        places = range(len(self))[index]
        return self.at(places) if isinstance(places, int) else [self.at(place) for place in places]


registry: Registry[Callable[..., Any]] = Registry("split")
"""The splits that can be spelled; a new one is a function with ``@registry.register`` above it."""


def apply(ratings: Ratings, method: str, *, seed: int = 0, validation: float | None = None) -> Sequence[Split]:
    """Split by a spelled method; the result is always a sequence, of one split unless the method makes folds.

    Parameters
    ----------
    method
        A spelling such as ``"random(train=0.8)"`` or ``"k_fold(k=5)"``.
    seed
        Seed of the methods that draw at random.
    validation
        The size of the validation part, in the method's own unit; None for none.

    Examples
    --------
    >>> ratings = Ratings.of([1] * 10, range(10))
    >>> apply(ratings, "random(train=0.7, exact=true)", seed=7)
    [Split(random: train 7, test 3)]
    """
    splits: Split | Sequence[Split] = registry.call(method, ratings, seed=seed, validation=validation)
    return [splits] if isinstance(splits, Split) else splits


PREDEFINED: Registry[Any] = Registry("split")
"""The split of data that come as a training and a test part; all others are in `cranfield.splits.registry`."""

_FOLDS = {"k_fold": "k", "rolling": "windows"}
"""The methods that make several splits, each with the parameter that sets their number."""


@PREDEFINED.register
def predefined(_: Any, overlap: str = "error") -> str:
    """Return what to do with pairs that are in both parts; see `cranfield.splits.predefined`."""
    return check.one_of("overlap", overlap, ("error", "test", "train"))


def _split(name: str, value: Any) -> str:
    """Return a split in its standard spelling."""
    known = parse(value).name
    try:
        if known == "predefined":
            PREDEFINED.call(value, None)
            return str(PREDEFINED.spelling(value))
        return str(registry.spelling(value, besides=["predefined"]))
    except SettingError as error:
        raise SettingError(f"{name}={value!r}: {error}") from error


_WORDS = {
    "random": "a random {test} of ratings as test",
    "per_user": "a random {test} of each user's ratings as test",
    "temporal": "the newest {test} of ratings as test",
    "percentiles": "{test} of ratings as test, in {groups} popularity groups",
    "tail_test": "{test} of ratings as test, without the most popular items",
    "uniform_test": "as many test ratings of every item",
    "train_per_item": "as many training ratings of every item",
    "cold_users": "{users} of users without training ratings",
    "cold_items": "{items} of items without training ratings",
    "strong_generalisation": "{users} of users held out, a part of their ratings given",
    "k_fold": "{k}-fold cross-validation",
    "leave_out": "{l} random ratings of each user as test",
    "rolling": "{windows} rolling windows of {horizon}",
    "sessions": "the latest sessions as test",
    "predefined": "a given test part",
}
_BY_TIME = {
    "per_user": "the newest {test} of each user's ratings as test",
    "leave_out": "the last {l} ratings of each user as test",
}


def split_phrase(split: str) -> str:
    """Return a split in words; parameters that the words do not hold follow in brackets.

    Examples
    --------
    >>> split_phrase("random(train=0.8)"), split_phrase("leave_out(l=1, which=last)"), split_phrase("k_fold(k=5)")
    ('a random 20 % of ratings as test', 'the last rating of each user as test', '5-fold cross-validation')
    >>> split_phrase("temporal(train=0.8, new_users=drop)")
    'the newest 20 % of ratings as test (new users drop)'
    """
    spelling = parse(split)
    words, stated = _WORDS.get(spelling.name), dict(spelling.parameters)
    if words is None:
        return split
    known = (PREDEFINED if spelling.name == "predefined" else registry).find(spelling.name)
    values = {**known.parameters, **stated}
    if "at" in stated:
        words = "ratings from {at} on as test"
    elif str(values.get("which", "")).startswith("last"):
        words = _BY_TIME.get(spelling.name, words)
    if isinstance(values.get("train"), float):
        values["test"] = f"{100 - 100 * values['train']:.4g} %"
    elif "{test}" in words:
        return split
    held = {name for name in values if f"{{{name}}}" in words} | ({"train"} if "{test}" in words else set())
    held |= {"which"} if words in _BY_TIME.values() else set()
    shown = {name: f"{100 * value:.4g} %" if isinstance(value, float) else str(value) for name, value in values.items()}
    said = words.format(**shown).replace("1 random ratings", "a random rating").replace("last 1 ratings", "last rating")
    others = [f"{name.replace('_', ' ')} {value}" for name, value in stated.items() if name not in held]
    return f"{said} ({', '.join(others)})" if others else said


LIKE_TEST = "like the test"
"""The validation part is made by the method of the test part."""


def _validation(name: str, value: Any) -> str:
    """Return how a validation part is made: like the test part, or by a split in its standard spelling."""
    if value == LIKE_TEST:
        return LIKE_TEST
    spelling = parse(value)
    if spelling.name in ("predefined", *_FOLDS):
        raise SettingError(
            f"{name}={value!r} does not make one validation part; set {name}='{LIKE_TEST}', 'random(train=0.8)' or "
            "'temporal(train=0.8)'"
        )
    if "validation" in dict(spelling.parameters):
        raise SettingError(f"{name}={value!r}: a validation part has no validation part itself; leave validation out")
    return _split(name, value)


@dataclass(frozen=True)
class Splitting(DecisionGroup):
    """How ratings are divided: the spelling of a split, or ``predefined`` for data that are already divided."""

    split: Any = decision(
        "A2",
        "random(train=0.8)",
        "the split into training and test, or 'predefined' for data that are already divided",
        check=_split,
        phrase=split_phrase,
    )
    # Of a split that sets a validation part aside itself, as in random(validation=0.2), that part is taken.
    validation: Any = decision(
        "A2",
        LIKE_TEST,
        f"the ratings of training that a search measures on: '{LIKE_TEST}', or a split such as 'random(train=0.8)'",
        check=_validation,
        phrase=unless(LIKE_TEST, "validation by {}"),
    )
    validation_windows: Any = decision(
        "A2",
        1,
        "successive validation parts that a search averages over; each comes from the training part of the one before",
        check=check.whole,
        phrase=unless(1, "{} validation windows"),
    )
    refit: Any = decision(
        "A2",
        True,
        "whether the chosen settings are trained again on training and validation together",
        check=check.flag,
        phrase=unless(True, "not refitted"),
    )

    def _check_together(self) -> None:
        if self.validation != LIKE_TEST and dict(parse(self.split).parameters).get("validation") is not None:
            raise SettingError(
                f"split='{self.split}' sets a validation part aside, so validation='{self.validation}' has no use; "
                "leave it out of one of them"
            )

    @property
    def apart(self) -> tuple[str, ...]:
        """The segments that the split implies: warm and cold users or items, if it counts them apart.

        Examples
        --------
        >>> Splitting("temporal(new_users=apart)").apart, Splitting("cold_items(left=5, warm=0.2)").apart
        (('cold_users',), ('cold_items(most=5)',))
        """
        spelling = parse(self.split)
        stated = dict(spelling.parameters)
        if spelling.name in ("cold_users", "cold_items"):
            left = stated.get("left", 0)
            named = spelling.name if left == 0 else f"{spelling.name}(most={left})"
            return (named,) if stated.get("warm", 0) else ()
        return tuple(f"cold_{kind}" for kind in ("users", "items") if stated.get(f"new_{kind}") == "apart")

    @property
    def folds(self) -> int:
        """The number of splits it makes.

        Examples
        --------
        >>> Splitting("k_fold").folds, Splitting("rolling(windows=3)").folds, Splitting().folds
        (5, 3, 1)
        """
        spelling = parse(self.split)
        counted_by = _FOLDS.get(spelling.name)
        if counted_by is None:
            return 1
        entry = registry.find(spelling.name)
        number = dict(spelling.parameters).get(counted_by, entry.parameters[counted_by])
        return check.whole(counted_by, number, at_least=2 if spelling.name == "k_fold" else 1)

    @property
    def has_windows(self) -> bool:
        """Whether it makes several splits that follow each other in time."""
        return parse(self.split).name == "rolling" and self.folds > 1

    @property
    def overlap(self) -> str | None:
        """What to do with pairs in both parts of data that are already divided; None if they are split here."""
        return str(PREDEFINED.call(self.split, None)) if parse(self.split).name == "predefined" else None
