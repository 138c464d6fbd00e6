"""Options that many commands share or that are decisions, and what is said of idle ones and after Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import Field
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from cranfield._checks import size
from cranfield._decisions import DecisionGroup
from cranfield._errors import SettingError, nearest
from cranfield._own_code import allowing
from cranfield._settings import settings

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]


def add_options(options: Iterable[Decorator[Any]], command: Command) -> Command:
    """Give a command options, which its help shows in this order."""
    for option in reversed(list(options)):
        command = option(command)
    return command


class CommandGroup(click.Group):
    """Commands in the order in which they are defined."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called, or suggest the nearest one."""
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}{nearest(args[0], names)}")
        return super().resolve_command(ctx, args)


# Options of the process.


def _keep(_: click.Context, option: click.Parameter, value: Any) -> Any:
    """Make a given option a setting of the process; otherwise keep the value given before the command."""
    if value not in (None, False):
        setattr(settings, str(option.name), value)
    return value


def _size(text: str) -> int:
    # Before Click 8.4, the message of a ValueError is not shown.
    try:
        return size(text)
    except SettingError as error:
        raise click.BadParameter(str(error)) from error


_KEPT: dict[str, Any] = {"expose_value": False, "callback": _keep}
_AT_LEAST_ONE = click.IntRange(min=1)
_SEED = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=lambda: settings.seed,
    show_default=False,
    callback=_keep,
    help="The seed of every random choice.",
)
_THREADS = click.option(
    "--threads", type=_AT_LEAST_ONE, help="The number of threads; for reading files, set POLARS_MAX_THREADS.", **_KEPT
)
_QUIET = click.option("--quiet", "-q", is_flag=True, help="Print only the result.", **_KEPT)
_DETAILS = click.option("--details", is_flag=True, help="Print every table and remark.", **_KEPT)

unpack_option = click.option(
    "--unpack-limit",
    type=_size,
    metavar="SIZE",
    help="The largest size that a compressed file may unpack to, such as 4GiB.  [default: 100 times its size, and "
    "at least 64 MiB; known datasets have their own limits]",
    **_KEPT,
)
jobs_option = click.option(
    "--jobs",
    type=_AT_LEAST_ONE,
    help="The number of systems to train at the same time, each in its own process.  [default: one per thread if "
    "memory allows; one for small data]",
)
strict_option = click.option(
    "--strict", is_flag=True, help="Turn warnings about likely mistakes in the inputs into errors."
)
overlap_option = click.option(
    "--overlap",
    type=click.Choice(["error", "test", "train"]),
    help="With --test: what to do with pairs in both files: an error, or keep them in one of the two.  [default: "
    "error]",
)


process_options: Decorator[Any] = partial(add_options, (_THREADS, _QUIET, _DETAILS))
"""Gives a command ``--threads``, ``--quiet`` and ``--details``, which become settings of the process."""

common_options: Decorator[Any] = partial(add_options, (_SEED, _THREADS, _QUIET, _DETAILS))
"""Gives a command with randomness ``--seed`` too, which it receives; they may also come before the command's name."""


def choice_option(name: str, choices: Sequence[str], help: str) -> Decorator[Any]:
    """Return an option that takes one of several words, by default the first of them."""
    return click.option(name, type=click.Choice(choices), default=choices[0], help=help)


def systems_option(help: str) -> Decorator[Any]:
    """Return the option ``-s``, which may be repeated; code that it names may be run."""
    return click.option("--system", "-s", "systems", multiple=True, metavar="SYSTEM", help=help)


def runs_named_code(option: str) -> Decorator[Any]:
    """Let a command run the code that an option names; modules are also found in the current folder.

    Typing a name on the command line allows it to run.
    """

    def wrap(command: Command) -> Command:
        @wraps(command)
        def with_code(*arguments: Any, **options: Any) -> Any:
            with allowing(options[option], Path.cwd()):
                return command(*arguments, **options)

        return with_code  # type: ignore[return-value]

    return wrap


# Options that are decisions.


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


def decision_option(declared: Field[Any], option: str = "", **changes: Any) -> Decorator[Any]:
    """Make the option of a decision, with its name, default, words and help; the other arguments override them."""
    text: str = declared.metadata["help"]
    sentence = text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")
    options: dict[str, Any] = {"default": declared.default, "help": sentence}
    if isinstance(declared.default, bool):
        options["is_flag"] = True
    elif declared.metadata["choices"]:
        options["type"] = click.Choice(declared.metadata["choices"])
    elif declared.metadata["check"]:
        options["type"] = Decision(declared)
    name = option or declared.name.replace("_", "-")
    return click.option(f"--{name}", declared.name, **{**options, **changes})


def decision_options(group: type[DecisionGroup], **changes: Mapping[str, Any]) -> Decorator[Any]:
    """Give a command an option for each decision of a group; ``changes`` override parts of them, by decision."""
    options = [decision_option(declared, **changes.get(name, {})) for name, declared in group.decisions().items()]
    return lambda command: add_options(options, command)


# Options on the command line: those without any effect are refused, not ignored.


def is_given(name: str) -> bool:
    """Return whether an option is on the command line, before or after the command."""
    context: click.Context | None = click.get_current_context()
    while context is not None:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            return True
        context = context.parent
    return False


def refuse_idle(where: str, *names: str) -> None:
    """Refuse options that have no effect ``where``, as in "without --subsets"."""
    for parameter in click.get_current_context().command.params:
        if parameter.name in names and is_given(parameter.name):
            written = str(parameter.metavar).strip("[]")
            if isinstance(parameter, click.Option):
                written = "/".join((parameter.opts[0], *parameter.secondary_opts))
            raise click.UsageError(f"{written} does nothing {where}; leave {written} out")


def numbers(option: str, text: str) -> list[float]:
    """Return the numbers of an option that are separated by commas."""
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise SettingError(f"{option} {text!r} cannot be read; write numbers separated by commas") from error


# What a stopped command says about continuing.

AGAIN = "finished parts are kept; run the same command again to continue"
"""Advice for commands that reuse the results in their folder."""


class Stopped(KeyboardInterrupt):
    """Ctrl-C, with advice on how to continue."""


def resumes(how: str | Callable[..., str]) -> Decorator[Any]:
    """Let a command say, when Ctrl-C ends it, how to continue: a clause, or a function of the command's options."""

    def give(command: Command) -> Command:
        @wraps(command)
        def with_advice(**options: Any) -> Any:
            try:
                return command(**options)
            except KeyboardInterrupt as stop:
                raise Stopped(how if isinstance(how, str) else how(**options)) from stop

        return with_advice  # type: ignore[return-value]

    return give
