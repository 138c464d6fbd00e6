"""The scale on which an average is an arithmetic mean, and therefore a sum over users."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cranfield.measures import Average

Floats = NDArray[np.float64]
Transform = Callable[[Floats], Floats]


LINEAR = ("mean", "weighted", "geometric", "standardised")
"""The averages that are, on some scale, a sum of one term per user; joint tests leave out all others.

A standardised value compares a system with all systems on a user's list. Swapping two systems swaps their values and
changes no others, so the mean of standardised values is one of these averages. If losses against a baseline count more
(URisk), swapping the system and the baseline does not turn a loss into an equal win.
"""


def transform_of(kind: Average) -> Transform | None:
    """Return the function that turns a geometric mean into an arithmetic one; None for other averages.

    ``trec_eval``: log max(x, ε). ``adjusted``: log(x + ε).

    Examples
    --------
    >>> transform_of(Average.of("geometric(form=adjusted, epsilon=1)"))(np.array([0.0]))
    array([0.])
    >>> transform_of(Average.of("mean")) is None
    True
    """
    if kind.spelling.name != "geometric":
        return None
    settings = dict(kind.spelling.parameters)
    epsilon = float(settings.get("epsilon", 1e-5))
    if settings.get("form") == "adjusted":
        return lambda values: np.log(values + epsilon)
    return lambda values: np.log(np.maximum(values, epsilon))
