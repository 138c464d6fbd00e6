from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cranfield._table import WIDTH, Cell, Table, csv_text, latex_text, markdown_text, places

NASTY = '<script>alert("1")</script> & 50% $x_1$ |'


def test_everything_is_escaped_in_html():
    page = Table([NASTY], [[NASTY]], NASTY, [NASTY]).html()
    assert "<script>" not in page
    assert page.count("&lt;script&gt;") == 4


def test_everything_is_escaped_in_latex():
    text = Table([NASTY, "b"], [[NASTY, Cell("1", best=True)]], NASTY).latex()
    assert r"50\% \$x\_1\$" in text
    assert "<" not in text
    assert r"\textbf{1}" in text
    assert latex_text("a\\b\nc") == r"a\textbackslash{}b c"


def test_nothing_commands_a_terminal_or_turns_letters_round():
    bad = "a\x1b[2J\u202eb\udcff"
    table = Table([bad, "x"], [[bad, "1"]])
    for made in (table.text(), table.markdown(), table.latex(), table.html()):
        assert not set(made) & {"\x1b", "\u202e", "\udcff"}
    assert table.text().splitlines()[0].startswith("a\ufffd[2J\ufffdb\ufffd")


def test_a_bar_does_not_break_a_markdown_row():
    row = Table(["a", "b"], [["x|y", Cell("1", second=True)]]).markdown().splitlines()[-1]
    assert row == r"| x\|y | <u>1</u> |"
    assert markdown_text("a\nb") == "a b"


def test_columns_align_also_with_wide_letters():
    lines = Table(["system", "P"], [["日本", "0.1"], ["ab", Cell("0.25", best=True)]]).text().splitlines()
    assert lines[2].startswith("日本  ")
    assert lines[3].endswith("0.25*")


def test_no_cell_of_a_csv_is_a_formula():
    assert [csv_text(one) for one in ("=a", "+a", "-a", "@a", "a")] == ["'=a", "'+a", "'-a", "'@a", "a"]


def test_letters_stand_raised_after_the_number_in_every_form():
    table = Table(["system", "P"], [["s", Cell("0.5", best=True, raised="a<b")], ["t", Cell("0.4", second=True)]])
    assert "**0.5**<sup>a\\<b</sup>" in table.markdown()
    assert r"\textbf{0.5}$^{a\textless{}b}$" in table.latex()
    assert r"\underline{0.4}" in table.latex()
    assert "<b>0.5</b><sup>a&lt;b</sup>" in table.html()
    assert "0.5 a<b*" in table.text()


def test_equal_printed_values_share_their_place():
    assert places(np.array([0.12341, 0.12339, 0.2, np.nan]), False, 4).tolist() == [1, 1, 0, 5]
    assert places(np.array([3.0, 1.0, 2.0]), True, 4).tolist() == [2, 0, 1]


def test_numbers_too_large_to_have_decimals_keep_their_places():
    assert places(np.array([1e305, 3e307, 2.0]), False, 4).tolist() == [1, 0, 2]


WIDE = Table(
    ["metric", "a", "P@10", "nDCG@10", "better"],
    [["RR", "x", "0.1234", Cell("0.2", best=True), "x"], ["RR", "y", "[0.1, 0.2]", "–", "–"]],
    "What it shows",
    ["a note"],
)


def test_columns_that_do_not_fit_stand_below_beside_the_names_of_the_rows():
    caption, *lines, note = WIDE.text(28).splitlines()
    assert (caption, note) == ("What it shows", "· a note")
    assert [line.split() for line in lines if line[:6] in ("metric", "RR    ")] == [
        ["metric", "a", "P@10"], ["RR", "x", "0.1234"], ["RR", "y", "[0.1,", "0.2]"],
        ["metric", "a", "nDCG@10", "better"], ["RR", "x", "0.2*", "x"], ["RR", "y", "–", "–"],
    ]  # fmt: skip
    assert all(len(line) <= 28 for line in lines)
    assert "\n\n" not in WIDE.text(200)


def test_no_cell_is_cut_where_even_one_column_does_not_fit():
    assert WIDE.text(5).count("metric") == 3
    assert "[0.1, 0.2]" in WIDE.text(5)


def test_a_table_is_as_wide_as_the_terminal_and_100_letters_where_there_is_none(monkeypatch):
    long = Table(["system", *(f"metric {k}" for k in range(20))], [["s", *["0.1234"] * 20]])
    monkeypatch.delenv("COLUMNS", raising=False)
    assert 80 < max(map(len, long.text().splitlines())) <= WIDTH == 100
    monkeypatch.setenv("COLUMNS", "60")
    assert 40 < max(map(len, long.text().splitlines())) <= 60


def test_text_is_on_the_left_and_numbers_are_on_the_right_in_every_form():
    assert WIDE.of_text() == [True, True, False, False, True]
    assert WIDE.markdown().splitlines()[3] == "| --- | --- | ---: | ---: | --- |"
    assert r"\begin{tabular}{llrrl}" in WIDE.latex()
    assert WIDE.text().splitlines()[3].endswith("*  x")
    assert Table(["a", "b"], []).of_text() == [True, False]


def test_latex_refers_to_a_table_by_its_label():
    lines = replace(WIDE, label="tab:mine").latex().splitlines()
    assert lines[2:4] == [r"\caption{What it shows}", r"\label{tab:mine}"]
    assert r"\label" not in WIDE.latex()


def test_what_our_own_words_use_is_known_to_latex():
    from cranfield.metrics import relevant_items

    gains = str(relevant_items(["nDCG(gain=exp)@10", "RBP(gain=exp1)", "P@10"], 4.0))
    for text in (gains, "1–5 × 3 ± 2 → ∞, α ≤ 0.05 “shown” …"):
        assert not text.isascii()
        assert latex_text(text).isascii()


@pytest.mark.parametrize("text", ["0.2.0", "1997-09-20T03:05:10+00:00", "154d065a0264cefe", "9e1x", "x 5"])
def test_what_only_begins_like_a_number_is_text(text):
    assert Table(["a", "b"], [["x", text]]).of_text() == [True, True]


@pytest.mark.parametrize(
    "text", ["153/539/248", "<0.0001", "–", "", "0.678–0.824", "-5.7 % [-8.2, -3.0]", "2e-05", "∞"]
)
def test_numbers_in_all_their_forms_are_numbers(text):
    assert Table(["a", "b"], [["x", text]]).of_text() == [True, False]


def test_a_column_is_of_numbers_if_every_cell_starts_with_one():
    numbers = Table(["a", "b", "better"], [["x", "0.5 ±0.1", "–"], ["y", "[0.1, 0.2]", "knn"]])
    assert numbers.of_text() == [True, False, True]
    assert all(Table(["", "version", "made", "id"], [["x", "0.2.0", "1998-04-22", "15d0e2"]]).of_text())


def test_the_title_for_a_paper_names_data_and_decisions_and_makes_a_label():
    table = Table(["system"], [], "plain mean").titled("MovieLens 1M", "averages", "random 80/20")
    assert table.caption == "Averages on MovieLens 1M: random 80/20; plain mean"
    assert Table(["system"], []).titled("", "averages 2").caption == "Averages"
    assert table.label == "tab:movielens-1m-averages"


def test_places_are_among_distinct_printed_values():
    assert places(np.array([0.31, 0.5, 0.3, np.nan]), False, 1).tolist() == [1, 0, 1, 5]
