"""How long measuring takes, compared with pytrec_eval, ir_measures, ranx and RecTools in one process on the same data.

    python benchmarks/measure.py             # all of it, some minutes
    python benchmarks/measure.py --quick     # the smallest case
    python benchmarks/measure.py --further   # what each metric costs once the lists are judged
    python benchmarks/measure.py --memory    # peak memory of each tool, one process each
    python benchmarks/measure.py --growth    # up to ten million recommended items
    python benchmarks/measure.py --first     # a fresh process: import and first evaluation

Peers that are not installed are left out. RecTools 0.19 needs NumPy 1, and so does an environment with all of them.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

import cranfield as cf
from cranfield.judgments import Judgments, judge
from cranfield.judgments.joining import join
from cranfield.metrics import Metric, known_metrics

NINE = ["P@10", "Recall@100", "F1", "AP@100", "nDCG@10", "nDCG@100", "RR", "bpref", "infAP(pool=judged)"]
PYTREC = {"P_10", "recall_100", "set_F", "map_cut_100", "ndcg_cut_10", "ndcg_cut_100", "recip_rank", "bpref", "infAP"}
IR_MEASURES = ["P(rel=4)@10", "R(rel=4)@100", "SetF(rel=4)", "AP(rel=4)@100", "nDCG@10", "nDCG@100", "RR(rel=4)",
               "Bpref(rel=4)", "infAP(rel=4)"]  # fmt: skip
RANX = ["precision@10-l4", "recall@100-l4", "f1@100-l4", "map@100-l4", "ndcg@10", "ndcg@100", "mrr-l4", "bpref-l4"]
DEPTH, JUDGED, ITEMS = 100, 33, 3706


class World:
    """Test ratings and the lists of some systems: 33 judgments per user, about a tenth of a list judged."""

    def __init__(self, users: int, systems: int, text: bool, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        keys = rng.random((users, ITEMS)) ** (1 + 4 * np.arange(ITEMS) / ITEMS)
        judged = np.argpartition(-keys, JUDGED, axis=1)[:, :JUDGED]
        user = np.repeat(np.arange(users), JUDGED)
        name = (
            (lambda codes, what: np.char.add(what, codes.astype(str)).astype(object))
            if text
            else lambda codes, _: codes
        )
        self.test = pd.DataFrame({
            "user": name(user, "u"), "item": name(judged.reshape(-1), "i"), "rating": rng.integers(1, 6, len(user)),
        })  # fmt: skip
        self.runs = {}
        for s in range(systems):
            liked = rng.random((users, ITEMS)) + 0.3 * (keys - keys.min())
            top = np.argpartition(-liked, DEPTH, axis=1)[:, :DEPTH]
            score = np.take_along_axis(liked, top, axis=1)
            order = np.argsort(-score, axis=1)
            self.runs[f"system{s}"] = pd.DataFrame({
                "user": name(np.repeat(np.arange(users), DEPTH), "u"),
                "item": name(np.take_along_axis(top, order, axis=1).reshape(-1), "i"),
                "score": np.take_along_axis(score, order, axis=1).reshape(-1).astype(np.float32).astype(np.float64),
            })  # fmt: skip


def best(work: Callable[[], Any], times: int) -> float:
    """Return the seconds of the fastest of several runs, after one to warm up."""
    work()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def ours(world: World) -> Any:
    return cf.measure(world.runs, world.test, NINE, threshold=4).average()


def nested(frame: pd.DataFrame, value: str, kind: type) -> dict[str, dict[str, Any]]:
    """Return a frame as the dictionaries that pytrec_eval takes, in the fastest way we know."""
    user, item = frame["user"].astype(str).to_numpy(), frame["item"].astype(str).tolist()
    values = frame[value].astype(kind).tolist()
    bounds = [0, *(np.flatnonzero(user[1:] != user[:-1]) + 1).tolist(), len(user)]
    return {user[a]: dict(zip(item[a:b], values[a:b])) for a, b in itertools.pairwise(bounds)}


def pytrec(world: World) -> Any:
    import pytrec_eval

    evaluator = pytrec_eval.RelevanceEvaluator(nested(world.test, "rating", int), PYTREC, relevance_level=4)
    return {name: evaluator.evaluate(nested(run, "score", float)) for name, run in world.runs.items()}


def ir_measures(world: World) -> Any:
    import ir_measures as ir

    qrels = world.test.rename(columns={"user": "query_id", "item": "doc_id", "rating": "relevance"})
    qrels = qrels.astype({"query_id": str, "doc_id": str})
    measures = [ir.parse_measure(spelling) for spelling in IR_MEASURES]
    evaluator = ir.evaluator(measures, qrels)
    for run in world.runs.values():
        frame = run.rename(columns={"user": "query_id", "item": "doc_id"}).astype({"query_id": str, "doc_id": str})
        evaluator.calc_aggregate(frame)


def ranx(world: World) -> Any:
    from ranx import Qrels, Run, evaluate

    # ranx needs text in object columns.
    text = {"user": str, "item": str}
    plain = dict.fromkeys(text, object)
    qrels = Qrels.from_df(world.test.astype(text).astype(plain), "user", "item", "rating")
    for run in world.runs.values():
        frame = run.astype(text).astype(plain)
        evaluate(qrels, Run.from_df(frame, "user", "item", "score"), RANX)


def rectools(world: World) -> Any:
    from rectools import Columns
    from rectools.metrics import MAP, MRR, NDCG, F1Beta, Precision, Recall, calc_metrics

    metrics = {"P": Precision(k=10), "R": Recall(k=100), "F1": F1Beta(k=100), "MAP": MAP(k=100), "N10": NDCG(k=10),
               "N100": NDCG(k=100), "MRR": MRR(k=100)}  # fmt: skip
    names = {"user": Columns.User, "item": Columns.Item}
    liked = world.test[world.test["rating"] >= 4].rename(columns=names)
    for run in world.runs.values():
        reco = run.rename(columns=names)
        reco[Columns.Rank] = reco.groupby(Columns.User).cumcount() + 1
        calc_metrics(metrics, reco=reco, interactions=liked)


SEVEN = ["P@10", "Recall@100", "F1@100", "AP@100", "nDCG@10", "nDCG@100", "RR@100"]


def ours_seven(world: World) -> Any:
    return cf.measure(world.runs, world.test, SEVEN, threshold=4).average()


PEERS = {"pytrec_eval": pytrec, "ir_measures": ir_measures, "ranx": ranx}


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def from_frames(cases: list[tuple[int, int, bool]]) -> None:
    print("From pandas frames, conversion included; seconds, best of three after a warm-up.\n")
    for users, systems, text in cases:
        world = World(users, systems, text)
        kind = "text" if text else "integer"
        print(f"{users:,} users x {systems} systems, {kind} ids")
        mine = best(lambda: ours(world), 5)  # noqa: B023
        print(f"  {'cranfield':12} {mine:8.3f}")
        for name, work in PEERS.items():
            if installed(name):
                taken = best(lambda: work(world), 3 if users < 10_000 else 1)  # noqa: B023
                print(f"  {name:12} {taken:8.3f}   {taken / mine:6.1f} x ours")
        if installed("rectools"):
            seven, taken = best(lambda: ours_seven(world), 5), best(lambda: rectools(world), 3)  # noqa: B023
            print(f"  {'RecTools':12} {taken:8.3f}   {taken / seven:6.1f} x ours on its seven metrics ({seven:.3f})")


# A copy of a run counts as another run, so the cached join of the first is not used for it.
def ready_made(users: int) -> None:
    """Time our ready-made runs against pytrec_eval's own call on ready-made dictionaries."""
    import pytrec_eval

    world = World(users, 1, text=False)
    test, run = cf.read(world.test), cf.read_run(world.runs["system0"], name="s")
    evaluator = pytrec_eval.RelevanceEvaluator(nested(world.test, "rating", int), PYTREC, relevance_level=4)
    lists = nested(world.runs["system0"], "score", float)
    mine, theirs = (
        best(lambda: cf.measure(replace(run), test, NINE, threshold=4), 7),
        best(lambda: evaluator.evaluate(lists), 3),
    )
    print(f"\nRuns already ours, {users:,} users: {mine:.4f} s; pytrec_eval's evaluate call {theirs:.4f} s, "
          f"{theirs / mine:.1f} x ours")  # fmt: skip
    judgments = Judgments.of(test, 4.0)
    print(f"  the join alone {best(lambda: join(run, judgments), 7) * 1e3:.2f} ms; each metric after it, ms:")
    judged = judge(run, judgments)
    for name in [*NINE, "nDCG@20", "RBP(p=0.8)", "ERR"]:
        metric = Metric.of(name)
        print(f"    {name:20} {best(lambda: metric(judged), 7) * 1e3:6.2f}")  # noqa: B023


def growth() -> None:
    print("\nGrowth: seconds to measure nine metrics on runs that are ours, one system.")
    for users in (6_250, 12_500, 25_000, 50_000, 100_000):
        parts = [World(6_250, 1, text=False, seed=seed) for seed in range(users // 6_250)]
        frames = [(part.test, part.runs["system0"]) for part in parts]
        for block, (test, run) in enumerate(frames):
            test["user"] += block * 6_250
            run["user"] += block * 6_250
        test, run = cf.read(pd.concat([a for a, _ in frames])), cf.read_run(pd.concat([b for _, b in frames]), name="s")
        taken = best(lambda: cf.measure(replace(run), test, NINE, threshold=4), 3)  # noqa: B023
        print(f"  {users * DEPTH:12,} recommended items {taken:8.3f} s  {taken / users / DEPTH * 1e9:6.1f} ns an item")


def memory(limit: int) -> None:
    """Measure each tool in a separate process: ours first, then the peers, each stopped after ``limit`` seconds."""
    tools = ["ours", *(peer for peer in [*PEERS, "rectools"] if installed(peer))]
    for users in (6_040, 33_388):
        print(f"\nPeak memory above that of the data, MiB; {users:,} users x 5 systems, integer ids.", flush=True)
        for name in tools:
            command = [sys.executable, __file__, "--alone", name, "--users", str(users)]
            try:
                run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit)
                outcome = f"{run.stdout.strip():>8}"
            except subprocess.TimeoutExpired:
                outcome = f"not done in {limit:,} s"
            except subprocess.CalledProcessError as error:
                outcome = (error.stderr.strip().splitlines() or [f"ended with {error.returncode}"])[-1]
            print(f"  {name:12} {outcome}", flush=True)


def alone(name: str, users: int) -> None:
    world = World(users, 5, text=False)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Memory freed after building the data would hide what the tool uses, so it is held.
    now = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() // 1024  # noqa: PTH123, SIM115
    ballast = np.ones(max(before - now, 0) * 128)
    {"ours": ours, "rectools": rectools, **PEERS}[name](world)
    print(round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024), ballast[:0].tolist() or "")


def further(users: int) -> None:
    """Time each registered metric on judged lists: the first time, and together with others of its kind."""
    world, before = World(users, 1, text=False), World(users, 1, text=False, seed=1).test
    test, run, train = cf.read(world.test), cf.read_run(world.runs["system0"], name="s"), cf.read(before)
    likeness = np.random.default_rng(2).random((len(test.item_ids), len(test.item_ids)))
    judgments = Judgments.of(test, 4.0)
    print(f"\nOne further metric, {users:,} users x {DEPTH} items x {JUDGED} judgments; ms, best of seven.\n"
          "  metric                    first  further")  # fmt: skip
    for name, definition in known_metrics().items():
        metric = Metric.of(name if definition.cutoff == "none" else f"{name}@{DEPTH}")
        firsts, furthers = [], []
        for _ in range(7):
            judged = judge(run, judgments, train=train, similarity=likeness)
            for taken in (firsts, furthers):
                start = time.perf_counter()
                metric(judged)
                taken.append(time.perf_counter() - start)
        print(f"  {metric!s:22} {min(firsts) * 1e3:8.2f} {min(furthers) * 1e3:8.2f}")


def first() -> None:
    code = (
        "import time; t = time.perf_counter(); import cranfield as cf; i = time.perf_counter() - t\n"
        "r = {str(u): {str(i): float(-i) for i in range(100)} for u in range(1000)}\n"
        "q = cf.Ratings.of([str(u) for u in range(1000)], [str(u % 100) for u in range(1000)])\n"
        "t = time.perf_counter(); cf.measure({'s': r}, q).frame(); print(i, time.perf_counter() - t)"
    )
    # As installed: with compiled bytecode next to the modules, which the first run writes.
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=usual)
        for _ in range(6)
    ]
    importing, evaluating = np.array([run.stdout.split() for run in runs[1:]], dtype=float).min(axis=0)
    print(f"\nA fresh process: import {importing:.3f} s, first evaluation {evaluating:.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("quick", "further", "memory", "growth", "first"):
        parser.add_argument(f"--{option}", action="store_true")
    parser.add_argument("--limit", type=int, default=1800, help="seconds that --memory gives each tool")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    parser.add_argument("--users", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.alone:
        alone(chosen.alone, chosen.users)
        return
    everything = not (chosen.quick or chosen.further or chosen.memory or chosen.growth or chosen.first)
    if everything or chosen.quick:
        cases = [(6_040, 1, False), (6_040, 1, True)]
        if everything:
            cases += [(6_040, 5, False), (6_040, 5, True), (33_388, 1, False), (33_388, 1, True), (33_388, 5, False)]
        from_frames(cases)
        ready_made(6_040)
    if everything or chosen.further:
        further(6_040)
    if everything or chosen.first:
        first()
    if everything or chosen.growth:
        growth()
    if everything or chosen.memory:
        memory(chosen.limit)


if __name__ == "__main__":
    main()
