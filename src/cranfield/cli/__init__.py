"""The command line: thin and without logic. Commands are imported when they are called, so that ``--help`` is fast."""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

from cranfield._errors import CranfieldError
from cranfield._settings import Settings, settings
from cranfield._starting import SHORT_OF_MEMORY, is_short_of_memory, release
from cranfield._terminal import one_line
from cranfield._version import __version__
from cranfield.cli._options import CommandGroup, Stopped, common_options, in_words_of
from cranfield.cli._output import drop, printed_notes, unread_is_dropped

_COMMANDS = {
    "data": "List, fetch, describe, filter and simulate rating data.",
    "split": "Divide ratings into training and test files.",
    "check-split": "Check a split made by any tool: leakage, overlap, shifts.",
    "recommend": "Train systems and write their ranked lists.",
    "calibrate": "Turn the scores of ranked lists into predicted ratings.",
    "evaluate": "Measure ranked lists against held-out ratings.",
    "dialects": "Show what a metric's name means in other tools, on your data.",
    "compare": "Compare systems: which one is better, and how certain that is.",
    "suggest-judgments": "List the judgments that would settle a comparison soonest.",
    "bias": "Show how much of an evaluation is popularity.",
    "assess": "Assess which metric can be trusted on these data.",
    "audit": "Audit whether the winner survives other decisions.",
    "new": "Write an experiment file with comments to start from.",
    "run": "Run an experiment file from data to report; stop and continue at any time.",
    "show": "Show what is in the folder of an experiment.",
    "checklist": "Print a reviewer's checklist for an experiment.",
    "diff": "Show how two experiments differ, and how the results changed.",
    "clean": "Delete what the current experiment of a folder does not use.",
    "replicate": "Repeat the study of a paper on any ratings.",
    "demo": "Run a whole evaluation on a simulated world.",
}

_MODULES = {
    "check-split": "split",
    "calibrate": "recommend",
    "dialects": "evaluate",
    "suggest-judgments": "compare",
    **dict.fromkeys(("new", "run", "show", "checklist", "diff", "clean"), "experiment"),
}
"""The module of each command that is not in the module of its name."""

_EXAMPLES = """\b
Examples:
  cranfield demo                                  a whole evaluation on a simulated world, with a report
  cranfield data describe ratings.csv             what is in a file of ratings
  cranfield split ratings.csv --out parts         training and test files
  cranfield recommend --train parts/train.parquet -s popularity -s knn --out runs
  cranfield evaluate --test parts/test.parquet runs/*.parquet -m nDCG@10 --threshold 4
  cranfield compare --test parts/test.parquet runs/*.parquet -m nDCG@10 --threshold 4
"""


class LazyGroup(CommandGroup):
    """The commands: ``check-split`` is ``check_split_command`` of its module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"cranfield.cli.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command without importing them."""
        return [CompletionItem(name, help=said) for name, said in _COMMANDS.items() if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=LazyGroup, epilog=_EXAMPLES, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(__version__, prog_name="cranfield")
@common_options
def cranfield(seed: int) -> None:
    """Compare recommender systems offline: which one is better, by which metric, and how certain that is."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; an error that the user can fix is one line on standard error and exit code 2."""
    with unread_is_dropped():
        _main(arguments)


def _main(arguments: list[str] | None) -> None:
    try:
        release()
        vars(settings).update(vars(Settings()))
        with printed_notes():
            cranfield.main(arguments, prog_name="cranfield", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt) as stop:
        interrupt = stop.__cause__ if isinstance(stop, click.Abort) else stop  # Click hides the interrupt
        _end(f"stopped; {interrupt}" if isinstance(interrupt, Stopped) else "stopped", 130)
    except Exception as error:
        message = _told(error)
        if message is None:
            raise
        _end(message)
    except BaseException as error:  # a Polars panic is not an Exception
        if not is_short_of_memory(error):
            raise
        _end(SHORT_OF_MEMORY.format(""))


def _told(error: Exception) -> str | None:
    """Return the message about an error; None for an error that is a fault of the program."""
    if isinstance(error, click.ClickException):
        return _in_a_line(error)
    if isinstance(error, CranfieldError):
        message = str(error) if error.command is None else in_words_of(error.command, str(error))
        return message if error.page is None else f"{message}; see {error.page}"
    if is_short_of_memory(error):
        return SHORT_OF_MEMORY.format(f" ({error})" if str(error) else "")
    if isinstance(error, OSError):
        drop(sys.stdout)
        place = "the output" if error.filename is None else error.filename
        return (
            f"{place} cannot be read or written ({error.strerror or error}); free some space, or choose another place"
        )
    return None


def _in_a_line(error: click.ClickException) -> str:
    """Return what is wrong with the options, and which help lists them."""
    message = " ".join(error.format_message().split()).rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    return message if context is None else f"{message}; see: {context.command_path} --help"


def _end(why: str, code: int = 2) -> NoReturn:
    """Say in one line why the command ends, and exit."""
    with suppress(OSError):  # standard error may be on the full disk
        click.echo(f"cranfield: {one_line(why)}", err=True)
    sys.exit(code)
