"""`Split`: a training and a test set over one vocabulary, and how they were made."""

from __future__ import annotations

from dataclasses import dataclass

from cranfield._record import Step
from cranfield.data import Ratings


@dataclass(frozen=True, eq=False)
class Split:
    """Ratings divided into a part to learn from and a part to judge by.

    Parameters
    ----------
    train, test
        Disjoint, over the same user and item vocabularies.
    validation
        A further part, taken from what would be training, for choosing hyper-parameters; None if not asked for.
    step
        How it was made, with what effect; ``step.notes`` names leakage and rules that were applied.
    fold, folds
        Which of how many folds this is; ``(0, 1)`` for a single split.
    """

    train: Ratings
    test: Ratings
    step: Step
    validation: Ratings | None = None
    fold: int = 0
    folds: int = 1

    def __repr__(self) -> str:
        fold = f", fold {self.fold + 1} of {self.folds}" if self.folds > 1 else ""
        middle = "" if self.validation is None else f", validation {len(self.validation):,}"
        return f"Split({self.step.action}: train {len(self.train):,}{middle}, test {len(self.test):,}{fold})"

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences a reader should see: leakage, users left out, rules applied."""
        return self.step.notes
