"""The true value of lists, against trec_eval given the complete truth as judgments."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import simulate

pytrec_eval = pytest.importorskip("pytrec_eval")


@pytest.mark.parametrize("seed", range(3))
def test_true_values_are_those_of_trec_eval_with_complete_judgments(seed):
    world = simulate.world(60, 50, 900, seed=seed)
    rng = np.random.default_rng(seed)
    train = world.ratings
    seen = train.matrix().toarray() > 0
    grades = world.preference()
    lists = {
        user + 1: [item + 1 for item in rng.permutation(50).tolist() if not seen[user, item]][:20] for user in range(60)
    }
    judgments = {
        str(user + 1): {str(item + 1): int(grades[user, item]) for item in range(50) if not seen[user, item]}
        for user in range(60)
    }
    run = {str(user): {str(item): float(-rank) for rank, item in enumerate(items)} for user, items in lists.items()}
    graded = pytrec_eval.RelevanceEvaluator(judgments, {"ndcg_cut_10"}).evaluate(run)
    binary = pytrec_eval.RelevanceEvaluator(judgments, {"P_10", "recall_10"}, relevance_level=4).evaluate(run)
    values = {metric: world.true_value(lists, metric, exclude=train) for metric in ("nDCG@10", "P@10", "Recall@10")}
    for place, user in enumerate(lists):
        assert values["nDCG@10"][place] == pytest.approx(graded[str(user)]["ndcg_cut_10"])
        assert values["P@10"][place] == pytest.approx(binary[str(user)]["P_10"])
        if not np.isnan(values["Recall@10"][place]):
            assert values["Recall@10"][place] == pytest.approx(binary[str(user)]["recall_10"])
