"""Shares, intervals and options of an audit as text for sentences, tables and pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from cranfield._decisions import in_one_form
from cranfield._errors import CranfieldError
from cranfield._numbers import DASH, count_text
from cranfield.experiments import DECISIONS


def share_text(share: float | None, *, short: bool = False) -> str:
    """Return a share in whole per cent; 0 % and 100 % are only used for exact values. ``short`` is for tables.

    Examples
    --------
    >>> share_text(0.494), share_text(0.001), share_text(0.999), share_text(1.0), share_text(None)
    ('49 %', 'under 1 %', 'over 99 %', '100 %', '–')
    >>> share_text(0.001, short=True)
    '<1 %'
    """
    if share is None or share != share:
        return DASH
    if 0 < share < 0.005:
        return "<1 %" if short else "under 1 %"
    if 0.995 < share < 1 - 1e-9:
        return ">99 %" if short else "over 99 %"
    return f"{abs(100 * share):.0f} %" if abs(share) < 0.005 else f"{100 * share:.0f} %"


def interval_text(share: float, lower: float | None, upper: float | None, *, short: bool = False) -> str:
    """Return a share with its interval, if it has one, in the format of `share_text`.

    Examples
    --------
    >>> interval_text(0.5, 0.42, 0.61), interval_text(0.5, float("nan"), float("nan"))
    ('50 % [42 %, 61 %]', '50 %')
    """
    if lower is None or upper is None or lower != lower:
        return share_text(share, short=short)
    low, high = (share_text(end, short=short) for end in (lower, upper))
    return f"{share_text(share, short=short)} [{low}, {high}]"


def option_words(decision: str, option: str) -> str:
    """Return an option as part of a sentence: the decision's phrase if it has one, otherwise both names.

    Examples
    --------
    >>> option_words("split", "random(train=0.5)"), option_words("cutoff", "10"), option_words("coverage", "full")
    ('random 50/50', 'cutoff 10', 'coverage full')
    """
    declared = DECISIONS.get(decision)
    phrase = None if declared is None else declared.metadata.get("phrase")
    for value in (option, _number(option)):
        if declared is None or phrase is None or value is None:
            continue
        with suppress(CranfieldError):
            if words := phrase(in_one_form(declared, value)):
                return str(words)
    return f"{decision} {option}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def left_out_text(reasons: Sequence[str]) -> str:
    """Return how many combinations are left out, and why.

    Examples
    --------
    >>> left_out_text(["too short", "too short", "nobody is served"])
    '3 combinations are left out (2: too short; 1: nobody is served).'
    """
    counts = "; ".join(f"{count:,}: {reason}" for reason, count in Counter(reasons).items())
    return f"{count_text(len(reasons), 'combination')} {'is' if len(reasons) == 1 else 'are'} left out ({counts})."
