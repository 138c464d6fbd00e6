"""`measure`: from runs and a test set, or from judged lists, to `Scores`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._decisions import DecisionGroup, checked_field, decision, unless
from cranfield._errors import CranfieldError, InputError
from cranfield._record import Step
from cranfield._registry import parse
from cranfield.data import AUTO, Ratings, RatingScale, Relevance, auto_or_number
from cranfield.facts import Fact
from cranfield.facts import scores as scores_facts
from cranfield.judgments import (
    NONE,
    Context,
    Groups,
    Judged,
    Judgments,
    NegativeGrades,
    as_test,
    notes_on_negative_grades,
)
from cranfield.measures.notes import notes_on_scale, with_runs
from cranfield.measures.scores import Scores
from cranfield.metrics import (
    Metric,
    at_levels,
    check_predictions,
    levels_of,
    metrics_phrase,
    scale_of,
    some_metrics,
    spelled_metric,
    threshold_phrase,
)
from cranfield.metrics import bounds as bounds_of
from cranfield.rankings import Gaps, Ties
from cranfield.splits import counted_test

DEFAULT_METRICS = ("P@10", "Recall@10", "nDCG@10", "nDCG@100", "AP@100", "RR@100")
"""The default metrics: the usual ones of what users see, and deep ones.

Metrics cut at 100 depend less on which ratings happen to be in the test set, and tell systems apart more often, than
those cut at 10 (Valcarce, Bellogín, Parapar and Castells 2018).
"""

Kind = Literal["full", "condensed"]
Levels = Literal["none", "all"]


def _metrics(_: str, value: Any) -> tuple[str | Metric, ...]:
    distinct = {spelled_metric(metric): metric for metric in some_metrics(value)}
    return tuple(metric if isinstance(metric, Metric) else name for name, metric in distinct.items())


@dataclass(frozen=True)
class Measuring(DecisionGroup):
    """The decisions on what is measured on judged lists.

    Examples
    --------
    >>> Measuring(metrics=["ndcg@10", "nDCG@10"], threshold=4).as_dict()
    {'metrics': ['nDCG@10'], 'threshold': 4.0, 'levels': 'none', 'lists': 'full'}
    """

    # A metric that occurs twice is measured once.
    metrics: Any = decision(
        "C2",
        DEFAULT_METRICS,
        "the metrics, the main one first; deep cut-offs such as 100 are more robust",
        check=_metrics,
        phrase=metrics_phrase,
    )
    # The lowest rating that makes an item relevant. ``auto`` follows from the ratings: see `usual_threshold`. None:
    # every rating of at least 1 is relevant, as in trec_eval.
    threshold: Any = decision(
        "C2",
        AUTO,
        "the lowest rating that makes an item relevant; 'auto': 4 of 5, the upper quarter of other scales, "
        "1 for clicks",
        check=auto_or_number,
        phrase=threshold_phrase,
        help="The lowest rating that makes an item relevant; auto: 4 of 5, the upper quarter of other scales up to 10, "
        "else 1.",
    )
    # ``all``: measure each metric at three levels of relevance as well; see `at_levels`.
    levels: str = decision(
        "C2",
        "none",
        "each metric also at levels of relevance: the whole scale, its upper half and its upper quarter",
        choices=("none", "all"),
        phrase=unless("none", "{} levels of relevance"),
        help="Also measure each metric at three levels of relevance: the whole rating scale, its upper half and its "
        "upper quarter (from 1, 3 and 4 of 5).",
    )
    # ``condensed``: take items without a test rating out of all lists first (decision C1).
    lists: Any = checked_field("full", partial(check.one_of, choices=("full", "condensed")))

    def on_scale(self, scale: RatingScale) -> Measuring:
        """Return the same decisions with the metrics at levels of a rating scale, if levels are requested."""
        return self if self.levels == "none" else self.with_(metrics=at_levels(self.metrics, scale))

    @property
    def wanted(self) -> list[Metric]:
        """The metrics themselves."""
        return [Metric.of(metric) for metric in self.metrics]

    @property
    def cutoffs(self) -> list[int]:
        """The different cut-offs of the metrics, ascending."""
        return sorted({metric.cutoff for metric in self.wanted if metric.cutoff is not None})

    def view(self, judged: Judged) -> Judged:
        """Return the lists that metrics are computed on: all items, or only those with a test rating."""
        return judged.condensed() if self.lists == "condensed" else judged

    @property
    def of_predictions(self) -> list[str]:
        """The metrics of predicted ratings."""
        return [str(metric) for metric in self.wanted if "predictions" in metric.definition.needs]

    def check_relevance(self, tests: Iterable[Ratings]) -> scores_facts.WithoutValues | None:
        """Refuse test sets without any relevant item, unless some metric has a value nevertheless.

        All test sets are read, so that errors in any of them are found. Returns which metrics have no value
        and why; None if something is relevant.
        """
        any_relevant, test = False, None
        for test in tests:
            any_relevant = any_relevant or bool((test.values >= Relevance.of(test, self.threshold).threshold).any())
        if any_relevant or test is None:
            return None
        user, item = test.user_ids.ids(test.users[:1])[0], test.item_ids.ids(test.items[:1])[0]
        try:
            scores = measure({"any": {user: [item]}}, test, self.metrics, threshold=self.threshold)
        except CranfieldError:  # a metric needs more than this list, and may have a value
            return None
        scores.check_measured()
        without = tuple(metric for m, metric in enumerate(scores.metrics) if np.isnan(scores.values[:, m]).all())
        reason = scores.nothing_relevant
        return scores_facts.WithoutValues(without, reason) if without and reason else None

    def notes_on_grades(self, test: Ratings, negative_grades: NegativeGrades) -> tuple[Fact, ...]:
        """Return notes on the scale of a test set: grades below 0, and exponential gains of high grades."""
        top = float(test.values.max(initial=0.0))
        return (*notes_on_negative_grades(test, negative_grades), *notes_on_scale(top, self.wanted))

    def as_dict(self) -> dict[str, Any]:
        """Return the decisions by name, ready for JSON."""
        return {**super().as_dict(), "metrics": [str(metric) for metric in self.metrics]}


def measure(
    runs: Any,
    test: Any = None,
    metrics: Sequence[str | Metric] | str | Metric = DEFAULT_METRICS,
    *,
    threshold: float | str | None = AUTO,
    levels: Levels = "none",
    lists: Kind = "full",
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    train: Ratings | None = None,
    repeats: str | None = None,
    similarity: Any = None,
    bounds: bool = False,
    negative_grades: NegativeGrades = "judged",
    groups: Groups | None = None,
    catalogue: Any = NONE,
    strict: bool = False,
    engine: Literal["auto", "memory", "ranges", "spark"] = "auto",
    memory: str | int | None = None,
) -> Scores:
    """Measure the lists of one or more systems against a test set.

    Parameters
    ----------
    runs
        One or more `Run`s, or anything that `read_runs` accepts: files, dataframes, or dictionaries by system name. Or
        `Judged` lists, which are already joined with their test set: see `judge`.
    test
        The held-out `Ratings`, or anything that `read_test` accepts. Judged lists need no test set; if one is given, it
        must be the one they were judged with.
    metrics
        The names of metrics, such as ``P@10``, ``nDCG(gain=exp)@100`` or ``RBP(p=0.8)``. A metric that is given twice
        is measured once.
    threshold
        The lowest rating that makes an item relevant. ``auto`` chooses it from the test ratings, and from the training
        ratings if they are given: 4 of 5, the upper quarter of other scales up to 10, and 1 for clicks, counts and TREC
        qrels; see `cranfield.data.usual_threshold`. None: 1, as in trec_eval. Judged lists keep
        theirs with ``auto``.
    levels
        ``all`` also measures each metric at three levels of relevance: the whole rating scale, its upper half and its
        upper quarter (from 1, 3 and 4 of 5). Items below the level are not relevant: metrics of error leave them out,
        and their gain in nDCG is 0. The scale is that of the test ratings, and of the training ratings if they are
        given.
    lists
        ``full``, or ``condensed``: take items without a test rating out of all lists first (decision C1).
    ties
        How items of equal score are ordered; see `read_run`. By default runs keep the order that they have, and files,
        frames and dictionaries are read in trec_eval's order. Judged lists keep theirs.
    gaps
        Whether a place that the ranks of a list leave out has an unknown item (``keep``) or does not exist (``close``);
        see `read_run`.
    train, similarity
        What some metrics need: the training ratings, and the similarity of items.
    repeats
        What counts of a test set in which users have items again: ``exclude`` leaves out test items that are in their
        user's training ratings, ``only`` leaves out the others, ``allow`` counts both. None: the test set as it is.
    bounds
        Also measure what each ranking metric would be if every unjudged item of the lists were not relevant, and if
        every one were (`Scores.bounds`).
    negative_grades
        What a test rating below 0 means. ``judged``: not relevant, like every low rating. ``unjudged``: the rating is
        ignored. ``pooled``: the item is not judged, but ``infAP(pool=judged)`` counts it in the pool, as trec_eval
        does. In TREC collections, such grades mark spam that was judged, or items that were pooled and not judged.
    groups
        The group of each list, to average by group (`Scores.frame`): see `judge`.
    catalogue
        The items that exist, besides those with a test rating: ``"train"`` for those with training ratings, a file or
        frame with a column of items, ratings, or ids. Recommended items outside it keep their places, earn no diversity
        or novelty, and are counted separately from unjudged ones (`Scores.nonexistent`). ``"none"``: every item exists.
    strict
        Turn each warning about implausible inputs (`Scores.warnings`) into an error.
    engine, memory
        Where to measure. ``memory``: everything at once, in memory. ``ranges``: one range of users after the other, so
        that runs and test set, in Parquet files or folders, may be larger than memory; ``memory`` is the most memory to
        use, such as ``"2GiB"``. ``spark``: on Spark; runs are Spark dataframes (system, user, item, score or rank) or
        paths that Spark can read. ``auto``: on Spark if a run or the test set is a Spark dataframe; otherwise in ranges
        if measuring at once would need more than ``memory``, by default 60 % of the free memory.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "y"], [5, 2, 4])
    >>> scores = cf.measure({"mine": {"ann": ["x", "z"], "bob": ["z", "y"]}}, test, ["P@2", "RR"], threshold=4)
    >>> scores.frame().select("system", "metric", "mean").rows()
    [('mine', 'P@2', 0.5), ('mine', 'RR', 0.75)]
    """
    measuring = Measuring(metrics=metrics, threshold=threshold, levels=levels, lists=lists)
    bounds, strict = check.flag("bounds", bounds), check.flag("strict", strict)
    if repeats is not None:
        test = counted_test(as_test(test), train, repeats)
    from cranfield.measures.engines import judged_and_measured

    return judged_and_measured(
        runs, test, measuring, Context(train, similarity), ties=ties, gaps=gaps, bounds=bounds, strict=strict,
        negative_grades=negative_grades, catalogue=catalogue, groups=groups, engine=engine, memory=memory,
        keeps_judged=False,
    )[1]  # fmt: skip


def measure_judged(
    judged: Sequence[Judged],
    measuring: Measuring,
    *,
    bounds: bool = False,
    warnings: tuple[Fact, ...] = (),
    of_block: bool = False,
) -> Scores:
    """Measure judged lists that all have the same judgments, under their threshold.

    ``warnings`` are those of `check_inputs`. Properties of all lists together, such as metrics of the whole system, are
    left out for lists ``of_block``, a block of the users.
    """
    on_test: list[Fact] = []
    if measuring.levels != "none":
        scale = scale_of(judged[0])
        measuring, on_test = measuring.on_scale(scale), [levels_of(scale)]
    systems, judgments, wanted = [lists.known_run for lists in judged], judged[0].judgments, measuring.wanted
    if not of_block:
        check_predictions(judged, measuring.of_predictions)
    longest = max(int(lists.lengths.max(initial=0)) for lists in judged)
    views = [measuring.view(lists) for lists in judged]
    values = np.full((len(judged), len(wanted), judgments.n_lists), np.nan)
    overall = np.full(values.shape[:2], np.nan)
    ends = np.full((2, *values.shape), np.nan) if bounds else None
    for (s, view), (m, metric) in product(enumerate(views), enumerate(wanted)):
        if not metric.definition.whole_system:
            values[s, m] = metric(view)
        elif not of_block:
            overall[s, m] = metric(view)
        if ends is not None and metric.definition.bounds:
            ends[:, s, m] = bounds_of(metric, view)
    groups, group_names = _groups(judged)
    settings = {
        **measuring.as_dict(),
        "threshold": judgments.threshold,
        "ties": ", ".join(dict.fromkeys(system.ties for system in systems)),
        "negative_grades": judgments.negative_grades,
        "test": judgments.fingerprint,
    }
    scores = Scores(
        systems=tuple(system.name for system in systems),
        metrics=tuple(str(metric) for metric in wanted),
        values=values,
        covered=np.stack([view.lengths > 0 for view in views]),
        users=judgments.users,
        user_ids=judgments.user_ids,
        judged=judgments.n_judged,
        relevant=judgments.n_relevant,
        lower_is_better=tuple(metric.lower_is_better for metric in wanted),
        zero_if_undefined=tuple(metric.zero_if_undefined for metric in wanted),
        step=Step("measure", settings),
        overall=overall,
        **Services.of(views, wanted, longest).fields,
        bounds=ends,
        groups=groups,
        group_names=group_names,
        highest_rating=judgments.highest_grade,
        trained=_trained(judged[0].context.train, judgments),
        trained_once=tuple(system.name for system in systems if system.draws),
    )
    if of_block:
        return scores
    without = int((judgments.n_relevant == 0).sum())
    return with_runs(
        scores,
        systems,
        [{**system.counts, **lists.counts} for system, lists in zip(systems, judged)],
        wanted,
        warnings=warnings,
        on_test=(*on_test, *judgments.notes),
        relevant=scores_facts.WithoutRelevant(without, judgments.n_lists, judgments.threshold, judgments.highest_grade),
        known_items=len(judgments.item_ids),
    )


def _trained(train: Ratings | None, judgments: Judgments) -> NDArray[np.int64] | None:
    """Return the number of training ratings of each list's user, if there are training ratings."""
    if not isinstance(train, Ratings):
        return None
    codes = train.user_ids.translation(judgments.user_ids)
    users = judgments.users if codes is None else codes[judgments.users]
    # A user without training ratings has the code -1, which selects the last cell.
    return np.append(np.diff(train.indptr), 0)[users]


@dataclass(frozen=True, eq=False)
class Services:
    """The number of items in lists, of judged and of relevant ones, as systems × metrics; disjoint users add up."""

    cutoffs: tuple[int | None, ...]
    recommended: NDArray[np.int64]
    judged: NDArray[np.float64]
    relevant: NDArray[np.float64]
    longest: int
    lists: int

    @classmethod
    def of(cls, judged: Sequence[Judged], metrics: Sequence[Metric], longest: int) -> Services:
        """Count the items in the lists of each system down to the cut-off of each metric."""
        cutoffs = tuple(metric.cutoff for metric in metrics)
        recommended = np.zeros((len(judged), len(metrics)), dtype=np.int64)
        known, liked = np.zeros(recommended.shape), np.zeros(recommended.shape)
        levels = [dict(metric.parameters).get("rel") for metric in metrics]
        for s, lists in enumerate(judged):
            for n, level in set(zip(cutoffs, levels)):
                places = [m for m, kind in enumerate(zip(cutoffs, levels)) if kind == (n, level)]
                recommended[s, places] = np.minimum(lists.lengths, n or longest).sum()
                first = lists.ranks <= (n or longest)
                relevant = lists.relevant if level is None else lists.grades >= level
                # The items of the first n ranks depend on the draw; others of a one-relevant list count as disliked.
                drawn = lists.draw is not None
                known[s, places] = np.nan if drawn else np.count_nonzero(first)
                unknown = drawn or lists.known_run.one_relevant
                liked[s, places] = np.nan if unknown else np.count_nonzero(first & relevant)
        return cls(cutoffs, recommended, known, liked, longest, judged[0].n_lists)

    @classmethod
    def of_scores(cls, scores: Scores) -> Services:
        """Return the counts behind the shares of scores."""
        assert scores.recommended is not None
        assert scores.unjudged is not None
        assert scores.liked is not None
        # Convert the shares back to counts.
        judged = np.rint((1.0 - np.nan_to_num(scores.unjudged, nan=1.0)) * scores.recommended)
        liked = np.rint(np.nan_to_num(scores.liked) * scores.recommended)
        cutoffs = tuple(parse(metric).cutoff for metric in scores.metrics)
        return cls(cutoffs, scores.recommended, judged, liked, scores.longest, scores.n_lists)

    def __add__(self, other: Services) -> Services:
        return Services(
            self.cutoffs,
            self.recommended + other.recommended,
            self.judged + other.judged,
            self.relevant + other.relevant,
            max(self.longest, other.longest),
            self.lists + other.lists,
        )

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of `Scores` that follow from the counts."""
        places = self.lists * np.array([cutoff or self.longest for cutoff in self.cutoffs])

        def share_of(counts: NDArray[Any]) -> NDArray[np.float64]:
            nothing = np.full(self.recommended.shape, np.nan)
            return np.divide(counts, self.recommended, out=nothing, where=self.recommended > 0)

        return {
            "recommended": self.recommended,
            "longest": self.longest,
            "filled": np.divide(
                self.recommended, places, out=np.full(self.recommended.shape, np.nan), where=places > 0
            ),
            "unjudged": 1.0 - share_of(self.judged),
            "liked": share_of(self.relevant),
        }


def _groups(judged: Sequence[Judged]) -> tuple[NDArray[np.int16] | None, tuple[str, ...]]:
    """Return the group of each list, on which all systems that give the list must agree."""
    grouped = [lists for lists in judged if lists.groups is not None]
    if not grouped:
        return None, ()
    names, groups = grouped[0].group_names, grouped[0].groups
    assert groups is not None
    for lists in grouped[1:]:
        assert lists.groups is not None
        if lists.group_names != names or ((groups != lists.groups) & (groups >= 0) & (lists.groups >= 0)).any():
            raise InputError(
                f"{lists.known_run.name} and {grouped[0].known_run.name} put lists into different groups",
                remedy="make all runs with the same groups, or give measure(groups=...)",
            )
        groups = np.where(groups >= 0, groups, lists.groups)
    return groups, names
