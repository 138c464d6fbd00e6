"""Numbers of one comparison that must not change, whatever measures and compares."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from cranfield import compare

U = np.arange(20_000)
A = ((17 * U + U // 11) % 11) / 10
VALUES = {"a": A, "b": ((U**2 + 3 * U) % 11) / 10, "c": np.where(U % 7 == 0, np.minimum(A + 0.1, 1), A)}

PAIRS = {
    ("a", "b"): (-0.09995, -0.107383, -0.0925172, -0.178037, -0.155667, 3.19993e-194, 7278, 1817, 10905),
    ("a", "c"): (-0.012995, -0.0135279, -0.0124621, -0.0263223, -0.0243073, 2.22507e-308, 0, 17401, 2599),
    ("b", "c"): (0.086955, 0.0795254, 0.0943846, 0.154288, 0.185592, 1.41351e-148, 10694, 1814, 7492),
}
WILCOXON = [2.948e-203, 0, 2.41196e-159]


def test_every_number_of_a_comparison_is_as_it_was():
    frame = compare(VALUES).frame(detail=True)
    columns = ["difference", "lower", "upper", "relative_lower", "relative_upper", "p", "wins", "ties", "losses"]
    for pair, *row in frame.select(pl.concat_list("system_a", "system_b"), *columns).iter_rows():
        expected = PAIRS[tuple(pair)]
        # The relative limits are those of bootstrapped averages; Fieller's agree to the third digit.
        assert row[3:5] == pytest.approx(expected[3:5], rel=3e-3)
        assert row[:3] + row[5:] == pytest.approx(expected[:3] + expected[5:], rel=5e-6)
    assert len(frame) == len(PAIRS)


def test_the_p_values_of_ranks_are_as_they_were():
    found = compare(VALUES, significance="wilcoxon").frame(detail=True)["p"].to_list()
    assert found == pytest.approx(WILCOXON, rel=5e-6, abs=1e-300)


def test_geometric_means_are_as_they_were():
    row = compare({name: VALUES[name] for name in "ab"}, average="geometric").frame(detail=True).row(0, named=True)
    assert (row["mean_a"], row["mean_b"]) == pytest.approx((0.170905, 0.0915669), rel=5e-6)


def test_without_any_value_nothing_can_be_said():
    result = compare({"a": [np.nan] * 3, "b": [np.nan] * 3})
    assert result.verdict[0].startswith("value: nothing can be said")
    assert result.frame(detail=True)["p"].is_nan().all()
