"""Influence: against the definitions by brute force, and the laws that its shares obey."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from cranfield._errors import SettingError
from cranfield.audits import Grid, VariedDecision
from cranfield.audits.influence import anova_components, influences


def _grid(sizes, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    return Grid.product(
        [
            VariedDecision(
                f"d{place}",
                "equivalent",
                tuple(f"o{option}" for option in range(size)),
                tuple(rng.uniform(0.5, 2, size)) if weighted else None,
            )
            for place, size in enumerate(sizes)
        ]
    )


def _part(grid, keep, **options):
    return Grid(grid.varied, grid.cells[keep], np.arange(np.count_nonzero(keep)), **options)


def _conditional_variance(grid, y, places):
    """Var(E[y | places]) from the definition."""
    mean, groups = grid.weights @ y, {}
    for options, weight, value in zip(grid.cells[:, list(places)].tolist(), grid.weights, y):
        total = groups.setdefault(tuple(options), [0.0, 0.0])
        total[0] += weight
        total[1] += weight * value
    return sum(weight * (total / weight - mean) ** 2 for weight, total in groups.values())


def _shapley(grid, y):
    """The mean contribution of each decision over all orders."""
    n = len(grid.varied)
    shares = np.zeros(n)
    orders = list(permutations(range(n)))
    for order in orders:
        for place, decision in enumerate(order):
            with_it = _conditional_variance(grid, y, order[: place + 1])
            shares[decision] += with_it - _conditional_variance(grid, y, order[:place])
    return shares / len(orders) / _conditional_variance(grid, y, range(n))


@pytest.mark.parametrize("weighted", [False, True])
def test_components_are_those_of_the_functional_anova_by_inclusion_and_exclusion(weighted):
    grid = _grid([3, 2, 4], weighted)
    y = np.random.default_rng(1).normal(size=grid.n_cells)
    components = anova_components(grid, y[None])[0]
    for size in range(1, 4):
        for places in combinations(range(3), size):
            expected = sum(
                (-1) ** (size - inner) * _conditional_variance(grid, y, subset)
                for inner in range(size + 1)
                for subset in combinations(places, inner)
            )
            assert components[sum(1 << place for place in places)] == pytest.approx(expected, abs=1e-12)
    variance = grid.weights @ (y - grid.weights @ y) ** 2
    assert components.sum() == pytest.approx(variance)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_product_has_the_shapley_shares_of_the_definition(weighted):
    grid = _grid([3, 2, 4], weighted)
    y = np.random.default_rng(2).normal(size=grid.n_cells)
    result = influences(grid, y)
    assert result.method == "anova"
    assert result.shapley[0] == pytest.approx(_shapley(grid, y))
    assert result.shapley.sum() == pytest.approx(1)
    assert (result.main <= result.shapley + 1e-12).all()
    assert (result.shapley <= result.total + 1e-12).all()
    assert result.main.sum() + sum(share[0] for share in result.pairs.values()) <= 1 + 1e-12


@pytest.mark.parametrize("weighted", [False, True])
def test_a_grid_with_invalid_cells_has_the_shapley_shares_of_the_definition(weighted):
    whole = _grid([3, 2, 4], weighted)
    grid = _part(whole, np.random.default_rng(3).random(whole.n_cells) < 0.8)
    y = np.random.default_rng(4).normal(size=grid.n_cells)
    result = influences(grid, y)
    assert result.method == "enumeration"
    assert result.shapley[0] == pytest.approx(_shapley(grid, y))
    variance = _conditional_variance(grid, y, range(3))
    assert result.main[0, 1] == pytest.approx(_conditional_variance(grid, y, [1]) / variance)
    assert result.total[0, 1] == pytest.approx(1 - _conditional_variance(grid, y, [0, 2]) / variance)


def test_the_order_of_cells_does_not_matter():
    grid = _grid([3, 2, 2])
    order = np.random.default_rng(5).permutation(grid.n_cells)
    y = np.random.default_rng(6).normal(size=grid.n_cells)
    shuffled = Grid(grid.varied, grid.cells[order], np.arange(grid.n_cells))
    assert influences(shuffled, y[order]).shapley == pytest.approx(influences(grid, y).shapley)


def test_a_decision_that_changes_nothing_has_no_influence_and_a_constant_answer_none_at_all():
    grid = _grid([3, 2])
    result = influences(grid, np.array([grid.cells[:, 0] ** 2, np.full(grid.n_cells, 0.1)]))
    assert result.shapley[0] == pytest.approx([1, 0])
    assert result.shapley[1].tolist() == [0, 0]
    assert result.variance[1] == 0


def test_an_interaction_is_shared_by_its_two_decisions():
    grid = _grid([2, 2, 3])
    result = influences(grid, (-1.0) ** (grid.cells[:, 0] + grid.cells[:, 1]))
    assert result.main[0] == pytest.approx([0, 0, 0])
    assert result.total[0] == pytest.approx([1, 1, 0])
    assert result.shapley[0] == pytest.approx([0.5, 0.5, 0])
    assert result.pairs[0, 1][0] == pytest.approx(1)


def test_least_squares_on_a_sample_come_near_the_whole_grid_within_their_error():
    grid = _grid([6, 5, 4, 3], seed=7)
    a, b, c, _ = grid.cells.T
    rng = np.random.default_rng(8)
    y = 0.3 * a + (b == 2) * (c == 1) + 0.1 * rng.normal(size=grid.n_cells)
    exact = influences(grid, y).shapley[0]
    keep = np.zeros(grid.n_cells, dtype=bool)
    keep[rng.permutation(grid.n_cells)[:250]] = True
    result = influences(_part(grid, keep, complete=False), y[keep])
    assert result.method == "least squares"
    assert (np.abs(result.shapley[0] - exact) <= 4 * result.error + 0.02).all()
    assert result.shapley.sum() + result.rest[0] == pytest.approx(1)
    assert len(result.pairs) == 6


def test_a_small_sample_has_main_effects_only():
    grid = _grid([4, 4, 4])
    keep = np.arange(grid.n_cells) % 3 == 0
    result = influences(_part(grid, keep, complete=False), grid.cells[keep, 0].astype(float))
    assert result.pairs == {}
    assert result.main[0] == pytest.approx([1, 0, 0], abs=0.15)


def test_too_many_decisions_to_enumerate_are_an_error():
    opened = [VariedDecision(f"d{place}", "equivalent", ("o0", "o1")) for place in range(17)]
    part = Grid(opened, np.eye(10, 17), np.arange(10))
    with pytest.raises(SettingError, match="open fewer decisions"):
        influences(part, np.arange(10.0))
