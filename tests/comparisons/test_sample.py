"""`Sample`: what its values add up to, against averages that are worked out one user at a time."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.comparisons.sample import Sample

EVERY_PAIR = slice(0, 3)


def _sample(**options):
    values = np.random.default_rng(4).gamma(2.0, size=(3, 40))
    values[1, :6] = np.nan
    first, second = np.triu_indices(3, 1)
    return Sample("m", ("a", "b", "c"), values, first, second, **options)


def _weights(sample):
    return np.ones(sample.values.shape[1]) if sample.weights is None else sample.weights


def _average(sample, system, users, weights):
    values = sample.values[system, users]
    if not sample.geometric:
        return np.average(values, weights=weights[users])
    logs = np.log(np.maximum(values, sample.floor) + sample.shift)
    return np.exp(np.average(logs, weights=weights[users])) - sample.shift


SAMPLES = [
    pytest.param({}, id="mean"),
    pytest.param({"weights": np.random.default_rng(5).integers(1, 9, 40).astype(float)}, id="weighted"),
    pytest.param({"geometric": True, "shift": 0.5}, id="geometric"),
]


@pytest.mark.parametrize("options", SAMPLES)
def test_the_mean_of_the_influences_is_the_difference_of_the_averages(options):
    sample = _sample(**options)
    for pair, influences in enumerate(sample.influences(EVERY_PAIR)):
        a, b = sample.first[pair], sample.second[pair]
        both = ~np.isnan(sample.values[[a, b]]).any(axis=0)
        difference = _average(sample, a, both, _weights(sample)) - _average(sample, b, both, _weights(sample))
        assert np.nanmean(influences) == pytest.approx(difference, rel=1e-12)
        np.testing.assert_array_equal(np.isnan(influences), ~both)


@pytest.mark.parametrize("options", SAMPLES)
def test_an_influence_is_how_the_difference_moves_when_a_user_counts_a_little_more(options):
    sample, more = _sample(**options), 1e-7
    influences = sample.influences(EVERY_PAIR)[1]
    every = np.ones(40, dtype=bool)
    weights = _weights(sample)
    difference = _average(sample, 0, every, weights) - _average(sample, 2, every, weights)
    for user in range(40):
        moved = weights.copy()
        moved[user] *= 1 + more
        slope = (_average(sample, 0, every, moved) - _average(sample, 2, every, moved) - difference) / more
        assert influences[user] - difference == pytest.approx(40 * slope, abs=1e-5)


def test_relative_weights_are_weights_over_their_mean_and_0_where_nobody_has_any():
    weights = np.arange(40.0)
    assert _sample(weights=weights).relative_weights == pytest.approx(weights / 19.5)
    assert _sample(weights=np.zeros(40)).relative_weights.tolist() == [0.0] * 40
    assert _sample().relative_weights.tolist() == [1.0] * 40
