"""The folder of an experiment: `Results` reads it, `show` says what it contains, `clean` removes what is not used."""

from __future__ import annotations

import html
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from cranfield._errors import CranfieldError, InputError, SettingError, nearest
from cranfield._numbers import count_text, time_text
from cranfield._record import Step
from cranfield._settings import settings
from cranfield._table import Table, answer_and_table, html_paragraphs
from cranfield.across import DatasetComparison
from cranfield.assessments import Assessment
from cranfield.comparisons import SegmentComparison
from cranfield.data import Ratings
from cranfield.experiments import stages
from cranfield.experiments.decisions import Decisions
from cranfield.experiments.file import experiment_of
from cranfield.experiments.pipeline import Pipeline, Stage, T, Unit
from cranfield.experiments.several import over_datasets
from cranfield.experiments.stages import ORDER
from cranfield.experiments.stages.data import measured_test
from cranfield.experiments.stages.models import spelling_of
from cranfield.experiments.stages.results import Findings, facts_of_groups
from cranfield.experiments.tuned import how_tuned, repetition_facts, tuning_warnings
from cranfield.facts import Fact, sentences
from cranfield.facts import across as across_facts
from cranfield.facts import experiment as experiment_facts
from cranfield.judgments import Judged
from cranfield.measures import Segments
from cranfield.rankings import Calibration
from cranfield.store import HOME, Artifact, Store, check_folder, in_use, open_store, size_of


class Measured(NamedTuple):
    """What was measured together: the judged lists, the test ratings of the users served, and the training part."""

    judged: tuple[Judged, ...]
    test: Ratings
    train: Ratings
    window: str | None = None
    """When its time window starts, if there are several."""


class Results:
    """Results of the experiment that was last run in a folder that `run` made, read from that folder."""

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
        """Return the facts of the verdict on a set of ratings, how systems were tuned, and those on groups and metrics.

        ``str`` of a fact is its sentence.
        """
        source = self._source(data)
        by_group = facts_of_groups(self.segments(data)) if stages.SEGMENTS.wants(self.line, source) else []
        assessment = self.assessment(data)
        findings, took = self.findings(data), self.line.store.took()
        warned = [*tuning_warnings(self.line, source, took), *repetition_facts(self.line, source)]
        by_metric = [] if assessment is None else assessment.facts()
        return [*findings.facts, *warned, *by_group, *by_metric, *how_tuned(self.line, source)]

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

    def over_datasets(self, *others: Results, **options: Any) -> DatasetComparison:
        """Return one verdict over all sets of ratings, also those of other experiments.

        The options are those of `cranfield.compare_datasets`; averages, level, baseline and families are by default
        those of the experiments.
        """
        return over_datasets([self, *others], **options)

    @property
    def over_all(self) -> DatasetComparison | across_facts.NothingOverDatasets | None:
        """One verdict over all sets of ratings, or why there is none; None for one set, or one system."""
        if len(self.data) < 2 or len(self.experiment.systems) < 2:
            return None
        try:
            return self.over_datasets()
        except CranfieldError as error:
            return across_facts.NothingOverDatasets(str(error))

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

    @property
    def verdict(self) -> list[str]:
        """The verdict on every set of ratings, in their order; see `sentences`."""
        return [sentence for data in self.data for sentence in self.sentences(data)]

    def __str__(self) -> str:
        over_all = self.over_all
        return "\n\n".join([*([] if over_all is None else [str(over_all)]), *map(self._shown, self.data)])

    def _shown(self, data: str) -> str:
        """Return the answer on a set of ratings, a table and a few remarks."""
        answer, *remarks = self.facts(data)
        named = answer if len(self.data) == 1 else experiment_facts.OnData(data, answer)
        comparison = self.findings(data).comparison
        if comparison is None:
            return answer_and_table(named, self.findings(data).table(), remarks)
        table = comparison.table() if settings.details else comparison.overview()
        return answer_and_table(named, table, [*remarks, *table.notes])

    def __repr__(self) -> str:
        return f"Results({str(self.path)!r})"

    def _repr_html_(self) -> str:
        if not self.finished:
            return f"<p>{html.escape(repr(self))}: not finished</p>"
        return "".join(html_paragraphs(self.facts(data)[:1]) + self.findings(data).table().html() for data in self.data)


@dataclass(frozen=True, eq=False)
class Shown:
    """The contents of an experiment's folder; ``artifacts`` is what `frame` returns."""

    results: Results
    artifacts: pl.DataFrame

    def frame(self) -> pl.DataFrame:
        """Return one row per artifact: ``stage, artifact, files, bytes, stored, seconds, damaged``.

        ``files`` and ``bytes`` count the readable files; ``stored`` is the number of bytes in the store. ``seconds`` is
        null if the log does not say how long it took.
        """
        return self.artifacts

    def table(self) -> Table:
        """Return a readable table with one row per stage."""
        stages = self.artifacts.group_by("stage", maintain_order=True).agg(
            pl.len(), pl.col("bytes").sum(), pl.col("stored").sum(), pl.col("seconds").sum(), pl.col("damaged").sum()
        )
        rows = [
            [stage, f"{count:,}", bytes_text(size), bytes_text(stored), time_text(seconds), str(damaged or "–")]
            for stage, count, size, stored, seconds, damaged in stages.iter_rows()
        ]
        return Table(["stage", "artifacts", "files", "stored", "time", "damaged"], rows)

    def __str__(self) -> str:
        experiment = self.results.experiment
        if self.results.finished and len(self.results.data) == 1:
            experiment = replace(experiment, decisions=self.results.decided(*self.results.data))
        seed = f"seed {experiment.seed}, {count_text(experiment.repetitions, 'repetition')}"
        said = [experiment.title, str(experiment), seed, "", self.table().text(), ""]
        damaged = self.artifacts.filter("damaged")["artifact"].to_list()
        if damaged:
            said.append(f"missing or damaged: {', '.join(damaged)}; run the experiment again to make them again")
        if not self.results.finished:
            return "\n".join([*said, "not finished; run the experiment again to continue"])
        said.append("" if any(name.startswith(_IN_VERDICTS) for name in damaged) else str(self.results))
        missing = [] if "card" in damaged else self.results.missing()
        return "\n".join([*said, *([f"not reported: {'; '.join(missing)}"] if missing else [])]).rstrip()


def show(folder: str | Path) -> Shown:
    """Return what was run in a folder, its artifacts with sizes and times, and the verdict.

    Every file is compared with its checksum.

    Examples
    --------
    >>> import tempfile
    >>> from cranfield.experiments import Experiment, Source, run
    >>> folder = tempfile.mkdtemp()
    >>> _ = run(Experiment(data=(Source("tiny", simulate="world(users=60, items=40, ratings=900)"),)), folder)
    >>> found = show(folder)
    >>> found.frame()["stage"].unique(maintain_order=True).to_list()
    ['experiment', 'data', 'splits', 'models', 'runs', 'judged', 'scores', 'results', 'card']
    """
    results = Results(folder)
    store, exports = results.line.store, results.line.exports
    took, rows = store.took(), []
    for name, artifact in results.line.artifacts.items():
        files = [results.path / file for file in exports.files(name)]
        stored = size_of(artifact.path(file) for file in artifact.files)
        damaged = not store.whole(artifact) or exports.damaged(artifact)
        rows.append((name.split("/", 1)[0], name, len(files), size_of(files), stored, took.get(name), damaged))
    rows.sort(key=lambda row: ORDER.index(row[0]) if row[0] in ORDER else len(ORDER))
    return Shown(results, pl.DataFrame(rows, schema=_SCHEMA, orient="row"))


_IN_VERDICTS = ("data/", "scores/", "results/", "segments/", "assess/")

_SCHEMA = {
    **dict.fromkeys(("stage", "artifact"), pl.String),
    **dict.fromkeys(("files", "bytes", "stored"), pl.Int64),
    "seconds": pl.Float64,
    "damaged": pl.Boolean,
}


def bytes_text(count: int) -> str:
    """Return a number of bytes in readable units."""
    power = min((len(str(count)) - 1) // 3, 3)
    return f"{count} B" if power == 0 else f"{count / 1000**power:.1f} {('B', 'kB', 'MB', 'GB')[power]}"


_NOBODY = "no experiment"


@dataclass(frozen=True, eq=False)
class Spare:
    """The artifacts of a folder that the current experiment does not use, and whether they were removed."""

    artifacts: pl.DataFrame
    freed: bool

    def frame(self) -> pl.DataFrame:
        """Return one row per artifact: ``experiment, artifact, bytes``.

        ``experiment`` is the title of an earlier experiment in the folder that uses it; ``artifact`` is its name, or
        ``half made/`` and the beginning of its key.
        """
        return self.artifacts

    def table(self) -> Table:
        """Return a readable table with one row per experiment and stage."""
        stage = pl.col("artifact").str.split("/").list.first()
        summed = self.artifacts.group_by("experiment", stage.alias("stage"), maintain_order=True).agg(
            pl.len(), pl.col("bytes").sum()
        )
        rows = [[kind, stage, f"{count:,}", bytes_text(size)] for kind, stage, count, size in summed.iter_rows()]
        return Table(["experiment", "stage", "artifacts", "size"], rows)

    def __str__(self) -> str:
        if self.artifacts.is_empty():
            return "nothing to free: the current experiment uses everything"
        total = bytes_text(int(self.artifacts["bytes"].sum()))
        did = f"{total} were freed" if self.freed else f"{total} can be freed; free=True frees them"
        return f"{self.table().text()}\n\n{did}"


def clean(folder: str | Path, *, free: bool = False) -> Spare:
    """List the artifacts in a folder that the current experiment does not use, and remove them if ``free``.

    The current experiment is the one that was run last. Artifacts that it uses are never removed, nor are files that
    cranfield did not make or that were changed since. Half-made artifacts of a stopped run (folders of the store
    without a record) belong to no experiment; they are listed unless a run is active in the folder.

    Examples
    --------
    >>> import tempfile
    >>> from cranfield.experiments import Decisions, Experiment, Source, run
    >>> folder, tiny = tempfile.mkdtemp(), (Source("tiny", simulate="world(users=60, items=40, ratings=900)"),)
    >>> for threshold in (3, 4):
    ...     _ = run(Experiment(data=tiny, decisions=Decisions(metrics="P@10", threshold=threshold)), folder)
    >>> clean(folder, free=True).frame()["artifact"].to_list()
    ['experiment', 'scores/tiny', 'results/tiny', 'card']
    >>> print(clean(folder))
    nothing to free: the current experiment uses everything
    """
    path = Path(folder)
    if not (path / HOME).is_dir():
        raise InputError("it is not the folder of an experiment", source=path, remedy="name one that cranfield made")
    check_folder(path)
    if not free:
        return _spare(Store(path), free=False)
    with open_store(path) as store:
        return _spare(store, free=True)


def _spare(store: Store, *, free: bool) -> Spare:
    current = store.roots.current(sure=True)
    if current is None:
        raise InputError(
            "it does not say which experiment is the current one", source=store.path, remedy="run that one again"
        )
    earlier = [root for root in store.roots.all() if root != current]
    spare = {key: record for key, record in store.records().items() if key not in current.artifacts.values()}
    # With ``free`` this process holds the store. Otherwise a half-made artifact may be one that another run is writing.
    half_made = store.half_made() if free or not in_use(store.path) else {}
    # The experiment and the name of each artifact, grouped by experiment.
    named: dict[str, tuple[str, str]] = {}
    for root in earlier:
        for name, key in root.artifacts.items():
            if key in spare:
                named.setdefault(key, (root.title, name))
    named |= {key: (_NOBODY, record.name) for key, record in spare.items() if key not in named}
    rows = [(*named[key], size_of(spare[key].home / file for file in spare[key].files)) for key in named]
    rows += [(_NOBODY, f"half made/{key[:12]}", size) for key, size in half_made.items()]
    frame = pl.DataFrame(rows, schema={"experiment": pl.String, "artifact": pl.String, "bytes": pl.Int64}, orient="row")
    if free:
        # Roots go first: if this is interrupted, no root refers to missing artifacts, and a later run starts afresh.
        with store.writing():
            for root in earlier:
                store.roots.forget(root)
        for key in spare:
            store.free(key)
        for key in half_made:
            store.free_half_made(key)
        store.log(did="cleaned", artifacts=len(rows))
    return Spare(frame, free)
