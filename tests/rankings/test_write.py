"""Runs out, and in again."""

from __future__ import annotations

import polars as pl
import pytest

import cranfield as cf


@pytest.fixture(scope="module")
def split():
    return cf.splits.random(cf.simulate.world(users=40, items=30, ratings=600, seed=2).ratings, train=0.7, seed=1)


@pytest.mark.parametrize("ending", ["parquet", "tsv", "csv"])
@pytest.mark.parametrize("asked", [{}, {"nonrelevant": 5}, {"length": 3}])
def test_one_relevant_lists_measure_the_same_when_they_come_back(split, tmp_path, ending, asked):
    (run,) = cf.recommend(split, "knn(k=5)", relevant="one", threshold=4, **asked)
    again = cf.read_run(cf.write_run(run, tmp_path / f"run.{ending}"))
    assert again.one_relevant
    assert again.history[-1].settings["format"] == "one-relevant"
    assert again.counts == run.counts
    metrics = ["Recall@5", "RR", "nDCG@10", "P@5"]
    before, after = (cf.measure(one, split.test, metrics, threshold=4) for one in (run, again))
    assert after.average().tolist() == before.average().tolist()


def test_one_relevant_lists_do_not_fit_into_a_trec_run(split, tmp_path):
    (run,) = cf.recommend(split, "popularity", relevant="one", threshold=4)
    with pytest.raises(cf.SettingError, match=r"are incomplete .* write \.parquet"):
        cf.write_run(run, tmp_path / "run.trec")


@pytest.mark.parametrize(
    ("rank", "length", "problem"),
    [(3, 2, "rank 3 is beyond the end of a list of 2"), (1.5, 2, "1.5 is not a rank"), (1, -1, "-1 is not a length")],
)
def test_impossible_ranks_are_named_by_row(tmp_path, rank, length, problem):
    rows = pl.DataFrame({"user": ["a", "b"], "item": ["x", "y"], "rank": [1.0, rank], "length": [1.0, length]})
    rows.write_csv(tmp_path / "run.csv")
    with pytest.raises(cf.InputError, match=problem) as raised:
        cf.read_run(tmp_path / "run.csv")
    assert "row 3" in str(raised.value)


def test_ranks_and_lengths_go_up_to_two_to_the_31st():
    rows = {"user": ["a", "b"], "item": ["x", "y"], "rank": [1, 100_000], "length": [5, 2**31 - 1]}
    run = cf.read_run(pl.DataFrame(rows))
    assert (run.ranks.tolist(), run.list_lengths.tolist()) == ([1, 100_000], [5, 2**31 - 1])
    with pytest.raises(cf.InputError, match="is not a length"):
        cf.read_run(pl.DataFrame({**rows, "length": [5, 2**31]}))


def test_a_column_called_length_is_no_design_of_its_own():
    films = pl.DataFrame({"user": [1, 1], "item": [5, 6], "rank": [1, 2], "score": [0.9, 0.5], "length": [90, 120]})
    assert not cf.read_run(films).one_relevant
