"""The joint test: exact against brute force, valid under the null, the same for any number of threads."""

from __future__ import annotations

from dataclasses import asdict
from itertools import product

import numpy as np
import pytest
from scipy.stats import t as student_t

from cranfield._settings import settings
from cranfield.audits import Grid, UserContributions, VariedDecision
from cranfield.audits.contributions import critical_z, z_of
from cranfield.audits.joint import (
    Question,
    SeedSpread,
    _in_groups,
    draw_counts,
    joint_tests,
    seed_noise,
    turned_by_chance,
    user_signs,
)


def _scope(n):
    return Question(np.arange(n), np.full(n, 1 / n))


def _test(x, **options):
    return joint_tests(x, np.full(len(x), x.shape[1]), [_scope(len(x))], **options)[0]


def _universes(rng, users, universes, own=0.5):
    """Draw skewed terms of universes that resemble each other."""
    shared = rng.exponential(size=(3, users)) - 1
    return (rng.normal(size=(universes, 3)) @ shared + own * rng.normal(size=(universes, users))).astype(np.float32)


def _statistics(z, users):
    critical = critical_z(np.full(z.shape[1], users))
    ahead, behind = (z >= critical).mean(axis=1), (z <= -critical).mean(axis=1)
    return np.array([abs(np.median(z, axis=1)), abs(ahead - behind), ahead + behind, abs(z).max(axis=1)])


def _drawn(draws, block, users):
    return np.concatenate([block(users, number, seed=3) for number in range(2)])[:draws]


def test_p_values_count_the_draws_that_reach_the_observed_statistic():
    x = _universes(np.random.default_rng(0), 40, 7)
    draws = 300
    centred = x - x.mean(axis=1, keepdims=True)
    counts = _drawn(draws, draw_counts, 40)
    by_signs = _drawn(draws, user_signs, 40) @ (x / np.sqrt(np.square(x).sum(axis=1))[:, None]).T
    by_users = (counts @ centred.T) / np.sqrt(counts @ np.square(centred).T)
    observed = _statistics(z_of(x)[None], 40)
    expected = []
    for z in (by_signs, by_users):
        drawn = _statistics(z, 40)
        reached = drawn >= observed * (1 - 1e-5)
        tied = np.isclose(drawn[2], observed[2])  # then the mean |z| decides
        reached[2] &= ~tied | (abs(z).mean(axis=1) >= abs(z_of(x)).mean() * (1 - 1e-5))
        expected.append((1 + reached.sum(axis=1)) / (1 + draws))
    tested = _test(x, draws=draws, seed=3)
    assert list(tested.p.values()) == pytest.approx(np.max(expected, axis=0))
    assert list(tested.observed.values()) == pytest.approx(observed[:, 0])


def test_draws_of_users_are_as_many_users_with_replacement():
    counts = draw_counts(40, 0)
    assert (counts.sum(axis=1) == 40).all()
    assert counts.mean() == pytest.approx(1)
    assert counts.var() == pytest.approx(1 - 1 / 40, abs=0.05)
    assert (draw_counts(40, 1) != counts).any()


def test_p_values_approach_those_of_all_sign_vectors():
    x = np.random.default_rng(5).normal(0.5, 1, size=(3, 8)).astype(np.float32)
    signs = np.array(list(product([-1, 1], repeat=8)))
    z = signs @ (x / np.sqrt(np.square(x).sum(axis=1))[:, None]).T
    tested = _test(x, draws=10_000)
    median = (np.abs(np.median(z, axis=1)) >= abs(np.median(z_of(x))) - 1e-6).mean()
    largest = (np.abs(z).max(axis=1) >= np.abs(z_of(x)).max() - 1e-6).mean()
    # Drawing users can only increase it.
    assert tested.p["median"] > median - 0.02
    assert tested.p["largest"] > largest - 0.02


def test_many_users_are_drawn_in_groups_that_keep_mean_spread_and_skewness():
    x = _universes(np.random.default_rng(9), 6001, 4)
    groups = _in_groups(x, seed=1)
    centred = (x - x.mean(axis=1, keepdims=True)).astype(np.float64)
    assert groups.shape == (4, 1500)
    assert groups.sum(axis=1) == pytest.approx(np.zeros(4), abs=0.1)
    for power, tolerance in ((2, 0.1), (3, 0.3)):
        assert (groups.astype(np.float64) ** power).sum(axis=1) == pytest.approx(
            (centred**power).sum(axis=1), rel=tolerance, abs=1000
        )
    few = _in_groups(x[:, :1500], seed=1)
    assert few == pytest.approx(x[:, :1500] - x[:, :1500].mean(axis=1, keepdims=True), abs=1e-5)


def test_where_decisions_turn_the_winner_round_only_either_direction_and_the_largest_see_it():
    rng = np.random.default_rng(2)
    directions = np.where(np.arange(20) % 2, 1, -1)[:, None]
    x = (directions * 0.3 + 0.4 * rng.normal(size=400) + rng.normal(size=(20, 400))).astype(np.float32)
    tested = _test(x, draws=500)
    assert tested.observed["either"] == 1
    assert tested.observed["net"] == 0
    assert tested.p["either"] < 0.01
    assert tested.p["largest"] < 0.01
    assert tested.p["median"] > 0.2
    assert tested.p["net"] == 1
    assert tested.expected["either"] == pytest.approx(0.05, abs=0.03)


def test_alike_universes_are_often_led_by_one_system_under_the_null():
    rng = np.random.default_rng(3)
    shared = rng.normal(size=300)
    x = (shared + 0.05 * rng.normal(size=(50, 300))).astype(np.float32)
    assert _test(x, draws=500).often["leads of cells"] > 0.9
    independent = rng.normal(size=(50, 300)).astype(np.float32)
    assert _test(independent, draws=500).often["leads of cells"] < 0.75


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    x = _universes(np.random.default_rng(1), 101, 33)
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(settings, "threads", threads)
        results.append(asdict(_test(x, draws=900)))
    assert results[0] == results[1] == results[2]


def test_a_share_of_all_universes_is_told_from_others_by_the_mean_z():
    x = np.random.default_rng(7).normal(1.0, 1, size=(1, 200)).astype(np.float32)
    tested = _test(x, draws=999)
    assert tested.observed["either"] == 1
    assert tested.p["either"] == tested.p["median"] == 1 / 1000


def test_a_scope_is_tested_as_if_it_stood_alone():
    x = _universes(np.random.default_rng(4), 50, 12)
    part = np.arange(0, 12, 3)
    users = np.full(12, 50)
    together = joint_tests(x, users, [_scope(12), Question(part, np.full(4, 0.25))], draws=250)[1]
    alone = joint_tests(x[part], users[part], [_scope(4)], draws=250)[0]
    assert together.p == alone.p
    assert together.often == pytest.approx(alone.often)


def test_weights_of_cells_change_shares_of_cells_and_no_test():
    x = _universes(np.random.default_rng(6), 50, 4)
    users = np.full(4, 50)
    plain, weighted = joint_tests(
        x, users, [_scope(4), Question(np.arange(4), np.array([0.97, 0.01, 0.01, 0.01]))], draws=250
    )
    assert plain.p == weighted.p
    assert weighted.often["leads of cells"] > plain.often["leads of cells"] - 1e-6
    assert weighted.often["leads of universes"] == plain.often["leads of universes"]


def test_systems_that_are_equal_everywhere_give_p_1():
    tested = _test(np.zeros((3, 10), dtype=np.float32), draws=99)
    assert set(tested.p.values()) == {1.0}
    assert tested.observed["either"] == 0


def test_a_universe_in_which_fewer_than_thirty_users_differ_is_not_the_largest_difference():
    rng = np.random.default_rng(8)
    x = rng.normal(0.1, 1, size=(5, 400)).astype(np.float32)
    few = np.zeros((1, 400), dtype=np.float32)
    few[0, :16] = 1.0  # z is 4, due to 16 of 400 users
    alone, together = _test(x, draws=500), _test(np.concatenate([x, few]), draws=500)
    assert np.abs(z_of(few))[0] > np.abs(z_of(x)).max()
    assert together.observed["largest"] == alone.observed["largest"]
    assert together.p["largest"] == alone.p["largest"]
    assert _test(few, draws=500).observed["largest"] == pytest.approx(4)


def _rejections(users, universes, replicates, draws):
    """Return replicates × statistics: p-values for users drawn with replacement from a population with mean 0."""
    rng = np.random.default_rng(11)
    population = _universes(rng, users, universes)
    population -= population.mean(axis=1, keepdims=True)
    p = []
    for replicate in range(replicates):
        x = population[:, rng.integers(0, users, users)]
        p.append(list(_test(x, draws=draws, seed=replicate).p.values()))
    return np.array(p)


def _assert_level(p):
    """Assert that no statistic rejects more often than it says."""
    for alpha in (0.01, 0.05, 0.10):
        error = np.sqrt(alpha * (1 - alpha) / len(p))
        assert ((p <= alpha).mean(axis=0) <= alpha + 3.3 * error).all(), alpha


def test_p_values_keep_their_level_for_a_centred_bootstrap_of_users():
    _assert_level(_rejections(300, 20, replicates=200, draws=249))


@pytest.mark.slow
@pytest.mark.parametrize(("users", "replicates"), [(300, 4000), (6040, 600)])
def test_p_values_keep_their_level_in_a_long_simulation(users, replicates):
    _assert_level(_rejections(users, 40, replicates, draws=499))


GRID = Grid.product(
    [VariedDecision("cutoff", "equivalent", ("5", "10")), VariedDecision("seed", "chance", ("0", "1", "2"))]
)


def test_a_system_is_compared_with_itself_over_all_pairs_of_seeds():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 6, 200)) * 0.1
    values[1, [2, 5]] += 1  # with seed 2 the second system behaves differently
    steady, other = seed_noise(GRID, ("ease", "mf"), UserContributions(values))
    assert (steady.system, steady.decision, steady.pairs) == ("ease", "seed", 6)
    assert steady.significant <= 1 / 6
    assert other.significant >= 4 / 6


def test_equal_seeds_do_not_differ():
    noise = seed_noise(GRID, ("a",), UserContributions(np.ones((1, 6, 10))))
    assert noise[0].significant == 0


def test_winners_turned_by_seeds_are_counted_by_set_up():
    assert turned_by_chance(GRID, np.array([1, 1, -1, 1, 1, 1])) == 0.5
    assert turned_by_chance(GRID, np.array([1, 0, 1, -1, 0, -1])) == 0
    assert turned_by_chance(Grid.product([GRID.varied[0]]), np.array([1, -1])) is None


def test_without_chance_options_there_is_no_noise():
    assert seed_noise(Grid.product([GRID.varied[0]]), ("a",), UserContributions(np.ones((1, 2, 10)))) == []


@pytest.mark.parametrize("options", [("0",), ("0", "1")])
def test_a_single_seed_has_nothing_to_compare(options):
    grid = Grid.product([GRID.varied[0], VariedDecision("seed", "chance", options)])
    noise = seed_noise(grid, ("a",), UserContributions(np.zeros((1, grid.n_cells, 10))))
    assert len(noise) == len(options) - 1


def test_seeds_that_change_nothing_add_nothing():
    x = np.random.default_rng(0).normal(size=(2, 1, 50)).repeat(3, axis=1).reshape(6, 50).astype(np.float32)
    spread = SeedSpread.of(GRID, x, np.full(6, 50))
    assert spread.ratio == pytest.approx(np.zeros(6), abs=1e-12)
    assert not spread.draws(0, 0).any()
    tested = joint_tests(x, np.full(6, 50), [_scope(6)], spread=spread, draws=249)[0]
    assert tested.retrained == tested.p


def test_the_spread_is_that_of_the_means_over_seeds_beside_that_of_users():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(6, 40)).astype(np.float32)
    ratios, noises = [], []
    for cells in (x[:3], x[3:]):
        by_users = (np.square(cells).sum(axis=1) / 40**2).mean()
        seeds = cells.mean(axis=1)
        residuals = cells - cells.mean(axis=0) - seeds[:, None] + seeds.mean()
        ratios.append(seeds.var(ddof=1) / by_users)
        noises.append((residuals**2).sum() / (2 * 39) / 40 / by_users)
    spread = SeedSpread.of(GRID, x, np.full(6, 40))
    assert spread.ratio == pytest.approx(np.full(6, np.mean(ratios)))
    assert spread.noise == pytest.approx(np.full(6, np.mean(noises)))
    assert spread.degrees == 2
    assert spread.option.tolist() == [0, 1, 2, 0, 1, 2]


def test_users_that_never_differ_have_no_spread_of_seeds():
    spread = SeedSpread.of(GRID, np.zeros((6, 40), dtype=np.float32), np.full(6, 40))
    assert not spread.draws(0, 0).any()


def test_draws_of_other_seeds_are_the_same_for_the_same_options_and_vary_like_student_t():
    spread = SeedSpread(np.full(4, 2.0), np.zeros(4), 4, np.array([0, 1, 0, 1]))
    drawn = np.concatenate([spread.draws(block, 3) for block in range(80)])
    assert (drawn[:, :2] == drawn[:, 2:]).all()
    for level in (0.2, 0.05, 0.01):
        beyond = (np.abs(drawn[:, 0]) > np.sqrt(2) * student_t.isf(level / 2, 4)).mean()
        assert beyond == pytest.approx(level, abs=4 * np.sqrt(level / len(drawn)))


def test_without_seeds_the_spread_is_not_known():
    assert SeedSpread.of(Grid.product([GRID.varied[0]]), np.ones((2, 5), dtype=np.float32), np.full(2, 5)) is None


def test_with_the_spread_of_seeds_the_joint_test_keeps_its_level_for_retrained_systems():
    # Both systems are the same algorithm: each training adds its own difference for all users.
    rng = np.random.default_rng(2)
    opened = [VariedDecision("cutoff", "equivalent", ("5", "10")), VariedDecision("seed", "chance", tuple("01234"))]
    grid, users = Grid.product(opened), np.full(10, 200)
    scope = Question(np.arange(10), grid.weights)
    given, retrained = [], []
    for replicate in range(120):
        training = 0.1 * rng.normal(size=(1, 5, 1))
        lists = rng.normal(size=(1, 5, 200)) + 0.5 * rng.normal(size=(2, 5, 200))
        x = (training + lists).reshape(10, 200).astype(np.float32)
        spread = SeedSpread.of(grid, x, users)
        test = joint_tests(x, users, [scope], spread=spread, draws=249, seed=replicate)[0]
        given.append(list(test.p.values()))
        retrained.append(list(test.retrained.values()))
    given, retrained = np.array(given), np.array(retrained)
    assert (given <= 0.05).mean(axis=0).max() > 0.3
    for alpha in (0.01, 0.05, 0.10):
        error = np.sqrt(alpha * (1 - alpha) / 120)
        assert ((retrained <= alpha).mean(axis=0) <= alpha + 3.3 * error).all(), alpha
