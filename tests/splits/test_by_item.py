"""Items treated alike: l to train, or uniform test items as in Bellogín et al. (2017)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings, SettingError, simulate, splits
from cranfield._errors import ImpossibleSplitError
from cranfield.data import filters

# How many of 40 users rate each item.
POPULARITY = st.lists(st.integers(1, 40), min_size=1, max_size=20)
TWENTIETHS = st.integers(1, 19).map(lambda n: Fraction(n, 20))


def _ratings(popularity):
    pairs = [(user, item) for item, count in enumerate(popularity) for user in range(count)]
    return Ratings.of(*zip(*pairs))


@given(POPULARITY, st.integers(1, 10), st.integers(0, 5))
def test_l_ratings_of_each_item_are_training(popularity, l, seed):  # noqa: E741
    ratings = _ratings(popularity)
    if max(popularity) <= l:
        with pytest.raises(ImpossibleSplitError, match=f"none of the {len(popularity)} items has more than {l}"):
            splits.train_per_item(ratings, l=l)
        return
    made = splits.train_per_item(ratings, l=l, seed=seed)
    assert made.train.item_counts.tolist() == [min(count, l) for count in popularity]
    assert made.step.effect["items_without_test"] == sum(count <= l for count in popularity)


@given(POPULARITY, TWENTIETHS, TWENTIETHS, st.sampled_from(["nearest", "down"]))
def test_uniform_test_items_follow_the_definition(popularity, sigma, epsilon, rounding):
    ratings, total = _ratings(popularity), sum(popularity)
    # The definition in exact arithmetic: the largest k whose k-th most popular item has enough ratings for its share.
    in_order = sorted(popularity, reverse=True)
    bearable = [k for k in range(1, len(in_order) + 1) if (1 - epsilon) * in_order[k - 1] * k / total >= sigma]
    asked = {"sigma": float(sigma), "epsilon": float(epsilon), "rounding": rounding}
    if not bearable:
        with pytest.raises(ImpossibleSplitError, match="no set of items allows"):
            splits.uniform_test(ratings, **asked)
        return
    zeta = max(bearable)
    rarest = in_order[zeta - 1]
    exact = (1 - epsilon) * rarest
    eta = min(math.ceil(exact - Fraction(1, 2)) if rounding == "nearest" else math.floor(exact), rarest - 1)
    if eta < 1:
        with pytest.raises(ImpossibleSplitError, match="no whole rating"):
            splits.uniform_test(ratings, **asked)
        return
    made = splits.uniform_test(ratings, **asked)
    assert (made.step.effect["zeta"], made.step.effect["eta"]) == (zeta, eta)
    in_t = np.array(popularity) >= rarest
    assert np.count_nonzero(in_t) == zeta
    assert made.test.item_counts.tolist() == np.where(in_t, eta, 0).tolist()
    slack = 0 if rounding == "down" else 0.5
    assert (made.train.item_counts >= float(epsilon) * np.array(popularity) * in_t - slack - 1e-9).all()
    assert (made.train.item_counts >= 1).all()
    short = made.train.item_counts[in_t] < float(epsilon) * np.array(popularity)[in_t] - 1e-9
    assert any("a little less than ε" in note for note in made.notes) == short.any()


def test_a_test_part_above_sigma_is_noted_with_the_epsilon_that_makes_it_sigma():
    ratings = Ratings.of(*zip(*[(u, i) for i in range(10) for u in range(40)]))
    made = splits.uniform_test(ratings, sigma=0.2, epsilon=0.2)
    assert made.step.effect["test_share"] == 0.8
    assert made.notes[1].startswith("the test part is 80.0% of the ratings, more than σ = 20.0%")
    assert made.notes[1].endswith("; epsilon=0.8 keeps T and comes nearest to σ")
    told = splits.uniform_test(ratings, sigma=0.2, epsilon=0.8)
    assert (told.step.effect["zeta"], told.step.effect["test_share"]) == (made.step.effect["zeta"], 0.2)
    assert not any("more than" in note for note in told.notes)


def test_movielens_1m_gives_the_papers_numbers(real_data):
    """Section 6.2: |T| = 1,703 and η = 118 for σ = ε = 0.2."""
    frame = pl.read_parquet(real_data("ml-1m.parquet"))
    ratings = Ratings.of(frame["user"], frame["item"], frame["rating"])
    made = splits.uniform_test(ratings, sigma=0.2, epsilon=0.2, seed=7)
    counts = made.test.item_counts
    assert np.count_nonzero(counts) == 1_703
    assert set(counts.tolist()) == {0, 118}
    assert made.step.effect["eta_before_rounding"] == pytest.approx(117.6)
    assert ratings.item_counts[counts > 0].min() == 147
    strict = splits.uniform_test(ratings, sigma=0.2, epsilon=0.2, rounding="down", seed=7)
    assert set(strict.test.item_counts.tolist()) == {0, 117}
    assert (strict.train.item_counts >= 0.2 * ratings.item_counts).all()


def test_the_ratings_of_an_item_are_equally_likely():
    ratings = _ratings([8, 8, 1])
    times = np.zeros((8, 3))
    for seed in range(2_000):
        made = splits.uniform_test(ratings, sigma=0.2, epsilon=0.7, seed=seed)
        times[made.test.users, made.test.items] += 1
    assert times[:, 2].sum() == 0
    assert np.abs(times[:, :2] - 500).max() < 4.5 * math.sqrt(2_000 * 3 / 16)


# Popularity percentiles are equal in size, and ordered


@given(st.lists(st.integers(1, 9), min_size=2, max_size=30), st.integers(2, 12))
def test_groups_are_even_and_ordered_by_popularity_and_id(popularity, groups):
    pairs = [(user, item) for item, count in enumerate(popularity) for user in range(count)]
    ratings = Ratings.of(*zip(*pairs))
    if groups > len(popularity):
        with pytest.raises(ImpossibleSplitError, match=f"{len(popularity)} rated items do not fill {groups} "):
            splits.popularity_groups(ratings, groups)
        return
    group = splits.popularity_groups(ratings, groups)
    sizes = np.bincount(group, minlength=groups)
    assert sizes.max() - sizes.min() <= 1
    order = sorted(range(len(popularity)), key=lambda item: (-popularity[item], item))
    assert group[order].tolist() == sorted(group.tolist())


def test_an_item_without_ratings_has_no_group():
    made = splits.random(Ratings.of([1, 2, 1], ["a", "a", "b"]), train=0.5, exact=True)
    alone = made.train.keep(made.train.items == 0)
    with pytest.raises(ImpossibleSplitError):
        splits.popularity_groups(alone, 2)
    both = Ratings.of([1, 1, 1], ["a", "b", "c"])
    assert splits.popularity_groups(both.keep(np.array([True, False, True])), 2).tolist() == [0, -1, 1]


def test_movielens_1m_in_ten_groups_has_some_370_items_in_each(real_data):
    frame = pl.read_parquet(real_data("ml-1m.parquet"))
    made = splits.percentiles(Ratings.of(frame["user"], frame["item"]), groups=10, seed=3)
    assert set(np.bincount(made.item_groups).tolist()) == {370, 371}
    assert made.step.effect["items_by_group"] == np.bincount(made.item_groups).tolist()
    assert sum(made.step.effect["ratings_by_group"]) == len(frame)
    assert made.step.effect["ratings_by_group"] == sorted(made.step.effect["ratings_by_group"], reverse=True)


# Splits that are tested on the long tail: the head stays in training, and is in no other part


@pytest.fixture(scope="module")
def ratings():
    return simulate.world(users=80, items=50, ratings=1_500, seed=3).ratings


@pytest.mark.parametrize("of", ["items", "ratings"])
def test_the_head_is_what_the_filter_drops_and_only_training_has_it(ratings, of):
    split = splits.tail_test(ratings, head=0.3, of=of, seed=5, validation=0.2)
    tail = set(filters.drop_head(ratings, share=0.3, of=of).item_ids.all.to_list())
    for name in ("validation", "test"):
        assert set(split.parts[name].frame()["item"]) <= tail
    assert set(split.train.frame()["item"]) - tail
    assert split.step.effect["head_items"] == ratings.n_items - len(tail)


def test_the_tail_is_divided_as_if_nothing_were_left_out(ratings):
    split = splits.tail_test(ratings, head=0.2, train=0.7, seed=4)
    parts = [set(part.frame().rows()) for part in split.parts.values()]
    assert not set.intersection(*parts)
    missing = set(ratings.frame().rows()) - set.union(*parts)
    assert split.step.effect["left_out"] == len(missing)
    popular = {item for _, item, *_ in missing}
    assert len(popular) <= 10
    counts = dict(zip(ratings.item_ids.all.to_list(), ratings.item_counts.tolist()))
    tested = np.flatnonzero(split.test.item_counts > 0)
    assert min(counts[item] for item in popular) >= ratings.item_counts[tested].max()
    assert "10 most popular items are not tested" in split.notes[0]


@pytest.mark.parametrize(
    ("spelling", "error", "message"),
    [
        ("tail_test(head=0.001)", ImpossibleSplitError, "is none of the 50 items; choose another share"),
        ("tail_test(head=0.999)", ImpossibleSplitError, "is all of the 50 items; choose another share"),
        ("tail_test(head=1.5)", SettingError, "head"),
        ("tail_test(of=users)", SettingError, "of"),
    ],
)
def test_a_head_that_leaves_nothing_to_choose_is_refused(ratings, spelling, error, message):
    with pytest.raises(error, match=message):
        splits.apply(ratings, spelling)
