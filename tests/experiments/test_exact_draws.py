"""`draws = "exact"`: metrics of an experiment are the expectation over all draws of targets."""

from __future__ import annotations

import numpy as np
import pytest

import cranfield as cf
from cranfield.experiments import Decisions, System, run
from cranfield.experiments.stages.data import split_of
from cranfield.experiments.stages.documents import paragraph

METRICS = ("P@5", "nDCG@5", "RR", "AP@10")
DESIGNS = {
    "1R": {"relevant": "one", "nonrelevant": 9, "candidates": "test"},
    "P1R": {"relevant": "one", "nonrelevant": 6, "candidates": "group", "split": "percentiles(groups=4)"},
    "NN": {"nonrelevant": 9},
    "unrated": {"unrated": 5},
}


def _measured(tiny, folder, **decisions):
    systems = (System("popularity", "popularity"), System("near", "knn(k=5)"))
    stated = Decisions(**{"metrics": METRICS, "significance": "student", "threshold": 4, **decisions})
    return run(tiny(systems=systems, decisions=stated), folder)


@pytest.mark.parametrize("design", DESIGNS)
def test_it_is_what_sampled_lists_give_on_average(design, tiny, tmp_path):
    results = _measured(tiny, tmp_path / "out", draws="exact", **DESIGNS[design])
    exact = results.findings("tiny").scores
    split = split_of(results.line, results.line.units("part")[0])
    options = {name: value for name, value in DESIGNS[design].items() if name != "split"}
    sampled = []
    for seed in range(12):
        drawn = cf.recommend(split, "popularity", threshold=4, seed=seed, **options)
        sampled.append(cf.measure(drawn, split.test, METRICS, threshold=4).average(by="list"))
    error = np.std(sampled, axis=0, ddof=1) / np.sqrt(len(sampled))
    assert (np.abs(exact.average(by="list")[:1] - np.mean(sampled, axis=0)) < 5 * error + 1e-9).all()


@pytest.mark.parametrize("relevant", ["all", "one"])
def test_the_file_and_the_function_give_the_same(relevant, tiny, tmp_path):
    results = _measured(tiny, tmp_path / "out", draws="exact", nonrelevant=9, relevant=relevant)
    split = split_of(results.line, results.line.units("part")[0])
    whole = cf.recommend(split, ["popularity", "knn(k=5)"], length="all")
    given = cf.biases.expected_over_draws(
        whole, split.test, METRICS, nonrelevant=9, relevant=relevant, train=split.train, threshold=4
    )
    np.testing.assert_allclose(results.findings("tiny").scores.values, given.values)


def test_seeds_do_not_change_it(tiny, tmp_path):
    values = []
    for seed in (1, 2):
        stated = {"draws": "exact", "nonrelevant": 9, "split": "random(train=0.8, seed=3)"}
        systems = (System("popularity", "popularity"),)
        decisions = Decisions(metrics=METRICS, threshold=4, **stated)
        results = run(tiny(systems=systems, decisions=decisions, seed=seed), tmp_path / f"out{seed}")
        values.append(results.findings("tiny").scores.values)
    np.testing.assert_array_equal(*values)


def test_lists_are_cut_as_sampled_ones_are(tiny, tmp_path):
    options = {"draws": "exact", "nonrelevant": 9, "relevant": "one", "metrics": ["RR", "RR@3"]}
    short = _measured(tiny, tmp_path / "short", length=3, **options).findings("tiny").scores
    np.testing.assert_array_equal(short.values[:, 0], short.values[:, 1])


def test_the_decision_is_said_in_the_card(tiny, tmp_path):
    results = _measured(tiny, tmp_path / "out", draws="exact", nonrelevant=9)
    assert "9 non-relevant items drawn, in expectation over all draws" in str(results.experiment.decisions)
    assert "in expectation over all draws" in (tmp_path / "out" / "card.md").read_text()
    assert "Metrics are exact expectations over all such draws" in paragraph(results.card())


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ({}, "none are drawn"),
        ({"nonrelevant": 9, "metrics": ["bpref"]}, "bpref has no exact expectation over draws"),
        ({"nonrelevant": 9, "metrics": ["P"]}, "give it a cut-off"),
        ({"nonrelevant": 9, "metrics": ["nDCG(rel=3)@5"]}, "no exact expectation"),
    ],
)
def test_what_has_no_expectation_is_refused(decisions, message):
    with pytest.raises(cf.SettingError, match=message):
        Decisions(draws="exact", **decisions)


def test_an_assessment_of_it_is_refused(tiny):
    with pytest.raises(cf.SettingError, match="set draws='sampled'"):
        tiny(decisions=Decisions(draws="exact", nonrelevant=9), assess={})


def test_results_by_group_of_items_need_lists_of_one_relevant_item(tiny, tmp_path):
    decisions = {"draws": "exact", "nonrelevant": 9, "segment": "popularity"}
    with pytest.raises(cf.SettingError, match="for a part of a list's test items; set draws='sampled'"):
        _measured(tiny, tmp_path / "all", **decisions)
    results = _measured(tiny, tmp_path / "one", relevant="one", **decisions)
    (segment,) = results.segments("tiny")
    assert {group.split(" ")[0] for group in segment.segments.frame()["group"]} >= {"head", "tail"}
