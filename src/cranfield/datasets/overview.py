"""The catalogue as a table."""

from __future__ import annotations

import polars as pl

from cranfield.datasets.cache import cached
from cranfield.datasets.index import catalogue


def known() -> tuple[str, ...]:
    """Return the names of the known datasets.

    Examples
    --------
    >>> known()[:3]
    ('ml-100k', 'ml-1m', 'ml-10m')
    """
    return tuple(catalogue())


def listing() -> pl.DataFrame:
    """Return the known datasets as a frame, one per row: what, how large, whose, how to get it, and if it is cached.

    Counts are of the training part if a dataset is published in parts, and null if nobody has published them.

    Examples
    --------
    >>> listing().filter(pl.col("name") == "coat").select("name", "users", "items", "ratings", "get").row(0)
    ('coat', 290, 300, 6960, 'download')
    """
    return pl.DataFrame(
        [
            {
                "name": entry.name,
                "users": entry.counts.users,
                "items": entry.counts.items,
                "ratings": entry.counts.ratings,
                "scale": entry.scale,
                "times": entry.times,
                "get": "by hand" if entry.address is None else "download",
                "cached": cached(entry) is not None,
                "licence": entry.licence,
                "title": entry.title,
                "home": entry.home,
                "citation": entry.citation,
                "note": entry.note,
            }
            for entry in catalogue().values()
        ]
    )
