"""The exact permutation test: how each pair's p-value is computed, and its error."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield._settings import settings
from cranfield.comparisons.permutations import enumeration, inversion
from cranfield.comparisons.permutations.lattice import common_step, common_step_of_rows
from cranfield.comparisons.permutations.saddlepoint import tail
from cranfield.comparisons.sample import Differences, Floats, Sample, slices_of_users
from cranfield.comparisons.verdict import Verdict

TINY = 1e-11
"""Below this, the absolute error of inversion is not small relative to the p-value, so the saddlepoint is used."""

# Up to 64 differences with at most 2^32 sign patterns are enumerated directly; larger ones only if inversion fails.
_FEW, _EASY = 64, 32.0
# Lattice tables (nodes × distinct sizes) above this size cost more than inversion.
_TABLE = 20_000_000
# If differences are larger or smaller than this, their squares might overflow or underflow.
_SQUARED = 1e120
# If this many differences have no common step, all of them together have none.
_A_LOOK = 64
# With more users than this, the differences of two pairs at a time would need too much memory.
_ONE_BY_ONE = 1 << 19


def exact(sample: Sample, tolerance: float) -> tuple[Verdict, NDArray[np.intp]]:
    """Return P(|Σ ±d_u| ≥ |Σ d_u|) of every pair, and the pairs for which sampling might be more accurate.

    These are the pairs whose error exceeds ``tolerance``, unless all sums were counted: then rounding is the only
    error, and samples have it too.
    """
    step = common_step_of_rows(sample.tested_row(system) for system in range(len(sample.systems))) or 0.0
    with ThreadPoolExecutor(settings.workers if sample.n_users <= _ONE_BY_ONE else 1) as pool:
        solved = pool.map(lambda pairs: _solved(sample, pairs, step, tolerance), sample.blocks())
        p, error, method = (np.concatenate(parts) for parts in zip(*solved))
    unsettled = np.flatnonzero((error > tolerance) & (method != "enumeration"))
    return Verdict(np.where(sample.n > 0, p, np.nan), method, error), unsettled


class Solved(NamedTuple):
    """The p-values of some pairs, their errors, and how each was computed."""

    p: Floats
    error: Floats
    method: NDArray[np.object_]


def _solved(sample: Sample, pairs: slice, step: float, tolerance: float) -> Solved:
    """Return only the results of a block: its arrays are as large as the values."""
    return Block(sample.rounded_differences(pairs), step).solve(tolerance)


@dataclass(eq=False)
class Block:
    """Pairs whose p-values are filled in by one method after another; pairs without a method are still open."""

    differences: Differences
    step: float

    def __post_init__(self) -> None:
        self._take(self.differences)
        if (self.sigma[self.n > 0] < 1 / _SQUARED).any() or not (self.sigma < _SQUARED).all():
            self._take(self._in_range())
        near = np.flatnonzero(self.s <= self.slack)
        clear = ~Differences(self.signed[near], self.noise[near], self.hidden[near]).vague
        self.s[near[clear]] = 0.0
        self.p, self.error = np.ones(len(self.s)), np.zeros(len(self.s))
        self.method = np.full(len(self.s), None, dtype=object)

    def _take(self, differences: Differences) -> None:
        self.signed, self.noise, self.hidden = differences
        self.slack = differences.slack
        self.d = np.abs(self.signed)
        self.s = np.abs(self.signed.sum(axis=1))
        self.n = np.count_nonzero(self.d, axis=1)
        self.sigma = np.sqrt(np.einsum("pu,pu->p", self.d, self.d))

    def _in_range(self) -> Differences:
        """Scale the differences by a power of 2, so that their squares fit a float; this changes no p-value."""
        exponents = np.frexp(self.d.max(axis=1, initial=0.0))[1]
        if self.step:
            exponents[:] = np.frexp(self.step)[1]
            self.step = float(np.ldexp(self.step, -exponents[0]))
        d, noise, hidden = self.differences
        shift = -exponents[:, None]
        return Differences(np.ldexp(d, shift), np.ldexp(noise, shift), np.ldexp(hidden, -exponents))

    def solve(self, tolerance: float) -> Solved:
        """Compute every p-value, within ``tolerance`` if an exact method achieves it."""
        self.method[self.s == 0] = "equal means"
        self.method[self.n == 0] = "identical"
        self._enumerate_the_few()
        for pair in np.flatnonzero(self._open() & (self.s > inversion.FAR * self.sigma)):
            self._approximate_the_tail(pair)
        if self.step:
            self._invert_on_the_lattice()
        self._invert(tolerance)
        # Enumeration leaves out the far tails if there are many users.
        small = (self.method == "saddlepoint") | ((self.method == "enumeration") & (self.n < enumeration.MANY))
        for pair in np.flatnonzero((self.p < TINY) & ~small):
            self._approximate_the_tail(pair)
        return Solved(np.clip(self.p, inversion.smallest(self.n), 1.0), self.error, self.method)

    def _open(self) -> NDArray[np.bool_]:
        return np.array([method is None for method in self.method], dtype=bool)

    def _settle(self, pair: np.intp | NDArray[np.intp], p: float | Floats, error: float | Floats, method: str) -> None:
        self.p[pair], self.error[pair], self.method[pair] = p, error, method

    def _enumerate_the_few(self) -> None:
        for pair in np.flatnonzero(self._open() & (self.n <= _FEW)):
            if enumeration.size(self.d[pair], self.noise[pair]) <= _EASY:
                self._enumerate(pair)

    def _enumerate(self, pair: np.intp) -> None:
        count = enumeration.enumerate_sums(self.signed[pair], self.noise[pair], self.hidden[pair])
        if count is not None and (self.method[pair] is None or count.unsure < self.error[pair]):
            self._settle(pair, count.p, inversion.ROUNDING + count.unsure, "enumeration")

    def _approximate_the_tail(self, pair: np.intp) -> None:
        p = tail(self.signed[pair], self._own_step(pair))
        self._settle(pair, p, max(TINY, self.error[pair]), "saddlepoint")

    def _own_step(self, pair: np.intp) -> float:
        """Return the common step of the differences of one pair, which may be larger than that of all values."""
        if self.step:
            parts = (self.d[pair, part] / self.step for part in slices_of_users(self.d.shape[1]))
            return self.step * int(np.gcd.reduce([np.gcd.reduce(np.rint(steps).astype(np.int64)) for steps in parts]))
        differing = self.d[pair] > 0
        d, noise = self.d[pair][differing], self.noise[pair][differing]
        return (common_step(d, noise) or 0.0) if common_step(d[:_A_LOOK], noise[:_A_LOOK]) else 0.0

    def _invert_on_the_lattice(self) -> None:
        rows = np.flatnonzero(self._open())
        if len(rows) == 0:
            return
        width = int(np.rint(self.d[rows].max() / self.step)) + 1
        if width * len(rows) > _TABLE:
            return
        counts, s = np.zeros((len(rows), width)), np.zeros(len(rows))
        for part in slices_of_users(self.d.shape[1]):
            steps = np.rint(self.signed[rows, part] / self.step).astype(np.intp)
            s += steps.sum(axis=1)
            steps = np.abs(steps) + width * np.arange(len(rows))[:, None]
            counts += np.bincount(steps.ravel(), minlength=counts.size).reshape(counts.shape)
        s, sizes = np.abs(s), np.flatnonzero(counts[:, 1:].any(axis=0)) + 1
        nodes = inversion.lattice_nodes(s, self.sigma[rows] / self.step)
        if nodes * len(sizes) > _TABLE:
            return
        p = inversion.invert_lattice(counts[:, sizes], sizes.astype(np.float64), s, nodes)
        self._settle(rows, p, inversion.ROUNDING, "lattice")

    def _invert(self, tolerance: float) -> None:
        rows = np.flatnonzero(self._open())
        if len(rows) == 0:
            return
        d = self.d if len(rows) == len(self.d) else self.d[rows]
        p = inversion.invert(d, self.s[rows], self.step)
        for pair, value in zip(rows, p):
            ordered = np.sort(self.d[pair])[-self.n[pair] :]
            error = inversion.left_over(ordered, inversion.REACH / self.sigma[pair], self.step) + inversion.ROUNDING
            tied = inversion.left_to_ties(ordered, self.slack[pair], self.step)
            further = partial(inversion.invert_further, ordered, self.s[pair], self.step)
            equal = inversion.mostly_equal(ordered)
            large = inversion.few_large(ordered) if error > tolerance else 0
            if large:
                value, error, tied = inversion.invert_apart(ordered, large, self.s[pair], self.slack[pair], self.step)
            if error > tolerance >= tied and not equal:
                value, error = further(tolerance)
            self._settle(pair, value, error + tied, "inversion")
            if error + tied > tolerance:
                self._enumerate(pair)
            if equal and self.method[pair] == "inversion" and error > max(tolerance, tied):
                value, error = further(max(tolerance, tied))
                self._settle(pair, value, error + tied, "inversion")
