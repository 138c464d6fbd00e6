"""The level of the joint test of audits: how often p ≤ α if no system is better.

    python benchmarks/audit_level.py ratings.parquet

There are two nulls that are true by design. *Other users*: the differences of kNN and WRMF in all universes, centred so
that the mean over the users is 0 in each; users are drawn from them with replacement, as many as there are and 300.
*Another seed*: trainings of the same WRMF, in pairs, and five against five drawn from them, with the spread of seeds
added.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from cranfield._settings import settings
from cranfield.audits.grid import Grid, VariedDecision
from cranfield.audits.joint import STATISTICS, Question, SeedSpread, joint_tests
from cranfield.audits.setup_runs import SetupRuns
from cranfield.audits.universes import Computed, compute
from cranfield.experiments import Decisions, Experiment, Source, System
from cranfield.experiments.pipeline import Pipeline
from cranfield.experiments.stages import DATA
from cranfield.store.store import open_store

LEVELS = (0.01, 0.05, 0.10)
MF = "wrmf(factors=50, alpha=1, regularization=0.1, target=rating, binary=false, seed={seed})"
SEEDS = 20
OPENED = 5
VARY = {
    "metrics": ["P", "nDCG(gain=binary)", "AP", "RR"],
    "cutoff": [5, 10, 20, 50],
    "threshold": [3, 4, 5],
    "average": ["mean", "weighted(by=judged)", "geometric(form=adjusted, epsilon=0.01)"],
}


def computed(path: str, systems: dict[str, str], vary: dict[str, list[object]]) -> Computed:
    """Train, rank and measure some systems in all universes."""
    experiment = Experiment(
        data=(Source("ratings", file=str(Path(path).absolute())),),
        systems=tuple(System(name, spelling) for name, spelling in systems.items()),
        decisions=Decisions(split="random(train=0.5)", min_ratings=1),
        audit={"vary": vary},
    )
    with TemporaryDirectory() as folder, open_store(Path(folder)) as store:
        line = Pipeline(experiment, store, (DATA,))
        line.go()
        setup_runs = SetupRuns(line)
        setup_runs.go(lambda: None)
        return compute(setup_runs.enumeration, setup_runs.lists)


def show(name: str, p: NDArray[np.float64]) -> None:
    """Print the share of p-values (replicates × statistics) at or below each level."""
    for level in LEVELS:
        shares = ", ".join(
            f"{statistic} {share:.3f}" for statistic, share in zip(STATISTICS, (p <= level).mean(axis=0))
        )
        print(f"  {name:<34} p ≤ {level:<5} {shares}")


def other_users(path: str, replicates: int, draws: int) -> None:
    """Draw users from centred differences of two different systems."""
    setups = {"split": [f"random(train={share})" for share in (0.2, 0.5, 0.8)], "lists": ["full", "condensed"]}
    terms = computed(path, {"kNN": "knn(k=100)", "MF": MF.format(seed=0)}, {**VARY, **setups}).terms
    population = terms.between(0, 1).astype(np.float64)
    population -= population.mean(axis=1, keepdims=True)
    n = population.shape[1]
    rng = np.random.default_rng(1)
    print(f"other users: {len(population)} universes, {replicates} replicates, {draws} draws")
    scope = Question(np.arange(len(population)), np.full(len(population), 1 / len(population)))
    for users in (n, 300):
        p = []
        for replicate in range(replicates if users == n else 4 * replicates):
            x = population[:, rng.integers(0, n, users)].astype(np.float32)
            test = joint_tests(x, np.full(len(x), users), [scope], draws=draws, seed=replicate)[0]
            p.append([test.p[name] for name in STATISTICS])
        show(f"{users:,} users, {len(p):,} times", np.array(p))


def another_seed(path: str, replicates: int, draws: int) -> None:
    """Compare an algorithm with itself, trained with other seeds."""
    systems = {f"seed {seed}": MF.format(seed=seed) for seed in range(SEEDS)}
    terms = computed(path, systems, VARY).terms
    n_universes = terms.values.shape[1]
    plain = []
    scope = Question(np.arange(n_universes), np.full(n_universes, 1 / n_universes))
    for first, second in combinations(range(SEEDS), 2):
        test = joint_tests(terms.between(first, second), terms.users, [scope], draws=draws)[0]
        plain.append([test.p[name] for name in STATISTICS])
    print(f"another seed: {n_universes} universes, {SEEDS} seeds, {draws} draws")
    show(f"{len(plain)} pairs of seeds, p", np.array(plain))
    universes = VariedDecision("universe", "equivalent", tuple(map(str, range(n_universes))))
    grid = Grid.product([universes, VariedDecision("seed", "chance", tuple(map(str, range(OPENED))))])
    cells = Question(np.arange(grid.n_cells), grid.weights)
    users = np.repeat(terms.users, OPENED)
    rng = np.random.default_rng(2)
    retrained = []
    for _ in range(replicates):
        first, second = np.argsort(rng.random(SEEDS))[: 2 * OPENED].reshape(2, OPENED)
        x = np.stack([terms.between(*pair) for pair in zip(first, second)], axis=1).reshape(grid.n_cells, -1)
        test = joint_tests(x, users, [cells], spread=SeedSpread.of(grid, x, users), draws=draws)[0]
        assert test.retrained is not None
        retrained.append([test.retrained[name] for name in STATISTICS])
    show(f"{OPENED} against {OPENED} seeds, {replicates} draws, p_retrained", np.array(retrained))


def main() -> None:
    """Print all shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ratings", help="a file of ratings")
    parser.add_argument("--replicates", type=int, default=500)
    parser.add_argument("--draws", type=int, default=499)
    parser.add_argument("--only", choices=("users", "seeds"))
    options = parser.parse_args()
    settings.quiet = True
    if options.only != "seeds":
        other_users(options.ratings, options.replicates, options.draws)
    if options.only != "users":
        another_seed(options.ratings, options.replicates, options.draws)


if __name__ == "__main__":
    main()
