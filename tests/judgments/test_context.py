"""What is kept of a run beside its judged lists, against the run itself."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.judgments.context import Drawing, RunFacts
from cranfield.rankings import read_run


@pytest.mark.parametrize("seed", range(5))
def test_ties_across_a_rank_are_counted_in_every_list(seed):
    rng = np.random.default_rng(seed)
    lists = {user: rng.choice([1.0, 2.0, 3.0], rng.integers(1, 8)) for user in range(9)}
    run = read_run({user: dict(enumerate(scores.tolist())) for user, scores in lists.items()}, name="run")
    ranked = RunFacts.of(run, run.item_ids)
    for n in range(1, 10):
        ordered = [np.sort(scores)[::-1] for scores in lists.values()]
        share = np.mean([len(scores) > n and scores[n - 1] == scores[n] for scores in ordered])
        assert ranked.share_tied_across(n) == pytest.approx(share)


def test_draws_are_a_decision():
    assert Drawing(draws="exact").as_dict() == {"draws": "exact"}
