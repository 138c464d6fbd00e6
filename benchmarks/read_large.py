"""One hundred million ratings, the size of the Netflix Prize: how much memory they need when held, read and split.

    python benchmarks/read_large.py [RATINGS]

Ratings with times are simulated (480,189 users, 17,770 items, both of uneven popularity) and written to Parquet in a
temporary folder, in random order and in chunks. A separate process then reads the file and splits it 80/20. The
targets: at most 2 GiB for the `Ratings` without the vocabularies, and at most 4 GiB more at the peak.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

USERS, ITEMS, RATINGS = 480_189, 17_770, 100_000_000
CHUNK = 5_000_000
GIB = 2**30


def _write(path: Path, count: int) -> None:
    """Write distinct pairs in random order, chunk by chunk."""
    start = time.perf_counter()
    chunks = -(-count // CHUNK)
    parts = []
    for number in range(chunks):
        frame = _chunk(number, chunks, min(CHUNK, count - number * CHUNK))
        parts.append(path.with_name(f"part-{number:03}.parquet"))
        frame.write_parquet(parts[-1], compression="uncompressed")
    pl.scan_parquet(parts).sink_parquet(path)
    written, size = pl.scan_parquet(path).select(pl.len()).collect().item(), path.stat().st_size / GIB
    print(f"{written:,} ratings written in {time.perf_counter() - start:.0f} s, {size:.2f} GiB of Parquet", flush=True)


def _chunk(number: int, chunks: int, size: int) -> pl.DataFrame:
    """Return ratings of the users of one remainder class, so that no pair occurs in two chunks."""
    random = np.random.default_rng([1, number])
    draws = int(1.3 * size)
    user = (USERS // chunks * random.random(draws) ** 2).astype(np.int64) * chunks + number
    pair = user * ITEMS + (ITEMS * random.random(draws) ** 2).astype(np.int64)
    pair.sort()
    pair = pair[np.flatnonzero(np.diff(pair, append=-1))]
    random.shuffle(pair)
    pair = pair[:size]
    return pl.DataFrame(
        {
            "user": (pair // ITEMS).astype(np.int32),
            "item": (pair % ITEMS).astype(np.int16),
            "rating": random.integers(1, 6, len(pair), dtype=np.int8),
            "timestamp": random.integers(942_192_000, 1_135_900_800, len(pair)),
        }
    )


def _peak() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (peak if sys.platform == "darwin" else peak * 1024) / GIB


def _read_and_split(path: Path) -> None:
    from cranfield.data import read
    from cranfield.splits import random

    before = _peak()
    print(f"{'step':<22}{'seconds':>9}{'peak GiB':>10}")
    print(f"{'Python and cranfield':<22}{'':>9}{before:>10.2f}")
    start = time.perf_counter()
    ratings = read(path)
    print(f"{'read':<22}{time.perf_counter() - start:>9.1f}{_peak():>10.2f}")
    start = time.perf_counter()
    split = random(ratings, train=0.8, seed=1)
    print(f"{'split':<22}{time.perf_counter() - start:>9.1f}{_peak():>10.2f}")
    held = ratings.nbytes / GIB
    print(f"{ratings}; train {len(split.train):,}, test {len(split.test):,}")
    print(
        f"Ratings hold {held:.2f} GiB (target 2); the peak is {_peak() - before - held:.2f} GiB above that (target 4)"
    )


def main() -> None:
    if len(sys.argv) == 4:
        step, path, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
        _write(path, count) if step == "write" else _read_and_split(path)
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RATINGS
    with tempfile.TemporaryDirectory() as folder:
        # Separate processes, started from a small one, because a child starts with its parent's peak memory.
        for step in ("write", "read"):
            subprocess.run([sys.executable, __file__, step, f"{folder}/ratings.parquet", str(count)], check=True)


if __name__ == "__main__":
    main()
