"""The page, one self-contained HTML file that makes no network requests; and its sections.

A content security policy forbids everything except the style sheet, a font inside it, and the scripts of the page,
named by their hashes. Markup injected through a system's name could therefore neither run nor load anything. Figures
are drawn beforehand as SVG, so the page shows and prints them without a script; the style sheet recolours them in dark
mode. A page with figures includes the font used to lay them out, and the Vega libraries from the installed package,
which redraw a figure when the reader points at it. Vega interprets its expressions, so the policy need not allow code
made from strings.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, TypeVar

import polars as pl

from cranfield import _fonts
from cranfield._figures import vega_library
from cranfield._record import Step
from cranfield._table import csv_of
from cranfield._version import __version__
from cranfield.assessments import Assessment
from cranfield.audits import Audit
from cranfield.comparisons import Comparison, SegmentComparison
from cranfield.measures import Averaging, PredictedRatings, Scores, Segments
from cranfield.reports.markup import DEFINITION, folded, json_text, text


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    name: str  # its anchor: letters and hyphens
    title: str  # its heading, a reader's question in plain text
    html: str  # its markup, with everything from users escaped (see `cranfield.reports.markup`): a sentence, a figure
    more: str = ""  # the rest of its markup, folded on the screen and open on paper
    # Frames to download as CSV, by file name without extension.
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)  # further texts to download, by file name
    data: Any = None  # what the page's script needs, ready for JSON


@dataclass(frozen=True)
class Reported:
    """Everything that a page reports: measurements, findings, how they are averaged, and the steps before."""

    scores: Scores
    comparison: Comparison | None
    assessment: Assessment | None
    averaging: Averaging
    level: float
    variants: Sequence[Scores]
    steps: Sequence[tuple[str, Step]]
    segments: Sequence[Segments | SegmentComparison] = ()
    data: str = ""
    other_lists: Scores | None = None
    audit: Audit | None = None
    predictions: PredictedRatings | None = None


SectionFunction = TypeVar("SectionFunction", bound=Callable[..., "Section | None"])

SECTIONS: list[tuple[int, Callable[[Reported], Section | None]]] = []
"""The sections of a page, each with its place. A page imports all modules of `cranfield.reports.sections`, so that
a new file is enough to add a section."""

ADDED = 90  # the place of sections added by users: before the card


def on_page(place: int, *given: str) -> Callable[[SectionFunction], SectionFunction]:
    """Register a section at a place of every page; it gets these fields of `Reported` by name, or all of it."""

    def add(section: SectionFunction) -> SectionFunction:
        def of_page(reported: Reported) -> Section | None:
            return section(**{name: getattr(reported, name) for name in given}) if given else section(reported)

        SECTIONS.append((place, of_page))
        return section

    return add


def sections_of(reported: Reported, added: Sequence[Section] = ()) -> list[Section]:
    """Return the sections of a page in order, including those that a user adds."""
    from cranfield.reports import sections  # noqa: F401, each file registers its own

    placed = [(place, section(reported)) for place, section in SECTIONS]
    placed += [(ADDED, section) for section in added]
    return [section for _, section in sorted(placed, key=lambda pair: pair[0]) if section is not None]


_SCRIPTS = ("page.js", "explorer.js", "pairs.js", "audit.js", "figures.js")


def page(title: str, sections: Sequence[Section], *, lead: str = "") -> str:
    """Return a page as HTML: its heading, a line below it, and its sections; the first is the answer."""
    drawn = any(DEFINITION in section.html + section.more for section in sections)
    style = (_fonts.style_sheet() if drawn else "") + _asset("page.css")
    scripts = [*([vega_library()] if drawn else []), "".join(_asset(name) for name in _SCRIPTS)]
    tables = {f"{name}.csv": csv_of(frame) for section in sections for name, frame in section.tables.items()}
    files = tables | {name: content for section in sections for name, content in section.files.items()}
    data = {
        "files": {name: _packed(content) for name, content in files.items()},
        **{section.name: section.data for section in sections if section.data is not None},
    }
    navigation = "".join(
        f'<li><a href="#{text(section.name)}">{text(section.title)}</a></li>' for section in sections[1:]
    )
    menu = f'<nav aria-label="Sections"><ul>{navigation}</ul></nav>'
    menu = f'<details class="menu"><summary>Sections</summary>{menu}</details>'
    body = "".join(
        f'<section id="{text(section.name)}" aria-labelledby="{text(section.name)}-title">'
        f'<h2 id="{text(section.name)}-title">{text(section.title)}</h2>'
        f"{section.html}{folded('More', section.more)}</section>"
        for section in sections
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, scripts)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f'<meta name="generator" content="cranfield {__version__}"><title>{text(title)}</title>'
        f"<style>{style}</style></head><body>"
        '<a class="skip" href="#main">Skip to the results</a>'
        f'<header><div class="bar"><p class="brand">cranfield</p>{menu if navigation else ""}'
        '<button type="button" id="theme" aria-label="Switch between light and dark">Light / dark</button></div>'
        f"<h1>{text(title)}</h1>{f'<p class=lead>{text(lead)}</p>' if lead else ''}</header>"
        f'<main id="main">{body}</main>'
        f"<footer><p>Made by cranfield {__version__}. This file holds all it shows and asks nothing of a network."
        "</p></footer>"
        f'<script type="application/json" id="data">{json_text(data)}</script>'
        + "".join(f"<script>{script}</script>" for script in scripts)
        + "</body></html>\n"
    )


def _policy(style: str, scripts: Sequence[str]) -> str:
    allowed = " ".join(map(_hash, scripts))
    return (
        f"default-src 'none'; style-src {_hash(style)}; font-src data:; script-src {allowed}; "
        "base-uri 'none'; form-action 'none'"
    )


def _packed(content: str) -> str:
    """Return a text compressed, in base64: a quarter of its size. All browsers since 2023 can decompress it."""
    return base64.b64encode(zlib.compress(content.encode(), 9)).decode()


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return (resources.files("cranfield.reports") / "assets" / name).read_text(encoding="utf-8")
