"""Two systems under the decisions of Cañamares et al. (2020): what is trained, ranked and measured on each split.

Each split is an artifact of the store: a frame of averages with one row per number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cranfield.comparisons import compare
from cranfield.data import Ratings, sample
from cranfield.measures import Scores, measure
from cranfield.metrics import Metric
from cranfield.rankings import Ranking, Run, Serving, measured_ratings, rank_under
from cranfield.recommenders import recommender
from cranfield.splits import Split, random
from cranfield.studies.frame.claims import Floats, users_error
from cranfield.studies.frame.study import PanelNumbers, StudyUnit, ValueRows

KNN, MF = "kNN", "MF"
RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
START = 0.5  # the split ratio of the starting point
CUTOFFS = (1, 2, 3, 5, 10, 20, 30, 50, 100)
DEPTHS = tuple(range(1, 11))
NEIGHBOURS = (1, 3, 10, 30, 100)
FILLS = {"None": "none", "Random": "random", "Popularity": "popularity", "Average rating": "average"}
OVERLAPS = (0, 5, 10, 15, 20, 30, 40, 50)
AVERAGES = {
    "AM, unweighted": "mean",
    "AM, Test weighted": "weighted(by=judged)",
    "AM, Test relevant": "weighted(by=relevant)",
    "GM, unweighted": "geometric(form=adjusted, epsilon=0.01)",
}

PRECISION, NDCG, UNRATED = "P@10", "nDCG(gain=binary)@10", "Unjudged@10"
GAINED = {
    ("NDCG@10", "g2 as printed"): "nDCG(gain=expfull)@10",
    ("NDCG@10", "g2 of decision C2"): "nDCG(gain=exp1full)@10",
    ("RBP", "g1"): "RBP(p=0.8, gain=binary)@10",
    ("RBP", "g2 as printed"): "RBP(p=0.8, gain=expfull)@10",
    ("RBP", "g2 of decision C2"): "RBP(p=0.8, gain=exp1full)@10",
}
AGREEMENT = ("Tau", "RBO(p=0.9, ties=system)")

_FULL = Ranking(
    fill="none", lists="full", candidates="all", relevant="all", nonrelevant="all", keep_seen=False, length=10
)
_TRAINED = Serving(min_ratings=1, sample="all")


def neighbours(k: int, *, binary: bool = False, overlap: int = 0) -> str:
    """Return the spelling of the paper's kNN."""
    return f"knn(k={k}, similarity=cosine, overlap={overlap}, q=1.0, binary={str(binary).lower()})"


def factors(seed: int) -> str:
    """Return the spelling of the paper's MF: λ = 0.1 and α = 1 (swapped in print), fitted to the ratings."""
    return (
        "wrmf(factors=50, iterations=20, alpha=1.0, regularization=0.1, target=rating, binary=false, steps=3, "
        f"seed={seed})"
    )


@dataclass(frozen=True)
class SplitWork:
    """The measurements on splits of one set of ratings."""

    data: Ratings
    k: int  # the number of neighbours of kNN
    threshold: float

    def starting_point(self, seed: int) -> ValueRows:
        """Measure both systems on a split of 0.5: Tables 2 to 4, Figures 5 and 6, and a point of Figures 2 to 4."""
        split = random(self.data, train=START, exact=False, seed=seed)
        test = measured_ratings(split, _TRAINED)
        rankings = [_FULL.with_(length="all"), _FULL.with_(lists="condensed", length="all")]
        full, condensed = self._ranked(split, rankings, seed)
        at_ten = [PRECISION, NDCG]
        cut = [f"nDCG(gain=binary)@{cutoff}" for cutoff in CUTOFFS]
        depth = [f"FullRank(which=last)@{place}" for place in DEPTHS]
        scores = measure(full, test, [*at_ten, *GAINED.values(), *cut, *depth], threshold=self.threshold)
        short = measure(condensed, test, AGREEMENT, threshold=self.threshold)
        rows = self._ratio(full, condensed, test, START)
        rows += _rows("gain", "full", START, scores, [*at_ten, *GAINED.values()])
        for cutoff, metric in zip(CUTOFFS, cut):
            rows += _rows("cutoff", "full", float(cutoff), scores, {metric: "NDCG@d"})
        for name, average in AVERAGES.items():
            rows += _rows("average", name, START, scores, at_ten, average)
        rows += _depths(scores, depth)
        return rows + _rows("agreement", "condensed", START, short, AGREEMENT)

    def ratio(self, seed: int, train: float) -> ValueRows:
        """Measure both systems on a split of another ratio: a point of Figures 2 to 4."""
        split = random(self.data, train=train, exact=False, seed=seed)
        full, condensed = self._ranked(split, [_FULL, _FULL.with_(lists="condensed")], seed)
        return self._ratio(full, condensed, measured_ratings(split, _TRAINED), train)

    def gaps(self, seed: int) -> ValueRows:
        """Measure kNN with few neighbours on half of the ratings, with its gaps left or filled in: Figure 7."""
        split = random(sample(self.data, share=0.5, of="ratings", seed=seed), train=START, exact=False, seed=seed)
        test = measured_ratings(split)
        rankings = [_FULL.with_(lists="condensed", fill=fill) for fill in FILLS.values()]
        rows: ValueRows = []
        for k in NEIGHBOURS:
            model = recommender(neighbours(k)).fit(split.train)
            runs = rank_under(model, split, rankings, seed=seed, name=KNN)
            for name, run in zip(FILLS, runs, strict=True):
                scores = measure([run], test, [PRECISION, NDCG], threshold=self.threshold)
                rows += _rows("gaps", name, float(k), scores, [PRECISION, NDCG])
                assert scores.filled is not None
                rows.append(("gaps", name, float(k), "Coverage@10", KNN, float(scores.filled[0, 0]), None))
        return rows

    def overlap(self, seed: int) -> ValueRows:
        """Measure kNN with an increasing minimum of shared items: Figure 8, as printed and with only liked items."""
        split = random(self.data, train=START, exact=False, seed=seed)
        test = measured_ratings(split, _TRAINED)
        liked = split.train.keep(split.train.values >= self.threshold)
        rows: ValueRows = []
        for name, k, train in (("as printed", 10, split.train), ("liked items", self.k, liked)):
            for overlap in OVERLAPS:
                model = recommender(neighbours(k, binary=True, overlap=overlap)).fit(train)
                runs = rank_under(model, split, [_FULL], serving=_TRAINED, seed=seed, name=KNN)
                scores = measure(runs, test, [PRECISION], threshold=self.threshold)
                covered = scores.covered[0]
                own = np.where(covered, np.nan_to_num(scores.values[0, 0]), 0.0)
                values = {"full": own, "reduced": own[covered], "User-coverage": covered.astype(np.float64)}
                for what, of_users in values.items():
                    mean = float(of_users.mean()) if len(of_users) else float("nan")
                    error = users_error(of_users, np.arange(len(of_users))) if len(of_users) else None
                    rows.append(("overlap", name, float(overlap), what, KNN, mean, None, error))
        return rows

    def _ranked(self, split: Split, rankings: Sequence[Ranking], seed: int) -> list[list[Run]]:
        """Train both systems and return their runs under each of the decisions."""
        models = {KNN: neighbours(self.k), MF: factors(seed)}
        runs = [
            rank_under(recommender(own).fit(split.train), split, rankings, serving=_TRAINED, seed=seed, name=name)
            for name, own in models.items()
        ]
        return [list(pair) for pair in zip(*runs, strict=True)]

    def _ratio(self, full: Sequence[Run], condensed: Sequence[Run], test: Ratings, train: float) -> ValueRows:
        wanted = [PRECISION, NDCG]
        scores = measure(list(full), test, [*wanted, UNRATED], threshold=self.threshold)
        short = measure(list(condensed), test, wanted, threshold=self.threshold)
        rows = _rows("ratio", "full", train, scores, [*wanted, UNRATED])
        return rows + _rows("ratio", "condensed", train, short, wanted)


def _rows(
    part: str, setting: str, x: float, scores: Scores, metrics: Sequence[str] | Mapping[str, str], average: str = "mean"
) -> ValueRows:
    """Return the averages of some metrics, optionally renamed, and Student's p of the two systems."""
    names = metrics if isinstance(metrics, Mapping) else dict(zip(metrics, metrics))
    values = scores.average(average, undefined="zero", coverage="full", by="list", groups="pooled")
    wanted = {str(Metric.of(spelling)): name for spelling, name in names.items()}
    p = _p_values(scores, average, list(wanted)) if len(scores.systems) == 2 else {}
    places = {scores.metric(spelling): name for spelling, name in wanted.items()}
    # Weighted and geometric means are only compared with each other, for which p is enough.
    of_users = np.nan_to_num(scores.values) if average == "mean" else None
    return [
        (part, setting, x, name, system, float(values[s, m]), p.get(scores.metrics[m]),
         None if of_users is None else users_error(of_users[s, m], scores.users))
        for m, name in places.items()
        for s, system in enumerate(scores.systems)
    ]  # fmt: skip


def _p_values(scores: Scores, average: str, metrics: Sequence[str]) -> dict[str, float]:
    """Return the p-value of each metric by a paired two-tailed t-test, on logarithms for the geometric mean."""
    test = "log_student(epsilon=0.01)" if average.startswith("geometric") else "student"
    averaging: dict[str, Any] = {"average": average, "undefined": "zero", "coverage": "full", "by": "user"}
    comparison = compare(scores, significance=test, metrics=metrics, correction="none", **averaging)
    return dict(comparison.rows.select("metric", "p").iter_rows())


def _depths(scores: Scores, metrics: Sequence[str]) -> ValueRows:
    """Return the ranks of the first ten condensed items in full lists, over users for whom both have ten."""
    places = [scores.metric(str(Metric.of(name))) for name in metrics]
    ranks = scores.values[:, places]
    whole = ~np.isnan(ranks).any(axis=(0, 1))
    means = ranks[:, :, whole].mean(axis=2) if whole.any() else np.full(ranks.shape[:2], np.nan)
    errors = ranks[:, :, whole].std(axis=2) / np.sqrt(whole.sum()) if whole.any() else means
    return [
        ("depth", "full", float(depth), "position", system, float(means[s, d]), None, float(errors[s, d]))
        for d, depth in enumerate(DEPTHS)
        for s, system in enumerate(scores.systems)
    ]


def units(panel: str, work: SplitWork, seeds: Sequence[int], curve_seeds: Sequence[int]) -> list[StudyUnit]:
    """Return all measurements for a panel; ``curve_seeds`` are the seeds used away from the starting point."""
    common = {"data": work.data.fingerprint, "k": work.k, "threshold": work.threshold, "errors": "over users"}

    def unit(part: str, seed: int, make: Callable[..., ValueRows], trainings: int, **more: Any) -> StudyUnit:
        of = {**common, "part": part, "seed": seed, "mf": factors(seed), **more}
        tail = "".join(f"-{value:g}" for value in more.values())
        return StudyUnit(f"{panel}/{part}{tail}/split-{seed}", of, partial(make, seed, **more), trainings)

    measurements = [unit("start", seed, work.starting_point, 2) for seed in seeds]
    for seed in curve_seeds:
        measurements += [unit("ratio", seed, work.ratio, 2, train=train) for train in RATIOS if train != START]
        measurements.append(unit("gaps", seed, work.gaps, len(NEIGHBOURS)))
        measurements.append(unit("overlap", seed, work.overlap, 2 * len(OVERLAPS)))
    return measurements


class SplitNumbers(PanelNumbers[SplitWork]):
    """The numbers of one set of ratings, looked up by system."""

    def of(self, part: str, setting: str, metric: str, system: str, column: str = "value") -> Floats:
        """Return splits × x: the values of a system, or their p-values."""
        return self.curve(part, column, setting=setting, metric=metric, system=system)[1]

    def both(self, part: str, setting: str, metric: str) -> list[Floats]:
        """Return the values of kNN and of MF, each splits × x."""
        return [self.of(part, setting, metric, system) for system in (KNN, MF)]

    def lead(self, part: str, setting: str, metric: str) -> Floats:
        """Return splits × x: the lead of kNN over MF."""
        knn, mf = self.both(part, setting, metric)
        return knn - mf
