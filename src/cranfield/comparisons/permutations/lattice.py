"""The common step of values such as those of P@n, which are multiples of 1/n."""

from __future__ import annotations

import numpy as np

from cranfield.comparisons.sample import Floats

# A step must explain every value to this share of itself, and the largest value by no more steps than this.
_FIT = 1e-7
_MOST_STEPS = 1 << 20
# Values that differ by less than this share of the largest one are the same value.
_SAME = 1e-11


def common_step(values: Floats) -> float | None:
    """Return the largest h such that every value is a multiple of h, or None when there is none to speak of.

    Euclid's algorithm with a tolerance; the step found is then checked against every value.

    Examples
    --------
    >>> common_step(np.array([0.25, 0.75, 1.5]))
    0.25
    >>> common_step(np.sqrt(np.arange(2.0, 9.0))) is None
    True
    """
    distinct = np.unique(np.abs(values[np.isfinite(values)]))
    if len(distinct) == 0 or distinct[-1] == 0:
        return None
    largest = distinct[-1]
    distinct = distinct[distinct > _SAME * largest]
    step = float(largest)
    for value in distinct:
        step = _divisor(float(value), step, float(largest) / _MOST_STEPS / 2)
        if step < largest / _MOST_STEPS:
            return None
    steps = np.rint(largest / step)
    step = float(largest / steps)
    misfit = np.abs(distinct / step - np.rint(distinct / step)).max()
    return step if misfit <= _FIT else None


def _divisor(a: float, b: float, least: float) -> float:
    """Return the greatest common divisor of two numbers, up to rounding; remainders below ``least`` are rounding."""
    a, b = max(a, b), min(a, b)
    while b > least:
        a, b = b, abs(a - round(a / b) * b)
    return a
