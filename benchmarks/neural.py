"""Time the neural systems, and compare an epoch of NeuMF with Cornac's.

    python benchmarks/neural.py four --data ml-100k.parquet
    python benchmarks/neural.py epoch --data ml-1m.parquet
    python benchmarks/neural.py cornac --data ml-1m.parquet

``four`` trains four systems with their defaults on 80 % of the ratings, with a tenth held out for early stopping, and
ranks 100 items for every user. ``epoch`` and ``cornac`` train NeuMF with 8 factors, 4 negatives and batches of 256; the
first epoch compiles. Cornac trains in PyTorch and needs a separate environment with ``cornac`` and ``torch``; there
this script reads the ratings with Polars alone.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl

FOUR = ("neumf", "mlp", "lc-nn", "bpr-triplet")
FACTORS, NEGATIVES, BATCH, RATE = 8, 4, 256, 0.001
TOWER = (64, 32, 16, 8)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print the clock seconds, and the processor seconds of all threads."""
    began, used = time.perf_counter(), time.process_time()
    yield
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    print(f"{what}: {seconds:.1f} s ({processor:.1f} s of processor time)", flush=True)


def four(data: str) -> None:
    """Train four systems and rank."""
    import cranfield as cf

    split = cf.splits.random(cf.read(data), train=0.8, validation=0.1)
    with timed("all four"):
        for system in FOUR:
            with timed(system):
                cf.recommend(split, system, length=100, jobs=1)


def epochs(data: str, wanted: int) -> None:
    """Time single epochs of our NeuMF."""
    import cranfield as cf
    from cranfield.recommenders import recommender

    model: Any = recommender(f"neumf(factors={FACTORS}, negatives={NEGATIVES}, batch={BATCH}, rate={RATE})")
    numbers, epoch = model._start(cf.read(data))
    for number in range(wanted):
        with timed(f"neumf, epoch {number + 1}"):
            numbers, loss = epoch(numbers, number)
        print(f"  loss {loss:.4f}")


def cornac(data: str, wanted: int) -> None:
    """Time epochs of Cornac's NeuMF in PyTorch."""
    from cornac.data import Dataset
    from cornac.models import NeuMF

    rows = pl.read_parquet(data).select("user", "item", pl.lit(1.0))
    ratings = Dataset.from_uir(rows.iter_rows(), seed=0)
    model = NeuMF(
        num_factors=FACTORS, layers=TOWER, act_fn="relu", num_epochs=wanted, batch_size=BATCH,
        num_neg=NEGATIVES, lr=RATE, learner="adam", backend="pytorch", seed=0, verbose=False,
    )  # fmt: skip
    with timed(f"cornac, {wanted} epochs"):
        model.fit(ratings)


def main() -> None:
    """Run one of the measurements."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("what", choices=("four", "epoch", "cornac"))
    arguments.add_argument("--data", required=True)
    arguments.add_argument("--epochs", type=int, default=2)
    given = arguments.parse_args()
    if given.what == "four":
        four(given.data)
    else:
        (epochs if given.what == "epoch" else cornac)(given.data, given.epochs)
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
