"""Groups of lists go to files and come back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cranfield as cf
from cranfield.rankings.groups import named_groups


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
