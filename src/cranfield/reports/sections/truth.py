"""Measured values, and the advice on metrics, compared with the truth, if it is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from cranfield._numbers import number_text
from cranfield.assessments import Advice
from cranfield.facts import Fact
from cranfield.facts import demo as demo_facts
from cranfield.metrics import kendall_tau_b
from cranfield.reports import figures
from cranfield.reports.html_page import Section
from cranfield.reports.markup import Column, Value, downloads, figure, paragraphs, percent, table, text


@dataclass(frozen=True)
class MeasuredProtocol:
    """A protocol's values by system, and its claims."""

    values: Mapping[str, float]
    claims: demo_facts.SignificantPairs

    @property
    def name(self) -> str:
        """The name of its test set."""
        return self.claims.test

    @property
    def places(self) -> dict[str, int]:
        """The rank of each system."""
        return {
            system: 1 + sum(other > value for other in self.values.values()) for system, value in self.values.items()
        }

    def tau(self, truth: Mapping[str, float]) -> float:
        """Return Kendall's tau with the true order."""
        return kendall_tau_b([self.values[system] for system in truth], list(truth.values()))


def orders(metric: str, true: Mapping[str, float], protocols: Sequence[MeasuredProtocol]) -> str:
    """Return the figure of the orders side by side: as published, the truth, and under the other protocols."""
    best = max(true, key=lambda system: true[system])
    first = max(protocols[0].values, key=lambda system: protocols[0].values[system])
    columns = {protocols[0].name: protocols[0].values, "the truth": true}
    columns.update({protocol.name: protocol.values for protocol in protocols[1:]})
    caption = f"The order of the systems by {metric}, best on top: as published, in truth, and on an unbiased test set."
    return figure("orders", figures.orders(columns, list(dict.fromkeys((best, first)))), caption)


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
    markup = _claims(protocols, true) + f'<div class="beside">{scatters}</div>'
    more = paragraphs([why]) + _numbers(metric, true, protocols)
    return Section("truth", "Which one is true?", markup, more + downloads(*tables), tables)


def _claims(protocols: Sequence[MeasuredProtocol], true: Mapping[str, float]) -> str:
    columns = [Column("test set", numeric=False), Column("tau with the truth"), Column("significant pairs")]
    columns.append(Column("of these wrong", hint="the system that is called better is truly worse"))
    rows = [
        [
            Value(text(protocol.name), protocol.name),
            Value(number_text(protocol.tau(true), 2), protocol.tau(true)),
            Value(f"{protocol.claims.significant} of {protocol.claims.pairs}", protocol.claims.significant),
            Value(str(protocol.claims.wrong), protocol.claims.wrong, "warn" if protocol.claims.wrong else ""),
        ]
        for protocol in protocols
    ]
    return table("What each test set claims, and how much of it is true", columns, rows)


def _numbers(metric: str, true: Mapping[str, float], protocols: Sequence[MeasuredProtocol]) -> str:
    columns = [Column("system", numeric=False), Column(f"true {metric}")]
    for protocol in protocols:
        columns += [Column(protocol.name), Column("place")]
    rows = []
    for system in sorted(true, key=lambda system: -true[system]):
        row = [Value(text(system), system), Value(percent(true[system]), true[system])]
        for protocol in protocols:
            value, place = protocol.values[system], protocol.places[system]
            row += [Value(number_text(value), value), Value(str(place), place)]
        rows.append(row)
    return table(f"{metric}: the true value and what was measured, truly best first", columns, rows)


def _frame(true: Mapping[str, float], protocols: Sequence[MeasuredProtocol]) -> pl.DataFrame:
    columns: dict[str, list[float] | list[int]] = {}
    for protocol in protocols:
        columns[protocol.name] = [protocol.values[system] for system in true]
        columns[f"place on {protocol.name}"] = [protocol.places[system] for system in true]
    return pl.DataFrame({"system": list(true), "the truth": list(true.values()), **columns})


def _claims_frame(true: Mapping[str, float], protocols: Sequence[MeasuredProtocol]) -> pl.DataFrame:
    rows = [(of.name, of.tau(true), of.claims.pairs, of.claims.significant, of.claims.wrong) for of in protocols]
    return pl.DataFrame(rows, schema=["test_set", "tau_with_the_truth", "pairs", "significant", "wrong"], orient="row")


_CHECKED = (
    "An assessment has only the test set to go by. Here the truth is known, so its advice can be checked: for each "
    "metric, how well its order of the systems agrees with the true order by {metric} (Kendall's tau)."
)


def metrics_and_truth(metric: str, advice: Advice, taus: Mapping[str, Mapping[str, float]], checked: Fact) -> Section:
    """Return each metric's rank by the advice, and its tau with the true order by ``metric`` on each test set."""
    rows = advice.frame().select("metric", "score").rows()
    columns = [Column("metric", numeric=False), Column("place by the advice"), Column("score of the advice")]
    columns += [Column(f"tau with the truth on {test}") for test in taus]
    most = {test: max(by_metric.values()) for test, by_metric in taus.items()}
    cells = [
        [
            Value(text(name), name),
            Value(str(place), place),
            Value(number_text(score, 3), score),
            *(_tau(by_metric[name], most[test]) for test, by_metric in taus.items()),
        ]
        for place, (name, score) in enumerate(rows, start=1)
    ]
    names, scores = zip(*rows)
    frame = pl.DataFrame({"metric": names, "place_by_the_advice": range(1, len(rows) + 1), "score": scores})
    frame = frame.with_columns(
        pl.Series(f"tau_{test}", [by_metric[name] for name in names]) for test, by_metric in taus.items()
    )
    caption = "Metrics in the order of the advice, and how well their orders agree with the true one"
    shown = table(caption, columns, cells)
    markup = paragraphs([checked, _CHECKED.format(metric=metric)]) + shown + downloads("metrics-and-truth")
    return Section("metrics-and-truth", "The advice, checked", markup, tables={"metrics-and-truth": frame})


def _tau(tau: float, most: float) -> Value:
    best = "best" if round(most - tau, 12) == 0 else ""
    return Value(f'<span class="average">{number_text(tau, 2)}</span>', tau, best)
