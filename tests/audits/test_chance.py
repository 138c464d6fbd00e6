"""What chance options do."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.audits import Grid, Opened, Terms
from cranfield.audits.chance import seed_noise, turned_by_chance

GRID = Grid.product([Opened("cutoff", "equivalent", ("5", "10")), Opened("seed", "chance", ("0", "1", "2"))])


def test_a_system_is_compared_with_itself_over_all_pairs_of_seeds():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 6, 200)) * 0.1
    values[1, [2, 5]] += 1  # with seed 2 the second system is another one
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
