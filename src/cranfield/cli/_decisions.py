"""Command-line options that are decisions, derived from the groups that declare them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import Field
from typing import Any

import click

from cranfield._decisions import Decided
from cranfield._errors import SettingError
from cranfield.cli._group import Command


class Decision(click.ParamType):  # type: ignore[type-arg]  # takes no parameter before Click 8.4
    """A value of a decision: a number if the decision takes numbers, else text."""

    name = "value"

    def __init__(self, declared: Field[Any]) -> None:
        self._declared = declared

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value in the decision's standard form."""
        if not isinstance(value, str):
            return value
        readings: list[Any] = [value]
        for kind in (float, int):
            with suppress(ValueError):
                readings.insert(0, kind(value))
        mistakes = []
        for reading in readings:
            try:
                return self._declared.metadata["check"](self._declared.name, reading)
            except SettingError as error:
                mistakes.append(str(error))
        raise click.BadParameter(mistakes[0], ctx, param)


def decision_option(declared: Field[Any], option: str = "", **changes: Any) -> Callable[[Command], Command]:
    """Make the option of a decision, with its name, default, words and help; the other arguments override them."""
    options: dict[str, Any] = {"default": declared.default, "show_default": True, "help": _sentence(declared)}
    if isinstance(declared.default, bool):
        options |= {"is_flag": True, "show_default": False}
    elif declared.metadata["choices"]:
        options["type"] = click.Choice(declared.metadata["choices"])
    elif declared.metadata["check"]:
        options["type"] = Decision(declared)
    name = option or declared.name.replace("_", "-")
    return click.option(f"--{name}", declared.name, **{**options, **changes})


def _sentence(declared: Field[Any]) -> str:
    """Return the help text of a decision as a sentence."""
    text: str = declared.metadata["help"]
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def decision_options(group: type[Decided], **changes: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Give a command an option for each decision of a group; ``changes`` override parts of them, by decision.

    Examples
    --------
    >>> from cranfield.rankings import Ranking
    >>> @click.command()
    ... @decision_options(Ranking, length={"default": 10})
    ... def command(**decisions):
    ...     pass
    >>> options = {option.name: option for option in command.params}
    >>> lists = options["lists"]
    >>> lists.opts, list(lists.type.choices), lists.default, options["length"].default
    (['--lists'], ['full', 'condensed'], 'full', 10)
    """

    def add(command: Command) -> Command:
        for name, declared in reversed(group.decisions().items()):
            command = decision_option(declared, **changes.get(name, {}))(command)
        return command

    return add
