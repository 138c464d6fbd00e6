"""Options of the command line that are decisions: declared in their groups, and derived from there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from cranfield._decisions import Decided
from cranfield._errors import SettingError
from cranfield.cli._group import Command


class NumberOrAll(click.ParamType[Any]):
    """A whole number, or ``all``; with ``shares`` also a share."""

    name = "number"

    def __init__(self, shares: bool = False) -> None:
        self._kinds = (int, float) if shares else (int,)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float | str:
        """Return the number, or ``"all"``."""
        if value == "all":
            return "all"
        for kind in self._kinds:
            with suppress(ValueError):
                return kind(value)
        raise click.BadParameter(f"{value!r} is neither a number nor 'all'", ctx, param)


def decision_option(group: type[Decided], name: str, **options: Any) -> Callable[[Command], Command]:
    """Make the option of a decision, with its default, its words and its help; ``options`` replace what differs here.

    Examples
    --------
    >>> from cranfield.rankings import Ranking
    >>> @click.command()
    ... @decision_option(Ranking, "lists")
    ... def command(lists):
    ...     pass
    >>> command.params[0].opts, list(command.params[0].type.choices), command.params[0].default
    (['--lists'], ['full', 'condensed'], 'full')
    """
    declared = group.decisions()[name]
    usual = {"default": declared.default, "show_default": True, "help": declared.metadata["help"]}
    if declared.metadata["choices"]:
        usual["type"] = click.Choice(declared.metadata["choices"])
    return click.option(f"--{name.replace('_', '-')}", **{**usual, **options})


def old_word(name: str, now: str, **options: Any) -> Callable[[Command], Command]:
    """Answer an option that has another name now with that name."""

    def refuse(_context: click.Context, _option: click.Parameter, value: Any) -> None:
        if value not in (None, False):
            raise SettingError(f"{name} is now {now}; write that instead")

    return click.option(name, hidden=True, expose_value=False, callback=refuse, **options)
