"""The card: everything a reader needs to repeat an experiment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from cranfield.experiments.checklist import checklist
from cranfield.experiments.markdown import COMPARED
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stages.assess import ASSESS
from cranfield.experiments.stages.data import DATA, decided
from cranfield.experiments.stages.models import MODELS
from cranfield.experiments.stages.results import RESULTS
from cranfield.experiments.stages.scores import SCORES
from cranfield.experiments.stages.searches import SEARCHES, parameters_of
from cranfield.experiments.stages.segments import SEGMENTS
from cranfield.experiments.stages.splits import SPLITS
from cranfield.experiments.system import System
from cranfield.measures import deepest


def card(line: Pipeline) -> dict[str, Any]:
    """Return the card of an experiment that has completed all stages, ready for JSON."""
    experiment, sources = line.experiment, line.units("source")
    decided_on = {unit.place: decided(line, unit) for unit in sources}
    alike = len(set(decided_on.values())) == 1
    decisions = next(iter(decided_on.values())) if alike else experiment.decisions
    contents: dict[str, Any] = {
        "title": experiment.title,
        "phrase": str(decisions),
        "decisions": decisions.as_dict(),
        "thresholds": {name: line_decisions.measuring.threshold for name, line_decisions in decided_on.items()},
        "seed": experiment.seed,
        "seeds": list(experiment.seeds),
        "repetitions": experiment.repetitions,
        "folds": line.folds,
        "notes": dict(experiment.notes),
        "data": {unit.place: _data(line, unit) for unit in sources},
        "splits": {unit.place: list(_splits(line, unit)) for unit in sources},
        "systems": {system.name: _system(line, system) for system in experiment.systems},
        "coverage": {unit.place: _coverage(line.read(RESULTS, unit).averages) for unit in sources},
        "measuring": {unit.place: _measuring(line, unit) for unit in sources},
        "results": {unit.place: _results(line, unit) for unit in sources},
        "versions": line.store.versions(),
    }
    return {**contents, "checklist": [item.as_dict() for item in checklist(contents)]}


def _data(line: Pipeline, unit: Unit) -> dict[str, Any]:
    source, facts = unit.source, line.artifact(DATA, unit).facts
    parts = facts["parts"]
    kind = "dataset" if source.dataset else "simulate" if source.simulate else "file"
    steps = [step for part in parts.values() for step in part["history"]]
    return {
        "kind": kind,
        "source": source.dataset or source.simulate or ", ".join(Path(file).name for file in source.files.values()),
        "fingerprints": {part: part_facts["fingerprint"] for part, part_facts in parts.items()},
        **facts["description"],
        "filters": [
            step for step in steps if "ratings" in step["effect"] and isinstance(step["effect"]["ratings"], list)
        ],
        "citation": next((step["settings"]["citation"] for step in steps if "citation" in step["settings"]), None),
        "notes": list(dict.fromkeys(note for step in steps for note in step["notes"])),
    }


def _splits(line: Pipeline, unit: Unit) -> Iterator[dict[str, Any]]:
    for part in line.units("part", unit):
        record = line.artifact(SPLITS, part).facts["splits"][part.fold]
        yield {
            "repetition": part.repetition + 1,
            "fold": part.fold + 1,
            "seed": line.seed(part),
            **record["split"]["effect"],
            "fingerprints": record["fingerprints"],
            "notes": record["split"]["notes"],
        }


def _system(line: Pipeline, system: System) -> dict[str, Any]:
    """Return a system with its parameters, with one value per part where a search or the data chose different ones."""
    if system.spelling is None:
        return {"spelling": f"file {Path(str(system.run)).name}", "parameters": None, "searches": []}
    cells = [cell for cell in line.units("cell") if cell.system is system]
    adapted = [line.artifact(MODELS, cell).facts.get("adapted", {}) for cell in cells]
    stated = [{**parameters_of(line, cell), **chosen} for cell, chosen in zip(cells, adapted)]
    values = {name: [record[name] for record in stated] for name in stated[0]}
    searched = {*adapted[0], *(() if system.tuning is None else system.tuning.space)}
    return {
        "spelling": system.spelling,
        "parameters": {
            name: tried[0] if name not in searched or tried.count(tried[0]) == len(tried) else tried
            for name, tried in values.items()
        },
        "searches": [
            {
                "data": cell.source.name,
                "repetition": cell.repetition + 1,
                "fold": cell.fold + 1,
                **line.artifact(SEARCHES, cell).facts,
            }
            for cell in cells
            if system.tuning is not None
        ],
    }


def _coverage(averages: pl.DataFrame) -> dict[str, Any]:
    """Return the coverage of each system, with Coverage@d and shares at the depth of the deepest metric."""
    metric, depth = deepest(averages["metric"].unique(maintain_order=True).to_list())
    whole = averages.filter(pl.col("fold").is_null() & (pl.col("metric") == metric))
    return {
        row["system"]: {
            "users": row["coverage"],
            "filled": row["filled"],
            "items": row["item_coverage"],
            "unjudged": row["unjudged"],
            **({"nonexistent": row["nonexistent"]} if "nonexistent" in row else {}),
            "depth": depth,
        }
        for row in whole.iter_rows(named=True)
    }


def _measuring(line: Pipeline, unit: Unit) -> dict[str, Any]:
    facts = [line.artifact(SCORES, part).facts for part in line.units("part", unit)]
    return {
        "removed_test_users": [fact["removed_test_users"] for fact in facts],
        "notes": list(line.read(RESULTS, unit).scores.notes),
    }


def _results(line: Pipeline, unit: Unit) -> dict[str, Any]:
    findings, assessed = line.read(RESULTS, unit), line.made(ASSESS, unit)
    comparisons = findings.comparisons
    by_group = line.made(SEGMENTS, unit)
    rows: list[dict[str, Any]] = []
    if comparisons.width:
        whole = comparisons.filter(pl.col("fold").is_null())
        rows = whole.select("metric", "system_a", "system_b", *COMPARED).to_dicts()
    return {
        "sentences": list(line.artifact(RESULTS, unit).facts["sentences"]),
        "segments": [] if by_group is None else list(by_group.facts["sentences"]),
        "assessed": [] if assessed is None else list(assessed.facts["sentences"]),
        "p": rows,
        "intervals": "" if findings.comparison is None else findings.comparison.intervals,
    }
