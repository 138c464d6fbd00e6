"""What a person would say of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from cranfield._numbers import DASH, number_text


def p_text(p: float | None) -> str:
    """Return a p-value as people write it.

    Examples
    --------
    >>> p_text(0.03214), p_text(1e-9), p_text(1.0)
    ('0.0321', '<0.0001', '1')
    """
    if p is None or np.isnan(p):
        return DASH
    return "<0.0001" if p < 0.0001 else f"{p:.3g}"


def sentence(
    rows: pl.DataFrame, metric: str, baseline: str | None, lower_is_better: bool, means: Mapping[str, float]
) -> str:
    """Return the sentence for one metric; ``means`` are the averages of the systems, best first."""
    if len(rows) == 1:
        return f"{metric}: {_of_two(rows.row(0, named=True), lower_is_better)}"
    if baseline is not None:
        return f"{metric}: {_against(rows.to_dicts(), baseline)}"
    return f"{metric}: {_of_many(rows, means)}"


def _of_two(row: Mapping[str, Any], lower_is_better: bool) -> str:
    if row["n"] == 0:
        return f"{row['system_a']} and {row['system_b']} have no users in common."
    a_leads = row["difference"] == 0 or (row["difference"] < 0) == lower_is_better
    if row["better"] is not None:
        a_leads = row["better"] == row["system_a"]
    first, second = ("a", "b") if a_leads else ("b", "a")
    by = _gain(row, 1 if a_leads != lower_is_better else -1)
    users = (
        f"{row['n']:,} users: better for {row['wins' if a_leads else 'losses']:,}, equal for {row['ties']:,}, "
        f"worse for {row['losses' if a_leads else 'wins']:,}"
    )
    names = [f"{row[f'system_{one}']} ({row[f'mean_{one}']:.4f})" for one in (first, second)]
    if row["significant"]:
        return f"{names[0]} is better than {names[1]} by {by} (p {_equals(row['p_corrected'])}; {users})."
    return (
        f"no significant difference between {names[0]} and {names[1]}: {by} (p {_equals(row['p_corrected'])}; {users})."
    )


def _of_many(rows: pl.DataFrame, means: Mapping[str, float]) -> str:
    best = next(iter(means))
    others = rows.filter((pl.col("system_a") == best) | (pl.col("system_b") == best)).to_dicts()
    level = [row for row in others if not row["significant"]]
    beaten = f"{len(others) - len(level)} of {len(others)} others"
    said = f"{best} is best ({means[best]:.4f}), significantly better than {beaten}"
    if level:
        named = [
            f"{row['system_b' if row['system_a'] == best else 'system_a']} (p {_equals(row['p_corrected'])})"
            for row in level
        ]
        said += f"; not than {_listed(named)}"
    return f"{said}. Of {len(rows)} pairs {rows['significant'].sum()} differ significantly."


def _against(rows: list[dict[str, Any]], baseline: str) -> str:
    better = [row for row in rows if row["better"] == row["system_a"]]
    worse = [row for row in rows if row["better"] == baseline]
    said = [f"of {len(rows)} systems {len(better)} are significantly better than {baseline} and {len(worse)} worse"]
    for name, group in (("better", better), ("worse", worse)):
        if group:
            told = [f"{row['system_a']} ({row['difference']:+.4f}, p {_equals(row['p_corrected'])})" for row in group]
            said.append(f"{name}: {_listed(told)}")
    return "; ".join(said) + "."


def _gain(row: Mapping[str, Any], sign: int) -> str:
    """Return what the better system gains, with its interval."""
    ends = sorted(sign * row[end] for end in ("lower", "upper"))
    interval = ", ".join(number_text(end) for end in ends)
    return f"{sign * row['difference']:.4f} [{interval}]"


def _listed(names: list[str], most: int = 4) -> str:
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _equals(p: float | None) -> str:
    text = p_text(p)
    return text.replace("<", "< ") if text.startswith("<") else f"= {text}"
