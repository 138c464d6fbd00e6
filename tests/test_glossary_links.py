"""The first use of a term on a page of the site leads to the glossary."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="the site needs Sphinx; install the extra docs")

from docutils import nodes
from docutils.utils import new_document

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def glossary():
    import sys

    spec = importlib.util.spec_from_file_location("glossary", DOCS / "_extensions" / "glossary.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["glossary"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _page(*children):
    page = new_document("page")
    page += [nodes.paragraph("", "", *children)]
    return page


def _links(page):
    return [(link.astext(), link["refuri"]) for link in page.findall(nodes.reference)]


TEXT = """\
judged, unjudged
: An item is judged if it has a rating. More.

condensed list
: A list without
  some.

discriminative power (DP)
: The share.
"""


def test_the_first_use_of_each_term_is_a_link_and_later_ones_are_not(glossary):
    page = _page(nodes.Text("Condensed lists hold judged items; a condensed list is short. DP and dp."))
    glossary.link(page, glossary.terms_of(TEXT), "glossary.html")
    assert _links(page) == [
        ("Condensed lists", "glossary.html#term-condensed-list"),
        ("judged", "glossary.html#term-judged"),
        ("DP", "glossary.html#term-discriminative-power"),
    ]
    assert page.astext() == "Condensed lists hold judged items; a condensed list is short. DP and dp."


def test_code_links_and_parts_of_words_are_left_alone(glossary):
    page = _page(nodes.literal("", "judged"), nodes.reference("", "judged", refuri="x"), nodes.Text(" misjudged DPX"))
    glossary.link(page, glossary.terms_of(TEXT), "glossary.html")
    assert _links(page) == [("judged", "x")]


def test_every_entry_of_the_glossary_has_its_own_anchor_and_a_hint(glossary):
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    entries = [entry["terms"] for entry in glossary._ENTRY.finditer(text)]
    assert len(entries) == text.count("\n: ")
    anchors = [glossary.anchor(glossary.spellings(entry)[0]) for entry in entries]
    assert len(set(anchors)) == len(anchors)
    assert all(term.hint for term in glossary.terms_of(text))
