"""Comparing groups and windows of time: a verdict for each group, where the order is reversed, and who leads when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._errors import InputError
from cranfield._registry import parse
from cranfield._result import Figures, Result
from cranfield._table import Table, answer_and_table
from cranfield.comparisons.comparing import compare, tested_average, usual_correction
from cranfield.comparisons.comparison import Comparison
from cranfield.comparisons.interactions import has_weight, interactions
from cranfield.comparisons.p_values import spelled_test
from cranfield.facts import Fact, sentences
from cranfield.facts import comparison as comparison_facts
from cranfield.facts import segment as segment_facts
from cranfield.measures import Averaging, Scores, Segments
from cranfield.metrics import metric_label, properties_of


@dataclass(frozen=True, eq=False)
class SegmentComparison(Result):
    """The results of the tests in each group, and whether the groups differ.

    Parameters
    ----------
    segments
        The scores by group.
    comparisons
        The result of `compare` for each group, corrected for the number of groups; None for groups without values.
    interactions
        One row per metric, pair of systems and group: the difference inside the group versus outside it; see
        `cranfield.comparisons.interactions.interactions`.
    averaging
        How lists are averaged.
    alpha
        The level of significance.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "bob", "cid"], ["x", "y", "y"])
    >>> runs = {"mine": {"ann": ["x"], "bob": ["x"]}, "other": {"ann": ["z"], "cid": ["y"]}}
    >>> scores = cf.measure(runs, test, "P@1")
    >>> groups = scores.segments({"ann": "young", "bob": "old", "cid": "old"})
    >>> cf.compare_segments(groups, significance="student").frame().columns[:2]
    ['segment', 'group']
    """

    segments: Segments
    comparisons: Mapping[str, Comparison | None]
    interactions: pl.DataFrame
    averaging: Averaging
    alpha: float

    @cached_property
    def averaged(self) -> Segments:
        """The scores by group, with the numbers of users that are compared; see `Segments`."""
        counts = {name: part.rows["n"].to_list() for name, part in self.comparisons.items() if part is not None}
        return replace(self.segments, compared=counts)

    def frame(self, *, detail: bool = False) -> pl.DataFrame:
        """Return `Comparison.frame` of every group, with the columns ``segment`` and ``group`` in front."""
        labels = [pl.lit(self.segments.name).alias("segment")]
        return pl.concat(
            comparison.frame(detail=detail).select(*labels, pl.lit(name).alias("group"), pl.all())
            for name, comparison in self.comparisons.items()
            if comparison is not None
        )

    def averages(self) -> pl.DataFrame:
        """Return the averages of every group with their intervals; see `Segments.frame`."""
        return self.segments.frame(self.averaging, level=1 - self.alpha)

    def facts(self) -> list[Fact]:
        """The facts of the verdict: where orders are reversed, how systems stand in each group, and what to doubt."""
        once = dict.fromkeys(name for part in self.comparisons.values() if part for name in part.trained_once)
        doubts = [comparison_facts.TrainedOnce(tuple(once))] if once else []
        return [self.reversals, *self.groups, *doubts]

    @cached_property
    def groups(self) -> list[segment_facts.InGroup]:
        """How systems stand in each group."""
        standings = {name: None if part is None else part.facts()[0] for name, part in self.comparisons.items()}
        return [
            segment_facts.InGroup(self.segments.name, name, self.averaged.users(name, self.averaging), standing)
            for name, standing in standings.items()
        ]

    @cached_property
    def reversals(self) -> segment_facts.Reversals:
        """Where the order of two systems is reversed by a metric that has winners, and whether chance explains it."""
        metrics = [metric for metric in self.segments.scores.metrics if properties_of(metric).has_winners]
        turned = self.interactions.filter(pl.col("turns") & pl.col("metric").is_in(metrics))
        place = pl.col("metric").replace_strict({metric: k for k, metric in enumerate(metrics)}, return_dtype=pl.Int64)
        shown = turned.filter("significant").sort(place, "p_corrected", maintain_order=True)
        others = turned.filter(~pl.col("significant"))
        smallest: Any = others["p_corrected"].fill_nan(None).min()
        reversals = tuple(self._reversed(row) for row in shown.iter_rows(named=True))
        main = metric_label(metrics[0]) if metrics else ""
        count = len(self.comparisons)
        return segment_facts.Reversals(self.segments.name, count, reversals, len(others), smallest, main)

    def _reversed(self, row: Mapping[str, Any]) -> segment_facts.ReversedOrder:
        a, b = row["system_a"], row["system_b"]
        lower = self.segments.scores.lower_is_better[self.segments.scores.metrics.index(row["metric"])]
        inside, outside = (a if (row[where] > 0) != lower else b for where in ("inside", "outside"))
        return segment_facts.ReversedOrder(
            self.segments.name, row["group"], metric_label(row["metric"]), (a, b), (inside, outside), row["inside"],
            row["outside"], row["p"], row["p_corrected"], row["test"],
        )  # fmt: skip

    @property
    def notes(self) -> tuple[str, ...]:
        """How the groups were made and tested."""
        notes = [
            *sentences(self.segments.notes),
            f"{self._corrected}; p-values of interactions are corrected for all groups and pairs of a metric (Holm)",
        ]
        if self.segments.scores.repetitions is not None:
            times = int(self.segments.scores.repetitions.max()) + 1
            notes.append(
                f"intervals and tests include the spread between {times} repetitions (users crossed with them)"
            )
        return tuple(notes)

    @property
    def _corrected(self) -> str:
        """What the p-values and intervals within groups are corrected for."""
        parts = [part for part in self.comparisons.values() if part is not None]
        if not _is_corrected(parts[0].significance, parts[0].correction):
            return "p-values and intervals within a group are not corrected"
        return (
            "p-values and intervals within a group are corrected for the pairs of systems and for the number of groups "
            f"({len(parts)})"
        )

    def table(self) -> Table:
        """Return the averages by group as a table for people."""
        averages = self.averaged.table(self.averaging, level=1 - self.alpha)
        return replace(averages, notes=self.notes)

    def summary(self) -> Table:
        """Return the averages by group without intervals, with what is significant in each group marked."""
        averages = self.averaged.table(self.averaging, level=None)
        marks = {
            (group, metric_label(metric), system): mark
            for group, part in self.comparisons.items()
            if part is not None
            for (metric, system), mark in part.marks().items()
        }
        rows = [
            [
                replace(cell, raised=marks.get((row[0].text, name, row[1].text), ""))
                for name, cell in zip(averages.header, row)
            ]
            for row in averages.cells()
        ]
        part = next((part for part in self.comparisons.values() if part is not None and part.marks()), None)
        key = "" if part is None else f". Within a group: {part.key_to_marks.removesuffix('.')} ({part.tested})"
        return replace(averages, rows=rows, caption=averages.caption + key, notes=self.notes)

    def as_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON (NaN becomes null)."""
        return {
            "segment": self.segments.name,
            "of": self.segments.of,
            "verdict": self.verdict,
            "notes": list(self.notes),
            "averages": _plain(self.averages()),
            "comparisons": _plain(self.frame(detail=True)),
            "interactions": _plain(self.interactions),
        }

    def __str__(self) -> str:
        averages = replace(self.table(), notes=())
        return answer_and_table(self.reversals, averages, [*self.facts()[1:], *sentences(self.segments.notes)])

    def __repr__(self) -> str:
        return f"SegmentComparison({self.segments!r})"

    @property
    def figures(self) -> Figures:
        """The figures of the averages; see `Segments.figures`."""
        return {name: partial(_of_averages, draw) for name, draw in self.averaged.figures.items()}


def _of_averages(draw: Callable[..., Any], comparison: SegmentComparison, *how: Any, **options: Any) -> Any:
    settings = {"averaging": comparison.averaging, "level": 1 - comparison.alpha}
    return draw(comparison.averaged, *how, **{**settings, **options})


def compare_segments(segments: Segments, **options: Any) -> SegmentComparison:
    """Compare systems in each group, and test whether the groups differ.

    Every group is compared with `compare`. p-values are corrected for the pairs of systems and for the groups: with G
    groups, each is compared at α / G, and its corrected p-values are multiplied by G (Bonferroni), so that with
    probability 1 − α no verdict in any group is false, and intervals agree with p-values. With ``correction="none"``
    nothing is corrected. The order of two systems *is reversed* in a group where one leads
    inside it and the other outside it; whether that is more than chance is tested as an interaction, the paired
    difference inside the group versus outside it, and corrected over all groups and pairs of a metric (Holm). All
    groups are tested, not only those in which the order is reversed, so the correction accounts for selecting these
    afterwards.

    Parameters
    ----------
    segments
        The result of `Scores.segments` or `measure_segments`.
    options
        The options of `compare`.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(list("abcdefgh"), list("xxxxyyyy"))
    >>> runs = {"one": {user: ["x"] for user in "abcdefgh"}, "two": {user: ["y"] for user in "abcdefgh"}}
    >>> groups = {user: "early" if user < "e" else "late" for user in "abcdefgh"}
    >>> comparison = cf.compare_segments(cf.measure(runs, test, "P@1").segments(groups))
    >>> comparison.interactions.select("group", "inside", "outside", "turns").rows()
    [('early', 1.0, -1.0, True), ('late', -1.0, 1.0, True)]
    """
    known = Averaging().as_dict()
    averaging = Averaging(**{"by": "user", **{name: options[name] for name in options if name in known}})
    averaging = tested_average(options.get("significance", "permutation"), averaging.with_(groups="pooled"))
    options = {**options, "groups": "pooled"}
    if segments.of != "users":  # test items of other groups count as unjudged, although they are judged
        options["unjudged"] = "ignore"
    alpha = _checks.share("alpha", options.get("alpha", 0.05))
    segments.scores.check_measured()
    measured = [name for name in segments.names if _is_measured(segments.group(name), averaging)]
    spelled = spelled_test(options.get("significance", "permutation"))
    corrected = _is_corrected(spelled, options.get("correction") or usual_correction(spelled))
    groups = len(measured) if corrected else 1
    at_level = {**options, "alpha": alpha / max(groups, 1)}
    compared = {
        name: _for_groups(compare(segments.group(name), **at_level), groups, alpha) if name in measured else None
        for name in segments.names
    }
    if not measured:
        raise InputError(f"no group of {segments.name} has anything to compare", remedy="use average='mean'")
    metrics = options.get("metrics")
    tested = interactions(
        segments,
        averaging,
        metrics=[metrics] if isinstance(metrics, str) else metrics,
        baseline=None if options.get("baseline") in (None, "none") else options["baseline"],
        alpha=alpha,
    )
    return SegmentComparison(segments, compared, tested, averaging, alpha)


def _is_measured(scores: Scores, averaging: Averaging) -> bool:
    return bool(np.isfinite(scores.values).any()) and has_weight(scores, averaging)


def _is_corrected(significance: str, correction: str) -> bool:
    """Whether p-values are corrected: by a correction, or by Tukey's test itself."""
    return correction != "none" or parse(significance).name == "tukey"


def _for_groups(part: Comparison, groups: int, alpha: float) -> Comparison:
    """Return a comparison at α / groups with the p-values, corrected over groups too, that are significant at α."""
    p = pl.min_horizontal(groups * pl.col("p_corrected"), 1.0)
    rows = part.rows.with_columns(p_corrected=pl.when(pl.col("p_corrected").is_nan()).then(float("nan")).otherwise(p))
    common = None if part.common is None else _for_groups(part.common, groups, alpha)
    return replace(part, rows=rows, alpha=alpha, common=common)


def _plain(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return frame.with_columns(pl.selectors.float().fill_nan(None)).to_dicts()


def window_leads(scores: Scores, averaging: Averaging) -> list[segment_facts.WindowLeads]:
    """Return which system leads in each window of joined scores, for each metric that has a value for every list.

    The overall average is the mean over windows. Without windows, or with one system, there is nothing to say.
    """
    windows = scores.windows
    if not windows or len(scores.systems) < 2:
        return []
    from scipy import stats

    within = averaging.with_(groups="pooled")
    means = np.stack([scores.group(start).average(within) for start in windows])
    leads = []
    for m, metric in enumerate(scores.metrics):
        signed = -means[:, :, m] if scores.lower_is_better[m] else means[:, :, m]
        if np.isnan(signed).any():
            continue
        order = np.argsort(-signed.mean(axis=0), kind="stable")
        best, second = int(order[0]), int(order[1])
        leaders = [best if row[best] == row.max() else int(np.argmax(row)) for row in signed]
        ahead = signed[:, best] - signed[:, second]
        won, lost = int(np.count_nonzero(ahead > 0)), int(np.count_nonzero(ahead < 0))
        enough = len(windows) >= segment_facts.FEWEST_WINDOWS
        p = min(1.0, 2 * float(stats.binom.cdf(min(won, lost), won + lost, 0.5))) if won + lost else 1.0
        names = tuple(scores.systems[leader] for leader in leaders)
        ends = (scores.systems[second], won, lost, p if enough else None)
        leads.append(segment_facts.WindowLeads(metric, windows, scores.systems[best], names, *ends))
    return leads


def leads_frame(leads: list[segment_facts.WindowLeads]) -> pl.DataFrame:
    """Return one row per metric: the leading system, in how many windows it leads, and the latest leader."""
    rows = [
        {
            "metric": lead.metric,
            "best": lead.best,
            "second": lead.second,
            "windows": len(lead.windows),
            "won": lead.won,
            "lost": lead.lost,
            "p": lead.p,
            "latest": lead.leaders[-1],
            "stable": len(set(lead.leaders)) == 1,
        }
        for lead in leads
    ]
    return pl.DataFrame(rows, schema_overrides={"p": pl.Float64})
