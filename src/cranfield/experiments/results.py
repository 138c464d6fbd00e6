"""`Results`: reads the folder of an experiment."""

from __future__ import annotations

import html
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from cranfield._errors import InputError, SettingError, nearest
from cranfield._record import Step
from cranfield.assessments import Assessment
from cranfield.comparisons import SegmentComparison
from cranfield.data import Ratings
from cranfield.experiments import stages
from cranfield.experiments.decisions import Decisions
from cranfield.experiments.file import experiment_of
from cranfield.experiments.pipeline import Pipeline, Stage, T, Unit
from cranfield.experiments.stages.data import measured_test
from cranfield.experiments.stages.models import spelling_of
from cranfield.experiments.stages.results import Findings, facts_of_groups
from cranfield.facts import Fact, html_paragraphs, sentences
from cranfield.facts import experiment as experiment_facts
from cranfield.judgments import Judged
from cranfield.measures import Segments
from cranfield.rankings import Calibration
from cranfield.store import HOME, Artifact, Store, check_folder


class Measured(NamedTuple):
    """What was measured together: the judged lists, the test ratings of the users served, and the training part."""

    judged: tuple[Judged, ...]
    test: Ratings
    train: Ratings
    window: str | None = None
    """When its time window starts, if there are several."""


class Results:
    """Results of the experiment that was last run in a folder, read from that folder.

    Parameters
    ----------
    path
        The folder that `run` made.
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        if not (path / HOME).is_dir():
            what, remedy = "it is not the folder of an experiment", "make one with: cranfield run"
            raise InputError(what, source=path, remedy=remedy)
        check_folder(path)
        store = Store(path)
        root = store.roots.current()
        if root is None:
            raise InputError("nothing has been made in it yet", source=path, remedy="run the experiment again")
        # The experiment as it was run, even if its file has changed since.
        experiment = experiment_of(tomllib.loads(root.text), base=path)
        line = Pipeline(experiment, store, (*stages.STAGES, stages.Report()))
        records = {name: store.find(key) for name, key in root.artifacts.items()}
        line.artifacts = {name: record.called(name) for name, record in records.items() if record is not None}
        self._set(line, root.finished and len(line.artifacts) == len(records))

    @classmethod
    def of(cls, line: Pipeline) -> Results:
        """Return the results of an experiment that has completed the stages up to the card."""
        results = cls.__new__(cls)
        results._set(line, finished=True)
        return results

    def _set(self, line: Pipeline, finished: bool) -> None:
        self.line, self.finished = line, finished
        self.path, self.experiment = line.store.path, line.experiment

    @property
    def data(self) -> tuple[str, ...]:
        """The names of the sets of ratings."""
        return tuple(source.name for source in self.experiment.data)

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The names of all artifacts of these results."""
        return tuple(self.line.artifacts)

    def decided(self, data: str) -> Decisions:
        """Return the decisions resolved for a set of ratings: the threshold ``auto`` becomes a number."""
        return stages.decided(self.line, self._source(data))

    def facts(self, data: str) -> list[Fact]:
        """Return the facts of the verdict on a set of ratings, then those of each group, then those about the metrics.

        ``str`` of a fact is its sentence.
        """
        source = self._source(data)
        by_group = facts_of_groups(self.segments(data)) if stages.SEGMENTS.wants(self.line, source) else []
        assessment = self.assessment(data)
        return [*self.findings(data).facts, *by_group, *([] if assessment is None else assessment.facts)]

    def sentences(self, data: str) -> list[str]:
        """Return the `facts` on a set of ratings in words."""
        return sentences(self.facts(data))

    def averages(self) -> pl.DataFrame:
        """Return the averages: one row per set of ratings, repetition, fold, system and metric."""
        return pl.concat([self.findings(data).averages for data in self.data])

    def comparisons(self) -> pl.DataFrame:
        """Return the comparisons: one row per data, repetition, fold, metric and pair; empty for one system."""
        frames = [self.findings(data).comparisons for data in self.data]
        return pl.concat([frame for frame in frames if frame.width] or [pl.DataFrame()])

    def _whole(self, stage: Stage[Any], unit: Unit) -> Artifact:
        """Return an artifact; raise an error if it is missing or damaged."""
        artifact = self.line.made(stage, unit)
        if not self.finished or artifact is None:
            raise InputError("the experiment is not finished", source=self.path, remedy="run it again")
        if not self.line.store.whole(artifact):
            what, remedy = f"{artifact.name} is missing or damaged", "run the experiment again"
            raise InputError(what, source=self.path, remedy=remedy)
        return artifact

    def _read(self, stage: Stage[T], unit: Unit) -> T:
        self._whole(stage, unit)
        return self.line.read(stage, unit)

    def findings(self, data: str) -> Findings:
        """Return averages and comparisons on a set of ratings as objects, with the underlying scores."""
        source = self._source(data)
        for part in self.line.units("part", source):
            self._whole(stages.SCORES, part)
        return self._read(stages.RESULTS, source)

    def segments(self, data: str) -> tuple[Segments | SegmentComparison, ...]:
        """Return the results by group on a set of ratings, one for each segment that the experiment names."""
        source = self._source(data)
        return self._read(stages.SEGMENTS, source) if stages.SEGMENTS.wants(self.line, source) else ()

    def assessment(self, data: str) -> Assessment | None:
        """Return the assessment of the metrics on a set of ratings; None if the experiment did not ask for it."""
        source = self._source(data)
        return self._read(stages.ASSESS, source) if stages.ASSESS.wants(self.line, source) else None

    def measured(self, data: str) -> Iterator[Measured]:
        """Yield the judged lists, the test part and the training part of each fold and repetition."""
        line, source = self.line, self._source(data)
        self._whole(stages.DATA, source)
        for part in line.units("part", source):
            self._whole(stages.SPLITS, part)
            self._whole(stages.SCORES, part)
            for cell in line.units("cell", part):
                self._whole(stages.JUDGED, cell)
                if stages.RUNS.wants(line, cell):
                    self._whole(stages.RUNS, cell)
            split = stages.split_of(line, part)
            window = split.step.effect["cut"] if line.decisions.has_windows else None
            yield Measured(tuple(stages.lists_of(line, part)), measured_test(line, part), split.train, window)

    def steps(self, data: str) -> list[tuple[str, Step]]:
        """Return the steps applied to a set of ratings before it was measured, by stage name."""
        line, source = self.line, self._source(data)
        part = line.units("part", source)[0]
        cells = line.units("cell", part)
        history = next(iter(self._whole(stages.DATA, source).facts["parts"].values()))["history"]
        done = [("data", Step.of(record)) for record in history]
        done.append(("split", stages.split_of(line, part).step))
        runs = {cell.system.name: run for cell in cells if (run := line.made(stages.RUNS, cell)) is not None}
        ranked = next((run.facts["history"] for run in runs.values()), ())
        done += [(step["action"], Step.of(step)) for step in ranked]
        for name, run in runs.items():
            if run.facts["calibration"]:
                done.append((f"calibration of {name}", Calibration.of(run.facts["calibration"]).step))
        systems = {
            cell.system.name: f"file {Path(str(cell.system.run)).name}"
            if cell.system.spelling is None
            else spelling_of(line, cell)
            for cell in cells
        }
        return [*done, ("systems", Step("recommend", {**systems, "seeds": list(self.experiment.seeds)}))]

    @property
    def pages(self) -> list[Path]:
        """The pages of the report, if there is one: one page per set of ratings, and the page of the audit."""
        return [self.path / file for file in self.line.exports.files("report") if file.endswith(".html")]

    def card(self) -> dict[str, Any]:
        """Return the card."""
        (whole,) = self.line.units("experiment")
        return self._read(stages.CARD, whole)

    def missing(self) -> list[str]:
        """Return what the paper asks authors to report but the card does not have."""
        return [item["asked"] for item in self.card()["checklist"] if item["reported"] is None]

    def _source(self, data: str) -> Unit:
        """Return a set of ratings by its name."""
        if data not in self.data:
            raise SettingError(f"there are no ratings {data!r} in {self.path}{nearest(data, self.data)}")
        return self.line.source(data)

    def __str__(self) -> str:
        said = {name: self.facts(name) for name in self.data}
        if len(said) == 1:
            return "\n".join(map(str, *said.values()))
        return "\n".join(str(experiment_facts.OnData(name, fact)) for name, facts in said.items() for fact in facts)

    def __repr__(self) -> str:
        return f"Results({str(self.path)!r})"

    def _repr_html_(self) -> str:
        if not self.finished:
            return f"<p>{html.escape(repr(self))}: not finished</p>"
        return "".join(html_paragraphs(self.facts(data)) + self.findings(data).table().html() for data in self.data)
