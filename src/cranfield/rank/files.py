"""Files of ranked lists as tables of columns."""

from __future__ import annotations

from pathlib import Path

from cranfield.rank.layouts import Table

_ENDINGS = (".gz", ".zst", ".bz2", ".xz", ".zip", ".csv", ".tsv", ".txt", ".dat", ".parquet", ".pq", ".arrow", ".ipc") + (
    ".feather", ".run", ".trec", ".recs", ".res", ".out")


def system_name(path: Path) -> str:
    """Return the name of a file without its endings.

    Examples
    --------
    >>> system_name(Path("runs/knn(k=0.5).tsv.gz"))
    'knn(k=0.5)'
    """
    name = path.name
    while Path(name).suffix.lower() in _ENDINGS and Path(name).stem:
        name = Path(name).stem
    return name


def table_of_file(path: Path, *, separator: str | None = None, header: bool | None = None) -> Table:
    """Read a file of text, Parquet or Arrow, compressed or not."""
    raise NotImplementedError
