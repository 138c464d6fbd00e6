"""Aftab and Ramampiaro (2022): rank and rating error in one metric, SDCSE.

Evaluating top-N recommendations using ranked error approach: an empirical analysis. IEEE Access 10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield.data import Ratings, Relevance
from cranfield.studies.aftab2022 import work
from cranfield.studies.aftab2022.claims import claims_of
from cranfield.studies.aftab2022.exhibits import exhibits_of, missing
from cranfield.studies.aftab2022.work import ErrorNumbers, ErrorWork, models_for, units
from cranfield.studies.frame.study import Study, StudyFiles, StudyResults, data_names, differing, measured, recognised

SEEDS, SAMPLES = 5, 20
_IN_THE_PAPER = {
    "cut-off": "not said", "samples": 50, "BPR": "150 inputs, 500 hidden, 256 outputs", "held out": "nothing",
}  # fmt: skip

KNOWN = {
    "MovieLens 25M": ("ML", True),
    "MovieLens 1M": ("ML", False),
    "MovieLens 100K": ("ML", False),
    "Book-Crossing": ("BOOK", True),
    "RentTheRunway": ("RR", True),
}
"""The column of the paper's tables for a dataset, and whether it is for exactly these ratings."""


def _plan(
    data: Sequence[Ratings],
    *,
    threshold: float | None,
    seed: int,
    seeds: int | None,
    samples: int | None,
    systems: Sequence[str] | None,
    epochs: int | None,
) -> Callable[[StudyFiles], StudyResults]:
    splits = range(seed, seed + _checks.whole("seeds", SEEDS if seeds is None else seeds))
    wanted = _checks.whole("samples", SAMPLES if samples is None else samples)
    works = {
        name: ErrorWork(
            f"panel-{place}",
            ratings,
            _liked(ratings, threshold),
            {split: models_for(ratings, systems, split, epochs) for split in splits},
            wanted,
        )
        for place, (name, ratings) in enumerate(data_names(data).items(), start=1)
    }

    def results(files: StudyFiles) -> StudyResults:
        """Train, rank and measure everything that the study needs, with one panel per set of ratings."""
        numbers = measured(files, {name: units(files, own, splits) for name, own in works.items()})
        known = {name: KNOWN.get(recognised(own.data) or "", (None, False)) for name, own in works.items()}
        panels = [ErrorNumbers(name, own, known[name][0], numbers[name], known[name][1]) for name, own in works.items()]
        first = {name: system for panel in panels for name, system in panel.work.models[seed].spelled.items()}
        run = dict.fromkeys(model for panel in panels for model in panel.models)
        absent = {f"{name} ({why})": None for panel in panels for name, why in panel.absent().items()}
        settings = {
            "models": [f"{name} = {first[name]}" for name in run],
            "models not run": list(absent) or "none",
            "datasets of the paper not given": missing(panels) or "none",
            "liked from": [panel.work.threshold for panel in panels],
            "training": work.TRAIN,
            "held out of training, for calibration": work.VALIDATION,
            "calibration": "isotonic, of models that do not predict ratings",
            "lists": "test items of each user with training ratings",
            "metrics": list(work.METRICS.values()),
            "splits": len(splits),
            "samples": wanted,
            "seed": seed,
            "differs from the paper": differing(
                {"cut-off": work.N, "samples": wanted, "BPR": first.get(work.BPR, "not run"),
                 "held out": "a tenth of the training part, for calibration and early stopping"},
                _IN_THE_PAPER,
            ),
        }  # fmt: skip
        return StudyResults(exhibits_of(panels), claims_of(panels), settings)

    return results


def _liked(data: Ratings, threshold: float | None) -> float:
    """Return the lowest rating that counts as liked: 4 of 5, 8 of 10, or the one that is given."""
    if len(data.grades) < 2:
        raise SettingError(
            f"every rating of {data.name or 'the ratings'} is {data.grades[0]:g}, so there is no error to rank "
            "by; give explicit ratings"
        )
    liked = Relevance.of(data).threshold if threshold is None else threshold
    if not data.grades[0] < liked <= data.grades[-1]:
        raise SettingError(
            f"threshold={liked:g} makes all or none of {data.name or 'the ratings'} liked; they are from "
            f"{data.grades[0]:g} to {data.grades[-1]:g}, so give a threshold in between"
        )
    return liked


AFTAB_2022 = Study(
    "aftab2022",
    "Sofia Aftab, Heri Ramampiaro: Evaluating Top-N Recommendations Using Ranked Error Approach: An Empirical "
    "Analysis. IEEE Access 10, 2022.",
    ("seeds", "samples", "systems", "epochs"),
    _plan,
    several=True,
    threshold=None,
)
