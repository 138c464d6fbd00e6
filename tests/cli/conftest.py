"""What the tests of the command line share."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from cranfield.cli import main


class Result(NamedTuple):
    """What a command left: its exit code, and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture
def cranfield(capsys):
    """Run the command line in this process."""

    def run(*arguments: object) -> Result:
        try:
            main([str(argument) for argument in arguments])
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        return Result(code, *capsys.readouterr())

    return run
