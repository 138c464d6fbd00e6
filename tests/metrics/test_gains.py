"""Gains on any scale, against arithmetic of as many digits as it takes."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield import Ratings, SettingError
from cranfield.assessments.fold import Sampling, measured
from cranfield.assessments.subset_scores import MaskedScores
from cranfield.facts.scores import ExponentialGains
from cranfield.measures import measure, risk, standardise
from cranfield.measures.averages import Average
from cranfield.metrics import Metric, gain
from cranfield.metrics.gains import powers_less_one

THRESHOLD = 3.0
_RATINGS = st.sampled_from(
    [
        *(-1e300, -7.0, -1.0, 0.0, 1e-300, 1e-9, 0.3, 1.0, 2.5, 3.0, 4.0, 5.0, 37.0, 60.5, 1000.0, 1023.0, 1023.75),
        *(1024.0, 1025.0, 5000.0, 5001.0, 123456.0, 1e15, 1e300),
    ]
)
_WORLDS = st.dictionaries(
    st.integers(0, 3), st.dictionaries(st.integers(0, 5), _RATINGS, min_size=1), min_size=1, max_size=3
)


def _powers(exponents, top):
    """Return (2^e − 1) / 2^top of each exponent."""
    two = Decimal(2)
    return [two ** (Decimal(e) - Decimal(top)) - two ** -Decimal(top) for e in exponents]


def _dcg(gains, n):
    return sum((g * Decimal(1.0 / math.log2(k + 1)) for k, g in enumerate(gains[:n], 1)), Decimal(0))


def _ndcg(listed, known, gains_of, n):
    """Return nDCG@n of ratings in ranked order, ``None`` for an unjudged item."""
    found = gains_of([r for r in listed if r is not None])
    gains = [found.pop(0) if r is not None else Decimal(0) for r in listed]
    ideal = _dcg(sorted(gains_of(known), reverse=True), n)
    return float(_dcg(gains, n) / ideal) if ideal else math.nan


def _err(listed, top, n):
    value, going_on = Decimal(0), Decimal(1)
    for k, rating in enumerate(listed[:n], 1):
        satisfied = Decimal(0) if rating is None else _powers([max(rating, 0.0)], top)[0]
        value, going_on = value + going_on * satisfied / k, going_on * (1 - satisfied)
    return float(value)


def _gains_of(name, top):
    return {
        "rating": lambda ratings: [Decimal(max(r, 0.0)) for r in ratings],
        "exp": lambda ratings: _powers([max(r, 0.0) for r in ratings], top),
        "exp1": lambda ratings: _powers(
            [max(Decimal(r) - 1, Decimal(0)) for r in ratings], max(Decimal(top) - 1, Decimal(0))
        ),
        "relevant exp": lambda ratings: [
            g if r >= THRESHOLD else Decimal(0) for r, g in zip(ratings, _powers([max(r, 0.0) for r in ratings], top))
        ],
    }[name]


_NDCG = {
    "nDCG(gain=rating)@4": "rating",
    "nDCG(gain=exp)@4": "exp",
    "nDCG(gain=expfull)@4": "exp",
    "nDCG(gain=exp1)@4": "exp1",
    "nDCG(gain=exp1full)@4": "exp1",
    "nDCG(dialect=ranx, gain=exp)@4": "relevant exp",
    "nDCG(dialect=recommenders, gain=exp)@4": "relevant exp",
}


@given(test=_WORLDS, data=st.data())
def test_normalised_metrics_are_right_on_any_scale(test, data, judged_of, same):
    run = {u: {i: float(-k) for k, i in enumerate(data.draw(st.permutations(range(7))))} for u in test}
    judged = judged_of(run, test, THRESHOLD)
    dataset = max(0.0, *(max(profile.values()) for profile in test.values()))
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 340, -(10**12), 10**12
        for place, user in enumerate(sorted(test)):
            profile, listed = test[user], [test[user].get(item) for item in run[user]]
            top = max(0.0, *profile.values())
            for spelling, name in _NDCG.items():
                found = Metric.of(spelling)(judged)[place]
                expected = _ndcg(listed, list(profile.values()), _gains_of(name, top), 4)
                if "dialect" in spelling:
                    found, expected = np.nan_to_num(found), np.nan_to_num(expected)
                same(found, expected, spelling)
            for spelling, highest in (("ERR@4", dataset), ("ERR(rmax=user)@4", top), ("ERR(rmax=1e301)@4", 1e301)):
                found = Metric.of(spelling)(judged)[place]
                same(found, _err(listed, highest, 4) if top > 0 else math.nan, spelling)
            worth = _gains_of("exp1", dataset)([r for r in listed if r is not None])
            weights = [Fraction(2, 10) * Fraction(8, 10) ** k for k, r in enumerate(listed) if r is not None]
            same(Metric.of("RBP(gain=exp1)")(judged)[place], sum(float(w) * float(g) for w, g in zip(weights, worth)))


@given(test=_WORLDS, data=st.data())
def test_smaller_test_sets_are_measured_as_whole_ones_on_any_scale(test, data, judged_of, ratings_of):
    judged = judged_of({u: {i: float(-i) for i in range(7)} for u in test}, test, THRESHOLD)
    metrics = [Metric.of(one) for one in (*list(_NDCG)[:5], "ERR", "ERR(rmax=user)", "RBP(gain=exp1)", "P@3", "nDCG@2")]
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(judged.judgments), max_size=len(judged.judgments))))
    if not mask.any():
        return
    smaller = judged.only(mask)
    found = measured(MaskedScores([judged], metrics), mask, Sampling((Average.of("mean"),))).averages[0, :, 0]
    np.testing.assert_allclose(found, [np.nan_to_num(one(smaller)).mean() for one in metrics], rtol=1e-9, atol=1e-300)


def test_play_counts_are_not_averaged_in_as_nothing():
    test = Ratings.of(["ann", "ann", "bob", "bob"], ["x", "y", "x", "y"], [2000, 1999, 3, 2])
    scores = measure({"run": {"ann": ["x", "y"], "bob": ["y", "x"]}}, test, ["nDCG(gain=exp)", "ERR(rmax=user)"])
    second = (3 + 7 / math.log2(3)) / (7 + 3 / math.log2(3))
    assert scores.average()[0].tolist() == pytest.approx([(1 + second) / 2, (1.0 + 0.375 + 0.625 * 0.875 / 2) / 2])
    assert not np.isnan(scores.values).any()


@pytest.mark.parametrize("metric", ["DCG(gain=exp)", "DCG(gain=rating)", "DCG(gain=binary)"])
@pytest.mark.parametrize("rating", [1024.0, 5000.0, 1.5e308])
def test_a_sum_that_no_number_can_hold_is_refused(metric, rating):
    test = Ratings.of([1, 1, 1], ["x", "y", "z"], [rating, rating, 2.0])
    runs = {"run": {1: ["x", "y", "z"]}}
    if "binary" in metric or (rating < 1e308 and "rating" in metric):
        assert np.isfinite(measure(runs, test, metric).values).all()
        return
    with pytest.raises(SettingError, match=r"DCG\(gain=\w+\) exceeds the largest number") as caught:
        measure(runs, test, metric)
    assert "\n" not in str(caught.value)
    assert np.isfinite(measure(runs, test, f"n{metric}").values).all()


def test_gains_just_below_the_largest_number_are_averaged_with_an_interval():
    test = Ratings.of([1, 2, 3], ["x"] * 3, [1023.0, 1022.0, 1000.0])
    scores = measure({"run": {user: ["x"] for user in (1, 2, 3)}}, test, "DCG(gain=exp)")
    row = scores.frame().row(0, named=True)
    exact = (Fraction(2) ** 1023 + Fraction(2) ** 1022 + Fraction(2) ** 1000 - 3) / 3
    assert row["mean"] == pytest.approx(float(exact), rel=1e-14)
    assert row["lower"] < row["mean"] < row["upper"]
    for average in ("median", "trimmed", "weighted(by=judged)", "geometric"):
        assert np.isfinite(scores.average(average)).all()


def test_standing_and_risk_do_not_overflow():
    test = Ratings.of([1, 2, 3], ["x", "y", "x"], [1000.0, 1001.0, 990.0])
    runs = {
        "a": {1: ["x"], 2: ["z", "y"], 3: ["x"]},
        "b": {1: ["z", "x"], 2: ["y"], 3: ["z", "x"]},
        "c": {1: ["z"], 9: ["x"]},
    }
    scores = measure(runs, test, "DCG(gain=exp)")
    small = measure(runs, Ratings.of([1, 2, 3], ["x", "y", "x"], [60.0, 61.0, 50.0]), "DCG(gain=exp)")
    standing, plain = (standardise(one, form="z").values for one in (scores, small))
    np.testing.assert_allclose(standing, plain, rtol=1e-9)
    huge, usual = (risk(one, "a") for one in (scores, small))
    np.testing.assert_allclose(huge["trisk"].drop_nans(), usual["trisk"].drop_nans(), rtol=1e-9)
    np.testing.assert_allclose(huge["urisk"] / 2.0**940, usual["urisk"], rtol=1e-9)
    assert huge["georisk"].is_finite().all()


def test_a_scale_that_exponential_gains_cannot_bear_is_noted_in_one_line():
    runs, ids = {"run": {1: ["x"]}}, ([1, 1], ["x", "y"])

    def on_gains(ratings, metrics):
        return [note for note in measure(runs, ratings, metrics).notes if isinstance(note, ExponentialGains)]

    long = Ratings.of(*ids, [5000.0, 3.0])
    expected = ExponentialGains(5000.0, ("ERR", "nDCG(gain=exp)@5"))
    assert on_gains(long, ["ERR", "nDCG", "nDCG(gain=exp)@5"]) == [expected]
    assert not on_gains(long, ["nDCG", "P@5"])
    assert not on_gains(Ratings.of(*ids, [5.0, 3.0]), ["ERR"])
    metrics = ("nDCG(gain=exp1)@5",)
    assert on_gains(Ratings.of(*ids), metrics) == [ExponentialGains(1.0, metrics)]


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_gain_of_your_own_must_be_finite(bad):
    gain("endless")(lambda ratings: np.where(ratings > 3, bad, 1.0))
    with pytest.raises(SettingError, match="for the rating 4; return a finite number"):
        measure({"run": {1: ["x"]}}, Ratings.of([1], ["x"], [4.0]), "nDCG(gain=endless)")


def test_an_overflow_in_a_metric_of_your_own_is_not_undefined():
    @cf.metric("Overflowing")
    def overflowing(judged):
        huge = np.exp2(judged.total(judged.grades))
        return huge / huge

    runs = {"run": {1: ["x"]}}
    assert measure(runs, Ratings.of([1], ["x"], [4.0]), "Overflowing").values.item() == 1.0
    with pytest.raises(SettingError, match="Overflowing exceeds the largest number"), np.errstate(invalid="ignore"):
        measure(runs, Ratings.of([1], ["x"], [4000.0]), "Overflowing")


def test_powers_less_one_do_not_overflow():
    assert powers_less_one(np.array([0.0, 1.0, 5.0])).tolist() == [0.0, 1.0, 31.0]
    assert powers_less_one(np.array([2000.0, 1999.0, 5.0]), shift=2000.0).tolist() == [1.0, 0.5, 0.0]
