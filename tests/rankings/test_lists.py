"""Rows in any order become ranked lists by the rules of the documentation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import SettingError
from cranfield.rankings.columns import encode
from cranfield.rankings.lists import (
    LAST_PLACE,
    ListEntries,
    ListOrder,
    arrange,
    lengths_of,
    ranks_of_whole,
    stable_argsort,
)

VALUES = st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.0, math.inf, -math.inf, math.nan])
ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 14), VALUES), max_size=60)


def _arranged(rows, ties="trec_eval", by="score"):
    users, items, values = (list(column) for column in zip(*rows)) if rows else ([], [], [])
    user_ids, user_codes = encode(np.array(users, dtype=np.int64))
    item_ids, item_codes = encode(np.array(items, dtype=np.int64))
    values = np.array(values, dtype=np.float64)
    entries = ListEntries(user_codes, item_codes, **({"scores": values} if by == "score" else {"ranks": values}))
    lists = arrange(entries, user_ids, item_ids, ties)
    found = {}
    for user in range(len(user_ids)):
        within = slice(lists.indptr[user], lists.indptr[user + 1])
        found[user_ids.all[user]] = item_ids.ids(lists.entries.items[within]).to_list()
    return found, lists


def _expected(rows, ties):
    """The rules, straight from their words."""
    lists = {user: [] for user, _, _ in rows}
    for place, (user, item, score) in enumerate(rows):
        if not math.isnan(score):
            lists[user].append((score, item, place))
    ranked = {}
    for user, entries in lists.items():
        entries.sort(key=lambda entry: entry[2])
        if ties != "input":
            entries.sort(key=lambda entry: str(entry[1]).encode(), reverse=True)
        entries.sort(key=lambda entry: -entry[0])
        ranked[user] = list(dict.fromkeys(item for _, item, _ in entries))
    return ranked


@given(ROWS, st.sampled_from(["trec_eval", "input", "average"]))
def test_lists_are_ordered_as_the_rules_say(rows, ties):
    found, lists = _arranged(rows, ties)
    expected = _expected(rows, ties)
    assert found == expected
    kept = sum(map(len, expected.values()))
    nan = sum(math.isnan(score) for _, _, score in rows)
    assert lists.counts["nan_scores"] == nan
    assert lists.counts["duplicate_items"] == len(rows) - nan - kept
    assert lists.counts["empty_lists"] == sum(not items for items in expected.values())


@given(ROWS)
def test_only_the_tie_rule_of_the_input_depends_on_the_order_of_rows(rows):
    assert _arranged(rows)[0] == _arranged(rows[::-1])[0]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_ties_are_counted_within_each_list(scores):
    _, lists = _arranged([(place % 2, place, float(score)) for place, score in enumerate(scores)])
    expected = sum(half.count(score) > 1 for half in (scores[::2], scores[1::2]) for score in half)
    assert lists.counts["tied_items"] == expected


def test_ranks_order_a_list_where_there_are_no_scores():
    found, lists = _arranged([(1, 7, 3.0), (1, 8, 1.0), (1, 9, 2.0)], by="rank")
    assert found == {1: [8, 9, 7]}
    assert lists.entries.scores is None


def test_items_of_equal_rank_follow_the_rule_for_ties():
    rows = [(1, 10, 1.0), (1, 9, 1.0)]
    assert _arranged(rows, by="rank")[0] == {1: [9, 10]}
    assert _arranged(rows, "input", by="rank")[0] == {1: [10, 9]}


def test_averaging_over_ties_of_rank_finds_them_in_the_scores():
    _, lists = _arranged([(1, 10, 1.0), (1, 9, 1.0), (1, 8, 3.0)], "average", by="rank")
    assert lists.entries.scores.tolist() == [-1, -1, -3]


def test_without_scores_and_ranks_the_input_is_the_order():
    users, items = encode([2, 1, 2]), encode(["a", "b", "c"])
    lists = arrange(ListEntries(users[1], items[1]), users[0], items[0])
    assert lists.indptr.tolist() == [0, 1, 3]
    assert items[0].ids(lists.entries.items).to_list() == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("scores", "ranks", "disagreements"),
    [
        ([3, 2, 1], [1, 2, 3], 0),
        ([3, 2, 1], [1, 3, 2], 1),
        ([2, 2, 1], [2, 1, 3], 0),
        ([2, 2, 1], [1, 3, 2], 1),
    ],
)
def test_a_list_that_ranks_and_scores_order_differently_is_counted(scores, ranks, disagreements):
    entries = ListEntries(
        np.zeros(3, np.int32), np.arange(3, dtype=np.int32), np.array(scores, float), np.array(ranks, float)
    )
    lists = arrange(entries, encode(["u"])[0], encode(["a", "b", "c"])[0])
    assert lists.counts["rank_disagreements"] == disagreements


def test_items_that_share_a_rank_may_have_any_scores():
    # The ranks of the first list contradict its scores; both items of the second list have the same rank.
    scores, ranks = np.array([3.0, 2.0, 2.0, 1.0]), np.array([2.0, 1.0, 1.0, 1.0])
    entries = ListEntries(np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 0, 1], np.int32), scores, ranks)
    lists = arrange(entries, encode(["u", "v"])[0], encode(["a", "b"])[0])
    assert lists.counts["rank_disagreements"] == 1


def test_long_and_short_lists_are_sorted_alike():
    rng = np.random.default_rng(3)
    rows = [
        (user, item, float(rng.integers(0, 50)))
        for user, size in enumerate([1, 2, 3, 60, 64, 65, 700])
        for item in range(size)
    ]
    rows = [rows[place] for place in rng.permutation(len(rows))]
    assert _arranged(rows)[0] == _expected(rows, "trec_eval")


def test_whole_lists_in_any_order_of_users_are_moved_as_they_are():
    found, _ = _arranged([(3, 1, 2.0), (3, 2, 1.0), (1, 5, 1.0), (2, 9, 9.0), (2, 4, 8.0), (2, 3, 7.0)], "input")
    assert found == {1: [5], 2: [9, 4, 3], 3: [1, 2]}


@given(st.lists(st.integers(0, 2**31 - 1), max_size=30))
def test_packed_sorting_is_stable(codes):
    codes = np.array(codes, dtype=np.int32)
    assert stable_argsort(codes).tolist() == np.argsort(codes, kind="stable").tolist()


def test_an_unknown_rule_is_refused():
    with pytest.raises(SettingError, match="is not a rule for ties; did you mean 'trec_eval'"):
        ListOrder("trec-eval")
    with pytest.raises(SettingError, match="is not a rule for gaps between ranks; did you mean 'close'"):
        ListOrder(gaps="closed")


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 14), st.integers(0, 9) | st.integers(0, LAST_PLACE)), max_size=60
    ),
    st.sampled_from(["trec_eval", "input", "average"]),
    st.integers(0, 1),
)
def test_an_entry_has_the_place_of_its_rank_or_the_next_one_that_is_free(rows, ties, first):
    users, items, ranks = (list(column) for column in zip(*rows)) if rows else ([], [], [])
    (user_ids, users), (item_ids, items) = (encode(np.array(ids, dtype=np.int64)) for ids in (users, items))
    entries = ListEntries(users, items, ranks=np.array(ranks, dtype=np.float64))
    lists = arrange(entries, user_ids, item_ids, ties, first)
    found = ranks_of_whole(lists.indptr) if lists.places is None else lists.places
    gaps = []
    for user in range(len(user_ids)):
        within, last, expected = slice(*lists.indptr[user : user + 2]), 0, []
        for rank in lists.entries.ranks[within]:
            last = max(int(rank) - first + 1, last + 1)
            expected.append(last)
        assert found[within].tolist() == expected
        gaps.append(last - len(expected))
    if lists.places is None:
        assert not any(gaps)
    else:
        assert lists.counts["missing_ranks"] == sum(gaps)
        assert lists.counts["lists_with_gaps"] == sum(map(bool, gaps))
        assert lengths_of(lists.places, lists.indptr).tolist() == [
            gap + size for gap, size in zip(gaps, np.diff(lists.indptr))
        ]
    assert arrange(entries, user_ids, item_ids, ties).places is None


def test_of_an_item_twice_with_one_score_the_first_row_stays_however_numpy_sorts():
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 50, 4000), rng.integers(0, 30, 4000)
    (user_ids, user_codes), (item_ids, item_codes) = encode(users), encode(items)
    entries = ListEntries(user_codes, item_codes, scores=(items % 7).astype(float), predictions=np.arange(4000.0))
    kept = arrange(entries, user_ids, item_ids).entries
    first = {}
    for row, pair in enumerate(zip(users.tolist(), items.tolist())):
        first.setdefault(pair, row)
    pairs = zip(user_ids.ids(kept.users), item_ids.ids(kept.items))
    assert dict(zip(pairs, kept.predictions)) == first
