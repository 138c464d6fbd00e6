"""Comparison with a known truth: which options bring the measured order of systems closest to the true one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield.audits.grid import Grid
from cranfield.audits.leads import Floats, Leads
from cranfield.audits.pair import PairAudit
from cranfield.audits.resampling import interval
from cranfield.audits.terms import Terms
from cranfield.audits.true_values import KnownValues, stated_values
from cranfield.audits.wording import share_text

OrderSigns = NDArray[np.int8]

OPTION_KINDS = {
    **dict.fromkeys(("decision", "kind", "option"), pl.String),
    "cells": pl.Int64,
    **dict.fromkeys(("tau", "lower", "upper"), pl.Float64),
}
PAIR_KINDS = {
    **dict.fromkeys(("system_a", "system_b"), pl.String),
    **dict.fromkeys(("true_a", "true_b"), pl.Float64),
    "truly_better": pl.String,
    **dict.fromkeys(("right", "lower", "upper", "right_significantly", "wrong_significantly"), pl.Float64),
}


@dataclass(frozen=True)
class TruthFindings:
    """The comparison of an audit with a known truth.

    Parameters
    ----------
    source
        What the true values are, in words.
    options
        One row for all cells (decision None), then one per decision and option: the mean of Kendall's tau-b between the
        measured and the true values of the systems over the cells with the option, with its interval over resampled
        users. A cell in which all systems are tied counts as 0.
    pairs
        One row per pair of systems: the true values under the starting point, and the shares of the cells in which the
        truly better system leads (``right``), leads significantly, and in which the other leads significantly.
    """

    source: str
    options: tuple[dict[str, Any], ...]
    pairs: tuple[dict[str, Any], ...]


def truth_of(
    grid: Grid,
    systems: tuple[str, ...],
    truth: KnownValues | Mapping[str, float],
    averages: Floats,
    drawn: Floats,
    terms: Terms,
    pairs: Sequence[PairAudit],
) -> TruthFindings | None:
    """Compare the universes with the truth, if it is known for some cell."""
    if not isinstance(truth, KnownValues):
        truth = KnownValues("the given values", (), {(): stated_values(truth, systems)})
    values = truth.of_cells(grid)
    if np.isnan(values).any(axis=0).all():
        return None
    leads = [pair.leads for pair in pairs]
    return against_truth(grid, systems, truth.source, values, averages, drawn, terms.linear, leads)


def against_truth(
    grid: Grid,
    systems: Sequence[str],
    source: str,
    true: Floats,
    averages: Floats,
    drawn: Floats,
    linear: NDArray[np.bool_],
    leads: Sequence[Leads],
) -> TruthFindings:
    """Compare the universes with true values.

    Parameters
    ----------
    true
        Systems × cells: the true values, NaN for cells whose truth is not known.
    averages, drawn
        Systems × universes, and systems × resamples × universes of those that are ``linear``: larger is better.
    leads
        Which system leads in each universe, for each pair of systems.
    """
    known = np.asarray(~np.isnan(true).any(axis=0), dtype=np.bool_)
    pairs = list(combinations(range(len(systems)), 2))
    true_signs = _signs(true[:, known], pairs)
    cells = grid.universe[known]
    tau = np.zeros(grid.n_cells)
    tau[known] = _tau(true_signs, _signs(averages, pairs)[..., cells])
    drawn_tau = np.zeros((drawn.shape[1], grid.n_cells))
    for number in range(drawn.shape[1]):
        drawn_tau[number, known] = _tau(true_signs, _signs(drawn[:, number], pairs)[..., cells])
    tested = known & linear[grid.universe]
    rows = [
        {**named, **_mean(grid, tau, drawn_tau, mask & known, mask & tested)}
        for named, mask in _options(grid)
        if (mask & known).any()
    ]
    start = true[:, grid.start]
    shares = [
        _pair_row(grid, (systems[a], systems[b]), start[[a, b]], signs, own, drawn[[a, b]], known, tested)
        for (a, b), signs, own in zip(pairs, true_signs, leads)
    ]
    return TruthFindings(source, tuple(rows), tuple(shares))


def _signs(values: Floats, pairs: Sequence[tuple[int, int]]) -> OrderSigns:
    """Return pairs × columns: 1 if the first system of a pair has the larger value, −1 if the second has."""
    first, second = (list(places) for places in zip(*pairs))
    with np.errstate(invalid="ignore"):
        difference = values[first] - values[second]
        # Sums in another order may differ in their last digits, which does not count as a difference.
        equal = np.abs(difference) <= 1e-12 * np.maximum(np.abs(values[first]), np.abs(values[second]))
    return np.where(equal, 0, np.sign(np.nan_to_num(difference))).astype(np.int8)


def _tau(true: OrderSigns, measured: OrderSigns) -> Floats:
    """Return Kendall's tau-b of each column from the signs of all pairs; 0 if either side orders nothing."""
    agree = (true.astype(np.int64) * measured).sum(axis=0)
    ordered = np.abs(true).sum(axis=0, dtype=np.int64) * np.abs(measured).sum(axis=0, dtype=np.int64)
    return np.divide(agree, np.sqrt(ordered), out=np.zeros(agree.shape), where=ordered > 0)


def _options(grid: Grid) -> Iterator[tuple[dict[str, Any], NDArray[np.bool_]]]:
    yield {"decision": None, "kind": None, "option": None}, np.ones(grid.n_cells, dtype=bool)
    for place, opened in enumerate(grid.opened):
        for number, option in enumerate(opened.options):
            yield (
                {"decision": opened.name, "kind": opened.kind, "option": option},
                grid.cells[:, place] == number,
            )


def _mean(grid: Grid, tau: Floats, drawn: Floats, mask: NDArray[np.bool_], tested: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the weighted mean over some cells; its interval follows from the share of pairs in the true order."""
    mean = float(np.average(tau[mask], weights=grid.weights[mask]))
    ends: tuple[float | None, float | None] = (None, None)
    if tested.any():
        means = np.average(drawn[:, tested], axis=1, weights=grid.weights[tested])
        low, high = interval((mean + 1) / 2, (means + 1) / 2)
        ends = (2 * low - 1, 2 * high - 1)
    return {"cells": int(mask.sum()), "tau": mean, "lower": ends[0], "upper": ends[1]}


def _pair_row(
    grid: Grid,
    names: tuple[str, str],
    start: Floats,
    true: OrderSigns,
    leads: Leads,
    drawn: Floats,
    known: NDArray[np.bool_],
    tested: NDArray[np.bool_],
) -> dict[str, Any]:
    """Return how often the truly better system of a pair leads; the truth is that of each cell."""
    cells, weights = grid.universe[known], grid.weights[known]
    lead, significant = leads.lead[cells], leads.significant[cells]
    right, wrong = lead * true > 0, lead * true < 0
    total = float(weights.sum())
    share = float(right @ weights) / total
    ends: tuple[float | None, float | None] = (None, None)
    inside = tested[known]
    if inside.any():
        signs = np.sign(drawn[0] - drawn[1])[:, cells[inside]]
        own = weights[inside]
        ends = interval(share, (signs * true[inside] > 0) @ own / float(own.sum()))
    better = names[0] if start[0] > start[1] else names[1] if start[1] > start[0] else None
    return {
        "system_a": names[0],
        "system_b": names[1],
        "true_a": _number(start[0]),
        "true_b": _number(start[1]),
        "truly_better": better,
        "right": share,
        "lower": ends[0],
        "upper": ends[1],
        "right_significantly": float((right & significant) @ weights) / total,
        "wrong_significantly": float((wrong & significant) @ weights) / total,
    }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def said_of_truth(truth: TruthFindings | None, systems: tuple[str, str]) -> list[str]:
    """Return sentences on the truth about a pair, and on which options come closest to the true order."""
    if truth is None:
        return []
    row = next(row for row in truth.pairs if (row["system_a"], row["system_b"]) == systems)
    return [*_said_of_pair(row, truth.source), *_said_of_options(truth.options)]


def _said_of_pair(row: Mapping[str, Any], source: str) -> Iterator[str]:
    if row["truly_better"] is None:
        return
    first = row["truly_better"] == row["system_a"]
    better, worse = (row["system_a"], row["system_b"]) if first else (row["system_b"], row["system_a"])
    values = (row["true_a"], row["true_b"]) if first else (row["true_b"], row["true_a"])
    ends = "" if row["lower"] is None else f" [{share_text(row['lower'])}, {share_text(row['upper'])}]"
    agrees = "Most cells agree" if row["right"] > 0.5 else "Most cells do not agree"
    yield (
        f"In truth ({source}) {better} ({values[0]:.4g}) is better than {worse} ({values[1]:.4g}). {agrees}: {better} "
        f"leads in {share_text(row['right'])}{ends} of them, significantly in "
        f"{share_text(row['right_significantly'])}, and {worse} leads significantly in "
        f"{share_text(row['wrong_significantly'])}."
    )


def _said_of_options(options: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return a sentence on the decision that matters most for reaching the true order, by best and worst option."""
    rows = [row for row in options if row["decision"] is not None and row["kind"] != "chance"]
    reach = {}
    for name in dict.fromkeys(row["decision"] for row in rows):
        own = sorted((row for row in rows if row["decision"] == name), key=lambda row: -row["tau"])
        reach[name] = own[0], own[-1]
    best, worst = max(reach.values(), key=lambda ends: ends[0]["tau"] - ends[1]["tau"], default=(None, None))
    if best is None or worst is None or best["tau"] == worst["tau"]:
        return
    yield (
        f"The measured order of all systems agrees with the true one by a mean tau of {_tau_text(options[0])} over all "
        f"cells. The decision that matters most for it is {best['decision']}: the mean tau is {_tau_text(best)} with "
        f"{best['option']} and {_tau_text(worst)} with {worst['option']}."
    )


def _tau_text(row: Mapping[str, Any]) -> str:
    ends = "" if row["lower"] is None else f" [{row['lower']:.2f}, {row['upper']:.2f}]"
    return f"{row['tau']:.2f}{ends}"
