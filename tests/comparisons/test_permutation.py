"""The exact permutation test, against the definition and against sampling."""

from __future__ import annotations

import itertools
import math
import sys
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield._settings import settings
from cranfield._streams import stream
from cranfield.comparisons.permutations import enumeration, inversion
from cranfield.comparisons.permutations.exact import common_step, exact, tail
from cranfield.comparisons.permutations.monte_carlo import monte_carlo
from cranfield.comparisons.sample import ROUNDING, Sample
from cranfield.comparisons.significance import permutation


def sample_of(d):
    """Return the sample of two systems with these differences."""
    d = np.asarray(d, dtype=float)
    return Sample("m", ("a", "b"), np.stack([d, np.zeros_like(d)]), np.array([0]), np.array([1]))


def exact_p(d):
    verdict = permutation([sample_of(d)])[0]
    return verdict.p[0], verdict.method[0], verdict.error[0]


def by_definition(d):
    """Count all 2^n sign patterns, ties at the observed sum included."""
    d = np.asarray(d, dtype=float)
    sums = np.array([0.0])
    for one in d:
        sums = np.concatenate([sums + one, sums - one])
    return np.mean(np.abs(sums) >= abs(d.sum()) - 1e-9 * max(1e-300, np.abs(d).sum()))


DIFFERENCES = {
    "random": lambda rng, n: rng.normal(0.1, 1, n),
    "skewed": lambda rng, n: rng.exponential(1, n) ** 2 - 1.8,
    "heavy-tailed": lambda rng, n: rng.standard_cauchy(n),
    "sparse": lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, rng.normal(0.1, 1, n)),
    "lattice": lambda rng, n: rng.binomial(10, 0.23, n) / 10 - rng.binomial(10, 0.2, n) / 10,
    "reciprocal ranks": lambda rng, n: 1 / rng.integers(1, 30, n) - 1 / rng.integers(1, 32, n),
}


@given(
    st.lists(
        st.one_of(st.just(0.0), st.integers(-4, 4).map(lambda k: k / 10), st.floats(-1, 1, width=32)),
        min_size=1,
        max_size=12,
    )
)
def test_exact_equals_enumeration_with_ties_and_zeros(d):
    assert exact_p(d)[0] == pytest.approx(by_definition(d), abs=1e-10)


@pytest.mark.parametrize("kind", DIFFERENCES)
@pytest.mark.parametrize("n", [1, 2, 15, 20])
def test_exact_equals_enumeration_up_to_20_users(kind, n):
    rng = np.random.default_rng(n)
    for _ in range(3):
        d = DIFFERENCES[kind](rng, n)
        assert exact_p(d)[0] == pytest.approx(by_definition(d), abs=1e-10)


@pytest.mark.parametrize("kind", DIFFERENCES)
@pytest.mark.parametrize("n", [60, 400])
def test_exact_agrees_with_many_samples(kind, n):
    rng = np.random.default_rng(n)
    d = DIFFERENCES[kind](rng, n)
    d -= d[d != 0].mean() * rng.random()  # so that not all are far from the null
    d = np.round(d * 10) / 10 if kind == "lattice" else d
    p, _, error = exact_p(d)
    draws, exceeded = 100_000, 0
    enough = abs(d.sum()) - 1e-10 * np.abs(d).sum()
    flips, d = np.random.default_rng(1), d[d != 0]
    # Sums of eight differences under all 256 sign patterns: a draw picks one of them for each group of eight.
    eights = np.append(d, np.zeros(-len(d) % 8)).reshape(-1, 8)
    signs = 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) - 1
    sums = eights @ signs.T
    for _ in range(50):
        drawn = flips.integers(0, 256, (draws // 50, len(eights)), dtype=np.uint8)
        exceeded += np.count_nonzero(np.abs(sums[np.arange(len(eights)), drawn].sum(axis=1)) >= enough)
    standard_error = np.sqrt(max(p * (1 - p), 1e-6) / draws)
    assert abs(exceeded / draws - p) <= 4 * standard_error + error


@pytest.mark.parametrize("n", [28, 34])
@pytest.mark.parametrize("kind", ["random", "skewed", "heavy-tailed", "reciprocal ranks"])
def test_the_error_that_inversion_states_is_not_exceeded(kind, n):
    rng = np.random.default_rng(n)
    for _ in range(3):
        d = DIFFERENCES[kind](rng, n)
        truth = enumeration.enumerate_sums(d).p
        ordered, sigma = np.sort(np.abs(d)), np.sqrt((d**2).sum())
        ordered = ordered[ordered > 0]
        tied = inversion.left_to_ties(ordered, ROUNDING * ordered.sum())
        p = inversion.invert(np.abs(d)[None], np.abs(d.sum(keepdims=True)))[0]
        assert abs(p - truth) <= inversion.left_over(ordered, inversion.REACH / sigma) + tied + 1e-12
        p, error = inversion.invert_further(ordered, abs(d.sum()), 0.0, 1e-6)
        assert abs(p - truth) <= error + tied


def in_rationals(d):
    """Count all 2^n sign patterns in exact arithmetic, ties at the observed sum included."""
    d = [Fraction(one) for one in d]
    unit = math.lcm(*(one.denominator for one in d))
    d = [int(one * unit) for one in d]
    sums = [0]
    for one in d:
        sums = [total + sign * one for total in sums for sign in (1, -1)]
    return Fraction(sum(abs(total) >= abs(sum(d)) for total in sums), len(sums))


def thirds_and_tenths(rng, n):
    """Return multiples of 1/k, and of 1/k with one of them large, as fractions."""
    k = int(rng.choice([3, 7, 10, 12, 100, 999]))
    d = [Fraction(int(one), k) for one in rng.integers(-9, 10, n)]
    if rng.random() < 0.5:
        d[0] *= int(10.0 ** rng.integers(0, 9))
    return d


NASTY = {
    "one giant": lambda rng, n: np.append(rng.integers(-9, 10, n - 1), 10.0 ** rng.integers(3, 16)),
    "giants that cancel": lambda rng, n: np.append(
        rng.integers(-9, 10, n - 2), np.array([1, -1]) * 10.0 ** rng.integers(3, 16)
    ),
    "spread": lambda rng, n: rng.normal(0.2, 1, n) * 10.0 ** rng.integers(-7, 8, n),
    "whole numbers, spread": lambda rng, n: rng.integers(-9, 10, n) * 10.0 ** rng.integers(0, 15, n),
    "powers of two": lambda rng, n: rng.choice([-1, 1], n) * 2.0 ** rng.integers(-25, 25, n),
    "two sizes": lambda rng, n: np.where(
        rng.random(n) < 0.5, rng.integers(-3, 4, n) * 10.0 ** rng.integers(5, 14), rng.integers(-3, 4, n) / 4
    ),
    "lattice": thirds_and_tenths,
    "reciprocals": lambda rng, n: [Fraction(1, int(a)) - Fraction(1, int(b)) for a, b in rng.integers(1, 13, (n, 2))],
    "tiny": lambda rng, n: rng.integers(-4, 5, n) * 2.0 ** -rng.integers(900, 930),
    "zeros": lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, rng.integers(-3, 4, n) * 10.0 ** rng.integers(0, 15, n)),
}


@pytest.mark.parametrize("kind", NASTY)
def test_the_error_bound_holds_against_rational_arithmetic(kind):
    rng = np.random.default_rng(14)
    for _ in range(40):
        truth = NASTY[kind](rng, int(rng.integers(3, 13)))
        p, _, error = exact_p([float(one) for one in truth])
        assert abs(p - float(in_rationals(truth))) <= error, list(truth)


@pytest.mark.parametrize("worlds", [6, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", NASTY)
def test_the_error_bound_holds_on_every_way_against_rational_arithmetic(kind, monkeypatch, worlds):
    monkeypatch.setattr(sys.modules["cranfield.comparisons.permutations.exact"], "_FEW", 0)
    rng = np.random.default_rng(15)
    for _ in range(worlds):
        truth = NASTY[kind](rng, int(rng.integers(3, 13)))
        d, p = [float(one) for one in truth], float(in_rationals(truth))
        for method in ("exact", "monte-carlo"):
            verdict = permutation([sample_of(d)], method=method, resamples=500)[0]
            assert abs(verdict.p[0] - p) <= verdict.error[0], (method, list(truth))


@pytest.mark.parametrize("giants", [[1e12], [1e15], [3e9, -3e9], [1e15, -1e15], [1e15, 1e15]])
def test_the_error_bound_holds_with_giants_among_many_differences(giants):
    rng = np.random.default_rng(16)
    small = rng.integers(-9, 10, 100)
    steps = np.stack(
        [np.append(small, np.zeros(len(giants), int)), np.append(0 * small, np.sign(giants).astype(int))], 1
    )
    # Small sums are integers up to 900, so any larger giants order the sums like a giant of 10^4.
    truth = counted_in_two_units(steps, np.array([1.0, 1e4]))
    p, _, error = exact_p(np.append(small, giants))
    assert abs(p - truth) <= error


def test_values_nearly_on_a_lattice_are_not_moved_onto_it():
    assert common_step(np.array([1.0, 1 + 5e-8])) is None
    assert common_step(np.array([1.0, 2.0, 1e-12])) is None
    rng = np.random.default_rng(17)
    d = np.where(rng.random(80) < 0.5, 1.0, -(1 + 2.0**-26))
    d[:2] = 1.0, 1.0
    steps = np.stack([np.sign(d), np.where(d < 0, -1, 0)], axis=1).astype(int)
    p, _, error = exact_p(d)
    assert abs(p - counted_in_two_units(steps, np.array([1.0, 2.0**-26]))) <= error


@pytest.mark.parametrize("scale", [1e-250, 1e-150, 1e150, 1e250])
def test_very_small_and_very_large_differences_have_the_p_of_their_shape(scale):
    for d in (np.random.default_rng(18).normal(0.1, 1, 100), np.arange(-40.0, 61.0)):
        assert exact_p(d * scale)[0] == pytest.approx(exact_p(d)[0], abs=1e-12)


@pytest.mark.parametrize("giant", [1e11, 1e13, 1e15, -1e15])
def test_one_huge_difference_does_not_make_others_equal(giant):
    p, method, error = exact_p([giant, 3, 2, 0, -1 if giant > 0 else 1])
    assert (p, method) == (0.25 if giant > 0 else 1.0, "enumeration")
    assert error < 1e-12


@pytest.mark.parametrize("giant", [1e16, 1e18, 1e20, 1e300])
def test_what_the_largest_value_hides_is_in_the_error_bound(giant):
    for method in ("exact", "monte-carlo"):
        verdict = permutation([sample_of([giant, 3, 2, 0, -1])], method=method, resamples=500)[0]
        assert abs(verdict.p[0] - 0.25) <= verdict.error[0]


def counted_in_two_units(steps, units):
    """Return P(|Σ ±d_u| ≥ |Σ d_u|) for differences of whole numbers of two units, all sums counted."""
    reach = np.abs(steps).sum(axis=0)
    chance = np.zeros(2 * reach + 1)
    chance[tuple(reach)] = 1.0
    for one in steps:
        chance = (np.roll(chance, one, (0, 1)) + np.roll(chance, -one, (0, 1))) / 2
    sums = np.add.outer(*(unit * np.arange(-r, r + 1) for unit, r in zip(units, reach)))
    return chance[np.abs(sums) >= abs((steps @ units).sum()) - 1e-9].sum()


@pytest.mark.parametrize("n", [75, 150])
def test_ties_between_few_values_without_a_common_step_are_counted(n):
    # nDCG with one relevant item, at rank 1, 3, 7, 15 or 2, 8, 26, 80, or none: parts of 1 and of 1 / log2(3).
    shares = np.array([[0, 0], [12, 0], [6, 0], [4, 0], [3, 0], [0, 12], [0, 6], [0, 4], [0, 3]])
    units = np.array([1, 1 / np.log2(3)]) / 12
    rng = np.random.default_rng(n)
    steps = shares[rng.integers(0, 9, n)] - shares[rng.integers(0, 9, n)]
    truth = counted_in_two_units(steps[steps.any(axis=1)], units)
    p, _, error = exact_p(steps @ units)
    assert abs(p - truth) <= error
    ordered = np.sort(np.abs(steps @ units))
    ordered = ordered[ordered > 1e-12]
    p = inversion.invert(ordered[None], np.abs((steps @ units).sum(keepdims=True)))[0]
    assert 1e-6 < abs(p - truth) <= inversion.left_to_ties(ordered, ROUNDING * ordered.sum())


def test_ties_among_many_users_are_counted_by_size_without_an_array_of_signs():
    small = 0.01 * np.sqrt(2)
    ordered = np.sort(np.repeat([small, 1 - small, 1.0], [300_000, 2000, 1500]))
    slack = ROUNDING * ordered.sum()
    tracemalloc.start()
    chance = inversion.tie_chance(ordered, slack)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * ordered.nbytes
    # The sum is x + small · y, and two pairs (x, y) or their negatives are equal with probability 2 / (π √|Σ|).
    spread = np.linalg.det([[3500, -2000], [-2000, 302_000]])
    assert chance == pytest.approx(2 / (np.pi * np.sqrt(spread)), rel=0.3)


def test_enumeration_merges_equal_sums_where_there_are_too_many():
    steps = np.random.default_rng(1).integers(-40, 41, 90)
    steps[0] += 1 - steps.sum() % 2
    truth = counted_in_two_units(np.stack([steps, np.zeros_like(steps)], axis=1), np.array([0.1, 1.0]))
    assert enumeration.size(steps / 10) > 2 * enumeration.LARGEST_HALF
    assert enumeration.enumerate_sums(steps / 10).p == pytest.approx(truth, abs=1e-12)
    assert enumeration.enumerate_sums(np.random.default_rng(1).random(90) - 0.5) is None


def by_binomials(sizes, plus, minus):
    """Return P(|S| ≥ s) for three sizes of differences, from the numbers of users with each sign."""
    from scipy.stats import binom

    counts = np.add(plus, minus)
    first, second = (np.arange(*(np.array([-5.5, 5.5]) * np.sqrt(c) + c / 2).astype(int)) for c in counts[:2])
    chance = np.multiply.outer(binom.pmf(first, counts[0], 0.5), binom.pmf(second, counts[1], 0.5))
    rest = np.add.outer(sizes[0] * (2 * first - counts[0]), sizes[1] * (2 * second - counts[1]))
    s = abs(np.subtract(plus, minus) @ np.array(sizes)) * (1 - 1e-12)
    needed = np.ceil(((s - rest) / sizes[2] + counts[2]) / 2 - 1e-9)
    return 2 * (chance * binom.sf(needed - 1, counts[2], 0.5)).sum()


@pytest.mark.parametrize(
    ("margin", "plus", "minus"),
    [
        (0.01, (700, 690, 0), (0, 0, 15_000)),
        (0.0019, (1500, 0, 97_000), (0, 1450, 0)),
        (0.00019, (14_200, 0, 970_000), (0, 14_100, 0)),
    ],
)
def test_two_valued_differences_and_a_margin_have_the_p_of_three_binomials(margin, plus, minus, monkeypatch):
    def refuse(*_):
        raise AssertionError("nothing need be drawn")

    monkeypatch.setattr(sys.modules["cranfield.comparisons.significance"], "monte_carlo", refuse)
    sizes = (1 + margin, 1 - margin, margin)
    d = np.concatenate([np.repeat(sizes, plus), -np.repeat(sizes, minus)])
    p, _, error = exact_p(d)
    assert error < 5e-5
    assert abs(p - by_binomials(sizes, plus, minus)) <= error


@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_over_sees_all_of_a_few_irregular_differences_among_many_equal_ones(seed):
    rng = np.random.default_rng(seed)
    d = np.concatenate([np.full(970, 0.002), rng.pareto(1.5, 26) * rng.choice([-1, 1], 26)])
    ordered = np.sort(np.abs(d))
    p = inversion.invert(ordered[None], np.abs(d.sum(keepdims=True)))[0]
    missed = inversion.left_over(ordered, inversion.REACH / np.sqrt((d**2).sum()))
    assert abs(p - enumeration.enumerate_sums(d).p) <= missed < 0.1


def test_enumeration_meets_in_the_middle():
    rng = np.random.default_rng(5)
    d = np.concatenate([rng.normal(size=8), np.full(6, 0.25), np.full(4, -0.5)])
    assert enumeration.enumerate_sums(d).p == pytest.approx(by_definition(d), abs=1e-12)


def test_a_lattice_by_all_nodes_equals_a_lattice_by_few():
    rng = np.random.default_rng(3)
    d = rng.integers(-9, 10, 400).astype(float)
    sizes = np.arange(1.0, 10.0)
    counts = np.array([[np.count_nonzero(np.abs(d) == k) for k in sizes]], dtype=float)
    s, sigma = np.abs(d.sum(keepdims=True)), np.sqrt((d**2).sum(keepdims=True))
    full = inversion.invert_lattice(counts, sizes, s, inversion.lattice_nodes(s, sigma))
    few = inversion.invert(np.abs(d)[None], s, 1.0)
    assert full == pytest.approx(few, abs=1e-12)
    assert inversion.invert_further(np.sort(np.abs(d[d != 0])), s[0], 1.0, 0.0)[0] == pytest.approx(full[0], abs=1e-12)


@pytest.mark.parametrize("scale", [0.1, 0.5, 4.0])
def test_more_nodes_on_a_lattice_of_any_step_give_the_same_p(scale):
    d = np.sort(np.random.default_rng(3).integers(1, 10, 80).astype(float))
    sizes, counts = np.unique(d, return_counts=True)
    s, sigma = np.array([50.0 + d.sum() % 2]), np.sqrt((d**2).sum(keepdims=True))
    full = inversion.invert_lattice(counts[None].astype(float), sizes, s, inversion.lattice_nodes(s, sigma))
    p, _ = inversion.invert_further(scale * d, scale * s[0], scale, 0.0)
    assert p == pytest.approx(full[0], abs=1e-12)


def test_what_is_left_over_sees_the_characteristic_function_return():
    # All 120 cosines return to 1 at θ = π / 0.02.
    ordered = np.array([0.02] * 120 + [0.9, 1.0])
    end = inversion.REACH / np.sqrt((ordered**2).sum())
    theta = np.linspace(end, 64 * np.pi, 400_000)
    phi = np.abs(np.cos(0.02 * theta) ** 120 * np.cos(0.9 * theta) * np.cos(theta))
    missed = 2 / np.pi * (phi / theta).sum() * (theta[1] - theta[0])
    assert missed <= inversion.left_over(ordered, end) <= 20 * missed


def test_differences_of_one_size_are_a_binomial_test():
    from scipy.stats import binomtest

    d = np.concatenate([np.full(2900, 0.1), np.full(2750, -0.1), np.zeros(400)])
    assert exact_p(d)[0] == pytest.approx(binomtest(2900, 5650).pvalue, abs=1e-12)


@pytest.mark.parametrize(("plus", "minus"), [(300, 100), (1000, 500), (400, 10)])
def test_tiny_p_values_have_a_small_relative_error(plus, minus):
    from scipy.stats import binom

    d = np.concatenate([np.ones(plus), -np.ones(minus)])
    truth = 2 * binom.sf(plus - 1, plus + minus, 0.5)
    assert truth < 1e-11
    p, method, _ = exact_p(d)
    assert method == "saddlepoint"
    assert p == pytest.approx(truth, rel=0.01)


@pytest.mark.parametrize("other", [0.1, 1 / np.pi])
def test_a_tiny_p_value_does_not_hang_on_the_values_of_other_systems(other):
    values = np.zeros((3, 300))
    values[0, :240] = values[1, 240:] = 1.0
    values[2, :2] = other, 0.0123456789
    alone = Sample("m", ("a", "b"), values[:2], np.array([0]), np.array([1]))
    beside = Sample("m", ("a", "b", "c"), values, *np.triu_indices(3, 1))
    p = permutation([alone])[0].p[0]
    assert p < 1e-20
    assert permutation([beside])[0].p[0] == pytest.approx(p, rel=1e-9)


def test_a_pair_has_its_own_step_whatever_other_systems_are_compared():
    draw, n = np.random.default_rng(3), 3000
    first, second, third = draw.integers(0, 5, n) / 5, draw.integers(0, 5, n) / 5, draw.integers(0, 11, n) / 10
    first = np.where(draw.random(n) < 0.2, np.minimum(first + 0.4, 1), first)
    alone = Sample("m", ("a", "b"), np.stack([first, second]), np.array([0]), np.array([1]))
    among = Sample("m", ("a", "b", "c"), np.stack([first, second, third]), np.array([0, 0]), np.array([1, 2]))
    verdicts = [permutation([sample])[0] for sample in (alone, among)]
    assert [verdict.method[0] for verdict in verdicts] == ["saddlepoint"] * 2
    assert verdicts[0].p[0] == pytest.approx(verdicts[1].p[0], rel=1e-6, abs=0)


def test_the_saddlepoint_joins_the_inversion():
    rng = np.random.default_rng(9)
    d = rng.exponential(size=2000) - 0.88
    p, method, _ = exact_p(d)
    assert method == "inversion"
    assert tail(d) == pytest.approx(p, rel=0.01)


def test_all_users_on_one_side_give_the_smallest_possible_p():
    assert exact_p(np.arange(1, 31) / 7.0)[0] == pytest.approx(2.0**-29, rel=1e-9)
    assert exact_p(np.random.default_rng(0).random(900))[0] == pytest.approx(2.0**-899, rel=1e-9)
    p = exact_p(np.random.default_rng(0).random(5000))[0]
    assert p == 2.0**-1022  # the smallest normal float, because 2^-4999 underflows


@pytest.mark.parametrize(
    ("d", "p", "method"),
    [
        ([0.0, 0.0], 1.0, "identical"),
        ([0.5], 1.0, "enumeration"),
        ([0.5, -0.5], 1.0, "equal means"),
        ([0.3, 0.2, -0.5], 1.0, "equal means"),
        ([0.1 + 0.2, -0.3], 1.0, "equal means"),
    ],
)
def test_trivial_cases(d, p, method):
    assert exact_p(d)[:2] == (p, method)


def test_many_differences_with_one_giant_still_have_an_exact_p():
    rng = np.random.default_rng(2)
    d = np.append(rng.normal(0.02, 1, 1000), 2000.0)
    p, _, error = exact_p(d)
    # The giant determines the sign of the sum, and the rest must not reduce it: P(|S| >= s) = P(rest' >= rest).
    from scipy.stats import norm

    rest = d[:-1]
    assert error <= 1e-6
    assert p == pytest.approx(norm.sf(rest.sum() / np.sqrt((rest**2).sum())), abs=0.01)


@pytest.mark.parametrize("kind", ["any", "one size", "lattice"])
def test_few_large_differences_among_small_ones_have_the_p_of_enumeration(kind):
    rng = np.random.default_rng(5)
    tried = 0
    for _ in range(40):
        n, large = int(rng.integers(22, 31)), int(rng.integers(1, 5))
        small = {"any": rng.random(n), "one size": np.ones(n), "lattice": rng.integers(1, 6, n)}[kind] / 100
        giants = rng.random(large) * rng.choice([0.3, 1, 5, 100])
        d = np.append(small, giants) * rng.choice([-1, 1], n + large)
        step = 0.0 if kind == "any" else 0.01
        d = d if kind == "any" else np.rint(d / step) * step
        ordered, slack = np.sort(np.abs(d[d != 0])), ROUNDING * np.abs(d).sum()
        apart = inversion.few_large(ordered)
        if apart and abs(d.sum()) > slack:  # otherwise p is 1
            p, error, tied = inversion.invert_apart(ordered, apart, abs(d.sum()), slack, step)
            assert abs(p - enumeration.enumerate_sums(d).p) <= error + tied
            tried += error < 1e-3
    assert tried >= {"any": 5, "lattice": 5, "one size": 0}[kind]  # a lattice of one step has few sums


@pytest.mark.parametrize("giants", [1, 5, 12])
def test_few_large_differences_among_many_need_neither_samples_nor_many_nodes(giants, monkeypatch):
    """A margin moves the values of all users a little, and only a few of them differ by more."""
    monkeypatch.setattr("cranfield.comparisons.significance.monte_carlo", None)
    monkeypatch.setattr(inversion, "invert_further", lambda *_: 1 / 0)
    rng = np.random.default_rng(giants)
    for margin in (1e-4, 1e-6, 1e-9, -1e-6, -1e-9):
        d = margin * rng.random(20_000)
        d[:giants] += rng.random(giants) - 0.4
        _, method, error = exact_p(d)
        assert method in ("inversion", "saddlepoint")
        assert error <= 1e-6


def test_many_differences_that_cannot_be_enumerated_are_given_up_at_once(monkeypatch):
    calls = []
    widths = enumeration._widths
    monkeypatch.setattr(enumeration, "_widths", lambda counts: calls.append(len(counts)) or widths(counts))
    assert enumeration.enumerate_sums(np.random.default_rng(0).random(2_000)) is None
    assert sum(calls) < 10 * 2_000  # before, this grew with the square of the users


def test_what_no_exact_way_can_settle_is_sampled_if_that_is_surer_and_said_so(monkeypatch):
    sample = sample_of(np.random.default_rng(0).normal(size=60))
    p = exact_p(sample.values[0])[0]
    assert exact(sample, tolerance=1e-30)[1].tolist() == [0]
    assert permutation([sample], tolerance=1e-30, resamples=2000)[0].method[0] == "inversion"
    monkeypatch.setattr(inversion, "tie_chance", lambda ordered, slack, step: 0.1)
    verdict = permutation([sample], resamples=2000)[0]
    assert verdict.method[0] == "monte-carlo"
    assert abs(verdict.p[0] - p) < verdict.error[0]


@pytest.mark.parametrize("worlds", [120, pytest.param(4000, marks=pytest.mark.slow)])
def test_p_is_uniform_under_the_null(worlds):
    from scipy.stats import kstest

    rng = np.random.default_rng(11)
    values = rng.exponential(size=(2, worlds, 60))
    p = [exact_p(a - b)[0] for a, b in zip(*values)]
    assert kstest(p, "uniform").pvalue > 0.01


@pytest.mark.parametrize("worlds", [200, pytest.param(6000, marks=pytest.mark.slow)])
def test_p_is_never_too_often_small_under_a_discrete_null(worlds):
    rng = np.random.default_rng(12)
    d = rng.integers(-1, 2, (worlds, 12)) / 10
    p = np.array([exact_p(row)[0] for row in d])
    for level in (0.01, 0.05, 0.2):
        assert np.mean(p <= level) <= level + 4 * np.sqrt(level / worlds)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=120), st.integers(0, 3))
def test_p_lies_between_the_smallest_possible_and_one(d, digits):
    d = np.round(d, digits + 1)
    p = exact_p(d)[0]
    n = np.count_nonzero(d)
    assert 2.0 ** (1 - max(n, 1)) * (1 - 1e-12) <= p <= 1.0


def test_swapping_the_systems_or_scaling_the_values_changes_nothing():
    d = np.random.default_rng(4).normal(0.1, 1, 500)
    assert exact_p(-d)[0] == pytest.approx(exact_p(d)[0], abs=1e-13)
    assert exact_p(d * 1e-6)[0] == pytest.approx(exact_p(d)[0], abs=1e-12)


@pytest.mark.parametrize(
    ("values", "step"),
    [
        (np.arange(11) / 10, 0.1),
        (np.array([0.0, 0.02, 0.07, 0.5]), 0.01),
        (np.array([1 / 3, 1 / 2, 0.25]), 1 / 12),
        (np.array([0.0, 0.0]), None),
        (1 / np.arange(1.0, 101.0), None),
        (np.random.default_rng(0).random(100), None),
    ],
)
def test_the_common_step_is_found(values, step):
    found = common_step(values)
    assert found == (step if step is None else pytest.approx(step, rel=1e-12))


def test_a_common_step_goes_at_most_two_to_the_20th_times_into_the_largest_value():
    assert common_step(np.array([1.0, 2.0**20])) == 1.0
    assert common_step(np.array([1.0, 2.0**20 + 1])) is None


def test_averages_over_folds_of_a_lattice_are_a_lattice():
    rng = np.random.default_rng(6)
    folds = rng.integers(1, 6, 500)
    values = np.array([rng.integers(0, 11, f).mean() / 10 for f in folds])
    assert common_step(values) == pytest.approx(1 / 600, rel=1e-9)


class TestMonteCarlo:
    def values(self, n=200):
        rng = np.random.default_rng(7)
        values = rng.binomial(10, [[0.3], [0.32], [0.35]], (3, n)) / 10
        first, second = np.triu_indices(3, 1)
        return Sample("m", ("a", "b", "c"), values, first, second)

    def test_it_agrees_with_exact_values(self):
        sample = self.values()
        drawn, truth = monte_carlo([sample], 20_000, 3, True)[0], permutation([sample])[0]
        assert np.all(np.abs(drawn.p - truth.p) <= drawn.error)

    @pytest.mark.parametrize("n", [3000, 400_000])
    def test_few_sizes_are_drawn_by_size_whatever_the_number_of_users(self, n, monkeypatch):
        rng = np.random.default_rng(1)
        d = rng.choice([-0.98, -0.02, 0.0, 1.0], n, p=[0.02, 0.1, 0.86, 0.02])
        monkeypatch.setattr(sys.modules["cranfield.comparisons.permutations.monte_carlo"], "_BLOCK", 0)
        drawn, truth = monte_carlo([sample_of(d)], 20_000, 3, True)[0], permutation([sample_of(d)])[0]
        assert abs(drawn.p - truth.p) <= drawn.error

    def test_signs_of_very_many_users_are_left_out_rather_than_drawn_for_minutes(self):
        d = np.random.default_rng(0).normal(size=500)
        assert monte_carlo([sample_of(d)], 1000, 0, True, most_signs=499_999)[0].error[0] == np.inf
        assert monte_carlo([sample_of(d)], 1000, 0, True, most_signs=500_000)[0].error[0] < 1

    def test_ties_at_the_observed_sum_count(self):
        drawn = monte_carlo([sample_of([0.1, 0.2, 0.3])], 20_000, 0, True)[0]
        assert drawn.p[0] == pytest.approx(0.25, abs=0.015)

    def test_the_block_size_and_the_threads_change_nothing(self, monkeypatch):
        sample = self.values()
        whole = monte_carlo([sample], 3000, 1, True)[0].p
        monkeypatch.setattr(sys.modules["cranfield.comparisons.permutations.monte_carlo"], "_BLOCK", 1 << 14)
        monkeypatch.setattr(settings, "threads", 1)
        assert monte_carlo([sample], 3000, 1, True)[0].p.tolist() == whole.tolist()

    def test_all_metrics_see_the_same_signs(self):
        sample = self.values()
        alone, together = monte_carlo([sample], 2000, 1, True), monte_carlo([sample, sample], 2000, 1, True)
        assert alone[0].p.tolist() == together[0].p.tolist() == together[1].p.tolist()

    def test_users_that_do_not_count_for_a_pair_are_left_out_of_it(self):
        sample = self.values()
        values = sample.values.copy()
        values[2, :50] = np.nan
        holes = Sample("m", sample.systems, values, sample.first, sample.second)
        drawn, truth = monte_carlo([holes], 20_000, 3, True)[0], permutation([holes])[0]
        assert np.all(np.abs(drawn.p - truth.p) <= drawn.error)
        assert truth.p[0] == pytest.approx(permutation([sample])[0].p[0], abs=1e-12)
        assert truth.p[1] == pytest.approx(exact_p((values[0] - values[2])[50:])[0], abs=1e-12)

    def test_the_papers_share_can_be_zero_and_ours_cannot(self):
        d = np.random.default_rng(0).random(100)
        assert permutation([sample_of(d)], method="monte-carlo", resamples=100, plus_one=False)[0].p[0] == 0
        assert permutation([sample_of(d)], method="monte-carlo", resamples=100)[0].p[0] == 1 / 101


def test_by_definition_is_the_definition():
    d = np.array([0.5, -0.2, 0.3])
    signs = np.array(list(itertools.product([-1, 1], repeat=3)))
    assert by_definition(d) == np.mean(np.abs(signs @ d) >= 0.6 - 1e-9)


def test_the_saddlepoint_takes_over_below_1e_11_and_its_bound_covers_p():
    from scipy.stats import binom

    for plus in range(870, 895):
        d = np.concatenate([np.ones(plus), -np.ones(1500 - plus)])
        truth = 2 * binom.sf(plus - 1, 1500, 0.5)
        p, method, error = exact_p(d)
        assert method == ("lattice" if truth >= 1e-11 else "saddlepoint")
        assert p == pytest.approx(truth, rel=0.01)
        assert abs(p - truth) <= error
        assert error == (1e-13 if method == "lattice" else 1e-11)


def test_the_chance_of_a_sum_is_the_same_whatever_was_asked_for_before():
    from cranfield.comparisons.permutations.enumeration import _Sums

    rng = np.random.default_rng(3)
    for counts in (np.ones(8), np.array([3.0, 1.0, 2.0, 1.0])):
        values = np.append(rng.integers(1, 5, len(counts) - 1), 2.0).astype(float)
        signs = np.array(list(itertools.product((-1, 1), repeat=int(counts.sum()))))
        sums = signs @ np.repeat(values, counts.astype(int))
        thresholds = rng.permutation(np.arange(sums.min() - 1, sums.max() + 2, 0.5))
        found = _Sums.of(values, counts)
        for threshold in thresholds:
            assert found.at_least(threshold) == pytest.approx(np.mean(sums >= threshold), abs=1e-12)


def test_the_tail_on_a_lattice_is_that_of_the_binomial_distribution():
    from scipy.stats import binom

    d = np.ones(200)
    d[:30] = -1
    assert tail(d, step=1.0) == pytest.approx(2 * binom.sf(169, 200, 0.5), rel=0.002)


def test_sums_of_many_equal_differences_have_the_spread_of_all_signs():
    sums = enumeration.drawn_sums(np.array([0.5, 2.0]), np.array([10**6, 3]), 1000, stream(0, "example"))
    assert sums.std() == pytest.approx(np.sqrt(0.25 * 10**6 + 12), rel=0.1)


def test_chances_of_many_users_are_binomial():
    from scipy.stats import binom

    k = enumeration._plus_signs(100_001)
    np.testing.assert_allclose(enumeration._chances(100_001), binom.pmf(k, 100_001, 0.5), rtol=1e-11)


def test_the_logarithm_of_a_cosine_near_1_keeps_its_digits():
    assert round(float(1e6 * inversion._log_cosines(np.array([1e-6]))[0][0]), 18) == -5e-07
