"""What is in the folder of an experiment: what was run, what is there, sizes, times and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from cranfield._checksums import file_checksum
from cranfield._table import Table
from cranfield.experiments.planning import STAGES, about
from cranfield.experiments.results import Results


@dataclass(frozen=True, eq=False)
class Shown:
    """The contents of an experiment's folder.

    Parameters
    ----------
    results
        The folder.
    artifacts
        A row an artifact: stage, name, files, bytes, seconds that it took (null if the log does not say), damaged.
    """

    results: Results
    artifacts: pl.DataFrame

    def frame(self) -> pl.DataFrame:
        """Return a row an artifact: ``stage, artifact, files, bytes, seconds, damaged``."""
        return self.artifacts

    def table(self) -> Table:
        """Return a row a stage, for people."""
        stages = self.artifacts.group_by("stage", maintain_order=True).agg(
            pl.len(), pl.col("bytes").sum(), pl.col("seconds").sum(), pl.col("damaged").sum()
        )
        rows = [
            [row["stage"], f"{row['len']:,}", _size(row["bytes"]), about(row["seconds"]), str(row["damaged"] or "–")]
            for row in stages.iter_rows(named=True)
        ]
        return Table(["stage", "artifacts", "size", "time", "damaged"], rows)

    def __str__(self) -> str:
        experiment = self.results.experiment
        said = [
            experiment.title,
            str(experiment),
            f"seed {experiment.seed}, {experiment.repetitions} repetition(s)",
            "",
        ]
        said += [self.table().text(), ""]
        damaged = self.artifacts.filter("damaged")["artifact"].to_list()
        if damaged:
            said.append(f"missing or damaged: {', '.join(damaged)}; run the experiment again to make them anew")
        if not self.results.finished:
            return "\n".join([*said, "not finished; run the experiment again to go on"])
        said.append(str(self.results) if not any(name.startswith("results/") for name in damaged) else "")
        missing = [] if "card" in damaged else self.results.missing()
        return "\n".join([*said, *([f"not reported: {'; '.join(missing)}"] if missing else [])]).rstrip()


def show(folder: str | Path) -> Shown:
    """Say what was run in a folder, what is there, its sizes and times, and the verdict.

    Every file is compared with its checksum.

    Examples
    --------
    >>> import tempfile
    >>> from cranfield.experiments import Experiment, Source, run
    >>> folder = tempfile.mkdtemp()
    >>> _ = run(Experiment(data=(Source("tiny", simulate="world(users=60, items=40, ratings=900)"),)), folder)
    >>> found = show(folder)
    >>> found.frame()["stage"].unique(maintain_order=True).to_list()
    ['experiment', 'data', 'splits', 'runs', 'scores', 'results', 'card']
    """
    results = Results(folder)
    took = {one["artifact"]: one["seconds"] for one in results.folder.logged() if one.get("did") == "made"}
    rows = [_row(results, name, record, took.get(name)) for name, record in results.records.items()]
    rows.sort(key=lambda row: STAGES.index(row["stage"]) if row["stage"] in STAGES else len(STAGES))
    return Shown(results, pl.DataFrame(rows, schema=_SCHEMA))


_SCHEMA = {
    "stage": pl.String,
    "artifact": pl.String,
    "files": pl.Int64,
    "bytes": pl.Int64,
    "seconds": pl.Float64,
    "damaged": pl.Boolean,
}


def _row(results: Results, name: str, record: dict[str, Any], seconds: float | None) -> dict[str, Any]:
    size, damaged = 0, False
    for file, checksum in record["files"].items():
        path = results.path / file
        try:
            size += path.stat().st_size
            damaged |= file_checksum(path) != checksum
        except OSError:
            damaged = True
    return {
        "stage": name.split("/", 1)[0],
        "artifact": name,
        "files": len(record["files"]),
        "bytes": size,
        "seconds": seconds,
        "damaged": damaged,
    }


def _size(count: int) -> str:
    power = min((len(str(count)) - 1) // 3, 3)
    return f"{count} B" if power == 0 else f"{count / 1000**power:.1f} {('B', 'kB', 'MB', 'GB')[power]}"
