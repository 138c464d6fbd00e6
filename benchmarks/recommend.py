"""Training and the 100 best items for all users of MovieLens 1M (80/20), per system, next to implicit and LensKit.

    python benchmarks/recommend.py [--systems NAME ...] [--large] [--threads N]

Each system runs in a separate process, so that its peak memory is its own. Compiled loops are warmed up on a small
world first, because numba caches what it compiles. ``--large`` uses a simulated catalogue of BeerAdvocate's size
instead: 33,388 users, 66,055 items and 1.5 million ratings. Without MovieLens (see benchmarks/published.py) a simulated
world of its size is used. Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

from cranfield import CranfieldError
from cranfield._settings import settings
from cranfield.data import Ratings
from cranfield.measures.measuring import measure
from cranfield.rankings import Ranking, rank
from cranfield.rankings.reading import read_run
from cranfield.rankings.recommending import recommend
from cranfield.rankings.run import Run
from cranfield.rankings.top import TieOrder, top
from cranfield.recommenders import SYSTEMS, as_recommender, work
from cranfield.splits import Split, random
from cranfield.tables import Vocabulary

PAPER = (
    *("random", "popularity", "chi2", "kld", "rsv", "rw", "rm1", "rm2", "lm-wsr-ub", "lm-wsr-ib", "nncosngbr-ub"),
    *("nncosngbr-ib", "slim", "ht", "svd", "puresvd", "bprmf", "wrmf", "lda", "plsa", "uir"),
)

# Our systems and the same methods elsewhere, with the same settings. Only compare times: implicit's ALS takes ratings
# as confidences, its BPR runs on all threads and is not reproducible, and LensKit's neighbourhoods are normalised.
PEERS = (
    ("wrmf", "implicit als"),
    ("bprmf(sampling=rating)", "implicit bpr"),
    ("itemknn", "implicit bm25"),
    ("wrmf", "lenskit als"),
    ("itemknn(weighting=cosine)", "lenskit item knn"),
    ("knn", "lenskit user knn"),
    ("ease", "lenskit ease"),
    ("slim", "lenskit slim"),
)


def installed(peer: str) -> bool:
    return importlib.util.find_spec(peer.split()[0]) is not None


def implicit_model(peer: str, own: Any) -> Any:
    from implicit.als import AlternatingLeastSquares
    from implicit.bpr import BayesianPersonalizedRanking
    from implicit.nearest_neighbours import BM25Recommender

    if peer == "implicit als":
        return AlternatingLeastSquares(
            factors=own.factors, iterations=own.iterations, regularization=own.regularization, random_state=0,
            num_threads=settings.workers,
        )  # fmt: skip
    if peer == "implicit bpr":
        return BayesianPersonalizedRanking(
            factors=own.factors, iterations=own.epochs, learning_rate=own.rate, regularization=own.positive,
            random_state=0, num_threads=settings.workers,
        )  # fmt: skip
    return BM25Recommender(K=own.k, K1=own.k1, B=own.b, num_threads=settings.workers)


def lenskit_scorer(peer: str, own: Any) -> Any:
    from lenskit.als import ImplicitMFScorer
    from lenskit.knn import EASEScorer, ItemKNNScorer, SLIMScorer, UserKNNScorer

    if peer == "lenskit als":
        return ImplicitMFScorer(
            embedding_size=own.factors, epochs=own.iterations, regularization=own.regularization, weight=own.alpha
        )
    if peer == "lenskit item knn":
        return ItemKNNScorer(max_nbrs=own.k, save_nbrs=own.k, feedback="implicit")
    if peer == "lenskit user knn":
        return UserKNNScorer(max_nbrs=own.k, feedback="implicit")
    if peer == "lenskit ease":
        return EASEScorer(regularization=own.l2)
    return SLIMScorer(l1_reg=own.l1, l2_reg=own.l2, max_nbrs=own.neighbours)


def large_world() -> Ratings:
    """Ratings of BeerAdvocate's size: the most active user has about 2,000, the most popular item about 3,000."""
    draw = np.random.default_rng(0)
    users, items, count = 33_388, 66_055, 1_500_000
    activity, popularity = draw.lognormal(0, 1.2, users), draw.lognormal(0, 1.5, items)
    user = draw.choice(users, int(count * 1.3), p=activity / activity.sum())
    item = draw.choice(items, int(count * 1.3), p=popularity / popularity.sum())
    cells = np.unique(user.astype(np.int64) * items + item)
    cells = cells[np.argsort(draw.random(len(cells)), kind="stable")[:count]]
    pairs = np.divmod(np.sort(cells), items)
    ids = Vocabulary.of(range(users)), Vocabulary.of(range(items))
    values = draw.integers(1, 6, len(cells)).astype(float)
    return Ratings.from_codes(*ids, *(codes.astype(np.int32) for codes in pairs), values)


def world(large: bool) -> Split:
    if large:
        return random(large_world(), train=0.8, seed=0)
    try:
        from published import movielens

        return random(movielens()[0], train=0.8, seed=0)
    except FileNotFoundError:
        draw = np.random.default_rng(1)
        taste = np.outer(draw.normal(size=6040), draw.normal(size=3706)) + draw.normal(-3, 1.5, 3706)
        user, item = np.nonzero(draw.random(taste.shape) < 1 / (1 + np.exp(-taste)))
        return random(Ratings.of(user, item, draw.integers(1, 6, len(user)).astype(float)), train=0.8, seed=0)


def warm_up(name: str) -> None:
    """Load the compiled code, on a small world."""
    draw = np.random.default_rng(0).integers(0, 9, (2, 60))
    cells = np.unique(draw[0] * 9 + draw[1])
    worth, work._WORTH_COMPILING = work._WORTH_COMPILING, 0
    recommend(Ratings.of(cells // 9, cells % 9, np.ones(len(cells))), name, 5)
    work._WORTH_COMPILING = worth


def trained_and_ranked(name: str, split: Split) -> tuple[float, float, Run]:
    """Return the seconds that training and ranking took, and the run."""
    own = {peer: ours for ours, peer in PEERS}.get(name)
    if name.startswith("lenskit"):
        return with_lenskit(lenskit_scorer(name, as_recommender(own)), split)
    if own is None:
        warm_up(name)
    system = as_recommender(name if own is None else implicit_model(name, as_recommender(own)))
    start = time.perf_counter()
    system.fit(split.train)
    fitted = time.perf_counter()
    run = rank(system, split, ranking=Ranking(length=100), name=name)
    return fitted - start, time.perf_counter() - fitted, run


def with_lenskit(scorer: Any, split: Split) -> tuple[float, float, Run]:
    from lenskit.batch import recommend as in_batch
    from lenskit.data import from_interactions_df
    from lenskit.pipeline import topn_pipeline

    train = split.train.frame().select("user", "item", "rating").to_pandas()
    data = from_interactions_df(train, user_col="user", item_col="item", rating_col="rating")
    pipeline = topn_pipeline(scorer, length=100)
    start = time.perf_counter()
    pipeline.train(data)
    fitted = time.perf_counter()
    lists = in_batch(pipeline, split.train.user_ids.ids(np.arange(split.train.n_users)).to_list(), length=100)
    end = time.perf_counter()
    ranked = lists.to_df()[["user_id", "item_id", "score"]].dropna()
    return fitted - start, end - fitted, read_run(ranked, user="user_id", item="item_id")


def one_system(name: str, large: bool) -> dict[str, Any]:
    """Train, rank and measure one system in this process."""
    split = world(large)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fit, rank, run = trained_and_ranked(name, split)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    value = measure([run], split.test, ["nDCG@100"], threshold=4).average()[0, 0]
    return {
        "fit": fit,
        "rank": rank,
        "total": fit + rank,
        "peak": peak / 2**20,
        "own": (peak - before) / 2**20,
        "ndcg": float(value),
    }


def extraction() -> float:
    """Return the seconds to extract the 100 best of 6,040 × 3,706 scores, in blocks, on one thread."""
    order = TieOrder(Vocabulary.of(range(3706)))
    scores = np.random.default_rng(0).random((6040, 3706))
    top(scores[:1024], 100, order)  # loads the compiled code
    start = time.perf_counter()
    for first in range(0, 6040, 1024):
        top(scores[first : first + 1024], 100, order)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", nargs="*", help="spellings; every system and implicit's unless given")
    parser.add_argument("--large", action="store_true", help="a simulated catalogue of 33,388 users and 66,055 items")
    parser.add_argument("--threads", type=int, help="threads to use")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    settings.threads, settings.quiet = arguments.threads, True
    if arguments.child:
        try:
            print(json.dumps(one_system(arguments.child, arguments.large)))
        except CranfieldError as error:
            print(json.dumps({"error": str(error)}))
        return
    print(f"the 100 best of 6,040 × 3,706 scores, one thread: {extraction():.2f} s")
    names = arguments.systems or [*dict.fromkeys([*SYSTEMS, *(system for pair in PEERS for system in pair)])]
    names = [name for name in names if name not in dict(PEERS).values() or installed(name)]
    print(f"{'system':<26}{'fit s':>9}{'rank s':>9}{'total s':>9}{'peak GiB':>10}{'its own':>10}{'nDCG@100':>10}")
    results: dict[str, dict[str, Any]] = {}
    for name in names:
        command = [sys.executable, __file__, "--child", name]
        command += ["--large"] * arguments.large + (["--threads", str(arguments.threads)] if arguments.threads else [])
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{name:<26} failed: {done.stderr.strip().splitlines()[-1:]}")
            continue
        result = json.loads(done.stdout.strip().splitlines()[-1])
        if "error" in result:
            print(f"{name:<26} {result['error']}", flush=True)
            continue
        results[name] = result
        print(
            f"{name:<26}{result['fit']:>9.1f}{result['rank']:>9.1f}{result['total']:>9.1f}"
            f"{result['peak']:>10.2f}{result['own']:>10.2f}{result['ndcg']:>10.4f}",
            flush=True,
        )
    for ours, peer in PEERS:
        if peer in results and ours in results:
            ratio = results[ours]["fit"] / results[peer]["fit"]
            whole = results[ours]["total"] / results[peer]["total"]
            print(f"{ours} / {peer}: fit × {ratio:.2f}, fit and rank × {whole:.2f}")
    if set(PAPER) <= set(results):
        print(f"the 21 systems of the paper, fit and rank: {sum(results[name]['total'] for name in PAPER):.0f} s")


if __name__ == "__main__":
    main()
