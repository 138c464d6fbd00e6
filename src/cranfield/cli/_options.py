"""Options that many commands share or that are decisions, and what is said of idle ones and after Ctrl-C."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import Field
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from cranfield._checks import size
from cranfield._decisions import DecisionGroup
from cranfield._errors import CranfieldError, SettingError, nearest
from cranfield._own_code import allowing
from cranfield._settings import settings

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]


def add_options(options: Iterable[Decorator[Any]], command: Command) -> Command:
    """Give a command options, which its help shows in this order."""
    for option in reversed(list(options)):
        command = option(command)
    return command


_GROUPS: Mapping[str, Sequence[str]] = {
    "Input": (
        "data", "known", "observed", "test", "train", "validation", "profiles", "item_groups", "features", "fold",
        "folds", "trains", "judgments", "negatives", "from_path", "filters", "split", "read", "read_runs",
        "unpack_limit", "strict", "overlap", "repeats", "like", "allow_code",
    ),
    "Output": (
        "out", "format", "report", "wanted", "show", "style", "figures", "per_user", "migration", "study",
        "most_notes", "truth", "force", "fail", "resume", "dry_run", "published",
    ),
    "Process": ("engine", "memory", "master", "jobs", "seed", "threads", "quiet", "details"),
}  # fmt: skip
"""The options of a command by group, as its help shows them; others are decisions."""

_RARE = frozenset({
    "by", "catalogue", "clip", "correct_sampled", "coverage", "decimals", "details", "engine", "features", "figures",
    "fill", "folds", "interval", "item_groups", "judgments", "keep_seen", "levels", "master", "memory", "method",
    "migration", "negative_grades", "new_users", "nonrelevant", "over_draws", "overlap", "profiles", "relevant",
    "repeats",
    "resamples", "strict", "style", "subset_size", "subsets", "threads", "ties", "trains", "undefined", "unjudged",
    "unpack_limit", "unrated", "validation", "weights",
})  # fmt: skip
"""Options that only ``--help-all`` shows, where a command has more than `MOST_SHOWN`."""

MOST_SHOWN = 30
"""Maximum number of options that ``--help`` shows."""


class HelpfulCommand(click.Command):
    """A command whose ``--help`` shows at most 30 options, by group, and ``--help-all`` every one."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with ``--help`` and ``--help-all``."""
        return [*super().get_params(ctx), *([_HELP_ALL] if self.hides(ctx) else [])]

    def hides(self, ctx: click.Context) -> bool:
        """Whether ``--help`` does not show every option."""
        return sum(isinstance(own, click.Option) for own in self.params) > MOST_SHOWN

    def shown(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options that the help shows."""
        every = not self.hides(ctx) or ctx.meta.get(_EVERY, False)
        return [own for own in self.get_params(ctx) if every or own.name not in _RARE]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by group."""
        records: dict[str, list[tuple[str, str]]] = {}
        for own in self.shown(ctx):
            record = own.get_help_record(ctx) if isinstance(own, click.Option) else None
            if record is not None:
                group = next((name for name, names in _GROUPS.items() if own.name in names), "Decisions")
                group = "Process" if {"--help", "--help-all"} & {*own.opts} else group
                records.setdefault(group, []).append(record)
        for group in ("Input", "Decisions", "Output", "Process"):
            if group in records:
                with formatter.section(group):
                    formatter.write_dl(records[group])


_EVERY = f"{__name__}.every"


def _help_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_EVERY] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_HELP_ALL = click.Option(
    ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_help_all, help="Show every option."
)


class CommandGroup(click.Group):
    """Commands in the order in which they are defined."""

    command_class = HelpfulCommand

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error notes it, so that its message names the command's options."""
        try:
            return super().invoke(ctx)
        except CranfieldError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            if error.command is None:
                error.command = command
            raise

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called, or suggest the nearest one."""
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}{nearest(args[0], names)}")
        return super().resolve_command(ctx, args)


# Messages: the library names keywords (``train=...``), and a command the option of the same name (``--train``).

_KEYWORD = re.compile(
    r"""\w[\w.:-]*\([^()]*\)|(?<![\w-])(?P<name>[a-z]\w*)=(?P<value>\.\.\.|'[^']*'|[^\s,;:()'.]+(?:\.[^\s,;:()'.]+)*)"""
)


def in_words_of(command: click.Command, message: str) -> str:
    """Return a message of the library with keywords as the options of a command; what is spelled stays."""
    schemas: dict[str, list[str]] = {}
    for own in command.params:
        for key in getattr(own.type, "keys", ()):
            schemas.setdefault(key, []).append(own.opts[0])
            schemas.setdefault(f"{key}_{own.name}", []).append(f"{own.opts[0]} {key}=")
    options = {name: own for own in command.params if isinstance(own, click.Option) for name in _names(own)}

    def said(match: re.Match[str]) -> str:
        name, value = match["name"], (match["value"] or "").strip("'")
        own = options.get(name or "") or options.get(f"no_{name}" if value == "False" else "")
        if own is not None:
            given = "" if value in ("...", "True", "False") else f" {value}"
            word = own.secondary_opts[0] if value == "False" and own.secondary_opts else max(own.opts, key=len)
            return word + given
        if name in schemas:
            given = {"None": "none", "False": "none"}.get(value, value)
            words = " or ".join(schemas[name])
            return f"{words}{given}" if words.endswith("=") else f"{words} {name}={given}"
        return match[0]

    for name in ("unpack_limit", "threads"):
        message = message.replace(f"cranfield.settings.{name}", f"--{name.replace('_', '-')}")
    return _KEYWORD.sub(said, message)


def _names(option: click.Option) -> set[str]:
    return {str(option.name), *(word.lstrip("-").replace("-", "_") for word in option.opts)}


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


def completed(names: Callable[[], Iterable[str]]) -> dict[str, Any]:
    """Return how a shell completes an option that takes one of these names, or more than a name."""
    return {"shell_complete": lambda _, __, incomplete: [name for name in names() if name.startswith(incomplete)]}


def systems_option(help: str) -> Decorator[Any]:
    """Return the option ``-s``, which may be repeated; code that it names may be run."""
    names = completed(lambda: import_module("cranfield.recommenders").SYSTEMS)
    return click.option("--system", "-s", "systems", multiple=True, metavar="SYSTEM", help=help, **names)


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
