"""How often a significant winner is not the truly better system, by the tipping ratio of the unjudged items.

Simulated worlds whose truth is known, with two kinds of test sets: ratings that users chose to give, and clicks on the
lists of one of the systems (production). Every pair of systems with a significant difference of P@10 (Student's t, at
0.05) is counted by its ratio r of `cranfield.comparisons.unjudged`. CM100k has ratings of random items, which are the
truth there. For other datasets it only says how often the rule speaks.

    python benchmarks/unjudged.py --worlds 40
    python benchmarks/unjudged.py --data ../shared/data
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl

import cranfield as cf
from cranfield.comparisons.unjudged import Unjudged

SYSTEMS = ("random", "popularity", "average", "knn(k=20)", "knn(k=100)", "itemknn(k=50)", "puresvd", "ease(l2=200)")
CLASSES = ("< .5", ".5-.75", ".75-1", "1-1.25", "> 1.25", "no more unjudged", "no judged")


def named(ratio: float) -> str:
    """Return the class of a ratio."""
    if np.isnan(ratio):
        return CLASSES[6]
    if np.isinf(ratio):
        return CLASSES[5]
    return CLASSES[int(np.searchsorted([0.5, 0.75, 1.0, 1.25], ratio, side="right"))]


def rows_of(scores: cf.Scores, true: dict[str, float] | None, kind: str) -> list[dict[str, object]]:
    """Return one row for each significant pair: the class of its ratio, and whether the truth has the other order."""
    comparison = cf.compare(scores, significance="student", correction="none")
    entries = Unjudged.of(scores, scores.metrics[0])
    assert entries is not None
    rows = []
    for row in comparison.rows.filter("significant").iter_rows(named=True):
        a, b = row["system_a"], row["system_b"]
        winner, loser = (a, b) if row["better"] == a else (b, a)
        places = [np.array([scores.system(name)]) for name in (winner, loser)]
        ratio = float(entries.tipping(*places).ratio[0])
        wrong = None if true is None else bool(true[winner] < true[loser])
        rows.append({"test": kind, "class": named(ratio), "wrong": wrong})
    return rows


def of_world(seed: int) -> list[dict[str, object]]:
    """Return the significant pairs of one world, by ratings that users chose and by clicks on a system's lists."""
    rng = np.random.default_rng(seed)
    world = cf.simulate.world(
        users=int(rng.integers(200, 800)), items=int(rng.integers(150, 500)), ratings=int(rng.integers(8_000, 40_000)),
        popularity_bias=float(rng.uniform(0.5, 2.2)), relevance_bias=float(rng.uniform(0.2, 1.4)),
        taste=float(rng.uniform(0.4, 0.9)), seed=seed,
    )  # fmt: skip
    split = cf.splits.random(world.ratings, train=0.8, seed=seed)
    runs = cf.recommend(split, list(SYSTEMS), length=20, seed=seed)
    true = {run.name: float(np.nanmean(world.true_value(run, "P@10", exclude=split.train))) for run in runs}
    rows = rows_of(cf.measure(runs, split.test, "P@10", threshold=4), true, "chosen by users")
    # Production shows its list of 20; a user looks at a position with a probability that falls with it, and rates.
    shown = runs[int(rng.integers(1, len(runs)))]
    log = clicks(world, shown, rng)
    return rows + rows_of(cf.measure(runs, log, "P@10", threshold=4), true, "production log")


def clicks(world: cf.simulate.World, shown: cf.Run, rng: np.random.Generator) -> cf.Ratings:
    """Return the ratings of items that were shown and looked at."""
    users = np.repeat(np.arange(len(shown.indptr) - 1), np.diff(shown.indptr))
    ranks = np.arange(len(users)) - shown.indptr[users] + 1
    looked = rng.random(len(users)) < 1 / np.sqrt(ranks)
    user_ids = shown.user_ids.ids(shown.users[users[looked]])
    item_ids = shown.item_ids.ids(shown.items[looked])
    codes = world.ratings.user_ids.codes(user_ids)
    grades = world.preference()[codes, world.ratings.item_ids.codes(item_ids)]
    return cf.Ratings.of(user_ids, item_ids, grades)


def table(rows: list[dict[str, object]]) -> pl.DataFrame:
    """Return, for each kind of test set and class, the number of significant pairs and the share that is wrong."""
    order = {name: place for place, name in enumerate(CLASSES)}
    frame = pl.DataFrame(rows, schema={"test": pl.String, "class": pl.String, "wrong": pl.Boolean})
    grouped = frame.group_by("test", "class").agg(pairs=pl.len(), wrong=pl.col("wrong").mean())
    return grouped.sort("test", pl.col("class").replace_strict(order, return_dtype=pl.Int64))


def of_data(folder: Path) -> list[dict[str, object]]:
    """Return the significant pairs of real datasets; those with ratings of random items have a truth."""
    rows: list[dict[str, object]] = []
    for name, threshold in (("ml-100k", 4), ("ml-1m", 4), ("renttherunway", 8), ("hetrec2011-lastfm", None)):
        ratings = cf.read(folder / f"{name}.parquet", repeated="last")
        split = cf.splits.random(ratings, train=0.8, seed=1)
        runs = cf.recommend(split, list(SYSTEMS[:-1]), length=20, seed=1)
        settings = {} if threshold is None else {"threshold": threshold}
        rows += rows_of(cf.measure(runs, split.test, "P@10", **settings), None, name)
        print(f"{name} done", flush=True)
    rows += of_cm100k(folder)
    return rows


def of_cm100k(folder: Path) -> list[dict[str, object]]:
    """Return the significant pairs on observed ratings of CM100k; the ratings of random music are the truth."""
    frame = pl.read_parquet(folder / "cm100k.parquet")
    known, rows = frame.filter("known"), []
    for seed in range(10):
        part = np.random.default_rng(seed).random(len(known)) < 0.8
        train, test = (
            cf.Ratings.of(rows_["user"], rows_["item"], rows_["rating"])
            for rows_ in (known.filter(part), known.filter(~part))
        )
        runs = cf.recommend(train, list(SYSTEMS), length=20, seed=seed)
        rest = frame.join(known.filter(part), on=["user", "item"], how="anti")
        truth = cf.Ratings.of(rest["user"], rest["item"], rest["rating"])
        by_truth = cf.measure(runs, truth, "P@10", threshold=3)
        true = dict(zip(by_truth.systems, (by_truth.liked / (1 - by_truth.unjudged))[:, 0].tolist()))
        rows += rows_of(cf.measure(runs, test, "P@10", threshold=3), true, "cm100k")
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    rows = (
        of_data(arguments.data)
        if arguments.data
        else [row for seed in range(arguments.worlds) for row in of_world(seed)]
    )
    with pl.Config(tbl_rows=-1):
        print(table(rows))


if __name__ == "__main__":
    main()
