"""An audit over splits in time and over users."""

from __future__ import annotations

import polars as pl
import pytest

import cranfield as cf
from cranfield.experiments import Decisions, Experiment, Source, System

SPLITS = [
    "random(train=0.8)",
    "temporal(target=first)",
    "rolling(windows=3, horizon=40d)",
    "cold_users(left=2)",
    "strong_generalisation",
]


def test_an_audit_crosses_every_kind_of_split(tmp_path):
    start = Experiment(
        data=(Source("tiny", simulate="world(users=60, items=40, ratings=900)"),),
        systems=(System("popularity", "popularity"), System("near", "knn(k=5)")),
        decisions=Decisions(metrics=("nDCG@10",)),
    )
    audit = cf.audit(start, tmp_path / "out", vary={"split": SPLITS})
    means = dict(zip(SPLITS, audit.averages.T.tolist()))
    assert len(audit.grid.invalid) == 0
    rolled = cf.experiments.run(
        Experiment(data=start.data, systems=start.systems, decisions=start.decisions.with_(split=SPLITS[2])),
        tmp_path / "rolled",
    )
    alone = rolled.averages().filter(pl.col("fold").is_null())
    assert means[SPLITS[2]] == pytest.approx(alone["mean"].to_list())
