"""p-values too small for inversion, whose error is absolute: a saddlepoint approximation of the tail."""

from __future__ import annotations

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
