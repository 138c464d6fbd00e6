"""Calibrations and levels of relevance in an experiment: a decision, an artifact, and what follows from them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cranfield as cf
from cranfield import SettingError
from cranfield.experiments import Decisions, System, run
from cranfield.experiments.stages import CALIBRATED, JUDGED, MODELS
from cranfield.rankings import recommend

METRICS = ("nDCG@5", "SDCSE@5", "UpSell(margin=spread)@5", "PooledRMSE")
SYSTEMS = (System("mean", "average"), System("near", "knn(k=5)"))


@pytest.fixture(scope="module")
def calibrated(tiny, tmp_path_factory):
    decisions = Decisions(calibration="isotonic", levels="all", metrics=METRICS, significance="student")
    return run(tiny(decisions=decisions, systems=SYSTEMS), tmp_path_factory.mktemp("calibrated") / "out")


def test_an_experiment_calibrates_as_the_function_does(calibrated):
    measured = next(iter(calibrated.measured("tiny")))
    ratings = cf.simulate.world(users=60, items=40, ratings=900).ratings
    split = cf.splits.random(ratings, train=0.8, seed=0)
    runs = recommend(split, {"mean": "average", "near": "knn(k=5)"}, calibration="isotonic")
    by_hand = cf.measure(runs, split.test, METRICS, train=split.train, levels="all")
    scores = calibrated.findings("tiny").scores
    assert scores.metrics == by_hand.metrics
    np.testing.assert_array_equal(scores.values, by_hand.values)
    np.testing.assert_array_equal(scores.overall, by_hand.overall)
    assert [lists.run.calibration for lists in measured.judged] == [one.calibration for one in runs]


def test_what_was_fitted_is_kept_and_only_the_calibration_is_made_anew(calibrated, tiny):
    line, (cell, _) = calibrated.line, calibrated.line.units("cell")
    facts = line.artifact(CALIBRATED, cell).facts
    record = json.loads(line.artifact(CALIBRATED, cell).path().read_text(encoding="utf-8"))
    assert (record["method"], record["spread"]) == ("own", facts["spread"])
    other = calibrated.experiment.decisions.with_(calibration="linear")
    before = line.artifact(MODELS, cell).key, line.artifact(CALIBRATED, cell).key
    again = run(tiny(decisions=other, systems=SYSTEMS), calibrated.path)
    assert again.line.artifact(MODELS, again.line.units("cell")[0]).key == before[0]
    assert again.line.artifact(CALIBRATED, again.line.units("cell")[0]).key != before[1]
    assert again.line.read(JUDGED, again.line.units("cell")[1]).run.calibration.method == "linear"


def test_the_card_says_what_the_scores_were_calibrated_on(calibrated):
    steps = dict(calibrated.steps("tiny"))
    assert steps["calibration of mean"].settings["method"] == "own"
    assert "10% of the training ratings, which no system learned from" in str(steps["calibration of near"])


def test_without_a_calibration_systems_that_only_rank_are_refused_before_anything_is_trained(tiny):
    with pytest.raises(SettingError, match=r"systems.popularity gives scores that only rank, and SDCSE@5 needs"):
        tiny(decisions=Decisions(metrics=("SDCSE@5",)))
    rated = (System("mean", "average"),)
    assert tiny(decisions=Decisions(metrics=("SDCSE@5",)), systems=rated)
    with pytest.raises(SettingError, match=r"UpSell\(margin=spread\)@5 needs residuals on held-out ratings"):
        tiny(decisions=Decisions(metrics=("UpSell(margin=spread)@5",)), systems=rated)
    with pytest.raises(SettingError, match="fill='popularity' lists items without a predicted rating; leave out"):
        tiny(decisions=Decisions(metrics=("RMSE@5",), fill="popularity"), systems=rated)
