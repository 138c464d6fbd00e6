"""The advice on metrics under other decisions, in a table and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from cranfield._numbers import listed

ADVICE_KINDS = {
    **dict.fromkeys(("setup", "metric", "average"), pl.String),
    "rank": pl.Int64,
    **dict.fromkeys(("score", "lower", "upper", "first", "tau"), pl.Float64),
    "clear": pl.Boolean,
    "reason": pl.String,
}
"""The columns of `Audit.advice`."""


def said_of_advice(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return whether the advice is the same under each split and target design."""
    best = [row for row in rows if row["rank"] == 1]
    failed = sum(row["rank"] is None for row in rows)
    if len(best) < 2:
        return []
    named: dict[str, list[str]] = {}
    for row in best:
        average = "" if row["average"] == "mean" else f", {row['average']}"
        named.setdefault(f"{row['metric']}{average}", []).append(row["setup"])
    several = f"the {len(best)} set-ups that differ in the split or the target design"
    if len(named) == 1:
        said = f"The advice on metrics is the same under {several}: {next(iter(named))} scores highest in all of them"
    else:
        order = sorted(named.items(), key=lambda entry: -len(entry[1]))
        texts = [f"{metric} in {len(setups)}{_example(setups)}" for metric, setups in order]
        said = f"The advice on metrics is not the same under {several}; highest score: {listed(texts)}"
    clear = sum(row["clear"] for row in best)
    taus = [row["tau"] for row in best[1:] if row["tau"] is not None]
    reach = f"; tau with the order of metrics under the starting point: {_range(taus)}" if taus else ""
    left = f"; {failed} could not be assessed" if failed else ""
    return [f"{said}{reach}{left}. The choice is clear in {clear} of them."]


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _example(setups: Sequence[str]) -> str:
    return f" ({setups[0]})" if len(setups) == 1 else f" ({setups[0]} and others)"
