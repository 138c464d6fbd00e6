"""The reference of the law: metrics, averages and p-values straight from their definitions.

Nothing here is imported from cranfield, and nothing is fast: a list is a Python list of items, `None` where a rank
leaves a place out, and a metric is a loop over it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product

NAN = float("nan")


def merged(rows: list[tuple], repeated: str) -> dict:
    """Return {user: {item: rating}}, repeated ratings merged."""
    given: dict = {}
    for user, item, rating in rows:
        given.setdefault(user, {}).setdefault(item, []).append(float(rating))
    how = {"last": lambda r: r[-1], "first": lambda r: r[0], "max": max, "sum": sum, "mean": lambda r: sum(r) / len(r),
           "error": lambda r: r[0]}[repeated]  # fmt: skip
    return {user: {item: how(ratings) for item, ratings in of_user.items()} for user, of_user in given.items()}


def automatic_threshold(ratings: list[float]) -> float:
    """Return the threshold that the documentation promises for these ratings."""
    low, high = min(ratings), max(ratings)
    if 4 <= high <= 5:
        return 4.0
    if high <= 1 or high > 10 or (low <= 0 and high <= 3):
        return 1.0
    low = min(low, 1.0)
    return min(float(math.ceil(low + 0.75 * (high - low))), high)


# ------------------------------------------------------------------------------------------------- lists


def ordered(rows: list[tuple], form: str, ties: str, closed: bool) -> tuple[list, list[list], dict]:
    """Return one list by place, its groups of tied items, and its predictions.

    The rows are (item, score, rank, prediction), in the order of the input.
    """
    if form == "scores":
        rows = [row for row in rows if row[1] is not None]
    worth = {"scores": lambda row: -row[1], "ranks": lambda row: row[2], "order": lambda row: 0}[form]
    if form == "order":
        entries = list(rows)
    elif ties == "input":
        entries = sorted(rows, key=worth)
    else:
        # Ids in descending order of their text; equal ids stay in the order of the input.
        by_id = sorted(rows, key=lambda row: [-byte for byte in str(row[0]).encode()] + [1])
        entries = sorted(by_id, key=worth)
    kept: list[tuple] = []
    for row in entries:
        if row[0] not in [other[0] for other in kept]:
            kept.append(row)
    groups: list[list] = []
    for row in kept:
        if form != "order" and groups and worth(groups[-1][0]) == worth(row):
            groups[-1].append(row)
        else:
            groups.append([row])
    places: list = []
    for row in kept:
        if form == "ranks" and not closed:
            places += [None] * (row[2] - 1 - len(places))
        places.append(row[0])
    return places, [[row[0] for row in group] for group in groups], {row[0]: row[3] for row in kept}


def orders(places: list, groups: list[list], ties: str) -> list[list]:
    """Return every order of the tied items, or only the stored one."""
    if ties != "average":
        return [places]
    found = []
    for order in product(*(list(permutations(group)) for group in groups)):
        items = iter([item for group in order for item in group])
        found.append([None if place is None else next(items) for place in places])
    return found


# ------------------------------------------------------------------------------------------------- metrics


@dataclass(frozen=True)
class Facts:
    """What a metric may look at besides the list: the user's ratings, the whole test set, and the training ratings."""

    grades: dict
    threshold: float
    test: dict
    train: dict
    popularity: Counter
    live: set | None
    predictions: dict

    @property
    def n_relevant(self) -> int:
        return sum(map(self.relevant, self.grades))

    def relevant(self, item: object) -> bool:
        return item in self.grades and self.grades[item] >= self.threshold

    def gain(self, item: object, gain: str) -> float:
        rating = max(self.grades.get(item, 0.0), 0.0)
        if gain == "binary":
            return float(self.relevant(item))
        return rating if gain == "rating" else 2.0**rating - 1.0

    @property
    def items(self) -> set:
        """The catalogue: the given one with the test items, or the training and test items."""
        test = {item for ratings in self.test.values() for item in ratings}
        return test | (set(self.popularity) if self.live is None else self.live)

    def is_dead(self, item: object) -> bool:
        return item is None or (self.live is not None and item not in self.items)


def discount(k: int) -> float:
    return 1.0 / math.log2(k + 1)


def hits(top: list, facts: Facts) -> int:
    return sum(facts.relevant(item) for item in top)


def precisions(top: list, facts: Facts) -> float:
    return sum(hits(top[:k], facts) / k for k in range(1, len(top) + 1) if facts.relevant(top[k - 1]))


def needs_relevant(function):
    def checked(top, n, facts, **parameters):
        return function(top, n, facts, **parameters) if facts.n_relevant else NAN

    return checked


@needs_relevant
def p(top, n, facts):
    return hits(top, facts) / n if n else hits(top, facts) / max(len(top), 1)


@needs_relevant
def recall(top, n, facts):
    return hits(top, facts) / facts.n_relevant


@needs_relevant
def f1(top, n, facts):
    return 2 * hits(top, facts) / (n + facts.n_relevant)


@needs_relevant
def hit_rate(top, n, facts):
    return float(hits(top, facts) > 0)


@needs_relevant
def rr(top, n, facts):
    return next((1.0 / k for k, item in enumerate(top, 1) if facts.relevant(item)), 0.0)


@needs_relevant
def ap(top, n, facts):
    return precisions(top, facts) / facts.n_relevant


@needs_relevant
def rprec(top, n, facts):
    return hits(top[: facts.n_relevant], facts) / facts.n_relevant


@needs_relevant
def auc(top, n, facts):
    others = [k for k, item in enumerate(top) if not facts.relevant(item)]
    pairs = sum(sum(other > k for other in others) for k, item in enumerate(top) if facts.relevant(item))
    return pairs / (facts.n_relevant * len(others)) if others else NAN


def dcg(top, n, facts, gain="rating"):
    return sum(facts.gain(item, gain) * discount(k) for k, item in enumerate(top, 1))


def ndcg(top, n, facts, gain="rating"):
    best = sorted(facts.grades, key=lambda item: -facts.gain(item, gain))[:n]
    ideal = dcg(best, n, facts, gain)
    return dcg(top, n, facts, gain) / ideal if ideal else NAN


def err(top, n, facts):
    highest = max(rating for ratings in facts.test.values() for rating in ratings.values())
    if not any(rating > 0 for rating in facts.grades.values()):
        return NAN
    total, going_on = 0.0, 1.0
    for k, item in enumerate(top, 1):
        stops = (2.0 ** max(facts.grades.get(item, 0.0), 0.0) - 1.0) / 2.0**highest
        total += going_on * stops / k
        going_on *= 1.0 - stops
    return total


def rbp(top, n, facts, p=0.8):
    return (1 - p) * sum(p ** (k - 1) for k, item in enumerate(top, 1) if facts.relevant(item))


def rbp_residual(top, n, facts, p=0.8):
    unjudged = sum(p ** (k - 1) for k, item in enumerate(top, 1) if item not in facts.grades)
    return (1 - p) * unjudged + p ** len(top)


@needs_relevant
def bpref(top, n, facts):
    r, others = facts.n_relevant, len(facts.grades) - facts.n_relevant
    total = 0.0
    for k, item in enumerate(top):
        above = sum(other in facts.grades and not facts.relevant(other) for other in top[:k])
        if facts.relevant(item):
            total += 1 - min(above, r) / min(others, r) if above else 1
    return total / r


@needs_relevant
def inf_ap(top, n, facts, pool="all"):
    total = 0.0
    for k, item in enumerate(top, 1):
        if not facts.relevant(item):
            continue
        judged = [other for other in top[: k - 1] if other in facts.grades]
        liked = hits(judged, facts)
        pooled = k - 1 if pool == "all" else len(judged)
        share = (liked + 0.00001) / (len(judged) + 0.00002)
        total += 1 / k + (pooled / k * share if k > 1 else 0.0)
    return total / facts.n_relevant


def disliked(item, facts):
    return item in facts.grades and not facts.relevant(item)


def anti_p(top, n, facts):
    return sum(disliked(item, facts) for item in top) / (n or max(len(top), 1))


def fallout(top, n, facts):
    every = len(facts.grades) - facts.n_relevant
    return sum(disliked(item, facts) for item in top) / every if every else NAN


def anti_rr(top, n, facts):
    if len(facts.grades) == facts.n_relevant:
        return NAN
    return next((1.0 / k for k, item in enumerate(top, 1) if disliked(item, facts)), 0.0)


def ndcl(top, n, facts):
    def loss(item):
        return facts.threshold - facts.grades[item] if disliked(item, facts) else 0.0

    worst = sorted(facts.grades, key=lambda item: -loss(item))[:n]
    whole = sum(loss(item) * discount(k) for k, item in enumerate(worst, 1))
    if len(facts.grades) == facts.n_relevant:
        return NAN
    return sum(loss(item) * discount(k) for k, item in enumerate(top, 1)) / whole


def strat_recall(top, n, facts, gamma=1.0):
    liked = Counter(item for own in facts.train.values() for item, r in own.items() if r >= facts.threshold)

    def weight(item):
        return 1.0 if gamma == 0 else liked[item] ** (-gamma / (gamma + 1)) if liked[item] else 0.0

    whole = sum(weight(item) for item in facts.grades if facts.relevant(item))
    return sum(weight(item) for item in top if facts.relevant(item)) / whole if whole else NAN


@needs_relevant
def aoa(top, n, facts):
    return sum(discount(k) for k, item in enumerate(top, 1) if facts.relevant(item)) / facts.n_relevant


@needs_relevant
def r_score(top, n, facts, half_life=5.0):
    best = sum(0.5 ** (k / (half_life - 1)) for k in range(min(facts.n_relevant, n or facts.n_relevant)))
    return sum(0.5 ** (k / (half_life - 1)) for k, item in enumerate(top) if facts.relevant(item)) / best


def novelty(top, facts, of_item):
    return sum(0.0 if facts.is_dead(item) else of_item(item) for item in top) / len(top) if top else NAN


def epc(top, n, facts):
    return novelty(top, facts, lambda item: 1 - facts.popularity[item] / len(facts.train))


def efd(top, n, facts):
    often = facts.popularity
    rarest, every = min(often.values()), sum(often.values())
    return novelty(top, facts, lambda item: -math.log2((often[item] or rarest) / every))


def ild(top, n, facts):
    if len(top) < 2:
        return NAN

    def cosine(first, second):
        common = sum(own.get(first, 0.0) * own.get(second, 0.0) for own in facts.train.values())
        size = math.sqrt(sum(own.get(first, 0.0) ** 2 for own in facts.train.values()))
        size *= math.sqrt(sum(own.get(second, 0.0) ** 2 for own in facts.train.values()))
        return common / size if size else 0.0

    pairs = list(combinations(top, 2))
    return sum(1 - cosine(*pair) for pair in pairs if not any(map(facts.is_dead, pair))) / len(pairs)


def unjudged(top, n, facts):
    return sum(item not in facts.grades for item in top) / len(top) if top else NAN


def coverage(top, n, facts):
    return len(top) / n


def user_coverage(top, n, facts):
    return float(len(top) > 0)


def squared_errors(top, facts):
    rated = [item for item in top if item in facts.grades and facts.predictions.get(item) is not None]
    rated.sort(key=lambda item: -facts.predictions[item])
    return [(facts.grades[item] - facts.predictions[item]) ** 2 for item in rated]


def rmse(top, n, facts):
    errors = squared_errors(top, facts)
    return math.sqrt(sum(errors) / len(errors)) if errors else NAN


def mae(top, n, facts):
    errors = squared_errors(top, facts)
    return sum(map(math.sqrt, errors)) / len(errors) if errors else NAN


def sdcse(top, n, facts):
    errors = squared_errors(top, facts)
    worst = sum(error * discount(k) for k, error in enumerate(sorted(errors, reverse=True), 1))
    total = sum(error * discount(k) for k, error in enumerate(errors, 1))
    return (total / worst if worst else 0.0) if errors else NAN


def lenskit_ndcg(top, n, facts):
    if not top:
        return NAN
    weigh = lambda k: 1.0 / math.log2(max(k, 2))  # noqa: E731
    ideal = sum(weigh(k) for k in range(1, min(facts.n_relevant, n) + 1))
    return sum(weigh(k) for k, item in enumerate(top, 1) if facts.relevant(item)) / ideal if ideal else 0.0


def lenskit_p(top, n, facts):
    return hits(top, facts) / len(top) if top else NAN


def rectools_ndcg(top, n, facts):
    if not facts.n_relevant:
        return NAN
    return sum(discount(k) for k, item in enumerate(top, 1) if facts.relevant(item)) / sum(
        map(discount, range(1, n + 1))
    )


def recbole_ap(top, n, facts):
    return precisions(top, facts) / min(facts.n_relevant, n) if facts.n_relevant else NAN


def elliot_ap(top, n, facts):
    if not top or not facts.n_relevant:
        return NAN
    return sum(hits(top[:k], facts) / k for k in range(1, n + 1)) / n


def trec_eval_p(top, n, facts):
    return hits(top, facts) / n if top else NAN


@dataclass(frozen=True)
class Exact:
    """A metric of the reference.

    ``zero`` says whether undefined values may count as 0, ``lower`` whether lower is better, ``ties`` whether it is an
    expectation over the orders of tied items, ``train`` whether it needs the training ratings, ``condensed`` whether
    it looks at condensed lists by nature, ``own`` names what cuts by itself.
    """

    value: object
    cutoff: int | None = None
    parameters: tuple = ()
    zero: bool = True
    lower: bool = False
    ties: bool = True
    train: bool = False
    condensed: bool = False
    rel: float | None = None
    needs_predictions: bool = False


def of_all_lists(name, tops, facts):
    """Return a metric of a whole system: exposure of the items in all lists."""
    shown = Counter(item for top in tops for item in top if not facts.is_dead(item))
    if name == "AggregateDiversity":
        return float(len(shown))
    times = sorted(shown[item] for item in facts.items)
    n, total = len(times), sum(times)
    if name == "ItemCoverage":
        return sum(x > 0 for x in times) / n
    if not total:
        return NAN
    if name == "Gini":
        return sum((2 * j - n - 1) * x for j, x in enumerate(times, 1)) / (n * total)
    return -sum(x / total * math.log2(x / total) for x in times if x)


METRICS = {
    "P@3": Exact(p, 3), "Recall@5": Exact(recall, 5), "F1@4": Exact(f1, 4), "HitRate@2": Exact(hit_rate, 2),
    "RR": Exact(rr), "AP@5": Exact(ap, 5), "P": Exact(p), "Rprec": Exact(rprec), "AUC": Exact(auc),
    "nDCG@5": Exact(ndcg, 5), "nDCG(gain=exp)@3": Exact(ndcg, 3, (("gain", "exp"),)), "DCG@4": Exact(dcg, 4),
    "nDCG(gain=binary)": Exact(ndcg, None, (("gain", "binary"),)),
    "ERR@5": Exact(err, 5, ties=False), "RBP(p=0.7)": Exact(rbp, None, (("p", 0.7),)),
    "RBPresidual(p=0.5)": Exact(rbp_residual, None, (("p", 0.5),), zero=False, lower=True),
    "bpref": Exact(bpref, ties=False), "infAP@6": Exact(inf_ap, 6, ties=False),
    "infAP(pool=judged)": Exact(inf_ap, None, (("pool", "judged"),), ties=False),
    "AntiP@4": Exact(anti_p, 4, zero=False, lower=True), "Fallout@5": Exact(fallout, 5, zero=False, lower=True),
    "AntiRR": Exact(anti_rr, zero=False, lower=True), "NDCL@4": Exact(ndcl, 4, zero=False, lower=True),
    "StratRecall@5": Exact(strat_recall, 5, train=True),
    "StratRecall(gamma=0)@5": Exact(strat_recall, 5, (("gamma", 0),), train=True),
    "AOA(utility=dcg)@5": Exact(aoa, 5), "RScore@6": Exact(r_score, 6),
    "EPC@4": Exact(epc, 4, zero=False, ties=False, train=True),
    "EFD@4": Exact(efd, 4, zero=False, ties=False, train=True),
    "ILD@4": Exact(ild, 4, zero=False, ties=False, train=True),
    "Unjudged@4": Exact(unjudged, 4, zero=False, lower=True), "Coverage@5": Exact(coverage, 5, zero=False),
    "UserCoverage": Exact(user_coverage, zero=False),
    "RMSE@3": Exact(rmse, 3, zero=False, lower=True, ties=False, condensed=True, needs_predictions=True),
    "MAE": Exact(mae, zero=False, lower=True, ties=False, condensed=True, needs_predictions=True),
    "SDCSE@4": Exact(sdcse, 4, zero=False, lower=True, ties=False, condensed=True, needs_predictions=True),
    "P(rel=2)@4": Exact(p, 4, rel=2.0), "nDCG(condensed=true)@4": Exact(ndcg, 4, condensed=True),
    "Recall(rel=1)@5": Exact(recall, 5, rel=1.0),
    "nDCG(dialect=lenskit)@5": Exact(lenskit_ndcg, 5, zero=False),
    "P(dialect=lenskit)@4": Exact(lenskit_p, 4, zero=False),
    "nDCG(dialect=rectools)@5": Exact(rectools_ndcg, 5, zero=False),
    "AP(dialect=recbole)@5": Exact(recbole_ap, 5, zero=False),
    "AP(dialect=elliot)@4": Exact(elliot_ap, 4, zero=False),
    "P(dialect=trec_eval)@3": Exact(trec_eval_p, 3, zero=False),
    "ItemCoverage@4": Exact("ItemCoverage", 4, zero=False, ties=False, train=True),
    "AggregateDiversity@4": Exact("AggregateDiversity", 4, zero=False, ties=False),
    "Gini@5": Exact("Gini", 5, zero=False, lower=True, ties=False, train=True),
    "Entropy": Exact("Entropy", None, zero=False, ties=False, train=True),
}  # fmt: skip


# ------------------------------------------------------------------------------------------------- averages


def average(values: list[float], weights: list[float], kind: str) -> float:
    """Return an average of the values that count, of one system."""
    if not values:
        return NAN
    if kind == "median":
        ascending, n = sorted(values), len(values)
        return (ascending[(n - 1) // 2] + ascending[n // 2]) / 2
    if kind.startswith("geometric(form=adjusted"):
        return math.exp(sum(math.log(x + 0.01) for x in values) / len(values)) - 0.01
    if kind.startswith("geometric"):
        return math.exp(sum(math.log(max(x, 1e-5)) for x in values) / len(values))
    if kind.startswith("trimmed"):
        cut = math.floor(len(values) * 0.2 + 1e-9)
        kept = sorted(values)[cut : len(values) - cut]
        return sum(kept) / len(kept)
    if kind.startswith("weighted"):
        return sum(w * x for w, x in zip(weights, values)) / sum(weights) if sum(weights) else NAN
    return sum(values) / len(values)


def permutation_p(differences: list[float]) -> float:
    """Return the share of all sign patterns whose sum is at least as far from 0 as the observed one.

    The patterns of two halves are listed and matched by bisection, so 40 users take about a million sums.
    """
    from bisect import bisect_left, bisect_right

    d = [abs(x) for x in differences if abs(x) > 1e-15]
    if not d:
        return 1.0
    observed, slack = abs(sum(differences)), 1e-13 * sum(d)

    def sums(part):
        found = [0.0]
        for x in part:
            found = [total + x for total in found] + [total - x for total in found]
        return sorted(found)

    left, right = sums(d[: len(d) // 2]), sums(d[len(d) // 2 :])
    count = 0
    for total in left:
        count += len(right) - bisect_left(right, observed - slack - total)
        count += bisect_right(right, -observed + slack - total)
    whole = len(left) * len(right)
    return min(count, whole) / whole


# ------------------------------------------------------------------------------------------------- answers


@dataclass(frozen=True)
class Setting:
    """The decisions that a question is asked with."""

    metrics: tuple[str, ...]
    average: str = "mean"
    undefined: str = "zero"
    coverage: str = "full"
    threshold: float | str = "auto"
    repeated: str = "error"
    ties: str = "trec_eval"
    gaps: str = "keep"
    lists: str = "full"
    catalogue: str = "none"
    segment: str = "none"
    train: bool = False


@dataclass
class Answer:
    """What a route says: everything is keyed by system, metric, user or group, so that no order matters."""

    threshold: float
    values: dict
    averages: dict
    served: dict
    groups: dict
    filled: dict
    unjudged: dict
    notes: tuple[str, ...] | None = None


class Reference:
    """The answer to a question about a world, by brute force."""

    def __init__(self, world, setting: Setting) -> None:
        self.world, self.setting = world, setting
        self.test = merged(world.test, setting.repeated)
        self.train = merged(world.train, setting.repeated) if setting.train else {}
        given = [r for side in (self.test, self.train) for own in side.values() for r in own.values()]
        self.threshold = automatic_threshold(given) if setting.threshold == "auto" else setting.threshold
        self.live = {
            "none": None,
            "train": {i for own in self.train.values() for i in own},
            "file": set(world.catalogue),
        }[setting.catalogue]
        self.popularity = Counter(item for own in self.train.values() for item in own)
        self.users = sorted(self.test)
        self.systems = list(world.lists)
        self.lists = {(name, user): self._list(name, user) for name in self.systems for user in self.users}

    def _list(self, name: str, user: object) -> tuple[list, list[list], dict]:
        rows = [row[1:] for row in self.world.lists[name] if row[0] == user]
        return ordered(rows, self.world.form, self.setting.ties, self.setting.gaps == "close")

    def facts(self, user: object, metric: Exact, name: str) -> Facts:
        threshold = self.threshold if metric.rel is None else metric.rel
        told = self.lists[name, user][2]
        return Facts(self.test[user], threshold, self.test, self.train, self.popularity, self.live, told)

    def condensed(self, name: str, user: object) -> list:
        """Return a list in the stored order, without the items that condensed lists leave out."""
        places = self.lists[name, user][0]
        return [item for item in places if item in self.test[user]] if self.setting.lists == "condensed" else places

    def top(self, places: list, user: object, metric: Exact) -> list:
        if metric.condensed or self.setting.lists == "condensed":
            places = [item for item in places if item in self.test[user]]
        return places[: metric.cutoff]

    def value(self, name: str, user: object, spelling: str) -> float:
        metric = METRICS[spelling]
        places, groups, _ = self.lists[name, user]
        facts = self.facts(user, metric, name)
        ties = self.setting.ties if metric.ties else "none"
        found = [
            metric.value(self.top(order, user, metric), metric.cutoff, facts, **dict(metric.parameters))
            for order in orders(places, groups, ties)
        ]
        return sum(found) / len(found)

    def overall(self, name: str, spelling: str) -> float:
        metric = METRICS[spelling]
        tops = [self.top(self.lists[name, user][0], user, metric) for user in self.users]
        return of_all_lists(metric.value, tops, self.facts(self.users[0], metric, name))

    def answer(self) -> Answer:
        wanted = self.setting.metrics
        by_list = [spelling for spelling in wanted if callable(METRICS[spelling].value)]
        values = {
            (name, spelling, user): self.value(name, user, spelling)
            for name in self.systems for spelling in by_list for user in self.users
        }  # fmt: skip
        served = {(name, user): len(self.condensed(name, user)) > 0 for name in self.systems for user in self.users}
        averages = {
            (name, spelling): self._average(values, served, name, spelling, self.users)
            if spelling in by_list else self.overall(name, spelling) if "risk" not in self.setting.average else NAN
            for name in self.systems for spelling in wanted
        }  # fmt: skip
        groups = {
            (group, name, spelling): self._average(values, served, name, spelling, users)
            for group, users in self.groups().items() for name in self.systems for spelling in by_list
        }  # fmt: skip
        return Answer(self.threshold, values, averages, served, groups, *self._shares())

    def _shares(self) -> tuple[dict, dict]:
        filled, unjudged = {}, {}
        longest = max(len(places) for places, _, _ in self.lists.values())
        for spelling in self.setting.metrics:
            depth = METRICS[spelling].cutoff or longest
            for name in self.systems:
                tops = {user: self.condensed(name, user)[:depth] for user in self.users}
                filled[name, spelling] = sum(map(len, tops.values())) / (depth * len(self.users))
                shown = [(user, item) for user, top in tops.items() for item in top]
                blank = [
                    item
                    for user, item in shown
                    if item not in self.test[user] and (item is None or not self._dead(item))
                ]
                unjudged[name, spelling] = len(blank) / len(shown) if shown else NAN
        return filled, unjudged

    def _dead(self, item: object) -> bool:
        return self.live is not None and item not in self.live | {i for own in self.test.values() for i in own}

    def groups(self) -> dict:
        if self.setting.segment == "none":
            return {}
        if self.setting.segment == "file":
            return {g: [u for u in self.users if self.world.segment[u] == g] for g in set(self.world.segment.values())}
        often = {user: len(self.train.get(user, {})) for user in self.users}
        active = sorted(len(own) for own in self.train.values() if len(own) >= 5)
        limit = active[math.ceil(len(active) / 2) - 1] if active else 5
        groups: dict = {"new": [], "light": [], "heavy": []}
        for user, count in often.items():
            groups["new" if count < 5 else "light" if count <= limit else "heavy"].append(user)
        return {name: users for name, users in groups.items() if users}

    def counted(self, values: dict, served: dict, name: str, spelling: str, users: list) -> list[tuple]:
        """Return (user, value) of the users that count in the average of a system."""
        everywhere = [values[other, spelling, user] for other in self.systems for user in users]
        zero = METRICS[spelling].zero and self.setting.undefined == "zero" and not all(map(math.isnan, everywhere))
        kept = []
        for user in users:
            value = values[name, spelling, user]
            if self.setting.coverage == "reduced" and not all(served[other, user] for other in self.systems):
                continue
            if math.isnan(value) and not zero:
                continue
            kept.append((user, 0.0 if math.isnan(value) else value))
        return kept

    def _average(self, values: dict, served: dict, name: str, spelling: str, users: list) -> float:
        kept = self.counted(values, served, name, spelling, users)
        kind, metric = self.setting.average, METRICS[spelling]
        facts = {user: self.facts(user, replace(metric, rel=None), name) for user, _ in kept}
        weigh = {"weighted(by=relevant)": lambda user: facts[user].n_relevant,
                 "weighted(by=train)": lambda user: len(self.train.get(user, {})),
                 "weighted(by=judged)": lambda user: len(self.test[user])}.get(kind, lambda user: 1)  # fmt: skip
        if kind.startswith("urisk"):
            return self._urisk(values, served, name, spelling, users)
        return average([value for _, value in kept], [float(weigh(user)) for user, _ in kept], kind)

    def _urisk(self, values: dict, served: dict, name: str, spelling: str, users: list) -> float:
        mine = dict(self.counted(values, served, name, spelling, users))
        base = dict(self.counted(values, served, self.systems[0], spelling, users))
        sign = -1 if METRICS[spelling].lower else 1
        deltas = [sign * (mine[user] - base[user]) for user in users if user in mine and user in base]
        return sum(d if d >= 0 else 2 * d for d in deltas) / len(deltas) if deltas else NAN

    def differences(self, answer: Answer, first: str, second: str, spelling: str) -> list[float]:
        """Return the differences that a paired test of means is taken of: over users with values of all systems."""
        kept = [dict(self.counted(answer.values, answer.served, name, spelling, self.users)) for name in self.systems]
        kept = [own for own in kept if own]
        of = {
            name: dict(self.counted(answer.values, answer.served, name, spelling, self.users))
            for name in (first, second)
        }
        if not (of[first] and of[second]):
            return []
        return [of[first][user] - of[second][user] for user in self.users if all(user in own for own in kept)]
