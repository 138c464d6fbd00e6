"""`measure`: from runs and a test set, or from judged lists, to `Scores`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._decisions import Decided, borrowed, decision, unless
from cranfield._errors import CranfieldError, InputError, SettingError
from cranfield._record import Step
from cranfield.data import AUTO, Ratings, RatingScale, Relevance, auto_or_number
from cranfield.judgments import (
    NONE,
    Context,
    Groups,
    Judged,
    Judgments,
    NegativeGrades,
    Ranked,
    as_judgments,
    as_runs,
    as_test,
    check_inputs,
    is_no_catalogue,
    judged_by,
    judgments_under,
    refuse_closing,
    with_live,
)
from cranfield.measures.off_catalogue import with_catalogue
from cranfield.measures.scores import Scores
from cranfield.metrics import (
    Graded,
    Metric,
    at_levels,
    check_predictions,
    has_bounds,
    levels_note,
    metrics_phrase,
    notes_on,
    notes_on_whom,
    scale_of,
    some_metrics,
    spelled_metric,
    threshold_phrase,
)
from cranfield.metrics import bounds as bounds_of
from cranfield.rankings import Gaps, Ties

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


def check_relevance(tests: Iterable[Ratings], measuring: Measuring) -> str:
    """Refuse test sets without any relevant item, unless some metric has a value nevertheless.

    All test sets are read, so that errors in any of them are found. Returns a sentence on which metrics have no value
    and why, which is empty if something is relevant.
    """
    any_relevant, test = False, None
    for test in tests:
        any_relevant = any_relevant or bool((test.values >= Relevance.of(test, measuring.threshold).threshold).any())
    if any_relevant or test is None:
        return ""
    user, item = test.user_ids.ids(test.users[:1])[0], test.item_ids.ids(test.items[:1])[0]
    try:
        scores = measure({"any": {user: [item]}}, test, measuring.metrics, threshold=measuring.threshold)
    except CranfieldError:  # a metric needs more than this list, and may have a value
        return ""
    scores.check_measured()
    without = [metric for m, metric in enumerate(scores.metrics) if np.isnan(scores.values[:, m]).all()]
    return f"{', '.join(without)}: nothing can be said, since {scores.nothing_relevant}" if without else ""


@dataclass(frozen=True)
class Measuring(Decided):
    """The decisions on what is measured on judged lists.

    Parameters
    ----------
    metrics
        Their spellings; a metric that occurs twice is measured once.
    threshold
        The lowest rating that makes an item relevant. ``auto`` follows from the ratings: see `usual_threshold`. None:
        every rating of at least 1 is relevant, as in trec_eval.
    levels
        ``all``: measure each metric at three levels of relevance as well; see `at_levels`.
    lists
        ``condensed``: take items without a test rating out of all lists first (decision C1).

    Examples
    --------
    >>> Measuring(metrics=["ndcg@10", "nDCG@10"], threshold=4).as_dict()
    {'metrics': ['nDCG@10'], 'threshold': 4.0, 'levels': 'none', 'lists': 'full'}
    """

    metrics: Any = decision(
        "C2",
        DEFAULT_METRICS,
        "the metrics, the main one first; deep cut-offs such as 100 are more robust",
        check=_metrics,
        phrase=metrics_phrase,
    )
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
    levels: str = decision(
        "C2",
        "none",
        "each metric also at levels of relevance: the whole scale, its upper half and its upper quarter",
        choices=("none", "all"),
        phrase=unless("none", "{} levels of relevance"),
        help="Also measure each metric at three levels of relevance: the whole rating scale, its upper half and its "
        "upper quarter (from 1, 3 and 4 of 5).",
    )
    lists: Any = borrowed("full", partial(check.one_of, choices=("full", "condensed")))

    def on_scale(self, scale: RatingScale) -> Measuring:
        """Return the same decisions with the metrics at levels of a rating scale, if levels are requested."""
        return self if self.levels == "none" else self.with_(metrics=at_levels(self.metrics, scale))

    @property
    def wanted(self) -> list[Metric]:
        """The metrics themselves."""
        return [Metric.of(metric) for metric in self.metrics]

    @property
    def of_predictions(self) -> list[str]:
        """The metrics of predicted ratings."""
        return [str(metric) for metric in self.wanted if "predictions" in metric.definition.needs]

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
    bounds = check.flag("bounds", bounds)
    strict = check.flag("strict", strict)
    from cranfield.measures.engines import measured_in_blocks

    blocks = measured_in_blocks(
        runs, test, measuring, ties=ties, gaps=gaps, train=train, similarity=similarity, bounds=bounds,
        negative_grades=negative_grades, catalogue=catalogue, strict=strict, groups=groups, engine=engine,
        memory=memory,
    )  # fmt: skip
    if blocks is not None:
        return blocks.scores
    context = Context(train, similarity)
    test = None if test is None else as_test(test)
    judged = as_judged(
        runs, test, threshold, context, ties=ties, gaps=gaps, negative_grades=negative_grades, groups=groups
    )
    warnings = check_inputs(judged, test, strict=strict)
    judged = with_live(judged, catalogue, train)
    scores = measure_judged(judged, measuring, bounds=bounds, warnings=warnings)
    return scores if is_no_catalogue(catalogue) else with_catalogue(scores, judged, strict=strict)


def as_judged(
    runs: Any,
    test: Any,
    threshold: float | str | None,
    context: Context,
    *,
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    negative_grades: NegativeGrades = "judged",
    groups: Groups | None = None,
) -> list[Judged]:
    """Return runs joined with a test set, or given judged lists, under the threshold; all have the same lists."""
    given = [runs] if isinstance(runs, Judged) else runs
    if isinstance(given, list | tuple) and given and all(isinstance(lists, Judged) for lists in given):
        refuse_closing(given, gaps)
        judged = _as_given(given, test, threshold, context, ties, negative_grades, groups)
    else:
        runs = as_runs(runs, ties, gaps)
        if len({run.one_relevant for run in runs}) > 1:
            raise SettingError("some runs hold one-relevant lists and others do not; measure them separately")
        judgments = as_judgments(test, threshold, negative_grades, context.train)
        judged = [judged_by(run, judgments, context, groups) for run in runs]
    first = judged[0]
    for lists in judged[1:]:
        if not lists.judgments.is_same_as(first.judgments):
            raise InputError(
                f"the run {_ranked(lists).name} has other lists than {_ranked(first).name}, or was judged by another "
                "test set",
                remedy="judge all runs by the same test set; make one-relevant runs with the same targets and seed",
            )
    return [first, *(lists.fresh(judgments=first.judgments) for lists in judged[1:])]


def _as_given(
    given: Sequence[Judged],
    test: Any,
    threshold: float | str | None,
    context: Context,
    ties: Ties | None,
    negative_grades: NegativeGrades,
    groups: Groups | None,
) -> list[Judged]:
    """Return given judged lists with an empty cache; decisions made when they were judged cannot be changed."""
    decided = {
        "groups": groups is not None,
        "negative_grades": test is None and negative_grades != "judged",
        "ties": ties is not None and any(_ranked(lists).ties != ties for lists in given),
    }
    for name in (name for name, is_changed in decided.items() if is_changed):
        raise SettingError(f"{name} was decided when these lists were judged; leave it out here, or give it to judge")
    if test is not None and not any(_is_judged_by(lists, as_judgments(test, None, negative_grades)) for lists in given):
        raise InputError(
            "the lists were judged by another test set than the given one",
            remedy="leave the test set out, or judge the runs by it",
        )
    names = [_ranked(lists).name for lists in given]
    for name in names:
        if names.count(name) > 1:
            raise SettingError(f"{names.count(name)} judged lists are called {name!r}; give each run its own name")
    level = judgments_under(given[0].judgments, threshold).threshold
    fresh = [
        lists.fresh() if context.is_empty else lists.fresh(context=replace(context, live=lists.context.live))
        for lists in given
    ]
    return [lists.fresh(judgments=lists.judgments.at(level)) for lists in fresh]


def _is_judged_by(lists: Judged, judgments: Judgments) -> bool:
    if lists.ranked is not None and lists.ranked.one_relevant:
        return lists.judgments.is_part_of(judgments)
    return lists.judgments.is_same_as(judgments)


def _ranked(judged: Judged) -> Ranked:
    if judged.ranked is None:
        raise SettingError("these judged lists do not say which run they belong to; make them with judge")
    return judged.ranked


def measure_judged(
    judged: Sequence[Judged],
    measuring: Measuring,
    *,
    bounds: bool = False,
    warnings: tuple[str, ...] = (),
    of_part: bool = False,
) -> Scores:
    """Measure judged lists that all have the same judgments, under their threshold.

    ``warnings`` are those of `check_inputs`. Properties of all lists together, such as metrics of the whole system, are
    left out for lists ``of_part`` of the users.
    """
    of_levels = []
    if measuring.levels != "none":
        scale = scale_of(judged[0])
        measuring, of_levels = measuring.on_scale(scale), [levels_note(scale)]
    systems, judgments, wanted = [_ranked(lists) for lists in judged], judged[0].judgments, measuring.wanted
    if not of_part:
        check_predictions(judged, measuring.of_predictions)
    longest = max(int(lists.lengths.max(initial=0)) for lists in judged)
    views = [lists.condensed() if measuring.lists == "condensed" else lists for lists in judged]
    measured = [_measure_system(view, wanted, bounds, longest, of_part) for view in views]
    counts = [{**system.counts, **lists.counts} for system, lists in zip(systems, judged)]
    groups, group_names = _groups(judged)
    covered = np.stack([system.covered for system in measured])
    settings = {
        **measuring.as_dict(),
        "threshold": judgments.threshold,
        "ties": ", ".join(dict.fromkeys(system.ties for system in systems)),
        "negative_grades": judgments.negative_grades,
        "test": judgments.fingerprint,
    }
    return Scores(
        systems=tuple(system.name for system in systems),
        metrics=tuple(str(metric) for metric in wanted),
        values=np.stack([system.values for system in measured]),
        covered=covered,
        users=judgments.users,
        user_ids=judgments.user_ids,
        judged=judgments.n_judged,
        relevant=judgments.n_relevant,
        lower_is_better=tuple(metric.lower_is_better for metric in wanted),
        zero_if_undefined=tuple(metric.zero_if_undefined for metric in wanted),
        step=Step("measure", settings),
        overall=np.array([system.overall for system in measured]),
        filled=np.array([system.filled for system in measured]),
        unjudged=np.array([system.unjudged for system in measured]),
        recommended=np.array([system.recommended for system in measured]),
        longest=longest,
        item_coverage=None if of_part else _item_coverage(systems, len(judgments.item_ids)),
        catalogue="the data" if all(system.shares_items for system in systems) else "test and lists",
        counts={system.name: count for system, count in zip(systems, counts)},
        bounds=np.stack([system.bounds for system in measured], axis=1) if bounds else None,
        groups=groups,
        group_names=group_names,
        highest_rating=judgments.highest_grade,
        trained=_trained(judged[0].context.train, judgments),
        trained_once=tuple(system.name for system in systems if system.draws),
        made_for=notes_on_whom([system for system, served in zip(systems, covered) if not served.all()]),
        notes=(*warnings, *of_levels, *notes_on(systems, counts, Graded.of(judgments), wanted)),
        warnings=warnings,
    )


def _trained(train: Ratings | None, judgments: Judgments) -> NDArray[np.int64] | None:
    """Return the number of training ratings of each list's user, if there are training ratings."""
    if not isinstance(train, Ratings):
        return None
    codes = train.user_ids.translation(judgments.user_ids)
    users = judgments.users if codes is None else codes[judgments.users]
    # A user without training ratings has the code -1, which selects the last cell.
    return np.append(np.diff(train.indptr), 0)[users]


@dataclass(frozen=True)
class _SystemScores:
    """One system's part of the scores."""

    values: NDArray[np.float64]
    covered: NDArray[np.bool_]
    overall: list[float]
    recommended: list[int]
    filled: list[float]
    unjudged: list[float]
    bounds: NDArray[np.float64]


def _measure_system(
    judged: Judged, metrics: Sequence[Metric], bounds: bool, longest: int, of_part: bool
) -> _SystemScores:
    values = np.full((len(metrics), judged.n_lists), np.nan)
    overall = [float("nan")] * len(metrics)
    for m, metric in enumerate(metrics):
        if not metric.definition.whole_system:
            values[m] = metric(judged)
        elif not of_part:
            overall[m] = metric(judged)
    cutoffs = [metric.cutoff or longest for metric in metrics]
    service = {n: _service(judged, n) for n in set(cutoffs)}
    return _SystemScores(
        values=values,
        covered=judged.lengths > 0,
        overall=overall,
        recommended=[service[n][0] for n in cutoffs],
        filled=[service[n][1] for n in cutoffs],
        unjudged=[service[n][2] for n in cutoffs],
        bounds=_bounds(judged, metrics) if bounds else np.empty(0),
    )


def _bounds(judged: Judged, metrics: Sequence[Metric]) -> NDArray[np.float64]:
    """Return 2 × metrics × lists: each metric if all unjudged items were irrelevant, or relevant; NaN for others."""
    ends = np.full((2, len(metrics), judged.n_lists), np.nan)
    for m, metric in enumerate(metrics):
        if has_bounds(metric):
            ends[:, m] = bounds_of(metric, judged)
    return ends


def _service(judged: Judged, n: int) -> tuple[int, float, float]:
    """Return the number of items in the lists down to rank n, Coverage@n, and the share of unjudged items."""
    recommended = int(np.minimum(judged.lengths, n).sum())
    places = n * judged.n_lists
    if judged.draw is not None:  # the items of the first n ranks depend on the draw
        return recommended, recommended / places if places else float("nan"), float("nan")
    return (
        recommended,
        recommended / places if places else float("nan"),
        1.0 - int((judged.ranks <= n).sum()) / recommended if recommended else float("nan"),
    )


def _item_coverage(systems: Sequence[Ranked], known_items: int) -> NDArray[np.float64]:
    """Return for each run the share of the catalogue in its lists; the catalogue is the items of test set and runs."""
    strangers = {item for system in systems for item in system.unknown_items}
    catalogue = max(known_items + len(strangers), 1)
    return np.array([system.n_distinct_items / catalogue for system in systems])


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
                f"{_ranked(lists).name} and {_ranked(grouped[0]).name} put lists into different groups",
                remedy="make all runs with the same groups, or give measure(groups=...)",
            )
        groups = np.where(groups >= 0, groups, lists.groups)
    return groups, names
