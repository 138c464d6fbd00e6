from __future__ import annotations

import numpy as np
import pytest

import cranfield as cf
from cranfield.reports import other_decisions, report
from cranfield.reports.decisions import further_metrics

pytestmark = pytest.mark.usefixtures("undrawn")

RUNS = {"a": {"ann": list("xyzuvw"), "bob": list("yxwvuz")}, "b": {"ann": list("wvuzyx"), "bob": list("zuxyvw")}}


def ratings(values=(5, 2, 4, 3)) -> cf.Ratings:
    return cf.Ratings.of(["ann", "ann", "bob", "bob"], ["x", "y", "y", "w"], list(values))


def test_every_value_of_the_scale_but_the_lowest_is_a_threshold():
    found = list(other_decisions(cf.read_runs(RUNS), ratings(), ["P@5"]))
    assert [(one.step.settings["threshold"], one.step.settings["lists"]) for one in found] == [
        (3.0, "full"), (3.0, "condensed"), (4.0, "full"), (4.0, "condensed"), (5.0, "full"), (5.0, "condensed"),
    ]  # fmt: skip


def test_each_is_what_measure_says():
    runs, test = cf.read_runs(RUNS), ratings()
    for one in other_decisions(runs, test, ["nDCG@5"]):
        settings = one.step.settings
        same = cf.measure(runs, test, one.metrics, threshold=settings["threshold"], lists=settings["lists"])
        assert np.array_equal(one.values, same.values, equal_nan=True)


def test_feedback_of_one_value_has_one_threshold():
    assert len(list(other_decisions(cf.read_runs(RUNS), ratings((1, 1, 1, 1)), ["P@5"], lists=["full"]))) == 1


def test_a_long_scale_is_cut_into_five_equal_parts():
    test = cf.Ratings.of(["ann"] * 100, list(range(100)), list(range(1, 101)))
    runs = cf.read_runs({"a": {"ann": [1, 2, 3]}})
    found = [one.step.settings["threshold"] for one in other_decisions(runs, test, ["P@3"], lists=["full"])]
    assert found == [21, 41, 61, 81]


def test_ndcg_is_taken_with_other_gains_and_nothing_goes_beyond_the_lists():
    assert further_metrics(["nDCG@10"], 12) == [
        "nDCG@5", "nDCG@10", "nDCG(gain=exp)@5", "nDCG(gain=exp)@10", "nDCG(gain=binary)@5", "nDCG(gain=binary)@10",
    ]  # fmt: skip
    assert further_metrics(["P@20"], 6) == ["P@5", "P@20"]


def test_lists_with_one_relevant_item_are_left_as_they_are():
    world = cf.simulate.world(users=60, items=40, ratings=1200)
    split = cf.splits.random(world.ratings, train=0.8)
    runs = cf.recommend(split, ["random", "popularity"], relevant="one", nonrelevant=10, threshold=4)
    assert list(other_decisions(runs, split.test, ["RR"])) == []
    scores = cf.measure(runs, split.test, ["RR", "P@1"], threshold=4)
    assert "Kendall" in report(scores, cf.compare(scores), variants=other_decisions(runs, split.test, ["RR"]))
