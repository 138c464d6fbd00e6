"""The lemma of Bellogín et al. (2017): AR precision gives bounds on precision with one relevant item."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def lemma_bounds(users: NDArray[Any], ranks: NDArray[Any], n: int) -> dict[str, float]:
    r"""Return 1RP@n and its bounds by equation (2); the lists of a user must share their non-relevant items N_u.

    .. math::
        \frac{|U|\,P@n}{|PR_{test}|} \le 1RP@n \le \frac{\sum_u m_u P^u@m_u(T_u)}{n\,|PR_{test}|},
        \qquad m_u = n + |PR_{test}(u)| - 1

    The AR precision is that of T_u = N_u ∪ PR_test(u). It follows from the ranks of the one-relevant lists: with
    a_1 ≤ a_2 ≤ … the numbers of items of N_u above each relevant item of a user, the j-th has rank a_j + j in T_u.

    Parameters
    ----------
    users
        The user of each list.
    ranks
        The rank of each list's relevant item; 0 if the system does not rank it.
    n
        The cut-off.

    Returns
    -------
    dict
        ``lower``, ``1R`` and ``upper``.

    Examples
    --------
    >>> lemma_bounds(np.array([1, 1]), np.array([1, 1]), 1)
    {'lower': 0.5, '1R': 1.0, 'upper': 1.0}
    """
    above = np.where(ranks > 0, ranks.astype(np.float64) - 1, np.inf)
    order = np.lexsort((above, users))
    _, first, sizes = np.unique(users[order], return_index=True, return_counts=True)
    place = np.arange(len(order)) - np.repeat(first, sizes) + 1
    in_all = above[order] + place
    deepest = n + np.repeat(sizes, sizes) - 1
    total = n * len(ranks)
    hits = {"lower": in_all <= n, "1R": above < n, "upper": in_all <= deepest}
    return {name: float(np.count_nonzero(hit) / total) for name, hit in hits.items()}
