"""Agreement with the user's own order, list by list."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import SettingError
from cranfield.metrics import Metric
from cranfield.metrics.correlation import kendall_tau_b, rbo, spearman, tau_ap


@given(data=st.data(), n=st.integers(1, 9))
def test_each_compares_the_condensed_list_with_its_ratings(data, n, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test)
    functions = {
        "Tau": kendall_tau_b,
        "Spearman": spearman,
        "TauAP": tau_ap,
        "TauAP(ties=b)": lambda x, y: tau_ap(x, y, ties="b"),
        "RBO(ties=a, p=0.8)": lambda x, y: rbo(x, y, p=0.8) if len(set(x)) > 1 else math.nan,
        "RBO(ties=w)": lambda x, y: rbo(x, y, ties="w") if len(set(x)) > 1 else math.nan,
    }
    for name, function in functions.items():
        expected = []
        for user in sorted(test):
            common = [item for item in ranked(run.get(user, {})) if item in test[user]][:n]
            expected.append(function([test[user][item] for item in common], [-k for k in range(len(common))]))
        same(Metric.of(f"{name}@{n}")(judged), expected, name)


def test_rbo_orders_equally_rated_items_as_the_system_does(judged_of):
    judged = judged_of({1: {1: 4.0, 2: 3.0, 3: 2.0, 4: 1.0}}, {1: {1: 3, 2: 5, 3: 3, 4: 5}})
    # By rating, ties by the system: 2 4 1 3, against 1 2 3 4: overlaps 0, 1, 2, 4.
    p = 0.9
    expected = (1 - p) * (0 + 1 / 2 * p + 2 / 3 * p**2 + p**3) + p**4
    assert Metric.of("RBO")(judged)[0] == pytest.approx(expected)


def test_the_users_own_order_scores_one_and_its_reverse_minus_one(judged_of, same):
    test = {1: {item: item for item in range(1, 6)}}
    own, reverse = ({1: {item: sign * float(item) for item in range(1, 6)}} for sign in (1, -1))
    for name in ("Tau", "Spearman", "TauAP", "TauAP(ties=b)"):
        same(Metric.of(name)(judged_of(own, test)), [1.0], name)
        same(Metric.of(name)(judged_of(reverse, test)), [-1.0], name)
    same(Metric.of("RBO")(judged_of(own, test)), [1.0])


def test_a_list_without_an_order_is_undefined(judged_of):
    judged = judged_of({1: {1: 2.0, 9: 1.0}, 2: {1: 2.0, 2: 1.0}, 3: {9: 1.0}}, {1: {1: 5}, 2: {1: 3, 2: 3}, 3: {1: 1}})
    for name in ("Tau", "Spearman", "TauAP", "RBO"):
        assert np.isnan(Metric.of(name)(judged)).all(), name


def test_unknown_settings_are_errors(judged_of):
    judged = judged_of({1: {1: 2.0, 2: 1.0}}, {1: {1: 5, 2: 3}})
    for spelling in ("RBO(p=1)", "RBO(ties=c)", "TauAP(ties=w)"):
        with pytest.raises(SettingError):
            Metric.of(spelling)(judged)
