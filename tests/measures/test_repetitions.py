"""Users crossed with repetitions: the error of an average with the spread between repetitions in it."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.measures.averages_frame import Crossed


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
    found = Crossed.of(cells[None])
    assert found.error.item() == pytest.approx(np.sqrt(by_user + by_repetition - residual))
    assert found.users_error.item() == pytest.approx(np.sqrt(by_user))
    assert found.spread.item() == pytest.approx(repetitions.std(ddof=1))
    parts = by_user**2 / (n - 1) + by_repetition**2 / (m - 1) + residual**2 / ((n - 1) * (m - 1))
    assert found.degrees.item() == pytest.approx(found.error.item() ** 4 / parts)


def test_the_error_is_never_below_that_over_users_alone():
    rng = np.random.default_rng(1)
    found = Crossed.of(np.stack([_cells(rng, 30, 3, 0.3, 0.0) for _ in range(50)]))
    assert (found.error >= found.users_error * (1 - 1e-12)).all()
    assert (found.degrees >= 2).all()
    assert (found.degrees <= 29).all()


def test_users_may_be_missing_in_some_repetitions():
    rng = np.random.default_rng(2)
    whole = _cells(rng, 3000, 4, 1.0, 0.4)
    holes = np.where(rng.random(whole.shape) < 0.3, np.nan, whole)
    one, other = Crossed.of(whole[None]), Crossed.of(holes[None])
    assert other.spread.item() == pytest.approx(one.spread.item(), rel=0.1)
    assert other.error.item() == pytest.approx(one.error.item(), rel=0.1)
    nobody = np.concatenate([holes, np.full((5, 4), np.nan)])
    assert Crossed.of(nobody[None]).error.item() == pytest.approx(other.error.item())


def test_a_constant_changes_nothing_and_the_effects_are_those_of_least_squares():
    rng = np.random.default_rng(7)
    for _ in range(5):
        cells = np.where(rng.random((100, 3)) < 0.05, np.nan, _cells(rng, 100, 3, 1.0, 0.3))
        found, moved = Crossed.of(cells[None]), Crossed.of(cells[None] - 0.618)
        assert moved.spread == pytest.approx(found.spread, rel=1e-9)
        user, repetition = np.nonzero(~np.isnan(cells))
        design = np.zeros((len(user), 103))
        design[np.arange(len(user)), user] = design[np.arange(len(user)), 100 + repetition] = 1
        fitted = np.linalg.lstsq(design, cells[user, repetition], rcond=None)[0][100:]
        assert found.spread.item() == pytest.approx(fitted.std(ddof=1))


def test_a_single_user_has_no_error_and_huge_values_do_not_overflow():
    assert np.isnan(Crossed.of(np.array([[[0.1, 0.2]]])).error).all()
    cells = _cells(np.random.default_rng(3), 20, 3, 1.0, 0.2)[None]
    large, usual = Crossed.of(np.ldexp(cells, 900)), Crossed.of(cells)
    assert np.ldexp(large.error, -900) == pytest.approx(usual.error)
    assert large.degrees == pytest.approx(usual.degrees)


def test_cells_are_means_by_user_and_repetition():
    cells = Crossed.cells(np.array([[0.2, 0.4, 0.6]]), np.array([7, 7, 9]), np.array([0, 1, 1]))
    np.testing.assert_array_equal(cells, [[[0.2, 0.4], [np.nan, 0.6]]])
