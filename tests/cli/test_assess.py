from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from cranfield import cli

pytestmark = pytest.mark.usefixtures("undrawn")


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
    assert out.startswith("No clear choice: nDCG@10 scores highest, but 3 systems are too few (at least eight)")
    assert "· With ratings missing at random, " in out


def test_the_page_opens_with_the_answer_about_metrics(files, cranfield):
    assert cranfield("assess", *OPTIONS, "--scenario", "ratings", "--report", "page.html").code == 0
    page = (files / "page.html").read_text(encoding="utf-8")
    assert "<h1>Which metric to trust?" in page
    assert page.index('<p class="answer">No clear choice') < page.index('id="answer"')


def test_csv_and_json_hold_a_study_and_the_seed_fixes_it(files, cranfield):
    asked = (*OPTIONS, "--scenario", "ratings", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(cranfield("assess", *asked).out)))
    assert [(row["metric"], row["size"]) for row in rows] == [
        ("P@5", "1.0"), ("nDCG@10", "1.0"), ("P@5", "0.5"), ("nDCG@10", "0.5"),
    ]  # fmt: skip
    assert cranfield("assess", *asked) == cranfield("assess", *asked, "--threads", "1")
    assert cranfield("assess", *asked) != cranfield("assess", *asked, "--seed", "4")
    told = json.loads(cranfield("assess", *OPTIONS, "--study", "advice", "--format", "json").out)
    assert (told["study"], told["rows"][0]["rank"]) == ("advice", 1)
    printed = cranfield("assess", *OPTIONS, "--details").out
    assert all(sentence in printed for sentence in told["sentences"])
    samples = cranfield("assess", *asked, "--study", "samples").out
    assert len(next(csv.DictReader(io.StringIO(samples)))["values"].split()) == 3


def test_out_keeps_parts_frames_and_figures_and_a_second_run_goes_on(files, cranfield):
    asked = (*OPTIONS, "--cutoffs", "2,5", "--out", "found")
    first = cranfield("assess", *asked)
    assert first.code == 0
    parts = {path: path.stat().st_mtime_ns for path in (files / "found/samples").iterdir()}
    assert len(parts) == 10
    assert (files / "found/frames/cutoffs.csv").exists()
    assert (files / "found/figures/robustness.svg").exists()
    assert (files / "found/figures/correlation-nDCG.svg").exists()
    assert cranfield("assess", *asked, "--no-figures").out.splitlines()[:-1] == first.out.splitlines()[:-1]
    assert {path: path.stat().st_mtime_ns for path in (files / "found/samples").iterdir()} == parts


@pytest.mark.slow  # test_chunks.py has a fast version, in this process
def test_a_killed_assessment_goes_on_to_the_very_bytes_of_one_that_was_not(files, cranfield):
    asked = (*OPTIONS[:-4], "--scenario", "ratings", "--sizes", "ones", "--samples", "20", "--no-figures", "--out")
    script = "from cranfield.cli import main; main()"
    process = subprocess.Popen([sys.executable, "-c", script, "assess", *asked, "killed"], stdout=subprocess.DEVNULL)
    while process.poll() is None and len(list((files / "killed").rglob("*.parquet"))) < 3:
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert 3 <= len(list((files / "killed/samples").glob("*.parquet"))) < 100
    assert cranfield("assess", *asked, "killed").code == cranfield("assess", *asked, "whole").code == 0
    made = [
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (files / "killed", files / "whole")
    ]
    assert len(made[1]) > 100
    assert {name: content for name, content in made[0].items() if name in made[1]} == made[1]


def test_a_scenario_can_have_sizes_of_its_own(files, cranfield):
    ways = ("--scenario", "ratings", "--scenario", "popular", "--sizes", "popular=0.9,0.8", "--format", "csv")
    rows = csv.DictReader(io.StringIO(cranfield("assess", *OPTIONS, *ways).out))
    found = {(row["scenario"], row["size"]) for row in rows}
    assert found == {("ratings", "1.0"), ("ratings", "0.5"), ("popular", "0.9"), ("popular", "0.8")}


@pytest.fixture
def folds(files):
    """Two folds: the test sets are those of the first with other users, the runs in a folder each."""
    rows = pl.read_csv("test.csv")
    rows.filter(pl.col("user") < 15).write_csv("test-1.csv")
    rows.filter(pl.col("user") >= 15).write_csv("test-2.csv")
    for fold in (1, 2):
        (files / f"runs-{fold}").mkdir()
        for s in range(3):
            (files / f"runs-{fold}/s{s}.csv").write_bytes((files / f"s{s}.csv").read_bytes())
    return ("--test", "test-1.csv", *(f"runs-1/s{s}.csv" for s in (2, 0, 1)), *OPTIONS[5:])


def test_folds_are_assessed_together_with_the_variation_between_them(folds, cranfield):
    asked = (*folds, "--fold", "test-2.csv", "runs-2", "--scenario", "ratings", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(cranfield("assess", *asked).out)))
    each = [
        list(csv.DictReader(io.StringIO(cranfield("assess", *one, "--scenario", "ratings", "--format", "csv").out)))
        for one in (folds, ("--test", "test-2.csv", *folds[2:]))
    ]
    for row, *own in zip(rows, *each):
        taus = [float(one["tau"]) for one in own]
        assert float(row["tau"]) == pytest.approx(np.mean(taus))
        assert float(row["fold_sd"]) == pytest.approx(np.std(taus, ddof=1))
    samples = cranfield("assess", *asked, "--study", "samples").out
    assert {row["fold"] for row in csv.DictReader(io.StringIO(samples))} == {"1", "2"}


def test_each_fold_has_its_own_training_ratings(folds, cranfield):
    fold = ("--fold", "test-2.csv", "runs-2", "--train", "test.csv", "-m", "EPC@5")
    assert cranfield("assess", *folds, *fold, "--fold-train", "test.csv").code == 0
    code, _, err = cranfield("assess", *folds, *fold)
    assert (code, "--fold-train for each --fold" in err) == (2, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fold", "test-2.csv", "runs-3"), "runs-3 is not a folder of runs"),
        (("--fold", "test-2.csv", "empty"), "there are no runs in empty"),
        (("--fold", "test-2.csv", "other"), "fold 2 has other systems"),
        (("--fold", "test-2.csv", "runs-2", "--report", "page.html"), "--report shows one test set"),
        (("--fold-train", "test.csv"), "0 further folds and 1 --fold-train"),
    ],
)
def test_a_mistake_about_folds_is_one_line(folds, files, cranfield, options, message):
    (files / "empty").mkdir()
    (files / "other").mkdir()
    (files / "other/s0.csv").write_bytes((files / "s0.csv").read_bytes())
    (files / "other/s9.csv").write_bytes((files / "s1.csv").read_bytes())
    code, out, err = cranfield("assess", *folds, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_sakais_bootstrap_is_there_if_asked_for(files, cranfield):
    asked = (*OPTIONS, "--scenario", "ratings", "--study", "power", "--format", "json")
    assert "required_difference" not in json.loads(cranfield("assess", *asked).out)["rows"][0]
    assert "required_difference" in json.loads(cranfield("assess", *asked, "--resamples", "20").out)["rows"][0]


def test_the_papers_grid_can_be_asked_for(files, cranfield):
    asked = (*OPTIONS, "--sizes", "top", "--scenario", "items", "--format", "csv")
    rows = csv.DictReader(io.StringIO(cranfield("assess", *asked).out))
    assert [row["size"] for row in rows if row["metric"] == "P@5"] == [str(k / 100) for k in range(100, 79, -1)]


def test_the_correlation_of_the_top_can_be_asked_for(files, cranfield):
    asked = (*OPTIONS, "--sizes", "0.05", "--samples", "20", "--scenario", "ratings", "--format", "csv")
    plain, top = (
        [row["tau"] for row in csv.DictReader(io.StringIO(cranfield("assess", *asked, *more).out))]
        for more in ((), ("--correlation", "tau-ap"))
    )
    assert all(one != other for one, other in zip(plain, top, strict=True))


def test_weights_change_the_advice(files, cranfield):
    none = ("--weight", "significant=2", "--scenario", "ratings", "--weight", "ratings=0")
    (first, *_) = json.loads(cranfield("assess", *OPTIONS, *none, "--study", "advice", "--format", "json").out)["rows"]
    assert first["score"] == pytest.approx(first["significant"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--scenario", "popularity"), "popular"),
        (("--sizes", "half"), "--sizes"),
        (("--sizes", "1,2"), "sizes"),
        (("--cutoffs", "5,x"), "--cutoffs"),
        (("--cutoffs", "2.5"), "--cutoffs"),
        (("--weight", "significant"), "significant=2"),
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
