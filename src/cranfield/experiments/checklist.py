"""The checklist: what Cañamares, Castells and Moffat (2020, section 3) ask authors to report, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cranfield.experiments.decisions import phrases
from cranfield.metrics import relevance_phrase, undefined_phrase


@dataclass(frozen=True)
class Item:
    """Something to report: the decision it belongs to, the topic, and what is reported (None if nothing is)."""

    letter: str
    topic: str
    reported: str | None
    remedy: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the item, ready for JSON."""
        return {
            "decision": self.letter,
            "asked": self.topic,
            "reported": self.reported,
            "remedy": self.remedy if self.reported is None else "",
        }


def checklist(card: Mapping[str, Any]) -> list[Item]:
    """Return everything the paper asks authors to report, with what the card says about each item.

    Parameters
    ----------
    card
        The card as a dictionary; see `cranfield.experiments.card.card`.
    """
    return [*_data(card), *_lists(card), *_measurement(card), *_comparison(card)]


def _data(card: Mapping[str, Any]) -> Iterator[Item]:
    decisions, data, notes = card["decisions"], card["data"], card["notes"]
    private = [name for name, facts in data.items() if facts["kind"] == "file"]
    public = ", ".join(f"{name}: {facts['source']}" for name, facts in data.items())
    yield Item(
        "A1",
        "where the data are available",
        notes.get("data") or (None if private else public),
        f"{', '.join(private)} is a file; say where it comes from, as data under [notes]",
    )
    sizes = (f"{name}: {facts['users']:,} users, {facts['items']:,} items, {facts['ratings']:,} ratings, density "
             f"{facts['density']:.3%}" for name, facts in data.items())  # fmt: skip
    yield Item("A1", "the size and density of the data", "; ".join(sizes))
    filters = ", ".join(decisions["filters"]) or "none"
    yield Item("A1", "filters, with their thresholds and effect", f"{filters}; the card has the effect of each")
    repeated = f", {card['repetitions']} times" if card["repetitions"] > 1 else ""
    yield Item("A2", "how training and test were divided", f"{decisions['split']}{repeated}, seed {card['seed']}")
    at_least = decisions["min_ratings"]
    some = "a training rating" if at_least == 1 else f"{at_least} training ratings or more"
    users = f"users with {some}" if at_least else "all users of the test part"
    drawn = "" if decisions["sample"] == "all" else f", {decisions['sample']} of them drawn"
    newcomers = {"unserved": "have no list", "served": "are served by the systems that can"}[decisions["newcomers"]]
    choices = [users + drawn, *([] if at_least else [f"those without training ratings {newcomers}"])]
    others = phrases("B1", decisions, but=("min_ratings", "sample", "newcomers"))
    yield Item("B1", "which users are served", ", ".join([*choices, *others]))


def _lists(card: Mapping[str, Any]) -> Iterator[Item]:
    decisions = card["decisions"]
    gaps = "left out" if decisions["fill"] == "none" else f"put last, in the order of {decisions['fill']}"
    yield Item("B2", "how items that a system cannot score are treated", gaps)
    unknown = [name for name, system in card["systems"].items() if system["parameters"] is None]
    choices = "; ".join(f"{name}: {_with_defaults(system)}" for name, system in card["systems"].items())
    yield Item(
        "systems",
        "the systems and their hyper-parameters",
        None if unknown else choices,
        f"{', '.join(unknown)} comes from a file; say how it was made",
    )
    yield Item(
        "systems",
        "how the hyper-parameters were chosen, without the test part",
        card["notes"].get("tuning") or _searched(card),
        "state it as tuning under [notes], or let the file search them",
    )
    kinds = {"full": "full lists; items without a test rating count as not relevant",
             "condensed": "condensed lists; items without a test rating are removed"}  # fmt: skip
    yield Item("C1", "full or condensed lists, and unrated items", kinds[decisions["lists"]])


def _with_defaults(system: Mapping[str, Any]) -> str:
    """Return the spelling of a system and the values of all its hyper-parameters."""
    values = [f"{name}={value}" for name, value in (system["parameters"] or {}).items() if value is not None]
    return f"{system['spelling']} ({', '.join(values)})" if values else str(system["spelling"])


def _searched(card: Mapping[str, Any]) -> str | None:
    """Return which systems were tuned by a search, and how; None if none was."""
    said = {
        name: f"{name}: the best of {search['trials']} by {search['metric']} on {search['validation']}"
        for name, system in card["systems"].items()
        for search in system["searches"][:1]
    }
    others = [name for name in card["systems"] if name not in said]
    return "; ".join([*said.values(), *([f"as stated: {', '.join(others)}"] if others else [])]) if said else None


def relevance_text(card: Mapping[str, Any]) -> str:
    """Return what makes an item relevant, and for which metrics; separately per set of ratings if these differ.

    Examples
    --------
    >>> decisions = {"metrics": ["P@10", "nDCG@10"]}
    >>> relevance_text({"decisions": decisions, "thresholds": {"films": 4.0}})
    'relevant from 4 (P); nDCG: gain = rating'
    >>> relevance_text({"decisions": {"metrics": ["P@10"]}, "thresholds": {"films": 4.0, "clicks": 1.0}})
    'films: relevant from 4, clicks: relevant from 1'
    """
    said = {
        data: relevance_phrase(card["decisions"]["metrics"], threshold)
        for data, threshold in card["thresholds"].items()
    }
    if len(set(said.values())) == 1:
        return next(iter(said.values())) or "no metric uses it"
    return ", ".join(f"{data}: {phrase}" for data, phrase in said.items())


def _measurement(card: Mapping[str, Any]) -> Iterator[Item]:
    decisions = card["decisions"]
    yield Item("C2", "the metrics, with depth and gain", ", ".join(decisions["metrics"]))
    yield Item("C2", "the rating that makes an item relevant", relevance_text(card))
    undefined = undefined_phrase(decisions["undefined"], decisions["metrics"])
    yield Item("C2", "users for whom a metric is undefined", f"they {undefined}")
    yield Item("C3", "how values are aggregated over users", decisions["average"])
    covered = {"full": "they count as 0", "reduced": "they are left out"}[decisions["coverage"]]
    yield Item("C4", "users without a list", covered)
    least = min((coverage["users"] for by in card["coverage"].values() for coverage in by.values()), default=None)
    yield Item(
        "C4",
        "coverage in addition to effectiveness",
        None if least is None else f"the card has it; the least user coverage is {least:.1%}",
        "measure at least one system",
    )


def _comparison(card: Mapping[str, Any]) -> Iterator[Item]:
    decisions, several = card["decisions"], len(card["systems"]) > 1
    choices = f"{decisions['significance']}, two-sided, paired by user; correction: {decisions['correction']}"
    yield Item("D", "a statistical test", choices if several else None, "compare at least two systems")
    tested = [name for name, result in card["results"].items() if result["p"]]
    yield Item(
        "D",
        "the p-values, not only whether they are below a level",
        f"the card and tables/ have them, for {', '.join(tested)}" if tested else None,
        "compare at least two systems by a metric that has a value for each user",
    )
    yield Item(
        "D",
        "more than one set of ratings",
        ", ".join(card["data"]) if len(card["data"]) > 1 else None,
        "add further data: a result on one dataset may not hold on others",
    )
