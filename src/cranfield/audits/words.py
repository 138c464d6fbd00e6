"""The options of an audit as people call them: in a sentence, and beside the name of the decision."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from cranfield._decisions import in_one_form
from cranfield._errors import CranfieldError
from cranfield.experiments import DECISIONS


def option_words(decision: str, option: str, labels: Mapping[str, str] | None = None) -> str:
    """Return an option as part of a sentence: its label, the decision's phrase if it has one, otherwise both names.

    Examples
    --------
    >>> option_words("split", "random(train=0.5)"), option_words("cutoff", "10"), option_words("coverage", "full")
    ('a random 50 % of ratings as test', 'cutoff 10', 'coverage full')
    """
    if labels and option in labels:
        return labels[option]
    declared = DECISIONS.get(decision)
    phrase = None if declared is None else declared.metadata.get("phrase")
    if declared is not None and phrase is not None:
        for value in (option, *_number(option)):
            with suppress(CranfieldError):
                if words := phrase(in_one_form(declared, value)):
                    return str(words)
    return f"{decision} {option}"


def option_label(decision: str, option: str, labels: Mapping[str, str] | None = None) -> str:
    """Return an option beside the name of its decision, as in a table or a figure.

    Examples
    --------
    >>> option_label("split", "random(train=0.5)"), option_label("cutoff", "10"), option_label("threshold", "3")
    ('random 50 % of ratings', '10', '3')
    """
    if labels and option in labels:
        return labels[option]
    words = option_words(decision, option)
    if _number(option):
        return option
    return words.removeprefix(f"{decision} ").removeprefix("the ").removeprefix("a ").removesuffix(" as test")


def _number(option: str) -> list[float]:
    try:
        return [float(option)]
    except ValueError:
        return []
