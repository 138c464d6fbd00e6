"""ρ, σ, δ and t against loops over the target sets."""

from __future__ import annotations

import numpy as np
import pytest

import cranfield as cf
from cranfield.biases import density, expected_precision, one_relevant_bounds
from cranfield.biases.densities import odds_of_margins
from cranfield.facts import bias as bias_facts

DESIGNS = [
    {},
    {"keep_seen": True},
    {"candidates": "test"},
    {"nonrelevant": 5},
    {"unrated": 4},
    {"lists": "condensed"},
    {"relevant": "one", "nonrelevant": 6},
    {"relevant": "one", "candidates": "test"},
]


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_sizes_and_relevant_items_are_those_of_the_lists_that_are_ranked(design, split):
    (run,) = cf.recommend(split, "random", length="all", threshold=4, **design)
    found = density(split, threshold=4, **design)
    liked = {user: set() for user in range(split.test.n_users)}
    for user, item, value in zip(split.test.users, split.test.items, split.test.values):
        if value >= 4:
            liked[int(user)].add(int(item))
    if design.get("relevant") == "one":
        assert found.sizes.tolist() == run.lengths.tolist()
        assert set(found.relevant.tolist()) == {1}
        return
    tested = set(np.flatnonzero(split.test.user_counts).tolist())
    lists = [
        (int(user), run.items[run.indptr[k] : run.indptr[k + 1]])
        for k, user in enumerate(run.users)
        if int(user) in tested
    ]
    assert found.sizes.tolist() == [len(items) for _, items in lists]
    assert found.relevant.tolist() == [len(liked[user] & set(items.tolist())) for user, items in lists]
    assert found.rho == pytest.approx(np.mean([len(liked[u] & set(i.tolist())) / len(i) for u, i in lists if len(i)]))


def test_sigma_delta_and_t_are_those_of_the_paper(split):
    found = density(split, threshold=4)
    ratings, test = len(split.train) + len(split.test), len(split.test)
    positive = int((split.train.values >= 4).sum() + (split.test.values >= 4).sum())
    users = int(np.count_nonzero(split.test.user_counts))
    t = 1 / np.mean(1 / found.sizes)
    assert found.sigma == test / ratings
    assert found.t == pytest.approx(t)
    assert found.delta == pytest.approx(positive / (t * users))
    assert found.predicted_random == pytest.approx(found.sigma * found.delta)
    assert density(split, threshold=4, relevant="one", nonrelevant=6).predicted_random == pytest.approx(1 / 7)


def test_random_precision_is_rho_to_sampling_error(split):
    found = density(split, threshold=4)
    runs = cf.recommend(split, {f"random {k}": f"random(seed={k})" for k in range(60)}, length=5, jobs=1)
    means = cf.measure(runs, split.test, "P@5", threshold=4).average()[:, 0]
    assert abs(means.mean() - found.rho) < 4 * means.std(ddof=1) / np.sqrt(len(means))


@pytest.mark.parametrize("system", ["popularity", "random", "average"])
def test_at_full_depth_every_system_has_the_precision_rho(system, split):
    (run,) = cf.recommend(split, system, length="all", fill="random")
    measured = cf.measure(run, split.test, "P", threshold=4).average().item()
    assert measured == pytest.approx(density(split, threshold=4).rho)


def test_training_ratings_alone_are_refused(split):
    with pytest.raises(cf.SettingError, match="not a split"):
        density(split.train)


class FixedOrder:
    """A non-personalised ranking that does not depend on the split: items by their code."""

    def fit(self, train):
        self.n_items = train.n_items
        return self

    def score(self, users):
        return np.tile(-np.arange(self.n_items, dtype=float), (len(users), 1))


@pytest.fixture(scope="module")
def over_splits(make_ratings):
    """Predicted and measured P@5 of a fixed ranking over random splits with nothing taken from the targets."""
    ratings = make_ratings(users=60, items=25, density=0.5, skew=0.7)
    predicted, measured, departures = [], [], []
    for seed in range(40):
        split = cf.splits.random(ratings, train=0.7, seed=seed)
        (run,) = cf.recommend(split, {"fixed": FixedOrder()}, length="all", keep_seen=True)
        expected = expected_precision(run, split, density(split, threshold=4, keep_seen=True), n=5)
        predicted.append(expected.low)
        departures.append(expected.departures)
        measured.append(cf.measure(run, split.test, "P@5", threshold=4).average().item())
    return np.array(predicted), np.array(measured), departures


def test_equation_3_is_met_where_its_assumptions_hold(over_splits):
    predicted, measured, departures = over_splits
    difference = measured - predicted
    assert abs(difference.mean()) < 4 * difference.std(ddof=1) / np.sqrt(len(difference))
    assert set(departures) == {()}


def test_where_training_items_leave_the_targets_the_reason_for_a_difference_is_given(split):
    (run,) = cf.recommend(split, "popularity", length="all")
    expected = expected_precision(run, split, density(split, threshold=4), n=5)
    measured = cf.measure(run, split.test, "P@5", threshold=4).average().item()
    assert measured > expected.low == expected.high
    assert any(isinstance(reason, bias_facts.SizesDiffer) for reason in expected.departures)


def _world(seed, users=300, items=120, activity=1.0):
    """Ratings in which users differ by their activity and items by their popularity, and nothing else."""
    rng = np.random.default_rng(seed)
    odds = rng.gamma(1 / activity, activity, users)[:, None] * 4 / np.arange(1, items + 1) ** 0.8
    rows, columns = np.nonzero(rng.random((users, items)) < odds / (1 + odds))
    return cf.Ratings.of(rows.tolist(), columns.tolist(), rng.integers(1, 6, len(rows)).astype(float).tolist())


def _popularity_on(ratings, seed):
    split = cf.splits.random(ratings, train=0.8, seed=seed)
    (run,) = cf.recommend(split, "popularity", length=5)
    targets = density(split, threshold=4)
    plain, given = (expected_precision(run, split, targets, n=5, unseen=unseen).low for unseen in (False, True))
    return plain, given, cf.measure(run, split.test, "P@5", threshold=4).average().item()


@pytest.mark.parametrize("activity", [0.01, 1.0])
def test_given_that_items_are_not_in_training_equation_3_is_met_on_worlds(activity):
    found = np.array([_popularity_on(_world(seed, activity=activity), seed) for seed in range(12)])
    away = found[:, 2] - found[:, 1]
    assert abs(away.mean()) < 3 * away.std(ddof=1) / np.sqrt(len(away))
    assert (found[:, 2] - found[:, 0]).mean() > 0.2 * found[:, 2].mean()  # the printed form is far too low


def test_odds_give_every_user_and_item_its_number_of_ratings():
    ratings = _world(3, users=40, items=30)
    of_user, of_item = odds_of_margins(ratings.user_counts, ratings.item_counts)
    odds = of_user[ratings.user_counts][:, None] * of_item[ratings.item_counts]
    np.testing.assert_allclose((odds / (1 + odds)).sum(axis=1), ratings.user_counts, atol=1e-3)
    np.testing.assert_allclose((odds / (1 + odds)).sum(axis=0), ratings.item_counts, atol=1e-3)


def test_given_that_items_are_not_in_training_is_for_lists_of_all_relevant_items(split):
    (run,) = cf.recommend(split, "popularity", length="all")
    with pytest.raises(cf.SettingError, match="unseen=True is for lists of all relevant items"):
        expected_precision(run, split, density(split, threshold=4, relevant="one", nonrelevant=5), unseen=True)


def test_equation_3_equals_its_definition(split):
    (run,) = cf.recommend(split, "popularity", length="all")
    found = density(split, threshold=4)
    liked = np.bincount(split.train.items[split.train.values >= 4], minlength=split.train.n_items)
    liked = liked + np.bincount(split.test.items[split.test.values >= 4], minlength=split.train.n_items)
    tested = np.flatnonzero(split.test.user_counts)
    sums = [
        liked[run.items[run.indptr[k] : run.indptr[k + 1]][:5]].sum()
        for k, user in enumerate(run.users)
        if user in tested
    ]
    value = found.sigma * split.train.n_items / (5 * found.t * len(tested)) * np.mean(sums)
    assert expected_precision(run, split, found, n=5).low == pytest.approx(value)


def test_with_uniform_test_items_and_only_positive_ratings_every_ranking_is_predicted_at_random(make_ratings):
    ratings = make_ratings(users=80, items=20, density=0.5, skew=0.8)
    positive = cf.Ratings.of(ratings.users.tolist(), ratings.items.tolist())
    split = cf.splits.uniform_test(positive, sigma=0.2, epsilon=0.2)
    (run,) = cf.recommend(split, "popularity", length="all", candidates="test")
    found = density(split, threshold=1, candidates="test")
    expected = expected_precision(run, split, found, n=5, uniform_test=True)
    assert expected.low == pytest.approx(found.predicted_random)


def test_measured_one_relevant_precision_lies_within_the_bounds_of_the_lemma(split):
    for nonrelevant in (5, 12):
        design = {"nonrelevant": nonrelevant, "length": "all", "threshold": 4, "seed": 3}
        for system in ("popularity", "random", "knn(k=5)"):
            (whole,) = cf.recommend(split, system, **design)
            (single,) = cf.recommend(split, system, relevant="one", **design)
            for n in (1, 3, 10):
                low, high = one_relevant_bounds(cf.judge(whole, split.test, threshold=4), n)
                measured = cf.measure(single, split.test, f"P@{n}", threshold=4).average(by="list").item()
                assert low - 1e-12 <= measured <= high + 1e-12


def test_in_one_relevant_designs_precision_is_at_most_1_over_n_and_metrics_reduce_to_each_other(split):
    (run,) = cf.recommend(split, "popularity", relevant="one", nonrelevant=10, threshold=4)
    metrics = ["P@3", "AP", "RR", "nDCG@5", "nDCG(gain=exp)@5", "nDCG(gain=binary)@5"]
    values = cf.measure(run, split.test, metrics, threshold=4).values[0]
    assert values[0].max() <= 1 / 3
    np.testing.assert_allclose(values[1], values[2])
    np.testing.assert_allclose(values[3], values[4])
    np.testing.assert_allclose(values[3], values[5])


def test_one_relevant_bounds_are_printed_for_non_personalised_rankings(split):
    (run,) = cf.recommend(split, "popularity", length="all")
    found = density(split, threshold=4, relevant="one", nonrelevant=10)
    expected = expected_precision(run, split, found, n=3)
    assert expected.low < expected.high
    assert expected.equation == "bounds of 1R from the equation (3)"


def test_a_one_relevant_run_is_refused(split):
    (run,) = cf.recommend(split, "popularity", relevant="one", nonrelevant=5, threshold=4)
    with pytest.raises(cf.SettingError, match="keeps no lists"):
        expected_precision(run, split, density(split, threshold=4))
