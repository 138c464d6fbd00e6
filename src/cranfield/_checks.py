"""Checks of settings, each with one line that says what is wrong and what to give instead."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from types import NoneType
from typing import Any

import numpy as np

from cranfield._errors import SettingError, suggestion


def share(name: str, value: object) -> float:
    """Return ``value`` if it lies strictly between 0 and 1."""
    number = _number(value)
    if number is None or not 0 < number < 1:
        raise SettingError(f"{name}={value!r} is not a share; give a number between 0 and 1, such as {name}=0.2")
    return float(number)


MOST_DRAWS = 10_000_000
"""The largest number of random draws; more would take days."""


def whole(name: str, value: object, at_least: int = 1, at_most: float = math.inf) -> int:
    """Return ``value`` if it is a whole number, ``at_least`` or larger and not above ``at_most``."""
    number = _number(value)
    if number is None or not math.isfinite(number) or number != int(number) or number < at_least:
        raise SettingError(f"{name}={value!r} is not a whole number of at least {at_least}; give one")
    if number > at_most:
        raise SettingError(f"{name}={value!r} is too large; give at most {at_most:,}")
    return int(number)


def all_or_whole(name: str, value: object, at_least: int = 1) -> str | int:
    """Return ``value`` if it is a whole number of at least ``at_least``, and ``"all"`` for ``"all"`` and for None."""
    if value is None or (isinstance(value, str) and value == "all"):
        return "all"
    try:
        return whole(name, value, at_least=at_least)
    except SettingError:
        raise SettingError(f"{name}={value!r} is neither 'all' nor a whole number of at least {at_least}") from None


def number(name: str, value: object) -> float:
    """Return ``value`` if it is a number (not NaN)."""
    number = _number(value)
    if number is None:
        raise SettingError(f"{name}={value!r} is not a number; give one, such as {name}=4")
    return float(number)


def number_or_none(name: str, value: object) -> float | None:
    """Return ``value`` if it is a number (not NaN), or None."""
    return None if value is None else number(name, value)


def flag(name: str, value: object) -> bool:
    """Return ``value`` if it is true or false."""
    if not isinstance(value, bool | np.bool_):
        raise SettingError(f"{name}={value!r} is neither true nor false; give one of them")
    return bool(value)


def one_of(name: str, value: object, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``choices``."""
    choices = list(choices)
    if value not in choices:
        raise SettingError(f"{name}={value!r} is not one of {', '.join(choices)}{suggestion(str(value), choices)}")
    return str(value)


_SIZES = {"": 1, "b": 1} | {
    letters: base**power
    for power, prefix in enumerate("kmgt", start=1)
    for letters, base in ((f"{prefix}b", 1000), (f"{prefix}ib", 1024))
}


def size(text: str | int) -> int:
    """Return the number of bytes of a size such as ``"2 GiB"``."""
    form = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?) ?([a-z]*)", str(text).lower(), re.ASCII)
    if form is None or form[2] not in _SIZES or float(form[1]) == 0:
        raise SettingError(f"{text!r} is not a size; write bytes, or a size such as 500MB or 4GiB")
    return round(float(form[1]) * _SIZES[form[2]])


def _number(value: object) -> int | float | None:
    """Return a number, NumPy's included, as a Python number; None for anything else and for NaN."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    if isinstance(value, Integral):
        try:
            return int(value) if math.isfinite(value) else None
        except OverflowError:  # too large for a float
            return None
    return None if math.isnan(value) else float(value)


@dataclass(frozen=True)
class Limits:
    """The values that a parameter may take: its types, its words, and the range of its numbers."""

    kinds: tuple[type, ...] = ()  # any of bool, int, float, str and NoneType; if empty, every value is allowed
    choices: Collection[str] | None = None  # the words allowed, if not all; those registered later are, too
    low: float | None = None
    above: float | None = None  # exclusive
    high: float | None = None
    below: float | None = None  # exclusive
    finite: bool = True

    def check(self, name: str, value: Any, owner: str) -> Any:
        """Return the value as a built-in Python type; refuse one of the wrong type or out of range."""
        if not self.kinds or (value is None and NoneType in self.kinds):
            return value
        if str in self.kinds and isinstance(value, str) and (self.choices is None or value in self.choices):
            return value
        if bool in self.kinds and isinstance(value, bool | np.bool_):
            return bool(value)
        number = _number(value) if {int, float} & set(self.kinds) else None
        if number is None or (float not in self.kinds and (math.isinf(number) or number != int(number))):
            raise SettingError(f"{name}={value} of {owner} {self._refusal(value)}")
        self._check_range(f"{name}={value} of {owner}", number)
        return number if float in self.kinds else int(number)

    def _refusal(self, value: object) -> str:
        """Return the part of the message that says what a value of the wrong type is not."""
        words = {
            str: "text" if self.choices is None else f"one of {', '.join(self.choices)}",
            bool: "true or false",
            int: "a whole number",
            float: "a number",
        }
        if self.kinds == (bool,):
            return "is neither true nor false"
        if float in self.kinds:
            del words[int]
        kinds = [word for kind, word in words.items() if kind in self.kinds]
        return f"is not {' or '.join(kinds)}{suggestion(str(value), self.choices or ())}"

    def _check_range(self, stated: str, number: float) -> None:
        if self.finite and math.isinf(number):
            raise SettingError(f"{stated} is out of range; give a finite number")
        bounds = (
            (self.low, operator.ge, "at least"),
            (self.above, operator.gt, "above"),
            (self.high, operator.le, "at most"),
            (self.below, operator.lt, "below"),
        )
        for bound, holds, words in bounds:
            if bound is not None and not holds(number, bound):
                raise SettingError(f"{stated} is out of range; give a number {words} {bound:g}")


_SECONDS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,6})?) ?(s|min|m|h|d|w)", re.ASCII)


def duration(name: str, value: Any) -> int:
    """Return a duration, such as ``"7d"`` or a number of seconds, in whole seconds."""
    form = _DURATION.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if form is not None and (seconds := round(float(form[1]) * _SECONDS["min" if form[2] == "m" else form[2]])) >= 1:
        return seconds
    try:
        return whole(name, value)
    except SettingError:
        raise SettingError(
            f"{name}={value!r} is not a duration; write a number of s, min, h, d or w, such as {name}=7d, or seconds"
        ) from None
