"""A study at work: splits, ranked lists, scores, samples and p-values, each kept in a folder by what made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._polars import read_parquet
from cranfield._progress import progress
from cranfield._record import Step
from cranfield.assessments import SCENARIOS, Assessment, Chunks, Fold, Sampling, discriminative_power
from cranfield.data.writing import write_table
from cranfield.experiments.folder import Artifact, Folder, Made
from cranfield.experiments.stored import read_own_run, read_scores, save_scores
from cranfield.measures import Metric, Scores
from cranfield.measures.averages import Average
from cranfield.measures.judgments import NegativeGrades
from cranfield.rankings import Run, file_name, write_run
from cranfield.rankings.recommending import timed_each
from cranfield.rankings.targets import Candidates
from cranfield.recommenders import recommender
from cranfield.splits import Split

LENGTH = 100
"""The papers' lists have so many items."""

CANDIDATES: Candidates = "test"
"""The papers rank the items of the test set, without those that the user rated in training (AllItems)."""


@dataclass(frozen=True)
class Asked:
    """What is asked of a study on one set of ratings.

    Parameters
    ----------
    systems
        As `cranfield.recommend` spells them.
    metrics, averages
        What is measured, and how it is averaged.
    sizes
        For each scenario, what remains of the test set.
    samples
        How many samples a size has in the random scenarios.
    threshold
        The lowest rating of a relevant item.
    decimals
        To how many decimals averages are rounded before systems are ordered.
    seed
        Fixes every random choice.
    negative_grades
        What test grades below 0 mean, as for `measure`.
    """

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    averages: tuple[str, ...]
    sizes: Mapping[str, tuple[float, ...]]
    samples: int
    threshold: float
    decimals: int
    seed: int
    negative_grades: NegativeGrades = "judged"


class _FoldWork:
    """One fold: what is made of one split."""

    def __init__(self, number: int, split: Split, asked: Asked, folder: Folder, jobs: int | None) -> None:
        self._place, self._split, self._asked, self._folder = f"fold-{number}", split, asked, folder
        self._jobs = jobs

    @cached_property
    def _data(self) -> dict[str, str]:
        return {"train": self._split.train.fingerprint, "test": self._split.test.fingerprint}

    @cached_property
    def _made(self) -> dict[str, Artifact]:
        """The ranked lists of each system, as artifacts; those that are missing are made, several at a time."""
        names = {system: f"runs/{self._place}/{stem}" for system, stem in file_name(self._asked.systems).items()}
        made_of = {system: self._made_of(system) for system in names}
        there = {system: self._folder.kept(name, made_of[system]) for system, name in names.items()}
        wanted = [system for system, artifact in there.items() if artifact is None]
        if wanted:
            asked: dict[str, Any] = {"candidates": CANDIDATES, "seed": self._asked.seed, "jobs": self._jobs}
            with progress(f"Training, {self._place}", total=len(wanted), unit="systems") as bar:
                for done in timed_each(self._split, wanted, LENGTH, **asked):
                    system = wanted[done.place]
                    save = partial(self._save, done.result, names[system])
                    there[system] = self._folder.make(names[system], made_of[system], save, seconds=done.seconds)
                    bar.advance()
        return {system: artifact for system, artifact in there.items() if artifact is not None}

    def _made_of(self, system: str) -> dict[str, Any]:
        return {
            **self._data,
            "system": system,
            "parameters": dict(vars(recommender(system, self._asked.seed))),
            "n": LENGTH,
            "candidates": CANDIDATES,
            "seed": self._asked.seed,
        }

    def _save(self, run: Run, name: str) -> Made:
        path = write_run(run, self._folder.path / f"{name}.parquet")
        return [path], {"name": run.name, "counts": dict(run.counts)}

    @cached_property
    def _runs(self) -> list[Run]:
        """The ranked lists, read only if something is to be made of them."""
        return [
            read_own_run(self._folder.path / next(iter(one.files)), system, self._split, one.facts["counts"])
            for system, one in self._made.items()
        ]

    @property
    def _measured_of(self) -> dict[str, Any]:
        return {
            **self._data,
            "runs": [[system, one.digest] for system, one in self._made.items()],
            "metrics": list(self._asked.metrics),
            "threshold": self._asked.threshold,
            "negative_grades": self._asked.negative_grades,
        }

    @cached_property
    def _studied(self) -> Fold:
        """The systems on this test set, ready to be studied."""
        asked = self._asked
        sampling = Sampling(
            tuple(Average.of(one) for one in asked.averages),
            decimals=asked.decimals,
            samples=asked.samples,
            seed=asked.seed,
        )
        metrics = [Metric.of(one) for one in asked.metrics]
        return Fold(
            self._runs,
            self._split.test,
            metrics,
            sampling,
            threshold=asked.threshold,
            negative_grades=asked.negative_grades,
        )

    def scores(self) -> Artifact:
        """Measure the lists of all systems."""
        name = f"scores/{self._place}"

        def make() -> Made:
            path, facts = save_scores(self._studied.scores, self._folder.path / f"{name}.parquet")
            return [path], facts

        return self._folder.artifact(name, self._measured_of, make)

    def samples(self, scenario: str, sizes: Sequence[float]) -> Artifact:
        """Make the test set smaller in one way, and see what becomes of the order of the systems."""
        name, way, grid = f"samples/{self._place}/{scenario}", SCENARIOS[scenario], {scenario: sizes}
        made_of = {
            **self._measured_of,
            "averages": list(self._asked.averages),
            "sizes": list(sizes),
            "samples": self._asked.samples,
            "decimals": self._asked.decimals,
            "seed": self._asked.seed,
        }

        def make() -> Made:
            fold, parts = self._studied, Chunks(self._folder.path / "samples" / self._place / "parts")
            total = fold.n_samples([way], grid)
            with progress(f"{self._place}, {way.title}", total=total, unit="test sets") as bar:
                found = fold.study([way], grid, bar, parts)
            path = write_table(found, self._folder.path / f"{name}.parquet")
            return [path], {"whole": fold.whole.tolist()}

        return self._folder.artifact(name, made_of, make)


class Work:
    """A study on one set of ratings, fold by fold; only one fold is in memory at a time."""

    def __init__(self, folder: Folder, splits: Sequence[Split], asked: Asked, jobs: int | None = None) -> None:
        self._folder, self._splits, self._asked, self._jobs = folder, splits, asked, jobs

    def done(self) -> tuple[Assessment, float]:
        """Return the assessment over all folds, and the share of the recommended items that have a test rating."""
        scores: list[Artifact] = []
        samples: list[pl.DataFrame] = []
        whole = []
        for number, split in enumerate(self._splits, start=1):
            fold = _FoldWork(number, split, self._asked, self._folder, self._jobs)
            scores.append(fold.scores())
            made = [fold.samples(scenario, sizes) for scenario, sizes in self._asked.sizes.items()]
            samples += [self._read(one).with_columns(fold=pl.lit(number, dtype=pl.Int64)) for one in made]
            whole.append(np.array(made[0].facts["whole"], dtype=np.float64))
        power, curves = self._power(scores)
        assessment = Assessment(
            systems=self._asked.systems,
            metrics=self._asked.metrics,
            averages=self._asked.averages,
            lower_is_better=tuple(Metric.of(one).lower_is_better for one in self._asked.metrics),
            samples=pl.concat(samples).select("fold", pl.exclude("fold")),
            whole=np.stack(whole),
            power=power,
            curves=curves,
            step=self._step(tuple(dict.fromkeys(note for one in scores for note in one.facts["notes"]))),
        )
        return assessment, self._judged(scores)

    def _judged(self, scores: Sequence[Artifact]) -> float:
        """Return the share of the items in whole lists that have a test rating, over systems and folds."""
        whole = [m for m, metric in enumerate(self._asked.metrics) if metric.endswith(f"@{LENGTH}")]
        unjudged = np.array([one.facts["unjudged"] for one in scores], dtype=np.float64)
        return 1.0 - float(np.nanmean(unjudged[:, :, whole]))

    def _read(self, artifact: Artifact) -> pl.DataFrame:
        return read_parquet(self._folder.path / next(iter(artifact.files)))

    def _power(self, scores: Sequence[Artifact]) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return discriminative power and the p-value curves under the arithmetic mean."""
        settings = {"test": "permutation", "folds": "average", "seed": self._asked.seed}

        def make() -> Made:
            # The papers use no bootstrap.
            found = discriminative_power([self._scores(one) for one in scores], resamples=0, **settings)  # type: ignore[arg-type]
            frames = {"power": found.frame(), "curves": found.curve(first=None)}
            paths = [
                write_table(
                    frame.with_columns(average=pl.lit("mean")).select("average", pl.exclude("average")),
                    self._folder.path / "power" / f"{name}.parquet",
                )
                for name, frame in frames.items()
            ]
            return paths, {}

        made = self._folder.artifact("power", {"scores": [one.digest for one in scores], **settings}, make)
        by_name = {Path(file).stem: read_parquet(self._folder.path / file) for file in made.files}
        return by_name["power"], by_name["curves"]

    def _scores(self, artifact: Artifact) -> Scores:
        return read_scores(self._folder.path / next(iter(artifact.files)), artifact.facts)

    def _step(self, notes: tuple[str, ...]) -> Step:
        asked = self._asked
        settings = {
            "systems": list(asked.systems),
            "lists": LENGTH,
            "candidates": CANDIDATES,
            "threshold": asked.threshold,
            "negative_grades": asked.negative_grades,
            "metrics": list(asked.metrics),
            "averages": list(asked.averages),
            "sizes": {name: f"{len(own)} from {max(own):.0%} to {min(own):.0%}" for name, own in asked.sizes.items()},
            "samples": asked.samples,
            "correlation": "tau-b",
            "decimals": asked.decimals,
            "undefined": "zero",
            "significance": "permutation",
            "alpha": 0.05,
            "weights": None,
            "folds": len(self._splits),
            "seed": asked.seed,
        }
        return Step("replicate", settings, notes=notes)
