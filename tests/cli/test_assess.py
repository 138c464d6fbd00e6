from __future__ import annotations

import csv
import io
import json

import numpy as np
import polars as pl
import pytest

from cranfield import cli


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(cli._COMMANDS, "assess", "Say which metric can be trusted on these data.")
    rng = np.random.default_rng(0)
    rated = rng.random((30, 20)) < 0.4
    user, item = np.nonzero(rated)
    pl.DataFrame({"user": user, "item": item, "rating": rng.integers(1, 6, len(user))}).write_csv("test.csv")
    for s in range(3):
        liked = rng.random((30, 20)) + 0.3 * s * rated
        top = np.argsort(-liked, axis=1)[:, :10]
        pl.DataFrame(
            {
                "user": np.repeat(np.arange(30), 10),
                "item": top.ravel(),
                "score": np.take_along_axis(liked, top, axis=1).ravel(),
            }
        ).write_csv(f"s{s}.csv")
    return tmp_path


OPTIONS = ("--test", "test.csv", "s0.csv", "s1.csv", "s2.csv", "-m", "P@5", "-m", "nDCG@10", "--threshold", "4",
           "--sizes", "1,0.5", "--samples", "4")  # fmt: skip


def test_the_advice_is_printed(files, cranfield):
    code, out, err = cranfield("assess", *OPTIONS)
    assert (code, err) == (0, "")
    assert out.startswith("Trust ")
    assert "users with the largest profiles missing" in out


def test_csv_and_json_hold_a_study_and_the_seed_fixes_it(files, cranfield):
    asked = (*OPTIONS, "--scenario", "ratings", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(cranfield("assess", *asked).out)))
    assert [(row["metric"], row["size"]) for row in rows] == [
        ("P@5", "1.0"), ("nDCG@10", "1.0"), ("P@5", "0.5"), ("nDCG@10", "0.5"),
    ]  # fmt: skip
    assert cranfield("assess", *asked) == cranfield("assess", *asked, "--threads", "1")
    assert cranfield("assess", *asked) != cranfield("assess", *asked, "--seed", "4")
    advice = json.loads(cranfield("assess", *OPTIONS, "--study", "advice", "--format", "json").out)
    assert advice[0]["rank"] == 1
    samples = cranfield("assess", *asked, "--study", "samples").out
    assert len(next(csv.DictReader(io.StringIO(samples)))["values"].split()) == 3


def test_out_keeps_parts_frames_and_figures_and_a_second_run_goes_on(files, cranfield):
    asked = (*OPTIONS, "--cutoffs", "2,5", "--average", "mean", "--average", "geometric", "--out", "found")
    first = cranfield("assess", *asked)
    assert first.code == 0
    parts = {path: path.stat().st_mtime_ns for path in (files / "found/samples").iterdir()}
    assert len(parts) == 10
    assert (files / "found/frames/cutoffs.csv").exists()
    assert (files / "found/figures/robustness.svg").exists()
    assert (files / "found/figures/correlation-nDCG.svg").exists()
    assert cranfield("assess", *asked, "--no-figures").out.splitlines()[:-1] == first.out.splitlines()[:-1]
    assert {path: path.stat().st_mtime_ns for path in (files / "found/samples").iterdir()} == parts


def test_a_scenario_can_have_sizes_of_its_own(files, cranfield):
    ways = ("--scenario", "ratings", "--scenario", "popular", "--sizes", "popular=0.9,0.8", "--format", "csv")
    rows = csv.DictReader(io.StringIO(cranfield("assess", *OPTIONS, *ways).out))
    found = {(row["scenario"], row["size"]) for row in rows}
    assert found == {("ratings", "1.0"), ("ratings", "0.5"), ("popular", "0.9"), ("popular", "0.8")}


def test_weights_change_the_advice(files, cranfield):
    none = ("--weight", "agreement=0", "--scenario", "ratings", "--weight", "ratings=0")
    (first, *_) = json.loads(cranfield("assess", *OPTIONS, *none, "--study", "advice", "--format", "json").out)
    assert first["score"] == pytest.approx(first["power"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--scenario", "popularity"), "popular"),
        (("--sizes", "half"), "--sizes"),
        (("--sizes", "1,2"), "sizes"),
        (("--cutoffs", "5,x"), "--cutoffs"),
        (("--cutoffs", "2.5"), "--cutoffs"),
        (("--weight", "power"), "power=2"),
        (("--weight", "speed=2"), "criterion"),
        (("--average", "meen"), "did you mean 'mean'"),
        (("--samples", "0"), "samples"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(files, cranfield, options, message):
    code, out, err = cranfield("assess", *OPTIONS, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_help_teaches_by_example(files, cranfield):
    code, out, _ = cranfield("assess", "--help")
    assert code == 0
    assert "cranfield assess" in out.split("Examples:")[1]
