"""`RatingScale`: the grades of ratings, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Steps between grades are rounded to a millionth: in single precision 0.3 − 0.2 is not 0.1.
_DIGITS = 6

LONGEST_SCALE = 10.0
"""The highest grade of a scale; ratings beyond it are counts."""


@dataclass(frozen=True)
class RatingScale:
    """The lowest and the highest grade of some ratings, and the smallest step between two grades.

    Examples
    --------
    >>> scale = RatingScale.of([1, 5, 3, 4])
    >>> scale, scale.levels
    (RatingScale(low=1.0, high=5.0, step=1.0), {'Low-High': 1.0, 'Medium-High': 3.0, 'High': 4.0})
    >>> RatingScale.of([0.5, 1, 5]).step, RatingScale.of([1, 1]).step
    (0.5, 1.0)
    """

    low: float
    high: float
    step: float = 1.0

    @classmethod
    def of(cls, *values: ArrayLike) -> RatingScale:
        """Return the scale of ratings, given in one or more arrays; a single grade has the step 1."""
        grades = np.unique(np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in values]))
        with np.errstate(over="ignore"):  # huge steps need no rounding
            steps = np.diff(grades)
            steps = np.where(steps < 1.0, np.round(steps, _DIGITS), steps)
        positive = steps[steps > 0]
        return cls(float(grades[0]), float(grades[-1]), float(positive.min()) if len(positive) else 1.0)

    @property
    def range(self) -> float:
        """The distance from the lowest to the highest grade."""
        return self.high - self.low

    @property
    def levels(self) -> Mapping[str, float]:
        """The lowest grade of each level of relevance: the whole scale, its upper half and its upper quarter.

        On a scale of 1 to 5 these are 1, 3 and 4, as in Aftab and Ramampiaro (2022), section V-D.
        """
        return {
            "Low-High": self.low,
            "Medium-High": self.low + self.range / 2,
            "High": self.low + 3 * self.range / 4,
        }

    @property
    def are_counts(self) -> bool:
        """Whether ratings go beyond 10, so that they are counts, such as plays, and not grades."""
        return self.high > LONGEST_SCALE

    def clipped(self, predictions: NDArray[Any]) -> NDArray[np.float64]:
        """Return predictions clipped to the scale."""
        return np.clip(predictions, self.low, self.high)
