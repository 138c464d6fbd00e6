"""Weights of users from a column of a file that an experiment names: ``average = "weighted(by=users.csv:spend)"``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cranfield._polars import read_parquet
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.inputs import input_checksum
from cranfield.measures import Average, Scores, read_column
from cranfield.tables import write_table

_KEPT = "weights.parquet"


def weights_file(experiment: Experiment) -> tuple[Path, str] | None:
    """Return the file (relative to the experiment) and the column of user weights; None if users are not weighted."""
    file, colon, column = (Average.of(experiment.decisions.average).weights or "").rpartition(":")
    return (experiment.path(file), column) if colon else None


def weights_checksum(experiment: Experiment) -> str | None:
    """Return a hash of the file of user weights; None if there is none."""
    file = weights_file(experiment)
    return None if file is None else input_checksum(file[0])


def check_weights(experiment: Experiment) -> None:
    """Reject a file of weights that cannot be read, before anything starts."""
    file = weights_file(experiment)
    if file is not None:
        read_column(*file)


def with_weights(experiment: Experiment, scores: Scores, kept: Path | None = None) -> Scores:
    """Return scores with the column of user weights, read from its file or from the folder where it is kept."""
    file = weights_file(experiment)
    if file is None:
        return scores
    column = read_column(*file) if kept is None else read_parquet(kept / _KEPT)
    return replace(scores, user_columns={str(Average.of(experiment.decisions.average).weights): column})


def keep_weights(experiment: Experiment, place: Path) -> list[Path]:
    """Write the column of user weights into a folder; return the file, or nothing if users are not weighted."""
    file = weights_file(experiment)
    return [] if file is None else [write_table(read_column(*file), place / _KEPT)]
