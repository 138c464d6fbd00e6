"""Expectations over the orders of tied items, for metrics that are not sums over ranks (McSherry and Najork 2008).

A group of t tied items starts after rank a and contains r relevant ones; c relevant items are above it. All orders of
the group are equally likely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.judgments import Judged


@dataclass(frozen=True)
class _TiedGroups:
    """The groups of tied items with a relevant one, in the order of the lists."""

    lists: NDArray[np.int32]
    behind: NDArray[np.float64]
    size: NDArray[np.float64]
    relevant: NDArray[np.float64]
    relevant_above: NDArray[np.float64]
    counted: NDArray[np.float64]
    """Number of the group's ranks that are within the list."""


def _groups(judged: Judged) -> _TiedGroups:
    assert judged.tied_from is not None
    assert judged.tied_to is not None
    keep = judged.relevant
    lists, first, last = judged.lists[keep], judged.tied_from[keep], judged.tied_to[keep]
    above = judged.relevant_above[keep]
    new = np.ones(len(lists), dtype=bool)
    new[1:] = (lists[1:] != lists[:-1]) | (first[1:] != first[:-1])
    group = np.cumsum(new) - 1
    behind = first[new].astype(np.float64) - 1.0
    size = last[new] - behind
    return _TiedGroups(
        lists=lists[new],
        behind=behind,
        size=size,
        relevant=np.bincount(group, minlength=int(new.sum())).astype(np.float64),
        relevant_above=above[new].astype(np.float64),
        counted=np.clip(judged.lengths[lists[new]] - behind, 0.0, size),
    )


def expected_average_precision(judged: Judged) -> NDArray[np.float64]:
    """Return E[Σ_{relevant k ≤ n} P@k].

    A group adds (r/t) Σ_j [c + 1 + (j−1)(r−1)/(t−1)] / (a + j) over its ranks a + j within the list.
    """
    g = _groups(judged)
    share = np.where(g.size > 1, (g.relevant - 1.0) / np.maximum(g.size - 1.0, 1.0), 0.0)
    harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, int((g.behind + g.size).max(initial=0.0)) + 1)))
    last, first = (g.behind + g.counted).astype(np.intp), g.behind.astype(np.intp)
    inverse_ranks = harmonic[last] - harmonic[first]
    terms = (g.relevant_above + 1.0 - share * (g.behind + 1.0)) * inverse_ranks + share * g.counted
    return np.bincount(g.lists, weights=g.relevant / g.size * terms, minlength=judged.n_lists).astype(np.float64)


def expected_reciprocal_rank(judged: Judged) -> NDArray[np.float64]:
    """Return E[1/rank of the first relevant item]: only the first group with a relevant item counts.

    The first of r relevant items among t is at position j with probability C(t−j, r−1)/C(t, r).
    """
    g = _groups(judged)
    first = g.relevant_above == 0
    behind, size, relevant, counted = g.behind[first], g.size[first], g.relevant[first], g.counted[first]
    value, chance = np.zeros(len(behind)), relevant / np.maximum(size, 1.0)
    for j in range(1, int(counted.max(initial=0.0)) + 1):
        value += np.where(j <= counted, chance / (behind + j), 0.0)
        chance = chance * np.maximum(size - relevant - j + 1.0, 0.0) / np.maximum(size - j, 1.0)
    return np.bincount(g.lists[first], weights=value, minlength=judged.n_lists).astype(np.float64)


def probability_of_a_hit(judged: Judged) -> NDArray[np.float64]:
    """Return the probability that a relevant item is within the list: 1 − C(t−m, r)/C(t, r) for the first group."""
    g = _groups(judged)
    first = g.relevant_above == 0
    size, relevant, counted = g.size[first], g.relevant[first], g.counted[first]
    none = np.ones(len(size))
    for i in range(int(relevant.max(initial=0.0))):
        none *= np.where(i < relevant, np.maximum(size - counted - i, 0.0) / np.maximum(size - i, 1.0), 1.0)
    return np.bincount(g.lists[first], weights=1.0 - none, minlength=judged.n_lists).astype(np.float64)
