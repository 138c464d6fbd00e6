"""Measured values compared with true ones, if the truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from cranfield._numbers import number_text
from cranfield.metrics import kendall_tau_b
from cranfield.reports import figures
from cranfield.reports.markup import Column, Value, downloads, figure, paragraphs, percent, table, text
from cranfield.reports.section import Section


@dataclass(frozen=True)
class MeasuredProtocol:
    """A protocol's values by system, and its claims: the number of pairs, of significant ones, and of wrong ones."""

    name: str
    values: Mapping[str, float]
    pairs: int
    significant: int
    wrong: int

    def tau(self, truth: Mapping[str, float]) -> float:
        """Return Kendall's tau with the true order."""
        return kendall_tau_b([self.values[system] for system in truth], list(truth.values()))


def orders(metric: str, true: Mapping[str, float], protocols: Sequence[MeasuredProtocol]) -> str:
    """Return the figure of the orders side by side: as published, the truth, and under the other protocols."""
    best = max(true, key=lambda system: true[system])
    first = max(protocols[0].values, key=lambda system: protocols[0].values[system])
    columns = {protocols[0].name: protocols[0].values, "the truth": true}
    columns.update({protocol.name: protocol.values for protocol in protocols[1:]})
    return figure(
        "orders",
        figures.orders(columns, list(dict.fromkeys((best, first)))),
        f"The order of the systems by {metric}, best on top: as published, in truth, and on an unbiased test set.",
    )


def truth(metric: str, true: Mapping[str, float], protocols: Sequence[MeasuredProtocol], why: str) -> Section:
    """Return the section: the agreement of each protocol with the truth, its claims, and the numbers."""
    scatters = "".join(
        figure(
            f"truth-{k}",
            figures.against_truth(protocol.values, true, f"{metric} on {protocol.name}"),
            f"{metric} on {protocol.name} against the true value: Kendall's tau {number_text(protocol.tau(true), 2)}.",
        )
        for k, protocol in enumerate(protocols, start=1)
    )
    tables = {"truth": _frame(true, protocols), "truth-claims": _claims_frame(true, protocols)}
    markup = paragraphs([why]) + _claims(protocols, true) + _numbers(metric, true, protocols)
    markup += f'<div class="beside">{scatters}</div>'
    return Section("truth", "Against the truth", markup + downloads(*tables), tables=tables)


def _claims(protocols: Sequence[MeasuredProtocol], true: Mapping[str, float]) -> str:
    columns = [Column("test set", numeric=False), Column("tau with the truth"), Column("significant pairs")]
    columns.append(Column("of these wrong", hint="the system that is called better is truly worse"))
    rows = [
        [
            Value(text(protocol.name), protocol.name),
            Value(number_text(protocol.tau(true), 2), protocol.tau(true)),
            Value(f"{protocol.significant} of {protocol.pairs}", protocol.significant),
            Value(str(protocol.wrong), protocol.wrong, "warn" if protocol.wrong else ""),
        ]
        for protocol in protocols
    ]
    return table("What each test set claims, and how much of it is true", columns, rows)


def _numbers(metric: str, true: Mapping[str, float], protocols: Sequence[MeasuredProtocol]) -> str:
    columns = [Column("system", numeric=False), Column(f"true {metric}")]
    for protocol in protocols:
        columns += [Column(protocol.name), Column("place")]
    places = [_places(measured.values) for measured in protocols]
    rows = [
        [
            Value(text(system), system),
            Value(percent(true[system]), true[system]),
            *(
                cell
                for protocol, place in zip(protocols, places)
                for cell in (
                    Value(number_text(protocol.values[system]), protocol.values[system]),
                    Value(str(place[system]), place[system]),
                )
            ),
        ]
        for system in sorted(true, key=lambda system: -true[system])
    ]
    return table(f"{metric}: the true value and what was measured, truly best first", columns, rows)


def _places(values: Mapping[str, float]) -> dict[str, int]:
    return {system: 1 + sum(other > values[system] for other in values.values()) for system in values}


def _frame(true: Mapping[str, float], protocols: Sequence[MeasuredProtocol]) -> pl.DataFrame:
    columns: dict[str, list[float] | list[int]] = {}
    for protocol in protocols:
        places = _places(protocol.values)
        columns[protocol.name] = [protocol.values[system] for system in true]
        columns[f"place on {protocol.name}"] = [places[system] for system in true]
    return pl.DataFrame({"system": list(true), "the truth": list(true.values()), **columns})


def _claims_frame(true: Mapping[str, float], protocols: Sequence[MeasuredProtocol]) -> pl.DataFrame:
    rows = [
        (protocol.name, protocol.tau(true), protocol.pairs, protocol.significant, protocol.wrong)
        for protocol in protocols
    ]
    return pl.DataFrame(rows, schema=["test_set", "tau_with_the_truth", "pairs", "significant", "wrong"], orient="row")
