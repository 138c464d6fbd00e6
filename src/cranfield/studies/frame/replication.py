"""`Replication`: the result of repeating a study, on one or several sets of ratings, once or several times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import SettingError, nearest
from cranfield._numbers import number_text
from cranfield._record import Step
from cranfield._table import Cell, Table
from cranfield._terminal import shown
from cranfield.assessments import Assessment
from cranfield.facts import Fact
from cranfield.facts import study as study_facts
from cranfield.metrics import kendall_tau_b
from cranfield.studies.frame.exhibits import HERE, CellRow, Exhibit, exhibit, marked

DATA, REPETITION = "data", "repetition"


@dataclass(frozen=True, eq=False)
class Replication:
    """The result of `replicate`.

    Parameters
    ----------
    study
        The name of the study.
    reference
        The paper.
    exhibits
        Its tables and figures, reproduced from this run.
    claims
        Its claims, each with the verdict of this run.
    assessment
        The assessment of the metrics; None if the study is not about metrics.
    folder
        The folder with all files.
    step
        The settings of the run.
    rule
        When a claim holds.
    """

    study: str
    reference: str
    exhibits: tuple[Exhibit, ...]
    claims: tuple[study_facts.Finding, ...]
    assessment: Assessment | None
    folder: Path
    step: Step
    rule: study_facts.ClaimRule

    def frame(self) -> pl.DataFrame:
        """Return the claims: ``claim, where, verdict, evidence, margin, sure, against``."""
        columns: dict[str, Any] = dict.fromkeys(("claim", "where", "verdict", "evidence"), pl.String)
        columns |= dict.fromkeys(("margin", "sure", "against"), pl.Float64)
        rows = [{**vars(claim), "evidence": str(claim.evidence)} for claim in self.claims]
        return pl.DataFrame(rows, schema=columns)

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
        return Table(["Claim", "Section", "Here", "So", "Opposite"], rows, caption, [self.rule.note])

    def facts(self) -> list[Fact]:
        """Return how many claims hold, and the verdict on each."""
        verdicts = tuple(claim.verdict for claim in self.claims)
        return [study_facts.ClaimCounts(self.study, shown(self.step.settings["data"]), verdicts), *self.claims]

    def sentence(self) -> str:
        """Return the result in one sentence."""
        return str(self.facts()[0])

    def __str__(self) -> str:
        return f"{self.sentence()}\n\n{self.table().text()}"

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
    """Return the joint result of runs of a study, each of which has its own folder.

    Their tables become one table with columns that name the ratings and the repetition, their figures are shown side by
    side, and each claim is checked on all repetitions on the same ratings. The ``settings`` are those of the whole.
    """
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
        judged = [_over_repetitions(same) for same in _same_claims(own)] if repeated else own[0].replication.claims
        claims += [claim.on(data if len(by_data) > 1 else "") for claim in judged]
    fingerprints = {
        f"fingerprint of {data}": own[0].replication.step.effect.get("fingerprint") for data, own in by_data.items()
    }
    notes = tuple(dict.fromkeys(note for part in parts for note in part.replication.step.notes))
    step = Step("replicate", {**first.step.settings, **settings, "data": ", ".join(by_data)}, fingerprints, notes)
    rule = study_facts.OF_REPETITIONS if repeated else first.rule
    return Replication(first.study, first.reference, tuple(exhibits), tuple(claims), None, folder, step, rule)


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
    texts = [[_texts(row) for row in table.rows] for _, table in tables]
    shared = set(texts[0]).intersection(*texts[1:]) if len(texts) > 1 else set()
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
    figures = [(part, own) for part in parts.values() for own in part.replication.exhibits if own.draw is not None]
    if len(parts) == 1:
        return [own for _, own in figures]
    return [
        replace(part.exhibits[name], name=f"{name}-panel-{place}", caption=f"{part.exhibits[name].caption} ({data})")
        for name in dict.fromkeys(own.name for _, own in figures)
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
        frame = pl.DataFrame(
            [(data, m, row[m]) for data, row in means.items() for m in metrics],
            ["dataset", "metric", "dp"],
            orient="row",
        )
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


def _over_repetitions(claims: Sequence[study_facts.Finding]) -> study_facts.Finding:
    verdicts = [claim.verdict for claim in claims]
    so, opposite = (verdicts.count(verdict) / len(verdicts) for verdict in ("holds", "does not hold"))
    return replace(
        claims[0],
        verdict="holds"
        if so >= study_facts.SURE
        else "does not hold"
        if opposite >= study_facts.SURE
        else "cannot tell",
        evidence=study_facts.OverRepetitions(verdicts.count("holds"), len(claims), str(claims[0].evidence)),
        margin=float(np.mean([claim.margin for claim in claims])),
        sure=so,
        against=opposite,
        drawn="repetitions",
    )
