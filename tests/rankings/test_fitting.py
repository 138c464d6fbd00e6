"""Systems trained apart from ranking: the same models in any number of processes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import cranfield as cf
from cranfield import InputError, SettingError
from cranfield.rankings import Ranking, Serving, fit_each, rank
from cranfield.rankings.fitting import movable
from cranfield.recommenders import Model, recommender, register

SYSTEMS = ["popularity", "knn(k=5)", "random", "puresvd(factors=4)", "bprmf(epochs=3)", "rm1"]


@pytest.fixture(scope="module")
def split():
    return cf.splits.random(cf.simulate.world(80, 60, 1_500).ratings, train=0.7, seed=2)


def _arrays(run):
    return {name: value.tobytes() for name, value in vars(run).items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_fitting_then_ranking_is_recommending(split, jobs):
    options = {"min_ratings": 8, "sample": 0.5, "length": 7, "fill": "average", "candidates": "test", "seed": 3}
    serving = Serving(options["min_ratings"], options["sample"])
    ranking = Ranking(length=7, fill="average", candidates="test")
    whole = cf.recommend(split, SYSTEMS, jobs=1, **options)
    done = sorted(fit_each(split.train, SYSTEMS, seed=3, jobs=jobs), key=lambda one: one.place)
    for one, system, run in zip(done, SYSTEMS, whole, strict=True):
        again = rank(one.result, split, serving=serving, ranking=ranking, seed=3, name=system)
        assert again.name == run.name
        assert _arrays(again) == _arrays(run)
        assert again.history == run.history
        assert one.seconds >= 0
        # A system fitted in another process refers to the ratings of this one.
        assert one.result.train is split.train
        if system == "knn(k=5)":
            assert np.shares_memory(one.result._ratings.indices, split.train.items)


def test_one_model_is_ranked_in_many_ways_and_keeps_its_name(split):
    model = recommender("knn(k=5)").fit(split.train)
    assert rank(model, split).name == "knn"
    assert len(rank(model, split.train, ranking=Ranking(length=3)).items) <= 3 * 80
    one = rank(model, split, ranking=Ranking(relevant="one", threshold=4), name="mine")
    assert (one.name, one.one_relevant) == ("mine", True)
    with pytest.raises(SettingError, match="is not fitted yet"):
        rank(recommender("knn"), split)


def test_a_registered_system_that_other_processes_do_not_know_is_trained_here(split):
    @register("mine")
    @dataclass
    class Own(Model):
        def _fit(self, train):
            self._scores = train.item_counts.astype(float)

        def _score(self, users):
            return np.tile(self._scores, (len(users), 1))

    systems = ["mine", "popularity", "random"]
    assert movable(systems, {name: recommender(name) for name in systems}) == [False, True, True]
    one, two = (cf.recommend(split, systems, jobs=jobs, fill="mine") for jobs in (1, 2))
    assert [_arrays(run) for run in one] == [_arrays(run) for run in two]


@pytest.mark.slow
def test_results_wait_for_the_caller_and_leaving_early_ends_all(split):
    made = fit_each(split.train, [f"knn(k={k})" for k in range(1, 5)], jobs=2)
    next(made)
    made.close()


@pytest.mark.parametrize(
    ("train", "systems", "options", "said"),
    [
        (None, "knnn", {}, "did you mean 'knn'"),
        (None, "knn", {"seed": -1}, "seed=-1"),
        (None, "knn", {"jobs": 0}, "jobs=0"),
        ([], "knn", {}, "holds no ratings"),
    ],
)
def test_mistakes_are_told_at_once(split, train, systems, options, said):
    ratings = split.train if train is None else split.train.keep(np.zeros(len(split.train), dtype=bool))
    with pytest.raises((SettingError, InputError), match=said):
        fit_each(ratings, systems, **options)
