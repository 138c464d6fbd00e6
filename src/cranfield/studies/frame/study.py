"""`Study`: a paper that can be repeated, how its datasets are recognised, its files, and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._polars import read_parquet
from cranfield._record import Step
from cranfield._terminal import progress
from cranfield.assessments import Assessment
from cranfield.data import Description, Ratings, describe
from cranfield.facts import study as study_facts
from cranfield.measures import Scores
from cranfield.splits import Split
from cranfield.store import Artifact, Exports, Made, Store, Write
from cranfield.studies.frame.claims import Floats, Part, users_error
from cranfield.studies.frame.exhibits import Exhibit
from cranfield.tables import write_table

DATASETS = {
    (943, 1682, 100_000): "MovieLens 100K",
    (6040, 3706, 1_000_209): "MovieLens 1M",
    (162_541, 59_047, 25_000_095): "MovieLens 25M",
    (480_189, 17_770, 100_480_507): "Netflix",
    (7279, 37_232, 749_401): "LibraryThing",
    (33_388, 66_055, 1_571_808): "BeerAdvocate",
    (1892, 17_632, 92_834): "HetRec 2011 Last.fm",
    (77_805, 185_968, 433_668): "Book-Crossing",
    (77_805, 185_973, 433_671): "Book-Crossing",
    (105_508, 5850, 192_198): "RentTheRunway",
    (105_571, 5850, 192_544): "RentTheRunway",
}
"""The datasets of the papers by their numbers of users, items and ratings, from which they are recognised."""


def recognised(data: Ratings | Description) -> str | None:
    """Return which dataset of the papers these ratings are, judging by their numbers; None for others."""
    size = describe(data) if isinstance(data, Ratings) else data
    return DATASETS.get((size.users, size.items, size.ratings))


def differing(here: Mapping[str, Any], paper: Mapping[str, Any]) -> list[str]:
    """Return the settings that differ from those of the paper, in words."""
    return [f"{name}: {here[name]}, in the paper {paper[name]}" for name in paper if here[name] != paper[name]]


def size_of(dataset: str) -> tuple[int, int, int]:
    """Return the numbers of users, items and ratings of a dataset of the papers."""
    return next(size for size, name in DATASETS.items() if name == dataset)


Data = TypeVar("Data", bound=Ratings | Split)


def data_names(data: Sequence[Data]) -> dict[str, Data]:
    """Return ratings by name, with numbers if names are not unique; a split has the name of its training part."""
    names: dict[str, Data] = {}
    for place, ratings in enumerate(data, start=1):
        if isinstance(ratings, Split):
            name = (ratings.train.name or "the ratings").removesuffix(" (train)")
        else:
            name = ratings.name or "the ratings"
        names[f"{name} ({place})" if name in names else name] = ratings
    return names


class StudyFiles:
    """The files of a study: artifacts in a store, and their readable forms."""

    def __init__(self, store: Store) -> None:
        self.store, self._exports = store, Exports(store)

    def publish(self, artifacts: Mapping[Artifact, Write]) -> None:
        """Write readable files of artifacts."""
        self._exports.publish({artifact.name: (artifact, write) for artifact, write in artifacts.items()})

    def finish(self) -> None:
        """Mark the study as finished; files of other studies are removed."""
        self._exports.withdraw()
        self.store.finish()


SCHEMA: dict[str, Any] = {
    "part": pl.String, "setting": pl.String, "x": pl.Float64, "metric": pl.String, "system": pl.String,
    "value": pl.Float64, "p": pl.Float64, "error": pl.Float64,
}  # fmt: skip
"""One row per number: the part of the study, the setting that was varied and its value; of a pair the p-value, and the
standard error over users."""

ValueRow = tuple[str, str, float, str, str, float, float | None]
ValueRows = list[ValueRow | tuple[str, str, float, str, str, float, float | None, float | None]]


@dataclass(frozen=True)
class StudyUnit:
    """One artifact: its name, its inputs, the function that makes its rows, and how many systems it trains."""

    name: str
    made_of: Mapping[str, Any]
    make: Callable[[], ValueRows | pl.DataFrame]
    trainings: int


def measured(files: StudyFiles, panels: Mapping[str, Sequence[StudyUnit]], by: str = "seed") -> dict[str, pl.DataFrame]:
    """Make the missing artifacts, and return the numbers of each panel, with the input ``by`` as a column."""
    total = sum(unit.trainings for own in panels.values() for unit in own)
    frames: dict[str, list[pl.DataFrame]] = {panel: [] for panel in panels}
    artifacts = {}
    with progress("Training and measuring", total=total, unit="trainings") as bar:
        for panel, own in panels.items():
            for unit in own:
                artifact = files.store.artifact(f"measured/{unit.name}", unit.made_of, partial(_write, unit))
                artifacts[artifact] = partial(exported, artifact)
                frames[panel].append(read_parquet(artifact.path()).with_columns(pl.lit(unit.made_of[by]).alias(by)))
                bar.advance(unit.trainings)
    files.publish(artifacts)
    return {panel: pl.concat(own) for panel, own in frames.items()}


def _write(unit: StudyUnit, place: Path) -> Made:
    rows = unit.make()
    if isinstance(rows, pl.DataFrame):
        frame = rows
    else:
        whole = [(*row, None)[: len(SCHEMA)] for row in rows]
        frame = pl.DataFrame(whole, schema=SCHEMA, orient="row")
    return [write_table(frame, place / "numbers.parquet")], {"trainings": unit.trainings}


def exported(artifact: Artifact, folder: Path) -> list[Path]:
    """Write the table of an artifact under the artifact's name."""
    return [write_table(read_parquet(artifact.path()), folder / f"{artifact.name}.parquet")]


def pair_errors(
    place: tuple[str, str, float], metric: str, values: Floats, scores: Scores, groups: NDArray[Any] | None = None
) -> ValueRows:
    """Return the standard error over users of the difference of each pair of systems, from systems × lists.

    ``place`` is the part, the setting and ``x``; `PanelNumbers.margin` looks them up.
    """
    rows: ValueRows = []
    for a, b in combinations(range(len(values)), 2):
        error = users_error(values[a] - values[b], scores.users, groups) if values.size else float("nan")
        pair = " | ".join(sorted((scores.systems[a], scores.systems[b])))
        rows.append((*place, metric, pair, float("nan"), None, error))
    return rows


Work = TypeVar("Work")


@dataclass(frozen=True, eq=False)
class PanelNumbers(Generic[Work]):
    """The numbers of one set of ratings, looked up by what was varied."""

    name: str
    work: Work  # the ratings, and what was measured on them
    known: str | None  # the dataset of the paper that they are
    frame: pl.DataFrame  # one row per number, with the columns of `SCHEMA` and ``seed``

    def rows(self, part: str, **wanted: str | float) -> pl.DataFrame:
        """Return the rows of a part of the study, in the order of ``x`` and ``seed``."""
        rows = self.frame.filter(pl.col("part") == part, *(pl.col(name) == value for name, value in wanted.items()))
        return rows.sort("x", "seed", maintain_order=True)

    def series(self, part: str, **wanted: str | float) -> Floats:
        """Return values that there is one of for each split."""
        return self.rows(part, **wanted)["value"].to_numpy()

    def error(self, part: str, **wanted: str | float) -> float:
        """Return the standard error over users, averaged over splits, since these share the users; 0 if unknown."""
        errors = self.rows(part, **wanted)["error"].drop_nulls()
        return float(errors.mean() or 0.0)  # type: ignore[arg-type]

    def margin(self, series: Sequence[Floats], pair: Sequence[str], part: str, **wanted: str | float) -> Part:
        """Return by how much one system is above another, given both on every split; unknown if one was not run."""
        if not all(map(len, series)):
            return Part(np.full(1, np.nan))
        return Part(series[0] - series[1], self.error(part, system=" | ".join(sorted(pair)), **wanted))

    def curve(self, part: str, column: str = "value", **wanted: str | float) -> tuple[Floats, Floats]:
        """Return the places ``x``, and splits × places: the values, or p-values, of the splits run at every place."""
        rows = self.rows(part, **wanted)
        places = rows["x"].unique().sort().to_numpy()
        rows = rows.filter(pl.len().over("seed") == len(places))
        return places, rows[column].cast(pl.Float64).to_numpy().reshape(len(places), -1).T.copy()

    def spread(self, part: str, *by: str, **wanted: str | float) -> pl.DataFrame:
        """Return the mean over splits with the lowest and the highest value, by some columns."""
        value = pl.col("value").fill_nan(None)
        summary = {"value": value.mean(), "lowest": value.min(), "highest": value.max(), "splits": pl.len()}
        return self.rows(part, **wanted).group_by(*by, maintain_order=True).agg(**summary)


@dataclass(frozen=True, eq=False)
class StudyResults:
    """The results of a study; those of metrics also have an ``assessment``, notes, and the steps taken before."""

    exhibits: Sequence[Exhibit]
    claims: Sequence[study_facts.Finding]
    settings: Mapping[str, Any]
    assessment: Assessment | None = None
    notes: tuple[str, ...] = ()
    steps: Mapping[str, Step] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """A paper whose study can be repeated."""

    name: str  # on the command line
    reference: str
    options: tuple[str, ...]  # those of `replicate` that it takes besides what every study takes
    # Takes the sets of ratings and, as keywords, the threshold, the seed and the options, which are None if not given;
    # checks them, and returns the work: a function that trains, ranks and measures.
    plan: Callable[..., Callable[[StudyFiles], StudyResults]]
    takes_threshold: bool = True  # whether a rating makes an item relevant
    several: bool = False  # whether it takes several sets of ratings, with one panel for each
    divided: bool = False  # whether it accepts a split instead of ratings, for data that are already divided
    # The lowest rating of a relevant item in the paper; None if the plan chooses one for each set of ratings:
    threshold: Callable[[Ratings], float] | None = lambda _: 4.0
