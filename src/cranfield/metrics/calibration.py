"""Calibration of weights to probabilities of observation that sum to the number of ratings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def calibrated(weights: NDArray[np.float64], pairs: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return probabilities p = min(1, c · weight) whose sum over all pairs is ``total``.

    If the total exceeds the number of pairs with a weight, all of these have probability 1.

    Parameters
    ----------
    weights
        Non-negative weights that the probabilities are proportional to.
    pairs
        The number of pairs with each weight.
    total
        The expected number of observed pairs.

    Examples
    --------
    >>> calibrated(np.array([1.0, 3.0]), np.array([10.0, 10.0]), 8.0).tolist()
    [0.2, 0.6000000000000001]
    >>> calibrated(np.array([1.0, 9.0]), np.array([10.0, 10.0]), 15.0).tolist()
    [0.5, 1.0]
    """
    open_pairs = (weights > 0) & (pairs > 0)
    certain = np.zeros(len(weights), dtype=np.bool_)
    while True:
        free = open_pairs & ~certain
        left = total - float(pairs[certain].sum())
        mass = float((weights * pairs)[free].sum())
        scale = max(left, 0.0) / mass if mass > 0 else 0.0
        beyond = free & (weights * scale > 1.0)
        if not beyond.any():
            return np.where(certain, 1.0, np.minimum(weights * scale, 1.0))
        certain |= beyond
