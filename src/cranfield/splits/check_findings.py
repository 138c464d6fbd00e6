"""What the counts about a split mean, in sentences; each says whether something is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cranfield._numbers import count_text, percent_text
from cranfield.tables import day

FindingLevel = Literal["wrong", "attention", "fine"]
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
        ``wrong`` if the split should not be used as it is, ``attention`` if a reader must know it, else ``fine``.
    sentence
        What was found.
    """

    name: str
    level: FindingLevel
    sentence: str


def findings_of(facts: Mapping[str, Any], promise: Promise, *, cold_users: bool = False) -> list[SplitFinding]:
    """Return the findings, the most serious first; ``cold_users`` if the split is about users without training."""
    all_findings = [
        *_overlap(facts),
        *_repeated(facts),
        *_leakage(facts, promise),
        *_validation_leakage(facts, promise),
        *_cold(facts, cold_users),
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
            f"{count_text(number, '(user, item) pair')} {_are(number)} in both {names} "
            f"({percent_text(number / smaller)} of the smaller part).",
        )


def _repeated(facts: Mapping[str, Any]) -> Iterator[SplitFinding]:
    for name, number in facts["repeated"].items():
        if number:
            yield SplitFinding(
                "repeated pairs",
                "wrong",
                f"{count_text(number, 'row')} of the {name} part {'repeats' if number == 1 else 'repeat'} a "
                "(user, item) pair of that part; decide which row counts.",
            )


def _leakage(facts: Mapping[str, Any], promise: Promise) -> Iterator[SplitFinding]:
    leakage, test = facts["leakage"], facts["parts"]["test"]
    if leakage is None:
        level: FindingLevel = "attention" if promise == "any" else "wrong"
        yield SplitFinding("leakage", level, "The parts have no times, so leakage in time cannot be checked.")
        return
    yield from _own(leakage, "test", test["ratings"], promise)
    if leakage["before_training_ends"]:
        older, newer = leakage["before_training_ends"], leakage["training_after_test_begins"]
        yield SplitFinding(
            "leakage",
            "wrong" if promise == "global" else "attention",
            f"{_share(older, 'test rating', test['ratings'])} {_are(older)} older than the newest training rating, and "
            f"{_share(newer, 'training rating', facts['parts']['train']['ratings'])} newer than the oldest test rating "
            f"({day(test['oldest'])}): training contains the future of other users.",
        )
    else:
        yield SplitFinding(
            "leakage",
            "fine",
            f"No test rating is older than any training rating; the test part begins at {day(test['oldest'])}.",
        )
    if leakage["items_seen_later"]:
        yield SplitFinding(
            "leakage",
            "wrong" if promise == "global" else "attention",
            f"{count_text(leakage['items_seen_later'], 'test rating')} of "
            f"{count_text(leakage['items_seen_later_items'], 'item')} came before the item's first training rating: at "
            "that time, training held nothing about the item.",
        )


def _own(leakage: Mapping[str, Any], part: str, ratings: int, promise: Promise) -> Iterator[SplitFinding]:
    """Say how many ratings of a part are older than training ratings of the same user."""
    if leakage["own"]:
        yield SplitFinding(
            "leakage",
            "attention" if promise == "any" else "wrong",
            f"{_share(leakage['own'], f'{part} rating', ratings)} of {count_text(leakage['own_users'], 'user')} "
            f"{_are(leakage['own'])} older than a training rating of the same user.",
        )


def _validation_leakage(facts: Mapping[str, Any], promise: Promise) -> Iterator[SplitFinding]:
    leakage = facts["validation_leakage"]
    if leakage is None:
        return
    validation, test = facts["parts"]["validation"], facts["parts"]["test"]
    yield from _own(leakage, "validation", validation["ratings"], promise)
    # Only a split along the global timeline promises the other two.
    if promise != "global":
        return
    if leakage["before_training_ends"]:
        number = leakage["before_training_ends"]
        yield SplitFinding(
            "leakage",
            "wrong",
            f"{_share(number, 'validation rating', validation['ratings'])} {_are(number)} older than the newest "
            "training rating.",
        )
    if leakage["test_before_it_ends"]:
        number = leakage["test_before_it_ends"]
        yield SplitFinding(
            "leakage",
            "wrong",
            f"{_share(number, 'test rating', test['ratings'])} {_are(number)} older than the newest validation rating: "
            "hyper-parameters are chosen with knowledge of the future.",
        )


def _share(number: int, thing: str, of: int) -> str:
    return f"{count_text(number, thing)} ({percent_text(number / of)})"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _cold(facts: Mapping[str, Any], meant: bool) -> Iterator[SplitFinding]:
    cold, test = facts["cold"], facts["parts"]["test"]
    if not cold["users"] and not cold["items"]:
        yield SplitFinding("cold start", "fine", "All users and items of the test part have training ratings.")
        return
    nobody = cold["users"] == test["users"] and not meant
    yield SplitFinding(
        "cold start",
        "wrong" if nobody else "attention",
        f"{cold['users']:,} of {count_text(test['users'], 'user')} and {cold['items']:,} of "
        f"{count_text(test['items'], 'item')} of the test part have no training rating "
        f"({count_text(cold['ratings'], 'test rating')}, {percent_text(cold['ratings'] / test['ratings'])})"
        + ("; no test user is known, so the parts may write the ids differently." if nobody else "."),
    )


_WORDS = {
    "ratings": ("ratings", "the mean rating"),
    "popularity": ("item popularity", "the mean number of training ratings of the rated item"),
    "activity": ("user activity", "the mean number of training ratings of the user"),
}


def _shift(facts: Mapping[str, Any]) -> Iterator[SplitFinding]:
    for name, (what, of_what) in _WORDS.items():
        change = facts["shift"][name]
        p_value = "p < 0.0001" if change["p"] < 0.0001 else f"p = {change['p']:.3g}"
        size = "large" if change["D"] >= _LARGE else "moderate" if change["D"] >= _MODERATE else "small"
        yield SplitFinding(
            f"shift of {what}",
            "fine" if size == "small" else "attention",
            f"The shift of {what} from training to test is {size} (Kolmogorov's D = {change['D']:.3f}, "
            f"{p_value}): {of_what} goes from {change['train']:,.4g} to {change['test']:,.4g} "
            f"(d = {change['d']:+.2f}).",
        )


def _gaps(facts: Mapping[str, Any]) -> Iterator[SplitFinding]:
    gaps = facts["gaps"]
    if gaps is None:
        return
    days = {name: decimals_text(value) for name, value in gaps["days"].items()}
    yield SplitFinding(
        "gaps",
        "fine",
        f"From a user's last training rating to the first test rating: {days['median']} days (median), {days['q1']} to "
        f"{days['q3']} for the middle half, at most {days['max']}; for {gaps['negative']:,} of "
        f"{count_text(gaps['users'], 'user')} the test part begins before training ends.",
    )


def decimals_text(days: float) -> str:
    """Return days with one decimal, and never -0.0.

    Examples
    --------
    >>> decimals_text(-0.01), decimals_text(1234.56)
    ('0.0', '1,234.6')
    """
    return f"{round(days, 1) + 0.0:,.1f}"


def _profiles(facts: Mapping[str, Any]) -> Iterator[SplitFinding]:
    for name, part in facts["parts"].items():
        sizes = part["profiles"]
        if sizes is not None:
            yield SplitFinding(
                "profiles",
                "fine",
                f"The {name} part has {count_text(part['ratings'], 'rating')} of {count_text(part['users'], 'user')} "
                f"and {count_text(part['items'], 'item')}: {sizes['median']:,.0f} per user (median), from "
                f"{sizes['min']:,.0f} to {sizes['max']:,.0f}.",
            )


def _answers(facts: Mapping[str, Any]) -> Iterator[SplitFinding]:
    """Say what the split can and cannot show."""
    parts, leakage, cold = facts["parts"], facts["leakage"], facts["cold"]
    test = parts["test"]
    questions: list[tuple[str, bool]] = []
    if leakage is not None:
        past = "how systems would have done at a moment in time, knowing only the past"
        questions.append((past, not leakage["before_training_ends"]))
    if "profiles" in parts:
        questions.append(("how well users who are not in training are served from a part of their profile", True))
    else:
        known = test["users"] - cold["users"]
        questions.append((f"how well users with training ratings are served ({known:,} in the test part)", known > 0))
        questions.append((f"what new users are recommended ({cold['users']:,} in the test part)", cold["users"] > 0))
    questions.append((f"whether new items are found ({cold['items']:,} in the test part)", cold["items"] > 0))
    if test["profiles"] is not None:
        questions.append(("how several test items of a user are ranked", test["profiles"]["median"] > 1))
    questions.append(("how to choose hyper-parameters without looking at the test part", "validation" in parts))
    for verb, answered in (("can", True), ("cannot", False)):
        about = [question for question, is_answered in questions if is_answered == answered]
        if about:
            yield SplitFinding("answers", "fine", f"It {verb} show {'; '.join(about)}.")
