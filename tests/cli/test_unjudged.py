"""``cranfield suggest-judgments``, and what ``compare`` does with unjudged items and with answers."""

from __future__ import annotations

import json

import polars as pl
import pytest

import cranfield as cf


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a test set and two runs."""
    folder = tmp_path_factory.mktemp("label")
    world = cf.simulate.world(users=30, items=40, ratings=500, seed=2, times=False)
    split = cf.splits.random(world.ratings, seed=1)
    cf.write(split.test, folder / "test.csv")
    for run in cf.recommend(split, {"a": "knn(k=10)", "b": "popularity"}, length=10):
        cf.write_run(run, folder / f"{run.name}.csv")
    return folder


@pytest.fixture
def files(folder, monkeypatch):
    """Go to where a test set and two runs are."""
    monkeypatch.chdir(folder)
    return folder


BASE = ("--test", "test.csv", "a.csv", "b.csv", "--threshold", "4", "-m", "P@5")


def test_pairs_are_written_with_an_empty_rating_and_come_back_as_judgments(files, cranfield):
    asked = cranfield("suggest-judgments", *BASE, "--budget", "12", "--out", "ask.csv")
    assert asked.code == 0
    assert "P@5: not settled." in asked.out
    assert "Only the users themselves can judge" in asked.out
    rows = pl.read_csv(files / "ask.csv")
    assert rows.columns == ["user", "item", "rating", "listed_by", "liked"]
    assert rows.height == rows["rating"].null_count() == 12
    rows.with_columns(rating=pl.when(pl.int_range(pl.len()) < 8).then(5.0)).write_csv(files / "back.csv")
    compared = cranfield("compare", *BASE, "--judgments", "back.csv")
    assert compared.code == 0
    assert "settled" in compared.out
    assert "unfair to it" in compared.out
    again = cranfield("suggest-judgments", *BASE, "--judgments", "back.csv", "--out", "more.csv")
    assert again.code == 0
    kept = (files / "back.csv").read_bytes()
    refused = cranfield("suggest-judgments", *BASE, "--out", "back.csv")
    assert (refused.code, (files / "back.csv").read_bytes()) == (2, kept)
    assert "--out back.csv already holds answers; give them with --judgments" in refused.err
    asked_before = set(rows.head(8).select("user", "item").rows())
    assert not asked_before & set(pl.read_csv(files / "more.csv").select("user", "item").rows())


def test_without_a_file_the_first_pairs_are_printed(files, cranfield):
    asked = cranfield("suggest-judgments", *BASE)
    assert asked.code == 0
    assert "listed by" in asked.out


def test_what_compare_says_of_judgments_is_of_the_threshold_that_it_measures_with(tmp_path, monkeypatch, cranfield):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test.csv").write_text("user,item,rating\n1,x,7\n1,y,9\n2,x,8\n2,y,1\n")
    (tmp_path / "train.csv").write_text("user,item,rating\n1,z,10\n2,z,1\n")  # relevant from 8, without it from 7
    (tmp_path / "a.csv").write_text("user,item\n1,x\n2,p\n")
    (tmp_path / "b.csv").write_text("user,item\n1,q\n2,q\n")
    (tmp_path / "ask.csv").write_text("user,item,rating\n2,q,1\n")
    base = ("compare", "--test", "test.csv", "a.csv", "b.csv", "-m", "P@1", "--judgments", "ask.csv")
    mine, given, other = (
        cranfield(*base, "--train", "train.csv", *more).out for more in ((), ("--threshold", "8"), ("--threshold", "7"))
    )
    assert "relevant from 8" in mine
    assert mine == given
    assert mine != other


def test_judgments_that_contradict_the_test_set_end_with_2(files, cranfield):
    row = (files / "test.csv").read_text().splitlines()[1].split(",")
    (files / "back.csv").write_text(f"user,item,rating\n{row[0]},{row[1]},99\n")
    compared = cranfield("compare", *BASE, "--judgments", "back.csv")
    assert compared.code == 2
    assert "is 99, and the test set has" in compared.err
    assert compared.err.count("\n") == 1


def test_a_judgment_that_is_no_number_is_named_with_its_row(files, cranfield):
    (files / "words.csv").write_text("user,item,rating\n1,2,\n1,3,yes\n")
    refused = cranfield("compare", *BASE, "--judgments", "words.csv")
    assert refused.code == 2
    assert "words.csv, row 3, column 'rating': 'yes' is not a number" in refused.err


def test_tipping_points_are_printed_written_and_drawn(files, cranfield):
    shown = cranfield("compare", *BASE, "--tipping-point")
    assert shown.code == 0
    assert "the order is reversed" in shown.out
    rows = json.loads(cranfield("compare", *BASE, "--tipping-point", "--report", "tip.svg", "--format", "json").out)
    assert rows[0]["metric"] == "P@5"
    assert (files / "tip.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--tipping-point", "--power", "0.1"), "--power does nothing"),
        (("--tipping-point", "--lists", "condensed"), "--lists does nothing"),
        (("--tipping-point", "--format", "latex"), "has no latex"),
    ],
)
def test_what_says_nothing_of_a_tipping_point_is_refused(files, cranfield, options, why):
    shown = cranfield("compare", *BASE, *options)
    assert shown.code == 2
    assert why in shown.err


def test_a_file_with_an_answer_that_is_not_a_number_is_not_written_over(files, cranfield):
    (files / "answers.csv").write_text("user,item,rating\n1,2,yes\n")
    found = cranfield("suggest-judgments", *BASE, "--budget", "3", "--out", "answers.csv")
    assert (found.code, "--out answers.csv already holds answers" in found.err) == (2, True)
    assert (files / "answers.csv").read_text().endswith("1,2,yes\n")


def test_the_threshold_of_collected_judgments_is_that_of_the_comparison(files, cranfield):
    """Test ratings of 7 and 9, of a scale that goes up to 10 in training, where 8 is the lowest relevant one."""
    nine = pl.read_csv("test.csv").with_columns(pl.col("rating") * 2 - 1)
    nine.write_csv("nine.csv")
    nine.select("user", item=pl.col("item") + 1000, rating=pl.lit(10)).write_csv("train.csv")
    nine.head(1).write_csv("back.csv")
    given = ("--test", "nine.csv", "a.csv", "b.csv", "--train", "train.csv", "--judgments", "back.csv", "-m", "P@5")
    auto, eight, seven = (cranfield("compare", *given, "--threshold", level).out for level in ("auto", "8", "7"))
    assert auto == eight != seven
