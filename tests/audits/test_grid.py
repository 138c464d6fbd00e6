"""Grids: cells, weights, and the views that the answers need."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield._errors import SettingError
from cranfield.audits import Grid, VariedDecision

SPLIT = VariedDecision("split", "question", ("random(train=0.5)", "random(train=0.8)"))
CUTOFF = VariedDecision("cutoff", "equivalent", ("5", "10", "20"), (2.0, 1.0, 1.0))
SEED = VariedDecision("seed", "chance", ("0", "1"))


@pytest.fixture
def grid() -> Grid:
    return Grid.product([SPLIT, CUTOFF, SEED])


def test_a_product_has_all_combinations_and_the_last_decision_varies_fastest(grid):
    assert grid.n_cells == 12
    assert grid.is_product
    assert grid.complete
    assert grid.cells[:3].tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_weights_are_products_of_option_weights(grid):
    assert grid.weights.sum() == pytest.approx(1)
    assert grid.weights[grid.cells[:, 1] == 0].sum() == pytest.approx(0.5)


def test_equal_cells_share_a_universe_whose_weight_is_their_sum():
    shared = Grid((CUTOFF,), np.array([[0], [1], [2]]), np.array([0, 1, 1]))
    assert shared.n_universes == 2
    assert shared.universe_weights(np.ones(3, dtype=bool)).tolist() == [0.5, 0.5]
    assert shared.universe_weights(np.array([False, True, True])).tolist() == [0, 1]


def test_single_changes_keep_chance_and_pairs_change_two_decisions(grid):
    assert grid.changes() == [((1,), 2), ((1,), 4), ((0,), 6)]
    assert grid.changes(n=2) == [((0, 1), 8), ((0, 1), 10)]


def test_cells_of_one_set_up_differ_by_chance_alone(grid):
    assert grid.setups.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert grid.questions.tolist() == [0] * 6 + [1] * 6
    assert grid.pairs_by_chance(2) == [(2 * setup, 2 * setup + 1) for setup in range(6)]


def test_options_read_in_words(grid):
    assert grid.words(7) == {"split": "random(train=0.8)", "cutoff": "5", "seed": "1"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cells": np.array([[0, 0, 0], [0, 0, 0]]), "universe": np.arange(2)}, "same options"),
        ({"cells": np.array([[0, 3, 0]]), "universe": np.arange(1)}, "option number"),
        ({"cells": np.array([[0, 0, 0]]), "universe": np.array([1])}, "without gaps"),
        ({"cells": np.array([[0, 0, 0]]), "universe": np.arange(1), "start": 1}, "not one of the 1 cells"),
        ({"varied": (), "cells": np.zeros((1, 0)), "universe": np.arange(1)}, "at least one opened"),
        ({"varied": (SEED, SEED), "cells": np.zeros((1, 2)), "universe": np.arange(1)}, "opened twice"),
    ],
)
def test_a_grid_that_contradicts_itself_is_refused(change, message):
    with pytest.raises(SettingError, match=message):
        Grid(**{"varied": (SPLIT, CUTOFF, SEED), **change})


@pytest.mark.parametrize(
    ("options", "weights", "message"),
    [(("a", "a"), None, "must differ"), (("a", "b"), (1.0,), "one per option"), (("a", "b"), (1.0, 0.0), "above 0")],
)
def test_options_that_contradict_themselves_are_refused(options, weights, message):
    with pytest.raises(SettingError, match=message):
        VariedDecision("gain", "equivalent", options, weights)
