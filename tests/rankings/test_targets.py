"""Which items a list may hold: in blocks, one by one, and drawn within groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import SettingError, simulate
from cranfield.data import Ratings
from cranfield.rankings import Ranking, Targets, recommend
from cranfield.splits import percentiles, random
from cranfield.tables import Vocabulary


def _split(seed=0, users=12, items=25, method=random):
    draw = np.random.default_rng(seed)
    user, item = (column.astype(np.int32) for column in np.nonzero(draw.random((users, items)) < 0.5))
    names = Vocabulary.of(range(users)), Vocabulary.of(range(items))
    ratings = Ratings.from_codes(*names, user, item, draw.integers(1, 6, len(user)).astype(float))
    return method(ratings, train=0.6, seed=seed)


@given(
    seed=st.integers(0, 20),
    lists=st.sampled_from(["full", "condensed"]),
    candidates=st.sampled_from(["all", "test"]),
    nonrelevant=st.sampled_from(["all", 4]),
    keep_seen=st.booleans(),
)
def test_containing_an_item_is_being_allowed_in_a_block(seed, lists, candidates, nonrelevant, keep_seen):
    split = _split(seed)
    ranking = Ranking(lists=lists, candidates=candidates, nonrelevant=nonrelevant, keep_seen=keep_seen, threshold=4)
    users = np.array([0, 3, 4, 11], dtype=np.int32)
    targets = Targets(split.train, split.test, ranking, seed).drawn_for(users)
    items = np.tile(np.arange(-1, split.train.n_items + 1), (len(users), 1))
    inside = targets.contain(users, items)
    assert not inside[:, [0, -1]].any()
    np.testing.assert_array_equal(inside[:, 1:-1], targets.allowed(users))
    one = targets.contain(users[1:2], items[1:2])
    np.testing.assert_array_equal(one, inside[1:2])


@given(seed=st.integers(0, 20), wanted=st.integers(1, 5))
def test_non_relevant_items_are_drawn_from_the_groups_of_the_relevant_ones(seed, wanted):
    split = _split(seed, method=lambda *args, **options: percentiles(*args, groups=4, **options))
    groups = split.item_groups
    ranking = Ranking(relevant="one", candidates="group", nonrelevant=wanted, threshold=4)
    users = np.arange(split.train.n_users, dtype=np.int32)
    whole = Targets(split.train, split.test, ranking.with_(nonrelevant="all"), seed, groups)
    targets = Targets(split.train, split.test, ranking, seed, groups).drawn_for(users)
    drawn, pool = targets.pool(users), whole.pool(users)
    assert not (drawn & ~pool).any()
    rows, items = targets.relevant_cells(users)
    short = set()
    for user in users:
        own = set(groups[items[rows == user]].tolist())
        for group in range(4):
            open_items = int((pool[user] & (groups == group)).sum())
            found = int((drawn[user] & (groups == group)).sum())
            assert found == (min(wanted, open_items) if group in own else 0)
            if group in own and open_items < wanted:
                short.add(int(user))
    assert targets.drawn.short == len(short)


@given(seed=st.integers(0, 20), wanted=st.integers(0, 30), candidates=st.sampled_from(["all", "test"]))
def test_unrated_items_are_drawn_beside_all_test_items(seed, wanted, candidates):
    split = _split(seed)
    users = np.array([0, 3, 4, 11], dtype=np.int32)
    targets = Targets(split.train, split.test, Ranking(unrated=wanted, candidates=candidates), seed).drawn_for(users)
    smaller = Targets(split.train, split.test, Ranking(unrated=wanted // 2, candidates=candidates), seed)
    smaller = smaller.drawn_for(users).allowed(users)
    allowed, drawn = targets.allowed(users), targets.pool(users)
    offered = np.ones(split.train.n_items, dtype=bool) if candidates == "all" else split.test.item_counts > 0
    short = 0
    for row, user in enumerate(users):
        tested, trained = (set(part.items[part.profile(user)].tolist()) for part in (split.test, split.train))
        unrated = set(np.flatnonzero(offered).tolist()) - tested - trained
        own = set(np.flatnonzero(drawn[row]).tolist())
        assert own <= unrated
        assert len(own) == min(wanted, len(unrated))
        assert set(np.flatnonzero(allowed[row]).tolist()) == own | tested
        short += len(unrated) < wanted
    assert not (smaller & ~allowed).any()
    assert targets.drawn.short == short
    items = np.tile(np.arange(-1, split.train.n_items + 1), (len(users), 1))
    np.testing.assert_array_equal(targets.contain(users, items)[:, 1:-1], allowed)
    assert targets.step.effect == {"users with fewer unrated items than asked": short}


def test_no_unrated_items_make_condensed_lists_and_very_many_make_full_ones():
    split = _split()
    for unrated, plain in ((0, Ranking(lists="condensed")), (1000, Ranking())):
        (run,) = recommend(split, "popularity", "all", unrated=unrated)
        (expected,) = recommend(split, "popularity", "all", lists=plain.lists)
        np.testing.assert_array_equal(run.items, expected.items)
        np.testing.assert_array_equal(run.indptr, expected.indptr)


def test_without_a_seed_items_are_drawn_with_the_seed_0():
    split, users = _split(), np.arange(12, dtype=np.int32)
    every = [Targets(split.train, split.test, Ranking(nonrelevant=3), *seed) for seed in ((), (0,), (1,))]
    drawn = [targets.drawn_for(users).drawn.items.tolist() for targets in every]
    assert drawn[0] == drawn[1] != drawn[2]


def test_groups_are_needed_to_rank_within_them():
    split = _split()
    with pytest.raises(SettingError, match="needs items in popularity groups; split with percentiles"):
        Targets(split.train, split.test, Ranking(relevant="one", candidates="group", threshold=4))


def test_lists_longer_than_a_popularity_group_are_refused():
    split = percentiles(simulate.world(40, 30, 500).ratings, groups=4, train=0.6)
    ranking = Ranking(relevant="one", candidates="group", nonrelevant=6, threshold=4)
    Targets(split.train, split.test, ranking, item_groups=split.item_groups)
    message = (
        "nonrelevant=7 asks for lists of 8 items, and the smallest of the 4 popularity groups holds 7; "
        "set nonrelevant=6 or less, or use fewer groups"
    )
    with pytest.raises(SettingError, match=message):
        Targets(split.train, split.test, ranking.with_(nonrelevant=7), item_groups=split.item_groups)
