"""The card: all that a reader needs to repeat an experiment, as data and as Markdown."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import polars as pl

from cranfield._files import whole_file
from cranfield._table import Table, markdown_text
from cranfield._version import __version__
from cranfield.experiment.checklist import checklist
from cranfield.experiment.decisions import DECISIONS
from cranfield.experiment.folder import Made
from cranfield.experiment.paragraph import paragraph
from cranfield.experiment.source import Source
from cranfield.experiment.stages import Line
from cranfield.experiment.system import System

_COMPARED = ("difference", "p", "p_corrected")
_SEARCHED = ("data", "repetition", "fold", "best", "metric", "value", "trials", "validation")
_LIBRARIES = ("numpy", "scipy", "polars", "numba")


def versions() -> dict[str, str]:
    """Return the versions of what the numbers come from."""
    found = {"cranfield": __version__, "Python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def card(line: Line) -> dict[str, Any]:
    """Return the card of an experiment that has gone through all stages, ready for JSON."""
    experiment = line.experiment
    averages = {
        source.name: pl.read_parquet(line.folder.path / "results" / source.name / "averages.parquet")
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
        "versions": versions(),
    }
    return {**told, "checklist": [item.as_dict() for item in checklist(told)]}


def _data(line: Line, source: Source) -> dict[str, Any]:
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


def _splits(line: Line, source: Source) -> Iterator[dict[str, Any]]:
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


def _system(line: Line, system: System) -> dict[str, Any]:
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


def _measuring(line: Line, source: Source) -> dict[str, Any]:
    facts = [line.made[f"scores/{part.place}"].facts for part in line.parts(source)]
    return {
        "removed_test_users": [one["removed_test_users"] for one in facts],
        "notes": list(dict.fromkeys(note for one in facts for note in one["notes"])),
    }


def _results(line: Line, source: Source) -> dict[str, Any]:
    path = line.folder.path / "results" / source.name / "comparisons.parquet"
    rows: list[dict[str, Any]] = []
    if f"results/{source.name}/comparisons.parquet" in line.made[f"results/{source.name}"].files:
        whole = pl.read_parquet(path).filter(pl.col("fold").is_null())
        rows = whole.select("metric", "system_a", "system_b", *_COMPARED).to_dicts()
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
        with whole_file(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return [folder / name for name in texts], {}


def markdown(told: Mapping[str, Any]) -> str:
    """Return a card as Markdown."""
    lines = [f"# {markdown_text(told['title'])}", "", markdown_text(f"Decisions: {told['phrase']}."), ""]
    for name, result in told["results"].items():
        lines += [f"On {markdown_text(name)}:", "", *(f"- {markdown_text(one)}" for one in result["sentences"]), ""]
        if result["assessed"]:
            lines += ["Of the metrics:", "", *(f"- {markdown_text(one)}" for one in result["assessed"]), ""]
    for heading, table in _tables(told):
        lines += [f"## {heading}", "", table.markdown(), ""]
    lines += ["## Notes", "", *(f"- {markdown_text(note)}" for note in _notes(told)), ""]
    missing = [item for item in told["checklist"] if item["reported"] is None]
    lines += ["## Checklist", "", "What Cañamares, Castells and Moffat (2020) ask authors to report.", ""]
    for item in told["checklist"]:
        mark = "x" if item["reported"] is not None else " "
        said = item["reported"] if item["reported"] is not None else f"MISSING: {item['remedy']}"
        lines.append(f"- [{mark}] {item['decision']}, {item['asked']}: {markdown_text(said)}")
    lines += ["", f"{len(missing)} of {len(told['checklist'])} are missing." if missing else "Nothing is missing."]
    return "\n".join(lines) + "\n"


def _tables(told: Mapping[str, Any]) -> Iterator[tuple[str, Table]]:
    yield (
        "Decisions",
        Table(
            ["", "decision", "choice"],
            [[DECISIONS[name].metadata["letter"], name, _said(value)] for name, value in told["decisions"].items()],
        ),
    )
    names = ("users", "items", "ratings", "density", "gini_items", "mean_rating", "start", "end")
    yield (
        "Data",
        Table(
            ["", "source", *(name.replace("_", " ") for name in names), "fingerprint"],
            [
                [name, one["source"], *(_said(one[key]) for key in names), ", ".join(one["fingerprints"].values())]
                for name, one in told["data"].items()
            ],
        ),
    )
    filters = [
        [
            name,
            f"{step['action']}({_inside(step['settings'])})",
            *(" → ".join(map(_said, step["effect"][key])) for key in ("users", "items", "ratings")),
        ]
        for name, one in told["data"].items()
        for step in one["filters"]
    ]
    if filters:
        yield "Effect of the filters", Table(["", "filter", "users", "items", "ratings"], filters)
    columns = ("repetition", "fold", "seed", "train", "test", "test_users", "cold_users", "cold_items")
    yield (
        "Splits",
        Table(
            ["", *(name.replace("_", " ") for name in columns), "fingerprint of the test part"],
            [
                [name, *(_said(one[key]) for key in columns), one["fingerprints"]["test"]]
                for name, splits in told["splits"].items()
                for one in splits
            ],
        ),
    )
    yield (
        "Systems",
        Table(
            ["", "system", "parameters"],
            [
                [
                    name,
                    one["spelling"],
                    "unknown" if one["parameters"] is None else _inside(one["parameters"]) or "none",
                ]
                for name, one in told["systems"].items()
            ],
        ),
    )
    searches = [
        [name, *(_said(found[key]) for key in _SEARCHED)]
        for name, one in told["systems"].items()
        for found in one["searches"]
    ]
    if searches:
        yield "Searches of hyper-parameters", Table(["", *_SEARCHED], searches)
    yield (
        "Coverage",
        Table(
            ["data", "system", "users with a list", "places filled", "items recommended", "unjudged"],
            [
                [name, system, *(_share(one[key]) for key in ("users", "filled", "items", "unjudged"))]
                for name, by in told["coverage"].items()
                for system, one in by.items()
            ],
        ),
    )
    pairs = [
        [name, row["metric"], row["system_a"], row["system_b"], *(_said(row[key]) for key in _COMPARED)]
        for name, one in told["results"].items()
        for row in one["p"]
    ]
    if pairs:
        yield "Comparisons", Table(["data", "metric", "a", "b", "a − b", "p", "p corrected"], pairs)
    yield "Versions", Table(["", "version"], [[name, value] for name, value in told["versions"].items()])


def _notes(told: Mapping[str, Any]) -> list[str]:
    """Return every sentence a reader should see: leakage, cold start, users left out, rules applied."""
    said = [f"{name}: {note}" for name, one in told["data"].items() for note in one["notes"]]
    said += [f"{name}: cite {one['citation']}" for name, one in told["data"].items() if one["citation"]]
    for name, splits in told["splits"].items():
        for one in splits:
            where = f" (repetition {one['repetition']}, fold {one['fold']})" if len(splits) > 1 else ""
            said += [f"{name}{where}: {note}" for note in one["notes"]]
    for name, one in told["measuring"].items():
        if any(one["removed_test_users"]):
            counts = ", ".join(f"{count:,}" for count in one["removed_test_users"])
            said.append(f"{name}: B1 removes {counts} test users from the measurement")
        said += [f"{name}: {note}" for note in one["notes"]]
    return said or ["none"]


def _inside(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_said(value)}" for name, value in settings.items())


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_said, value)) or "none"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _share(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.1%}"
