"""Lists that are written in one cell."""

from __future__ import annotations

import io

import polars as pl
import pytest

import cranfield as cf
from cranfield._errors import InputError
from cranfield.rankings import read_run


def _read(text, **options):
    return read_run(io.BytesIO(text.encode()), **options)


@pytest.mark.parametrize(
    "text",
    [
        'user,items\n1,"181 173 195"\n2,"12 13"\n',
        "user,items\n1,181 173 195\n2,12 13\n",
        'user,items\n1,"[181, 173, 195]"\n2,"[12, 13]"\n',
        "user,items\n1,[181, 173, 195]\n2,[12, 13]\n",
        "user,items\n1,181|173|195\n2,12|13\n",
        "user,items\n1,181,173,195\n2,12,13\n",
        '1,"181,173,195"\n2,"12,13"\n',
        "1,[181,173,195]\n2,[12,13]\n",
        "1,[181 173 195]\n2,[12 13]\n",
        "1\t[181, 173, 195]\n2\t[12, 13]\n",
        "1;181,173,195\n2;12,13\n",
        "1 181|173|195\n2 12|13\n",
        "user_id;recommendations\n1;[181, 173, 195]\n2;[12, 13]\n",
    ],
)
def test_lists_in_one_cell_are_read_and_said(text):
    run = _read(text)
    assert run.frame().select("user", "item").rows() == [(1, 181), (1, 173), (1, 195), (2, 12), (2, 13)]
    assert run.history[-1].settings["format"] == "joined"
    assert run.history[-1].notes == ("2 lists were written in one cell each, and split",)


@pytest.mark.parametrize(
    "text",
    [
        "user,items,scores\n1,181 173,0.2 0.9\n2,12,0.5\n",
        "user,items,scores\n1,[181,173],[0.2,0.9]\n2,[12],[0.5]\n",
        "user,items\n1,[181:0.2,173:0.9]\n2,[12:0.5]\n",
    ],
)
def test_scores_in_one_cell_order_the_items(text):
    assert _read(text).frame().rows() == [(1, 173, 1, 0.9), (1, 181, 2, 0.2), (2, 12, 1, 0.5)]


def test_ids_in_one_cell_may_be_text_and_lists_may_be_empty():
    run = _read("user,items\nann,\"['x', 'y z']\"\nbob,[]\n")
    assert run.frame().rows() == [("ann", "x", 1), ("ann", "y z", 2)]
    assert run.counts["empty_lists"] == 1
    assert _read("user,items\nann,x y\nbob,z w\n").frame()["item"].to_list() == ["x", "y", "z", "w"]


@pytest.mark.parametrize(
    "text",
    [
        "user,title,score\n1,Toy Story,0.9\n1,High Noon,0.8\n",
        "user,title\n1,Toy Story\n1,Heat\n2,High Noon\n",
        "Ann Lee,High Noon,0.9\nAnn Lee,Toy Story,0.8\n",
        "user\titem\tscore\nann lee\thigh noon\t1\nann lee\ttoy story\t0\n",
    ],
)
def test_an_item_whose_name_has_several_words_is_one_item(text):
    run = _read(text)
    assert "joined_lists" not in run.counts
    assert {item.lower() for item in run.item_ids.all} <= {"toy story", "high noon", "heat"}


def test_scores_that_do_not_go_with_the_items_are_an_error_with_their_row():
    with pytest.raises(InputError, match="row 3, column 'scores': the list has 1 entries, but the list of items"):
        _read('user,items,scores\n1,"181,173","0.9,0.8"\n2,"12,11","0.3"\n')


@pytest.mark.parametrize("scores", [None, [[0.2, 0.9], [0.5]]])
def test_nested_parquet_lists_are_read_and_said(tmp_path, scores):
    frame = pl.DataFrame({"user": [1, 2], "items": [[181, 173], [12]], "scores": scores})
    frame = frame if scores else frame.drop("scores")
    frame.write_parquet(tmp_path / "nested.parquet")
    run = read_run(tmp_path / "nested.parquet")
    assert run.frame()["item"].to_list() == ([173, 181, 12] if scores else [181, 173, 12])
    test = cf.Ratings.of([1, 2], [181, 12])
    assert "nested: 2 lists written in one cell each, and split" in map(str, cf.measure(run, test, "P@1").notes)


def test_text_cells_of_a_frame_are_lists_too():
    frame = pl.DataFrame({"user": ["a", "b"], "items": ["181 173", "12"]})
    assert read_run(frame).frame().rows() == [("a", 181, 1), ("a", 173, 2), ("b", 12, 1)]
    assert read_run(frame.to_pandas()).frame().rows() == read_run(frame).frame().rows()
