"""The number of threads changes nothing, not even the last digit of a score."""

from __future__ import annotations

import numpy as np
import pytest

import cranfield as cf


@pytest.mark.parametrize("system", ["knn(k=20)", "itemknn", "puresvd(factors=10)", "ease", "kld", "rm2(k=20)", "ht"])
def test_lists_and_scores_are_the_same_for_any_number_of_threads(system, monkeypatch):
    split = cf.splits.random(cf.simulate.world(300, 200, 9_000, seed=1).ratings, seed=1)
    runs = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(cf.settings, "threads", threads)
        runs += cf.recommend(split, system, length=50)
    for run in runs[1:]:
        assert np.array_equal(run.items, runs[0].items)
        assert np.array_equal(run.scores, runs[0].scores)
