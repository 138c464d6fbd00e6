"""Cañamares and Castells (2018): the order of systems by observed and by true preferences, and how a truth is designed.

Should I follow the crowd? A probabilistic analysis of the effectiveness of popularity in recommender systems. SIGIR
2018. Also the design of Mena-Maldonado et al. (2021), Popularity bias in false-positive metrics for recommender systems
evaluation, TOIS 39(3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield._polars import read_parquet
from cranfield._terminal import progress
from cranfield.data import Ratings, over_one_vocabulary
from cranfield.store import Exports, Made, Store
from cranfield.studies import _truth_claims, _truth_exhibits
from cranfield.studies._claims import OF_SPLITS
from cranfield.studies._resampled import ALL_PAIRS, JUDGED_PAIRS, VARIANTS
from cranfield.studies._study import PanelResults, PanelStudy
from cranfield.studies._truth_estimators import ESTIMATORS
from cranfield.studies._truth_exhibits import Found
from cranfield.studies._truth_protocols import PROTOCOLS, Readings
from cranfield.studies._truth_sums import Sums
from cranfield.studies._truth_systems import panel_of
from cranfield.studies._truth_work import (
    fifth_sums,
    folded_sums,
    given_readings,
    half_readings,
    half_sums,
    published_sums,
)
from cranfield.studies._truth_worlds import BASE, KNOBS, world_readings, world_scores
from cranfield.studies._truth_worlds import SYSTEMS as WORLD_SYSTEMS
from cranfield.tables import write_table

REPETITIONS = 10
"""Number of times the paper repeats its five folds."""
DRAWS = 5
"""Number of truths to draw to score protocols."""
WORLDS = 20
"""Number of worlds to simulate for each value of a setting."""
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


def _work(
    store: Store,
    data: Sequence[Ratings],
    *,
    threshold: float,
    seed: int,
    known: Ratings | None = None,
    seeds: int | None = None,
    systems: Sequence[str] | None = None,
) -> PanelResults:
    """Run every design and every protocol, and arrange the results in tables and figures."""
    (judged,) = data
    if known is None:
        raise SettingError(
            "canamares-castells2018 needs to know which ratings a service would have observed; give known= in Python, "
            "or a file with a column known"
        )
    repetitions = _checks.whole("seeds", REPETITIONS if seeds is None else seeds)
    draws = DRAWS if seeds is None else repetitions
    known, judged = over_one_vocabulary([known, judged])
    study = _Study(store, known, judged, threshold, seed, panel_of(threshold, systems))
    results = study.found(repetitions, draws, WORLDS if seeds is None else min(WORLDS, repetitions))
    exports = Exports(store)
    exports.publish({})
    exports.withdraw()
    store.finish()
    settings: dict[str, Any] = {
        "systems": list(study.systems),
        "threshold": threshold,
        "repetitions": repetitions,
        "draws": draws,
        "worlds": WORLDS if seeds is None else min(WORLDS, repetitions),
        "seed": seed,
    }
    return PanelResults(_truth_exhibits.exhibits(results), _truth_claims.claims(results), settings)


class _Study:
    """The parts of the study, each saved in the store."""

    def __init__(
        self, store: Store, known: Ratings, judged: Ratings, threshold: float, seed: int, systems: tuple[str, ...]
    ) -> None:
        self._store, self._known, self._judged = store, known, judged
        self._threshold, self._seed, self.systems = threshold, seed, systems

    def found(self, repetitions: int, draws: int, worlds: int) -> Found:
        """Return the results of all parts."""
        pairs = [
            ratings.users.astype(np.int64) * ratings.n_items + ratings.items for ratings in (self._known, self._judged)
        ]
        paired = bool(np.isin(pairs[0], pairs[1]).all())
        steps = (6 * repetitions + 5 * draws if paired else draws) + worlds * sum(map(len, KNOBS.values()))
        with progress("Training and measuring", total=steps, unit="parts") as bar:
            run = partial(self._of_known, repetitions) if paired else self._of_given
            results = run(draws, bar.advance)
            return results.with_worlds(self._worlds(worlds, bar.advance))

    def _of_known(self, repetitions: int, draws: int, done: Callable[[], Any]) -> Found:
        """Run every design on data in which the observed ratings are among the judgments."""
        data = (self._known, self._judged)

        def sums(part: str, make: Callable[..., Sums], number: int, *settings: Any) -> Sums:
            parts = [
                self._kept(
                    f"{part}-{place}", partial(make, *data, *settings, self._threshold, self._seed + place), done
                )
                for place in range(number)
            ]
            return Sums.joined([Sums.of_arrays(arrays, "") for arrays in parts])

        published: dict[str, dict[str, Sums]] = {
            name: {
                way: sums(f"published/{name}/{way}", published_sums, repetitions, name, way == ALL_PAIRS)
                for way in ((JUDGED_PAIRS,) if name == "actual" else (JUDGED_PAIRS, ALL_PAIRS))
            }
            for name in VARIANTS
        }
        halves = {"actual": sums("halves/actual", half_sums, repetitions, "actual")}
        weighted = sums("weighted/fold", folded_sums, draws, self.systems)
        drawn = {
            name: [
                self._read(f"draws/{name}-{place}", partial(half_readings, *data, name), self._seed + place, done)
                for place in range(draws)
            ]
            for name in VARIANTS
        }
        fifths = [
            self._kept(
                f"fifths/{place}",
                partial(fifth_sums, *data, tuple(TOIS.values()), self._threshold, self._seed + place),
                done,
            )
            for place in range(draws)
        ]
        parts = [Sums.joined([Sums.of_arrays(arrays, f"{part}/") for arrays in fifths]) for part in range(2)]
        return Found(
            published=published,
            halves=halves,
            weighted=weighted,
            readings={name: [readings for readings, _ in pairs] for name, pairs in drawn.items()},
            lists={name: Sums.joined([of_draw for _, of_draw in pairs]) for name, pairs in drawn.items()},
            fifths=(parts[0], parts[1]),
        )

    def _of_given(self, draws: int, done: Callable[[], Any]) -> Found:
        """Score protocols on data whose judgments cover other pairs than the observed ones, as in Coat."""
        drawn = [
            self._read(
                f"draws/given-{place}", partial(given_readings, self._known, self._judged), self._seed + place, done
            )
            for place in range(draws)
        ]
        return Found(
            readings={"given": [readings for readings, _ in drawn]},
            lists={"given": Sums.joined([of_draw for _, of_draw in drawn])},
        )

    def _worlds(self, worlds: int, done: Callable[[], Any]) -> pl.DataFrame:
        frames = []
        for knob, values in KNOBS.items():
            for value in values:
                for place in range(worlds):
                    made_of: dict[str, Any] = {**BASE, "systems": list(WORLD_SYSTEMS), "readings": _READINGS}
                    made_of |= {"knob": knob, "value": value, "seed": self._seed + place}
                    make = partial(_write_world, knob, value, self._seed + place)
                    artifact = self._store.artifact(f"worlds/{knob}-{value:g}-{place}", made_of, make)
                    frames.append(read_parquet(artifact.path()))
                    done()
        return pl.concat(frames)

    def _read(
        self, name: str, make: Callable[..., tuple[Readings, Sums]], seed: int, done: Callable[[], Any]
    ) -> tuple[Readings, Sums]:
        readings = {"readings": _READINGS}
        arrays = self._kept(name, partial(make, self.systems, self._threshold, seed), done, readings)
        return Readings.of_arrays(arrays), Sums.of_arrays(arrays, "lists/")

    def _kept(
        self, name: str, make: Callable[[], Any], done: Callable[[], Any], further: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """Return the arrays of a part: from the store, or newly made."""
        made_of = {
            "part": name,
            "known": self._known.fingerprint,
            "judged": self._judged.fingerprint,
            "threshold": self._threshold,
            "seed": self._seed,
            "systems": [*self.systems, *TOIS.values()],
            **(further or {}),
        }
        artifact = self._store.artifact(name, made_of, partial(_write_arrays, make))
        with np.load(artifact.path()) as file:
            arrays = dict(file)
        done()
        return arrays


def _write_arrays(make: Callable[[], Any], place: Path) -> Made:
    part, path = make(), place / "arrays.npz"
    arrays = _arrays_of(part)
    np.savez_compressed(path, **arrays)
    return [path], {}


def _arrays_of(part: Any) -> dict[str, Any]:
    if isinstance(part, Sums):
        return part.arrays("")
    first, second = part
    if isinstance(first, Readings):
        return {**first.arrays(), **second.arrays("lists/")}
    return {**first.arrays("0/"), **second.arrays("1/")}


def _write_world(knob: str, value: float, seed: int, place: Path) -> Made:
    frame = world_scores(world_readings(knob, value, seed)).with_columns(
        knob=pl.lit(knob), value=pl.lit(float(value)), seed=pl.lit(seed)
    )
    return [write_table(frame, place / "scores.parquet")], {}


CANAMARES_CASTELLS_2018 = PanelStudy(
    name="canamares-castells2018",
    reference=(
        "Rocío Cañamares, Pablo Castells: Should I follow the crowd? A probabilistic analysis of the effectiveness of "
        "popularity in recommender systems. SIGIR 2018."
    ),
    options=("known", "seeds", "systems"),
    several=False,
    rule=OF_SPLITS,
    work=_work,
    threshold=threshold_for,
)
