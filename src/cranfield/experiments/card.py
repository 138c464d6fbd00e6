"""The card, everything a reader needs to repeat an experiment; and the checklist of what it should report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from cranfield.experiments.decisions import phrases
from cranfield.experiments.experiment import System
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stages.data import DATA, SPLITS, decided, learning_kind
from cranfield.experiments.stages.lists import SCORES
from cranfield.experiments.stages.models import MODELS, SEARCHES, parameters_of
from cranfield.experiments.stages.results import ASSESS, RESULTS, SEGMENTS, facts_of_groups
from cranfield.experiments.tuned import how_tuned, repetition_facts, tuning_warnings
from cranfield.facts import experiment as experiment_facts
from cranfield.facts import sentences
from cranfield.metrics import deepest, relevant_items, undefined_phrase

to_report = experiment_facts.Point

_ENTRY = ("decision", "asked", "reported", "remedy", "warning")

COMPARED = ("difference", "lower", "upper", "relative", "relative_lower", "relative_upper", "p", "p_corrected")
"""The columns that are shown for every comparison."""


def card(line: Pipeline) -> dict[str, Any]:
    """Return the card of an experiment that has completed all stages, ready for JSON."""
    experiment, sources = line.experiment, line.units("source")
    decided_on = {unit.place: decided(line, unit) for unit in sources}
    alike = len(set(decided_on.values())) == 1
    decisions = next(iter(decided_on.values())) if alike else experiment.decisions
    contents: dict[str, Any] = {
        "title": experiment.title,
        "phrase": decisions.words(labels=experiment.labels),
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
        "tuning": {unit.place: _tuning(line, unit) for unit in sources},
        "versions": line.store.versions(),
    }
    return {**contents, "checklist": [dict(zip(_ENTRY, point.entry)) for point in checklist(contents)]}


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
        "reading": next(
            (
                {key: value for key, value in step["settings"].items() if key in ("weights", "session_gap")}
                for step in steps
                if step["action"] == "read"
            ),
            {},
        ),
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
            **{name: record["split"]["settings"][name] for name in _OF_EVENTS if name in record["split"]["settings"]},
            "fingerprints": record["fingerprints"],
            "notes": record["split"]["notes"],
        }


def _system(line: Pipeline, system: System) -> dict[str, Any]:
    """Return a system with its parameters, with one value per part where a search or the data chose different ones."""
    if system.spelling is None:
        return {"spelling": f"file {Path(str(system.run)).name}", "parameters": None, "searches": []}
    cells = [cell for cell in line.units("cell") if cell.system is system]
    adapted = [_adapted(line, cell) for cell in cells]
    stated = [{**parameters_of(line, cell), **chosen} for cell, chosen in zip(cells, adapted)]
    values = {name: [record[name] for record in stated] for name in stated[0]}
    searched = {*adapted[0], *(() if system.tuning is None else (*system.tuning.space, "epochs"))}
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


def _adapted(line: Pipeline, cell: Unit) -> dict[str, Any]:
    """Return the parameters that a system chose from the data, and the epochs at which a validation part stopped it."""
    model = line.artifact(MODELS, cell).facts
    stopped = learning_kind(line, cell) == "refitted" and "training" in model
    return {**model.get("adapted", {}), **({"epochs": model["training"]["epochs"]} if stopped else {})}


def _tuning(line: Pipeline, unit: Unit) -> dict[str, list[str]]:
    """Return how systems were tuned and what repetitions vary, in words, and warnings; without times, which vary."""
    return {
        "said": sentences([*how_tuned(line, unit), *repetition_facts(line, unit)]),
        "warnings": sentences(tuning_warnings(line, unit)),
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
        "notes": sentences(line.read(RESULTS, unit).scores.notes),
    }


def _results(line: Pipeline, unit: Unit) -> dict[str, Any]:
    findings = line.read(RESULTS, unit)
    comparisons = findings.comparisons
    rows: list[dict[str, Any]] = []
    if comparisons.width:
        whole = comparisons.filter(pl.col("fold").is_null())
        rows = whole.select("metric", "system_a", "system_b", *COMPARED).to_dicts()
    return {
        "sentences": sentences(findings.facts),
        "segments": sentences(facts_of_groups(line.read(SEGMENTS, unit))) if SEGMENTS.wants(line, unit) else [],
        "assessed": sentences(line.read(ASSESS, unit).facts()) if ASSESS.wants(line, unit) else [],
        "p": rows,
        "intervals": "" if findings.comparison is None else findings.comparison.intervals,
    }


def points_of(card: Mapping[str, Any]) -> tuple[experiment_facts.Point, ...]:
    """Return the points of a card's checklist."""
    return tuple(to_report(*(entry[name] for name in _ENTRY)) for entry in card["checklist"])


def checklist(card: Mapping[str, Any]) -> list[experiment_facts.Point]:
    """Return everything the paper asks authors to report, with what the `card` says about each item."""
    return [*_data_items(card), *_list_items(card), *_measurement_items(card), *_comparison_items(card)]


def _data_items(card: Mapping[str, Any]) -> Iterator[experiment_facts.Point]:
    decisions, data, notes = card["decisions"], card["data"], card["notes"]
    private = [name for name, facts in data.items() if facts["kind"] == "file"]
    public = ", ".join(f"{name}: {facts['source']}" for name, facts in data.items())
    yield to_report(
        "A1",
        "where the data are available",
        notes.get("data") or (None if private else public),
        f"{', '.join(private)} is a file; say where it comes from, as data under [notes]",
    )
    sizes = (f"{name}: {facts['users']:,} users, {facts['items']:,} items, {facts['ratings']:,} ratings, density "
             f"{facts['density']:.3%}" for name, facts in data.items())  # fmt: skip
    yield to_report("A1", "the size and density of the data", "; ".join(sizes))
    filters = ", ".join(decisions["filters"]) or "none"
    yield to_report("A1", "filters, with their thresholds and effect", f"{filters}; the card has the effect of each")
    repeated = f", {repeated_text(card)}" if card["repetitions"] > 1 else ""
    yield to_report("A2", "how training and test were divided", f"{decisions['split']}{repeated}, seed {card['seed']}")
    events = {name: splits[0] for name, splits in card["splits"].items() if "events" in splits[0]}
    if events:
        divided = [_events_text(name, split, data[name].get("reading", {})) for name, split in events.items()]
        yield to_report("A2", "how events are divided, merged and weighed", "; ".join(divided))
        yield to_report("C1", "what counts of the items that a user had before", _REPEATS[decisions["repeats"]])
    at_least = decisions["min_ratings"]
    some = "a training rating" if at_least == 1 else f"{at_least} training ratings or more"
    users = f"users with {some}" if at_least else "all users of the test part"
    drawn = "" if decisions["sample"] == "all" else f", {decisions['sample']} of them drawn"
    new_users = {"unserved": "have no list", "served": "are served by the systems that can"}[decisions["new_users"]]
    choices = [users + drawn, *([] if at_least else [f"those without training ratings {new_users}"])]
    others = phrases("B1", decisions, but=("min_ratings", "sample", "new_users"))
    yield to_report("B1", "which users are served", ", ".join([*choices, *others]))


_OF_EVENTS = ("unit", "repeated")
_REPEATS = {
    "exclude": "exclude: only items that are new to the user count and are recommended",
    "allow": "allow: all items count and are recommended",
    "only": "only: no others count and are recommended",
    "hide": "hide: all items count, and only those that are new to the user are recommended",
}


def _events_text(name: str, split: Mapping[str, Any], reading: Mapping[str, Any]) -> str:
    """Return what is never divided, how events become ratings, and how many test items are repeats."""
    train, _, other = split["repeated"].partition("/")
    merged = f"merged by {train}" + (f" in training and by {other} elsewhere" if other else "")
    types = reading.get("weights")
    weighed = f", {', '.join(f'{kind} = {weight:g}' for kind, weight in types.items())}" if types else ""
    share = f"{split['repeated_test_pairs']:,} of {split['test']:,} test items are repeats"
    unit = split.get("unit", "session")
    return f"{name}: divided by {unit}, {merged}{weighed}; {share}"


def _list_items(card: Mapping[str, Any]) -> Iterator[experiment_facts.Point]:
    decisions = card["decisions"]
    gaps = "left out" if decisions["fill"] == "none" else f"put last, in the order of {decisions['fill']}"
    yield to_report("B2", "how items that a system cannot score are treated", gaps)
    unknown = [name for name, system in card["systems"].items() if system["parameters"] is None]
    choices = "; ".join(f"{name}: {_with_defaults(system)}" for name, system in card["systems"].items())
    yield to_report(
        "systems",
        "the systems and their hyper-parameters",
        None if unknown else choices,
        f"{', '.join(unknown)} comes from a file; say how it was made",
    )
    yield to_report(
        "systems",
        "how the hyper-parameters were chosen, without the test part",
        card["notes"].get("tuning") or _searched(card),
        "state it as tuning under [notes], or let the file search them",
        " ".join(dict.fromkeys(warning for tuned in card["tuning"].values() for warning in tuned["warnings"])),
    )
    kinds = {"full": "full lists; items without a test rating count as not relevant",
             "condensed": "condensed lists; items without a test rating are removed"}  # fmt: skip
    yield to_report("C1", "full or condensed lists, and unrated items", kinds[decisions["lists"]])


def _with_defaults(system: Mapping[str, Any]) -> str:
    """Return the spelling of a system and the values of all its hyper-parameters."""
    values = [f"{name}={value}" for name, value in (system["parameters"] or {}).items() if value is not None]
    return f"{system['spelling']} ({', '.join(values)})" if values else str(system["spelling"])


def repeated_text(card: Mapping[str, Any]) -> str:
    """Return how often the ratings were split, or that only the training seeds differ."""
    tests = [[split["fingerprints"]["test"] for split in splits] for splits in card["splits"].values()]
    same = all(len(set(hashes)) <= card["folds"] for hashes in tests)
    return f"{card['repetitions']} training seeds on the same split" if same else f"{card['repetitions']} times"


def refitted_text(card: Mapping[str, Any]) -> str:
    """Return whether the chosen settings were trained on the validation ratings, too."""
    return "refitted" if card["decisions"]["refit"] else "not refitted"


def _searched(card: Mapping[str, Any]) -> str | None:
    """Return which systems were tuned by a search, and how; None if none was."""
    said = {
        name: f"{name}: the best of {search['trials']} by {search['metric']} on {search['validation']} "
        f"({search['users']:,} users), {refitted_text(card)}"
        for name, system in card["systems"].items()
        for search in system["searches"][:1]
    }
    others = [name for name in card["systems"] if name not in said]
    return "; ".join([*said.values(), *([f"as stated: {', '.join(others)}"] if others else [])]) if said else None


def relevance_text(card: Mapping[str, Any]) -> str:
    """Return what makes an item relevant, and for which metrics; separately per set of ratings if these differ."""
    said = {
        data: str(relevant_items(card["decisions"]["metrics"], threshold) or "")
        for data, threshold in card["thresholds"].items()
    }
    if len(set(said.values())) == 1:
        return next(iter(said.values())) or "no metric uses it"
    return ", ".join(f"{data}: {phrase}" for data, phrase in said.items())


def _measurement_items(card: Mapping[str, Any]) -> Iterator[experiment_facts.Point]:
    decisions = card["decisions"]
    yield to_report("C2", "the metrics, with depth and gain", ", ".join(decisions["metrics"]))
    yield to_report("C2", "the rating that makes an item relevant", relevance_text(card))
    undefined = undefined_phrase(decisions["undefined"], decisions["metrics"])
    yield to_report("C2", "users for whom a metric is undefined", f"they {undefined}")
    yield to_report("C3", "how values are aggregated over users", decisions["average"])
    covered = {"full": "they count as 0", "reduced": "they are left out"}[decisions["coverage"]]
    yield to_report("C4", "users without a list", covered)
    least = min((coverage["users"] for by in card["coverage"].values() for coverage in by.values()), default=None)
    yield to_report(
        "C4",
        "coverage in addition to effectiveness",
        None if least is None else f"the card has it; the least user coverage is {least:.1%}",
        "measure at least one system",
    )


def _comparison_items(card: Mapping[str, Any]) -> Iterator[experiment_facts.Point]:
    decisions, several = card["decisions"], len(card["systems"]) > 1
    choices = f"{decisions['significance']}, two-sided, paired by user; correction: {decisions['correction']}"
    yield to_report("D", "a statistical test", choices if several else None, "compare at least two systems")
    tested = [name for name, result in card["results"].items() if result["p"]]
    yield to_report(
        "D",
        "the p-values, not only whether they are below a level",
        f"the card and tables/ have them, for {', '.join(tested)}" if tested else None,
        "compare at least two systems by a metric that has a value for each user",
    )
    yield to_report(
        "D",
        "more than one set of ratings",
        ", ".join(card["data"]) if len(card["data"]) > 1 else None,
        "add further data: a result on one dataset may not hold on others",
    )
