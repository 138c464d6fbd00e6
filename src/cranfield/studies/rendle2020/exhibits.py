"""The tables and figures of the benchmark of neural collaborative filtering."""

from __future__ import annotations

from typing import Any

import polars as pl

from cranfield._figures import altair, themed
from cranfield._numbers import DASH
from cranfield._table import Cell
from cranfield.metrics import kendall_tau_b
from cranfield.studies.frame.exhibits import CellRow, Exhibit, curve, exhibit
from cranfield.studies.rendle2020 import work
from cranfield.studies.rendle2020.work import NcfNumbers, of_size

_TWO = "sampled: among the published negatives; full: among all items that the user has not rated in training"
_ALPHA = 0.05


def exhibits_of(numbers: NcfNumbers) -> list[Exhibit]:
    """Return all tables and figures."""
    exhibits = [_main_table(numbers), _verdicts(numbers), _corrected(numbers)]
    if numbers.best_ease(work.SAMPLED, "nDCG@10") is not None:
        exhibits.insert(1, _ease_table(numbers))
    sizes = {factors for kind, own in work.SIZES.items() for factors in own if of_size(kind, factors) in numbers.rows}
    if len(sizes) > 1:
        exhibits += [_figure(numbers, place, metric) for place, metric in enumerate(work.METRICS, start=1)]
    return exhibits


def _main_table(numbers: NcfNumbers) -> Exhibit:
    places = {
        protocol: sorted(numbers.rows, key=lambda row: -numbers.mean(row, protocol, "nDCG@10"))
        for protocol in work.PROTOCOLS
    }
    rows: list[CellRow] = []
    for row in numbers.rows:
        line: list[str | Cell] = [row, str(len(numbers.of(row, work.SAMPLED, "nDCG@10")))]
        for metric in work.METRICS:
            printed = numbers.printed(row, metric)
            shown = DASH if printed is None else f"{printed:.4f}"
            line += [_cell(numbers, row, work.SAMPLED, metric), shown, _cell(numbers, row, work.FULL, metric)]
        rows.append([*line, *(str(places[protocol].index(row) + 1) for protocol in work.PROTOCOLS)])
    columns = [name for metric in work.METRICS for name in (f"{metric}, sampled", "printed", f"{metric}, full")]
    header = ["System", "Seeds", *columns, "place, sampled", "place, full"]
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
    return exhibit("table-1", caption, header, rows, notes, numbers.values)


def _cell(numbers: NcfNumbers, row: str, protocol: str, metric: str) -> Cell:
    values = numbers.of(row, protocol, metric)
    best = max(numbers.mean(other, protocol, metric) for other in numbers.rows)
    spread = f" ±{values.std(ddof=1):.4f}" if len(values) > 1 else ""
    return Cell(f"{values.mean():.4f}{spread}", best=float(values.mean()) == best)


def _ease_table(numbers: NcfNumbers) -> Exhibit:
    header = ["EASE", *(f"{metric}, {protocol}" for protocol in work.PROTOCOLS for metric in work.METRICS)]
    eases = numbers.rows_of(work.EASE)
    rows: list[CellRow] = []
    for row in eases:
        cells = [
            Cell(f"{numbers.mean(row, protocol, metric):.4f}", best=row == numbers.best_ease(protocol, metric))
            for protocol in work.PROTOCOLS
            for metric in work.METRICS
        ]
        rows.append([row.removeprefix(f"{work.EASE}, "), *cells])
    sampled, full = (numbers.best_ease(protocol, "nDCG@10") for protocol in work.PROTOCOLS)
    said = (
        f"By nDCG@10 sampled ranking prefers {sampled}, and full ranking {full}: a setting that is chosen under one "
        "protocol is not the best under the other."
        if sampled != full
        else f"By nDCG@10 both protocols prefer {sampled}."
    )
    caption = "The same system with other settings: which is best depends on the protocol"
    frame = numbers.values.filter(pl.col("row").is_in(eases))
    return exhibit("table-2", caption, header, rows, [said, _TWO], frame)


def _verdicts(numbers: NcfNumbers) -> Exhibit:
    columns = ["system_a", "system_b", pl.col("mean_a") - pl.col("mean_b"), "p_corrected"]
    sampled, full = (numbers.compared(protocol).rows.select(columns) for protocol in work.PROTOCOLS)
    rows, lines = [], []
    for a, b, *both in sampled.join(full, on=["system_a", "system_b"], maintain_order="left").iter_rows():
        verdicts = [_verdict(a, b, *both[:2]), _verdict(a, b, *both[2:])]
        same = verdicts[0] == verdicts[1]
        shown = [f"{verdict} ({difference:+.4f})" for verdict, difference in zip(verdicts, both[::2])]
        cells = [shown[0], f"{both[1]:.4f}", shown[1], f"{both[3]:.4f}"]
        rows.append([f"{a} − {b}", *cells, "yes" if same else "no"])
        lines.append((a, b, *both, same))
    differ = sum(not line[-1] for line in lines)
    notes = [
        f"nDCG@10 over users, exact permutation test, corrected over all pairs; first seed only. {differ} of "
        f"{len(lines)} pairs have a different verdict in the full catalogue.",
        _TWO,
    ]
    caption = "Who is better, among sampled items and in the full catalogue"
    schema = ["system_a", "system_b", "sampled", "sampled_p", "full", "full_p", "same"]
    header = ["Pair", "sampled", "p", "full", "p", "the same verdict"]
    return exhibit("table-3", caption, header, rows, notes, pl.DataFrame(lines, schema=schema, orient="row"))


def _corrected(numbers: NcfNumbers) -> Exhibit:
    header = ["System", "Metric", "sampled", "corrected", "95 % interval", "full", "inside"]
    frame = numbers.corrected
    rows = []
    for row, metric, sampled, estimate, lower, upper, identified, full, inside in frame.iter_rows():
        shown = f"{estimate:.4f}{'' if identified else '?'}"
        cells = [f"{sampled:.4f}", shown, f"[{lower:.4f}, {upper:.4f}]", f"{full:.4f}"]
        rows.append([row, metric, *cells, "yes" if inside else "no"])
    said = (
        f"{frame['inside'].sum()} of {len(frame)} intervals contain the value of the full catalogue; "
        f"{frame['identified'].sum()} of {len(frame)} values are identified."
    )
    orders = []
    for (metric,), own in frame.group_by("metric", maintain_order=True):
        sampled, corrected = (kendall_tau_b(own[column], own["full"]) for column in ("sampled", "estimate"))
        orders.append(f"{metric}: {sampled:.2f} of the sampled and {corrected:.2f} of the corrected values")
    notes = [
        f"{said} Kendall's tau with the full order by {'; by '.join(orders)}.",
        "?: not identified, because values in the whole interval agree with the sampled ranks",
    ]
    caption = "What sampled ranks say about the full catalogue, and what is measured there"
    return exhibit("table-4", caption, header, rows, notes, frame)


def _verdict(a: str, b: str, difference: float, p: float) -> str:
    if p > _ALPHA:
        return "no significant difference"
    return a if difference > 0 else b


def _figure(numbers: NcfNumbers, place: int, metric: str) -> Exhibit:
    rows = [
        (kind, factors, protocol, float(value))
        for kind, own in work.SIZES.items()
        for factors in own
        for protocol in work.PROTOCOLS
        for value in numbers.of(of_size(kind, factors), protocol, metric)
    ]
    frame = pl.DataFrame(rows, schema=["system", "factors", "protocol", "value"], orient="row")
    caption = f"{metric} by the number of factors, among sampled items and in the full catalogue"
    means = frame.group_by("system", "factors", "protocol", maintain_order=True).agg(pl.col("value").mean())
    order = sorted(frame["factors"].unique())

    def draw() -> Any:
        panels = [
            curve(own.drop("protocol"), ("factors", "factors"), ("value", f"{metric}, {protocol}"), "system",
                  [work.MF, work.NEUMF], order=order).properties(width=240, height=200)
            for (protocol,), own in means.group_by("protocol", maintain_order=True)
        ]  # fmt: skip
        return themed(altair().hconcat(*panels))

    return Exhibit(f"figure-{place:02}", caption, frame, draw=draw)
