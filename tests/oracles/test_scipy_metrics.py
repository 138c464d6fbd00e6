"""As SciPy for tau-b and Spearman's rho, as scikit-learn for AUC and the errors of predictions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cranfield import Ratings
from cranfield.judgments import Judgments, judge
from cranfield.metrics import Metric
from cranfield.metrics.correlation import kendall_tau_b, spearman
from cranfield.rankings import read_run

VECTORS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=15)


@given(VECTORS)
def test_tau_b_and_rho_equal_scipy(pairs):
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = (
            [np.nan, np.nan] if len(x) < 2 else [stats.kendalltau(x, y).statistic, stats.spearmanr(x, y).statistic]
        )
    np.testing.assert_allclose([kendall_tau_b(x, y), spearman(x, y)], expected, rtol=1e-12, atol=1e-12)


def _world():
    rng = np.random.default_rng(2)
    run = {user: dict(zip(rng.permutation(50)[:30].tolist(), rng.normal(3, 1, 30).tolist())) for user in range(80)}
    test = {user: dict(zip(rng.permutation(50)[:20].tolist(), rng.integers(1, 6, 20).tolist())) for user in range(80)}
    rows = [(user, item, grade) for user, profile in test.items() for item, grade in profile.items()]
    judgments = Judgments.of(Ratings.of(*(list(column) for column in zip(*rows))), 4.0)
    return run, test, judge(read_run(run, name="run"), judgments)


@pytest.mark.parametrize(("name", "function"), [("Tau", stats.kendalltau), ("Spearman", stats.spearmanr)])
def test_agreement_with_the_users_order_equals_scipy(name, function):
    run, test, judged = _world()
    expected = []
    for user in test:
        common = [item for item in run[user] if item in test[user]]
        expected.append(function([test[user][item] for item in common], [run[user][item] for item in common]).statistic)
    np.testing.assert_allclose(Metric.of(name)(judged), expected, rtol=1e-12)


def test_auc_of_whole_and_condensed_lists_equals_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    run, test, _ = _world()
    # Every relevant test item is in the list, because scikit-learn does not know others.
    test = {user: {item: r for item, r in test[user].items() if item in run[user]} | {99: 1} for user in test}
    rows = [(user, item, grade) for user, profile in test.items() for item, grade in profile.items()]
    judgments = Judgments.of(Ratings.of(*(list(column) for column in zip(*rows))), 4.0)
    judged = judge(read_run(run, name="run"), judgments)
    for condensed in (False, True):
        expected = []
        for user in test:
            items = [item for item in run[user] if item in test[user] or not condensed]
            truth = [test[user].get(item, 0) >= 4 for item in items]
            defined = any(truth) and not all(truth)
            expected.append(metrics.roc_auc_score(truth, [run[user][item] for item in items]) if defined else np.nan)
        np.testing.assert_allclose(Metric.of(f"AUC(condensed={condensed})")(judged), expected, rtol=1e-12)


def test_errors_of_predictions_equal_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    run, test, judged = _world()
    pairs = {user: [(test[user][item], run[user][item]) for item in run[user] if item in test[user]] for user in test}
    for name, function in (("RMSE", metrics.root_mean_squared_error), ("MAE", metrics.mean_absolute_error)):
        expected = [function(*zip(*pairs[user])) for user in test]
        np.testing.assert_allclose(Metric.of(name)(judged), expected, rtol=1e-12)
        everything = [pair for user in test for pair in pairs[user]]
        np.testing.assert_allclose(Metric.of(f"Pooled{name}")(judged), function(*zip(*everything)), rtol=1e-12)
