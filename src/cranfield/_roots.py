"""Where functions cross zero, for several functions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]


def enclosed(
    function: Callable[[_Floats], _Floats],
    above: _Floats,
    below: _Floats,
    at_above: _Floats,
    at_below: _Floats,
    close: _Floats,
) -> tuple[_Floats, _Floats]:
    """Return arguments less than ``close`` apart at which functions are not below 0, and below 0.

    The ITP method (Oliveira and Takahashi 2021) for several functions at once. Each step goes to where a line between
    the two ends is 0, moved a little towards the middle so that both ends get close. It needs few steps for a function
    that is nearly linear, and at most six more than bisection for any other. Functions that are not below 0 at the
    second argument are left alone. ``at_above`` is not below 0.
    """
    first, flat = np.abs(below - above), np.zeros(len(above), dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.ceil(np.log2(np.maximum(first / close, 1.0))) + 5
        for step in range(int(np.max(steps, initial=0.0, where=np.isfinite(steps))) + 2):
            width = np.abs(below - above)
            is_open = (width > close) & (at_below < 0) & np.isfinite(steps)
            if not is_open.any():
                break
            middle = (above + below) / 2
            at_zero = (at_below * above - at_above * below) / (at_below - at_above)
            inwards = np.sign(middle - at_zero) * np.minimum(0.02 * width**2 / first, np.abs(middle - at_zero))
            # How far from the middle it may go, so that the number of steps stays bounded.
            most = np.maximum(close * np.exp2(steps - step) - width / 2, 0.0)
            argument = middle + np.clip(at_zero + inwards - middle, -most, most)
            argument = np.where(is_open & ~flat & np.isfinite(argument), argument, middle)
            at_argument = function(argument)
            # A step function, such as a p-value of few users, is only bisected.
            flat |= (at_argument == at_above) | (at_argument == at_below)
            short, done = is_open & (at_argument >= 0), is_open & (at_argument < 0)
            above, at_above = np.where(short, argument, above), np.where(short, at_argument, at_above)
            below, at_below = np.where(done, argument, below), np.where(done, at_argument, at_below)
    return above, below
