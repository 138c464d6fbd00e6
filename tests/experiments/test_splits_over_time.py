"""Experiments over windows of time, with cold users and with users who are held out whole."""

from __future__ import annotations

import polars as pl
import pytest

from cranfield import SettingError
from cranfield.experiments import Decisions, Results, Source, System, plan, run
from cranfield.experiments.stages import MODELS


@pytest.fixture(scope="module")
def made(tiny, tmp_path_factory):
    """Run the small experiment under a split; an experiment with the same split is run once."""
    results = {}

    def make(split, **decisions):
        key = (split, *decisions.items())
        if key not in results:
            stated = Decisions(split=split, metrics=("nDCG@10", "P@5"), **decisions)
            systems = (System("popularity", "popularity"), System("near", "knn(k=5)"))
            folder = tmp_path_factory.mktemp("split") / "out"
            results[key] = run(tiny(systems=systems, decisions=stated), folder)
        return results[key]

    return make


ROLLING = "rolling(windows=3, horizon=40d)"


def test_the_average_over_windows_is_the_mean_of_theirs(made):
    averages = made(ROLLING).averages()
    whole = averages.filter(pl.col("fold").is_null()).sort("system", "metric")
    each = averages.filter(pl.col("fold").is_not_null()).group_by("system", "metric").agg(pl.col("mean").mean())
    assert averages["fold"].max() == 3
    assert whole["mean"].to_list() == pytest.approx(each.sort("system", "metric")["mean"].to_list())


def test_the_verdict_says_whether_the_winner_is_stable(made):
    results = made(ROLLING)
    said = "\n".join(results.sentences("tiny"))
    assert "The test over users applies to these windows" in said
    assert "no p-value with fewer than 6 windows" in said
    assert Results(results.path).sentences("tiny") == results.sentences("tiny")


def test_nothing_is_trained_twice_for_windows_that_end_alike(made, tiny, tmp_path):
    """One window is the plain split at its cut, and its models are those of the last of several windows."""
    results = made(ROLLING)
    decisions = results.experiment.decisions.with_(split="rolling(windows=1, horizon=40d)")
    one = run(tiny(systems=results.experiment.systems, decisions=decisions), tmp_path / "out")
    last, alone = (kind.line.artifact(MODELS, kind.line.units("cell")[-1]) for kind in (results, one))
    assert last.key == alone.key
    of_last = results.averages().filter(pl.col("fold") == 3).select("system", "metric", "mean")
    alone = one.averages().filter(pl.col("fold").is_null()).select("system", "metric", "mean")
    assert of_last.rows() == alone.rows()


def test_windows_are_averaged_by_means_only():
    with pytest.raises(SettingError, match="averages each window and then the windows"):
        Decisions(split=ROLLING, average="median", significance="sign")


def test_new_users_are_shown_apart(made):
    results = made("temporal(train=0.6, new_users=apart)", new_users="served")
    assert [segment.segments.names for segment in results.segments("tiny")] == [("warm", "cold")]
    assert any(sentence.startswith("cold_users, cold (") for sentence in results.sentences("tiny"))
    assert all(task.state == "kept" for task in plan(results.experiment, results.path).tasks)


def test_a_split_without_new_items_says_that_they_are_not_apart(made):
    results = made("temporal(train=0.9, new_items=apart)")
    assert results.segments("tiny") == ()
    assert any("not shown separately" in sentence for sentence in results.sentences("tiny"))


def test_cold_users_are_shown_beside_warm_ones(made):
    results = made("cold_users(left=2, warm=0.2)")
    (segment,) = results.segments("tiny")
    assert segment.segments.name == "cold_users(most=2)"


def test_cold_users_without_a_list_are_refused_before_anything_is_trained(tiny):
    with pytest.raises(SettingError, match="set new_users='served', or leave them some ratings"):
        tiny(decisions={"split": "cold_users(users=0.3)"})


def test_items_that_no_system_can_recommend_are_refused_before_anything_is_trained(tiny):
    with pytest.raises(SettingError, match="none of the systems can recommend"):
        tiny(decisions=Decisions(split="cold_items(items=0.3)"))
    tiny(decisions=Decisions(split="cold_items(items=0.3, left=1)"))
    tiny(decisions=Decisions(split="cold_items(items=0.3)", fill="popularity"))


def test_held_out_users_are_measured_by_lists_from_their_input(made):
    results = made("strong_generalisation(users=0.3, given=0.5)")
    (part,) = results.measured("tiny")
    assert part.test.user_counts[part.train.user_counts > 0].sum() == 0
    assert results.averages()["coverage"].min() == 1
    assert results.averages()["mean"].min() > 0


def test_a_system_that_cannot_score_profiles_is_refused_before_anything_is_trained(tiny):
    with pytest.raises(SettingError, match=r"systems\.random cannot score from a profile alone"):
        tiny(decisions={"split": "strong_generalisation"})


def test_times_are_needed_before_anything_is_trained(tiny):
    source = Source("timeless", simulate="world(users=60, items=40, ratings=900, times=false)")
    with pytest.raises(SettingError, match=r"needs times, and data\.timeless has none"):
        tiny(data=(source,), decisions={"split": "rolling"})
