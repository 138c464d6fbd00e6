"""The tables, figures and claims of the benchmark of neural collaborative filtering."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import polars as pl

from cranfield._figures import altair, data_of, series, themed, tips
from cranfield._numbers import DASH
from cranfield._table import Cell, Table
from cranfield.comparisons import Comparison
from cranfield.metrics import kendall_tau_b
from cranfield.studies._claims import Finding, Saying, finding_over_splits
from cranfield.studies._ncf_numbers import (
    DIMENSIONS,
    EASE,
    IALS_2019,
    MF,
    NEUMF,
    PRINTED,
    SIZES,
    SLIM,
    NcfNumbers,
    of_size,
)
from cranfield.studies._ncf_work import FULL, METRICS, PROTOCOLS, SAMPLED
from cranfield.studies._study import Exhibit

_TWO = "sampled: among the published negatives; full: among all items that the user has not rated in training"
_ALPHA = 0.05


def exhibits_of(numbers: NcfNumbers) -> list[Exhibit]:
    """Return all tables and figures."""
    exhibits = [_main_table(numbers), _verdicts(numbers), _corrected(numbers)]
    if numbers.best_ease(SAMPLED, "nDCG@10") is not None:
        exhibits.insert(1, _ease_table(numbers))
    sizes = [
        (kind, factors) for kind, own in SIZES.items() for factors in own if of_size(kind, factors) in numbers.rows
    ]
    if len({factors for _, factors in sizes}) > 1:
        exhibits += [_figure(numbers, place, metric) for place, metric in enumerate(METRICS, start=1)]
    return exhibits


def _main_table(numbers: NcfNumbers) -> Exhibit:
    header = ["System", "Seeds"]
    for metric in METRICS:
        header += [f"{metric}, sampled", "printed", f"{metric}, full"]
    header += ["place, sampled", "place, full"]
    places = {protocol: _places(numbers, protocol) for protocol in PROTOCOLS}
    rows: list[list[str | Cell]] = []
    for row in numbers.rows:
        seeds = len(numbers.of(row, SAMPLED, "nDCG@10"))
        line: list[str | Cell] = [row, str(seeds)]
        for metric in METRICS:
            printed = numbers.printed(row, metric)
            line += [
                _cell(numbers, row, SAMPLED, metric),
                DASH if printed is None else f"{printed:.4f}",
                _cell(numbers, row, FULL, metric),
            ]
        rows.append([*line, *(str(places[protocol][row]) for protocol in PROTOCOLS)])
    doubled = numbers.benchmark.doubled
    notes = [
        _TWO,
        *([f"{doubled} of the published negatives are the test item itself; they were left out"] if doubled else []),
        "± is the standard deviation over seeds; places are by nDCG@10",
        *([f"MF and NeuMF were trained {numbers.epochs} epochs here"] if numbers.epochs else []),
        "printed values of popularity and NeuMF with 8 factors are from Ferrari Dacrema et al. (2019), that of EASE is "
        "with λ = 1320; all but the first two were quoted from the literature and not checked against the papers",
        *(f"{row} was not run: {why}" for row, why in numbers.failed.items()),
    ]
    caption = "HR@10 and nDCG@10 with the printed values, among sampled items and in the full catalogue"
    return Exhibit("table-1", caption, numbers.values, Table(header, rows, caption, notes))


def _cell(numbers: NcfNumbers, row: str, protocol: str, metric: str) -> Cell:
    values = numbers.of(row, protocol, metric)
    best = max(numbers.mean(other, protocol, metric) for other in numbers.rows)
    spread = f" ±{values.std(ddof=1):.4f}" if len(values) > 1 else ""
    return Cell(f"{values.mean():.4f}{spread}", best=float(values.mean()) == best)


def _places(numbers: NcfNumbers, protocol: str) -> dict[str, int]:
    order = sorted(numbers.rows, key=lambda row: -numbers.mean(row, protocol, "nDCG@10"))
    return {row: place for place, row in enumerate(order, start=1)}


def _ease_table(numbers: NcfNumbers) -> Exhibit:
    header = ["EASE", *(f"{metric}, {protocol}" for protocol in PROTOCOLS for metric in METRICS)]
    eases = [row for row in numbers.rows if row.startswith(f"{EASE}, ")]
    rows: list[list[str | Cell]] = []
    for row in eases:
        cells = []
        for protocol in PROTOCOLS:
            for metric in METRICS:
                value = numbers.mean(row, protocol, metric)
                cells.append(Cell(f"{value:.4f}", best=row == numbers.best_ease(protocol, metric)))
        rows.append([row.removeprefix(f"{EASE}, "), *cells])
    sampled, full = (numbers.best_ease(protocol, "nDCG@10") for protocol in PROTOCOLS)
    said = (
        f"By nDCG@10 sampled ranking prefers {sampled}, and full ranking {full}: a setting that is chosen under one "
        "protocol is not the best under the other."
        if sampled != full
        else f"By nDCG@10 both protocols prefer {sampled}."
    )
    caption = "The same system with other settings: which is best depends on the protocol"
    frame = numbers.values.filter(pl.col("row").is_in(eases))
    return Exhibit("table-2", caption, frame, Table(header, rows, caption, [said, _TWO]))


def _verdicts(numbers: NcfNumbers) -> Exhibit:
    header = ["Pair", "sampled", "p", "full", "p", "the same verdict"]
    compared = {protocol: numbers.compared(protocol) for protocol in PROTOCOLS}
    rows: list[list[str | Cell]] = []
    lines = []
    for pair in compared[SAMPLED].rows.iter_rows(named=True):
        a, b = pair["system_a"], pair["system_b"]
        both = {protocol: _pair(compared[protocol], a, b) for protocol in PROTOCOLS}
        verdicts = {protocol: _verdict(a, b, *both[protocol]) for protocol in PROTOCOLS}
        same = verdicts[SAMPLED] == verdicts[FULL]
        cells: list[str] = []
        for protocol in PROTOCOLS:
            difference, p = both[protocol]
            cells += [f"{verdicts[protocol]} ({difference:+.4f})", f"{p:.4f}"]
        rows.append([f"{a} − {b}", *cells, "yes" if same else "no"])
        lines.append((a, b, *both[SAMPLED], *both[FULL], same))
    differ = sum(not line[-1] for line in lines)
    notes = [
        f"nDCG@10 over users, exact permutation test, corrected over all pairs; first seed only. {differ} of "
        f"{len(lines)} pairs have a different verdict in the full catalogue.",
        _TWO,
    ]
    caption = "Who is better, among sampled items and in the full catalogue"
    schema = ["system_a", "system_b", "sampled", "sampled_p", "full", "full_p", "same"]
    return Exhibit(
        "table-3", caption, pl.DataFrame(lines, schema=schema, orient="row"), Table(header, rows, caption, notes)
    )


def _corrected(numbers: NcfNumbers) -> Exhibit:
    header = ["System", "Metric", "sampled", "corrected", "95 % interval", "full", "inside"]
    frame = numbers.corrected
    rows: list[list[str | Cell]] = [
        [
            line["row"],
            line["metric"],
            f"{line['sampled']:.4f}",
            f"{line['estimate']:.4f}{'' if line['identified'] else '?'}",
            f"[{line['lower']:.4f}, {line['upper']:.4f}]",
            f"{line['full']:.4f}",
            "yes" if line["inside"] else "no",
        ]
        for line in frame.iter_rows(named=True)
    ]
    said = (
        f"{frame['inside'].sum()} of {len(frame)} intervals contain the value of the full catalogue; "
        f"{frame['identified'].sum()} of {len(frame)} values are identified."
    )
    orders = [
        f"{metric}: {_order_agreement(own, 'sampled'):.2f} of the sampled and {_order_agreement(own, 'estimate'):.2f} "
        "of the corrected values"
        for (metric,), own in frame.group_by("metric", maintain_order=True)
    ]
    notes = [
        f"{said} Kendall's tau with the full order by {'; by '.join(orders)}.",
        "?: not identified, because values in the whole interval agree with the sampled ranks",
    ]
    caption = "What sampled ranks say about the full catalogue, and what is measured there"
    return Exhibit("table-4", caption, frame, Table(header, rows, caption, notes))


def _order_agreement(frame: pl.DataFrame, column: str) -> float:
    """Return Kendall's tau between a column and the values of the full catalogue."""
    return kendall_tau_b(frame[column], frame["full"])


def _pair(comparison: Comparison, a: str, b: str) -> tuple[float, float]:
    """Return the difference and the corrected p-value of a pair."""
    for pair in comparison.rows.iter_rows(named=True):
        if (pair["system_a"], pair["system_b"]) == (a, b):
            return pair["mean_a"] - pair["mean_b"], pair["p_corrected"]
    raise KeyError((a, b))


def _verdict(a: str, b: str, difference: float, p: float) -> str:
    if p > _ALPHA:
        return "no significant difference"
    return a if difference > 0 else b


def _figure(numbers: NcfNumbers, place: int, metric: str) -> Exhibit:
    rows = [
        (kind, factors, protocol, float(value))
        for kind, own in SIZES.items()
        for factors in own
        for protocol in PROTOCOLS
        for value in numbers.of(of_size(kind, factors), protocol, metric)
    ]
    frame = pl.DataFrame(rows, schema=["system", "factors", "protocol", "value"], orient="row")
    caption = f"{metric} by the number of factors, among sampled items and in the full catalogue"
    return Exhibit(f"figure-{place:02}", caption, frame, draw=partial(_curves, frame, metric))


def _curves(frame: pl.DataFrame, metric: str) -> Any:
    alt = altair()
    means = frame.group_by("system", "factors", "protocol", maintain_order=True).agg(pl.col("value").mean())
    panels = []
    for protocol in PROTOCOLS:
        own = means.filter(protocol=protocol)
        line = alt.Chart(data_of(own)).mark_line(point={"size": 24, "filled": True})
        panels.append(
            line.encode(
                x=alt.X("factors:O", title="factors"),
                y=alt.Y("value:Q", title=f"{metric}, {protocol}", scale=alt.Scale(zero=False)),
                tooltip=tips(system="system", factors="factors", value=(metric, ".4f")),
                **series("system", [MF, NEUMF]),
            ).properties(width=240, height=200)
        )
    return themed(alt.hconcat(*panels))


def claims_of(numbers: NcfNumbers) -> list[Finding]:
    """Check the paper's claims on the run, and whether they also hold in the full catalogue."""
    said = [saying for protocol in PROTOCOLS for saying in _dot_or_network(numbers, protocol)]
    said += [saying for row in PRINTED for saying in _near_print(numbers, row)]
    sampled, full = (numbers.best_ease(protocol, "nDCG@10") for protocol in PROTOCOLS)
    if sampled is not None and full is not None:
        values = [numbers.mean(row, FULL, "nDCG@10") for row in (full, sampled)]
        evidence = f"sampled: {sampled}; full: {full}, which has {values[0]:.4f} there, and the former {values[1]:.4f}"
        margin = np.array([values[0] - values[1] if sampled != full else -1.0])
        claim = "Sampled and full ranking prefer different settings of EASE"
        said.append(Saying(claim, "beside the paper", margin, evidence))
    return [finding_over_splits(saying) for saying in said]


def _dot_or_network(numbers: NcfNumbers, protocol: str) -> list[Saying]:
    """Claim that MF beats NeuMF, by dimensions as in the paper and by factors, and that older methods do too."""
    where = "4" if protocol == SAMPLED else "beside the paper"
    among = "among sampled items" if protocol == SAMPLED else "in the full catalogue"
    pairs = [(DIMENSIONS[factors], factors, where) for factors in DIMENSIONS]
    pairs += [(factors, factors, "beside the paper") for factors in SIZES[NEUMF]]
    said = []
    for dimensions, factors, section in pairs:
        for metric in METRICS:
            dot, network = of_size(MF, dimensions), of_size(NEUMF, factors)
            mf, neumf = (numbers.of(row, protocol, metric) for row in (dot, network))
            if len(mf) and len(neumf):
                margin = mf[: len(neumf)] - neumf[: len(mf)]
                evidence = f"MF {mf.mean():.4f}, NeuMF {neumf.mean():.4f}"
                said.append(Saying(f"{dot}, has a higher {metric} than {network}, {among}", section, margin, evidence))
    networks = [row for row in numbers.rows if row.startswith(f"{NEUMF}, ")]
    for row in (SLIM, IALS_2019):
        if networks and row in numbers.rows:
            best = max(networks, key=lambda other: numbers.mean(other, protocol, "nDCG@10"))
            own, other = numbers.mean(row, protocol, "nDCG@10"), numbers.mean(best, protocol, "nDCG@10")
            claim = f"{row} has a higher nDCG@10 than NeuMF of any size {among}"
            said.append(Saying(claim, where, np.array([own - other]), f"{row} {own:.4f}, {best} {other:.4f}"))
    return said


# Approximate variation of the metrics between seeds; see the deviations in the first table.
_NEAR = 0.01


def _near_print(numbers: NcfNumbers, row: str) -> list[Saying]:
    said = []
    for metric in METRICS:
        printed = numbers.printed(row, metric)
        if printed is not None and row in numbers.rows and numbers.is_as_printed(row):
            value = numbers.mean(row, SAMPLED, metric)
            claim = f"The printed {metric} of {row} is found again within {_NEAR:g}"
            evidence = f"here {value:.4f}, printed {printed:.4f}"
            said.append(Saying(claim, "Table 1", np.array([_NEAR - abs(value - printed)]), evidence))
    return said
