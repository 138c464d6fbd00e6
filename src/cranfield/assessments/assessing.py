"""The verb `assess`: which metric can be trusted on these data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._registry import parse
from cranfield._terminal import progress
from cranfield.assessments.advice import weights_of
from cranfield.assessments.assessment import Assessment
from cranfield.assessments.chunks import Chunks
from cranfield.assessments.cutoffs import PAPER_CUTOFFS, at_cutoffs
from cranfield.assessments.fold import Fold
from cranfield.assessments.power import power_of
from cranfield.assessments.robustness import CORRELATIONS, Correlation, Sampling, rounded_to
from cranfield.assessments.sampling_plan import compiled
from cranfield.assessments.scenarios import SCENARIOS, Scenario, Sizes, grids_of, scenario
from cranfield.comparisons import AVERAGES, Comparing
from cranfield.data import AUTO, Ratings
from cranfield.judgments import NegativeGrades
from cranfield.measures import Average, Averaging, Engine, Kind, Measuring, Scores, Undefined
from cranfield.metrics import Metric
from cranfield.rankings import Gaps, Ties

_Named = TypeVar("_Named")

EVERY = tuple(SCENARIOS)
"""All scenarios."""
NINE = tuple(f"{name}@100" for name in ("P", "Recall", "F1", "AP", "nDCG", "RR", "ERR", "bpref", "infAP"))
"""The metrics of Valcarce et al. (2020), at their cut-off."""


def assess(
    runs: Any,
    test: Any,
    metrics: Sequence[str | Metric] | str | Metric = NINE,
    *,
    threshold: float | str | None = AUTO,
    scenarios: Iterable[str | Scenario] | str = EVERY,
    sizes: Sizes | Mapping[str, Sizes] = "fives",
    samples: int = 50,
    averages: Sequence[str] | str = "mean",
    cutoffs: Sequence[int] | bool = False,
    correlation: Correlation = "tau-b",
    decimals: int = 12,
    undefined: Undefined = "zero",
    significance: str = "permutation",
    alpha: float = 0.05,
    resamples: int = 0,
    weights: Mapping[str, float] | None = None,
    lists: Kind = "full",
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    train: Ratings | None = None,
    similarity: Any = None,
    seed: int = 0,
    out: str | Path | None = None,
    negative_grades: NegativeGrades = "judged",
    strict: bool = False,
    engine: Engine = "auto",
    memory: str | int | None = None,
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
        The shares that remain: ``fives`` (100 to 5 % in steps of 5), ``ones`` (100 to 1 %), ``top`` (100 to 80 %), or
        any numbers from 0 to 1. A mapping gives sizes by scenario, such as ``{"popular": "top"}``; scenarios that it
        does not name use ``fives``.
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
        (median, trimmed) has the power of the first average with a test, or of the mean if there is none.
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
    return assess_folds(
        [(runs, test)],
        metrics,
        threshold=threshold,
        scenarios=scenarios,
        sizes=sizes,
        samples=samples,
        averages=averages,
        cutoffs=cutoffs,
        correlation=correlation,
        decimals=decimals,
        undefined=undefined,
        significance=significance,
        alpha=alpha,
        resamples=resamples,
        weights=weights,
        lists=lists,
        negative_grades=negative_grades,
        ties=ties,
        gaps=gaps,
        trains=[train],
        similarity=similarity,
        seed=seed,
        out=out,
        strict=strict,
        engine=engine,
        memory=memory,
    )


def assess_folds(
    folds: Sequence[tuple[Any, Any]],
    metrics: Sequence[str | Metric] | str | Metric = NINE,
    *,
    threshold: float | str | None = AUTO,
    scenarios: Iterable[str | Scenario] | str = EVERY,
    sizes: Sizes | Mapping[str, Sizes] = "fives",
    samples: int = 50,
    averages: Sequence[str] | str = "mean",
    cutoffs: Sequence[int] | bool = False,
    correlation: Correlation = "tau-b",
    decimals: int = 12,
    undefined: Undefined = "zero",
    significance: str = "permutation",
    alpha: float = 0.05,
    resamples: int = 0,
    weights: Mapping[str, float] | None = None,
    lists: Kind = "full",
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    trains: Sequence[Ratings | None] | None = None,
    similarity: Any = None,
    seed: int = 0,
    out: str | Path | None = None,
    negative_grades: NegativeGrades = "judged",
    strict: bool = False,
    engine: Engine = "auto",
    memory: str | int | None = None,
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
    _checks.one_of("correlation", correlation, CORRELATIONS)
    _checks.one_of("undefined", undefined, ("zero", "leave out"))
    wanted = _metrics(metrics, cutoffs)
    kinds = tuple(_distinct("average", [Average.of(average) for average in _several(averages)]))
    ways = _distinct("scenario", [scenario(name) for name in _several(scenarios)])
    sampling = Sampling(
        kinds,
        correlation,
        rounded_to(decimals),
        _checks.share("alpha", alpha),
        _checks.whole("samples", samples, at_most=_checks.MOST_DRAWS),
        _checks.whole("seed", seed, at_least=0),
    )
    resamples = _checks.whole("resamples", resamples, at_least=0, at_most=_checks.MOST_DRAWS)
    comparing = Comparing(significance=significance, correction="none", alpha=alpha)
    grids, chunks = grids_of(ways, sizes), Chunks(out)
    weights_of(weights, ["power", *(name for name, grid in grids.items() if min(grid) < 1.0), "agreement"])
    measuring = Measuring(metrics=wanted, threshold=threshold, lists=lists)
    options: dict[str, Any] = {
        "undefined": undefined, "ties": ties, "gaps": gaps, "similarity": similarity,
        "negative_grades": negative_grades, "strict": _checks.flag("strict", strict), "engine": engine,
        "memory": memory,
    }  # fmt: skip
    prepared = [
        Fold(runs, test, measuring, sampling, train=train, **options)
        for (runs, test), train in zip(folds, _trains(trains, len(folds)))
    ]
    _same_systems(prepared)
    if all(fold.scores.nothing_relevant for fold in prepared):
        prepared[0].scores.check_measured()
    studied = _samples(prepared, ways, grids, chunks)
    power, curves = _power(
        [fold.scores for fold in prepared], kinds, comparing, undefined, resamples=resamples, seed=sampling.seed
    )
    settings = {
        "threshold": prepared[0].scores.step.settings["threshold"],
        "lists": measuring.lists,
        "negative_grades": negative_grades,
        "metrics": [str(metric) for metric in wanted],
        "averages": [str(kind) for kind in kinds],
        "scenarios": [way.name for way in ways],
        "sizes": {name: list(grid) for name, grid in grids.items()},
        "samples": samples,
        "correlation": correlation,
        "decimals": sampling.decimals,
        "undefined": undefined,
        "significance": comparing.significance,
        "alpha": alpha,
        "resamples": resamples,
        "weights": weights,
        "folds": len(prepared),
        "seed": seed,
    }
    return Assessment(
        systems=prepared[0].scores.systems,
        metrics=tuple(str(metric) for metric in wanted),
        averages=tuple(str(kind) for kind in kinds),
        lower_is_better=tuple(metric.lower_is_better for metric in wanted),
        samples=studied,
        whole=np.stack([fold.whole for fold in prepared]),
        power=power,
        curves=curves,
        step=Step("assess", settings, notes=_notes(prepared)),
    )


def _metrics(metrics: Any, cutoffs: Sequence[int] | bool) -> list[Metric]:
    """Return the given metrics, and the same metrics at further cut-offs."""
    wanted = _distinct("metric", [Metric.of(metric) for metric in _several(metrics)])
    if cutoffs is False:
        return wanted
    return at_cutoffs(wanted, PAPER_CUTOFFS if cutoffs is True else _several(cutoffs))


def _several(given: Any) -> list[Any]:
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str | Metric | Scenario) else [given]


def _distinct(kind: str, given: list[_Named]) -> list[_Named]:
    """Return the distinct names in the order given; at least one is required."""
    if not given:
        raise SettingError(f"no {kind} was given; name at least one")
    return list({str(entry): entry for entry in given}.values())


def _trains(trains: Sequence[Ratings | None] | None, folds: int) -> Sequence[Ratings | None]:
    """Return the training ratings of each fold, or None for folds without any."""
    trains = [None] * folds if trains is None else trains
    if len(trains) != folds:
        raise SettingError(f"there are {folds} folds and {len(trains)} training sets; give every fold its own")
    return trains


def _same_systems(folds: Sequence[Fold]) -> None:
    """Raise an error if folds have different systems."""
    systems = folds[0].scores.systems
    for number, fold in enumerate(folds[1:], start=2):
        if fold.scores.systems != systems:
            raise SettingError(
                f"fold {number} has other systems ({', '.join(fold.scores.systems)}) than fold 1 "
                f"({', '.join(systems)}); give every fold the same systems in the same order"
            )


def _samples(
    folds: Sequence[Fold],
    scenarios: Sequence[Scenario],
    sizes: Mapping[str, Sequence[float]],
    chunks: Chunks,
) -> pl.DataFrame:
    """Study every fold on smaller test sets; see `Assessment.frame`."""
    total = sum(fold.n_samples(scenarios, sizes) for fold in folds)
    with progress("Assessing", total=total, unit="test sets") as bar:
        frames = [
            fold.study(scenarios, sizes, bar, chunks).select(pl.lit(number, dtype=pl.Int64).alias("fold"), pl.all())
            for number, fold in enumerate(folds, start=1)
        ]
    return pl.concat(frames)


def _power(
    scores: Sequence[Scores],
    averages: Sequence[Average],
    comparing: Comparing,
    undefined: Undefined,
    *,
    resamples: int,
    seed: int,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return discriminative power and p-value curves under every average that has a test."""
    tested = [metric for m, metric in enumerate(scores[0].metrics) if _has_values(scores[0], m)]
    kinds = [str(kind) for kind in averages if parse(str(kind)).name in AVERAGES] or ["mean"]
    rows: list[pl.DataFrame] = []
    curves: list[pl.DataFrame] = []
    for kind in kinds if tested else ():
        averaging = Averaging(average=kind, undefined=undefined)
        discriminative = power_of(scores, comparing, averaging, metrics=tested, resamples=resamples, seed=seed)
        spread = _spread(scores, tested, comparing, averaging, seed)
        power = discriminative.frame().join(spread, on="metric", how="left", maintain_order="left")
        for frames, frame in ((rows, power), (curves, discriminative.curve(first=None))):
            frames.append(frame.with_columns(average=pl.lit(kind)).select("average", pl.exclude("average")))
    if not rows:
        return _NO_POWER, _NO_CURVES
    return pl.concat(rows), pl.concat(curves)


def _has_values(scores: Scores, m: int) -> bool:
    return bool(np.isfinite(scores.values[:, m]).any())


def _spread(
    scores: Sequence[Scores], metrics: Sequence[str], comparing: Comparing, averaging: Averaging, seed: int
) -> pl.DataFrame:
    """Return the standard deviation of each metric's DP between single folds; null if there is only one."""
    if len(scores) == 1:
        return pl.DataFrame({"metric": metrics}).with_columns(fold_sd=pl.lit(None, dtype=pl.Float64))
    each = power_of(scores, comparing, averaging, metrics=metrics, folds="each", seed=seed)
    return each.frame().group_by("metric").agg(fold_sd=pl.col("dp").std())


_NO_POWER = pl.DataFrame(
    schema={
        "average": pl.String,
        "rank": pl.Int64,
        "metric": pl.String,
        "dp": pl.Float64,
        "median_p": pl.Float64,
        "significant": pl.Float64,
        "pairs": pl.UInt32,
        "fold_sd": pl.Float64,
    }
)
_NO_CURVES = pl.DataFrame(
    schema={
        "average": pl.String,
        "metric": pl.String,
        "place": pl.Int64,
        "p": pl.Float64,
        "system_a": pl.String,
        "system_b": pl.String,
    }
)


def _notes(folds: Sequence[Fold]) -> tuple[str, ...]:
    slow = folds[0].slow
    everywhere = [note for note in folds[0].scores.notes if all(note in fold.scores.notes for fold in folds)]
    notes = everywhere + [
        f"fold {number}: {note}"
        for number, fold in enumerate(folds, start=1)
        for note in fold.scores.notes
        if note not in everywhere
    ]
    if slow and compiled() is None:
        notes.append(
            "numba is not installed, so the samples were measured one by one, which is slow; "
            "get it with: pip install 'cranfield[recommend]'"
        )
    elif slow:
        notes.append(f"measured one by one, not by compiled code: {', '.join(slow)}")
    return tuple(dict.fromkeys(notes))
