"""Decision A2: what to learn from and what to judge by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cranfield import _checks as check
from cranfield._decisions import Decided, decision
from cranfield._errors import SettingError
from cranfield._registry import Registry
from cranfield._spelling import parse
from cranfield.splits.methods import registry

PREDEFINED: Registry[Any] = Registry("split")
"""The split of data that come as a training and a test part, beside those of `cranfield.splits.registry`."""

_RATIOS = {"random": "random", "per_user": "random per user", "temporal": "temporal", "percentiles": "percentile"}


@PREDEFINED.register
def predefined(_: Any, overlap: str = "error") -> str:
    """Return what to do with pairs that are in both parts; see `cranfield.splits.predefined`."""
    return check.one_of("overlap", overlap, ("error", "test", "train"))


def _split(name: str, value: Any) -> str:
    """Return a split in the one form of its spelling."""
    known = parse(value).name
    if known == "given":
        raise SettingError(f"{name}='given' is now '{value.replace('given', 'predefined', 1)}'; write that instead")
    try:
        if known == "predefined":
            PREDEFINED.call(value, None)
            return str(PREDEFINED.spelling(value))
        return str(registry.spelling(value, besides=["predefined"]))
    except SettingError as error:
        raise SettingError(f"{name}={value!r}: {error}") from error


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
        case ("predefined", ()):
            return "predefined split"
        case (name, (("train", float(share)),)) if name in _RATIOS and share == round(share, 2):
            return f"{_RATIOS[name]} {round(100 * share)}/{round(100 - 100 * share)}"
    return split


@dataclass(frozen=True)
class Splitting(Decided):
    """How ratings are divided: a split as it is spelled, or ``predefined`` for data that come divided.

    Examples
    --------
    >>> Splitting("predefined(overlap=test)").overlap, Splitting().overlap
    ('test', None)
    """

    split: Any = decision(
        "A2",
        "random(train=0.8)",
        "the split into training and test, or 'predefined' for data that come divided",
        check=_split,
        phrase=split_phrase,
    )

    @property
    def overlap(self) -> str | None:
        """What becomes of pairs that are in both parts of data that come divided; None if they are split here."""
        return str(PREDEFINED.call(self.split, None)) if parse(self.split).name == "predefined" else None
