"""Neutral designs on given lists, against lists that were ranked for them and against every completion."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import cranfield as cf
from cranfield.biases.given_lists import CodedLists, among_targets, each_relevant_alone, over_draws, uniform_thinning
from cranfield.biases.protocols import levelled, protocols_of_data
from cranfield.facts import bias as bias_facts
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


@pytest.mark.parametrize("number", [1, 3])
def test_over_draws_a_rank_is_one_plus_the_drawn_items_above(short, number):
    split, run = short
    tested = np.zeros(split.test.n_items, dtype=np.int64)
    every = np.ones(len(split.test), dtype=bool)
    tied = each_relevant_alone(CodedLists.of(cf.judge(run, split.test, threshold=4), split), tested, every)
    metrics = [Metric.of(metric) for metric in ("P@2", "nDCG@3", "RR", "HitRate@1")]
    found = np.mean([[metric(over_draws(tied, number, seed)) for metric in metrics] for seed in range(400)], axis=0)
    expected = []
    for user, item, value, *_ in split.test.frame().iter_rows():
        if value < 4:
            continue
        if user == "cid":  # has no list
            expected.append(np.zeros(len(metrics)))
            continue
        others = set("abcdef") - {other for other, rating in _of(split, user).items() if rating >= 4}
        shown, rankings = {"ann": "ca", "bob": "fdb"}[user], []
        for whole in _completions(shown, others | {item}):
            for drawn in itertools.combinations(sorted(others), min(number, len(others))):
                rankings.append([one for one in whole if one in (*drawn, item)])
        expected.append(_means(rankings, {item: value}, metrics))
    np.testing.assert_allclose(found, np.array(expected).T, atol=0.05)


def test_over_draws_what_is_listed_has_an_exact_expectation(split):
    (whole,) = cf.recommend(split, "knn(k=5)", length="all", fill="random")
    every, group = np.ones(len(split.test), dtype=bool), np.zeros(split.test.n_items, dtype=np.int64)
    tied = each_relevant_alone(CodedLists.of(cf.judge(whole, split.test, threshold=4), split), group, every)
    exact = Metric.of("P@3")(over_draws(tied, 8, seed=0))
    assert exact.tolist() == Metric.of("P@3")(over_draws(tied, 8, seed=1)).tolist()
    given = {"train": split.train, "nonrelevant": 8, "relevant": "one", "threshold": 4}
    np.testing.assert_allclose(exact, cf.biases.expected_over_draws(whole, split.test, "P@3", **given).values[0, 0])


def test_levelled_lists_are_as_precise_at_random_as_stated():
    relevant = np.random.default_rng(0).integers(0, 12, 50)
    for rho in (0.03, 0.1, 0.4):
        away = [abs((relevant / (relevant + n)).mean() - rho) for n in range(1, 400)]
        assert levelled(relevant, rho, 400) == 1 + int(np.argmin(away))
    assert levelled(relevant, 0.0001, 400) == 400


@pytest.fixture(scope="module")
def world():
    return cf.simulate.world(80, 60, 1_800, seed=2).ratings


def test_trained_systems_have_the_values_that_lists_with_drawn_items_have_on_average(world):
    metric = Metric.of("nDCG@5")
    made = protocols_of_data(world, ["popularity", "ease"], metric, 4.0, 3, 9, "list", 1, 5, 1)
    means = {name: scores.average(averaging)[:, 0] for name, scores, averaging in made.every}
    split = cf.splits.random(world, train=0.8, seed=5)
    (among,) = [note.nonrelevant for note in made.notes if isinstance(note, bias_facts.Levelled)]
    designs = {
        "1R": {"relevant": "one", "candidates": "test", "nonrelevant": 9},
        "AR-NN": {"candidates": "test", "nonrelevant": among},
    }
    for name, design in designs.items():
        drawn = np.array(
            [
                cf.measure(
                    cf.recommend(split, ["popularity", "ease"], length="all", threshold=4, seed=seed, **design),
                    split.test, "nDCG@5", threshold=4,
                ).average(by="list" if name == "1R" else "user")[:, 0]
                for seed in range(30)
            ]
        )  # fmt: skip
        error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
        assert (np.abs(drawn.mean(axis=0) - means[name]) < 4 * error).all()


def test_the_control_of_uar_is_as_precise_at_random(world):
    made = protocols_of_data(world, ["random(seed=1)"], Metric.of("P@5"), 4.0, 3, 9, "list", 20, 0, 1)
    means = {name: scores.frame(averaging).row(0, named=True) for name, scores, averaging in made.every}
    error = np.hypot(*((means[name]["upper"] - means[name]["lower"]) / 3.92 for name in ("AR-NN", "UAR")))
    assert abs(means["AR-NN"]["mean"] - means["UAR"]["mean"]) < 3 * error


def test_splits_are_repetitions_and_one_relevant_designs_are_averaged_over_lists(world):
    made = protocols_of_data(world, ["popularity", "ease"], Metric.of("P@5"), 4.0, 3, 9, "list", 3, 0, 1)
    for name, scores, averaging in made.every:
        assert set(scores.repetitions.tolist()) == {0, 1, 2}
        if name in ("1R", "U1R"):
            np.testing.assert_allclose(scores.average(averaging), scores.average(by="list"))
        if name == "P1R":
            np.testing.assert_allclose(scores.average(averaging), scores.average(by="list", groups="equal"))


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
