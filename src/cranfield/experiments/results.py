"""`Results`: the folder of an experiment, read again."""

from __future__ import annotations

import html
import json
import tomllib
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from cranfield._errors import InputError, SettingError
from cranfield._polars import read_parquet
from cranfield._record import Step
from cranfield._spelling import nearest
from cranfield.assessments import Assessment
from cranfield.data import Ratings
from cranfield.experiments.assessing import read_assessment
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.file import experiment_of
from cranfield.experiments.findings import Findings, findings
from cranfield.experiments.folder import HOME, Artifact, Folder, check_folder
from cranfield.experiments.source import Source
from cranfield.experiments.stages import Pipeline
from cranfield.experiments.stored import step_of
from cranfield.experiments.system import System
from cranfield.rankings import Run


class Measured(NamedTuple):
    """What was measured at once: the ranked lists, the test ratings of the users served, and the training part."""

    runs: tuple[Run, ...]
    test: Ratings
    train: Ratings


class Results:
    """What an experiment found, read from its folder.

    Parameters
    ----------
    path
        The folder that `run` made.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / HOME).is_dir():
            raise InputError(
                "it is not the folder of an experiment", source=path, remedy="make one with: cranfield run"
            )
        check_folder(self.path)
        self.folder = Folder(self.path)
        self.records = self.folder.records()
        if "experiment" not in self.records:
            raise InputError("nothing has been made in it yet", source=path, remedy="run the experiment again")
        # As it was run, whatever has become of the file since.
        stated = tomllib.loads(self.records["experiment"]["made_of"]["text"])
        self.experiment: Experiment = experiment_of(stated, base=self.path)
        self._findings = lru_cache(maxsize=None)(self._find)

    @property
    def data(self) -> tuple[str, ...]:
        """The names of the sets of ratings."""
        return tuple(source.name for source in self.experiment.data)

    @cached_property
    def finished(self) -> bool:
        """Whether every stage was taken, and none is left from another experiment that was run here before."""
        if "card" not in self.records:
            return False
        made: dict[str, str] = self.records["card"]["made_of"]["made"]
        # Ranked lists that come from files are no artifacts, and have no record.
        there = {name: self._recorded(name).digest for name in made if name in self.records}
        return all(
            there.get(name, digest if name.startswith("runs/") else None) == digest for name, digest in made.items()
        )

    def _recorded(self, name: str) -> Artifact:
        return Artifact(name, self.records[name]["files"], self.records[name]["facts"])

    def sentences(self, data: str) -> list[str]:
        """Return the verdict on a set of ratings, a sentence a metric; then what was found out about the metrics."""
        said = list(self._artifact(f"results/{self._known(data)}").facts["sentences"])
        if self.experiment.assess is not None:
            said += self._artifact(f"assess/{data}").facts["sentences"]
        return said

    def averages(self) -> pl.DataFrame:
        """Return the averages: a row a set of ratings, repetition, fold, system and metric."""
        return self._frames("averages")

    def comparisons(self) -> pl.DataFrame:
        """Return the comparisons: a row a set of ratings, repetition, fold, metric and pair; empty for one system."""
        return self._frames("comparisons")

    def _frames(self, name: str) -> pl.DataFrame:
        found = (self._artifact(f"results/{one}").files for one in self.data)
        files = [file for one in found for file in one if file.endswith(f"/{name}.parquet")]
        return pl.concat([read_parquet(self.path / file) for file in files]) if files else pl.DataFrame()

    def _artifact(self, name: str) -> Artifact:
        """Return an artifact that is there and whole, or say that it is not."""
        if not self.finished or name not in self.records:
            raise InputError("the experiment is not finished", source=self.path, remedy="run it again")
        found = self._recorded(name)
        if not self.folder.whole(found):
            raise InputError(f"{name} is missing or damaged", source=self.path, remedy="run the experiment again")
        return found

    def findings(self, data: str) -> Findings:
        """Return averages and comparisons on a set of ratings as objects, with the scores behind them."""
        return self._findings(self._known(data))

    def assessment(self, data: str) -> Assessment | None:
        """Return what was found out about the metrics on a set of ratings; None if the experiment did not ask."""
        if self.experiment.assess is None:
            return None
        return read_assessment(self.path, self._artifact(f"assess/{self._known(data)}"))

    def _line(self) -> Pipeline:
        line = Pipeline(self.experiment, self.folder)
        line.made = {name: self._recorded(name) for name in self.records}
        return line

    def _find(self, data: str) -> Findings:
        line = self._line()
        source = self._source(data)
        for part in line.parts(source):
            self._artifact(f"scores/{part.place}")
        folds = [(part.repetition, part.fold, line.scores_of(part)) for part in line.parts(source)]
        return findings(data, folds, self.experiment.decisions, seed=self.experiment.seed)

    def measured(self, data: str) -> Iterator[Measured]:
        """Give the ranked lists, the test part and the training part of each fold and repetition."""
        line = self._line()
        source = self._source(data)
        self._artifact(f"data/{data}")
        for part in line.parts(source):
            for name in (f"splits/{part.split_place}", *(line.run_name(part, one) for one in self._trained)):
                self._artifact(name)
            runs = tuple(line.run_of(part, system) for system in self.experiment.systems)
            yield Measured(runs, line.measured_test(part), line.split_of(part).train)

    def steps(self, data: str) -> list[tuple[str, Step]]:
        """Return what was done to a set of ratings before it was measured, by the name of the stage."""
        line = self._line()
        source = self._source(data)
        part = line.parts(source)[0]
        told = next(iter(self.records[f"data/{data}"]["facts"]["parts"].values()))["history"]
        done = [("data", step_of(one)) for one in told]
        done.append(("split", line.split_of(part).step))
        asked = {system.name: line.made.get(line.run_name(part, system)) for system in self.experiment.systems}
        ranked = [one.facts["history"] for one in asked.values() if one is not None]
        done += [
            (step["action"], step_of(step)) for step in (ranked[0] if ranked else ()) if step["action"] != "recommend"
        ]
        systems = {
            one.name: f"file {Path(str(one.run)).name}" if one.spelling is None else line.spelling(part, one)
            for one in self.experiment.systems
        }
        return [*done, ("systems", Step("recommend", {**systems, "seeds": list(self.experiment.seeds)}))]

    @property
    def _trained(self) -> list[System]:
        return [system for system in self.experiment.systems if system.run is None]

    @property
    def pages(self) -> list[Path]:
        """The pages of the report, one for each set of ratings, if there is one."""
        files = self.records.get("report", {"files": ()})["files"]
        return [self.path / file for file in files if file.endswith(".html")]

    def card(self) -> dict[str, Any]:
        """Return the card."""
        self._artifact("card")
        told: dict[str, Any] = json.loads((self.path / "card.json").read_text(encoding="utf-8"))
        return told

    def missing(self) -> list[str]:
        """Return what the paper asks authors to report and the card does not have."""
        return [item["asked"] for item in self.card()["checklist"] if item["reported"] is None]

    def _source(self, data: str) -> Source:
        """Return where a set of ratings comes from."""
        return self.experiment.data[self.data.index(self._known(data))]

    def _known(self, data: str) -> str:
        if data not in self.data:
            raise SettingError(f"there are no ratings {data!r} in {self.path}{nearest(data, self.data)}")
        return data

    def __str__(self) -> str:
        several = len(self.data) > 1
        return "\n".join(
            f"{one}: {sentence}" if several else sentence for one in self.data for sentence in self.sentences(one)
        )

    def __repr__(self) -> str:
        return f"Results({str(self.path)!r})"

    def _repr_html_(self) -> str:
        if not self.finished:
            return f"<p>{html.escape(repr(self))}: not finished</p>"
        parts = []
        for data in self.data:
            said = "".join(f"<p>{html.escape(one)}</p>" for one in self.sentences(data))
            parts.append(said + self.findings(data).table(self.experiment.decisions).html())
        return "".join(parts)
