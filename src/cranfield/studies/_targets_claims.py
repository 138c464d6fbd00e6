"""Claims of Cañamares and Castells (2020) about target sampling, checked on the folds of a run."""

from __future__ import annotations

import numpy as np
import polars as pl

from cranfield.studies._claims import Finding, Floats, Saying, finding_over_splits
from cranfield.studies._targets import METRICS, PAIRS, SIZES, SUM_OF_P, TIES, TIES_AT_ZERO, agreement

_WHERE = "Abstract, Figure 3"
_POWER = "Abstract, Figure 4"
_TRUTH = "Abstract, Figures 2 and 4"


def claims_of(numbers: pl.DataFrame) -> list[Finding]:
    """Return the verdicts on the paper's claims for each metric; the splits are the folds."""
    groups = (_of_order, _of_power, _of_truth)
    said = [saying for metric in METRICS for group in groups for saying in group(numbers, metric)]
    return [finding_over_splits(saying) for saying in said]


def _of_order(numbers: pl.DataFrame, metric: str) -> list[Saying]:
    """Claim that small target sets contradict large ones, by the pairs of systems whose order is reversed."""
    part = numbers.filter(pl.col("system") != PAIRS, metric=metric)
    systems = part["system"].unique(maintain_order=True).to_list()
    test, full = (_by_fold(part.filter(unrated=size), systems) for size in (SIZES[0], SIZES[-1]))
    first, second = np.triu_indices(len(systems), 1)
    turned = (test[:, first] - test[:, second]) * (full[:, first] - full[:, second]) < 0
    share = turned.mean(axis=1)
    means = test.mean(axis=0), full.mean(axis=0)
    best = [systems[int(values.argmax())] for values in means]
    evidence = f"{turned.sum(axis=1).mean():.1f} of {len(first)} pairs are reversed; best: {best[0]}, then {best[1]}"
    claim = f"By {metric} condensed lists contradict full ones for at least a quarter of the pairs of systems"
    other = [systems[int(row.argmax())] != systems[int(own.argmax())] for row, own in zip(test, full)]
    return [
        Saying(claim, _WHERE, share - 0.25 + 1e-9, evidence),
        Saying(f"By {metric} another system is best with condensed than with full lists", _WHERE,
               np.where(other, 1.0, -1.0), evidence),
    ]  # fmt: skip


def _of_power(numbers: pl.DataFrame, metric: str) -> list[Saying]:
    """Claim that targets between the extremes distinguish systems best, and that ties at zero grow with the targets."""
    part = numbers.filter(system=PAIRS)
    said = []
    for what, claim in (
        (TIES, "ties are fewest between condensed and full lists"),
        (SUM_OF_P, "the sum of p-values is lowest between condensed and full lists"),
    ):
        curve = _curve(part, f"{what} of {metric}")
        inner = curve[:, 1:-1].min(axis=1)
        margin = np.minimum(curve[:, 0], curve[:, -1]) - inner
        lowest = SIZES[int(curve.mean(axis=0).argmin())]
        evidence = f"{_points(curve)}; lowest at {lowest:,}"
        said.append(Saying(f"By {metric} {claim}", _POWER, margin, evidence))
    zero = _curve(part, f"{TIES_AT_ZERO} of {metric}")
    claim = f"By {metric} ties at zero grow with the number of targets"
    return [*said, Saying(claim, _POWER, np.diff(zero, axis=1).min(axis=1) + 1e-3, _points(zero))]


def _of_truth(numbers: pl.DataFrame, metric: str) -> list[Saying]:
    """Claim which targets come closest to the order by unbiased ratings, if these are known."""
    folds = numbers["fold"].unique(maintain_order=True).to_list()
    taus = np.array([agreement(numbers.filter(fold=fold), metric) for fold in folds])
    if not taus.size:
        return []
    evidence = f"Kendall's tau with the unbiased order: {_points(taus)}"
    best = taus[:, 1:-1].max(axis=1)
    return [
        Saying(f"By {metric} condensed lists are further from the unbiased order than full ones", _TRUTH,
               taus[:, -1] - taus[:, 0], evidence),
        Saying(f"By {metric} targets in between come nearest to the unbiased order", _TRUTH,
               best - np.maximum(taus[:, 0], taus[:, -1]), evidence),
    ]  # fmt: skip


def _by_fold(part: pl.DataFrame, systems: list[str]) -> Floats:
    """Return folds × systems."""
    columns = [part.filter(system=system).sort("fold")["value"].to_numpy() for system in systems]
    return np.stack(columns, axis=1)


def _curve(part: pl.DataFrame, metric: str) -> Floats:
    """Return folds × sizes."""
    columns = [part.filter(metric=metric, unrated=size).sort("fold")["value"].to_numpy() for size in SIZES]
    return np.stack(columns, axis=1)


def _points(curve: Floats) -> str:
    return ", ".join(f"{size}: {value:.3f}" for size, value in zip(SIZES, curve.mean(axis=0)))
