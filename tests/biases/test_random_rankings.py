"""What a random ranking scores, against all rankings of small target sets."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield.biases import density, ratio_to_random
from cranfield.metrics import Metric
from cranfield.rankings import measured_ratings

CLOSED = ["P", "Recall", "HitRate", "RR", "AP", "DCG", "nDCG", "nDCG(gain=exp)", "F1", "RBP", "AntiP", "RScore"]


@pytest.fixture(scope="module")
def tiny():
    """Six items; ann saw one in training and has three test ratings, bob saw none and has two."""
    train = cf.Ratings.of(["ann", "cid", "cid", "cid", "cid", "cid"], ["a", "b", "c", "d", "e", "f"])
    test = cf.Ratings.of(["ann", "ann", "ann", "bob", "bob"], ["b", "c", "d", "a", "f"], [5, 2, 4, 4, 1])
    return train, test, {"ann": "bcdef", "bob": "abcdef"}


def _means_over_all_rankings(metrics, test, targets, user, longest):
    rankings = list(itertools.permutations(targets))
    rows = [(item, value) for who, item, value, *_ in test.frame().iter_rows() if who == user]
    users = list(range(len(rankings)))
    many = cf.Ratings.of(
        [u for u in users for _ in rows], [item for _ in users for item, _ in rows], [v for _ in users for _, v in rows]
    )
    runs = {"all": {u: list(rankings[u][:longest]) for u in users}}
    return cf.measure(runs, many, metrics, threshold=4).values[0].mean(axis=1)


@pytest.mark.parametrize("n", ["", "@1", "@3", "@20"])
def test_closed_forms_equal_the_mean_over_all_rankings(n, tiny):
    train, test, targets = tiny
    runs = {"mine": {"ann": list("bcde"), "bob": list("abcd")}}
    metrics = [f"{name}{n}" for name in CLOSED]
    result = ratio_to_random(runs, test, metrics, train=train, threshold=4)
    assert result.errors.tolist() == [0.0] * len(metrics)
    expected = [_means_over_all_rankings(metrics, test, targets[user], user, 4) for user in ("ann", "bob")]
    np.testing.assert_allclose(result.random.values[0], np.array(expected).T)


def test_drawn_rankings_agree_with_all_rankings_within_their_error(tiny):
    train, test, targets = tiny
    runs = {"mine": {"ann": list("bcde"), "bob": list("abcd")}}
    metrics = ["bpref", "infAP@3", "ERR"]
    result = ratio_to_random(runs, test, metrics, train=train, threshold=4)
    expected = np.mean([_means_over_all_rankings(metrics, test, targets[user], user, 4) for user in targets], axis=0)
    assert ((result.errors > 0) & (result.errors < 0.1)).all()
    assert (np.abs(expected - result.random.average()[0]) < 4 * result.errors).all()


def test_a_metric_of_whole_lists_is_drawn_as_well(split):
    (run,) = cf.recommend(split, "popularity", length=5)
    result = ratio_to_random(run, split.test, ["EPC@5", "ItemCoverage@5", "P@5"], train=split.train, threshold=4)
    frame = result.frame()
    assert frame["metric"].to_list() == ["EPC@5", "ItemCoverage@5", "P@5"]
    assert (frame["random_error"].to_numpy()[:2] > 0).all()
    assert frame["random"][1] == pytest.approx(1.0, abs=0.05)
    assert frame["random"][2] == pytest.approx(density(split, threshold=4).rho)


def test_times_random_is_the_ratio_of_the_averages(split):
    runs = cf.recommend(split, ["popularity", "random"], length=10)
    result = ratio_to_random(runs, split.test, ["P@5", "nDCG@5"], train=split.train, threshold=4)
    for system, metric, mean, chance, error, times in result.frame().iter_rows():
        assert (
            mean == cf.measure(runs, split.test, [metric], threshold=4).average()[0 if system == "popularity" else 1, 0]
        )
        assert times == pytest.approx(mean / chance)
        assert error == 0.0
    assert "a random ranking" in result.table().text()


@pytest.mark.parametrize(
    "design", [{"nonrelevant": 6}, {"candidates": "test"}, {"keep_seen": True}, {"unrated": 3}], ids=str
)
def test_random_precision_is_rho_in_every_design(design, split):
    (run,) = cf.recommend(split, "popularity", length="all", threshold=4, **design)
    ranking = cf.rankings.Ranking(threshold=4, **design)
    targets = cf.rankings.Targets(split.train, split.test, ranking, 0, None)
    result = ratio_to_random(run, split.test, "P@3", train=split.train, targets=targets, threshold=4)
    assert result.random.average().item() == pytest.approx(density(split, threshold=4, **design).rho)


def test_candidates_can_be_the_items_with_a_test_rating(split):
    few = cf.splits.predefined(split.train, split.test.keep(split.test.items % 3 > 0))
    (run,) = cf.recommend(few, "popularity", length=5, candidates="test")
    options = {"train": few.train, "threshold": 4, "candidates": "test"}
    result = ratio_to_random(run, few.test, ["P@5", "ItemCoverage@5"], **options)
    assert result.random.average()[0, 0] == pytest.approx(density(few, threshold=4, candidates="test").rho)
    assert result.random.overall[0, 1] == pytest.approx(np.count_nonzero(few.test.item_counts) / few.test.n_items)


def test_in_one_relevant_designs_random_precision_is_1_over_t(split):
    (run,) = cf.recommend(split, "popularity", relevant="one", nonrelevant=6, threshold=4)
    result = ratio_to_random(run, split.test, ["P@1", "RR"], threshold=4)
    assert result.random.values[0, 0].tolist() == pytest.approx([1 / 7] * run.lengths.size)
    assert result.random.values[0, 1].tolist() == pytest.approx(
        [sum(1 / k for k in range(1, 8)) / 7] * run.lengths.size
    )


def test_the_density_of_the_targets_stands_beside(split):
    (run,) = cf.recommend(split, "popularity", length=5)
    result = ratio_to_random(run, split.test, "P@5", train=split.train, threshold=4)
    stated = cf.density(split, threshold=4)
    assert result.density.as_dict() == pytest.approx(stated.as_dict())
    assert result.frame()["random"].item() == pytest.approx(stated.rho)
    assert f"ρ = {stated.rho:.4g}, σ = {stated.sigma:.4g}" in result.table().text()
    assert ratio_to_random(run, split.test, "P@5", threshold=4).density is None


def test_condensed_lists_are_compared_with_random_rankings_of_the_judged_items(split):
    (run,) = cf.recommend(split, "popularity", length="all")
    result = ratio_to_random(run, split.test, "P@1", train=split.train, threshold=4, lists="condensed")
    shares = [
        np.mean(split.test.values[split.test.indptr[u] : split.test.indptr[u + 1]] >= 4)
        for u in np.flatnonzero(split.test.user_counts)
    ]
    assert np.nan_to_num(result.random.values[0, 0]).tolist() == pytest.approx(shares)


def test_what_has_no_random_value_is_refused(split):
    (run,) = cf.recommend(split, "average", length=5)
    with pytest.raises(cf.SettingError, match="predicts no ratings"):
        ratio_to_random(run, split.test, "RMSE", train=split.train, threshold=4)
    with pytest.raises(cf.SettingError, match="use mean or weighted"):
        ratio_to_random(run, split.test, "P@5", train=split.train, threshold=4, average="median")


def test_every_metric_with_a_closed_form_over_ties_is_one_over_random_rankings():
    assert all(Metric.of(name).definition.averages_ties for name in CLOSED)


@pytest.mark.parametrize("repeats", ["exclude", "allow", "only"])
def test_a_random_ranking_of_repeats_has_the_recall_of_its_candidates(repeats):
    random = np.random.default_rng(5)
    frame = pl.DataFrame({"user": random.integers(0, 20, 900), "item": random.integers(0, 15, 900),
                          "time": random.integers(0, 1000, 900)})  # fmt: skip
    split = cf.splits.temporal(cf.read(frame), train=0.5)
    runs = cf.recommend(split, "popularity", repeats=repeats, length=4)
    found = cf.ratio_to_random(runs, split.test, "Recall@4", train=split.train, repeats=repeats)
    had = split.train.user_counts
    counted = measured_ratings(split, repeats=repeats)
    sizes = {"exclude": 15 - had, "allow": np.full(len(had), 15), "only": had}[repeats][counted.user_counts > 0]
    assert found.frame()["random"].item() == pytest.approx(np.minimum(1, 4 / np.maximum(sizes, 1)).mean())
