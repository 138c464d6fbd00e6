"""`Results`: the folder of an experiment, read again."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from cranfield._errors import InputError, SettingError
from cranfield._spelling import nearest
from cranfield.experiment.experiment import Experiment
from cranfield.experiment.file import read_experiment
from cranfield.experiment.findings import Findings, findings
from cranfield.experiment.folder import HOME, Artifact, Folder, check_folder
from cranfield.experiment.stages import Line


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
        self.experiment: Experiment = read_experiment(self.path / "experiment.toml")
        self._findings = lru_cache(maxsize=None)(self._find)

    @property
    def data(self) -> tuple[str, ...]:
        """The names of the sets of ratings."""
        return tuple(source.name for source in self.experiment.data)

    @property
    def finished(self) -> bool:
        """Whether every stage was taken."""
        return "card" in self.records

    def sentences(self, data: str) -> list[str]:
        """Return the verdict on a set of ratings, a sentence a metric."""
        record = self.records.get(f"results/{self._known(data)}")
        if record is None:
            raise InputError("the experiment is not finished", source=self.path, remedy="run it again")
        return list(record["facts"]["sentences"])

    def averages(self) -> pl.DataFrame:
        """Return the averages: a row a set of ratings, repetition, fold, system and metric."""
        return self._frames("averages")

    def comparisons(self) -> pl.DataFrame:
        """Return the comparisons: a row a set of ratings, repetition, fold, metric and pair; empty for one system."""
        return self._frames("comparisons")

    def _frames(self, name: str) -> pl.DataFrame:
        files = [file for one in self.data for file in self._files(f"results/{one}") if file.stem == name
                 and file.suffix == ".parquet"]  # fmt: skip
        return pl.concat([pl.read_parquet(file) for file in files]) if files else pl.DataFrame()

    def _files(self, artifact: str) -> list[Path]:
        return [self.path / file for file in self.records.get(artifact, {"files": ()})["files"]]

    def findings(self, data: str) -> Findings:
        """Return averages and comparisons on a set of ratings as objects, with the scores behind them."""
        return self._findings(self._known(data))

    def _find(self, data: str) -> Findings:
        line = Line(self.experiment, self.folder)
        line.made = {name: Artifact(name, one["files"], one["facts"]) for name, one in self.records.items()}
        source = next(one for one in self.experiment.data if one.name == data)
        folds = [(part.repetition, part.fold, line.scores_of(part)) for part in line.parts(source)]
        return findings(data, folds, self.experiment.decisions, seed=self.experiment.seed)

    def card(self) -> dict[str, Any]:
        """Return the card."""
        if not self.finished:
            raise InputError("the experiment is not finished", source=self.path, remedy="run it again")
        told: dict[str, Any] = json.loads((self.path / "card.json").read_text(encoding="utf-8"))
        return told

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
