"""Rank correlation against published values, permutations of ties, and loops."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import SettingError
from cranfield.metrics.correlation import Paired, kendall_tau_b, rbo, rbo_of_lists, spearman, tau_ap

PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=6)


def _constant(x, y):
    return len(set(x)) < 2 or len(set(y)) < 2


def _plain_tau_ap(truth, order):
    """2/(n − 1) Σ_{r≥2} C(r)/(r − 1) − 1, an equally rated pair counting half."""
    total = 0.0
    for r in range(1, len(order)):
        above = [np.sign(truth[one] - truth[order[r]]) for one in order[:r]]
        total += sum({1: 1.0, 0: 0.5, -1: 0.0}[int(sign)] for sign in above) / r
    return 2 * total / (len(order) - 1) - 1


def _orders(scores):
    groups = [[i for i, one in enumerate(scores) if one == value] for value in sorted(set(scores), reverse=True)]
    for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [i for order in orders for i in order]


@given(PAIRS)
def test_tau_ap_a_is_the_mean_over_the_orders_of_tied_items(pairs):
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    expected = math.nan if _constant(x, y) else np.mean([_plain_tau_ap(x, order) for order in _orders(y)])
    np.testing.assert_allclose(tau_ap(x, y), expected, rtol=1e-12, atol=1e-12)
    if not _constant(x, y):
        assert tau_ap(x, y, symmetric=True) == pytest.approx((tau_ap(x, y) + tau_ap(y, x)) / 2)


@given(PAIRS)
def test_tau_ap_b_equals_its_definition(pairs):
    x, y = [a for a, _ in pairs], [b for _, b in pairs]

    def one_way(x, y):
        shares = []
        for i in range(len(y)):
            above = [j for j in range(len(y)) if y[j] > y[i]]
            if above:
                shares.append(sum(x[j] > x[i] for j in above) / len(above))
        return 2 * sum(shares) / len(shares) - 1

    expected = math.nan if _constant(x, y) else (one_way(x, y) + one_way(y, x)) / 2
    np.testing.assert_allclose(tau_ap(x, y, ties="b"), expected, rtol=1e-12, atol=1e-12)


def test_published_examples_of_tau():
    assert kendall_tau_b([0.3, 0.3, 0.2, 0.1], [0.4, 0.3, 0.3, 0.1]) == pytest.approx(0.8)
    assert tau_ap([4, 3, 2, 1], [3, 4, 2, 1]) == pytest.approx(1 / 3)
    assert tau_ap([4, 3, 2, 1], [4, 3, 1, 2]) == pytest.approx(7 / 9)


# Rankings of items (tied ones in brackets), p, and RBO in the variants w, a and b, as published with Corsi and Urbano
# (2024), "The Treatment of Ties in Rank-Biased Overlap".
PUBLISHED = [
    (
        "i13 (i1 i4 i5 i6)",
        "i3 i14 i11 (i10 i15) i12 (i6 i9) i4 i2",
        0.92238320668128,
        (0.117578490431637, 0.114619469221414, 0.11474835409049),
    ),
    (
        "i11 (i8 i21) (i2 i18) (i6 i16 i20) (i4 i10)",
        "i8 (i9 i20 i21) (i2 i3) i13 i1 i11 i14 i19",
        0.93912403977192,
        (0.482369482292872, 0.46852753894333, 0.486650566878314),
    ),
    (
        "(i4 i7 i15) (i2 i11) i8 i18",
        "i4 i8 i17 i11 (i2 i3 i5 i7 i9 i13 i14)",
        0.955836875418683,
        (0.601671359995661, 0.584235464666522, 0.632087129618464),
    ),
    (
        "(i3 i6) (i2 i7) i10",
        "(i3 i6 i7 i10) (i1 i2)",
        0.965413635276732,
        (0.946064537517568, 0.92051534467649, 0.956844651806714),
    ),
]


def _scores(text):
    groups = text.replace("(", "( ").replace(")", " )").split()
    scores, place, inside = {}, 0, False
    for word in groups:
        if word in "()":
            inside = word == "("
            place += not inside
        else:
            scores[word] = -place
            place += not inside
    return scores


@pytest.mark.parametrize(("first", "second", "p", "expected"), PUBLISHED)
def test_rbo_equals_published_values(first, second, p, expected):
    a, b = _scores(first), _scores(second)
    items = sorted({*a, *b})
    x, y = ([one.get(item, math.nan) for item in items] for one in (a, b))
    for ties, value in zip("wab", expected):
        assert rbo(x, y, p=p, ties=ties) == pytest.approx(value, abs=1e-13)
        assert rbo(y, x, p=p, ties=ties) == pytest.approx(value, abs=1e-13)


@given(st.permutations(range(7)), st.permutations(range(7)), st.integers(1, 7), st.integers(1, 7))
def test_rbo_of_lists_equals_the_formula_of_webber(first, second, one, other):
    first, second = first[:one], second[:other]
    short, long = sorted((first, second), key=len)
    s, ell, p = len(short), len(long), 0.8
    overlap = [len({*short[:d]} & {*long[:d]}) for d in range(ell + 1)]
    head = sum(overlap[d] / d * p**d for d in range(1, ell + 1))
    middle = sum(overlap[s] * (d - s) / (s * d) * p**d for d in range(s + 1, ell + 1))
    tail = ((overlap[ell] - overlap[s]) / ell + overlap[s] / s) * p**ell
    assert rbo_of_lists(first, second, p=p) == pytest.approx((1 - p) / p * (head + middle) + tail)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=4))
def test_rbo_a_is_the_mean_over_the_orders_of_tied_items(pairs):
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    values = [rbo_of_lists(one, other, p=0.7) for one in _orders(x) for other in _orders(y)]
    assert rbo(x, y, p=0.7) == pytest.approx(np.mean(values))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 4)), max_size=25))
def test_many_pairs_of_rankings_at_once_equal_each_by_itself(rows):
    rows.sort(key=lambda row: row[0])
    groups, x, y = (np.array([row[k] for row in rows], dtype=float) for k in range(3))
    paired = Paired(groups.astype(np.int64), 5, x, y)
    for many, one in (
        (paired.kendall_tau_b(), kendall_tau_b),
        (paired.spearman(), spearman),
        (paired.tau_ap("a"), tau_ap),
        (paired.tau_ap("b"), lambda x, y: tau_ap(x, y, ties="b")),
        (paired.rbo(0.9, "b"), lambda x, y: rbo(x, y, ties="b")),
    ):
        np.testing.assert_allclose(many, [one(x[groups == g], y[groups == g]) for g in range(5)], atol=1e-12)


@pytest.mark.parametrize("levels", [3, 40, 10_000])
def test_long_and_short_rankings_side_by_side_equal_a_loop_over_pairs(levels):
    rng = np.random.default_rng(levels)
    groups = np.repeat(np.arange(6), [70, 1, 2, 0, 33, 18])
    x, y = rng.integers(0, levels, (2, len(groups)))
    paired = Paired(groups, 6, x.astype(float), y.astype(float))
    found, in_order = paired.kendall_tau_b(), paired.rbo(0.8, "y")
    for group in range(6):
        a, b = x[groups == group], y[groups == group]
        signs = np.sign(a[:, None] - a), np.sign(b[:, None] - b)
        size = np.sqrt((signs[0] ** 2).sum() * (signs[1] ** 2).sum())
        expected = (signs[0] * signs[1]).sum() / size if size else math.nan
        assert found[group] == pytest.approx(expected, nan_ok=True)
        refined = a * levels + b if len(a) else a
        assert in_order[group] == pytest.approx(rbo(refined, b, p=0.8), nan_ok=True)


def test_no_order_has_no_correlation():
    for function in (kendall_tau_b, spearman, tau_ap):
        assert math.isnan(function([], []))
        assert math.isnan(function([1], [1]))
        assert math.isnan(function([1, 1], [1, 2]))
        assert math.isnan(function([1, 2], [1, 1]))
        assert math.isnan(function([1, math.nan, 2], [1, 2, 3]))
    assert math.isnan(rbo([], []))
    assert math.isnan(rbo([1, 2], [math.nan, math.nan]))


def test_what_cannot_be_compared_is_an_error():
    with pytest.raises(SettingError, match="cannot be compared"):
        kendall_tau_b([1, 2], [1, 2, 3])
    with pytest.raises(SettingError, match="holds an item twice"):
        rbo_of_lists(["a", "a"], ["b"])
    with pytest.raises(SettingError, match="p=1"):
        rbo([1, 2], [1, 2], p=1)
    with pytest.raises(SettingError, match="ties"):
        tau_ap([1, 2], [1, 2], ties="w")
