from __future__ import annotations

import json

import pytest

import cranfield as cf


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("bias")
    ratings = cf.simulate.world(80, 60, 1_500, seed=1).ratings
    split = cf.splits.random(ratings, seed=1)
    cf.write(ratings, place / "ratings.csv")
    cf.write(split.train, place / "train.csv")
    cf.write(split.test, place / "test.csv")
    for run in cf.recommend(split, ["average", "popularity"], length=60):
        cf.write_run(run, place / f"{run.name.replace(' ', '-')}.tsv")
    return place


def test_ratings_and_systems_give_a_verdict(folder, cranfield):
    options = ("-s", "random", "--groups", "3", "--nonrelevant", "10")
    code, out, err = cranfield("bias", "--data", folder / "ratings.csv", *options, "--details")
    assert code == 0, err
    assert "Ranking by popularity alone reaches" in out
    assert "U1R and UAR: the " in err


def test_given_lists_are_measured_as_in_python(folder, cranfield):
    files = [str(path) for path in sorted(folder.glob("*.tsv"))]
    command = (
        "bias",
        "--test",
        folder / "test.csv",
        "--train",
        folder / "train.csv",
        "--groups",
        "3",
        "--format",
        "json",
    )
    code, out, _ = cranfield(*command, *files)
    assert code == 0
    train, test = cf.read(folder / "train.csv"), cf.read_test(folder / "test.csv")
    found = cf.bias(runs=cf.read_runs(files), test=test, train=train, groups=3)
    assert json.loads(out)["orders"] == found.orders.to_dicts()
    assert [row["system"] for row in json.loads(out)["predicted"]] == ["a random ranking", "popularity", "popularity"]


def test_propensities_come_from_a_column(folder, cranfield):
    test = cf.read_test(folder / "test.csv").frame()
    test.with_columns(seen=test["rating"] * 0 + 0.5).select("user", "item", "seen").write_csv(folder / "seen.csv")
    files = [str(path) for path in sorted(folder.glob("*.tsv"))]
    command = (
        "bias",
        "--test",
        folder / "test.csv",
        "--train",
        folder / "train.csv",
        "--groups",
        "3",
        "--format",
        "json",
    )
    code, out, err = cranfield(*command, *files, "--propensities", f"{folder / 'seen.csv'}:seen")
    assert code == 0, err
    rows = [row for row in json.loads(out)["estimates"] if row["metric"] == "P@10" and row["system"] == "popularity"]
    assert rows[1]["estimate"] == pytest.approx(2 * rows[0]["estimate"])  # every observed item counts for two


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give ratings with --data"),
        (("--test", "test.csv", "run.tsv"), "popularity is counted in the training ratings; give them with --train"),
        (("--data", "ratings.csv", "--test", "test.csv"), "--test does nothing with --data"),
        (("--test", "a", "--train", "b", "c", "-s", "knn"), "--system does nothing without --data"),
        (("--data", "nowhere.csv"), "nowhere.csv"),
        (("--data", "ratings.csv", "--clip", "0.1"), "--clip does nothing without --propensities"),
        (("--data", "ratings.csv", "--propensities", "magic"), "is neither popularity nor logistic nor FILE:COLUMN"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, message, folder, cranfield, monkeypatch):
    monkeypatch.chdir(folder)
    code, out, err = cranfield("bias", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_sampled_ranks_are_corrected_on_demand(folder, cranfield, monkeypatch):
    monkeypatch.chdir(folder)
    ranked = ("--relevant", "one", "--nonrelevant", "9", "--threshold", "4", "-s", "popularity", "--out", "ranks")
    assert cranfield("recommend", "--train", "train.csv", "--test", "test.csv", *ranked).code == 0
    options = ("--test", "test.csv", "ranks/popularity.parquet", "-m", "HitRate@3", "--threshold", "4")
    code, out, _ = cranfield("evaluate", *options, "--train", "train.csv", "--correct-sampled")
    assert code == 0
    assert "popularity: sampled metrics corrected" in out
    code, out, _ = cranfield("evaluate", *options, "--train", "train.csv", "--correct-sampled", "--format", "json")
    row = json.loads(out)[0]
    assert row["whole_lower"] <= row["whole_catalogue"] <= row["whole_upper"]
    assert cranfield("evaluate", *options, "--correct-sampled").code == 2
