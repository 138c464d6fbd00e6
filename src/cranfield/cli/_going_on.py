"""What a stopped command says about continuing."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Command = TypeVar("Command", bound=Callable[..., Any])


class Stopped(KeyboardInterrupt):
    """Ctrl-C, with advice on how to continue."""


def goes_on(how: str | Callable[..., str]) -> Callable[[Command], Command]:
    """Let a command say, when Ctrl-C ends it, what is kept and how to continue.

    Parameters
    ----------
    how
        The advice as a clause, or a function that makes it from the command's options.
    """

    def give(command: Command) -> Command:
        @wraps(command)
        def with_advice(**options: Any) -> Any:
            try:
                return command(**options)
            except KeyboardInterrupt as stop:
                raise Stopped(how if isinstance(how, str) else how(**options)) from stop

        return with_advice  # type: ignore[return-value]

    return give


AGAIN = "finished parts are kept; run the same command again to continue"
"""Advice for commands that reuse the results in their folder."""
