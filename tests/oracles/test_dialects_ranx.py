"""The dialect of ranx, against ranx."""

from __future__ import annotations

import numpy as np
import pytest

import cranfield as cf
from cranfield.measures.other_tools import compare_tools

NAMES = {
    "P(dialect=ranx)@5": "precision@5-l2",
    "Recall(dialect=ranx)@5": "recall@5-l2",
    "F1(dialect=ranx)@5": "f1@5-l2",
    "AP(dialect=ranx)@5": "map@5-l2",
    "RR(dialect=ranx)@5": "mrr@5-l2",
    "HitRate(dialect=ranx)@5": "hit_rate@5-l2",
    "nDCG(dialect=ranx)@5": "ndcg@5-l2",
    "nDCG(dialect=ranx, gain=exp)@5": "ndcg_burges@5-l2",
    "P(dialect=ranx)": "precision-l2",
    "nDCG(dialect=ranx)": "ndcg-l2",
    "AP(dialect=ranx)": "map-l2",
}


@pytest.mark.slow  # it compiles on the first call
@pytest.mark.parametrize("seed", range(3))
def test_ranx(seed):
    ranx = pytest.importorskip("ranx")
    rng = np.random.default_rng(seed)
    test = {
        f"u{u}": {f"i{i}": int(rng.integers(1, 4 if u % 4 else 2)) for i in rng.permutation(20)[: rng.integers(1, 9)]}
        for u in range(15)
    }
    run = {
        f"u{u}": {f"i{i}": float(-k) for k, i in enumerate(rng.permutation(20)[: rng.integers(2, 12)])}
        for u in range(17)
        if u % 3
    }
    rows = [(user, item, rating) for user, rated in test.items() for item, rating in rated.items()]
    plain = sorted({name.partition("(")[0] + name.partition(")")[2] for name in NAMES})
    frame = compare_tools({"run": run}, cf.Ratings.of(*zip(*rows)), plain, threshold=2)
    ours = dict(frame.select("spelling", "value").iter_rows())
    theirs = ranx.evaluate(ranx.Qrels(test), ranx.Run(run), list(NAMES.values()), make_comparable=True)
    assert {name: ours[name] for name in NAMES} == pytest.approx({n: theirs[own] for n, own in NAMES.items()}, abs=1e-9)
