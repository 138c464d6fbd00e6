"""The stages that write for people: `experiment` (its file), `card` (as JSON, Markdown and LaTeX) and `report`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield._files import write_text
from cranfield._numbers import DASH, listed, number_text, percent_text
from cranfield._registry import Spelling, parse
from cranfield._table import Table, latex_text, markdown_text
from cranfield.experiments.card import card, points_of, refitted_text, relevance_text, repeated_text
from cranfield.experiments.decisions import DECISIONS
from cranfield.experiments.file import moved, toml_of
from cranfield.experiments.inputs import own
from cranfield.experiments.pipeline import OUT, Pipeline, Size, Stage, Unit
from cranfield.facts import comparison as comparison_facts
from cranfield.facts import ends_text, p_text, share_text
from cranfield.facts import experiment as experiment_facts
from cranfield.metrics import average_phrase, metrics_phrase, undefined_phrase
from cranfield.splits import split_phrase
from cranfield.store import Made, versions

if TYPE_CHECKING:
    from cranfield.experiments.results import Results


class _Experiment(Stage[None]):
    name, title, level = "experiment", "Reading the experiment", "experiment"
    version = 7
    exported = True

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:  # noqa: ARG002
        return {"text": stated(line)}

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:  # noqa: ARG002
        return [write_text(place / OUT / "experiment.toml", stated(line))], {}


def stated(line: Pipeline) -> str:
    """Return the text of the experiment file, with file names relative to its folder."""
    return toml_of(moved(line.experiment, line.store.path))


EXPERIMENT = _Experiment()


class _Card(Stage[dict[str, Any]]):
    name, title, level = "card", "Writing the card", "experiment"
    version = 8
    exported = True

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:  # noqa: ARG002
        return {"made": line.digests(), "versions": line.store.versions(), "notes": dict(line.experiment.notes)}

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:  # noqa: ARG002
        contents = card(line)
        texts = {
            "card.json": json.dumps(contents, indent=1, ensure_ascii=False) + "\n",
            "card.md": markdown(contents),
            "card.tex": paragraph(contents),
        }
        return [write_text(place / OUT / name, text) for name, text in texts.items()], {}

    def read(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        return json.loads(line.artifact(self, unit).path(f"{OUT}/card.json").read_text(encoding="utf-8"))


CARD = _Card()


# Libraries that draw the figures of a report.
_DRAWING = ("altair", "vl-convert-python")
# Seconds to load these libraries; and to draw, per user and system.
_LOADING, _DRAWN = 3.0, 1e-4


class Report(Stage[None]):
    """A report on the results: ``write`` writes it into a folder and returns the files; None if it is only planned."""

    name, title, level = "report", "Writing the report", "experiment"
    exported, version = True, 3

    def __init__(self, write: Callable[[Results, Path], list[Path]] | None = None) -> None:
        self._write = write

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:  # noqa: ARG002
        """Return the digests of all artifacts, the code of the report and the versions of its libraries."""
        code = [] if self._write is None else own(self._write)
        return {"made": line.digests(), "own": code, "versions": versions(_DRAWING)}

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:  # noqa: ARG002
        """Write the report."""
        from cranfield.experiments.results import Results

        assert self._write is not None
        return self._write(Results.of(line), place / OUT), {}

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        """Estimate how long drawing takes."""
        return len(line.experiment.data) * _LOADING + _DRAWN * size.users * len(line.experiment.systems)


_DATA = ("users", "items", "ratings", "density", "gini_items", "mean_rating", "start", "end")
_SPLITS = ("repetition", "fold", "seed", "train", "test", "test_users", "cold_users", "cold_items")
_SEARCHED = ("data", "repetition", "fold", "best", "metric", "value", "error", "trials", "validation",
             "users", "epochs")  # fmt: skip


def markdown(card: Mapping[str, Any]) -> str:
    """Return a card as Markdown."""
    lines = [f"# {markdown_text(card['title'])}", "", markdown_text(f"Decisions: {card['phrase']}."), ""]
    for name, result in card["results"].items():
        headed = {f"On {markdown_text(name)}:": "sentences", "By group:": "segments", "On the metrics:": "assessed"}
        for head, said in headed.items():
            if result[said]:
                lines += [head, "", *(f"- {markdown_text(sentence)}" for sentence in result[said]), ""]
    for name, tuned in card["tuning"].items():
        if lines_of := [*tuned["said"], *tuned["warnings"]]:
            head = f"How systems were tuned and trained on {markdown_text(name)}:"
            lines += [head, "", *(f"- {markdown_text(sentence)}" for sentence in lines_of), ""]
    for heading, build in _TABLES.items():
        table = build(card)
        if table.rows:
            lines += [f"## {heading}", "", table.markdown(), ""]
    lines += ["## Notes", "", *(f"- {markdown_text(note)}" for note in _notes(card)), ""]
    lines += ["## Checklist", "", "Points that Cañamares, Castells and Moffat (2020) ask authors to report.", ""]
    points = points_of(card)
    for point in points:
        lines.append(f"- [{point.mark}] {point.area}, {point.topic}: {markdown_text(point.state)}")
    lines += ["", experiment_facts.Completeness.of(points).count]
    return "\n".join(lines) + "\n"


def _decisions(card: Mapping[str, Any]) -> Table:
    rows = [[DECISIONS[name].metadata["letter"], name, _said(value)] for name, value in card["decisions"].items()]
    return Table(["", "decision", "choice"], rows)


def _data(card: Mapping[str, Any]) -> Table:
    rows = [
        [name, facts["source"], *_values(facts, _DATA), ", ".join(facts["fingerprints"].values())]
        for name, facts in card["data"].items()
    ]
    return Table(["", "source", *_heads(_DATA), "fingerprint"], rows)


def _filters(card: Mapping[str, Any]) -> Table:
    changed = ("users", "items", "ratings")
    rows = [
        [name, f"{step['action']}({_inside(step['settings'])})",
         *(" → ".join(map(_said, step["effect"][key])) for key in changed)]
        for name, facts in card["data"].items()
        for step in facts["filters"]
    ]  # fmt: skip
    return Table(["", "filter", *changed], rows)


def _splits(card: Mapping[str, Any]) -> Table:
    rows = [
        [name, *_values(split, _SPLITS), split["fingerprints"]["test"]]
        for name, splits in card["splits"].items()
        for split in splits
    ]
    return Table(["", *_heads(_SPLITS), "fingerprint of the test part"], rows)


def _systems(card: Mapping[str, Any]) -> Table:
    stated = {name: system["parameters"] for name, system in card["systems"].items()}
    inside = {name: "unknown" if values is None else _inside(values) or "none" for name, values in stated.items()}
    rows = [[name, system["spelling"], inside[name]] for name, system in card["systems"].items()]
    return Table(["", "system", "parameters"], rows)


def _searches(card: Mapping[str, Any]) -> Table:
    systems = card["systems"].items()
    rows = [[name, *_values(search, _SEARCHED)] for name, system in systems for search in system["searches"]]
    return Table(["", *_SEARCHED], rows)


def _values(record: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    return [_said(record[key]) for key in keys]


def _heads(keys: Sequence[str]) -> list[str]:
    return [key.replace("_", " ") for key in keys]


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


_TABLES: dict[str, Callable[[Mapping[str, Any]], Table]] = {
    "Decisions": _decisions,
    "Data": _data,
    "Effect of the filters": _filters,
    "Splits": _splits,
    "Systems": _systems,
    "Searches of hyper-parameters": _searches,
    "Coverage": _coverage,
    "Comparisons": _comparisons,
    "Versions": lambda card: Table(["", "version"], [[*entry] for entry in card["versions"].items()]),
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


def paragraph(card: Mapping[str, Any]) -> str:
    """Return a card as a paragraph: the data, each decision, the systems and the coverage."""
    decisions = card["decisions"]
    sentences = (
        *_data_sentences(card, decisions),
        *_list_sentences(card, decisions),
        *_measure_sentences(card, decisions),
    )
    return latex_text(" ".join(f"{sentence}." for sentence in sentences)) + "\n"


def _data_sentences(card: Mapping[str, Any], decisions: Mapping[str, Any]) -> Iterator[str]:
    sizes = [
        f"{name} ({facts['users']:,} users, {facts['items']:,} items, {facts['ratings']:,} ratings, density "
        f"{facts['density']:.2%})"
        for name, facts in card["data"].items()
    ]
    filters = f", filtered by {', '.join(decisions['filters'])}" if decisions["filters"] else ""
    yield f"We use {listed(sizes)}{filters}"
    repeated = f", {repeated_text(card)}" if card["repetitions"] > 1 else ""
    parts = [split for splits in card["splits"].values() for split in splits]
    users, ratings = (_range(split[name] for split in parts) for name in ("test_users", "test"))
    yield (
        f"The ratings are divided {_split_words(decisions['split'])}{repeated} (seed {card['seed']}); "
        f"{'each test part' if len(parts) > 1 else 'the test part'} has {ratings} ratings of {users} users"
    )


def _range(counts: Iterable[int]) -> str:
    ordered = sorted(counts)
    least, most = ordered[0], ordered[-1]
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _split_words(split: str) -> str:
    said = split_phrase(split)
    if parse(split).name == "predefined":
        return "as they were published"
    return f"by {said}" if said.endswith(("cross-validation", "days", "d")) else f"with {said}"


def _list_sentences(card: Mapping[str, Any], decisions: Mapping[str, Any]) -> Iterator[str]:
    least = decisions["min_ratings"]
    new_users = {"unserved": "have no list", "served": "are served by the systems that can"}[decisions["new_users"]]
    users = {
        0: f"All users of the test part count; those without training ratings {new_users}",
        1: "Users without training ratings are removed",
    }
    drawn = "" if decisions["sample"] == "all" else f" (a sample of {decisions['sample']})"
    gaps = "left out" if decisions["fill"] == "none" else f"put last in the order of {decisions['fill']}"
    yield (
        users.get(least, f"Users with fewer than {least} training ratings are removed")
        + f"{drawn}, and items that a system cannot score are {gaps}"
    )
    systems = [_system_words(name, system["parameters"]) for name, system in card["systems"].items()]
    yield f"We compare {listed(systems)}"
    for name, system in card["systems"].items():
        for search in system["searches"][:1]:
            yield (
                f"The hyper-parameters of {name} are the best of {search['trials']} settings by "
                f"{metrics_phrase([search['metric']])} on {search['validation']}, {refitted_text(card)}"
            )
    unrated = "count as not relevant" if decisions["lists"] == "full" else "are taken out"
    items = {"all": "all items", "test": "the items of the test set",
             "group": "the items of its popularity group"}[decisions["candidates"]]  # fmt: skip
    kind = f"{decisions['lists']} lists of {items}" + (
        "" if decisions["keep_seen"] else " except those of the training profile"
    )
    cut = "" if decisions["length"] == "all" else f", cut at {decisions['length']}"
    yield f"We rank {kind}{cut}; items without a test rating {unrated}"
    if decisions["relevant"] == "one" or decisions["nonrelevant"] != "all":
        many = "all" if decisions["nonrelevant"] == "all" else f"{decisions['nonrelevant']} randomly drawn"
        relevant = "a single relevant item" if decisions["relevant"] == "one" else "the relevant items"
        yield f"Each list ranks {relevant} and {many} non-relevant items"
    if decisions["unrated"] != "all":
        yield f"Each list ranks the test items of the user and {decisions['unrated']} randomly drawn unrated items"
    if decisions["draws"] == "exact":
        yield "Metrics are exact expectations over all such draws"


def _system_words(name: str, parameters: Mapping[str, Any] | None) -> str:
    # A search may have found a different value for each part.
    said = {
        key: "/".join(map(str, value)) if isinstance(value, list) else value
        for key, value in (parameters or {}).items()
    }
    inside = {key: value for key, value in said.items() if value is not None}
    details = str(Spelling(name, tuple(inside.items()))).removeprefix(name)
    return f"{name} {details}" if details else name


def _measure_sentences(card: Mapping[str, Any], decisions: Mapping[str, Any]) -> Iterator[str]:
    undefined = undefined_phrase(decisions["undefined"], decisions["metrics"])
    metrics = metrics_phrase(decisions["metrics"])
    yield (
        f"We report the {average_phrase(decisions['average'])} over users of {metrics} ({relevance_text(card)}); "
        f"users for whom a metric is undefined {undefined}"
    )
    uncovered = {"full": "count as 0", "reduced": "are left out"}[decisions["coverage"]]
    least = min(coverage["users"] for by in card["coverage"].values() for coverage in by.values())
    yield f"Users without a list {uncovered}; the least user coverage is {least:.1%}"
    if len(card["systems"]) > 1:
        test = parse(decisions["significance"])
        settings = f" {str(test).removeprefix(test.name)}" if test.parameters else ""
        correction = comparison_facts.CORRECTIONS.get(decisions["correction"], decisions["correction"])
        yield (
            f"Differences are tested by {comparison_facts.TESTS.get(test.name, test.name)}{settings}, two-sided, at "
            f"α = {decisions['alpha']:g}, {correction}"
        )
        intervals = dict.fromkeys(result["intervals"] for result in card["results"].values() if result["intervals"])
        yield from (f"We show {kind}" for kind in intervals)
    yield f"Everything was computed with cranfield {card['versions']['cranfield']}"
