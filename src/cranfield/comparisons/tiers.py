"""Tiers: which systems are level at the top by a metric, and which they beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
