from __future__ import annotations

import numpy as np

from cranfield._table import Cell, Table, csv_text, latex_text, markdown_text, places

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
