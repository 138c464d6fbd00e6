"""What every protocol, metric and estimator says about systems, by the observed test set of a truth, for each user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield.biases import fit_propensities, uniform_thinning
from cranfield.data import Ratings, head_items, together
from cranfield.measures import Scores, measure, true_values
from cranfield.metrics import Metric
from cranfield.rankings import Ranking, Run, Serving, rank_with, rankers_for
from cranfield.recommenders import recommender
from cranfield.splits import Split, Truth, popularity_groups
from cranfield.studies.frame.claims import Floats

PANEL = (
    "random", "popularity", "popularity(threshold={t})", "average(damping=10)", "average(threshold={t}, damping=5)",
    "svd", "puresvd", "wrmf(factors=20)", "bprmf(factors=20, epochs=100)", "knn", "itemknn",
    "knn(normalised=true, min_neighbours=3, ratings=truncated, threshold={t})", "slim(neighbours=50, sweeps=20)",
    "ease", "plsa(topics=10, iterations=50)", "lda(topics=10, iterations=50)", "rm1", "rm2", "rw", "kld", "chi2",
    "lm-wsr-ub", "lm-wsr-ib", "nncosngbr-ub", "nncosngbr-ib", "ht", "uir", "ials(factors=20)",
    "mf-pointwise(factors=20)",
)  # fmt: skip
"""All our systems; ``{t}`` is the lowest rating of a relevant item."""

SERVED = Serving(min_ratings=1, sample="all")  # every user with training ratings gets a list

FULL = (
    "P@10", "Recall@10", "nDCG@10", "nDCG(gain=exprelevant)@10", "AP@100", "RR@100", "bpref@100", "infAP@100",
    "AntiP@10", "Fallout@10", "AntiRR@100", "NDCL@10", "StratRecall@10", "IPS@10", "SNIPS@10",
    "RScore(popularity=inverse)@10",
)  # fmt: skip
"""The metrics of full lists."""
CONDENSED = ("P@10", "nDCG@10", "AntiP@10")
ONE_RELEVANT = ("HitRate@10", "RR@100")
UNIFORM = ("P@10", "nDCG@10")
_DRAWN = 100
_GROUPS = 10
_HEAD = 0.1

ONE = f"1R, {_DRAWN} drawn"
FULL_LISTS, CONDENSED_LISTS, P1R, UAR, U1R = "full lists", "condensed lists", "P1R", "UAR", "U1R"
HEADLESS = "1R, without the head"
ESTIMATED = "full lists, estimated"
PROTOCOLS: Mapping[str, Sequence[str]] = {
    FULL_LISTS: FULL,
    CONDENSED_LISTS: CONDENSED,
    ONE: ONE_RELEVANT,
    P1R: ONE_RELEVANT,
    UAR: UNIFORM,
    U1R: ONE_RELEVANT,
    HEADLESS: ONE_RELEVANT,
}
"""The metrics by protocol, without the estimators."""

ESTIMATORS = ("P@10 by IPS", "P@10 by SNIPS", "P@10 by DR (item mean)", "P@10 by DR (svd)")
"""The estimators of `cranfield.biases.estimate`, with propensities that are a power law of popularity."""
_DEPTH = 10
_DAMPING = 5


def panel_of(threshold: float, systems: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the spellings of the systems, with the threshold filled in; a misspelled one is an error."""
    names = tuple(name.replace("{t}", f"{threshold:g}") for name in (PANEL if systems is None else systems))
    if len(set(names)) < 2:
        raise SettingError("the study compares orders of systems; give at least two")
    for name in names:
        recommender(name)
    return names


def fit_systems(systems: Sequence[str], train: Ratings) -> dict[str, Any]:
    """Return the fitted systems by spelling."""
    return {spelling: recommender(spelling).fit(train) for spelling in systems}


def ranked(
    fitted: Mapping[str, Any], split: Split | Ratings, rankings: Sequence[Ranking], seed: int
) -> list[dict[str, Run]]:
    """Return the runs by system under each of the rankings; every user with training ratings is served."""
    rankers = rankers_for(split, rankings, serving=SERVED, seed=seed)
    runs = {name: rank_with(system, rankers, name=name) for name, system in fitted.items()}
    return [{name: of_system[place] for name, of_system in runs.items()} for place in range(len(rankings))]


class Arrays:
    """A dataclass of names and numbers that is kept in a file, its floats in single precision."""

    exact: ClassVar[tuple[str, ...]] = ()  # the fields that keep all their digits

    def arrays(self, prefix: str = "") -> dict[str, Any]:
        """Return everything as arrays, under names that begin with ``prefix``."""
        own = {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        short = {name for name, array in own.items() if array.dtype == np.float64 and name not in self.exact}
        return {f"{prefix}{name}": own[name].astype(np.float32) if name in short else own[name] for name in own}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Any], prefix: str = "") -> Self:
        """Return what `arrays` were made of."""
        own = {field.name: arrays[f"{prefix}{field.name}"] for field in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: _restored(array) for name, array in own.items()})


def _restored(array: NDArray[Any]) -> Any:
    if array.dtype.kind == "U":
        return tuple(map(_restored, array)) if array.ndim > 1 else tuple(array.tolist())
    return array.astype(np.float64) if array.dtype.kind == "f" else int(array)


@dataclass(frozen=True, eq=False)
class Readings(Arrays):
    """Readings of protocols as sums per user: a reading is Σ of the numerators over Σ of the denominators."""

    exact = ("truth",)

    systems: tuple[str, ...]
    names: tuple[tuple[str, str], ...]  # the protocol and the metric of each reading
    signs: Floats  # 1 if higher is better, −1 if lower is better
    numerators: Floats  # readings × systems × users
    denominators: Floats
    truth: Floats  # systems × users: the true precision at 10 of the lists; NaN for users without training ratings


Worth = Callable[[Sequence[Run]], Floats]
"""Returns systems × users: the true value of full lists, NaN for users who do not count."""


def by_truth(truth: Truth, threshold: float) -> Worth:
    """Return the true precision at 10 by the judgments of a truth."""

    def worth(runs: Sequence[Run]) -> Floats:
        values = true_values(list(runs), truth, threshold=threshold)
        true = np.full((len(runs), truth.train.n_users), np.nan)
        true[:, values.users] = values.precision
        return true

    return worth


def read_protocols(
    train: Ratings, observed: Ratings, fitted: Mapping[str, Any], worth: Worth, threshold: float, seed: int
) -> Readings:
    """Measure fitted systems under every protocol on an observed test set, and by the truth."""
    lists = _protocol_lists(train, observed, fitted, threshold, seed)
    runs = list(lists[FULL_LISTS][0].values())
    names, signs, tops, bottoms = [], [], [], []
    for protocol, metrics in PROTOCOLS.items():
        of_protocol, test = lists[protocol]
        if (test.values >= threshold).any():
            scores = measure(list(of_protocol.values()), test, metrics, threshold=threshold, train=train)
            above, below = _sums(scores, train.n_users, by_group=protocol == P1R)
        else:  # no readings: 0 divided by 0 is NaN
            above = below = np.zeros((len(metrics), len(runs), train.n_users))
        tops.append(above)
        bottoms.append(below)
        signs += [-1.0 if Metric.of(metric).lower_is_better else 1.0 for metric in metrics]
        names += [(protocol, str(Metric.of(metric))) for metric in metrics]
    above, below = estimator_sums(runs, Split(train, observed, Step("observed")), threshold, seed)
    names += [(ESTIMATED, metric) for metric in ESTIMATORS]
    signs += [1.0] * len(ESTIMATORS)
    numerators, denominators = np.concatenate([*tops, above]), np.concatenate([*bottoms, below])
    return Readings(tuple(fitted), tuple(names), np.array(signs), numerators, denominators, worth(runs))


def _protocol_lists(
    train: Ratings, observed: Ratings, fitted: Mapping[str, Any], threshold: float, seed: int
) -> dict[str, tuple[dict[str, Run], Ratings]]:
    """Return the lists of every system under each protocol, and the test ratings that they are measured by."""
    full = Ranking(fill="none", lists="full", length=100, threshold=threshold)
    single = full.with_(relevant="one", nonrelevant=_DRAWN)
    only, alone = full.with_(candidates="test"), single.with_(nonrelevant="all", candidates="test")
    designs = [full, full.with_(lists="condensed"), single, alone.with_(candidates="group")]
    both = together([train, observed])
    groups = popularity_groups(both, min(_GROUPS, int(np.count_nonzero(both.item_counts))))
    grouped = Split(train, observed, Step("popularity groups"), item_groups=groups)
    runs, short, singles, within = ranked(fitted, grouped, designs, seed)
    uniform = Split(train, observed.keep(uniform_thinning(observed, seed).kept), Step("uniform items"))
    even, even_singles = ranked(fitted, uniform, [only, alone], seed)
    tail = Split(train, observed.keep(~head_items(both, _HEAD)[observed.items]), Step("without the head"))
    has_tail = bool((tail.test.values >= threshold).any())
    return {
        FULL_LISTS: (runs, observed),
        CONDENSED_LISTS: (short, observed),
        ONE: (singles, observed),
        P1R: (within, observed),
        UAR: (even, uniform.test),
        U1R: (even_singles, uniform.test),
        HEADLESS: (ranked(fitted, tail, [alone], seed)[0] if has_tail else {}, tail.test),
    }


def _sums(scores: Scores, n_users: int, *, by_group: bool) -> tuple[Floats, Floats]:
    """Return metrics × systems × users: sums of the values of lists, and their weights, equal for groups if wanted."""
    weights = np.ones(scores.values.shape[2])
    if by_group and scores.groups is not None:
        sizes = np.bincount(scores.groups[scores.groups >= 0], minlength=len(scores.group_names))
        weights = np.where(scores.groups >= 0, 1.0 / np.maximum(sizes, 1)[scores.groups], 0.0)
    systems, metrics, _ = scores.values.shape
    sums = np.zeros((2, metrics, systems, n_users))
    for s in range(systems):
        for m in range(metrics):
            values = scores.values[s, m]
            defined = ~np.isnan(values)
            for part, column in enumerate((values[defined] * weights[defined], weights[defined])):
                sums[part, m, s] = np.bincount(scores.users[defined], weights=column, minlength=n_users)
    return sums[0], sums[1]


def estimator_sums(runs: Sequence[Run], split: Split, threshold: float, seed: int) -> tuple[Floats, Floats]:
    """Return numerators and denominators, each estimators × systems × users; lists have the codes of the split."""
    train, observed = split.train, split.test
    chances = fit_propensities(split, seed=seed)
    relevance = np.full((train.n_users, train.n_items), -1, dtype=np.int8)
    relevance[observed.users, observed.items] = observed.values >= threshold
    guesses = _imputed(train, threshold, seed)
    served = (train.user_counts > 0).astype(np.float64)
    sums = np.zeros((2, len(ESTIMATORS), len(runs), train.n_users))
    for place, run in enumerate(runs):
        users, items = _top(run)
        judged = relevance[users, items]
        weights = np.where(judged >= 0, 1.0 / chances.of(users, items), 0.0)
        liked = judged == 1
        sums[0, 0, place] = _by_user(users, weights * liked / _DEPTH, train)
        sums[0, 1, place], sums[1, 1, place] = _by_user(users, weights * liked, train), _by_user(users, weights, train)
        for number, guess in enumerate(guesses, start=2):
            own = guess[users, items]
            sums[0, number, place] = _by_user(users, (own + weights * (liked - own)) / _DEPTH, train)
    sums[1, [0, 2, 3]] = served
    return sums[0], sums[1]


def _top(run: Run) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the users and items at the top of all lists."""
    depth = np.minimum(np.diff(run.indptr), _DEPTH)
    lists = np.repeat(np.arange(len(run.users)), depth)
    places = np.arange(len(lists)) - np.repeat(np.cumsum(depth) - depth, depth) + run.indptr[:-1][lists]
    return run.users[lists].astype(np.int64), run.items[places].astype(np.int64)


def _by_user(users: NDArray[np.int64], values: Floats, train: Ratings) -> Floats:
    return np.bincount(users, weights=values, minlength=train.n_users).astype(np.float64)


def _imputed(train: Ratings, threshold: float, seed: int) -> list[Floats]:
    """Return relevance estimated from training alone, by item mean and by `svd`, each users × items."""
    liked = (train.values >= threshold).astype(np.float32)
    everybody = np.arange(train.n_users)
    mean = recommender(f"average(threshold={threshold:g}, damping={_DAMPING})").fit(train)
    factors = recommender(f"svd(seed={seed})").fit(replace(train, values=liked))
    return [
        np.clip(np.nan_to_num(np.asarray(system.score(everybody)), nan=float(liked.mean())), 0.0, 1.0)
        for system in (mean, factors)
    ]
