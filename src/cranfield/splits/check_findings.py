"""What the counts about a split mean: sentences, each with whether something is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cranfield._numbers import percent_text
from cranfield.data.moment import day

Level = Literal["wrong", "attention", "fine"]
Promise = Literal["any", "user", "global"]
PROMISES: tuple[Promise, ...] = ("any", "user", "global")
"""What a split promises about time: nothing; that no user's test ratings precede the user's own training ratings; or
that no test rating precedes any training rating."""

_LARGE, _MODERATE = 0.25, 0.1


@dataclass(frozen=True)
class SplitFinding:
    """A sentence about a split.

    Parameters
    ----------
    name
        What it is about.
    level
        ``wrong`` if the split is not fit for use as it is, ``attention`` if a reader must know it, else ``fine``.
    sentence
        What was found.
    """

    name: str
    level: Level
    sentence: str


def findings_of(facts: Mapping[str, Any], promise: Promise) -> list[SplitFinding]:
    """Return what was found, the most serious first."""
    all_findings = [
        *_overlap(facts),
        *_repeated(facts),
        *_leakage(facts, promise),
        *_validation_leakage(facts, promise),
        *_cold(facts),
        *_shift(facts),
        *_gaps(facts),
        *_profiles(facts),
        *_answers(facts),
    ]
    order = ("wrong", "attention", "fine")
    return sorted(all_findings, key=lambda finding: order.index(finding.level))


def _overlap(facts: Mapping[str, Any]) -> Iterator[SplitFinding]:
    common = {names: number for names, number in facts["overlap"].items() if number}
    if not common:
        yield SplitFinding("overlap", "fine", "No (user, item) pair is in two parts.")
    for names, number in common.items():
        smaller = min(facts["parts"][name]["ratings"] for name in names.split(" and "))
        yield SplitFinding(
            "overlap",
            "wrong",
            f"{number:,} (user, item) pairs are in {names} alike, {percent_text(number / smaller)} of the smaller "
            "part: what is tested was learned.",
        )


def _repeated(facts: Mapping[str, Any]) -> Iterator[SplitFinding]:
    for name, number in facts["repeated"].items():
        if number:
            yield SplitFinding(
                "repeated pairs",
                "wrong",
                f"{number:,} rows of the {name} part repeat a (user, item) pair of the same part; decide which counts.",
            )


def _leakage(facts: Mapping[str, Any], promise: Promise) -> Iterator[SplitFinding]:
    leakage, test = facts["leakage"], facts["parts"]["test"]
    if leakage is None:
        level: Level = "attention" if promise == "any" else "wrong"
        yield SplitFinding("leakage", level, "The parts have no times, so nothing can be said about leakage in time.")
        return
    if leakage["own"]:
        yield SplitFinding(
            "leakage",
            "attention" if promise == "any" else "wrong",
            f"{leakage['own']:,} test ratings ({percent_text(leakage['own'] / test['ratings'])}) of "
            f"{leakage['own_users']:,} users precede a training rating of the same user.",
        )
    if leakage["before_training_ends"]:
        train = facts["parts"]["train"]
        yield SplitFinding(
            "leakage",
            "wrong" if promise == "global" else "attention",
            f"{leakage['before_training_ends']:,} test ratings "
            f"({percent_text(leakage['before_training_ends'] / test['ratings'])}) are older than the newest training "
            f"rating, and {leakage['training_after_test_begins']:,} training ratings "
            f"({percent_text(leakage['training_after_test_begins'] / train['ratings'])}) newer than the oldest test "
            f"rating, of {day(test['oldest'])}: training knows the future of others.",
        )
    else:
        yield SplitFinding(
            "leakage", "fine", f"No test rating is older than any training rating; the cut is at {day(test['oldest'])}."
        )
    if leakage["items_seen_later"]:
        yield SplitFinding(
            "leakage",
            "wrong" if promise == "global" else "attention",
            f"{leakage['items_seen_later']:,} test ratings are of {leakage['items_seen_later_items']:,} items whose "
            "first training rating is newer: at that time nobody could have known them from training.",
        )


def _validation_leakage(facts: Mapping[str, Any], promise: Promise) -> Iterator[SplitFinding]:
    leakage = facts["validation_leakage"]
    if leakage is None or not leakage["own"]:
        return
    yield SplitFinding(
        "leakage",
        "attention" if promise == "any" else "wrong",
        f"{leakage['own']:,} validation ratings of {leakage['own_users']:,} users precede a training rating of the "
        "same user.",
    )


def _cold(facts: Mapping[str, Any]) -> Iterator[SplitFinding]:
    cold, test = facts["cold"], facts["parts"]["test"]
    if not cold["users"] and not cold["items"]:
        yield SplitFinding("cold start", "fine", "All users and items of the test part are known from training.")
        return
    nobody = cold["users"] == test["users"]
    yield SplitFinding(
        "cold start",
        "wrong" if nobody else "attention",
        f"{cold['users']:,} of {test['users']:,} users and {cold['items']:,} of {test['items']:,} items of the test "
        f"part have no training rating ({cold['ratings']:,} test ratings, "
        f"{percent_text(cold['ratings'] / test['ratings'])})"
        + ("; no user is known, so the ids may not be the same in both parts." if nobody else "."),
    )


_WORDS = {
    "ratings": ("ratings", "the mean rating"),
    "popularity": ("popularity of items", "the mean number of training ratings of the item"),
    "activity": ("activity of users", "the mean number of training ratings of the user"),
}


def _shift(facts: Mapping[str, Any]) -> Iterator[SplitFinding]:
    for name, (what, of_what) in _WORDS.items():
        change = facts["shift"][name]
        size = "large" if change["D"] >= _LARGE else "moderate" if change["D"] >= _MODERATE else "small"
        yield SplitFinding(
            f"shift of {what}",
            "fine" if size == "small" else "attention",
            f"The shift of {what} between training and test is {size} (Kolmogorov's D = {change['D']:.3f}, "
            f"p = {change['p']:.3g}): {of_what} goes from {change['train']:,.4g} to {change['test']:,.4g} "
            f"(d = {change['d']:+.2f}).",
        )


def _gaps(facts: Mapping[str, Any]) -> Iterator[SplitFinding]:
    gaps = facts["gaps"]
    if gaps is None:
        return
    days = gaps["days"]
    yield SplitFinding(
        "gaps",
        "fine",
        f"From a user's last training rating to the first test rating there are {days['median']:,.1f} days in the "
        f"median, {days['q1']:,.1f} to {days['q3']:,.1f} for the middle half and {days['max']:,.1f} at the most; for "
        f"{gaps['negative']:,} of {gaps['users']:,} users the test begins earlier.",
    )


def _profiles(facts: Mapping[str, Any]) -> Iterator[SplitFinding]:
    for name in facts["parts"]:
        part = facts["parts"][name]
        sizes = part["profiles"]
        if sizes is not None:
            yield SplitFinding(
                "profiles",
                "fine",
                f"The {name} part has {part['ratings']:,} ratings of {part['users']:,} users and {part['items']:,} "
                f"items: {sizes['median']:,.0f} of a user in the median, {sizes['min']:,.0f} to {sizes['max']:,.0f}.",
            )


def _answers(facts: Mapping[str, Any]) -> Iterator[SplitFinding]:
    """Say what the split can and cannot answer."""
    parts, leakage, cold = facts["parts"], facts["leakage"], facts["cold"]
    can: list[str] = []
    cannot: list[str] = []
    if leakage is not None:
        clean = not leakage["before_training_ends"]
        (can if clean else cannot).append("how systems would have done at a moment in time, knowing only the past")
    (can if cold["users"] < parts["test"]["users"] else cannot).append("how well users with known ratings are served")
    (can if cold["users"] else cannot).append("what new users are recommended")
    (can if cold["items"] else cannot).append("whether new items are found")
    if parts["test"]["profiles"] is not None:
        several = parts["test"]["profiles"]["median"] > 1
        (can if several else cannot).append("how several liked items of a user are ranked among each other")
    choosing = "how to choose hyper-parameters without looking at the test part"
    (can if "validation" in parts else cannot).append(choosing)
    if can:
        yield SplitFinding("answers", "fine", f"It can answer {'; '.join(can)}.")
    if cannot:
        yield SplitFinding("answers", "fine", f"It cannot answer {'; '.join(cannot)}.")
