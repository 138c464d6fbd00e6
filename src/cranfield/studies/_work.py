"""Run a study: splits, ranked lists, scores, samples and p-values, each stored under a hash of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._polars import read_parquet
from cranfield._record import Step
from cranfield._terminal import progress
from cranfield.assessments import SCENARIOS, Assessment, Chunks, Fold, Sampling, discriminative_power
from cranfield.judgments import NegativeGrades
from cranfield.measures import Average, Measuring, Scores
from cranfield.metrics import Metric
from cranfield.rankings import Ranking, Run, file_name, timed_each, write_run
from cranfield.recommenders import recommender
from cranfield.splits import Split
from cranfield.store import (
    Artifact,
    Exports,
    Made,
    Store,
    Vocabularies,
    Write,
    read_run,
    read_scores,
    run_facts,
    save_run,
    save_scores,
    scores_table,
)
from cranfield.tables import Vocabulary, write_table

LENGTH = 100
"""The length of the papers' lists."""

CANDIDATES = "test"
"""The papers rank the items of the test set, without those that the user rated in training (AllItems)."""


@dataclass(frozen=True)
class Asked:
    """The settings of a study on one set of ratings.

    Parameters
    ----------
    systems
        As `cranfield.recommend` spells them.
    metrics, averages
        What is measured, and how it is averaged.
    sizes
        For each scenario, the shares of the test set that remain.
    samples
        Number of samples per size in the random scenarios.
    threshold
        The lowest rating of a relevant item.
    decimals
        Number of decimals to which averages are rounded before systems are ordered.
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
    """One fold: the artifacts of one split."""

    def __init__(self, number: int, split: Split, settings: Asked, kept: Kept, jobs: int | None) -> None:
        self._place, self._split, self._asked, self._kept = f"fold-{number}", split, settings, kept
        self._jobs = jobs

    @property
    def users(self) -> Vocabulary:
        """The users of the ratings."""
        return self._split.train.user_ids

    @cached_property
    def _data(self) -> dict[str, str]:
        return {"train": self._split.train.fingerprint, "test": self._split.test.fingerprint}

    @cached_property
    def _made(self) -> dict[str, Artifact]:
        """The ranked lists of each system, as artifacts; missing ones are made, several in parallel."""
        names = {system: f"runs/{self._place}/{stem}" for system, stem in file_name(self._asked.systems).items()}
        made_of = {system: self._made_of(system) for system in names}
        store = self._kept.store
        there = {system: store.kept(name, made_of[system]) for system, name in names.items()}
        wanted = [system for system, artifact in there.items() if artifact is None]
        if wanted:
            ranking = Ranking(candidates=CANDIDATES, length=LENGTH)
            with progress(f"Training, {self._place}", total=len(wanted), unit="systems") as bar:
                for done in timed_each(self._split, wanted, ranking=ranking, seed=self._asked.seed, jobs=self._jobs):
                    system = wanted[done.place]
                    save = partial(_save_run, done.result)
                    there[system] = store.make(names[system], made_of[system], save, seconds=done.seconds)
                    bar.advance()
        runs = {system: artifact for system, artifact in there.items() if artifact is not None}
        self._kept.publish({artifact: partial(self._export_run, system, artifact) for system, artifact in runs.items()})
        return runs

    def _export_run(self, system: str, artifact: Artifact, folder: Path) -> list[Path]:
        return [write_run(self._read_run(system, artifact), folder / f"{artifact.name}.parquet")]

    def _made_of(self, system: str) -> dict[str, Any]:
        return {
            **self._data,
            "system": system,
            "parameters": dict(vars(recommender(system, self._asked.seed))),
            "version": recommender(system).version,
            "n": LENGTH,
            "candidates": CANDIDATES,
            "seed": self._asked.seed,
        }

    @cached_property
    def _runs(self) -> list[Run]:
        """The ranked lists, only read if something must be made from them."""
        return [self._read_run(system, artifact) for system, artifact in self._made.items()]

    def _read_run(self, system: str, artifact: Artifact) -> Run:
        ids = Vocabularies(self._split.train.user_ids, self._split.train.item_ids)
        return read_run(artifact.path(), system, ids, artifact.facts)

    @property
    def _measured_of(self) -> dict[str, Any]:
        return {
            **self._data,
            "runs": [[system, artifact.digest] for system, artifact in self._made.items()],
            "metrics": list(self._asked.metrics),
            "threshold": self._asked.threshold,
            "negative_grades": self._asked.negative_grades,
        }

    @cached_property
    def _studied(self) -> Fold:
        """The systems on this test set, ready to be studied."""
        settings = self._asked
        sampling = Sampling(
            tuple(Average.of(average) for average in settings.averages),
            decimals=settings.decimals,
            samples=settings.samples,
            seed=settings.seed,
        )
        measuring = Measuring(metrics=settings.metrics, threshold=settings.threshold)
        return Fold(self._runs, self._split.test, measuring, sampling, negative_grades=settings.negative_grades)

    def scores(self) -> Artifact:
        """Measure the lists of all systems."""
        name = f"scores/{self._place}"

        def make(place: Path) -> Made:
            path, facts = save_scores(self._studied.scores, place / "scores.npz")
            return [path], facts

        def export(folder: Path) -> list[Path]:
            scores = read_scores(artifact.path(), artifact.facts, self.users)
            return [write_table(scores_table(scores), folder / f"{name}.parquet")]

        artifact = self._kept.store.artifact(name, self._measured_of, make)
        self._kept.publish({artifact: export})
        return artifact

    def samples(self, scenario: str, sizes: Sequence[float]) -> Artifact:
        """Reduce the test set in one way, and measure how the order of the systems changes."""
        name, way, grid = f"samples/{self._place}/{scenario}", SCENARIOS[scenario], {scenario: sizes}
        made_of = {
            **self._measured_of,
            "scenario": scenario,
            "averages": list(self._asked.averages),
            "sizes": list(sizes),
            "samples": self._asked.samples,
            "decimals": self._asked.decimals,
            "seed": self._asked.seed,
        }

        def make(place: Path) -> Made:
            fold, parts = self._studied, Chunks(self._kept.store.path / "samples" / self._place / "parts")
            total = fold.n_samples([way], grid)
            with progress(f"{self._place}, {way.title}", total=total, unit="test sets") as bar:
                frame = fold.study([way], grid, bar, parts)
            path = write_table(frame, place / f"{scenario}.parquet")
            return [path], {"whole": fold.whole.tolist()}

        artifact = self._kept.store.artifact(name, made_of, make)
        self._kept.publish({artifact: partial(_copied, artifact, f"samples/{self._place}")})
        return artifact


class Kept:
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


def _save_run(run: Run, place: Path) -> Made:
    return [save_run(run, place / "run.parquet")], {"name": run.name, **run_facts(run)}


def _copied(artifact: Artifact, home: str, folder: Path) -> list[Path]:
    return [write_table(read_parquet(artifact.path(file)), folder / home / file) for file in artifact.files]


class Work:
    """A study on one set of ratings, fold by fold; only one fold is in memory at a time."""

    def __init__(self, store: Store, splits: Sequence[Split], settings: Asked, jobs: int | None = None) -> None:
        self._kept, self._splits, self._asked, self._jobs = Kept(store), splits, settings, jobs

    def done(self) -> tuple[Assessment, float]:
        """Return the assessment over all folds, and the share of the recommended items that have a test rating."""
        scores: list[Artifact] = []
        samples: list[pl.DataFrame] = []
        whole = []
        for number, split in enumerate(self._splits, start=1):
            fold = _FoldWork(number, split, self._asked, self._kept, self._jobs)
            scores.append(fold.scores())
            artifacts = [fold.samples(scenario, sizes) for scenario, sizes in self._asked.sizes.items()]
            samples += [
                self._read(artifact).with_columns(fold=pl.lit(number, dtype=pl.Int64)) for artifact in artifacts
            ]
            whole.append(np.array(artifacts[0].facts["whole"], dtype=np.float64))
        power, curves = self._power(scores)
        self._kept.finish()
        assessment = Assessment(
            systems=self._asked.systems,
            metrics=self._asked.metrics,
            averages=self._asked.averages,
            lower_is_better=tuple(Metric.of(metric).lower_is_better for metric in self._asked.metrics),
            samples=pl.concat(samples).select("fold", pl.exclude("fold")),
            whole=np.stack(whole),
            power=power,
            curves=curves,
            step=self._step(tuple(dict.fromkeys(note for artifact in scores for note in artifact.facts["notes"]))),
        )
        return assessment, self._judged(scores)

    def _judged(self, scores: Sequence[Artifact]) -> float:
        """Return the share of items in whole lists that have a test rating, over systems and folds."""
        whole = [m for m, metric in enumerate(self._asked.metrics) if metric.endswith(f"@{LENGTH}")]
        unjudged = np.array([artifact.facts["unjudged"] for artifact in scores], dtype=np.float64)
        return 1.0 - float(np.nanmean(unjudged[:, :, whole]))

    def _read(self, artifact: Artifact) -> pl.DataFrame:
        return read_parquet(artifact.path())

    def _power(self, scores: Sequence[Artifact]) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return discriminative power and the p-value curves under the arithmetic mean."""
        settings: dict[str, Any] = {"significance": "permutation", "folds": "average", "seed": self._asked.seed}

        def make(place: Path) -> Made:
            # The papers do not use the bootstrap.
            power = discriminative_power(
                [self._scores(artifact, split) for artifact, split in zip(scores, self._splits)],
                resamples=0,
                **settings,
            )
            frames = {"power": power.frame(), "curves": power.curve(first=None)}
            paths = [
                write_table(
                    frame.with_columns(average=pl.lit("mean")).select("average", pl.exclude("average")),
                    place / f"{name}.parquet",
                )
                for name, frame in frames.items()
            ]
            return paths, {}

        artifact = self._kept.store.artifact(
            "power", {"scores": [measured.digest for measured in scores], **settings}, make
        )
        self._kept.publish({artifact: partial(_copied, artifact, "power")})
        by_name = {Path(file).stem: read_parquet(artifact.path(file)) for file in artifact.files}
        return by_name["power"], by_name["curves"]

    def _scores(self, artifact: Artifact, split: Split) -> Scores:
        return read_scores(artifact.path(), artifact.facts, split.train.user_ids)

    def _step(self, notes: tuple[str, ...]) -> Step:
        options = self._asked
        settings = {
            "systems": list(options.systems),
            "lists": LENGTH,
            "candidates": CANDIDATES,
            "threshold": options.threshold,
            "negative_grades": options.negative_grades,
            "metrics": list(options.metrics),
            "averages": list(options.averages),
            "sizes": {
                name: f"{len(shares)} from {max(shares):.0%} to {min(shares):.0%}"
                for name, shares in options.sizes.items()
            },
            "samples": options.samples,
            "correlation": "tau-b",
            "decimals": options.decimals,
            "undefined": "zero",
            "significance": "permutation",
            "alpha": 0.05,
            "weights": None,
            "folds": len(self._splits),
            "seed": options.seed,
        }
        return Step("replicate", settings, notes=notes)
