"""Claims of Cañamares and Castells (2020) about the number of unrated targets; the splits are the folds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from cranfield.studies.canamares_castells2020 import work
from cranfield.studies.canamares_castells2020.work import METRICS, PAIRS, SIZES, SUM_OF_P, agreement
from cranfield.studies.frame.claims import ClaimFindings, Floats, Part, Saying, finding, lowest_elsewhere, points


def claims_of(numbers: pl.DataFrame) -> ClaimFindings:
    """Return the verdicts on the paper's claims for each metric."""
    groups = (_of_order, _of_power, _of_truth)
    return [finding(__package__, said) for metric in METRICS for group in groups for said in group(numbers, metric)]


def _of_order(numbers: pl.DataFrame, metric: str) -> list[Saying]:
    """Claim that small target sets contradict large ones, by the pairs of systems whose order is reversed."""
    part = numbers.filter(pl.col("system") != PAIRS, metric=metric)
    systems = part["system"].unique(maintain_order=True).to_list()
    ends = [_by_fold(part.filter(unrated=size), "system", systems) for size in (SIZES[0], SIZES[-1])]
    first, second = np.triu_indices(len(systems), 1)
    turned = np.prod([values[:, first] - values[:, second] for values in ends], axis=0) < 0
    best = [int(values.mean(axis=0).argmax()) for values in ends]
    evidence = (
        f"{turned.sum(axis=1).mean():.1f} of {len(first)} pairs are reversed; "
        f"best: {systems[best[0]]}, then {systems[best[1]]}"
    )
    parts = {}
    for name, values, own, other in zip(("condensed", "full"), ends, best, reversed(best)):
        rivals = [other] if other != own else [place for place in range(len(systems)) if place != own]
        lead = values[:, own] - values[:, rivals].max(axis=1)
        parts[name] = Part(lead if other != own else -lead)
    named = {"metric": metric}
    return [
        Saying("reversed", Part(turned.mean(axis=1) - 0.25), evidence, named, systems=len(systems)),
        Saying("best", parts, evidence, named, systems=len(systems)),
    ]


def _of_power(numbers: pl.DataFrame, metric: str) -> list[Saying]:
    """Claim that targets between the extremes distinguish systems best, and that ties at zero grow with the targets."""
    part = numbers.filter(system=PAIRS)
    said = []
    for what, key in ((work.TIES, "ties"), (SUM_OF_P, "power")):
        curve = _by_fold(part.filter(metric=f"{what} of {metric}"), "unrated", SIZES)
        margin = np.minimum(curve[:, 0], curve[:, -1]) - lowest_elsewhere(curve[:, 1:-1])
        lowest = SIZES[int(curve.mean(axis=0).argmin())]
        said.append(Saying(key, Part(margin), f"{points(SIZES, curve)}; lowest at {lowest:,}", {"metric": metric}))
    zero = _by_fold(part.filter(metric=f"{work.TIES_AT_ZERO} of {metric}"), "unrated", SIZES)
    # Steps beyond the number of items change nothing.
    steps = {
        f"{before} to {after}": Part(zero[:, k + 1] - zero[:, k])
        for k, (before, after) in enumerate(pairwise(SIZES))
        if (zero[:, k + 1] != zero[:, k]).any()
    }
    return [*said, Saying("zero", steps, points(SIZES, zero), {"metric": metric})]


def _of_truth(numbers: pl.DataFrame, metric: str) -> list[Saying]:
    """Claim which targets come closest to the order by unbiased ratings, if these are known."""
    folds = numbers["fold"].unique(maintain_order=True).to_list()
    taus = np.array([agreement(numbers.filter(fold=fold), metric) for fold in folds])
    if not taus.size:
        return []
    evidence, named = f"Kendall's tau with the unbiased order: {points(SIZES, taus)}", {"metric": metric}
    nearest = -lowest_elsewhere(-taus[:, 1:-1]) - np.maximum(taus[:, 0], taus[:, -1])
    return [
        Saying("truth", Part(taus[:, -1] - taus[:, 0]), evidence, named),
        Saying("between", Part(nearest), evidence, named),
    ]


def _by_fold(part: pl.DataFrame, column: str, values: Sequence[Any]) -> Floats:
    """Return folds × values of a column."""
    columns = [part.filter(pl.col(column) == value).sort("fold")["value"].to_numpy() for value in values]
    return np.stack(columns, axis=1)
