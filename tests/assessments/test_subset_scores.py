"""The compiled walk says what the metrics say, under any mask."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings, metric
from cranfield.assessments import subset_scores
from cranfield.assessments.fold import Sampling, measured
from cranfield.assessments.subset_scores import MaskedScores
from cranfield.judgments import Judgments, judge
from cranfield.measures import Average
from cranfield.metrics import Metric
from cranfield.rankings import read_run

WALKED = [
    f"{name}{cut}"
    for name in ("P", "Recall", "F1", "HitRate", "RR", "AP", "bpref", "infAP", "infAP(pool=judged)", "nDCG",
                 "nDCG(gain=exp)", "nDCG(gain=binary)", "nDCG(gain=exp1)", "RBP(p=0.5)", "RBP(gain=exp1)",
                 "RBP(gain=exp1full)", "ERR", "ERR(rmax=user)", "ERR(rmax=7)", "AP(rel=2)", "P(condensed=true)",
                 "nDCG(condensed=true)", "infAP(rel=2, condensed=true)")
    for cut in ("", "@1", "@3", "@5", "@50")
]  # fmt: skip
OTHERS = ["AUC", "Rprec", "DCG@3", "RBP(gain=expfull)"]
ITEMS = st.integers(0, 14)
LISTS = st.dictionaries(st.integers(0, 5), st.lists(ITEMS, unique=True, max_size=12))
TEST = st.dictionaries(st.integers(0, 6), st.dictionaries(ITEMS, st.integers(0, 5), min_size=1, max_size=9), min_size=1)


def ratings_of(profiles):
    rows = [(user, item, value) for user, profile in profiles.items() for item, value in profile.items()]
    return Ratings.of(*(list(column) for column in zip(*rows)))


def judged_of(lists, judgments, name="run", ties="trec_eval"):
    run = {user: {item: -float(rank) for rank, item in enumerate(items)} for user, items in lists.items() if items}
    return judge(read_run(run or {99: {0: 1.0}}, name=name, ties=ties), judgments)


@given(LISTS, LISTS, TEST, st.integers(0, 2**32), st.sampled_from([0.2, 0.5, 0.9]), st.booleans())
def test_the_walk_equals_the_metrics_on_the_masked_lists(first, second, test, seed, share, condensed):
    judgments = Judgments.of(ratings_of(test), 4.0)
    judged = [judged_of(lists, judgments) for lists in (first, second)]
    if condensed:
        judged = [one.condensed() for one in judged]
    mask = np.random.default_rng(seed).random(len(judgments)) < share
    mask[0] = True
    metrics = [Metric.of(name) for name in [*WALKED, *OTHERS]]
    found = MaskedScores(judged, metrics, undefined="leave out")
    assert found.slow == tuple(OTHERS)
    smaller = [one.only(mask) for one in judged]
    for part in found.parts(mask):
        np.testing.assert_array_equal(part.judged, smaller[0].judgments.n_judged)
        np.testing.assert_array_equal(part.relevant, smaller[0].judgments.n_relevant)
        for place, values in zip(part.places, part.values):
            for s in range(2):
                np.testing.assert_allclose(
                    values[s], metrics[place](smaller[s]), rtol=1e-12, atol=1e-12, err_msg=str(metrics[place])
                )


def test_without_numba_or_with_averaged_ties_every_metric_goes_the_slow_way(monkeypatch):
    judgments = Judgments.of(ratings_of({1: {1: 5, 2: 3}, 2: {1: 4}}), 4.0)
    metrics = [Metric.of("P@2"), Metric.of("nDCG")]
    plain = judged_of({1: [1, 3], 2: [2, 1]}, judgments)
    tied = judged_of({1: [1, 3], 2: [2, 1]}, judgments, ties="average")
    mask = np.array([True, False, True])
    sampling = Sampling(tuple(map(Average.of, ("mean", "geometric", "weighted(by=relevant)", "median"))))
    fast = MaskedScores([plain], metrics)
    assert fast.slow == ()
    assert MaskedScores([tied], metrics).slow == ("P@2", "nDCG")
    walked = measured(fast, mask, sampling).averages
    monkeypatch.setattr(subset_scores, "compiled", lambda: None)
    slow = MaskedScores([plain], metrics)
    assert slow.slow == ("P@2", "nDCG")
    np.testing.assert_allclose(walked, measured(slow, mask, sampling).averages, rtol=1e-12)


def test_a_block_of_metrics_at_a_time_gives_the_same(monkeypatch):
    judgments = Judgments.of(ratings_of({1: {1: 5, 2: 3}, 2: {1: 4}}), 4.0)
    judged = [judged_of({1: [1, 3], 2: [2, 1]}, judgments), judged_of({1: [2, 1]}, judgments)]
    metrics = [Metric.of(name) for name in ("P@1", "P@2", "AP", "nDCG@2", "RR")]
    mask = np.array([True, True, False])
    whole = measured(MaskedScores(judged, metrics), mask, Sampling((Average.of("mean"),))).averages
    monkeypatch.setattr(subset_scores, "_CELLS", 8)
    blocks = MaskedScores(judged, metrics)
    assert len(blocks._plans) == 3
    np.testing.assert_array_equal(measured(blocks, mask, Sampling((Average.of("mean"),))).averages, whole)


def test_a_users_own_metric_and_one_of_the_whole_system_are_averaged_as_measure_does():
    @metric("ShareOfFirst")
    def share_of_first(judged):
        return judged.total(where=judged.ranks == 1)

    judgments = Judgments.of(ratings_of({1: {1: 5, 2: 3}, 2: {1: 4}}), 4.0)
    judged = [judged_of({1: [1, 3], 2: [2, 1]}, judgments)]
    found = MaskedScores(judged, [Metric.of("ShareOfFirst"), Metric.of("P@1")])
    assert found.slow == ("ShareOfFirst",)
    assert measured(found, np.ones(3, dtype=bool), Sampling((Average.of("mean"),))).averages.tolist() == [
        [[0.5], [0.5]]
    ]


@pytest.mark.parametrize("name", ["nDCG(gain=own_gain)@3", "P(dialect=lenskit)@3"])
def test_gains_of_ones_own_and_dialects_are_not_walked(name):
    from cranfield import gain

    gain("own_gain")(lambda ratings: ratings**2)
    assert not subset_scores.is_known(Metric.of(name))


@pytest.mark.parametrize("grades", [[1024.0, 1023.0], [5000.0, 3.0], [1e-300, 0.0], [1e300, 5.0]])
def test_a_scale_that_the_walk_cannot_sum_is_measured_one_by_one(grades):
    judgments = Judgments.of(ratings_of({1: dict(enumerate(grades)), 2: {0: 2.0, 1: 1.0}}), 1.0)
    judged = [judge(read_run({1: {0: 1.0, 1: 2.0}, 2: {1: 2.0, 0: 1.0}}, name="run"), judgments)]
    metrics = [Metric.of(name) for name in ("nDCG(gain=exp)", "ERR", "RBP(gain=exp1)", "P@2")]
    masked = MaskedScores(judged, metrics)
    assert masked.slow == ("nDCG(gain=exp)", "ERR", "RBP(gain=exp1)")
    found = measured(masked, np.ones(len(judgments), dtype=bool), Sampling((Average.of("mean"),))).averages[0, :, 0]
    np.testing.assert_allclose(found, [np.nan_to_num(one(judged[0])).mean() for one in metrics])
