"""How long it takes to find out which metric can be trusted, compared with pytrec_eval for as many evaluations.

    python benchmarks/assess.py             # MovieLens 1M's size: one scenario, then all five
    python benchmarks/assess.py --quick     # a tenth of the sizes
    python benchmarks/assess.py --large     # BeerAdvocate's size, one scenario: 33,388 users, 314,000 ratings
    python benchmarks/assess.py --threads 1

21 systems, 9 metrics @100, 20 sizes x 50 samples per random scenario: 21,000 evaluations of a run. The lists and test
ratings are simulated, with the sizes and the share of judged items of the real data.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import cranfield as cf
from cranfield._settings import settings
from cranfield.assessments import SCENARIOS, assess
from cranfield.assessments.scenarios import SIZES
from cranfield.rankings.run import Run
from cranfield.tables import Vocabulary

SYSTEMS, DEPTH = 21, 100
SHAPES = {"MovieLens 1M": (6_040, 3_706, 200_000), "BeerAdvocate": (33_388, 37_000, 314_000)}
PYTREC = {"P.100", "recall.100", "set_F", "map_cut.100", "ndcg_cut.100", "recip_rank", "bpref", "infAP"}


def world(users: int, items: int, ratings: int, seed: int = 0) -> tuple[list[Run], cf.Ratings]:
    """Draw test ratings of popular items, and lists that hold a tenth to a half of them, more for better systems."""
    rng = np.random.default_rng(seed)
    share = rng.lognormal(0.0, 1.0, users)
    profile = np.clip(np.round(share / share.sum() * ratings), 1, items // 4).astype(np.int64)
    popularity = 1.0 / np.arange(10, items + 10)
    edges = np.cumsum(popularity) / popularity.sum()
    rated = [rng.permutation(np.unique(np.searchsorted(edges, rng.random(n + n // 4))))[:n] for n in profile]
    codes = np.repeat(np.arange(users), [len(items_of_user) for items_of_user in rated])
    test = cf.Ratings.of(codes, np.concatenate(rated), rng.integers(1, 6, len(codes)))
    first = np.full((users, DEPTH // 2), -1, dtype=np.int32)
    for user, own in enumerate(rated):
        first[user, : len(own)] = own[: DEPTH // 2]
    user_ids, item_ids = Vocabulary.of(np.arange(users)), Vocabulary.of(np.arange(items))
    indptr = np.arange(users + 1, dtype=np.int64) * DEPTH
    runs = []
    for system in range(SYSTEMS):
        lists = np.concatenate([_lists(part, 0.1 + 0.02 * system, items, rng) for part in np.array_split(first, 32)])
        runs.append(Run(f"system{system}", user_ids, item_ids, np.arange(users, dtype=np.int32), indptr, lists.ravel()))
    return runs, test


def _lists(own: np.ndarray, share: float, items: int, rng: np.random.Generator) -> np.ndarray:
    """Make lists of some of the users' own items, ranked a little higher, and of other items at regular intervals."""
    hits = np.where(rng.random(own.shape) < share, own, -1)
    others = (rng.integers(0, items, (len(own), 1)) + (items // (2 * DEPTH)) * np.arange(2 * DEPTH)) % items
    twice = np.zeros(others.shape, dtype=bool)
    for column in hits.T:
        twice |= others == column[:, None]
    pool = np.concatenate([hits, others], axis=1)
    key = rng.random(pool.shape) - 0.3 * (np.arange(pool.shape[1]) < hits.shape[1])
    key[np.concatenate([hits < 0, twice], axis=1)] = np.inf
    return np.take_along_axis(pool, np.argsort(key, axis=1)[:, :DEPTH], axis=1).astype(np.int32)


def pytrec_seconds(runs: list[Run], test: cf.Ratings, repeats: int = 3) -> float:
    """Return how long pytrec_eval takes for one evaluation of a run, without making its dictionaries."""
    import pytrec_eval

    qrels: dict[str, dict[str, int]] = {}
    for user, item, rating in test.frame().rows():
        qrels.setdefault(str(user), {})[str(item)] = int(rating)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, PYTREC, relevance_level=4)
    best = float("inf")
    for run in runs[:repeats]:
        lists: dict[str, dict[str, float]] = {}
        for user, item, rank in run.frame().select("user", "item", "rank").rows():
            lists.setdefault(str(user), {})[str(item)] = float(-rank)
        start = time.perf_counter()
        evaluator.evaluate(lists)
        best = min(best, time.perf_counter() - start)
    return best


def timed(
    what: str, runs: list[Run], test: cf.Ratings, scenarios: list[str], sizes: tuple[float, ...], n: int
) -> float:
    start, used = time.perf_counter(), time.process_time()
    assessment = assess(runs, test, threshold=4, scenarios=scenarios, sizes=sizes, samples=n, significance="student")
    seconds, used = time.perf_counter() - start, time.process_time() - used
    sets = assessment.frame("samples").select("scenario", "size", "sample").n_unique()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{what:22} {sets:6,} test sets {sets * SYSTEMS:8,} evaluations {seconds:7.1f} s ({used:.1f} s of processor)"
        f"   {memory:.2f} GiB",
        flush=True,
    )
    return seconds / (sets * SYSTEMS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    settings.threads, settings.quiet = arguments.threads, True
    name = "BeerAdvocate" if arguments.large else "MovieLens 1M"
    runs, test = world(*SHAPES[name])
    sizes, samples = (SIZES["fives"][::5], 10) if arguments.quick else (SIZES["fives"], 50)
    print(f"{name}'s size: {len(test):,} test ratings, {SYSTEMS} systems, lists of {DEPTH}; {settings.workers} threads")
    assess(runs[:2], test, threshold=4, scenarios="ratings", sizes=[1.0], significance="student")  # compiles, only once
    each = timed("one scenario (ratings)", runs, test, ["ratings"], sizes, samples)
    if not arguments.large:
        timed("all five scenarios", runs, test, list(SCENARIOS), sizes, samples)
    theirs = pytrec_seconds(runs, test)
    print(f"one evaluation: {each * 1e3:.2f} ms; pytrec_eval {theirs * 1e3:.0f} ms, {theirs / each:,.0f} times as long")


if __name__ == "__main__":
    main()
