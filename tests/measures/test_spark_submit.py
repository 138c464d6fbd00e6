"""The recipe of docs/scale.md for `spark-submit`, on a cluster of this machine: one master and one worker."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest

import cranfield as cf

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
MASTER = re.compile(r"spark://127\.0\.0\.1:\d+")
# What a reader writes around the lines of the page: the session, and the tables that the lines name.
BEFORE = """
from pyspark.sql import SparkSession
import cranfield as cf
spark = SparkSession.builder.getOrCreate()
for name in ("runs", "test", "train"):
    spark.read.parquet(f"file://{FOLDER}/{name}.parquet").createOrReplaceTempView(name)
"""
AFTER = """
print("master", spark.sparkContext.master)
print("worker", spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("cranfield").__file__).first())
print("averages", dict(zip(scores.systems, scores.average().tolist())))
"""


def _block(start: str) -> str:
    """Return the block of the page that begins like this."""
    (block,) = re.findall(rf"```\w+\n({re.escape(start)}.*?)```", PAGE, re.S)
    return block


@pytest.fixture
def cluster(tmp_path):
    """Start a master and a worker on loopback, return the address of the master, and stop both."""
    home = Path(find_spec("pyspark").origin).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_WORKER_DIR": str(tmp_path / "worker")}
    with ExitStack() as stack:

        def start(role: str, *words: str) -> Path:
            log = tmp_path / f"{role}.log"
            command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{role}", "--host", "127.0.0.1", *words]
            output = stack.enter_context(log.open("w"))
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return log

        master = start("master.Master", "--port", "0", "--webui-port", "0")
        address = _waited_for(master, MASTER)
        worker = start("worker.Worker", "--port", "0", "--webui-port", "0", "--cores", "1", "--memory", "2g", address)
        _waited_for(worker, re.compile("Successfully registered with master"))
        yield address


def _waited_for(log: Path, pattern: re.Pattern[str]) -> str:
    """Return what matches in a log, as soon as it does."""
    for _ in range(120):
        if found := pattern.search(log.read_text()):
            return found[0]
        time.sleep(0.5)
    raise AssertionError(log.read_text())


@pytest.fixture
def tables(tmp_path):
    """Write the tables that the lines of the page name, and return what memory makes of them."""
    world = cf.simulate.world(60, 80, 2_000, seed=3).ratings
    split = cf.splits.random(world, train=0.7, seed=3)
    runs = cf.recommend(split, ["popularity", "knn(k=10)"], length=20)
    lists = pl.concat(run.frame().with_columns(system=pl.lit(run.name)) for run in runs)
    frames = {"runs": lists, "test": split.test.frame(), "train": split.train.frame()}
    for name, frame in frames.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    return cf.measure(runs, split.test, ["nDCG@10", "AP"])


@pytest.mark.hours
@pytest.mark.spark
def test_the_packed_environment_of_the_page_runs_on_a_cluster(tmp_path, cluster, tables):
    lines = _block("scores = cf.measure(spark.table").replace("s3a://lake", f"file://{tmp_path}")
    (tmp_path / "evaluate.py").write_text(f"FOLDER = {str(tmp_path)!r}\n{BEFORE}\n{lines}\n{AFTER}")
    recipe = _block("python -m venv packed")
    for shown, here in {"python -m": f"{sys.executable} -m", "cranfield[spark]": f"{ROOT}[spark]"}.items():
        assert shown in recipe
        recipe = recipe.replace(shown, here)
    recipe = recipe.replace("spark://head:7077", f"{cluster} --conf spark.driver.bindAddress=127.0.0.1")
    home = Path(find_spec("pyspark").origin).parent
    path = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYTHONPATH", None)
    command = ["bash", "-euc", recipe]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-5_000:]
    said = dict(line.split(" ", 1) for line in result.stdout.splitlines() if re.match("master|worker|averages", line))
    assert said["master"] == cluster
    assert "/env/lib/" in said["worker"]  # the unpacked archive, not this checkout
    averages = ast.literal_eval(said["averages"])
    assert averages.keys() == set(tables.systems)
    for system, values in zip(tables.systems, tables.average(), strict=True):
        assert averages[system] == pytest.approx(values, abs=1e-12)
