"""`Draw`: the number of candidates drawn for each list, for measuring rankings of all candidates in expectation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._decisions import Decided, decision, unless


@dataclass(frozen=True)
class Drawing(Decided):
    """Whether non-relevant or unrated items are drawn for lists, or all draws are averaged.

    Examples
    --------
    >>> Drawing(draws="exact").as_dict()
    {'draws': 'exact'}
    """

    draws: str = decision(
        "C1",
        "sampled",
        "items that are drawn for a list: one random draw, or the exact expectation over all draws",
        choices=("sampled", "exact"),
        phrase=unless("sampled", "in expectation over all draws"),
        help="Draw items for each list once, or measure in expectation over all draws.",
    )


@dataclass(frozen=True, eq=False)
class Draw:
    """A draw to average over: the lists rank all candidates, of which a sampled list would contain some.

    Parameters
    ----------
    number
        The number of candidates drawn for a list; a list with fewer has all of them.
    sizes
        The number of candidates of each list, including those that are in every draw.
    unrated
        Whether all test items of the user are in every draw, and not only the relevant ones.
    longest
        The length that sampled lists are cut at; None if they are not.
    """

    number: int
    sizes: NDArray[np.int64]
    unrated: bool = False
    longest: int | None = None

    def __post_init__(self) -> None:
        check.whole("unrated" if self.unrated else "nonrelevant", self.number, at_least=0 if self.unrated else 1)

    def cut(self, n: int) -> Draw:
        """Return the same draw for lists that are cut at rank ``n``."""
        return replace(self, longest=n if self.longest is None else min(n, self.longest))

    def of_lists(self, kept: NDArray[np.bool_]) -> Draw:
        """Return the draw of some of the lists."""
        return replace(self, sizes=self.sizes[kept])
