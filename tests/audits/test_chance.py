"""What chance options do."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.audits import Grid, Opened, Terms
from cranfield.audits.chance import seed_noise, spread_by_chance, turned_by_chance
from cranfield.audits.joint import Scope, joint_tests

GRID = Grid.product([Opened("cutoff", "equivalent", ("5", "10")), Opened("seed", "chance", ("0", "1", "2"))])


def test_a_system_is_compared_with_itself_over_all_pairs_of_seeds():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 6, 200)) * 0.1
    values[1, [2, 5]] += 1  # with seed 2 the second system behaves differently
    steady, other = seed_noise(GRID, ("ease", "mf"), Terms(values))
    assert (steady.system, steady.decision, steady.pairs) == ("ease", "seed", 6)
    assert steady.significant <= 1 / 6
    assert other.significant >= 4 / 6


def test_equal_seeds_do_not_differ():
    noise = seed_noise(GRID, ("a",), Terms(np.ones((1, 6, 10))))
    assert noise[0].significant == 0


def test_winners_turned_by_seeds_are_counted_by_set_up():
    assert turned_by_chance(GRID, np.array([1, 1, -1, 1, 1, 1])) == 0.5
    assert turned_by_chance(GRID, np.array([1, 0, 1, -1, 0, -1])) == 0
    assert turned_by_chance(Grid.product([GRID.opened[0]]), np.array([1, -1])) is None


def test_without_chance_options_there_is_no_noise():
    assert seed_noise(Grid.product([GRID.opened[0]]), ("a",), Terms(np.ones((1, 2, 10)))) == []


@pytest.mark.parametrize("options", [("0",), ("0", "1")])
def test_a_single_seed_has_nothing_to_compare(options):
    grid = Grid.product([GRID.opened[0], Opened("seed", "chance", options)])
    noise = seed_noise(grid, ("a",), Terms(np.zeros((1, grid.n_cells, 10))))
    assert len(noise) == len(options) - 1


def test_seeds_that_change_nothing_do_not_widen_the_spread():
    x = np.random.default_rng(0).normal(size=(2, 1, 50)).repeat(3, axis=1).reshape(6, 50).astype(np.float32)
    assert spread_by_chance(GRID, x, np.full(6, 50)) == pytest.approx(np.ones(6))


def test_the_spread_is_that_of_the_means_over_seeds_beside_that_of_users():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(6, 40)).astype(np.float32)
    ratios = []
    for cells in (x[:3], x[3:]):
        by_users = (np.square(cells).sum(axis=1) / 40**2).mean()
        ratios.append(cells.mean(axis=1).var(ddof=1) / by_users)
    assert spread_by_chance(GRID, x, np.full(6, 40)) == pytest.approx(np.full(6, np.sqrt(1 + np.mean(ratios))))


def test_without_seeds_the_spread_is_not_known():
    assert spread_by_chance(Grid.product([GRID.opened[0]]), np.ones((2, 5), dtype=np.float32), np.full(2, 5)) is None


def test_with_the_spread_of_seeds_the_joint_test_keeps_its_level_for_retrained_systems():
    # Both systems are the same algorithm: each training adds its own difference for all users.
    rng = np.random.default_rng(2)
    opened = [Opened("cutoff", "equivalent", ("5", "10")), Opened("seed", "chance", tuple("01234"))]
    grid, users = Grid.product(opened), np.full(10, 200)
    scope = Scope(np.arange(10), grid.weights)
    given, retrained = [], []
    for replicate in range(120):
        training = 0.1 * rng.normal(size=(1, 5, 1))
        lists = rng.normal(size=(1, 5, 200)) + 0.5 * rng.normal(size=(2, 5, 200))
        x = (training + lists).reshape(10, 200).astype(np.float32)
        spread = spread_by_chance(grid, x, users)
        test = joint_tests(x, users, [scope], spread=spread, draws=249, seed=replicate)[0]
        given.append(list(test.p.values()))
        retrained.append(list(test.retrained.values()))
    given, retrained = np.array(given), np.array(retrained)
    assert (given <= 0.05).mean(axis=0).max() > 0.3
    for alpha in (0.01, 0.05, 0.10):
        error = np.sqrt(alpha * (1 - alpha) / 120)
        assert ((retrained <= alpha).mean(axis=0) <= alpha + 3.3 * error).all(), alpha
