"""Which ratings are relevant in an experiment, and what is said where none is."""

from __future__ import annotations

import json

import pytest

from cranfield import simulate
from cranfield._errors import SettingError
from cranfield.experiments import Results, Source, plan, run


@pytest.fixture
def clicks(tmp_path):
    """A file of clicks: users and items, no ratings."""
    world = simulate.world(60, 40, 900).ratings
    users, items = world.user_ids.ids(world.users), world.item_ids.ids(world.items)
    path = tmp_path / "clicks.csv"
    path.write_text("user,item\n" + "\n".join(f"{u},{i}" for u, i in zip(users, items)) + "\n")
    return Source("clicks", file=str(path))


def test_clicks_are_relevant_from_1_and_ratings_from_4_unless_decided(tiny, tiny_folder, tmp_path, clicks):
    ratings, simulated = run(tiny(data=(clicks,)), tmp_path / "a"), Results(tiny_folder)
    assert ratings.decided("clicks").threshold == 1
    assert simulated.decided("tiny").threshold == 4
    assert ratings.averages()["mean"].min() > 0
    card = ratings.card()
    assert "relevant from 1 (P); nDCG: gain = rating" in card["phrase"]
    assert card["decisions"]["threshold"] == 1
    assert "relevant from 1" in str(ratings.findings("clicks").table().caption)
    assert "relevant from 4 (P); nDCG: gain = rating" in simulated.card()["phrase"]


def test_each_set_of_ratings_has_its_own_usual_threshold(tiny, tmp_path, clicks):
    decisions = {"metrics": ("P@10", "RR@10")}
    results = run(tiny(data=(clicks, *tiny().data), decisions=decisions), tmp_path / "out")
    assert results.card()["thresholds"] == {"clicks": 1.0, "tiny": 4.0}
    asked = [item["reported"] for item in results.card()["checklist"] if "makes an item relevant" in item["asked"]]
    assert asked == ["clicks: relevant from 1, tiny: relevant from 4"]


@pytest.mark.parametrize("way", [run, plan])
def test_a_threshold_above_every_rating_is_an_error_before_any_training(tiny, tmp_path, way):
    with pytest.raises(SettingError, match="no test rating is 6 or more; the highest is 5; lower threshold="):
        way(tiny(decisions={"threshold": 6, "metrics": ("P@10", "RR@10")}), tmp_path / "out")
    assert not list(tmp_path.glob("out/models/*"))


def test_a_dry_run_says_which_metrics_have_no_value(tiny, tmp_path):
    said = str(plan(tiny(decisions={"threshold": 6, "metrics": ("P@10", "nDCG@10")}), tmp_path / "out"))
    assert said.splitlines()[-1] == (
        "tiny: P@10: nothing can be said, since no test rating is 6 or more; the highest is 5"
    )


def test_a_metric_with_a_value_all_the_same_is_measured_and_nobody_is_best_by_the_others(tiny, tmp_path):
    results = run(tiny(decisions={"threshold": 6, "metrics": ("P@10", "nDCG@10")}), tmp_path / "out")
    first, second, once = results.sentences("tiny")
    assert first.startswith("nDCG@10: ")
    assert second == "P@10: nothing can be said, since no test rating is 6 or more; the highest is 5."
    assert json.loads((tmp_path / "out/results/tiny/results.json").read_text())["sentences"] == [first, second, once]
