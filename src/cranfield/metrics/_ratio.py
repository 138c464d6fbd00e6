"""Ratios whose denominator may be 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[np.float64]:
    """Divide list by list; NaN if the denominator is 0, where the metric is undefined.

    Examples
    --------
    >>> ratio(np.array([1.0, 2.0]), np.array([4, 0])).tolist()
    [0.25, nan]
    """
    return np.divide(numerator, denominator, out=np.full(len(denominator), np.nan), where=denominator > 0)
