"""Reports of experiments, and the same runs under other decisions."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield.experiments import Decisions, Experiment, Source, System, read_experiment, run
from cranfield.experiments.decisions import IN_TABLES
from cranfield.judgments import judging
from cranfield.reports import other_decisions, report, report_experiment
from cranfield.reports.reporting import further_metrics

pytestmark = pytest.mark.usefixtures("undrawn")

_WORLD = 'simulate = "world(users=40, items=30, ratings=400)"\n'
_OTHER = 'simulate = "world(users=40, items=30, ratings=410)"\n'


@pytest.fixture
def joins(monkeypatch):
    """Count the joins of each run with each test set."""
    counted, join = Counter(), judging.join

    def counting(run, judgments):
        counted[run.name, judgments.keys.tobytes(), judgments.grades.tobytes()] += 1
        return join(run, judgments)

    monkeypatch.setattr(judging, "join", counting)
    return counted


@pytest.mark.parametrize(
    ("sets", "split", "pages", "varied"),
    [
        ("[data.tiny]\n" + _WORLD, "random", ["report.html"], True),
        (
            f"[data.one]\n{_WORLD}[data.two]\n{_OTHER}",
            "k_fold(k=2)",
            ["report.html", "report-one.html", "report-two.html"],
            False,
        ),
    ],
    ids=["one set", "two sets in folds"],
)
def test_every_set_of_ratings_has_a_page_and_figures_and_folds_no_other_decisions(
    tmp_path, joins, sets, split, pages, varied
):
    file = tmp_path / "e.toml"
    assess = '[assess]\nsamples = 2\nscenarios = ["ratings"]\n' if varied else ""
    file.write_text(f'systems = ["popularity", "random"]\n{sets}[decisions]\nsplit = "{split}"\n{assess}')
    results = run(read_experiment(file), tmp_path / "out")
    paths = report_experiment(results)
    assert set(joins.values()) == {1}, "each run meets each test set once: in measuring, assessing and the report"
    assert [path.name for path in paths if path.suffix == ".html"] == pages
    for path in paths:
        begin = {".html": b"<!doctype html>", ".svg": b"<svg", ".pdf": b"%PDF", ".tex": rb"\begin{table"}[path.suffix]
        content = path.read_bytes()
        assert content.startswith(begin)
        if path.suffix == ".html" and (varied or path.name != "report.html"):  # that one is over both sets
            assert (b'"options":["full","condensed"]' in content) == varied
            assert b'id="full-and-condensed"' in content
            assert b'<section id="bias"' in content
            assert b'<section id="times-random"' in content
            assert (b"Measured on the first of 2 parts" in content) == (not varied)
    for data in results.data:
        assert {results.path / "figures" / f"{data}-averages.{ending}" for ending in ("svg", "pdf")} <= set(paths)
        for shows in ("averages", "comparisons"):
            lines = (results.path / "tables" / f"{data}-{shows}.tex").read_text().splitlines()
            caption = next(line for line in lines if line.startswith(r"\caption"))
            words = results.experiment.decisions.words(without=IN_TABLES).replace("%", r"\%")
            assert caption.startswith(rf"\caption{{{shows.capitalize()} on {data}: {words}")
            phrases = (
                "full lists",
                "average: mean",
                "users without a list count as 0",
                "relevant from 4 (P, Recall, AP, RR)",
            )
            assert [caption.count(phrase) for phrase in phrases] == [1] * len(phrases)
            assert "paired permutation test, with the max-$|$t$|$ correction of Westfall and Young" in caption
            assert rf"\label{{tab:{data}-{shows}}}" in lines


def _explorer(page):
    """Return what the explorer of a page offers, and the averages it starts with by system."""
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1])["explorer"]
    means = np.frombuffer(base64.b64decode(data["means"]), dtype="<f4").reshape(-1, len(data["systems"]))
    offered = {one["name"]: one["options"] for one in data["dimensions"]}
    return offered, dict(zip(data["systems"], means[data["start"]].tolist()))


@pytest.mark.parametrize(
    ("decisions", "thresholds", "lists"),
    [
        ({"split": "k_fold(k=2)", "undefined": "leave out", "metrics": ("Recall@5",)}, ["4"], ["full"]),
        pytest.param(
            {"average": "weighted(by=judged)", "nonrelevant": 9, "coverage": "reduced"},
            *(["4"], ["full"]),
            marks=pytest.mark.slow,
        ),
        (
            {"lists": "condensed", "average": "trimmed", "significance": "sign", "metrics": ("P@10",)},
            *(["2", "3", "4", "5"], ["condensed"]),
        ),
    ],
)
def test_the_explorer_starts_with_the_leaderboard_and_offers_what_the_lists_were_made_for(
    tmp_path, decisions, thresholds, lists
):
    experiment = Experiment(
        data=(Source("tiny", simulate="world(users=40, items=30, ratings=400)"),),
        systems=(System("popularity", "popularity"), System("near", "knn(k=2)")),
        decisions=Decisions(**decisions),
    )
    results = run(experiment, tmp_path)
    (page,) = (path for path in report_experiment(results) if path.suffix == ".html")
    offered, starts = _explorer(page)
    told = results.averages().filter(pl.col("fold").is_null(), metric=experiment.decisions.metrics[0])
    assert starts == pytest.approx(dict(zip(told["system"], told["mean"])), rel=1e-6)
    assert (offered["threshold"], offered["lists"]) == (thresholds, lists)


def test_an_experiment_with_one_relevant_item_per_list_has_a_page(tmp_path):
    experiment = Experiment(
        data=(Source("tiny", simulate="world(users=60, items=40, ratings=900)"),),
        systems=(System("popularity", "popularity"), System("near", "knn(k=5)")),
        decisions=Decisions(relevant="one", metrics=("RR",)),
    )
    results = run(experiment, tmp_path, report=report_experiment)
    page = (results.path / "report.html").read_text()
    assert "popularity" in page
    assert 'id="bias"' not in page  # its protocols need lists with all relevant items


def test_metrics_of_predicted_ratings_bring_their_section_and_figures(tmp_path):
    experiment = Experiment(
        data=(Source("tiny", simulate="world(users=40, items=30, ratings=600)"),),
        systems=(System("near", "knn(k=5)"), System("mean", "average")),
        decisions=Decisions(
            split="k_fold(k=2)",
            metrics=("SDCSE@5", "UpSell(margin=spread)@5"),
            calibration="linear",
            significance="student",
        ),
    )
    paths = report_experiment(run(experiment, tmp_path))
    (page,) = (path.read_text(encoding="utf-8") for path in paths if path.suffix == ".html")
    assert 'id="predictions"' in page
    assert "Predicted ratings of the first 5 rated items" in page
    assert {"tiny-predictions-migration.svg", "tiny-predictions-rank.pdf"} <= {path.name for path in paths}


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
