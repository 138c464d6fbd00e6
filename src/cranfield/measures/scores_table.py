"""Scores as a table for people: averages, best first, with coverage, and the decisions in the caption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._checks import whole
from cranfield._decisions import takes_decisions
from cranfield._numbers import all_systems, count_text, number_text, percent_text
from cranfield._registry import parse
from cranfield._table import Cell, Table, places
from cranfield.measures.averages import Average
from cranfield.measures.averaging import Averaging, AveragingOptions
from cranfield.metrics import averaging_phrases, legend, relevance_phrase

if TYPE_CHECKING:
    from cranfield.measures.scores import Scores

LEVEL = 0.95
"""Default confidence level of the intervals that are shown."""

_Form = Callable[[float, float, float, int], str]
"""Returns the text of a number and its two ends."""


class Tabled:
    """Scores that can be shown as a table."""

    @takes_decisions(Averaging)
    def table(
        self,
        average: str | Average | Averaging = "mean",
        *,
        digits: int = 4,
        services: bool = False,
        level: float | None = None,
        interval: Literal["analytic", "bootstrap"] = "analytic",
        seed: int = 0,
        **decisions: Unpack[AveragingOptions],
    ) -> Table:
        """Return the averages as a table for people: one row per system, best first, the decisions in the caption.

        With ``services``, Coverage@d (of the deepest cut-off) and item coverage follow user coverage; with a
        ``level`` of confidence, each average is followed by its interval. The other options are those of `frame`.
        """
        scores: Any = self  # a table needs nothing that requires all values
        averaging = Averaging.of(average, **decisions)
        digits = whole("digits", digits, at_least=0)
        return _table(scores, averaging, digits=digits, services=services, level=level, interval=interval, seed=seed)

    @property
    def whom(self) -> str:
        """Who was measured, in words: ``940 users``, or ``298 users in 3 repetitions``.

        Examples
        --------
        >>> import cranfield as cf
        >>> test = cf.Ratings.of(["ann", "bob"], ["x", "y"])
        >>> cf.measure({"mine": {"ann": ["x"]}}, test, "P@1").whom
        '2 users'
        """
        scores: Any = self
        said = count_text(scores.n_users, "user")
        if scores.repetitions is not None:
            return f"{said} in {int(scores.repetitions.max()) + 1} repetitions"
        return said if scores.n_users == scores.n_lists else f"{said} with {scores.n_lists:,} lists"

    @property
    def relevance(self) -> str:
        """What makes an item relevant, and in which metrics; empty if that is not known."""
        scores: Any = self
        threshold = scores.step.settings.get("threshold")
        return "" if threshold is None else relevance_phrase(scores.metrics, threshold)

    def on_left_out(self, averaging: Averaging) -> list[str]:
        """Return which users are averaged over by metrics whose undefined values are left out, if these are not all.

        A system is averaged over the users for whom it has a value, whoever else is measured.
        """
        scores: Any = self
        counts: dict[tuple[int, ...], list[str]] = {}
        for m, metric in enumerate(scores.metrics):
            kept, missing = scores.left_out(m, averaging)
            if any(missing) and any(kept):
                counts.setdefault(kept, []).append(metric)
        return [f"{', '.join(metrics)}: {_whom(scores, users)}" for users, metrics in counts.items()]

    def left_out_by(self, averaging: Averaging) -> tuple[str, ...]:
        """Return the metrics that leave some users out, since they are undefined for them and 0 is a result there."""
        scores: Any = self
        return tuple(metric for m, metric in enumerate(scores.metrics) if any(scores.left_out(m, averaging)[1]))

    @staticmethod
    def deepest(metrics: Sequence[str]) -> tuple[str, str]:
        """Return the metric with the deepest cut-off, and this depth as the end of a name.

        Shares that depend on the depth, such as that of unjudged items, are shown at this depth everywhere.

        Examples
        --------
        >>> Tabled.deepest(["P@10", "nDCG@100"]), Tabled.deepest(["P@10", "AP"])
        (('nDCG@100', '@100'), ('AP', ' in the whole list'))
        """
        cutoffs = {metric: parse(metric).cutoff for metric in metrics}
        metric = max(cutoffs, key=lambda name: cutoffs[name] or np.inf)
        return metric, " in the whole list" if cutoffs[metric] is None else f"@{cutoffs[metric]}"

    def __str__(self) -> str:
        return self.table(services=True, level=LEVEL).text()

    def _repr_html_(self) -> str:
        return self.table(services=True, level=LEVEL).html()


def _table(
    scores: Scores,
    averaging: Averaging,
    *,
    digits: int,
    services: bool,
    level: float | None,
    interval: Literal["analytic", "bootstrap"],
    seed: int,
) -> Table:
    """Return the averages of scores as a table; see `Tabled.table`."""
    means = scores.average(averaging)
    kinds: dict[tuple[str, str], tuple[bool, _Form]] = {
        ("lower", "upper"): (level is not None, _interval),
        ("least", "most"): (scores.bounds is not None, _span),
        ("mean", "spread"): (scores.repetitions is not None, _deviation),
    }
    pairs = [(*names, form) for names, (is_shown, form) in kinds.items() if is_shown]
    ends = pl.DataFrame()
    if pairs:
        ends = scores.frame(averaging, level=LEVEL if level is None else level, interval=interval, seed=seed)
    lowest_first = averaging.taken_of(scores).lower_is_better
    header, cells = ["system", *scores.metrics], _cells(scores, means, lowest_first, ends, pairs, digits)
    for name, shares in _services(scores, services).items():
        header.append(name)
        for s, served in enumerate(shares):
            cells[s].append(Cell(percent_text(served)))
    caption = _caption(scores, averaging)
    if level is not None:
        shown = ends.filter(pl.col("lower").is_not_nan())  # neither NaN nor null
        methods = list(dict.fromkeys(shown["interval"].drop_nulls()))
        caption += f"; interval: {', '.join(methods) or 'none'}"
    meaning = legend(header)
    notes = (*scores.notes, *scores.on_left_out(averaging), *([meaning] if meaning else []))
    return Table(header, _best_first(cells, means, lowest_first), caption, notes)


def _whom(scores: Scores, counts: Sequence[int]) -> str:
    """Return the number of users that each system is averaged over, in words."""
    if len(set(counts)) == 1:
        whose = "the system" if len(scores.systems) == 1 else "each system"
        return f"over the {_units(scores, counts[0])} for whom {whose} has a value"
    each = ", ".join(f"{system} {count:,}" for system, count in zip(scores.systems, counts))
    return f"each system over the {scores.unit}s for whom it has a value ({each})"


def _cells(
    scores: Scores,
    means: NDArray[np.float64],
    lowest_first: Sequence[bool],
    ends: pl.DataFrame,
    pairs: Sequence[tuple[str, str, _Form]],
    digits: int,
) -> list[list[Cell]]:
    """Return the name and the averages of each system, the best of each metric marked."""
    cells = [[Cell(name)] for name in scores.systems]
    several = len(scores.systems) > 1
    for m, lower in enumerate(lowest_first):
        for s, place in enumerate(places(means[:, m], lower, digits)):
            text = number_text(means[s, m], digits)
            for low, high, form in pairs:
                below, above = ends.select(low, high).row(s * len(scores.metrics) + m)
                if None not in (below, above) and not np.isnan([below, above]).any():
                    text += " " + form(means[s, m], below, above, digits)
            cells[s].append(Cell(text, best=several and place == 0, second=several and place == 1))
    return cells


def _services(scores: Scores, all_of_them: bool) -> dict[str, NDArray[np.float64]]:
    """Return the shares next to the averages, by the names of their columns."""
    shares = {"users": scores.user_coverage}
    if not scores.metrics:
        return shares
    metric, depth = scores.deepest(scores.metrics)
    place = scores.metrics.index(metric)
    if all_of_them and scores.filled is not None:
        shares[f"places{depth}"] = scores.filled[:, place]
    if all_of_them and scores.item_coverage is not None:
        shares[f"items in {scores.catalogue}"] = scores.item_coverage
    if scores.unjudged is not None:
        shares[f"unjudged{depth}"] = scores.unjudged[:, place]
    if scores.nonexistent is not None:
        shares[f"nonexistent{depth}"] = scores.nonexistent[:, place]
    return shares


def _caption(scores: Scores, averaging: Averaging) -> str:
    settings = scores.step.settings
    parts = [
        scores.whom,
        f"{settings.get('lists', 'full')} lists",
        *([scores.relevance] if scores.relevance else []),
        *_averaged(scores, averaging),
        *([] if scores.repetitions is None else ["sd: the standard deviation between repetitions"]),
        *([] if scores.bounds is None else ["in brackets: all unjudged items irrelevant, or all relevant"]),
    ]
    return "; ".join(parts)


def _units(scores: Scores, count: int) -> str:
    return count_text(count, scores.unit)


def _common(scores: Scores) -> str:
    """Return how many users every system serves."""
    served, every = scores.n_served_users, scores.n_users
    return f"{served:,} of {every:,} users" if served < every else count_text(every, "user")


def _averaged(scores: Scores, averaging: Averaging) -> list[str]:
    """Return how lists are averaged, in clauses."""
    decided = {"average": averaging.average, "coverage": averaging.coverage, "undefined": averaging.undefined}
    average, coverage, undefined = averaging_phrases(decided, scores.metrics, scores.left_out_by(averaging))
    if averaging.coverage == "reduced" and len(scores.systems) > 1:
        coverage = f"over the {_common(scores)} that {all_systems(len(scores.systems))} serve"
    groups = [] if averaging.groups == "pooled" else [f"groups: {averaging.groups}"]
    return [average, *groups, coverage, undefined]


def _best_first(
    rows: list[list[Cell]], means: NDArray[np.float64], lower_is_better: Sequence[bool]
) -> list[list[Cell]]:
    """Return the rows of the systems in the order of the first metric; those without an average are last."""
    if not lower_is_better:
        return rows
    return [rows[s] for s in np.argsort(means[:, 0] * (1 if lower_is_better[0] else -1), kind="stable")]


def _interval(mean: float, lower: float, upper: float, digits: int) -> str:
    """Return an interval as text: its half width if the mean is in the middle, otherwise its ends."""
    if f"{mean - lower:.{digits}f}" == f"{upper - mean:.{digits}f}":
        return f"±{number_text(mean - lower, digits)}"
    return f"[{number_text(lower, digits)}, {number_text(upper, digits)}]"


def _deviation(_: float, __: float, deviation: float, digits: int) -> str:
    return f"(sd {number_text(deviation, digits)})"


def _span(_: float, least: float, most: float, digits: int) -> str:
    return f"({number_text(least, digits)}–{number_text(most, digits)})"
