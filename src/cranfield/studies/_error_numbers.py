"""`ErrorNumbers`: the numbers of one set of ratings in a study of rating errors, looked up by metric and model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield.studies._error_models import PAPER
from cranfield.studies._error_work import EXPLICIT, ErrorWork

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ErrorNumbers:
    """The numbers of one set of ratings.

    Parameters
    ----------
    name
        What the ratings are called.
    work
        What was measured on them.
    column
        The column of the paper's tables for these ratings, or for similar ones; None if there is none.
    same
        Whether they are the same ratings as in that column, judging by their numbers.
    numbers
        One row per number, with the columns of ``_options_work.SCHEMA`` and ``seed``.
    """

    name: str
    work: ErrorWork
    column: str | None
    same: bool
    numbers: pl.DataFrame

    def rows(self, part: str, **wanted: str | float) -> pl.DataFrame:
        """Return the rows of a part of the study."""
        return self.numbers.filter(pl.col("part") == part, *(pl.col(name) == value for name, value in wanted.items()))

    @property
    def models(self) -> list[str]:
        """The models that were run on every split, in the order of the study."""
        rows = self.rows("average", setting=EXPLICIT, metric="RMSE")
        counts = rows.group_by("system", maintain_order=True).len()
        return counts.filter(pl.col("len") == rows["seed"].n_unique())["system"].to_list()

    @property
    def paper_models(self) -> list[str]:
        """Those among `models` that are in the paper's tables."""
        return [name for name in PAPER if name in self.models]

    def absent(self) -> dict[str, str]:
        """Return the models that were not run, each with the reason."""
        reasons = dict(next(iter(self.work.models.values())).absent)
        reasons |= dict(self.rows("failed").select("system", "metric").unique().iter_rows())
        return reasons

    def of(self, metric: str, system: str, version: str = EXPLICIT) -> Floats:
        """Return the average of a model by a metric, one value per split; empty if it was not run."""
        rows = self.rows("average", setting=version, metric=metric, system=system).sort("seed")
        return rows["value"].to_numpy()

    def level(self, level: str, metric: str, system: str) -> Floats:
        """Return the average of a model by a metric at a level of relevance, one value per split."""
        return self.rows("level", setting=level, metric=metric, system=system).sort("seed")["value"].to_numpy()

    def pair(self, metric: str, version: str = EXPLICIT, paper: bool = True) -> pl.DataFrame:
        """Return the pairs of models by a metric, with difference and p, for the paper's models or all."""
        names = self.paper_models if paper and len(self.paper_models) > 1 else self.models
        pairs = {f"{a} | {b}" for a, b in combinations(self.models, 2) if a in names and b in names}
        return self.rows("pair", setting=version, metric=metric).filter(pl.col("system").is_in(pairs))

    def power(self, metric: str, version: str = EXPLICIT) -> tuple[Floats, int]:
        """Return DP, the sum of a metric's p-values over pairs, for each split, and the number of pairs."""
        sums = self.pair(metric, version).group_by("seed").agg(pl.col("p").sum(), pl.len()).sort("seed")
        return sums["p"].to_numpy(), int(sums["len"].max() or 0)  # type: ignore[arg-type]

    def tau(self, scenario: str, metric: str, size: float | None = None) -> Floats:
        """Return tau with the whole test set, for each split: at a size, or on average over sizes below 1."""
        rows = self.rows("robust", setting=scenario, metric=metric)
        rows = rows.filter(pl.col("x") == size) if size is not None else rows.filter(pl.col("x") < 1)
        return rows.group_by("seed").agg(pl.col("value").drop_nans().mean()).sort("seed")["value"].to_numpy()
