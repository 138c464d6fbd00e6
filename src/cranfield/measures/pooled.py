"""`Pooled`: a property of the whole system as sums that add up over parts of the users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Pooled:
    """What a property of all lists together is made of; as a number (`float`) it is the property.

    Parameters
    ----------
    held
        The sums; those of some lists and of others, added (``+``), are those of all.
    value
        What makes the property of them.

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
