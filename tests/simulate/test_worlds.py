"""Worlds with known truth, and how they are observed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import SettingError, simulate
from cranfield.simulate import tastes
from cranfield.simulate.tastes import inclusion, systematic_sample


def gini(counts):
    ordered = np.sort(counts)
    n = len(ordered)
    return ((2 * np.arange(1, n + 1) - n - 1) @ ordered) / (n * ordered.sum())


@pytest.fixture(scope="module")
def small():
    return simulate.world(300, 120, 6_000, seed=5)


@given(
    users=st.integers(1, 40),
    items=st.integers(1, 40),
    part=st.floats(0, 1),
    popularity_bias=st.floats(0, 4),
    relevance_bias=st.floats(-2, 4),
    activity=st.floats(0, 2),
    seed=st.integers(0, 99),
)
def test_counts_are_exactly_as_asked(users, items, part, popularity_bias, relevance_bias, activity, seed):
    count = users + round(part * users * (items - 1))
    made = simulate.world(
        users,
        items,
        count,
        popularity_bias=popularity_bias,
        relevance_bias=relevance_bias,
        activity=activity,
        min_profile=1,
        max_profile=items,
        seed=seed,
    )
    assert (made.ratings.n_users, made.ratings.n_items, len(made.ratings)) == (users, items, count)
    assert made.ratings.user_counts.min() >= 1


@pytest.mark.parametrize(("popularity_bias", "relevance_bias"), [(20, 20), (20, -20), (0, 20), (20, 0)])
def test_the_strongest_biases_still_give_the_asked_counts(popularity_bias, relevance_bias):
    for count in (2_000, 10_000, 19_000):
        made = simulate.world(
            200, 100, count, popularity_bias=popularity_bias, relevance_bias=relevance_bias, max_profile=100
        )
        assert len(made.ratings) == count
        assert np.allclose(made.propensity().sum(axis=1), made.ratings.user_counts, atol=1e-6)


def test_the_same_seed_makes_the_same_world_whatever_the_size_of_blocks(small, monkeypatch):
    whole = small.preference(), small.propensity()
    for cells in (1, 1_000, 10**7):
        monkeypatch.setattr(tastes, "_CELLS", cells)
        again = simulate.world(300, 120, 6_000, seed=5)
        assert again.ratings.fingerprint == small.ratings.fingerprint
        assert np.array_equal(again.preference(), whole[0])
        assert np.array_equal(again.propensity(), whole[1])
    assert simulate.world(300, 120, 6_000, seed=6).ratings.fingerprint != small.ratings.fingerprint


def test_rows_asked_for_one_by_one_are_rows_of_the_whole(small):
    some = [7, 3, 250, 7]
    for method in (small.preference, small.relevant, small.propensity):
        assert np.array_equal(method(some), method()[some])
        assert np.array_equal(method(7), method()[[7]])


def test_grades_have_the_asked_shares_over_all_pairs():
    shares = {1: 0.5, 2: 0.2, 3: 0.0, 5: 0.3}
    grades, counts = np.unique(simulate.world(500, 100, 5_000, histogram=shares).preference(), return_counts=True)
    assert grades.tolist() == [1, 2, 5]
    assert np.allclose(counts / counts.sum(), [0.5, 0.2, 0.3], atol=1e-3)


def test_relevant_is_a_grade_at_or_above_the_threshold(small):
    assert np.array_equal(small.relevant(), small.preference() >= 4)
    assert simulate.world(50, 40, 500, threshold=1).relevant().all()


def test_ratings_without_noise_are_the_truth_and_with_noise_are_not():
    quiet, loud = (simulate.world(200, 100, 4_000, noise=noise) for noise in (0, 1))
    for made, same in ((quiet, True), (loud, False)):
        truth = made.preference()[made.ratings.users, made.ratings.items]
        assert np.array_equal(made.ratings.values, truth) == same


def test_without_taste_all_users_want_the_same():
    assert (np.ptp(simulate.world(50, 40, 500, taste=0).preference(), axis=0) == 0).all()
    assert (np.ptp(simulate.world(50, 40, 500, taste=1).preference(), axis=0) > 0).all()


def test_the_share_of_taste_is_the_share_of_variance():
    scores = simulate.world(3_000, 200, 20_000, taste=0.6).tastes
    matrix = scores.score(np.arange(3_000))
    assert matrix.var(axis=0).mean() == pytest.approx(0.6, abs=0.03)
    assert np.corrcoef(matrix.mean(axis=0), scores.quality)[0, 1] > 0.95
    pairs = np.array([[0, 5], [17, 199], [2_999, 0]])
    assert np.allclose(scores.pair_score(pairs[:, 0], pairs[:, 1]), matrix[pairs[:, 0], pairs[:, 1]])


def test_with_all_biases_off_observed_items_are_uniform():
    from scipy.stats import chi2

    made = simulate.world(2_000, 200, 40_000, popularity_bias=0, relevance_bias=0, activity=0)
    counts = made.ratings.item_counts
    # Drawn without replacement, so the counts have 1 - 0.1 times the variance of a multinomial.
    statistic = ((counts - 200) ** 2 / 200).sum() / (1 - 0.1)
    assert 1e-4 < chi2.sf(statistic, 199) < 1 - 1e-4
    assert set(made.ratings.user_counts.tolist()) == {20}
    assert np.allclose(made.propensity([0, 9]), 0.1)
    assert made.ratings.values.mean() == pytest.approx(made.preference().mean(), abs=0.03)


def test_a_larger_popularity_bias_is_a_larger_gini_of_the_items():
    ginis = [
        gini(simulate.world(popularity_bias=bias, relevance_bias=0).ratings.item_counts) for bias in (0, 0.5, 1, 2, 3)
    ]
    assert ginis == sorted(ginis)
    assert np.diff(ginis).min() > 0.03
    assert ginis[0] < 0.1


def test_a_larger_relevance_bias_is_a_larger_mean_of_the_observed_ratings():
    worlds = [simulate.world(relevance_bias=bias, noise=0) for bias in (-1, 0, 0.5, 1, 2)]
    gaps = [one.ratings.values.mean() - one.preference().mean() for one in worlds]
    assert gaps == sorted(gaps)
    assert gaps[0] < -0.2
    assert abs(gaps[1]) < 0.05
    assert gaps[3] > 0.3


def test_exposure_has_nothing_to_do_with_quality():
    made = simulate.world(100, 3_000, 10_000)
    assert abs(np.corrcoef(np.log(made.exposure), made.tastes.quality)[0, 1]) < 0.06


def test_the_usual_world_looks_like_movielens():
    observed = simulate.world(2_000, 1_000, 100_000).ratings
    shares = np.bincount(observed.values.astype(int), minlength=6)[1:] / len(observed)
    assert observed.values.mean() == pytest.approx(3.58, abs=0.15)
    assert np.abs(shares - [0.056, 0.108, 0.261, 0.349, 0.226]).max() < 0.04
    assert gini(observed.item_counts) == pytest.approx(0.634, abs=0.05)
    assert gini(observed.user_counts) == pytest.approx(0.529, abs=0.05)


@given(
    weights=st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=30),
    part=st.floats(0, 1),
)
def test_inclusion_probabilities_add_up_to_the_size(weights, part):
    row = np.array([weights])
    size = np.array([round(part * len(weights))])
    probabilities = inclusion(row, size)
    assert probabilities.sum() == pytest.approx(size[0], abs=1e-6)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    order = np.argsort(row[0])
    assert (np.diff(probabilities[0, order]) >= -1e-12).all()


def test_samples_include_items_with_their_probabilities():
    rng = np.random.default_rng(8)
    weights, size, draws = np.exp(2 * rng.normal(size=25)), 10, 20_000
    probabilities = inclusion(weights[None, :], np.array([size]))
    assert probabilities.max() > 0.95
    repeated = np.repeat(probabilities, draws, axis=0)
    sample = systematic_sample(repeated, np.full(draws, size), rng.random((draws, 26)))
    assert (sample.sum(axis=1) == size).all()
    error = sample.mean(axis=0) - probabilities[0]
    assert np.abs(error / np.sqrt(probabilities[0] * (1 - probabilities[0]) / draws + 1e-12)).max() < 4.5


def test_propensities_are_the_frequencies_of_observation_over_many_worlds():
    expected, observed = [], []
    for seed in range(150):
        made = simulate.world(30, 25, 240, seed=seed, min_profile=2)
        expected.append(made.propensity().ravel())
        observed.append(np.zeros((30, 25)))
        observed[-1][made.ratings.users, made.ratings.items] = 1
    chance, seen = np.concatenate(expected), np.concatenate([one.ravel() for one in observed])
    tenth = np.digitize(chance, np.quantile(chance, np.arange(0.1, 1, 0.1)))
    for one in range(10):
        here = tenth == one
        spread = np.sqrt((chance[here] * (1 - chance[here])).sum())
        assert abs((seen[here] - chance[here]).sum()) < 4.5 * spread


def test_propensities_add_up_to_the_profile_sizes(small):
    assert np.allclose(small.propensity().sum(axis=1), small.ratings.user_counts, atol=1e-6)


def test_the_truth_is_every_pair_as_ratings(small):
    truth = small.truth()
    assert len(truth) == 300 * 120
    assert np.array_equal(truth.matrix().toarray(), small.preference())
    some = small.truth([5, 2])
    assert np.flatnonzero(some.user_counts).tolist() == [2, 5]
    assert np.array_equal(some.values.reshape(2, -1), small.preference([2, 5]))
    assert some.user_ids == small.ratings.user_ids


def test_a_truth_that_is_too_large_is_refused_with_its_size(small, monkeypatch):
    monkeypatch.setattr("cranfield.simulate.truth._MOST_PAIRS", 35_999)
    with pytest.raises(SettingError, match="36,000 pairs"):
        small.truth()


def test_a_random_test_is_uniform_and_new(small):
    test = small.random_test(per_user=10)
    assert set(test.user_counts.tolist()) == {10}
    together = test.matrix(np.ones(len(test))) + small.ratings.matrix(np.ones(len(small.ratings)))
    assert together.max() == 1
    plain = simulate.world(2_000, 60, 12_000, popularity_bias=0, relevance_bias=0, seed=3).random_test(6)
    assert plain.values.mean() == pytest.approx(
        simulate.world(2_000, 60, 12_000, popularity_bias=0, relevance_bias=0, seed=3).preference().mean(), abs=0.05
    )
    assert np.abs(plain.item_counts - 200).max() < 5 * np.sqrt(200)


def test_a_random_test_of_some_users_is_part_of_that_of_all(small):
    everybody, some = small.random_test(4), small.random_test(4, users=[9, 3])
    for user in (3, 9):
        assert np.array_equal(some.items[some.profile(user)], everybody.items[everybody.profile(user)])
        assert np.array_equal(some.values[some.profile(user)], everybody.values[everybody.profile(user)])
    assert len(some) == 8


def test_a_random_test_takes_what_is_left_where_little_is():
    made = simulate.world(20, 10, 150, min_profile=1, seed=1)
    test = made.random_test(per_user=8)
    assert np.array_equal(test.user_counts, np.minimum(8, 10 - made.ratings.user_counts))
    assert simulate.world(3, 4, 12, min_profile=4).random_test().user_counts.tolist() == [0, 0, 0]


def test_times_lie_within_three_years_and_follow_the_drift():
    still, moving = (simulate.world(drift=drift) for drift in (0, 1))
    for made in (still, moving):
        assert made.ratings.times.min() >= 946_684_800
        assert made.ratings.times.max() < 946_684_800 + 3 * 365 * 86_400
    assert np.array_equal(still.ratings.items, moving.ratings.items)

    def item_spread(made):
        means = np.bincount(made.ratings.items, made.ratings.times - 946_684_800) / made.ratings.item_counts
        return means.std()

    assert item_spread(moving) > 1.5 * item_spread(still)
    assert simulate.world(times=False).ratings.times is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"users": 0}, "users is 0"),
        ({"users": 10.5}, "users is 10.5; give a whole number"),
        ({"tastes": 2.5}, "tastes is 2.5; give a whole number"),
        ({"ratings": 4_000}, "4,000 ratings cannot be shared"),
        ({"ratings": 500_001}, "do not fit"),
        ({"min_profile": 501}, "min_profile"),
        ({"max_profile": 501}, "max_profile"),
        ({"max_profile": 49}, "max_profile"),
        ({"tastes": 0}, "tastes is 0"),
        ({"taste": 1.1}, "taste is 1.1; give a finite number from 0 to 1"),
        ({"noise": -0.1}, "noise is -0.1"),
        ({"popularity_bias": -1.0}, "popularity_bias is -1"),
        ({"relevance_bias": float("nan")}, "relevance_bias is nan"),
        ({"drift": 2.0}, "drift is 2"),
        ({"popularity_bias": 21}, "popularity_bias is 21"),
        ({"histogram": {1: 0.5, 100: 0.5}}, "grades from 1 to 100"),
        ({"histogram": {-1: 0.5, 1: 0.5}}, "grades from -1 to 1"),
        ({"seed": -1}, "seed=-1"),
        ({"noise": "high"}, "noise is 'high'; give a finite number from 0 to 1,000"),
        ({"activity": 1e4}, "activity is 10000.0"),
        ({"threshold": float("nan")}, "threshold=nan is not a number"),
        ({"times": "no"}, "times='no' is neither true nor false"),
        ({"histogram": {"low": 1, "high": 2}}, "not a share for each value"),
    ],
)
def test_what_cannot_be_made_is_refused_in_one_line(settings, said):
    with pytest.raises(SettingError, match=said) as caught:
        simulate.world(**settings)
    assert "\n" not in str(caught.value)


def test_users_that_are_not_there_are_refused(small):
    for codes in ([0, 300], [-1, 5]):
        with pytest.raises(SettingError, match=f"not from {codes[0]} to {codes[1]}"):
            small.preference(codes)
    with pytest.raises(SettingError, match="give users as codes"):
        small.preference(["ann"])
    with pytest.raises(SettingError, match=r"per_user=2\.5 is not a whole number of at least 1"):
        small.random_test(2.5)
