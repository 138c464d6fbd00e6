"""The bounds of the simulators' parameters."""

from __future__ import annotations

from numbers import Real

import numpy as np

from cranfield._errors import SettingError


def check_bounds(name: str, value: object, low: float, high: float) -> None:
    """Refuse a value that is not a finite number within the bounds.

    Examples
    --------
    >>> check_bounds("drift", 1.5, 0, 1)
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: drift is 1.5; give a finite number from 0 to 1
    """
    given = float(value) if not isinstance(value, bool) and isinstance(value, Real) else np.nan
    if not (np.isfinite(given) and low <= given <= high):
        shown = repr(value) if isinstance(value, str) else value
        bounds = f"from {low:,g} to {high:,g}" if np.isfinite(high) else f"of at least {low:g}"
        raise SettingError(f"{name} is {shown}; give a finite number {bounds}")
