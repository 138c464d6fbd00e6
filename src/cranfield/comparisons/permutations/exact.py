"""The exact permutation test: how each pair's p-value is computed, and its error."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield._settings import settings
from cranfield.comparisons.permutations import enumeration, inversion
from cranfield.comparisons.permutations.lattice import common_step
from cranfield.comparisons.permutations.saddlepoint import tail
from cranfield.comparisons.sample import Differences, Floats, Sample
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


def exact(sample: Sample, tolerance: float) -> tuple[Verdict, NDArray[np.intp]]:
    """Return P(|Σ ±d_u| ≥ |Σ d_u|) of every pair, and the pairs for which sampling might be more accurate.

    These are the pairs whose error exceeds ``tolerance``, unless all sums were counted: then rounding is the only
    error, and samples have it too.
    """
    step = common_step(sample.tested) or 0.0
    with ThreadPoolExecutor(settings.workers) as pool:
        solved = pool.map(
            lambda pairs: Block(sample.rounded_differences(pairs), step).solve(tolerance), sample.blocks()
        )
        blocks = list(solved)
    p, error, method = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("p", "error", "method"))
    unsettled = np.flatnonzero((error > tolerance) & (method != "enumeration"))
    return Verdict(np.where(sample.n > 0, p, np.nan), method, error), unsettled


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

    def solve(self, tolerance: float) -> Block:
        """Fill in every p-value, within ``tolerance`` if an exact method achieves it."""
        self.method[self.s == 0] = "equal means"
        self.method[self.n == 0] = "identical"
        self._enumerate_the_few()
        for pair in np.flatnonzero(self._open() & (self.s > inversion.FAR * self.sigma)):
            self._approximate_the_tail(pair)
        if self.step:
            self._invert_on_the_lattice()
        self._invert(tolerance)
        for pair in np.flatnonzero((self.p < TINY) & (self.method != "saddlepoint") & (self.method != "enumeration")):
            self._approximate_the_tail(pair)
        self.p = np.clip(self.p, inversion.smallest(self.n), 1.0)
        return self

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
        if count is not None:
            self._settle(pair, count.p, inversion.ROUNDING + count.unsure, "enumeration")

    def _approximate_the_tail(self, pair: np.intp) -> None:
        p = tail(self.signed[pair], self._own_step(pair))
        self._settle(pair, p, max(TINY, self.error[pair]), "saddlepoint")

    def _own_step(self, pair: np.intp) -> float:
        """Return the common step of the differences of one pair, which may be larger than that of all values."""
        differing = self.d[pair] > 0
        d, noise = self.d[pair][differing], self.noise[pair][differing]
        if self.step:
            return self.step * int(np.gcd.reduce(np.rint(d / self.step).astype(np.int64)))
        return (common_step(d, noise) or 0.0) if common_step(d[:_A_LOOK], noise[:_A_LOOK]) else 0.0

    def _invert_on_the_lattice(self) -> None:
        rows = np.flatnonzero(self._open())
        if len(rows) == 0:
            return
        steps = np.rint(self.d[rows] / self.step).astype(np.int64)
        width = int(steps.max()) + 1
        if width * len(rows) > _TABLE:
            return
        counts = np.bincount((steps + width * np.arange(len(rows))[:, None]).ravel(), minlength=width * len(rows))
        counts = counts.reshape(len(rows), width)
        sizes = np.flatnonzero(counts[:, 1:].any(axis=0)) + 1
        s = np.abs(np.rint(self.signed[rows] / self.step).sum(axis=1))
        nodes = inversion.lattice_nodes(s, self.sigma[rows] / self.step)
        if nodes * len(sizes) > _TABLE:
            return
        p = inversion.invert_lattice(counts[:, sizes].astype(np.float64), sizes.astype(np.float64), s, nodes)
        self._settle(rows, p, inversion.ROUNDING, "lattice")

    def _invert(self, tolerance: float) -> None:
        rows = np.flatnonzero(self._open())
        if len(rows) == 0:
            return
        p = inversion.invert(self.d[rows], self.s[rows], self.step)
        for pair, value in zip(rows, p):
            ordered = np.sort(self.d[pair])[-self.n[pair] :]
            error = inversion.left_over(ordered, inversion.REACH / self.sigma[pair], self.step) + inversion.ROUNDING
            tied = inversion.left_to_ties(ordered, self.slack[pair], self.step)
            if error > tolerance >= tied:
                value, error = inversion.invert_further(ordered, self.s[pair], self.step, tolerance)
            self._settle(pair, value, error + tied, "inversion")
            if error + tied > tolerance:
                self._enumerate(pair)
