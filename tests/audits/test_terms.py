"""Per-user terms, whose sum has the sign of the difference of two averages."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield._errors import SettingError
from cranfield.audits import Terms


def test_one_system_is_compared_with_itself_in_two_universes():
    terms = Terms(np.array([[[1.0, 2.0], [0.0, 3.0]]]))
    assert terms.across(0, 0, 1).tolist() == [1.0, -1.0]


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.zeros((2, 3)), {}, "systems × universes × users"),
        (np.full((2, 1, 1), np.nan), {}, "finite"),
        (np.zeros((2, 3, 4)), {"users": np.array([4])}, "each of the 3 universes"),
    ],
)
def test_terms_that_cannot_be_summed_are_refused(values, options, message):
    with pytest.raises(SettingError, match=message):
        Terms(values, **options)
