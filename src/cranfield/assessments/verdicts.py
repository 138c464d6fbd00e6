"""Which pairs of systems differ significantly, for thousands of small test sets.

The exact tests of `compare` cost milliseconds per pair. Student's paired t-test is used here instead: its sums are one
matrix product for all pairs. With hundreds of users the two hardly differ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def verdicts(values: NDArray[np.float64], alpha: float) -> NDArray[np.int8]:
    """Return, for every pair of systems in the order of ``np.triu_indices``, which one is significantly larger.

    It is 1 for the first, -1 for the second, and 0 if Student's paired t-test does not reject at ``alpha``
    (uncorrected). ``values`` are systems × lists; lists where any system has no value are left out. Without any spread,
    any difference is significant. With fewer than two lists, none is.

    Examples
    --------
    >>> verdicts(np.array([[0.9, 0.8, 0.7, 0.9], [0.1, 0.2, 0.3, 0.3], [0.1, 0.3, 0.2, 0.3]]), 0.05).tolist()
    [1, 1, 0]
    """
    if np.isnan(values.sum(axis=1)).any():
        values = values[:, ~np.isnan(values).any(axis=0)]
    values = _in_reach(values)
    return verdicts_of_sums(values.shape[1], values.sum(axis=1), values @ values.T, alpha)


def verdicts_of_sums(
    n: int, sums: NDArray[np.float64], products: NDArray[np.float64], alpha: float
) -> NDArray[np.int8]:
    """Return the verdicts, given the number of lists, the sums of systems and the sums of products of two systems."""
    from scipy.special import stdtrit

    first, second = np.triu_indices(len(sums), 1)
    if n < 2:
        return np.zeros(len(first), dtype=np.int8)
    squares = np.diagonal(products)
    whole = squares[first] + squares[second]
    difference = (sums[first] - sums[second]) / n
    spread = whole - 2.0 * products[first, second] - n * difference**2
    # Remainders of the sums of squares that are only rounding are neither a spread nor a difference.
    spread = np.where(spread > 1e-13 * whole, spread, 0.0)
    difference = np.where(np.abs(difference) > 1e-13 * np.sqrt(whole), difference, 0.0)
    needed = float(stdtrit(n - 1, 1.0 - alpha / 2.0)) * np.sqrt(spread / (n - 1) / n)
    return np.where(np.abs(difference) > needed, np.sign(difference), 0.0).astype(np.int8)


def _in_reach(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``values``, divided by a power of 2 if their squares would overflow or underflow."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0 or 1e-100 < largest < 1e100:
        return values
    return np.ldexp(values, -np.frexp(largest)[1])
