"""Columns of ids, numbers and groups: codes like those of the definition, whatever the library."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield import InputError
from cranfield.rankings.columns import encode, named_groups
from cranfield.tables.vocabulary import UNKNOWN


@given(
    st.one_of(
        st.lists(st.integers(-5, 5), min_size=1),
        st.lists(st.integers(-(2**62), 2**62), min_size=1),
        st.lists(st.text(max_size=3), min_size=1),
    ),
    st.integers(1, 6),
)
def test_the_codes_lead_back_to_the_ids(ids, run):
    ids = [one for one in ids for _ in range(run)]
    vocabulary, codes = encode(ids)
    assert vocabulary.ids(codes).to_list() == ids
    assert vocabulary.all.to_list() == sorted(set(ids))
    assert codes.dtype == np.int32


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["b", None, "a", "b"], dtype=object),
        pd.Series(["b", None, "a", "b"], dtype="str"),
        pd.Series(["b", None, "a", "b"], dtype="category"),
        pl.Series(["b", None, "a", "b"]),
        pl.Series(["b", None, "a", "b"], dtype=pl.Categorical),
        pl.Series(["b", None, "a", "b"], dtype=pl.Enum(["b", "a", "z"])),
    ],
    ids=str,
)
def test_text_of_every_kind_is_encoded_alike(column):
    vocabulary, codes = encode(column)
    assert vocabulary.all.to_list() == ["a", "b"]
    assert codes.tolist() == [1, UNKNOWN, 0, 1]


@pytest.mark.parametrize(
    "column",
    [
        np.array([7, 300, 7], dtype=np.uint16),
        np.array([7.0, 300.0, 7.0]),
        pd.Series([7, 300, 7], dtype="Int64"),
        pd.Series([7, 300, 7], dtype=object),
    ],
    ids=str,
)
def test_whole_numbers_of_every_kind_are_the_same_ids(column):
    vocabulary, codes = encode(column)
    assert vocabulary.dtype == pl.Int64
    assert vocabulary.all.to_list() == [7, 300]
    assert codes.tolist() == [0, 1, 0]


def test_small_integers_far_apart_do_not_overflow():
    vocabulary, codes = encode(np.array([-128, 127, 0], dtype=np.int8))
    assert vocabulary.ids(codes).to_list() == [-128, 127, 0]


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("run", [1, 6])
def test_objects_in_runs_are_encoded_as_others(missing, run):
    ids = [one for one in ["b", missing, "a", "b", missing] for _ in range(run)]
    vocabulary, codes = encode(pd.Series(ids, dtype=object, index=range(7, 7 + len(ids))))
    assert vocabulary.all.to_list() == ["a", "b"]
    assert codes.tolist() == [code for code in [1, UNKNOWN, 0, 1, UNKNOWN] for _ in range(run)]


def test_a_missing_number_is_unknown():
    assert encode(np.array([3.0, np.nan, 4.0]))[1].tolist() == [0, UNKNOWN, 1]


def test_ids_of_mixed_types_are_refused():
    with pytest.raises(InputError, match="one type"):
        encode(pd.Series(["a", 1], dtype=object))


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series, lambda ids: pd.Series(ids, dtype=object)])
@pytest.mark.parametrize("large", [2.0**53, -(2.0**53), 1e300, float("inf")])
def test_floats_that_may_stand_for_several_whole_numbers_are_no_ids(kind, large):
    with pytest.raises(InputError, match=r"is a float of 2\^53 or more.*write ids as whole numbers or as text"):
        encode(kind([1.0, 2.0, large]))
    largest = 2.0**53 - 1
    assert encode(kind([1.0, largest]))[0].all.to_list() == [1, 2**53 - 1]
    narrow = pl.Series([1.0, 2.0**24 - 1], dtype=pl.Float32)
    assert encode(narrow)[0].all.to_list() == [1, 2**24 - 1]
    with pytest.raises(InputError, match=r"is a float of 2\^24 or more"):
        encode(narrow + 1)


def _split():
    return cf.splits.percentiles(cf.simulate.world(40, 60, 900).ratings, groups=12, train=0.6)


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv"])
def test_groups_of_one_relevant_lists_come_back(tmp_path, ending):
    (run,) = cf.recommend(_split(), "popularity", relevant="one", threshold=3, candidates="group")
    again = cf.read_run(cf.write_run(run, tmp_path / f"run.{ending}"))
    assert again.one_relevant
    assert again.frame()["group"].to_list() == run.frame()["group"].to_list()
    # The names are numbers in numerical order.
    assert list(again.group_names) == sorted(again.group_names, key=int)


def test_groups_of_whole_lists_come_back(tmp_path):
    run = cf.read_run({"ann": ["x", "y"], "bob": ["x"], "cid": ["y"]})
    grouped = replace(run, groups=np.array([1, 0, 1], dtype=np.int16), group_names=("new", "old"))
    again = cf.read_run(cf.write_run(grouped, tmp_path / "run.csv"))
    assert (again.groups.tolist(), again.group_names) == ([1, 0, 1], ("new", "old"))
    again = cf.read_run(cf.write_run(run, tmp_path / "run.csv"))
    assert (again.groups, again.group_names) == (None, ())
    assert "group" not in run.frame().columns


@pytest.mark.parametrize("groups", [["a", "b", "a"], ["a", None, "b"]])
def test_a_column_of_something_else_is_no_group_of_lists(groups):
    run = cf.read_run({"user": [1, 1, 2], "item": [1, 2, 1], "score": [2.0, 1.0, 1.0], "group": groups})
    assert run.groups is None
    assert len(run) == 2


def test_names_that_are_numbers_are_ordered_as_numbers():
    assert named_groups(["10", "9", "1"])[1] == ("1", "9", "10")
    assert named_groups([10, 9])[1] == ("9", "10")
    assert named_groups(["b", "10"])[1] == ("10", "b")
