"""The effect of chance alone: the same system with another seed, which the joint test does not vary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.audits.grid import Grid
from cranfield.audits.leads import Floats, effect_of, p_of, z_of
from cranfield.audits.terms import Singles, Terms

# Maximum number of pairs of cells: more would add no information.
_MOST_PAIRS = 2000


@dataclass(frozen=True)
class SeedNoise:
    """How often a system differs significantly from itself if only a chance option changes.

    Parameters
    ----------
    decision, system
        The chance decision, and the system.
    pairs
        The number of compared pairs of cells, which differ in nothing else.
    significant
        The share of them with Student's p below α. A share of about α would mean that the seed adds nothing to the
        randomness of the users.
    """

    decision: str
    system: str
    pairs: int
    significant: float


def seed_noise(grid: Grid, systems: tuple[str, ...], terms: Terms, alpha: float = 0.05) -> list[SeedNoise]:
    """Return the noise of every chance decision and system; of many pairs of cells, a subset is compared."""
    noise = []
    for place in grid.of_kind("chance"):
        pairs = [(first, second) for decision, first, second in grid.pairs_by_chance() if decision == place]
        if not pairs:
            continue
        chosen = np.unique(np.linspace(0, len(pairs) - 1, min(len(pairs), _MOST_PAIRS)).round().astype(np.int64))
        universes = grid.universe[np.array(pairs)[chosen]]
        for system, name in enumerate(systems):
            significant = [_differs(terms, system, first, second, alpha) for first, second in universes.tolist()]
            noise.append(SeedNoise(grid.opened[place].name, name, len(significant), float(np.mean(significant))))
    return noise


def _differs(terms: Terms, system: int, first: int, second: int, alpha: float) -> bool:
    users = np.maximum(terms.users[[first]], terms.users[[second]])
    x = terms.across(system, first, second)[None]
    return bool(p_of(effect_of(z_of(x), users), users)[0] < alpha)


def spread_by_chance(grid: Grid, x: Singles, users: NDArray[np.int64]) -> Floats | None:
    """Return by how much seeds widen the spread of z over users alone, per universe; None without chance options.

    In a set-up with K cells that differ by chance, let m be the mean of x over the users, v = Σx²/n² the contribution
    of users to its variance, and s² the variance of m over the K cells. The variance of z is 1 given the models, and
    about 1 + s²/v if they are trained again; s²/v is averaged over the set-ups of a question. Part of s² is noise of
    the users that is in v too, so the result is rather too wide.
    """
    counts = np.bincount(grid.setups)
    if not grid.of_kind("chance") or counts.max() < 2:
        return None
    means = x.sum(axis=1, dtype=np.float64) / np.maximum(users, 1)
    squares = np.einsum("uv,uv->u", x, x, dtype=np.float64) / np.maximum(users, 1) ** 2.0
    m, v = means[grid.universe], squares[grid.universe]
    centred = m - (np.bincount(grid.setups, weights=m) / counts)[grid.setups]
    variance = np.bincount(grid.setups, weights=centred**2) / np.maximum(counts - 1, 1)
    by_users = np.bincount(grid.setups, weights=v) / counts
    known = (counts > 1) & (by_users > 0)
    ratio = np.divide(variance, by_users, out=np.zeros(len(counts)), where=known)
    question = np.zeros(len(counts), dtype=np.int64)
    question[grid.setups] = grid.questions
    n_known = np.maximum(np.bincount(question, weights=known), 1)
    spread = np.sqrt(1 + np.bincount(question, weights=ratio * known) / n_known)
    cell_of = np.unique(grid.universe, return_index=True)[1]
    return spread[grid.questions[cell_of]]


def turned_by_chance(grid: Grid, lead: NDArray[np.int8]) -> float | None:
    """Return the share of set-ups in which each system leads under some chance option; None without chance options.

    ``lead`` is the sign of the lead in each cell.
    """
    if not grid.of_kind("chance"):
        return None
    both = [np.bincount(grid.setups, weights=lead == sign) > 0 for sign in (1, -1)]
    return float(np.mean(both[0] & both[1]))
