"""Six systems under the designs of Bellogín et al. (2017): what is trained, ranked and measured on each split.

Each fold, uniform-test split and simulated dataset is an artifact of the store: a frame of averages with one row per
number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cranfield import simulate
from cranfield._numbers import nearest_count
from cranfield._registry import parse
from cranfield._streams import stream
from cranfield.comparisons import compare
from cranfield.data import Ratings, by_popularity, head_items
from cranfield.measures import Scores, measure
from cranfield.metrics import Metric
from cranfield.rankings import Ranker, Ranking, RatedRanker, Run, Serving, fit_each, rank_with, rankers_for
from cranfield.recommenders import displayed_name, recommender
from cranfield.splits import Folds, Split, popularity_groups, random, uniform_test
from cranfield.studies.frame.claims import Floats, Part, users_error
from cranfield.studies.frame.study import PanelNumbers, StudyUnit, ValueRows, pair_errors

PLSA, SVD, WRMF, KNN, POPULARITY, RANDOM = "pLSA", "MF (svd)", "MF (wrmf)", "kNN", "Popularity", "Random"
NORMALISED = "kNN, normalised"  # beside the paper's systems, because its kNN does worse than ours
PAPER = (PLSA, SVD, WRMF, KNN, POPULARITY, RANDOM)
SYSTEMS = (*PAPER, NORMALISED)
WHOLE = (POPULARITY, RANDOM)
"""The systems that rank every item, even one without training ratings (section 7: they reach full coverage)."""
BOUNDED = (PLSA, KNN)  # the systems of Figure 3

CUTOFF = 10
PRECISION, NDCG, RECALL, MRR = "P@10", "nDCG(gain=relevant)@10", "Recall@10", "RR"
BPREF, INFAP, STRATIFIED = "bpref", "infAP", "StratRecall(gamma=1)@10"
METRICS = (PRECISION, NDCG, BPREF, INFAP, STRATIFIED)
DENSITY_METRICS = (PRECISION, MRR, NDCG, RECALL)

TI, AI, DRAWN, ONE = "AR TI-AN", "AR AI-AN", "AR TI-NN", "1R"
PERCENTILE, HEAD, AR = "P1R", "1R -10% head", "AR"
U1R, UAR, AI_UAR = "U1R", "UAR", "AI-UAR"
FIGURE_2 = (TI, AI, DRAWN, ONE)
FIGURE_8 = (ONE, U1R, PERCENTILE, HEAD, AR, UAR, AI_UAR)

GROUPS, HEAD_SHARE, SIGMA, EPSILON = 10, 0.1, 0.2, 0.2
SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
"""The shares of the test ratings that are kept in Figures 3 and 4."""
SIZES = tuple(range(1, 11))
"""The sizes of target sets in Figures 3 and 4, as multiples of the size in the other figures."""
ALPHAS = (0.0, 0.5, 1.0, 1.5, 2.0)  # the skewness of the simulated ratings of Figure 5
_POINTS = 100


_ROLES = {"plsa": PLSA, "svd": SVD, "wrmf": WRMF, "knn": KNN, "popularity": POPULARITY, "random": RANDOM}


def systems_of(seed: int, given: Sequence[str] = ()) -> dict[str, str]:
    """Return the spellings of the systems; the paper does not say which matrix factorisation it uses.

    A ``given`` system replaces the one of the same kind, or is added.
    """
    drawn = {name: f"{system}(seed={seed})" for name, system in ((PLSA, "plsa"), (SVD, "svd"), (WRMF, "wrmf"))}
    own = {**drawn, KNN: "knn", POPULARITY: "popularity", RANDOM: f"random(seed={seed})"}
    own[NORMALISED] = "knn(normalised=true, min_neighbours=5)"
    for system in given:
        normalised = dict(parse(system).parameters).get("normalised") is True
        kind = NORMALISED if normalised else _ROLES.get(parse(system).name)
        recommender(system)  # raises an error for a misspelled one
        own[kind or displayed_name(system)] = system
    return own


def coin_folds(data: Ratings, folds: int, seed: int) -> Folds:
    """Return folds of different sizes: each rating is a test rating of a fold drawn at random."""
    keys = stream(seed, "studies", "bias", "folds").random(len(data))
    settings = {"k": folds, "per_user": False, "seed": seed, "validation": None}
    return Folds(data, np.floor(keys * folds).astype(np.uint8), settings)


@dataclass(frozen=True)
class BiasWork:
    """The measurements on one set of ratings."""

    data: Ratings
    uniform_data: Ratings  # without the rarest items, if there is no uniform-test split with all of them
    threshold: float
    other: float | None  # another threshold, to see whether results are similar
    folds: int
    targets: int  # the size of target sets in one-relevant designs
    nonrelevant: int  # the number of non-relevant items in the target sets of AR in Figure 8
    seed: int
    divided: Split | None = None  # the split, if the ratings are already divided; there is only one fold then
    drawn: int | None = None  # the number of non-relevant items of AR in Figure 2, if not all of them are used
    dropped: int = 0  # the number of the rarest items that uniform-test splits leave out
    sizes: Mapping[str, int] = field(default_factory=dict)  # of a uniform-test split: zeta, eta
    systems: Mapping[str, str] = field(default_factory=dict)  # spellings by name

    @property
    def positive(self) -> bool:
        """Whether every rating is positive."""
        return bool(self.data.values.min() >= self.threshold)

    @property
    def plain(self) -> str:
        """The AR design of Figure 2 among test items."""
        return TI if self.drawn is None else DRAWN

    @property
    def designs(self) -> tuple[str, ...]:
        """The designs of Figures 2 and 8 that are measured."""
        others = (DRAWN,) if self.drawn is None else (TI, AI)
        return tuple(name for name in dict.fromkeys((*FIGURE_2, *FIGURE_8)) if name not in others)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The threshold, and the other one if there is one."""
        return (self.threshold,) if self.other is None else (self.threshold, self.other)

    def fold(self, fold: int, curves: bool) -> ValueRows:
        """Measure a fold: Figure 2, the random splits of Figure 8, Figure 9 and, with ``curves``, Figures 3 and 4."""
        split = coin_folds(self.data, self.folds, self.seed)[fold] if self.divided is None else self.divided
        designs = self._designs(split)
        # Keys begin with the part of the study, so that a threshold of 1 is not confused with a share of 1.
        thinned = self._thinned(split) if curves else {}
        sizes = self._sizes(split) if curves else {}
        runs = self._ranked(split, {**designs, **thinned, **sizes})
        rows = [*self._design_rows(designs, runs), *self._expected(designs, runs)]
        for place, ranker in thinned.items():
            rows += self._density_rows(*place[1:], runs[place], ranker, split)
        for key, ranker in sizes.items():
            rows += self._one_relevant_rows("size", float(key[1]), runs[key], ranker)
        return rows

    def uniform(self, draw: int) -> ValueRows:
        """Measure a split with equally many test ratings per item: U1R, UAR and AI-UAR of Figure 8."""
        split = uniform_test(self.uniform_data, sigma=SIGMA, epsilon=EPSILON, seed=self.seed + draw)
        whole = Ranking(length="all")
        same = {UAR: self._rated(split, whole.with_(candidates="test")), AI_UAR: self._rated(split, whole)}
        designs = {
            (name, at): ranker
            for at in self.thresholds
            for name, ranker in {**same, U1R: self._plain(split, self._one_relevant(at))}.items()
        }
        return self._design_rows(designs, self._ranked(split, designs))

    def skew(self, alpha: float, draw: int) -> ValueRows:
        """Measure simulated ratings of the same size whose popularity has a given skewness: Figure 5."""
        simulated = simulate.popularity(like=self.data, alpha=alpha, seed=self.seed + draw)
        split = random(simulated, train=1 - SIGMA, seed=self.seed + draw)
        ranker = self._plain(split, self._one_relevant(self.threshold))
        rows = self._one_relevant_rows("skew", alpha, self._ranked(split, {"1R": ranker})["1R"], ranker)
        shares = cumulated(simulated)
        return rows + [("cumulated", f"{alpha:g}", share, "ratings", "", value, None) for share, value in shares]

    @property
    def _all_relevant(self) -> Ranking:
        """The targets of AR among test items, in Figures 2 to 4."""
        whole = Ranking(length="all", candidates="test")
        return whole if self.drawn is None else whole.with_(nonrelevant=self.drawn, threshold=self.threshold)

    def _one_relevant(self, threshold: float) -> Ranking:
        drawn = self.targets - 1
        return Ranking(relevant="one", candidates="test", nonrelevant=drawn, threshold=threshold, length="all")

    def _plain(self, split: Split, ranking: Ranking) -> Ranker:
        return Ranker.of(split, Serving(), ranking, self.seed)

    def _rated(self, split: Split, ranking: Ranking) -> Ranker:
        return RatedRanker.of(split, Serving(), ranking, self.seed)

    def _designs(self, split: Split) -> dict[tuple[str, float], Ranker]:
        """Return the rankers of the designs of Figures 2 and 8 for a random split, under each threshold."""
        whole = Ranking(length="all")
        same = {self.plain: self._rated(split, self._all_relevant)}
        if self.drawn is None:
            same[AI] = self._rated(split, whole)
        grouped = replace(split, item_groups=popularity_groups(self.data, GROUPS))
        tail = ~head_items(self.data, HEAD_SHARE)
        headless = replace(split, test=split.test.keep(tail[split.test.items]))
        designs: dict[tuple[str, float], Ranker] = {}
        for at in self.thresholds:
            single, drawn = self._one_relevant(at), whole.with_(candidates="test", nonrelevant=self.nonrelevant)
            by_name = {
                **same,
                ONE: self._plain(split, single),
                PERCENTILE: self._plain(grouped, single.with_(candidates="group")),
                HEAD: self._plain(headless, single),
                AR: self._rated(split, drawn.with_(threshold=at)),
            }
            designs |= {(name, at): ranker for name, ranker in by_name.items()}
        return designs

    def _ranked(self, split: Split, rankers: Mapping[Any, Ranker]) -> dict[Any, list[Run]]:
        """Train the systems, and return the run of each under each ranker; a ranker that occurs twice ranks once."""
        spelled = self.systems
        different = list({id(ranker): ranker for ranker in rankers.values()}.values())
        place_of = {id(ranker): place for place, ranker in enumerate(different)}
        whole = [_filled(ranker) for ranker in different]
        runs: dict[int, list[Run]] = {}
        for done in fit_each(split.train, spelled):
            name = list(spelled)[done.place]
            runs[done.place] = rank_with(done.result, whole if name in WHOLE else different, name=name)
        systems = range(len(spelled))
        return {key: [runs[system][place_of[id(own)]] for system in systems] for key, own in rankers.items()}

    def _design_rows(self, designs: Mapping[tuple[str, float], Ranker], runs: Mapping[Any, list[Run]]) -> ValueRows:
        rows: ValueRows = []
        for (name, at), ranker in designs.items():
            ranked, targets = runs[name, at], ranker.targets
            metrics = [metric for metric in METRICS if not (metric == BPREF and ranked[0].one_relevant)]
            scores = measure(ranked, targets.test, metrics, threshold=at, train=targets.train)
            rows += _averages(name, at, scores) + _pairs(name, at, scores)
            if name in FIGURE_2 and at == self.threshold:
                rows += _wilcoxon(name, scores)
        return rows

    def _expected(self, designs: Mapping[Any, Ranker], runs: Mapping[Any, list[Run]]) -> ValueRows:
        """Return σδ, the precision of random that equation (4) expects: |PR_test|/|U| · avg 1/|T_u|."""
        key = (self.plain, self.threshold)
        run = next(run for run in runs[key] if run.name == RANDOM)
        test = designs[key].targets.test
        assert test is not None
        sizes = run.list_lengths[test.user_counts[run.users] > 0]
        expected = np.count_nonzero(test.values >= self.threshold) / len(sizes) * (1.0 / sizes).mean()
        return [("expected", self.plain, self.threshold, PRECISION, RANDOM, float(expected), None)]

    def _thinned(self, split: Split) -> dict[tuple[str, str, float], Ranker]:
        """Return rankers for decreasing numbers of test ratings, in AR and in 1R."""
        keys = stream(self.seed, "studies", "bias", "density", split.fold).random(len(split.test))
        order = np.argsort(keys, kind="stable")
        rankers: dict[tuple[str, str, float], Ranker] = {}
        for share in SHARES:
            kept = np.zeros(len(order), dtype=np.bool_)
            kept[order[: int(nearest_count(share, len(order)))]] = True
            smaller = replace(split, test=split.test.keep(kept))
            rankers["density", "AR", share] = self._rated(smaller, self._all_relevant)
            rankers["density", "1R", share] = self._plain(smaller, self._one_relevant(self.threshold))
        return rankers

    def _sizes(self, split: Split) -> dict[tuple[str, float], Ranker]:
        """Return rankers for growing target sets in 1R, up to the number of items."""
        most = int(np.count_nonzero(split.test.item_counts))
        sizes = [size * self.targets for size in SIZES if size * self.targets <= most]
        single = self._one_relevant(self.threshold)
        rankers = rankers_for(split, [single.with_(nonrelevant=size - 1) for size in sizes], seed=self.seed)
        return {("size", size): ranker for size, ranker in zip(sizes, rankers, strict=True)}

    def _density_rows(self, way: str, share: float, runs: Sequence[Run], ranker: Ranker, split: Split) -> ValueRows:
        """Return the measurements as test ratings are removed; precision is a mean over all users of the fold."""
        if way == "1R":
            return self._one_relevant_rows("density", share, runs, ranker)
        scores = measure(list(runs), ranker.targets.test, DENSITY_METRICS, threshold=self.threshold)
        values = scores.average("mean", undefined="leave out")
        users = np.count_nonzero(split.test.user_counts)
        values[:, 0] = np.nan_to_num(scores.values[:, 0]).sum(axis=1) / users
        return [
            ("density", way, share, metric, run.name, float(values[s, m]), None,
             users_error(np.nan_to_num(scores.values[s, m]), scores.users))
            for s, run in enumerate(runs)
            for m, metric in enumerate(DENSITY_METRICS)
        ]  # fmt: skip

    def _one_relevant_rows(self, part: str, x: float, runs: Sequence[Run], ranker: Ranker) -> ValueRows:
        """Return 1R precision and, except for simulated ratings, the bounds of some systems by lemma (2)."""
        scores = measure(list(runs), ranker.targets.test, [PRECISION], threshold=self.threshold)
        values = scores.average("mean", undefined="zero", by="list")[:, 0]
        errors = [users_error(np.nan_to_num(own), scores.users) for own in scores.values[:, 0]]
        rows: ValueRows = [
            (part, "1R", x, PRECISION, run.name, float(value), None, error)
            for run, value, error in zip(runs, values, errors)
        ]
        for run in runs if part != "skew" else ():
            if run.name in BOUNDED:
                assert run.ranks is not None
                bounds = lemma_bounds(run.users, run.ranks, CUTOFF)
                rows += [(f"bounds-{part}", end, x, PRECISION, run.name, value, None) for end, value in bounds.items()]
        return rows


def _filled(ranker: Ranker) -> Ranker:
    """Return a ranker of the same targets with complete lists: targets without a score follow in random order."""
    ranking = ranker.ranking.with_(fill="random")
    return replace(ranker, targets=replace(ranker.targets, ranking=ranking))


def _averages(design: str, threshold: float, scores: Scores) -> ValueRows:
    """Return the averages over lists, as in equation (1), or over popularity groups of equal weight."""
    groups: Literal["equal", "pooled"] = "equal" if design == PERCENTILE else "pooled"
    values = scores.average("mean", undefined="zero", coverage="full", by="list", groups=groups)
    rows: ValueRows = []
    for s, system in enumerate(scores.systems):
        for spelling in METRICS:
            if str(Metric.of(spelling)) in scores.metrics:
                m = scores.metric(str(Metric.of(spelling)))
                of_lists = scores.groups if design == PERCENTILE else None
                error = users_error(np.nan_to_num(scores.values[s, m]), scores.users, of_lists)
                rows.append(("design", design, threshold, spelling, system, float(values[s, m]), None, error))
    return rows


def _pairs(design: str, threshold: float, scores: Scores) -> ValueRows:
    rows: ValueRows = []
    groups = scores.groups if design == PERCENTILE else None
    for metric in (PRECISION, BPREF, INFAP):
        if str(Metric.of(metric)) in scores.metrics:
            values = np.nan_to_num(scores.values[:, scores.metric(str(Metric.of(metric)))])
            rows += pair_errors(("pair", design, threshold), metric, values, scores, groups)
    return rows


def _wilcoxon(design: str, scores: Scores) -> ValueRows:
    """Return the difference of each pair of systems in precision, and its p-value by Wilcoxon's test over users."""
    comparison = compare(scores, significance="wilcoxon", metrics=[PRECISION], correction="none", undefined="zero")
    columns = comparison.rows.select("system_a", "system_b", "difference", "p")
    return [
        ("wilcoxon", design, 0.0, PRECISION, f"{a} and {b}", difference, p)
        for a, b, difference, p in columns.iter_rows()
    ]


def cumulated(data: Ratings, positive_from: float | None = None) -> list[tuple[float, float]]:
    """Return the share of ratings held by the most popular items, by share of items, in at most 100 points."""
    kept = data if positive_from is None else data.keep(data.values >= positive_from)
    counts = kept.item_counts[by_popularity(kept)]
    held = np.cumsum(counts) / counts.sum()
    places = np.unique(np.linspace(1, len(held), min(_POINTS, len(held))).astype(np.int64))
    return [(place / len(held), float(held[place - 1])) for place in places]


def units(panel: str, work: BiasWork, curve_folds: int, skewed: bool) -> list[StudyUnit]:
    """Return all measurements for a panel; ``skewed`` adds the simulated ratings of Figure 5."""
    common = {
        "data": work.data.fingerprint,
        "uniform data": work.uniform_data.fingerprint,
        "thresholds": list(work.thresholds),
        "targets": work.targets,
        "nonrelevant": work.nonrelevant,
        "folds": work.folds,
        "systems": dict(work.systems),
        "errors": "over users",
        "ranking every item": WHOLE,
        **({} if work.divided is None else {"test": work.divided.test.fingerprint, "drawn": work.drawn}),
    }
    measurements: list[StudyUnit] = []
    of_study = {"study seed": work.seed}  # draws depend on this seed and on the number of the split

    def add(name: str, seed: int, make: Callable[[], ValueRows], **more: Any) -> None:
        of = {**common, **more, "seed": work.seed + seed}
        measurements.append(StudyUnit(f"{panel}/{name}", of, make, len(work.systems)))

    for fold in range(work.folds if work.divided is None else 1):
        curves = fold < curve_folds
        add(f"fold-{fold + 1}", fold, partial(work.fold, fold, curves), part="fold", curves=curves, **of_study)
    for draw in range(work.folds):
        add(f"uniform-{draw + 1}", draw, partial(work.uniform, draw), part="uniform", **of_study)
    for alpha, draw in product(ALPHAS if skewed else (), range(work.folds)):
        make = partial(work.skew, alpha, draw)
        add(f"skew-{alpha:g}/draw-{draw + 1}", draw, make, part="skew", alpha=alpha, **of_study)
    return measurements


def lemma_bounds(users: NDArray[Any], ranks: NDArray[Any], n: int) -> dict[str, float]:
    r"""Return 1RP@n and its bounds by equation (2); the lists of a user must share their non-relevant items N_u.

    .. math::
        \frac{|U|\,P@n}{|PR_{test}|} \le 1RP@n \le \frac{\sum_u m_u P^u@m_u(T_u)}{n\,|PR_{test}|},
        \qquad m_u = n + |PR_{test}(u)| - 1

    The AR precision is that of T_u = N_u ∪ PR_test(u). It follows from the ranks of the one-relevant lists: with
    a_1 ≤ a_2 ≤ … the numbers of items of N_u above each relevant item of a user, the j-th has rank a_j + j in T_u.

    The ``ranks`` are those of the relevant items, 0 where the system does not rank one.
    """
    above = np.where(ranks > 0, ranks.astype(np.float64) - 1, np.inf)
    order = np.lexsort((above, users))
    _, first, sizes = np.unique(users[order], return_index=True, return_counts=True)
    place = np.arange(len(order)) - np.repeat(first, sizes) + 1
    in_all = above[order] + place
    deepest = n + np.repeat(sizes, sizes) - 1
    total = n * len(ranks)
    hits = {"lower": in_all <= n, "1R": above < n, "upper": in_all <= deepest}
    return {name: float(np.count_nonzero(hit) / total) for name, hit in hits.items()}


class BiasNumbers(PanelNumbers[BiasWork]):
    """The numbers of one set of ratings, looked up by design and system."""

    def of(self, design: str, system: str, metric: str = PRECISION, threshold: float | None = None) -> Floats:
        """Return the values of a system in a design, one per split."""
        at = self.work.threshold if threshold is None else threshold
        return self.series("design", setting=design, metric=metric, system=system, x=at)

    def above(
        self, design: str, first: str, second: str, metric: str = PRECISION, threshold: float | None = None
    ) -> Part:
        """Return by how much one system is above another, with the error over users."""
        at = self.work.threshold if threshold is None else threshold
        both = [self.of(design, system, metric, at) for system in (first, second)]
        return self.margin(both, (first, second), "pair", setting=design, metric=metric, x=at)

    def errors(self, part: str, setting: str, system: str, metric: str = PRECISION) -> Floats:
        """Return the error over users at each place of a curve."""
        places, _ = self.line(part, setting, system, metric)
        wanted = {"setting": setting, "metric": metric, "system": system}
        return np.array([self.error(part, x=float(place), **wanted) for place in places])

    def line(self, part: str, setting: str, system: str, metric: str = PRECISION) -> tuple[Floats, Floats]:
        """Return the places of a curve, and splits × places: the values of a system."""
        return self.curve(part, setting=setting, metric=metric, system=system)
