"""Next-basket recommendation on Ta-Feng: our values next to the reference values, and the seconds that they took.

    python benchmarks/baskets.py [tafeng-baskets.parquet]

Looks for the file in the folder named by CRANFIELD_DATA, or in ../shared/data next to the checkout. Its columns are
user, basket (numbered in order) and item. Each user's last basket is the test part. Metrics are computed here from the
scores, by their definitions: binary gain, the ideal list cut at 10, means over users with relevant items. ``ties`` is
the order of equal scores: ids as text, descending, as everywhere, or ids as numbers, as in some reference values.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import cranfield as cf
from cranfield.rankings.top import TieOrder
from cranfield.recommenders import blocks, largest, recommender

METRICS = ("Recall", "nDCG", "Hit", "RepeatShare", "Recall.repeated", "Recall.new")
# Repeats, whether seen items may be listed, system, order of ties, and the reference values.
REFERENCES: list[tuple[str, bool, str, str, tuple[float, ...]]] = [
    ("allow", True, "topfreq(scope=global)", "text", (0.080346, 0.087497, 0.248882, 0.108558, 0.126795, 0.057326)),
    ("allow", True, "topfreq(ties=id_ascending)", "text", (0.118233, 0.112233, 0.389089, 1, 0.599842, 0)),
    ("allow", True, "topfreq(ties=popularity)", "text", (0.121720, 0.118184, 0.399769, 1, 0.622766, 0)),
    ("allow", True, "tifu-knn", "text", (0.130004, 0.112068, 0.401645, 0.926151, 0.582819, 0.018104)),
    ("exclude", False, "topfreq(scope=global)", "text", (0.058480, 0.061537, 0.177514)),
    ("exclude", False, "itemknn-decay(step=1)", "ascending", (0.065063, 0.052288, 0.188171)),
    ("only", True, "topfreq(scope=global, ties=id_ascending)", "text", (0.551335, 0.352030, 0.705193)),
    ("allow", False, "topfreq(scope=global)", "text", (0.049107, 0.054423, 0.168278)),
    ("allow", True, "topfreq(ties=id)", "text", (0.108631,)),
    ("allow", True, "topfreq(ties=id)", "descending", (0.099849,)),
    ("allow", True, "topfreq(ties=recent)", "ascending", (0.114261,)),
    ("allow", True, "topfreq(ties=recent)", "text", ()),
    ("allow", True, "topfreq(scope=both, ties=id)", "descending", (0.113201,)),
    ("allow", True, "topfreq(scope=both, ties=popularity)", "text", (0.135073,)),
    ("allow", True, "sknn", "text", ()),
    ("allow", True, "vsknn", "text", ()),
]


def values(split: Any, spelling: str, repeats: str, keep_seen: bool, ties: str) -> tuple[np.ndarray, int]:
    """Return the metrics at 10 of a system, and the number of users."""
    train, test = split.train, split.test
    model, n_items = recommender(spelling).fit(train), train.n_items
    ascending = np.arange(n_items)
    order = {"text": TieOrder(train.item_ids).items, "ascending": ascending, "descending": ascending[::-1]}[ties]
    discounts = 1 / np.log2(np.arange(2, 12))
    ideals = np.append(0, np.cumsum(discounts))
    by_block = []
    for block in blocks(train.n_users, n_items):
        users = np.arange(block.start, block.stop)
        scores, rows = model.score(users), np.arange(len(users))[:, None]
        seen, relevant = (part.matrix()[users].toarray() > 0 for part in (train, test))
        old = relevant & seen
        relevant = {"allow": relevant, "exclude": relevant & ~seen, "only": old}[repeats]
        scores[seen if not keep_seen else ~seen if repeats == "only" else np.zeros_like(seen)] = np.nan
        columns, best = largest(np.ascontiguousarray(scores[:, order]), 10)
        items, listed = order[columns], ~np.isnan(best)
        hits, again = relevant[rows, items] & listed, seen[rows, items] & listed
        number = relevant.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            columns_of = [
                hits.sum(axis=1) / number,
                (hits * discounts).sum(axis=1) / ideals[np.minimum(number, 10)],
                np.where(number > 0, hits.any(axis=1), np.nan),
                np.where(number > 0, again.sum(axis=1) / listed.sum(axis=1), np.nan),
                (hits & again).sum(axis=1) / (relevant & seen).sum(axis=1),
                (hits & ~again).sum(axis=1) / (relevant & ~seen).sum(axis=1),
            ]
        by_block.append(np.column_stack(columns_of))
    whole = np.concatenate(by_block)
    counts = np.count_nonzero(~np.isnan(whole), axis=0)
    return np.nansum(whole, axis=0) / np.where(counts, counts, np.nan), int(counts[0])


def main(path: Path) -> None:
    """Print the table."""
    ratings = cf.read(path, basket="basket")
    split = cf.splits.leave_out(ratings, l=1, which="last", unit="basket", short="train")
    print(f"{split}, events {split.step.effect['events']}")
    repeats = [f"{name:>16}" for name in METRICS]
    print(f"{'repeats':8} {'seen':5} {'system':42} {'ties':10} {'users':>6} {''.join(repeats)}  seconds")
    for kind, keep_seen, spelling, ties, references in REFERENCES:
        start = time.perf_counter()
        ours, users = values(split, spelling, kind, keep_seen, ties)
        seconds = time.perf_counter() - start
        cells = "".join(f"{value:16.6f}" for value in ours)
        print(f"{kind:8} {keep_seen!s:5} {spelling:42} {ties:10} {users:6,} {cells}  {seconds:.1f}")
        if references:
            print(f"{'reference':>75} " + "".join(f"{value:16.6f}" for value in references))
            worst = max(abs(a - b) for a, b in zip(ours, references))
            assert worst < 1e-6, f"differs by {worst:.6f}"


if __name__ == "__main__":
    folder = Path(os.environ.get("CRANFIELD_DATA", Path(__file__).parents[2] / "shared" / "data"))
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "tafeng-baskets.parquet")
