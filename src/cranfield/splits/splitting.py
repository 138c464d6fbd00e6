"""Decision A2: what to train on and what to test on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cranfield import _checks as check
from cranfield._decisions import Decided, decision
from cranfield._errors import SettingError
from cranfield._registry import Registry, parse
from cranfield.splits.split import registry

PREDEFINED: Registry[Any] = Registry("split")
"""The split of data that come as a training and a test part; all others are in `cranfield.splits.registry`."""

_FOLDS = {"k_fold": "k", "rolling": "windows"}
"""The methods that make several splits, each with the parameter that sets their number."""

_RATIOS = {"random": "random", "per_user": "random per user", "temporal": "temporal", "percentiles": "percentile"}


@PREDEFINED.register
def predefined(_: Any, overlap: str = "error") -> str:
    """Return what to do with pairs that are in both parts; see `cranfield.splits.predefined`."""
    return check.one_of("overlap", overlap, ("error", "test", "train"))


def _split(name: str, value: Any) -> str:
    """Return a split in its standard spelling."""
    known = parse(value).name
    try:
        if known == "predefined":
            PREDEFINED.call(value, None)
            return str(PREDEFINED.spelling(value))
        return str(registry.spelling(value, besides=["predefined"]))
    except SettingError as error:
        raise SettingError(f"{name}={value!r}: {error}") from error


def split_phrase(split: str) -> str:
    """Return a split in words, if it has any.

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
        case ("rolling", parameters) if "windows" in dict(parameters) and "horizon" in dict(parameters):
            stated = dict(parameters)
            further = ", ".join(f"{name}={value}" for name, value in parameters if name not in ("windows", "horizon"))
            return f"{stated['windows']} rolling windows of {stated['horizon']}" + (f" ({further})" if further else "")
        case ("predefined", ()):
            return "predefined split"
        case (name, (("train", float(share)),)) if name in _RATIOS and share == round(share, 2):
            return f"{_RATIOS[name]} {round(100 * share)}/{round(100 - 100 * share)}"
    return split


@dataclass(frozen=True)
class Splitting(Decided):
    """How ratings are divided: the spelling of a split, or ``predefined`` for data that are already divided.

    Examples
    --------
    >>> Splitting("predefined(overlap=test)").overlap, Splitting().overlap
    ('test', None)
    """

    split: Any = decision(
        "A2",
        "random(train=0.8)",
        "the split into training and test, or 'predefined' for data that are already divided",
        check=_split,
        phrase=split_phrase,
    )

    @property
    def apart(self) -> tuple[str, ...]:
        """The segments that the split implies: warm and cold users or items, if it counts them apart.

        Examples
        --------
        >>> Splitting("temporal(new_users=apart)").apart, Splitting("cold_items(left=5, warm=0.2)").apart
        (('cold_users',), ('cold_items(most=5)',))
        """
        spelling = parse(self.split)
        stated = dict(spelling.parameters)
        if spelling.name in ("cold_users", "cold_items"):
            left = stated.get("left", 0)
            named = spelling.name if left == 0 else f"{spelling.name}(most={left})"
            return (named,) if stated.get("warm", 0) else ()
        return tuple(f"cold_{kind}" for kind in ("users", "items") if stated.get(f"new_{kind}") == "apart")

    @property
    def folds(self) -> int:
        """The number of splits it makes.

        Examples
        --------
        >>> Splitting("k_fold").folds, Splitting("rolling(windows=3)").folds, Splitting().folds
        (5, 3, 1)
        """
        spelling = parse(self.split)
        counted_by = _FOLDS.get(spelling.name)
        if counted_by is None:
            return 1
        entry = registry.find(spelling.name)
        number = dict(spelling.parameters).get(counted_by, entry.parameters[counted_by])
        return check.whole(counted_by, number, at_least=2 if spelling.name == "k_fold" else 1)

    @property
    def has_windows(self) -> bool:
        """Whether it makes several splits that follow each other in time."""
        return parse(self.split).name == "rolling" and self.folds > 1

    @property
    def overlap(self) -> str | None:
        """What to do with pairs in both parts of data that are already divided; None if they are split here."""
        return str(PREDEFINED.call(self.split, None)) if parse(self.split).name == "predefined" else None
