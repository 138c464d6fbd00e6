"""`Scores`: systems × metrics × lists, with labels; averages and coverage are views of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._checks import one_of, share, whole
from cranfield._decisions import takes_decisions
from cranfield._errors import SettingError, nearest
from cranfield._numbers import count_text
from cranfield._record import Step
from cranfield._result import Figures, Result
from cranfield._table import Table
from cranfield.data import Ratings
from cranfield.facts import Fact
from cranfield.facts import experiment as experiment_facts
from cranfield.facts import scores as scores_facts
from cranfield.measures.averages import Average, Counted, by_user, column_of, over_groups
from cranfield.measures.averages_frame import LEVEL, averages_frame, averages_table
from cranfield.measures.averaging import PLAIN, Averaging, AveragingOptions, Undefined
from cranfield.metrics import properties_of, relevant_items
from cranfield.recommenders import system_among
from cranfield.tables import Vocabulary

if TYPE_CHECKING:
    from cranfield.measures.segments import Segments


_OF_METRICS = ("overall", "filled", "unjudged", "liked", "nonexistent", "recommended")
"""The properties of whole systems, as systems × metrics."""

NOTHING_WHOLE: Mapping[str, Any] = {**dict.fromkeys((*_OF_METRICS, "item_coverage")), "counts": {}}
"""Properties of whole systems have no value for some of the lists."""


@dataclass(frozen=True, eq=False)
class Scores(Result):
    """The value of every metric for every list of every system.

    Parameters
    ----------
    systems, metrics
        Names, in the order of the first two axes of ``values``.
    values
        systems × metrics × lists (float64). NaN if the metric is undefined for the list, such as a ranking metric for a
        user without relevant test items. A missing list scores as an empty one.
    covered
        systems × lists: whether the system gives a list with at least one item.
    users
        The user code of each list (int32); a user has several lists in the one-relevant design.
    user_ids
        The vocabulary of these codes.
    judged, relevant
        The number of test ratings, and of relevant ones, of each list: the weights of weighted averages.
    lower_is_better
        For each metric, whether a smaller value is the better one.
    step
        The decisions that the values came from.
    overall
        systems × metrics: the value of metrics that belong to all lists together, such as catalogue coverage; NaN for
        the others.
    filled
        systems × metrics: Coverage@d = (1/(d·lists)) Σ min(d, length), where d is the metric's cut-off (or the length
        of the longest list of any system for a test user).
    unjudged
        systems × metrics: the share of the recommended items down to the cut-off that have no test rating.
    liked
        systems × metrics: the share of the recommended items down to the cut-off that are relevant.
    nonexistent
        systems × metrics, if a catalogue was given: the share of the recommended items down to the cut-off that are not
        in it. They are not among the unjudged ones.
    outside_catalogue
        For each system, the items of its whole lists that are not in the catalogue; empty without a catalogue.
    item_coverage, catalogue
        For each system, the share of the catalogue that it recommends to anyone; and what the catalogue is: all items
        of ``the data`` if lists and test set come from one split, otherwise those of ``test and lists``. (The catalogue
        of the metric ``ItemCoverage`` is the items of the training and the test set.)
    counts
        For each system, what happened to its lists while they were read and joined, by name.
    notes
        Facts that a reader should see.
    warnings
        The notes that say that an input is implausible; the verdict repeats them.
    zero_if_undefined
        For each metric, whether an undefined value may count as 0. It may not if 0 has a meaning: in errors, where 0 is
        the best value, and in correlations, shares and novelty. If empty, it follows from ``lower_is_better``.
    bounds
        2 × systems × metrics × lists, with ``bounds=True``: the values if no unjudged item of the lists were relevant,
        and if all were; NaN for metrics without bounds.
    groups, group_names
        The group of each list as an index of ``group_names``, or -1; None if the lists are not grouped.
    recommended, longest
        systems × metrics: the number of items in the lists down to the cut-off; and the length of the longest list of
        any system. `Scores.join` needs them.
    trained_once
        Systems that use random numbers and were trained once, if that is known.
    made_for
        The users that lists were made for, if the record of a run says that users were left out.
    user_columns
        Columns of files with one row per user that were read for weights, by ``FILE:COLUMN``; others are read when an
        average needs them.
    highest_rating
        The highest rating of the test set, if it is known.
    repetitions
        The repetition (with its own split and seeds) of each list, counted from 0; None if there is only one.
    trained
        The number of training ratings of each list's user, if training ratings were given.
    files
        What keeps the files that values are mapped from; None if the values are in memory.
    part_of
        The scores of all lists, if these are some of them; None otherwise.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "bob", "cid"], ["x", "y", "y"])
    >>> runs = {"mine": {"ann": ["x"], "bob": ["x"]}, "other": {"ann": ["z"], "cid": ["y"]}}
    >>> scores = cf.measure(runs, test, "P@1")
    >>> scores.average().ravel().round(3).tolist()
    [0.333, 0.333]
    """

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    values: NDArray[np.float64]
    covered: NDArray[np.bool_]
    users: NDArray[np.int32]
    user_ids: Vocabulary
    judged: NDArray[np.int64]
    relevant: NDArray[np.int64]
    lower_is_better: tuple[bool, ...]
    step: Step = field(default_factory=lambda: Step("measure"))
    overall: NDArray[np.float64] | None = None
    filled: NDArray[np.float64] | None = None
    unjudged: NDArray[np.float64] | None = None
    liked: NDArray[np.float64] | None = None
    item_coverage: NDArray[np.float64] | None = None
    catalogue: str = "test and lists"
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    notes: tuple[Fact, ...] = ()
    zero_if_undefined: tuple[bool, ...] = ()
    bounds: NDArray[np.float64] | None = None
    groups: NDArray[np.int16] | None = None
    group_names: tuple[str, ...] = ()
    recommended: NDArray[np.int64] | None = None
    longest: int = 0
    highest_rating: float | None = None
    repetitions: NDArray[np.int16] | None = None
    trained: NDArray[np.int64] | None = None
    trained_once: tuple[str, ...] = ()
    warnings: tuple[Fact, ...] = ()
    made_for: tuple[Fact, ...] = ()
    user_columns: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    nonexistent: NDArray[np.float64] | None = None
    outside_catalogue: tuple[scores_facts.OutsideCatalogue, ...] = ()
    files: Any = field(default=None, repr=False)
    part_of: Scores | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # Values in a mapped file cannot be written to, so nobody may write to those in memory either.
        for declared in fields(self):
            value = getattr(self, declared.name)
            if isinstance(value, np.ndarray):
                view = value.view()
                view.flags.writeable = False
                object.__setattr__(self, declared.name, view)

    @staticmethod
    def join(parts: Sequence[Scores]) -> Scores:
        """Join the scores of disjoint users, as if they had been measured at once; see `join_scores`."""
        from cranfield.measures.joining import join_scores

        return join_scores(parts)

    def in_window(self, start: str) -> Scores:
        """Return scores with all lists in the time window that starts at ``start``, for `join_folds`."""
        return replace(
            self,
            groups=np.zeros(self.n_lists, dtype=np.int16),
            group_names=(start,),
            step=replace(self.step, settings={**self.step.settings, "window": start}),
        )

    @property
    def windows(self) -> tuple[str, ...]:
        """The starts of the time windows of joined scores, in order; empty without several windows."""
        return self.group_names if "window" in self.step.settings and len(self.group_names) > 1 else ()

    @property
    def n_lists(self) -> int:
        """The number of lists that every system is scored on."""
        return len(self.users)

    @property
    def unit(self) -> str:
        """The word for what is averaged: ``user`` if each user has one list, otherwise ``list``."""
        return "user" if self.n_users == self.n_lists else "list"

    @property
    def user_coverage(self) -> NDArray[np.float64]:
        """For each system the share of lists it gives."""
        return self.covered.mean(axis=1) if self.n_lists else np.full(len(self.systems), np.nan)

    @cached_property
    def served(self) -> NDArray[np.bool_]:
        """Whether each list is given by every system: reduced averages are over these."""
        return np.asarray(self.covered.all(axis=0), dtype=np.bool_)

    @property
    def n_users(self) -> int:
        """The number of users who have lists to be scored."""
        return self.n_lists if self._one_each else len(np.unique(self.users))

    @property
    def n_covered(self) -> NDArray[np.int64]:
        """For each system the number of lists it gives."""
        return np.count_nonzero(self.covered, axis=1)

    @property
    def n_served(self) -> int:
        """The number of lists that every system gives."""
        return int(np.count_nonzero(self.served))

    @property
    def n_served_users(self) -> int:
        """The number of users with a list that every system gives."""
        return len(np.unique(self.users[self.served]))

    @property
    def serve_alike(self) -> bool:
        """Whether all systems give the same lists."""
        return bool((self.covered == self.covered[:1]).all())

    def system(self, name: str) -> int:
        """Return the index of a system, or raise an error that suggests the nearest name."""
        named = system_among(name, self.systems)
        if named is None:
            raise SettingError(f"there is no system {name!r}{nearest(str(name), self.systems)}")
        return self.systems.index(named)

    def metric(self, name: str) -> int:
        """Return the index of a metric, or raise an error that suggests the nearest name."""
        if name not in self.metrics:
            raise SettingError(f"{name!r} was not measured{nearest(str(name), self.metrics)}")
        return self.metrics.index(name)

    def counts_zero(self, m: int, undefined: Undefined) -> bool:
        """Return whether an undefined value of the m-th metric counts as 0 under a policy, or is left out.

        A metric that is undefined for every list of every system has no average, since 0 would look like a result.
        """
        may = self.zero_if_undefined[m] if self.zero_if_undefined else not self.lower_is_better[m]
        return may and undefined == "zero" and not bool(self._undefined_everywhere[m])

    @cached_property
    def _undefined_everywhere(self) -> NDArray[np.bool_]:
        """For each metric, whether no list of any system has a value."""
        systems, metrics = range(len(self.systems)), range(len(self.metrics))
        return np.array([all(np.isnan(self.values[s, m]).all() for s in systems) for m in metrics], dtype=np.bool_)

    @property
    def nothing_relevant(self) -> scores_facts.NothingRelevant | None:
        """Why no list has a relevant item; None if some list has one."""
        if self.relevant.any() or not self.n_lists:
            return None
        threshold = self.step.settings.get("threshold")
        return scores_facts.NothingRelevant(threshold if isinstance(threshold, float) else None, self.highest_rating)

    @property
    def relevance(self) -> scores_facts.RelevantItems | None:
        """What makes an item relevant, and in which metrics; None if that is not known."""
        threshold = self.step.settings.get("threshold")
        return None if threshold is None else relevant_items(self.metrics, threshold)

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
        said = count_text(self.n_users, "user")
        if self.repetitions is not None:
            return f"{said} in {int(self.repetitions.max()) + 1} repetitions"
        return said if self.n_users == self.n_lists else f"{said} with {self.n_lists:,} lists"

    def check_measured(self) -> None:
        """Refuse scores without any value because nothing is relevant."""
        whole = self.overall is not None and not np.isnan(self.overall).all()
        if self.nothing_relevant and not whole and self._undefined_everywhere.all():
            raise SettingError(f"nothing can be measured: {self.nothing_relevant}; lower threshold=...")

    @takes_decisions(Averaging)
    def average(
        self, average: str | Average | Averaging = "mean", **decisions: Unpack[AveragingOptions]
    ) -> NDArray[np.float64]:
        """Return systems × metrics averages; `frame` gives them with intervals and coverage."""
        averaging = Averaging.of(average, **decisions).with_kind()
        scores = averaging.taken_of(self)
        result = np.full((len(self.systems), len(self.metrics)), np.nan)
        for m in range(len(self.metrics)):
            result[:, m] = scores._averages_of(m, averaging)
        return result if scores.overall is None else np.where(np.isnan(scores.overall), result, scores.overall)

    def _averages_of(self, m: int, averaging: Averaging) -> NDArray[np.float64]:
        """Return the average of each system by a metric; of all at once if possible."""
        undefined = np.isnan(self.values[:, m])
        is_defined = not undefined.any() or self.counts_zero(m, averaging.undefined)
        shared = averaging.coverage != "own" and averaging.groups == "pooled"
        if is_defined and shared and (averaging.by == "list" or self._one_each):
            lists = self.served if averaging.coverage == "reduced" else slice(None)
            weights = self.weights(averaging.kind)
            rows = np.where(undefined, 0.0, self.values[:, m])
            return averaging.kind.of_rows(rows[:, lists], None if weights is None else weights[lists])
        systems = range(len(self.systems))
        return np.array([self.counted(s, m, averaging).mean for s in systems])

    @cached_property
    def _one_each(self) -> bool:
        """Whether every user has one list, and lists are in the order of users."""
        return bool((self.users[1:] > self.users[:-1]).all())

    @takes_decisions(Averaging)
    def frame(
        self,
        average: str | Average | Averaging = "mean",
        *,
        level: float = LEVEL,
        interval: Literal["analytic", "bootstrap"] = "analytic",
        seed: int = 0,
        **decisions: Unpack[AveragingOptions],
    ) -> pl.DataFrame:
        """Return one row for each system and metric, with the average, its interval and its coverage.

        Parameters
        ----------
        average, coverage, undefined, by, groups
            How lists are averaged; see `Averaging`, which may be given in place of the first.
        level, interval, seed
            The confidence of the interval; how it is made: ``analytic`` (the column ``interval`` names the method) or
            ``bootstrap`` (percentile, 1,000 resamples).

        Notes
        -----
        With repetitions, ``spread`` is the standard deviation of the average between them, and the interval of a mean
        over users includes it (`crossed`). Where bounds were measured, ``least`` and ``most`` are the averages if every
        unjudged item of the lists were not relevant, and if every one were.
        """
        one_of("interval", interval, ("analytic", "bootstrap"))
        level, seed = share("level", level), whole("seed", seed, at_least=0)
        averaging = Averaging.of(average, **decisions).with_kind()
        return averages_frame(self, averaging, level=level, interval=interval, seed=seed)

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
        averaging, digits = Averaging.of(average, **decisions), whole("digits", digits, at_least=0)
        return averages_table(
            self, averaging, digits=digits, services=services, level=level, interval=interval, seed=seed
        )

    def who_counts(self, m: int, averaging: Averaging, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which of the values of lists by a metric, of one system or systems × lists, an average includes."""
        lists = self.lists_that_count(averaging)
        return lists & (~np.isnan(values) | self.counts_zero(m, averaging.undefined))

    def lists_that_count(self, averaging: Averaging) -> NDArray[np.bool_]:
        """Return which lists an average includes if a metric is defined for them."""
        lists = self.served if averaging.coverage == "reduced" else np.ones(self.n_lists, dtype=np.bool_)
        return lists & (self.grouped_by() >= 0) if averaging.groups == "equal" else lists

    def counted_values(self, m: int, averaging: Averaging) -> NDArray[np.float64]:
        """Return systems × lists of a metric as an average includes them; NaN for those that do not count.

        If all count as they are, this is a view: a copy of all metrics would be as large as the scores.
        """
        values = self.values[:, m]
        everyone = self.lists_that_count(averaging).all() and averaging.coverage != "own"
        if everyone and not any(np.isnan(row).any() for row in values):
            return values
        counted = np.where(np.isnan(values), 0.0, values)
        counted[~self.who_counts(m, averaging, values)] = np.nan
        if averaging.coverage == "own":
            counted[~self.covered] = np.nan
        return counted

    def counted(self, s: int, m: int, averaging: Averaging, values: NDArray[np.float64] | None = None) -> Counted:
        """Return the values of a system that an average includes: its own, or other ``values`` of the same lists."""
        values = self.values[s, m] if values is None else values
        keep, undefined = self.who_counts(m, averaging, values), np.isnan(values)
        keep = keep & self.covered[s] if averaging.coverage == "own" else keep
        missing = int((undefined & self.lists_that_count(averaging)).sum())
        values, users, weights = np.where(undefined, 0.0, values)[keep], self.users[keep], self.weights(averaging.kind)
        weights = None if weights is None else weights[keep]
        of_users = users if averaging.by == "user" else None
        if averaging.groups == "equal":
            table, weights = over_groups(values[None], self.grouped_by()[keep], weights, of_users)
            return Counted(Average.of("weighted"), table[0], weights, missing, users)
        if of_users is not None:
            values, summed = by_user(values, of_users, np.ones(len(values)) if weights is None else weights)
            weights = None if weights is None else summed
        return Counted(averaging.kind, values, weights, missing, users)

    def left_out(self, m: int, averaging: Averaging) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return how many lists of each system count in its average, and how many are left out as undefined."""
        if self.counts_zero(m, averaging.undefined) or not np.isnan(self.values[:, m]).any():
            return (), ()
        systems = range(len(self.systems))
        parts = [self.counted(s, m, averaging) for s in systems]
        return tuple(len(part.values) for part in parts), tuple(part.missing for part in parts)

    def left_out_by(self, averaging: Averaging) -> tuple[str, ...]:
        """Return the metrics that leave some users out, since they are undefined for them and 0 is a result there."""
        return tuple(metric for m, metric in enumerate(self.metrics) if any(self.left_out(m, averaging)[1]))

    def on_left_out(self, averaging: Averaging) -> list[Fact]:
        """Return which users are averaged over by metrics whose undefined values are left out, if these are not all.

        A system is averaged over the users for whom it has a value, whoever else is measured.
        """
        counts: dict[tuple[int, ...], list[str]] = {}
        for m, metric in enumerate(self.metrics):
            kept, missing = self.left_out(m, averaging)
            if any(missing) and any(kept):
                counts.setdefault(kept, []).append(metric)
        return [
            scores_facts.AveragedOver(tuple(metrics), tuple(zip(self.systems, users)), self.unit)
            for users, metrics in counts.items()
        ]

    def averaged_values(self, s: int, m: int, averaging: Averaging) -> NDArray[np.float64]:
        """Return the values that an average of a system includes, one for each user or list that counts."""
        scores = averaging.with_kind().taken_of(self)
        return scores.counted(s, m, averaging).values

    def weights(self, kind: Average) -> NDArray[np.float64] | None:
        """Return the weight of each list in a kind of average; None if all weigh the same.

        The weight of a user, such as the number of training ratings or a column, is divided among the user's lists.
        """
        if kind.weights is None:
            return None
        if kind.weights in ("judged", "relevant"):
            return (self.judged if kind.weights == "judged" else self.relevant).astype(np.float64)
        if kind.weights != "train":
            weights: NDArray[Any] = column_of(kind.weights, self.user_ids.ids(self.users), self.user_columns)
        elif self.trained is None:
            raise SettingError("weighted(by=train) needs the training ratings; give them as train=...")
        else:
            weights = self.trained
        shared: NDArray[np.float64] = weights / np.bincount(self.users)[self.users]
        return shared

    def grouped_by(self) -> NDArray[np.int16]:
        """Return the group of each list, or raise an error if there are none."""
        if self.groups is None:
            raise SettingError(
                "these lists have no groups, so there is no average over groups; use groups='pooled', or give "
                "measure(groups=...), or lists of a split with popularity groups"
            )
        return self.groups

    def group(self, name: str) -> Scores:
        """Return the scores of the lists of one group.

        Properties of a whole system, such as catalogue coverage, have no value by group and are left out.
        """
        one_of("group", name, self.group_names)
        return self.of_lists(self.grouped_by() == self.group_names.index(name))

    def of_lists(self, keep: NDArray[np.bool_]) -> Scores:
        """Return the scores of some of the lists."""
        return replace(self, **self._lists(keep), **NOTHING_WHOLE, part_of=self.part_of or self)

    def without_lists(self) -> Scores:
        """Return the facts about all lists, without any of them."""
        return replace(self, **self._lists(slice(0)))

    def _lists(self, keep: Any) -> dict[str, Any]:
        """Return the fields with one value per list for some of the lists."""
        names = ("values", "covered", "users", "judged", "relevant", "groups", "bounds", "repetitions", "trained")
        fields = {name: getattr(self, name) for name in names}
        return {name: None if values is None else values[..., keep] for name, values in fields.items()}

    def outside(self, name: str) -> Scores:
        """Return the scores of the lists that are in another group."""
        one_of("group", name, self.group_names)
        groups = self.grouped_by()
        return self.of_lists((groups >= 0) & (groups != self.group_names.index(name)))

    def segments(self, by: Any, *, train: Ratings | None = None) -> Segments:
        """Return the scores by groups of users, to be averaged (`Segments.frame`) and compared (`compare_segments`).

        Parameters
        ----------
        by
            ``activity`` (new, light and heavy users, by their training ratings); a file or a frame with a user column
            and a group, or ``FILE:COLUMN``; or a mapping from users to groups. Users that it does not mention are in
            the group ``unknown``. For groups of items, or of test ratings by their time, see `measure_segments`.
        train
            The training ratings, for ``activity``.

        Examples
        --------
        >>> import cranfield as cf
        >>> test = cf.Ratings.of(["ann", "bob", "cid"], ["x", "y", "y"])
        >>> scores = cf.measure({"mine": {"ann": ["x"], "bob": ["x"], "cid": ["y"]}}, test, "P@1")
        >>> scores.segments({"ann": "young", "bob": "old", "cid": "old"})
        Segments('given', 2 groups of users: old, young)
        """
        from cranfield.measures.segments import user_segments

        return user_segments(self, by, train=train)

    @takes_decisions(Averaging)
    def by_group(
        self,
        average: str | Average | Averaging = "mean",
        *,
        level: float = LEVEL,
        **decisions: Unpack[AveragingOptions],
    ) -> pl.DataFrame:
        """Return `frame` for each group of lists by itself, with a column ``group``."""
        averaging = Averaging.of(average, **decisions).with_(groups="pooled")
        self.grouped_by()
        frames = [
            self.group(name)
            .frame(averaging, level=level)
            .select("system", "metric", pl.lit(name).alias("group"), pl.exclude("system", "metric"))
            for name in self.group_names
        ]
        return pl.concat(frames)

    def per_user(self) -> pl.DataFrame:
        """Return one row for each system, metric and list: its user, value, whether covered, and its group if any."""
        names: dict[str, Any] = {"system": pl.String, "metric": pl.String, "user": self.user_ids.dtype}
        names |= {"value": pl.Float64, "covered": pl.Boolean}
        names |= {} if self.groups is None else {"group": pl.String}
        return pl.concat([pl.DataFrame(schema=names), *self.per_user_parts()])

    def per_user_parts(self) -> Iterator[pl.DataFrame]:
        """Yield the rows of `per_user` by system and metric, since all of them may need much memory."""
        users, group = self.user_ids.ids(self.users), {}
        if self.groups is not None:
            names = pl.Series([*self.group_names, None], dtype=pl.String)
            group["group"] = names.gather(np.where(self.groups < 0, len(self.group_names), self.groups))
        for (s, system), (m, metric) in product(enumerate(self.systems), enumerate(self.metrics)):
            values = pl.Series(self.values[s, m]).fill_nan(None)
            rows = pl.DataFrame({"user": users, "value": values, "covered": self.covered[s], **group})
            yield rows.select(pl.lit(system).alias("system"), pl.lit(metric).alias("metric"), pl.all())

    def only(self, metrics: list[str] | tuple[str, ...]) -> Scores:
        """Return the scores of some of the metrics."""
        places = [self.metric(name) for name in metrics]
        # A slice is a view, where a list would copy the values.
        first = places[0] if places else 0
        chosen = slice(first, first + len(places)) if places == list(range(first, first + len(places))) else places
        tables = {name: getattr(self, name) for name in ("values", *_OF_METRICS)}
        columns: dict[str, Any] = {name: None if table is None else table[:, chosen] for name, table in tables.items()}
        return replace(
            self,
            metrics=tuple(metrics),
            lower_is_better=tuple(self.lower_is_better[place] for place in places),
            zero_if_undefined=tuple(self.zero_if_undefined[place] for place in places if self.zero_if_undefined),
            bounds=None if self.bounds is None else self.bounds[:, :, chosen],
            **columns,
        )

    def facts(self, averaging: Averaging = PLAIN) -> list[Fact]:
        """Return the best average of each metric; if there is none, why nothing can be concluded from these scores."""
        means, nothing_relevant = self.average(averaging), self.nothing_relevant
        if self.n_lists == 0:
            return [experiment_facts.Inconclusive("no users")]
        if np.isnan(means).all():
            return [experiment_facts.Inconclusive("no values", nothing_relevant=nothing_relevant)]
        if len(self.systems) == 1:
            return [experiment_facts.Inconclusive("one system", self.systems[0])]
        if all(len({float(value) for value in means[:, m]}) == 1 for m in range(len(self.metrics))):
            return [experiment_facts.Inconclusive("equal averages")]
        said: list[Fact] = []
        winners = [properties_of(metric).has_winners for metric in self.metrics]
        for m in sorted(range(len(winners)), key=lambda m: not winners[m]):
            values = means[:, m] if self.lower_is_better[m] and winners[m] else -means[:, m]
            best = int(np.argsort(values, kind="stable")[0])
            mean = None if np.isnan(values[best]) else float(means[best, m])
            standing: Any = "best" if winners[m] else "highest"
            of_metric = (self.metrics[m], self.systems[best], mean, standing)
            said.append(experiment_facts.UntestedAverage(*of_metric, nothing_relevant))
        return said

    def overview(self) -> Table:
        """Return `table` with intervals and coverage."""
        return self.table(services=True, level=LEVEL)

    @property
    def figures(self) -> Figures:
        """``averages`` with their intervals, and ``distributions`` over users, of one metric (the first by default)."""
        from cranfield.measures import figures

        return {"averages": figures.averages, "distributions": figures.distributions}

    def __str__(self) -> str:
        return self.overview().text()

    def __repr__(self) -> str:
        return f"Scores({len(self.systems)} systems, {len(self.metrics)} metrics, {self.n_lists:,} lists)"
