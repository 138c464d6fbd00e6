"""How a tool registers what it means by a metric."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.measures.dialects.peers import Tool, Users


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        (Users.JUDGED, [0.5, 0.0, 0.0, 0.0]),
        (Users.RELEVANT, [0.5, 0.0, np.nan, np.nan]),
        (Users.JUDGED_WITH_LIST, [0.5, np.nan, 0.0, np.nan]),
    ],
)
def test_a_counted_user_counts_0_where_the_metric_is_undefined(users, expected, judged_of):
    # Users 1 and 2 have a relevant item, users 1 and 3 a list.
    judged = judged_of({1: {1: 1.0}, 3: {1: 1.0}}, {1: {1: 5}, 2: {1: 5}, 3: {1: 1}, 4: {1: 1}}, 4)
    tool = Tool("mine", "Mine", "1.0", users)

    @tool.dialect("P", "precision", "the same")
    def _first_only(judged):
        return np.array([0.5, np.nan, np.nan, np.nan])

    assert tool.dialects["P"].definition.function(judged) == pytest.approx(expected, nan_ok=True)
