"""How metrics and systems are spelled: ``name(parameter=value, ...)@cutoff``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cranfield._errors import SettingError

_FORM = re.compile(r"^\s*(?P<name>[^\s()@,]+)\s*(?:\((?P<parameters>[^()]*)\))?\s*(?:@\s*(?P<cutoff>[^@]+?))?\s*$")
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "none": None, "inf": float("inf")}


@dataclass(frozen=True)
class Spelling:
    """A parsed name: ``nDCG(gain=exp)@100`` is ``Spelling("nDCG", (("gain", "exp"),), 100)``."""

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()
    cutoff: int | None = None

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={_written(value)}" for key, value in self.parameters)
        return self.name + (f"({inside})" if inside else "") + ("" if self.cutoff is None else f"@{self.cutoff}")


def parse(text: str) -> Spelling:
    """Read a name with optional parameters and cut-off.

    Examples
    --------
    >>> parse("nDCG(gain=exp)@100")
    Spelling(name='nDCG', parameters=(('gain', 'exp'),), cutoff=100)
    >>> print(parse("knn( k=100,similarity = cosine )"))
    knn(k=100, similarity=cosine)
    """
    form = _FORM.match(text) if isinstance(text, str) else None
    if form is None:
        raise SettingError(f"{text!r} cannot be read; write name, name@10 or name(parameter=value)@10")
    parameters: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in (form["parameters"] or "").split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise SettingError(f"{part!r} in {text!r} cannot be read; write parameter=value")
        if key.strip() in parameters:
            raise SettingError(f"{key.strip()!r} is given twice in {text!r}; give it once")
        parameters[key.strip()] = _value(value.strip())
    cutoff = form["cutoff"]
    if cutoff is not None and not (cutoff.isascii() and cutoff.isdigit() and len(cutoff) < 20 and int(cutoff) > 0):
        raise SettingError(f"the cut-off {cutoff!r} in {text!r} is not a positive whole number; write @10")
    return Spelling(form["name"], tuple(parameters.items()), None if cutoff is None else int(cutoff))


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip("'\"")


def _written(value: Any) -> str:
    if value is True or value is False or value is None:
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the known name most like ``name``, or a list of all of them.

    It is the end of a message: anything else goes before it.

    Examples
    --------
    >>> nearest("ndgc", ["nDCG", "P", "Recall"])
    "; did you mean 'nDCG'?"
    """
    known = list(known)
    return suggestion(name, known) or "; known: " + ", ".join(sorted(known, key=str.lower))


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the known name most like ``name``, or nothing if none is like it.

    Examples
    --------
    >>> suggestion("ndgc", ["nDCG", "NDCL", "Recall"]), suggestion("zzz", ["nDCG", "P", "Recall"])
    ("; did you mean 'nDCG'?", '')
    """
    by_lower = {word.lower(): word for word in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)
    # Swapped letters are the likeliest typo: nDGC means nDCG rather than NDCL.
    close.sort(key=lambda word: sorted(word) != sorted(name.lower()))
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""
