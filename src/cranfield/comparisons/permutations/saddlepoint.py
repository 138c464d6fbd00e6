"""p-values too small for inversion, whose error is absolute: a saddlepoint approximation of the tail."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from cranfield.comparisons.sample import Floats, slices_of_users


def tail(d: Floats, step: float = 0.0) -> float:
    """Return P(|Σ ±d_u| ≥ |Σ d_u|) by the formula of Lugannani and Rice (1980), for sums far from 0.

    With K(t) = Σ log cosh(t d_u), the saddlepoint t̂ solves K'(t̂) = s, and
    P(S ≥ s) ≈ Φ(−w) + φ(w) (1/v − 1/w), w = √(2 (t̂ s − K(t̂))), v = t̂ √K''(t̂). For differences on a lattice of
    step h the sums lie 2h apart: s is lowered by h and t̂ in v becomes sinh(h t̂) / h (the second continuity
    correction). The relative error is of the order of 1/n.

    Examples
    --------
    >>> d = np.ones(200)
    >>> d[:30] = -1
    >>> from scipy.stats import binom
    >>> bool(abs(tail(d, step=1.0) / (2 * binom.sf(169, 200, 0.5)) - 1) < 0.002)
    True
    """
    s, d = abs(float(d.sum())), np.abs(d[d != 0])
    search = tail_search(s, step, n=len(d), size=float(d.sum()), squares=float((d**2).sum()))
    try:
        question = next(search)
        while True:
            parts = (TailSums.of(d[part], *question) for part in slices_of_users(len(d)))
            question = search.send(sum(parts, TailSums()))
    except StopIteration as end:
        p: float = end.value
    return p


TailSearch = Generator[tuple[float, bool], "TailSums", float]
"""A computation that requests sums at some t, is sent them, and returns a p-value."""


def tail_search(s: float, step: float, *, n: float, size: float, squares: float) -> TailSearch:
    """Do the same as `tail` as a generator: yields t and whether it is the solution, and is sent the `TailSums` at t.

    n, Σ |d_u| and Σ d_u² are over the non-zero differences.
    """
    from scipy.special import log_ndtr

    if s >= size * (1 - 1e-12):
        return float(np.exp2(1.0 - n))
    s -= step
    # K' is concave and below t Σ d_u², so Newton's steps from s / Σ d_u² never pass the root.
    t = s / squares
    for _ in range(200):
        at = yield t, False
        short = s - at.tanh
        if short <= 1e-13 * s or at.slope <= 0:
            break
        t += short / at.slope
        if short / at.slope <= 1e-11 * t:
            break
    at = yield t, True
    log_cosh = t * size + at.log1p - n * np.log(2)
    w = np.sqrt(2 * (t * s - log_cosh))
    v = (np.sinh(step * t) / step if step else t) * np.sqrt(at.spread)
    # P = Φ(−w) + φ(w) (1/v − 1/w), with φ(w) taken out so that nothing cancels or underflows early.
    log_density = -0.5 * w * w - 0.5 * np.log(2 * np.pi)
    return float(2 * np.exp(log_density) * (np.exp(log_ndtr(-w) - log_density) + 1 / v - 1 / w))


@dataclass(frozen=True)
class TailSums:
    """Sums over users at one t: sums over parts of the users can be added.

    During the search, ``tanh`` is K' = Σ d tanh(t d) and ``slope`` is K'' = Σ d² (1 − tanh²). At the saddlepoint,
    ``log1p`` is Σ log(1 + e^−2td), and ``spread`` is K'' = Σ d² / cosh²(t d), which loses no digits if tanh is near 1.
    """

    tanh: float = 0.0
    slope: float = 0.0
    log1p: float = 0.0
    spread: float = 0.0

    @classmethod
    def of(cls, d: Floats, t: float, is_solved: bool) -> TailSums:
        """Compute the sums of absolute differences."""
        if is_solved:
            small = np.exp(-2 * t * d)
            spread = d**2 * 4 * small / (1 + small) ** 2  # 1 / cosh² x = 4 e^−2x / (1 + e^−2x)²
            return cls(log1p=float(np.log1p(small).sum()), spread=float(spread.sum()))
        tanh = np.tanh(t * d)
        # Not d @ tanh: long dot products start the threads of BLAS, which then compete with ours.
        return cls(float((d * tanh).sum()), float((d**2 * (1 - tanh**2)).sum()))

    def __add__(self, other: TailSums) -> TailSums:
        return TailSums(
            self.tanh + other.tanh, self.slope + other.slope, self.log1p + other.log1p, self.spread + other.spread
        )
