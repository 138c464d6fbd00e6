"""Judged lists that are collected block by block are those of all users."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield.judgments.context import Context
from cranfield.judgments.judged_files import JudgedTable, without_runs


def _world(rng, text):
    """Return the rows of two runs with ties and of a test set, over integers or text."""
    name = (lambda n: f"u{n}") if text else int
    runs = [
        (system, name(user), name(item), float(rng.integers(0, 4)))
        for system in ("a", "b")
        for user in range(15)
        for item in rng.permutation(20)[: rng.integers(1, 8)]
    ]
    ratings = [
        (name(user), name(item), float(rng.integers(-1, 6)))
        for user in range(2, 18)
        for item in rng.permutation(20)[: rng.integers(1, 8)]
    ]
    columns = ["user", "item"]
    return pl.DataFrame(runs, ["system", *columns, "score"], orient="row"), pl.DataFrame(
        ratings, [*columns, "rating"], orient="row"
    )


@pytest.mark.parametrize("most", [0.0, 1500.0, 1e9])
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_blocks_in_any_order_add_up_to_all_users(seed, text, most):
    rng = np.random.default_rng(seed)
    runs, test = _world(rng, text)
    options = {
        "threshold": 3,
        "ties": ["average", "trec_eval"][seed % 2],
        "negative_grades": ["pooled", "judged"][seed // 2],
    }
    names = sorted(set(test["user"]))
    block_of = dict(zip(names, rng.integers(0, 3, len(names)).tolist()))
    table = JudgedTable(most)
    for block in (2, 0, 1):
        users = [name for name in names if block_of[name] == block]
        part, own = (frame.filter(pl.col("user").is_in(users)) for frame in (runs, test))
        if not len(own.filter(pl.col("rating") >= 0)):
            continue
        judged = [cf.judge(part.filter(system=system).drop("system"), cf.read(own), **options) for system in ("a", "b")]
        table.add(without_runs(judged))
    whole = [cf.judge(runs.filter(system=system).drop("system"), cf.read(test), **options) for system in ("a", "b")]
    metrics = ["P@3", "nDCG@5", "AP", "bpref", "infAP(pool=judged)", "RR", "Unjudged@4"]
    for mine, theirs in zip(table.judged(Context()), whole):
        for metric in metrics:
            np.testing.assert_array_equal(cf.Metric.of(metric)(mine), cf.Metric.of(metric)(theirs), err_msg=metric)
        ids = mine.judgments.user_ids.ids(mine.judgments.users)
        assert ids.to_list() == theirs.judgments.user_ids.ids(theirs.judgments.users).to_list()
