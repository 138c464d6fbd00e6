from __future__ import annotations

import polars as pl
import pytest

from cranfield import SettingError
from cranfield.assessments import assess
from cranfield.assessments.cutoffs import PAPER_CUTOFFS, at_cutoffs
from cranfield.metrics import Metric


def test_metrics_are_taken_at_every_cutoff_once():
    metrics = at_cutoffs([Metric.of("nDCG(gain=exp)@10"), Metric.of("RR")], PAPER_CUTOFFS)
    names = [str(one) for one in metrics]
    assert len(names) == len(set(names)) == 20 + 21
    assert "nDCG(gain=exp)@100" in names


def test_a_cutoff_that_is_none_is_refused():
    with pytest.raises(SettingError, match="cutoffs"):
        at_cutoffs([Metric.of("P@10")], [0])


def test_the_study_of_cutoffs_has_the_evidence_at_each(world):
    runs, test = world
    found = assess(
        runs, test, ["nDCG@20", "P@20", "Rprec"], threshold=4, scenarios=["ratings", "popular"], sizes=[0.5, 0.2],
        samples=4, cutoffs=[1, 5],
    )  # fmt: skip
    frame = found.frame("cutoffs")
    assert frame.select("family", "cutoff").rows() == [
        ("P", 1), ("P", 5), ("P", 20), ("nDCG", 1), ("nDCG", 5), ("nDCG", 20),
    ]  # fmt: skip
    robust = found.frame("robustness").filter((pl.col("metric") == "P@5") & (pl.col("scenario") == "ratings"))
    row = frame.filter((pl.col("family") == "P") & (pl.col("cutoff") == 5)).row(0, named=True)
    assert row["ratings"] == pytest.approx(robust["tau"].mean())
    power = found.frame("power").filter(pl.col("metric") == "P@5").row(0, named=True)
    assert row["power"] == pytest.approx(power["significant"])
    assert found.of_family("nDCG") == ["nDCG@1", "nDCG@5", "nDCG@20"]
    with pytest.raises(SettingError, match="did you mean 'nDCG'"):
        found.of_family("nDGC")
