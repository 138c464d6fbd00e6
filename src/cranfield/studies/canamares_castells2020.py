"""Cañamares and Castells (2020): target sampling, all test items of a user and N unrated ones.

On target item sampling in offline recommender system evaluation. RecSys 2020.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks
from cranfield._polars import read_parquet
from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.comparisons import moments, p_of_t
from cranfield.data import Ratings, over_one_vocabulary
from cranfield.measures import measure
from cranfield.rankings import Ranker, Ranking, Run, Serving, rank_with
from cranfield.recommenders import recommender
from cranfield.splits import Split, k_fold, truths
from cranfield.store import Artifact, Exports, Made, Store
from cranfield.studies._claims import OF_SPLITS
from cranfield.studies._study import PanelResults, PanelStudy
from cranfield.studies._targets import (
    COVERAGE,
    INTERSECTION,
    METRICS,
    PAIRS,
    SIZES,
    SUM_OF_P,
    TIES,
    TIES_AT_ZERO,
    UNBIASED,
)
from cranfield.studies._targets_claims import claims_of
from cranfield.studies._targets_exhibits import exhibits_of
from cranfield.studies._targets_grid import PairSums, grid_of
from cranfield.tables import write_table

Floats = NDArray[np.float64]

FOLDS = 5
_ROUNDING = 1e-12
_HKV = "iterations=20, regularization=1.0, target=rating, binary=false"


def systems_of(threshold: float, seed: int) -> dict[str, str]:
    """Return the spellings of the eight systems of the paper."""
    truncated = f"similarity=cosine, ratings=truncated, threshold={threshold:g}"
    normalised = f"normalised=true, min_neighbours=3, {truncated}"
    return {
        "Random": f"random(seed={seed})",
        "Popularity": "popularity",
        "Average Rating": f"average(threshold={threshold:g}, damping=1)",
        "kNN (full/test)": f"knn(k=100, {truncated})",
        "Normalized kNN (full)": f"knn(k=10, {normalised})",
        "Normalized kNN (test)": f"knn(k=1000, {normalised})",
        "iMF (full)": f"wrmf(factors=50, alpha=1.0, {_HKV}, steps=3, start=0.1414, seed={seed})",
        # Ten steps solve the equations of ten factors. With an α this large, fewer do not, and the start would matter.
        "iMF (test)": f"wrmf(factors=10, alpha=100.0, {_HKV}, steps=10, start=0.3162, seed={seed})",
    }


def fold_numbers(split: Split, threshold: float, seed: int, judged: Ratings | None = None) -> pl.DataFrame:
    """Measure the eight systems on one fold, under every number of unrated targets.

    Lists are filled at random for the metrics, and left short for the coverage. Means are over all users with training
    ratings: one without a test rating, or without a relevant one, counts as 0. With ``judged``, ratings of items drawn
    at random, full lists are measured by these as well.
    """
    rankers = _rankers(split, seed)
    rows: list[tuple[str, int, str, float]] = []
    by_user: dict[int, list[Floats]] = {size: [] for size in SIZES}
    for name, spelling in systems_of(threshold, seed).items():
        runs = rank_with(recommender(spelling).fit(split.train), rankers, name=name)
        for size, whole, short in zip(SIZES, runs[: len(SIZES)], runs[len(SIZES) :], strict=True):
            values = _user_values(whole, split.test, threshold)
            by_user[size].append(values)
            rows += [(name, size, metric, float(value)) for metric, value in zip(METRICS, values.mean(axis=1))]
            lengths = np.minimum(np.diff(short.indptr), 10)
            rows.append((name, size, COVERAGE, float(lengths.mean() / 10)))
        if judged is not None:
            values = _user_values(runs[len(SIZES) - 1], judged, threshold)
            rows += [(name, SIZES[-1], f"{UNBIASED} {metric}", value) for metric, value in zip(METRICS, values.mean(1))]
    for place, (size, values_of_systems) in enumerate(by_user.items()):
        rows.append((PAIRS, size, INTERSECTION, _intersection(rankers[place], split)))
        rows += [(PAIRS, size, *pair) for pair in _pair_numbers(np.stack(values_of_systems))]
    schema = {"system": pl.String, "unrated": pl.Int64, "metric": pl.String, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def fold_sums(split: Split, threshold: float, seed: int) -> PairSums:
    """Measure the 78 systems of Figure 4 on one fold, under every number of unrated targets."""
    rankers, systems = _rankers(split, seed)[: len(SIZES)], grid_of(threshold, seed)
    values = np.empty((len(systems), len(SIZES), len(METRICS), len(rankers[0].users)), dtype=np.float32)
    with progress("Measuring the systems of Figure 4", total=len(systems), unit="systems") as bar:
        for own, (name, spelling) in zip(values, systems.items()):
            runs = rank_with(recommender(spelling).fit(split.train), rankers, name=name)
            own[:] = [_user_values(run, split.test, threshold) for run in runs]
            bar.advance()
    return PairSums.of(values)


def _rankers(split: Split, seed: int) -> list[Ranker]:
    """Return for each size a ranker of lists filled at random, then for each size a ranker of lists left short.

    N items are drawn from all items that are not test items of the user, and training items among them are then
    removed: a user has about N (1 − r/m) unrated targets, where r of the m items outside the test set are training
    items. The printed numbers for the expected intersection of top tens show that the paper did it this way.
    """
    plain = Ranking(
        fill="none", lists="full", candidates="all", relevant="all", nonrelevant="all", keep_seen=False, length=10
    )
    everything = plain.with_(unrated=SIZES[-1])
    widest = Ranker.of(split, Serving(min_ratings=1, sample="all"), everything, seed)
    drawn = widest.targets.drawn
    assert drawn is not None
    parts = [drawn.first(count) for count in _unrated_counts(split, widest.users, seed)]
    return [
        replace(widest, targets=replace(widest.targets, ranking=plain.with_(unrated=size, fill=fill), drawn=part))
        for fill in ("random", "none")
        for size, part in zip(SIZES, parts)
    ]


def _unrated_counts(split: Split, users: NDArray[np.int32], seed: int) -> NDArray[np.int64]:
    """Return sizes × users: how many of the first N items in a random order of those outside the test set are unrated.

    The unrated items stay in the order in which they were drawn, so larger target sets contain smaller ones.
    """
    rng = stream(seed, "study", "targets", split.fold)
    counts = np.empty((len(SIZES), len(users)), dtype=np.int64)
    for place, user in enumerate(users.tolist()):
        trained, outside = int(split.train.user_counts[user]), split.train.n_items - int(split.test.user_counts[user])
        # The positions of the training items in the random order.
        places = np.argsort(rng.random(outside), kind="stable")[:trained]
        counts[:, place] = [min(size, outside) - np.count_nonzero(places < size) for size in SIZES]
    return counts


def _intersection(ranker: Ranker, split: Split) -> float:
    """Return the share of targets in a list of ten, which is the expected overlap of two random lists."""
    drawn = ranker.targets.drawn
    assert drawn is not None
    targets = np.diff(drawn.indptr) + split.test.user_counts[drawn.users]
    shares = np.where(targets > 0, np.minimum(targets, 10) / np.maximum(targets, 1), 1.0)
    return float(shares.mean())


def _user_values(run: Run, test: Ratings, threshold: float) -> Floats:
    """Return metrics × served users."""
    scores = measure([run], test, METRICS, threshold=threshold)
    values = np.zeros((len(METRICS), len(run.users)))
    places = np.searchsorted(run.users, scores.users)
    known = np.isin(scores.users, run.users)
    values[:, places[known]] = np.nan_to_num(scores.values[0][:, known])
    return values


def _pair_numbers(values: Floats) -> Iterator[tuple[str, float]]:
    """Yield numbers over all pairs of systems, from systems × metrics × users.

    These are the shares of users, over all pairs, for whom both systems have the same value and for whom both have 0;
    and the sum over pairs of the p-value of Student's paired t-test.
    """
    first, second = np.triu_indices(len(values), 1)
    for place, metric in enumerate(METRICS):
        own = values[:, place]
        d = own[first] - own[second]
        d[np.abs(d) < _ROUNDING] = 0.0
        n, mean, sd = moments(d)
        yield f"{TIES} of {metric}", float((d == 0).mean())
        yield f"{TIES_AT_ZERO} of {metric}", float(((own[first] == 0) & (own[second] == 0)).mean())
        yield f"{SUM_OF_P} of {metric}", float(p_of_t(mean, sd / np.sqrt(n), n).sum())


def _observed(ratings: Ratings, known: Ratings | None, seed: int) -> tuple[Ratings, Ratings | None]:
    """Return the ratings to divide into folds, and the ratings of items drawn at random, if there are any.

    If the observed ratings are among the judgments (CM100k), a random half of all judgments is set aside first.
    Otherwise training ratings would be missing from the judgments (`cranfield.splits.truths`).
    """
    if known is None:
        return ratings, None
    known, judged = over_one_vocabulary([known, ratings])
    pairs = [own.users.astype(np.int64) * own.n_items + own.items for own in (known, judged)]
    if np.isin(pairs[0], pairs[1]).any():
        truth = truths.half(known, judged, seed=seed)
        return truth.train, truth.judged
    return known, judged


def _work(
    store: Store,
    data: Sequence[Ratings],
    *,
    threshold: float,
    seed: int,
    folds: int | None = None,
    known: Ratings | None = None,
    all_systems: bool | None = None,
) -> PanelResults:
    """Measure every fold, and arrange the means over folds in tables and figures."""
    count = _checks.whole("folds", FOLDS if folds is None else folds, at_least=2)
    ratings, judged = _observed(data[0], known, seed)
    frames, artifacts, sums = [], {}, []
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
                "pairs": [TIES, TIES_AT_ZERO, SUM_OF_P, INTERSECTION],
                "drawn from": "items outside the test set",
                "without targets": 1,
                "judged": None if judged is None else judged.fingerprint,
            }
            name = f"measured/fold-{fold}"
            artifact = store.artifact(name, made_of, partial(_write, split, threshold, seed, judged))
            artifacts[name] = (artifact, partial(_export, artifact))
            frames.append(read_parquet(artifact.path()))
            if all_systems:
                made_of = {**made_of, "systems": grid_of(threshold, seed), "pairs": SUM_OF_P, "judged": None}
                artifact = store.artifact(f"pairs/fold-{fold}", made_of, partial(_write_sums, split, threshold, seed))
                sums.append(PairSums.read(artifact.path()))
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
    numbers = pl.concat(frame.with_columns(fold=pl.lit(fold)) for fold, frame in enumerate(frames, start=1))
    of_grid = sum(sums[1:], start=sums[0]).sums_of_p() if sums else None
    return PanelResults(exhibits_of(numbers, of_grid), claims_of(numbers), settings)


def _write(split: Split, threshold: float, seed: int, judged: Ratings | None, place: Path) -> Made:
    return [write_table(fold_numbers(split, threshold, seed, judged), place / "numbers.parquet")], {}


def _write_sums(split: Split, threshold: float, seed: int, place: Path) -> Made:
    return [fold_sums(split, threshold, seed).save(place / "sums.npz")], {}


def _export(artifact: Artifact, folder: Path) -> list[Path]:
    return [write_table(read_parquet(artifact.path()), folder / f"{artifact.name}.parquet")]


CANAMARES_CASTELLS_2020 = PanelStudy(
    name="canamares-castells2020",
    reference=(
        "Rocío Cañamares, Pablo Castells: On target item sampling in offline recommender system evaluation. "
        "RecSys 2020."
    ),
    options=("folds", "known", "all_systems"),
    several=False,
    rule=OF_SPLITS,
    work=_work,
)
