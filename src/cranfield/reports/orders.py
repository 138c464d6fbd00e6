"""The order of systems by an average."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def best_first(values: NDArray[np.float64], lower_is_better: bool = False) -> list[int]:
    """Return the indices of values from best to worst; equal values keep their order, NaN comes last.

    Examples
    --------
    >>> best_first(np.array([0.1, np.nan, 0.3, 0.1]))
    [2, 0, 3, 1]
    """
    return [int(place) for place in np.argsort(values if lower_is_better else -values, kind="stable")]
