"""cranfield data: datasets are listed and fetched, ratings described, filtered and simulated."""

from __future__ import annotations

import csv
import inspect
import io
import json
import re

import numpy as np
import polars as pl
import pytest

from cranfield import Ratings, simulate
from cranfield.data import filters, read


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CRANFIELD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "datasets"


@pytest.fixture
def coat(tmp_path):
    folder = tmp_path / "coat"
    folder.mkdir()
    (folder / "train.ascii").write_text("5 0\n0 1\n")
    (folder / "test.ascii").write_text("0 3\n0 0\n")
    return folder


def test_list_prints_a_row_for_each_dataset(cranfield):
    found = cranfield("data", "list")
    lines = found.out.splitlines()
    assert lines[0].split() == ["name", "users", "items", "ratings", "scale", "times", "get", "cached", "licence"]
    (row,) = [line for line in lines if line.startswith("ml-1m ")]
    assert row.split()[:4] == ["ml-1m", "6,040", "3,706", "1,000,209"]
    assert [line for line in lines if line.startswith("netflix ") and "by hand" in line]


def test_list_can_be_narrowed(cranfield):
    found = cranfield("data", "list", "lastfm")
    assert [line.split()[0] for line in found.out.splitlines()] == [
        "name",
        "lastfm-1k",
        "lastfm-1k-temporal",
        "lastfm-360k",
    ]


def test_list_as_csv_and_json_holds_the_same(cranfield):
    found = cranfield("data", "list", "coat", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(found.out))
    found = cranfield("data", "list", "coat", "--format", "json")
    (entry,) = json.loads(found.out)
    assert list(row) == list(entry)
    assert (row["ratings"], entry["ratings"]) == ("6960", 6960)
    assert entry["home"].startswith("https://")
    assert entry["cached"] is False


def test_fetch_prints_where_it_lies_and_its_counts(cranfield, coat, cache):
    found = cranfield("data", "fetch", "coat", "--from", coat, "--no-verify")
    out = found.out
    assert "coat (train): 2 users, 2 items, 2 ratings" in out
    assert str(cache / "coat" / "test.parquet") in out
    assert "Schnabel" in out
    found = cranfield("data", "list", "coat", "--format", "json")
    assert json.loads(found.out)[0]["cached"] is True


def test_fetch_refuses_other_data_in_one_line(cranfield, coat):
    error = cranfield("data", "fetch", "coat", "--from", coat).err
    assert "2 users in its train part instead of 290" in error
    assert len(error.splitlines()) == 1


def test_fetch_of_what_needs_a_person_names_page_and_line(cranfield):
    error = cranfield("data", "fetch", "yahoo-r3").err
    assert "https://webscope" in error
    assert "cranfield data fetch yahoo-r3 --from PATH" in error


def test_an_unknown_name_is_answered_with_the_nearest(cranfield):
    assert "did you mean 'ml-100k'?" in cranfield("data", "fetch", "ml100k").err


def test_a_published_test_part_makes_a_split(coat, tmp_path, cranfield):
    found = cranfield("data", "fetch", "coat", "--from", coat, "--no-verify")
    found = cranfield("split", "coat", "--test", "coat", "--out", tmp_path / "parts")
    assert "Split(predefined: train 2, test 1)" in found.out
    error = cranfield("split", "coat", "--test", "ml-1m", "--out", tmp_path / "others").err
    assert "there is no part 'test' of ml-1m" in error


CSV = "who,what,stars,when\nann,x,5,2000-12-31\nbob,x,3,2001-01-01\nbob,y,3,2001-01-01\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(CSV)
    return str(path)


@pytest.fixture
def run(cranfield):
    return lambda *arguments: cranfield("data", "describe", *arguments)


IDS = ("--read", "user=who, item=2")
COLUMNS = (*IDS, "--read", "time=when")


def test_it_prints_what_is_in_the_file(run, file):
    code, out, _ = run(file, *COLUMNS)
    assert code == 0
    assert ["users", "2"] in [line.split() for line in out.splitlines()]
    assert "75.000 %" in out
    assert "columns user=who item=what rating=stars time=when" in out
    assert "from 2000-12-31" in out


def test_json_and_csv(run, file):
    _, out, _ = run(file, *COLUMNS, "--format", "json")
    assert json.loads(out)["ratings"] == 3
    _, out, _ = run(file, *COLUMNS, "--format", "csv")
    rows = {(row["group"], row["statistic"]): row["value"] for row in csv.DictReader(io.StringIO(out))}
    assert rows["size", "items"] == "2.0"


def test_out(run, file, tmp_path):
    assert run(file, *COLUMNS, "--out", str(tmp_path / "out.txt"))[1] == ""
    assert "users" in (tmp_path / "out.txt").read_text()


def test_a_mistake_is_one_line_and_exit_code_2(run, file, tmp_path):
    code, out, err = run(file)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "mine.csv: no column is known to hold the users" in err
    bad = tmp_path / "bad.csv"
    bad.write_text("user,item,rating\n1,2,x\n")
    assert run(str(bad)) == (
        2,
        "",
        f"cranfield: {bad}, row 2, column 'rating': 'x' is not a number; write a number or leave the row out; "
        "see docs/data.md\n",
    )


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ((*IDS, "--read", "rating=none"), "every rating is 1"),
        ((*IDS, "--read", "time=none"), "no times"),
        (("--read", "header=false, user=1, item=2, rating=3"), "'stars' is not a number"),
        (("--read", "separator=;"), "only one field"),
        (("--read", "encoding=utf-9"), "'utf-9' is not known"),
        ((*IDS, "--read", "counts=to_ratings"), "counts_to_ratings: grades 5"),
        ((*IDS, "--read", "time=when, time=none"), "is given twice"),
        ((*IDS, "--read", "quote=none"), "75.000 %"),
    ],
)
def test_options_reach_the_reader(run, file, options, seen):
    _, out, err = run(file, *options)
    assert seen in out + err


def test_repeated(run, tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("user\titem\trating\n1\t2\t3\n1\t2\t4\n")
    code, _, err = run(str(path), "--read", "separator=\\t")
    assert code == 2
    assert "row 3: user 1 rates item 2 more than once" in err
    assert "mean 3.5" in run(str(path), "--read", "repeated=mean")[1]


def test_a_name_that_is_neither_file_nor_dataset(run):
    code, _, err = run("ml-1n")
    assert code == 2
    assert "did you mean 'ml-1m'" in err
    code, _, err = run("ml-1m", "--read", "user=u")
    assert code == 2
    assert "needs no user" in err


def test_a_known_dataset(run, monkeypatch):
    from cranfield import datasets
    from cranfield.data import Ratings

    monkeypatch.setattr(datasets, "load", lambda name, part: Ratings.of([1, 2], [1, 1]))
    assert "users" in run("ML-1M")[1]


RATINGS = Ratings.of([1, 1, 1, 2, 2, 3], ["a", "b", "c", "a", "b", "c"], [5, 4, 1, 5, 4, 2])


@pytest.fixture
def ratings_file(tmp_path):
    path = tmp_path / "ratings.csv"
    RATINGS.frame().write_csv(path)
    return path


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv"])
def test_the_chain_is_applied_printed_and_recorded(ratings_file, tmp_path, cranfield, ending):
    out = tmp_path / f"kept.{ending}"
    found = cranfield(
        "data", "filter", ratings_file, "--filter", "positives(threshold=2)", "--filter", "k_core(k=2)", "--out", out
    )
    assert found.code == 0
    read = pl.read_parquet if ending == "parquet" else lambda path: pl.read_csv(path, separator=",\t"[ending == "tsv"])
    expected = filters.k_core(filters.positives(RATINGS, threshold=2), k=2)
    assert read(out).rows() == expected.frame().rows()
    printed = " ".join(found.out.split())
    assert "positives(threshold=2.0) users 3 → 3 removed 0 items 3 → 3 removed 0 ratings 6 → 5 removed 1" in printed
    assert "k_core(k=2) users 3 → 2 removed 1 items 3 → 2 removed 1 ratings 5 → 4 removed 1" in printed
    record = json.loads(out.with_suffix(".json").read_text())
    assert [step["action"] for step in record["steps"]][-2:] == ["positives", "k_core"]
    assert record["fingerprint"] == expected.fingerprint


@pytest.mark.parametrize("theirs", ['{"precious": 1}', "[1, 2", '{"cranfield": "0.1.0", "ratings": "kept.parquet"}'])
def test_a_file_where_the_record_goes_stays(ratings_file, tmp_path, cranfield, theirs):
    (tmp_path / "kept.json").write_text(theirs)
    found = cranfield("data", "filter", ratings_file, "--filter", "k_core(k=1)", "--out", tmp_path / "kept.csv")
    assert found.code == 2
    assert "kept.json, which is another file" in found.err
    assert (tmp_path / "kept.json").read_text() == theirs
    assert not (tmp_path / "kept.csv").exists()


def test_filtering_again_replaces_ratings_and_record(ratings_file, tmp_path, cranfield):
    for k in (1, 2):
        assert (
            cranfield(
                "data", "filter", ratings_file, "--filter", f"k_core(k={k})", "--out", tmp_path / "kept.csv", "-q"
            ).code
            == 0
        )
    assert json.loads((tmp_path / "kept.json").read_text())["steps"][-1]["settings"] == {"k": 2}


def test_quiet_says_nothing(ratings_file, tmp_path, cranfield):
    found = cranfield("data", "filter", ratings_file, "--filter", "k_core(k=1)", "--out", tmp_path / "a.csv", "--quiet")
    assert found.code == 0
    assert found.out == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--filter", "k_cor", "--out", "a.csv"], "there is no filter 'k_cor'; did you mean 'k_core'?"),
        (["--filter", "k_core(k=9)", "--out", "a.csv"], "k_core(k=9) would leave none of the 6 ratings"),
        (["--filter", "k_core", "--out", "a.xls"], "a.xls does not end in a known format; name it .parquet"),
        (["--filter", "k_core", "--out", "a.parqet"], "name it .parquet, .csv or .tsv; did you mean 'parquet'?"),
        (["--filter", "time_window(start=inf)", "--out", "a.csv"], "time_window needs times"),
    ],
)
def test_a_mistake_in_a_filter_is_one_line_and_exit_code_2(
    ratings_file, tmp_path, cranfield, monkeypatch, options, message
):
    monkeypatch.chdir(tmp_path)
    found = cranfield("data", "filter", ratings_file, *options)
    assert found.code == 2
    error = found.err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "a.csv").exists()


SMALL = "users=60, items=40, ratings=600"


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv"])
def test_a_world_is_written_with_its_truth_and_record(tmp_path, cranfield, ending):
    out, truth = tmp_path / f"world.{ending}", tmp_path / f"truth.{ending}"
    found = cranfield(
        "data",
        "simulate",
        f"world({SMALL}, popularity_bias=0.5, tastes=4)",
        "--out",
        out,
        "--truth",
        truth,
        "--seed",
        3,
    )
    assert found.code == 0
    world = simulate.world(60, 40, 600, seed=3, popularity_bias=0.5, tastes=4)
    assert read(out).fingerprint == world.ratings.fingerprint
    complete = read(truth)
    assert len(complete) == 2_400
    assert np.array_equal(complete.values, world.preference().ravel())
    record = json.loads((tmp_path / "world.json").read_text())
    assert record["steps"][0]["settings"]["popularity_bias"] == 0.5
    assert record["truth"] == f"truth.{ending}"
    assert record["fingerprint"] == world.ratings.fingerprint
    assert "60 users, 40 items, 600 ratings" in found.out


def test_popularity_ratings_are_those_of_the_function(tmp_path, cranfield):
    out = tmp_path / "steep.csv"
    assert cranfield("data", "simulate", f"popularity({SMALL}, alpha=2, activity=0)", "--out", out).code == 0
    assert read(out).fingerprint == simulate.popularity(60, 40, 600, alpha=2, activity=0).fingerprint
    assert json.loads((tmp_path / "steep.json").read_text())["truth"] is None


def test_a_histogram_is_read_from_its_spelling(tmp_path, cranfield):
    out = tmp_path / "made.csv"
    assert cranfield("data", "simulate", f"popularity({SMALL}, histogram=1:0.25/5:0.75)", "--out", out).code == 0
    assert read(out).fingerprint == simulate.popularity(60, 40, 600, histogram={1: 0.25, 5: 0.75}).fingerprint


def test_like_resembles_a_file(tmp_path, cranfield):
    given = tmp_path / "given.csv"
    simulate.popularity(50, 30, 500, alpha=1.0).frame().write_csv(given)
    out = tmp_path / "flat.parquet"
    assert cranfield("data", "simulate", "popularity(alpha=0)", "--out", out, "--like", given).code == 0
    made = read(out)
    assert (made.n_users, made.n_items, len(made)) == (50, 30, 500)
    assert np.ptp(made.item_counts) <= 1


def test_without_times_there_is_no_time_column(tmp_path, cranfield):
    assert cranfield("data", "simulate", f"world({SMALL}, times=false)", "--out", tmp_path / "still.parquet").code == 0
    assert pl.read_parquet(tmp_path / "still.parquet").columns == ["user", "item", "rating"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("popularity(tastes=3)",), "popularity has no parameter 'tastes'"),
        (("popularity", "--truth", "t.csv"), "--truth goes with the simulation world"),
        (("world(alpha=1)",), "world has no parameter 'alpha'"),
        (("--like", "r.csv"), "--like goes with the simulation popularity"),
        ((f"world(ratings={10**9})",), "do not fit"),
        (("world(users=200000, items=500, ratings=1000000)", "--truth", "t.parquet"), "100,000,000 pairs"),
        (("world(histogram=1:a)",), "the histogram '1:a' is not a share for each value"),
        (("world(histogram=1)",), "the histogram 1 is not a share for each value"),
        (("--truth", "t.xlsx"), "t.xlsx does not end in a known format"),
        (("--truth", "./made.csv"), "made.csv is given twice as an output file"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(tmp_path, cranfield, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    found = cranfield("data", "simulate", "--out", "made.csv", *arguments)
    assert found.code == 2
    error = found.err
    assert said in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_every_setting_of_the_functions_is_spelled_in_the_help(cranfield):
    shown = cranfield("data", "simulate", "--help").out
    for function in (simulate.world, simulate.popularity):
        (line,) = (line for line in shown.splitlines() if line.strip().startswith(f"{function.__name__}("))
        assert {*inspect.signature(function).parameters} - {"seed", "like"} == set(re.findall(r"(\w+)=", line))


@pytest.mark.parametrize("baskets", [False, True])
def test_filtered_events_are_read_as_events_again(cranfield, tmp_path, baskets):
    frame = pl.DataFrame(
        {"user": [1, 1, 1, 2, 2], "item": [7, 7, 8, 7, 8], "time": [5, 3, 4, 9, 9], "day": [2, 1, 2, 1, 1]}
    )
    frame.write_csv(tmp_path / "log.csv")
    how = ["--read", "basket=day"] if baskets else []
    how += ["--filter", "min_ratings(user=2)", "--out", tmp_path / "kept.csv"]
    done = cranfield("data", "filter", tmp_path / "log.csv", *how)
    assert done.code == 0
    kept = read(tmp_path / "kept.csv")
    assert kept.fingerprint == read(tmp_path / "log.csv", basket="day" if baskets else None).fingerprint
    assert kept.events.merging == ("sum", "max")
