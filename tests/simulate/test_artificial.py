"""Artificial ratings with a chosen popularity curve."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings, SettingError, simulate
from cranfield.facts.ratings import OtherProfiles
from cranfield.simulate import PowerLaw
from cranfield.simulate.artificial import counts_of_shape, log_normal_sizes, pairs_with_margins, sizes_like


@given(
    users=st.integers(1, 30),
    items=st.integers(1, 30),
    part=st.floats(0, 1),
    alpha=st.floats(0, 2),
    seed=st.integers(0, 99),
)
def test_users_items_and_ratings_are_as_many_as_asked(users, items, part, alpha, seed):
    least = max(users, items)
    count = round(least + part * (users * items - least))
    made = simulate.popularity(users, items, count, alpha=alpha, seed=seed)
    assert (made.n_users, made.n_items, len(made)) == (users, items, count)
    assert made.item_counts.min() >= 1
    law = simulate.PowerLaw(alpha, 0.0, 0.078 * items)
    asked, _ = law.counts(items=items, ratings=count, users=users)
    assert np.array_equal(np.sort(made.item_counts), np.sort(asked))


@given(st.data())
def test_margins_taken_from_real_pairs_are_met(data):
    users, items = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    matrix = rng.random((users, items)) < rng.random()
    who, what = pairs_with_margins(matrix.sum(axis=0), matrix.sum(axis=1), rng)
    assert len(set(zip(who.tolist(), what.tolist()))) == matrix.sum()
    assert np.array_equal(np.bincount(what, minlength=items), matrix.sum(axis=0))
    assert np.abs(np.bincount(who, minlength=users) - matrix.sum(axis=1)).sum() <= 4


def test_the_users_of_an_item_come_ascending_on_every_processor():
    item_counts = np.array([900, 300, 300])
    who, _ = pairs_with_margins(item_counts, np.full(1_000, 3), np.random.default_rng(0))
    for users in np.split(who, np.cumsum(item_counts)[:-1]):
        assert (np.diff(users) > 0).all()


def test_margins_that_do_not_go_together_keep_the_item_counts():
    who, what = pairs_with_margins(np.array([3, 3]), np.array([4, 1, 1]), np.random.default_rng(0))
    assert np.bincount(what).tolist() == [3, 3]
    assert np.bincount(who).tolist() == [2, 2, 2]


def test_every_pair_is_equally_likely_where_margins_are_equal():
    seen = np.zeros((8, 6))
    rng = np.random.default_rng(3)
    for _ in range(2_000):
        who, what = pairs_with_margins(np.full(6, 4), np.full(8, 3), rng)
        seen[who, what] += 1
    assert np.abs(seen / 2_000 - 0.5).max() < 5 * np.sqrt(0.25 / 2_000)


def test_profile_sizes_are_those_asked_for():
    like = simulate.popularity(400, 200, 8_000, seed=3)
    made = simulate.popularity(like=like, alpha=0.5, seed=4)
    assert np.array_equal(np.sort(made.user_counts), np.sort(like.user_counts))
    assert not np.array_equal(made.item_counts, like.item_counts)
    assert not made.history[0].notes
    equal = simulate.popularity(400, 200, 8_000, activity=0)
    assert set(equal.user_counts.tolist()) == {20}


def test_a_note_tells_of_profile_sizes_that_the_item_counts_do_not_allow():
    crowded = simulate.popularity(400, 200, 8_000, alpha=3.0)
    assert crowded.item_counts.max() == 400
    (note,) = crowded.history[0].notes
    assert isinstance(note, OtherProfiles)
    assert 0 < note.users <= 400


def test_larger_alpha_is_a_steeper_tail():
    heads = [np.sort(simulate.popularity(alpha=alpha).item_counts)[-50:].sum() for alpha in (0, 0.5, 1, 1.5, 2)]
    assert heads == sorted(set(heads))


def test_values_follow_the_histogram():
    made = simulate.popularity(histogram={1: 1, 3: 2, 5: 1})
    values, counts = np.unique(made.values, return_counts=True)
    assert values.tolist() == [1, 3, 5]
    assert np.allclose(counts / len(made), [0.25, 0.5, 0.25], atol=0.01)


def test_ids_say_nothing_about_popularity_or_activity():
    made = simulate.popularity(2_000, 1_000, 60_000)
    for counts in (made.item_counts, made.user_counts):
        ranks = np.argsort(np.argsort(counts))
        assert abs(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1]) < 0.1


def test_the_same_seed_makes_the_same_ratings_and_another_others():
    first, again, other = (simulate.popularity(100, 50, 1_000, seed=seed) for seed in (1, 1, 2))
    assert first.fingerprint == again.fingerprint
    assert first.fingerprint != other.fingerprint


def test_like_takes_sizes_shape_and_values(real_data):
    frame = pl.read_parquet(real_data("ml-100k.parquet"))
    real = Ratings.of(frame["user"], frame["item"], frame["rating"].to_numpy())
    made = simulate.popularity(like=real)
    assert (made.n_users, made.n_items, len(made)) == (real.n_users, real.n_items, len(real))
    assert np.array_equal(np.sort(made.user_counts), np.sort(real.user_counts))
    law, _ = simulate.PowerLaw.fit(real.item_counts).counts(items=real.n_items, ratings=len(real), users=real.n_users)
    assert np.array_equal(np.sort(made.item_counts)[::-1], law)
    shares = [np.bincount(one.values.astype(int), minlength=6) / len(one) for one in (made, real)]
    assert np.abs(shares[0] - shares[1]).max() < 0.01


def test_the_record_says_how_they_were_made():
    step = simulate.popularity(100, 50, 1_000, alpha=1.0, c1=2, c2=5, seed=9).history[0]
    assert step.action == "simulate.popularity"
    assert (step.settings["alpha"], step.settings["c1"], step.settings["c2"], step.settings["seed"]) == (1.0, 2, 5, 9)
    counts, beta = counts_of_shape((5 + np.arange(1, 51.0)) ** -1, 1_000, low=1, high=100, offset=2)
    assert step.settings["beta"] == pytest.approx(beta)
    assert counts.sum() == 1_000


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"users": 0}, "users is 0"),
        ({"users": 10, "items": 10, "ratings": 101}, "do not fit"),
        ({"users": 100, "items": 10, "ratings": 50}, "at least 100"),
        ({"alpha": -1.0}, "alpha is -1"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"alpha": 1000}, "alpha is 1000; give a finite number from 0 to 20"),
        ({"c2": 1e300}, "c2 is 1e"),
        ({"activity": float("nan")}, "activity is nan"),
        ({"c1": 200.0}, "more ratings"),
        ({"activity": -1.0}, "activity is -1"),
        ({"histogram": {}}, "histogram"),
        ({"histogram": {1: -1.0, 2: 2.0}}, "histogram"),
        ({"histogram": {1: 0.0}}, "no value a share"),
        ({"histogram": [1, 2]}, "histogram"),
        ({"seed": -1}, "seed=-1"),
        ({"like": "ratings.csv"}, "str is not Ratings"),
    ],
)
def test_what_cannot_be_made_is_refused_in_one_line(settings, said):
    with pytest.raises(SettingError, match=said) as caught:
        simulate.popularity(**settings)
    assert "\n" not in str(caught.value)


@given(
    shape=st.lists(st.floats(0.01, 100), min_size=1, max_size=40),
    low=st.integers(0, 3),
    room=st.integers(0, 50),
    part=st.floats(0, 1),
)
def test_counts_add_up_stay_in_bounds_and_follow_the_shape(shape, low, room, part):
    high = low + room
    weights = np.array(shape)
    total = round(len(shape) * (low + part * room))
    counts, beta = counts_of_shape(weights, total, low=low, high=high)
    assert counts.sum() == total
    assert counts.min() >= low
    assert counts.max() <= high
    assert np.abs(counts - np.clip(beta * weights, low, high)).max() <= 1 + 1e-6
    order = np.argsort(weights, kind="stable")
    apart = np.diff(weights[order]) > 1e-9
    assert (np.diff(counts[order])[apart] >= 0).all()


def test_a_total_that_does_not_fit_is_refused():
    with pytest.raises(SettingError, match="ask for fewer"):
        counts_of_shape(np.ones(3), 31, low=0, high=10)
    with pytest.raises(SettingError, match="ask for more"):
        counts_of_shape(np.ones(3), 2, low=1, high=10)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 1.4, 2.0])
def test_power_law_counts_are_the_formula_up_to_rounding(alpha):
    counts, beta = PowerLaw(alpha, c1=2.0, c2=30.0).counts(items=300, ratings=20_000, users=5_000)
    law = 2.0 + beta * (30.0 + np.arange(1, 301)) ** -alpha
    assert counts.sum() == 20_000
    assert np.abs(counts - law).max() < 1


def test_alpha_zero_is_uniform():
    counts, _ = PowerLaw(0.0, c2=10.0).counts(items=7, ratings=100, users=50)
    assert sorted(counts.tolist()) == [14, 14, 14, 14, 14, 15, 15]


def test_a_fit_finds_the_law_that_made_the_counts():
    for law in (PowerLaw(0.8, 5.0, 50.0), PowerLaw(1.4, 0.0, 200.0), PowerLaw(2.0, 10.0, 100.0)):
        counts, _ = law.counts(items=2_000, ratings=2_000_000, users=10**6)
        found = PowerLaw.fit(np.random.default_rng(0).permutation(counts))
        assert found.alpha == pytest.approx(law.alpha, abs=0.03)
        assert found.c2 == pytest.approx(law.c2, rel=0.05)


def test_a_fit_needs_some_items():
    with pytest.raises(SettingError, match="3 items"):
        PowerLaw.fit(np.array([3, 2, 1, 0]))


def test_the_fit_to_movielens_1m_has_the_alpha_of_the_paper(real_data):
    counts = pl.read_parquet(real_data("ml-1m.parquet")).group_by("item").len()["len"].to_numpy()
    law = PowerLaw.fit(counts)
    assert law.alpha == pytest.approx(1.4, abs=0.1)  # "alpha ~ 1.4 for MovieLens 1M", section 5.2
    assert law.c1 == pytest.approx(0, abs=1)


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
def test_log_normal_sizes_have_the_gini_of_the_log_normal(spread):
    from scipy.special import erf

    sizes = log_normal_sizes(5_000, 1_000_000, spread=spread, low=1, high=100_000)
    ranks = np.arange(1, 5_001)
    gini = ((2 * ranks - 5_001) @ sizes) / (5_000 * sizes.sum())
    assert sizes.sum() == 1_000_000
    assert gini == pytest.approx(erf(spread / 2), abs=0.01)


def test_sizes_like_others_are_theirs_or_keep_their_shape():
    given_sizes = np.array([20, 100, 30, 50])
    assert sizes_like(given_sizes, 4, 200, low=1, high=100).tolist() == [20, 30, 50, 100]
    larger = sizes_like(given_sizes, 400, 40_000, low=1, high=1_000)
    assert larger.sum() == 40_000
    assert np.median(larger) / larger.mean() == pytest.approx(np.median(given_sizes) / given_sizes.mean(), rel=0.05)
