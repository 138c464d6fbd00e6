"""Write the files of a study: tables, figures, claims, and the report as Markdown and as a page."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from cranfield import reports
from cranfield._files import write_text
from cranfield._record import Step
from cranfield._table import Cell, Table, csv_of, markdown_text
from cranfield.studies.frame.exhibits import Exhibit
from cranfield.studies.frame.replication import Replication

_DRAWN = ("svg", "pdf", "png")


def write(replication: Replication, steps: Mapping[str, Step], figures: bool) -> None:
    """Write all readable files; ``steps`` are those taken before the study."""
    drawn = {exhibit.name: exhibit.draw() for exhibit in replication.exhibits if figures and exhibit.draw is not None}
    for exhibit in replication.exhibits:
        _write_exhibit(replication.folder, exhibit, drawn.get(exhibit.name))
    plain = replication.frame().to_dicts()
    for row in plain:
        row["margin"] = row["margin"] if math.isfinite(row["margin"]) else None
    claims = {"rule": str(replication.rule), "claims": plain}
    _put(replication.folder / "claims.json", json.dumps(claims, indent=1, ensure_ascii=False))
    _put(replication.folder / "claims.md", _claims_table(replication).markdown())
    _put(replication.folder / "report.md", _markdown(replication, figures))
    tables = [exhibit for exhibit in replication.exhibits if exhibit.table is not None]
    sections = [_claims_section(replication), _section("Tables", tables, _table)]
    if figures:
        own = [exhibit for exhibit in replication.exhibits if exhibit.name in drawn]
        sections.append(_section("Figures", own, partial(_figure, drawn)))
    sections.append(reports.card([*steps.items(), ("study", replication.step)], {"paper": replication.reference}))
    reports.write_page(
        replication.folder / "report.html",
        reports.page(_title(replication), sections, lead=f"{replication.sentence()} {replication.reference}"),
    )


def _title(replication: Replication) -> str:
    return f"{replication.study} on {replication.step.settings['data']}"


def _write_exhibit(folder: Path, exhibit: Exhibit, chart: Any) -> None:
    path = folder / exhibit.home / exhibit.name
    _put(path.with_suffix(".csv"), csv_of(_flat(exhibit.frame)))
    if exhibit.table is not None:
        _put(path.with_suffix(".md"), exhibit.table.markdown())
        _put(path.with_suffix(".tex"), exhibit.table.latex())
    if chart is not None:
        reports.save(chart, *(path.with_suffix(f".{ending}") for ending in _DRAWN))


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame without the columns that CSV cannot hold."""
    return frame.select(name for name, kind in frame.schema.items() if not kind.is_nested())


def _claims_table(replication: Replication) -> Table:
    rows = [[*claim.cells, str(claim.evidence)] for claim in replication.claims]
    return Table(["Claim", "Section", "Here", "So", "Opposite", "Evidence"], rows, notes=[str(replication.rule)])


def _markdown(replication: Replication, figures: bool) -> str:
    parts = [
        f"# {markdown_text(_title(replication))}",
        replication.reference,
        markdown_text(replication.sentence()),
        "## Claims",
    ]
    parts += [_claims_table(replication).markdown(), "## Tables"]
    parts += [exhibit.table.markdown() for exhibit in replication.exhibits if exhibit.table is not None]
    drawn = [exhibit for exhibit in replication.exhibits if figures and exhibit.draw is not None]
    parts += ["## Figures"] if drawn else []
    parts += [f"![{exhibit.caption}](figures/{exhibit.name}.svg)\n\n{exhibit.caption}" for exhibit in drawn]
    setup = {**replication.step.settings, **replication.step.effect}
    lines = [f"- {key}: {markdown_text(_said(value))}" for key, value in setup.items() if value is not None]
    return "\n\n".join([*parts, "## Set-up", "\n".join(lines)])


def _said(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _claims_section(replication: Replication) -> reports.Section:
    markup = reports.paragraphs([str(replication.rule)])
    for verdict, heading in _HEADINGS.items():
        own = [claim for claim in replication.claims if claim.verdict == verdict]
        markup += f"<h3>{heading}: {len(own)}</h3>"
        for claim in own:
            summary = f"{reports.text(claim.claim)} <small>({reports.text(claim.support)})</small>"
            markup += f"<details><summary>{summary}</summary><p>{reports.text(str(claim.evidence))}</p></details>"
    markup += reports.downloads("claims")
    return reports.Section("claims", "What the paper claims", markup, tables={"claims": replication.frame()})


_HEADINGS = {"holds": "Holds here", "does not hold": "Does not hold here", "cannot tell": "Cannot be decided here"}


def _section(name: str, exhibits: Sequence[Exhibit], markup: Callable[[Exhibit], str]) -> reports.Section:
    tables = {exhibit.name: _flat(exhibit.frame) for exhibit in exhibits}
    parts = "".join(map(markup, exhibits)) + reports.downloads(*tables)
    return reports.Section(name.lower(), name, parts, tables=tables)


def _figure(drawn: Mapping[str, Any], exhibit: Exhibit) -> str:
    return reports.figure(exhibit.name, reports.themed(drawn[exhibit.name]), exhibit.caption)


def _table(exhibit: Exhibit) -> str:
    assert exhibit.table is not None
    rows = [[_value(value) for value in row] for row in exhibit.table.rows]
    numeric = [all(isinstance(value.key, float) or value.html == "–" for value in column) for column in zip(*rows)]
    columns = [reports.Column(name, numeric=own) for name, own in zip(exhibit.table.header, numeric)]
    return reports.table(exhibit.caption, columns, rows) + reports.paragraphs(exhibit.table.notes)


def _value(cell: str | Cell) -> reports.Value:
    styled = cell if isinstance(cell, Cell) else Cell(cell)
    try:
        key: float | str = float(styled.text.rstrip("%").replace(",", "").partition(" ")[0])
    except ValueError:
        key = styled.text
    return reports.Value(reports.text(styled.text), key, "best" if styled.best else "")


def _put(path: Path, content: str) -> None:
    write_text(path, content if content.endswith("\n") else content + "\n")
