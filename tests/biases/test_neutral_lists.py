"""Neutral designs on given lists, against lists that were ranked for them and against loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cranfield as cf
from cranfield.biases.neutral_lists import each_relevant_alone, only_items, thinned_uniformly
from cranfield.splits.by_popularity import popularity_groups


@pytest.mark.parametrize("system", ["popularity", "random", "knn(k=5)"])
def test_on_whole_lists_ranks_among_a_percentile_are_those_of_lists_made_for_it(system, split):
    groups = popularity_groups(split.train, 3)
    grouped = replace(split, item_groups=groups)
    (made,) = cf.recommend(grouped, system, relevant="one", candidates="group", length="all", threshold=4)
    (whole,) = cf.recommend(split, system, length="all")
    relevant = split.test.values >= 4
    found = each_relevant_alone(whole, split.test, relevant, groups.astype(np.int64), relevant, ["0", "1", "2"])
    keep = groups[made.items] >= 0
    assert found.users.tolist() == made.users[keep].tolist()
    assert found.items.tolist() == made.items[keep].tolist()
    assert found.ranks.tolist() == made.ranks[keep].tolist()
    assert found.groups.tolist() == groups[made.items[keep]].tolist()


def test_thinned_test_ratings_are_as_many_for_every_item_and_as_many_as_possible(split):
    thin = thinned_uniformly(split.test, seed=2)
    counts = thin.test.item_counts
    assert set(counts.tolist()) == {0, thin.each}
    every = split.test.item_counts
    assert len(thin.test) == max(each * int((every >= each).sum()) for each in range(1, every.max() + 1))
    pairs = set(zip(split.test.users.tolist(), split.test.items.tolist()))
    assert set(zip(thin.test.users.tolist(), thin.test.items.tolist())) <= pairs
    assert thinned_uniformly(split.test, seed=3).test.fingerprint != thin.test.fingerprint


def test_lists_of_targets_alone_keep_their_order(split):
    (run,) = cf.recommend(split, "popularity", length=10)
    target = np.arange(split.test.n_items) % 2 == 0
    found = only_items(run, target, split.test)
    for k in range(len(run)):
        before = run.items[run.indptr[k] : run.indptr[k + 1]]
        assert found.items[found.indptr[k] : found.indptr[k + 1]].tolist() == [i for i in before if i % 2 == 0]


def test_ids_of_files_meet(split):
    (run,) = cf.recommend(split, "popularity", length="all")
    frame, relevant = run.frame(), split.test.values >= 4
    other = cf.read_run(frame.with_columns(frame["user"].cast(str), frame["item"].cast(str)), name="other")
    text = split.test.frame()
    test = cf.Ratings.of(text["user"].cast(str).to_list(), text["item"].cast(str).to_list(), text["rating"].to_list())
    ours = each_relevant_alone(run, split.test, relevant, np.zeros(split.test.n_items, dtype=np.int64), relevant)
    theirs = each_relevant_alone(
        other, test, test.values >= 4, np.zeros(test.n_items, dtype=np.int64), test.values >= 4
    )
    pairs = [
        dict(zip(zip(found.frame()["user"].cast(str), found.frame()["item"].cast(str)), found.frame()["rank"]))
        for found in (ours, theirs)
    ]
    assert pairs[0] == pairs[1]
