"""Truths on worlds in which everything is known, and what is said of data that are not a truth."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import cranfield as cf
from cranfield import CranfieldWarning, InputError, SettingError
from cranfield.measures import true_values
from cranfield.splits import truths

SHARE = 0.1
DRAWS = 12


def _pair(world, seed):
    """Return what a service observes of the judgments of random items, and all these judgments."""
    ratings, rng = world.ratings, np.random.default_rng(seed)
    grades = world.preference()
    judged = rng.random(grades.shape) < SHARE
    known = np.zeros(grades.shape, dtype=bool)
    known[ratings.users, ratings.items] = True

    def those(mask):
        users, items = np.nonzero(mask)
        return cf.Ratings.from_codes(
            ratings.user_ids, ratings.item_ids, users.astype(np.int32), items.astype(np.int32), grades[mask]
        )

    return those(judged & known), those(judged)


@pytest.fixture(scope="module")
def estimates():
    """By design and system: the mean estimate of P@10 over draws, and what is true of the same lists."""
    world = cf.simulate.world(
        users=400, items=150, ratings=18_000, taste=0.3, popularity_bias=1.0, relevance_bias=1.2, seed=2, times=False
    )
    sums = {}
    for draw in range(DRAWS):
        known, judged = _pair(world, draw)
        for name in ("half", "published", "weighted"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CranfieldWarning)
                truth = getattr(truths, name)(known, judged, seed=draw)
            runs = cf.recommend(truth.train, ["popularity", "random"], length=10)
            values = true_values(runs, truth, threshold=4).precision.mean(axis=1)
            served = np.flatnonzero(truth.train.user_counts)
            for run, value in zip(runs, values):
                real = world.true_value(run, "P@10", exclude=truth.train)[np.isin(run.users, served)].mean()
                sums.setdefault((name, run.name), []).append((value, real))
    return {key: np.mean(pairs, axis=0) for key, pairs in sums.items()}


@pytest.mark.parametrize("design", ["half", "weighted"])
@pytest.mark.parametrize("system", ["popularity", "random"])
def test_a_clean_design_finds_the_true_precision(estimates, design, system):
    value, real = estimates[design, system]
    assert value == pytest.approx(real, abs=0.04)


def test_the_published_design_puts_popularity_far_below_its_true_precision(estimates):
    value, real = estimates["published", "popularity"]
    assert value < 0.75 * real


@pytest.mark.parametrize(("design", "as_it_is"), [("half", True), ("weighted", True), ("published", False)])
def test_the_lead_of_popularity_over_random_is_found_by_the_clean_designs_alone(estimates, design, as_it_is):
    found = estimates[design, "popularity"][0] - estimates[design, "random"][0]
    real = estimates[design, "popularity"][1] - estimates[design, "random"][1]
    assert real > 0.2
    assert (abs(found - real) < 0.06) == as_it_is


@pytest.fixture(scope="module")
def pair():
    world = cf.simulate.world(users=300, items=120, ratings=9_000, relevance_bias=1.2, seed=5, times=False)
    return _pair(world, 1)


def test_a_truth_states_the_probability_of_each_judgment_given_that_it_is_not_in_training(pair):
    known, judged = pair
    truth = truths.weighted(known, judged, folds=5, seed=3)
    rate = len(judged) / (judged.n_users * judged.n_items)
    observed = np.isin(
        truth.judged.users.astype(int) * 1000 + truth.judged.items,
        truth.observed.users.astype(int) * 1000 + truth.observed.items,
    )
    expected = np.where(observed, 0.2 * rate / (1 - 0.8 * rate), rate)
    assert truth.probability == pytest.approx(expected)
    assert truth.weighted


def test_a_half_divides_the_judgments_and_trains_on_known_ones_only(pair):
    known, judged = pair
    truth = truths.half(known, judged, seed=3)
    assert len(truth.train) + len(truth.observed) == len(known)
    assert abs(len(truth.judged) / len(judged) - 0.5) < 0.05
    rows = set(truth.train.frame().select("user", "item").rows())
    assert not rows & set(truth.judged.frame().select("user", "item").rows())
    assert truth.flaw is None


def test_the_published_design_is_announced_as_flawed(pair):
    with pytest.warns(CranfieldWarning, match="differ by a factor of 4.6"):
        truths.published(*pair, seed=3)


def test_judgments_from_which_known_pairs_left_are_recognised_without_being_told(pair):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CranfieldWarning)
        flawed = truths.published(*pair, seed=3)
    with pytest.warns(CranfieldWarning, match="items that people know are missing"):
        truths.given(flawed.train, flawed.judged)


def test_an_ordinary_test_set_is_not_a_truth():
    world = cf.simulate.world(users=300, items=120, ratings=9_000, popularity_bias=3, seed=5, times=False)
    split = cf.splits.random(world.ratings, seed=1)
    with pytest.warns(CranfieldWarning, match="chosen like the training ratings"):
        truths.given(split.train, split.test)


def test_judgments_of_items_drawn_at_random_are_a_truth_without_a_word():
    world = cf.simulate.world(users=300, items=120, ratings=9_000, popularity_bias=3, seed=5, times=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        truth = truths.given(world.ratings, world.random_test(10))
    assert truth.probability.max() < 0.5


def test_the_random_part_of_coat_is_a_truth_without_a_word(real_data):
    import polars as pl

    frame = pl.read_parquet(real_data("coat.parquet"))
    parts = [cf.read(frame.filter(split=name).select("user", "item", "rating")) for name in ("train", "test")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        truths.given(*parts)


def test_observed_ratings_that_nobody_judged_are_refused():
    with pytest.raises(InputError, match="1 of 1 observed ratings are not among the judgments"):
        truths.half(cf.Ratings.of(["ann"], ["x"]), cf.Ratings.of(["ann"], ["y"]))


def test_judgments_that_are_all_observed_are_refused():
    both = cf.Ratings.of(["ann", "bob"], ["x", "y"])
    with pytest.raises(InputError, match="all judgments are observed"):
        truths.half(both, both)


@pytest.mark.parametrize("share", [0, 1, -2])
def test_a_share_that_leaves_nothing_is_refused(pair, share):
    with pytest.raises(SettingError, match="leaves no truth or no training"):
        truths.half(*pair, share=share)


def test_a_fold_beyond_the_last_is_refused(pair):
    with pytest.raises(SettingError, match="there is no fold 5 of 5"):
        truths.weighted(*pair, folds=5, fold=5)


def test_a_probability_of_zero_is_refused():
    train, judged = cf.Ratings.of(["ann"], ["x"]), cf.Ratings.of(["ann"], ["y"])
    with pytest.raises(SettingError, match="above 0 and at most 1"):
        truths.given(train, judged, probability=0.0)


def test_judgments_of_training_pairs_alone_are_refused():
    ratings = cf.Ratings.of(["ann"], ["x"])
    with pytest.raises(InputError, match="all judgments are in training"):
        truths.given(ratings, ratings)
