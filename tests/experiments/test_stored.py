from __future__ import annotations

import json

import numpy as np
import pytest

import cranfield as cf
from cranfield.data import Ratings
from cranfield.experiments.stored import read_own_run, read_parts, read_scores, read_split, save_scores
from cranfield.splits import apply, write


@pytest.fixture(params=["numbers", "text"])
def ratings(request):
    rng = np.random.default_rng(3)
    pairs = sorted({(int(u), int(i)) for u, i in rng.integers(0, 25, (260, 2))})
    users, items = ([f"x{one}" if request.param == "text" else one for one in side] for side in zip(*pairs))
    return Ratings.of(users, items, rng.integers(1, 11, len(users)) / 2 + 0.1, rng.integers(0, 10**9, len(users)))


def _same(one: Ratings, other: Ratings) -> None:
    assert one.user_ids == other.user_ids
    assert one.item_ids == other.item_ids
    for name in ("indptr", "items", "values", "times"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_ratings_come_back(ratings, tmp_path):
    cf.write(ratings, tmp_path / "r.parquet")
    _same(read_parts({"ratings": tmp_path / "r.parquet"}, "r", ())["ratings"], ratings)


@pytest.mark.parametrize("method", ["random(train=0.6)", "k_fold(k=3)", "leave_out(l=1, short=train)"])
def test_splits_come_back_with_items_that_one_part_lacks(ratings, tmp_path, method):
    folds = apply(ratings, method, seed=2)
    write(folds, tmp_path)
    for k, split in enumerate(folds):
        again = read_split(tmp_path, ratings, k, len(folds))
        _same(again.train, split.train)
        _same(again.test, split.test)
        assert again.step == split.step


@pytest.mark.parametrize(
    "asked",
    [{}, {"fill": "random"}, {"condensed": True}, {"relevant": "one", "nonrelevant": 5, "threshold": 3.0}, {"n": 3}],
)
@pytest.mark.parametrize("system", ["popularity", "average", "knn(k=2)"])
def test_runs_measure_the_same_when_they_come_back(ratings, tmp_path, asked, system):
    (split,) = apply(ratings, "random(train=0.6)", seed=2)
    (run,) = cf.recommend(split, {"one": system}, **asked)
    path = cf.write_run(run, tmp_path / "run.parquet")
    again = read_own_run(path, "one", split, run.counts)
    assert again.frame().equals(run.frame())
    assert again.one_relevant == run.one_relevant
    metrics = ["P@3", "nDCG@3", "RR", "RMSE", "ItemCoverage"] if not run.one_relevant else ["Recall@3", "RR"]
    before, after = (
        cf.measure(one, split.test, metrics, threshold=3.0, train=split.train).frame() for one in (run, again)
    )
    assert after.equals(before)


def test_scores_come_back_with_what_is_undefined(ratings, tmp_path):
    (split,) = apply(ratings, "random(train=0.6)", seed=2)
    runs = cf.recommend(split, ["popularity", "knn(k=2)"], n=5)
    scores = cf.measure(runs, split.test, ["P@3", "nDCG@3", "RMSE", "ItemCoverage@3"], threshold=5.0, train=split.train)
    assert np.isnan(scores.values).any()
    again = read_scores(*save_scores(scores, tmp_path / "s.parquet"))
    np.testing.assert_array_equal(again.values, scores.values)
    np.testing.assert_array_equal(again.covered, scores.covered)
    assert again.frame().equals(scores.frame())
    assert again.per_user().equals(scores.per_user())
    assert (again.step, again.notes, again.counts) == (scores.step, scores.notes, scores.counts)


def test_one_relevant_scores_keep_a_users_lists_apart(ratings, tmp_path):
    (split,) = apply(ratings, "random(train=0.6)", seed=2)
    runs = cf.recommend(split, ["popularity", "random"], relevant="one", nonrelevant=5, threshold=3.0)
    scores = cf.measure(runs, split.test, ["Recall@3"], threshold=3.0)
    again = read_scores(*save_scores(scores, tmp_path / "s.parquet"))
    assert again.frame(by="user").equals(scores.frame(by="user"))
    assert cf.compare(again).frame().equals(cf.compare(scores).frame())


def test_scores_keep_the_groups_of_their_lists(tmp_path):
    test = cf.Ratings.of(["ann", "bob", "cid"], ["x", "y", "x"])
    runs = {"a": {"ann": ["x"], "bob": ["z", "y"]}, "b": {"cid": ["x"]}}
    scores = cf.measure(runs, test, ["RR", "P@1"], groups={"ann": "old", "bob": "new"})
    path, facts = save_scores(scores, tmp_path / "scores.parquet")
    back = read_scores(path, json.loads(json.dumps(facts)))
    assert (back.groups.tolist(), back.group_names) == ([1, 0, -1], ("new", "old"))
    assert back.frame(groups="equal").equals(scores.frame(groups="equal"))
    assert back.recommended.tolist() == scores.recommended.tolist()
