"""What the counts about a split mean: facts, of which each says whether something is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from cranfield.facts import split as facts
from cranfield.tables import day

Promise = Literal["any", "user", "global"]
PROMISES: tuple[Promise, ...] = ("any", "user", "global")
"""What a split promises about time: nothing; that no user's test ratings precede the user's own training ratings; or
that no test rating precedes any training rating."""


def findings_of(counts: Mapping[str, Any], promise: Promise, *, cold_users: bool = False) -> list[facts.SplitFinding]:
    """Return the findings, the most serious first; ``cold_users`` if the split is about users without training."""
    order = ("wrong", "attention", "fine")
    findings = [
        *_on_pairs(counts),
        *_on_time(counts, promise),
        *_on_ratings(counts, cold_users),
        *_on_questions(counts),
    ]
    return sorted(findings, key=lambda finding: order.index(finding.level))


def _on_pairs(counts: Mapping[str, Any]) -> Iterator[facts.SplitFinding]:
    if not any(counts["overlap"].values()):
        yield facts.PairsInParts("fine")
    for names, pairs in counts["overlap"].items():
        if pairs:
            smaller = min(counts["parts"][name]["ratings"] for name in names.split(" and "))
            yield facts.PairsInParts("wrong", pairs, names, smaller)
    for part, rows in counts["repeated"].items():
        if rows:
            yield facts.PairsRepeated("wrong", part, rows)


def _on_time(counts: Mapping[str, Any], promise: Promise) -> Iterator[facts.SplitFinding]:
    """Yield leakage in time: of the test part, then of the validation part."""
    by_user: facts.FindingLevel = "attention" if promise == "any" else "wrong"
    globally: facts.FindingLevel = "wrong" if promise == "global" else "attention"
    parts, leakage, inner = counts["parts"], counts["leakage"], counts["validation_leakage"]
    if leakage is None:
        yield facts.WithoutTimes(by_user)
        return
    train, test, begins = parts["train"]["ratings"], parts["test"]["ratings"], day(parts["test"]["oldest"])
    if leakage["own"]:
        yield facts.OlderRatings(by_user, "test", leakage["own"], test, "own training", leakage["own_users"])
    older, newer = leakage["before_training_ends"], (leakage["training_after_test_begins"], train)
    level = globally if older else "fine"
    yield facts.OlderRatings(level, "test", older, test, "training", newer=newer, begins=begins)
    if later := leakage["items_seen_later"]:
        yield facts.OlderRatings(globally, "test", later, test, "item in training", leakage["items_seen_later_items"])
    if inner is None:
        return
    validation = parts["validation"]["ratings"]
    if inner["own"]:
        yield facts.OlderRatings(by_user, "validation", inner["own"], validation, "own training", inner["own_users"])
    # Only a split along the global timeline promises the other two.
    if promise == "global" and (older := inner["before_training_ends"]):
        yield facts.OlderRatings("wrong", "validation", older, validation, "training")
    if promise == "global" and (older := inner["test_before_it_ends"]):
        yield facts.OlderRatings("wrong", "test", older, test, "validation")


def _on_ratings(counts: Mapping[str, Any], cold_users: bool) -> Iterator[facts.SplitFinding]:
    cold, test, gaps = counts["cold"], counts["parts"]["test"], counts["gaps"]
    level: facts.FindingLevel = "attention" if cold["ratings"] else "fine"
    if cold["users"] == test["users"] and not cold_users:
        level = "wrong"
    yield facts.ColdStart(level, **cold, of=test["ratings"], of_users=test["users"], of_items=test["items"])
    for name, shift in counts["shift"].items():
        yield facts.PartShift("fine" if shift["D"] < facts.MODERATE_SHIFT else "attention", name, **shift)
    if gaps is not None:
        yield facts.DaysToTest("fine", **gaps)
    for name, part in counts["parts"].items():
        sizes = {key: part[key] for key in ("ratings", "users", "items", "profiles")}
        yield facts.PartSize("fine", name, **sizes)


def _on_questions(counts: Mapping[str, Any]) -> Iterator[facts.SplitFinding]:
    """Yield what the split can and cannot show."""
    parts, leakage, cold = counts["parts"], counts["leakage"], counts["cold"]
    test = parts["test"]
    known = test["users"] - cold["users"]
    # Each question with whether it is answered, and the number of users or items that it names.
    questions: dict[str, tuple[bool, int]] = {}
    if leakage is not None:
        questions["past"] = (not leakage["before_training_ends"], 0)
    if "profiles" in parts:
        questions["profiles"] = (True, 0)
    else:
        questions |= {"known users": (known > 0, known), "new users": (cold["users"] > 0, cold["users"])}
    questions["new items"] = (cold["items"] > 0, cold["items"])
    questions["order"] = (test["profiles"]["median"] > 1, 0)
    questions["tuning"] = ("validation" in parts, 0)
    for answered in (True, False):
        some = {name: number for name, (is_answered, number) in questions.items() if is_answered == answered}
        if some:
            yield facts.QuestionsAnswered("fine", answered, some)
