"""What a study leaves in its folder: tables, figures, claims, and the report as Markdown and as a page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from cranfield._files import write_text
from cranfield._record import Step
from cranfield._table import Cell, Table, csv_of, markdown_text
from cranfield.reports.figures import save, themed
from cranfield.reports.markup import Column, Value, downloads, figure, paragraphs, percent, table, text
from cranfield.reports.page import page
from cranfield.reports.reporting import write_page
from cranfield.reports.section import Section
from cranfield.reports.sections.card import card
from cranfield.studies._claims import SURE, Finding, frame_of
from cranfield.studies._study import Exhibit
from cranfield.studies.replication import Replication

_DRAWN = ("svg", "pdf", "png")
_RULE = (
    f"A claim holds if its margin is above 0 for all systems and in at least {SURE:.0%} of 200 bootstrap draws of the "
    "systems; it does not hold if it is below 0 in as many; otherwise it cannot be told. With fewer than five systems "
    "nothing is told."
)


def write(replication: Replication, split: Step, figures: bool) -> None:
    """Write everything that people read."""
    drawn = {exhibit.name: exhibit.draw() for exhibit in replication.exhibits if figures and exhibit.draw is not None}
    for exhibit in replication.exhibits:
        _write_exhibit(replication.folder, exhibit, drawn.get(exhibit.name))
    _write_claims(replication.folder, replication.claims)
    _put(replication.folder / "report.md", _markdown(replication, figures))
    sections = [_claims_section(replication.claims), _tables_section(replication.exhibits)]
    if figures:
        sections.append(_figures_section(replication.exhibits, drawn))
    sections.append(card([("split", split), ("study", replication.step)], {"paper": replication.reference}))
    write_page(
        replication.folder / "report.html",
        page(_title(replication), sections, lead=f"{replication.sentence()} {replication.reference}"),
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
        save(chart, *(path.with_suffix(f".{ending}") for ending in _DRAWN))


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame without the columns that CSV cannot hold."""
    return frame.select(name for name, kind in frame.schema.items() if not kind.is_nested())


def _write_claims(folder: Path, claims: Sequence[Finding]) -> None:
    plain = [
        {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in asdict(claim).items()
        }
        for claim in claims
    ]
    _put(folder / "claims.json", json.dumps({"rule": _RULE, "claims": plain}, indent=1, ensure_ascii=False))
    _put(folder / "claims.md", claims_table(claims).markdown())


def claims_table(claims: Sequence[Finding]) -> Table:
    """Return the claims with their evidence as a table for people."""
    rows = [
        [
            finding.claim,
            finding.where,
            finding.verdict,
            percent(finding.sure),
            percent(finding.against),
            finding.evidence,
        ]
        for finding in claims
    ]
    return Table(["Claim", "Section", "Here", "So", "Opposite", "Evidence"], rows, notes=[_RULE])


def _markdown(replication: Replication, figures: bool) -> str:
    parts = [
        f"# {markdown_text(_title(replication))}",
        replication.reference,
        markdown_text(replication.sentence()),
        "## Claims",
    ]
    parts += [claims_table(replication.claims).markdown(), "## Tables"]
    parts += [exhibit.table.markdown() for exhibit in replication.exhibits if exhibit.table is not None]
    drawn = [exhibit for exhibit in replication.exhibits if figures and exhibit.draw is not None]
    parts += ["## Figures"] if drawn else []
    parts += [f"![{exhibit.caption}](figures/{exhibit.name}.svg)\n\n{exhibit.caption}" for exhibit in drawn]
    details = {**replication.step.settings, **replication.step.effect}
    lines = [f"- {key}: {markdown_text(_said(value))}" for key, value in details.items() if value is not None]
    return "\n\n".join([*parts, "## Set-up", "\n".join(lines)])


def _said(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _claims_section(claims: Sequence[Finding]) -> Section:
    markup = paragraphs([_RULE])
    for verdict, heading in _HEADINGS.items():
        same_verdict = [claim for claim in claims if claim.verdict == verdict]
        markup += f"<h3>{heading}: {len(same_verdict)}</h3>" + "".join(map(_claim, same_verdict))
    return Section("claims", "What the paper claims", markup + downloads("claims"), tables={"claims": frame_of(claims)})


_HEADINGS = {"holds": "Holds here", "does not hold": "Does not hold here", "cannot tell": "Cannot be told here"}


def _claim(finding: Finding) -> str:
    drawn = finding.sure is not None and finding.against is not None
    sure = f"; so in {percent(finding.sure)} of the draws, the opposite in {percent(finding.against)}" if drawn else ""
    sentence = f"{text(finding.claim)} <small>(section {text(finding.where)}{sure})</small>"
    return f"<details><summary>{sentence}</summary><p>{text(finding.evidence)}</p></details>"


def _tables_section(exhibits: Sequence[Exhibit]) -> Section:
    tabled = [exhibit for exhibit in exhibits if exhibit.table is not None]
    markup = "".join(
        _html(exhibit.table, exhibit.caption) + paragraphs(exhibit.table.notes)
        for exhibit in tabled
        if exhibit.table is not None
    )
    tables = {exhibit.name: _flat(exhibit.frame) for exhibit in tabled}
    return Section("tables", "Tables", markup + downloads(*tables), tables=tables)


def _figures_section(exhibits: Sequence[Exhibit], drawn: Mapping[str, Any]) -> Section:
    figured = [exhibit for exhibit in exhibits if exhibit.name in drawn]
    markup = "".join(figure(exhibit.name, themed(drawn[exhibit.name]), exhibit.caption) for exhibit in figured)
    tables = {exhibit.name: _flat(exhibit.frame) for exhibit in figured}
    return Section("figures", "Figures", markup + downloads(*tables), tables=tables)


def _html(content: Table, caption: str) -> str:
    rows = [[_value(cell) for cell in row] for row in content.rows]
    numeric = [all(isinstance(value.key, float) or value.html == "–" for value in column) for column in zip(*rows)]
    return table(caption, [Column(name, numeric=numbers) for name, numbers in zip(content.header, numeric)], rows)


def _value(cell: str | Cell) -> Value:
    content = cell if isinstance(cell, Cell) else Cell(cell)
    try:
        key: float | str = float(content.text.rstrip("%").replace(",", "").partition(" ")[0])
    except ValueError:
        key = content.text
    return Value(text(content.text), key, "best" if content.best else "")


def _put(path: Path, content: str) -> None:
    write_text(path, content if content.endswith("\n") else content + "\n")
