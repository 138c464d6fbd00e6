"""How much work a run does, and how much of it a second run saves.

Counts the joins of runs with test sets and the encodings of ids in a run with report and assessment; the systems
trained, and the seconds, in a second run after each single decision changed; and the time of a run of five systems.

    python benchmarks/house.py [--data ratings.parquet] [--quick]

Without ``--data`` it uses ``ml-100k.parquet`` from the folder in ``CRANFIELD_DATA``, or else a simulated world.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

SYSTEMS = ("popularity", "random", "knn(k=100)", "puresvd(factors=50)", "wrmf(factors=20, iterations=5)")

# One change per decision. Groups need lists in groups, so they come with the design that makes them.
CHANGES: dict[str, Any] = {
    "min_ratings": 20,
    "sample": 0.5,
    "new_users": "served",
    "fill": "popularity",
    "lists": "condensed",
    "candidates": "test",
    "relevant": "one",
    "nonrelevant": 100,
    "unrated": 100,
    "keep_seen": True,
    "length": 200,
    "metrics": ("P@5", "nDCG@5"),
    "threshold": 3.0,
    "undefined": "leave out",
    "average": "weighted(by=judged)",
    "coverage": "reduced",
    "significance": "wilcoxon",
    "correction": "none",
    "alpha": 0.01,
    "baseline": "popularity",
    "segment": "activity",
    "split": "random(train=0.5)",
    "groups": {"groups": "equal", "split": "percentiles", "candidates": "group", "relevant": "one"},
    "filters": ("k_core(k=10)",),
    "levels": "all",
    "catalogue": "train",
    "draws": {"draws": "exact", "nonrelevant": 100, "metrics": ("P@10",)},
    # A tenth of the training ratings is set aside, so the systems learn from different ratings.
    "calibration": "linear",
}

# Where each counted function is called.
COUNTED = {
    "joins": ("cranfield.judgments.judging", "join"),
    "measure": ("cranfield.experiments.stages.lists", "measure"),
    "comparisons": ("cranfield.experiments.stages.results", "compare_scores"),
}


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count calls, and the ids encoded, inside the context."""
    counts: Counter[str] = Counter()
    undo = []
    for what, (module, name) in COUNTED.items():
        home = import_module(module)
        undo.append((home, name, getattr(home, name)))
        setattr(home, name, _counted(counts, what, getattr(home, name)))
    from cranfield.tables.vocabulary import Vocabulary

    undo.append((Vocabulary, "codes", Vocabulary.codes))
    Vocabulary.codes = _counted(counts, "look-ups of ids", Vocabulary.codes)  # type: ignore[method-assign]
    encode = Vocabulary.encode.__func__  # type: ignore[attr-defined]
    undo.append((Vocabulary, "encode", classmethod(encode)))
    Vocabulary.encode = classmethod(_counted(counts, "encodings of ids", encode))  # type: ignore[assignment,method-assign]
    try:
        yield counts
    finally:
        for home, name, original in undo:
            setattr(home, name, original)


def _counted(counts: Counter[str], what: str, function: Any) -> Any:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        # A run first rehearses everything on a handful of ratings.
        rehearsing = any(frame.function == "rehearse" for frame in inspect.stack(0))
        counts[f"{what} on a handful of ratings" if rehearsing else what] += 1
        return function(*arguments, **options)

    return call


def _source(path: Path | None) -> Any:
    from cranfield.experiments import Source

    if path is None:
        return Source("world", simulate="world(users=1000, items=1500, ratings=100000)")
    return Source(path.stem, file=str(path))


def _made(out: Path) -> Counter[str]:
    """Return how many artifacts of each stage the last run made, according to the log."""
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    last = log[[place for place, entry in enumerate(log) if entry["did"] == "started"][-1] :]
    return Counter(entry["artifact"].split("/")[0] for entry in last if entry["did"] == "made")


def timed(work: Callable[[], object]) -> str:
    """Do the work, and return the clock and processor seconds; a busy machine changes the latter less."""
    start, before = time.perf_counter(), os.times()
    work()
    seconds, after = time.perf_counter() - start, os.times()
    return f"{seconds:.2f} s ({sum(after[:4]) - sum(before[:4]):.2f} s of processor time)"


def _import_seconds() -> str:
    command = [sys.executable, "-c", "import cranfield"]
    return min(timed(lambda: subprocess.run(command, check=True)) for _ in range(5))


def _lines() -> int:
    import cranfield

    return sum(len(path.read_text().splitlines()) for path in Path(cranfield.__file__).parent.rglob("*.py"))


def main() -> None:
    """Run everything, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--quick", action="store_true", help="leave out the changes of decisions")
    options = parser.parse_args()
    usual = Path(os.environ.get("CRANFIELD_DATA", "data")) / "ml-100k.parquet"
    path = options.data or (usual if usual.exists() else None)

    from cranfield.experiments import Decisions, Experiment, System, run
    from cranfield.reports import report_experiment

    five = tuple(System(spelling, spelling) for spelling in SYSTEMS)
    two = five[:2]
    home, source = Path(tempfile.mkdtemp()), _source(path)
    print(f"data: {source.name}")
    assess = {"samples": 5, "scenarios": ["ratings"]}
    run(Experiment(data=(_source(None),), systems=two), home / "warm", report=report_experiment)
    with counting() as counts:
        experiment = Experiment(data=(source,), systems=two, assess=assess)
        run(experiment, home / "two", report=report_experiment)
    print(f"a run of two systems with report and assessment: {dict(counts)}")

    for what in ("a run of five systems", "the same again"):
        print(f"{what}: {timed(lambda: run(Experiment(data=(source,), systems=five), home / 'five'))}")
    for name, value in [] if options.quick else CHANGES.items():
        decisions = Decisions(**(value if isinstance(value, dict) else {name: value}))
        took = timed(lambda: run(Experiment(data=(source,), systems=five, decisions=decisions), home / "five"))  # noqa: B023
        artifacts = _made(home / "five")
        print(f"  {name}={value}: {took}, {artifacts['models']} trained, made {dict(artifacts)}")
    if not options.quick:
        took = timed(lambda: run(Experiment(data=(source,), systems=five), home / "five"))
        print(f"back to the first: {took}, made {dict(_made(home / 'five'))}")
        print(f"decisions without a change here: {sorted(set(Decisions().as_dict()) - set(CHANGES)) or 'none'}")
    print(f"import cranfield: {_import_seconds()}")
    print(f"source: {_lines():,} lines")


if __name__ == "__main__":
    main()
