"""How long the answers of an audit take, once the universes are computed.

    python benchmarks/audit.py              # 2,016 universes, 6,040 users, 10,000 draws, 200 resamples
    python benchmarks/audit.py --large      # 33,388 users
    python benchmarks/audit.py --quick      # a tenth of the users and draws
    python benchmarks/audit.py --threads 1

The terms are random, alike from one universe to the next as those of real universes are.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

from cranfield._settings import settings
from cranfield.audits import Audit, Grid, Opened, Terms
from cranfield.audits.joint import Scope, joint_tests
from cranfield.audits.leads import leads_of
from cranfield.audits.pair import influence_rows
from cranfield.audits.resampling import resampled, user_counts
from cranfield.audits.rule import rule_of

# What the project asks of two cores, in seconds.
BARS = {"joint test": 5.0, "influence": 5.0}


def grid() -> Grid:
    """Return 2,016 cells: nine train shares, seven metrics, and so on."""
    return Grid.product(
        [
            Opened("split", "question", tuple(f"random(train=0.{share})" for share in range(1, 10))),
            Opened("metric", "equivalent", ("P", "R", "AP", "RR", "nDCG", "nDCG(gain=exp)", "RBP")),
            Opened("cutoff", "equivalent", ("5", "10", "20", "50")),
            Opened("average", "equivalent", ("mean", "weighted")),
            Opened("coverage", "equivalent", ("full", "reduced")),
            Opened("threshold", "equivalent", ("3", "4")),
        ]
    )


def random_terms(cells: Grid, users: int, seed: int = 0) -> Terms:
    """Draw terms of two systems in which the train share turns the winner round."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((4, users), dtype=np.float32)
    loadings = 0.3 * rng.standard_normal((cells.n_cells, 4), dtype=np.float32)
    loadings[:, 0] += 1
    x = loadings @ shared
    x += 0.5 * rng.standard_normal(x.shape, dtype=np.float32)
    x += 0.02 * (cells.cells[:, [0]] - 3).astype(np.float32)
    return Terms(np.stack([x, np.zeros_like(x)]))


def timed(name: str, work: Callable[[], object]) -> None:
    """Print how long some work takes, on the clock and on the processors."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    bar = f"   (bar {BARS[name]:g} s)" if name in BARS else ""
    print(f"  {name:<28}{wall:8.2f} s {processor:8.2f} s of processor time{bar}")


def answers(users: int, draws: int, resamples: int) -> None:
    """Time the parts, then all of it."""
    cells = grid()
    terms = random_terms(cells, users)
    averages = terms.values.mean(axis=2, dtype=np.float64)
    print(f"{cells.n_universes:,} universes, {users:,} users, {draws:,} draws, {resamples} resamples")
    x = terms.between(0, 1)
    leads = leads_of(x, terms, averages, np.zeros(cells.n_universes, dtype=bool))
    scopes = [Scope(np.arange(cells.n_universes), cells.weights)]

    def influence() -> None:
        influence_rows(cells, leads, resampled(x, terms, user_counts(users, resamples)))

    timed("joint test", lambda: joint_tests(x, terms.users, scopes, draws=draws))
    timed("influence", influence)
    timed("rule", lambda: rule_of(cells, leads.lead[cells.universe]))
    timed("all answers of a pair", lambda: Audit.of(cells, "ab", averages, terms, draws=draws, resamples=resamples))
    print(f"  largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the users and draws")
    parser.add_argument("--large", action="store_true", help="33,388 users")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    settings.threads = options.threads
    users = 33_388 if options.large else 6_040
    if options.quick:
        answers(users // 10, 1_000, 50)
    else:
        answers(users, 10_000, 200)


if __name__ == "__main__":
    main()
