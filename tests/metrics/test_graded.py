"""Graded metrics against loops written from their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings, SettingError
from cranfield.measures import measure
from cranfield.metrics import Metric, gain

THRESHOLD = 3


def _gains(name, top):
    return {
        "rating": lambda r: r,
        "binary": lambda r: float(r >= THRESHOLD),
        "exp": lambda r: 2.0**r - 1,
        "expfull": lambda r: (2.0**r - 1) / (2.0**top - 1) if top > 0 else 0.0,
        "relevant": lambda r: r if r >= THRESHOLD else 0.0,
        "exprelevant": lambda r: 2.0 ** (r - THRESHOLD + 1) - 1 if r >= THRESHOLD else 0.0,
        "exp1": lambda r: (2.0 ** max(r - 1, 0) - 1) / 2.0 ** (top - 1),
        "exp1full": lambda r: (2.0 ** max(r - 1, 0) - 1) / max(2.0 ** (top - 1) - 1, 1.0 if top <= 1 else 0.0),
    }[name]


def _dcg(gains):
    return sum(g / math.log2(k + 1) for k, g in enumerate(gains, 1))


def _top(test):
    return max(rating for profile in test.values() for rating in profile.values())


@given(data=st.data(), n=st.one_of(st.none(), st.integers(1, 14)))
def test_dcg_and_ndcg_equal_their_definition(data, n, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD)
    at = "" if n is None else f"@{n}"
    for name in ("rating", "binary", "relevant", "exp", "expfull", "exprelevant", "exp1", "exp1full"):
        of = _gains(name, _top(test))
        found, normalised = [], []
        for user in sorted(test):
            items = ranked(run.get(user, {}))[:n]
            dcg = _dcg([of(test[user][item]) if item in test[user] else 0.0 for item in items])
            ideal = _dcg(sorted(map(of, test[user].values()), reverse=True)[:n])
            found.append(dcg)
            normalised.append(dcg / ideal if ideal else math.nan)
        same(Metric.of(f"DCG(gain={name}){at}")(judged), found, name)
        same(Metric.of(f"nDCG(gain={name}){at}")(judged), normalised, name)


@given(data=st.data(), n=st.integers(1, 14))
def test_err_equals_its_definition(data, n, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD)
    for rmax in ("dataset", "user", 6):
        expected = []
        for user in sorted(test):
            top = {"dataset": _top(test), "user": max(test[user].values()), 6: 6}[rmax]
            value, going_on = 0.0, 1.0
            for k, item in enumerate(ranked(run.get(user, {}))[:n], 1):
                satisfied = (2.0 ** test[user].get(item, 0) - 1) / 2.0**top
                value, going_on = value + going_on * satisfied / k, going_on * (1 - satisfied)
            expected.append(value if max(test[user].values()) > 0 else math.nan)
        same(Metric.of(f"ERR(rmax={rmax})@{n}")(judged), expected, rmax)


@given(data=st.data(), n=st.integers(1, 14), p=st.sampled_from([0.5, 0.8, 0.95]))
def test_rbp_and_its_residual_equal_their_definition(data, n, p, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD)
    base, graded, residual = [], [], []
    worth = _gains("expfull", _top(test))
    for user in sorted(test):
        items, profile = ranked(run.get(user, {}))[:n], test[user]
        weights = [(1 - p) * p**k for k in range(len(items))]
        value = sum(w for w, item in zip(weights, items) if profile.get(item, -1) >= THRESHOLD)
        rest = sum(w for w, item in zip(weights, items) if item not in profile) + p ** len(items)
        base.append(value)
        graded.append(sum(w * worth(profile[item]) for w, item in zip(weights, items) if item in profile))
        residual.append(rest)
    same(Metric.of(f"RBP(p={p})@{n}")(judged), base)
    same(Metric.of(f"RBP(p={p}, gain=expfull)@{n}")(judged), graded)
    same(Metric.of(f"RBPresidual(p={p})@{n}")(judged), residual)


def test_a_gain_of_your_own_is_used_by_name(judged_of):
    @gain("squared")
    def squared(ratings):
        return ratings**2

    judged = judged_of({1: {7: 2.0, 8: 1.0}}, {1: {7: 3, 8: 2}})
    assert np.allclose(Metric.of("DCG(gain=squared)")(judged), 9 + 4 / math.log2(3))


def test_a_gain_of_your_own_may_be_defined_anew():
    test, run = Ratings.of([1, 1, 1], [7, 8, 9], [3, 2, 1]), {"run": {1: [8, 7]}}

    def ndcg(power):
        gain("power")(lambda ratings: ratings**power)
        return measure(run, test, "nDCG(gain=power)@2").values.item()

    assert ndcg(1) == pytest.approx((2 + 3 / math.log2(3)) / (3 + 2 / math.log2(3)))
    assert ndcg(2) == pytest.approx((4 + 9 / math.log2(3)) / (9 + 4 / math.log2(3)))


def test_a_gain_of_your_own_must_return_a_gain_for_each_rating():
    gain("single")(lambda ratings: 1.0)
    with pytest.raises(SettingError, match="return one for each"):
        measure({"run": {1: [7]}}, Ratings.of([1], [7]), "nDCG(gain=single)")


def test_one_huge_gain_leaves_the_ideal_order_of_others_alone(judged_of, same):
    test = {user: {1: 1.1, 2: 3.5, 3: 4, 4: 5} for user in range(1, 300)} | {0: {1: 1, 2: 60}}
    run = {user: {item: float(item) for item in range(1, 5)} for user in test}
    same(Metric.of("nDCG(gain=exp)@4")(judged_of(run, test))[1:], np.ones(299))


@pytest.mark.parametrize("spelling", ["nDCG(gain=cube)", "RBP(p=1)", "RBP(p=high)", "RBP(gain=rating)", "ERR(rmax=4)"])
def test_a_wrong_setting_is_an_error(spelling, judged_of):
    judged = judged_of({1: {7: 2.0}}, {1: {7: 5}})
    with pytest.raises(SettingError):
        Metric.of(spelling)(judged)
