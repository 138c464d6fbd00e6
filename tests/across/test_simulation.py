"""Level and coverage by simulation: the table of docs/across.md, and how true the chance of the order is."""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from cranfield.across.pooling import pooled
from cranfield.comparisons import holm

PAGE = Path(__file__).parents[2] / "docs" / "across.md"
CASES = [(3, 0.0), (3, 0.1), (3, 0.3), (5, 0.0), (5, 0.1), (5, 0.3), (8, 0.1), (15, 0.1), (15, 0.3), (30, 0.3)]


def simulated(k, tau, runs, seed=0, mean=0.0):
    """Return effects and users' errors: logarithms of ratios, s = 1/√n for 200 to 20,000 users."""
    draws = np.random.default_rng([seed, k, int(1000 * tau)])
    errors = 1 / np.sqrt(np.exp(draws.uniform(np.log(200), np.log(20_000), (runs, k))))
    true = draws.normal(mean, tau, (runs, k)) if tau else np.full((runs, k), mean)
    return draws.normal(true, errors), errors


def row_of(k, tau, runs=10_000):
    """Return a row of the table: coverage, level of three tests, and power, as shares of the runs."""
    pools = pooled(*simulated(k, tau, runs, 1, mean=0.1))
    new = np.random.default_rng(2).normal(0.1, tau, runs) if tau else np.full(runs, 0.1)
    covers_new = np.nan if k < 4 else ((pools.new_lower <= new) & (new <= pools.new_upper)).mean()
    y, errors = simulated(k, tau, runs, 3)
    weights = errors**-2
    pooled_z = (weights * y).sum(axis=1) / np.sqrt(weights.sum(axis=1))
    wins = np.maximum((y / errors > 1.96).sum(axis=1), (y / errors < -1.96).sum(axis=1))
    return (
        ((pools.lower <= 0.1) & (pools.upper >= 0.1)).mean(),
        covers_new,
        (pooled(y, errors).p < 0.05).mean(),
        (np.abs(pooled_z) > 1.96).mean(),
        (wins > k / 2).mean(),
        (pools.p < 0.05).mean(),
    )


@pytest.mark.parametrize(("k", "tau"), [(3, 0.1), (5, 0.0), (5, 0.1)])
def test_of_true_nulls_at_most_one_in_twenty_is_rejected(k, tau):
    assert (pooled(*simulated(k, tau, 4000)).p < 0.05).mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)


@pytest.mark.slow
def test_the_table_of_the_page_is_what_the_simulation_gives():
    lines = re.findall(r"^\| (\d+) \| (0|0\.\d+) \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.M)
    printed = {(int(k), float(tau)): [part.strip() for part in rest.split("|")] for k, tau, rest in lines}
    assert list(printed) == CASES
    for case, cells in printed.items():
        for cell, share in zip(cells, row_of(*case)):
            assert np.isnan(share) if cell == "–" else float(cell) == pytest.approx(share, abs=0.0051), case


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 5, 15])
def test_holm_keeps_the_chance_of_any_false_finding_among_five_systems(k):
    draws = np.random.default_rng(k)
    runs, m, tau = 2000, 5, 0.1
    systems = draws.normal(0, tau / np.sqrt(2), (runs, m, k))
    errors = 1 / np.sqrt(np.exp(draws.uniform(np.log(200), np.log(20_000), (runs, k))))
    measured = systems + draws.normal(0, errors[:, None] / np.sqrt(2), (runs, m, k))
    pairs = list(combinations(range(m), 2))
    wrong = 0
    for values, own in zip(measured, errors):
        y = np.array([values[a] - values[b] for a, b in pairs])
        wrong += (holm(pooled(y, np.tile(own, (len(pairs), 1))).p) < 0.05).any()
    assert wrong / runs <= 0.06


@pytest.mark.slow
def test_the_chance_that_the_order_holds_is_true_in_the_top_group():
    draws = np.random.default_rng(4)
    said, true = [], []
    for tau in (0.05, 0.1, 0.2, 0.4):
        mean = draws.normal(0, 0.15, (5000, 1))
        errors = 1 / np.sqrt(np.exp(draws.uniform(np.log(200), np.log(20_000), (5000, 5))))
        pools = pooled(draws.normal(draws.normal(mean, tau, (5000, 5)), errors), errors)
        said.append(pools.chance)
        true.append(np.sign(draws.normal(mean[:, 0], tau)) == np.sign(pools.mean))
    said, true = np.concatenate(said), np.concatenate(true)
    top = said > 0.8
    assert true[top].mean() == pytest.approx(said[top].mean(), abs=0.05)


@pytest.mark.slow
def test_skewed_effects_are_covered_less_often():
    draws = np.random.default_rng(5)
    y = draws.exponential(0.3, (10_000, 5))
    pools = pooled(y, np.full(y.shape, 0.02))
    assert 0.86 < ((pools.lower <= 0.3) & (pools.upper >= 0.3)).mean() < 0.92


if __name__ == "__main__":
    for case in CASES:
        cells = ["–" if np.isnan(share) else f"{share:.2f}" for share in row_of(*case)]
        print(f"| {case[0]} | {case[1]:g} | {' | '.join(cells)} |")
