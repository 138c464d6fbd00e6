"""`Panel`: the numbers of one set of ratings in a study of decisions, looked up by what was varied."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield.data import Ratings

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Panel:
    """One set of ratings and the measurements on its splits.

    Parameters
    ----------
    name
        The name of the ratings.
    data
        The ratings.
    printed
        The dataset of the paper that they are; None for other ratings.
    k
        Number of neighbours of kNN.
    threshold
        The lowest rating of a relevant item.
    numbers
        One row per number, with the columns of ``_options_work.SCHEMA`` and ``seed``.
    """

    name: str
    data: Ratings
    printed: str | None
    k: int
    threshold: float
    numbers: pl.DataFrame

    def of(self, part: str, setting: str, metric: str | None = None, system: str | None = None) -> pl.DataFrame:
        """Return the rows of a part of the study, in the order of ``x`` and ``seed``."""
        wanted = {"part": part, "setting": setting, "metric": metric, "system": system}
        rows = self.numbers.filter(pl.col(name) == value for name, value in wanted.items() if value is not None)
        return rows.sort("x", "seed", maintain_order=True)

    def values(self, part: str, setting: str, metric: str, system: str, column: str = "value") -> Floats:
        """Return splits × x: the values of a system, or their p-values, for the splits that were run at every x."""
        rows = self.of(part, setting, metric, system)
        places = rows["x"].n_unique()
        rows = rows.filter(pl.len().over("seed") == places)
        return rows[column].cast(pl.Float64).to_numpy().reshape(places, -1).T.copy()

    def spread(self, part: str, setting: str, metric: str) -> pl.DataFrame:
        """Return the mean over splits with the lowest and the highest value, for each ``x`` and system."""
        value = pl.col("value").fill_nan(None)
        return (
            self.of(part, setting, metric)
            .group_by("x", "system", maintain_order=True)
            .agg(value=value.mean(), lowest=value.min(), highest=value.max(), splits=pl.len())
        )
