"""The dialect of trec_eval, against pytrec_eval: per user and averaged as it does."""

from __future__ import annotations

import numpy as np
import pytest

import cranfield as cf
from cranfield.measures.other_tools import compare_tools

pytrec_eval = pytest.importorskip("pytrec_eval")

# A cut-off of recip_rank and set_F is its option -M, which cuts the run.
OF_WHOLE_RUN = {"P": "P_5", "Recall": "recall_5", "AP": "map_cut_5", "HitRate": "success_5", "nDCG": "ndcg_cut_5"}
OF_CUT_RUN = {"RR": "recip_rank", "F1": "set_F"}


def _world(seed):
    rng = np.random.default_rng(seed)
    test = {
        f"u{u}": {f"i{i}": int(rng.integers(0, 4 if u % 4 else 2)) for i in rng.permutation(20)[: rng.integers(1, 9)]}
        for u in range(15)
    }
    run = {
        f"u{u}": {f"i{i}": float(-k) for k, i in enumerate(rng.permutation(20)[: rng.integers(1, 12)])}
        for u in range(17)
        if u % 3
    }
    return test, run


@pytest.mark.parametrize("seed", range(4))
def test_trec_eval(seed):
    test, run = _world(seed)
    rows = [(user, item, rating) for user, rated in test.items() for item, rating in rated.items()]
    names = [f"{name}@5" for name in (*OF_WHOLE_RUN, *OF_CUT_RUN)]
    frame = compare_tools({"run": run}, cf.Ratings.of(*zip(*rows)), names, threshold=2)
    ours = dict(frame.select("spelling", "value").iter_rows())
    cut = {user: dict(list(scored.items())[:5]) for user, scored in run.items()}
    for lists, measures in ((run, OF_WHOLE_RUN), (cut, OF_CUT_RUN)):
        evaluator = pytrec_eval.RelevanceEvaluator(test, set(pytrec_eval.supported_measures), relevance_level=2)
        theirs = evaluator.evaluate(lists)
        assert len(theirs) == len(set(test) & set(run))
        for name, measure in measures.items():
            mean = np.mean([values[measure] for values in theirs.values()])
            assert ours[f"{name}(dialect=trec_eval)@5"] == pytest.approx(mean, abs=1e-9)
