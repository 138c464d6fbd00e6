"""The lists that an average includes, and the value and weight of each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield.measures.averages import Average, by_user
from cranfield.measures.averaging import Averaging
from cranfield.metrics import power_for

Values = NDArray[np.float64]


class Counted(NamedTuple):
    """The values that an average includes.

    Parameters
    ----------
    kind
        The average that is taken of the values.
    values, weights
        Of lists or users; None if all weigh the same.
    missing
        The number of lists for which the metric is undefined.
    users
        The user of each list that counts.
    """

    kind: Average
    values: Values
    weights: Values | None
    missing: int
    users: NDArray[np.int32]

    @property
    def units(self) -> NDArray[np.int32]:
        """The user of each value."""
        return self.users if len(self.users) == len(self.values) else np.unique(self.users)

    @property
    def mean(self) -> float:
        """The average; NaN of nothing."""
        return self.kind(self.values, self.weights)


def counted(
    values: Values,
    averaging: Averaging,
    *,
    counts_zero: bool,
    covered: NDArray[np.bool_],
    users: NDArray[np.int32],
    weights: Values | None,
    groups: NDArray[np.int16] | None,
) -> Counted:
    """Return the values of lists or users that an average includes, and their weights.

    Parameters
    ----------
    values
        One value per list; NaN if the metric is undefined.
    counts_zero
        Whether an undefined value counts as 0, or is left out.
    covered, users, weights, groups
        Of each list: whether it has any item, its user, its weight, its group.
    """
    keep = covered if averaging.coverage == "reduced" else np.ones(len(values), dtype=np.bool_)
    if groups is not None:
        keep = keep & (groups >= 0)
    undefined = np.isnan(values)
    missing = int((undefined & keep).sum())
    if not counts_zero:
        keep = keep & ~undefined
    values = np.where(undefined, 0.0, values)[keep]
    kept_weights = None if weights is None else weights[keep]
    kept_users = users[keep]
    of_users = kept_users if averaging.by == "user" else None
    if groups is not None:
        table, kept_weights = over_groups(values[None], groups[keep], kept_weights, of_users)
        return Counted(Average.of("weighted"), table[0], kept_weights, missing, kept_users)
    if of_users is not None:
        values, summed = by_user(values, of_users, np.ones(len(values)) if kept_weights is None else kept_weights)
        kept_weights = None if kept_weights is None else summed
    return Counted(averaging.kind, values, kept_weights, missing, kept_users)


def defined_for_all(values: Values) -> NDArray[np.bool_]:
    """Return the lists for which every system has a value, from systems × lists; systems without any are ignored.

    Examples
    --------
    >>> defined_for_all(np.array([[0.1, np.nan, 0.3], [0.2, 0.5, np.nan], [np.nan] * 3])).tolist()
    [True, False, False]
    """
    defined = ~np.isnan(values)
    measured: NDArray[np.bool_] = defined[defined.any(axis=1)]
    return np.asarray(measured.all(axis=0), dtype=np.bool_)


def over_groups(
    values: Values, groups: NDArray[Any], weights: Values | None, users: NDArray[Any] | None
) -> tuple[Values, Values]:
    """Return values and weights whose weighted mean is the mean over groups of the mean within each group.

    With x_uk the mean of the lists of user u in group k and n_k the users of the group, the mean over the m groups of
    the mean within each is Σ_u w_u x_u / Σ_u w_u with w_u = Σ_k 1/n_k and x_u = Σ_k (x_uk / n_k) / w_u, where k runs
    over the groups in which the user has a list. Users who have lists in every group weigh the same, and x_u is the
    mean over groups. With weights, w_uk / Σ_u w_uk replaces 1/n_k.

    Parameters
    ----------
    values
        Rows × lists.
    groups, weights
        Of each list.
    users
        The user of each list; without them, every list is a separate unit.

    Examples
    --------
    Three lists in group 0 and one in group 1: the mean over the two groups is (0.2 + 0.8) / 2.

    >>> values, weights = over_groups(np.array([[0.1, 0.2, 0.3, 0.8]]), np.array([0, 0, 0, 1]), None, None)
    >>> round(float((weights * values).sum() / weights.sum()), 12)
    0.5
    """
    lists = np.arange(values.shape[1]) if users is None else users
    _, unit = np.unique(lists, return_inverse=True)
    n_groups = int(groups.max(initial=-1)) + 1
    pairs, pair = np.unique(unit * max(n_groups, 1) + groups, return_inverse=True)
    n_units, n_pairs = int(unit.max(initial=-1)) + 1, len(pairs)
    unit_of_pair, group_of_pair = pairs // max(n_groups, 1), pairs % max(n_groups, 1)
    weight = np.ones(n_pairs) if weights is None else np.bincount(pair, weights, n_pairs)
    total = np.bincount(group_of_pair, weight, n_groups)
    share = np.divide(weight, total[group_of_pair], out=np.zeros(n_pairs), where=total[group_of_pair] > 0)
    unit_weight = np.bincount(unit_of_pair, share, n_units).astype(np.float64)
    table, size = np.empty((len(values), n_units)), np.bincount(pair, minlength=n_pairs)
    for row, list_values in zip(table, values):
        power = power_for(list_values)
        of_pair = np.bincount(pair, np.ldexp(list_values, -power), n_pairs) / size
        sums = np.bincount(unit_of_pair, share * of_pair, n_units)
        row[:] = np.ldexp(np.divide(sums, unit_weight, out=np.zeros(n_units), where=unit_weight > 0), power)
    return table, unit_weight * (n_units / max(int(np.count_nonzero(total)), 1))
