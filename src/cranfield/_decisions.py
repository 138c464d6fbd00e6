"""Decisions are declared where they are taken: each is a field of a frozen dataclass next to the function that uses it.

A group of decisions is such a class, derived from `DecisionGroup`. A field made by `decision` holds all about the
decision: its letter in the paper, its default, what it decides, the words allowed, how a value is checked, and how it
reads in a phrase. The experiment file, its schema, the table in the docs and the command-line options are derived from
the fields, so a new decision is one field in one file.

Examples
--------
>>> from cranfield import _checks as check
>>> @dataclass(frozen=True)
... class Serving(DecisionGroup):
...     users: str = decision("B1", "all", "who is served", choices=("all", "active"))
...     least: int = decision("B1", 1, "the fewest ratings of a user", check=check.whole)
>>> Serving(least=5.0).with_(users="active").as_dict()
{'users': 'active', 'least': 5}
>>> Serving(users="activ")
Traceback (most recent call last):
...
cranfield._errors.SettingError: users='activ' is not one of all, active; did you mean 'active'?
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from functools import partial
from typing import Any, Self, TypeVar

from cranfield import _checks as check
from cranfield._errors import SettingError, nearest

Check = Callable[[str, Any], Any]
"""Takes the name and the value of a decision; returns the value in standard form, or raises a `SettingError`."""


def decision(
    letter: str,  # in Cañamares, Castells and Moffat (2020): "B1", "C1", ...
    default: Any,  # the same for commands, functions and experiments; in the form that `check` returns
    says: str,  # what it decides, for files and tables
    *,
    choices: Sequence[str] = (),  # the words allowed, if it is a word
    check: Check | None = None,  # brings every allowed value into one form and refuses the others
    phrase: Callable[[Any], str | None] | None = None,  # None if a value need not be said; others read differently
    help: str | None = None,  # the help text of the command-line option, if it differs from `says`
) -> Any:
    """Declare a decision as a field of a group."""
    about = {"letter": letter, "says": says, "choices": tuple(choices), "check": check, "phrase": phrase}
    return field(default=default, metadata={**about, "help": help or says})


def unless(usual: Any, template: str, words: Mapping[Any, str] | None = None) -> Callable[[Any], str | None]:
    """Return a function that says a value: None for the usual one, its entry in ``words``, or the template."""

    def said(value: Any) -> str | None:
        if value == usual and type(value) is type(usual):
            return None
        if words is not None and value in words:
            return words[value]
        return template.format(value)

    return said


def checked_field(default: Any, check: Check) -> Any:
    """Declare a field for a decision that belongs to another group but that this group needs as well."""
    return field(default=default, metadata={"check": check})


def in_one_form(declared: Field[Any], value: Any) -> Any:
    """Return the value of a decision in its standard form, or raise an error that says what is wrong."""
    if declared.metadata.get("choices"):
        value = check.one_of(declared.name, value, declared.metadata["choices"])
    if declared.metadata.get("check"):
        value = declared.metadata["check"](declared.name, value)
    return value


@dataclass(frozen=True)
class DecisionGroup:
    """The base of a group of decisions: a frozen dataclass that brings each of its fields into standard form.

    A group can override ``_check_together`` to refuse values that contradict each other.
    """

    def __post_init__(self) -> None:
        for declared in fields(self):
            object.__setattr__(self, declared.name, in_one_form(declared, getattr(self, declared.name)))
        self._check_together()

    def _check_together(self) -> None:
        """Refuse decisions that contradict each other."""

    @classmethod
    def decisions(cls) -> dict[str, Field[Any]]:
        """Return the decisions that the group declares, by name, without parameters."""
        return {declared.name: declared for declared in fields(cls) if "letter" in declared.metadata}

    def as_dict(self) -> dict[str, Any]:
        """Return the values by name, with lists instead of tuples."""
        values = {declared.name: getattr(self, declared.name) for declared in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def with_(self, **changes: Any) -> Self:
        """Return a copy with some decisions changed."""
        known = [declared.name for declared in fields(self)]
        for name in changes:
            if name not in known:
                raise SettingError(f"there is no decision {name!r}{nearest(name, known)}")
        return replace(self, **changes)


DecoratedFunction = TypeVar("DecoratedFunction", bound=Callable[..., Any])
First = TypeVar("First", bound=DecisionGroup)
Second = TypeVar("Second", bound=DecisionGroup)


def takes_decisions(*groups: type[DecisionGroup], **defaults: Any) -> Callable[[DecoratedFunction], DecoratedFunction]:
    """Show the decisions of groups as keyword arguments of a function that takes them as ``**decisions``.

    They appear in its signature, and replace ``{decisions}`` in its docstring; ``defaults`` differ from the group's.
    """

    def show(function: DecoratedFunction) -> DecoratedFunction:
        signature = inspect.signature(function)
        parameters = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        declared = {declaration.name: declaration for group in groups for declaration in fields(group)}
        taken = {name: declaration for name, declaration in declared.items() if name not in signature.parameters}
        keyword = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
        keywords = [
            keyword(name, default=defaults.get(name, declaration.default), annotation=declaration.type)
            for name, declaration in taken.items()
        ]
        function.__signature__ = signature.replace(parameters=[*parameters, *keywords])  # type: ignore[attr-defined]
        about = {name: declaration.metadata for name, declaration in taken.items()}
        lines = [f"{name}\n    {of['letter']}, {of['says']}." for name, of in about.items() if "letter" in of]
        # Python 3.13 strips the indentation of docstrings, older versions keep it.
        function.__doc__ = inspect.cleandoc(function.__doc__ or "").replace("{decisions}", "\n".join(lines))
        return function

    return show


def of_groups(
    groups: tuple[type[First], type[Second]], given: Mapping[str, Any], function: str
) -> tuple[First, Second]:
    """Split the decisions given to a function into two groups; a name of neither is refused as Python does."""
    known = [{declared.name for declared in fields(group)} for group in groups]
    for name in given:
        if not any(name in names for names in known):
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    first, second = ({name: given[name] for name in given if name in names} for names in known)
    return groups[0](**first), groups[1](**second)
