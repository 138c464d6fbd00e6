"""`spark-als` solves the least squares of its definition, and says what it needs."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import cranfield as cf
from cranfield.recommenders import recommender


def ratings(users=12, items=9):
    random = np.random.default_rng(5)
    cells = np.argwhere(random.random((users, items)) < 0.5)
    return cf.Ratings.of(*cells.T, random.integers(1, 6, len(cells)).astype(float))


def test_a_missing_pyspark_is_one_line_that_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(cf.errors.MissingExtraError) as missing:
        recommender("spark-als").fit(ratings())
    assert (
        str(missing.value)
        == "spark-als needs pyspark, which is not installed; get it with: pip install 'cranfield[spark]'"
    )


@pytest.mark.spark
@pytest.mark.parametrize("implicit", [True, False])
def test_the_factors_of_users_solve_the_least_squares_for_those_of_the_items(spark, implicit):
    train = ratings()
    model = recommender(f"spark-als(factors=3, epochs=2, alpha=2, regularization=0.3, implicit={implicit})").fit(train)
    items = model._items.astype(np.float64)
    for user in range(train.n_users):
        profile = slice(train.indptr[user], train.indptr[user + 1])
        rated, values = items[train.items[profile]], train.values[profile].astype(np.float64)
        shrinkage = 0.3 * len(values) * np.eye(3)
        if implicit:
            left = items.T @ items + (rated * 2 * values[:, None]).T @ rated + shrinkage
            right = (1 + 2 * values) @ rated
        else:
            left, right = rated.T @ rated + shrinkage, values @ rated
        assert np.linalg.solve(left, right) == pytest.approx(model._users[user], rel=1e-4, abs=1e-5)
    assert model.score([4])[0] == pytest.approx(items @ model._users[4], rel=1e-5)
    assert model.score_pairs([4, 5], [0, 1]) == pytest.approx([items[0] @ model._users[4], items[1] @ model._users[5]])
    assert model.predicts_ratings is not implicit
