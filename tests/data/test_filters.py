"""Filters keep what they say, and say what they removed."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings, SettingError
from cranfield.data import filters
from cranfield.facts import ratings as rating_facts

PAIRS = st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=50)


def _ratings(pairs):
    users, items = zip(*sorted(pairs))
    return Ratings.of(
        users, items, [1 + (u * i) % 5 for u, i in zip(users, items)], [10 * u + i for u, i in zip(users, items)]
    )


def _pairs(ratings):
    return set(ratings.frame().select("user", "item").rows())


def _or_error(function, *arguments, **settings):
    try:
        return _pairs(function(*arguments, **settings))
    except SettingError:
        return set()


@given(PAIRS, st.integers(1, 5), st.integers(1, 5))
def test_min_and_max_ratings_count_before_they_remove(pairs, user, item):
    of_user, of_item = Counter(u for u, _ in pairs), Counter(i for _, i in pairs)
    many = {(u, i) for u, i in pairs if of_user[u] >= user and of_item[i] >= item}
    few = {(u, i) for u, i in pairs if of_user[u] <= user and of_item[i] <= item}
    assert _or_error(filters.min_ratings, _ratings(pairs), user=user, item=item) == many
    assert _or_error(filters.max_ratings, _ratings(pairs), user=user, item=item) == few


@given(PAIRS, st.integers(1, 4))
def test_k_core_is_what_is_left_when_nothing_small_remains(pairs, k):
    left = set(pairs)
    while True:
        of_user, of_item = Counter(u for u, _ in left), Counter(i for _, i in left)
        small = {(u, i) for u, i in left if of_user[u] < k or of_item[i] < k}
        if not small:
            break
        # Removing one at a time in any order gives the same core.
        left.remove(min(small))
    assert _or_error(filters.k_core, _ratings(pairs), k=k) == left
    assert _or_error(filters.min_ratings, _ratings(pairs), user=k, item=k, repeat=True) == left


@given(PAIRS, st.integers(1, 99).map(lambda percent: Fraction(percent, 100)))
def test_the_head_is_dropped_by_popularity_and_then_by_id(pairs, share):
    of_item = Counter(i for _, i in pairs)
    order = sorted(of_item, key=lambda item: (-of_item[item], item))
    head = set(order[: math.ceil(share * len(order) - Fraction(1, 2))])
    assert _or_error(filters.drop_head, _ratings(pairs), share=float(share)) == {p for p in pairs if p[1] not in head}
    held, short_head = 0, set()
    for item in order:
        if held >= share * len(pairs):
            break
        held += of_item[item]
        short_head.add(item)
    kept = _or_error(filters.drop_head, _ratings(pairs), share=float(share), of="ratings")
    assert kept == {p for p in pairs if p[1] not in short_head}


@pytest.mark.parametrize(("of", "column"), [("users", "user"), ("items", "item")])
def test_a_sample_of_users_or_items_keeps_them_whole(of, column):
    ratings = _ratings({(u, i) for u in range(9) for i in range(9) if (u + i) % 3})
    kept = filters.sample(ratings, share=1 / 3, of=of, seed=3)
    chosen = set(kept.frame()[column])
    assert len(chosen) == 3
    assert kept.frame().rows() == ratings.frame().filter(pl.col(column).is_in(chosen)).rows()


def test_a_share_is_what_it_reads_in_decimals():
    ratings = Ratings.of(range(100), [0] * 7 + [1] * 6 + [*range(2, 89)])
    # 7 % of 100 ratings are the 7 of item 0; 7 % of 50 is 3.5, which rounds up. In binary both are slightly more.
    assert len(filters.drop_head(ratings, share=0.07, of="ratings")) == 93
    assert len(filters.sample(Ratings.of(range(50), range(50)), share=0.07)) == 4


def test_a_sample_is_exact_and_independent_of_row_order():
    generator = np.random.default_rng(0)
    pairs = np.argwhere(generator.random((30, 30)) < 0.3)
    shuffled = generator.permutation(pairs)
    one = filters.sample(Ratings.of(*pairs.T), share=0.25, seed=5)
    other = filters.sample(Ratings.of(*shuffled.T), share=0.25, seed=5)
    assert len(one) == int(np.floor(len(pairs) * 0.25 + 0.5))
    assert one.fingerprint == other.fingerprint
    assert one.fingerprint != filters.sample(Ratings.of(*pairs.T), share=0.25, seed=6).fingerprint


def test_a_time_window_holds_its_start_and_not_its_end():
    ratings = Ratings.of(range(4), range(4), times=[0, 86_399, 86_400, 172_800])
    assert filters.time_window(ratings, start=0, end="1970-01-02").user_ids.all.to_list() == [0, 1]
    assert filters.time_window(ratings, start="1970-01-02T00:00:00+00:00").user_ids.all.to_list() == [2, 3]
    assert filters.time_window(ratings, start=0.5, end="1970-01-02T00:00:00.25").user_ids.all.to_list() == [1, 2]
    with pytest.raises(SettingError, match="span 1970-01-01 00:00:00 to 1970-01-03"):
        filters.time_window(ratings, start="2020-01-01")
    with pytest.raises(SettingError, match="is not a moment"):
        filters.time_window(ratings, start="yesterday")
    with pytest.raises(SettingError, match="needs times"):
        filters.time_window(Ratings.of([1], [1]), start=0)


def test_positives_are_those_at_the_threshold_or_above():
    ratings = Ratings.of([1, 2, 3], [1, 1, 1], [3.5, 4, 4.5])
    assert filters.positives(ratings, threshold=4).user_ids.all.to_list() == [2, 3]


def test_only_the_given_users_and_items_stay_and_unknown_ones_are_noted():
    ratings = _ratings({(u, i) for u in range(4) for i in range(4)})
    kept = filters.only(ratings, users=[0, 1, 99], items=[2])
    assert _pairs(kept) == {(0, 2), (1, 2)}
    assert kept.history[-1].notes == (rating_facts.UnknownIds(1, "users"),)


@given(PAIRS)
def test_the_chain_is_the_history_and_counts_agree(pairs):
    ratings = _ratings(pairs)
    chain = ["min_ratings(user=2)", "positives(threshold=2)", "sample(share=0.5, of=items)"]
    try:
        kept = filters.apply(ratings, chain, seed=4)
    except SettingError:
        return
    assert [step.action for step in kept.history] == ["min_ratings", "positives", "sample"]
    before = [len({u for u, _ in pairs}), len({i for _, i in pairs}), len(pairs)]
    for step in kept.history:
        effect = [step.effect[kind] for kind in ("users", "items", "ratings")]
        assert [one[0] for one in effect] == before
        before = [one[1] for one in effect]
    assert before == [kept.n_users, kept.n_items, len(kept)]


def test_what_min_ratings_leaves_short_is_noted():
    ratings = Ratings.of([1, 1, 2, 2], ["a", "b", "a", "c"])
    kept = filters.min_ratings(ratings, user=2, item=2)
    assert kept.history[-1].notes == (rating_facts.FewRatings(2, "users", 2),)


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ("k_cor(k=5)", "there is no filter 'k_cor'; did you mean 'k_core'?"),
        ("k_core(n=5)", "k_core has no parameter 'n'"),
        ("k_core(k=0)", "k=0 is not a whole number of at least 1"),
        ("k_core(k=5)@3", "has a cut-off"),
        ("positives", "positives needs threshold; write positives(threshold=...)"),
        ("positives(threshold=high)", "is not a number"),
        ("drop_head(share=10)", "share=10 is not a share"),
        ("sample(of=people)", "of='people' is not one of ratings, users, items"),
        ("min_ratings", "needs user or item"),
        ("max_ratings", "needs user or item"),
        ("min_ratings(user=2, repeat=maybe)", "neither true nor false"),
        ("time_window", "needs start or end"),
        ("k_core(k=50)", "k_core(k=50) would leave none of the 3 ratings"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(spelling, message):
    ratings = Ratings.of([1, 1, 2], ["a", "b", "a"], times=[1, 2, 3])
    with pytest.raises(SettingError) as error:
        filters.apply(ratings, spelling)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", list(filters.registry))
def test_a_dataframe_is_not_ratings(name):
    needed = {"positives": {"threshold": 4}}.get(name, {})
    with pytest.raises(SettingError, match=r"DataFrame is not Ratings; make them .* with cf\.read"):
        getattr(filters, name)(pl.DataFrame({"user": [1], "item": [1]}), **needed)


def test_an_empty_input_is_refused():
    with pytest.raises(SettingError, match="there are no ratings"):
        filters.k_core(Ratings.of([], []), k=1)


@pytest.mark.slow
def test_the_k_core_of_movielens_1m_is_the_one_polars_finds(real_data):
    frame = pl.read_parquet(real_data("ml-1m.parquet"))
    kept = filters.k_core(Ratings.of(frame["user"], frame["item"], frame["rating"]), k=50)
    while True:
        smaller = frame.filter((pl.len().over("user") >= 50) & (pl.len().over("item") >= 50))
        if len(smaller) == len(frame):
            break
        frame = smaller
    assert _pairs(kept) == set(frame.select("user", "item").rows())
