"""Every system with its defaults on five datasets of different density: time, memory, and nDCG@100 over popularity.

    python benchmarks/defaults.py [--data NAME ...] [--systems NAME ...] [--users N] [--limit SECONDS]

The data are looked for in the folder named by CRANFIELD_DATA, or in ../shared/data next to the checkout; missing
datasets are left out. Each dataset is divided 80/20 at random. Each system is trained, and ranks 100 items for at most
the given number of users, in a separate process, so that its peak memory is its own. Seconds are processor seconds over
all threads, so that a busy machine does not change them much. ``ratio`` is nDCG@100 divided by that of popularity on
the same users: below 1, the defaults do not suit the data. On sparse data most systems can score few items for a user
with one or two ratings; ``filled`` is the same ratio with lists filled up with popular items (fill=popularity).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from cranfield import CranfieldError, measure, read
from cranfield._settings import settings
from cranfield.rankings import Ranking, rank
from cranfield.rankings.decisions import Serving, measured_ratings
from cranfield.recommenders import SYSTEMS, recommender
from cranfield.splits import random

DATA = {
    "ml-100k": "ml-100k.parquet",
    "ml-1m": "ml-1m.parquet",
    "last.fm": "hetrec2011-lastfm.parquet",
    "renttherunway": "renttherunway.parquet",
    "book-crossing": "book-crossing-explicit.parquet",
}


def data_folder() -> Path:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("CRANFIELD_DATA", beside))


def one_system(data: str, name: str, users: int) -> dict[str, Any]:
    """Train, rank and measure one system in this process."""
    split = random(read(data_folder() / DATA[data], repeated="last"), train=0.8, seed=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    system, start = recommender(name), time.process_time()
    system.fit(split.train)
    fitted = time.process_time()
    serving = Serving(sample=users if users < split.train.n_users else "all")
    run = rank(system, split, serving=serving, ranking=Ranking(length=100), name=name)
    ranked = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    served = measured_ratings(split, serving)
    filled = rank(system, split, serving=serving, ranking=Ranking(length=100, fill="popularity"), name="filled")
    values = measure([run, filled], served, ["nDCG@100"]).average()[:, 0]
    return {
        "fit": fitted - start,
        "rank": ranked - fitted,
        "own": (peak - before) / 2**20,
        "ndcg": float(values[0]),
        "filled": float(values[1]),
    }


def in_a_process(data: str, name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", data, name, "--users", str(arguments.users)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.limit)
    except subprocess.TimeoutExpired:
        return {"error": f"over {arguments.limit} s"}
    if done.returncode:
        return {"error": "".join(done.stderr.strip().splitlines()[-1:])}
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", choices=DATA, default=list(DATA))
    parser.add_argument("--systems", nargs="*", help="spellings; every system unless given")
    parser.add_argument("--users", type=int, default=2000, help="rank for at most so many users, drawn at random")
    parser.add_argument("--limit", type=int, default=600, help="the most seconds for one system")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    settings.quiet = True
    if arguments.child:
        try:
            print(json.dumps(one_system(*arguments.child, arguments.users)))
        except CranfieldError as error:
            print(json.dumps({"error": str(error)}))
        return
    names = ["popularity", *(name for name in arguments.systems or SYSTEMS if name != "popularity")]
    print("| data | system | fit, CPU s | rank, CPU s | its memory, GiB | nDCG@100 | ratio | filled |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for data in (data for data in arguments.data if (data_folder() / DATA[data]).is_file()):
        popularity = 0.0
        for name in names:
            result = in_a_process(data, name, arguments)
            if "error" in result:
                print(f"| {data} | `{name}` | {result['error']} | | | | | |", flush=True)
                continue
            popularity = popularity or result["ndcg"]
            print(
                f"| {data} | `{name}` | {result['fit']:.1f} | {result['rank']:.1f} | {result['own']:.2f} "
                f"| {result['ndcg']:.4f} | {result['ndcg'] / popularity:.2f} | {result['filled'] / popularity:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
