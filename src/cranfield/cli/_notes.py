"""Notes for the user besides the result: lines on standard error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from cranfield._errors import CranfieldWarning


@contextmanager
def printed_notes() -> Iterator[None]:
    """Print cranfield's warnings as notes, each once and on one line, without their place in the code."""
    said: set[str] = set()
    with warnings.catch_warnings():
        python = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            note = " ".join(str(message).split())
            if not issubclass(category, CranfieldWarning):
                python(message, category, *place, **more)
            elif note not in said:
                said.add(note)
                click.echo(f"note: {note}", err=True)

        warnings.showwarning = show
        warnings.simplefilter("always", CranfieldWarning)
        yield
