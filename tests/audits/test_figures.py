"""The figures of an audit."""

from __future__ import annotations

import pytest

from cranfield import _figures
from cranfield._errors import SettingError
from cranfield.audits import figures
from cranfield.audits.pair import PairView

pytestmark = pytest.mark.usefixtures("checked_charts")


@pytest.mark.parametrize("style", ["screen", "paper"])
@pytest.mark.parametrize("name", figures.FIGURES)
def test_every_figure_has_a_definition_in_both_styles(audit, name, style):
    assert _figures.definition(audit.plot(name, style=style))["config"]


def test_the_curve_is_sorted_and_marks_the_starting_point(audit):
    effects, matrix = figures._curve_frames(audit, PairView.of(audit, "knn", "mf"))
    assert effects["d_z"].is_sorted()
    assert effects["start"].sum() == 1
    assert matrix.height == effects.height * len(audit.grid.varied)
    assert "split: random 20 % of ratings" in matrix["option"].to_list()


def test_the_curve_is_above_zero_where_the_first_system_leads(audit):
    for first, second in (("knn", "mf"), ("mf", "knn")):
        effects, _ = figures._curve_frames(audit, PairView.of(audit, first, second))
        assert set(effects.filter(effects["d_z"] > 0)["leader"]) == {first}
        assert f"d_z is above 0 where {first} leads" in str(_figures.definition(audit.plot(first=first, second=second)))


def test_without_a_pair_the_winner_of_the_starting_point_is_seen_first(audit):
    assert PairView.of(audit).systems == ("mf", "knn")


def test_a_long_curve_keeps_its_ends_and_the_starting_point(audit, monkeypatch):
    monkeypatch.setattr(figures, "_MOST_CELLS", 5)
    effects, _ = figures._curve_frames(audit, PairView.of(audit, "knn", "mf"))
    assert effects.height <= 6
    assert effects["start"].sum() == 1
    assert effects["place"].to_list()[0] == 0
    assert effects["place"].to_list()[-1] == audit.grid.n_cells - 1


def test_the_flip_map_has_the_share_led_for_every_option_that_is_decided(audit):
    rows = figures.option_rows(audit, PairView.of(audit, "knn", "mf"))
    assert rows.height == 3 + 3 + 2
    frame = audit.frame().filter(system_a="knn", system_b="mf", split="random(train=0.2)")
    assert rows["leads"][0] == pytest.approx((frame["leader"] == "knn").mean())


def test_influence_on_the_sign_can_be_drawn(audit):
    text = str(_figures.definition(audit.plot("influence", answer="sign")))
    assert "the sign of the lead" in text
    assert "chance" in text


def test_one_figure_is_drawn(audit):
    assert _figures.svg(audit.plot("influence")).startswith("<svg")


def test_an_unknown_figure_or_answer_is_an_error(audit):
    with pytest.raises(SettingError, match="kind='curves' is not one of"):
        audit.plot("curves")
    with pytest.raises(SettingError, match="answer='p' is not one of"):
        audit.plot("influence", answer="p")
