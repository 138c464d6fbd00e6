"""Which options are on the command line; those without any effect are refused, not ignored."""

from __future__ import annotations

import click
from click.core import ParameterSource


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
            written = _as_written(parameter)
            raise click.UsageError(f"{written} does nothing {where}; leave {written} out")


def _as_written(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return "/".join((parameter.opts[0], *parameter.secondary_opts))
    return str(parameter.metavar).strip("[]")
