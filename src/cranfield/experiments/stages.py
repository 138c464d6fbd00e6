"""The stages of an experiment, each an artifact that calls the functions a user would call, in the same order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from cranfield import _checks as check
from cranfield._errors import SettingError
from cranfield._files import record_path
from cranfield._spelling import parse
from cranfield.data import Ratings, describe, filters, write
from cranfield.data.writing import write_table
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.folder import Artifact, Folder, Made
from cranfield.experiments.inputs import (
    divided,
    filtered,
    input_checksum,
    load,
    named,
    origin,
    together,
)
from cranfield.experiments.searching import search
from cranfield.experiments.source import Source
from cranfield.experiments.stored import (
    read_own_run,
    read_parts,
    read_scores,
    read_split,
    save_scores,
    step_of,
)
from cranfield.experiments.system import System
from cranfield.experiments.user_code import own_metrics, own_of
from cranfield.measures import Scores, measure
from cranfield.rankings import Run, read_run, write_run
from cranfield.rankings.recommending import timed_each
from cranfield.rankings.serving import served_test
from cranfield.recommenders import recommender
from cranfield.splits import Split, given
from cranfield.splits import registry as split_registry
from cranfield.splits import write as write_split


class Part:
    """One fold of one repetition on one set of ratings: what is trained and measured at once."""

    def __init__(self, source: Source, repetition: int, fold: int, line: Pipeline) -> None:
        self.source, self.repetition, self.fold = source, repetition, fold
        several = line.experiment.repetitions > 1
        self.split_place = f"{source.name}/repetition-{repetition + 1}" if several else source.name
        self.place = f"{self.split_place}/fold-{fold + 1}" if line.folds > 1 else self.split_place


class Pipeline:
    """An experiment on its way through the stages, with the artifacts made so far."""

    def __init__(self, experiment: Experiment, folder: Folder, jobs: int | None = None) -> None:
        self.experiment, self.folder, self.decisions, self.jobs = experiment, folder, experiment.decisions, jobs
        self.made: dict[str, Artifact] = {}
        self._last_split = lru_cache(maxsize=1)(self._read_split)
        self._last_data = lru_cache(maxsize=1)(self._read_data)

    @cached_property
    def folds(self) -> int:
        """How many folds the split makes."""
        spelling = parse(self.decisions.split)
        if spelling.name != "k_fold":
            return 1
        usual = next(one for one in map(parse, split_registry.signatures()) if one.name == "k_fold")
        with named(f"split='{spelling}'"):
            return check.whole("k", {**dict(usual.parameters), **dict(spelling.parameters)}["k"], at_least=2)

    def parts(self, source: Source) -> list[Part]:
        """Return every fold of every repetition on a set of ratings."""
        return [
            Part(source, repetition, fold, self)
            for repetition in range(self.experiment.repetitions)
            for fold in range(self.folds)
        ]

    @property
    def all_parts(self) -> Iterator[Part]:
        """Every part on every set of ratings."""
        return (part for source in self.experiment.data for part in self.parts(source))

    def seed(self, part: Part) -> int:
        """Return the seed of a part's repetition."""
        return self.experiment.seeds[part.repetition]

    def _artifact(self, name: str, made_of: Mapping[str, Any], make: Any) -> Artifact:
        self.made[name] = self.folder.artifact(name, made_of, make)
        return self.made[name]

    # data: A1

    def data(self, source: Source) -> Artifact:
        """Read and filter a set of ratings."""
        draws = any("seed" in _settings(filters.registry, one) for one in self.decisions.filters)
        made_of = {
            "source": origin(self.experiment, source, fetching=self.folder.makes),
            "overlap": self.decisions.overlap,
            "filters": list(self.decisions.filters),
            "own": own_of(filters.registry, self.decisions.filters),
            "seed": self.experiment.seed if draws else None,
        }
        return self._artifact(f"data/{source.name}", made_of, lambda: self._make_data(source))

    def _make_data(self, source: Source) -> Made:
        parts = {
            name: filtered(self.experiment, ratings)
            for name, ratings in load(self.experiment, source, self.decisions.overlap).items()
        }
        home = self.folder.path / "data" / source.name
        files = [write(ratings, home / f"{name}.parquet") for name, ratings in parts.items()]
        told = describe(together(list(parts.values()))).as_dict()
        facts = {
            "description": {key: value for key, value in told.items() if key not in ("name", "history")},
            "parts": {
                name: {
                    "fingerprint": ratings.fingerprint,
                    "ratings": len(ratings),
                    "history": [step.as_dict() for step in ratings.history],
                }
                for name, ratings in parts.items()
            },
        }
        return files, facts

    def _read_data(self, name: str) -> dict[str, Ratings]:
        artifact = self.made[f"data/{name}"]
        files = {Path(file).stem: self.folder.path / file for file in artifact.files}
        history = [step_of(one) for one in next(iter(artifact.facts["parts"].values()))["history"]]
        return read_parts(files, name, history)

    # split: A2

    def split(self, source: Source, repetition: int) -> Artifact:
        """Split a set of ratings once, into all folds."""
        part, method = Part(source, repetition, 0, self), self.decisions.split
        draws = self.decisions.overlap is None and "seed" in _settings(split_registry, method)
        made_of = {
            "data": self.made[f"data/{source.name}"].digest,
            "split": method,
            "own": [] if self.decisions.overlap is not None else own_of(split_registry, [method]),
            "seed": self.seed(part) if draws else None,
        }
        return self._artifact(f"splits/{part.split_place}", made_of, lambda: self._make_split(part))

    def _make_split(self, part: Part) -> Made:
        ratings = self._last_data(part.source.name)
        if self.decisions.overlap is not None:
            made: Any = given(ratings["train"], ratings["test"])
            fingerprint = None
        else:
            made = divided(self.experiment, ratings["ratings"], self.seed(part))
            fingerprint = ratings["ratings"].fingerprint
        home = self.folder.path / "splits" / part.split_place
        record = write_split(made, home, fingerprint=fingerprint, force=True)
        told = json.loads(record.read_text(encoding="utf-8"))
        parts = [record.parent / file for file in told["files"]]
        return [record, *parts, *map(record_path, parts)], {"splits": told["splits"]}

    def _read_split(self, source: str, split_place: str, fold: int) -> Split:
        whole = next(iter(self._last_data(source).values()))
        return read_split(self.folder.path / "splits" / split_place, whole, fold, self.folds)

    def split_of(self, part: Part) -> Split:
        """Return the split of a part."""
        return self._last_split(part.source.name, part.split_place, part.fold)

    # hyper-parameters

    def search(self, part: Part, system: System) -> Artifact:
        """Search the hyper-parameters of a system on a validation part; the test part is not looked at."""
        assert system.tuning is not None
        measuring = self.decisions.measuring()
        metric = system.tuning.metric or measuring["metrics"][0]
        made_of = {
            "split": self.made[f"splits/{part.split_place}"].digest,
            "fold": part.fold,
            "system": system.spelling,
            **system.tuning.as_dict(),
            "metric": metric,
            "own": own_metrics([metric]),
            "asked": {**self.decisions.recommending(), "threshold": measuring["threshold"]},
            "seed": self.seed(part),
        }
        return self._artifact(self.search_name(part, system), made_of, lambda: self._make_search(part, system, made_of))

    def search_name(self, part: Part, system: System) -> str:
        """Return the name of the search of a system's hyper-parameters."""
        return self.run_name(part, system).replace("runs/", "searches/", 1)

    def _make_search(self, part: Part, system: System, made_of: Mapping[str, Any]) -> Made:
        assert system.tuning is not None
        split, path = self.split_of(part), self.folder.path / f"{self.search_name(part, system)}.parquet"
        validation = "the validation part" if split.validation is not None else "a fifth of the training part"
        try:
            tried = search(
                split,
                str(system.spelling),
                system.tuning.space,
                made_of["metric"],
                trials=system.tuning.trials,
                record=self.folder.unfinished(made_of),
                seed=self.seed(part),
                **made_of["asked"],
            )
        except SettingError as error:
            raise SettingError(f"systems.{system.name}: searched on {validation}: {error}") from error
        facts = {
            "best": tried.best.system,
            "metric": tried.metric,
            "value": tried.best.value,
            "trials": len(tried.trials),
            "validation": validation,
        }
        return [write_table(tried.frame().drop("seconds"), path)], facts

    def spelling(self, part: Part, system: System) -> str:
        """Return a recommender as it is trained on a part: with what its search found best, if it has one."""
        found = self.made.get(self.search_name(part, system))
        return str(system.spelling if found is None else found.facts.get("best", system.spelling))

    def parameters(self, part: Part, system: System) -> dict[str, Any]:
        """Return all parameters of a recommender on a part, those left at their defaults too."""
        return dict(vars(recommender(self.spelling(part, system), self.seed(part))))

    def searches(self, part: Part) -> dict[str, Artifact]:
        """Return what was searched on a part, by the name of the system."""
        tuned = [one for one in self.experiment.systems if one.tuning is not None]
        return {one.name: self.made[self.search_name(part, one)] for one in tuned}

    # recommend and rank: B1, B2, C1

    def run_name(self, part: Part, system: System) -> str:
        """Return the name of a system's lists; `check_name` admits only what files may be called by."""
        return f"runs/{part.place}/{system.name.replace(' ', '')}"

    def runs(self, part: Part, advance: Callable[[], None] = lambda: None) -> None:
        """Train the systems and rank, several at a time; a file of ranked lists is taken as it is."""
        systems = {self.run_name(part, system): system for system in self.experiment.systems}
        made_of = {name: self._run_of_what(part, one) for name, one in systems.items() if one.run is None}
        there = {name: self.folder.kept(name, made_of[name]) for name in made_of}
        wanted = [name for name, artifact in there.items() if artifact is None]
        for _ in range(len(systems) - len(wanted)):
            advance()
        if wanted:
            spelled = {systems[name].name: made_of[name]["system"] for name in wanted}
            made = timed_each(
                self.split_of(part),
                spelled,
                serving=self.decisions.serving,
                ranking=self.decisions.ranking,
                seed=self.seed(part),
                jobs=self.jobs,
            )
            for done in made:
                name = wanted[done.place]
                save = partial(self._save_run, done.result, name)
                there[name] = self.folder.make(name, made_of[name], save, seconds=done.seconds)
                advance()
        # In the order of the file, whichever was done first.
        for name, system in systems.items():
            self.made[name] = there.get(name) or self._given_run(part, system)

    def _run_of_what(self, part: Part, system: System) -> dict[str, Any]:
        return {
            "split": self.made[f"splits/{part.split_place}"].digest,
            "fold": part.fold,
            "system": self.spelling(part, system),
            "parameters": self.parameters(part, system),
            "asked": self.decisions.recommending(),
            "seed": self.seed(part),
        }

    def _given_run(self, part: Part, system: System) -> Artifact:
        path = self.experiment.path(str(system.run_file(part.source.name)))
        return Artifact(self.run_name(part, system), {}, {"file": path.name, "sha256": input_checksum(path)})

    def _save_run(self, run: Run, name: str) -> Made:
        path = write_run(run, self.folder.path / f"{name}.parquet")
        own = [step.as_dict() for step in run.history if step.action in ("serve", "targets", "recommend")]
        return [path], {"lists": len(run), "counts": dict(run.counts), "history": own}

    def run_of(self, part: Part, system: System) -> Run:
        """Return the ranked lists of a system."""
        name = self.run_name(part, system)
        if system.run is not None:
            return read_run(self.experiment.path(str(system.run_file(part.source.name))), name=system.name)
        path = self.folder.path / f"{name}.parquet"
        return read_own_run(path, system.name, self.split_of(part), self.made[name].facts["counts"])

    # measure: C2

    def scores(self, part: Part) -> Artifact:
        """Measure the lists of all systems."""
        runs = [[one.name, self.made[self.run_name(part, one)].digest] for one in self.experiment.systems]
        made_of = {
            "split": self.made[f"splits/{part.split_place}"].digest,
            "fold": part.fold,
            "runs": runs,
            "measuring": self.decisions.measuring(),
            "own": own_metrics(self.decisions.metrics),
            "served": self._serving(part),
        }
        return self._artifact(f"scores/{part.place}", made_of, lambda: self._make_scores(part))

    def _make_scores(self, part: Part) -> Made:
        split, test = self.split_of(part), self.measured_test(part)
        runs = [self.run_of(part, system) for system in self.experiment.systems]
        scores = measure(runs, test, train=split.train, **self.decisions.measuring())
        path, facts = save_scores(scores, self.folder.path / "scores" / f"{part.place}.parquet")
        removed = np.count_nonzero(split.test.user_counts) - np.count_nonzero(test.user_counts)
        return [path], {**facts, "removed_test_users": int(removed)}

    def _serving(self, part: Part) -> dict[str, Any]:
        serving = self.decisions.serving
        return {**serving.as_dict(), "seed": None if serving.sample == "all" else self.seed(part)}

    def check_served(self) -> None:
        """Refuse an experiment that leaves nobody to measure in some part, before anything is trained."""
        known = self.folder.records()
        for part in self.all_parts:
            split = self.made[f"splits/{part.split_place}"]
            asked = {"split": split.digest, "fold": part.fold, "served": self._serving(part)}
            before = known.get(f"scores/{part.place}", {"made_of": {}})["made_of"]
            # A split that is yet to be made has no files, and who was measured before can be again.
            if split.files and any(before.get(name) != value for name, value in asked.items()):
                self.measured_test(part)

    def measured_test(self, part: Part) -> Ratings:
        """Return the test ratings of the users who are served: B1 removes the others from the experiment."""
        with named("min_ratings, sample"):
            return served_test(self.split_of(part), self.decisions.serving, self.seed(part))

    def scores_of(self, part: Part) -> Scores:
        """Return the scores of a part."""
        artifact = self.made[f"scores/{part.place}"]
        return read_scores(self.folder.path / next(iter(artifact.files)), artifact.facts)


def _settings(registry: Any, spelling: str) -> tuple[str, ...]:
    """Return the settings that a spelled function has."""
    name = parse(spelling).name
    return next(
        tuple(key for key, _ in one.parameters) for one in map(parse, registry.signatures()) if one.name == name
    )
