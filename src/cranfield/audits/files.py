"""Audits as files: written completely, and read back without the users' values."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from cranfield._errors import InputError
from cranfield._files import whole_file, write_text
from cranfield._polars import read_parquet, write_parquet
from cranfield._table import csv_of
from cranfield.audits.chance import SeedNoise
from cranfield.audits.grid import Grid, Opened
from cranfield.audits.joint import JointTest
from cranfield.audits.leads import Leads
from cranfield.audits.pair import Effort, PairAudit, QuestionAnswer, judged_pair
from cranfield.audits.shares import LeadShare
from cranfield.audits.truth import TruthFindings

if TYPE_CHECKING:
    from cranfield.audits.answers import Audit

FORMAT = 1
"""Version of the layout of ``audit.json``; files with any other number are refused."""


def save_audit(audit: Audit, folder: Path) -> list[Path]:
    """Write ``universes.parquet``, ``influence.csv``, ``flips.csv`` and ``audit.json``; return the files.

    Also writes ``significance.csv``, ``truth.csv`` and ``advice.csv`` if they have rows. ``audit.json`` is written
    last: if it exists, the others are complete.
    """
    names = ("universes.parquet", "influence.csv", "flips.csv", "audit.json")
    universes, influence, flips, answers = (folder / name for name in names)
    tables = {"significance": audit.significance(), "truth": audit.truth(), "advice": audit.advice()}
    further = [folder / f"{name}.csv" for name, table in tables.items() if table.height]
    with whole_file(universes) as temporary:
        write_parquet(audit.frame(), temporary)
    write_text(influence, csv_of(audit.influence()))
    write_text(flips, csv_of(audit.flips()))
    for path in further:
        write_text(path, csv_of(tables[path.stem]))
    write_text(answers, json.dumps(_as_json(audit), indent=1, ensure_ascii=False) + "\n")
    return [universes, influence, flips, *further, answers]


def read_audit(folder: str | Path) -> Audit:
    """Return the audit that `Audit.save` wrote to a folder."""
    folder = Path(folder)
    content = _content(folder / "audit.json")
    table = read_parquet(folder / "universes.parquet")
    try:
        return _from_json(content, table)
    except (KeyError, TypeError, ValueError, IndexError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"the audit cannot be read ({type(error).__name__}: {error})",
            source=folder,
            remedy="its files were changed or belong to different audits: run the audit again",
        ) from error


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"the audit cannot be read ({error.strerror})",
            source=path,
            remedy="name a folder with a saved audit",
        ) from error
    except ValueError as error:
        raise InputError("this is not JSON", source=path, remedy="the file was changed: run the audit again") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(
            f"this is not an audit of format {FORMAT}", source=path, remedy="run the audit again with this version"
        )
    return content


def _as_json(audit: Audit) -> dict[str, Any]:
    grid = audit.grid
    return {
        "format": FORMAT,
        "verdict": audit.verdict,
        "notes": list(audit.notes),
        "systems": list(audit.systems),
        "effort": asdict(audit.effort),
        "grid": {
            "opened": [asdict(opened) for opened in grid.opened],
            "cells": grid.n_cells,
            "universes": grid.n_universes,
            "start": grid.start,
            "starting_point": grid.words(grid.start),
            "complete": grid.complete,
            "product": grid.is_product,
            "invalid": [[list(options), reason] for options, reason in grid.invalid],
        },
        "lower_is_better": audit.lower_is_better.tolist(),
        "pairs": [_pair_as_json(pair) for pair in audit.pairs],
        "ranks": list(audit.rank_rows),
        "noise": [asdict(noise) for noise in audit.noise],
        "tests": list(audit.tests),
        "truth": None if audit.known is None else asdict(audit.known),
        "advice": list(audit.advised),
    }


def _pair_as_json(pair: PairAudit) -> dict[str, Any]:
    return {
        "systems": list(pair.systems),
        "answers": [
            {
                "question": None if answer.question is None else dict(answer.question),
                "universes": answer.universes,
                "shares": [_without_nan(asdict(share)) for share in answer.shares],
                "effects": [[level, value] for level, value in answer.effects.items()],
                "joint": None if answer.joint is None else asdict(answer.joint),
                "corrected_retrained": dict(answer.corrected_retrained),
                "corrected": dict(answer.corrected),
            }
            for answer in pair.answers
        ],
        "influence": [_without_nan(row) for row in pair.influence],
        "rule": {
            "accuracy": pair.rule.accuracy,
            "majority": pair.rule.majority,
            "conditions": pair.rule.n_conditions,
            "leads": {system: pair.rule.paths(lead) for system, lead in zip(pair.systems, (1, -1))},
        },
        "turned_by_chance": pair.turned_by_chance,
    }


def _without_nan(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with null for NaN, which JSON does not have."""
    return {key: None if isinstance(value, float) and np.isnan(value) else value for key, value in row.items()}


def _from_json(content: dict[str, Any], table: pl.DataFrame) -> Audit:
    from cranfield.audits.answers import OWN_COLUMNS, Audit

    systems = tuple(content["systems"])
    opened = tuple(
        Opened(own["name"], own["kind"], tuple(own["options"]), own["weights"] and tuple(own["weights"]))
        for own in content["grid"]["opened"]
    )
    parts = table.partition_by("system_a", "system_b", maintain_order=True)
    first = parts[0]
    cells = []
    for decision in opened:
        name = f"{decision.name} (decision)" if decision.name in OWN_COLUMNS else decision.name
        number = {option: place for place, option in enumerate(decision.options)}
        cells.append([number[option] for option in first[name].to_list()])
    grid = Grid(
        opened,
        np.array(cells, dtype=np.int32).T,
        first["universe"].to_numpy(),
        content["grid"]["start"],
        content["grid"]["complete"],
        tuple((tuple(options), reason) for options, reason in content["grid"]["invalid"]),
    )
    cell_of = np.unique(grid.universe, return_index=True)[1]
    averages = np.zeros((len(systems), grid.n_universes))
    pairs = []
    for part, pair in zip(parts, content["pairs"], strict=True):
        rows = part[cell_of]
        for column, system in zip(("average_a", "average_b"), pair["systems"]):
            averages[systems.index(system)] = rows[column].to_numpy()
        pairs.append(_pair_from_json(grid, pair, rows))
    return Audit(
        grid,
        systems,
        averages,
        np.array(content["lower_is_better"], dtype=bool),
        first["users"].to_numpy()[cell_of],
        tuple(pairs),
        tuple(content["ranks"]),
        tuple(SeedNoise(**noise) for noise in content["noise"]),
        Effort(**content["effort"]),
        tuple(content["notes"]),
        tuple(content.get("tests", ())),
        _truth_from_json(content.get("truth")),
        tuple(content.get("advice", ())),
    )


def _pair_from_json(grid: Grid, content: dict[str, Any], rows: pl.DataFrame) -> PairAudit:
    systems = (content["systems"][0], content["systems"][1])
    lead = rows["leader"].replace_strict({systems[0]: 1, systems[1]: -1}, default=0, return_dtype=pl.Int8).to_numpy()
    numbers = {name: rows[name].to_numpy() for name in ("difference", "relative", "z", "d_z", "p")}
    leads = Leads(**numbers, lead=lead.astype(np.int8), significant=rows["significant"].to_numpy())
    answers = [
        QuestionAnswer(
            answer["question"],
            answer["universes"],
            tuple(_share_from_json(share) for share in answer["shares"]),
            dict(answer["effects"]),
            None if answer["joint"] is None else JointTest(**answer["joint"]),
            answer["corrected"],
            answer["corrected_retrained"],
        )
        for answer in content["answers"]
    ]
    return judged_pair(grid, systems, leads, answers, content["influence"])


def _truth_from_json(content: dict[str, Any] | None) -> TruthFindings | None:
    if content is None:
        return None
    return TruthFindings(content["source"], tuple(content["options"]), tuple(content["pairs"]))


def _share_from_json(share: dict[str, Any]) -> LeadShare:
    ends = {name: np.nan if share[name] is None else share[name] for name in ("lower", "upper")}
    return LeadShare(**{**share, **ends})
