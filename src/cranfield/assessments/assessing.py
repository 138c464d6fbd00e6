"""The verb `assess`: which metric can be trusted on these data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack, get_args

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._decisions import DecisionGroup, checked_field, takes_decisions
from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._registry import parse
from cranfield._terminal import progress
from cranfield.assessments.advice import weights_of
from cranfield.assessments.assessment import Assessment
from cranfield.assessments.fold import Chunks, Correlation, Fold, Sampling, rounded_to
from cranfield.assessments.power import power_of
from cranfield.assessments.scenarios import SCENARIOS, Scenario, Sizes, grids_of, scenario
from cranfield.assessments.subset_scores import compiled
from cranfield.comparisons import AVERAGES, Comparing
from cranfield.data import AUTO, Ratings
from cranfield.facts import Fact
from cranfield.facts import assessment as assessment_facts
from cranfield.facts import scores as scores_facts
from cranfield.judgments import NegativeGrades
from cranfield.measures import Average, Averaging, Engine, Kind, Measuring, Scores, Undefined
from cranfield.metrics import Metric
from cranfield.rankings import Gaps, Ties

Metrics = Sequence[str | Metric] | str | Metric

NINE = tuple(f"{name}@100" for name in ("P", "Recall", "F1", "AP", "nDCG", "RR", "ERR", "bpref", "infAP"))
"""The metrics of Valcarce et al. (2020), at their cut-off."""

PAPER_CUTOFFS = tuple(range(5, 101, 5))  # 5 to 100 in steps of 5, as in Valcarce et al. (2018)


def at_cutoffs(metrics: Sequence[Metric], cutoffs: Sequence[int]) -> list[Metric]:
    """Return the metrics, and those that accept a cut-off at each of the given ones, without duplicates."""
    by_name: dict[str, Metric] = {}
    for metric in metrics:
        by_name.setdefault(str(metric), metric)
        for cutoff in cutoffs if metric.definition.cutoff != "none" else ():
            deeper = replace(metric, cutoff=_checks.whole("cutoffs", cutoff))
            by_name.setdefault(str(deeper), deeper)
    return list(by_name.values())


def _several(given: Any) -> list[Any]:
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str | Metric | Scenario) else [given]


def _distinct(kind: str, read: Callable[[Any], Any], given: Any) -> tuple[Any, ...]:
    """Return what one name or several mean, without duplicates; at least one is required."""
    meant = {str(entry): entry for entry in map(read, _several(given))}
    if not meant:
        raise SettingError(f"no {kind} was given; name at least one")
    return tuple(meant.values())


_at_least_zero = partial(_checks.whole, at_least=0)


@dataclass(frozen=True)
class Assessing(DecisionGroup):
    """The settings of `assess` and `assess_folds`."""

    threshold: float | str | None = AUTO
    scenarios: Any = checked_field(tuple(SCENARIOS), lambda _, value: _distinct("scenario", scenario, value))
    sizes: Sizes | Mapping[str, Sizes] = "papers"
    samples: int = checked_field(50, partial(_checks.whole, at_most=_checks.MOST_DRAWS))
    averages: Any = checked_field("mean", lambda _, value: _distinct("average", Average.of, value))
    cutoffs: Sequence[int] | bool = False
    correlation: Correlation = checked_field("tau-b", partial(_checks.one_of, choices=get_args(Correlation)))
    decimals: int = checked_field(12, lambda _, value: rounded_to(value))
    undefined: Undefined = checked_field("zero", partial(_checks.one_of, choices=("zero", "leave out")))
    significance: str = "permutation"
    alpha: float = checked_field(0.05, _checks.share)
    resamples: int = checked_field(0, partial(_at_least_zero, at_most=_checks.MOST_DRAWS))
    weights: Mapping[str, float] | None = None
    lists: Kind = "full"
    ties: Ties | None = None
    gaps: Gaps = "keep"
    similarity: Any = None
    seed: int = checked_field(0, _at_least_zero)
    out: str | Path | None = None
    negative_grades: NegativeGrades = "judged"
    strict: bool = checked_field(False, _checks.flag)
    engine: Engine = "auto"
    memory: str | int | None = None


class AssessingOptions(TypedDict, total=False):
    """The same as keyword arguments, for type checkers."""

    threshold: float | str | None
    scenarios: Iterable[str | Scenario] | str
    sizes: Sizes | Mapping[str, Sizes]
    samples: int
    averages: Sequence[str] | str
    cutoffs: Sequence[int] | bool
    correlation: Correlation
    decimals: int
    undefined: Undefined
    significance: str
    alpha: float
    resamples: int
    weights: Mapping[str, float] | None
    lists: Kind
    ties: Ties | None
    gaps: Gaps
    similarity: Any
    seed: int
    out: str | Path | None
    negative_grades: NegativeGrades
    strict: bool
    engine: Engine
    memory: str | int | None


@takes_decisions(Assessing)
def assess(
    runs: Any, test: Any, metrics: Metrics = NINE, *, train: Ratings | None = None, **options: Unpack[AssessingOptions]
) -> Assessment:
    """Assess which metric can be trusted on these systems and these data.

    For every metric, it answers these questions (Valcarce et al. 2018, 2020): does its order of the systems stay the
    same if parts of the test set are missing? How well does it tell systems apart? Which other metrics agree with it?
    The advice follows from the answers.

    Parameters
    ----------
    runs, test, metrics, threshold, lists, ties, gaps, train, similarity, negative_grades, strict
        As for `measure`.
    scenarios
        How the test set is made smaller: ``ratings``, ``items``, ``popular``, ``users``, ``large``. The default is all
        of them.
    sizes
        The shares that remain: ``fives`` (100 to 5 % in steps of 5), ``ones`` (100 to 1 %), ``top`` (100 to 80 %),
        ``papers`` (``top`` if popular items are removed, otherwise ``fives``), or any numbers from 0 to 1. A mapping
        gives sizes by scenario, such as ``{"popular": "fives"}``; scenarios that it does not name use ``papers``.
    samples
        The number of samples per size in the random scenarios.
    averages
        How lists are averaged, one or several: ``mean``, ``geometric(form=trec_eval)``, ``weighted(by=judged)``, ...
    cutoffs
        Also measure every metric at these cut-offs; True for 5 to 100 in steps of 5.
    correlation
        The correlation between two orders of systems: ``tau-b`` or ``tau-ap``. The advice always uses tau-b.
    decimals
        Averages are rounded to this many decimals before systems are ordered: 12 only removes rounding errors; rec_eval
        prints 4.
    undefined
        What to do with lists for which a metric is undefined: count them as ``zero``, or ``leave out``.
    significance, alpha
        The test for discriminative power, as in `compare`, and its level. In the advice, an average without a test
        (median, trimmed) has the significant pairs of the first average with a test, or of the mean.
    resamples
        The number of resamples of Sakai's bootstrap, which adds his measures of discriminative power to the p-values.
        By default there is no bootstrap, since it takes longer than the tests. See `discriminative_power`.
    weights
        The weight of each criterion in the advice; see `Assessment.advice`.
    seed
        The seed of every random choice. The result does not depend on the number of threads.
    out
        A folder for finished parts, so that an interrupted assessment can continue where it stopped.
    engine, memory
        Where the lists are judged, as for `measure`. Only the judged items of the lists are kept, which smaller test
        sets need, in files if they are too large for memory.

    Examples
    --------
    >>> import cranfield as cf
    >>> world = {f"u{k}": {f"i{(k * j) % 11}": 5 - j % 3 for j in range(1, 7)} for k in range(1, 40)}
    >>> rows = [(user, item, value) for user, profile in world.items() for item, value in profile.items()]
    >>> test = cf.Ratings.of(*map(list, zip(*rows)))
    >>> runs = {
    ...     name: {user: [f"i{(k * step) % 11}" for k in range(start, start + 8)] for user in world}
    ...     for name, start, step in (("one", 0, 1), ("two", 3, 2), ("three", 5, 4))
    ... }
    >>> found = assess(runs, test, ["P@5", "nDCG@5"], threshold=4, scenarios="ratings", sizes=[1, 0.5], samples=5)
    >>> found.frame().select("metric", "size", "samples").rows()
    [('P@5', 1.0, 1), ('nDCG@5', 1.0, 1), ('P@5', 0.5, 5), ('nDCG@5', 0.5, 5)]
    """
    return assess_folds([(runs, test)], metrics, trains=[train], **options)


@takes_decisions(Assessing)
def assess_folds(
    folds: Sequence[tuple[Any, Any]],
    metrics: Metrics = NINE,
    *,
    trains: Sequence[Ratings | None] | None = None,
    **options: Unpack[AssessingOptions],
) -> Assessment:
    """Assess metrics over several folds: ``folds`` are pairs of runs and test set, with the same systems.

    Every fold is studied separately. Robustness and correlation are averaged over the folds; for discriminative power,
    each user's values are averaged over the folds. ``fold_sd`` is the standard deviation between the folds. ``trains``
    are the training ratings of the folds, for metrics that need them. For the other parameters see `assess`.
    """
    if not folds:
        raise SettingError("there is no fold to assess; give at least one pair of runs and test set")
    if not all(isinstance(fold, tuple | list) and len(fold) == 2 for fold in folds):
        raise SettingError("a fold is a pair of runs and test set; give them as [(runs_1, test_1), (runs_2, test_2)]")
    trains = [None] * len(folds) if trains is None else trains
    if len(trains) != len(folds):
        raise SettingError(f"there are {len(folds)} folds and {len(trains)} training sets; give every fold its own")
    how: Any = Assessing(**options)
    wanted: Sequence[Metric] = _distinct("metric", Metric.of, metrics)
    if how.cutoffs is not False:
        wanted = at_cutoffs(wanted, PAPER_CUTOFFS if how.cutoffs is True else _several(how.cutoffs))
    sampling = Sampling(how.averages, how.correlation, how.decimals, how.alpha, how.samples, how.seed)
    comparing = Comparing(significance=how.significance, correction="none", alpha=how.alpha)
    grids, chunks = grids_of(how.scenarios, how.sizes), Chunks(how.out)
    weights_of(how.weights, ["significant", *(name for name, grid in grids.items() if min(grid) < 1.0)])
    measuring = Measuring(metrics=wanted, threshold=how.threshold, lists=how.lists)
    given = ("undefined", "similarity", "ties", "gaps", "negative_grades", "strict", "engine", "memory")
    reading = {name: getattr(how, name) for name in given}
    prepared = [Fold(*fold, measuring, sampling, train=train, **reading) for fold, train in zip(folds, trains)]
    systems = prepared[0].scores.systems
    for number, fold in enumerate(prepared, start=1):
        if fold.scores.systems != systems:
            raise SettingError(
                f"fold {number} has other systems ({', '.join(fold.scores.systems)}) than fold 1 "
                f"({', '.join(systems)}); give every fold the same systems in the same order"
            )
    if all(fold.scores.nothing_relevant for fold in prepared):
        prepared[0].scores.check_measured()
    with progress("Assessing", sum(fold.n_samples(how.scenarios, grids) for fold in prepared), "test sets") as bar:
        studied = [fold.study(how.scenarios, grids, bar, chunks) for fold in prepared]
    numbered = [frame.select(pl.lit(k, pl.Int64).alias("fold"), pl.all()) for k, frame in enumerate(studied, start=1)]
    power, curves = _power([fold.scores for fold in prepared], comparing, how)
    names, averages = tuple(map(str, wanted)), tuple(map(str, how.averages))
    settings = {
        "threshold": prepared[0].scores.step.settings["threshold"],
        "lists": how.lists,
        "negative_grades": how.negative_grades,
        "metrics": list(names),
        "averages": list(averages),
        "scenarios": [way.name for way in how.scenarios],
        "sizes": {name: list(grid) for name, grid in grids.items()},
        **{name: getattr(how, name) for name in ("samples", "correlation", "decimals", "undefined")},
        "significance": comparing.significance,
        **{name: getattr(how, name) for name in ("alpha", "resamples", "weights")},
        "folds": len(prepared),
        "seed": how.seed,
    }
    return Assessment(
        systems=systems,
        metrics=names,
        averages=averages,
        lower_is_better=tuple(metric.lower_is_better for metric in wanted),
        samples=pl.concat(numbered),
        whole=np.stack([fold.whole for fold in prepared]),
        power=power,
        curves=curves,
        step=Step("assess", settings, notes=_notes(prepared)),
    )


def _power(scores: Sequence[Scores], comparing: Comparing, how: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return discriminative power, with its spread ``fold_sd`` between folds, and p-value curves, by tested average."""
    tested = [metric for m, metric in enumerate(scores[0].metrics) if np.isfinite(scores[0].values[:, m]).any()]
    kinds = [str(kind) for kind in how.averages if parse(str(kind)).name in AVERAGES] or ["mean"]
    rows, curves = list[pl.DataFrame](), list[pl.DataFrame]()
    for kind in kinds if tested else ():
        averaging = Averaging(average=kind, undefined=how.undefined)
        discriminative = power_of(scores, comparing, averaging, metrics=tested, resamples=how.resamples, seed=how.seed)
        spread = pl.DataFrame({"metric": tested}).with_columns(fold_sd=pl.lit(None, dtype=pl.Float64))
        if len(scores) > 1:
            each = power_of(scores, comparing, averaging, metrics=tested, folds="each", seed=how.seed)
            spread = each.frame().group_by("metric").agg(fold_sd=pl.col("dp").std())
        power = discriminative.frame().join(spread, on="metric", how="left", maintain_order="left")
        for frames, frame in ((rows, power), (curves, discriminative.curve(first=None))):
            frames.append(frame.with_columns(average=pl.lit(kind)).select("average", pl.exclude("average")))
    if not rows:
        return pl.DataFrame(schema=_POWER), pl.DataFrame(schema=_CURVES)
    return pl.concat(rows), pl.concat(curves)


# The columns of frames without rows: no metric has values of single lists.
_POWER = {"average": pl.String, "rank": pl.Int64, "metric": pl.String}
_POWER |= {**dict.fromkeys(("dp", "median_p", "significant"), pl.Float64), "pairs": pl.UInt32, "fold_sd": pl.Float64}
_CURVES = {"average": pl.String, "metric": pl.String, "place": pl.Int64, "p": pl.Float64}
_CURVES |= {"system_a": pl.String, "system_b": pl.String}


def _notes(folds: Sequence[Fold]) -> tuple[Fact, ...]:
    slow = folds[0].slow
    one_by_one = [assessment_facts.OneByOne(slow, has_numba=compiled() is not None)] if slow else []
    return (*scores_facts.InFold.joined([fold.scores.notes for fold in folds]), *one_by_one)
