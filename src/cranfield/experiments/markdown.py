"""The card of an experiment as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cranfield._numbers import DASH, percent_text
from cranfield._table import Table, markdown_text
from cranfield.experiments.decisions import DECISIONS

COMPARED = ("difference", "p", "p_corrected")
"""What is told of every comparison."""

_DATA = ("users", "items", "ratings", "density", "gini_items", "mean_rating", "start", "end")
_SPLITS = ("repetition", "fold", "seed", "train", "test", "test_users", "cold_users", "cold_items")
_SEARCHED = ("data", "repetition", "fold", "best", "metric", "value", "trials", "validation")


def markdown(told: Mapping[str, Any]) -> str:
    """Return a card as Markdown."""
    lines = [f"# {markdown_text(told['title'])}", "", markdown_text(f"Decisions: {told['phrase']}."), ""]
    for name, result in told["results"].items():
        lines += [f"On {markdown_text(name)}:", "", *(f"- {markdown_text(one)}" for one in result["sentences"]), ""]
        if result["assessed"]:
            lines += ["Of the metrics:", "", *(f"- {markdown_text(one)}" for one in result["assessed"]), ""]
    for heading, made in _TABLES.items():
        table = made(told)
        if table.rows:
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


def _decisions(told: Mapping[str, Any]) -> Table:
    rows = [[DECISIONS[name].metadata["letter"], name, _said(value)] for name, value in told["decisions"].items()]
    return Table(["", "decision", "choice"], rows)


def _data(told: Mapping[str, Any]) -> Table:
    rows = [
        [name, one["source"], *(_said(one[key]) for key in _DATA), ", ".join(one["fingerprints"].values())]
        for name, one in told["data"].items()
    ]
    return Table(["", "source", *(name.replace("_", " ") for name in _DATA), "fingerprint"], rows)


def _filters(told: Mapping[str, Any]) -> Table:
    rows = [
        [
            name,
            f"{step['action']}({_inside(step['settings'])})",
            *(" → ".join(map(_said, step["effect"][key])) for key in ("users", "items", "ratings")),
        ]
        for name, one in told["data"].items()
        for step in one["filters"]
    ]
    return Table(["", "filter", "users", "items", "ratings"], rows)


def _splits(told: Mapping[str, Any]) -> Table:
    rows = [
        [name, *(_said(one[key]) for key in _SPLITS), one["fingerprints"]["test"]]
        for name, splits in told["splits"].items()
        for one in splits
    ]
    return Table(["", *(name.replace("_", " ") for name in _SPLITS), "fingerprint of the test part"], rows)


def _systems(told: Mapping[str, Any]) -> Table:
    rows = [
        [name, one["spelling"], "unknown" if one["parameters"] is None else _inside(one["parameters"]) or "none"]
        for name, one in told["systems"].items()
    ]
    return Table(["", "system", "parameters"], rows)


def _searches(told: Mapping[str, Any]) -> Table:
    rows = [
        [name, *(_said(found[key]) for key in _SEARCHED)]
        for name, one in told["systems"].items()
        for found in one["searches"]
    ]
    return Table(["", *_SEARCHED], rows)


def _coverage(told: Mapping[str, Any]) -> Table:
    rows = [
        [name, system, *(percent_text(one[key]) for key in ("users", "filled", "items", "unjudged"))]
        for name, by in told["coverage"].items()
        for system, one in by.items()
    ]
    (depth,) = {one["depth"] for by in told["coverage"].values() for one in by.values()}
    head = ["users with a list", f"places filled{depth}", "items in the data recommended", f"unjudged{depth}"]
    return Table(["data", "system", *head], rows)


def _comparisons(told: Mapping[str, Any]) -> Table:
    rows = [
        [name, row["metric"], row["system_a"], row["system_b"], *(_said(row[key]) for key in COMPARED)]
        for name, one in told["results"].items()
        for row in one["p"]
    ]
    return Table(["data", "metric", "a", "b", "a − b", "p", "p corrected"], rows)


def _versions(told: Mapping[str, Any]) -> Table:
    return Table(["", "version"], [[name, value] for name, value in told["versions"].items()])


_TABLES: dict[str, Callable[[Mapping[str, Any]], Table]] = {
    "Decisions": _decisions,
    "Data": _data,
    "Effect of the filters": _filters,
    "Splits": _splits,
    "Systems": _systems,
    "Searches of hyper-parameters": _searches,
    "Coverage": _coverage,
    "Comparisons": _comparisons,
    "Versions": _versions,
}


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
        return {True: "yes", False: "no", None: DASH}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
