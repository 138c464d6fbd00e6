"""Files of ranked lists that an experiment uses; they are checked before anything is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cranfield.data import Ratings
from cranfield.experiments.inputs import catalogue_of, input_checksum
from cranfield.judgments import Context, accepted, check_inputs, is_no_catalogue, with_live
from cranfield.measures import as_judged, catalogue_notes, outside_of
from cranfield.rankings import Run, read_run

if TYPE_CHECKING:
    from cranfield.experiments.pipeline import Pipeline, Unit


def given_checksum(line: Pipeline, cell: Unit) -> str:
    """Return a hash of the file of a system's ranked lists, and how it is read."""
    checksum = input_checksum(line.experiment.path(str(cell.system.run_file(cell.source.name))))
    return ", ".join([checksum, *(f"{key} {value}" for key, value in cell.system.reading.items())])


def given_run(line: Pipeline, source: str, system: str) -> Run:
    """Return the ranked lists of a system from its file, for a set of ratings."""
    given = next(known for known in line.experiment.systems if known.name == system)
    return read_run(line.experiment.path(str(given.run_file(source))), name=system, **given.reading)


def check_given_runs(line: Pipeline, unit: Unit, test: Ratings, train: Ratings) -> None:
    """Reject files of ranked lists that are certainly wrong; with ``strict`` also those that are probably wrong.

    Without ``strict``, the stage that measures adds warnings to the verdict instead.
    """
    names = [system.name for system in line.experiment.systems if system.run is not None]
    if names:
        runs = [given_run(line, unit.source.name, name) for name in names]
        judged = as_judged(runs, test, None, Context(train))
        check_inputs(judged, strict=line.strict)
        catalogue = catalogue_of(line.experiment)
        if line.strict and not is_no_catalogue(catalogue):
            outside = [outside_of(lists, ())[0] for lists in with_live(judged, catalogue, train)]
            accepted(list(catalogue_notes(names, outside)), strict=True)
