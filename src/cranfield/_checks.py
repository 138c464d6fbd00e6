"""Checks of settings, each with one line that says what is wrong and what to give instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Real

from cranfield._errors import SettingError
from cranfield._spelling import suggestion


def share(name: str, value: object) -> float:
    """Return ``value`` if it lies strictly between 0 and 1.

    Examples
    --------
    >>> share("train", 0.8)
    0.8
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise SettingError(f"{name}={value!r} is not a share; give a number between 0 and 1, such as {name}=0.2")
    return float(value)


def whole(name: str, value: object, at_least: int = 1) -> int:
    """Return ``value`` if it is a whole number, ``at_least`` or larger.

    Examples
    --------
    >>> whole("k", 5)
    5
    """
    number = int(value) if isinstance(value, Integral) or (isinstance(value, float) and value.is_integer()) else None
    if isinstance(value, bool) or number is None or number < at_least:
        raise SettingError(f"{name}={value!r} is not a whole number of at least {at_least}; give one")
    return number


def all_or_whole(name: str, value: object) -> str | int:
    """Return ``value`` if it is a whole number of at least 1, and ``"all"`` for that word and for None.

    Examples
    --------
    >>> all_or_whole("length", 5), all_or_whole("length", None)
    (5, 'all')
    """
    if value is None or (isinstance(value, str) and value == "all"):
        return "all"
    try:
        return whole(name, value)
    except SettingError:
        raise SettingError(f"{name}={value!r} is neither 'all' nor a whole number of at least 1") from None


def number(name: str, value: object) -> float:
    """Return ``value`` if it is a number (not NaN).

    Examples
    --------
    >>> number("threshold", 4)
    4.0
    """
    if isinstance(value, bool) or not isinstance(value, Real) or float(value) != float(value):
        raise SettingError(f"{name}={value!r} is not a number; give one, such as {name}=4")
    return float(value)


def flag(name: str, value: object) -> bool:
    """Return ``value`` if it is true or false.

    Examples
    --------
    >>> flag("exact", True)
    True
    """
    if not isinstance(value, bool):
        raise SettingError(f"{name}={value!r} is neither true nor false; give one of them")
    return value


def one_of(name: str, value: object, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``choices``.

    Examples
    --------
    >>> one_of("which", "last", ["random", "last"])
    'last'
    """
    choices = list(choices)
    if value not in choices:
        raise SettingError(f"{name}={value!r} is not one of {', '.join(choices)}{suggestion(str(value), choices)}")
    return str(value)


def not_renamed(name: str, value: object, renamed: Mapping[str, str]) -> None:
    """Answer a word that is written otherwise now with the new one.

    Examples
    --------
    >>> not_renamed("coverage", "common", {"common": "reduced"})
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: coverage='common' is now coverage='reduced'; write that instead
    """
    if isinstance(value, str) and value in renamed:
        raise SettingError(f"{name}={value!r} is now {name}={renamed[value]!r}; write that instead")
