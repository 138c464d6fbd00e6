"""Small tables for people: as text, Markdown, LaTeX or HTML, with all text from the user escaped."""

from __future__ import annotations

import html
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._numbers import to_decimals
from cranfield._settings import settings
from cranfield._terminal import one_line, shown

WIDTH = 100
"""Maximum width of a table in characters if the output is not a terminal and the variable COLUMNS is not set."""

# A cell holds a number if its first word is a number, with signs and brackets, or several of them, as in 7/3/0.
_DIGITS = r"(?:\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+|∞)"
_NUMBER = re.compile(rf"[+±<>=≈\[(−–-]*(?:{_DIGITS}(?:[/–±]{_DIGITS})*[%,;:\])*]*)?(?:\s|$)")

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    # Characters of our own texts that LaTeX does not know by itself.
    "±": r"$\pm$", "−": "$-$", "–": "--", "×": r"$\times$", "→": r"$\to$", "∞": r"$\infty$", "Σ": r"$\Sigma$",
    "≤": r"$\leq$", "≥": r"$\geq$", "…": r"\ldots{}", "“": "``", "”": "''", "|": r"$|$", "²": "$^2$",
    **{letter: rf"$\{name}$" for letter, name in {
        "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "varepsilon", "η": "eta", "λ": "lambda", "μ": "mu",
        "ρ": "rho", "σ": "sigma", "τ": "tau", "χ": "chi"}.items()},
    "\u00a0": "~", "†": r"\dag{}", "‡": r"\ddag{}", "·": r"$\cdot$",
}  # fmt: skip


def latex_text(text: str) -> str:
    """Escape text for LaTeX."""
    return "".join(_LATEX.get(letter, letter) for letter in one_line(text))


def markdown_text(text: str) -> str:
    """Escape text for a cell of a Markdown table."""
    return re.sub(r"([\\`*_{}\[\]<>|])", r"\\\1", one_line(text))


def _html_text(text: str) -> str:
    return html.escape(shown(text))


def csv_text(text: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def csv_of(frame: pl.DataFrame) -> str:
    """Return a frame as CSV in which no cell is a formula; numbers keep all their digits."""
    return frame.with_columns(
        pl.col(name).map_elements(csv_text, return_dtype=pl.String)
        for name, kind in frame.schema.items()
        if kind == pl.String
    ).write_csv()


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _output_width() -> float:
    """Return the maximum width of a table: from the settings, from the terminal, or `WIDTH`."""
    if settings.width is not None:
        return settings.width
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        return shutil.get_terminal_size((WIDTH, 24)).columns
    return WIDTH


def _aligned(column: Sequence[str], left: bool) -> list[str]:
    """Return cells padded to the same width."""
    gaps = [" " * (max(map(_width, column)) - _width(cell)) for cell in column]
    return [cell + gap if left else gap + cell for cell, gap in zip(column, gaps)]


def _folded(columns: list[list[str]], leading: int, width: float) -> list[list[list[str]]]:
    """Split columns into blocks that fit the width, each with the leading columns."""
    names, others = columns[:leading], columns[leading:]
    wide = sum(_width(column[0]) + 2 for column in names)
    blocks, taken = [list(names)], wide
    for column in others:
        needed = _width(column[0]) + 2
        if taken + needed - 2 > width and len(blocks[-1]) > len(names):
            blocks.append(list(names))
            taken = wide
        blocks[-1].append(column)
        taken += needed
    return blocks


def _lines(columns: list[list[str]]) -> list[str]:
    """Return the lines of a block, with a rule below its header."""
    head, *rows = ("  ".join(row).rstrip() for row in zip(*columns))
    return [head, "  ".join("─" * _width(column[0]) for column in columns), *rows]


def places(values: NDArray[np.float64], lower_is_better: bool, digits: int) -> NDArray[np.int64]:
    """Return the place of each value among the distinct printed values, 0 for the best; NaN comes last."""
    shown = to_decimals(values, digits)
    levels = np.unique(shown[~np.isnan(shown)])
    place = np.searchsorted(levels, shown)
    place = place if lower_is_better else len(levels) - 1 - place
    return np.where(np.isnan(shown), len(values) + 1, place)


MOST_COLUMNS = 6
"""Maximum number of columns of numbers of a LaTeX table; more do not fit into the width of a page."""

_MOST_IN_A_COLUMN = 4

MOST_REMARKS = 5
"""Maximum number of lines below the table of a result in a terminal, unless details are asked for."""


def remark_lines(remarks: Sequence[object], most: int | None = None) -> list[str]:
    """Return remarks for a terminal, one per line; more than ``most`` are counted unless details are asked for.

    Warnings come first, and are all shown.
    """
    lines = sorted((f"· {one_line(remark)}" for remark in remarks), key=lambda line: not line.startswith("· Warning: "))
    if settings.details or most is None or len(lines) <= most:
        return lines
    kept = max(most - 1, sum(line.startswith("· Warning: ") for line in lines))
    return [*lines[:kept], f"· {len(lines) - kept} more remarks are in the details"]


@dataclass(frozen=True)
class Cell:
    """A cell: its text, whether it is the best or second best of its column, and its superscript."""

    text: str
    best: bool = False
    second: bool = False
    raised: str = ""

    @staticmethod
    def text_of(cell: str | Cell) -> str:
        """Return the text of a cell."""
        return cell.text if isinstance(cell, Cell) else cell


def _marked(cell: Cell, escape: Callable[[str], str], best: str, second: str, raised: str) -> str:
    """Return the text of a cell in the templates of its marks."""
    text = escape(cell.text)
    text = best.format(text) if cell.best else second.format(text) if cell.second else text
    return text + (raised.format(escape(cell.raised)) if cell.raised else "")


@dataclass(frozen=True)
class Table:
    """A table for people: text columns are aligned left, number columns right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    caption: str = ""  # what it shows, and under which decisions
    notes: Sequence[str] = field(default=())  # sentences below it
    label: str = ""  # of LaTeX: letters, digits, hyphens and colons; none if empty

    def cells(self) -> list[list[Cell]]:
        """Return the rows as cells."""
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]

    def of_text(self) -> list[bool]:
        """Return which columns hold text: the first, and those with a cell that does not start with a number."""
        columns = list(zip(*self.cells())) or [()] * len(self.header)
        return [
            place == 0 or any(not _NUMBER.match(cell.text.strip()) for cell in column)
            for place, column in enumerate(columns)
        ]

    def titled(self, data: str, shows: str, decisions: str = "") -> Table:
        """Return the table for a paper: the data and all decisions in its caption, and a label made from the names.

        ``shows`` is what it shows, in a word; ``decisions`` are those that are not in the caption yet.
        """
        words = "-".join(re.findall("[a-z0-9]+", f"{data} {shows}".lower()))
        caption = "; ".join(filter(None, (decisions, self.caption)))
        name = shows.rstrip(" 0123456789").capitalize()
        opening = f"{name} on {data}" if data else name
        return replace(self, caption=f"{opening}: {caption}".removesuffix(": "), label=f"tab:{words}")

    def text(self, width: float | None = None, *, most_notes: int | None = None) -> str:
        """Return the table for a terminal; the best value of a column is starred.

        With ``most_notes``, further notes are counted unless details are asked for.

        Columns that do not fit into ``width`` go into a further block below, together with the leading text columns; no
        column is left out and no cell is cut. The default width is that of the terminal, or `WIDTH` if the output is
        not a terminal.
        """
        kinds = self.of_text()
        marked = [
            [
                one_line(f"{cell.text} {cell.raised}") + ("*" if cell.best else "" if left else " ")
                for cell, left in zip(row, kinds)
            ]
            for row in self.cells()
        ]
        head = [one_line(name) + ("" if left else " ") for name, left in zip(self.header, kinds)]
        columns = [_aligned(column, left) for column, left in zip(zip(head, *marked), kinds)]
        fitting = _output_width() if width is None else width
        blocks = ["\n".join(_lines(block)) for block in _folded(columns, self._leading(), fitting)]
        caption = [one_line(self.caption)] if self.caption else []
        return "\n".join([*caption, "\n\n".join(blocks), *remark_lines(self.notes, most_notes)])

    def _leading(self) -> int:
        """Return how many columns name the rows: the text columns before the first number column."""
        kinds = self.of_text()
        return kinds.index(False) if False in kinds else 1

    def markdown(self) -> str:
        """Return the table in Markdown, with the best in bold and the second underlined."""
        marked = partial(_marked, escape=markdown_text, best="**{}**", second="<u>{}</u>", raised="<sup>{}</sup>")
        lines = [
            "| " + " | ".join(markdown_text(name) for name in self.header) + " |",
            "|" + "|".join(" --- " if left else " ---: " for left in self.of_text()) + "|",
            *("| " + " | ".join(map(marked, row)) + " |" for row in self.cells()),
        ]
        caption = [markdown_text(self.caption), ""] if self.caption else []
        notes = ["", *(f"- {markdown_text(note)}" for note in self.notes)] if self.notes else []
        return "\n".join([*caption, *lines, *notes])

    def latex(self) -> str:
        """Return the table in LaTeX (booktabs), with the best in bold and the second underlined.

        A table with more than six columns of numbers becomes several, one below the other.
        """
        leading, parts = self._leading(), []
        for start in range(leading, max(len(self.header), leading + 1), MOST_COLUMNS):
            places = [*range(leading), *range(start, min(start + MOST_COLUMNS, len(self.header)))]
            rows = [[row[place] for place in places] for row in self.rows]
            parts.append(replace(self, header=[self.header[place] for place in places], rows=rows))
        if len(parts) == 1:
            return self._latex()
        numbered = enumerate(parts, start=1)
        return "\n\n".join(
            replace(
                part,
                caption=f"{self.caption} ({k} of {len(parts)})" if self.caption else "",
                label=f"{self.label}-{k}" if self.label and k > 1 else self.label,
                notes=self.notes if k == len(parts) else (),
            )._latex()
            for k, part in numbered
        )

    def _latex(self) -> str:
        marked = partial(
            _marked, escape=latex_text, best=r"\textbf{{{}}}", second=r"\underline{{{}}}", raised="$^{{{}}}$"
        )
        # A table of many columns goes over both columns of a page that has two.
        kind = "table*" if len(self.header) > _MOST_IN_A_COLUMN else "table"
        lines = [
            rf"\begin{{{kind}}}",
            r"\centering",
            *([rf"\caption{{{latex_text(self.caption)}}}"] if self.caption else []),
            *([rf"\label{{{self.label}}}"] if self.label else []),
            rf"\begin{{tabular}}{{{''.join('l' if left else 'r' for left in self.of_text())}}}",
            r"\toprule",
            " & ".join(latex_text(name) for name in self.header) + r" \\",
            r"\midrule",
            *(" & ".join(map(marked, row)) + r" \\" for row in self.cells()),
            r"\bottomrule",
            r"\end{tabular}",
            *(rf"\par\footnotesize {latex_text(note)}" for note in self.notes),
            rf"\end{{{kind}}}",
        ]
        return "\n".join(lines)

    def html(self) -> str:
        """Return the table in HTML, with the best in bold and the second underlined."""
        marked = partial(_marked, escape=_html_text, best="<b>{}</b>", second="<u>{}</u>", raised="<sup>{}</sup>")
        head = "".join(f"<th>{_html_text(name)}</th>" for name in self.header)
        body = "".join("<tr>" + "".join(f"<td>{marked(cell)}</td>" for cell in row) + "</tr>" for row in self.cells())
        caption = f"<caption>{_html_text(self.caption)}</caption>" if self.caption else ""
        notes = "".join(f"<p>{_html_text(note)}</p>" for note in self.notes)
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def answer_and_table(answer: object, table: Table, remarks: Sequence[object]) -> str:
    """Return a result for a terminal: its answer, a table, and a few remarks below it."""
    noted = replace(table, notes=[str(remark) for remark in remarks])
    return "\n".join([one_line(answer), "", noted.text(most_notes=MOST_REMARKS)])


def html_paragraphs(facts: Sequence[object]) -> str:
    """Return facts as HTML, one paragraph each."""
    return "".join(f"<p>{html.escape(str(fact))}</p>" for fact in facts)
