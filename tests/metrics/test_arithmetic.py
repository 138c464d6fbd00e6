"""Work in blocks is the work at once."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.metrics import arithmetic
from cranfield.metrics.arithmetic import power_for, power_of_two


def test_places_are_repeated_the_same_in_blocks_also_one_that_is_larger_than_a_block(monkeypatch):
    monkeypatch.setattr(arithmetic, "_CELLS", 3)
    for times in ([5], [1, 0, 7, 2], [2, 2, 0, 4, 9]):
        blocks = list(arithmetic.expanded(np.array(times)))
        assert (
            np.concatenate([places for _, places, _ in blocks]).tolist() == np.repeat(range(len(times)), times).tolist()
        )
        assert np.concatenate([count for *_, count in blocks]).tolist() == [k for n in times for k in range(n)]
        assert all(len(places) <= 3 or np.ptp(places) == 0 for _, places, _ in blocks)


@pytest.mark.parametrize("largest", [0.0, 1.0, 5.0, 2.0**400, 2.0**401, 2.0**1000, 2.0**-900, 5e-324, np.inf])
def test_the_power_for_values_is_that_of_the_largest_size_among_them(largest):
    values = np.array([-largest, 0.0, np.nan, largest / 2])
    assert power_for(values) == int(power_of_two(largest))
    assert isinstance(power_for(values), int)


def test_nothing_is_divided_by_nothing():
    assert power_for(np.array([])) == power_for(np.array([np.nan])) == 0


def test_only_values_far_from_one_are_scaled():
    assert power_of_two([5.0, 0.0, 2.0**1000, 2.0**-900, np.inf, np.nan]).tolist() == [0, 0, 1000, -900, 0, 0]
