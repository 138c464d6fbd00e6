"""Decisions in words, as a paper would say them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cranfield._spelling import Spelling, parse

if TYPE_CHECKING:
    from cranfield.experiments.decisions import Decisions

_RATIOS = {"random": "random", "per_user": "random per user", "temporal": "temporal", "percentiles": "percentile"}
_GAINS = {"exp": "exponential", "binary": "binary"}
_AVERAGES = {
    "mean": "plain mean",
    "median": "median",
    "weighted(by=judged)": "mean weighted by rated items",
    "weighted(by=relevant)": "mean weighted by relevant items",
}


def phrase(decisions: Decisions) -> str:
    """Return the decisions as a phrase: split, lists, metrics and average, then what else is not as in the paper.

    Decisions that differ never have the same phrase.
    """
    said = [
        *(f"{one} ratings" for one in decisions.filters),
        split_phrase(decisions.split),
        *_lists(decisions),
        listed([metric_phrase(one) for one in decisions.metrics]),
        average_phrase(decisions.average),
        *_others(decisions),
    ]
    return ", ".join(said)


def split_phrase(split: str) -> str:
    """Return a split in words, where it has some.

    Examples
    --------
    >>> split_phrase("random(train=0.8)"), split_phrase("k_fold(k=5)"), split_phrase("leave_out(l=1, which=last)")
    ('random 80/20', '5-fold cross-validation', 'leave_out(l=1, which=last)')
    """
    spelling = parse(split)
    match (spelling.name, spelling.parameters):
        case ("k_fold", (("k", k),)):
            return f"{k}-fold cross-validation"
        case ("leave_out", (("l", left),)):
            return f"leave-{left}-out"
        case ("given", ()):
            return "given split"
        case (name, (("train", float(share)),)) if name in _RATIOS and share == round(share, 2):
            return f"{_RATIOS[name]} {round(100 * share)}/{round(100 - 100 * share)}"
    return split


def metric_phrase(metric: str) -> str:
    """Return a metric in words.

    Examples
    --------
    >>> metric_phrase("nDCG(gain=exp)@10"), metric_phrase("RBP(p=0.8)")
    ('nDCG@10 with exponential gain', 'RBP(p=0.8)')
    """
    spelling = parse(metric)
    if len(spelling.parameters) == 1 and spelling.parameters[0][0] == "gain":
        gain = spelling.parameters[0][1]
        if gain in _GAINS:
            return f"{Spelling(spelling.name, (), spelling.cutoff)} with {_GAINS[gain]} gain"
    return metric


def _lists(decisions: Decisions) -> Iterator[str]:
    yield f"{decisions.lists} lists"
    if decisions.one_relevant:
        yield "one relevant item a list"
    if decisions.nonrelevant != "all":
        yield f"{decisions.nonrelevant} non-relevant items drawn"
    if decisions.candidates != "all":
        yield {"test": "test items only", "group": "items of the same popularity group only"}[decisions.candidates]
    if decisions.keep_seen:
        yield "training items kept"
    if decisions.length != 100:
        yield f"lists of {decisions.length}"


def _others(decisions: Decisions) -> Iterator[str]:
    if decisions.threshold != 4:
        yield f"relevant from {decisions.threshold!r}".removesuffix(".0")
    if decisions.undefined != "zero":
        yield "undefined values left out"
    if decisions.min_ratings != 1:
        yield "all users" if decisions.min_ratings == 0 else f"users with {decisions.min_ratings} training ratings"
    if decisions.sample != "all":
        yield f"{decisions.sample!r} of the users drawn"
    if decisions.fill != "none":
        yield f"gaps filled by {decisions.fill}"
    if decisions.coverage != "full":
        yield "covered users only"
    if decisions.test != "student":
        yield f"tested by {decisions.test}"
    if decisions.correction != "holm":
        yield f"correction {decisions.correction}"
    if decisions.alpha != 0.05:
        yield f"alpha {decisions.alpha!r}"
    if decisions.baseline != "none":
        yield f"against {decisions.baseline}"


def average_phrase(average: str) -> str:
    """Return an average in words, where it has some.

    Examples
    --------
    >>> average_phrase("mean"), average_phrase("trimmed(share=0.1)")
    ('plain mean', 'trimmed(share=0.1)')
    """
    return _AVERAGES.get(average, average)


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
