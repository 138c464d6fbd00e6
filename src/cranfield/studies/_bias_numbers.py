"""`BiasNumbers`: the numbers of one set of ratings in a study of biases, looked up by design or by curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield.studies._bias_panel import Prepared

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BiasNumbers:
    """The numbers of one set of ratings.

    Parameters
    ----------
    of
        The ratings and what was measured on them.
    numbers
        One row per number, with the columns of ``_options_work.SCHEMA`` and ``seed``.
    """

    of: Prepared
    numbers: pl.DataFrame

    @property
    def name(self) -> str:
        """The name of the ratings."""
        return self.of.name

    def rows(self, part: str, **wanted: str | float) -> pl.DataFrame:
        """Return the rows of a part of the study, in the order of ``x`` and ``seed``."""
        rows = self.numbers.filter(pl.col("part") == part, *(pl.col(name) == value for name, value in wanted.items()))
        return rows.sort("x", "seed", maintain_order=True)

    def design(self, design: str, metric: str, system: str, threshold: float | None = None) -> Floats:
        """Return the values of a system in a design, one per split."""
        at = self.of.work.threshold if threshold is None else threshold
        return self.rows("design", setting=design, metric=metric, system=system, x=at)["value"].to_numpy()

    def curve(self, part: str, setting: str, metric: str, system: str) -> tuple[Floats, Floats]:
        """Return the x values of a curve, and splits × x: the values of a system."""
        rows = self.rows(part, setting=setting, metric=metric, system=system)
        places = rows["x"].unique().sort().to_numpy()
        return places, rows["value"].to_numpy().reshape(len(places), -1).T

    def spread(self, part: str) -> pl.DataFrame:
        """Return the mean over splits with the lowest and the highest value, for all numbers of a part."""
        value = pl.col("value").fill_nan(None)
        return (
            self.rows(part)
            .group_by("setting", "x", "metric", "system", maintain_order=True)
            .agg(value=value.mean(), lowest=value.min(), highest=value.max(), splits=pl.len())
        )
