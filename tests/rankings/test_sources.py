"""Files of ranked lists as every tool writes them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cranfield import InputError, SettingError
from cranfield.rankings import read_run, read_runs, write_run

LISTS = [("u1", "c", 1, 2.0), ("u1", "b", 2, 1.0), ("u2", "d", 1, 0.75), ("u2", "a", 2, 0.5)]
TRIPLES = "u2\ta\t0.5\nu1\tb\t1.0\nu1\tc\t2.0\nu2\td\t0.75\n"
TREC = "u2 Q0 a 2 0.5 bm25\nu1 Q0 b 2 1.0 bm25\nu1 Q0 c 1 2.0 bm25\nu2 Q0 d 1 0.75 bm25\n"


@pytest.fixture
def written(tmp_path):
    def write(content, name="knn.tsv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def _format(run):
    return run.history[-1].settings["format"]


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (TREC, "trec"),
        (TREC.replace(" ", "\t"), "trec"),
        (TREC.replace(" ", "   "), "trec"),
        (TREC.replace(" ", " \t "), "trec"),
        (TREC.replace(" Q0 ", "\tQ0 "), "trec"),
        (TREC.replace("\n", " \r\n"), "trec"),
        ("  " + TREC.replace("\n", "\n  "), "trec"),
        (TREC + "\n\n", "trec"),
        (" " + TREC, "trec"),
        (TREC.rstrip("\n") + " ", "trec"),
        ("#a comment\n" + TREC.replace("u1 Q0 b", "# and, one more\nu1 Q0 b"), "trec"),
        (TRIPLES.replace("\t", "   "), "triples"),
        (TREC.replace("u2 Q0 a 2", "u2  Q0 a  2"), "trec"),
        (TRIPLES, "triples"),
        (TRIPLES.replace("\t", ","), "triples"),
        (TRIPLES.replace("\t", " "), "triples"),
        (TRIPLES.replace("\t", "::"), "triples"),
        (TRIPLES.replace("\n", "\r\n"), "triples"),
        ("user_id,item_id,score,rank\nu2,a,0.5,2\nu1,b,1.0,2\nu1,c,2.0,1\nu2,d,0.75,1\n", "table"),
        ("rank;score;item;user\n2;0.5;a;u2\n2;1;b;u1\n1;2;c;u1\n1;0.75;d;u2\n", "table"),
        ("user_id:token\titem_id:token\tscore:float\n" + TRIPLES, "table"),
        ("qid docno score\n" + TRIPLES.replace("\t", " "), "table"),
        ("u2\t[d:0.75,a:0.5]\nu1\t[c:2.0,b:1.0]\n", "mahout"),
        ("u2\t[d:0.75, a:0.5]\n\nu1\t[c:2.0,b:1.0]\n", "mahout"),
        (json.dumps({"u2": {"a": 0.5, "d": 0.75}, "u1": {"b": 1.0, "c": 2.0}}), "dict"),
    ],
)
def test_the_format_is_found_out_and_stated(written, content, format):
    run = read_run(written(content))
    assert run.frame().rows() == LISTS
    assert _format(run) == format
    assert run.name == "knn"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files_are_read_by_what_they_hold(written, pack):
    run = read_run(written(pack(TREC.encode()), "bm25.run.gz"))
    assert run.frame().rows() == LISTS
    assert run.name == "bm25"


def test_a_file_in_an_archive_is_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("knn.tsv", TRIPLES)
    assert read_run(tmp_path / "x.zip").frame().rows() == LISTS


@pytest.mark.parametrize("write", [pl.DataFrame.write_parquet, pl.DataFrame.write_ipc])
def test_binary_files_are_read(tmp_path, write):
    frame = pl.DataFrame(LISTS, schema=["user_id", "item_id", "rank", "score"], orient="row")
    write(frame, tmp_path / "als.parquet")
    run = read_run(tmp_path / "als.parquet")
    assert run.frame().rows() == LISTS
    assert run.name == "als"


def test_the_native_parquet_of_lenskit_is_read_with_its_empty_lists(tmp_path):
    frame = pl.DataFrame(
        {
            "user_id": [1, 2],
            "items": [[{"item_id": 9, "score": 0.5, "rank": 1}, {"item_id": 8, "score": 0.25, "rank": 2}], []],
        }
    )
    frame.write_parquet(tmp_path / "als.parquet")
    run = read_run(tmp_path / "als.parquet", format="lenskit")
    assert _format(run) == "nested"
    assert run.frame().rows() == [(1, 9, 1, 0.5), (1, 8, 2, 0.25)]
    assert run.list_lengths.tolist() == [2, 0]


def test_a_folder_of_parts_is_one_run(tmp_path):
    folder = tmp_path / "mahout"
    folder.mkdir()
    (folder / "part-0").write_text("u2\t[d:0.75,a:0.5]\n")
    (folder / "part-1").write_text("u1\t[c:2.0,b:1.0]\nu3\t[]\n")
    run = read_run(folder)
    assert run.frame().rows() == LISTS
    assert run.list_lengths.tolist() == [2, 2, 0]
    spark = tmp_path / "spark"
    spark.mkdir()
    frame = pl.DataFrame(LISTS, schema=["user", "item", "rank", "score"], orient="row")
    frame[:3].write_parquet(spark / "part-00000.snappy.parquet")
    frame[3:].write_parquet(spark / "part-00001.snappy.parquet")
    assert read_run(spark).frame().rows() == LISTS


def test_a_ranking_without_scores_is_read_in_its_order(written):
    run = read_run(written("1\t30\n1\t10\n1\t20\n"))
    assert _format(run) == "pairs"
    assert run.items.tolist() == [2, 0, 1]
    assert run.scores is None


def test_the_tag_of_a_trec_run_names_the_system_if_asked(written):
    assert read_run(written(TREC), tag=True).name == "bm25"
    assert read_run(written(TREC), name="mine").name == "mine"
    with pytest.raises(SettingError, match="no tag"):
        read_run(written(TRIPLES), tag=True)


def test_a_trec_run_whose_words_look_like_a_header_has_none(written):
    run = read_run(written("user Q0 item 1 0.5 title\nuser Q0 title 2 0.25 title\n"))
    assert run.frame().rows() == [("user", "item", 1, 0.5), ("user", "title", 2, 0.25)]


def test_ids_are_integers_only_if_all_are_written_as_such(written):
    assert read_run(written("1 Q0 7 1 0.5 t\n")).item_ids.dtype == pl.Int64
    padded = read_run(written("1 Q0 007 1 0.5 t\n1 Q0 7 2 0.25 t\n"))
    assert padded.frame()["item"].to_list() == ["007", "7"]


def test_spaces_in_the_fields_of_a_tabbed_file_stay(written):
    run = read_run(written("ann lee\tthe  thing\t0.5\nann lee\ta film\t0.25\n"))
    assert run.frame().rows() == [("ann lee", "the  thing", 1, 0.5), ("ann lee", "a film", 2, 0.25)]


def test_the_format_can_be_given(written):
    path = written("1\t2\t3\n1\t4\t5\n")
    assert _format(read_run(path, format="elliot")) == "triples"
    by_rank = read_run(path, user=1, item=2, rank=3)
    assert by_rank.frame().rows() == [(1, 2, 3), (1, 4, 5)]
    with pytest.raises(InputError, match="3 columns without names cannot be format='trec', which is user Q0 item"):
        read_run(path, format="trec")
    assert read_run(written("a|b\n1|2\n"), separator="|", header=True, user="a", item="b").frame().rows() == [(1, 2, 1)]


def test_scores_that_are_not_finite_are_read_from_text(written):
    run = read_run(written("1 Q0 a 1 inf t\n1 Q0 b 2 nan t\n1 Q0 c 3 -Infinity t\n1 Q0 d 4 1e-3 t\n"))
    assert run.frame()["item"].to_list() == ["a", "d", "c"]
    assert run.counts["nan_scores"] == 1


def test_an_empty_field_is_a_missing_score_but_a_short_row_is_an_error(written):
    run = read_run(written("user,item,score\nu,a,1\nu,b,\n"))
    assert run.counts["nan_scores"] == 1
    with pytest.raises(InputError, match="row 3: the row has 2 fields instead of 3"):
        read_run(written("user,item,score\nu,a,1\nu,b\nu,c,\n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("user,item,score\n", "there are no"),
        (TREC + "u1 Q0 x 3 bad bm25\n", "row 5, column '5': 'bad' is not a number"),
        ("# mine\n\n" + TREC + "#\nu1 Q0 x 3 bad bm25\n", "row 8, column '5': 'bad' is not a number"),
        (TREC + "u1 Q0 x\n", "row 5: the row has 3 fields instead of 6"),
        ("user,item,score\nu,a,1\n,b,2\n", "row 3, column 'user': the user is missing"),
        ("user,item,rank\nu,a,1\nu,b,\n", "row 3, column 'rank': the rank is missing"),
        ("a,b,c,d\nx,y,z,w\nx,y,z,1\n", "do not say which one is the user"),
        ("u\t[a:1,b]\n", "row 1, column '2': the item is missing"),
        ('{"u": {"a": 1.0', "JSON cannot be read"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(written, content, message):
    path = written(content)
    with pytest.raises(InputError, match=message) as caught:
        read_run(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_run(tmp_path / "none.tsv")


def test_an_open_file_is_read(written):
    for open_file in (io.BytesIO(TREC.encode()), io.StringIO(TRIPLES), io.BytesIO(gzip.compress(TREC.encode()))):
        assert read_run(open_file).frame().rows() == LISTS
    with written(TREC).open("rb") as file:
        assert str(written(TREC)) in read_run(file).history[-1].settings["source"]


def test_two_columns_of_one_name_are_refused(written):
    with pytest.raises(InputError, match="column 'user': two columns have this name"):
        read_run(written("user,item,user\nu,a,1\n"))


def test_several_files_are_several_runs(written):
    runs = read_runs([written(TREC, "a.run"), written(TRIPLES, "b.tsv")])
    assert [run.name for run in runs] == ["a", "b"]
    assert runs[0].frame().equals(runs[1].frame())


def test_a_file_with_a_column_of_systems_holds_several_runs(written):
    path = written("model,user,item,score\nx,u,a,1\ny,u,b,2\ny,u,c,3\n")
    assert [(run.name, len(run.items)) for run in read_runs(path)] == [("x", 1), ("y", 2)]


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "run", "trec"])
def test_a_run_that_is_written_reads_back_the_same(tmp_path, ending):
    rng = np.random.default_rng(1)
    run = read_run({user: dict(zip(range(20), rng.normal(size=20))) for user in "abc"}, name="knn")
    again = read_run(write_run(run, tmp_path / f"knn.{ending}"))
    assert again.name == "knn"
    assert again.frame().equals(run.frame())


def test_a_written_trec_run_keeps_the_order_of_a_run_without_scores(tmp_path):
    run = read_run({"u": ["b", "c", "a"]}, name="my system")
    path = write_run(run, tmp_path / "x.run")
    assert path.read_text().splitlines()[0] == "u Q0 b 1 -1 my_system"
    assert read_run(path).frame()["item"].to_list() == ["b", "c", "a"]


@pytest.mark.parametrize("ids", [("a,1", "b,2"), ('"x"', 'y"'), ('"x', "y"), ("a::1", "b::2")])
def test_ids_of_a_trec_run_may_hold_what_divides_other_text(tmp_path, ids):
    run = read_run({f"u,{user}": list(ids) for user in range(3)}, name="mine")
    again = read_run(write_run(run, tmp_path / "mine.run"))
    assert again.frame().select("user", "item").rows() == run.frame().select("user", "item").rows()


def test_what_a_format_cannot_hold_is_not_written(tmp_path):
    spaced = read_run({"ann": ["b"], "ann lee": ["b"]})
    with pytest.raises(InputError, match="'ann lee' holds white space"):
        write_run(spaced, tmp_path / "x.run")
    with pytest.raises(SettingError, match="does not end in a known format"):
        write_run(spaced, tmp_path / "x.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_ranx_in_lz4_is_refused_with_what_to_do(written):
    with pytest.raises(InputError, match=r"run\.lz4: LZ4 is not read; save it as \.json"):
        read_run(written(b"\x04\x22\x4d\x18@@\xc0", "run.lz4"))


@pytest.mark.parametrize("name", [b"\xff", b"two\nlines", b"\x1b[31mred"])
def test_whatever_a_file_is_called_its_system_can_be_printed(tmp_path, name):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name + b".csv"))
    try:
        path.write_text("user,item,score\n1,2,0.5\n")
    except OSError:
        pytest.skip("this file system does not take such a name")
    run = read_run(path)
    assert run.name.encode().decode().isprintable()
