"""Facts of scores: the users that lists were made for."""

from __future__ import annotations

from dataclasses import dataclass

from cranfield.facts.fact import Fact


@dataclass(frozen=True)
class ServedUsers(Fact):
    """The users that lists were made for, where some were left out.

    Parameters
    ----------
    min_ratings
        The lowest number of training ratings of a user; 0 if that does not matter.
    sample
        How many of these users were drawn at random: a number, or a share; None if all of them have lists.
    """

    min_ratings: int = 0
    sample: int | float | None = None

    def _said(self) -> str:
        enough = f" with at least {self.min_ratings} training ratings" if self.min_ratings else ""
        if self.sample is None:
            return f"users{enough}"
        drawn = f"{100 * self.sample:g} % of the" if isinstance(self.sample, float) else f"{self.sample:,}"
        return f"{drawn} users{enough}, drawn at random"
