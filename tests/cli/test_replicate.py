"""``cranfield replicate``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cranfield import InputError, simulate, write
from cranfield._polars import read_parquet
from cranfield.splits import per_user

_FEW = ["--sizes", "0.5", "--samples", "2", "-s", "random", "-s", "popularity", "--no-figures"]


def test_a_study_is_run_from_files_with_a_given_split(tmp_path, cranfield):
    ratings = simulate.world(users=60, items=40, ratings=1_200, seed=1).ratings
    write(ratings, tmp_path / "ratings.csv")
    write(per_user(ratings, train=0.8).test, tmp_path / "test.csv")
    out = tmp_path / "out"
    asked = ["valcarce2018", "--data", tmp_path / "ratings.csv", "--test", tmp_path / "test.csv", "--out", out, *_FEW]
    found = cranfield("replicate", *asked)
    assert found.code == 0
    assert "14 claims of valcarce2018 on ratings (1 split)" in found.out
    assert f"The report: {out / 'report.html'}" in found.out
    assert (out / "claims.json").exists()
    assert (out / "tables" / "table-3.tex").exists()
    assert not list((out / "figures").glob("*.svg"))


def test_a_known_dataset_is_taken_by_its_name(tmp_path, monkeypatch, cranfield):
    ratings = simulate.world(users=60, items=40, ratings=1_200, seed=1).ratings
    monkeypatch.setattr("cranfield.datasets.load", lambda name, part: replace(ratings, name=name))
    monkeypatch.chdir(tmp_path)
    given = []

    def stop(study, data, **options):
        given.append((study, data, options["out"]))
        raise InputError("the study is not run here")

    monkeypatch.setattr("cranfield.cli.replicate.replicate", stop)
    found = cranfield("replicate", "valcarce2018", "--data", "ml-100k", "--folds", 2, *_FEW)
    assert "the study is not run here" in found.err
    ((study, (data,), out),) = given
    assert (study, data.name, len(data), str(out)) == ("valcarce2018", "ml-100k", 1_200, "valcarce2018")


def test_an_unknown_dataset_or_study_is_refused(tmp_path, cranfield):
    found = cranfield("replicate", "valcarce2020", "--data", "ml-1n", "--out", tmp_path / "out", *_FEW)
    assert "ml-1m" in found.err
    assert cranfield("replicate", "valcarce2077", "--data", "ml-1m").code == 2


def test_sizes_that_are_no_numbers_are_refused(tmp_path, cranfield):
    write(simulate.world(users=30, items=20, ratings=300, seed=1).ratings, tmp_path / "ratings.csv")
    asked = ["valcarce2020", "--data", str(tmp_path / "ratings.csv"), "--sizes", "half"]
    assert "cannot be read" in cranfield("replicate", *asked).err


@pytest.mark.slow
def test_judgments_may_be_the_split_and_their_negative_grades_are_noted_and_read_as_asked(tmp_path, cranfield):
    ratings = simulate.world(users=60, items=40, ratings=1_200, seed=1).ratings
    write(ratings, tmp_path / "ratings.csv")
    rows = per_user(ratings, train=0.8).test.frame().iter_rows(named=True)
    grades = [f"{row['user']} 0 {row['item']} {-1 if row['rating'] == 1 else row['rating']:g}" for row in rows]
    (tmp_path / "test.qrels").write_text("\n".join(grades))
    n = sum(line.endswith(" -1") for line in grades)
    asked = ["replicate", "valcarce2018", "--data", tmp_path / "ratings.csv", "--test", tmp_path / "test.qrels", *_FEW]
    found = cranfield(*asked, "--out", tmp_path / "judged")
    assert found.code == 0
    assert f"{n} test grades below 0, read as judged and not relevant" in found.err
    found = cranfield(*asked, "--out", tmp_path / "unjudged", "--negative-grades", "unjudged")
    assert f"{n} test grades below 0, read as not judged" in found.err
    tables = [read_parquet(tmp_path / reading / "scores" / "fold-1.parquet") for reading in ("judged", "unjudged")]
    assert not tables[0].equals(tables[1])


def test_the_target_sets_of_bellogin2017_must_fit_into_a_percentile(tmp_path, cranfield):
    write(simulate.world(users=60, items=125, ratings=1_800, seed=1).ratings, tmp_path / "ratings.csv")
    asked = ["replicate", "bellogin2017", "--data", tmp_path / "ratings.csv", "--out", tmp_path / "out"]
    found = cranfield(*asked)
    assert found.code == 2
    assert "targets=100 is more than the 12 items of the smallest of 10 popularity percentiles" in found.err
    other = cranfield("replicate", "valcarce2018(targets=12)", *asked[2:])
    assert other.code == 2
    assert "valcarce2018 has no option 'targets'" in other.err


@pytest.mark.parametrize(
    ("study", "offered", "refused"),
    [
        ("bellogin2017", ("--folds", "--system", "--threshold"), ("--samples", "--negatives", "--test", "--jobs")),
        ("rendle2020", ("--negatives", "--system"), ("--threshold", "--folds", "--known")),
        ("canamares-castells2018", ("--known", "--system"), ("--folds", "--sizes")),
    ],
)
def test_the_help_of_a_study_offers_the_options_that_it_takes(cranfield, study, offered, refused):
    def options(*asked):
        lines = cranfield("replicate", *asked, "--help").out.splitlines()
        return {word.strip(",") for line in lines if line.strip().startswith("-") for word in line.split()[:2]}

    assert {*offered, "--data", "--repetitions"} <= options(study)
    assert not options(study) & set(refused)
    assert {*offered, *refused} <= options()


def test_every_claim_is_printed_once(tmp_path, cranfield):
    write(simulate.world(users=60, items=40, ratings=1_200, seed=1).ratings, tmp_path / "ratings.csv")
    asked = ["valcarce2018", "--data", tmp_path / "ratings.csv", "--out", tmp_path / "out", *_FEW]
    assert cranfield("replicate", *asked).out.count("MRR orders the systems differently from the others") == 1
