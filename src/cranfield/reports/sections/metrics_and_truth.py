"""The advice on metrics compared with the truth, if the truth is known."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from cranfield._numbers import number_text
from cranfield.assessments import Advice
from cranfield.reports.markup import Column, Value, downloads, paragraphs, table, text
from cranfield.reports.section import Section

_WHY = (
    "An assessment has only the test set to go by. Here the truth is known, so its advice can be checked: for each "
    "metric, how well its order of the systems agrees with the true order by {metric} (Kendall's tau)."
)


def metrics_and_truth(metric: str, advice: Advice, taus: Mapping[str, Mapping[str, float]], sentence: str) -> Section:
    """Return the section: each metric's rank by the advice, and its agreement with the truth.

    Parameters
    ----------
    metric
        The metric of the true order.
    advice
        The advice of the assessment on metrics.
    taus
        For each test set and metric, Kendall's tau with the true order.
    sentence
        The conclusion.
    """
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
    frame = pl.DataFrame(
        {
            "metric": [name for name, _ in rows],
            "place_by_the_advice": range(1, len(rows) + 1),
            "score": [score for _, score in rows],
            **{f"tau_{test}": [by_metric[name] for name, _ in rows] for test, by_metric in taus.items()},
        }
    )
    shown = table(
        "Metrics in the order of the advice, and how well their orders agree with the true one", columns, cells
    )
    markup = paragraphs([sentence, _WHY.format(metric=metric)]) + shown + downloads("metrics-and-truth")
    return Section("metrics-and-truth", "The advice, checked", markup, tables={"metrics-and-truth": frame})


def _tau(tau: float, most: float) -> Value:
    best = "best" if round(most - tau, 12) == 0 else ""
    return Value(f'<span class="average">{number_text(tau, 2)}</span>', tau, best)
