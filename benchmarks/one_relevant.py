"""One-relevant designs: ranks by counting, against a plain loop that makes every list.

python benchmarks/one_relevant.py ml-1m.parquet
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import cranfield as cf
from cranfield.rankings import Ranking
from cranfield.rankings.decisions import EVERYONE
from cranfield.rankings.ranker import Ranker
from cranfield.rankings.top import TieOrder

THRESHOLD, TARGETS, SYSTEMS = 5, 1_000, 5


def made_lists(ranker: Ranker, scores, users) -> list[int]:
    """Return the rank of each relevant item, from a list that is made and sorted for it."""
    ranks = []
    test, place = ranker.targets.test, TieOrder(ranker.targets.train.item_ids).place
    for row, user in enumerate(users):
        pool = np.flatnonzero(ranker.targets.pool(np.array([user], dtype=np.int32))[0])
        own = slice(test.indptr[user], test.indptr[user + 1])
        for item in test.items[own][test.values[own] >= THRESHOLD]:
            items = np.append(pool, item)
            order = np.lexsort((place[items], -scores[row, items]))
            ranks.append(int(np.flatnonzero(items[order] == item)[0]) + 1)
    return ranks


def main() -> None:
    """Print the processor seconds of both, after scoring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ratings", help="the ratings, such as ml-1m.parquet")
    parser.add_argument("--loop-users", type=int, default=300, help="how many users the plain loop serves")
    arguments = parser.parse_args()
    cf.settings.quiet = True
    split = cf.splits.random(cf.read(arguments.ratings), train=0.8, seed=0)
    draws = np.random.default_rng(0)
    ranking = Ranking(relevant="one", candidates="test", nonrelevant=TARGETS - 1, threshold=THRESHOLD, length="all")
    start = time.process_time()
    ranker = Ranker.of(split, EVERYONE, ranking, 0)
    drawing = time.process_time() - start
    counting = looping = 0.0
    lists = looped = 0
    for _ in range(SYSTEMS):
        for first in range(0, len(ranker.users), 500):
            users = ranker.users[first : first + 500]
            scores = draws.random((len(users), split.train.n_items))
            start = time.process_time()
            ranks = ranker.columns(users, scores.copy())[2]
            counting += time.process_time() - start
            lists += len(ranks)
            if first == 0:
                start = time.process_time()
                by_hand = made_lists(ranker, scores, users[: arguments.loop_users])
                looping += time.process_time() - start
                looped += len(by_hand)
                assert by_hand == ranks[: len(by_hand)].tolist()
    print(f"{lists // SYSTEMS:,} lists of {TARGETS:,} items for each of {SYSTEMS} systems, processor seconds")
    print(f"counted: {drawing:.2f} for the draw and {counting:.2f} for all ranks")
    print(f"made one by one: {looping / looped * lists:.0f} (extrapolated from {looped:,} lists, the same ranks)")


if __name__ == "__main__":
    main()
