"""Initial values of factor models."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.data import Ratings


def normal_factors(
    draw: np.random.Generator, counts: NDArray[np.int64], factors: int, spread: float
) -> NDArray[np.float32]:
    """Draw normal factors; those of users or items without ratings are 0."""
    rows = draw.standard_normal((len(counts), factors)) * spread
    rows[counts == 0] = 0
    return rows.astype(np.float32)


def average_profile(train: Ratings, *, at_most: int) -> int:
    """Return the average number of ratings per user, rounded down, from 1 to ``at_most``.

    Examples
    --------
    >>> average_profile(Ratings.of([1, 1, 1, 2, 2], [1, 2, 3, 1, 2]), at_most=50)
    2
    """
    return max(1, min(at_most, len(train) // train.n_users))


def check_settled(system: str, factors: Iterable[NDArray[np.float32]], **settings: float) -> None:
    """Refuse factors that are not finite; they come from too large a setting, such as the step size."""
    if not all(np.isfinite(matrix).all() for matrix in factors):
        spelled = " and ".join(f"{name}={value:g}" for name, value in settings.items())
        raise SettingError(f"{system} does not converge with {spelled}; give a smaller {' or '.join(settings)}")


def random_state(draw: np.random.Generator) -> NDArray[np.uint64]:
    """Return the state of a compiled loop's random number generator."""
    return draw.integers(0, 2**63, size=1, dtype=np.uint64)
