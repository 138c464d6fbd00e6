"""Options that may name the user's own code: typing a name on the command line allows it to run."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from cranfield._own_code import allowing

Command = TypeVar("Command", bound=Callable[..., Any])


def runs_named_code(option: str) -> Callable[[Command], Command]:
    """Let a command run the code that an option names; modules are also found in the current folder."""

    def wrap(command: Command) -> Command:
        @wraps(command)
        def with_code(*arguments: Any, **options: Any) -> Any:
            with allowing(options[option], Path.cwd()):
                return command(*arguments, **options)

        return with_code  # type: ignore[return-value]

    return wrap
