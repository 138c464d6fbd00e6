"""The files that an experiment starts from."""

from __future__ import annotations

from pathlib import Path

from cranfield._errors import InputError
from cranfield.data._sources import contents, file_and_member
from cranfield.experiment.experiment import Experiment
from cranfield.experiment.folder import file_checksum, fingerprint


def check_inputs(experiment: Experiment) -> None:
    """Refuse files that are not there or cannot be read, before anything starts."""
    named = [(f"data.{one.name}", file) for one in experiment.data for file in one.files.values()]
    for system in experiment.systems:
        files = (system.run_file(source.name) for source in experiment.data)
        named += [(f"systems.{system.name}", file) for file in files if file is not None]
    for key, file in named:
        try:
            for path in _files(experiment.path(file)):
                contents(path, 1)
        except InputError as error:
            raise InputError(
                f"{error.source}: {error.problem}",
                source=key,
                remedy="mend its name, which starts from the experiment file",
            ) from error


def input_checksum(path: Path) -> str:
    """Return a hash of a file's bytes; of those of all parts, for a folder of parts."""
    checksums = [file_checksum(one) for one in _files(path)]
    # Of a member of an archive the whole archive counts.
    return checksums[0] if path.is_file() else fingerprint([path.name, checksums])


def input_size(path: Path) -> int:
    """Return the number of bytes."""
    return sum(one.stat().st_size for one in _files(path))


def _files(path: Path) -> list[Path]:
    if path.is_dir() and (parts := sorted(path.glob("part-*"))):
        return parts
    return [file_and_member(path)[0]]
