"""Averages over each system's own users, universes with few users, and presets on other scales."""

from __future__ import annotations

import numpy as np
import pytest

import cranfield as cf
from cranfield.audits import audit, plan_audit
from cranfield.audits.options import preset_options
from cranfield.experiments import Decisions, Experiment, Source, System

USERS = [f"u{k:03}" for k in range(100)]


@pytest.fixture(scope="module")
def lists():
    """One system serves everybody and often hits; the other serves 20 easy users and always hits there."""
    test = cf.Ratings.of(USERS, ["good"] * 100, [5.0] * 100)
    broad = {user: ["good" if k < 20 or k % 2 else "bad", "other"] for k, user in enumerate(USERS)}
    picky = {user: ["good", "other"] for user in USERS[:20]}
    return {"broad": broad, "picky": picky}, test


def _plain(lists, coverage):
    runs, test = lists
    return cf.measure(runs, test, "P@1").average(coverage=coverage)[:, 0].tolist()


def test_full_is_coverage_times_the_average_over_own_users(lists):
    full, own, reduced = (_plain(lists, coverage) for coverage in ("full", "own", "reduced"))
    assert full == pytest.approx([0.6, 0.2])
    assert own == pytest.approx([0.6, 1.0])  # broad is not excused for the 80 users whom picky leaves out
    assert reduced == pytest.approx([1.0, 1.0])
    assert full == pytest.approx(np.array(own) * [1.0, 0.2])
    frame = cf.measure(*lists, "P@1").frame(coverage="own")
    assert frame["mean"].to_list() == pytest.approx(own)


@pytest.mark.parametrize("average", ["mean", "weighted(by=relevant)", "median"])
def test_averages_over_own_users_are_those_of_brute_force(average):
    rng, items = np.random.default_rng(1), [f"i{k}" for k in range(6)]
    rows = [(user, item, float(rng.integers(1, 6))) for user in USERS[:30] for item in items[:4]]
    test = cf.Ratings.of(*zip(*rows))
    runs = {
        name: {user: rng.permutation(items).tolist() for user in USERS[start:end]}
        for name, start, end in (("a", 0, 20), ("b", 5, 30))
    }
    vary = {"coverage": ["full", "own"], "average": ["mean", average] if average != "mean" else ["mean", "median"]}
    found = audit(runs, test=test, metric="P@2", vary=vary, threshold=4)
    scores = cf.measure(runs, test, "P@2", threshold=4)
    of_own = []
    for s in range(2):
        served = scores.covered[s]
        weights = scores.relevant[served] if average.startswith("weighted") else np.ones(served.sum())
        values = np.nan_to_num(scores.values[s, 0, served])
        of_own.append(np.median(values) if average == "median" else np.average(values, weights=weights))
    assert scores.average(average, coverage="own")[:, 0] == pytest.approx(of_own)
    assert any(column == pytest.approx(of_own) for column in found.averages.T)


def test_differences_over_other_users_are_not_tested(lists):
    with pytest.raises(cf.SettingError, match="coverage='own' averages each system over other users"):
        cf.compare(cf.measure(*lists, "P@1"), coverage="own")


def test_an_experiment_with_several_systems_cannot_start_from_averages_over_other_users():
    with pytest.raises(cf.SettingError, match=r"coverage='own' averages systems over other users.*open it in \[audit"):
        Experiment(decisions=Decisions(coverage="own"))


def test_the_pitfall_of_forgiving_a_system_over_its_own_users_can_be_opened(lists):
    runs, test = lists
    found = audit(runs, test=test, metric="P@1", vary={"coverage": ["full", "own"]})
    assert found.averages.argmax(axis=0).tolist() == [0, 1]  # broad leads, and over own users picky does


def test_over_own_users_it_counts_how_many_the_system_with_the_fewest_has(lists):
    runs, test = lists
    few = {"broad": runs["broad"], "picky": {user: runs["picky"][user] for user in USERS[:6]}}
    found = audit(few, test=test, metric="P@1", vary={"coverage": ["full", "own"], "cutoff": [1, 2]})
    assert found.averages.argmax(axis=0).tolist() == [0, 0]


def test_universes_with_few_users_are_marked_and_do_not_count(lists):
    runs, test = lists
    few = {"broad": runs["broad"], "picky": {user: runs["picky"][user] for user in USERS[:6]}}
    vary = {"coverage": ["full", "reduced"], "cutoff": [1, 2]}
    by_default = audit(few, test=test, metric="P@1", vary=vary)
    assert by_default.averages.shape[1] == 2
    assert any("6 of 100 users count, fewer than 10" in str(note) for note in by_default.notes)
    assert audit(few, test=test, metric="P@1", vary=vary, fewest=5).averages.shape[1] == 4
    assert audit(few, test=test, metric="P@1", vary=vary, fewest=0).averages.shape[1] == 4
    with pytest.raises(cf.SettingError, match=r"audit\.fewest=-1 is neither a share"):
        audit(few, test=test, metric="P@1", vary=vary, fewest=-1)


@pytest.mark.parametrize(
    ("scale", "thresholds"),
    [
        ((1, 5), (3.0, 4.0, 5.0)),
        ((0.5, 5), (3.0, 4.0, 5.0)),
        ((1, 10), (6.0, 8.0, 10.0)),
        ((1, 4), (3.0, 4.0)),
        ((0, 100), None),  # counts
        ((1, 1), None),
    ],
)
def test_thresholds_of_presets_follow_the_scale(scale, thresholds):
    for name in ("usual", "measuring"):
        assert preset_options(name, scale).get("threshold") == thresholds


def test_a_plan_knows_the_scale_of_its_file(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(u, i, r) for u in range(40) for i, r in zip(rng.permutation(30)[:15], rng.integers(1, 11, 15))]
    cf.write(cf.Ratings.of(*zip(*rows)), tmp_path / "ratings.csv")
    experiment = Experiment(
        data=(Source("ten", file=str(tmp_path / "ratings.csv")),),
        systems=(System("popularity", "popularity"), System("average", "average")),
        audit={"preset": "measuring"},
    )
    shown = str(plan_audit(experiment, tmp_path / "out"))
    assert "6, 8, 10" in shown
