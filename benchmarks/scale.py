"""Rows per second and peak memory of measuring 1, 10 and 100 million rows: in memory, in ranges, on Spark; and peers.

    python benchmarks/scale.py FOLDER [--sizes 1 10 100] [--ways memory ranges sort spark duckdb polars]

The data are simulated into FOLDER once: lists of 100 items and 20 test ratings for each user, sorted by user. Every way
runs in a separate process and prints its clock seconds, its processor seconds, the rows of the run per second, the peak
memory of all its processes, and two values, nDCG@10 and HitRate@10, which must equal those of the others. ``sort`` is
``ranges`` over rows in random order: the cost of dividing them by user. Two cores are used. Imports are not timed.

RePlay's and recommenders' Spark metrics run in separate environments, because their pins exclude ours (pip install
'replay-rec[spark]'; pip install 'recommenders[spark]' setuptools). Their nDCG takes relevance as 0 or 1, so it is
compared with ``nDCG(gain=binary)@10``; recommenders has no hit rate.

    VENV/bin/python benchmarks/scale.py FOLDER --ways replay
    VENV/bin/python benchmarks/scale.py FOLDER --ways recommenders
    python benchmarks/scale.py FOLDER --ways spark --metrics 'nDCG(gain=binary)@10' HitRate@10
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

NINE = ["P@10", "Recall@10", "nDCG@10", "AP@10", "RR@10", "HitRate@10", "nDCG@100", "AP@100", "RBP"]
TWO = ["nDCG@10", "HitRate@10"]
LENGTH, RATINGS = 100, 20


def simulate(folder: Path, millions: int) -> None:
    """Write a run and a test set: items in 100 strata of increasing size, one item of each in a list."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    sizes = np.rint(10 * 1.0625 ** np.arange(LENGTH)).astype(int)
    starts, random = np.append(0, np.cumsum(sizes))[:-1], np.random.default_rng(1)
    whole, number = pa.int64(), pa.float64()
    paths = [folder / f"{millions}m-{kind}.parquet" for kind in ("run", "test")]
    if all(path.exists() for path in paths):
        return
    run = pq.ParquetWriter(paths[0], pa.schema([("user", whole), ("item", whole), ("score", number)]))
    test = pq.ParquetWriter(paths[1], pa.schema([("user", whole), ("item", whole), ("rating", number)]))
    for first in range(0, 10_000 * millions, 10_000):
        users = np.arange(first, first + 10_000)
        items = starts + (random.random((len(users), LENGTH)) * sizes).astype(np.int64)
        items = np.take_along_axis(items, np.argsort(random.random(items.shape), axis=1), 1)
        scores = -np.sort(-random.random(items.shape), axis=1)
        rows = {"user": np.repeat(users, LENGTH), "item": items.ravel(), "score": scores.ravel()}
        run.write_table(pa.table(rows), row_group_size=250_000)
        strata = np.arange(RATINGS) * (LENGTH // RATINGS) + random.integers(0, 5, (len(users), RATINGS))
        items = starts[strata] + (random.random(strata.shape) * sizes[strata]).astype(np.int64)
        ratings = random.integers(1, 6, strata.size).astype(float)
        rows = {"user": np.repeat(users, RATINGS), "item": items.ravel(), "rating": ratings}
        test.write_table(pa.table(rows), row_group_size=250_000)
    run.close()
    test.close()


def shuffled(path: Path) -> Path:
    """Return the same rows in random order."""
    import polars as pl

    out = path.with_name(f"shuffled-{path.name}")
    if not out.exists():
        pl.read_parquet(path).sample(fraction=1, shuffle=True, seed=1).write_parquet(out, row_group_size=250_000)
    return out


def _ours(run: Path, test: Path, metrics: list[str], **options: object) -> list[float]:
    import cranfield as cf

    scores = cf.measure(str(run), str(test), metrics, threshold=4, **options)
    means = dict(scores.frame().select("metric", "mean").rows())
    ndcg = next(metric for metric in metrics if metric.startswith("nDCG") and metric.endswith("@10"))
    return [means[ndcg], means["HitRate@10"]]


def memory(run: Path, test: Path, metrics: list[str]) -> list[float]:
    return _ours(run, test, metrics, engine="memory")


def ranges(run: Path, test: Path, metrics: list[str]) -> list[float]:
    return _ours(run, test, metrics, engine="ranges", memory="2GiB")


def sort(run: Path, test: Path, metrics: list[str]) -> list[float]:
    return _ours(run, test, metrics, engine="ranges", memory="2GiB")


def spark(run: Path, test: Path, metrics: list[str]) -> list[float]:
    return _ours(run, test, metrics, engine="spark")


def duckdb(run: Path, test: Path, _: list[str]) -> list[float]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("set threads=2; set memory_limit='1800MB'; set enable_progress_bar=false")
    query = f"""
    with t as (select "user", item, rating from '{test}'),
    r as (select "user", item, row_number() over (partition by "user" order by score desc) as rank from '{run}'),
    h as (select r."user", rank, rating from r join t using ("user", item) where rank <= 10),
    g as (select "user", sum(rating / log2(rank + 1)) as dcg, max(case when rating >= 4 then 1 else 0 end) as hit
          from h group by "user"),
    i as (select "user", rating, row_number() over (partition by "user" order by rating desc) as k from t),
    ideal as (select "user", sum(case when k <= 10 then rating / log2(k + 1) else 0 end) as idcg from i group by "user")
    select avg(coalesce(dcg, 0) / idcg), avg(coalesce(hit, 0)) from ideal left join g using ("user")"""
    return list(connection.execute(query).fetchall()[0])


def polars(run: Path, test: Path, _: list[str]) -> list[float]:
    import polars as pl

    def place(column: str) -> pl.Expr:
        return pl.col(column).rank("ordinal", descending=True).over("user")

    lists, ratings = pl.scan_parquet(run), pl.scan_parquet(test)
    top = lists.with_columns(rank=place("score")).filter(pl.col("rank") <= 10)
    hits = top.join(ratings, on=["user", "item"]).group_by("user").agg(
        dcg=(pl.col("rating") / (pl.col("rank") + 1).log(2)).sum(), hit=(pl.col("rating") >= 4).any().cast(pl.Float64)
    )  # fmt: skip
    best = ratings.with_columns(k=place("rating")).filter(pl.col("k") <= 10)
    ideal = best.group_by("user").agg(idcg=(pl.col("rating") / (pl.col("k") + 1).log(2)).sum())
    both = ideal.join(hits, on="user", how="left").select(
        (pl.col("dcg").fill_null(0) / pl.col("idcg")).mean(), pl.col("hit").fill_null(0).mean()
    )
    return list(both.collect(engine="streaming").row(0))


def _session():
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g").getOrCreate()


def replay(run: Path, test: Path, _: list[str]) -> list[float]:
    from replay.metrics import NDCG, HitRate, OfflineMetrics

    session = _session()
    names = {"query_column": "user", "item_column": "item", "rating_column": "score"}
    relevant = session.read.parquet(str(test)).filter("rating >= 4")
    values = OfflineMetrics([NDCG(10), HitRate(10)], **names)(session.read.parquet(str(run)), relevant)
    return [values["NDCG@10"], values["HitRate@10"]]


def recommenders(run: Path, test: Path, _: list[str]) -> list[float]:
    from recommenders.evaluation.spark_evaluation import SparkRankingEvaluation

    session = _session()
    evaluation = SparkRankingEvaluation(
        session.read.parquet(str(test)).filter("rating >= 4"), session.read.parquet(str(run)), k=10,
        col_user="user", col_item="item", col_rating="rating", col_prediction="score",
    )  # fmt: skip
    return [evaluation.ndcg_at_k(), float("nan")]


WAYS = {way.__name__: way for way in (memory, ranges, sort, spark, duckdb, polars, replay, recommenders)}


class PeakMemory(threading.Thread):
    """The peak resident memory of this process and its children together, sampled ten times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.bytes = 0

    def run(self) -> None:
        while True:
            self.bytes = max(self.bytes, _resident())
            time.sleep(0.1)


def _resident() -> int:
    """Return the resident bytes of this process and all its descendants."""
    parents, sizes = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(folder.name)], sizes[int(folder.name)] = int(fields[1]), int(fields[21])
    mine = {os.getpid()}
    for process in sorted(parents):
        if parents[process] in mine:
            mine.add(process)
    return sum(sizes.get(process, 0) for process in mine) * resource.getpagesize()


def measure_way(way: str, run: Path, test: Path, metrics: list[str]) -> None:
    if way == "spark":  # a session serves many jobs, so its start is not timed
        from cranfield.tables.spark import spark_session

        spark_session("local[2]")
    elif way in ("replay", "recommenders"):
        _session()
    else:
        is_ours = way in ("memory", "ranges", "sort")
        for module in ("cranfield.measures", "scipy.special") if is_ours else (way,):
            __import__(module)
    watch = PeakMemory()
    watch.start()
    start, busy = time.perf_counter(), time.process_time()
    values = WAYS[way](run, test, metrics)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    print(json.dumps({"seconds": seconds, "processor": busy, "bytes": watch.bytes, "values": values}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1, 10, 100], help="millions of rows")
    parser.add_argument("--ways", nargs="*", choices=list(WAYS), default=[*WAYS][:-2])
    parser.add_argument("--metrics", nargs="*", help="by default two, and for our ways nine as well")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for millions in options.sizes:
        simulate(options.folder, millions)
        paths = [options.folder / f"{millions}m-{kind}.parquet" for kind in ("run", "test")]
        for way in options.ways:
            used = [shuffled(path) for path in paths] if way == "sort" else paths
            is_ours = way in ("memory", "ranges", "sort", "spark")
            for metrics in [options.metrics] if options.metrics else [TWO, NINE] if is_ours else [TWO]:
                print_way(way, millions, used, metrics)


def print_way(way: str, millions: int, paths: list[Path], metrics: list[str]) -> None:
    """Run a way in a separate process and print its figures."""
    code = f"import scale, pathlib; scale.measure_way({way!r}, *map(pathlib.Path, {[*map(str, paths)]!r}), {metrics!r})"
    environment = {**os.environ, "POLARS_MAX_THREADS": "2", "CRANFIELD_QUIET": "1"}
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parent, env=environment
    )
    if process.returncode:
        print(f"{way:>12} {millions:>4} M: failed: {process.stderr.strip().splitlines()[-1]}", flush=True)
        return
    figures = json.loads(process.stdout.strip().splitlines()[-1])
    rate, peak = millions * 1e6 / figures["seconds"], figures["bytes"] / 2**30
    values = ", ".join(f"{value:.9f}" for value in figures["values"])
    # The processor seconds of Java are not counted, so none are printed for these ways.
    of_processor = "" if way in ("spark", "replay", "recommenders") else f"{figures['processor']:.1f} s of processor, "
    print(
        f"{way:>12} {millions:>4} M, {len(metrics)} metrics: {figures['seconds']:7.1f} s, {of_processor}"
        f"{rate:>10,.0f} rows/s, {peak:5.2f} GiB; nDCG@10, HitRate@10: {values}",
        flush=True,
    )


if __name__ == "__main__":
    main()
