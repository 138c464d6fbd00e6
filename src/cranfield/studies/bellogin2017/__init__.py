"""Bellogín, Castells and Cantador (2017): sparsity and popularity biases, and designs that neutralise popularity.

Statistical biases in Information Retrieval metrics for recommender systems. Information Retrieval Journal 20.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cranfield import _checks
from cranfield._errors import ImpossibleSplitError, SettingError
from cranfield.data import Ratings, counts_to_ratings, min_ratings, positives, together
from cranfield.splits import Split, predefined, uniform_test
from cranfield.studies.bellogin2017 import work
from cranfield.studies.bellogin2017.claims import claims_of
from cranfield.studies.bellogin2017.exhibits import HETREC, LASTFM, MOVIELENS, absent, exhibits_of
from cranfield.studies.bellogin2017.work import BiasNumbers, BiasWork, units
from cranfield.studies.frame.study import Study, StudyFiles, StudyResults, data_names, differing, measured, recognised

FOLDS = 5
CURVE_FOLDS = 5  # the largest number of folds for Figures 3 and 4
TARGETS = 100


@dataclass(frozen=True)
class Treatment:
    """How the paper treats a dataset."""

    threshold: float
    play_counts: bool
    drawn: int | None = None


USUAL = Treatment(5.0, False)
TREATMENTS = {MOVIELENS: USUAL, HETREC: Treatment(3.0, True), LASTFM: Treatment(3.0, True, drawn=2_500)}
DIVIDED = {"lastfm-1k-temporal": LASTFM}  # datasets that come with their own split, which are recognised by name


def dataset_of(data: Ratings | Split) -> str | None:
    """Return which of the datasets it is; None for others."""
    if isinstance(data, Split):
        return DIVIDED.get(next(iter(data_names([data]))))
    title = recognised(data)
    return title if title in TREATMENTS else None


def prepared(
    data: Ratings | Split,
    *,
    threshold: float | None,
    play_counts: bool | None,
    targets: int | None,
    folds: int,
    seed: int,
    systems: Sequence[str] | None = None,
) -> BiasWork:
    """Return the measurements on a set of ratings as the study uses it.

    Play counts below the threshold are dropped. The others are positive and become ratings from 1 to 5 as in Celma and
    Herrera (2008). A split is used as it is.
    """
    usual = TREATMENTS.get(dataset_of(data) or "", USUAL)
    parts = list(data) if isinstance(data, Split) else [data]
    at = usual.threshold if threshold is None else threshold
    highest = min(float(part.values.max()) for part in parts)
    if highest < at:
        raise SettingError(f"no rating reaches threshold={at:g}, the highest is {highest:g}; lower it")
    if usual.play_counts if play_counts is None else play_counts:
        parts, at = [counts_to_ratings(positives(part, threshold=at)) for part in parts], 1.0
    divided = predefined(*parts, overlap="train") if len(parts) == 2 else None
    ratings = parts[0] if divided is None else together(list(divided))
    uniform, dropped = _with_solution(ratings)
    effect = uniform_test(uniform, sigma=work.SIGMA, epsilon=work.EPSILON, seed=seed).step.effect
    chosen = int(effect["zeta"])
    wanted = _checks.whole("targets", TARGETS if targets is None else targets, at_least=11)
    percentile = int(np.count_nonzero(ratings.item_counts)) // work.GROUPS
    smallest = min(percentile, chosen)
    if wanted > smallest:
        percentiles = f"the smallest of {work.GROUPS} popularity percentiles"
        raise SettingError(
            f"targets={wanted} is more than the {smallest:,} items of "
            f"{percentiles if percentile == smallest else 'a uniform test set'}; give targets={smallest} or less"
        )
    # Another threshold is the next lower rating, if some ratings are below it too.
    lower = np.unique(ratings.values[ratings.values < at])
    return BiasWork(
        data=ratings,
        uniform_data=uniform,
        threshold=at,
        other=float(lower[-1]) if len(lower) > 1 else None,
        folds=folds,
        targets=wanted,
        nonrelevant=chosen // 100 * 100 if chosen >= 100 else chosen,
        seed=seed,
        divided=divided,
        drawn=None if divided is None else usual.drawn,
        dropped=dropped,
        sizes={key: int(effect[key]) for key in ("zeta", "eta")},
        systems=work.systems_of(seed, systems or ()),
    )


def _with_solution(ratings: Ratings) -> tuple[Ratings, int]:
    """Return the ratings without the rarest items, as few as possible so that a uniform-test split exists."""
    counts = ratings.item_counts
    failed: ImpossibleSplitError | None = None
    for fewest in np.unique(counts[counts > 0]).tolist():
        kept = ratings if fewest == counts[counts > 0].min() else min_ratings(ratings, item=fewest)
        try:
            uniform_test(kept, sigma=work.SIGMA, epsilon=work.EPSILON)
        except ImpossibleSplitError as error:
            failed = failed or error
            continue
        return kept, int(np.count_nonzero((counts > 0) & (counts < fewest)))
    assert failed is not None
    raise failed


def _plan(
    data: Sequence[Ratings | Split],
    *,
    threshold: float | None,
    seed: int,
    folds: int | None,
    targets: int | None,
    play_counts: bool | None,
    systems: Sequence[str] | None,
) -> Callable[[StudyFiles], StudyResults]:
    count, names = _checks.whole("folds", FOLDS if folds is None else folds, at_least=2), data_names(data)
    options: dict[str, Any] = {
        "threshold": threshold,
        "play_counts": play_counts,
        "targets": targets,
        "systems": systems,
    }
    works = {name: prepared(ratings, **options, folds=count, seed=seed) for name, ratings in names.items()}

    def results(files: StudyFiles) -> StudyResults:
        """Train, rank and measure everything that the study needs, with one panel per set of ratings."""
        measurements = {
            name: units(f"panel-{place}", own, CURVE_FOLDS, skewed=place == 1 and not own.positive)
            for place, (name, own) in enumerate(works.items(), start=1)
        }
        numbers = measured(files, measurements)
        panels = [BiasNumbers(name, own, dataset_of(names[name]), numbers[name]) for name, own in works.items()]
        every = list(works.values())
        settings = {
            "systems": list(every[0].systems.values()),
            "threshold": [own.threshold for own in every],
            "other threshold": [own.other for own in every],
            "target sets of 1R": every[0].targets,
            "non-relevant items of AR": [own.nonrelevant for own in every],
            "folds": count,
            "folds of curves": min(CURVE_FOLDS, count),
            "skewness": list(work.ALPHAS),
            "metrics": list(work.METRICS),
            "seed": seed,
            "not run": "; ".join(absent(panels)) or "nothing",
            "differs from the paper": differing(
                {"target sets of 1R": every[0].targets, "folds": count, "MF": "svd and wrmf, both shown",
                 "kNN": "not normalised; beside it one that is"},
                {"target sets of 1R": TARGETS, "folds": FOLDS, "MF": "not said which", "kNN": "not said which"},
            ),
        }  # fmt: skip
        return StudyResults(exhibits_of(panels), claims_of(panels), settings)

    return results


BELLOGIN_2017 = Study(
    "bellogin2017",
    "Alejandro Bellogín, Pablo Castells, Iván Cantador: Statistical biases in Information Retrieval metrics for "
    "recommender systems. Information Retrieval Journal 20, 2017.",
    ("folds", "targets", "play_counts", "systems"),
    _plan,
    several=True,
    divided=True,
    threshold=None,
)
