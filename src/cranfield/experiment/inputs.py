"""The files that an experiment starts from."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from cranfield._errors import InputError
from cranfield.data._sources import PARQUET, contents, file_and_member
from cranfield.experiment.experiment import Experiment
from cranfield.experiment.folder import file_checksum, fingerprint

# What a line of text takes, and how much smaller it is when packed.
_BYTES_A_RATING, _PACKED = 22, 4


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


def about_ratings(path: Path) -> int:
    """Return about how many ratings there are in a file, without reading them."""
    return sum(_rows(one) for one in _files(path))


def _rows(path: Path) -> int:
    if contents(path, len(PARQUET)) == PARQUET:
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    packed = path.suffix.lower() in (".gz", ".zip", ".zst", ".bz2", ".xz")
    return path.stat().st_size // (_BYTES_A_RATING // _PACKED if packed else _BYTES_A_RATING) + 1


def _files(path: Path) -> list[Path]:
    if path.is_dir() and (parts := sorted(path.glob("part-*"))):
        return parts
    return [file_and_member(path)[0]]
