"""Cañamares and Castells (2020): target sampling, all test items of a user and N unrated ones.

On target item sampling in offline recommender system evaluation. RecSys 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._figures import altair, data_of, series, themed, tips
from cranfield._polars import read_parquet
from cranfield._progress import progress
from cranfield._table import Cell, Table
from cranfield.data import Ratings
from cranfield.data.writing import write_table
from cranfield.experiments.exports import Exports
from cranfield.experiments.store import Artifact, Made, Store
from cranfield.measures import measure
from cranfield.rankings import Ranking, Serving
from cranfield.rankings.several import rank_with, rankers_for
from cranfield.recommenders import recommender
from cranfield.splits import Split, k_fold
from cranfield.studies._claims import OF_SPLITS
from cranfield.studies._study import Exhibit, PanelResults, PanelStudy

SIZES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 3706)
"""The numbers of unrated targets; 0 is a condensed list, and 3706 a full one on MovieLens 1M."""
METRICS = ("P@10", "Recall@10", "nDCG(gain=binary)@10")
COVERAGE = "Coverage@10"
FOLDS = 5
_HKV = "iterations=20, regularization=1.0, target=rating, binary=false, steps=3"


def systems_of(threshold: float, seed: int) -> dict[str, str]:
    """Return the eight systems of the paper as they are spelled here."""
    truncated = f"similarity=cosine, ratings=truncated, threshold={threshold:g}"
    normalised = f"normalised=true, min_neighbours=3, {truncated}"
    return {
        "Random": f"random(seed={seed})",
        "Popularity": "popularity",
        "Average Rating": f"average(threshold={threshold:g}, damping=1)",
        "kNN (full/test)": f"knn(k=100, {truncated})",
        "Normalized kNN (full)": f"knn(k=10, {normalised})",
        "Normalized kNN (test)": f"knn(k=1000, {normalised})",
        "iMF (full)": f"wrmf(factors=50, alpha=1.0, {_HKV}, seed={seed})",
        "iMF (test)": f"wrmf(factors=10, alpha=100.0, {_HKV}, seed={seed})",
    }


def fold_numbers(split: Split, threshold: float, seed: int) -> pl.DataFrame:
    """Measure the eight systems on one fold, under every number of unrated targets.

    Lists are filled at random for the metrics, and left short for the coverage. Means are over all users with training
    ratings: one without a test rating counts 0.
    """
    plain = Ranking(
        fill="none", lists="full", candidates="all", relevant="all", nonrelevant="all", keep_seen=False, length=10
    )
    rankings = [plain.with_(unrated=size, fill=fill) for size in SIZES for fill in ("random", "none")]
    rankers = rankers_for(split, rankings, serving=Serving(min_ratings=1, sample="all"), seed=seed)
    rows: list[tuple[str, int, str, float]] = []
    for name, spelling in systems_of(threshold, seed).items():
        runs = rank_with(recommender(spelling).fit(split.train), rankers, name=name)
        for size, whole, short in zip(SIZES, runs[::2], runs[1::2], strict=True):
            scores = measure([whole], split.test, METRICS, threshold=threshold)
            known = np.isin(scores.users, whole.users)
            sums = np.nan_to_num(scores.values[0][:, known]).sum(axis=1) / len(whole.users)
            rows += [(name, size, metric, float(value)) for metric, value in zip(METRICS, sums)]
            lengths = np.minimum(np.diff(short.indptr), 10)
            rows.append((name, size, COVERAGE, float(lengths.mean() / 10)))
    schema = {"system": pl.String, "unrated": pl.Int64, "metric": pl.String, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _work(
    store: Store, data: Sequence[Ratings], *, threshold: float, seed: int, folds: int | None = None
) -> PanelResults:
    """Measure every fold, and lay out the means over folds."""
    count = _checks.whole("folds", FOLDS if folds is None else folds, at_least=2)
    (ratings,) = data
    frames, artifacts = [], {}
    with progress("Training and measuring", total=count, unit="folds") as bar:
        for fold, split in enumerate(k_fold(ratings, k=count, per_user=False, seed=seed), start=1):
            made_of = {
                "data": ratings.fingerprint,
                "folds": count,
                "fold": fold,
                "threshold": threshold,
                "seed": seed,
                "systems": systems_of(threshold, seed),
                "sizes": list(SIZES),
            }
            name = f"measured/fold-{fold}"
            artifact = store.artifact(name, made_of, partial(_write, split, threshold, seed))
            artifacts[name] = (artifact, partial(_export, artifact))
            frames.append(read_parquet(artifact.path()))
            bar.advance()
    exports = Exports(store)
    exports.publish(artifacts)
    exports.withdraw()
    store.finish()
    settings: dict[str, Any] = {
        "systems": list(systems_of(threshold, seed).values()),
        "unrated": list(SIZES),
        "threshold": threshold,
        "folds": count,
        "seed": seed,
    }
    return PanelResults(_exhibits(pl.concat(frames)), [], settings)


def _write(split: Split, threshold: float, seed: int, place: Path) -> Made:
    return [write_table(fold_numbers(split, threshold, seed), place / "numbers.parquet")], {}


def _export(artifact: Artifact, folder: Path) -> list[Path]:
    return [write_table(read_parquet(artifact.path()), folder / f"{artifact.name}.parquet")]


def _exhibits(numbers: pl.DataFrame) -> list[Exhibit]:
    means = numbers.group_by("system", "unrated", "metric", maintain_order=True).agg(
        pl.col("value").mean(), lowest=pl.col("value").min(), highest=pl.col("value").max()
    )
    parts = {metric: means.filter(metric=metric) for metric in (*METRICS, COVERAGE)}
    captions = {
        **{metric: f"Figure 3: {metric} by the number of unrated targets" for metric in METRICS},
        COVERAGE: "Figure 5: Coverage@10 without fill by the number of unrated targets",
    }
    stems = dict(zip(parts, ("figure-03-precision", "figure-03-recall", "figure-03-ndcg", "figure-05")))
    tables = [_table(stems[metric], captions[metric], part) for metric, part in parts.items()]
    figures = [
        Exhibit(stems[metric], captions[metric], part, draw=partial(_draw, part, metric))
        for metric, part in parts.items()
    ]
    return [*tables, *figures]


def _table(stem: str, caption: str, part: pl.DataFrame) -> Exhibit:
    systems = part["system"].unique(maintain_order=True).to_list()
    rows: list[list[str | Cell]] = []
    for size in SIZES:
        values = [part.filter(system=system, unrated=size)["value"].item() for system in systems]
        rows.append([str(size), *(Cell(f"{value:.4f}", best=value == max(values)) for value in values)])
    return Exhibit(f"{stem}-numbers", caption, part, Table(["Unrated", *systems], rows, caption))


def _draw(part: pl.DataFrame, metric: str) -> Any:
    alt = altair()
    order = [str(size) for size in SIZES]
    names = part["system"].unique(maintain_order=True).to_list()
    rows = part.with_columns(unrated=pl.col("unrated").cast(pl.String))
    tooltip = tips(system="system", unrated="unrated targets", value=(metric, ".4f"))
    chart = alt.Chart(data_of(rows)).mark_line(point={"size": 18, "filled": True})
    return themed(
        chart.encode(
            x=alt.X("unrated:O", sort=order, title="unrated targets"),
            y=alt.Y("value:Q", title=metric),
            tooltip=tooltip,
            **series("system", names),
        ).properties(width=360, height=240)
    )


CANAMARES_CASTELLS_2020 = PanelStudy(
    name="canamares-castells2020",
    reference=(
        "Rocío Cañamares, Pablo Castells: On target item sampling in offline recommender system evaluation. "
        "RecSys 2020."
    ),
    options=("folds",),
    several=False,
    rule=OF_SPLITS,
    work=_work,
)
