"""The exact permutation test: which method computes the p-value of each pair, and its error."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cranfield._settings import settings
from cranfield.comparisons.p_values import TestResult
from cranfield.comparisons.permutations import enumeration, inversion
from cranfield.comparisons.sample import Differences, Floats, Sample, slices_of_users

# Every value must be a multiple of the step up to rounding (this share of the value), and the largest value at most
# this many steps.
_FIT = 64 * float(np.finfo(np.float64).eps)
_MOST_STEPS = 1 << 20


def common_step(values: Floats, noise: Floats | None = None) -> float | None:
    """Return the largest h such that every value is a multiple of h, or None if there is no useful one.

    Euclid's algorithm with a tolerance finds the step. It is then checked against every value, which may be off by its
    ``noise`` or by 64 ε of itself.
    """
    distinct, places = np.unique(np.abs(values), return_index=True)
    known = (distinct > 0) & np.isfinite(distinct)
    distinct, places = distinct[known], places[known]
    if len(distinct) == 0:
        return None
    largest = distinct[-1]
    step = float(largest)
    for value in distinct:
        step = _divisor(float(value), step, float(largest) / _MOST_STEPS / 2)
        if step < largest / _MOST_STEPS:
            return None
    steps = np.rint(largest / step)
    step = float(largest / steps)
    multiples = np.rint(distinct / step)
    allowed = _FIT * distinct if noise is None else np.maximum(noise.ravel()[places], _FIT * distinct)
    fits = (np.abs(distinct - step * multiples) <= allowed) & (multiples > 0)
    return step if fits.all() else None


def common_step_of_rows(rows: Iterable[Floats]) -> float | None:
    """Return the common step of all values of some rows, of which only the distinct values are kept."""
    distinct, step = np.zeros(0), None
    for row in rows:
        for part in slices_of_users(len(row)):
            sizes = np.unique(np.abs(row[part]))
            known = np.union1d(distinct, sizes[(sizes > 0) & np.isfinite(sizes)])
            if len(known) > len(distinct):
                # More values have no larger step, so most samples without one are recognised by their first users.
                distinct, step = known, common_step(known)
                if step is None:
                    return None
    return step


def _divisor(a: float, b: float, least: float) -> float:
    """Return the greatest common divisor of two numbers, up to rounding; remainders below ``least`` are rounding."""
    a, b = max(a, b), min(a, b)
    while b > least:
        a, b = b, abs(a - round(a / b) * b)
    return a


def tail(d: Floats, step: float = 0.0) -> float:
    """Return P(|Σ ±d_u| ≥ |Σ d_u|) by the formula of Lugannani and Rice (1980), for sums far from 0.

    With K(t) = Σ log cosh(t d_u), the saddlepoint t̂ solves K'(t̂) = s, and
    P(S ≥ s) ≈ Φ(−w) + φ(w) (1/v − 1/w), w = √(2 (t̂ s − K(t̂))), v = t̂ √K''(t̂). For differences on a lattice of
    step h the sums lie 2h apart: s is lowered by h and t̂ in v becomes sinh(h t̂) / h (the second continuity
    correction). The relative error is of the order of 1/n.
    """
    from scipy.special import log_ndtr

    s, d = abs(float(d.sum())), np.abs(d[d != 0])
    n, size, squares = len(d), float(d.sum()), float((d**2).sum())
    if s >= size * (1 - 1e-12):
        return float(np.exp2(1.0 - n))
    s -= step
    # K' is concave and below t Σ d_u², so Newton's steps from s / Σ d_u² never pass the root.
    t = s / squares
    for _ in range(200):
        slope, curvature = _derivatives(d, t)
        short = s - slope
        if short <= 1e-13 * s or curvature <= 0:
            break
        t += short / curvature
        if short / curvature <= 1e-11 * t:
            break
    log1p, spread = _at_the_saddlepoint(d, t)
    log_cosh = t * size + log1p - n * np.log(2)
    w = np.sqrt(2 * (t * s - log_cosh))
    v = (np.sinh(step * t) / step if step else t) * np.sqrt(spread)
    # P = Φ(−w) + φ(w) (1/v − 1/w), with φ(w) taken out so that nothing cancels or underflows early.
    log_density = -0.5 * w * w - 0.5 * np.log(2 * np.pi)
    return float(2 * np.exp(log_density) * (np.exp(log_ndtr(-w) - log_density) + 1 / v - 1 / w))


def _derivatives(d: Floats, t: float) -> Floats:
    """Return K' = Σ d tanh(t d) and K'' = Σ d² (1 − tanh²)."""
    sums = np.zeros(2)
    for part in slices_of_users(len(d)):
        tanh = np.tanh(t * d[part])
        # Not d @ tanh: long dot products start the threads of BLAS, which then compete with ours.
        sums += (d[part] * tanh).sum(), (d[part] ** 2 * (1 - tanh**2)).sum()
    return sums


def _at_the_saddlepoint(d: Floats, t: float) -> Floats:
    """Return Σ log(1 + e^−2td), and K'' = Σ d² / cosh²(t d) without losing digits where tanh is near 1."""
    sums = np.zeros(2)
    for part in slices_of_users(len(d)):
        small = np.exp(-2 * t * d[part])
        # 1 / cosh² x = 4 e^−2x / (1 + e^−2x)²
        sums += np.log1p(small).sum(), (d[part] ** 2 * 4 * small / (1 + small) ** 2).sum()
    return sums


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


def exact(sample: Sample, tolerance: float) -> tuple[TestResult, NDArray[np.intp]]:
    """Return P(|Σ ±d_u| ≥ |Σ d_u|) of every pair, and the pairs for which sampling might be more accurate.

    These are the pairs whose error exceeds ``tolerance``, unless all sums were counted: then rounding is the only
    error, and samples have it too.
    """
    step = common_step_of_rows(sample.tested_row(system) for system in range(len(sample.systems))) or 0.0
    with ThreadPoolExecutor(settings.workers if sample.n_users <= _ONE_BY_ONE else 1) as pool:
        # Only the results of a block are kept: its arrays are as large as the values.
        solved = pool.map(
            lambda pairs: Block(sample.rounded_differences(pairs), step).solve(tolerance), sample.blocks()
        )
        p, error, method = (np.concatenate(parts) for parts in zip(*solved))
    unsettled = np.flatnonzero((error > tolerance) & (method != "enumeration"))
    return TestResult(np.where(sample.n > 0, p, np.nan), method, error), unsettled


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

    def solve(self, tolerance: float) -> tuple[Floats, Floats, NDArray[np.object_]]:
        """Return every p-value, within ``tolerance`` if an exact method achieves it, its error, and its method."""
        self.method[self.s == 0] = "equal means"
        self.method[self.n == 0] = "identical"
        for pair in np.flatnonzero(self._open() & (self.n <= _FEW)):
            if enumeration.size(self.d[pair], self.noise[pair]) <= _EASY:
                self._enumerate(pair)
        for pair in np.flatnonzero(self._open() & (self.s > inversion.FAR * self.sigma)):
            self._approximate_the_tail(pair)
        if self.step:
            self._invert_on_the_lattice()
        self._invert(tolerance)
        # Enumeration leaves out the far tails if there are many users.
        small = (self.method == "saddlepoint") | ((self.method == "enumeration") & (self.n < enumeration.MANY))
        for pair in np.flatnonzero((self.p < TINY) & ~small):
            self._approximate_the_tail(pair)
        return np.clip(self.p, inversion.smallest(self.n), 1.0), self.error, self.method

    def _open(self) -> NDArray[np.bool_]:
        return np.array([method is None for method in self.method], dtype=bool)

    def _settle(self, pair: np.intp | NDArray[np.intp], p: float | Floats, error: float | Floats, method: str) -> None:
        self.p[pair], self.error[pair], self.method[pair] = p, error, method

    def _enumerate(self, pair: np.intp) -> None:
        count = enumeration.enumerate_sums(self.signed[pair], self.noise[pair], self.hidden[pair])
        if count is not None and (self.method[pair] is None or count.unsure < self.error[pair]):
            self._settle(pair, count.p, inversion.P_ROUNDING + count.unsure, "enumeration")

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
        self._settle(rows, p, inversion.P_ROUNDING, "lattice")

    def _invert(self, tolerance: float) -> None:
        rows = np.flatnonzero(self._open())
        if len(rows) == 0:
            return
        d = self.d if len(rows) == len(self.d) else self.d[rows]
        p = inversion.invert(d, self.s[rows], self.step)
        for pair, value in zip(rows, p):
            ordered = np.sort(self.d[pair])[-self.n[pair] :]
            error = inversion.left_over(ordered, inversion.REACH / self.sigma[pair], self.step) + inversion.P_ROUNDING
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
