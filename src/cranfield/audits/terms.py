"""`Terms`: the contribution of each user to the difference of two systems in each universe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError

Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Terms:
    """The per-user terms of every system and universe, whose differences are summed in tests.

    With v the value of a user, where larger is always better, the term is v for a mean, w v for a weighted mean and
    log(v + ε) for a geometric mean. The difference of two systems' terms is x, and their averages differ in the
    direction of Σ x. A user who is not in a universe has the term 0.

    Parameters
    ----------
    values
        Systems × universes × users, without NaN.
    users
        The number of users in each universe; by default all.
    paired
        For each universe, whether x is the difference of a user's two values with equal weights, so that tests of ranks
        and signs apply; true by default.
    linear
        For each universe, whether its average is one of the above. A median, a trimmed mean, a risk-sensitive average
        or an average of ranks is not: its terms are only used for effect sizes, and it is left out of the joint test.

    Examples
    --------
    >>> terms = Terms(np.array([[[3.0, 1.0]], [[1.0, 2.0]]]))
    >>> terms.between(0, 1).tolist()
    [[2.0, -1.0]]
    """

    values: Singles
    users: NDArray[np.int64] = None  # type: ignore[assignment]
    linear: NDArray[np.bool_] = None  # type: ignore[assignment]
    paired: NDArray[np.bool_] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float32)
        if values.ndim != 3 or not values.size:
            raise SettingError("terms must be systems × universes × users, with at least one of each")
        if not np.isfinite(values).all():
            raise SettingError("terms must be finite; give 0 for a user who is not in a universe")
        n_universes, n_users = values.shape[1:]
        users = np.full(n_universes, n_users) if self.users is None else np.asarray(self.users, dtype=np.int64)
        linear = np.ones(n_universes, dtype=bool) if self.linear is None else np.asarray(self.linear, dtype=bool)
        paired = np.ones(n_universes, dtype=bool) if self.paired is None else np.asarray(self.paired, dtype=bool)
        if {users.shape, linear.shape, paired.shape} != {(n_universes,)}:
            raise SettingError(f"users, linear and paired must have one entry for each of the {n_universes} universes")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "users", users)
        object.__setattr__(self, "linear", linear)
        object.__setattr__(self, "paired", paired)

    @property
    def n_systems(self) -> int:
        """The number of systems."""
        return self.values.shape[0]

    @property
    def n_universes(self) -> int:
        """The number of universes."""
        return self.values.shape[1]

    @property
    def n_users(self) -> int:
        """The number of users of all universes together."""
        return self.values.shape[2]

    def between(self, first: int, second: int) -> Singles:
        """Return universes × users: x for two systems, above 0 if the first is better."""
        x: Singles = self.values[first] - self.values[second]
        return x

    def across(self, system: int, first: int, second: int) -> Singles:
        """Return, for each user, x of one system in two universes, above 0 if the first has the better value."""
        x: Singles = self.values[system, first] - self.values[system, second]
        return x
