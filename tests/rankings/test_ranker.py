"""Runs of test items alone measure what whole lists measure."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import Ratings, measure, recommend, simulate, splits
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


class _Last:
    """Lists what was last in a profile, which only profiles in time tell."""

    profiles_in_time = True

    def fit(self, train):
        self.n_items = train.n_items
        return self

    def score(self, users):
        return np.zeros((len(users), self.n_items))

    def score_profiles(self, profiles):
        assert isinstance(profiles, Ratings)
        scores = np.full((profiles.n_users, self.n_items), np.nan)
        rows = profiles.rows()
        for user, item, time in zip(rows.users, rows.items, rows.times):
            scores[user, item] = np.fmax(scores[user, item], time)
        return scores


def test_a_system_that_goes_by_time_gets_profiles_with_times():
    ratings = Ratings.of([1] * 3 + [2] * 4 + [3] * 4, [*"abc", *"abcd", *"dcba"], times=range(11))
    split = splits.sessions(ratings, given=3, test=0.6)
    (run,) = recommend(split, _Last(), length=2, keep_seen=True)
    assert run.frame().select("user", "item").rows() == [(2, "c"), (2, "b"), (3, "b"), (3, "c")]
