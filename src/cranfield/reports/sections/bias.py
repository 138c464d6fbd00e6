"""How much of an evaluation is popularity, and how many times better than a random ranking each system is."""

from __future__ import annotations

import polars as pl

from cranfield.biases import Bias, RatioToRandom
from cranfield.facts import Fact, sentences
from cranfield.reports.html_page import Section
from cranfield.reports.markup import Column, Value, downloads, figure, folded, notes, paragraphs, sortable, table, text

_AGAINST_RANDOM = (
    "The value of a metric depends on how many test ratings there are and on how many items a list is chosen from: on "
    "its own it means little. A random ranking of the same items shows the value that the design alone gives "
    "(Bellogín, Castells and Cantador 2017)."
)


def beside_random(times: RatioToRandom) -> Section:
    """Return the section that compares systems with a random ranking of the same targets."""
    shown = times.table()
    columns = [Column(title, numeric=place > 0) for place, title in enumerate(shown.header)]
    frame = times.frame()
    keys = {(system, metric): ratio for system, metric, *_, ratio in frame.iter_rows()}
    rows = [
        [
            Value(text(row[0]), str(row[0])),
            *(Value(text(cell), keys.get((str(row[0]), metric))) for metric, cell in zip(shown.header[1:], row[1:])),
        ]
        for row in shown.rows
    ]
    html = paragraphs(times.facts()[:1]) + table(shown.caption, columns, rows)
    more = paragraphs([_AGAINST_RANDOM]) + notes(shown.notes) + downloads("times-random")
    return Section("times-random", "How far above a random ranking?", html, more, {"times-random": frame})


TITLE = "How much of it is popularity?"
_UNKNOWN = "What cannot be known"
_TITLES = {
    "popularity": "What popularity explains",
    "orders": "The order under each protocol",
    "conclusions": "Conclusions that change",
    "groups": "By popularity group",
    "predicted": "Predicted and measured",
    "estimates": "If everything were judged",
}


def _frames(answer: Bias) -> dict[str, pl.DataFrame]:
    """Return the frame behind each table."""
    return {
        "popularity": answer.shares,
        "orders": answer.orders,
        "conclusions": answer.conclusions,
        "groups": answer.groups,
        "predicted": answer.predicted,
        **({} if answer.estimates is None else {"estimates": answer.estimates.frame()}),
    }


def bias_sections(answer: Bias) -> list[Section]:
    """Return the verdict, each table with its frame to download, the values of random, and what cannot be known."""
    frames = _frames(answer)
    said, *others = answer.verdict
    opening = f'<p class="answer">{text(said)}</p>' + _orders(answer) + folded("What else was found", notes(others))
    sections = [Section("answer", "The answer", opening)]
    for name, shown in answer.tables().items():
        tables = {f"bias-{name}": frames[name]}
        more = notes(shown.notes) + downloads(*tables)
        sections.append(Section(f"bias-{name}", _TITLES[name], sortable(shown), more, tables))
    sections.append(beside_random(answer.ratios))
    unknown = paragraphs(sentences(answer.caveats)) + notes(sentences(answer.notes))
    return [*sections, Section("unknown", _UNKNOWN, unknown)]


def bias_section(answer: Bias, *opening: Fact) -> Section:
    """Return one section: the ``opening``, the verdict, the orders, what changes, what popularity explains, caveats."""
    frames = _frames(answer)
    shown = {name: table for name, table in answer.tables().items() if name not in ("groups", "estimates")}
    said, *others = answer.verdict
    more = notes([*opening, *others])
    more += "".join(f"<h3>{_TITLES[name]}</h3>{sortable(table)}{notes(table.notes)}" for name, table in shown.items())
    more += f"<h3>{_UNKNOWN}</h3>" + paragraphs(sentences(answer.caveats)) + notes(sentences(answer.notes))
    tables = {f"bias-{name}": frames[name] for name in shown}
    return Section("bias", TITLE, paragraphs([said]) + _orders(answer), more + downloads(*tables), tables)


def _orders(answer: Bias) -> str:
    said = f"{answer.metric} of each system as measured, and without popularity's advantage."
    return figure("bias-orders", answer.plot(), said)
