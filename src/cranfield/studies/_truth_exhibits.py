"""Tables and figures about designs of a truth, and about protocols compared with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from cranfield._table import Cell, Table
from cranfield.studies._resampled import JUDGED_PAIRS
from cranfield.studies._study import Exhibit
from cranfield.studies._truth_figures import draw_orders, draw_worlds
from cranfield.studies._truth_orders import SCHEMA, order_scores
from cranfield.studies._truth_protocols import Readings
from cranfield.studies._truth_sums import Floats, Sums
from cranfield.studies._truth_work import (
    COMPLETE_P1,
    COMPLETE_P10,
    FIFTHS,
    JUDGED,
    OBSERVED_NDCG,
    OBSERVED_P1,
    OBSERVED_P10,
    RELEVANT,
    TRUE_NDCG,
    TRUE_P1,
    TRUE_P10,
)
from cranfield.studies._truth_worlds import BASE, KNOBS

PRINTED: Mapping[str, tuple[float, float, float, float]] = {
    "random": (0.0013, 0.0213, 0.0030, 0.0147),
    "popularity": (0.0153, 0.0173, 0.0398, 0.0178),
    "average": (0.0143, 0.0209, 0.0230, 0.0251),
    "optimal observed ranking": (0.0197, 0.0228, 0.0464, 0.0211),
    "optimal true ranking": (0.0034, 0.0552, 0.0057, 0.0410),
    "kNN, not normalised": (0.0121, 0.0192, 0.0275, 0.0179),
    "kNN, normalised": (0.0067, 0.0238, 0.0173, 0.0184),
}
"""The paper's numbers for the actual discovery: observed and true P@1, observed and true nDCG@10."""
TOIS_PRINTED: Mapping[str, tuple[float, ...]] = {
    "mostpopular": (0.0159, 0.0951, 0.0536, 0.0053, 0.0125, 0.0274, 0.0229, 0.0067),
    "randomguess": (0.0021, 0.0101, 0.0055, 0.0014, 0.0057, 0.0095, 0.0078, 0.0129),
    "smootheditemaverage": (0.0023, 0.0109, 0.0052, 0.0006, 0.0059, 0.0107, 0.0081, 0.0112),
    "userknn": (0.0108, 0.0591, 0.035, 0.0035, 0.01, 0.0186, 0.0166, 0.0081),
    "itemknn": (0.0123, 0.0677, 0.039, 0.0041, 0.0106, 0.0209, 0.0177, 0.0072),
    "wrmf": (0.0095, 0.0534, 0.0309, 0.004, 0.0094, 0.019, 0.0159, 0.0082),
    "slim": (0.0063, 0.0317, 0.0169, 0.0024, 0.008, 0.0147, 0.0118, 0.0098),
    "plsa": (0.0086, 0.0437, 0.027, 0.0035, 0.0094, 0.0184, 0.0157, 0.0087),
}
"""The numbers of the 2021 paper: precision, recall, nDCG and anti-precision at 10, observed and then true."""
_Z = 1.96
_LABELS = (OBSERVED_P1, TRUE_P1, OBSERVED_NDCG, TRUE_NDCG)
_INTERVALS = "95 % intervals over users and repetitions"
_FLAW = (
    "in the published truth, four fifths of the known pairs were used for training, so known pairs are judged about "
    "five times less often than others; the last columns do not have that flaw"
)


@dataclass(frozen=True, eq=False)
class Found:
    """The results of the parts of the study; parts that the ratings do not allow are empty.

    Parameters
    ----------
    published
        The paper's systems under its own protocol, by variant and by which pairs can become known in it.
    halves
        The paper's systems with a random half as the truth, by variant.
    weighted
        All systems by the published division with weights.
    readings, lists
        By variant, the readings of every protocol and the true values of the lists, one per draw.
    fifths
        The design of 2021: observed and true.
    worlds
        The results of every protocol on simulated worlds.
    """

    readings: Mapping[str, Sequence[Readings]]
    lists: Mapping[str, Sums]
    published: Mapping[str, Mapping[str, Sums]] = field(default_factory=dict)
    halves: Mapping[str, Sums] = field(default_factory=dict)
    weighted: Sums | None = None
    fifths: tuple[Sums, Sums] | None = None
    worlds: pl.DataFrame | None = None

    def with_worlds(self, worlds: pl.DataFrame) -> Found:
        """Return a copy with the results on simulated worlds."""
        return replace(self, worlds=worlds)


def exhibits(results: Found) -> list[Exhibit]:
    """Return the tables and figures."""
    drawn = []
    if results.published:
        drawn += [
            _published_table(results),
            *(_variant_table(results, name) for name in results.published if name != "actual"),
        ]
        drawn.append(_designs_table(results))
    else:
        drawn.append(_systems_table(results))
    if results.fifths is not None:
        drawn.append(_fifths_table(results.fifths))
    orders = orders_frame(results)
    drawn += [_orders_table(orders), _orders_figure(orders)]
    if results.worlds is not None:
        worlds = worlds_frame(results.worlds)
        drawn += [_worlds_table(worlds), _worlds_figure(worlds)]
    return drawn


def orders_frame(results: Found) -> pl.DataFrame:
    """Return how well every reading finds the true order, by variant."""
    frames = [
        order_scores(draws).with_columns(variant=pl.lit(variant)).select("variant", *SCHEMA)
        for variant, draws in results.readings.items()
    ]
    return pl.concat(frames)


def worlds_frame(worlds: pl.DataFrame) -> pl.DataFrame:
    """Return for each knob, value and reading the means over worlds with 95 % intervals.

    The interval of tau is two standard errors to either side; that of the share of winners found is Wilson's.
    """
    error = pl.col("tau").std() / pl.len().sqrt()
    share, count = pl.col("winner").mean(), pl.len()
    middle = (share + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = (share * (1 - share) / count + _Z**2 / (4 * count**2)).sqrt() * _Z / (1 + _Z**2 / count)
    return worlds.group_by("knob", "value", "protocol", "metric", maintain_order=True).agg(
        pl.col("tau").mean(),
        lower=(pl.col("tau").mean() - 2 * error.fill_null(0.0)).clip(-1, 1),
        upper=(pl.col("tau").mean() + 2 * error.fill_null(0.0)).clip(-1, 1),
        winner=share,
        winner_lower=(middle - half).clip(0, 1),
        winner_upper=(middle + half).clip(0, 1),
        worlds=count,
    )


def _ranged(value: float, lower: float, upper: float, digits: int = 3) -> str:
    return f"{value:.{digits}f} [{lower:.{digits}f}, {upper:.{digits}f}]"


def _shared(value: float, lower: float, upper: float) -> str:
    return f"{value:.0%} [{lower:.0%}, {upper:.0%}]"


def _cell(values: Floats, ends: tuple[Floats, Floats], system: int) -> str:
    return _ranged(values[system], ends[0][system], ends[1][system], 4)


def _published_table(results: Found) -> Exhibit:
    here, half = results.published["actual"][JUDGED_PAIRS], results.halves["actual"]
    labels = _LABELS
    values = {label: here.means(label)[0] for label in labels}
    ranges = {label: here.interval(label) for label in labels}
    complete, lower, upper = half.precision(COMPLETE_P1)
    clean_ndcg, (low_ndcg, high_ndcg) = half.means(TRUE_NDCG)[0], half.interval(TRUE_NDCG)
    rows: list[list[str | Cell]] = []
    tidy: list[dict[str, Any]] = []
    for s, system in enumerate(here.systems):
        printed = PRINTED[system]
        cells: list[str | Cell] = [system]
        for place, label in enumerate(labels):
            cells += [_cell(values[label], ranges[label], s), f"{printed[place]:.4f}"]
            low, high = (float(end[s]) for end in ranges[label])
            tidy.append(_tidy(system, f"published {label}", values[label][s], low, high, printed[place]))
        cells += [_ranged(complete[s], lower[s], upper[s]), _ranged(clean_ndcg[s], low_ndcg[s], high_ndcg[s], 4)]
        tidy.append(_tidy(system, f"random half: {COMPLETE_P1}", complete[s], lower[s], upper[s], None))
        tidy.append(_tidy(system, f"random half: {TRUE_NDCG}", clean_ndcg[s], low_ndcg[s], high_ndcg[s], None))
        rows.append(cells)
    header = ["System", *(name for label in labels for name in (label, "printed"))]
    header += [f"Random half: {COMPLETE_P1}", f"Random half: {TRUE_NDCG}"]
    caption = "The published protocol with the printed numbers, and a random half of the judgments as the truth"
    notes = [_INTERVALS, _FLAW]
    return Exhibit("table-1-published", caption, pl.DataFrame(tidy), Table(header, rows, caption, notes))


def _tidy(system: str, label: str, value: float, lower: float, upper: float, printed: float | None) -> dict[str, Any]:
    numbers = {"value": float(value), "lower": float(lower), "upper": float(upper)}
    return {"system": system, "number": label, **numbers, "printed": printed}


def _variant_table(results: Found, variant: str) -> Exhibit:
    rows: list[list[str | Cell]] = []
    tidy = []
    for way, here in results.published[variant].items():
        values = {label: here.means(label)[0] for label in _LABELS}
        ranges = {label: here.interval(label) for label in _LABELS}
        for s, system in enumerate(here.systems):
            rows.append([way, system, *(_cell(values[label], ranges[label], s) for label in _LABELS)])
            for label in _LABELS:
                low, high = ranges[label][0][s], ranges[label][1][s]
                tidy.append({"drawn": way, **_tidy(system, f"published {label}", values[label][s], low, high, None)})
    caption = f"The published protocol with {variant} discovery: the known pairs are drawn again"
    notes = [
        _INTERVALS,
        "drawn among judged pairs, or among all pairs; a pair without a judgment that becomes known counts as rated 0",
    ]
    header = ["Drawn among", "System", *_LABELS]
    return Exhibit(f"table-2-{variant}", caption, pl.DataFrame(tidy), Table(header, rows, caption, notes))


def _designs_table(results: Found) -> Exhibit:
    """Return all systems by the published truth, by weights and by a random half."""
    half, folds = results.lists["actual"], results.weighted
    assert folds is not None
    columns = {
        "published: true P@10": folds.precision(TRUE_P10),
        "weighted: P@10 if all were judged": folds.precision(COMPLETE_P10),
        "random half: P@10 if all were judged": half.precision(COMPLETE_P10),
        "random half: liked among judged": (half.ratios(RELEVANT, JUDGED)[0], *half.interval(RELEVANT, JUDGED)),
        "random half: true P@10": half.precision(TRUE_P10),
        OBSERVED_P10: half.precision(OBSERVED_P10),
    }
    caption = "All systems by three designs of the truth"
    notes = [_INTERVALS, _FLAW]
    return _by_system("table-3-designs", caption, half.systems, columns, "random half: P@10 if all were judged", notes)


def _systems_table(results: Found) -> Exhibit:
    (lists,) = results.lists.values()
    columns = {
        COMPLETE_P10: lists.precision(COMPLETE_P10),
        "liked among judged": (lists.ratios(RELEVANT, JUDGED)[0], *lists.interval(RELEVANT, JUDGED)),
        OBSERVED_P10: lists.precision(OBSERVED_P10),
    }
    caption = "All systems by the judgments that are given"
    return _by_system(
        "table-3-designs", caption, lists.systems, columns, COMPLETE_P10, ["95 % intervals over users and repetitions"]
    )


def _by_system(
    name: str,
    caption: str,
    systems: Sequence[str],
    columns: Mapping[str, tuple[Any, Any, Any]],
    by: str,
    notes: Sequence[str],
) -> Exhibit:
    order = np.argsort(-columns[by][0], kind="stable")
    rows: list[list[str | Cell]] = [
        [systems[s], *(_cell(values, (low, high), s) for values, low, high in columns.values())] for s in order
    ]
    tidy = [
        _tidy(systems[s], label, values[s], low[s], high[s], None)
        for s in order
        for label, (values, low, high) in columns.items()
    ]
    return Exhibit(name, caption, pl.DataFrame(tidy), Table(["System", *columns], rows, caption, notes))


def _fifths_table(fifths: tuple[Sums, Sums]) -> Exhibit:
    """Return the design of 2021 next to the printed numbers."""
    rows: list[list[str | Cell]] = []
    tidy: list[dict[str, Any]] = []
    for s, (printed_name, system) in enumerate(zip(TOIS_PRINTED, fifths[0].systems, strict=True)):
        cells: list[str | Cell] = [system]
        for part, (kind, sums) in enumerate(zip(("observed", "true"), fifths)):
            for place, metric in enumerate(FIFTHS):
                value, printed = float(sums.means(metric)[0][s]), TOIS_PRINTED[printed_name][4 * part + place]
                low, high = (float(end[s]) for end in sums.interval(metric))
                cells.append(f"{value:.4f} ({printed:.4f})")
                tidy.append(_tidy(system, f"{kind} {metric}", value, low, high, printed))
        rows.append(cells)
    header = ["System", *(f"{kind} {metric}" for kind in ("observed", "true") for metric in FIFTHS)]
    caption = "The design of Mena-Maldonado et al. (2021): a fifth of all judgments is the truth (printed in brackets)"
    notes = [
        "systems other than popularity and random have our settings, not those of LibRec, so only their order compares",
        "this design draws the truth from known and unknown pairs alike, and so does not have the flaw of 2018",
    ]
    return Exhibit("table-4-fifths", caption, pl.DataFrame(tidy), Table(header, rows, caption, notes))


def _orders_table(orders: pl.DataFrame) -> Exhibit:
    variants = orders["variant"].unique(maintain_order=True).to_list()
    lead = orders.filter(variant=variants[0]).sort("tau", descending=True, nulls_last=True, maintain_order=True)
    of = {(row["variant"], row["protocol"], row["metric"]): row for row in orders.iter_rows(named=True)}
    rows: list[list[str | Cell]] = []
    for protocol, metric in lead.select("protocol", "metric").iter_rows():
        cells = [of[variant, protocol, metric] for variant in variants]
        rows.append(
            [protocol, metric, *(f"{_ranged(row['tau'], row['lower'], row['upper'], 2)}" for row in cells)]
            + [_shared(row["winner"], row["winner_lower"], row["winner_upper"]) for row in cells]
        )
    pairs = ", ".join(
        f"{of_variant['pairs'][0]} ({variant})"
        for (variant,), of_variant in orders.group_by("variant", maintain_order=True)
    )
    caption = "How well protocols, metrics and estimators find the true order of all systems"
    notes = [
        f"Kendall's tau over the pairs of systems that differ significantly in truth: {pairs}; 95 % intervals over "
        "users and draws",
        "winner: how often the first system is one that no other truly beats",
        "truth: P@10 if all were judged, by a random half of the judgments or by those that are given; the observed "
        "test ratings are among the judgments of a half",
    ]
    header = [
        "Protocol",
        "Metric",
        *(f"tau, {variant}" for variant in variants),
        *(f"winner, {variant}" for variant in variants),
    ]
    return Exhibit("table-5-orders", caption, orders, Table(header, rows, caption, notes))


def _orders_figure(orders: pl.DataFrame) -> Exhibit:
    caption = "Kendall's tau with the true order, by protocol and metric, with 95 % intervals over users and draws"
    return Exhibit("figure-1-orders", caption, orders, draw=partial(draw_orders, orders))


def _worlds_table(worlds: pl.DataFrame) -> Exhibit:
    settings = worlds.select("knob", "value").unique(maintain_order=True).rows()
    of = {(row["knob"], row["value"], row["protocol"], row["metric"]): row for row in worlds.iter_rows(named=True)}
    readings = worlds.select("protocol", "metric").unique(maintain_order=True).rows()
    rows: list[list[str | Cell]] = [
        [protocol, metric, *(_tau_and_winner(of[knob, value, protocol, metric]) for knob, value in settings)]
        for protocol, metric in readings
    ]
    header = ["Protocol", "Metric", *(f"{knob} {value:g}" for knob, value in settings)]
    caption = (
        "Kendall's tau with the true order on simulated worlds, and how often the true winner is found (in brackets)"
    )
    notes = [
        f"means over {worlds['worlds'][0]} worlds for each setting; one parameter varies at a time, the others stay at "
        + ", ".join(f"{knob} {value:g}" for knob, value in BASE.items() if knob in KNOBS),
        "tau is over the pairs of systems that differ significantly in truth; a winner is right if no other system "
        "truly beats it; the file has the intervals of both",
    ]
    return Exhibit("table-6-worlds", caption, worlds, Table(header, rows, caption, notes))


def _tau_and_winner(row: Mapping[str, Any]) -> str:
    return f"{row['tau']:.2f} ({row['winner']:.0%})"


def _worlds_figure(worlds: pl.DataFrame) -> Exhibit:
    caption = (
        "How well protocols, metrics and estimators find the truth on simulated worlds as the biases of what is "
        "observed vary: Kendall's tau with the true order (above), and how often the true winner is found (below), "
        "with 95 % intervals"
    )
    return Exhibit("figure-2-worlds", caption, worlds, draw=partial(draw_worlds, worlds))
