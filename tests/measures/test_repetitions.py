"""Users crossed with repetitions: the error of an average with the spread between repetitions in it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import stdtr
from scipy.stats import chi2, t

from cranfield.measures.crossed import Errors


def _cells(rng, users, repetitions, user_sd, repetition_sd):
    user = user_sd * rng.normal(size=(users, 1))
    repetition = repetition_sd * rng.normal(size=(1, repetitions))
    return user + repetition + rng.normal(size=(users, repetitions))


def test_the_error_is_that_of_the_analysis_of_variance():
    cells = _cells(np.random.default_rng(0), 40, 4, 1.0, 0.5)
    n, m = cells.shape
    users, repetitions = cells.mean(axis=1), cells.mean(axis=0)
    residuals = cells - users[:, None] - repetitions + cells.mean()
    by_user, by_repetition = users.var(ddof=1) / n, repetitions.var(ddof=1) / m
    residual = (residuals**2).sum() / ((n - 1) * (m - 1)) / (n * m)
    found = Errors.crossed(cells[None])
    assert found.error.item() == pytest.approx(np.sqrt(by_user + by_repetition - residual))
    assert found.users_error.item() == pytest.approx(np.sqrt(by_user))
    assert found.spread.item() == pytest.approx(repetitions.std(ddof=1))
    assert found.repetitions_error.item() == pytest.approx(np.sqrt(by_repetition))
    assert found.residual_error.item() == pytest.approx(np.sqrt(residual))
    assert (found.users_degrees.item(), found.repetitions_degrees) == (n - 1, m - 1)


def test_the_error_is_never_below_that_over_users_alone():
    rng = np.random.default_rng(1)
    found = Errors.crossed(np.stack([_cells(rng, 30, 3, 0.3, 0.0) for _ in range(50)]))
    assert (found.error >= found.users_error * (1 - 1e-12)).all()
    reach = found.reach(0.05)
    assert (reach >= t.isf(0.025, 29) * found.users_error * (1 - 1e-9)).all()
    assert (reach <= t.isf(0.025, 2) * found.error * 1.3).all()


def test_users_may_be_missing_in_some_repetitions():
    rng = np.random.default_rng(2)
    whole = _cells(rng, 3000, 4, 1.0, 0.4)
    holes = np.where(rng.random(whole.shape) < 0.3, np.nan, whole)
    one, other = Errors.crossed(whole[None]), Errors.crossed(holes[None])
    assert other.spread.item() == pytest.approx(one.spread.item(), rel=0.1)
    assert other.error.item() == pytest.approx(one.error.item(), rel=0.1)
    nobody = np.concatenate([holes, np.full((5, 4), np.nan)])
    assert Errors.crossed(nobody[None]).error.item() == pytest.approx(other.error.item())


def test_a_constant_changes_nothing_and_the_effects_are_those_of_least_squares():
    rng = np.random.default_rng(7)
    for _ in range(5):
        cells = np.where(rng.random((100, 3)) < 0.05, np.nan, _cells(rng, 100, 3, 1.0, 0.3))
        found, moved = Errors.crossed(cells[None]), Errors.crossed(cells[None] - 0.618)
        assert moved.spread == pytest.approx(found.spread, rel=1e-9)
        user, repetition = np.nonzero(~np.isnan(cells))
        design = np.zeros((len(user), 103))
        design[np.arange(len(user)), user] = design[np.arange(len(user)), 100 + repetition] = 1
        fitted = np.linalg.lstsq(design, cells[user, repetition], rcond=None)[0][100:]
        assert found.spread.item() == pytest.approx(fitted.std(ddof=1))


def test_a_single_user_has_no_error_and_huge_values_do_not_overflow():
    assert np.isnan(Errors.crossed(np.array([[[0.1, 0.2]]])).error).all()
    cells = _cells(np.random.default_rng(3), 20, 3, 1.0, 0.2)[None]
    large, usual = Errors.crossed(np.ldexp(cells, 900)), Errors.crossed(cells)
    assert np.ldexp(large.error, -900) == pytest.approx(usual.error)
    assert np.ldexp(large.reach(0.05), -900) == pytest.approx(usual.reach(0.05))
    assert large.p(large.error) == pytest.approx(usual.p(usual.error))


def test_cells_are_means_by_user_and_repetition():
    cells = Errors.cells(np.array([[0.2, 0.4, 0.6]]), np.array([7, 7, 9]), np.array([0, 1, 1]))
    np.testing.assert_array_equal(cells, [[[0.2, 0.4], [np.nan, 0.6]]])


def _p(difference, users, repetitions, residual, n, m):
    """Return `Errors.p` by its definition: the mean over W of the p-value of which W is known."""

    def given(chi):
        between = max(repetitions**2 * (m - 1) / chi - residual**2, 0.0)
        degrees = (n - 1) * (1 + between / users**2) ** 2
        return 2 * stdtr(degrees, -abs(difference) / np.sqrt(users**2 + between)) * chi2.pdf(chi, m - 1)

    kink = repetitions**2 * (m - 1) / residual**2 if residual else 1.0
    ends = [0, *sorted({*np.logspace(-12, 2.5, 60), min(kink, 300)})]
    return sum(quad(given, low, high, epsabs=0, epsrel=1e-9)[0] for low, high in pairwise(ends))


def _errors(users, repetitions, residual, n, m):
    columns = (np.full(1, float(size)) for size in (users, n - 1, 1.0, repetitions, residual))
    users, degrees, spread, repetitions, residual = columns
    error = np.sqrt(users**2 + np.maximum(repetitions**2 - residual**2, 0))
    return Errors(error, users, degrees, spread, repetitions, residual, m - 1)


@pytest.mark.parametrize("m", [2, 3, 10, 40])
@pytest.mark.parametrize("repetitions", [0.02, 0.7, 5.0])
@pytest.mark.parametrize("residual", [0.0, 0.6])
def test_p_values_are_the_mean_over_what_the_spread_between_repetitions_may_be(m, repetitions, residual):
    errors = _errors(1.0, repetitions, residual, 30, m)
    for difference in (0.3, 2.0, 9.0):
        expected = _p(difference, 1.0, repetitions, residual, 30, m)
        assert errors.p(np.array([difference])).item() == pytest.approx(expected, rel=1e-4)
    assert errors.p(np.zeros(1)).item() == 1.0


@pytest.mark.parametrize("m", [2, 3, 10])
def test_p_values_are_those_of_users_or_of_repetitions_where_only_these_differ(m):
    difference = np.array([2.5])
    assert _errors(1.0, 0.0, 0.0, 30, m).p(difference) == pytest.approx(2 * t.sf(2.5, 29))
    assert _errors(0.0, 1.0, 0.0, 30, m).p(difference) == pytest.approx(2 * t.sf(2.5, m - 1))
    assert _errors(0.0, 0.0, 0.0, 30, m).p(difference).item() == 0.0


@pytest.mark.parametrize("level", [0.2, 0.05, 0.001])
def test_the_reach_is_the_difference_whose_p_value_is_the_level_and_student_has_it_with_the_degrees(level):
    for m, repetitions, residual in ((2, 0.3, 0.0), (3, 2.0, 0.5), (3, 0.4, 0.5), (10, 1.0, 0.0), (40, 3.0, 0.0)):
        errors = _errors(1.0, repetitions, residual, 30, m)
        reach = errors.reach(level)
        assert errors.p(reach).item() == pytest.approx(level, rel=1e-6)
        assert t.isf(level / 2, errors.degrees(level, reach)) * errors.error == pytest.approx(reach, rel=1e-6)
    alone = _errors(1.0, 0.0, 0.0, 30, 3)
    assert alone.reach(level) == pytest.approx(t.isf(level / 2, 29))
    assert alone.degrees(level, alone.reach(level)).item() == 29


def test_one_repetition_has_the_error_over_users():
    cells = _cells(np.random.default_rng(5), 20, 1, 1.0, 0.2)[None]
    found = Errors.crossed(cells)
    assert found.error == found.users_error == pytest.approx(cells.std(ddof=1) / np.sqrt(20))
    assert found.p(np.array([0.4])) == pytest.approx(2 * t.sf(0.4 / found.error, 19))


def _shares(rng, pairs, n, m, ratio, residual):
    """Return in which shares of pairs without a difference p is below .05 and .005."""
    user, repetition = rng.normal(size=(pairs, n, 1)) * np.sqrt(n), rng.normal(size=(pairs, 1, m)) * np.sqrt(m)
    rest = rng.normal(size=(pairs, n, m)) * np.sqrt(n * m * residual)
    cells = user + np.sqrt(ratio * (1 + residual)) * repetition + rest
    p = Errors.crossed(cells).p(cells.mean(axis=(1, 2)))
    return np.array([(p < level).mean() for level in (0.05, 0.005)])


SPREADS = [(2, 3, 0.0), (3, 30, 0.0), (3, 10, 1.0), (5, 3, 0.0)]
MORE_SPREADS = [
    (m, ratio, residual) for m in (2, 3, 4, 6, 10) for ratio in (0, 0.3, 1, 10, 100) for residual in (0.0, 1.0)
]


@pytest.mark.parametrize(
    ("pairs", "spreads"), [(2000, SPREADS), pytest.param(10_000, MORE_SPREADS, marks=pytest.mark.slow)]
)
def test_pairs_without_a_difference_are_found_no_more_often_than_the_level_says(pairs, spreads):
    rng, levels = np.random.default_rng(9), np.array([0.05, 0.005])
    for m, ratio, residual in spreads:
        shares = _shares(rng, pairs, 40, m, ratio, residual)
        assert (shares <= levels + 3.3 * np.sqrt(levels / pairs)).all(), (m, ratio, residual, shares)
