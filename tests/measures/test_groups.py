"""Groups of lists: averages within each group, then over the groups (P1R), and comparisons of these averages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield.measures import Averaging
from cranfield.measures.averages import over_groups

LISTS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.floats(0, 1), st.floats(0, 1), st.integers(1, 5)),
    min_size=1,
    max_size=20,
)


def _scores(rows, names=("low", "middle", "high")) -> cf.Scores:
    """Make scores of two systems from rows of user, group, two values and the number of judged items."""
    users, groups, first, second, judged = zip(*rows)
    n = len(rows)
    return cf.Scores(
        systems=("a", "b"),
        metrics=("m",),
        values=np.array([[first], [second]], dtype=float),
        covered=np.ones((2, n), dtype=bool),
        users=np.array(users, dtype=np.int32),
        user_ids=cf.tables.Vocabulary.of(range(5)),
        judged=np.array(judged, dtype=np.int64),
        relevant=np.array(judged, dtype=np.int64),
        lower_is_better=(False,),
        groups=np.array(groups, dtype=np.int16),
        group_names=names,
    )


def _by_hand(rows, system, by, weighted):
    """Mean over the groups with a list of the mean within each."""
    means = []
    for group in sorted({row[1] for row in rows}):
        lists = [(row[0], row[2 + system], row[4]) for row in rows if row[1] == group]
        if by == "user":
            per_user = {}
            for user, value, weight in lists:
                per_user.setdefault(user, []).append((value, weight))
            lists = [
                (user, np.mean([value for value, _ in own]), sum(weight for _, weight in own))
                for user, own in per_user.items()
            ]
        weights = [weight if weighted else 1 for *_, weight in lists]
        means.append(np.average([value for _, value, _ in lists], weights=weights))
    return np.mean(means)


@given(LISTS, st.sampled_from(["list", "user"]), st.sampled_from(["mean", "weighted(by=judged)"]))
def test_equal_groups_are_the_mean_over_groups_of_the_mean_within_each(rows, by, average):
    found = _scores(rows).average(average, by=by, groups="equal")
    expected = [_by_hand(rows, system, by, average != "mean") for system in (0, 1)]
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-12, atol=1e-12)


@given(LISTS, st.sampled_from(["list", "user"]))
def test_a_comparison_is_of_the_averages_that_are_reported(rows, by):
    scores = _scores(rows)
    row = cf.compare(scores, significance="student", by=by, groups="equal").frame(detail=True).row(0, named=True)
    means = scores.average(by=by, groups="equal")[:, 0]
    np.testing.assert_allclose([row["mean_a"], row["mean_b"]], means, rtol=1e-12, atol=1e-12)


@given(st.lists(st.tuples(*[st.floats(0, 1)] * 6), min_size=3, max_size=8), st.sampled_from(["student", "permutation"]))
def test_where_every_user_is_in_every_group_a_user_s_value_is_the_mean_over_groups(values, test):
    # Two lists in group 0 and one in group 1, for each user and system.
    rows = [
        (user, group, own[place], own[place + 3], 1)
        for user, own in enumerate(values)
        for place, group in enumerate((0, 0, 1))
    ]
    scores = replace(_scores(rows, ("low", "high")), user_ids=cf.tables.Vocabulary.of(range(8)))
    found = cf.compare(scores, significance=test, groups="equal").frame(detail=True)
    plain = {
        name: [(np.mean(own[at : at + 2]) + own[at + 2]) / 2 for own in values] for name, at in (("a", 0), ("b", 3))
    }
    expected = cf.compare(plain, significance=test).frame(detail=True)
    for column in ("mean_a", "mean_b", "p", "lower", "upper"):
        np.testing.assert_allclose(found[column].to_numpy(), expected[column].to_numpy(), rtol=1e-7, atol=1e-9)


def test_a_single_group_is_the_plain_average_with_its_interval():
    rows = [(user, 0, user / 5, 0.5, 1) for user in range(5)]
    scores = _scores(rows, ("all",))
    plain, equal = scores.frame(), scores.frame(groups="equal")
    for name in ("mean", "lower", "upper", "lists"):
        np.testing.assert_allclose(plain[name].to_numpy(), equal[name].to_numpy(), rtol=1e-12)
    assert set(equal["average"]) == {"mean of groups"}
    assert "groups: equal" in scores.table(groups="equal").caption


def test_lists_without_a_group_and_groups_without_a_list_are_left_out():
    rows = [(0, 0, 0.2, 0.1, 1), (1, 2, 0.8, 0.3, 1), (2, 1, 0.9, 0.9, 1)]
    scores = _scores(rows)
    scores = replace(scores, groups=np.array([0, 2, -1], dtype=np.int16))
    np.testing.assert_allclose(scores.average(groups="equal")[:, 0], [0.5, 0.2])
    assert scores.frame(groups="equal")["lists"].to_list() == [2, 2]
    assert scores.by_group().filter(pl.col("group") == "middle")["lists"].to_list() == [0, 0]


def test_undefined_and_missing_lists_count_as_decided_within_their_group():
    rows = [(0, 0, 1.0, 0.5, 1), (1, 0, np.nan, 0.5, 1), (2, 1, 0.4, 0.4, 1), (3, 1, 0.0, 0.4, 1)]
    scores = _scores(rows, ("low", "high"))
    covered = scores.covered.copy()
    covered[0, 3] = False
    scores = replace(scores, covered=covered)
    assert scores.average(groups="equal")[0, 0] == pytest.approx((0.5 + 0.2) / 2)
    assert scores.average(groups="equal", undefined="leave out")[0, 0] == pytest.approx((1.0 + 0.2) / 2)
    assert scores.average(groups="equal", coverage="reduced")[0, 0] == pytest.approx((0.5 + 0.4) / 2)
    # A pair is compared over the lists for which both have a value.
    row = cf.compare(scores, significance="student", groups="equal", undefined="leave out", coverage="reduced").frame(
        detail=True
    )
    assert row.select("mean_a", "mean_b", "n").row(0) == pytest.approx(((1.0 + 0.4) / 2, (0.5 + 0.4) / 2, 2))


def test_each_group_by_itself_is_what_measuring_its_lists_gives():
    test = cf.Ratings.of(["ann", "bob", "cid"], ["x", "y", "x"])
    runs = {"mine": {"ann": ["x"], "bob": ["z", "y"], "cid": ["z", "w", "x"]}}
    scores = cf.measure(runs, test, "RR", groups={"ann": "old", "bob": "new", "cid": "new"})
    found = {row["group"]: row["mean"] for row in scores.by_group().iter_rows(named=True)}
    assert found == {"new": pytest.approx((1 / 2 + 1 / 3) / 2), "old": 1.0}
    assert scores.average(groups="equal")[0, 0] == pytest.approx((1.0 + 5 / 12) / 2)
    assert scores.per_user()["group"].to_list() == ["old", "new", "new"]
    assert scores.group("old").n_lists == 1


def test_groups_come_with_runs_and_go_through_judged_lists_and_files(tmp_path):
    vocabulary, items = cf.tables.Vocabulary.of(["ann", "bob"]), cf.tables.Vocabulary.of(["x", "y", "z"])
    run = cf.Run(
        name="one", user_ids=vocabulary, item_ids=items, users=np.array([0, 0, 1], dtype=np.int32),
        indptr=np.arange(4), items=np.array([1, 0, 1], dtype=np.int32), ranks=np.array([4, 1, 2], dtype=np.int32),
        lengths=np.full(3, 9, dtype=np.int32), one_relevant=True, groups=np.array([1, 0, 1], dtype=np.int16),
        group_names=("head", "tail"),
    )  # fmt: skip
    test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "y"])
    judged = cf.judge(run, test)
    back = cf.read_judged(cf.write_judged(judged, tmp_path / "one.npz"), test)
    for one in (judged, back):
        scores = cf.measure(one, metrics="RR")
        assert (scores.groups.tolist(), scores.group_names) == ([0, 1, 1], ("head", "tail"))
        assert scores.average(groups="equal")[0, 0] == pytest.approx((1.0 + (1 / 4 + 1 / 2) / 2) / 2)
    assert judged.only(np.array([True, False, True])).groups.tolist() == [0, 1]


def test_systems_must_agree_on_the_groups_of_their_lists():
    test = cf.Ratings.of(["ann", "bob"], ["x", "y"])
    first = cf.judge({"one": {"ann": ["x"]}}, test, groups=["a", "b"])
    second = cf.judge({"two": {"ann": ["x"]}}, test, groups=["b", "a"])
    with pytest.raises(cf.InputError, match="two and one put lists into different groups"):
        cf.measure([first, second], metrics="RR")
    with pytest.raises(cf.InputError, match="there are 3 groups for 2 lists"):
        cf.judge({"one": {"ann": ["x"]}}, test, groups=["a", "b", "c"])


def test_what_cannot_be_averaged_over_groups_is_refused():
    scores = cf.measure({"one": {"ann": ["x"]}}, cf.Ratings.of(["ann"], ["x"]), "RR")
    with pytest.raises(cf.SettingError, match="these lists have no groups"):
        scores.frame(groups="equal")
    with pytest.raises(cf.SettingError, match="these lists have no groups"):
        scores.by_group()
    with pytest.raises(cf.SettingError, match="groups='equal' is an average of means"):
        Averaging(average="median", groups="equal")


def test_a_user_s_weight_is_the_sum_over_groups_of_one_over_their_size():
    values, weights = over_groups(
        np.array([[0.1, 0.2, 0.3, 0.8]]), np.array([0, 0, 1, 1]), None, np.array([7, 8, 7, 7])
    )
    # User 7: 1/2 of group 0 and all of group 1, where the two lists average 0.55; user 8: 1/2 of group 0.
    np.testing.assert_allclose(weights, [1.5, 0.5])
    np.testing.assert_allclose(values, [[(0.1 / 2 + 0.55) / 1.5, 0.2]])
