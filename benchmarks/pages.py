"""How large the pages are, and how long they take to make.

    python benchmarks/pages.py

A report of 50 systems and 50 metrics with all pairs tested, the drawing libraries in every page, and the page of an
audit of twelve systems with 4,500 universes, as many as in the preset ``usual``. Values are random.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import cranfield as cf
from cranfield._figures import vega_library
from cranfield.audits import Audit, Grid, VariedDecision
from cranfield.reports import report
from cranfield.reports.audit_page import audit_page


def printed(name: str, page: Callable[[], str]) -> str:
    """Make a page, and print its size and the time it takes."""
    start = time.perf_counter()
    text = page()
    print(f"{name:<44}{len(text.encode()) / 1e6:6.1f} MB {time.perf_counter() - start:8.1f} s", flush=True)
    return text


def many_scores(systems: int = 50, users: int = 30, items: int = 30) -> cf.Scores:
    """Return the scores of random lists by 50 metrics."""
    rng = np.random.default_rng(0)
    rated = [(user, int(item)) for user in range(users) for item in rng.permutation(items)[:8]]
    test = cf.Ratings.of(*zip(*rated, strict=True), rng.integers(1, 6, len(rated)))
    runs = {
        f"system {k}": {user: rng.permutation(items)[:20].tolist() for user in range(users)} for k in range(systems)
    }
    metrics = [f"{name}@{n}" for name in ("P", "Recall", "nDCG", "AP", "RR") for n in range(1, 11)]
    return cf.measure(runs, test, metrics, threshold=4)


def many_universes(systems: int = 12, users: int = 100) -> Audit:
    """Return an audit of random values in the universes of six decisions."""
    options = {"split": 10, "metrics": 5, "cutoff": 5, "threshold": 3, "average": 3, "coverage": 2}
    grid = Grid.product(
        [
            VariedDecision(name, "equivalent", tuple(f"{name} {k}" for k in range(count)))
            for name, count in options.items()
        ]
    )
    rng = np.random.default_rng(0)
    values = rng.normal(0.5, 0.2, size=(systems, 1, users)) + rng.normal(0, 0.05, size=(systems, grid.n_cells, users))
    names = [f"system {k}" for k in range(systems)]
    return Audit.of(grid, names, values.mean(axis=2), values.astype(np.float32), draws=100, resamples=10)


def main() -> None:
    """Print everything."""
    scores = many_scores()
    comparison = cf.compare(scores, significance="student", correction="none")
    printed("report, 50 systems and 50 metrics", lambda: report(scores, comparison))
    printed("the Vega libraries in it", vega_library)
    audit = many_universes()
    printed(f"audit, 12 systems and {audit.grid.n_universes:,} universes", lambda: audit_page(audit))


if __name__ == "__main__":
    main()
