"""Metrics for incomplete judgments against loops written from their definitions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import SettingError
from cranfield.metrics import Metric

THRESHOLD, EPSILON = 3, 1e-5


def _bpref(items, profile):
    relevant = sum(rating >= THRESHOLD for rating in profile.values())
    others = len(profile) - relevant
    total, above = 0.0, 0
    for item in items:
        if item in profile and profile[item] >= THRESHOLD:
            total += 1 - min(above, relevant) / min(others, relevant) if above else 1
        elif item in profile:
            above += 1
    return total / relevant


def _inferred(items, profile, pool):
    total, good, bad = 0.0, 0, 0
    for k, item in enumerate(items, 1):
        if profile.get(item, -1) >= THRESHOLD:
            pooled = k - 1 if pool == "all" else good + bad
            total += 1 if k == 1 else 1 / k + pooled / k * (good + EPSILON) / (good + bad + 2 * EPSILON)
            good += 1
        elif item in profile:
            bad += 1
    return total / sum(rating >= THRESHOLD for rating in profile.values())


@given(data=st.data(), n=st.integers(1, 14))
def test_bpref_and_inferred_precision_equal_their_definitions(data, n, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD)
    definitions = {
        f"bpref@{n}": _bpref,
        f"infAP@{n}": lambda items, profile: _inferred(items, profile, "all"),
        f"infAP(pool=judged)@{n}": lambda items, profile: _inferred(items, profile, "judged"),
    }
    for spelling, definition in definitions.items():
        expected = [
            definition(ranked(run.get(user, {}))[:n], test[user]) if max(test[user].values()) >= THRESHOLD else math.nan
            for user in sorted(test)
        ]
        same(Metric.of(spelling)(judged), expected, spelling)


def test_an_unknown_pool_is_an_error(judged_of):
    with pytest.raises(SettingError, match="pool=some"):
        Metric.of("infAP(pool=some)")(judged_of({1: {7: 2.0}}, {1: {7: 5}}))
