"""The smallest changes that change the winner."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.audits import Grid, Opened
from cranfield.audits.flips import flips_of
from cranfield.audits.leads import Leads

GRID = Grid.product(
    [
        Opened("split", "question", ("0.5", "0.8")),
        Opened("cutoff", "equivalent", ("5", "10", "20")),
        Opened("seed", "chance", ("0", "1")),
    ]
)


def _leads(lead, significant=None):
    lead = np.array(lead, dtype=np.int8)
    significant = np.zeros(len(lead), dtype=bool) if significant is None else np.array(significant)
    number = lead.astype(float)
    return Leads(number, number, number, number, np.where(significant, 0.01, 0.5), lead, significant)


def _lead(turned):
    lead = np.ones(GRID.n_cells)
    for cell in turned:
        lead[cell] = -1
    return lead


def test_every_single_change_that_turns_the_winner_is_named():
    flips = flips_of(GRID, _leads(_lead([4, 6])))
    assert [str(flip.swaps[0]) for flip in flips.turning] == ["cutoff 20 instead of 5", "split 0.8 instead of 0.5"]
    assert flips.pairs == ()
    assert len(flips.singles) == flips.possible == 3


def test_pairs_are_searched_where_no_single_change_turns_the_winner():
    flips = flips_of(GRID, _leads(_lead([8])))
    assert [tuple(map(str, flip.swaps)) for flip in flips.turning] == [
        ("split 0.8 instead of 0.5", "cutoff 10 instead of 5")
    ]


def test_another_seed_is_not_a_decision():
    assert flips_of(GRID, _leads(_lead([1, 3, 5, 7]))).turning == []


def test_a_change_of_significance_alone_is_named_apart():
    significant = np.ones(GRID.n_cells, dtype=bool)
    significant[2] = False
    flips = flips_of(GRID, _leads(_lead([4]), significant))
    assert [flip.swaps[0].after for flip in flips.turning_significance] == ["10"]
    assert [flip.swaps[0].after for flip in flips.turning] == ["20"]


@pytest.mark.parametrize("start", [0, 11])
def test_a_tie_does_not_turn_the_winner(start):
    grid = Grid(GRID.opened, GRID.cells, GRID.universe, start)
    lead = np.zeros(GRID.n_cells)
    lead[start] = 1
    assert flips_of(grid, _leads(lead)).turning == []


def test_a_sample_has_fewer_single_changes_than_the_options_allow():
    part = Grid(GRID.opened, GRID.cells[[0, 2, 8]], np.arange(3), complete=False)
    flips = flips_of(part, _leads([1, 1, 1]))
    assert (len(flips.singles), flips.possible) == (1, 3)
