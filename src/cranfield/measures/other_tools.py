"""The verb `dialects`: one run, one metric's name, and the number that each tool would print."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import CranfieldWarning, SettingError
from cranfield._numbers import number_text
from cranfield._registry import Spelling, parse
from cranfield._table import Cell, Table
from cranfield.data import AUTO, Ratings
from cranfield.judgments import NegativeGrades
from cranfield.measures.measuring import Kind, measure
from cranfield.measures.scores import Scores
from cranfield.metrics import TOOLS, Dialect, Metric, as_metrics
from cranfield.rankings import Gaps, Ties

OURS = "cranfield"

_SHARED = ("rel", "condensed")


def compare_tools(
    runs: Any,
    test: Any,
    metrics: Sequence[str | Metric] | str | Metric = "nDCG@10",
    *,
    threshold: float | str | None = AUTO,
    lists: Kind = "full",
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    train: Ratings | None = None,
    published: float | str | None = None,
    negative_grades: NegativeGrades = "judged",
    strict: bool = False,
) -> pl.DataFrame:
    """Measure runs by a metric as each tool understands its name.

    Parameters
    ----------
    runs, test, threshold, lists, ties, gaps, negative_grades, strict
        As in `measure`; its warnings are Python warnings here. Tools without a threshold get only the relevant test
        ratings, as their users would do.
    train
        The training ratings: their items belong to the catalogue, whose size implicit's AUC depends on.
    metrics
        One or more metrics in our spelling, without ``dialect``. Tools that have no such metric are left out.
    published
        A number from a paper, as it is printed there (``"0.2163"``): marks the dialects that round to it.

    Returns
    -------
    One row per system, metric and dialect: ``tool``; ``spelling``, as it can be measured here; ``value``, the average
    that the tool prints; ``users``, how many it averages over; ``difference`` from ours; ``how`` it differs, in
    words; and ``agrees`` if a published number was given.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "y"])
    >>> run = {"mine": {"ann": ["z", "x"], "bob": ["w", "z"]}}
    >>> frame = compare_tools(run, test, "P@4")
    >>> frame.filter(pl.col("tool").is_in(["cranfield", "lenskit", "implicit"])).select("spelling", "value").rows()
    [('P@4', 0.125), ('P(dialect=implicit)@4', 0.3333333333333333), ('P(dialect=lenskit)@4', 0.25)]
    """
    printed = None if published is None else _half_a_digit(published)
    wanted = as_metrics(metrics)
    readings = {metric: list(_readings(metric)) for metric in wanted}
    spellings = [str(metric) for ours in wanted for metric in (ours, *(theirs for theirs, _, _ in readings[ours]))]
    scores = measure(
        runs, test, spellings, threshold=threshold, lists=lists, ties=ties, gaps=gaps, train=train,
        negative_grades=negative_grades, strict=strict,
    )  # fmt: skip
    scores.only([str(metric) for metric in wanted]).check_measured()
    for warning in (*scores.warnings, *filter(None, [scores.nothing_relevant])):
        warnings.warn(str(warning), CranfieldWarning, stacklevel=2)
    rows = [
        row
        for s in range(len(scores.systems))
        for metric in wanted
        for row in _rows(scores, s, metric, readings[metric])
    ]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    if printed is None:
        return frame
    number, half = printed
    near = (pl.col("value") - number).abs() <= half * (1.0 + 1e-9)
    return frame.with_columns(agrees=near & pl.col("value").is_not_nan())


_SCHEMA = {
    **dict.fromkeys(("system", "metric", "tool", "spelling"), pl.String),
    "value": pl.Float64,
    "users": pl.Int64,
    "difference": pl.Float64,
    "how": pl.String,
}


def _readings(metric: Metric) -> Iterator[tuple[Metric, Dialect, str]]:
    """Yield each tool's definition of a metric, with the option that selects it."""
    if metric.dialect is not None:
        raise SettingError(
            f"{metric} is a dialect already; write {Spelling(metric.definition.name, (), metric.cutoff)}"
        )
    name = metric.definition.name
    speakers = [tool for tool in TOOLS.values() if name in tool.dialects]
    if not speakers:
        known = sorted({known for tool in TOOLS.values() for known in tool.dialects})
        raise SettingError(f"no dialect of {name} is known; dialects are known for {', '.join(known)}")
    shared = tuple((key, value) for key, value in metric.parameters if key in _SHARED)
    for tool in speakers:
        spoken = tool.dialects[name]
        if spoken.definition.cutoff == ("required" if metric.cutoff is None else "none"):
            continue
        for option in spoken.words:
            parameters = (("dialect", tool.name), *parse(f"{name}({option})").parameters, *shared)
            yield Metric(spoken.definition, parameters, metric.cutoff), spoken, option


def _rows(
    scores: Scores, s: int, metric: Metric, readings: Sequence[tuple[Metric, Dialect, str]]
) -> Iterator[tuple[Any, ...]]:
    """Yield the row of our own definition, then that of each tool."""
    ours, here = float(scores.average()[s, scores.metric(str(metric))]), (scores.systems[s], str(metric))
    yield (*here, OURS, str(metric), ours, scores.n_lists, 0.0, f"{metric.definition.summary} {_OUR_USERS}")
    for spoken, dialect, option in readings:
        values = scores.values[s, scores.metric(str(spoken))]
        counted = values[~np.isnan(values)]
        users = len(counted)
        if dialect.users.counts_strangers:
            users += scores.counts[scores.systems[s]].get("users without test ratings", 0)
        value = float(counted.sum()) / users if users else float("nan")
        yield (*here, dialect.tool.name, str(spoken), value, users, value - ours, dialect.sentence(option))


_OUR_USERS = "Averages over every test user, 0 without a list or without relevant items."


def _half_a_digit(published: float | str) -> tuple[float, float]:
    """Return a published number, and half of its last printed digit."""
    try:
        number = Decimal(str(published).strip())
    except InvalidOperation:
        number = Decimal("nan")
    digits = number.as_tuple().exponent
    if not isinstance(digits, int):
        raise SettingError(f"the published number {published!r} is not a number; write it as printed, such as 0.2163")
    return float(number), 0.5 * 10.0**digits


def dialects_table(frame: pl.DataFrame) -> Table:
    """Return the frame of `dialects` as a table for people: one row per dialect, and below it how each differs."""
    several = [name for name in ("system", "metric") if frame[name].n_unique() > 1]
    agrees = frame["agrees"].to_list() if "agrees" in frame.columns else [False] * len(frame)
    cells = [
        [
            Cell(row["spelling"]),
            *(Cell(row[name]) for name in several),
            Cell(number_text(row["value"]), best=agreed),
            Cell(number_text(row["difference"], sign="+")),
            Cell(f"{row['users']:,}"),
        ]
        for row, agreed in zip(frame.iter_rows(named=True), agrees)
    ]
    sentences = list(dict.fromkeys(frame["how"].to_list()))
    if "agrees" in frame.columns:
        sentences.insert(0, _verdict(frame))
    header = ["dialect", *several, "value", "difference", "users"]
    return Table(header, cells, _caption(frame), sentences)


def _verdict(frame: pl.DataFrame) -> str:
    spellings = frame.filter("agrees")["spelling"].unique(maintain_order=True).to_list()
    if not spellings:
        return "No dialect gives the published number."
    return f"The published number matches {', '.join(spellings)}."


def _caption(frame: pl.DataFrame) -> str:
    metrics = ", ".join(frame["metric"].unique(maintain_order=True))
    systems = frame["system"].unique(maintain_order=True)
    return f"{metrics} as other tools compute it" + (f"; system {systems[0]}" if len(systems) == 1 else "")
