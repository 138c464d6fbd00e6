"""P, Recall and nDCG have one meaning: in `measure`, in the compiled walk, and as true values of a world."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield import simulate
from cranfield.assessments.subset_scores import MaskedScores
from cranfield.judgments import judge
from cranfield.metrics import Metric


@pytest.fixture(scope="module")
def world():
    return simulate.world(12, 15, 90, seed=4)


@given(
    data=st.data(),
    seed=st.integers(0, 10_000),
    cutoff=st.integers(1, 20),
    name=st.sampled_from(["P", "Recall", "nDCG"]),
)
def test_the_three_ways_to_compute_a_value_agree(world, data, seed, cutoff, name):
    rng = np.random.default_rng(seed)
    users = rng.permutation(12)[:5]
    lists = {int(user) + 1: (rng.permutation(15)[: rng.integers(1, 16)] + 1).tolist() for user in users}
    truth = world.truth(sorted(users.tolist()))
    metric = Metric.of(f"{name}@{cutoff}")
    judged = judge({"run": lists}, truth, threshold=world.threshold)
    measured = metric(judged)
    walked = MaskedScores([judged], [metric], "leave out")
    assert not walked.slow, "the compiled walk knows the metric"
    (part,) = walked.parts(np.ones(len(judged.judgments), dtype=bool))
    true = world.true_value({user: lists[user] for user in sorted(lists)}, str(metric))
    if name == "P":  # undefined for a user without relevant items, but not as a true value
        true = np.where(np.isnan(measured), np.nan, true)
    np.testing.assert_allclose(part.values[0, 0], measured, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(true, measured, rtol=1e-6, atol=1e-9)  # true grades have 32 bits


def test_their_averages_agree_too(world):
    lists = {user + 1: [(user + k) % 15 + 1 for k in range(10)] for user in range(12)}
    truth = world.truth()
    for name in ("Recall@5", "nDCG@5"):
        scores = cf.measure({"run": lists}, truth, name, threshold=world.threshold)
        walked = MaskedScores([judge({"run": lists}, truth, threshold=world.threshold)], [Metric.of(name)], "leave out")
        (part,) = walked.parts(np.ones(len(truth), dtype=bool))
        mean = scores.average(undefined="leave out")[0, 0]
        assert np.nanmean(world.true_value(lists, name)) == pytest.approx(mean, rel=1e-6)
        assert np.nanmean(part.values) == pytest.approx(mean, rel=1e-12)
