"""What an artifact was made of: functions of one's own, names and members of files, versions."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield import simulate
from cranfield.comparisons.p_values import SIGNIFICANCE_TESTS
from cranfield.comparisons.significance import student, wilcoxon
from cranfield.data import filters
from cranfield.experiments import Decisions, Source, System, run
from cranfield.experiments.searching import Tuning
from cranfield.recommenders import Model, register, setting
from cranfield.splits import registry as split_registry
from cranfield.store import records

_TWO = (System("popularity", "popularity"), System("random", "random"))


def _first_made(out):
    """Return the stage of the first artifact that the last run made."""
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    last = log[[k for k, one in enumerate(log) if one["did"] == "started"][-1] :]
    return next(one["artifact"].split("/")[0] for one in last if one["did"] == "made")


def _filter(k):
    @filters.registry.register
    def my_filter(ratings):
        return filters.k_core(ratings, k=k)


def _split(k):
    @split_registry.register
    def my_split(ratings, *, seed=0):
        return cf.splits.random(ratings, train=k / 10, seed=seed)


def _metric(k):
    @cf.metric("MyMetric", lower_is_better=k > 5)
    def my_metric(judged):
        return np.asarray(judged.n_hits >= 1, dtype=float)


def _test(k):
    @SIGNIFICANCE_TESTS.register
    def my_test(samples):
        return student(samples) if k > 5 else wilcoxon(samples)


def _gain(k):
    @cf.gain("my_gain")
    def my_gain(ratings):
        return ratings**k


@pytest.fixture
def defined():
    """Functions of one's own, forgotten after the test."""
    for define in (_filter, _split, _metric, _test, _gain):
        define(5)


@pytest.mark.usefixtures("defined")
def test_a_function_of_ones_own_that_has_changed_is_called_again(tiny, tmp_path):
    decisions = Decisions(filters=("my_filter",), split="my_split", metrics=("MyMetric@5",), significance="my_test")
    experiment = tiny(systems=_TWO, decisions=decisions)
    run(experiment, tmp_path)
    for define, stage in ((_test, "results"), (_metric, "scores"), (_split, "splits"), (_filter, "data")):
        define(7)
        run(experiment, tmp_path)
        assert _first_made(tmp_path) == stage


@pytest.mark.usefixtures("defined")
def test_a_gain_of_ones_own_that_has_changed_is_called_again(tiny, tmp_path):
    experiment = tiny(systems=_TWO, decisions={"metrics": ("nDCG(gain=my_gain)@5",)})
    run(experiment, tmp_path)
    _gain(7)
    run(experiment, tmp_path)
    assert _first_made(tmp_path) == "scores"


@pytest.mark.usefixtures("defined")
def test_a_search_and_an_assessment_by_a_metric_of_ones_own_go_with_it(tiny, tmp_path):
    searched = System("liked", "average", tuning=Tuning({"damping": (0, 9)}, "MyMetric@5"))
    assess = {"metrics": "MyMetric@5", "samples": 2, "sizes": [0.5], "scenarios": ["ratings"]}
    for changes, stage in (
        ({"systems": _TWO, "assess": assess}, "assess"),
        ({"systems": (_TWO[0], searched)}, "searches"),
    ):
        experiment = tiny(**changes)
        run(experiment, tmp_path / stage)
        _metric(7)
        run(experiment, tmp_path / stage)
        assert _first_made(tmp_path / stage) == stage
        _metric(5)


def test_a_search_of_a_system_of_ones_own_goes_with_its_code(tiny, tmp_path):
    def define(sign):
        @register("liked_by_me", replace=True)
        @dataclass
        class LikedByMe(Model):
            power: float = setting(1.0)

            def _fit(self, train):
                self._scores = sign * train.item_counts**self.power

            def _score(self, users):
                return np.tile(self._scores, (len(users), 1))

    define(1.0)
    searched = System("mine", "liked_by_me", tuning=Tuning({"power": (1.0, 2.0)}))
    experiment = tiny(systems=(_TWO[0], searched))
    run(experiment, tmp_path)
    define(-1.0)
    run(experiment, tmp_path)
    assert _first_made(tmp_path) == "searches"


def test_another_report_is_written(tiny, tmp_path):
    def written(text):
        def report(results, folder):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "report.html").write_text(text)
            return [folder / "report.html"]

        return report

    for text in ("one", "other"):
        assert run(tiny(systems=_TWO), tmp_path, report=written(text)).pages[0].read_text() == text


def test_files_of_other_names_are_read_and_told(tiny, tmp_path):
    for name, seed in (("1/ratings", 1), ("2/ratings", 2), ("2/renamed", 2)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        cf.write(simulate.world(60, 40, 900, seed=seed).ratings, tmp_path / f"{name}.csv")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for path in sorted(tmp_path.glob("*/*.csv")):
            archive.write(path, path.relative_to(tmp_path))
    for file in ("1/ratings.csv", "2/ratings.csv", "2/renamed.csv"):
        data = (Source("films", file=str(tmp_path / "all.zip" / file)),)
        run(tiny(systems=_TWO, data=data), tmp_path / "out")
        kept = pl.read_parquet(tmp_path / "out" / "data" / "films" / "ratings.parquet")
        assert kept["rating"].to_list() == cf.read(tmp_path / file).frame()["rating"].to_list()
        assert file.split("/")[1] in (tmp_path / "out" / "splits" / "films" / "split.json").read_text()


def test_the_card_tells_every_version_that_something_was_made_with(tiny, tmp_path, monkeypatch):
    def versions_after(version, **changes):
        monkeypatch.setattr(records, "versions", lambda: {"cranfield": "1", "numpy": version})
        return run(tiny(systems=_TWO, **changes), tmp_path).card()["versions"]["numpy"]

    assert versions_after("2.1") == "2.1"
    assert versions_after("2.2") == "2.1"
    assert versions_after("2.2", decisions=Decisions(threshold=3)) == "2.1, 2.2"


def test_the_lists_of_a_model_that_cannot_be_kept_are_kept(tiny, tmp_path):
    @register("odd", replace=True)
    @dataclass
    class Odd(Model):
        def _fit(self, train):
            self._counts = {"of items": train.item_counts.astype(float)}

        def _score(self, users):
            return np.tile(self._counts["of items"], (len(users), 1))

    systems = (System("odd", "odd"), _TWO[0])
    run(tiny(systems=systems), tmp_path)
    run(tiny(systems=systems, decisions={"threshold": 3}), tmp_path)
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [one["did"] for one in log if one.get("artifact") == "runs/tiny/odd"] == ["made", "exported", "kept"]
    first, second = (pl.read_parquet(tmp_path / "runs" / "tiny" / f"{one.name}.parquet") for one in systems)
    assert first.equals(second)


def test_a_model_that_cannot_be_kept_is_trained_once_in_a_run(tiny, tmp_path):
    fitted = []

    @register("odd", replace=True)
    @dataclass
    class Odd(Model):
        def _fit(self, train):
            fitted.append(len(train))
            self._counts = {"of items": train.item_counts.astype(float)}

        def _score(self, users):
            return np.tile(self._counts["of items"], (len(users), 1))

    run(tiny(systems=(System("odd", "odd"), _TWO[0])), tmp_path)
    assert fitted.count(max(fitted)) == 1
