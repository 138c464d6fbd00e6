"""A mask over the test ratings gives what pytrec_eval gives on a really smaller qrels file."""

from __future__ import annotations

import numpy as np
import pytest
import pytrec_eval

from cranfield import Ratings
from cranfield.assessments.fold import Sampling, measured
from cranfield.assessments.scenarios import SCENARIOS
from cranfield.assessments.subset_scores import MaskedScores
from cranfield.judgments import Judgments, judge
from cranfield.measures import Average
from cranfield.metrics import Metric
from cranfield.rankings import read_run

NAMES = {
    "P_10": "P@10",
    "recall_10": "Recall@10",
    "set_F": "F1",
    "map_cut_10": "AP@10",
    "ndcg_cut_10": "nDCG@10",
    "ndcg": "nDCG",
    "recip_rank": "RR",
    "bpref": "bpref",
    "infAP": "infAP(pool=judged)",
    "success_5": "HitRate@5",
}


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(3)
    test = {
        f"u{user}": {f"i{item}": int(rng.integers(0, 6)) for item in rng.choice(80, rng.integers(1, 30), replace=False)}
        for user in range(70)
    }
    runs = {
        f"s{system}": {
            f"u{user}": {f"i{item}": int(rng.integers(0, 400)) / 4 for item in rng.choice(80, 25, replace=False)}
            for user in range(70)
        }
        for system in range(3)
    }
    return runs, test


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("size", [1.0, 0.5, 0.05])
def test_masks_equal_smaller_qrels(world, name, size):
    runs, test = world
    rows = [(user, item, grade) for user, profile in test.items() for item, grade in profile.items()]
    ratings = Ratings.of(*(list(column) for column in zip(*rows)))
    judgments = Judgments.of(ratings, 3.0)
    mask = SCENARIOS[name].mask(judgments, size, 2, seed=11)
    smaller: dict[str, dict[str, int]] = {}
    for user, item, grade in ratings.keep(mask).frame().rows():
        smaller.setdefault(user, {})[item] = int(grade)
    judged = [judge(read_run(run, name=system), judgments) for system, run in runs.items()]
    averages = [Average.of("mean"), Average.of("geometric")]
    found = measured(
        MaskedScores(judged, [Metric.of(one) for one in NAMES.values()]), mask, Sampling(averages)
    ).averages
    evaluator = pytrec_eval.RelevanceEvaluator(
        smaller,
        {
            "P.10",
            "recall.10",
            "set_F",
            "map_cut.10",
            "ndcg_cut.10",
            "ndcg",
            "recip_rank",
            "bpref",
            "infAP",
            "success.5",
        },
        relevance_level=3,
    )
    for s, run in enumerate(runs.values()):
        theirs = evaluator.evaluate(run)
        assert set(theirs) == set(smaller)
        for m, measure in enumerate(NAMES):
            values = np.array([one[measure] for one in theirs.values()])
            assert found[0, m, s] == pytest.approx(values.mean(), abs=1e-9)
            assert found[1, m, s] == pytest.approx(np.exp(np.log(np.maximum(values, 1e-5)).mean()), rel=1e-9)
