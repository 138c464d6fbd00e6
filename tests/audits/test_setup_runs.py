"""The advice on metrics under each split and target design."""

from __future__ import annotations

import pytest

import cranfield as cf
from cranfield.audits import read_audit
from cranfield.audits.auditing import plan_audit
from cranfield.audits.verdict import facts_of_advice
from cranfield.experiments import Decisions, System, run
from cranfield.facts import audit as audit_facts

ASSESS = {"metrics": ["P@5", "AP@5", "RR@5"], "scenarios": ["ratings"], "sizes": [1.0, 0.5], "samples": 2}
SYSTEMS = tuple(System(name, name) for name in ("popularity", "random", "average", "knn(k=5)"))


@pytest.fixture(scope="module")
def assessed(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("assessed") / "out"
    vary = {"split": ["random(train=0.5)", "random(train=0.8)"], "lists": ["full", "condensed"], "cutoff": [3, 5]}
    decisions = Decisions(split="random(train=0.5)", min_ratings=1, metrics="P@5")
    return cf.audit(tiny(systems=SYSTEMS, decisions=decisions, assess=ASSESS), folder, vary=vary), folder


def test_every_split_and_target_design_has_the_advice_of_its_own_assessment(assessed, tiny, tmp_path):
    found, _ = assessed
    frame = found.advice()
    setups = frame["setup"].unique(maintain_order=True).to_list()
    assert len(setups) == 4
    assert setups[0] == "split random(train=0.5), lists full"
    decisions = Decisions(split="random(train=0.8)", min_ratings=1, metrics="P@5", lists="condensed")
    alone = run(tiny(systems=SYSTEMS, decisions=decisions, assess=ASSESS), tmp_path / "out").assessment("tiny").advice()
    own = frame.filter(setup="split random(train=0.8), lists condensed")
    assert own["metric"].to_list() == alone.frame()["metric"].to_list()
    assert own["score"].to_list() == pytest.approx(alone.frame()["score"].to_list())


def test_the_table_is_a_file_that_reads_back_and_the_verdict_ends_with_it(assessed):
    found, folder = assessed
    assert (folder / "audit" / "advice.csv").is_file()
    assert read_audit(folder / "audit").advice().equals(found.advice())
    assert found.facts()[-1:] == found.advice_facts() != []


def test_the_estimate_counts_the_assessments(tiny, tmp_path):
    vary = {"split": ["random(train=0.5)", "random(train=0.8)"], "lists": ["full", "condensed"]}
    seconds = [
        plan_audit(tiny(systems=SYSTEMS, assess=assess), tmp_path / "out", vary=vary).plan.seconds
        for assess in (None, ASSESS)
    ]
    assert seconds[1] > seconds[0] + 10


def test_an_audit_of_calibrated_scores_shares_models_and_varies_the_calibration(tiny, tmp_path):
    decisions = Decisions(calibration="linear", metrics="SDCSE@5", significance="student")
    experiment = tiny(decisions=decisions)
    vary = {"calibration": ["linear", "isotonic"], "cutoff": [3, 5]}
    planned = plan_audit(experiment, tmp_path / "out", vary=vary).plan
    assert sum(task.stage == "calibrations" for task in planned.tasks) == 4
    assert sum(task.stage == "models" for task in planned.tasks) == 2
    found = cf.audit(experiment, tmp_path / "out", vary=vary)
    for cell, calibration in ((1, "linear"), (3, "isotonic")):
        alone = run(tiny(decisions=decisions.with_(calibration=calibration)), tmp_path / calibration).findings("tiny")
        # The metric is defined for fewer users of the second system, and an audit takes those of both.
        assert found.averages[1, cell] == pytest.approx(alone.scores.average()[1, 0])


def test_nothing_is_said_where_metrics_are_not_assessed(audit):
    assert audit.advice().is_empty()
    assert audit.advice_facts() == []


def _rows(*best):
    shared = {"average": "mean", "rank": 1, "tau": 0.5, "clear": False, "reason": None}
    return [{"setup": f"split {place}", "metric": metric, **shared} for place, metric in enumerate(best)]


def test_advice_under_several_designs_is_a_fact():
    failed = {**_rows("P@5")[0], "rank": None, "reason": "why"}
    rows = [*_rows("P@5", "AP@5", "P@5"), failed]
    assert facts_of_advice(rows) == [audit_facts.AdviceByDesign(tuple(rows))]
    assert facts_of_advice(_rows("P@5")) == []
