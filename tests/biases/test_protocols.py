"""Neutral designs on given lists, against lists that were ranked for them and against every completion."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import cranfield as cf
from cranfield.biases.protocols import CodedLists, among_targets, each_relevant_alone, uniform_thinning
from cranfield.metrics import Metric
from cranfield.splits import popularity_groups

METRICS = ["P@2", "nDCG@3", "RR", "AP", "HitRate@1"]


@pytest.mark.parametrize("system", ["popularity", "random"])
def test_on_whole_lists_ranks_among_a_percentile_are_those_of_lists_made_for_it(system, split):
    groups = popularity_groups(split.train, 3)
    grouped = replace(split, item_groups=groups)
    (made,) = cf.recommend(
        grouped, system, relevant="one", candidates="group", length="all", threshold=4, fill="random"
    )
    (whole,) = cf.recommend(split, system, length="all", fill="random")
    every = np.ones(len(split.test), dtype=bool)
    found = each_relevant_alone(
        CodedLists.of(cf.judge(whole, split.test, threshold=4), split), groups.astype(np.int64), every, ["0", "1", "2"]
    )
    keep = groups[made.items] >= 0
    assert found.judgments.users.tolist() == made.users[keep].tolist()
    assert found.judgments.items.tolist() == made.items[keep].tolist()
    assert found.ranks.tolist() == made.ranks[keep].tolist() == found.tied_to.tolist()
    assert found.lengths.tolist() == made.lengths[keep].tolist()
    assert found.groups.tolist() == groups[made.items[keep]].tolist()


def test_thinned_test_ratings_are_as_many_for_every_item_and_as_many_as_possible(split):
    thin = uniform_thinning(split.test, seed=2)
    assert set(split.test.keep(thin.kept).item_counts.tolist()) == {0, thin.each}
    every = split.test.item_counts
    assert thin.kept.sum() == max(each * int((every >= each).sum()) for each in range(1, every.max() + 1))
    assert (uniform_thinning(split.test, seed=3).kept != thin.kept).any()


@pytest.fixture(scope="module")
def short():
    """Short lists of two users over seven items; cid's list is missing."""
    train = cf.Ratings.of(["ann", "bob", *["dan"] * 7], list("gg") + list("abcdefg"))
    test = cf.Ratings.of(["ann"] * 4 + ["bob"] * 2 + ["cid"], list("abde") + list("bc") + ["a"], [5, 4, 2, 4, 4, 5, 4])
    split = cf.splits.predefined(train, test)
    run = cf.read_run({"ann": list("ca"), "bob": list("fdb")}, name="short")
    return split, run


def _completions(shown, candidates):
    rest = sorted(candidates - set(shown))
    return [[item for item in shown if item in candidates] + list(order) for order in itertools.permutations(rest)]


def _means(rankings, profile, metrics):
    users = range(len(rankings))
    many = cf.Ratings.of(
        [u for u in users for _ in profile],
        [i for _ in users for i in profile],
        [v for _ in users for v in profile.values()],
    )
    runs = {"all": {u: rankings[u] for u in users}}
    return cf.measure(runs, many, metrics, threshold=4).values[0].mean(axis=1)


def _of(split, user):
    return {item: value for who, item, value, *_ in split.test.frame().iter_rows() if who == user}


def test_alone_the_value_is_the_mean_over_all_completions_of_a_short_list(short):
    split, run = short
    lists = {"ann": "ca", "bob": "fdb"}
    every = np.ones(len(split.test), dtype=bool)
    found = each_relevant_alone(
        CodedLists.of(cf.judge(run, split.test, threshold=4), split),
        np.zeros(split.test.n_items, dtype=np.int64),
        every,
    )
    expected = []
    for user, item, value, *_ in split.test.frame().iter_rows():
        if value < 4:
            continue
        if user == "cid":  # has no list
            expected.append(np.zeros(len(METRICS)))
            continue
        liked = {other for other, rating in _of(split, user).items() if rating >= 4} - {item}
        expected.append(_means(_completions(lists[user], set("abcdef") - liked), {item: value}, METRICS))
    np.testing.assert_allclose([Metric.of(metric)(found) for metric in METRICS], np.array(expected).T)


def test_together_the_value_is_the_mean_over_all_completions_of_a_short_list(short):
    split, run = short
    thin = uniform_thinning(split.test)
    names = split.test.item_ids.ids(np.flatnonzero(thin.is_target)).to_list()
    kept = split.test.keep(thin.kept).frame()
    found = among_targets(CodedLists.of(cf.judge(run, split.test, threshold=4), split), thin)
    expected = []
    for user in sorted(set(kept["user"])):
        profile = {item: value for who, item, value, *_ in kept.iter_rows() if who == user}
        if user == "cid":
            expected.append(np.zeros(len(METRICS)))
            continue
        gone = {item for item in _of(split, user) if item not in profile} | {"g"}
        shown = {"ann": "ca", "bob": "fdb"}[user]
        expected.append(_means(_completions(shown, set(names) - gone), profile, METRICS))
    values = np.array([Metric.of(metric)(found) for metric in METRICS])
    np.testing.assert_allclose(values, np.array(expected).T)


def test_one_relevant_runs_are_refused(split):
    (run,) = cf.recommend(split, "popularity", relevant="one", nonrelevant=5, threshold=4)
    with pytest.raises(cf.SettingError, match="keeps no lists"):
        CodedLists.of(cf.judge(run, split.test, threshold=4), split)
