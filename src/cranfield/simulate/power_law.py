"""The shifted power law of popularity (Bellogín, Castells and Cantador 2017, section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.simulate._bounds import check_bounds
from cranfield.simulate.counts import CountArray, counts_of_shape

# The steepest curve: anything steeper is exponential rather than a power law. Even with the largest shift its values
# are representable.
_STEEPEST, _FARTHEST = 20.0, 1e12


@dataclass(frozen=True)
class PowerLaw:
    r"""The popularity of the *k*-th most popular item: :math:`|R(i_k)| = c_1 + \beta (c_2 + k)^{-\alpha}`.

    Parameters
    ----------
    alpha
        The skewness α: 0 makes all items equally popular, 2 is a very steep long tail; MovieLens 1M has about 1.4.
    c1
        The number of ratings that even the least popular item has.
    c2
        The shift of the ranks, which flattens the head of the curve.

    Examples
    --------
    >>> PowerLaw(alpha=1.0, c2=1.0).counts(items=4, ratings=40, users=30)[0].tolist()
    [16, 10, 8, 6]
    """

    alpha: float
    c1: float = 0.0
    c2: float = 0.0

    def __post_init__(self) -> None:
        check_bounds("alpha", self.alpha, 0, _STEEPEST)
        check_bounds("c1", self.c1, 0, np.inf)
        check_bounds("c2", self.c2, 0, _FARTHEST)

    def counts(self, *, items: int, ratings: int, users: int) -> tuple[CountArray, float]:
        """Return the number of ratings of each item, most popular first, and β.

        The counts are whole numbers from 1 to the number of users, and β is adjusted so that they add up to the
        number of ratings.
        """
        # Divided by the value of the first item, so that no power underflows; the returned β is that of the law above.
        head = self.c2 + 1.0
        shape = np.asarray(((self.c2 + np.arange(1, items + 1)) / head) ** -self.alpha, dtype=np.float64)
        counts, beta = counts_of_shape(shape, ratings, low=1, high=users, offset=self.c1)
        return counts, float(beta * head**self.alpha)

    @classmethod
    def fit(cls, popularity: NDArray[Any]) -> PowerLaw:
        r"""Fit α, :math:`c_1 \ge 0` and :math:`c_2 \ge 0` to the number of ratings of each item by least squares.

        β is not free: it makes the curve add up to the number of ratings.

        Examples
        --------
        >>> made, _ = PowerLaw(alpha=1.2, c1=3.0, c2=20.0).counts(items=2000, ratings=500_000, users=100_000)
        >>> law = PowerLaw.fit(made)
        >>> round(law.alpha, 2), round(law.c1), round(law.c2)
        (1.2, 3, 20)
        """
        from scipy.optimize import least_squares

        observed = np.sort(np.asarray(popularity, dtype=np.float64))[::-1]
        observed = observed[observed > 0]
        if len(observed) < 4:
            raise SettingError(f"a power law cannot be fitted to {len(observed)} items; give at least 4")
        total, least, scale = observed.sum(), observed[-1], observed.mean()
        ranks = np.arange(1, len(observed) + 1)

        def curve(alpha: float, c1: float, c2: float) -> NDArray[np.float64]:
            shape = ((c2 + ranks) / (c2 + 1.0)) ** -alpha
            return np.asarray(c1 + (total - c1 * len(observed)) * shape / shape.sum())

        def error(parameters: NDArray[np.float64]) -> NDArray[np.float64]:
            alpha, c1, shift = parameters
            return np.asarray((curve(alpha, c1, np.expm1(shift)) - observed) / scale)

        shift = np.log1p(0.08 * len(observed))
        fitted = least_squares(
            error,
            x0=[1.0, least / 2.0, shift],
            bounds=([0.0, 0.0, 0.0], [_STEEPEST, max(least, 1e-9), np.log1p(100.0 * len(observed))]),
            x_scale=[1.0, max(least, 1.0), 1.0],
        ).x
        return cls(float(fitted[0]), round(float(fitted[1]), 6), float(np.expm1(fitted[2])))
