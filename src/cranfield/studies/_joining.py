"""A study on several sets of ratings, or repeated with other random choices: joins the results of its parts.

Every part is a separate study in its own folder. Their tables become one table with a column that names the
part, their figures are shown side by side, and each claim is checked on all repetitions on the same ratings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import kendalltau

from cranfield._numbers import number_text
from cranfield._record import Step
from cranfield._table import Cell, Table
from cranfield.studies._claims import SURE, ClaimRule, ClaimVerdict, Finding
from cranfield.studies._study import Exhibit
from cranfield.studies.replication import Replication

DATA, REPETITION = "data", "repetition"
OF_REPETITIONS = ClaimRule(
    f"Each repetition is a study with other random choices. A claim holds if it holds in at least {SURE:.0%} of the "
    "repetitions, and does not hold if it does not hold in as many; otherwise it cannot be decided.",
    "repetitions",
)


@dataclass(frozen=True)
class StudyPart:
    """One run of a study: its ratings, its repetition and its result.

    Parameters
    ----------
    data
        The name of the ratings.
    repetition
        Its number, from 1.
    replication
        The result.
    """

    data: str
    repetition: int
    replication: Replication


def joined(parts: Sequence[StudyPart], folder: Path, settings: Mapping[str, object]) -> Replication:
    """Return the joint result of the parts; ``settings`` are those of the whole."""
    first = parts[0].replication
    by_data: dict[str, list[StudyPart]] = {}
    for part in parts:
        by_data.setdefault(part.data, []).append(part)
    repeated = len(parts) > len(by_data)
    exhibits = [
        *(_joined_table(name, parts, by_data, repeated) for name in _names(parts, drawn=False)),
        *_power_tables(by_data, repeated),
        *_panels(by_data),
    ]
    claims = [claim for own in by_data.values() for claim in _joined_claims(own, len(by_data) > 1, repeated)]
    fingerprints = {
        f"fingerprint of {data}": own[0].replication.step.effect.get("fingerprint") for data, own in by_data.items()
    }
    notes = tuple(dict.fromkeys(note for part in parts for note in part.replication.step.notes))
    data = ", ".join(by_data)
    own_settings = {**first.step.settings, **settings, "data": data}
    step = Step("replicate", own_settings, fingerprints, notes)
    rule = OF_REPETITIONS if repeated else first.rule
    return Replication(first.study, first.reference, tuple(exhibits), tuple(claims), None, folder, step, rule)


def _names(parts: Sequence[StudyPart], *, drawn: bool) -> list[str]:
    """Return the names of the tables or figures of all parts, in order."""
    return list(
        dict.fromkeys(
            exhibit.name
            for part in parts
            for exhibit in part.replication.exhibits
            if (exhibit.draw is not None) == drawn
        )
    )


def _of(part: StudyPart, name: str) -> Exhibit | None:
    return next((exhibit for exhibit in part.replication.exhibits if exhibit.name == name), None)


def _joined_table(
    name: str, parts: Sequence[StudyPart], by_data: Mapping[str, Sequence[StudyPart]], repeated: bool
) -> Exhibit:
    """Return one table of all parts; rows that every part has, such as printed ones, appear once."""
    owned = [(part, exhibit) for part in parts if (exhibit := _of(part, name)) is not None]
    first = owned[0][1]
    keys = [key for key, used in ((DATA, len(by_data) > 1), (REPETITION, repeated)) if used]
    frame = pl.concat([_labelled(exhibit.frame, part, keys) for part, exhibit in owned], how="diagonal_relaxed")
    tables = [(part, exhibit.table) for part, exhibit in owned if exhibit.table is not None]
    if not tables or any(list(table.header) != list(tables[0][1].header) for _, table in tables):
        return replace(first, frame=frame, table=None)
    header = [*(key.capitalize() for key in keys), *tables[0][1].header]
    shared = _shared_rows([table for _, table in tables])
    rows: list[list[str | Cell]] = [[*("–" for _ in keys), *row] for row in shared]
    for part, table in tables:
        labels = [str(getattr(part, key)) for key in keys]
        rows += [[*labels, *row] for row in table.rows if _texts(row) not in {_texts(own) for own in shared}]
    notes = list(dict.fromkeys(note for _, table in tables for note in table.notes))
    return replace(first, frame=frame, table=Table(header, rows, first.caption, notes))


def _labelled(frame: pl.DataFrame, part: StudyPart, keys: Sequence[str]) -> pl.DataFrame:
    labels = [pl.lit(getattr(part, key)).alias(key) for key in keys if key not in frame.columns]
    return frame.select(*labels, *frame.columns)


def _texts(row: Sequence[str | Cell]) -> tuple[str, ...]:
    return tuple(cell.text if isinstance(cell, Cell) else cell for cell in row)


def _shared_rows(tables: Sequence[Table]) -> list[Sequence[str | Cell]]:
    """Return the rows that all of several tables share; none for a single table."""
    if len(tables) < 2:
        return []
    others = [{_texts(row) for row in table.rows} for table in tables[1:]]
    return [row for row in tables[0].rows if all(_texts(row) in other for other in others)]


def _panels(by_data: Mapping[str, Sequence[StudyPart]]) -> list[Exhibit]:
    """Return each figure with a panel per set of ratings, drawn from its first repetition."""
    firsts = {data: own[0] for data, own in by_data.items()}
    if len(firsts) == 1:
        return [
            exhibit for part in firsts.values() for exhibit in part.replication.exhibits if exhibit.draw is not None
        ]
    return [
        replace(exhibit, name=f"{name}-panel-{place}", caption=f"{exhibit.caption} ({data})")
        for name in _names(list(firsts.values()), drawn=True)
        for place, (data, part) in enumerate(firsts.items(), start=1)
        if (exhibit := _of(part, name)) is not None
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
        totals = {**means, "Total": {metric: sum(row[metric] for row in means.values()) for metric in metrics}}
        tables.append(_power_table("power-total", caption, totals, metrics))
    if repeated:
        tables += [_spread(powers, metrics)]
    return tables


def _power(part: StudyPart) -> dict[str, float]:
    """Return the DP of each metric in this run from the study's table; empty if there is no such table."""
    table = _of(part, "table-3")
    if part.replication.assessment is None or table is None:
        return {}
    own = table.frame.filter(pl.col("dataset").str.starts_with("this run"))
    return dict(own.select("metric", "dp").iter_rows())


def _power_table(name: str, caption: str, rows: Mapping[str, Mapping[str, float]], metrics: Sequence[str]) -> Exhibit:
    frame = pl.DataFrame([{"dataset": data, "metric": m, "dp": row[m]} for data, row in rows.items() for m in metrics])
    cells: list[list[str | Cell]] = [
        [data, *(Cell(number_text(row[m], 3), best=row[m] == min(row.values())) for m in metrics)]
        for data, row in rows.items()
    ]
    return Exhibit(name, caption, frame, Table(["Dataset", *metrics], cells, caption))


def _spread(powers: Mapping[str, Sequence[Mapping[str, float]]], metrics: Sequence[str]) -> Exhibit:
    """Return how much DP varies between repetitions, and whether it always orders the metrics in the same way."""
    rows, cells = [], []
    for data, own in powers.items():
        values = np.array([[power[metric] for metric in metrics] for power in own])
        taus = [float(kendalltau(before, after).statistic) for before, after in pairwise(values)]
        for place, metric in enumerate(metrics):
            numbers = values[:, place]
            row = (data, metric, numbers.mean(), numbers.min(), numbers.max(), np.mean(taus))
            rows.append(row)
            cells.append([data, metric, *(number_text(float(value), 3) for value in row[2:])])
    caption = "Discriminative power over the repetitions: other folds of the same ratings"
    note = "tau: Kendall's tau between the orders of the metrics by DP, from one repetition to the next, averaged"
    names = ["dataset", "metric", "mean", "lowest", "highest", "tau"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return Exhibit("power-repetitions", caption, frame, Table([n.capitalize() for n in names], cells, caption, [note]))


def _joined_claims(parts: Sequence[StudyPart], several: bool, repeated: bool) -> list[Finding]:
    """Return the claims on one set of ratings, over its repetitions."""
    name: Callable[[Finding], Finding] = (lambda claim: claim.on(parts[0].data)) if several else (lambda claim: claim)
    first, *others = (part.replication.claims for part in parts)
    if not repeated:
        return [name(claim) for claim in first]
    rest = [{(claim.claim, claim.where): claim for claim in claims} for claims in others]
    repetitions = [
        [claim, *(own for claims in rest if (own := claims.get((claim.claim, claim.where))) is not None)]
        for claim in first
    ]
    return [name(_over_repetitions(claims)) for claims in repetitions]


def _over_repetitions(claims: Sequence[Finding]) -> Finding:
    verdicts = [claim.verdict for claim in claims]
    so, opposite = (verdicts.count(verdict) / len(verdicts) for verdict in ("holds", "does not hold"))
    verdict: ClaimVerdict = "holds" if so >= SURE else "does not hold" if opposite >= SURE else "cannot tell"
    evidence = f"holds in {verdicts.count('holds')} of {len(claims)} repetitions; first: {claims[0].evidence}"
    margin = float(np.mean([claim.margin for claim in claims]))
    return replace(claims[0], verdict=verdict, evidence=evidence, margin=margin, sure=so, against=opposite)
