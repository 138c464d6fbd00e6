"""A test set is ratings of any kind or TREC judgments, and it is said which."""

from __future__ import annotations

import gzip

import polars as pl
import pytest

from cranfield import InputError, SettingError
from cranfield.rankings import read_test

QRELS = "u2 0 a 1\nu1 0 b 0\nu1 0 c 2\n"
ROWS = [("u1", "b", 0.0), ("u1", "c", 2.0), ("u2", "a", 1.0)]


@pytest.fixture
def written(tmp_path):
    def write(content, name="test.qrels"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def _format(ratings):
    return ratings.history[-1].settings["format"]


@pytest.mark.parametrize(
    "content",
    [
        QRELS,
        QRELS.replace(" ", "\t"),
        QRELS.replace(" ", "  "),
        QRELS.replace(" ", "\t "),
        QRELS.replace(" 0 ", " Q0 "),
        QRELS.replace(" 0 ", "   00  "),
        QRELS.replace("\n", " \r\n"),
        gzip.compress(QRELS.encode(), mtime=0),
        "# mine\n" + QRELS + "# end\n",
        QRELS.replace("u1 0 b", "#5 5\nu1 0 b"),
    ],
)
def test_trec_judgments_are_recognised(written, content):
    test = read_test(written(content))
    assert test.frame().rows() == ROWS
    assert _format(test) == "qrels"


@pytest.mark.parametrize("item", ["a,1", '"a"', '"a', "a::1"])
def test_ids_of_trec_judgments_may_hold_what_divides_other_text(written, item):
    test = read_test(written(f"u,1 0 {item} 2\nu,2 0 {item} 1\n"))
    assert test.frame().select("user", "item", "rating").rows() == [("u,1", item, 2.0), ("u,2", item, 1.0)]


def test_dictionaries_of_judgments_are_read():
    test = read_test({"u2": {"a": 1}, "u1": {"b": 0, "c": 2}, "u3": {}})
    assert test.frame().rows() == ROWS
    assert _format(test) == "qrels"


@pytest.mark.parametrize(
    "content",
    ["u1\tb\t0\t881250949\nu1\tc\t2\t881250950\nu2\ta\t1\t881250951\n", "user,item,rating\nu1,b,0\nu1,c,2\nu2,a,1\n"],
)
def test_ratings_are_read_as_ratings(written, content):
    test = read_test(written(content, "test.csv"))
    assert test.frame().select("user", "item", "rating").rows() == ROWS
    assert _format(test) == "ratings"


def test_frames_and_parquet_are_ratings(tmp_path):
    frame = pl.DataFrame(ROWS, schema=["user", "item", "rating"], orient="row")
    frame.write_parquet(tmp_path / "test.parquet")
    for source in (
        frame,
        frame.to_pandas(),
        tmp_path / "test.parquet",
        str(tmp_path / "test.parquet"),
        frame.to_dict(),
    ):
        test = read_test(source)
        assert test.frame().rows() == ROWS
        assert _format(test) == "ratings"


def test_queries_and_documents_are_users_and_items(tmp_path):
    frame = pl.DataFrame(ROWS, schema=["q_id", "doc_id", "score"], orient="row")
    frame.write_parquet(tmp_path / "test.parquet")
    for source in (frame, frame.lazy(), frame.to_pandas(), frame.to_arrow(), tmp_path / "test.parquet"):
        assert read_test(source).frame().rows() == ROWS


def test_the_format_can_be_given(written):
    odd = written("u1 7 b 0\nu1 7 c 2\nu2 7 a 1\n")
    assert read_test(odd, format="qrels").frame().rows() == ROWS
    with pytest.raises(SettingError, match="'ratings' or 'qrels'"):
        read_test(odd, format="trec")
    with pytest.raises(SettingError, match="only a text file"):
        read_test(pl.DataFrame(ROWS, schema=["user", "item", "rating"], orient="row"), format="qrels")


def test_faults_are_placed_in_the_file(written):
    path = written(QRELS + "u2 0 d good\n")
    with pytest.raises(InputError, match="row 4, column '4': 'good' is not a number"):
        read_test(path, format="qrels")
    commented = written(QRELS + "# mine\nu2 0 d good\n")
    with pytest.raises(InputError, match="row 5, column '4': 'good' is not a number"):
        read_test(commented, format="qrels")
    with pytest.raises(InputError, match="more than once"):
        read_test(written(QRELS + "u2 0 a 1\n"))


def test_the_name_is_that_of_the_file(written):
    assert read_test(written(QRELS, "movies.txt.gz")).name == "movies"


@pytest.mark.parametrize("kind", [object, "string", "category"])
def test_a_pandas_frame_with_text_ids_is_read_as_any_other(kind):
    pd = pytest.importorskip("pandas")
    columns = {"when": [3, 1, 2], "doc": ["z", "a", "é"], "rating": [1.5, 2.0, 3.0], "user": ["u10", "u2", "u10"]}
    frame = pd.DataFrame(columns, index=[7, 7, 9]).astype({"user": kind, "doc": kind})
    found, expected = read_test(frame, time="when"), read_test(pl.DataFrame(columns), time="when")
    assert found.frame().equals(expected.frame())
    assert found.fingerprint == expected.fingerprint
    assert found.history[-1].settings["columns"] == expected.history[-1].settings["columns"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"user": ["ann", None, "bob"]}, "row 2, column 'user': the user is missing"),
        ({"item": ["x", "y", ""]}, "row 3, column 'item': the item is missing"),
        ({"rating": [1, 2, float("nan")]}, "row 3, column 'rating': nan is not a finite number"),
        ({"user": ["ann"] * 3, "item": ["x", "y", "x"]}, "row 3: user 'ann' rates item 'x' more than once"),
    ],
)
def test_what_is_wrong_with_a_pandas_frame_is_told_with_its_row_and_ids(changed, message):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"user": ["ann", "bob", "eve"], "item": ["x", "y", "z"], "rating": [1, 2, 3], **changed})
    with pytest.raises(InputError) as told:
        read_test(frame.astype({"user": object, "item": object}))
    assert message in str(told.value)


def test_a_pipe_gives_ratings_or_judgments(piped):
    assert read_test(piped(b"ann,x,4\nbob,y,2\n", "ratings")).frame().rows() == [("ann", "x", 4.0), ("bob", "y", 2.0)]
    assert read_test(piped(b"ann 0 x 4\nbob 0 y 2\n", "qrels")).frame().rows() == [("ann", "x", 4.0), ("bob", "y", 2.0)]
