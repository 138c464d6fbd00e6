"""Contents of an experiment's folder: what was run, artifacts, sizes, times and the verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from cranfield._numbers import count_text
from cranfield._table import Table
from cranfield.experiments.planning import about
from cranfield.experiments.results import Results
from cranfield.experiments.stages import ORDER
from cranfield.store import Artifact


@dataclass(frozen=True, eq=False)
class Shown:
    """The contents of an experiment's folder.

    Parameters
    ----------
    results
        The folder.
    artifacts
        See `frame`.
    """

    results: Results
    artifacts: pl.DataFrame

    def frame(self) -> pl.DataFrame:
        """Return one row per artifact: ``stage, artifact, files, bytes, stored, seconds, damaged``.

        ``files`` and ``bytes`` count the readable files; ``stored`` is the number of bytes in the store. ``seconds`` is
        null if the log does not say how long it took.
        """
        return self.artifacts

    def table(self) -> Table:
        """Return a readable table with one row per stage."""
        stages = self.artifacts.group_by("stage", maintain_order=True).agg(
            pl.len(), pl.col("bytes").sum(), pl.col("stored").sum(), pl.col("seconds").sum(), pl.col("damaged").sum()
        )
        rows = [
            [
                row["stage"],
                f"{row['len']:,}",
                bytes_text(row["bytes"]),
                bytes_text(row["stored"]),
                about(row["seconds"]),
                str(row["damaged"] or "–"),
            ]
            for row in stages.iter_rows(named=True)
        ]
        return Table(["stage", "artifacts", "files", "stored", "time", "damaged"], rows)

    def __str__(self) -> str:
        experiment = self.results.experiment
        if self.results.finished and len(self.results.data) == 1:
            experiment = replace(experiment, decisions=self.results.decided(*self.results.data))
        said = [
            experiment.title,
            str(experiment),
            f"seed {experiment.seed}, {count_text(experiment.repetitions, 'repetition')}",
            "",
        ]
        said += [self.table().text(), ""]
        damaged = self.artifacts.filter("damaged")["artifact"].to_list()
        if damaged:
            said.append(f"missing or damaged: {', '.join(damaged)}; run the experiment again to make them again")
        if not self.results.finished:
            return "\n".join([*said, "not finished; run the experiment again to continue"])
        said.append(str(self.results) if not any(name.startswith("results/") for name in damaged) else "")
        missing = [] if "card" in damaged else self.results.missing()
        return "\n".join([*said, *([f"not reported: {'; '.join(missing)}"] if missing else [])]).rstrip()


def show(folder: str | Path) -> Shown:
    """Return what was run in a folder, its artifacts with sizes and times, and the verdict.

    Every file is compared with its checksum.

    Examples
    --------
    >>> import tempfile
    >>> from cranfield.experiments import Experiment, Source, run
    >>> folder = tempfile.mkdtemp()
    >>> _ = run(Experiment(data=(Source("tiny", simulate="world(users=60, items=40, ratings=900)"),)), folder)
    >>> found = show(folder)
    >>> found.frame()["stage"].unique(maintain_order=True).to_list()
    ['experiment', 'data', 'splits', 'models', 'runs', 'judged', 'scores', 'results', 'card']
    """
    results = Results(folder)
    took = results.line.store.took()
    rows = [_row(results, artifact, took.get(name)) for name, artifact in results.line.artifacts.items()]
    rows.sort(key=lambda row: ORDER.index(row["stage"]) if row["stage"] in ORDER else len(ORDER))
    return Shown(results, pl.DataFrame(rows, schema=_SCHEMA))


_SCHEMA = {
    "stage": pl.String,
    "artifact": pl.String,
    "files": pl.Int64,
    "bytes": pl.Int64,
    "stored": pl.Int64,
    "seconds": pl.Float64,
    "damaged": pl.Boolean,
}


def _row(results: Results, artifact: Artifact, seconds: float | None) -> dict[str, Any]:
    store, exports = results.line.store, results.line.exports
    files = exports.files(artifact.name)
    return {
        "stage": artifact.name.split("/", 1)[0],
        "artifact": artifact.name,
        "files": len(files),
        "bytes": sum(size_of(results.path / file) for file in files),
        "stored": sum(size_of(artifact.path(file)) for file in artifact.files),
        "seconds": seconds,
        "damaged": not store.whole(artifact) or exports.damaged(artifact),
    }


def size_of(path: Path) -> int:
    """Return the size of a file in bytes; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def bytes_text(count: int) -> str:
    """Return a number of bytes in readable units.

    Examples
    --------
    >>> bytes_text(20), bytes_text(1_234_567)
    ('20 B', '1.2 MB')
    """
    power = min((len(str(count)) - 1) // 3, 3)
    return f"{count} B" if power == 0 else f"{count / 1000**power:.1f} {('B', 'kB', 'MB', 'GB')[power]}"
