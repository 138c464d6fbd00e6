"""Plausible mistakes of a new user, each with its command and what it is answered."""

from __future__ import annotations

import random
import shlex
import zipfile
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

USERS, ITEMS = range(101, 111), range(201, 221)
RATINGS = [(user, item, 1 + (user * 7 + item * 3) % 5) for user in USERS for item in ITEMS if (user + item) % 2 == 0]
TRAIN = [row for row in RATINGS if (row[0] + row[1] * 2) % 3]
TEST = [row for row in RATINGS if not (row[0] + row[1] * 2) % 3]


def _text(rows, header="user,item,score", separator=","):
    return "\n".join([header, *(separator.join(map(str, row)) for row in rows)]) + "\n"


def _lists(seed):
    """Return every item that a user did not rate in the training set, with a random score."""
    chance, rated = random.Random(seed), {row[:2] for row in TRAIN}
    pairs = [(user, item) for user in USERS for item in ITEMS if (user, item) not in rated]
    return [(*pair, round(chance.random(), 4)) for pair in pairs]


KNN, ALS = _lists(1), _lists(2)
CELLS = [(user, " ".join(str(item) for one, item, _ in KNN if one == user)) for user in USERS]

FILES = {
    "ratings.csv": _text(RATINGS, "user,item,rating"),
    "train.csv": _text(TRAIN, "user,item,rating"),
    "test.csv": _text(TEST, "user,item,rating"),
    "knn.csv": _text(KNN),
    "als.csv": _text(ALS),
    "copy.csv": _text(KNN),
    "few.csv": _text([(ITEMS[0],)], "item"),
    "ghost.csv": _text([*ALS, (USERS[0], 9999, 0.5)]),
    "counts.csv": _text([(user, item, 40 + place) for place, (user, item, _) in enumerate(KNN)]),
    "log.csv": _text(TEST, "visitor,page,stars"),
    "qrels.txt": "".join(f"{user} 0 {item} {grade}\n" for user, item, grade in TEST),
    "knn.run": "".join(f"{user} Q0 {item} 1 {score} knn\n" for user, item, score in KNN),
    "padded.csv": _text([(f"0{user}", item, score) for user, item, score in KNN]),
    "prefixed.csv": _text([(f"user_{user}", item, score) for user, item, score in KNN]),
    "floats.csv": _text([(user, f"{item}.0", score) for user, item, score in KNN]),
    "spaces.csv": _text([(user, f" {item}", score) for user, item, score in KNN]),
    "capitals.csv": _text([(f"U{user}", item, score) for user, item, score in KNN]),
    "letters.csv": _text([(f"u{user}", item, grade) for user, item, grade in TEST], "user,item,rating"),
    "elsewhere.csv": _text([(user, f"tt{77 * item}", score) for user, item, score in KNN]),
    "partly.csv": _text([(user if user == 101 else f"x{user}", item, score) for user, item, score in KNN]),
    "columns.csv": _text([(item, user, score) for user, item, score in KNN]),
    "unnamed.csv": _text([(*row, "a", "b") for row in KNN], "a,b,c,d,e"),
    "no-header.csv": _text(KNN).partition("\n")[2],
    "tabs.csv": _text(KNN, "user\titem\tscore", "\t"),
    "seen.csv": _text([(user, item, item) for user, item, _ in RATINGS]),
    "nan.csv": _text([(user, item, "NaN") for user, item, _ in KNN]),
    "words.csv": _text([(user, item, "high") for user, item, _ in KNN]),
    "no-scores.csv": _text([row[:2] for row in KNN], "user,item"),
    "repeated.csv": _text([*KNN, *KNN]),
    "rated-twice.csv": _text([*TEST, TEST[0]], "user,item,rating"),
    "stars.csv": _text([(user, item, "*" * grade) for user, item, grade in TEST], "user,item,rating"),
    "short-row.csv": _text(KNN).replace("101,202,", "101,", 1),
    "cells.csv": _text(CELLS, "user,items"),
    "empty.csv": "",
    "header.csv": "user,item,score\n",
    "path.toml": '[data.mine]\npath = "ratings.csv"\n[systems]\nknn = "knn"\n',
    "key.toml": '[data.mine]\nfile = "ratings.csv"\n[systems]\nknn = "knn"\n[decisions]\ntreshold = 4\n',
    "system.toml": '[data.mine]\nfile = "ratings.csv"\n[systems]\nknn = "kn"\n',
    "source.toml": '[data.mine]\nfile = "nowhere.csv"\n[systems]\nknn = "knn"\n',
}


class Mistake(NamedTuple):
    """A command, what it says, and its exit code: 0 where the result is defined, and something is to be said."""

    command: str
    message: str
    code: int = 2


E, C = "evaluate --test test.csv", "compare --test test.csv -m P@5 --threshold 4"

MISTAKES = {
    # The wrong file
    "test set and run swapped": Mistake(
        "evaluate --test knn.csv test.csv",
        "test.csv: the test set and the run seem to be swapped: the test set holds scores, and this run ratings; give",
    ),
    "test set and the counts of popularity swapped": Mistake(
        "evaluate --test counts.csv test.csv",
        "test.csv: the test set and the run seem to be swapped: the test set holds scores, and this run ratings; give",
    ),
    "judgments as run": Mistake(
        "evaluate --test knn.run qrels.txt", "qrels.txt: the file holds relevance judgments (qrels), not ranked lists;"
    ),
    "TREC run as test set": Mistake(
        "evaluate --test knn.run knn.csv", "knn.run: the file holds ranked lists (a TREC run), not a test set; give"
    ),
    "test set as run": Mistake(f"{E} test.csv", "test.csv: this file is given both as the test set and as a run; give"),
    "training set as test set": Mistake(
        "evaluate --test train.csv knn.csv",
        "knn.csv: no list holds any item that its user has rated in the test set, although chance alone would find "
        "about 44; this happens if the training ratings are given as the test set (--test), or as the run; give the "
        "held-out ratings",
    ),
    "test set as training set": Mistake(
        f"{E} --train test.csv knn.csv",
        "test.csv: the test set is the training set: they hold the same users and items; give the held-out ratings",
    ),
    "all ratings as training set": Mistake(
        f"{E} --train ratings.csv knn.csv", "32 of 32 test ratings (100%) are in the training set too", 0
    ),
    "all ratings as training set, strictly": Mistake(
        f"{E} --train ratings.csv knn.csv --strict", "32 of 32 test ratings (100%) are in the training set too"
    ),
    "one file twice": Mistake(f"{C} knn.csv knn.csv", "knn.csv is given twice as a run; give each run once"),
    "a copy under another name": Mistake(
        f"{C} knn.csv copy.csv",
        "Warning: knn and copy hold the same lists, as if one file were given under several names.",
        0,
    ),
    "a copy, strictly": Mistake(f"{C} knn.csv copy.csv --strict", "knn and copy hold the same lists"),
    "items outside a catalogue, strictly": Mistake(
        f"{C} knn.csv ghost.csv --catalogue few.csv --strict", "ghost recommends 1 item that is not in the catalogue"
    ),
    "training items in the lists": Mistake(
        f"{E} --train train.csv seen.csv",
        "lists hold items from their user's training ratings, which take up places and are not in the test set: "
        "68 of 100 items of seen (68%)",
        0,
    ),
    "training items in the lists, strictly": Mistake(
        "assess --test test.csv --train train.csv knn.csv seen.csv --strict",
        "lists hold items from their user's training ratings",
    ),
    # The wrong ids
    "ids with leading zeros": Mistake(
        f"{E} padded.csv",
        "padded.csv: no user of this run has test ratings: the run has '0101', '0102' and '0103', the test set 101, "
        "102 and 103; they differ by leading zeros (007 against 7); write the ids the same way in both files",
    ),
    "ids with a prefix": Mistake(
        f"{E} prefixed.csv",
        "the run has 'user_101', 'user_102' and 'user_103', the test set 101, 102 and 103; they differ by a prefix",
    ),
    "ids as floats": Mistake(
        f"{E} floats.csv",
        "floats.csv: no item of this run is in the test set: the run has '201.0', '202.0' and '203.0', the test set "
        "201, 202 and 203; they differ by a decimal part (1.0 against 1)",
    ),
    "ids with spaces": Mistake(f"{E} spaces.csv", "they differ by surrounding spaces; write the ids the same way"),
    "ids in capitals": Mistake("evaluate --test letters.csv capitals.csv", "they differ by upper and lower case"),
    "a run of other data": Mistake(
        "dialects --test test.csv elsewhere.csv",
        "elsewhere.csv: no item of this run is in the test set: the run has 'tt15477', 'tt15554' and 'tt15631', the "
        "test set 201, 202 and 203; give the run and the test set of the same data",
    ),
    "lists that hardly meet the ratings that they are calibrated by": Mistake(
        "calibrate knn.csv --by partly.csv --validation test.csv --out new.csv",
        "partly: the test set has only 1 of the 10 users of the run",
        0,
    ),
    "lists that hardly meet the ratings that they are calibrated by, strictly": Mistake(
        "calibrate knn.csv --by partly.csv --validation test.csv --out new.csv --strict",
        "partly: the test set has only 1 of the 10 users of the run",
    ),
    "a threshold that no rating reaches, in other tools": Mistake(
        "dialects --test test.csv knn.csv -m P@5 --threshold 6",
        "nothing can be measured: no test rating is 6 or more; the highest is 5; lower --threshold",
    ),
    "a threshold that no rating reaches, in other tools, where some need none": Mistake(
        "dialects --test test.csv knn.csv -m nDCG@5 --threshold 6", "no test rating is 6 or more; the highest is 5", 0
    ),
    "users and items in each other's column": Mistake(
        f"{E} columns.csv",
        "columns.csv: the users of this run are items of the test set, and its items are users;",
    ),
    "a few ids of the test set": Mistake(
        f"{E} partly.csv", "partly: the test set has only 1 of the 10 users of the run, and 10 in all;", 0
    ),
    "a few ids of the test set, strictly": Mistake(f"{E} partly.csv --strict", "partly: the test set has only 1 of"),
    "a few ids of the test set, in an audit": Mistake(
        "audit --test test.csv partly.csv als.csv -m P@5", "· Warning: partly: the test set has only 1 of the 10", 0
    ),
    "a few ids of the test set, strictly, in an audit": Mistake(
        "audit --test test.csv partly.csv als.csv -m P@5 --strict", "partly: the test set has only 1 of the 10"
    ),
    "other ids, in an audit": Mistake(
        "audit --test test.csv padded.csv als.csv -m P@5", "padded.csv: no user of this run has test ratings"
    ),
    "a few ids of the test set, for the bias": Mistake(
        "-q bias --test test.csv --train train.csv partly.csv als.csv -m P@5 --groups 2",
        "· Warning: partly: the test set has only 1 of the 10",
        0,
    ),
    "a few ids of the test set, strictly, for the bias": Mistake(
        "bias --test test.csv --train train.csv partly.csv als.csv -m P@5 --strict",
        "partly: the test set has only 1 of the 10",
    ),
    "a few ids of the test set, strictly, for labels": Mistake(
        "suggest-judgments --test test.csv partly.csv als.csv -m P@5 --strict",
        "partly: the test set has only 1 of the 10",
    ),
    "a few ids of the test set, for labels": Mistake(
        "-q suggest-judgments --test test.csv partly.csv als.csv -m P@5",
        "· Warning: partly: the test set has only 1 of",
        0,
    ),
    # The wrong shape
    "columns without known names": Mistake(
        f"{E} unnamed.csv", "unnamed.csv: a, b, c, d, e do not say which one is the user and which the item; name them"
    ),
    "header expected where there is none": Mistake(
        f"{E} no-header.csv --read-runs score=score", "no-header.csv: there is no column 'score' to take the score from"
    ),
    "the wrong separator": Mistake(
        f"{E} tabs.csv --read-runs separator=','",
        "tabs.csv, row 1: the row has only one field, and a user and an item are needed; ',' does not divide it; leave "
        "--read or --read-runs separator=... out",
    ),
    "a separator for Parquet": Mistake(
        "evaluate --test test.parquet knn.parquet --read separator=','",
        "test.parquet is not a text file, and --read or --read-runs separator=... is only for text; leave it out",
    ),
    "a column that is not there": Mistake(
        f"{E} knn.csv --read-runs score=scroe",
        "knn.csv: there is no column 'scroe' to take the score from; did you mean 'score'?",
    ),
    "a user column that no file has": Mistake(
        f"{E} knn.csv --read user=member",
        "knn.csv: there is no column 'member' to take the user from; known: item, score",
    ),
    "columns of the ratings unnamed": Mistake(
        "evaluate --test log.csv knn.csv --read 'user=visitor, item=page, rating=star'",
        "log.csv: there is no column 'star'; did you mean 'stars'?",
    ),
    "lists in one cell": Mistake(f"{E} cells.csv", "cells: 10 lists written in one cell each, and split", 0),
    "lists in one cell, compared": Mistake(
        f"{C} cells.csv als.csv", "· cells: 10 lists written in one cell each, and split", 0
    ),
    "a row that is too short": Mistake(
        f"{E} short-row.csv",
        "short-row.csv, row 2: the row has 2 fields instead of 3; fix the row",
    ),
    "an empty run": Mistake(f"{E} empty.csv", "empty.csv: the file is empty; check that it was written completely"),
    "an empty test set": Mistake("evaluate --test empty.csv knn.csv", "empty.csv: the file is empty"),
    "a header and no rows": Mistake(f"{E} header.csv", "header.csv: there are no rows; give a run with at least one"),
    "a workbook": Mistake(f"{E} knn.xlsx", "knn.xlsx: the file is an Excel workbook; save the sheet as CSV"),
    # The wrong values
    "scores that are words": Mistake(f"{E} words.csv", "words.csv, row 2, column 'score': 'high' is not a number;"),
    "scores that are NaN": Mistake(f"{E} nan.csv", "nan: every list is empty, and scores 0", 0),
    "no scores": Mistake(
        f"{E} no-scores.csv", "no-scores: 10 lists without scores and ranks, taken in the order of the rows", 0
    ),
    "items twice in a list": Mistake(
        f"{E} repeated.csv", "repeated: 132 items repeated in the same list: only the best ranked is kept", 0
    ),
    "a rating twice": Mistake(
        "evaluate --test rated-twice.csv knn.csv",
        "rated-twice.csv, row 34: user 101 rates item 203 more than once (1 repeated rating in all), already in "
        "row 2; say how they become one rating with --read repeated=last, 'max' or 'sum'",
    ),
    "ratings that are stars": Mistake(
        "evaluate --test stars.csv knn.csv",
        "stars.csv, row 2, column 'rating': '**' is not a number; write a number or leave the row out",
    ),
    "a threshold above the scale": Mistake(
        f"{E} knn.csv -m P@5 --threshold 6",
        "nothing can be measured: no test rating is 6 or more; the highest is 5; lower",
    ),
    "judgments under a threshold above the scale": Mistake(
        "suggest-judgments --test test.csv knn.csv als.csv --threshold 6",
        "nothing can be measured: no test rating is 6 or more; the highest is 5; lower",
    ),
    "an audit under a threshold above the scale": Mistake(
        "audit --test test.csv knn.csv als.csv --threshold 6 --no-report --out audited",
        "no test rating is relevant; start with another metric or threshold",
    ),
    "a margin without its per cent": Mistake(
        f"{C} knn.csv als.csv -m P@5 --baseline als --no-worse 1",
        "a margin of 1 lets every system through, since P@5 of als is ",
    ),
    # The wrong name
    "a misspelt metric": Mistake(f"{E} knn.csv -m nDGC@10", "there is no metric 'nDGC'; did you mean 'nDCG'?"),
    "a negative cut-off": Mistake(
        f"{E} knn.csv -m P@-5", "the cut-off '-5' in 'P@-5' is not a positive whole number; write @10"
    ),
    "a misspelt option": Mistake(f"{E} knn.csv --treshold 4", "No such option"),
    "a misspelt command": Mistake("evalute --test test.csv knn.csv", "there is no command 'evalute'; did you mean"),
    "a misspelt system": Mistake(
        "recommend --train train.csv -s poplarity --out runs",
        "there is no system 'poplarity'; did you mean",
    ),
    "a negative length": Mistake(
        "recommend --train train.csv -s popularity --length -5 --out runs",
        "length=-5 is neither 'all' nor a whole number of at least 1",
    ),
    "a misspelt baseline": Mistake(
        f"{C} knn.csv als.csv --baseline kn", "there is no system 'kn' for a baseline; did you mean 'knn'?"
    ),
    "one run to compare": Mistake(f"{C} knn.csv", "there is 1 system to compare; give two or more"),
    "a misspelt split": Mistake("split ratings.csv --method ranom --out p", "there is no split 'ranom'; did you mean"),
    "a share in per cent": Mistake(
        "split ratings.csv --method random(train=80) --out p", "train=80 is not a share; give a number between 0 and 1"
    ),
    "a temporal split without times": Mistake(
        "split ratings.csv --method temporal --out p", "temporal needs times, and the ratings of the 10 users have none"
    ),
    "another word for a file": Mistake(
        "run path.toml", "path.toml, line 2, data.mine: no key 'path'; a file of ratings is called 'file'"
    ),
    "a misspelt key": Mistake(
        "run key.toml", "key.toml, line 6, decisions: no key 'treshold'; did you mean 'threshold'?"
    ),
    "a misspelt system in a file": Mistake("run system.toml", "there is no system 'kn'; did you mean 'knn'?"),
    "ratings that are not there": Mistake("run source.toml", "data.mine: nowhere.csv: there is no such file; fix its"),
    "ratings for an experiment": Mistake("run ratings.csv", "ratings.csv: it is not TOML"),
    "a misspelt dataset": Mistake(
        "data describe ml1m", "'ml1m' is neither a file nor a known dataset; see: cranfield data list"
    ),
    # The wrong place
    "a missing folder": Mistake(f"{E} runs/knn.csv", "runs/knn.csv: there is no such file; check the name"),
    "a folder for a run": Mistake(f"{E} folder", "folder: this is a folder; name a file in it; it holds knn.csv"),
    "a file for a folder": Mistake("split ratings.csv --out test.csv", "--out test.csv is a file; name a folder"),
    "runs into a file": Mistake(
        "recommend --train train.csv -s popularity --out test.csv", "--out test.csv is a file; name a folder"
    ),
    "output over an input": Mistake(
        f"{E} knn.csv --out knn.csv", "--out knn.csv would replace a file that is also read or written"
    ),
    "output as a workbook": Mistake(
        f"{E} knn.csv --out res.xlsx", "--out res.xlsx cannot be written as xlsx; give another"
    ),
    "no run": Mistake(E, "Missing argument 'RUN...'"),
    "reading options without a file": Mistake(
        "data simulate --out world.csv --read user=who", "--read does nothing without --like"
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with all files."""
    place = tmp_path_factory.mktemp("mistakes")
    for name, text in FILES.items():
        (place / name).write_text(text)
    (place / "folder").mkdir()
    (place / "folder" / "knn.csv").write_text(FILES["knn.csv"])
    with zipfile.ZipFile(place / "knn.xlsx", "w") as workbook:
        for name in ("[Content_Types].xml", "xl/workbook.xml"):
            workbook.writestr(name, "<xml/>")
    for name in ("test", "knn"):
        pl.read_csv(place / f"{name}.csv").write_parquet(place / f"{name}.parquet")
    return place


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=list(MISTAKES))
def test_a_plausible_mistake_is_answered_in_one_line(cranfield, folder, monkeypatch, mistake):
    monkeypatch.chdir(folder)
    there = {path.name for path in Path().iterdir()}
    told = [] if mistake.code else ["--details"]  # what was read, and how, is among the details
    code, out, err = cranfield(*shlex.split(mistake.command), *told)
    assert code == mistake.code, out + err
    assert mistake.message in (err if code else out + err)
    if code:
        assert (out, err.count("\n")) == ("", 1)
        assert {path.name for path in Path().iterdir()} == there, "nothing is left behind"


def test_the_files_that_are_not_mistaken_have_no_warning(cranfield, folder, monkeypatch):
    monkeypatch.chdir(folder)
    code, out, err = cranfield(*shlex.split(f"{C} knn.csv als.csv --train train.csv --strict"))
    assert (code, err) == (0, "")
    assert "Warning" not in out


def test_a_warning_is_in_the_verdict_or_beside_the_output_in_every_format(cranfield, folder, monkeypatch):
    monkeypatch.chdir(folder)
    for format in ("table", "json", "csv", "matrix", "latex", "markdown"):
        code, out, err = cranfield(*shlex.split(f"{C} knn.csv copy.csv --format {format}"))
        assert code == 0
        assert (out + err).count("knn and copy hold the same lists") == 1, format
