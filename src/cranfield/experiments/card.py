"""The card: all that a reader needs to repeat an experiment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from cranfield._files import write_text
from cranfield._polars import read_parquet
from cranfield.experiments.checklist import checklist
from cranfield.experiments.folder import Made
from cranfield.experiments.markdown import COMPARED, markdown
from cranfield.experiments.paragraph import paragraph
from cranfield.experiments.source import Source
from cranfield.experiments.stages import Pipeline
from cranfield.experiments.system import System


def card(line: Pipeline) -> dict[str, Any]:
    """Return the card of an experiment that has gone through all stages, ready for JSON."""
    experiment = line.experiment
    averages = {
        source.name: read_parquet(line.folder.path / "results" / source.name / "averages.parquet")
        for source in experiment.data
    }
    told: dict[str, Any] = {
        "title": experiment.title,
        "phrase": str(experiment.decisions),
        "decisions": experiment.decisions.as_dict(),
        "seed": experiment.seed,
        "seeds": list(experiment.seeds),
        "repetitions": experiment.repetitions,
        "folds": line.folds,
        "notes": dict(experiment.notes),
        "data": {source.name: _data(line, source) for source in experiment.data},
        "splits": {source.name: list(_splits(line, source)) for source in experiment.data},
        "systems": {one.name: _system(line, one) for one in experiment.systems},
        "coverage": {name: _coverage(frame) for name, frame in averages.items()},
        "measuring": {source.name: _measuring(line, source) for source in experiment.data},
        "results": {source.name: _results(line, source) for source in experiment.data},
        "versions": line.folder.versions(),
    }
    return {**told, "checklist": [item.as_dict() for item in checklist(told)]}


def _data(line: Pipeline, source: Source) -> dict[str, Any]:
    facts = line.made[f"data/{source.name}"].facts
    parts = facts["parts"]
    kind = "dataset" if source.dataset else "simulate" if source.simulate else "file"
    steps = [step for part in parts.values() for step in part["history"]]
    return {
        "kind": kind,
        "source": source.dataset or source.simulate or ", ".join(Path(one).name for one in source.files.values()),
        "fingerprints": {part: told["fingerprint"] for part, told in parts.items()},
        **facts["description"],
        "filters": [
            step for step in steps if "ratings" in step["effect"] and isinstance(step["effect"]["ratings"], list)
        ],
        "citation": next((step["settings"]["citation"] for step in steps if "citation" in step["settings"]), None),
        "notes": list(dict.fromkeys(note for step in steps for note in step["notes"])),
    }


def _splits(line: Pipeline, source: Source) -> Iterator[dict[str, Any]]:
    for part in line.parts(source):
        record = line.made[f"splits/{part.split_place}"].facts["splits"][part.fold]
        yield {
            "repetition": part.repetition + 1,
            "fold": part.fold + 1,
            "seed": line.seed(part),
            **record["split"]["effect"],
            "fingerprints": record["fingerprints"],
            "notes": record["split"]["notes"],
        }


def _system(line: Pipeline, system: System) -> dict[str, Any]:
    """Return a system with its parameters; one that a search set differently in each part has the list of them."""
    if system.spelling is None:
        return {"spelling": f"file {Path(str(system.run)).name}", "parameters": None, "searches": []}
    told = [line.parameters(part, system) for part in line.all_parts]
    values = {name: [one[name] for one in told] for name in told[0]}
    searched = () if system.tuning is None else system.tuning.space
    return {
        "spelling": system.spelling,
        "parameters": {
            name: tried[0] if name not in searched or tried.count(tried[0]) == len(tried) else tried
            for name, tried in values.items()
        },
        "searches": [
            {"data": part.source.name, "repetition": part.repetition + 1, "fold": part.fold + 1,
             **line.searches(part)[system.name].facts}
            for part in line.all_parts if system.tuning is not None
        ],
    }  # fmt: skip


def _coverage(averages: pl.DataFrame) -> dict[str, Any]:
    """Return the coverage of each system, with Coverage@d and the unjudged share at the first metric's depth."""
    whole = averages.filter(pl.col("fold").is_null()).unique("system", keep="first", maintain_order=True)
    return {
        row["system"]: {
            "users": row["coverage"],
            "filled": row["filled"],
            "items": row["item_coverage"],
            "unjudged": row["unjudged"],
        }
        for row in whole.iter_rows(named=True)
    }


def _measuring(line: Pipeline, source: Source) -> dict[str, Any]:
    facts = [line.made[f"scores/{part.place}"].facts for part in line.parts(source)]
    return {
        "removed_test_users": [one["removed_test_users"] for one in facts],
        "notes": list(dict.fromkeys(note for one in facts for note in one["notes"])),
    }


def _results(line: Pipeline, source: Source) -> dict[str, Any]:
    path = line.folder.path / "results" / source.name / "comparisons.parquet"
    rows: list[dict[str, Any]] = []
    if f"results/{source.name}/comparisons.parquet" in line.made[f"results/{source.name}"].files:
        whole = read_parquet(path).filter(pl.col("fold").is_null())
        rows = whole.select("metric", "system_a", "system_b", *COMPARED).to_dicts()
    assessed = line.made.get(f"assess/{source.name}")
    return {
        "sentences": list(line.made[f"results/{source.name}"].facts["sentences"]),
        "assessed": [] if assessed is None else list(assessed.facts["sentences"]),
        "p": rows,
    }


def write_card(folder: Path, told: Mapping[str, Any]) -> Made:
    """Write ``card.md``, ``card.json`` and ``card.tex``."""
    texts = {
        "card.json": json.dumps(told, indent=1, ensure_ascii=False) + "\n",
        "card.md": markdown(told),
        "card.tex": paragraph(told),
    }
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in texts], {}
