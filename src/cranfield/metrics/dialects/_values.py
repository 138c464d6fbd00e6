"""Building blocks of several dialects; R is the number of relevant test items, n the cut-off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cranfield.judgments import Judged, Judgments
from cranfield.metrics.definition import Values
from cranfield.metrics.gains import Gain, relative_powers
from cranfield.metrics.ranking import average_precision


def over(numerator: Values, denominator: NDArray[Any]) -> Values:
    """Divide; 0 if the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros(len(numerator)), where=denominator > 0)


def achievable(judged: Judged, cutoff: int) -> NDArray[np.int64]:
    """Return min(R, n), the maximum number of relevant items in a list of length n."""
    return np.minimum(judged.n_relevant, cutoff)


def sum_of_precisions(judged: Judged) -> Values:
    """Return Σ rel(k) P@k, the numerator of average precision."""
    return np.nan_to_num(average_precision(judged)) * judged.n_relevant


def powers_if_relevant(judgments: Judgments, exponents: Values) -> Values:
    """Return 2^e − 1 of relevant judgments over a power of two, the same for all of a list; 0 for others."""
    relevant = judgments.relevant
    return np.where(relevant, relative_powers(judgments, np.where(relevant, exponents, 0.0)), 0.0)


RelevantGain = Literal["binary", "rating", "exp"]

RELEVANT_GAINS: Mapping[str, Gain] = {
    "binary": lambda judgments: judgments.relevant.astype(np.float64),
    "rating": lambda judgments: np.where(judgments.relevant, judgments.grades, 0.0),
    "exp": lambda judgments: powers_if_relevant(judgments, judgments.grades),
}
"""Gains for tools that see no test rating below the threshold; constant factors of a list's gains cancel in nDCG."""


def irrelevant_above(judged: Judged) -> NDArray[np.int64]:
    """Return the number of items above each hit that are not relevant."""
    return judged.ranks - 1 - judged.relevant_above


def pooled(numerator: Values, denominator: NDArray[Any], counted: NDArray[np.bool_]) -> Values:
    """Return one value per list, whose mean over the counted lists is Σ numerator / Σ denominator.

    A pooled ratio is not defined for a single list; the contribution of a list is its numerator over the mean
    denominator.
    """
    mean = float(denominator[counted].mean()) if counted.any() else 0.0
    return numerator / mean if mean > 0 else np.zeros(len(numerator))
