"""The search of hyper-parameters: on the validation part only, resumable, the same for the same seed."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from cranfield import CranfieldError, Ratings, measure, recommend, splits
from cranfield.experiments import Range, search


def _ratings(seed=0):
    draw = np.random.default_rng(seed)
    taste = np.outer(draw.choice([-1, 1], 60), draw.choice([-1, 1], 40))
    user, item = np.nonzero(draw.random((60, 40)) < 1 / (1 + np.exp(1 - 2 * taste)))
    return Ratings.of(user, item, draw.integers(1, 6, len(user)).astype(float))


PARTS = splits.random(_ratings(), train=0.8, validation=0.2, seed=3)


def test_a_grid_tries_every_combination_and_values_are_those_of_measure():
    found = search(PARTS, "knn(q=2)", {"k": [1, 20], "binary": [True, False]}, "P@5", threshold=4)
    assert [one.system for one in found.trials] == [
        f"knn(q=2, k={k}, binary={b})" for k in (1, 20) for b in ("true", "false")
    ]
    for trial in found.trials:
        scores = measure(recommend(PARTS.train, trial.system), PARTS.validation, ["P@5"], threshold=4)
        assert trial.value == pytest.approx(scores.average()[0, 0])
    assert found.best.value == max(one.value for one in found.trials)
    assert "is the best of 4 by P@5" in str(found)
    assert found.frame().columns == ["system", "value", "seconds"]


def test_users_who_are_not_served_do_not_lower_the_value():
    trial = search(PARTS, "knn", {"k": [20]}, "P@5", sample=0.5, seed=3).best
    run = recommend(PARTS.train, trial.system, sample=0.5, seed=3)
    scores = measure(run, PARTS.validation, ["P@5"])
    assert scores.user_coverage[0] < 0.6
    assert trial.value == pytest.approx(scores.average(coverage="reduced")[0, 0])


def test_the_test_part_is_never_looked_at():
    other = splits.Split(PARTS.train, PARTS.test.keep(np.arange(len(PARTS.test)) < 1), PARTS.step, PARTS.validation)
    space = {"k": [1, 5, 20]}
    values = [[one.value for one in search(data, "knn", space, "P@5").trials] for data in (PARTS, other)]
    assert values[0] == values[1]


def test_without_a_validation_part_one_is_set_aside():
    bare = splits.Split(PARTS.train, PARTS.test, PARTS.step)
    assert search(bare, "knn", {"k": [3]}, "P@5").trials[0].value > 0


def test_what_is_stopped_by_ratings_set_aside_is_trained_for_its_best_epochs():
    spelling, space = "mf-pointwise(epochs=60, rate=0.3, negatives=2, patience=3)", {"factors": [4]}
    stopped = search(PARTS.train, spelling, space, "nDCG@10")
    assert 1 <= stopped.best.epochs < 57
    assert stopped.final == f"mf-pointwise(epochs={stopped.best.epochs}, rate=0.3, negatives=2, patience=3, factors=4)"
    again = search(PARTS, spelling, space, "nDCG@10")  # here the final training can stop by the validation part
    assert (again.best.epochs, again.final) == (None, again.best.system)


def test_trials_by_optuna_are_the_same_for_the_same_seed():
    pytest.importorskip("optuna")
    space = {"k": Range(1, 50), "q": Range(0.1, 5.0, log=True), "similarity": ["cosine", "jaccard"]}
    first, again = (search(PARTS, "knn", space, "P@5", trials=6, seed=4) for _ in range(2))
    assert [one.system for one in first.trials] == [one.system for one in again.trials]
    assert len({one.system for one in first.trials}) > 1


@pytest.mark.parametrize("trials", [None, 4])
def test_a_broken_off_search_goes_on_where_it_was(tmp_path, monkeypatch, trials):
    module = sys.modules["cranfield.experiments.searching"]

    space = {"k": [1, 3, 9, 27]}
    whole = search(PARTS, "knn", space, "P@5", trials=trials)
    path = tmp_path / "search.json"
    calls = []
    real = module.recommend

    def breaks(*arguments, **options):
        calls.append(arguments[1])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(module, "recommend", breaks)
    with pytest.raises(KeyboardInterrupt):
        search(PARTS, "knn", space, "P@5", trials=trials, record=path)
    assert len(json.loads(path.read_text())["trials"]) == 1
    resumed = search(PARTS, "knn", space, "P@5", trials=trials, record=path)
    assert [(one.system, one.value) for one in resumed.trials] == [(one.system, one.value) for one in whole.trials]
    assert calls.count(calls[0]) == 1


def test_lower_is_better_where_the_metric_says_so():
    found = search(PARTS, "svd(factors=2, epochs=3)", {"rate": [1e-6, 0.02]}, "RMSE")
    assert found.lower_is_better
    assert found.best.value == min(one.value for one in found.trials)


@pytest.mark.parametrize(
    ("space", "options", "message"),
    [
        ({}, {}, "the space to search is empty"),
        ({"k": Range(1, 9)}, {}, "has no list of values"),
        ({"k": []}, {}, "has no list of values"),
        ({"k": 5}, {}, "k=5 has no list of values"),
        ({"k": 5}, {"trials": 2}, "k=5 has no list of values"),
        ({"k": [0]}, {}, "k=0 of knn is out of range"),
        ({"m": [1]}, {}, "knn has no parameter 'm'"),
        ({"k": [1]}, {"trials": 0}, "trials=0"),
    ],
)
def test_mistakes_are_said(space, options, message):
    with pytest.raises(CranfieldError, match=message):
        search(PARTS, "knn", space, "P@5", **options)


def test_what_is_wrong_is_said_before_anything_is_trained(monkeypatch):
    monkeypatch.setattr(sys.modules["cranfield.experiments.searching"], "recommend", None)
    with pytest.raises(CranfieldError, match="did you mean 'nDCG'"):
        search(PARTS, "knn", {"k": [1]}, "nDGC@5")
    with pytest.raises(CranfieldError, match="k=0 of knn is out of range"):
        search(PARTS, "knn", {"k": [1, 0]})
    with pytest.raises(CranfieldError, match="neither a split nor ratings"):
        search("ratings.csv", "knn", {"k": [1]})


def test_a_record_of_something_else_is_refused(tmp_path):
    path = tmp_path / "search.json"
    search(PARTS, "knn", {"k": [1]}, "P@5", record=path)
    with pytest.raises(CranfieldError, match="another metric"):
        search(PARTS, "knn", {"k": [1]}, "P@10", record=path)
    path.write_text("{")
    with pytest.raises(CranfieldError, match="is not the record of a search"):
        search(PARTS, "knn", {"k": [1]}, "P@5", record=path)
    with pytest.raises(CranfieldError, match="is not a range"):
        Range(3, 1)
