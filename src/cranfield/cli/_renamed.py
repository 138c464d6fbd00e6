"""Options and words that were renamed: an error message gives the new name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def renamed_option(old: str, new: str, *, is_flag: bool = False) -> Callable[[Command], Command]:
    """Give a command an old option that only says what replaces it."""

    def refuse(_: click.Context, __: click.Parameter, value: Any) -> None:
        if value:
            raise click.UsageError(f"{old} is now {new}; write that instead")

    return click.option(old, is_flag=is_flag, hidden=True, expose_value=False, callback=refuse)


class Choice(click.Choice[str]):
    """A choice of words, some of which were renamed."""

    def __init__(self, choices: tuple[str, ...], renamed: Mapping[str, str]) -> None:
        super().__init__(choices)
        self._renamed = renamed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word, or raise an error with its new name."""
        if value in self._renamed:
            self.fail(f"{value!r} is now {self._renamed[value]!r}; write that instead", param, ctx)
        return super().convert(value, param, ctx)
