"""Runs of test items alone measure what whole lists measure."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import measure, simulate, splits
from cranfield.rankings import Ranking, Serving
from cranfield.rankings.ranker import Ranker, RatedRanker
from cranfield.rankings.recommending import rank_with
from cranfield.recommenders import recommender

METRICS = ["P@5", "Recall@10", "RR", "AP", "nDCG@5", "nDCG", "bpref", "infAP", "StratRecall(gamma=1)@10", "Unjudged@5"]


@pytest.mark.parametrize("spelling", ["popularity", "knn(k=2)", "random"])
@pytest.mark.parametrize("decisions", [{}, {"candidates": "test"}, {"candidates": "test", "nonrelevant": 12}])
def test_metrics_of_test_items_are_those_of_whole_lists(spelling, decisions):
    split = splits.random(simulate.world(users=50, items=40, ratings=700, seed=2).ratings, train=0.6, seed=2)
    ranking = Ranking(length="all", threshold=4, **decisions)
    model = recommender(spelling).fit(split.train)
    rankers = [kind.of(split, Serving(), ranking, 0) for kind in (Ranker, RatedRanker)]
    whole, rated = rank_with(model, rankers)
    expected, found = (measure(run, split.test, METRICS, threshold=4, train=split.train) for run in (whole, rated))
    np.testing.assert_allclose(found.values, expected.values)
    np.testing.assert_array_equal(rated.list_lengths, whole.list_lengths)
    assert len(rated.items) < len(whole.items)
