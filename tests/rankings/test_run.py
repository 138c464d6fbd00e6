"""A run: its lengths, ties and gaps; written and read back."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield import Run, SettingError
from cranfield.rankings.columns import encode


def _run(**changed):
    fields = {
        "name": "s",
        "user_ids": encode(["u", "v", "w"])[0],
        "item_ids": encode(["a", "b", "c"])[0],
        "users": np.arange(3, dtype=np.int32),
        "indptr": np.array([0, 3, 5, 6]),
        "items": np.array([0, 1, 2, 0, 1, 0], dtype=np.int32),
        "scores": np.array([3.0, 2, 2, 1, 1, 1]),
    }
    return Run(**{**fields, **changed})


def test_a_tie_across_the_cutoff_is_one_between_the_last_in_and_the_first_out():
    assert _run().ties_across(1).tolist() == [False, True, False]
    assert _run().ties_across(2).tolist() == [True, False, False]
    assert _run().ties_across(3).tolist() == [False, False, False]


def test_lists_without_scores_have_no_ties():
    assert not _run(scores=None).ties_across(1).any()


def test_in_lists_that_are_not_whole_a_tie_is_sought_by_rank():
    ranks = np.array([2, 5, 6, 4, 5, 6], dtype=np.int32)
    assert _run(ranks=ranks).ties_across(5).tolist() == [True, False, False]
    assert _run(ranks=ranks).ties_across(4).tolist() == [False, True, False]
    assert _run(ranks=ranks).ties_across(2).tolist() == [False, False, False]


def test_a_cutoff_below_one_is_refused():
    with pytest.raises(SettingError, match="positive"):
        _run().ties_across(0)


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
