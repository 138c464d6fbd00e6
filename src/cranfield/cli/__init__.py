"""The command line: thin, no logic of its own; each command lives in the module that bears its name."""

from __future__ import annotations

import sys

import click

from cranfield._errors import CranfieldError
from cranfield._settings import Settings, settings
from cranfield._version import __version__
from cranfield.cli._group import LazyGroup, common_options
from cranfield.cli._notes import printed_notes

_COMMANDS = {
    "data": "List, fetch, describe, filter and simulate rating data.",
    "split": "Divide ratings into training and test files.",
    "recommend": "Train systems and write their ranked lists.",
    "evaluate": "Measure ranked lists against held-out ratings.",
    "dialects": "Show what a metric's name means in other tools, on your data.",
    "compare": "Say which system is better, and how sure that is.",
    "assess": "Say which metric can be trusted on these data.",
    "new": "Write a commented experiment file to start from.",
    "run": "Run an experiment file from data to report; stop and go on at will.",
    "show": "Say what is in an experiment's folder.",
    "diff": "Say how two experiments differ, and how the results moved.",
    "replicate": "Run the study of a paper again, on any ratings.",
    "demo": "Run the whole line on a simulated world, to a report.",
}

_EXAMPLES = """\b
Examples:
  cranfield demo                                  the whole line on a simulated world, to a report
  cranfield data describe ratings.csv             what is in a file of ratings
  cranfield split ratings.csv --out parts         training and test files
  cranfield recommend --train parts/train.parquet -s popularity -s knn --out runs
  cranfield evaluate --test parts/test.parquet runs/*.parquet -m nDCG@10 --threshold 4
  cranfield compare --test parts/test.parquet runs/*.parquet -m nDCG@10 --threshold 4
"""


@click.group(
    cls=LazyGroup,
    package="cranfield.cli",
    commands_help=_COMMANDS,
    epilog=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="cranfield")
@common_options
def cranfield(seed: int) -> None:
    """Compare recommender systems offline: which is better, by which metric, and how sure that is."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    vars(settings).update(vars(Settings()))
    try:
        with printed_notes():
            cranfield.main(arguments, prog_name="cranfield", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        click.echo(f"cranfield: {_in_a_line(error)}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("cranfield: stopped", err=True)
        sys.exit(130)
    except CranfieldError as error:
        click.echo(f"cranfield: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    except MemoryError as error:
        told = f" ({error})" if str(error) else ""
        click.echo(f"cranfield: memory is short{told}; ask for less, or run one system at a time", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)


def _in_a_line(error: click.ClickException) -> str:
    """Return what is wrong with the options, and where it says which there are."""
    told = " ".join(error.format_message().split()).rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    return told if context is None else f"{told}; see: {context.command_path} --help"
