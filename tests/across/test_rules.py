"""Rules of aggregation: the table in which every system wins by some rule, and brute force over subsets."""

from itertools import combinations

import numpy as np
import pytest

from cranfield.across.rules import rule_scores, rules_of

D = np.array(
    [
        [0.137, 0.111, 0.117, 0.163],
        [0.307, 0.279, 0.374, 0.194],
        [0.135, 0.121, 0.106, 0.103],
        [0.094, 0.106, 0.079, 0.136],
        [0.033, 0.073, 0.035, 0.032],
    ]
).T

SYSTEMS = ("A", "B", "C", "D")


def test_every_system_wins_by_some_rule():
    rules = {rule.rule: rule for rule in rules_of(SYSTEMS, D)}
    assert {name: rule.leaders for name, rule in rules.items()} == {
        "mean": ("C",), "geometric": ("B",), "rank": ("A",), "wins": ("D",), "copeland": ("A",),
    }  # fmt: skip
    assert rules["mean"].scores == pytest.approx([0.1412, 0.1380, 0.1422, 0.1256])
    assert rules["geometric"].scores == pytest.approx([0.735726, 0.812863, 0.690495, 0.704453], abs=1e-6)
    assert rules["rank"].scores == pytest.approx([2.2, 2.4, 2.6, 2.8])
    assert rules["wins"].scores == (1, 1, 1, 2)
    assert rules["copeland"].scores == (3, 2, 1, 0)
    assert (rules["mean"].stays, rules["rank"].stays, rules["rank"].datasets) == (4, 2, 5)
    assert "B" in rules["wins"].decisive  # without it, C and D have two wins each
    assert rules["mean"].decisive == rules["geometric"].decisive == ()


@pytest.mark.parametrize("lower_is_better", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_counts_are_those_of_brute_force(seed, lower_is_better):
    draws = np.random.default_rng(seed)
    values = draws.integers(1, 6, (3, 5)) / 10
    for rule in rules_of(("a", "b", "c"), values, lower_is_better=lower_is_better):

        def leaders(columns, rule=rule):
            scores = rule_scores(values[:, list(columns)], rule.rule, lower_is_better=lower_is_better)[0]
            return tuple(name for name, score in zip("abc", scores) if score >= scores.max() - 1e-9)

        everywhere = range(5)
        subsets = [subset for size in (3, 4, 5) for subset in combinations(everywhere, size)]
        assert rule.leaders == leaders(everywhere)
        assert rule.stays == sum(leaders(subset) == rule.leaders for subset in combinations(everywhere, 4))
        assert (rule.subsets_stay, rule.subsets) == (sum(leaders(s) == rule.leaders for s in subsets), len(subsets))


def test_ties_share_wins_and_majorities():
    values = np.array([[0.2, 0.2], [0.2, 0.2], [0.1, 0.1]])
    rules = {rule.rule: rule for rule in rules_of(("a", "b", "c"), values)}
    assert rules["wins"].scores == (1, 1, 0)
    assert rules["copeland"].scores == (1.5, 1.5, 0)
    assert all(rule.leaders == ("a", "b") for rule in rules.values())


def test_a_zero_makes_the_geometric_mean_zero_and_a_negative_value_undefined():
    rules = {rule.rule: rule for rule in rules_of(("a", "b"), np.array([[0.0, 9.0], [0.1, 0.1]]))}
    assert rules["geometric"].scores == pytest.approx((0, np.sqrt(0.1 / 9)))
    assert "geometric" not in {rule.rule for rule in rules_of(("a", "b"), np.array([[-0.1, 9.0], [0.1, 0.1]]))}


def test_one_dataset_or_one_system_has_no_rules():
    assert rules_of(("a", "b"), np.array([[0.1], [0.2]])) == []
    assert rules_of(("a",), np.array([[0.1, 0.2]])) == []
