"""The command line: thin, no logic of its own.

Each command lives in the module of this folder that bears its name and is imported only when it is called, so that
``cranfield --help`` answers at once.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from cranfield._errors import CranfieldError
from cranfield._settings import settings
from cranfield._version import __version__

_COMMANDS = {
    "data": "List, fetch, describe, filter, split and simulate rating data.",
}

_EXAMPLES = """\b
Examples:
  cranfield data describe ratings.csv       what is in a file of ratings
"""


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        return getattr(importlib.import_module(f"cranfield.cli.{cmd_name}"), "command")  # type: ignore[no-any-return]  # noqa: B009

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from cranfield._spelling import nearest

        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}{nearest(args[0], _COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, epilog=_EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cranfield")
def cranfield() -> None:
    """Compare recommender systems offline: which is better, by which metric, and how sure is that?"""


def common_options(command: Any) -> Any:
    """Give a command the options that all of them share: ``--seed``, ``--threads`` and ``--quiet``."""

    def keep(name: str) -> Any:
        def callback(_: click.Context, __: click.Parameter, value: Any) -> Any:
            setattr(settings, name, value)
            return value

        return callback

    for option in (
        click.option("--quiet", "-q", is_flag=True, expose_value=False, callback=keep("quiet"),
                     help="Say nothing but the result and errors."),
        click.option("--threads", type=click.IntRange(min=1), expose_value=False, callback=keep("threads"),
                     help="How many threads to use.  [default: all cores]"),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
                     help="Fixes every random choice."),
    ):  # fmt: skip
        command = option(command)
    return command


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    try:
        cranfield.main(arguments, prog_name="cranfield", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("cranfield: stopped", err=True)
        sys.exit(130)
    except CranfieldError as error:
        click.echo(f"cranfield: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
