"""`Segments`: the scores of groups of users, items or test ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._checks import one_of
from cranfield._decisions import takes_decisions
from cranfield._errors import InputError, SettingError
from cranfield._result import Figures, Result
from cranfield._table import Cell, Table
from cranfield.data import AUTO, Ratings
from cranfield.facts import Fact, sentences
from cranfield.facts import segment as segment_facts
from cranfield.judgments import NONE, Context, Judged, Judgments, NegativeGrades, as_judged, as_test, with_live
from cranfield.measures.averages import Average
from cranfield.measures.averages_frame import LEVEL
from cranfield.measures.averaging import PLAIN, Averaging, AveragingOptions
from cranfield.measures.joining import check_alike, lists_of, repetition_of_lists
from cranfield.measures.measuring import DEFAULT_METRICS, Kind, Measuring, measure_judged
from cranfield.measures.scores import NOTHING_WHOLE, Scores
from cranfield.measures.segmenting import (
    HEAD_MID_TAIL,
    NOTHING,
    Basis,
    Segment,
    SegmentOf,
    group_of_items,
    segment_of,
    shares_of,
)
from cranfield.metrics import Metric, metric_label, translated
from cranfield.rankings import Gaps, Ties

IntervalKind = Literal["analytic", "bootstrap"]


@dataclass(frozen=True, eq=False)
class Segments(Result):
    """Scores by group.

    Parameters
    ----------
    name
        The name of the grouping: ``activity``, ``users.csv:age``.
    of
        What is grouped: ``users``, ``items`` or (test) ``ratings``.
    scores
        The scores with the group of each list. If items or ratings are grouped, a user has a list for each group: the
        same list, for which only the test ratings of the group count.
    notes
        How the groups are made.
    compared
        If systems were compared in each group: how many users were, by the metrics.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "bob", "cid"], ["x", "y", "y"])
    >>> runs = {"mine": {"ann": ["x"], "bob": ["x"]}, "other": {"ann": ["z"], "cid": ["y"]}}
    >>> scores = cf.measure(runs, test, "P@1")
    >>> scores.segments({"ann": "young", "bob": "old", "cid": "old"}).names
    ('old', 'young')
    """

    name: str
    of: SegmentOf
    scores: Scores
    notes: tuple[Fact, ...] = ()
    compared: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The groups, in order."""
        return self.scores.group_names

    @property
    def averaged(self) -> Segments:
        """The scores to show averages of: all of them; for a comparison, those of its users."""
        return self

    def group(self, name: str) -> Scores:
        """Return the scores of one group."""
        return self.scores.group(name)

    def users(self, name: str, averaging: Averaging = PLAIN) -> str:
        """Return how many users of a group are compared, or count in averages: ``60``, or ``60 to 100``.

        There are two numbers if a metric has no value for some users, who are left out.
        """
        averaging = averaging.with_(groups="pooled", by="user")
        scores = averaging.taken_of(self.group(name))
        cells = [(s, m) for s in range(len(scores.systems)) for m in range(len(scores.metrics))]
        counts = self.compared.get(name) or [len(scores.counted(s, m, averaging).values) for s, m in cells] or [0]
        return " to ".join(f"{count:,}" for count in sorted({min(counts), max(counts)}))

    @takes_decisions(Averaging)
    def frame(
        self,
        average: str | Average | Averaging = "mean",
        *,
        level: float = LEVEL,
        interval: IntervalKind = "analytic",
        seed: int = 0,
        **decisions: Unpack[AveragingOptions],
    ) -> pl.DataFrame:
        """Return `Scores.frame` of every group, with the columns ``segment`` and ``group`` before it."""
        averaging = Averaging.of(average, **decisions).with_(groups="pooled")
        labels = [pl.lit(self.name).alias("segment")]
        return pl.concat(
            self.group(name)
            .frame(averaging, level=level, interval=interval, seed=seed)
            .select(*labels, pl.lit(name).alias("group"), pl.all())
            for name in self.names
        )

    @takes_decisions(Averaging)
    def table(
        self,
        average: str | Average | Averaging = "mean",
        *,
        level: float | None = LEVEL,
        interval: IntervalKind = "analytic",
        seed: int = 0,
        **decisions: Unpack[AveragingOptions],
    ) -> Table:
        """Return the averages as a table for people: one row per group and system, the best of each group in bold."""
        averaging = Averaging.of(average, **decisions).with_(groups="pooled")
        rows: list[list[Cell]] = []
        intervals = ""
        for name in self.names:
            part = self.group(name).table(averaging, level=level, interval=interval, seed=seed)
            intervals = "".join(part.caption.rpartition("; interval: ")[1:]) if level is not None else ""
            users = self.users(name, averaging)
            for cells in part.rows:
                system, *means = [cell if isinstance(cell, Cell) else Cell(cell) for cell in cells]
                rows.append([Cell(name), system, Cell(users), *means[: len(self.scores.metrics)]])
        header = ["group", "system", "users", *map(metric_label, self.scores.metrics)]
        _, _, how = self.scores.table(averaging).caption.partition("; ")
        return Table(header, rows, f"by {self.name}, groups of {self.of}; {how}{intervals}", sentences(self.notes))

    @staticmethod
    def measured(
        judged: Sequence[Judged],
        measuring: Measuring,
        by: Any,
        *,
        test: Ratings | None = None,
        train: Ratings | None = None,
        data: Any = None,
        reading: Mapping[str, Any] = NOTHING,
        name: str | None = None,
    ) -> Segments:
        """Measure judged lists, which all have the same judgments, by groups; see `measure_segments`.

        ``name`` is the name of the segments, if it does not follow from ``by``.
        """
        judgments = judged[0].judgments
        basis = Basis(judgments.user_ids, judgments.item_ids, test, train)
        segment = segment_of(by, basis, data=data, reading=reading)
        segment = segment if name is None else replace(segment, name=name)
        if segment.of == "users":
            return _of_users(measure_judged(judged, measuring), segment)
        return _of_ratings(judged, measuring, segment, _group_of_judgments(judgments, segment, test))

    @staticmethod
    def divide(text: str, test: Ratings, train: Ratings | None) -> bool:
        """Whether the groups of a built-in segment of users or items divide a test set."""
        segment = segment_of(text, Basis(test.user_ids, test.item_ids, test, train))
        return len(np.unique(segment.codes[test.users if segment.of == "users" else test.items])) > 1

    @staticmethod
    def join(parts: Sequence[Segments], repetitions: Sequence[int] | None = None) -> Segments:
        """Join the same grouping of several folds or repetitions; a user has the lists of all of them.

        ``repetitions`` is the repetition of each part, counted from 0.
        """
        first = parts[0]
        if len(parts) == 1:
            return first
        check_alike([part.scores for part in parts], "fold")
        lists = lists_of([part.scores for part in parts])
        lists["repetitions"] = repetition_of_lists([part.scores for part in parts], repetitions)
        scores = replace(first.scores, **lists, **NOTHING_WHOLE)
        notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
        return replace(first, scores=scores, notes=notes)

    def facts(self) -> list[Fact]:
        """Return the system with the best average in each group."""
        return [
            segment_facts.InGroup(self.name, name, self.users(name), self.group(name).facts()[0]) for name in self.names
        ]

    @property
    def figures(self) -> Figures:
        """``averages`` in each group with their intervals, of one metric (the first by default)."""
        from cranfield.measures import figures

        return {"averages": figures.segments}

    def __str__(self) -> str:
        return self.table().text()

    def __repr__(self) -> str:
        return f"Segments({self.name!r}, {len(self.names)} groups of {self.of}: {', '.join(self.names)})"


def user_segments(scores: Scores, by: Any, *, train: Ratings | None = None) -> Segments:
    """Return scores by groups of users; see `Scores.segments`."""
    segment = segment_of(by, Basis(scores.user_ids, scores.user_ids, None, train))
    if segment.of != "users":
        raise SettingError(
            f"the segment {segment.name} groups {segment.of}, for which lists are measured again; use measure_segments"
        )
    return _of_users(scores, segment)


def measure_segments(
    runs: Any,
    test: Any = None,
    metrics: Sequence[str | Metric] | str | Metric = DEFAULT_METRICS,
    *,
    by: Any,
    threshold: float | str | None = AUTO,
    lists: Kind = "full",
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    train: Ratings | None = None,
    negative_grades: NegativeGrades = "judged",
    catalogue: Any = NONE,
    data: Any = None,
    reading: Mapping[str, Any] = NOTHING,
) -> Segments:
    """Measure lists by groups of users, items or test ratings.

    Groups of users divide the lists. Groups of items, or of test ratings by their time, divide the test set: the lists
    stay as they are, and are measured as if the test set contained only the ratings of one group; users without any
    have no list there.

    Parameters
    ----------
    runs, test, metrics, threshold, lists, ties, gaps, train, negative_grades, catalogue
        As for `measure`.
    by
        ``activity``, ``popularity``, ``period`` (see the built-in segments); a file or a frame with a user (or item)
        column and a group, or ``FILE:COLUMN``; a column of ``data``; or a mapping from users to groups. Users and
        items that it does not mention are in the group ``unknown``.
    data
        The file or frame that the test set came from, if a column of it is to be named; ``test`` by default.
    reading
        Options of `cranfield.read` for ``data``, such as ``{"user": "visitor", "separator": ";"}``.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "bob", "cid"], ["x", "y", "y"])
    >>> runs = {"mine": {"ann": ["x"], "bob": ["x"], "cid": ["y"]}}
    >>> ages = {"ann": "young", "bob": "old", "cid": "old"}
    >>> cf.measure_segments(runs, test, "P@1", by=ages).frame().select("group", "mean").rows()
    [('old', 0.5), ('young', 1.0)]
    """
    measuring = Measuring(metrics=metrics, threshold=threshold, lists=lists)
    ratings = None if test is None else as_test(test)
    judged = as_judged(runs, ratings, threshold, Context(train), ties=ties, gaps=gaps, negative_grades=negative_grades)
    judged = with_live(judged, catalogue, train)
    data = test if data is None and not isinstance(test, Ratings) else data
    return Segments.measured(judged, measuring, by, test=ratings, train=train, data=data, reading=reading)


def _of_users(scores: Scores, segment: Segment) -> Segments:
    groups = segment.codes[scores.users]
    notes = _checked(segment, groups, [str(example) for example in scores.user_ids.ids(scores.users[:3])], "users")
    return _as_segments(replace(scores, groups=groups, **NOTHING_WHOLE, part_of=scores), segment, notes)


def _of_ratings(
    judged: Sequence[Judged], measuring: Measuring, segment: Segment, groups: NDArray[np.int16]
) -> Segments:
    """Measure the lists once for each group, only by its test ratings."""
    judgments = judged[0].judgments
    notes = _checked(
        segment, groups, [str(example) for example in judgments.item_ids.ids(judgments.items[:3])], "items"
    )
    parts = []
    for place in np.unique(groups):
        mask = groups == place
        part = measure_judged([lists.only(mask) for lists in judged], measuring)
        group_of_list = np.full(part.n_lists, place, dtype=np.int16)
        parts.append(replace(part, groups=group_of_list, group_names=segment.names))
    notes = (*notes, segment_facts.RatingsOfGroup())
    return _as_segments(replace(parts[0], **lists_of(parts), **NOTHING_WHOLE), segment, notes)


def _group_of_judgments(judgments: Judgments, segment: Segment, test: Ratings | None) -> NDArray[np.int16]:
    if segment.of == "items":
        return segment.codes[judgments.items]
    assert test is not None
    return segment.codes[test.places(judgments.users[judgments.lists], judgments.items)]


def _checked(segment: Segment, groups: NDArray[np.int16], ids: Sequence[str], things: str) -> tuple[Fact, ...]:
    """Return notes on the groups, or refuse groups that divide nothing."""
    places = np.unique(groups)
    if segment.unknown is not None and (groups == segment.unknown).all() and segment.examples:
        raise InputError(
            f"none of its {things} is in the test set ({things} of the segments: {', '.join(segment.examples)}; of the "
            f"test set: {', '.join(ids)})",
            source=f"segment {segment.name}",
            remedy="use the same ids in both",
        )
    if len(places) < 2:
        there = segment.names[places[0]] if len(places) else "nothing"
        raise InputError(
            f"everything is in one group ({there})",
            source=f"segment {segment.name}",
            remedy="choose a grouping with two or more groups in the test set",
        )
    if segment.unknown is None or segment.unknown not in places:
        return segment.notes
    count = int(np.count_nonzero(groups == segment.unknown))
    return (*segment.notes, segment_facts.WithoutGroup(segment.name, things, count, len(groups)))


def _as_segments(scores: Scores, segment: Segment, notes: tuple[Fact, ...]) -> Segments:
    """Return the segments without empty groups."""
    assert scores.groups is not None
    places = np.unique(scores.groups)
    names = tuple(segment.names[place] for place in places)
    groups = np.searchsorted(places, scores.groups).astype(np.int16)
    return Segments(segment.name, segment.of, replace(scores, groups=groups, group_names=names), notes)


def by_popularity(
    runs: Any,
    test: Any,
    metrics: Sequence[str | Metric] | str | Metric,
    *,
    train: Ratings,
    groups: int | Mapping[str, float] = HEAD_MID_TAIL,
    of: str = "ratings",
    threshold: float | str | None = AUTO,
    lists: Kind = "full",
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    negative_grades: NegativeGrades = "judged",
) -> pl.DataFrame:
    """Return metrics for each popularity group, as if the test set contained only the items of that group.

    The lists stay as they are; a test item of another group counts as unjudged. Popularity is the number of training
    ratings; of equally popular items, the smaller id comes first. Items without training ratings are the least popular.

    Parameters
    ----------
    runs, test, metrics, threshold, lists, ties, gaps, negative_grades
        As for `measure`.
    train
        The training ratings, which define the popularity of items.
    groups
        Shares by name, from the most to the least popular, or a number of groups of equal shares (1 is the most
        popular).
    of
        What the shares are of: ``"ratings"`` (the head has a fifth of the training ratings) or ``"items"`` (a fifth of
        the items, like the percentiles of Bellogín et al. 2017).

    Returns
    -------
    pl.DataFrame
        One row per system, group and metric: the numbers of items and test ratings of the group, the number of lists
        for which the metric is defined, and its mean over these.

    Examples
    --------
    >>> import cranfield as cf
    >>> train = cf.Ratings.of([1, 2, 3, 4, 1], ["hit", "hit", "hit", "hit", "gem"])
    >>> test = cf.Ratings.of([5, 5], ["hit", "gem"])
    >>> runs = {"mine": {5: {"hit": 2.0, "new": 1.0}}}
    >>> by_popularity(runs, test, "Recall@1", train=train, groups=2, of="items").select("group", "lists", "mean").rows()
    [('1', 1, 1.0), ('2', 1, 0.0)]
    """
    measuring = Measuring(metrics=metrics, threshold=threshold, lists=lists)
    shares, wanted = shares_of(groups), measuring.wanted
    one_of("of", of, ("ratings", "items"))
    every = as_judged(runs, test, threshold, Context(train), ties=ties, gaps=gaps, negative_grades=negative_grades)
    judgments = every[0].judgments
    group_of_item = translated(
        group_of_items(train, list(shares.values()), of), train.item_ids, judgments.item_ids, missing=len(shares) - 1.0
    )
    rows = []
    for judged in every:
        system = "" if judged.ranked is None else judged.ranked.name
        judged = measuring.view(judged)
        for number, name in enumerate(shares):
            mask = group_of_item[judgments.items] == number
            part, items = judged.only(mask), int((group_of_item == number).sum())
            rows += [(system, name, str(metric), items, int(mask.sum()), *_mean(metric, part)) for metric in wanted]
    names = {"system": pl.String, "group": pl.String, "metric": pl.String, "items": pl.Int64}
    return pl.DataFrame(
        rows, schema={**names, "ratings": pl.Int64, "lists": pl.Int64, "mean": pl.Float64}, orient="row"
    )


def _mean(metric: Metric, judged: Judged) -> tuple[int, float]:
    """Return the number of lists for which the metric is defined, and its mean over these."""
    if metric.definition.whole_system:
        return judged.n_lists, float(metric(judged))
    values = np.asarray(metric(judged))
    values = values[~np.isnan(values)]
    return len(values), float(values.mean()) if len(values) else float("nan")
