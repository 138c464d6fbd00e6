"""A group of commands that are imported when they are called, so that ``--help`` is fast."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from cranfield._checks import size
from cranfield._errors import SettingError, nearest
from cranfield._settings import settings

Command = TypeVar("Command", bound=Callable[..., Any])


class LazyGroup(click.Group):
    """A group whose commands are the ``command`` of the module of the same name.

    Parameters
    ----------
    package
        The package that holds the modules.
    commands_help
        What each command does, in a sentence, by name.
    """

    def __init__(self, *arguments: Any, package: str, commands_help: Mapping[str, str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._package, self._commands_help = package, commands_help

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self._commands_help)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in self._commands_help:
            return None
        command: click.Command = importlib.import_module(f"{self._package}.{cmd_name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called, or suggest the nearest one."""
        if args and args[0] not in self._commands_help and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}{nearest(args[0], self._commands_help)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._commands_help.items()))


def common_options(command: Command) -> Command:
    """Give a command the options that all commands with randomness share: ``--seed``, ``--threads`` and ``--quiet``.

    They may also come before the command's name. The command receives ``seed``; the other two become settings of the
    process.
    """
    seed = click.option(
        "--seed",
        type=_AT_LEAST_ZERO,
        default=lambda: settings.seed,
        callback=_keep,
        help="The seed of every random choice.",
    )
    return seed(process_options(command))


def process_options(command: Command) -> Command:
    """Give a command ``--threads`` and ``--quiet``."""
    quiet = click.option(
        "--quiet", "-q", is_flag=True, expose_value=False, callback=_keep, help="Print only the result."
    )
    threads = click.option("--threads", type=_AT_LEAST_ONE, expose_value=False, callback=_keep, help=_THREADS)
    return threads(quiet(command))


def _size(text: str) -> int:
    # Before Click 8.4, the message of a ValueError is not shown.
    try:
        return size(text)
    except SettingError as error:
        raise click.BadParameter(str(error)) from error


def unpack_option(command: Command) -> Command:
    """Give a command that reads compressed files ``--unpack-limit``."""
    return click.option(
        "--unpack-limit",
        type=_size,
        metavar="SIZE",
        expose_value=False,
        callback=_keep,
        help="The largest size that a compressed file may unpack to, such as 4GiB.  [default: 100 times its size, and "
        "at least 64 MiB; known datasets have their own limits]",
    )(command)


def jobs_option(command: Command) -> Command:
    """Give a command ``--jobs``."""
    return click.option(
        "--jobs",
        type=_AT_LEAST_ONE,
        help="The number of systems to train at the same time, each in its own process.  [default: one per thread if "
        "memory allows; one for small data]",
    )(command)


_THREADS = "The number of threads; for reading files, set POLARS_MAX_THREADS."
_AT_LEAST_ONE, _AT_LEAST_ZERO = click.IntRange(min=1), click.IntRange(min=0)


def _keep(_: click.Context, option: click.Parameter, value: Any) -> Any:
    """Make a given option a setting of the process; otherwise keep the value given before the command."""
    if value not in (None, False):
        setattr(settings, str(option.name), value)
    return value
