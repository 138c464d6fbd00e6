"""Per-user terms, whose sum has the sign of the difference of two averages."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield._errors import SettingError
from cranfield.audits import Terms


def _ratio(values, covered):
    return (values * covered).sum() / covered.sum()


def test_the_sum_of_reduced_terms_is_the_scaled_difference_under_every_swap():
    rng = np.random.default_rng(0)
    values, weights = rng.random((2, 12)), rng.random(12)
    covered = weights * (rng.random((2, 12)) < 0.7)
    x = Terms((values * covered)[:, None], reduced={0: covered}).between(0, 1)[0]
    for _ in range(20):
        swap = rng.random(12) < 0.5
        v, c = np.where(swap, values[::-1], values), np.where(swap, covered[::-1], covered)
        total = (np.where(swap, -1, 1) * x).sum()
        scale = c.sum() / (2 * c[0].sum() * c[1].sum())
        assert total * scale == pytest.approx(_ratio(v[0], c[0]) - _ratio(v[1], c[1]), abs=1e-6)


def test_a_reduced_average_with_the_same_users_is_the_plain_difference():
    values = np.array([[1.0, 2.0, 0.0], [0.5, 1.0, 0.0]])
    covered = np.array([[1.0, 1.0, 0.0]] * 2)
    reduced = Terms(values[:, None], reduced={0: covered}).between(0, 1)
    assert reduced == pytest.approx(Terms(values[:, None]).between(0, 1))


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
