"""Shifts from training to test: their sizes by definition, and p-values in which users are the units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from cranfield import Ratings, check_split, splits
from cranfield.simulate import world
from cranfield.splits.shifts import UserValues, shift, shifts

ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=30)


def _values(rows):
    users, values = np.array(rows).T
    return UserValues(users, values.astype(float))


@given(ROWS, ROWS)
def test_a_shift_is_between_users_who_count_once(before, after):
    found = shift(_values(before), _values(after))

    def function(rows, value):
        own = [[own <= value for user, own in rows if user == name] for name in {user for user, _ in rows}]
        return np.mean([np.mean(marks) for marks in own])

    def mean(rows):
        return np.mean([np.mean([own for user, own in rows if user == name]) for name in {user for user, _ in rows}])

    assert found["D"] == pytest.approx(max(abs(function(before, v) - function(after, v)) for v in range(7)))
    assert [found["train"], found["test"]] == pytest.approx([mean(before), mean(after)])
    if len({user for user, _ in before}) == 1 or len({user for user, _ in after}) == 1 or found["D"] == 0:
        assert found["p"] == 1.0


def test_with_one_value_per_user_it_is_the_test_of_kolmogorov_and_smirnov():
    rng = np.random.default_rng(0)
    for _ in range(5):
        before, after = rng.normal(size=120), rng.normal(0.25, 1, size=100)
        found = shift(UserValues(np.arange(120), before), UserValues(120 + np.arange(100), after))
        theirs = ks_2samp(before, after)
        assert found["D"] == pytest.approx(theirs.statistic, abs=0.02)  # at up to 128 values
        assert found["p"] == pytest.approx(theirs.pvalue, abs=0.08)


def _rejected(rng, worlds, users, values, *, same):
    """Return how often p < .05 of samples in which the values of a user resemble each other."""
    rejected = np.zeros(2)
    for _ in range(worlds):
        taste = rng.normal(size=(2, users))
        drawn = [np.repeat(taste[0 if same else part], values) + rng.normal(size=users * values) for part in (0, 1)]
        names = np.repeat(np.arange(users), values)
        samples = [UserValues(names + (0 if same else part * users), drawn[part]) for part in (0, 1)]
        rejected += [shift(*samples)["p"] < 0.05, ks_2samp(*drawn).pvalue < 0.05]
    return rejected / worlds


@pytest.mark.parametrize("worlds", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_values_of_a_user_that_resemble_each_other_are_no_shift(worlds):
    rng = np.random.default_rng(1)
    limit = 0.05 + 3 * np.sqrt(0.05 * 0.95 / worlds)
    users, ratings = _rejected(rng, worlds, 40, 20, same=False)
    assert users <= limit
    assert ratings > 0.3
    assert _rejected(rng, worlds, 40, 20, same=True)[0] <= limit
    assert _rejected(rng, worlds, 2000, 2, same=False)[0] <= limit


def test_a_real_shift_is_seen():
    rng = np.random.default_rng(2)
    names = np.repeat(np.arange(200), 5)
    found = shift(UserValues(names, rng.normal(size=1000)), UserValues(names, rng.normal(0.5, 1, 1000)))
    assert found["p"] == 0.001
    assert found["d"] == pytest.approx(0.5, abs=0.1)
    assert found["D"] > 0.15


def test_users_of_both_parts_are_compared_with_themselves_if_most_are_known():
    train = Ratings.of(list("aabbccdd"), list("xyxyxyxz"), [1, 2, 1, 2, 1, 2, 5, 5])
    test = Ratings.of(list("abc"), list("zzz"), [1, 2, 2])
    parts = dict(zip(("train", "test"), (check_split(train, test).parts[name] for name in ("train", "test"))))
    found = shifts(parts)
    assert found["ratings"]["same_users"]
    assert (found["ratings"]["train"], found["ratings"]["test"]) == (pytest.approx(1.5), pytest.approx(5 / 3))
    assert found["popularity"]["test"] == 4
    assert (found["activity"]["train"], found["activity"]["test"]) == (pytest.approx(11 / 4), 3.0)


def test_users_held_out_whole_are_compared_with_all_others():
    data = world(80, 60, 1500, seed=1).ratings
    split = splits.strong_generalisation(data, seed=1)
    found = shifts(split.parts)
    assert not found["activity"]["same_users"]
    counts = [data.user_counts[part.user_counts > 0].mean() for part in (split.train, split.test)]
    assert [found["activity"]["train"], found["activity"]["test"]] == pytest.approx(counts)


@pytest.mark.parametrize("kind", ["random", "leave_out", "cold_users", "strong_generalisation"])
def test_a_split_by_chance_needs_no_attention_and_one_that_is_not_does(kind):
    data = replace(world(150, 80, 3000, seed=3).ratings, times=None)
    clean = check_split(getattr(splits, kind)(data, seed=3))
    assert [finding.level for finding in clean.findings if finding.about.startswith("shift")] == ["fine"] * 3
    low, third = data.values <= np.median(data.values), np.arange(len(data)) % 3 == 0
    odd = check_split(data.keep(low | third), data.keep(~low & ~third))
    (ratings,) = [finding for finding in odd.findings if finding.about == "shift of ratings"]
    assert ratings.level == "attention"
