"""Rating errors by rank, as in Aftab and Ramampiaro (2022): what is trained, ranked and measured on each split.

The lists of a model on a split are an artifact of the store, so an interrupted study continues with the next model. The
measurements of a split are a frame with one row per number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import CranfieldError, InputError
from cranfield._registry import parse
from cranfield._terminal import progress
from cranfield.assessments import SCENARIOS, Chunks, Fold, Sampling
from cranfield.comparisons import compare
from cranfield.data import Ratings, RatingScale
from cranfield.measures import Average, Measuring, Scores, measure
from cranfield.rankings import Ranking, Run, Serving, measured_ratings, timed_each
from cranfield.recommenders import displayed_name, recommender
from cranfield.splits import Split, random
from cranfield.store import Made, encoding
from cranfield.studies.frame.claims import Floats, Part
from cranfield.studies.frame.study import PanelNumbers, StudyFiles, StudyUnit, ValueRows, pair_errors

EXPLICIT, IMPLICIT = "explicit", "implicit"
VERSIONS = (EXPLICIT, IMPLICIT)
TRAIN, VALIDATION = 0.7, 0.1
"""The share of training ratings, and the share of these that is held out to calibrate scores."""
N = 10  # the cut-off, which the paper does not state; here the first ten rated items count

MAP, NDCG, SDCSE = "MAP", "NDCG", "SDCSE"
METRICS = {MAP: f"AP@{N}", NDCG: f"nDCG@{N}", SDCSE: f"SDCSE@{N}"}
"""The three metrics of the paper, as they are spelled here."""
ACCURACY = f"SDCSEacc@{N}"
ERRORS = {"DCSE": f"DCSE@{N}", "WDCSE": f"WDCSE@{N}", "RMSE": f"RMSE@{N}"}
SELLS = {
    "us-ds, half a step": f"PerfectSell@{N}",
    "us-ds, spread": f"PerfectSell(margin=spread)@{N}",
    "us": f"UpSell@{N}",
    "ds": f"DownSell@{N}",
}
OVERALL = {"ECE by rating": f"ECE@{N}", "ECE by rank": f"ECE(by=rank)@{N}", "RMSE, all items": "PooledRMSE"}
SIZES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)  # the shares of the test ratings that are kept in Figure 3
POPULAR = (1.0, 0.99, 0.98, 0.95, 0.9, 0.85, 0.8)
"""The shares of the test ratings that are kept when the most popular items are removed."""
HALF = 0.5

MF, BPR, NCF, LCNN = "MF", "BPR", "NCF", "LC-NN"
PAPER = (MF, BPR, NCF, LCNN)  # the models of the paper's tables

BPRMF, NCF_CONTEXT, LCNN_CONTEXT, MEAN = "BPR-MF", "NCF, context", "LC-NN, context", "item mean"

_ROLES = {"svd": MF, "bpr-triplet": BPR, "bprmf": BPRMF, "neumf": NCF, "lc-nn": LCNN, "average": MEAN}
"""The names of systems in this study."""

_SPELLED: Mapping[str, str] = {
    MF: "svd",
    BPR: "bpr-triplet",
    BPRMF: "bprmf(factors=50, epochs=100)",
    NCF: "neumf(target=rating)",
    NCF_CONTEXT: "neumf(target=rating, context={context})",
    LCNN: "lc-nn(target=rating)",
    LCNN_CONTEXT: "lc-nn(target=rating, context={context})",
    MEAN: "average",
}
_NEURAL = (BPR, NCF, NCF_CONTEXT, LCNN, LCNN_CONTEXT)


@dataclass(frozen=True)
class ErrorModels:
    """The models that are run, by their names in this study, and why others are not."""

    spelled: Mapping[str, str]
    absent: Mapping[str, str]


def models_for(data: Ratings, systems: Sequence[str] | None, seed: int, epochs: int | None = None) -> ErrorModels:
    """Return the models that can be run: those of the study, with ``epochs`` if neural, or the given systems."""
    if systems is not None:
        named = {_ROLES.get(parse(system).name, displayed_name(system)): system for system in systems}
        return ErrorModels({name: _seeded(system, seed) for name, system in named.items()}, {})
    known = {"users": data.user_features is not None, "items": data.item_features is not None}
    context = "both" if all(known.values()) else next((whose for whose, there in known.items() if there), None)
    trainable = all(find_spec(library) is not None for library in ("jax", "optax"))
    absent: dict[str, str] = {}
    for name in _SPELLED:
        if name in _NEURAL and not trainable:
            absent[name] = "the libraries of neural systems are missing; pip install 'cranfield[neural]'"
        elif name in (NCF_CONTEXT, LCNN_CONTEXT) and context is None:
            absent[name] = "the ratings come without columns of users or items"
    run = {name: system.format(context=context) for name, system in _SPELLED.items() if name not in absent}
    own = {name: {} if epochs is None or name not in _NEURAL else {"epochs": epochs} for name in run}
    return ErrorModels({name: _seeded(system, seed, **own[name]) for name, system in run.items()}, absent)


def _seeded(system: str, seed: int, **more: int) -> str:
    """Return a spelling with further parameters, and a seed if the system is randomised."""
    parsed = parse(system)
    drawn = hasattr(recommender(system), "seed") and "seed" not in dict(parsed.parameters)
    seeds = {"seed": seed} if drawn else {}
    return str(replace(parsed, parameters=(*parsed.parameters, *more.items(), *seeds.items())))


@dataclass(frozen=True, eq=False)
class ErrorWork:
    """The measurements on the splits of one set of ratings."""

    place: str  # the folder of this set of ratings in the store
    data: Ratings
    threshold: float  # the lowest rating that counts as liked: 1 in the implicit version, where lower ones are 0
    models: Mapping[int, ErrorModels]  # of each split, by its seed
    samples: int  # the number of samples of the test set per size in Figure 3

    @cached_property
    def implicit(self) -> Ratings:
        """The implicit version: liked or not, as 1 and 0."""
        return replace(self.data, values=(self.data.values >= self.threshold).astype(np.float32))

    def split(self, version: str, seed: int) -> Split:
        """Return the split of a version into 70 and 30 %; a tenth of the former is held out for validation."""
        data = self.data if version == EXPLICIT else self.implicit
        return random(data, train=TRAIN, validation=VALIDATION, seed=seed)

    def runs(self, files: StudyFiles, version: str, seed: int) -> tuple[list[Run], dict[str, float], dict[str, str]]:
        """Return the lists of the models that could be run, the time each took, and why others could not."""
        split, models, store = self.split(version, seed), self.models[seed], files.store
        keys = {name: self._made_of(version, seed, split, name) for name in models.spelled}
        kept = {name: store.kept(*key) for name, key in keys.items()}
        missing, failed = [name for name, artifact in kept.items() if artifact is None], {}
        with progress(f"Training, {self.place}, {version}", total=len(missing), unit="models") as bar:
            for name in missing:
                options: dict[str, Any] = {"serving": _TRAINED, "ranking": _RANKING, "seed": seed, "refit": False}
                options["checkpoints"] = {name: store.checkpoint(*keys[name])}
                try:
                    (done,) = timed_each(split, {name: models.spelled[name]}, **options)
                except CranfieldError as error:
                    failed[name] = str(error).removeprefix(f"{name}: ")
                else:
                    save = partial(_save, done.result, done.seconds)
                    kept[name] = store.make(*keys[name], save, seconds=done.seconds)
                bar.advance()
        there = {name: artifact for name, artifact in kept.items() if artifact is not None}
        if len(there) < 2:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in {**models.absent, **failed}.items())
            raise InputError(
                f"fewer than two models could be run on {self.data.name or 'the ratings'} ({reasons})",
                remedy="give more ratings, or other systems",
            )
        ids = encoding.Vocabularies(split.train.user_ids, split.train.item_ids)
        runs = [encoding.read_run(artifact.path(), name, ids, artifact.facts) for name, artifact in there.items()]
        return runs, {name: artifact.facts["seconds"] for name, artifact in there.items()}, failed

    def _made_of(self, version: str, seed: int, split: Split, name: str) -> tuple[str, dict[str, Any]]:
        stem, spelling = name.replace(", ", "-").replace(" ", "-"), self.models[seed].spelled[name]
        made_of = {
            "train": split.train.fingerprint,
            "validation": split.validation.fingerprint if split.validation is not None else None,
            "test": split.test.fingerprint,
            "features": _features(self.data),
            "system": spelling,
            "version": recommender(spelling).version,
            "seed": seed,
        }
        return f"runs/{self.place}/{version}/split-{seed}/{stem}", made_of

    def measure(self, files: StudyFiles, version: str, seed: int) -> ValueRows:
        """Measure all models on a split of a version."""
        runs, seconds, failed = self.runs(files, version, seed)
        split = self.split(version, seed)
        test = measured_ratings(split, _TRAINED)
        threshold = self.threshold if version == EXPLICIT else 1.0
        spelled = [*METRICS.values(), ACCURACY, *ERRORS.values(), *SELLS.values(), *OVERALL.values()]
        scores = measure(runs, test, spelled, threshold=threshold, train=split.train)
        rows = _averages(version, scores) + _pairs(version, scores)
        rows += _leads(version, {**METRICS, **ERRORS, **SELLS, "SDCSEacc": ACCURACY}, scores)
        rows += [("time", version, 0.0, "seconds", name, taken, None) for name, taken in seconds.items()]
        rows += [("failed", version, 0.0, reason, name, float("nan"), None) for name, reason in failed.items()]
        rows += _lists(version, runs, scores)
        if version == EXPLICIT:
            rows += self._levels(runs, test, split) + self._robustness(files, runs, test, split, seed)
        return rows

    def _levels(self, runs: Sequence[Run], test: Ratings, split: Split) -> ValueRows:
        """Measure the three metrics at the levels of relevance: Figure 4."""
        levels = RatingScale.of(test.grades, split.train.grades).levels
        rows: ValueRows = []
        for level, lowest in levels.items():
            names = {MAP: f"AP(rel={lowest:g})@{N}", NDCG: f"nDCG(rel={lowest:g})@{N}"}
            names[SDCSE] = f"SDCSEacc(rel={lowest:g})@{N}"
            scores = measure(list(runs), test, list(names.values()), threshold=self.threshold, train=split.train)
            values = _means(scores)
            rows += [
                ("level", level, lowest, name, system, float(values[s, m]), None)
                for m, name in enumerate(names)
                for s, system in enumerate(scores.systems)
            ]
            rows += _leads(level, names, scores)
        return rows

    def _robustness(self, files: StudyFiles, runs: Sequence[Run], test: Ratings, split: Split, seed: int) -> ValueRows:
        """Remove test ratings and measure how the order of the models changes: Figure 3."""
        ways = {"ratings": SIZES, "popular": POPULAR}
        sampling = Sampling((Average.of("mean"),), samples=self.samples, seed=seed)
        measuring = Measuring(metrics=tuple(METRICS.values()), threshold=self.threshold)
        fold = Fold(list(runs), test, measuring, sampling, train=split.train)
        chunks = Chunks(files.store.path / "samples" / self.place / f"split-{seed}")
        scenarios = [SCENARIOS[name] for name in ways]
        total = fold.n_samples(scenarios, ways)
        with progress(f"Taking ratings away, {self.place}", total=total, unit="test sets") as bar:
            frame = fold.study(scenarios, ways, bar, chunks)
        names = {spelling: name for name, spelling in METRICS.items()}
        taus = frame.group_by("scenario", "size", "metric", maintain_order=True).agg(pl.col("tau").drop_nans().mean())
        return [
            ("robust", scenario, size, names[metric], "", float("nan") if tau is None else tau, None)
            for scenario, size, metric, tau in taus.iter_rows()
        ]


_TRAINED = Serving(min_ratings=1)
_RANKING = Ranking(lists="condensed", length="all", calibration="isotonic")


def _features(data: Ratings) -> list[str | None]:
    return [None if part is None else part.fingerprint for part in (data.user_features, data.item_features)]


def _save(run: Run, seconds: float, place: Path) -> Made:
    return [encoding.save_run(run, place / "run.parquet")], {**encoding.run_facts(run), "seconds": seconds}


def _means(scores: Scores) -> Floats:
    """Return systems × metrics: means over the users whom every model serves, or metrics of a whole system."""
    return scores.average("mean", undefined="zero", coverage="reduced")


def _averages(version: str, scores: Scores) -> ValueRows:
    values = _means(scores)
    names = {spelling: name for part in (METRICS, ERRORS, SELLS, OVERALL) for name, spelling in part.items()}
    labels = [names.get(spelling, "SDCSEacc") for spelling in scores.metrics]
    shares = [label.startswith("us-ds") for label in labels]
    values[:, shares] = 1.0 - values[:, shares]
    return [
        ("average", version, 0.0, label, system, float(values[s, m]), None)
        for m, label in enumerate(labels)
        for s, system in enumerate(scores.systems)
    ]


def _pairs(version: str, scores: Scores) -> ValueRows:
    """Return difference and p of each pair of models, and for how many users SDCSE and DCSE prefer different ones."""
    names = {**METRICS, **ERRORS}
    decisions: dict[str, Any] = {"correction": "none", "coverage": "reduced", "undefined": "zero"}
    comparison = compare(scores, significance="permutation", metrics=list(names.values()), **decisions)
    spelled = {spelling: name for name, spelling in names.items()}
    columns = comparison.rows.select("metric", "system_a", "system_b", "difference", "p")
    rows: ValueRows = [
        ("pair", version, 0.0, spelled[metric], f"{a} | {b}", difference, p)
        for metric, a, b, difference, p in columns.iter_rows()
    ]
    standard, plain = (scores.values[:, scores.metric(names[name])] for name in (SDCSE, "DCSE"))
    for a, b in combinations(range(len(scores.systems)), 2):
        first, second = np.sign(standard[a] - standard[b]), np.sign(plain[a] - plain[b])
        both = np.nan_to_num(first * second) != 0
        share = float((first[both] != second[both]).mean()) if both.any() else float("nan")
        pair = f"{scores.systems[a]} | {scores.systems[b]}"
        rows.append(("opposite", version, 0.0, "SDCSE and DCSE", pair, share, None))
    return rows


def _leads(where: str, names: Mapping[str, str], scores: Scores) -> ValueRows:
    """Return the errors of differences over the users whom every model serves, in a version or at a level."""
    served = scores.of_lists(np.asarray(scores.covered.all(axis=0)))
    rows: ValueRows = []
    for name, spelling in names.items():
        rows += pair_errors(
            ("lead", where, 0.0), name, np.nan_to_num(served.values[:, served.metric(spelling)]), served
        )
    return rows


def _lists(version: str, runs: Sequence[Run], scores: Scores) -> ValueRows:
    """Return how many users are measured, and the share of their lists that hold a single rated item."""
    covered = scores.covered.all(axis=0)
    lengths = np.minimum.reduce([run.list_lengths.mean() for run in runs])
    single = float((scores.judged[covered] == 1).mean()) if covered.any() else float("nan")
    facts = {"users": float(covered.sum()), "lists of one rated item": single, "items per list": float(lengths)}
    return [("lists", version, 0.0, name, "", value, None) for name, value in facts.items()]


def units(files: StudyFiles, work: ErrorWork, seeds: Sequence[int]) -> list[StudyUnit]:
    """Return all measurements for a set of ratings."""
    measurements = []
    for seed in seeds:
        for version in VERSIONS:
            of = {
                "data": work.data.fingerprint,
                "features": _features(work.data),
                "version": version,
                "threshold": work.threshold,
                "models": dict(work.models[seed].spelled),
                "samples": work.samples if version == EXPLICIT else None,
                "errors": "over users",
                "seed": seed,
            }
            name, make = f"{work.place}/{version}/split-{seed}", partial(work.measure, files, version, seed)
            measurements.append(StudyUnit(name, of, make, len(work.models[seed].spelled)))
    return measurements


@dataclass(frozen=True, eq=False)
class ErrorNumbers(PanelNumbers[ErrorWork]):
    """The numbers of one set of ratings, looked up by metric and model; ``known`` is a column of the paper's tables."""

    same: bool  # whether they are the ratings of that column, judging by their numbers, or only similar

    @cached_property
    def models(self) -> list[str]:
        """The models that were run on every split, in the order of the study."""
        rows = self.frame.filter(part="average", setting=EXPLICIT, metric="RMSE")
        counts = rows.group_by("system", maintain_order=True).len()
        return counts.filter(pl.col("len") == rows["seed"].n_unique())["system"].to_list()

    @property
    def paper_models(self) -> list[str]:
        """Those among `models` that are in the paper's tables; all if there are fewer than two."""
        names = [name for name in PAPER if name in self.models]
        return names if len(names) > 1 else self.models

    def absent(self) -> dict[str, str]:
        """Return the models that were not run, each with the reason."""
        reasons = dict(next(iter(self.work.models.values())).absent)
        return reasons | dict(self.rows("failed").select("system", "metric").unique(maintain_order=True).iter_rows())

    def of(self, metric: str, system: str, version: str = EXPLICIT) -> Floats:
        """Return the average of a model by a metric, one value per split; empty if it was not run."""
        return self.series("average", setting=version, metric=metric, system=system)

    def mean(self, metric: str, system: str, version: str = EXPLICIT) -> float:
        """Return the mean of `of` over splits; NaN if it was not run."""
        values = self.of(metric, system, version)
        return float(values.mean()) if len(values) else float("nan")

    def above(self, metric: str, first: str, second: str, where: str = EXPLICIT) -> Part:
        """Return by how much the first of two models is above the second, at a level or in a version of the ratings."""
        version = where in VERSIONS
        both = [self.of(metric, m, where) if version else self.level(where, metric, m) for m in (first, second)]
        return self.margin(both, (first, second), "lead", setting=where, metric=metric)

    def level(self, level: str, metric: str, system: str) -> Floats:
        """Return the average of a model by a metric at a level of relevance, one value per split."""
        return self.series("level", setting=level, metric=metric, system=system)

    def pair(self, metric: str, names: Sequence[str]) -> pl.DataFrame:
        """Return the pairs of some models by a metric, with difference and p."""
        pairs = {f"{a} | {b}" for a, b in combinations(self.models, 2) if a in names and b in names}
        return self.rows("pair", setting=EXPLICIT, metric=metric).filter(pl.col("system").is_in(pairs))

    def power(self, metric: str) -> tuple[Floats, int]:
        """Return DP, the sum of a metric's p-values over pairs, for each split, and the number of pairs."""
        sums = self.pair(metric, self.paper_models).group_by("seed").agg(pl.col("p").sum(), pl.len()).sort("seed")
        return sums["p"].to_numpy(), int(sums["len"].max() or 0)  # type: ignore[arg-type]

    def tau(self, scenario: str, metric: str, size: float | None = None) -> Floats:
        """Return tau with the whole test set, for each split: at a size, or on average over sizes below 1."""
        rows = self.rows("robust", setting=scenario, metric=metric)
        rows = rows.filter(pl.col("x") == size) if size is not None else rows.filter(pl.col("x") < 1)
        return rows.group_by("seed").agg(pl.col("value").drop_nans().mean()).sort("seed")["value"].to_numpy()
