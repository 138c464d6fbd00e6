"""Averages that look at all systems at once, and weights by training ratings or a column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cranfield as cf
from cranfield import SettingError
from cranfield.measures import risk, standardise

SYSTEMS = ["popularity", "random", "puresvd(factors=3)"]


@pytest.fixture(scope="module")
def split():
    return cf.splits.random(cf.simulate.world(60, 40, 1000, seed=2).ratings, train=0.7, seed=1)


@pytest.fixture(scope="module")
def scores(split):
    runs = cf.recommend(split, dict(zip(("pop", "rand", "svd"), SYSTEMS)), length=15)
    return cf.measure(runs, split.test, ["P@5", "nDCG@10"], threshold=4, train=split.train)


@pytest.mark.parametrize("name", ["urisk", "trisk", "georisk"])
@pytest.mark.parametrize("lower", [False, True])
def test_risk_averages_are_those_of_risk(scores, name, lower):
    measured = replace(scores, lower_is_better=(lower, lower), zero_if_undefined=())
    expected = risk(measured, "pop", alpha=5)[name].to_numpy().reshape(2, 3).T
    spelling = f"{name}(alpha=5)" if name == "georisk" else f"{name}(baseline=pop, alpha=5)"
    np.testing.assert_allclose(measured.average(spelling), expected, rtol=1e-12, equal_nan=True)
    frame = measured.frame(spelling)
    np.testing.assert_allclose(frame["mean"].to_numpy().reshape(3, 2), expected, rtol=1e-12, equal_nan=True)
    assert set(frame["average"]) == {spelling}


@pytest.mark.parametrize("form", ["z", "normal", "linear", "empirical"])
def test_standardised_averages_are_those_of_standardised_scores(scores, form):
    expected = standardise(replace(scores, values=np.nan_to_num(scores.values)), form=form).average()
    np.testing.assert_allclose(scores.average(f"standardised(form={form})"), expected, rtol=1e-12)


def test_systems_are_compared_by_their_urisk_and_their_standing(scores):
    for average in ("urisk(baseline=pop, alpha=2)", "standardised"):
        result = cf.compare(scores, average=average, significance="student")
        np.testing.assert_allclose(result.averages, scores.average(average, by="user"))
        assert f"average: {average}" in result.caption
    with pytest.raises(SettingError, match="cannot be compared by their georisk"):
        cf.compare(scores, average="georisk")


def test_a_table_without_intervals_names_no_method_of_one(scores):
    assert scores.table("trisk(baseline=pop)", level=0.95).caption.endswith("; interval: none")
    assert "interval: 95% Student's t" in scores.table(level=0.95).caption


def test_risk_averages_say_what_is_missing_or_wrong(scores):
    with pytest.raises(SettingError, match="urisk needs baseline"):
        scores.average("urisk")
    with pytest.raises(SettingError, match="there is no system 'popp'; did you mean 'pop'"):
        scores.average("trisk(baseline=popp)")
    with pytest.raises(SettingError, match="alpha=-1 of urisk is out of range"):
        scores.average("urisk(baseline=pop, alpha=-1)")


def test_lists_are_weighted_by_training_ratings(scores, split):
    counts = dict(split.train.frame().group_by("user").len().rows())
    weights = np.array([counts.get(user, 0) for user in scores.user_ids.ids(scores.users)])
    expected = (weights * np.nan_to_num(scores.values)).sum(axis=2) / weights.sum()
    np.testing.assert_allclose(scores.average("weighted(by=train)"), expected)
    compared = cf.compare(scores, average="weighted(by=train)", significance="student")
    np.testing.assert_allclose(compared.averages, expected)
    with pytest.raises(SettingError, match="needs the training ratings; give them as train"):
        replace(scores, trained=None).average("weighted(by=train)")


def test_lists_are_weighted_by_a_column_of_a_file(scores, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    users = scores.user_ids.ids(scores.users)
    spend = np.arange(len(users)) % 7
    (tmp_path / "users.csv").write_text("user,spend\n" + "\n".join(f"{u},{w}" for u, w in zip(users, spend)) + "\n")
    expected = (spend * np.nan_to_num(scores.values)).sum(axis=2) / spend.sum()
    np.testing.assert_allclose(scores.average("weighted(by=users.csv:spend)"), expected)
    for spelling, message in (
        ("weighted(by=wealth)", "write by=judged, relevant or train"),
        ("weighted(by=none.csv:spend)", "it is not a file"),
        ("weighted(by=users.csv:spent)", "there is no column 'spent'; did you mean 'spend'"),
    ):
        with pytest.raises(cf.CranfieldError, match=message):
            scores.average(spelling)
    (tmp_path / "few.csv").write_text(f"user,spend\n{users[0]},1\n")
    with pytest.raises(cf.CranfieldError, match="has no number of at least 0 in the column 'spend'"):
        scores.average("weighted(by=few.csv:spend)")
    (tmp_path / "twice.csv").write_text(f"user,spend\n{users[0]},1\n{users[0]},2\n")
    with pytest.raises(cf.CranfieldError, match="has more than one row"):
        scores.average("weighted(by=twice.csv:spend)")


def test_a_user_with_several_lists_weighs_as_much_as_one(scores):
    twice = cf.measures.join_folds([scores, scores])
    np.testing.assert_allclose(
        twice.average("weighted(by=train)", by="user"), scores.average("weighted(by=train)", by="user")
    )
