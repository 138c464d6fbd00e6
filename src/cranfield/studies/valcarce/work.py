"""A study of metrics: splits, ranked lists, scores, samples and p-values, each stored under a hash of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl

from cranfield import _checks, assessments
from cranfield._errors import SettingError
from cranfield._polars import read_parquet
from cranfield._record import Step
from cranfield._terminal import progress
from cranfield.data import Description, Ratings, describe
from cranfield.facts import Fact, sentences
from cranfield.facts import assessment as assessment_facts
from cranfield.judgments import NegativeGrades, notes_on_negative_grades
from cranfield.measures import Average, Measuring
from cranfield.metrics import Metric
from cranfield.rankings import Ranking, Run, file_name, timed_each, write_run
from cranfield.recommenders import recommender
from cranfield.splits import Split, k_fold, per_user, predefined, random
from cranfield.store import Artifact, Made, encoding
from cranfield.studies.frame.claims import ClaimFindings
from cranfield.studies.frame.exhibits import Exhibit
from cranfield.studies.frame.study import StudyFiles, StudyResults, differing
from cranfield.tables import write_table

SYSTEMS = (
    "random", "popularity", "chi2", "kld", "rsv", "rw", "rm1", "rm2", "lm-wsr-ub", "lm-wsr-ib", "nncosngbr-ub",
    "nncosngbr-ib", "slim", "ht", "svd", "puresvd", "bprmf", "wrmf", "lda", "plsa", "uir",
)  # fmt: skip
"""The 21 systems of Valcarce et al. (2018, 2020), as spelled in `cranfield.recommend`."""
OPTIONS = ("split", "folds", "systems", "samples", "sizes", "decimals", "jobs", "negative_grades")
LENGTH = 100  # the length of the papers' lists
CANDIDATES = "test"
"""The papers rank the items of the test set, without those that the user rated in training (AllItems)."""
TESTED = ("mean", "geometric")  # the averages whose discriminative power is measured on every fold
_TRAIN, _SAMPLES, _DECIMALS = 0.8, 50, 12


@dataclass(frozen=True, eq=False)
class MetricResults:
    """The results of a study of metrics, before they are arranged as in the paper."""

    data: Description
    assessment: assessments.Assessment  # every metric under every average of the study, on all folds
    judged: float  # the share of the recommended items that have a test rating, averaged over systems and folds
    by_fold: pl.DataFrame  # the p-value of every pair of systems by average, metric and fold
    alike: tuple[assessment_facts.RankAlike, ...]  # systems that rank alike: a pair of them has p = 1 by every metric


@dataclass(frozen=True)
class MetricPaper:
    """A paper about metrics: what it measures and how, and functions that arrange the results and check its claims."""

    metrics: tuple[str, ...]
    averages: tuple[str, ...]
    sizes: Mapping[str, Sequence[float]]  # for each scenario, the shares of the test set that remain
    folds: int  # 1 for a single split
    per_user: bool  # whether each profile is split separately
    exhibits: Callable[[MetricResults], list[Exhibit]]
    claims: Callable[[MetricResults], ClaimFindings]

    def plan(
        self,
        data: Sequence[Ratings],
        *,
        threshold: float,
        seed: int,
        split: Ratings | Split | None,
        folds: int | None,
        systems: Sequence[str] | None,
        samples: int | None,
        sizes: str | Sequence[float] | None,
        decimals: int | None,
        jobs: int | None,
        negative_grades: NegativeGrades | None,
    ) -> Callable[[StudyFiles], StudyResults]:
        """Check the options, and return the work on one set of ratings."""
        names = tuple(file_name(SYSTEMS if systems is None else systems))
        if len(names) < 2:
            raise SettingError("a study compares orders of systems; give at least two")
        for name in names:
            recommender(name)  # raises an error for a misspelled one before any training
        grid = None if sizes is None else assessments.sizes_of(sizes)
        if grid == (1.0,):
            raise SettingError(
                "sizes=[1] leaves the test set whole; give a share below 1 as well, such as sizes=[1, 0.5]"
            )
        grades: NegativeGrades = negative_grades or "judged"
        work = MetricWork(
            self,
            data[0],
            self._splits(data[0], split, folds, seed),
            names,
            {name: tuple(own) if grid is None else grid for name, own in self.sizes.items()},
            _checks.whole("samples", _SAMPLES if samples is None else samples),
            threshold,
            assessments.rounded_to(_DECIMALS if decimals is None else decimals),
            seed,
            _checks.one_of("negative_grades", grades, get_args(NegativeGrades)),  # type: ignore[arg-type]
            None if jobs is None else _checks.whole("jobs", jobs),
            tuple(sentences(notes_on_negative_grades(split, grades))) if isinstance(split, Ratings) else (),
        )
        return work.results

    def _splits(self, data: Ratings, split: Ratings | Split | None, folds: int | None, seed: int) -> Sequence[Split]:
        """Return the splits of a study: the given one, those of the paper, or the given number of folds."""
        if split is not None:
            if folds not in (None, 1):
                raise SettingError(f"folds={folds} and a given split exclude each other; give one of them")
            return [split if isinstance(split, Split) else predefined(data, split, overlap="test")]
        count = self.folds if folds is None else _checks.whole("folds", folds)
        if count > 1:
            return k_fold(data, k=count, per_user=self.per_user, seed=seed)
        return [(per_user if self.per_user else random)(data, train=_TRAIN, seed=seed)]


@dataclass(frozen=True, eq=False)
class MetricWork:
    """A study on one set of ratings, fold by fold; only one fold is in memory at a time."""

    paper: MetricPaper
    data: Ratings
    splits: Sequence[Split]
    systems: tuple[str, ...]
    sizes: Mapping[str, tuple[float, ...]]
    samples: int  # per size in the random scenarios
    threshold: float
    decimals: int  # to which averages are rounded before systems are ordered
    seed: int
    negative_grades: NegativeGrades
    jobs: int | None
    notes: tuple[str, ...]

    def stated(self) -> dict[str, Any]:
        """Return all settings, as they are recorded."""
        sizes = {name: f"{len(own)} from {max(own):.0%} to {min(own):.0%}" for name, own in self.sizes.items()}
        return {
            "systems": list(self.systems),
            "lists": LENGTH,
            "candidates": CANDIDATES,
            "threshold": self.threshold,
            "negative_grades": self.negative_grades,
            "metrics": list(self.paper.metrics),
            "averages": list(self.paper.averages),
            "sizes": sizes,
            "samples": self.samples,
            "correlation": "tau-b",
            "decimals": self.decimals,
            "undefined": "zero",
            "significance": "permutation",
            "alpha": 0.05,
            "weights": None,
            "folds": len(self.splits),
            "seed": self.seed,
            "differs from the paper": differing(
                {"systems": self.systems == SYSTEMS, "samples": self.samples, "folds": len(self.splits),
                 "parameters of the systems": "defaults, or as given", "test": "exact permutations"},
                {"systems": True, "samples": _SAMPLES, "folds": self.paper.folds,
                 "parameters of the systems": "not published for all", "test": "100,000 drawn permutations"},
            ),
        }  # fmt: skip

    def results(self, files: StudyFiles) -> StudyResults:
        """Assess the metrics over all folds, and arrange the results as in the paper."""
        paper = self.paper
        scores, samples, whole = list[Artifact](), list[pl.DataFrame](), []
        for number, split in enumerate(self.splits, start=1):
            fold = _FoldWork(f"fold-{number}", split, self, files)
            scores.append(fold.scores())
            artifacts = [fold.samples(scenario, sizes) for scenario, sizes in self.sizes.items()]
            number_of = pl.lit(number, dtype=pl.Int64).alias("fold")
            samples += [read_parquet(artifact.path()).select(number_of, pl.all()) for artifact in artifacts]
            whole.append(np.array(artifacts[0].facts["whole"], dtype=np.float64))
        power, curves, by_fold = self._power(files, scores)
        notes = dict.fromkeys(str(Fact.read(note)) for artifact in scores for note in artifact.facts["notes"])
        stated = self.stated()
        assessment = assessments.Assessment(
            systems=self.systems,
            metrics=paper.metrics,
            averages=paper.averages,
            lower_is_better=tuple(Metric.of(metric).lower_is_better for metric in paper.metrics),
            samples=pl.concat(samples),
            whole=np.stack(whole),
            power=power,
            curves=curves,
            step=Step("replicate", stated, notes=tuple(notes)),
        )
        # The share of items in whole lists that have a test rating, over systems and folds.
        of_whole = [m for m, metric in enumerate(paper.metrics) if metric.endswith(f"@{LENGTH}")]
        unjudged = np.array([artifact.facts["unjudged"] for artifact in scores], dtype=np.float64)[:, :, of_whole]
        alike = assessments.ranking_alike(curves)
        judged = 1.0 - float(np.nanmean(unjudged))
        results = MetricResults(describe(self.data), assessment, judged, by_fold, alike)
        every = tuple(dict.fromkeys((*self.notes, *notes, *map(str, alike))))
        steps = {"split": self.splits[0].step}
        return StudyResults(paper.exhibits(results), paper.claims(results), stated, assessment, every, steps)

    def _power(self, files: StudyFiles, scores: Sequence[Artifact]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Return discriminative power and the p-value curves under the arithmetic mean, and the p-values by fold."""
        settings: dict[str, Any] = {"significance": "permutation", "folds": "average", "seed": self.seed}
        tested = [average for average in self.paper.averages if average in TESTED]

        def make(place: Path) -> Made:
            users = [split.train.user_ids for split in self.splits]
            by_fold = [encoding.read_scores(own.path(), own.facts, ids) for own, ids in zip(scores, users)]
            # The papers do not use the bootstrap.
            power = assessments.discriminative_power(by_fold, resamples=0, **settings)
            frames = {"power": power.frame(), "curves": power.curve(first=None)}
            average = pl.lit("mean").alias("average")
            named = {name: frame.select(average, pl.exclude("average")) for name, frame in frames.items()}
            each = [
                assessments.discriminative_power(by_fold, resamples=0, **{**settings, "folds": "each"}, average=mean)
                for mean in tested
            ]
            columns = ("metric", "fold", "system_a", "system_b", "p")
            named["by-fold"] = pl.concat(
                own.curve(first=None).select(pl.lit(mean).alias("average"), *columns) for mean, own in zip(tested, each)
            )
            return [write_table(frame, place / f"{name}.parquet") for name, frame in named.items()], {}

        made_of = {"scores": [measured.digest for measured in scores], **settings, "by fold": tested}
        artifact = files.store.artifact("power", made_of, make)
        files.publish({artifact: partial(_copied, artifact, "power")})
        by_name = {Path(file).stem: read_parquet(artifact.path(file)) for file in artifact.files}
        return by_name["power"], by_name["curves"], by_name["by-fold"]


class _FoldWork:
    """The artifacts of one split."""

    def __init__(self, place: str, split: Split, settings: MetricWork, files: StudyFiles) -> None:
        self._place, self._split, self._settings, self._files = place, split, settings, files
        self._ids = encoding.Vocabularies(split.train.user_ids, split.train.item_ids)
        self._data = {"train": split.train.fingerprint, "test": split.test.fingerprint}

    @cached_property
    def _made(self) -> dict[str, Artifact]:
        """The ranked lists of each system, as artifacts; missing ones are made, several in parallel."""
        names = {system: f"runs/{self._place}/{stem}" for system, stem in file_name(self._settings.systems).items()}
        made_of = {system: self._made_of(system) for system in names}
        store, settings = self._files.store, self._settings
        there = {system: store.kept(name, made_of[system]) for system, name in names.items()}
        wanted = [system for system, artifact in there.items() if artifact is None]
        if wanted:
            ranking = Ranking(candidates=CANDIDATES, length=LENGTH)
            with progress(f"Training, {self._place}", total=len(wanted), unit="systems") as bar:
                for done in timed_each(self._split, wanted, ranking=ranking, seed=settings.seed, jobs=settings.jobs):
                    system = wanted[done.place]
                    save = partial(_save_run, done.result)
                    there[system] = store.make(names[system], made_of[system], save, seconds=done.seconds)
                    bar.advance()
        runs = {system: artifact for system, artifact in there.items() if artifact is not None}
        self._files.publish({own: partial(self._export_run, system, own) for system, own in runs.items()})
        return runs

    def _export_run(self, system: str, artifact: Artifact, folder: Path) -> list[Path]:
        return [write_run(self._read_run(system, artifact), folder / f"{artifact.name}.parquet")]

    def _made_of(self, system: str) -> dict[str, Any]:
        return {
            **self._data,
            "system": system,
            "parameters": dict(vars(recommender(system, self._settings.seed))),
            "version": recommender(system).version,
            "n": LENGTH,
            "candidates": CANDIDATES,
            "seed": self._settings.seed,
        }

    def _read_run(self, system: str, artifact: Artifact) -> Run:
        return encoding.read_run(artifact.path(), system, self._ids, artifact.facts)

    @property
    def _measured_of(self) -> dict[str, Any]:
        return {
            **self._data,
            "runs": [[system, artifact.digest] for system, artifact in self._made.items()],
            "metrics": list(self._settings.paper.metrics),
            "threshold": self._settings.threshold,
            "negative_grades": self._settings.negative_grades,
        }

    @cached_property
    def _studied(self) -> assessments.Fold:
        """The systems on this test set, ready to be studied; lists are only read if something must be made of them."""
        settings = self._settings
        averages, decimals = tuple(map(Average.of, settings.paper.averages)), settings.decimals
        samples, seed = settings.samples, settings.seed
        sampling = assessments.Sampling(averages, decimals=decimals, samples=samples, seed=seed)
        measuring = Measuring(metrics=settings.paper.metrics, threshold=settings.threshold)
        runs = [self._read_run(system, artifact) for system, artifact in self._made.items()]
        return assessments.Fold(runs, self._split.test, measuring, sampling, negative_grades=settings.negative_grades)

    def scores(self) -> Artifact:
        """Measure the lists of all systems."""
        name = f"scores/{self._place}"

        def make(place: Path) -> Made:
            path, facts = encoding.save_scores(self._studied.scores, place / "scores.npz")
            return [path], facts

        def export(folder: Path) -> list[Path]:
            scores = encoding.read_scores(artifact.path(), artifact.facts, self._ids.users)
            return [write_table(encoding.scores_table(scores), folder / f"{name}.parquet")]

        artifact = self._files.store.artifact(name, self._measured_of, make)
        self._files.publish({artifact: export})
        return artifact

    def samples(self, scenario: str, sizes: Sequence[float]) -> Artifact:
        """Reduce the test set in one way, and measure how the order of the systems changes."""
        way, grid, store = assessments.SCENARIOS[scenario], {scenario: sizes}, self._files.store
        made_of = {
            **self._measured_of,
            "scenario": scenario,
            "averages": list(self._settings.paper.averages),
            "sizes": list(sizes),
            "samples": self._settings.samples,
            "decimals": self._settings.decimals,
            "seed": self._settings.seed,
        }

        def make(place: Path) -> Made:
            fold, parts = self._studied, assessments.Chunks(store.path / "samples" / self._place / "parts")
            total = fold.n_samples([way], grid)
            with progress(f"{self._place}, {way.title}", total=total, unit="test sets") as bar:
                frame = fold.study([way], grid, bar, parts)
            path = write_table(frame, place / f"{scenario}.parquet")
            return [path], {"whole": fold.whole.tolist()}

        artifact = store.artifact(f"samples/{self._place}/{scenario}", made_of, make)
        self._files.publish({artifact: partial(_copied, artifact, f"samples/{self._place}")})
        return artifact


def _save_run(run: Run, place: Path) -> Made:
    return [encoding.save_run(run, place / "run.parquet")], {"name": run.name, **encoding.run_facts(run)}


def _copied(artifact: Artifact, home: str, folder: Path) -> list[Path]:
    return [write_table(read_parquet(artifact.path(file)), folder / home / file) for file in artifact.files]
