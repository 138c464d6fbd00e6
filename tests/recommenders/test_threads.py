"""The number of threads changes nothing, not even the last digit of a score."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import cranfield as cf


@pytest.mark.parametrize(
    "system", ["knn(k=20)", "itemknn", "puresvd(factors=10)", "ease", "kld", "rm2(k=20)", "ht", "wrmf(factors=8)"]
)
def test_lists_and_scores_are_the_same_for_any_number_of_threads(system, monkeypatch):
    split = cf.splits.random(cf.simulate.world(300, 200, 9_000, seed=1).ratings, seed=1)
    runs = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(cf.settings, "threads", threads)
        runs += cf.recommend(split, system, length=50)
    for run in runs[1:]:
        assert np.array_equal(run.items, runs[0].items)
        assert np.array_equal(run.scores, runs[0].scores)


_TRAINED = """
import numpy as np
import cranfield as cf
from cranfield.recommenders import recommender

train = cf.simulate.world(60, 40, 900, seed=1).ratings
scores = [recommender(system).fit(train).score(np.arange(60)) for system in ("wrmf(factors=10)", "plsa(topics=10)")]
print([float(values.astype(float).sum()).hex() for values in scores])
"""


@pytest.mark.slow
def test_a_loop_gives_the_same_digits_compiled_anew_and_from_the_cache(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    printed = [
        subprocess.run([sys.executable, "-c", _TRAINED], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert printed[0].stdout == printed[1].stdout != ""
