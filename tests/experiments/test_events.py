"""Experiments on events: repeats, baskets, sessions, and the store."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield.experiments import Results, read_experiment, run
from cranfield.rankings import measured_ratings

FILE = """
title = "events"

[data.log]
file = "log.csv"
{reading}

[decisions]
split = "{split}"
repeats = "{repeats}"
metrics = ["Recall@5", "nDCG@5"]
{more}

[systems]
popularity = "popularity"
again = "{system}"
"""


@pytest.fixture
def log(tmp_path):
    random = np.random.default_rng(3)
    users, items = random.integers(0, 40, 2500), random.integers(0, 25, 2500)
    times = np.sort(random.integers(0, 400, 2500)) * 86_400
    frame = pl.DataFrame({"user": users, "item": items, "time": times, "order": times // (20 * 86_400)})
    frame.write_csv(tmp_path / "log.csv")
    return frame


def made(folder, split, repeats="exclude", reading="", system="topfreq(scope=both)", more=""):
    path = folder / "e.toml"
    path.write_text(FILE.format(split=split, repeats=repeats, reading=reading, system=system, more=more))
    return run(read_experiment(path), folder / "out")


@pytest.mark.parametrize("repeats", ["exclude", "allow", "only", "hide"])
def test_an_experiment_on_events_is_what_the_functions_give(log, tmp_path, repeats):
    results = made(tmp_path, "temporal(train=0.8)", repeats)
    split = cf.splits.temporal(cf.read(tmp_path / "log.csv"), train=0.8)
    runs = cf.recommend(split, {"popularity": "popularity", "again": "topfreq(scope=both)"}, repeats=repeats)
    scores = cf.measure(runs, measured_ratings(split, repeats=repeats), ["Recall@5", "nDCG@5"], threshold=1)
    means = {(row["system"], row["metric"]): row["mean"] for row in scores.frame().to_dicts()}
    for row in results.averages().to_dicts():
        assert row["mean"] == pytest.approx(means[row["system"], row["metric"]]), row
    again = Results(tmp_path / "out")
    assert again.averages().equals(results.averages())


def test_baskets_are_kept_together_through_the_store(log, tmp_path):
    reading = 'basket = "order"'
    results = made(tmp_path, "leave_out(l=1, which=last)", "allow", reading, "tifu-knn(k=5, groups=3)")
    split = cf.splits.leave_out(cf.read(tmp_path / "log.csv", basket="order"), l=1, which="last")
    runs = cf.recommend(split, {"again": "tifu-knn(k=5, groups=3)"}, repeats="allow")
    scores = cf.measure(runs, split.test, ["Recall@5"], threshold=1)
    row = results.averages().filter(system="again", metric="Recall@5")
    assert row["mean"].item() == pytest.approx(float(scores.average()[0, 0]))


@pytest.mark.parametrize("given", [1, "each"])
def test_sessions_have_their_own_users_through_the_store(log, tmp_path, given):
    reading, method = 'basket = "order"', f"sessions(given={given})"
    results = made(tmp_path, method, "allow", reading, "sknn(k=20)", 'segment = ["popularity"]')
    (split,) = cf.splits.apply(cf.read(tmp_path / "log.csv", basket="order"), method)
    runs = cf.recommend(split, {"again": "sknn(k=20)"}, repeats="allow")
    scores = cf.measure(runs, split.test, ["Recall@5"], threshold=1)
    row = results.averages().filter(system="again", metric="Recall@5")
    assert row["mean"].item() == pytest.approx(float(scores.average()[0, 0]))
    assert Results(tmp_path / "out").averages().equals(results.averages())
