"""The audit on the page: whether the winner survives other decisions, and the numbers that its script needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cranfield._figures import MOST_SYSTEMS
from cranfield._table import Table
from cranfield._terminal import shown
from cranfield.audits import (
    VARIABLE_DECISIONS,
    Audit,
    PairView,
    audit_tables,
    option_label,
    option_words,
    pair_tables,
    ranks_of,
)
from cranfield.facts import Fact, sentences
from cranfield.facts import audit as audit_facts
from cranfield.reports.html_page import Section, on_page
from cranfield.reports.markup import downloads, figure, folded, notes, packed, paragraphs, sortable, still, text

_OPENINGS = {"decisions": audit_facts.LargestInfluences, "questions": audit_facts.JointDifference}
_MOST_BYTES = 4_000_000  # maximum size of all pairs in the page, in bytes
MOST_ROWS = 60  # maximum rows of a table on the page; the files of the audit hold all rows
_MOST_SYSTEMS = 100  # more systems would be hard to find in a list of choices, and a rank must fit in one byte


@dataclass(frozen=True)
class ShownPair:
    """What a page shows of a pair of systems."""

    view: PairView  # the better system under the starting point is the first
    facts: list[Fact]  # the verdict, without what opens a section of its own
    openings: Mapping[str, Fact]  # what opens a section, by the name of the section
    numbers: list[tuple[str, str]]  # key numbers with their descriptions
    tables: Mapping[str, Table]  # each with at most `MOST_ROWS` rows

    @classmethod
    def of(cls, audit: Audit, view: PairView) -> ShownPair:
        """Return what a page shows of a pair."""
        tables = {name: shortened(table) for name, table in pair_tables(audit, view).items()}
        facts = audit.pair_facts(*view.systems)
        openings = {name: fact for name, kind in _OPENINGS.items() for fact in facts if isinstance(fact, kind)}
        facts = [fact for fact in facts if not isinstance(fact, tuple(_OPENINGS.values()))]
        return cls(view, facts, openings, key_numbers(audit, view), tables)

    def as_dict(self, systems: Mapping[str, int]) -> dict[str, Any]:
        """Return it for JSON, with systems as indices."""
        leads = self.view.pair.leads
        return {
            "systems": [systems[system] for system in self.view.systems],
            "d_z": packed(self.view.d_z, "<f4"),
            "p": packed(leads.p, "<f4"),
            # 0, 1 or 2 if the second leads, both are equal, or the first leads; plus 3 if it does so significantly.
            "result": packed(self.view.lead + 1 + 3 * (self.view.better != 0), "u1"),
            "sentences": list(map(shown, sentences(self.facts))),
            "openings": {name: shown(fact) for name, fact in self.openings.items()},
            "facts": [list(map(shown, number)) for number in self.numbers],
            "tables": {name: _table(table) for name, table in self.tables.items()},
            "influence": _influence(self.view),
        }


def audited(audit: Audit) -> tuple[list[ShownPair], dict[str, Any]]:
    """Return what a page shows of the pairs of the best systems, as many as fit, and everything its script needs."""
    order = audit.systems_asked[:_MOST_SYSTEMS]
    numbers = {system: number for number, system in enumerate(order)}
    pairs, written, size = list[ShownPair](), list[dict[str, Any]](), 0
    for place in range(1, len(order)):
        both = (sorted((first, order[place]), key=audit.systems_at_start.index) for first in order[:place])
        added = [ShownPair.of(audit, PairView.of(audit, *names)) for names in both]
        texts = [pair.as_dict(numbers) for pair in added]
        size += sum(len(json.dumps(text)) for text in texts)
        if pairs and size > _MOST_BYTES:
            order = order[:place]
            break
        pairs += added
        written += texts
    return pairs, {**_grid(audit, order), "pairs": written}


def shortened(table: Table) -> Table:
    """Return a table with at most `MOST_ROWS` rows; the caption says so if rows were cut."""
    if len(table.rows) <= MOST_ROWS:
        return table
    caption = f"{table.caption}. The first {MOST_ROWS} of {len(table.rows):,} rows"
    return Table(table.header, table.rows[:MOST_ROWS], caption, table.notes, table.label)


def key_numbers(audit: Audit, view: PairView) -> list[tuple[str, str]]:
    """Return the key numbers: the share led, flips, the most influential decision, the joint test."""
    answer, flips = view.pair.answer(), view.pair.flips
    first = view.leader(view.sign * flips.lead) or view.first
    share = view.share(answer, "leads" if first == view.first else "trails")
    where = ", the winner of the starting point" if flips.lead else "; under the starting point they are equal"
    numbers = [(audit_facts.share_text(share.share), f"of the set-ups are led by {first}{where}")]
    if share.chance is not None and audit.grid.n_cells > 1:
        least = int(100 * share.chance + 1e-6)
        numbers.append((f"{least} %", "is reached or exceeded by one of two equally good systems in 5 % of cases"))
    if flips.singles and flips.lead:
        turning = sum(flip.turns_winner for flip in flips.singles)
        numbers.append((f"{turning} of {len(flips.singles)}", "single changes change the winner"))
    decided = [row for row in _influences(view) if row["kind"] != "chance" and row["variance"]]
    if decided:
        most = max(decided, key=lambda row: row["shapley"])
        explained = audit_facts.share_text(most["shapley"])
        numbers.append((most["decision"], f"explains {explained} of the variance of the effect size"))
    if answer.relied_on and audit.grid.n_cells > 1:
        p = audit_facts.p_phrase(answer.relied_on["either"])
        seeds = ", with the spread of seeds" if answer.corrected_retrained else ""
        numbers.append((p, f"joint test{seeds}: do they differ anywhere, one way or the other?"))
    return numbers


def _influence(view: PairView) -> list[list[Any]]:
    """Return decision, kind, share of the variance of d_z and its interval; chance last."""
    rows = sorted(_influences(view), key=lambda row: (row["kind"] == "chance", -row["shapley"]))
    names = ("shapley", "lower", "upper")
    return [[shown(row["decision"]), row["kind"], *(round(row[name], 4) for name in names)] for row in rows]


def _influences(view: PairView) -> list[dict[str, Any]]:
    return [row for row in view.pair.influence if row["with_decision"] is None and row["answer"] == "d_z"]


def _grid(audit: Audit, systems: tuple[str, ...]) -> dict[str, Any]:
    """Return the cells and everything else that all pairs share."""
    grid = audit.grid
    places = [audit.systems.index(system) for system in systems]
    ranks = ranks_of(np.where(audit.lower_is_better, -audit.averages, audit.averages))[places]
    even = all(opened.weights is None for opened in grid.varied)
    return {
        "systems": list(map(shown, systems)),
        "of_systems": len(audit.systems),
        "decisions": [
            {
                "name": shown(opened.name),
                "kind": opened.kind,
                "says": VARIABLE_DECISIONS[opened.name].says if opened.name in VARIABLE_DECISIONS else "",
                "options": list(map(shown, opened.options)),
                "labels": [shown(option_label(opened.name, option, grid.labels)) for option in opened.options],
                "words": [shown(option_words(opened.name, option, grid.labels)) for option in opened.options],
            }
            for opened in grid.varied
        ],
        "cells": packed(grid.cells, "<u2"),
        "universe": packed(grid.universe, "<u4"),
        "weights": None if even else packed(grid.weights, "<f8"),
        "start": grid.start,
        "alpha": audit.effort.alpha,
        "users": packed(audit.users, "<u4"),
        "averages": packed(audit.averages[places], "<f8"),
        "ranks": packed(np.minimum(ranks, 255), "u1"),
    }


def _table(table: Table) -> dict[str, Any]:
    rows = [[shown(cell) for cell in row] for row in table.rows]
    return {"caption": shown(f"{table.caption}."), "header": list(map(shown, table.header)), "rows": rows}


_TITLE = "Does the winner survive other decisions?"

_MOST_ROWS = 20_000  # the maximum rows of a frame to download from the page

_SAYS = {
    "universes": (
        "Each bar is one set-up, a combination of options. Set-ups are ordered by their effect size d_z, the mean "
        "difference of users divided by its standard deviation. The rows below show which options they have: an option "
        "whose "
        "marks gather at one end moves the result. A lead in a set-up is not corrected for their number."
    ),
    "map": (
        "For each option, the share of its set-ups that each system leads. If the bar of an option points to the "
        "other side, the other system leads in more of them. The single changes below, which leave everything "
        "else unchanged, show whether the option is the cause."
    ),
    "influence": (
        "How much of the variance of the effect size over the set-ups each decision explains. A decision below the "
        "noise floor, the share that chance options such as seeds explain, has no visible influence. Influence shows "
        "which "
        "decisions move the result, not which option is right. Influence on the sign of the lead is diluted by noise "
        "if systems are close or users are few."
    ),
    "flips": (
        "Each change starts from the experiment as its file states it and keeps the seeds. A change that reverses "
        "the winner shows that the claim needs that decision, not that the changed one is better."
    ),
    "rule": (
        "The best tree of at most three conditions, found by trying all of them. It describes these set-ups and "
        "predicts nothing about options that were not opened."
    ),
    "shares": (
        "A share of set-ups is not a probability: it is a property of the options that were opened, and other options "
        "give another share. The last column says what to compare it with: set-ups are so similar that one of two "
        "equally good systems often leads most of them. Intervals say how the share would vary with other users, not "
        "with other options."
    ),
    "joint": (
        "One test of all set-ups together. Chance is simulated in two ways: users swap the two systems at random, in "
        "every set-up at once; and users are drawn again after the mean difference is removed. The larger p "
        "counts. A small p says that the systems differ somewhere, not who leads. If decisions change the winner, "
        "the median and the net share detect nothing, but the share that is significant one way or the other does. "
        "The plain p takes the trained models as given: it does not keep its level for the same algorithm with another "
        "seed (.074 to .095 at .05 on MovieLens 1M). If seeds were opened, 'p, retrained' includes their spread and "
        "keeps the level, and the verdict uses it."
    ),
    "tests": (
        "Other tests and corrections change what is significant, not who leads. If they disagree, significance "
        "depends on the test."
    ),
    "truth": (
        "Tau is 1 if the measured order of the systems is the true one and -1 if it is reversed. An option that is "
        "closer to the truth here is not necessarily closer on other data."
    ),
    "advice": (
        "The metrics were assessed under each split and target design. Advice that changes with them holds for "
        "one design only. The advice is about metrics. It does not say which system is better."
    ),
    "ranks": (
        "The rank of every system over the set-ups. A system that is often first is not necessarily the best: the "
        "set-ups only cover the options that were opened."
    ),
}
_NO_FLIPS = "No change of one or two decisions changes the winner, and no single change affects significance."


@on_page(70, "audit")
def audit_section(audit: Audit | None) -> Section | None:
    """Return the audit, if there is one, as one section with a heading for each part."""
    if audit is None:
        return None
    opening, *rest = _parts(audit, level=4)
    more = opening.more + "".join(
        f'<h3 id="{part.name}">{text(part.title)}</h3>{part.html}{part.more}' for part in rest
    )
    return _with_tables(replace(opening, title=_TITLE, more=more), audit)


def audit_sections(audit: Audit) -> list[Section]:
    """Return the audit as one section per part, for its own page."""
    *parts, last = _parts(audit, level=3)
    return [*parts, _with_tables(last, audit)]


def _with_tables(section: Section, audit: Audit) -> Section:
    """Return a section with all tables of the audit to download."""
    answers = ("shares", "effects", "joint", "influence", "flips", "ranks", "significance", "truth", "advice")
    frames = {f"audit-{name}": getattr(audit, name)() for name in answers}
    kept = {file: frame for file, frame in frames.items() if 0 < frame.height <= _MOST_ROWS}
    omitted = [f"{file}.csv" for file, frame in frames.items() if frame.height > _MOST_ROWS]
    said = [f"Too large for a page: {', '.join(omitted)}. The methods of Audit return all of it."] if omitted else []
    return replace(section, more=section.more + paragraphs(said) + downloads(*kept), tables=kept)


def _parts(audit: Audit, level: int) -> list[Section]:
    """Return the parts, the first with the data of the script; ``level`` is that of headings inside a part."""
    pairs, data = audited(audit)
    tables = {name: shortened(own) for name, own in audit_tables(audit).items()}
    chosen = pairs[0]
    rest = f'<div id="audit-rest">{notes(sentences(chosen.facts[1:]))}</div>{notes(sentences(audit.notes))}'
    parts = [
        Section("audit", "The answer", _answer(audit, chosen, data["systems"], level), rest, data=data),
        Section("audit-decisions", "Which decisions matter?", *_decisions(audit, chosen, level)),
        Section("audit-questions", "How often does each lead?", *_questions(chosen, tables)),
        Section("audit-systems", "How do all systems rank?", *_systems(audit, tables)),
        Section("audit-truth", "Is it the truth?", _with_words("truth", tables["truth"], tables["truth-pairs"])),
        Section(
            "audit-advice",
            "Is the advice on metrics the same?",
            paragraphs(audit.advice_facts()),
            _with_words("advice", tables["advice"]),
        ),
        Section("audit-opened", "What was varied?", paragraphs([f"{audit.grid.counted}."]), _opened(audit, tables)),
    ]
    return [part for part in parts if part.html or part.more]


def _answer(audit: Audit, chosen: ShownPair, systems: list[str], level: int) -> str:
    """Return the answer, the specification curve, and the changes that reverse the winner."""
    first, second = chosen.view.systems
    # Static drawings: shown if scripts are disabled; otherwise they can be saved.
    curve = still("audit-curve", audit.plot("curve"), f"The specification curve of {first} against {second}.")
    leads = still("audit-map", audit.plot("map"), f"Share of the set-ups that {first} leads, by option.")
    return (
        f'<p class="answer" id="audit-large" aria-live="polite">{text(chosen.facts[0])}</p>'
        + _pair_choice(systems, len(audit.systems))
        + f'<div id="audit-root" class="audit" data-level="{level}"></div>'
        + f"<noscript>{curve}{leads}</noscript>"
        + _of_pair(chosen, "flips", _NO_FLIPS)
        + folded("How to read it", paragraphs([_SAYS["universes"], _SAYS["map"], _SAYS["flips"]]))
    )


def _pair_choice(systems: list[str], of_systems: int) -> str:
    """Return the two lists of systems to choose a pair from, if there is more than one pair."""
    fewer = f"The page has the best {len(systems)} of {of_systems} systems." if len(systems) < of_systems else ""
    if len(systems) < 3:
        return paragraphs([fewer] if fewer else [])
    choices = [
        "".join(
            f'<option value="{number}"{" selected" if number == place else ""}>{text(system)}</option>'
            for number, system in enumerate(systems)
        )
        for place in (0, 1)
    ]
    return (
        f'<p class="choices" id="audit-pair"><label>System <select id="audit-first">{choices[0]}</select></label> '
        f'<label>against <select id="audit-second">{choices[1]}</select></label> '
        f"<span>{text(fewer)}</span></p>"
    )


def _decisions(audit: Audit, chosen: ShownPair, level: int) -> tuple[str, str]:
    first, second = chosen.view.systems
    bars = still("audit-influence", audit.plot("influence"), f"Influence of decisions, {first} against {second}.")
    numbers = "".join(f"<div><b>{text(number)}</b><span>{text(words)}</span></div>" for number, words in chosen.numbers)
    html = f'{_opening(chosen, "decisions")}<div id="audit-bars" class="bars"></div><noscript>{bars}</noscript>'
    return html, (
        f'<div class="figures" id="audit-facts">{numbers}</div>'
        + paragraphs([_SAYS["influence"]])
        + _of_pair(chosen, "influence")
        + _of_pair(chosen, "interactions")
        + f"<h{level}>When does the other system win?</h{level}>"
        + paragraphs([_SAYS["rule"]])
        + _of_pair(chosen, "rule", "No rule predicts who leads better than always naming the same system.")
    )


def _questions(chosen: ShownPair, tables: dict[str, Table]) -> tuple[str, str]:
    tests = paragraphs([_SAYS["tests"]]) + _of_pair(chosen, "tests") if chosen.tables["tests"].rows else ""
    return _opening(chosen, "questions"), (
        paragraphs([_SAYS["shares"]])
        + _of_pair(chosen, "shares")
        + paragraphs([_SAYS["joint"]])
        + _of_pair(chosen, "joint", "No set-up has an average that is a sum over users, so none can be tested.")
        + _of_pair(chosen, "joint-by-question")
        + tests
        + _whole(tables["seeds"])
    )


def _systems(audit: Audit, tables: dict[str, Table]) -> tuple[str, str]:
    cut = " The best 40 on average." if len(audit.systems) > MOST_SYSTEMS else ""
    drawn = figure("audit-ranks", audit.plot("ranks"), f"How often each system has each rank, over all set-ups.{cut}")
    more = paragraphs([_SAYS["ranks"]]) + _whole(tables["ranks"]) + _whole(tables["pairs"])
    return paragraphs(audit.rank_facts()) + drawn, more


def _opened(audit: Audit, tables: dict[str, Table]) -> str:
    kinds = (
        "Equivalent: another way to ask the same question. Question: another question, with a verdict for each option. "
        "Chance: another draw, never counted as a decision."
    )
    effort = audit.effort
    drawn = (
        f"The joint test has {effort.draws:,} draws, intervals {effort.resamples:,} resamples of the users, seed "
        f"{effort.seed}, level {effort.alpha:g}."
    )
    return paragraphs([kinds]) + _whole(tables["opened"]) + _whole(tables["left-out"]) + paragraphs([drawn])


def _opening(chosen: ShownPair, name: str) -> str:
    """Return the sentence that opens a section, which the script replaces for another pair."""
    return f'<p data-opening="{name}">{text(chosen.openings.get(name, ""))}</p>'


def _of_pair(chosen: ShownPair, name: str, empty: str = "") -> str:
    """Return a table that the script fills for another pair; if it has no rows, the text ``empty``."""
    own = chosen.tables[name]
    hidden, shown = (" hidden", "") if not own.rows else ("", " hidden")
    nothing = f'<p class="empty"{shown}>{text(empty)}</p>' if empty else ""
    return f'<div class="of-pair" data-table="{name}"><div{hidden}>{_html(own)}</div>{nothing}</div>'


def _with_words(name: str, *tables: Table) -> str:
    """Return tables with an explanation before them; nothing if they have no rows."""
    html = "".join(map(_whole, tables))
    return paragraphs([_SAYS[name]]) + html if html else ""


def _whole(own: Table) -> str:
    return f'<div class="whole">{_html(own)}</div>' if own.rows else ""


def _html(own: Table) -> str:
    return sortable(replace(own, caption=f"{own.caption}."))
