"""Cañamares and Castells (2018): the order of systems by observed and by true preferences, and how a truth is designed.

Should I follow the crowd? A probabilistic analysis of the effectiveness of popularity in recommender systems. SIGIR
2018. Also the design of Mena-Maldonado et al. (2021), Popularity bias in false-positive metrics for recommender systems
evaluation, TOIS 39(3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield._polars import read_parquet
from cranfield._terminal import progress
from cranfield.data import Ratings, over_one_vocabulary
from cranfield.store import Made
from cranfield.studies.canamares_castells2018 import designs, orders
from cranfield.studies.canamares_castells2018.claims import claims_of
from cranfield.studies.canamares_castells2018.designs import Sums
from cranfield.studies.canamares_castells2018.exhibits import Found, exhibits_of
from cranfield.studies.canamares_castells2018.orders import world_readings, world_scores
from cranfield.studies.canamares_castells2018.protocols import ESTIMATORS, PROTOCOLS, Readings, panel_of
from cranfield.studies.frame.study import Study, StudyFiles, StudyResults
from cranfield.tables import write_table

REPETITIONS = 10  # number of times the paper repeats its five folds
DRAWS = 5  # number of truths to draw to score protocols
WORLDS = 20  # number of worlds to simulate for each value of a setting
TOIS = {
    "mostpopular": "popularity", "randomguess": "random", "smootheditemaverage": "average(damping=1)",
    "userknn": "knn", "itemknn": "itemknn", "wrmf": "wrmf(factors=20)", "slim": "slim(neighbours=50, sweeps=20)",
    "plsa": "plsa(topics=10, iterations=50)",
}  # fmt: skip
"""The systems of the 2021 paper that have a counterpart here; theirs have the settings of LibRec, ours have our own."""
_READINGS = [*PROTOCOLS, *map(list, PROTOCOLS.values()), *ESTIMATORS]
"""The readings, for the keys of artifacts: other readings make another artifact."""


def threshold_for(ratings: Ratings) -> float:
    """Return the lowest rating of a relevant item: 3 of 4 as in the paper, else 4."""
    return 3.0 if len(ratings) and ratings.values.max() <= 4 else 4.0


def _plan(
    data: Sequence[Ratings],
    *,
    threshold: float,
    seed: int,
    known: Ratings | None,
    seeds: int | None,
    systems: Sequence[str] | None,
) -> Callable[[StudyFiles], StudyResults]:
    if known is None:
        raise SettingError(
            "canamares-castells2018 needs to know which ratings a service would have observed; give known= in Python, "
            "or a file with a column known"
        )
    repetitions = _checks.whole("seeds", REPETITIONS if seeds is None else seeds)
    draws, worlds = (DRAWS, WORLDS) if seeds is None else (repetitions, min(WORLDS, repetitions))
    observed, judged = over_one_vocabulary([known, data[0]])
    panel = panel_of(threshold, systems)
    return TruthWork(observed, judged, threshold, seed, panel, repetitions, draws, worlds).results


@dataclass(frozen=True, eq=False)
class TruthWork:
    """The parts of the study, each saved in the store."""

    known: Ratings
    judged: Ratings
    threshold: float
    seed: int
    systems: tuple[str, ...]
    repetitions: int
    draws: int
    worlds: int

    def results(self, files: StudyFiles) -> StudyResults:
        """Run every design and every protocol, and arrange the results in tables and figures."""
        paired = bool(np.isin(self.known.pairs, self.judged.pairs).all())
        steps = 6 * self.repetitions + 5 * self.draws if paired else self.draws
        steps += self.worlds * sum(map(len, orders.KNOBS.values()))
        with progress("Training and measuring", total=steps, unit="parts") as bar:
            part = partial(self._part, files, bar.advance)
            if paired:
                results = self._of_known(part)
            else:  # the judgments cover other pairs than the observed ones, as in Coat
                make = partial(designs.given_readings, self.known, self.judged)
                readings, lists = self._readings(part, "given", make)
                results = Found(readings={"given": readings}, lists={"given": lists})
            results = replace(results, worlds=self._worlds(files, bar.advance))
        stated = {name: getattr(self, name) for name in ("threshold", "repetitions", "draws", "worlds", "seed")}
        return StudyResults(exhibits_of(results), claims_of(results), {"systems": list(self.systems), **stated})

    def _of_known(self, part: MakePart) -> Found:
        """Run every design on data in which the observed ratings are among the judgments."""
        data = (self.known, self.judged)

        def sums(name: str, make: Callable[..., Sums], number: int, *settings: Any) -> Sums:
            parts = [part(f"{name}-{place}", partial(make, *data, *settings), place) for place in range(number)]
            return Sums.joined([Sums.of_arrays(arrays, "") for arrays in parts])

        published: dict[str, dict[str, Sums]] = {}
        for name in designs.VARIANTS:
            ways = designs.WAYS[:1] if name == "actual" else designs.WAYS
            published[name] = {
                way: sums(f"published/{name}/{way}", designs.published_sums, self.repetitions, name, place == 1)
                for place, way in enumerate(ways)
            }
        half = sums("halves/actual", designs.half_sums, self.repetitions, "actual")
        weighted = sums("weighted/fold", designs.folded_sums, self.draws, self.systems)
        drawn = {}
        for name in designs.VARIANTS:
            drawn[name] = self._readings(part, name, partial(designs.half_readings, *data, name))
        make = partial(designs.fifth_sums, *data, tuple(TOIS.values()))
        fifths = [part(f"fifths/{place}", make, place) for place in range(self.draws)]
        observed, true = (Sums.joined([Sums.of_arrays(arrays, f"{place}/") for arrays in fifths]) for place in range(2))
        return Found(
            readings={name: readings for name, (readings, _) in drawn.items()},
            lists={name: lists for name, (_, lists) in drawn.items()},
            published=published,
            half=half,
            weighted=weighted,
            fifths=(observed, true),
        )

    def _readings(self, part: MakePart, name: str, make: Callable[..., Any]) -> tuple[list[Readings], Sums]:
        """Return the readings of every protocol in each draw, and the true values of the lists."""
        make = partial(make, self.systems)
        drawn = [part(f"draws/{name}-{place}", make, place, readings=_READINGS) for place in range(self.draws)]
        lists = Sums.joined([Sums.of_arrays(arrays, "lists/") for arrays in drawn])
        return [Readings.of_arrays(arrays) for arrays in drawn], lists

    def _worlds(self, files: StudyFiles, done: Callable[[], Any]) -> pl.DataFrame:
        common = {**orders.BASE, "systems": list(orders.WORLD_SYSTEMS), "readings": _READINGS}
        settings = [(knob, value) for knob, values in orders.KNOBS.items() for value in values]
        frames = []
        for (knob, value), place in product(settings, range(self.worlds)):
            made_of = {**common, "knob": knob, "value": value, "seed": self.seed + place}
            make = partial(_write_world, knob, value, self.seed + place)
            artifact = files.store.artifact(f"worlds/{knob}-{value:g}-{place}", made_of, make)
            frames.append(read_parquet(artifact.path()))
            done()
        return pl.concat(frames)

    def _part(
        self, files: StudyFiles, done: Callable[[], Any], name: str, make: Callable[..., Any], place: int, **more: Any
    ) -> Mapping[str, Any]:
        """Return the arrays of a part: from the store, or newly made."""
        made_of = {
            "part": name,
            "known": self.known.fingerprint,
            "judged": self.judged.fingerprint,
            "threshold": self.threshold,
            "seed": self.seed,
            "systems": [*self.systems, *TOIS.values()],
            **more,
        }
        write = partial(_write_arrays, partial(make, self.threshold, self.seed + place))
        with np.load(files.store.artifact(name, made_of, write).path()) as file:
            arrays = dict(file)
        done()
        return arrays


MakePart = Callable[..., Mapping[str, Any]]
"""Returns the arrays of a part of the study, given its name, how it is made, and the number of its draw."""


def _write_arrays(make: Callable[[], Any], folder: Path) -> Made:
    part, path = make(), folder / "arrays.npz"
    if isinstance(part, Sums):
        arrays = part.arrays()
    else:
        names = ("", "lists/") if isinstance(part[0], Readings) else ("0/", "1/")
        arrays = part[0].arrays(names[0]) | part[1].arrays(names[1])
    np.savez_compressed(path, **arrays)
    return [path], {}


def _write_world(knob: str, value: float, seed: int, folder: Path) -> Made:
    frame = world_scores(world_readings(knob, value, seed)).with_columns(
        knob=pl.lit(knob), value=pl.lit(float(value)), seed=pl.lit(seed)
    )
    return [write_table(frame, folder / "scores.parquet")], {}


CANAMARES_CASTELLS_2018 = Study(
    "canamares-castells2018",
    "Rocío Cañamares, Pablo Castells: Should I follow the crowd? A probabilistic analysis of the effectiveness of "
    "popularity in recommender systems. SIGIR 2018.",
    ("known", "seeds", "systems"),
    _plan,
    threshold=threshold_for,
)
