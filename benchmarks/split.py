"""Splits: our time against pandas and scikit-learn on a million ratings, and our memory on a hundred million.

python benchmarks/split.py                          wall times, 1,000,209 ratings; and of checking a split
python benchmarks/split.py --large 'random'         peak memory, 100,000,000 ratings, one method a process
python benchmarks/split.py --events 5000000         a log of events: reading, a temporal split with its merge, memory
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np
import polars as pl

from cranfield import Ratings, splits
from cranfield.tables import Vocabulary


def simulated(users: int, items: int, count: int) -> Ratings:
    """Return ratings with profiles of equal size, spread over the items."""
    generator = np.random.default_rng(0)
    sizes = np.full(users, count // users)
    sizes[: count - sizes.sum()] += 1
    indptr = np.append(np.int64(0), np.cumsum(sizes))
    rated, step = np.empty(count, dtype=np.int32), items // int(sizes[0] + 1)
    for first in range(0, users, 10_000):
        begin, end = indptr[first], indptr[min(first + 10_000, users)]
        own = sizes[first : first + 10_000]
        place = np.arange(end - begin) - np.repeat(indptr[first : first + len(own)] - begin, own)
        rated[begin:end] = place * step + generator.integers(0, step, end - begin)
    values = generator.integers(1, 6, count, dtype=np.int8).astype(np.float32)
    times = generator.integers(1_000_000_000, 1_100_000_000, count)
    ids = [Vocabulary(pl.Series(np.arange(size, dtype=np.int32))) for size in (users, items)]
    return Ratings(ids[0], ids[1], indptr, rated, values, times)


def seconds(function, repeats: int = 5) -> float:
    """Return the best wall time of a few runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def peers(frame):
    """Return the code that people write with pandas and scikit-learn for the same splits; each returns both parts."""
    from sklearn.model_selection import KFold, train_test_split

    def sampled():
        test = frame.groupby("user").sample(frac=0.2, random_state=7)
        return frame.drop(test.index), test

    def last():
        test = frame.sort_values(["user", "time"]).groupby("user").tail(1)
        return frame.drop(test.index), test

    def folds():
        for learn, test in KFold(5, shuffle=True, random_state=7).split(frame):
            yield frame.iloc[learn], frame.iloc[test]

    return {
        "random(train=0.8, exact=true)": lambda: train_test_split(frame, test_size=0.2, random_state=7),
        "per_user(train=0.8)": sampled,
        "leave_out(l=1, which=last)": last,
        "k_fold(k=5)": lambda: list(folds()),
    }


def compare_times() -> None:
    ratings = simulated(6_040, 3_706, 1_000_209)
    others = peers(ratings.frame().to_pandas())
    methods = [
        *others,
        "random(train=0.8)",
        "per_user(train=0.8, which=last)",
        "temporal(train=0.8)",
        "temporal(at=most_users, target=first, new_users=drop, new_items=drop)",
        "temporal(target=5)",
        "rolling(windows=6, horizon=7d)",
        "cold_users(left=5, warm=0.2)",
        "cold_items",
        "strong_generalisation",
        "train_per_item(l=50)",
        "uniform_test",
        "percentiles",
    ]
    print(f"{'1,000,209 ratings':<34}{'cranfield':>10}{'pandas/sklearn':>16}{'ratio':>8}")
    for method in methods:
        ours = seconds(lambda method=method: list(splits.apply(ratings, method, seed=7)))
        theirs = seconds(others[method]) if method in others else None
        rest = "" if theirs is None else f"{theirs:>14.3f} s{theirs / ours:>8.1f}"
        print(f"{method:<34}{ours:>8.3f} s{rest}", flush=True)
    split = splits.random(ratings, seed=7, validation=0.1)
    parts = [part.compact() for part in split.parts.values()]
    print(f"{'check_split, a split':<34}{seconds(lambda: splits.check_split(split)):>8.3f} s")
    checked = seconds(lambda: splits.check_split(parts[0], parts[2], parts[1]))
    print(f"{'check_split, three sets of ratings':<34}{checked:>8.3f} s", flush=True)


def measure_memory(method: str) -> None:
    ratings = simulated(480_000, 17_770, 100_000_000)
    page = resource.getpagesize()
    held = int(Path("/proc/self/statm").read_text().split()[1]) * page
    start = time.perf_counter()
    divided = splits.apply(ratings, method, seed=7)[0]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{divided}: {time.perf_counter() - start:.1f} s")
    print(f"ratings {ratings.nbytes / 2**30:.2f} GiB, peak beyond them {(peak - held) / 2**30:.2f} GiB")


def measure_events(count: int) -> None:
    """Print how long reading a log of events and dividing it in time take, and how much memory they need."""
    import tempfile

    from cranfield import read

    generator = np.random.default_rng(0)
    columns = {"user": generator.integers(0, count // 50, count), "item": generator.zipf(1.3, count) % 20_000}
    columns["time"] = np.sort(generator.integers(1_500_000_000, 1_600_000_000, count))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        pl.DataFrame(columns).write_parquet(path)
        del columns
        start = time.perf_counter()
        log = read(path)
        begun = time.perf_counter()
        split = splits.temporal(log, train=0.8)
        done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{count:,} events of {len(log):,} pairs ({log.nbytes / 2**30:.2f} GiB): read in {begun - start:.1f} s")
    print(f"{split} in {done - begun:.1f} s; peak {peak:.2f} GiB with the making of the log")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", metavar="METHOD", help="measure the memory of a method on 100 million ratings")
    parser.add_argument("--events", metavar="N", type=int, help="divide a log of so many events in time")
    options = parser.parse_args()
    if options.events:
        measure_events(options.events)
    else:
        measure_memory(options.large) if options.large else compare_times()


if __name__ == "__main__":
    main()
