from __future__ import annotations

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from cranfield import SettingError
from cranfield.measures import Average, Averaging
from cranfield.measures.averages import AVERAGES, by_user

values = arrays(np.float64, st.integers(2, 40), elements=st.floats(0, 1))


@given(values)
def test_each_average_of_equal_values_is_that_value(x):
    same = np.full(len(x), 0.25)
    for name in AVERAGES:
        spelling = f"{name}(baseline=a)" if name in ("urisk", "trisk") else name
        assert Average.of(spelling)(same) == pytest.approx(0.25)


@given(values)
def test_the_mean_and_its_interval_are_scipys(x):
    average = Average.of("mean")
    assert average(x) == pytest.approx(x.mean())
    if x.std() > 1e-6:
        expected = stats.ttest_1samp(x, 0).confidence_interval(0.9)
        assert average.interval(x, np.ones(len(x)), 0.9) == pytest.approx((expected.low, expected.high))


@given(values)
def test_the_geometric_mean_is_trec_evals(x):
    # trec_eval keeps the logarithm of each topic's value, clamped at 1e-5, and averages these.
    logs = np.log(np.maximum(x, 1e-5))
    assert Average.of("geometric")(x) == pytest.approx(pytrec_eval.compute_aggregated_measure("gm_map", list(logs)))


@given(values)
def test_the_adjusted_geometric_mean_is_that_of_canamares(x):
    expected = np.exp(np.sum(np.log(x + 0.01)) / len(x)) - 0.01
    assert Average.of("geometric(form=adjusted, epsilon=0.01)")(x) == pytest.approx(expected, abs=1e-12)


@given(values)
def test_the_trimmed_mean_is_scipys(x):
    assert Average.of("trimmed(share=0.2)")(x) == pytest.approx(stats.trim_mean(x, 0.2))


def test_a_trimmed_share_is_taken_as_it_reads():
    assert Average.of("trimmed(share=0.29)")(np.arange(100.0) ** 2) == np.mean(np.arange(29.0, 71.0) ** 2)


def test_the_trimmed_interval_is_scipys():
    x = np.random.default_rng(0).gamma(2.0, size=60)
    trimmed = stats.mstats.trimmed_mean_ci(x, limits=(0.1, 0.1), inclusive=(True, True), alpha=0.05)
    assert Average.of("trimmed(share=0.1)").interval(x, np.ones(60), 0.95) == pytest.approx(tuple(trimmed), rel=0.02)


@given(values, st.data())
def test_the_weighted_mean_is_numpys(x, data):
    w = data.draw(arrays(np.float64, len(x), elements=st.integers(1, 9)))
    assert Average.of("weighted")(x, w) == pytest.approx(np.average(x, weights=w))


def test_the_weighted_interval_covers_as_often_as_it_says():
    rng, inside = np.random.default_rng(1), 0
    for _ in range(400):
        w = rng.integers(1, 30, 200).astype(float)
        x = rng.random(200) + w / 60
        truth = 0.5 + (np.arange(1, 30) ** 2).mean() / 60 / np.arange(1, 30).mean()
        low, high = Average.of("weighted").interval(x, w, 0.95)
        inside += low <= truth <= high
    assert 0.91 <= inside / 400 <= 0.985


@pytest.mark.parametrize("n", [10, 25, 100])
def test_the_medians_interval_has_at_least_the_level_asked_for(n):
    rng = np.random.default_rng(2)
    inside = [low <= 0.5 <= high for low, high in
              (Average.of("median").interval(rng.random(n), np.ones(n), 0.95) for _ in range(2000))]  # fmt: skip
    assert np.mean(inside) >= 0.94


def test_the_skipping_geometric_mean_leaves_zeros_out_of_the_sum_but_counts_them():
    values = np.array([0.25, 0.0, 1e-9, 0.5])
    expected = np.exp((np.log(0.25) + np.log(1e-5) + np.log(0.5)) / 4)
    assert Average.of("geometric(form=skipping)")(values) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["mean", "median", "geometric", "trimmed(share=0.1)", "weighted"])
def test_the_bootstrap_interval_is_reproducible_and_holds_the_average(name):
    x, w = np.random.default_rng(3).random(80), np.arange(1.0, 81.0)
    average = Average.of(name)
    interval = average.bootstrap(x, w, 0.95, seed=5, keys=lambda: np.arange(len(x), dtype=np.uint64))
    assert interval == average.bootstrap(x, w, 0.95, seed=5, keys=lambda: np.arange(len(x), dtype=np.uint64))
    assert interval[0] < average(x, w) < interval[1]


@pytest.mark.parametrize("name", ["mean", "median", "geometric", "trimmed", "weighted"])
def test_nothing_averages_to_nan_and_one_value_has_no_interval(name):
    average = Average.of(name)
    assert np.isnan(average(np.zeros(0)))
    assert average(np.array([0.3])) == pytest.approx(0.3)
    assert np.isnan(average.interval(np.array([0.3]), np.ones(1), 0.95)).all()
    assert np.isnan(average.bootstrap(np.array([0.3]), None, 0.95, 0, lambda: np.zeros(1, dtype=np.uint64))).all()


@pytest.mark.parametrize(
    "wrong",
    [
        "meen",
        "mean@10",
        "weighted(by=size)",
        "geometric(form=odd)",
        "geometric(epsilon=0)",
        "geometric(epsilon=inf)",
        "trimmed(share=0.5)",
        "median(k=3)",
    ],
)
def test_a_wrong_average_is_refused(wrong):
    with pytest.raises(SettingError):
        Average.of(wrong)


def test_averaging_by_user_first_averages_each_users_lists():
    means, weights = by_user(np.array([1.0, 0.0, 0.5]), np.array([3, 3, 7]), np.array([2.0, 4.0, 1.0]))
    assert means.tolist() == [0.5, 0.5]
    assert weights.tolist() == [6.0, 1.0]


@pytest.mark.parametrize("n", [5, 10, 23])
def test_the_trimmed_interval_has_the_degrees_of_freedom_of_what_is_left(n):
    # Tukey and McLaughlin 1963: t with h - 1 degrees of freedom, where h values are left.
    x = np.random.default_rng(n).gamma(2.0, size=n)
    cut = int(0.2 * n)
    middle = np.sort(x)[cut : n - cut]
    winsorised = np.concatenate([np.full(cut, middle[0]), middle, np.full(cut, middle[-1])])
    half = stats.t.ppf(0.95, n - 2 * cut - 1) * np.std(winsorised, ddof=1) / (0.6 * np.sqrt(n))
    lower, upper = Average.of("trimmed(share=0.2)").interval(x, np.ones(n), 0.9)
    assert (lower, upper) == pytest.approx((middle.mean() - half, middle.mean() + half))


@pytest.mark.parametrize("name", ["mean", "median", "geometric", "trimmed", "weighted", "geometric(form=adjusted)"])
def test_rows_average_as_each_row_alone_of_ordinary_and_of_huge_values(name):
    average, rng = Average.of(name), np.random.default_rng(5)
    rows = rng.random((6, 31)) * np.array([1.0, 1e-3, 0.0, 2.0**900, 2.0**-900, 5.0])[:, None]
    weights = rng.random(31)
    assert average.of_rows(rows, weights).tolist() == [average(row, weights) for row in rows]
    assert np.isnan(average.of_rows(np.empty((2, 0)))).all()


def test_the_weighted_mean_without_any_weight_is_nan():
    assert np.isnan(Average.of("weighted").of_rows(np.ones((2, 3)), np.zeros(3))).all()


def test_an_averaging_may_hold_the_kind_of_average_itself():
    assert Averaging(average="median").with_kind().average.method == "exact order statistics"
    assert Averaging.of("median", by="user").kind.method == "exact order statistics"
