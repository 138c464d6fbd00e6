"""`Replication`: the result of repeating a study, on one or several sets of ratings, once or more often; its files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield import reports
from cranfield._errors import SettingError, nearest
from cranfield._files import write_text
from cranfield._numbers import number_text
from cranfield._record import Step
from cranfield._table import Cell, Table, csv_of, markdown_text
from cranfield._terminal import shown
from cranfield.assessments import Assessment
from cranfield.facts import Fact
from cranfield.facts import study as study_facts
from cranfield.metrics import kendall_tau_b
from cranfield.studies.frame.claims import over_repetitions
from cranfield.studies.frame.exhibits import HERE, CellRow, Exhibit, exhibit, marked

DATA, REPETITION = "data", "repetition"
_DRAWN = ("svg", "pdf", "png")
_COLUMNS = ("Claim", "Section", "Says", "Here", "Margin and interval")
_HEADINGS = {
    "holds": "Holds here", "holds in part": "Holds in part", "does not hold": "Does not hold here",
    "cannot tell": "Cannot be decided here",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Replication:
    """The result of `replicate`."""

    study: str  # the name of the study
    reference: str
    exhibits: tuple[Exhibit, ...]  # its tables and figures, reproduced from this run
    claims: tuple[study_facts.Finding, ...]  # its claims, each with the verdict of this run
    assessment: Assessment | None  # the assessment of the metrics; None if the study is not about metrics
    folder: Path  # the folder with all files
    step: Step  # the settings of the run

    def frame(self) -> pl.DataFrame:
        """Return the claims, with the part of each that decides.

        The columns are ``claim, where, source, group, verdict``; ``margin, lower, upper`` of the weakest part; ``parts,
        held``, how many there are and hold; ``splits, users, systems``; and ``evidence``.
        """
        columns: dict[str, Any] = dict.fromkeys(("claim", "where", "source", "group", "verdict"), pl.String)
        columns |= dict.fromkeys(("margin", "lower", "upper"), pl.Float64)
        columns |= dict.fromkeys(("parts", "held", "splits", "users", "systems"), pl.Int64)
        rows = [
            {
                **vars(claim),
                **{name: getattr(claim.deciding, name) for name in ("margin", "lower", "upper")},
                "parts": len(claim.parts),
                "held": sum(part.verdict == "holds" for part in claim.parts),
            }
            for claim in self.claims
        ]
        return pl.DataFrame(rows, schema={**columns, "evidence": pl.String})

    def exhibit(self, name: str) -> Exhibit:
        """Return a table or a figure by its name, such as ``table-3`` or ``figure-06``."""
        by_name = {own.name: own for own in self.exhibits}
        if name not in by_name:
            raise SettingError(f"{self.study} has no table or figure {name!r}{nearest(name, by_name)}")
        return by_name[name]

    def table(self) -> Table:
        """Return the claims as a readable table."""
        rows = [claim.cells for claim in self.claims]
        caption = f"Claims of {self.reference} on {self.step.settings['data']}"
        return Table(_COLUMNS, rows, caption, [str(study_facts.RULE)])

    def facts(self) -> list[Fact]:
        """Return how many claims hold, and the verdict on each."""
        counts = study_facts.ClaimCounts.of(self.study, shown(self.step.settings["data"]), self.claims)
        return [counts, *self.claims]

    def sentence(self) -> str:
        """Return the result in one sentence."""
        return str(self.facts()[0])

    def __str__(self) -> str:
        lines = [self.sentence()]
        for verdict, heading in _HEADINGS.items():
            own = [f"· {claim}" for claim in self.claims if claim.verdict == verdict]
            lines += ["", f"{heading}:", *own] if own else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Replication({self.study}: {len(self.exhibits)} exhibits, {len(self.claims)} claims)"

    def _repr_html_(self) -> str:
        return self.table().html()


@dataclass(frozen=True)
class StudyPart:
    """One run of a study: the name of its ratings, the number of its repetition, and its result."""

    data: str
    repetition: int
    replication: Replication

    @property
    def exhibits(self) -> dict[str, Exhibit]:
        """Its tables and figures, by name."""
        return {own.name: own for own in self.replication.exhibits}


def joined(parts: Sequence[StudyPart], folder: Path, settings: Mapping[str, object]) -> Replication:
    """Return the joint result of runs of a study: joined tables, figures side by side, claims over repetitions."""
    first = parts[0].replication
    by_data: dict[str, list[StudyPart]] = {}
    for part in parts:
        by_data.setdefault(part.data, []).append(part)
    repeated = len(parts) > len(by_data)
    keys = [key for key, used in ((DATA, len(by_data) > 1), (REPETITION, repeated)) if used]
    tables = dict.fromkeys(name for part in parts for name, own in part.exhibits.items() if own.draw is None)
    exhibits = [
        *(_joined_table([part for part in parts if name in part.exhibits], name, keys) for name in tables),
        *_power_tables(by_data, repeated),
        *_panels({data: own[0] for data, own in by_data.items()}),
    ]
    claims = []
    for data, own in by_data.items():
        judged = [over_repetitions(same) for same in _same_claims(own)] if repeated else own[0].replication.claims
        claims += [claim.on(data if len(by_data) > 1 else "") for claim in judged]
    fingerprints = {
        f"fingerprint of {data}": own[0].replication.step.effect.get("fingerprint") for data, own in by_data.items()
    }
    notes = tuple(dict.fromkeys(note for part in parts for note in part.replication.step.notes))
    step = Step("replicate", {**first.step.settings, **settings, "data": ", ".join(by_data)}, fingerprints, notes)
    return Replication(first.study, first.reference, tuple(exhibits), tuple(claims), None, folder, step)


def _joined_table(parts: Sequence[StudyPart], name: str, keys: Sequence[str]) -> Exhibit:
    """Return one table of all parts; rows that every part has, such as printed ones, appear once."""
    owned = [(part, part.exhibits[name]) for part in parts]
    first = owned[0][1]
    frames = [
        own.frame.select(
            *(pl.lit(getattr(part, key)).alias(key) for key in keys if key not in own.frame.columns), *own.frame.columns
        )
        for part, own in owned
    ]
    frame = pl.concat(frames, how="diagonal_relaxed")
    tables = [(part, own.table) for part, own in owned if own.table is not None]
    if not tables or any(list(table.header) != list(tables[0][1].header) for _, table in tables):
        return replace(first, frame=frame, table=None)
    texts = [{_texts(row) for row in table.rows} for _, table in tables]
    shared = set.intersection(*texts) if len(texts) > 1 else set()
    rows: list[CellRow] = [[*("–" for _ in keys), *row] for row in tables[0][1].rows if _texts(row) in shared]
    for part, table in tables:
        names = [str(getattr(part, key)) for key in keys]
        rows += [[*names, *row] for row in table.rows if _texts(row) not in shared]
    header = [*(key.capitalize() for key in keys), *tables[0][1].header]
    notes = list(dict.fromkeys(note for _, table in tables for note in table.notes))
    return replace(first, frame=frame, table=Table(header, rows, first.caption, notes))


def _texts(row: CellRow) -> tuple[str, ...]:
    return tuple(cell.text if isinstance(cell, Cell) else cell for cell in row)


def _panels(parts: Mapping[str, StudyPart]) -> list[Exhibit]:
    """Return each figure with a panel per set of ratings."""
    figures = [own for part in parts.values() for own in part.replication.exhibits if own.draw is not None]
    if len(parts) == 1:
        return figures
    return [
        replace(part.exhibits[name], name=f"{name}-panel-{place}", caption=f"{part.exhibits[name].caption} ({data})")
        for name in dict.fromkeys(own.name for own in figures)
        for place, (data, part) in enumerate(parts.items(), start=1)
        if name in part.exhibits
    ]


def _power_tables(by_data: Mapping[str, Sequence[StudyPart]], repeated: bool) -> list[Exhibit]:
    """Return the discriminative power over repetitions and summed over data, if the study has it."""
    powers = {data: [_power(part) for part in own] for data, own in by_data.items()}
    if not all(power for own in powers.values() for power in own):
        return []
    metrics = list(next(iter(powers.values()))[0])
    means = {data: {m: float(np.mean([power[m] for power in own])) for m in metrics} for data, own in powers.items()}
    tables = []
    if len(means) > 1:
        caption = "Discriminative power (DP, lower is better) of this run by dataset, and added up"
        means["Total"] = {metric: sum(row[metric] for row in means.values()) for metric in metrics}
        rows = [(data, m, row[m]) for data, row in means.items() for m in metrics]
        frame = pl.DataFrame(rows, ["dataset", "metric", "dp"], orient="row")
        cells: list[CellRow] = [
            [data, *marked(row, lambda value: number_text(value, 3), min)] for data, row in means.items()
        ]
        tables.append(exhibit("power-total", caption, ["Dataset", *metrics], cells, frame=frame))
    return [*tables, _spread(powers, metrics)] if repeated else tables


def _power(part: StudyPart) -> dict[str, float]:
    """Return the DP of each metric in this run from the study's table; empty if there is no such table."""
    if part.replication.assessment is None or "table-3" not in part.exhibits:
        return {}
    own = part.exhibits["table-3"].frame.filter(pl.col("dataset").str.starts_with(HERE))
    return dict(own.select("metric", "dp").iter_rows())


def _spread(powers: Mapping[str, Sequence[Mapping[str, float]]], metrics: Sequence[str]) -> Exhibit:
    """Return how much DP varies between repetitions, and whether it always orders the metrics in the same way."""
    rows = []
    for data, own in powers.items():
        values = np.array([[power[metric] for metric in metrics] for power in own])
        tau = np.mean([kendall_tau_b(before, after) for before, after in pairwise(values)])
        rows += [(data, m, v.mean(), v.min(), v.max(), tau) for m, v in zip(metrics, values.T, strict=True)]
    caption = "Discriminative power over the repetitions: other folds of the same ratings"
    note = "tau: Kendall's tau between the orders of the metrics by DP, from one repetition to the next, averaged"
    frame = pl.DataFrame(rows, schema=["dataset", "metric", "mean", "lowest", "highest", "tau"], orient="row")
    cells: list[CellRow] = [[*row[:2], *(number_text(float(value), 3) for value in row[2:])] for row in rows]
    return exhibit("power-repetitions", caption, [n.capitalize() for n in frame.columns], cells, [note], frame)


def _same_claims(parts: Sequence[StudyPart]) -> list[list[study_facts.Finding]]:
    """Return each claim on one set of ratings in all repetitions that make it."""
    others = [{(own.claim, own.where): own for own in part.replication.claims} for part in parts[1:]]
    first = [((claim.claim, claim.where), claim) for claim in parts[0].replication.claims]
    return [[claim, *(own[key] for own in others if key in own)] for key, claim in first]


def write(replication: Replication, steps: Mapping[str, Step], figures: bool) -> None:
    """Write all readable files; ``steps`` are those taken before the study."""
    drawn = {own.name: own.draw() for own in replication.exhibits if figures and own.draw is not None}
    for own in replication.exhibits:
        _write_exhibit(replication.folder, own, drawn.get(own.name))
    parts = [{"margins_by_part": {part.name: part.margins for part in claim.parts}} for claim in replication.claims]
    plain = [{**row, **own} for row, own in zip(replication.frame().fill_nan(None).to_dicts(), parts)]
    claims = {"rule": str(study_facts.RULE), "claims": plain}
    _put(replication.folder / "claims.json", json.dumps(claims, indent=1, ensure_ascii=False))
    _put(replication.folder / "claims.md", _claims_table(replication).markdown())
    _put(replication.folder / "report.md", _markdown(replication, figures))
    tables = [own for own in replication.exhibits if own.table is not None]
    sections = [_claims_section(replication), _section("Tables", tables, _shown_table)]
    if figures:
        named = [own for own in replication.exhibits if own.name in drawn]
        sections.append(_section("Figures", named, partial(_figure, drawn)))
    sections.append(reports.card([*steps.items(), ("study", replication.step)], {"paper": replication.reference}))
    lead = f"{replication.sentence()} {replication.reference}"
    write_text(replication.folder / "report.html", reports.page(_title(replication), sections, lead=lead))


def _title(replication: Replication) -> str:
    return f"{replication.study} on {replication.step.settings['data']}"


def _write_exhibit(folder: Path, own: Exhibit, chart: Any) -> None:
    path = folder / own.home / own.name
    _put(path.with_suffix(".csv"), csv_of(_flat(own.frame)))
    if own.table is not None:
        _put(path.with_suffix(".md"), own.table.markdown())
        _put(path.with_suffix(".tex"), own.table.latex())
    if chart is not None:
        reports.save(chart, *(path.with_suffix(f".{ending}") for ending in _DRAWN))


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame without the columns that CSV cannot hold."""
    return frame.select(name for name, kind in frame.schema.items() if not kind.is_nested())


def _claims_table(replication: Replication) -> Table:
    rows = [[*claim.cells, claim.evidence] for claim in replication.claims]
    return Table([*_COLUMNS, "Evidence"], rows, notes=[str(study_facts.RULE)])


def _markdown(replication: Replication, figures: bool) -> str:
    parts = [f"# {markdown_text(_title(replication))}", replication.reference, markdown_text(replication.sentence())]
    parts += ["## Claims", _claims_table(replication).markdown(), "## Tables"]
    parts += [own.table.markdown() for own in replication.exhibits if own.table is not None]
    drawn = [own for own in replication.exhibits if figures and own.draw is not None]
    parts += ["## Figures"] if drawn else []
    parts += [f"![{own.caption}](figures/{own.name}.svg)\n\n{own.caption}" for own in drawn]
    setup = {**replication.step.settings, **replication.step.effect}
    lines = [f"- {key}: {markdown_text(_said(value))}" for key, value in setup.items() if value is not None]
    return "\n\n".join([*parts, "## Set-up", "\n".join(lines)])


def _said(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _claims_section(replication: Replication) -> reports.Section:
    markup = reports.paragraphs([str(study_facts.RULE)])
    for verdict, heading in _HEADINGS.items():
        own = [claim for claim in replication.claims if claim.verdict == verdict]
        markup += f"<h3>{heading}: {len(own)}</h3>"
        for claim in own:
            summary = f"{reports.text(claim.claim)} <small>({reports.text(claim.support)})</small>"
            folded = f"<p>{reports.text(claim.evidence)}</p>{_parts(claim)}"
            markup += f"<details><summary>{summary}</summary>{folded}</details>"
    markup += reports.downloads("claims")
    return reports.Section("claims", "What the paper claims", markup, tables={"claims": replication.frame()})


def _parts(claim: study_facts.Finding) -> str:
    return reports.paragraphs([str(part) for part in claim.parts]) if len(claim.parts) > 1 else ""


def _section(name: str, exhibits: Sequence[Exhibit], markup: Callable[[Exhibit], str]) -> reports.Section:
    tables = {own.name: _flat(own.frame) for own in exhibits}
    parts = "".join(map(markup, exhibits)) + reports.downloads(*tables)
    return reports.Section(name.lower(), name, parts, tables=tables)


def _figure(drawn: Mapping[str, Any], own: Exhibit) -> str:
    return reports.figure(own.name, reports.themed(drawn[own.name]), own.caption)


def _shown_table(own: Exhibit) -> str:
    assert own.table is not None
    rows = [[_value(value) for value in row] for row in own.table.rows]
    numeric = [all(isinstance(value.key, float) or value.html == "–" for value in column) for column in zip(*rows)]
    columns = [reports.Column(name, numeric=numbers) for name, numbers in zip(own.table.header, numeric)]
    return reports.table(own.caption, columns, rows) + reports.paragraphs(own.table.notes)


def _value(cell: str | Cell) -> reports.Value:
    styled = cell if isinstance(cell, Cell) else Cell(cell)
    try:
        key: float | str = float(styled.text.rstrip("%").replace(",", "").partition(" ")[0])
    except ValueError:
        key = styled.text
    return reports.Value(reports.text(styled.text), key, "best" if styled.best else "")


def _put(path: Path, content: str) -> None:
    write_text(path, content if content.endswith("\n") else content + "\n")
