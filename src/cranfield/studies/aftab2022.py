"""Aftab and Ramampiaro (2022): rank and rating error in one metric, SDCSE.

Evaluating top-N recommendations using ranked error approach: an empirical analysis. IEEE Access 10.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield.data import Ratings, Relevance, describe
from cranfield.store import Store
from cranfield.studies._bias_panel import numbered
from cranfield.studies._claims import OF_SPLITS
from cranfield.studies._error_claims import together
from cranfield.studies._error_exhibits import BOOK, COLUMNS, ML, RR, exhibits_of
from cranfield.studies._error_models import models_for
from cranfield.studies._error_numbers import ErrorNumbers
from cranfield.studies._error_work import METRICS, TRAIN, VALIDATION, ErrorWork, units
from cranfield.studies._options_work import measured
from cranfield.studies._study import PanelResults, PanelStudy

SEEDS, SAMPLES = 3, 20

KNOWN: dict[tuple[int, int, int], tuple[str, bool]] = {
    (162_541, 59_047, 25_000_095): (ML, True),
    (6040, 3706, 1_000_209): (ML, False),
    (943, 1682, 100_000): (ML, False),
    (77_805, 185_968, 433_668): (BOOK, True),
    (77_805, 185_973, 433_671): (BOOK, True),
    (105_508, 5850, 192_198): (RR, True),
    (105_571, 5850, 192_544): (RR, True),
}
"""By users, items and ratings: the column of the paper's tables, and whether it is for exactly these ratings."""


def _work(
    store: Store,
    data: Sequence[Ratings],
    *,
    threshold: float | None,
    seed: int,
    seeds: int | None = None,
    samples: int | None = None,
    systems: Sequence[str] | None = None,
    epochs: int | None = None,
) -> PanelResults:
    """Train, rank and measure everything that the study needs, with one panel per set of ratings."""
    splits = range(seed, seed + _checks.whole("seeds", SEEDS if seeds is None else seeds))
    wanted = _checks.whole("samples", SAMPLES if samples is None else samples)
    named = numbered(data)
    works = {
        name: ErrorWork(
            store,
            f"panel-{place}",
            ratings,
            _liked(ratings, threshold),
            {split: models_for(ratings, systems, split, epochs) for split in splits},
            wanted,
        )
        for place, (name, ratings) in enumerate(named.items(), start=1)
    }
    numbers = measured(store, {name: units(work, splits) for name, work in works.items()})
    panels = []
    for name, work in works.items():
        size = describe(work.data)
        column, same = KNOWN.get((size.users, size.items, size.ratings), (None, False))
        panels.append(ErrorNumbers(name, work, column, same, numbers[name]))
    return PanelResults(exhibits_of(panels), together(panels), _settings(panels, splits, wanted))


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


def _settings(panels: Sequence[ErrorNumbers], splits: Sequence[int], samples: int) -> dict[str, object]:
    run = dict.fromkeys(model for panel in panels for model in panel.models)
    first = {name: spelling for panel in panels for name, spelling in panel.work.models[splits[0]].spelled.items()}
    absent = {f"{name} ({why})": None for panel in panels for name, why in panel.absent().items()}
    given = {panel.column for panel in panels if panel.same}
    missing = [name for column, name in COLUMNS.items() if column not in given]
    return {
        "models": [f"{name} = {first[name]}" for name in run],
        "models not run": list(absent) or "none",
        "datasets of the paper not given": missing or "none",
        "liked from": [panel.work.threshold for panel in panels],
        "training": TRAIN,
        "held out of training, for calibration": VALIDATION,
        "calibration": "isotonic, of models that do not predict ratings",
        "lists": "test items of each user with training ratings",
        "metrics": list(METRICS.values()),
        "splits": len(splits),
        "samples": samples,
        "seed": int(np.min(list(splits))),
    }


AFTAB_2022 = PanelStudy(
    name="aftab2022",
    reference=(
        "Sofia Aftab, Heri Ramampiaro: Evaluating Top-N Recommendations Using Ranked Error Approach: An Empirical "
        "Analysis. IEEE Access 10, 2022."
    ),
    options=("seeds", "samples", "systems", "epochs"),
    several=True,
    rule=OF_SPLITS,
    work=_work,
    by_ratings=True,
)
