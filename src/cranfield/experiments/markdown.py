"""The card of an experiment as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cranfield._numbers import DASH, number_text, percent_text
from cranfield._table import Table, markdown_text
from cranfield.experiments.decisions import DECISIONS
from cranfield.facts import ends_text, p_text, share_text

COMPARED = (
    *("difference", "lower", "upper", "relative", "relative_lower", "relative_upper"),
    *("p", "p_corrected"),
)
"""The columns that are shown for every comparison."""

_DATA = ("users", "items", "ratings", "density", "gini_items", "mean_rating", "start", "end")
_SPLITS = ("repetition", "fold", "seed", "train", "test", "test_users", "cold_users", "cold_items")
_SEARCHED = ("data", "repetition", "fold", "best", "metric", "value", "trials", "validation")


def markdown(card: Mapping[str, Any]) -> str:
    """Return a card as Markdown."""
    lines = [f"# {markdown_text(card['title'])}", "", markdown_text(f"Decisions: {card['phrase']}."), ""]
    for name, result in card["results"].items():
        lines += [
            f"On {markdown_text(name)}:",
            "",
            *(f"- {markdown_text(sentence)}" for sentence in result["sentences"]),
            "",
        ]
        if result["segments"]:
            lines += ["By group:", "", *(f"- {markdown_text(sentence)}" for sentence in result["segments"]), ""]
        if result["assessed"]:
            lines += ["On the metrics:", "", *(f"- {markdown_text(sentence)}" for sentence in result["assessed"]), ""]
    for heading, build in _TABLES.items():
        table = build(card)
        if table.rows:
            lines += [f"## {heading}", "", table.markdown(), ""]
    lines += ["## Notes", "", *(f"- {markdown_text(note)}" for note in _notes(card)), ""]
    missing = [item for item in card["checklist"] if item["reported"] is None]
    lines += ["## Checklist", "", "Points that Cañamares, Castells and Moffat (2020) ask authors to report.", ""]
    for item in card["checklist"]:
        mark = "x" if item["reported"] is not None else " "
        said = item["reported"] if item["reported"] is not None else f"MISSING: {item['remedy']}"
        lines.append(f"- [{mark}] {item['decision']}, {item['asked']}: {markdown_text(said)}")
    lines += ["", f"{len(missing)} of {len(card['checklist'])} are missing." if missing else "Nothing is missing."]
    return "\n".join(lines) + "\n"


def _decisions(card: Mapping[str, Any]) -> Table:
    rows = [[DECISIONS[name].metadata["letter"], name, _said(value)] for name, value in card["decisions"].items()]
    return Table(["", "decision", "choice"], rows)


def _data(card: Mapping[str, Any]) -> Table:
    rows = [
        [name, facts["source"], *(_said(facts[key]) for key in _DATA), ", ".join(facts["fingerprints"].values())]
        for name, facts in card["data"].items()
    ]
    return Table(["", "source", *(name.replace("_", " ") for name in _DATA), "fingerprint"], rows)


def _filters(card: Mapping[str, Any]) -> Table:
    rows = [
        [
            name,
            f"{step['action']}({_inside(step['settings'])})",
            *(" → ".join(map(_said, step["effect"][key])) for key in ("users", "items", "ratings")),
        ]
        for name, facts in card["data"].items()
        for step in facts["filters"]
    ]
    return Table(["", "filter", "users", "items", "ratings"], rows)


def _splits(card: Mapping[str, Any]) -> Table:
    rows = [
        [name, *(_said(split[key]) for key in _SPLITS), split["fingerprints"]["test"]]
        for name, splits in card["splits"].items()
        for split in splits
    ]
    return Table(["", *(name.replace("_", " ") for name in _SPLITS), "fingerprint of the test part"], rows)


def _systems(card: Mapping[str, Any]) -> Table:
    rows = [
        [
            name,
            system["spelling"],
            "unknown" if system["parameters"] is None else _inside(system["parameters"]) or "none",
        ]
        for name, system in card["systems"].items()
    ]
    return Table(["", "system", "parameters"], rows)


def _searches(card: Mapping[str, Any]) -> Table:
    rows = [
        [name, *(_said(search[key]) for key in _SEARCHED)]
        for name, system in card["systems"].items()
        for search in system["searches"]
    ]
    return Table(["", *_SEARCHED], rows)


def _coverage(card: Mapping[str, Any]) -> Table:
    coverages = [(name, system, coverage) for name, by in card["coverage"].items() for system, coverage in by.items()]
    (depth,) = {coverage["depth"] for _, _, coverage in coverages}
    heads = {
        "users": "users with a list",
        "filled": f"places filled{depth}",
        "items": "items in the data recommended",
        "unjudged": f"unjudged{depth}",
    }
    if any("nonexistent" in coverage for _, _, coverage in coverages):
        heads["nonexistent"] = f"nonexistent{depth}"
    rows = [[name, system, *(percent_text(coverage[key]) for key in heads)] for name, system, coverage in coverages]
    return Table(["data", "system", *heads.values()], rows)


def _comparisons(card: Mapping[str, Any]) -> Table:
    rows = [
        [
            name,
            *(row[key] for key in ("metric", "system_a", "system_b")),
            number_text(row["difference"], sign="+"),
            ends_text(row["lower"], row["upper"]),
            share_text(row),
            *(p_text(row[key]) for key in ("p", "p_corrected")),
        ]
        for name, result in card["results"].items()
        for row in result["p"]
    ]
    kinds = dict.fromkeys(result["intervals"] for result in card["results"].values() if result["intervals"])
    header = ["data", "metric", "a", "b", "a − b", "interval", "relative", "p", "p corrected"]
    return Table(header, rows, "; ".join(kinds))


def _versions(card: Mapping[str, Any]) -> Table:
    return Table(["", "version"], [[name, value] for name, value in card["versions"].items()])


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


def _notes(card: Mapping[str, Any]) -> list[str]:
    """Return every note a reader should see: leakage, cold start, users left out, rules applied."""
    notes = [f"{name}: {note}" for name, facts in card["data"].items() for note in facts["notes"]]
    notes += [f"{name}: cite {facts['citation']}" for name, facts in card["data"].items() if facts["citation"]]
    for name, splits in card["splits"].items():
        for split in splits:
            place = f" (repetition {split['repetition']}, fold {split['fold']})" if len(splits) > 1 else ""
            notes += [f"{name}{place}: {note}" for note in split["notes"]]
    for name, measuring in card["measuring"].items():
        if any(measuring["removed_test_users"]):
            counts = ", ".join(f"{count:,}" for count in measuring["removed_test_users"])
            notes.append(f"{name}: B1 removes {counts} test users from the measurement")
        notes += [f"{name}: {note}" for note in measuring["notes"]]
    return notes or ["none"]


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
