"""How the time and memory of a gate grow with the number of users, by kind of metric.

    python benchmarks/gate.py [--most 1000000] [--systems 2] [--changed 0.1] [--margin 1% --margin 0.002]

The values are synthetic: two-valued (HitRate@10), on a lattice (P@10), few distinct values without a common step
(RR@10), continuous (nDCG@100), and heavy-tailed (an amount spent). The values of a share of the users are drawn again
for the other system. Each gate runs in its own process. Clock seconds, processor seconds over all threads, and the
anonymous memory above the values are printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from cranfield.comparisons import compare

METRICS = ("HitRate@10", "P@10", "RR@10", "nDCG@100", "amount")


def values_of(metric: str, users: int, rng: np.random.Generator) -> np.ndarray:
    """Return the values of one metric for users of different difficulty."""
    ease = rng.beta(1.2, 6, users)
    if metric == "HitRate@10":
        return (rng.random(users) < ease).astype(np.float64)
    if metric == "P@10":
        return rng.binomial(10, ease) / 10
    if metric == "RR@10":
        rank = rng.geometric(ease / 2 + 0.02)
        return np.where(rank <= 10, 1 / rank, 0.0)
    if metric == "nDCG@100":
        return np.where(rng.random(users) < 0.3, 0.0, rng.beta(1 + 3 * ease, 8))
    return np.where(rng.random(users) < 0.9, 0.0, rng.pareto(1.5, users))


def megabytes() -> float:
    """Return the anonymous memory of this process."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) / 1024


class Peak:
    """The largest anonymous memory while a block runs, sampled every few milliseconds."""

    def __enter__(self) -> Peak:
        import threading

        self.before = self.most = megabytes()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self.most = max(self.most, megabytes())

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def one_gate(metric: str, users: int, margin: str, options: argparse.Namespace) -> dict[str, float | str]:
    """Compare systems that differ for some of the users, and test the gate."""
    import scipy.stats  # noqa: F401  (its import is not what is timed)

    rng = np.random.default_rng(0)
    old = values_of(metric, users, rng)
    values = {"old": old}
    for place in range(1, options.systems):
        again = rng.random(users) < options.changed
        values[f"new {place}"] = np.where(again, values_of(metric, users, rng), old)
    comparison = compare(values, baseline="old", significance=options.significance)
    with Peak() as peak:
        start, busy = time.perf_counter(), time.process_time()
        gate = comparison.no_worse(by=margin) if margin != "better" else comparison.better()
        clock, processor = time.perf_counter() - start, time.process_time() - busy
    return {
        "clock": clock,
        "processor": processor,
        "megabytes": peak.most - peak.before,
        "outcome": gate.outcome,
        "limit": gate.frame()["limit"][0],
        "p": gate.frame()["p"][0],
    }


def main() -> None:
    """Run every gate in its own process, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--systems", type=int, default=2)
    parser.add_argument("--changed", type=float, default=0.1, help="the share of users whose values differ")
    parser.add_argument("--margin", action="append")
    parser.add_argument("--metric", action="append", choices=METRICS)
    parser.add_argument("--significance", default="permutation")
    parser.add_argument("--seconds", type=float, default=300.0, help="give up after this time")
    parser.add_argument("--one", nargs=3, metavar=("METRIC", "USERS", "MARGIN"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        metric, users, margin = options.one
        print(json.dumps(one_gate(metric, int(users), margin, options)))
        return
    print(f"{options.systems} systems, {options.significance}, {100 * options.changed:g} % of the values changed")
    print(f"{'':22}{'margin':>8}{'users':>11}{'seconds':>10}{'processor':>11}{'MB':>8}  outcome (p, limit)")
    for metric in options.metric or METRICS:
        for margin in options.margin or ("1%", "0.002"):
            users = 1000
            while users <= options.most:
                command = [sys.executable, __file__, "--one", metric, str(users), margin]
                command += ["--systems", str(options.systems), "--significance", options.significance]
                command += ["--changed", str(options.changed)]
                try:
                    run = subprocess.run(command, check=True, capture_output=True, timeout=options.seconds)
                except subprocess.TimeoutExpired:
                    print(f"{metric:22}{margin:>8}{users:11,}  more than {options.seconds:g} s")
                    break
                row = json.loads(run.stdout)
                print(
                    f"{metric:22}{margin:>8}{users:11,}{row['clock']:10.2f}{row['processor']:11.2f}"
                    f"{row['megabytes']:8.0f}  {row['outcome']} ({row['p']:.3g}, {row['limit']:+.8f})",
                    flush=True,
                )
                users *= 10


if __name__ == "__main__":
    main()
