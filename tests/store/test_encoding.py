from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import cranfield as cf
from cranfield.comparisons import compare
from cranfield.data import Ratings, with_features
from cranfield.splits import apply
from cranfield.store import encoding


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


def _ids(ratings):
    return encoding.Vocabularies(ratings.user_ids, ratings.item_ids)


def test_ratings_come_back(ratings, tmp_path):
    encoding.save_vocabularies(ratings, tmp_path)
    path = encoding.save_ratings(ratings, tmp_path / "r.parquet")
    _same(encoding.read_ratings(path, encoding.read_vocabularies(tmp_path)), ratings)


def test_features_come_back(ratings, tmp_path):
    described = with_features(ratings, {"id": ratings.user_ids.all, "age": np.arange(ratings.n_users)})
    encoding.save_vocabularies(described, tmp_path)
    again = encoding.read_ratings(
        encoding.save_ratings(ratings, tmp_path / "r.parquet"), encoding.read_vocabularies(tmp_path)
    )
    assert again.user_features.fingerprint == described.user_features.fingerprint
    assert again.item_features is None


@pytest.mark.parametrize(
    "method",
    [
        "random(train=0.6)",
        "k_fold(k=3)",
        "leave_out(l=1, short=train)",
        "random(validation=0.2)",
        "percentiles(groups=3)",
    ],
)
def test_splits_come_back_with_items_that_one_part_lacks(ratings, tmp_path, method):
    folds = apply(ratings, method, seed=2)
    encoding.save_splits(folds, ratings, tmp_path)
    records = [split.record() for split in folds]
    for k, split in enumerate(folds):
        again = encoding.read_split(tmp_path, ratings, records, k)
        assert again.parts.keys() == split.parts.keys()
        for name, part in split.parts.items():
            _same(again.parts[name], part)
        assert again.step.as_dict() == split.step.as_dict()  # the notes come back as texts
        np.testing.assert_array_equal(again.item_groups, split.item_groups)


def test_a_split_that_changes_ratings_comes_back_as_it_is(ratings, tmp_path):
    (split,) = apply(ratings, "random(train=0.6)", seed=2)
    other = replace(split, train=replace(split.train, values=split.train.values + 1))
    assert not any(path.name == "parts.parquet" for path in encoding.save_splits([other], ratings, tmp_path))
    _same(encoding.read_split(tmp_path, ratings, [other.record()], 0).train, other.train)


def test_the_groups_of_lists_come_back(ratings, tmp_path):
    (split,) = apply(ratings, "percentiles(groups=4)", seed=2)
    (run,) = cf.recommend(split, "popularity", relevant="one", candidates="group", nonrelevant=5, threshold=3.0)
    path = encoding.save_run(run, tmp_path / "run.parquet")
    again = encoding.read_run(path, "popularity", _ids(ratings), encoding.run_facts(run), run.group_names)
    assert again.frame().equals(run.frame())
    assert "group" in again.frame().columns
    np.testing.assert_array_equal(again.groups, run.groups)


def test_ranks_that_leave_places_out_come_back(tmp_path):
    run = cf.read_run({"user": [1, 1, 2], "item": [5, 6, 5], "rank": [9, 12, 1]}, name="one")
    path = encoding.save_run(run, tmp_path / "run.parquet")
    again = encoding.read_run(path, "one", encoding.Vocabularies(run.user_ids, run.item_ids), encoding.run_facts(run))
    assert again.frame().equals(run.frame())
    assert again.list_lengths.tolist() == [12, 1]
    assert again.has_gaps


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"fill": "random"},
        {"lists": "condensed"},
        {"calibration": "isotonic"},
        {"relevant": "one", "nonrelevant": 5, "threshold": 3.0},
        {"length": 3},
    ],
)
@pytest.mark.parametrize("system", ["popularity", "average", "knn(k=2)"])
def test_runs_measure_the_same_when_they_come_back(ratings, tmp_path, asked, system):
    (split,) = apply(ratings, "random(train=0.6)", seed=2)
    (run,) = cf.recommend(split, {"one": system}, **asked)
    path = encoding.save_run(run, tmp_path / "run.parquet")
    again = encoding.read_run(path, "one", _ids(ratings), encoding.run_facts(run), run.group_names)
    assert again.frame().equals(run.frame())
    assert again.one_relevant == run.one_relevant
    metrics = ["P@3", "nDCG@3", "RR", "ItemCoverage"] if not run.one_relevant else ["Recall@3", "RR"]
    metrics += [] if run.predictions is None else ["RMSE"]
    assert (again.only_ranks, again.calibration) == (run.only_ranks, run.calibration)
    before, after = (
        cf.measure(one, split.test, metrics, threshold=3.0, train=split.train).frame() for one in (run, again)
    )
    assert after.equals(before)


def test_scores_and_comparisons_come_back_with_what_is_undefined(ratings, tmp_path):
    (split,) = apply(ratings, "random(train=0.6)", seed=2)
    runs = cf.recommend(split, ["popularity", "knn(k=2)"], length=5, calibration="linear")
    scores = cf.measure(runs, split.test, ["P@3", "nDCG@3", "RMSE", "ItemCoverage@3"], threshold=5.0, train=split.train)
    assert np.isnan(scores.values).any()
    again = encoding.read_scores(*encoding.save_scores(scores, tmp_path / "s.npz"), ratings.user_ids)
    np.testing.assert_array_equal(again.values, scores.values)
    np.testing.assert_array_equal(again.covered, scores.covered)
    assert again.frame().equals(scores.frame())
    assert again.per_user().equals(scores.per_user())
    assert (again.step, again.notes, again.counts) == (scores.step, scores.notes, scores.counts)
    comparison = compare(scores, baseline="popularity")
    (path, *_), facts = encoding.save_comparison(comparison, tmp_path / "c.parquet")
    same = encoding.read_comparison(path, json.loads(json.dumps(facts)))
    assert same.frame().equals(comparison.frame())
    assert same.verdict == comparison.verdict
    assert str(same) == str(comparison)


def test_one_relevant_scores_keep_a_users_lists_apart(ratings, tmp_path):
    (split,) = apply(ratings, "random(train=0.6)", seed=2)
    runs = cf.recommend(split, ["popularity", "random"], relevant="one", nonrelevant=5, threshold=3.0)
    scores = cf.measure(runs, split.test, ["Recall@3"], threshold=3.0)
    again = encoding.read_scores(*encoding.save_scores(scores, tmp_path / "s.npz"), ratings.user_ids)
    assert again.frame(by="user").equals(scores.frame(by="user"))
    assert cf.compare(again).frame().equals(cf.compare(scores).frame())
