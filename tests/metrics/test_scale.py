from __future__ import annotations

import numpy as np
import pytest

from cranfield.metrics._scale import power_for, power_of_two


@pytest.mark.parametrize("largest", [0.0, 1.0, 5.0, 2.0**400, 2.0**401, 2.0**1000, 2.0**-900, 5e-324, np.inf])
def test_the_power_for_values_is_that_of_the_largest_size_among_them(largest):
    values = np.array([-largest, 0.0, np.nan, largest / 2])
    assert power_for(values) == int(power_of_two(largest))
    assert isinstance(power_for(values), int)


def test_nothing_is_divided_by_nothing():
    assert power_for(np.array([])) == power_for(np.array([np.nan])) == 0
