"""`Pooled`: a property of the whole system as sums that add up over parts of the users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Pooled:
    """The sums behind a property of all lists together; `float` returns the property.

    Parameters
    ----------
    held
        The sums; those of disjoint lists can be added (``+``).
    value
        A function that computes the property from the sums.

    Examples
    --------
    >>> float(Pooled(3.0, abs) + Pooled(-5.0, abs))
    2.0
    """

    held: Any
    value: Callable[[Any], float]

    def __add__(self, other: Pooled) -> Pooled:
        return Pooled(self.held + other.held, self.value)

    def __float__(self) -> float:
        return float(self.value(self.held))
