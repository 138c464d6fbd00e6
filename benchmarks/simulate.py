"""Simulated ratings of the size of MovieLens 1M: how long they take, and how much memory.

    python benchmarks/simulate.py

There is no peer to compare with: the target is a world of 6,040 x 3,706 with 1,000,209 ratings in under 10 seconds on
two cores. Each case runs in a separate process, so that its peak memory is its own; the memory of Python and the
package alone is shown as well.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from cranfield import simulate

SIZE = (6_040, 3_706, 1_000_209)
TARGET = 10.0


def _world(**settings: Any) -> Callable[[], Any]:
    return lambda: simulate.world(*SIZE, **settings)


def _popularity(**settings: Any) -> Callable[[], Any]:
    return lambda: simulate.popularity(*SIZE, **settings)


CASES: dict[str, Callable[[], Any]] = {
    "world": _world(),
    "world without biases": _world(popularity_bias=0, relevance_bias=0, activity=0),
    "world with 50 tastes": _world(tastes=50),
    "popularity, alpha 0": _popularity(alpha=0),
    "popularity, alpha 1.4": _popularity(alpha=1.4),
    "popularity, alpha 2": _popularity(alpha=2),
}


def _megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def _measure(case: str) -> None:
    import scipy.special  # noqa: F401  (loaded on first use; not what is measured)

    before, start = _megabytes(), time.perf_counter()
    CASES[case]()
    print(f"{case:<24}{time.perf_counter() - start:>10.2f} s{before:>12.0f} MB{_megabytes():>12.0f} MB")


def main() -> None:
    if len(sys.argv) > 1:
        _measure(sys.argv[1])
        return
    print(f"{SIZE[0]:,} users x {SIZE[1]:,} items, {SIZE[2]:,} ratings; the target for a world is {TARGET:g} s")
    print(f"{'':<24}{'time':>12}{'before':>15}{'peak':>15}", flush=True)
    for case in CASES:
        print(
            subprocess.run([sys.executable, __file__, case], capture_output=True, text=True, check=True).stdout, end=""
        )


if __name__ == "__main__":
    main()
