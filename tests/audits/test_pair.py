"""Shares, their intervals, and ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cranfield._settings import settings
from cranfield.audits import UserContributions
from cranfield.audits.contributions import leads_of, resampled, resampled_averages, user_counts
from cranfield.audits.joint import Question, joint_tests
from cranfield.audits.pair import QUANTILES, effect_quantiles, lead_shares, rank_shares, ranks_of

USERS = 80


@pytest.fixture
def terms() -> UserContributions:
    rng = np.random.default_rng(0)
    values = rng.random((3, 6, USERS))
    values[0, :4] += 0.3
    values[2, 3] = values[1, 3]
    return UserContributions(values)


def _shares(terms, first, second, scope):
    x = terms.between(first, second)
    averages = terms.values[[first, second]].mean(axis=2, dtype=np.float64)
    leads = leads_of(x, terms, averages, np.zeros(terms.values.shape[1], dtype=bool))
    joint = joint_tests(x, terms.users, [scope], draws=99)[0]
    drawn = resampled(x, terms, user_counts(USERS, 60))
    return leads, {
        (share.over, share.what): share
        for share in lead_shares(leads, drawn, terms, replace(scope, tested=scope), 0.05, joint)
    }


def test_shares_of_cells_have_the_weights_and_those_of_universes_have_none(terms):
    scope = Question(np.arange(6), np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1]))
    leads, shares = _shares(terms, 0, 1, scope)
    assert shares["cells", "leads"].share == pytest.approx(scope.weights[leads.lead > 0].sum())
    assert shares["universes", "leads"].share == pytest.approx((leads.lead > 0).mean())
    for over in ("cells", "universes"):
        parts = [shares[over, what].share for what in ("leads", "trails", "equal")]
        assert sum(parts) == pytest.approx(1)
        either = shares[over, "leads significantly"].share + shares[over, "trails significantly"].share
        assert shares[over, "significant"].share == pytest.approx(either)


def test_an_equal_universe_counts_as_equal(terms):
    _, shares = _shares(terms, 1, 2, Question(np.array([3]), np.array([1.0])))
    assert shares["cells", "equal"].share == 1
    assert shares["cells", "equal"].chance is None
    assert shares["cells", "significant"].share == 0


def test_clear_leads_have_narrow_intervals_and_level_systems_wide_ones(terms):
    _, clear = _shares(terms, 0, 1, Question(np.arange(3), np.full(3, 1 / 3)))
    assert (clear["cells", "leads"].lower, clear["cells", "leads"].upper) == (pytest.approx(1), pytest.approx(1))
    _, level = _shares(terms, 1, 2, Question(np.array([0, 1, 2, 4, 5]), np.full(5, 0.2)))
    assert level["cells", "leads"].upper - level["cells", "leads"].lower >= 0.4


def test_quantiles_of_effects_follow_the_weights():
    scope = Question(np.arange(4), np.array([0.7, 0.1, 0.1, 0.1]))
    quantiles = effect_quantiles(np.array([1.0, 4.0, 2.0, 3.0]), scope)
    assert list(quantiles) == list(QUANTILES)
    assert list(quantiles.values()) == [1, 1, 1, 1, 2, 4, 4]


def test_ranks_count_the_better_systems():
    assert ranks_of(np.array([[0.3, 0.1], [0.5, 0.1], [0.3, 0.2]])).tolist() == [[2, 2], [1, 2], [2, 1]]


def test_the_ranks_of_a_system_sum_to_1(terms):
    averages = terms.values.mean(axis=2, dtype=np.float64)
    drawn = resampled_averages(terms, user_counts(USERS, 40))
    rows = rank_shares(["a", "b", "c"], averages, drawn, Question(np.arange(6), np.full(6, 1 / 6)))
    for system in "abc":
        assert sum(row["share"] for row in rows if row["system"] == system) == pytest.approx(1)
    first = rows[0]
    assert (first["system"], first["rank"]) == ("a", 1)
    assert first["lower"] <= first["share"] <= first["upper"]


def test_resampled_effects_are_those_of_the_drawn_users(terms):
    x = terms.between(0, 1)
    counts = user_counts(USERS, 3)
    drawn = resampled(x, terms, counts)
    for row, count in zip(drawn.d_z, counts):
        users = np.repeat(x, count.astype(int), axis=1).astype(np.float64)
        assert row == pytest.approx(users.mean(axis=1) / users.std(axis=1, ddof=1), rel=1e-4, abs=1e-6)


def test_resamples_do_not_depend_on_the_number_of_threads(monkeypatch):
    rng = np.random.default_rng(2)
    terms = UserContributions(rng.random((2, 300, 40)))
    counts = user_counts(40, 10)
    results = []
    for threads in (1, 2):
        monkeypatch.setattr(settings, "threads", threads)
        results.append(resampled(terms.between(0, 1), terms, counts).d_z)
    assert np.array_equal(*results)


def test_systems_that_differ_by_rounding_share_a_rank():
    averages = np.array([[0.1 + 0.2, 0.5], [0.3, 0.4]])
    assert ranks_of(averages).tolist() == [[1, 1], [1, 2]]
    assert ranks_of(averages + np.array([[0], [1e-7]]), 1e-5).tolist() == [[1, 1], [1, 2]]
