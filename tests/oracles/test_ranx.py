"""As ranx for RBP and for nDCG with exponential gain, on lists without ties."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import Ratings
from cranfield.judgments import Judgments, judge
from cranfield.metrics import Metric
from cranfield.rankings import read_run

GRADED = {"nDCG(gain=exp)@10": "ndcg_burges@10", "nDCG@10": "ndcg@10"}
# ranx's RBP sums grades, so it is compared on grades of 1.
BINARY = {
    "RBP(p=0.8)": "rbp.80",
    "RBP(p=0.95)": "rbp.95",
    "Recall@10": "recall@10",
    "F1@10": "f1@10",
    "AP@10": "map@10",
    "HitRate@3": "hit_rate@3",
}


def _compare(ranx, run, test, pairs):
    rows = [(user, item, grade) for user, profile in test.items() for item, grade in profile.items()]
    judgments = Judgments.of(Ratings.of(*(list(column) for column in zip(*rows))), 1.0)
    judged = judge(read_run(run, name="run"), judgments)
    theirs = ranx.evaluate(ranx.Qrels(test), ranx.Run(run), list(pairs.values()), return_mean=False)
    for name, their_name in pairs.items():
        values = np.nan_to_num(Metric.of(name)(judged))
        np.testing.assert_allclose(values, theirs[their_name], atol=1e-9, err_msg=name)


@pytest.mark.slow
def test_equals_ranx():
    ranx = pytest.importorskip("ranx")
    rng = np.random.default_rng(5)
    items = np.arange(60).astype(str)
    users = [f"q{user}" for user in range(10, 50)]  # ranx answers in the order of the ids
    run = {user: dict(zip(rng.permutation(items)[:30], rng.permutation(300)[:30] / 4)) for user in users}
    test = {
        user: {item: int(rng.integers(1, 6)) for item in rng.choice(items, rng.integers(5, 30), replace=False)}
        for user in users
    }
    _compare(ranx, run, test, GRADED)
    _compare(ranx, run, {user: dict.fromkeys(profile, 1) for user, profile in test.items()}, BINARY)
