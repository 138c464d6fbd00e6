"""All pairs of 21 systems by nine metrics: exact p-values and Monte Carlo, compared with SciPy and ranx.

    python benchmarks/compare.py [--users 6040] [--samples 100000] [--no-monte-carlo] [--no-others]

The values are synthetic: users of different difficulty, systems of different skill that agree on which users are easy,
and as many zeros as in real lists. The others are timed on two pairs and scaled to all of them. Clock seconds and
processor seconds, over all threads, are printed; on a busy machine the latter tell more.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections import Counter

import numpy as np

from cranfield._settings import settings
from cranfield.comparisons import compare
from cranfield.measures.scores import Scores
from cranfield.tables import Vocabulary

METRICS = ("P@10", "P@100", "Recall@100", "F1@100", "AP@100", "nDCG@100", "RR@100", "ERR@100", "bpref@100")


def synthetic(n_users: int, n_systems: int = 21, seed: int = 0) -> Scores:
    """Return hits at random ranks of lists of 100, and their values by nine metrics."""
    rng = np.random.default_rng(seed)
    relevant = 1 + rng.geometric(0.05, n_users)
    ease = rng.beta(1.2, 6, n_users)
    discounts, ranks = 1 / np.log2(np.arange(2, 102)), np.arange(1, 101)
    values = np.zeros((n_systems, len(METRICS), n_users))
    for s in range(n_systems):
        skill = 0.3 + 0.7 * (s // 2) / (n_systems // 2) + 0.01 * (s % 2)
        chance = skill * ease[:, None] * 1.6 / ranks**0.45
        hits = rng.random((n_users, 100)) < np.minimum(chance, 0.9)
        hits &= np.cumsum(hits, axis=1) <= relevant[:, None]
        hits_so_far, at = np.cumsum(hits, axis=1), np.where(hits.any(axis=1), hits.argmax(axis=1) + 1, 0)
        precision, recall = hits.mean(axis=1), hits.sum(axis=1) / relevant
        ideal = np.cumsum(discounts)[np.minimum(relevant, 100) - 1]
        values[s] = [
            hits[:, :10].mean(axis=1),
            precision,
            recall,
            2 * precision * recall / np.maximum(precision + recall, 1e-300),
            (hits * hits_so_far / ranks).sum(axis=1) / relevant,
            (hits * discounts).sum(axis=1) / ideal,
            np.where(at > 0, 1 / np.maximum(at, 1), 0.0),
            1 - np.exp(-(hits / ranks).sum(axis=1)),
            (hits * (1 - np.minimum(ranks - hits_so_far, relevant[:, None]) / relevant[:, None])).sum(axis=1)
            / relevant,
        ]
    ones = np.ones(n_users, dtype=np.int64)
    names = tuple(f"system {s:02}" for s in range(n_systems))
    users = np.arange(n_users, dtype=np.int32)
    covered = np.ones((n_systems, n_users), dtype=bool)
    return Scores(names, METRICS, values, covered, users, Vocabulary.of(users), ones, relevant, (False,) * len(METRICS))


def timed(work):
    """Return the clock and processor seconds, and the result."""
    start, busy = time.perf_counter(), time.process_time()
    result = work()
    return (time.perf_counter() - start, time.process_time() - busy), result


def scipy_seconds(scores: Scores, samples: int, pairs: int):
    """Time SciPy, 500 samples at a time to fit in memory."""
    from scipy.stats import permutation_test

    def mean_difference(x, y, axis):
        return (x - y).mean(axis=axis)

    def one(pair: int) -> None:
        data = (scores.values[pair, 5], scores.values[pair + 1, 5])
        permutation_test(
            data, mean_difference, permutation_type="samples", n_resamples=samples, vectorized=True, batch=500
        )

    return timed(lambda: [one(pair) for pair in range(pairs)])[0]


def ranx_seconds(scores: Scores, samples: int, pairs: int):
    from ranx.statistical_tests.fisher_randomization_test import fisher_randomization_test

    def one(pair: int) -> None:
        fisher_randomization_test(scores.values[pair, 5], scores.values[pair + 1, 5], n_permutations=samples)

    one(0)  # compile
    return timed(lambda: [one(pair) for pair in range(pairs)])[0]


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=6040)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--no-monte-carlo", action="store_true")
    parser.add_argument("--no-others", action="store_true")
    options = parser.parse_args()
    import scipy.stats  # noqa: F401  (its import is not what is timed)

    worlds = {users: synthetic(users) for users in (options.users // 2, options.users, 33_388)}
    print(f"21 systems, 9 metrics, 210 pairs, {settings.workers} threads")
    rows, exact = [], {}
    for users in (options.users // 2, options.users, 33_388):
        seconds, exact[users] = timed(lambda users=users: compare(worlds[users], correction="none"))
        rows.append(("cranfield, exact", users, seconds))
        frame = exact[users].rows
        ways = ", ".join(f"{way} {count}" for way, count in Counter(frame["method"]).most_common())
        print(f"  {users:,} users: {ways}; largest error {frame['error_bound'].max():.1e}; {megabytes():.0f} MB")
    scores = worlds[options.users]
    if not options.no_monte_carlo:
        sampling = {"method": "monte-carlo", "resamples": options.samples, "correction": "none"}
        seconds, drawn = timed(lambda: compare(scores, **sampling))
        rows.append((f"cranfield, Monte Carlo {options.samples:,}", options.users, seconds))
        p, sampled = exact[options.users].rows["p"].to_numpy(), drawn.rows["p"].to_numpy()
        deviations = np.abs(sampled - p) / np.sqrt(np.maximum(p * (1 - p), 1e-4) / options.samples)
        print(f"  Monte Carlo is off by at most {deviations.max():.1f} standard errors; {megabytes():.0f} MB")
    if not options.no_others:
        few = min(options.samples, 2000)
        scale = options.samples / few * 210 * 9 / 2
        for name, seconds_of in (("scipy.stats.permutation_test", scipy_seconds), ("ranx Fisher", ranx_seconds)):
            clock, busy = seconds_of(scores, few, 2)
            rows.append((f"{name} {options.samples:,}, scaled", options.users, (clock * scale, busy * scale)))
    ours = next(seconds[0] for _, users, seconds in rows if users == options.users)
    print(f"\n{'':55}{'users':>8}{'seconds':>12}{'processor':>12}{'to exact':>12}")
    for name, users, (clock, busy) in rows:
        ratio = f"{clock / ours:11,.1f}×" if users == options.users else ""
        print(f"{name:55}{users:8,}{clock:12,.2f}{busy:12,.2f}{ratio:>12}")


if __name__ == "__main__":
    main()
