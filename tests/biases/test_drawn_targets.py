"""Expectations over the draw of targets: against every draw of small lists, and against sampled lists."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cranfield as cf
from cranfield.biases import expected_over_draws

METRICS = [
    "P@1",
    "P@3",
    "Recall@2",
    "HitRate@2",
    "RR",
    "RR@2",
    "AP",
    "AP@3",
    "DCG@3",
    "nDCG@3",
    "nDCG",
    "nDCG(gain=exp)@2",
]


@pytest.fixture(scope="module")
def tiny():
    """Seven candidates of ann (h is a training item), one of which the system cannot rank; bob has fewer ratings."""
    train = cf.Ratings.of(["ann", *["cid"] * 8], list("h" + "abcdefgh"))
    test = cf.Ratings.of(["ann"] * 4 + ["bob"] * 2, list("bdga") + list("ch"), [5, 4, 4, 2, 4, 3])
    return train, test, {"ann": list("abcdef"), "bob": list("hgfedcba")}


def _sampled_means(tiny, fixed, number, metrics):
    """The mean of each metric over all draws, list by list."""
    _, test, lists = tiny
    means = []
    for user, ranking in lists.items():
        candidates = set("abcdefgh") - ({"h"} if user == "ann" else set())
        profile = {item: value for who, item, value, *_ in test.frame().iter_rows() if who == user}
        always = {item for item in profile if fixed(profile[item])}
        draws = list(itertools.combinations(sorted(candidates - always), number))
        runs = {k: [item for item in ranking if item in always | set(draw)] for k, draw in enumerate(draws)}
        many = cf.Ratings.of(
            [k for k in runs for _ in profile],
            [i for _ in runs for i in profile],
            [v for _ in runs for v in profile.values()],
        )
        means.append(cf.measure({"all": runs}, many, metrics, threshold=4).values[0].mean(axis=1))
    return np.array(means).T


@pytest.mark.parametrize("number", [1, 3])
def test_with_all_relevant_items_it_is_the_mean_over_every_draw(number, tiny):
    train, test, lists = tiny
    found = expected_over_draws({"mine": lists}, test, METRICS, nonrelevant=number, train=train, threshold=4)
    np.testing.assert_allclose(found.values[0], _sampled_means(tiny, lambda value: value >= 4, number, METRICS))


@pytest.mark.parametrize("number", [1, 2])
def test_with_all_rated_items_it_is_the_mean_over_every_draw(number, tiny):
    train, test, lists = tiny
    found = expected_over_draws({"mine": lists}, test, METRICS, unrated=number, train=train, threshold=4)
    np.testing.assert_allclose(found.values[0], _sampled_means(tiny, lambda value: True, number, METRICS))


def test_with_one_relevant_item_it_is_the_mean_over_every_draw(tiny):
    train, test, lists = tiny
    found = expected_over_draws({"mine": lists}, test, METRICS, nonrelevant=3, relevant="one", train=train, threshold=4)
    expected = []
    for user, item, value, *_ in test.frame().sort("user", "item").iter_rows():
        if value < 4:
            continue
        if item not in lists[user]:  # the system cannot rank it
            expected.append(np.zeros(len(METRICS)))
            continue
        liked = {i for u, i, v, *_ in test.frame().iter_rows() if u == user and v >= 4}
        others = sorted(set("abcdefgh") - liked - ({"h"} if user == "ann" else set()))
        draws = list(itertools.combinations(others, 3))
        runs = {k: [i for i in lists[user] if i == item or i in draw] for k, draw in enumerate(draws)}
        many = cf.Ratings.of(list(runs), [item] * len(runs), [value] * len(runs))
        expected.append(cf.measure({"all": runs}, many, METRICS, threshold=4).values[0].mean(axis=1))
    np.testing.assert_allclose(found.values[0], np.array(expected).T)


@pytest.mark.parametrize("relevant", ["all", "one"])
def test_sampled_lists_agree_within_their_error(relevant, split):
    metrics = ["P@3", "nDCG@5", "RR"]
    (whole,) = cf.recommend(split, "popularity", length="all")
    exact = expected_over_draws(
        whole, split.test, metrics, nonrelevant=6, relevant=relevant, train=split.train, threshold=4
    )
    sampled = []
    for seed in range(30):
        (run,) = cf.recommend(split, "popularity", nonrelevant=6, relevant=relevant, threshold=4, seed=seed)
        sampled.append(cf.measure(run, split.test, metrics, threshold=4).average(by="list")[0])
    error = np.std(sampled, axis=0, ddof=1) / np.sqrt(30)
    assert (np.abs(exact.average(by="list")[0] - np.mean(sampled, axis=0)) < 4 * error).all()


def test_candidates_with_a_test_rating_are_fewer(split):
    few = cf.splits.predefined(split.train, split.test.keep(split.test.items % 3 > 0))
    (whole,) = cf.recommend(few, "random(seed=0)", length="all", candidates="test")
    options = {"nonrelevant": 4, "relevant": "one", "train": few.train, "threshold": 4, "candidates": "test"}
    exact = expected_over_draws(whole, few.test, "RR", **options).average(by="list").item()
    sampled = []
    for seed in range(30):
        options = {"nonrelevant": 4, "relevant": "one", "candidates": "test", "threshold": 4, "seed": seed}
        (run,) = cf.recommend(few, "random(seed=0)", **options)
        sampled.append(cf.measure(run, few.test, "RR", threshold=4).average(by="list").item())
    assert abs(exact - np.mean(sampled)) < 4 * np.std(sampled, ddof=1) / np.sqrt(30)


def test_drawing_all_candidates_is_the_whole_ranking(split):
    (whole,) = cf.recommend(split, "popularity", length="all", fill="random")
    exact = expected_over_draws(whole, split.test, ["P@3", "AP"], nonrelevant=10**6, train=split.train, threshold=4)
    np.testing.assert_allclose(exact.values, cf.measure(whole, split.test, ["P@3", "AP"], threshold=4).values)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": "bpref", "nonrelevant": 3}, "bpref has no exact expectation over draws"),
        ({"metrics": "P", "nonrelevant": 3}, "give it a cut-off"),
        ({"metrics": "P@3"}, "give either nonrelevant"),
        ({"metrics": "P@3", "nonrelevant": 3, "unrated": 2}, "give either nonrelevant"),
        ({"metrics": "P@3", "unrated": 3, "relevant": "one"}, "use nonrelevant"),
        ({"metrics": "P@3", "nonrelevant": 0}, "whole number of at least 1"),
    ],
)
def test_what_has_no_expectation_is_refused(options, message, split):
    (whole,) = cf.recommend(split, "popularity", length="all")
    with pytest.raises(cf.SettingError, match=message):
        expected_over_draws(whole, split.test, options.pop("metrics"), train=split.train, threshold=4, **options)


def test_lists_that_were_cut_are_refused(split):
    (short,) = cf.recommend(split, "popularity", length=5)
    with pytest.raises(cf.InputError, match="end at 5 of"):
        expected_over_draws(short, split.test, "P@3", nonrelevant=3, train=split.train, threshold=4)


def test_candidates_that_no_list_holds_are_noted_as_training_items_may_be(split):
    (whole,) = cf.recommend(split, "popularity", length="all")
    options = {"nonrelevant": 3, "threshold": 4}
    assert not _on_lists(expected_over_draws(whole, split.test, "P@3", train=split.train, **options))
    assert _on_lists(expected_over_draws(whole, split.test, "P@3", **options))


def _on_lists(scores):
    return [note for note in map(str, scores.notes) if "are in no list" in note and "train=" in note]
