"""The stage `report`: the report on the results, written by a package that builds on experiments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stage import OUT, Size, Stage
from cranfield.experiments.user_code import own
from cranfield.store import Made, versions

if TYPE_CHECKING:
    from cranfield.experiments.results import Results

# Libraries that draw the figures of a report.
_DRAWING = ("altair", "vl-convert-python")
# Seconds to load these libraries; and to draw, per user and system.
_LOADING, _DRAWN = 3.0, 1e-4


class Report(Stage[None]):
    """A report on the results.

    Parameters
    ----------
    write
        Function that writes it into a folder and returns the files; None if it is only planned.
    """

    name, title, level, inputs = "report", "Writing the report", "experiment", ("card",)
    exported = True

    def __init__(self, write: Callable[[Results, Path], list[Path]] | None = None) -> None:
        self._write = write

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:  # noqa: ARG002
        """Return the digests of all artifacts, the code of the report and the versions of the drawing libraries."""
        code = [] if self._write is None else own(self._write)
        return {"made": line.digests(), "own": code, "versions": versions(_DRAWING)}

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:  # noqa: ARG002
        """Write the report."""
        from cranfield.experiments.results import Results

        assert self._write is not None
        return self._write(Results.of(line), place / OUT), {}

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        """Estimate how long drawing takes."""
        return len(line.experiment.data) * _LOADING + _DRAWN * size.users * len(line.experiment.systems)
