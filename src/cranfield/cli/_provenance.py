"""What a printed result was computed from."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from cranfield._errors import InputError
from cranfield._files import meant
from cranfield._version import __version__
from cranfield.cli._measuring import MeasuringOptions
from cranfield.experiments import input_checksum
from cranfield.measures import Scores, file_and_column

# What belongs to the work, not to the question: a hash of the test set, and the number of blocks.
_NOT_DECIDED = ("test", "blocks")


def with_provenance(
    result: dict[str, Any], options: MeasuringOptions, scores: Scores, others: Iterable[tuple[str, str | None]]
) -> dict[str, Any]:
    """Return a result, ready for JSON, with the version, the input files and all decisions of measuring.

    ``others`` are the roles of further texts that may name a file, as FILE or FILE:COLUMN.
    """
    files = [("test", options.test), ("train", options.train), *(("run", run) for run in options.runs)]
    for role, text in (("catalogue", options.catalogue), *others):
        place = None if text is None else file_and_column(text)
        files += [] if place is None else [(role, str(place[0]))]
    inputs = [{"role": role, "file": file, "sha256": _checksum(file)} for role, file in files if file is not None]
    measured = {name: value for name, value in scores.step.settings.items() if name not in _NOT_DECIDED}
    read = {name: value for name, value in {**options.reading, **options.run_reading}.items() if value is not None}
    settings = {**measured, "catalogue": options.catalogue, "reading": read, **result["settings"]}
    return {"version": __version__, "inputs": inputs, **result, "settings": settings}


def _checksum(file: str) -> str | None:
    """Return the SHA-256 of a file, or a hash of those of all files in a folder; None if Spark reads it elsewhere."""
    with suppress(InputError, OSError):
        return input_checksum(meant(file))
    return None
