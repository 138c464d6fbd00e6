"""Numbers for people: the same text wherever they are shown, and a dash where there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cranfield._numbers import amount_text, number_text, percent_text


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
