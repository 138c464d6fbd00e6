"""The sections over all datasets: the answer, every system on every dataset, ranks and rules, and each dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cranfield.across import DatasetComparison
from cranfield.facts import across as across_facts
from cranfield.facts import sentences
from cranfield.reports.html_page import Section
from cranfield.reports.markup import downloads, figure, folded, notes, paragraphs, sortable, text
from cranfield.reports.sections.comparison import warnings

_TITLE = "Which system is better over these datasets?"


def across_sections(comparison: DatasetComparison | across_facts.NothingOverDatasets) -> list[Section]:
    """Return the sections over all datasets, or the reason why there is no verdict."""
    if isinstance(comparison, across_facts.NothingOverDatasets):
        return [Section("answer", _TITLE, paragraphs([comparison], "answer"))]
    standing, facts = comparison.standings[0], comparison.facts()
    warned = [said for said in sentences(facts) if said.startswith("Warning: ")]
    kinds = across_facts.LeadOverDatasets, across_facts.RankTest, across_facts.ByRules
    others = [fact for fact in facts[1:] if isinstance(fact, kinds[0])]
    rest = [fact for fact in facts[1:] if not isinstance(fact, kinds)]
    caption = f"{comparison.caption}. Diamonds: the average over datasets; thin bar: what to expect on a new one."
    html = paragraphs(facts[:1], "answer") + figure("across-forest", comparison.plot("forest"), caption)
    html += warnings([said.removeprefix("Warning: ") for said in warned])
    html += folded("By the other metrics", notes(sentences(others)))
    html += folded(
        "What would settle it, and what to doubt", notes([said for said in sentences(rest) if said not in warned])
    )
    tables = {"across-pairs": comparison.frame(), "across-effects": comparison.effects()}
    sections = [Section("answer", _TITLE, html, tables=tables)]
    said = [fact for fact in facts if isinstance(fact, kinds[1:])]
    shown = (
        sortable(comparison.table(), names=1)
        + sortable(replace(comparison.summary(), caption=f"{comparison.metrics[0]} on each dataset"), names=1)
        + downloads(*tables)
    )
    sections.append(Section("systems", "How does each system do on each dataset?", shown))
    if standing.rules and len(standing.ranks.datasets) > 1:
        ranks = figure(
            "across-ranks", comparison.plot("ranks"), "Bars join systems that Nemenyi's test does not tell apart."
        )
        rules = figure(
            "across-rules",
            comparison.plot("rules"),
            "Who leads by each rule; beside it, in how many tables without one dataset it stays so.",
        )
        sections.append(
            Section("rules", "Does the aggregation decide?", paragraphs(said[:1]) + rules, paragraphs(said[1:]) + ranks)
        )
    return sections


def datasets_section(answers: Mapping[str, str], pages: Mapping[str, str]) -> Section:
    """Return the answer on each dataset with a link to its page."""
    html = "".join(
        folded(name, f'<p>{text(said)}</p><p><a href="{text(pages[name])}">{text(pages[name])}</a></p>')
        for name, said in answers.items()
    )
    return Section("datasets", "What about each dataset?", html)
