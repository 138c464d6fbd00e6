"""How long the answers about popularity bias take on MovieLens 1M, and how well sampled metrics are corrected.

    python benchmarks/bias.py ml-1m.parquet                 # all of it
    python benchmarks/bias.py ml-1m.parquet --part bias     # five given runs under four protocols
    python benchmarks/bias.py ml-1m.parquet --part one      # 1R with 1,000 targets, beside a loop that builds each list
    python benchmarks/bias.py ml-1m.parquet --part exact    # metrics in expectation over the draw
    python benchmarks/bias.py ml-1m.parquet --part sampled  # sampled ranks corrected, beside full ranks
    python benchmarks/bias.py ml-1m.parquet --part study    # the whole study bellogin2017

Each line has the clock seconds, the processor seconds (of all threads and processes), and the project's target if there
is one. The targets are for two idle cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

import cranfield as cf
from cranfield.biases import correct_runs, density, expected_over_draws, expected_precision
from cranfield.rankings.decisions import EVERYONE, Ranking
from cranfield.rankings.ranker import Ranker
from cranfield.recommenders import recommender
from cranfield.splits import Split

SYSTEMS = ("popularity", "random", "average", "ease", "puresvd")
# The project's targets on two cores, in seconds.
BARS = {"bias of five runs": 20.0, "1R ranks of five systems": 3.0, "bellogin2017, the whole study": 900.0}
PARTS = ("bias", "one", "exact", "sampled")
"""What is run unless a part is named; ``study`` takes minutes."""
T = TypeVar("T")


def timed(name: str, work: Callable[[], T]) -> T:
    """Do some work, and print the seconds it took."""
    start, busy = time.perf_counter(), _processor()
    result = work()
    show(name, time.perf_counter() - start, _processor() - busy)
    return result


def show(name: str, clock: float, processor: float, more: str = "") -> None:
    """Print the clock and processor seconds, and the target if there is one."""
    bar = f"   bar {BARS[name]:g} s" if name in BARS else ""
    print(f"{name:45s} {clock:8.2f} s, processor {processor:8.2f} s{bar}{more}", flush=True)


def _processor() -> float:
    """Return the processor seconds so far, of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def of_runs(split: Split) -> None:
    """Time the whole answer on given lists, and show equation (3) next to the measured values."""
    runs = timed("training and ranking", lambda: cf.recommend(split, list(SYSTEMS), length=100))
    results = timed("bias of five runs", lambda: cf.bias(runs=runs, test=split.test, train=split.train, threshold=4))
    print(results)
    ti = cf.recommend(split, "popularity", length=100, candidates="test")
    targets = timed("density of the targets", lambda: density(split, threshold=5, candidates="test"))
    expected = expected_precision(ti[0], split, targets, n=10)
    measured = cf.measure(ti, split.test, "P@10", threshold=5).average().item()
    print(targets)
    print(f"equation (3) {expected.low:.4f}, measured {measured:.4f}: {'; '.join(map(str, expected.departures))}")


def one_relevant(split: Split) -> None:
    """Time the ranks of every positive test rating among 999 drawn items, and a loop that builds each list."""
    ranking = Ranking(relevant="one", candidates="test", nonrelevant=999, length="all", threshold=5)
    ranker = timed("drawing 999 targets per user", lambda: Ranker.of(split, EVERYONE, ranking, 0))
    clock, seconds, lists = 0.0, 0.0, 0
    for name in SYSTEMS:
        model = recommender(name).fit(split.train)
        for start in range(0, len(ranker.users), 512):
            users = ranker.users[start : start + 512]
            scores = np.asarray(model.score(users), dtype=np.float64)
            start, begin = time.perf_counter(), time.process_time()
            columns = ranker.columns(users, scores)
            clock += time.perf_counter() - start
            seconds += time.process_time() - begin
            lists += len(columns[0])
    show("1R ranks of five systems", clock, seconds, f" ({lists:,} lists)")
    plain_loop(ranker, lists)


def plain_loop(ranker: Ranker, lists: int, sample: int = 100) -> None:
    """Build and sort the lists of a few users one by one, and extrapolate the time to all of them."""
    model = recommender("popularity").fit(ranker.targets.train)
    users = ranker.users[:sample]
    scores = np.asarray(model.score(users), dtype=np.float64)
    begin, built = time.process_time(), 0
    for row, user in enumerate(users):
        pool = np.flatnonzero(ranker.targets.pool(np.array([user]))[0])
        for item in ranker.targets.relevant_cells(np.array([user]))[1]:
            targets = np.append(pool, item)
            order = targets[np.argsort(-scores[row, targets], kind="stable")]
            assert item in order
            built += 1
    each = (time.process_time() - begin) / max(built, 1)
    print(f"{'a plain loop over the same lists':45s} {'':8s}    processor {each * lists:8.2f} s   ({built:,} built)")


def whole_study(path: str) -> None:
    """Time `cranfield replicate bellogin2017`, including figures."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "cranfield", "replicate", "bellogin2017", "--data", path, "--out"]
        timed("bellogin2017, the whole study", lambda: subprocess.run([*command, f"{folder}/out"], check=True))


def exact(split: Split) -> None:
    """Time metrics in expectation over the draw, and compare them with one draw."""
    runs = cf.recommend(split, ["popularity", "ease"], length="all")
    metrics = ["P@10", "nDCG@10", "RR"]
    values = timed(
        "expectation over draws of 99, 1R",
        lambda: expected_over_draws(
            runs, split.test, metrics, nonrelevant=99, relevant="one", train=split.train, threshold=5
        ),
    )
    drawn = cf.recommend(split, ["popularity", "ease"], relevant="one", nonrelevant=99, length="all", threshold=5)
    once = cf.measure(drawn, split.test, metrics, threshold=5).average(by="list")
    print("exact", values.average(by="list").round(5).tolist(), "one draw", once.round(5).tolist())


def sampled(split: Split) -> None:
    """Correct sampled ranks, and print how often the interval contains the value among all candidates."""
    systems, metrics = ["popularity", "ease", "random"], ["HitRate@10", "nDCG@10"]
    design = {"relevant": "one", "length": "all", "threshold": 5}
    full = cf.measure(cf.recommend(split, systems, **design), split.test, metrics, threshold=5).average(by="list")
    inside = []
    for m in (20, 99, 500):
        drawn = cf.recommend(split, systems, nonrelevant=m, seed=m, **design)
        corrected = correct_runs(drawn, split.test, metrics, train=split.train, threshold=5)
        for (name, result), values in zip(corrected.items(), full):
            for row, truth in zip(result.frame.iter_rows(named=True), values):
                known = "identified" if row["identified"] else "not identified"
                print(
                    f"{name:11s} m={m:4d} {row['metric']:10s} sampled {row['sampled']:.4f} estimate "
                    f"{row['estimate']:.4f} [{row['lower']:.4f}, {row['upper']:.4f}] {known}, full {truth:.4f}",
                    flush=True,
                )
                inside.append(row["lower"] <= truth <= row["upper"])
    print(f"{sum(inside)} of {len(inside)} intervals hold the value among all candidates")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the requested parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ratings", help="MovieLens 1M, or other ratings from 1 to 5")
    parser.add_argument("--part", choices=[*PARTS, "study"], action="append")
    options = parser.parse_args(arguments)
    if options.part == ["study"]:
        whole_study(options.ratings)
        return
    ratings = cf.read(options.ratings)
    split = cf.splits.random(ratings, train=0.8, seed=0)
    work = {"bias": of_runs, "one": one_relevant, "exact": exact, "sampled": sampled,
            "study": lambda _: whole_study(options.ratings)}  # fmt: skip
    for part in options.part or PARTS:
        work[part](split)


if __name__ == "__main__":
    main()
