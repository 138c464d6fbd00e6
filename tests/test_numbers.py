"""Shares of counts are rounded alike; numbers for people read the same wherever they are shown."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cranfield import filters, splits
from cranfield._numbers import (
    all_systems,
    amount_text,
    count_text,
    few,
    listed,
    nearest_count,
    number_text,
    percent_text,
    rounded,
    share_of,
    size_text,
    time_text,
    to_decimals,
)
from cranfield.comparisons import comparing as subsampling
from cranfield.data import Ratings


@pytest.mark.parametrize(
    ("share", "count", "kept"), [(0.29, 50, 15), (0.5, 5, 3), (0.5, 7, 4), (0.07, 100, 7), (0.15, 10, 2)]
)
def test_a_share_is_rounded_alike_by_splits_and_filters(share, count, kept):
    ratings = Ratings.of(range(count), range(count))
    assert int(nearest_count(share, count)) == kept
    assert len(filters.sample(ratings, share=share)) == kept
    assert len(filters.sample(ratings, share=share, of="users")) == kept
    assert len(filters.drop_head(ratings, share=share)) == count - kept
    assert len(splits.random(ratings, train=share, exact=True).train) == kept


def test_subsets_of_users_are_rounded_as_other_shares_are():
    drawn = []

    class FiveUsers:
        values, n_pairs = np.zeros((2, 5)), 1

        def restrict(self, users):
            drawn.append(len(users))
            return self

    subsampling.rejected_share([FiveUsers()], lambda samples: [], subsets=2, size=0.5, alpha=0.05, seed=0)
    assert drawn == [3, 3]


def test_a_share_is_what_it_reads_in_decimals():
    assert share_of(np.array([50, 100]), 0.29).tolist() == [14.5, 29.0]


@pytest.mark.parametrize("nothing", [None, math.nan, np.float64("nan")])
def test_what_is_undefined_is_a_dash(nothing):
    assert number_text(nothing) == percent_text(nothing) == "–"


def test_a_number_has_its_decimals_and_its_sign_where_that_is_wanted():
    assert [number_text(0.25), number_text(0.25, 1), number_text(0.25, 2, "+"), number_text(-0.25, 2, "+")] == [
        "0.2500", "0.2", "+0.25", "-0.25",
    ]  # fmt: skip
    assert [percent_text(0.5), percent_text(1 / 3, " %")] == ["50.0%", "33.3 %"]
    assert [amount_text(1e6), amount_text(1234.5678), amount_text(-0.5), amount_text(1.5e-5)] == [
        "1,000,000", "1,234.568", "-0.5", "1.5e-05",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (number_text(0.12345), "0.1235"),
        (number_text(-0.00001), "0.0000"),
        (percent_text(0.1234), "12.3%"),
        (count_text(1, "user"), "1 user"),
        (count_text(2000, "user"), "2,000 users"),
        (amount_text(12345.0), "12,345"),
        (amount_text(0.25), "0.25"),
        (amount_text(0.00123456), "0.00123"),
        (size_text(3 * 2**30), "3.0 GiB"),
        (size_text(700 * 2**20), "700 MiB"),
        (listed(["a"]), "a"),
        (listed(["a", "b", "c"]), "a, b and c"),
        (few(["a", "b", "c"], 3), "a, b and c"),
        (few(["a", "b", "c"], 2), "a, b and 1 more"),
        (all_systems(2), "both systems"),
        (all_systems(3), "all 3 systems"),
        (time_text(0.2), "under a second"),
        (time_text(42), "40 s"),
        (time_text(4000), "1.1 h"),
        (time_text(None), "unknown"),
    ],
)
def test_numbers_and_names_are_written_as_people_write_them(text, said):
    assert text == said


def test_numbers_are_rounded_to_decimals_and_never_to_minus_zero():
    assert str([rounded(-0.04, 1), rounded(-0.06, 1)]) == "[0.0, -0.1]"
    assert to_decimals(np.array([0.123, 1e300]), 2).tolist() == [0.12, 1e300]
    assert nearest_count(0.7, np.array([45, 10])).tolist() == [32, 7]
