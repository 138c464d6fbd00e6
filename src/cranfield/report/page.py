"""The page: one HTML file that holds all it needs, and asks nothing of any network.

A content security policy forbids everything but the one style sheet and the one script of the page, named by their
hashes: markup that slipped in by a system's name could neither run nor load anything. Figures are drawn beforehand as
SVG, so that the page shows them without a script and prints them; the style sheet recolours them in dark mode.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

from cranfield._table import csv_of
from cranfield._version import __version__
from cranfield.report.markup import text
from cranfield.report.section import Section

_SCRIPTS = ("page.js", "explorer.js", "pairs.js")


def page(title: str, sections: Sequence[Section], *, lead: str = "") -> str:
    """Return a page of sections as HTML.

    Parameters
    ----------
    title, lead
        The heading, and a line below it.
    sections
        From top to bottom.
    """
    style = _asset("page.css")
    script = "".join(_asset(name) for name in _SCRIPTS)
    tables = {name: csv_of(frame) for section in sections for name, frame in section.tables.items()}
    data = {"tables": tables, **{section.name: section.data for section in sections if section.data is not None}}
    navigation = "".join(f'<li><a href="#{text(one.name)}">{text(one.title)}</a></li>' for one in sections)
    body = "".join(
        f'<section id="{text(one.name)}" aria-labelledby="{text(one.name)}-title">'
        f'<h2 id="{text(one.name)}-title">{text(one.title)}</h2>{one.html}</section>'
        for one in sections
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f'<meta name="generator" content="cranfield {__version__}"><title>{text(title)}</title>'
        f"<style>{style}</style></head><body>"
        '<a class="skip" href="#main">Skip to the results</a>'
        f'<header><div class="bar"><p class="brand">cranfield</p>'
        '<button type="button" id="theme" aria-label="Switch between light and dark">Light / dark</button></div>'
        f"<h1>{text(title)}</h1>{f'<p class=lead>{text(lead)}</p>' if lead else ''}"
        f'<nav aria-label="Sections"><ul>{navigation}</ul></nav></header>'
        f'<main id="main">{body}</main>'
        f"<footer><p>Made by cranfield {__version__}. This file holds all it shows and asks nothing of a network."
        "</p></footer>"
        f'<script type="application/json" id="data">{json_text(data)}</script><script>{script}</script></body></html>\n'
    )


def json_text(data: Any) -> str:
    r"""Return JSON that can stand inside a script element, whatever the strings in it say.

    Examples
    --------
    >>> json_text({"name": "</script>"})
    '{"name":"\\u003c/script>"}'
    """
    # No < means no end of the element and no comment; the line separators are no part of older JavaScript strings.
    return (
        json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return (resources.files("cranfield.report") / "assets" / name).read_text(encoding="utf-8")
