"""Cañamares and Castells (2020): target sampling, all test items of a user and N unrated ones.

On target item sampling in offline recommender system evaluation. RecSys 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield.data import Ratings, over_one_vocabulary
from cranfield.recommenders import recommender
from cranfield.splits import k_fold, truths
from cranfield.store import Made
from cranfield.studies.canamares_castells2020 import work
from cranfield.studies.canamares_castells2020.claims import claims_of
from cranfield.studies.canamares_castells2020.exhibits import exhibits_of
from cranfield.studies.frame.study import Study, StudyFiles, StudyResults, StudyUnit, measured

FOLDS = 5


def _observed(ratings: Ratings, known: Ratings | None, seed: int) -> tuple[Ratings, Ratings | None]:
    """Return the ratings to divide into folds, and the ratings of items drawn at random, if there are any.

    If the observed ratings are among the judgments (CM100k), a random half of all judgments is set aside first.
    Otherwise training ratings would be missing from the judgments (`cranfield.splits.truths`).
    """
    if known is None:
        return ratings, None
    known, judged = over_one_vocabulary([known, ratings])
    if np.isin(known.pairs, judged.pairs).any():
        truth = truths.half(known, judged, seed=seed)
        return truth.train, truth.judged
    return known, judged


def _plan(
    data: Sequence[Ratings],
    *,
    threshold: float,
    seed: int,
    folds: int | None,
    known: Ratings | None,
    all_systems: bool | None,
    systems: Sequence[str] | None,
) -> Callable[[StudyFiles], StudyResults]:
    count = _checks.whole("folds", FOLDS if folds is None else folds, at_least=2)
    ratings, judged = _observed(data[0], known, seed)
    for system in systems or ():
        recommender(system)  # raises an error for a misspelled one before any training
    named, grid = work.systems_of(threshold, seed, systems or ()), work.grid_of(threshold, seed)
    made_of = {
        "data": ratings.fingerprint,
        "folds": count,
        "threshold": threshold,
        "seed": seed,
        "systems": named,
        "sizes": list(work.SIZES),
        "pairs": [work.TIES, work.TIES_AT_ZERO, work.SUM_OF_P, work.INTERSECTION],
        "drawn from": "items outside the test set",
        "without targets": 1,
        "judged": None if judged is None else judged.fingerprint,
    }
    of_grid = {**made_of, "systems": grid, "pairs": work.SUM_OF_P, "judged": None}

    def results(files: StudyFiles) -> StudyResults:
        """Measure every fold, and arrange the means over folds in tables and figures."""
        splits = k_fold(ratings, k=count, per_user=False, seed=seed)

        def numbers_of(fold: int) -> pl.DataFrame:
            return work.fold_numbers(splits[fold - 1], named, threshold, seed, judged)

        def write_sums(fold: int, place: Path) -> Made:
            return [work.fold_sums(splits[fold - 1], grid, threshold, seed).save(place / "sums.npz")], {}

        units, sums = [], []
        for fold in range(1, count + 1):
            units.append(StudyUnit(f"fold-{fold}", {**made_of, "fold": fold}, partial(numbers_of, fold), len(named)))
            if all_systems:
                write, of_fold = partial(write_sums, fold), {**of_grid, "fold": fold}
                sums.append(work.PairSums.read(files.store.artifact(f"pairs/fold-{fold}", of_fold, write).path()))
        numbers = measured(files, {"": units}, by="fold")[""]
        stated = {"unrated": list(work.SIZES), "threshold": threshold, "folds": count, "seed": seed}
        sums_of_p = sum(sums[1:], start=sums[0]).sums_of_p() if sums else None
        settings = {"systems": list(named.values()), **stated}
        return StudyResults(exhibits_of(numbers, sums_of_p), claims_of(numbers), settings)

    return results


CANAMARES_CASTELLS_2020 = Study(
    "canamares-castells2020",
    "Rocío Cañamares, Pablo Castells: On target item sampling in offline recommender system evaluation. RecSys 2020.",
    ("folds", "known", "all_systems", "systems"),
    _plan,
)
