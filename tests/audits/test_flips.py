"""The smallest changes that change the winner."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cranfield.audits import Grid, VariedDecision
from cranfield.audits.contributions import Leads
from cranfield.audits.flips import conditions_of, crossed, flips_of, ordered, rule_of

GRID = Grid.product(
    [
        VariedDecision("split", "question", ("0.5", "0.8")),
        VariedDecision("cutoff", "equivalent", ("5", "10", "20")),
        VariedDecision("seed", "chance", ("0", "1")),
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
    swaps = [flip.swaps[0] for flip in flips.turning]
    assert [(swap.decision, swap.before, swap.after) for swap in swaps] == [
        ("cutoff", "5", "20"),
        ("split", "0.5", "0.8"),
    ]
    assert flips.pairs == ()
    assert len(flips.singles) == flips.possible == 3


def test_pairs_are_searched_where_no_single_change_turns_the_winner():
    flips = flips_of(GRID, _leads(_lead([8])))
    (flip,) = flips.turning
    assert [(swap.decision, swap.before, swap.after) for swap in flip.swaps] == [
        ("split", "0.5", "0.8"),
        ("cutoff", "5", "10"),
    ]


def test_another_seed_is_not_a_decision():
    assert flips_of(GRID, _leads(_lead([1, 3, 5, 7]))).turning == ()


def test_a_change_of_significance_alone_is_named_apart():
    significant = np.ones(GRID.n_cells, dtype=bool)
    significant[2] = False
    flips = flips_of(GRID, _leads(_lead([4]), significant))
    assert [flip.swaps[0].after for flip in flips.turning_significance] == ["10"]
    assert [flip.swaps[0].after for flip in flips.turning] == ["20"]


@pytest.mark.parametrize("start", [0, 11])
def test_a_tie_does_not_turn_the_winner(start):
    grid = Grid(GRID.varied, GRID.cells, GRID.universe, start)
    lead = np.zeros(GRID.n_cells)
    lead[start] = 1
    assert flips_of(grid, _leads(lead)).turning == ()


def test_a_sample_has_fewer_single_changes_than_the_options_allow():
    part = Grid(GRID.varied, GRID.cells[[0, 2, 8]], np.arange(3), complete=False)
    flips = flips_of(part, _leads([1, 1, 1]))
    assert (len(flips.singles), flips.possible) == (1, 3)


SPLIT = VariedDecision("split", "question", tuple(f"random(train=0.{share})" for share in (2, 4, 6, 8)))
METRIC = VariedDecision("metric", "equivalent", ("P", "nDCG", "AP"))
AVERAGE = VariedDecision("average", "equivalent", ("mean", "geometric"))
SEED = VariedDecision("seed", "chance", ("0", "1"))


@pytest.fixture
def grid() -> Grid:
    return Grid.product([SPLIT, METRIC, AVERAGE, SEED])


def _brute_force(grid, lead):
    """The best accuracy of all trees of at most three conditions, each made and applied."""
    masks = [condition.of(grid.cells) for condition in conditions_of(grid)]

    def best(region, n):
        weights = [grid.weights[region & (lead == sign)].sum() for sign in (1, -1)]
        scores = [max(weights)]
        if n:
            for mask, left in product(masks, range(n)):
                scores.append(best(region & mask, left) + best(region & ~mask, n - 1 - left))
        return max(scores)

    return [best(np.ones(grid.n_cells, dtype=bool), n) for n in range(4)]


@pytest.mark.parametrize("seed", range(4))
def test_no_tree_of_three_conditions_is_better(seed):
    grid = Grid.product([SPLIT, VariedDecision("metric", "equivalent", ("P", "AP", "RR"), (1.0, 2.0, 1.5)), AVERAGE])
    lead = np.random.default_rng(seed).choice([-1, 1, 1, 0], grid.n_cells).astype(np.int8)
    best = _brute_force(grid, lead)
    rule = rule_of(grid, lead)
    assert best[3] - 0.01 - 1e-12 <= rule.accuracy <= best[3] + 1e-12
    assert rule.accuracy == pytest.approx(best[rule.n_conditions])
    assert rule.majority == pytest.approx(best[0])
    predicted = np.zeros(grid.n_cells)
    for path, leader in rule.tree:
        predicted[np.all([condition.of(grid.cells) == holds for condition, holds in path], axis=0)] += leader
    assert grid.weights[predicted == lead].sum() == pytest.approx(rule.accuracy)


def test_a_threshold_is_found_and_reads_in_words(grid):
    lead = np.where(grid.cells[:, 0] >= 2, 1, -1).astype(np.int8)
    rule = rule_of(grid, lead)
    assert rule.paths(1) == [("train share of 0.6 or more",)]
    assert rule.paths(-1) == [("train share below 0.6",)]
    assert (rule.accuracy, rule.majority) == (pytest.approx(1), pytest.approx(0.5))


def test_a_chain_of_three_conditions_is_found(grid):
    split, metric, average, _ = grid.cells.T
    lead = np.where((split >= 2) & (metric == 1) & (average == 0), 1, -1).astype(np.int8)
    rule = rule_of(grid, lead)
    assert rule.n_conditions == 3
    assert rule.accuracy == pytest.approx(1)
    assert [set(path) for path in rule.paths(1)] == [
        {"train share of 0.6 or more", "metric nDCG", "average plain mean"}
    ]


def test_one_winner_everywhere_needs_no_condition(grid):
    rule = rule_of(grid, np.ones(grid.n_cells, dtype=np.int8))
    assert rule.n_conditions == 0
    assert rule.paths(1) == [()]
    assert rule.accuracy == rule.majority == pytest.approx(1)


def test_a_condition_that_adds_less_than_one_per_cent_is_left_out():
    grid = Grid.product([VariedDecision("a", "equivalent", tuple(f"o{k}" for k in range(101))), AVERAGE])
    lead = np.ones(grid.n_cells, dtype=np.int8)
    lead[grid.cells[:, 0] == 3] = -1
    assert rule_of(grid, lead).n_conditions == 0


def test_chance_is_not_a_condition(grid):
    lead = np.where(grid.cells[:, 3] == 0, 1, -1).astype(np.int8)
    rule = rule_of(grid, lead)
    assert rule.n_conditions == 0
    assert rule.accuracy == pytest.approx(0.5)


def test_sets_hold_options_that_are_not_numbers_and_each_division_comes_once():
    four = VariedDecision("gain", "equivalent", ("linear", "exp", "binary", "log"))
    conditions = list(conditions_of(Grid.product([four])))
    divisions = [frozenset([condition.options, frozenset(range(4)) - condition.options]) for condition in conditions]
    assert len(divisions) == len(set(divisions)) == 7
    assert conditions[0].holds == "gain linear"
    assert conditions[0].fails == "gain one of exp, binary and log"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("5", "10"), ("k", [5, 10])),
        (("random(train=0.5, seed=3)", "random(train=0.9, seed=3)"), ("train share", [0.5, 0.9])),
        (("random(train=0.5, seed=3)", "random(train=0.9, seed=4)"), None),
        (("random(train=0.5)", "per_user(train=0.5)"), None),
        (("full", "reduced"), None),
        (("nDCG@10", "nDCG@5"), ("cut-off", [10, 5])),
    ],
)
def test_options_are_ordered_where_one_number_tells_them_apart(options, expected):
    assert ordered(VariedDecision("k", "equivalent", options)) == expected


def test_metrics_at_several_cut_offs_are_divided_by_cut_off_and_by_family():
    options = tuple(f"{name}@{cutoff}" for name in ("P", "AP", "nDCG(gain=exp)") for cutoff in (5, 10, 20))
    grid = Grid.product([VariedDecision("metric", "equivalent", options), AVERAGE])
    lead = np.array([1 if int(option.rpartition("@")[2]) >= 10 and option[0] != "A" else -1 for option in options])
    rule = rule_of(grid, lead[grid.cells[:, 0]].astype(np.int8))
    assert rule.accuracy == pytest.approx(1)
    assert [set(path) for path in rule.paths(1)] == [{"cut-off of 10 or more", "metric one of P and nDCG(gain=exp)"}]


@pytest.mark.parametrize(
    ("options", "families"),
    [
        (("random(train=0.5)", "per_user(train=0.8)"), ["random", "per_user"]),
        (("random(by=user, train=0.5)", "random(train=0.8)"), ["random(by=user)", "random"]),
        (("knn(k=5)", "svd(factors=5)"), None),
        (("P@5", "AP"), None),
        (("P@5", "AP@5"), None),
    ],
)
def test_options_are_crossed_where_kinds_of_them_share_one_named_number(options, families):
    table = crossed(VariedDecision("x", "equivalent", options))
    assert (table if table is None else table[2]) == families
