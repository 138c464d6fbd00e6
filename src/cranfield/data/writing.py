"""Writing ratings: Parquet, CSV or TSV, depending on the file's extension."""

from __future__ import annotations

from pathlib import Path

from cranfield.data.ratings import Ratings
from cranfield.tables import check_format, write_table


def write(ratings: Ratings, path: str | Path) -> Path:
    """Write ratings with columns user, item, rating and, if known, time (seconds since 1970).

    Parameters
    ----------
    ratings
        The ratings to write.
    path
        The file, ending in ``.parquet``, ``.csv`` or ``.tsv``. It is written completely or not at all.

    Examples
    --------
    >>> import tempfile
    >>> path = write(Ratings.of(["ann"], ["x"], [4]), Path(tempfile.mkdtemp()) / "ratings.csv")
    >>> path.read_text().split()
    ['user,item,rating', 'ann,x,4.0']
    """
    check_format(path)
    return write_table(ratings.frame(), path)
