"""Numbers as readable text; a dash for a missing one."""

from __future__ import annotations

import math

DASH = "–"


def number_text(value: float | None, digits: int = 4, sign: str = "") -> str:
    """Return a number with ``digits`` decimals, and with its sign if ``sign`` is ``"+"``.

    Examples
    --------
    >>> number_text(0.12345), number_text(float("nan")), number_text(None), number_text(0.5, 2, "+")
    ('0.1235', '–', '–', '+0.50')
    >>> number_text(-0.00001)
    '0.0000'
    """
    return DASH if value is None or math.isnan(value) else f"{rounded(value, digits):{sign}.{digits}f}"


def percent_text(value: float | None, unit: str = "%", sign: str = "") -> str:
    """Return a share as a percentage with one decimal, and with its sign if ``sign`` is ``"+"``.

    Examples
    --------
    >>> percent_text(0.1234), percent_text(0.1234, " %"), percent_text(None)
    ('12.3%', '12.3 %', '–')
    """
    return DASH if value is None or math.isnan(value) else f"{rounded(100 * value, 1):{sign}.1f}{unit}"


def rounded(value: float, digits: int) -> float:
    """Return a number rounded to ``digits`` decimals, and never -0.

    Examples
    --------
    >>> rounded(-0.04, 1), rounded(-0.06, 1)
    (0.0, -0.1)
    """
    return round(value, digits) + 0.0


def count_text(number: int, thing: str) -> str:
    """Return a count and its noun, in the plural if needed.

    Examples
    --------
    >>> count_text(1, "user"), count_text(2000, "user")
    ('1 user', '2,000 users')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def amount_text(value: float) -> str:
    """Return a number with thousands separators, and at most three decimals unless it is tiny.

    Examples
    --------
    >>> amount_text(12345.0), amount_text(0.25), amount_text(0.00123456)
    ('12,345', '0.25', '0.00123')
    """
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.3f}".rstrip("0") if abs(value) >= 0.01 else f"{value:.3g}"
