"""The common step of values such as those of P@n, which are multiples of 1/n."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cranfield.comparisons.sample import Floats, slices_of_users

# Every value must be a multiple of the step up to rounding (this share of the value), and the largest value at most
# this many steps.
_FIT = 64 * float(np.finfo(np.float64).eps)
_MOST_STEPS = 1 << 20


def common_step(values: Floats, noise: Floats | None = None) -> float | None:
    """Return the largest h such that every value is a multiple of h, or None if there is no useful one.

    Euclid's algorithm with a tolerance finds the step. It is then checked against every value, which may be off by its
    ``noise`` or by 64 ε of itself.

    Examples
    --------
    >>> common_step(np.array([0.25, 0.75, 1.5]))
    0.25
    >>> common_step(np.sqrt(np.arange(2.0, 9.0))) is None
    True
    >>> common_step(np.array([1e12, 3.0])) is None
    True
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
    """Return the common step of all values of some rows, of which only the distinct values are kept.

    Examples
    --------
    >>> common_step_of_rows([np.array([0.5, 1.5]), np.array([0.2, 0.0])])
    0.1
    """
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


def fits(values: Floats, step: float) -> bool:
    """Return whether all values are multiples of a step, up to rounding."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    multiples = np.rint(sizes / step)
    return bool(((np.abs(sizes - step * multiples) <= _FIT * sizes) & (multiples > 0)).all())


def _divisor(a: float, b: float, least: float) -> float:
    """Return the greatest common divisor of two numbers, up to rounding; remainders below ``least`` are rounding."""
    a, b = max(a, b), min(a, b)
    while b > least:
        a, b = b, abs(a - round(a / b) * b)
    return a
