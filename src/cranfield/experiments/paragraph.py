"""A card as a paragraph for the experimental section of a paper, in LaTeX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cranfield._numbers import listed
from cranfield._registry import Spelling, parse
from cranfield._table import latex_text
from cranfield.experiments.checklist import relevance_text
from cranfield.metrics import average_phrase, metric_phrase, undefined_phrase
from cranfield.splits import split_phrase

_TESTS = {
    "student": "Student's paired t-test",
    "log_student": "Student's paired t-test of the logarithms",
    "permutation": "a paired permutation test",
    "wilcoxon": "Wilcoxon's signed-rank test",
    "sign": "the sign test",
    "bootstrap": "a paired bootstrap test",
    "tukey": "a randomised Tukey HSD test",
}
_CORRECTIONS = {
    "none": "without correction for multiple comparisons",
    "bonferroni": "with Bonferroni's correction",
    "holm": "with Holm's correction",
    "max_t": "with the max-|t| correction of Westfall and Young",
    "benjamini_hochberg": "with the correction of Benjamini and Hochberg",
}


def paragraph(card: Mapping[str, Any]) -> str:
    """Return a card as a paragraph: the data, each decision, the systems and the coverage.

    Parameters
    ----------
    card
        The card as a dictionary; see `cranfield.experiments.card.card`.
    """
    decisions = card["decisions"]
    sentences = (*_data(card, decisions), *_lists(card, decisions), *_measures(card, decisions))
    return latex_text(" ".join(f"{sentence}." for sentence in sentences)) + "\n"


def _data(card: Mapping[str, Any], decisions: Mapping[str, Any]) -> Iterator[str]:
    sizes = [
        f"{name} ({facts['users']:,} users, {facts['items']:,} items, {facts['ratings']:,} ratings, density "
        f"{facts['density']:.2%})"
        for name, facts in card["data"].items()
    ]
    filters = f", filtered by {', '.join(decisions['filters'])}" if decisions["filters"] else ""
    yield f"We use {listed(sizes)}{filters}"
    repeated = f", repeated {card['repetitions']} times" if card["repetitions"] > 1 else ""
    yield f"The ratings are divided {_split(decisions['split'])}{repeated} (seed {card['seed']})"


def _split(split: str) -> str:
    said = split_phrase(split)
    if parse(split).name == "predefined":
        return "as they were published"
    return f"by {said}" if said.startswith("leave-") or said.endswith("validation") else f"by a {said} split"


def _lists(card: Mapping[str, Any], decisions: Mapping[str, Any]) -> Iterator[str]:
    least = decisions["min_ratings"]
    newcomers = {"unserved": "have no list", "served": "are served by the systems that can"}[decisions["newcomers"]]
    users = {
        0: f"All users of the test part count; those without training ratings {newcomers}",
        1: "Users without training ratings are removed",
    }
    drawn = "" if decisions["sample"] == "all" else f" (a sample of {decisions['sample']})"
    gaps = "left out" if decisions["fill"] == "none" else f"put last in the order of {decisions['fill']}"
    yield (
        users.get(least, f"Users with fewer than {least} training ratings are removed")
        + f"{drawn}, and items that a system cannot score are {gaps}"
    )
    systems = [_system(name, system["parameters"]) for name, system in card["systems"].items()]
    yield f"We compare {listed(systems)}"
    for name, system in card["systems"].items():
        for search in system["searches"][:1]:
            yield (
                f"The hyper-parameters of {name} are the best of {search['trials']} settings by "
                f"{metric_phrase(search['metric'])} on {search['validation']}"
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


def _system(name: str, parameters: Mapping[str, Any] | None) -> str:
    # A search may have found a different value for each part.
    said = {
        key: "/".join(map(str, value)) if isinstance(value, list) else value
        for key, value in (parameters or {}).items()
    }
    inside = {key: value for key, value in said.items() if value is not None}
    details = str(Spelling(name, tuple(inside.items()))).removeprefix(name)
    return f"{name} {details}" if details else name


def _measures(card: Mapping[str, Any], decisions: Mapping[str, Any]) -> Iterator[str]:
    undefined = undefined_phrase(decisions["undefined"], decisions["metrics"])
    metrics = listed([metric_phrase(metric) for metric in decisions["metrics"]])
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
        yield (
            f"Differences are tested by {_TESTS.get(test.name, test.name)}{settings}, two-sided, at "
            f"α = {decisions['alpha']:g}, {_CORRECTIONS.get(decisions['correction'], decisions['correction'])}"
        )
    yield f"In short: {card['phrase']}"
    yield f"Everything was computed with cranfield {card['versions']['cranfield']}"
