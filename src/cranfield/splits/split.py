"""`Split`: a training and a test set over one vocabulary, and how they were made; and splits by their spelling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._registry import Registry
from cranfield._table import Table
from cranfield._version import __version__
from cranfield.data import Ratings


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
    def inputs(self) -> Ratings:
        """The ratings that lists are made from: the profiles of users who are held out whole, else training."""
        return self.train if self.profiles is None else self.profiles

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
