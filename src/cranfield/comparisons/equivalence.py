"""Equivalence: whether two systems differ by no more than a margin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cranfield.comparisons.sample import Floats


class Equivalence(NamedTuple):
    """p-values against the claim that the difference lies beyond the margin."""

    equivalent: Floats
    not_below: Floats
    not_above: Floats


def two_one_sided(difference: ArrayLike, standard_error: ArrayLike, n: ArrayLike, margin: ArrayLike) -> Equivalence:
    """Two one-sided t-tests (TOST, Schuirmann 1987).

    ``not_below`` is the p-value against difference ≤ −margin, P(T ≥ (difference + margin) / standard error);
    ``not_above`` is the p-value against difference ≥ margin; ``equivalent`` is the larger of the two. A small p-value
    means "not below", "not above" or "equivalent". Without any spread the answer is certain: 0 inside the margin, 1 at
    it and outside.

    Examples
    --------
    >>> both = two_one_sided(0.001, 0.002, 500, 0.01)
    >>> both.equivalent < 0.001, both.equivalent == both.not_above
    (np.True_, np.True_)
    """
    from scipy.special import stdtr

    difference, error, n, margin = (
        np.asarray(number, dtype=np.float64) for number in (difference, standard_error, n, margin)
    )
    freedom = np.maximum(n - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        above, below = (difference + margin) / error, (margin - difference) / error
    # Without spread, 0 / 0 means that the difference equals the margin.
    not_below, not_above = (np.where((n > 1) & ~np.isnan(t), stdtr(freedom, -t), 1.0) for t in (above, below))
    return Equivalence(np.maximum(not_below, not_above), not_below, not_above)
