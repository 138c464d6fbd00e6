"""Subsampling of users: how often the test rejects with fewer of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cranfield._progress import progress
from cranfield._random import stream
from cranfield._rounding import nearest_count
from cranfield.comparisons.sample import Floats, Sample
from cranfield.comparisons.verdict import Verdict


def rejected_share(
    data: Sequence[Sample],
    test: Callable[[Sequence[Sample]], list[Verdict]],
    *,
    subsets: int,
    size: float,
    alpha: float,
    seed: int,
) -> list[Floats]:
    """Return, for each sample and pair, the share of user subsets in which the test rejects at ``alpha``.

    Decision D of Cañamares, Castells and Moffat (2020): ``subsets`` random subsets of the users, each a share ``size``
    of them (rounded half up, at least one user) drawn without replacement, with the test repeated in each.
    """
    n_users = data[0].values.shape[1]
    n_drawn = max(1, int(nearest_count(size, n_users)))
    rejected = [np.zeros(sample.n_pairs) for sample in data]
    with progress("Testing subsets of users", total=subsets, unit="subsets") as bar:
        for k in range(subsets):
            keys = stream(seed, "compare", "subset", k).random(n_users)
            users = np.sort(np.argsort(keys, kind="stable")[:n_drawn])
            for count, verdict in zip(rejected, test([sample.restrict(users) for sample in data])):
                count += verdict.p < alpha
            bar.advance()
    return [count / subsets for count in rejected]
