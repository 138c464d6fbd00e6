"""How many times better than a random ranking each system is."""

from __future__ import annotations

from cranfield.biases import RatioToRandom
from cranfield.reports.markup import Column, Value, downloads, notes, paragraphs, table, text
from cranfield.reports.section import Section

_SAID = (
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
    html = paragraphs([_SAID]) + table(shown.caption, columns, rows) + notes(shown.notes) + downloads("times-random")
    return Section("times-random", "Times random", html, tables={"times-random": frame})
