"""Numbers of tests in words."""

from __future__ import annotations

from cranfield.facts.audit import share_text
from cranfield.facts.comparison import Tiers
from cranfield.facts.gate import Margin
from cranfield.facts.numbers import decimals, ends_text, exact_percent, p_equals, p_text
from cranfield.facts.scores import form_text, ids_text


def test_p_values_and_intervals():
    assert [p_text(p) for p in (0.03214, 1e-9, 1.0)] == ["0.0321", "<0.0001", "1"]
    assert [p_equals(p) for p in (0.03214, 1e-9)] == ["= 0.0321", "< 0.0001"]
    assert ends_text(-0.01, 0.02) == "[-0.0100, +0.0200]"
    assert ends_text(None, float("nan")) == "–"


def test_shares_are_0_or_100_percent_only_if_they_are_exact():
    assert [exact_percent(*counts) for counts in ((36, 100), (1, 3000), (2999, 3000))] == ["36 %", "0.03 %", "99.97 %"]
    shares = (0.494, 0.001, 0.999, 1.0, None)
    assert [share_text(share) for share in shares] == ["49 %", "under 1 %", "over 99 %", "100 %", "–"]
    assert share_text(0.001, short=True) == "<1 %"


def test_decimals_show_three_digits():
    assert [decimals(largest) for largest in (0.34, 0.00021, 0.0)] == [4, 6, 4]


def test_margins_are_shares_or_amounts():
    assert (Margin.read("1%"), Margin.read(0.01)) == (Margin(0.01, relative=True), Margin(0.01, relative=False))
    assert str(Margin.read("1%")) == "1 %"


def test_ids_and_how_they_differ():
    assert form_text(["leading zeros"]) == "leading zeros (007 against 7)"
    assert form_text(["surrounding spaces", "leading zeros"]) == "surrounding spaces and leading zeros"
    assert (ids_text(["a ", "b"]), ids_text([1, 2, 3])) == ("'a ' and 'b'", "1, 2 and 3")


def test_systems_that_do_not_differ_from_the_best_are_level_at_the_top():
    def pair(a, b, better):
        return {"system_a": a, "system_b": b, "better": better, "significant": better is not None}

    tiers = Tiers.of([pair("x", "y", None), pair("x", "z", "x"), pair("y", "z", "y")], ["x", "y", "z"])
    assert tiers == Tiers(top=("x", "y"), beaten=("z",), between=())
