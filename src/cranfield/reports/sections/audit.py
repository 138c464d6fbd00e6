"""The audit on the page: whether the winner survives other decisions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from cranfield._figures import definition, svg_on_page
from cranfield._table import Table
from cranfield.audits import NOT_A_PROBABILITY, Audit, audit_tables
from cranfield.reports import figures
from cranfield.reports.audited import ShownPair, audited, shortened
from cranfield.reports.markup import Column, Value, downloads, figure, notes, paragraphs, table, text
from cranfield.reports.section import Reported, Section, on_page

_TITLE = "Does the winner survive other decisions?"

# Number of sentences of the verdict in large type; and the maximum rows of a frame to download from the page.
_LARGE, _MOST_ROWS = 2, 20_000

_SAYS = {
    "universes": (
        "Each cell is one combination of options. Cells are ordered by their effect size d_z, the mean difference of "
        "users divided by its standard deviation. The rows below show which options the cells have: an option whose "
        "marks gather at one end moves the result. A lead in a cell is not corrected for the number of cells."
    ),
    "map": (
        "For each option, the share of its cells that each system leads. If the bar of an option points to the "
        "other side, the other system leads in more of its cells. The single changes below, which leave everything "
        "else unchanged, show whether the option is the cause."
    ),
    "influence": (
        "How much of the variance of the effect size over the cells each decision explains. A decision below the noise "
        "floor, the share that chance options such as seeds explain, has no visible influence. Influence shows which "
        "decisions move the result, not which option is right. Influence on the sign of the lead is diluted by noise "
        "if systems are close or users are few."
    ),
    "flips": (
        "Each change starts from the experiment as its file states it and keeps the seeds. A change that reverses "
        "the winner shows that the claim needs that decision, not that the changed one is better."
    ),
    "rule": (
        "The best tree of at most three conditions, found by trying all of them. It describes these cells and predicts "
        "nothing about options that were not opened."
    ),
    "shares": (
        f"{NOT_A_PROBABILITY} The last column says what to compare a share with: cells are so similar that one of two "
        "equally good systems often leads most of them. Intervals say how the share would vary with other users, not "
        "with other options."
    ),
    "joint": (
        "One test of all universes together. Chance is simulated in two ways: users swap the two systems at random, in "
        "every universe at once; and users are drawn again after the mean difference is removed. The larger p "
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
        "The rank of every system over the cells. A system that is often first is not necessarily the best: the cells "
        "only cover the options that were opened."
    ),
}


@dataclass(frozen=True)
class _Part:
    """A part of the section: its anchor, its heading and its markup."""

    name: str
    title: str
    html: str


def audit_section(audit: Audit) -> Section:
    """Return the audit as one section, with a heading for each part."""
    parts, data = _parts(audit, level=4)
    opening, *rest = parts
    html = opening.html + "".join(f'<h3 id="{part.name}">{text(part.title)}</h3>{part.html}' for part in rest)
    return _section("audit", _TITLE, html, audit, data)


def audit_sections(audit: Audit) -> list[Section]:
    """Return the audit as one section per part, for its own page."""
    parts, data = _parts(audit, level=3)
    opening, *rest = parts
    last = rest.pop()
    return [
        Section("audit", opening.title, opening.html, data=data),
        *(Section(part.name, part.title, part.html) for part in rest),
        _section(last.name, last.title, last.html, audit, None),
    ]


@on_page(70)
def _on_page(reported: Reported) -> Section | None:
    return None if reported.audit is None else audit_section(reported.audit)


def _section(name: str, title: str, html: str, audit: Audit, data: Any) -> Section:
    """Return a section with all tables of the audit to download."""
    frames = {
        "audit-shares": audit.shares(),
        "audit-effects": audit.effects(),
        "audit-joint": audit.joint(),
        "audit-influence": audit.influence(),
        "audit-flips": audit.flips(),
        "audit-ranks": audit.ranks(),
        "audit-significance": audit.significance(),
        "audit-truth": audit.truth(),
        "audit-advice": audit.advice(),
    }
    frames = {file: frame for file, frame in frames.items() if frame.height}
    kept = {file: frame for file, frame in frames.items() if frame.height <= _MOST_ROWS}
    omitted = [f"{file}.csv" for file in frames if file not in kept]
    if omitted:
        html += paragraphs([f"Too large for a page: {', '.join(omitted)}. The methods of Audit return all of it."])
    return Section(name, title, html + downloads(*kept), tables=kept, data=data)


def _parts(audit: Audit, level: int) -> tuple[list[_Part], dict[str, Any]]:
    """Return the parts and the data of the script; ``level`` is that of headings inside a part."""
    pairs, data = audited(audit)
    tables = {name: shortened(own) for name, own in audit_tables(audit).items()}
    chosen = pairs[0]
    parts = [
        _Part("audit", "The verdict", _verdict(audit, chosen, data["systems"])),
        _Part("audit-universes", "Cell by cell", _universes(audit, chosen, level)),
        _Part("audit-decisions", "Which decisions matter", _decisions(audit, chosen, level)),
        _Part("audit-questions", "How often each leads, and the joint test", _questions(chosen, tables)),
        _Part("audit-systems", "All systems", _systems(audit, tables)),
        _Part("audit-truth", "Against the truth", _with_words("truth", tables["truth"], tables["truth-pairs"])),
        _Part("audit-advice", "Is the advice on metrics the same?", _with_words("advice", tables["advice"])),
        _Part("audit-opened", "What was opened", _opened(audit, tables)),
    ]
    return [part for part in parts if part.html], data


def _verdict(audit: Audit, chosen: ShownPair, systems: list[str]) -> str:
    """Return the choice of a pair, its verdict and its key numbers."""
    # The verdict has sentences about all systems, then about the pair, then about metrics.
    sentences = audit.verdict
    start = sentences.index(chosen.sentences[0])
    large, rest = chosen.sentences[:_LARGE], chosen.sentences[_LARGE:]
    facts = "".join(f"<div><b>{text(number)}</b><span>{text(words)}</span></div>" for number, words in chosen.facts)
    return (
        paragraphs(sentences[:start])
        + _pair_choice(systems, len(audit.systems))
        + f'<div class="verdict" id="audit-large" aria-live="polite">{paragraphs(large)}</div>'
        + f'<div class="figures" id="audit-facts">{facts}</div>'
        + f'<div id="audit-rest">{paragraphs(rest)}</div>'
        + paragraphs(sentences[start + len(chosen.sentences) :])
        + notes(audit.notes)
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
        f"<span>Systems are in the order of the starting point. {text(fewer)}</span></p>"
    )


def _universes(audit: Audit, chosen: ShownPair, level: int) -> str:
    first, second = chosen.view.systems
    # Static drawings: shown if scripts are disabled; otherwise they can be saved.
    curve = _still("audit-curve", audit.plot("curve"), f"The specification curve of {first} against {second}.")
    flips = _still("audit-map", audit.plot("map"), f"Share of the cells that {first} leads, by option.")
    return (
        paragraphs([_SAYS["universes"]])
        + f'<div id="audit-root" class="audit" data-level="{level}"></div>'
        + f"<noscript>{curve}{paragraphs([_SAYS['map']])}{flips}</noscript>"
    )


def _decisions(audit: Audit, chosen: ShownPair, level: int) -> str:
    first, second = chosen.view.systems
    bars = _still("audit-influence", audit.plot("influence"), f"Influence of decisions, {first} against {second}.")
    return (
        paragraphs([_SAYS["influence"]])
        + f'<div id="audit-bars" class="bars"></div><noscript>{bars}</noscript>'
        + _of_pair(chosen, "influence")
        + _of_pair(chosen, "interactions")
        + f"<h{level}>The smallest changes</h{level}>"
        + paragraphs([_SAYS["flips"]])
        + _of_pair(
            chosen,
            "flips",
            "No change of one or two decisions changes the winner, and no single change affects significance.",
        )
        + f"<h{level}>When does the other system win?</h{level}>"
        + paragraphs([_SAYS["rule"]])
        + _of_pair(chosen, "rule", "No rule predicts who leads better than always naming the same system.")
    )


def _questions(chosen: ShownPair, tables: dict[str, Table]) -> str:
    return (
        paragraphs([_SAYS["shares"]])
        + _of_pair(chosen, "shares")
        + paragraphs([_SAYS["joint"]])
        + _of_pair(chosen, "joint", "No universe has an average that is a sum over users, so none can be tested.")
        + _of_pair(chosen, "joint-by-question")
        + _other_tests(chosen)
        + _whole(tables["seeds"])
    )


def _other_tests(chosen: ShownPair) -> str:
    return paragraphs([_SAYS["tests"]]) + _of_pair(chosen, "tests") if chosen.tables["tests"].rows else ""


def _systems(audit: Audit, tables: dict[str, Table]) -> str:
    cut = " The best 40 on average." if len(audit.systems) > figures.MOST_SYSTEMS else ""
    drawn = figure("audit-ranks", audit.plot("ranks"), f"How often each system has each rank, over all cells.{cut}")
    return paragraphs([_SAYS["ranks"]]) + drawn + _whole(tables["ranks"]) + _whole(tables["pairs"])


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


def _still(name: str, chart: Any, caption: str) -> str:
    """Return a static figure, for readers without scripts."""
    drawn = svg_on_page(definition(chart), name)
    return (
        f'<figure><div class="drawing" role="img" aria-label="{text(caption)}">{drawn}</div>'
        f"<figcaption>{text(caption)}</figcaption></figure>"
    )


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
    columns = [Column(title, numeric=not words) for title, words in zip(own.header, own.of_text())]
    rows = [[_value(str(cell), column) for cell, column in zip(row, columns)] for row in own.rows]
    return table(f"{own.caption}.", columns, rows)


def _value(cell: str, column: Column) -> Value:
    number = re.match(r"[<>]?([-+]?[\d.]+)", cell.replace(",", ""))
    return Value(text(cell), float(number[1]) if column.numeric and number else None if column.numeric else cell)
