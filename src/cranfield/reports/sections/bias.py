"""How much of an evaluation is popularity: the sections of `cranfield bias`."""

from __future__ import annotations

from typing import Any

import polars as pl

from cranfield._figures import altair, data_of, series, themed, tips
from cranfield._table import Cell, Table
from cranfield.biases import Bias
from cranfield.reports.markup import Column, Value, downloads, figure, notes, paragraphs, table, text
from cranfield.reports.section import Section
from cranfield.reports.sections.times_random import beside_random

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


def bias_sections(answer: Bias) -> list[Section]:
    """Return the verdict, each table with its frame to download, the values of random, and what cannot be known."""
    frames = {
        "popularity": answer.shares,
        "orders": answer.orders,
        "conclusions": answer.conclusions,
        "groups": answer.groups,
        "predicted": answer.predicted,
        **({} if answer.estimates is None else {"estimates": answer.estimates.frame}),
    }
    sections = [Section("verdict", "Verdict", paragraphs(answer.verdict))]
    for name, shown in answer.tables().items():
        html = _html(shown)
        if name == "orders":
            html = (
                figure("orders", orders_figure(answer), f"{answer.metric} of each system under each protocol.") + html
            )
        tables = {f"bias-{name}": frames[name]}
        sections.append(Section(f"bias-{name}", _TITLES[name], html + downloads(*tables), tables=tables))
    sections.append(beside_random(answer.ratios))
    unknown = paragraphs(answer.caveats) + notes(answer.notes)
    return [*sections, Section("unknown", _UNKNOWN, unknown)]


def bias_section(answer: Bias, where: str = "") -> Section:
    """Return the answer as one section: the verdict, the orders, what changes, what popularity explains, and caveats.

    ``where`` says which part of the results it covers, if there are several.
    """
    frames = {
        "popularity": answer.shares,
        "orders": answer.orders,
        "conclusions": answer.conclusions,
        "predicted": answer.predicted,
    }
    shown = {name: table for name, table in answer.tables().items() if name in frames}
    html = paragraphs([*([where] if where else []), *answer.verdict])
    html += "".join(f"<h3>{_TITLES[name]}</h3>{_html(table)}" for name, table in shown.items())
    html += f"<h3>{_UNKNOWN}</h3>" + paragraphs(answer.caveats) + notes(answer.notes)
    tables = {f"bias-{name}": frames[name] for name in shown}
    return Section("bias", TITLE, html + downloads(*tables), tables=tables)


def orders_figure(answer: Bias) -> Any:
    """Return the averages under each protocol, with their intervals, one panel per protocol."""
    alt = altair()
    names = [protocol.name for protocol in answer.protocols]
    systems = list(answer.protocols[0].scores.systems)
    charts = []
    for name in names:
        rows = answer.orders.filter(pl.col("protocol") == name)
        base = alt.Chart(data_of(rows)).encode(y=alt.Y("system:N", sort=systems, title=None))
        title = f"{answer.metric}, {name}"
        tooltip = tips(system="system", mean=("mean", ".4f"), lower=("lower end", ".4f"), upper=("upper end", ".4f"))
        line = base.mark_rule().encode(x=alt.X("lower:Q", title=title), x2="upper:Q")
        point = base.mark_point(filled=True, size=40).encode(
            x=alt.X("mean:Q", title=title), tooltip=tooltip, color=series("system", systems, mark="point")["color"]
        )
        charts.append((line + point).properties(width=150, height=24 * len(systems)))
    return themed(alt.hconcat(*charts))


def _html(shown: Table) -> str:
    columns = [Column(title, numeric=not is_text) for title, is_text in zip(shown.header, shown.of_text())]
    rows = [[_value(cell, column) for cell, column in zip(row, columns)] for row in shown.rows]
    return table(shown.caption, columns, rows) + notes(list(shown.notes))


def _value(cell: str | Cell, column: Column) -> Value:
    words = cell if isinstance(cell, str) else cell.text
    number = words.split(" ")[0].replace(",", "")
    try:
        return Value(text(words), float(number) if column.numeric else words)
    except ValueError:
        return Value(text(words))
