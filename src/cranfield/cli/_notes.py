"""What a user should know beside the result: a line on standard error."""

from __future__ import annotations

import warnings
from typing import Any

import click

from cranfield._errors import CranfieldWarning


def print_notes() -> None:
    """Print cranfield's warnings as notes, each once, with no file of Python's and no line number."""
    python, said = warnings.showwarning, set()

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, CranfieldWarning):
            python(message, category, *place, **more)
        elif str(message) not in said:
            said.add(str(message))
            click.echo(f"note: {' '.join(str(message).split())}", err=True)

    warnings.simplefilter("always", CranfieldWarning)
    warnings.showwarning = show
