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
from cranfield.studies._claims import ClaimRule, Finding, frame_of
from cranfield.studies._study import Exhibit
from cranfield.studies.replication import Replication

_DRAWN = ("svg", "pdf", "png")


def write(made: Replication, steps: Mapping[str, Step], figures: bool) -> None:
    """Write everything that people read; ``steps`` were taken before the study."""
    drawn = {one.name: one.draw() for one in made.exhibits if figures and one.draw is not None}
    for one in made.exhibits:
        _write_exhibit(made.folder, one, drawn.get(one.name))
    _write_claims(made.folder, made.claims, made.rule)
    _put(made.folder / "report.md", _markdown(made, figures))
    sections = [_claims_section(made.claims, made.rule), _tables_section(made.exhibits)]
    if figures:
        sections.append(_figures_section(made.exhibits, drawn))
    sections.append(card([*steps.items(), ("study", made.step)], {"paper": made.reference}))
    write_page(made.folder / "report.html", page(_title(made), sections, lead=f"{made.sentence()} {made.reference}"))


def _title(made: Replication) -> str:
    return f"{made.study} on {made.step.settings['data']}"


def _write_exhibit(folder: Path, one: Exhibit, chart: Any) -> None:
    path = folder / one.home / one.name
    _put(path.with_suffix(".csv"), csv_of(_flat(one.frame)))
    if one.table is not None:
        _put(path.with_suffix(".md"), one.table.markdown())
        _put(path.with_suffix(".tex"), one.table.latex())
    if chart is not None:
        save(chart, *(path.with_suffix(f".{ending}") for ending in _DRAWN))


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame without the columns that CSV cannot hold."""
    return frame.select(name for name, kind in frame.schema.items() if not kind.is_nested())


def _write_claims(folder: Path, claims: Sequence[Finding], rule: ClaimRule) -> None:
    plain = [
        {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in asdict(one).items()
        }
        for one in claims
    ]
    _put(folder / "claims.json", json.dumps({"rule": rule.text, "claims": plain}, indent=1, ensure_ascii=False))
    _put(folder / "claims.md", claims_table(claims, rule).markdown())


def claims_table(claims: Sequence[Finding], rule: ClaimRule) -> Table:
    """Return the claims with their evidence as a table for people."""
    rows = [
        [one.claim, one.where, one.verdict, percent(one.sure), percent(one.against), one.evidence] for one in claims
    ]
    return Table(["Claim", "Section", "Here", "So", "Opposite", "Evidence"], rows, notes=[rule.text])


def _markdown(made: Replication, figures: bool) -> str:
    parts = [f"# {markdown_text(_title(made))}", made.reference, markdown_text(made.sentence()), "## Claims"]
    parts += [claims_table(made.claims, made.rule).markdown(), "## Tables"]
    parts += [one.table.markdown() for one in made.exhibits if one.table is not None]
    drawn = [one for one in made.exhibits if figures and one.draw is not None]
    parts += ["## Figures"] if drawn else []
    parts += [f"![{one.caption}](figures/{one.name}.svg)\n\n{one.caption}" for one in drawn]
    told = {**made.step.settings, **made.step.effect}
    lines = [f"- {key}: {markdown_text(_said(value))}" for key, value in told.items() if value is not None]
    return "\n\n".join([*parts, "## Set-up", "\n".join(lines)])


def _said(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _claims_section(claims: Sequence[Finding], rule: ClaimRule) -> Section:
    markup = paragraphs([rule.text])
    for verdict, heading in _HEADINGS.items():
        own = [one for one in claims if one.verdict == verdict]
        markup += f"<h3>{heading}: {len(own)}</h3>" + "".join(_claim(one, rule) for one in own)
    return Section("claims", "What the paper claims", markup + downloads("claims"), tables={"claims": frame_of(claims)})


_HEADINGS = {"holds": "Holds here", "does not hold": "Does not hold here", "cannot tell": "Cannot be told here"}


def _claim(one: Finding, rule: ClaimRule) -> str:
    drawn = one.sure is not None and one.against is not None
    sure = f"; so in {percent(one.sure)} of the {rule.drawn}, the opposite in {percent(one.against)}" if drawn else ""
    told = f"{text(one.claim)} <small>({text(_place(one.where))}{sure})</small>"
    return f"<details><summary>{told}</summary><p>{text(one.evidence)}</p></details>"


def _place(where: str) -> str:
    """Return where a paper says something: a section by its number, or what is named."""
    return f"section {where}" if where[:1].isdigit() else where


def _tables_section(exhibits: Sequence[Exhibit]) -> Section:
    own = [one for one in exhibits if one.table is not None]
    markup = "".join(
        _html(one.table, one.caption) + paragraphs(one.table.notes) for one in own if one.table is not None
    )
    tables = {one.name: _flat(one.frame) for one in own}
    return Section("tables", "Tables", markup + downloads(*tables), tables=tables)


def _figures_section(exhibits: Sequence[Exhibit], drawn: Mapping[str, Any]) -> Section:
    own = [one for one in exhibits if one.name in drawn]
    markup = "".join(figure(one.name, themed(drawn[one.name]), one.caption) for one in own)
    tables = {one.name: _flat(one.frame) for one in own}
    return Section("figures", "Figures", markup + downloads(*tables), tables=tables)


def _html(made: Table, caption: str) -> str:
    rows = [[_value(one) for one in row] for row in made.rows]
    numeric = [all(isinstance(one.key, float) or one.html == "–" for one in column) for column in zip(*rows)]
    return table(caption, [Column(name, numeric=numbers) for name, numbers in zip(made.header, numeric)], rows)


def _value(cell: str | Cell) -> Value:
    one = cell if isinstance(cell, Cell) else Cell(cell)
    try:
        key: float | str = float(one.text.rstrip("%").replace(",", "").partition(" ")[0])
    except ValueError:
        key = one.text
    return Value(text(one.text), key, "best" if one.best else "")


def _put(path: Path, made: str) -> None:
    write_text(path, made if made.endswith("\n") else made + "\n")
