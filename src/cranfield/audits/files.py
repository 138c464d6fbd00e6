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
from cranfield.audits.contributions import Leads
from cranfield.audits.grid import Grid, VariedDecision
from cranfield.audits.pair import Effort, PairAudit
from cranfield.audits.truth import TruthFindings
from cranfield.facts import Fact, sentences
from cranfield.facts import audit as audit_facts

if TYPE_CHECKING:
    from cranfield.audits.result import Audit

FORMAT = 2  # version of the layout of ``audit.json``; files with any other number are refused


def save_audit(audit: Audit, folder: Path) -> list[Path]:
    """Write an audit as `Audit.save` says; ``audit.json`` comes last: if it exists, the others are complete."""
    universes, answers = folder / "universes.parquet", folder / "audit.json"
    further = {"significance": audit.significance(), "truth": audit.truth(), "advice": audit.advice()}
    tables = {"influence": audit.influence(), "flips": audit.flips()}
    tables |= {name: table for name, table in further.items() if table.height}
    with whole_file(universes) as temporary:
        write_parquet(audit.frame(), temporary)
    for name, table in tables.items():
        write_text(folder / f"{name}.csv", csv_of(table))
    write_text(answers, json.dumps(_as_json(audit), indent=1, ensure_ascii=False) + "\n")
    return [universes, *(folder / f"{name}.csv" for name in tables), answers]


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
        reason = f"the audit cannot be read ({error.strerror})"
        raise InputError(reason, source=path, remedy="name a folder with a saved audit") from error
    except ValueError as error:
        raise InputError("this is not JSON", source=path, remedy="the file was changed: run the audit again") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(
            f"this is not an audit of format {FORMAT}", source=path, remedy="run the audit again with this version"
        )
    return content


def _as_json(audit: Audit) -> dict[str, Any]:
    grid, fields = audit.grid, ("name", "kind", "options", "weights")
    return {
        "format": FORMAT,
        "verdict": audit.verdict,
        "notes": sentences(audit.notes),
        "note_facts": [note.as_dict() for note in audit.notes],
        "systems": list(audit.systems),
        "effort": asdict(audit.effort),
        "grid": {
            "opened": [{name: getattr(decision, name) for name in fields} for decision in grid.varied],
            "cells": grid.n_cells,
            "universes": grid.n_universes,
            "start": grid.start,
            "starting_point": grid.words(grid.start),
            "complete": grid.complete,
            "product": grid.is_product,
            "invalid": [[list(options), reason] for options, reason in grid.invalid],
            "labels": dict(grid.labels),
        },
        "lower_is_better": audit.lower_is_better.tolist(),
        "pairs": [_pair_as_json(pair) for pair in audit.pairs],
        "ranks": list(audit.rank_rows),
        "noise": [asdict(noise) for noise in audit.noise],
        "tests": list(audit.tests),
        "truth": None if audit.known is None else asdict(audit.known),
        "advice": list(audit.advised),
        "baseline": audit.baseline,
    }


def _pair_as_json(pair: PairAudit) -> dict[str, Any]:
    return {
        "systems": list(pair.systems),
        "answers": [
            asdict(answer)
            | {"shares": [_without_nan(asdict(share)) for share in answer.shares], "effects": [*answer.effects.items()]}
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
    from cranfield.audits.result import Audit, column_of

    systems, stated, truth = tuple(content["systems"]), content["grid"], content["truth"]
    varied = [
        VariedDecision(own["name"], own["kind"], tuple(own["options"]), own["weights"] and tuple(own["weights"]))
        for own in stated["opened"]
    ]
    parts = table.partition_by("system_a", "system_b", maintain_order=True)
    first = parts[0]
    cells = [[decision.options.index(option) for option in first[column_of(decision)]] for decision in varied]
    invalid = tuple((tuple(options), reason) for options, reason in stated["invalid"])
    universe = first["universe"].to_numpy()
    grid = Grid(
        tuple(varied), np.array(cells).T, universe, stated["start"], stated["complete"], invalid, stated["labels"]
    )
    averages = np.zeros((len(systems), grid.n_universes))
    pairs = []
    for part, pair in zip(parts, content["pairs"], strict=True):
        rows = part[grid.cell_of]
        for column, system in zip(("average_a", "average_b"), pair["systems"]):
            averages[systems.index(system)] = rows[column].to_numpy()
        pairs.append(_pair_from_json(grid, pair, rows))
    return Audit(
        grid,
        systems,
        averages,
        np.array(content["lower_is_better"], dtype=bool),
        first["users"].to_numpy()[grid.cell_of],
        tuple(pairs),
        tuple(content["ranks"]),
        tuple(audit_facts.SeedNoise(**noise) for noise in content["noise"]),
        Effort(**content["effort"]),
        tuple(map(Fact.read, content["note_facts"])),
        tuple(content["tests"]),
        truth and TruthFindings(truth["source"], tuple(truth["options"]), tuple(truth["pairs"])),
        tuple(content["advice"]),
        content.get("baseline"),
    )


def _pair_from_json(grid: Grid, content: dict[str, Any], rows: pl.DataFrame) -> PairAudit:
    systems = (content["systems"][0], content["systems"][1])
    lead = rows["leader"].replace_strict({systems[0]: 1, systems[1]: -1}, default=0, return_dtype=pl.Int8).to_numpy()
    numbers = {name: rows[name].to_numpy() for name in ("difference", "relative", "z", "d_z", "p")}
    leads = Leads(**numbers, lead=lead.astype(np.int8), significant=rows["significant"].to_numpy())
    answers = []
    for answer in content["answers"]:
        shares = tuple(_share_from_json(share) for share in answer["shares"])
        joint = answer["joint"] and audit_facts.JointTest(**answer["joint"])
        own = {**answer, "shares": shares, "effects": dict(answer["effects"]), "joint": joint}
        answers.append(audit_facts.QuestionAnswer(**own))
    return PairAudit.of(grid, systems, leads, answers, content["influence"])


def _share_from_json(share: dict[str, Any]) -> audit_facts.LeadShare:
    ends = {name: np.nan if share[name] is None else share[name] for name in ("lower", "upper")}
    return audit_facts.LeadShare(**share | ends)
