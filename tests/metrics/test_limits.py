"""Limits of metrics: parameters and worlds at which a metric is another one, or a number; every metric has one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield.metrics import known_metrics
from cranfield.metrics.definition import Metric

ITEMS = 20
TOP = 5  # the highest rating, which every world has

SAME = [
    ("StratRecall(gamma=0)@5", "Recall@5"),
    ("StratRecall(gamma=0)", "Recall"),
    ("StratRecall(gamma=1e15, count=all, smooth=1)@5", "StratRecall(gamma=inf, count=all, smooth=1)@5"),
    ("AOA@5", "Recall@5"),
    ("SNIPS(gamma=-1)@5", "Recall@5"),
    ("SNIPS(gamma=-1, utility=dcg)@5", "AOA(utility=dcg)@5"),
    ("SNIPS(clip=1, smooth=1)@5", "Recall@5"),
    ("SNIPS(gamma=0)@5", "StratRecall(gamma=1, count=all)@5"),
    ("SNIPS(gamma=1, smooth=1)@5", "StratRecall(gamma=inf, count=all, smooth=1)@5"),
    ("RScore(half_life=1e15)", "Recall"),
    ("P@1", "HitRate@1"),
    ("P@1", "RR@1"),
    ("P(rel=4)@5", "P@5"),
    ("F1(rel=4)@5", "F1@5"),
    ("RBP(p=1e-15)", "DCG(gain=binary)@1"),
    ("nDCG(gain=expfull)@5", "nDCG(gain=exp)@5"),
    ("nDCG(gain=exp1full)", "nDCG(gain=exp1)"),
    (f"ERR(rmax={TOP})", "ERR"),
    ("NDCL(loss=binary)@1", "AntiRR@1"),
    ("bpref(condensed=true)", "bpref"),
    ("infAP(pool=judged, condensed=true)", "infAP(condensed=true)"),
    ("TauAP@2", "Tau@2"),
    ("Spearman@2", "Tau@2"),
    ("DCSE@1", "CSE@1"),
    ("WDCSE@1", "CSE@1"),
    ("UpSell(margin=9)", 0.0),
    ("DownSell(margin=9)", 0.0),
    ("PerfectSell(margin=9)", 1.0),
    ("EPC(discount=log)@1", "EPC@1"),
    ("EFD(discount=log)@1", "EFD@1"),
    ("Coverage@1", "UserCoverage"),
    ("FullRank(which=last)@1", "FullRank@1"),
    ("Unjudged(condensed=true)", 0.0),
]
"""In any world."""

PERFECT = [
    *((name, 1.0) for name in ("nDCG", "nDCG(gain=exp)@3", "RScore@3", "AP", "Rprec", "RR", "AUC", "bpref", "Recall")),
    *((name, 1.0) for name in ("Tau", "TauAP", "TauAP(ties=b)", "Spearman", "RBO", "RBO(ties=b)", "StratRecall")),
    *((name, 1.0) for name in ("Fallout", "SNIPS", "HitRate", "SDCSEacc", "PerfectSell", "PooledPerfectSell")),
    *((name, 0.0) for name in ("CSE", "DCSE", "WDCSE", "SDCSE", "RMSE", "MAE", "PooledRMSE", "PooledMAE", "ECE")),
    *((name, 0.0) for name in ("UpSell", "DownSell", "PooledUpSell", "PooledDownSell", "Unjudged", "Gini")),
    *((name, 1.0) for name in ("ItemCoverage", "GiniDiversity", "UserCoverage", "Coverage@3", "ILD")),
    ("infAP", "AP"),
    ("P", 2 / TOP),
    ("F1", 2 * (2 / TOP) / (1 + 2 / TOP)),
    ("AntiP", 1 - 2 / TOP),
    ("AntiRR", 1 / 3),
    ("NDCL(loss=binary)@3", 1 / np.log2(4) / (1 + 1 / np.log2(3) + 1 / np.log2(4))),
    ("RBPresidual(p=0.5)", 0.5**TOP),
    ("FullRank", (TOP + 1) / 2),
    ("IPS(clip=1)", 2 / TOP),
    ("AggregateDiversity", float(TOP)),
    ("Entropy", np.log2(TOP)),
    ("EPC", 0.0),
    ("RepeatShare", 0.0),
    ("Contribution", 0.0),
    ("Contribution(of=new)", 1.0),
    ("EFD", np.log2(TOP)),
]
"""Where the systems give the test ratings themselves, and every list shows the whole catalogue."""

ONE_USER = [
    ("PooledRMSE", "RMSE"),
    ("PooledMAE", "MAE"),
    ("PooledUpSell", "UpSell"),
    ("PooledDownSell", "DownSell"),
    ("PooledPerfectSell", "PerfectSell"),
    ("AggregateDiversity@1", 1.0),
]

ROUNDED = {"infAP": 1e-4}  # its ε is 1e-5


@dataclass
class World:
    """Lists with predicted ratings, test and training ratings."""

    lists: pl.DataFrame
    test: cf.Ratings
    train: cf.Ratings

    def scores(self, metrics):
        runs = [cf.read_run(self.lists, name="mine")]
        unlike = lambda first, second: np.zeros(len(first))  # noqa: E731
        return cf.measure(runs, self.test, metrics, train=self.train, threshold=4, similarity=unlike)


def _ratings(rng, users, each):
    rows = [(u, i, int(rng.integers(1, TOP + 1))) for u in range(users) for i in rng.permutation(ITEMS)[:each].tolist()]
    return [(user, item, TOP if k == 0 else value) for k, (user, item, value) in enumerate(rows)]


@cache
def _any_world(seed, users=14):
    """Users without lists, without relevant or non-relevant test items; items without ratings in either part."""
    rng = np.random.default_rng(seed)
    test = _ratings(rng, users, int(rng.integers(1, 6)))
    train = [row for row in _ratings(rng, users, 5) if row[1] % 5]
    rows = [
        (user, item, rank, float(np.round(rng.uniform(1, TOP), 2)))
        for user in range(max(users - 3, 1))
        for rank, item in enumerate(rng.permutation(ITEMS + 4)[: rng.integers(2, 15)].tolist(), 1)
    ]
    lists = pl.DataFrame(rows, schema=["user", "item", "rank", "prediction"], orient="row")
    return World(lists, cf.read(test), cf.read(train))


@cache
def _perfect_world():
    rows = [(user, TOP - value, TOP + 1 - value, value) for user in range(6) for value in range(TOP, 0, -1)]
    lists = pl.DataFrame([(*row[:3], float(row[3])) for row in rows], schema=["user", "item", "rank", "prediction"],
                         orient="row")  # fmt: skip
    test, train = (cf.read([(shift + user, item, value) for user, item, _, value in rows]) for shift in (0, 100))
    return World(lists, test, train)


AVERAGINGS = [
    {"undefined": undefined, "coverage": coverage}
    for undefined in ("zero", "leave out")
    for coverage in ("full", "reduced")
]


def _check(world, metric, limit, averagings=AVERAGINGS[:1]):
    scores = world.scores([metric] if isinstance(limit, float) else [metric, limit])
    tolerance = ROUNDED.get(metric.partition("(")[0], 1e-10)
    for averaging in averagings:
        found = scores.average(**averaging)[0]
        expected = limit if isinstance(limit, float) else found[1]
        assert found[0] == pytest.approx(expected, rel=tolerance, abs=1e-12, nan_ok=True), (metric, limit, averaging)


@pytest.mark.parametrize(("metric", "limit"), SAME)
def test_a_metric_has_its_documented_limit_in_any_world_and_average(metric, limit):
    for seed in range(6):
        _check(_any_world(seed), metric, limit, AVERAGINGS)


def test_a_perfect_list_has_the_value_that_the_definition_gives_it():
    for metric, limit in PERFECT:
        _check(_perfect_world(), metric, limit)


@pytest.mark.parametrize(("metric", "limit"), ONE_USER)
def test_of_one_user_a_value_over_all_lists_is_that_of_the_list(metric, limit):
    for seed in range(6):
        _check(_any_world(seed, users=1), metric, limit)


def test_every_metric_has_a_limit():
    stated = {
        Metric.of(name).definition.name
        for pair in [*SAME, *PERFECT, *ONE_USER]
        for name in pair
        if isinstance(name, str)
    }
    assert {name for name, one in known_metrics().items() if one.family != "own"} - stated == set()
