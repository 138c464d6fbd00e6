"""The dialect of implicit, against its ``ranking_metrics_at_k`` with a model that recommends given lists."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cranfield as cf
from cranfield.measures.other_tools import compare_tools

evaluation = pytest.importorskip("implicit.evaluation")


class _Given:
    """A model that recommends given lists, filled with -1 as implicit fills short ones."""

    def __init__(self, lists):
        self.lists = lists

    def recommend(self, users, _, N):
        rows = [(self.lists.get(int(user), []) + [-1] * N)[:N] for user in users]
        return np.array(rows, dtype=np.int32), None


@pytest.mark.parametrize("k", [1, 4, 10])
@pytest.mark.parametrize("seed", range(3))
def test_implicit(seed, k):
    rng = np.random.default_rng(seed)
    users, items = 15, 25
    ratings = np.where(rng.random((users, items)) < 0.2, rng.integers(1, 6, (users, items)), 0)
    ratings[0] = 0
    ratings[0, 0] = 2  # a user without relevant items
    lists = {u: rng.permutation(items)[: rng.integers(1, 15)].tolist() for u in range(users) if u % 4}
    rows = [(int(u), int(i), float(ratings[u, i])) for u, i in zip(*np.nonzero(ratings))]
    names = ["P", "AP", "nDCG", "AUC"]
    test = cf.Ratings.of(*zip(*rows))
    frame = compare_tools({"run": lists}, test, [f"{name}@{k}" for name in names], threshold=4)
    ours = dict(frame.select("spelling", "value").iter_rows())
    relevant = csr_matrix(np.where(ratings >= 4, ratings, 0))
    theirs = evaluation.ranking_metrics_at_k(_Given(lists), relevant, relevant, K=k, show_progress=False)
    for name, own in zip(names, ("precision", "map", "ndcg", "auc")):
        assert ours[f"{name}(dialect=implicit)@{k}"] == pytest.approx(theirs[own], abs=1e-9)


def test_the_size_of_the_catalogue_can_be_given():
    test, run = cf.Ratings.of([0, 0], [1, 2]), {"run": {0: [3, 1]}}
    relevant = csr_matrix(np.array([[0, 1, 1] + [0] * 27]))
    theirs = evaluation.AUC_at_k(_Given({0: [3, 1]}), relevant, relevant, K=2, show_progress=False)
    assert cf.measure(run, test, ["AUC(dialect=implicit, items=30)@2"]).values[0, 0, 0] == pytest.approx(theirs)
