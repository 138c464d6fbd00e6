"""Reading MovieLens 1M from text: cranfield, Polars and pandas on the same files in one process.

    python benchmarks/read.py [ROUNDS]

The files are written to a temporary folder from ml-1m.parquet, which is looked for in the folder named by
CRANFIELD_DATA, or in ../shared/data next to the checkout; if it is missing, ratings of the same size are simulated.
They have a made-up column of times, like the original. The contestants take turns in rounds, in a different order each
round, because the previous contestant affects the state of memory; the best and the median time of each are shown.
Polars and pandas only read the columns; cranfield also checks every row and builds `Ratings`, which "pandas to codes"
does with pandas. The targets: CSV within 2 times Polars' time for the same file, "::" within 3 times its time for the
CSV, both well ahead of pandas doing the same work. Plain `pandas.read_csv` depends on the version: since 3.1 it uses
all processors and takes about Polars' time, before that several times as long.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from cranfield.data import read


def _movielens() -> pl.DataFrame:
    folder = Path(os.environ.get("CRANFIELD_DATA", Path(__file__).parents[2] / "shared" / "data"))
    path = folder / "ml-1m.parquet"
    if path.exists():
        frame = pl.read_parquet(path).select("user", "item", "rating")
    else:
        from cranfield import simulate

        frame = simulate.world(6_040, 3_706, 1_000_209).ratings.frame().with_columns(pl.col("rating").cast(pl.Int8))
    times = np.random.default_rng(1).integers(956_703_932, 1_046_454_590, len(frame))
    return frame.select(userId="user", movieId="item", rating="rating").with_columns(timestamp=times)


def _write(frame: pl.DataFrame, folder: Path) -> dict[str, Path]:
    files = {name: folder / name for name in ("ratings.csv", "shuffled.csv", "text-ids.csv", "ratings.dat")}
    frame.write_csv(files["ratings.csv"])
    frame.sample(fraction=1, shuffle=True, seed=3).write_csv(files["shuffled.csv"])
    frame.with_columns(pl.format("u{}", "userId"), pl.format("B{}", "movieId")).write_csv(files["text-ids.csv"])
    body = files["ratings.csv"].read_bytes().split(b"\n", 1)[1]
    files["ratings.dat"].write_bytes(body.replace(b",", b"::"))
    return files


def _contestants(files: dict[str, Path]) -> dict[tuple[str, str], Callable[[], Any]]:
    contestants: dict[tuple[str, str], Callable[[], Any]] = {}
    for name, path in files.items():
        if name != "ratings.dat":
            contestants[name, "polars.read_csv"] = lambda path=path: pl.read_csv(path)
        contestants[name, "cranfield.read"] = lambda path=path: read(path)
    try:
        import pandas
    except ImportError:
        print("pandas is not installed and sits this one out")
        return contestants

    def to_codes(path: Path) -> Any:
        """Do with pandas what `read` does: ids to sorted codes, sorted rows, no repeated pair, finite ratings."""
        frame = pandas.read_csv(path)
        users, user_ids = pandas.factorize(frame["userId"], sort=True)
        items, item_ids = pandas.factorize(frame["movieId"], sort=True)
        frame = frame.assign(user=users, item=items).sort_values(["user", "item"])
        if frame.duplicated(["user", "item"]).any() or not np.isfinite(frame["rating"]).all():
            raise ValueError("bad ratings")
        return frame, user_ids, item_ids

    for name in ("ratings.csv", "shuffled.csv"):
        contestants[name, "pandas to codes"] = lambda path=files[name]: to_codes(path)
    contestants["ratings.csv", "pandas.read_csv"] = lambda: pandas.read_csv(files["ratings.csv"])
    contestants["ratings.dat", "pandas.read_csv"] = lambda: pandas.read_csv(
        files["ratings.dat"], sep="::", engine="python", header=None
    )
    return contestants


def _timed(contestants: dict[tuple[str, str], Callable[[], Any]], rounds: int) -> dict[tuple[str, str], list[float]]:
    times: dict[tuple[str, str], list[float]] = {key: [] for key in contestants}
    turns, order = np.random.default_rng(2), list(contestants)
    for round_ in range(rounds + 1):
        turns.shuffle(order)
        for key in order:
            if len(times[key]) == 3 and min(times[key]) > 1:
                continue  # pandas takes seconds for "::", so three rounds are enough
            start = time.perf_counter()
            contestants[key]()
            if round_:  # the first round warms up
                times[key].append(time.perf_counter() - start)
    return times


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as folder:
        files = _write(_movielens(), Path(folder))
        times = _timed(_contestants(files), rounds)
    versions = ", ".join(f"{name} {version(name)}" for name in ("polars", "pandas") if find_spec(name))
    print(
        f"{rounds} rounds, 1,000,209 ratings; milliseconds, and times Polars alone on the same text as CSV ({versions})"
    )
    print(f"{'file':<14}{'reader':<18}{'best':>8}{'':>7}{'median':>9}{'':>7}")
    for (name, reader), taken in times.items():
        polars = times["ratings.csv" if name == "ratings.dat" else name, "polars.read_csv"]
        columns = ""
        for figure, width in ((min, 8), (median, 9)):
            columns += f"{1000 * figure(taken):>{width}.1f}{figure(taken) / figure(polars):>7.2f}"
        print(f"{name:<14}{reader:<18}{columns}")


if __name__ == "__main__":
    main()
