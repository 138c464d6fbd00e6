"""How systems stand by a metric: letters of those that do not differ, and tiers from the top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


def compact_letters(differ: NDArray[np.bool_], order: Sequence[int]) -> list[str]:
    """Return the letters of each system, by the insert-and-absorb algorithm (Piepho 2004).

    Parameters
    ----------
    differ
        systems × systems, symmetric: whether two systems differ significantly.
    order
        The systems from best to worst; the best gets an "a".

    Examples
    --------
    >>> differ = np.zeros((3, 3), dtype=bool)
    >>> differ[0, 2] = differ[2, 0] = True
    >>> compact_letters(differ, [0, 1, 2])
    ['a', 'ab', 'b']
    """
    groups = [frozenset(order)]
    for place, i in enumerate(order):
        for j in order[place + 1 :]:
            if differ[i, j]:
                groups = _absorb([part for group in groups for part in _part(group, i, j)])
    groups.sort(key=lambda group: sorted(order.index(system) for system in group))
    return [
        "".join(_letter(place) for place, group in enumerate(groups) if system in group) for system in range(len(order))
    ]


def _part(group: frozenset[int], i: int, j: int) -> list[frozenset[int]]:
    return [group - {i}, group - {j}] if i in group and j in group else [group]


def _absorb(groups: list[frozenset[int]]) -> list[frozenset[int]]:
    """Remove every group that is contained in another one."""
    kept: list[frozenset[int]] = []
    for group in sorted(groups, key=len, reverse=True):
        if not any(group <= other for other in kept):
            kept.append(group)
    return kept


def _letter(place: int) -> str:
    """a, b, ..., z, a1, b1, ..."""
    return "abcdefghijklmnopqrstuvwxyz"[place % 26] + (str(place // 26) if place >= 26 else "")


Row = Mapping[str, Any]


@dataclass(frozen=True)
class Tiers:
    """The tiers of systems by a metric, each best first.

    Parameters
    ----------
    top
        The best system, and those after it that do not differ significantly from it or from each other.
    beaten
        The systems that every top system is significantly better than.
    between
        The others: they differ significantly from some of the top systems but not from all.
    """

    top: tuple[str, ...]
    beaten: tuple[str, ...]
    between: tuple[str, ...]


def tiers(rows: Sequence[Row], order: Sequence[str]) -> Tiers:
    """Return the tiers of a metric from all its pairs and the systems from best to worst.

    Examples
    --------
    >>> def pair(a, b, better):
    ...     return {"system_a": a, "system_b": b, "better": better, "significant": better is not None}
    >>> tiers([pair("x", "y", None), pair("x", "z", "x"), pair("y", "z", "y")], ["x", "y", "z"])
    Tiers(top=('x', 'y'), beaten=('z',), between=())
    """
    pairs = {frozenset((row["system_a"], row["system_b"])): row for row in rows}
    top: list[str] = []
    for system in order:
        if not any(pairs[frozenset((system, leader))]["significant"] for leader in top):
            top.append(system)
    others = [system for system in order if system not in top]
    beaten = [
        system for system in others if all(pairs[frozenset((system, leader))]["better"] == leader for leader in top)
    ]
    return Tiers(tuple(top), tuple(beaten), tuple(system for system in others if system not in beaten))
