"""The numbers of the benchmark of neural collaborative filtering, under both protocols, and the printed ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield.biases import correct_runs
from cranfield.comparisons import Comparison, compare
from cranfield.rankings import Run
from cranfield.studies._ncf_work import FULL, METRICS, NDCG, PROTOCOLS, SAMPLED, NcfBenchmark, Trained, by_row

Floats = NDArray[np.float64]

POPULARITY, ITEM_KNN, SLIM = "popularity", "itemknn", "SLIM"
IALS_2019, IALS_2022 = "iALS, 46 factors", "iALS, 192 factors"
MF, NEUMF, EASE = "MF", "NeuMF", "EASE"
SIZES = {MF: (8, 16, 24, 32, 64, 192), NEUMF: (8, 16, 32, 64)}
DIMENSIONS = {8: 24, 64: 192}
"""The factors of NeuMF, and of the MF it is compared with: the paper counts 3 numbers for each factor of NeuMF."""
RIDGES = (100, 300, 1000, 3000)

PRINTED: Mapping[str, tuple[float, float]] = {
    POPULARITY: (0.4531, 0.2542),
    SLIM: (0.7162, 0.4468),
    IALS_2019: (0.7111, 0.4383),
    "EASE, λ = 1000": (0.7184, 0.4494),
    "MF, 192 factors": (0.7294, 0.4523),
    "NeuMF, 8 factors": (0.6725, 0.4011),
    "NeuMF, 64 factors": (0.7093, 0.4349),
}
"""HR@10 and nDCG@10 on MovieLens 1M.

Popularity and NeuMF with 8 factors: the published results of Ferrari Dacrema et al. (2019). EASE, with λ = 1320: a
later work of the authors. All others: Rendle et al. (2020), as quoted in the literature.
"""


def of_size(kind: str, factors: int) -> str:
    """Return the row of MF or NeuMF with a given number of factors."""
    return f"{kind}, {factors} factors"


@dataclass(frozen=True, eq=False)
class NcfNumbers:
    """The measurements.

    Parameters
    ----------
    benchmark
        The training data and the items to rank.
    runs
        The runs of each training, by protocol.
    failed
        Why some rows could not be made.
    same
        Whether these are the ratings of the paper, so that its numbers can be shown next to these.
    epochs
        The number of epochs of MF and NeuMF; None as in the paper.
    """

    benchmark: NcfBenchmark
    runs: Mapping[Trained, Mapping[str, Run]]
    failed: Mapping[str, str]
    same: bool
    epochs: int | None = None

    @cached_property
    def rows(self) -> list[str]:
        """The rows, in order."""
        return list(dict.fromkeys(trained.row for trained in self.runs))

    @cached_property
    def values(self) -> pl.DataFrame:
        """One row per training, protocol and metric: columns row, seed, protocol, metric, value."""
        lines = []
        for protocol in PROTOCOLS:
            for trained, own in self.runs.items():
                means = self.benchmark.scores([own[protocol]]).average()[0]
                for metric, value in zip(METRICS, means, strict=True):
                    lines.append((trained.row, trained.seed, protocol, metric, float(value)))
        return pl.DataFrame(lines, schema=["row", "seed", "protocol", "metric", "value"], orient="row")

    def of(self, row: str, protocol: str, metric: str) -> Floats:
        """Return the values of a row, one per seed; empty if it was not run."""
        return self.values.filter(row=row, protocol=protocol, metric=metric).sort("seed")["value"].to_numpy()

    def mean(self, row: str, protocol: str, metric: str) -> float:
        """Return the mean over seeds; NaN if the row was not run."""
        values = self.of(row, protocol, metric)
        return float(values.mean()) if len(values) else float("nan")

    def printed(self, row: str, metric: str) -> float | None:
        """Return the printed values of a row, if these are the paper's ratings."""
        return PRINTED[row][list(METRICS).index(metric)] if self.same and row in PRINTED else None

    def is_as_printed(self, row: str) -> bool:
        """Return whether a row was trained as in the paper."""
        return self.epochs is None or not row.startswith((f"{MF}, ", f"{NEUMF}, "))

    def compared(self, protocol: str) -> Comparison:
        """Compare the main rows under a protocol, by nDCG@10 over users, using the training with the first seed."""
        first = {row: by_row(self.runs, protocol)[row][0] for row in self.main}
        scores = self.benchmark.scores([replace(run, name=row) for row, run in first.items()])
        return compare(scores, metrics=[NDCG])

    @cached_property
    def corrected(self) -> pl.DataFrame:
        """Estimates for the full catalogue from the sampled ranks of each row's first seed, and the true values.

        Columns row, metric, sampled, estimate, lower, upper, identified, full, inside (the interval contains the
        value).
        """
        split = self.benchmark.split
        runs = [replace(own[0], name=row) for row, own in by_row(self.runs, SAMPLED).items()]
        results = correct_runs(
            runs, split.test, list(METRICS.values()), train=split.train, threshold=float(split.test.values.min())
        )
        frames = [
            result.frame.with_columns(
                row=pl.lit(row),
                metric=pl.Series(list(METRICS)),
                full=pl.Series([self.of(row, FULL, metric)[0] for metric in METRICS]),
            )
            for row, result in results.items()
        ]
        inside = pl.col("full").is_between("lower", "upper")
        return pl.concat(frames).select("row", pl.exclude("row")).with_columns(inside=inside)

    @cached_property
    def main(self) -> list[str]:
        """The rows to compare: one each of MF, NeuMF and EASE; all rows if these are fewer than two."""
        largest = {kind: [row for row in self.rows if row.startswith(f"{kind}, ")] for kind in (MF, NEUMF)}
        eases = [row for row in self.rows if row.startswith(f"{EASE}, ")]
        chosen = {own[-1] for own in largest.values() if own}
        if eases:
            chosen.add(max(eases, key=lambda row: self.mean(row, SAMPLED, "nDCG@10")))
        kinds = (MF, NEUMF, EASE)
        sized = tuple(f"{kind}, " for kind in kinds)
        rows = [row for row in self.rows if row in chosen or not row.startswith(sized)]
        return rows if len(rows) > 1 else self.rows

    def best_ease(self, protocol: str, metric: str) -> str | None:
        """Return the best row of EASE under a protocol."""
        eases = [row for row in self.rows if row.startswith(f"{EASE}, ")]
        return max(eases, key=lambda row: self.mean(row, protocol, metric)) if len(eases) > 1 else None
