"""``cranfield data describe``."""

from __future__ import annotations

import csv
import io
import json

import pytest

CSV = "who,what,stars,when\nann,x,5,2000-12-31\nbob,x,3,2001-01-01\nbob,y,3,2001-01-01\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(CSV)
    return str(path)


@pytest.fixture
def run(cranfield):
    return lambda *arguments: cranfield("data", "describe", *arguments)


IDS = ("--user", "who", "--item", "2")
COLUMNS = (*IDS, "--time", "when")


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
        ((*IDS, "--no-rating"), "every rating is 1"),
        ((*IDS, "--no-time"), "no times"),
        (("--no-header", "--user", "1", "--item", "2", "--rating", "3"), "'stars' is not a number"),
        (("--separator", ";"), "only one field"),
        (("--encoding", "utf-9"), "'utf-9' is not known"),
        ((*IDS, "--counts", "celma"), "celma: grades 5"),
        ((*IDS, "--time", "when", "--no-time"), "exclude each other"),
        ((*IDS, "--no-quote"), "75.000 %"),
    ],
)
def test_options_reach_the_reader(run, file, options, seen):
    _, out, err = run(file, *options)
    assert seen in out + err


def test_repeated(run, tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("user\titem\trating\n1\t2\t3\n1\t2\t4\n")
    code, _, err = run(str(path), "--separator", "\\t")
    assert code == 2
    assert "row 3: user 1 rates item 2 more than once" in err
    assert "mean 3.5" in run(str(path), "--repeated", "mean")[1]


def test_a_name_that_is_neither_file_nor_dataset(run):
    code, _, err = run("ml-1n")
    assert code == 2
    assert "did you mean 'ml-1m'" in err
    code, _, err = run("ml-1m", "--user", "u")
    assert code == 2
    assert "needs no user" in err


def test_a_known_dataset(run, monkeypatch):
    from cranfield import datasets
    from cranfield.data import Ratings

    monkeypatch.setattr(datasets, "load", lambda name, part: Ratings.of([1, 2], [1, 1]))
    assert "users" in run("ML-1M")[1]
