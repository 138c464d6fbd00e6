from __future__ import annotations

from cranfield._table import Cell, Table, csv_text, latex_text, markdown_text

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


def test_a_bar_does_not_break_a_markdown_row():
    row = Table(["a", "b"], [["x|y", Cell("1", second=True)]]).markdown().splitlines()[-1]
    assert row == r"| x\|y | *1* |"
    assert markdown_text("a\nb") == "a b"


def test_columns_align_also_with_wide_letters():
    lines = Table(["system", "P"], [["日本", "0.1"], ["ab", Cell("0.25", best=True)]]).text().splitlines()
    assert lines[2].startswith("日本  ")
    assert lines[3].endswith("0.25*")


def test_no_cell_of_a_csv_is_a_formula():
    assert [csv_text(one) for one in ("=a", "+a", "-a", "@a", "a")] == ["'=a", "'+a", "'-a", "'@a", "a"]
