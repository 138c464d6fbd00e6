"""`Sample`: what its values add up to, against averages that are worked out one user at a time."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from cranfield.comparisons import compare
from cranfield.comparisons.errors import moments, unit_of
from cranfield.comparisons.sample import Sample
from cranfield.comparisons.samples import as_scores, defined_for_all, make_samples
from cranfield.comparisons.significance import _levels
from cranfield.measures import Averaging

EVERY_PAIR = slice(0, 3)


def _sample(**options):
    values = np.random.default_rng(4).gamma(2.0, size=(3, 40))
    values[1, :6] = np.nan
    first, second = np.triu_indices(3, 1)
    return Sample("m", ("a", "b", "c"), values, first, second, **options)


def _weights(sample):
    return np.ones(sample.values.shape[1]) if sample.weights is None else sample.weights


def _average(sample, system, users, weights):
    """Return the average on the scale of the test: for a geometric mean its logarithm."""
    values = sample.values[system, users]
    if not sample.geometric:
        return np.average(values, weights=weights[users])
    return np.average(np.log(np.maximum(values, sample.floor) + sample.shift), weights=weights[users])


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


@pytest.mark.parametrize("options", SAMPLES)
def test_many_users_are_processed_in_slices_with_the_same_result(options, monkeypatch):
    def numbers(sample):
        rounded = sample.rounded_differences(EVERY_PAIR)
        averages, rows = sample.averages(EVERY_PAIR), sample.system_influences()
        return [sample.n, *rounded, sample.influences(EVERY_PAIR), *averages, rows, *moments(rounded.d)]

    at_once = numbers(_sample(**options))
    monkeypatch.setattr("cranfield.comparisons.sample._BLOCK", 7)
    for whole, sliced in zip(at_once, numbers(_sample(**options)), strict=True):
        np.testing.assert_allclose(sliced, whole, rtol=1e-12, atol=1e-15)


def peak_bytes(work):
    """Return the largest number of bytes that the work held at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("average", ["mean", "geometric"])
def test_a_comparison_holds_the_arrays_of_one_pair_at_a_time(average):
    users, systems, metrics = 150_000, 6, 3
    values = np.random.default_rng(0).beta(2, 6, (systems, metrics, users))
    first = as_scores({str(s): values[s, 0] for s in range(systems)})
    scores = replace(first, metrics=tuple("xyz"), values=values, lower_is_better=(False,) * metrics)
    needed = peak_bytes(lambda: compare(scores, average=average))
    # Ten pairs of arrays, whatever the number of pairs and metrics, and the draws.
    assert needed < 80e6 + 20 * 8 * users


def test_values_are_not_copied_if_all_of_them_count():
    scores = as_scores({"a": [0.1, 0.2], "b": [0.3, 0.1]})
    (sample,), _ = make_samples(scores, Averaging())
    assert np.shares_memory(sample.values, scores.values)
    assert compare(scores, coverage="reduced").frame(detail=True)["n"].item() == 2


def test_nobody_writes_to_scores_which_may_be_mapped():
    scores = as_scores({"a": [0.1, 0.2], "b": [0.3, 0.1]})
    with pytest.raises(ValueError, match="read-only"):
        scores.values[0] = 1.0


def test_the_unit_of_a_row_is_a_power_of_two_near_its_largest_value():
    assert unit_of(np.array([[3.0, -5.0, np.nan], [0.0, 0.0, 0.0]])).tolist() == [4.0, 1.0]


def test_a_system_without_values_does_not_decide_which_lists_are_defined_for_all():
    values = np.array([[0.1, np.nan, 0.3], [0.2, 0.5, np.nan], [np.nan] * 3])
    assert defined_for_all(values).tolist() == [True, False, False]


def test_differences_that_differ_only_by_rounding_have_the_same_level():
    levels = _levels(np.array([0.3 - 0.2, 0.1 - 0.2, 0.0, 1e13]), np.array([1e-15, 1e-15, 0.0, 1e-2]))
    assert levels.tolist() == [1.0, -1.0, 0.0, 2.0]
