"""Describing ratings."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield._errors import InputError
from cranfield.data import Ratings, describe, read
from cranfield.data.description import gini


@given(st.lists(st.integers(0, 50), min_size=1).filter(sum))
def test_gini_is_half_the_relative_mean_difference(counts):
    x = np.array(counts)
    mean_difference = np.abs(x[:, None] - x[None, :]).mean()
    assert gini(x) == pytest.approx(mean_difference / (2 * x.mean()))


def test_gini_of_nothing_is_undefined():
    assert np.isnan(gini([]))
    assert np.isnan(gini([0, 0]))


def test_movielens_1m_as_in_table_2_of_the_paper(real_data):
    printed = str(describe(read(real_data("ml-1m.parquet"))))
    for number in ("6,040", "3,706", "1,000,209", "4.468 %", "0.529", "0.634"):
        assert number in printed
    for name, number in (("users", "6,040"), ("items", "3,706"), ("Gini over users", "0.529")):
        assert any(line.split() == [*name.split(), number] for line in printed.splitlines())


def test_sizes_quartiles_and_time_span():
    ratings = Ratings.of([1, 1, 1, 2, 3], ["a", "b", "c", "a", "a"], [1, 2, 2, 5, 5], times=[0, 60, 86400, 5, 7])
    found = describe(ratings)
    assert (found.users, found.items, found.ratings) == (3, 3, 5)
    assert found.density == pytest.approx(5 / 9)
    assert found.per_user == {"min": 1, "q1": 1, "median": 1, "q3": 2, "max": 3, "mean": pytest.approx(5 / 3)}
    assert found.per_item == {"min": 1, "q1": 1, "median": 1, "q3": 2, "max": 3, "mean": pytest.approx(5 / 3)}
    assert found.histogram.select("rating", "ratings").rows() == [("1", 1), ("2", 2), ("5", 2)]
    assert found.mean == 3
    assert "from 1970-01-01 00:00:00 to 1970-01-02 00:00:00 UTC (1 days)" in str(found)


def test_users_and_items_without_ratings_do_not_count():
    ratings = Ratings.of([1, 1, 2], ["a", "b", "c"])
    kept = ratings.keep(np.array([True, True, False]))
    found = describe(kept)
    assert (found.users, found.items, found.density, found.gini_users) == (1, 2, 1.0, 0.0)


@given(st.lists(st.floats(-1e6, 1e6) | st.integers(1, 10**7), min_size=1, max_size=200))
def test_the_histogram_counts_every_rating_once(values):
    values = [float(value) for value in values]
    found = describe(Ratings.of(range(len(values)), [0] * len(values), values)).histogram
    assert found["ratings"].sum() == len(values)
    assert found["share"].sum() == pytest.approx(1)
    assert found["low"].to_list()[0] <= min(values) * (1 - 1e-12 if min(values) < 0 else 1 + 1e-12)
    assert found["high"].to_list()[-1] >= max(values) - 1e-9 * abs(max(values))
    stored = np.array(values)
    for index, (_, low, high, count, _) in enumerate(found.rows()):
        inside = stored == low if low == high else (stored >= low) & (stored < high)
        if low != high and index == len(found) - 1:
            inside |= stored == high
        assert inside.sum() == count


def test_play_counts_fall_into_bins_of_growing_size():
    values = [1, 2, 3, 4, 7, 9, 15, 18, 30, 40, 60, 70, 110, 150, 210, 300, 600, 800, 1500, 1800, 2500, 5000]
    found = describe(Ratings.of(range(len(values)), [0] * len(values), values)).histogram
    assert found["rating"].to_list()[:3] == ["1 to 2", "2 to 5", "5 to 10"]
    assert found["high"].to_list()[-1] == 10000


def test_what_was_found_out_is_told(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("userId\tmovieId\n1\t2\n")
    printed = str(describe(read(path)))
    assert printed.startswith("mine\n")
    assert "columns user=userId item=movieId" in printed
    assert "separator '\\t'" in printed
    assert "every rating is 1" in printed


def test_dictionary_and_frame():
    found = describe(Ratings.of([1, 2], ["a", "a"], [3, 4], times=[10, 20]))
    told = json.loads(json.dumps(found.as_dict()))
    assert told["users"] == 2
    assert told["histogram"][0] == {"rating": "3", "low": 3.0, "high": 3.0, "ratings": 1, "share": 0.5}
    assert told["start"] == "1970-01-01T00:00:10+00:00"
    frame = found.frame()
    assert frame.filter(pl.col("statistic") == "density")["value"].item() == 1.0
    assert frame.filter(group="time")["value"].to_list() == [10.0, 20.0]


def test_nothing_to_describe():
    with pytest.raises(InputError, match="no ratings"):
        describe(Ratings.of([1], [1]).keep(np.array([False])))
