"""Link the first use of each glossary term on a page to its definition, which is also the link's tooltip.

The terms come from ``docs/glossary.md``; pages need no markup. Words that also have an everyday meaning are linked only
if the words around them show that the term is meant (`_FORMS`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

_ENTRY = re.compile(r"^(?P<terms>\S[^\n]*)\n: (?P<definition>.+?)(?=\n\n|\Z)", re.M | re.S)
_FORMS: Mapping[str, str] = {
    "level": r"(?<=are )level|(?<=is )level|level (?=at the top|with )",
    "list": r"(?<=ranked )lists?|lists? (?=of (?:all|each|every|one|the|two|several|a) )",
    "run": r"(?<=[Aa] )run|(?<=[Tt]he )run|(?<=each )run|runs? (?=of (?:a|each|one|the|several) )",
    "user": r"(?!)",
    "power": r"(?<=with )power|power (?=of the test|analysis)|(?<=statistical )power",
    "gain": r"(?<=exponential )gains?|gains? (?=of (?:an item|a graded))|(?<=the )gain(?! of information)",
    "card": r"(?<=the )card",
}
"""Patterns of words that are not always a term; the pattern of any other word is the word, singular or plural."""

_NOT_IN = (
    nodes.reference, nodes.literal, nodes.literal_block, nodes.title, nodes.term, nodes.raw, nodes.math, nodes.caption,
    nodes.rubric, nodes.comment,
)  # fmt: skip
_NO_LINKS = ("glossary", "changelog", "replications", "project", "index")


@dataclass(frozen=True)
class Term:
    """A term of the glossary: its anchor, the pattern of its uses, and its meaning in one sentence."""

    anchor: str
    pattern: re.Pattern[str]
    hint: str


def anchor(term: str) -> str:
    """Return the anchor of a term.

    Examples
    --------
    >>> anchor("condensed list"), anchor("d_z")
    ('term-condensed-list', 'term-d-z')
    """
    return "term-" + re.sub(r"[^a-z0-9]+", "-", term.lower()).strip("-")


def spellings(terms: str) -> list[str]:
    """Return the terms in the line above a definition.

    Examples
    --------
    >>> spellings("judged, unjudged"), spellings("discriminative power (DP)")
    (['judged', 'unjudged'], ['discriminative power', 'DP'])
    """
    return [word for word in re.split(r",\s*|\s*\(|\)", terms) if word]


def terms_of(text: str) -> list[Term]:
    """Return the terms of the glossary, the longest first, so that they take precedence over those they contain."""
    terms = [
        Term(anchor(spellings(entry["terms"])[0]), _pattern(word), _hint(entry["definition"]))
        for entry in _ENTRY.finditer(text)
        for word in spellings(entry["terms"])
    ]
    return sorted(terms, key=lambda term: -len(term.pattern.pattern))


def _pattern(word: str) -> re.Pattern[str]:
    if word in _FORMS:
        return re.compile(_FORMS[word])
    plain = re.escape(word).replace(r"\ ", r"\s+").replace(r"\-", "-")
    return re.compile(rf"\b{plain}(?:s|es)?\b", 0 if word != word.lower() or "_" in word else re.I)


def _hint(definition: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(definition.split()))
    return re.split(r"(?<=[.:]) (?=[A-Z])", plain.replace("`", "").replace("*", ""))[0]


def link(doctree: nodes.document, terms: list[Term], home: str) -> None:
    """Link the first use of each term in the text of a page to its definition on the page ``home``."""
    unseen = {term.anchor for term in terms}
    for text in [node for node in doctree.findall(nodes.Text) if not _is_inside(node)]:
        parts = list(_linked(str(text), terms, unseen, home))
        if len(parts) > 1:
            text.parent.replace(text, parts)


def _is_inside(node: nodes.Node) -> bool:
    parent = node.parent
    while parent is not None:
        if isinstance(parent, _NOT_IN):
            return True
        parent = parent.parent
    return False


def _linked(text: str, terms: list[Term], unseen: set[str], home: str) -> Iterator[nodes.Node]:
    """Yield the text, with links for the terms that are used for the first time."""
    while True:
        uses = [(use.start(), -len(use[0]), term, use) for term in terms if term.anchor in unseen
                for use in [term.pattern.search(text)] if use is not None]  # fmt: skip
        if not uses:
            break
        _, _, term, use = min(uses, key=lambda found: found[:2])
        unseen.discard(term.anchor)
        word = use[0].rstrip()
        before, text = text[: use.start()], text[use.start() + len(word) :]
        if before:
            yield nodes.Text(before)
        yield nodes.reference(
            "",
            "",
            nodes.Text(word),
            refuri=f"{home}#{term.anchor}",
            reftitle=term.hint,
            classes=["term"],
            internal=True,
        )
    yield nodes.Text(text)


def _collect(app: Sphinx) -> None:
    app.glossary_terms = terms_of((Path(app.srcdir) / "glossary.md").read_text(encoding="utf-8"))  # type: ignore[attr-defined]


def _name_terms(app: Sphinx, doctree: nodes.document) -> None:
    """Add an anchor to every definition of the glossary."""
    if app.env.docname == "glossary":
        for term in doctree.findall(nodes.term):
            term["ids"].append(anchor(spellings(term.astext())[0]))


def _link_page(app: Sphinx, doctree: nodes.document, page: str) -> None:
    if page.split("/")[-1] not in _NO_LINKS and not page.startswith("reference/"):
        link(doctree, app.glossary_terms, app.builder.get_relative_uri(page, "glossary"))  # type: ignore[attr-defined]


def setup(app: Sphinx) -> dict[str, Any]:
    """Collect the terms, and link them on every page once its references are resolved."""
    app.connect("builder-inited", _collect)
    app.connect("doctree-read", _name_terms)
    app.connect("doctree-resolved", _link_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
