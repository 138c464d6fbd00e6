"""Target sampling, as in Cañamares and Castells (2020): all test items of a user and N unrated ones, on each fold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.comparisons import moments, p_of_t
from cranfield.data import Ratings
from cranfield.measures import measure
from cranfield.metrics import kendall_tau_b
from cranfield.rankings import Ranker, Ranking, Run, Serving, rank_with
from cranfield.recommenders import displayed_name, recommender
from cranfield.splits import Split
from cranfield.studies.frame.claims import Floats

SIZES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 3706)
"""The numbers of unrated targets; 0 is a condensed list, and 3706 a full one on MovieLens 1M."""

METRICS = ("P@10", "Recall@10", "nDCG(gain=binary)@10")
COVERAGE = "Coverage@10"

PAIRS = "all pairs"  # the entry in the column ``system`` for numbers of all pairs of systems

TIES, TIES_AT_ZERO, SUM_OF_P = "ratio of ties", "ratio of ties at zero", "sum of p-values"
"""The numbers of all pairs, for each metric."""

INTERSECTION = "expected intersection ratio in the top ten"
"""The expected overlap of two random lists: the mean of min(10, targets)/targets, 1 for a user without targets."""

UNBIASED = "unbiased"  # prefix of the name of a metric that is measured on ratings of randomly drawn items

AGREEMENT = "Kendall's tau with the unbiased order"

NEIGHBOURS = (*range(10, 100, 10), *range(100, 1000, 100), *range(1000, 7000, 1000))
FACTORS, REGULARIZATION, ALPHA = (5, 10, 50), (0.1, 1.0, 10.0), (1.0, 10.0, 100.0)

_ROUNDING = 1e-12
_TRUNCATED = "similarity=cosine, ratings=truncated, threshold={:g}"
_HKV = "iterations=20, regularization=1.0, target=rating, binary=false"


def _simple(threshold: float, seed: int) -> dict[str, str]:
    average = f"average(threshold={threshold:g}, damping=1)"
    return {"Random": f"random(seed={seed})", "Popularity": "popularity", "Average Rating": average}


def systems_of(threshold: float, seed: int, given: Sequence[str] = ()) -> dict[str, str]:
    """Return the spellings of the eight systems of the paper, and of those that are added."""
    truncated = _TRUNCATED.format(threshold)
    normalised = f"normalised=true, min_neighbours=3, {truncated}"
    return {
        **_simple(threshold, seed),
        "kNN (full/test)": f"knn(k=100, {truncated})",
        "Normalized kNN (full)": f"knn(k=10, {normalised})",
        "Normalized kNN (test)": f"knn(k=1000, {normalised})",
        "iMF (full)": f"wrmf(factors=50, alpha=1.0, {_HKV}, steps=3, start=0.1414, seed={seed})",
        # Ten steps solve the equations of ten factors. With an α this large, fewer do not, and the start would matter.
        "iMF (test)": f"wrmf(factors=10, alpha=100.0, {_HKV}, steps=10, start=0.3162, seed={seed})",
        **{displayed_name(system): system for system in given},
    }


def fold_numbers(
    split: Split, systems: Mapping[str, str], threshold: float, seed: int, judged: Ratings | None = None
) -> pl.DataFrame:
    """Measure the systems on one fold, under every number of unrated targets.

    Lists are filled at random for the metrics, and left short for the coverage. Means are over all users with training
    ratings: one without a test rating, or without a relevant one, counts as 0. With ``judged``, ratings of items drawn
    at random, full lists are measured by these as well.
    """
    rankers = _rankers(split, seed)
    rows: list[tuple[str, int, str, float]] = []
    by_user: dict[int, list[Floats]] = {size: [] for size in SIZES}
    for name, spelling in systems.items():
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


def fold_sums(split: Split, systems: Mapping[str, str], threshold: float, seed: int) -> PairSums:
    """Measure the systems of Figure 4 on one fold, under every number of unrated targets."""
    rankers = _rankers(split, seed)[: len(SIZES)]
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
    """Return sizes × users: how many of the first N items outside the test set, in random order, are unrated."""
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
    """Yield over all pairs of systems the shares of users with equal values and with 0, and the sum of Student's p."""
    first, second = np.triu_indices(len(values), 1)
    for place, metric in enumerate(METRICS):
        own = values[:, place]
        d = own[first] - own[second]
        d[np.abs(d) < _ROUNDING] = 0.0
        n, mean, sd = moments(d)
        yield f"{TIES} of {metric}", float((d == 0).mean())
        yield f"{TIES_AT_ZERO} of {metric}", float(((own[first] == 0) & (own[second] == 0)).mean())
        yield f"{SUM_OF_P} of {metric}", float(p_of_t(mean, sd / np.sqrt(n), n).sum())


def grid_of(threshold: float, seed: int) -> dict[str, str]:
    """Return the spellings of the 78 systems: three simple ones, and those of a grid of parameters."""
    truncated, systems = _TRUNCATED.format(threshold), _simple(threshold, seed)
    for k in NEIGHBOURS:
        systems[f"kNN (k={k})"] = f"knn(k={k}, {truncated})"
        systems[f"Normalized kNN (k={k})"] = f"knn(k={k}, normalised=true, min_neighbours=3, {truncated})"
    for factors, regularization, alpha in product(FACTORS, REGULARIZATION, ALPHA):
        # Solving the equations takes more steps the larger α is.
        settings = (
            f"factors={factors}, alpha={alpha:g}, regularization={regularization:g}, iterations=20, target=rating, "
            f"binary=false, steps={3 if alpha == 1 else 10}, start={factors**-0.5:.4f}, seed={seed}"
        )
        systems[f"iMF (k={factors}, lambda={regularization:g}, alpha={alpha:g})"] = f"wrmf({settings})"
    return systems


@dataclass(frozen=True, eq=False)
class PairSums:
    """What Student's paired test of all pairs of systems needs: sums of user values and of their products."""

    users: int
    sums: Floats  # sizes × metrics × systems
    products: Floats  # sizes × metrics × systems × systems

    @classmethod
    def of(cls, values: NDArray[np.float32]) -> PairSums:
        """Return the sums of systems × sizes × metrics × users."""
        exact = values.transpose(1, 2, 0, 3).astype(np.float64)
        return cls(values.shape[-1], exact.sum(axis=-1), exact @ exact.swapaxes(-1, -2))

    def __add__(self, other: PairSums) -> PairSums:
        return PairSums(self.users + other.users, self.sums + other.sums, self.products + other.products)

    def sums_of_p(self) -> Floats:
        """Return sizes × metrics: the p-values of Student's paired test, summed over all pairs of systems."""
        first, second = np.triu_indices(self.sums.shape[-1], 1)
        own = np.diagonal(self.products, axis1=-2, axis2=-1)
        mean = (self.sums[..., first] - self.sums[..., second]) / self.users
        squares = own[..., first] + own[..., second] - 2 * self.products[..., first, second]
        variance = np.maximum(squares - self.users * mean**2, 0.0) / (self.users - 1)
        return p_of_t(mean, np.sqrt(variance / self.users), np.full(mean.shape, self.users)).sum(axis=-1)

    def save(self, path: Path) -> Path:
        """Write the sums to a file."""
        with path.open("wb") as file:
            np.savez(file, users=self.users, sums=self.sums, products=self.products)
        return path

    @classmethod
    def read(cls, path: Path) -> PairSums:
        """Return the sums in a file."""
        with np.load(path) as arrays:
            return cls(int(arrays["users"]), arrays["sums"], arrays["products"])


def agreement(means: pl.DataFrame, metric: str) -> list[float]:
    """Return Kendall's tau between values of systems and those by unbiased ratings, for each size; empty without."""
    true = dict(means.filter(metric=f"{UNBIASED} {metric}").select("system", "value").iter_rows())
    if not true:
        return []
    by_size = [dict(means.filter(metric=metric, unrated=size).select("system", "value").iter_rows()) for size in SIZES]
    return [kendall_tau_b([own[system] for system in true], list(true.values())) for own in by_size]
