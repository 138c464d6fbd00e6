"""`Section`: a part of the page, with the tables and numbers it carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Parameters
    ----------
    name
        Its anchor: letters and hyphens.
    title
        Its heading, plain text.
    html
        Its markup, in which everything that came from a user is escaped (see `cranfield.reports.markup`).
    tables
        Frames to download as CSV, by file name without ending.
    files
        Further texts to download, by file name.
    data
        What the page's script needs of it, ready for JSON.
    """

    name: str
    title: str
    html: str
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    data: Any = None
