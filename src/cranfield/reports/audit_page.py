"""The page of an audit, with its figures and tables as separate files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cranfield._figures import Style, drawn_beside, unchecked_charts
from cranfield._files import write_text
from cranfield._numbers import count_text
from cranfield.audits import FIGURES, Audit, PairView, audit_tables, pair_tables
from cranfield.reports import figures
from cranfield.reports.html_page import page
from cranfield.reports.sections.audit import audit_sections

_TITLE = "Does the winner survive other decisions?"


@drawn_beside
def audit_page(audit: Audit, *, title: str = _TITLE, lead: str = "") -> str:
    """Return the page of an audit as HTML; by default the line below its heading says how large the audit is."""
    decisions = ", ".join(decision.name for decision in audit.grid.varied)
    crossed = f"{len(audit.systems)} systems · {count_text(audit.grid.n_cells, 'set-up')} · varied: {decisions}"
    return page(title, audit_sections(audit), lead=lead or crossed)


@unchecked_charts()
def write_audit(
    audit: Audit, folder: str | Path, *, title: str = _TITLE, lead: str = "", data: str = "", style: Style = "paper"
) -> list[Path]:
    """Write ``report.html``, the figures as PDF and SVG and the tables as LaTeX into a folder; return the files.

    Figures and tables go into subfolders of these names; those of a pair show the two best systems under the starting
    point. ``title`` and ``lead`` are as for `audit_page`, ``data`` is the name of the data for captions.
    """
    folder = Path(folder)
    drawings, finish = begin_figures(audit, folder / "figures", style)
    html = write_text(folder / "report.html", audit_page(audit, title=title, lead=lead))
    finish()
    return [html, *drawings, *write_tables(audit, folder / "tables", data)]


def begin_figures(audit: Audit, folder: Path, style: Style) -> tuple[list[Path], Callable[[], None]]:
    """Start drawing every figure of an audit; return the files and a function that writes them."""
    return figures.begin_drawing({kind: audit.plot(kind, style=style) for kind in FIGURES}, folder)


def write_tables(audit: Audit, folder: Path, data: str) -> list[Path]:
    """Write every non-empty table of an audit as LaTeX, with a caption and a label."""
    tables = {**pair_tables(audit, PairView.of(audit)), **audit_tables(audit)}
    return [
        write_text(folder / f"{name}.tex", table.titled(data, f"audit {name}").latex())
        for name, table in tables.items()
        if table.rows
    ]
