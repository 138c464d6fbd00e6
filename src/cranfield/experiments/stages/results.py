"""The stages `results`, `segments` and `assess`: averages, comparisons, by group too, and which metric to trust."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._files import write_text
from cranfield._polars import read_parquet
from cranfield._record import Step
from cranfield._settings import settings
from cranfield._table import Table, latex_text
from cranfield.assessments import Assessment
from cranfield.comparisons import (
    CORRECTIONS,
    SIGNIFICANCE_TESTS,
    Comparison,
    SegmentComparison,
    compare_scores,
    compare_segments,
    tested_average,
    window_leads,
)
from cranfield.experiments.decisions import IN_TABLES, Decisions
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.inputs import (
    input_checksum,
    keep_weights,
    own_metrics,
    own_of,
    segment_data,
    user_weights,
    weights_checksum,
)
from cranfield.experiments.pipeline import OUT, Pipeline, Size, Stage, Unit
from cranfield.experiments.stages.data import (
    SPLITS,
    decided,
    has_same_splits,
    list_vocabularies,
    measured_test,
    split_of,
)
from cranfield.experiments.stages.lists import JUDGED, SCORES, lists_of
from cranfield.experiments.stages.models import parameters_of
from cranfield.facts import Fact, sentences
from cranfield.facts import experiment as experiment_facts
from cranfield.judgments import Context, as_judged
from cranfield.measures import Averaging, Scores, Segmenting, Segments, by_session, file_and_column, join_folds
from cranfield.store import Made, encoding
from cranfield.tables import write_table


@dataclass(frozen=True, eq=False)
class Findings:
    """The averages and comparisons on a set of ratings.

    In the tidy frames ``repetition`` and ``fold`` are null in rows for all folds together.
    """

    data: str
    scores: Scores  # all folds and repetitions together; a user's values are averaged over them
    comparison: Comparison | None  # of these scores; None for a single system, or if no metric has a value per user
    averages: pl.DataFrame
    comparisons: pl.DataFrame
    averaging: Averaging

    @cached_property
    def facts(self) -> list[Fact]:
        """The facts of the verdict, one per metric, and how stable the winner is over time windows."""
        if self.comparison is not None:
            return [*self.comparison.facts(), *window_leads(self.scores, self.averaging)]
        rows = self.averages.filter(pl.col("fold").is_null()).select("metric", "system", pl.col("mean").fill_nan(None))
        why = self.scores.nothing_relevant
        return [
            experiment_facts.UntestedAverage(metric, system, mean, nothing_relevant=why)
            for metric, system, mean in rows.iter_rows()
        ]

    def table(self) -> Table:
        """Return the averages as a readable table, with what is significant."""
        table = self.scores.table(self.averaging)
        return table if self.comparison is None else self.comparison.marked(table)

    def write(self, folder: Path, decisions: Decisions, labels: Mapping[str, str]) -> list[Path]:
        """Write the frames, the tables, the verdict and a paragraph for a paper; return the files."""
        home, tables = folder / "results" / self.data, folder / "tables"
        table, words = self.table(), decisions.words(IN_TABLES, labels)
        frames = {"averages": self.averages}
        texts = {"averages.tex": table.titled(self.data, "averages", words).latex(), "averages.md": table.markdown()}
        if self.comparison is not None:
            frames["comparisons"] = self.comparisons
            words = ", ".join(filter(None, (words, f"{decisions.lists} lists")))
            texts["comparisons.tex"] = self.comparison.differences().titled(self.data, "comparisons", words).latex()
            if self.comparison.paragraph is not None:
                texts["paragraph.tex"] = latex_text(str(self.comparison.paragraph))
        paths = _write_frames(frames, home, tables, self.data)
        paths += [_write(tables / f"{self.data}-{name}", text) for name, text in texts.items()]
        return [*paths, _write(home / "results.json", json.dumps(self.as_dict(), indent=1, ensure_ascii=False))]

    def as_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON (NaN becomes null)."""
        notes = [*sentences(self.scores.notes), *(self.comparison.notes if self.comparison else ())]
        return {
            "data": self.data,
            "sentences": sentences(self.facts),
            "averages": _rows(self.averages),
            "comparisons": _rows(self.comparisons),
            "notes": list(dict.fromkeys(notes)),
        }


def _findings(line: Pipeline, unit: Unit) -> Findings:
    """Average and compare scores, for each fold and for all folds together."""
    decisions, data, seed, parts = line.decisions, unit.source.name, line.experiment.seed, line.units("part", unit)
    weights = user_weights(line.experiment)
    folds = [replace(_scores_of(line, part), user_columns=weights) for part in parts]
    whole = join_folds(folds, [part.repetition for part in parts])
    whole.check_measured()
    cases: list[tuple[int | None, int | None, Scores]] = [(None, None, whole)]
    if len(parts) > 1:
        cases += [(part.repetition + 1, part.fold + 1, scores) for part, scores in zip(parts, folds)]
    # Only the verdict on all folds together is put into words.
    compared = [_compared(scores, decisions, seed, in_words=scores is whole) for _, _, scores in cases]
    main = None if compared[0] is None else _stated(line, unit, compared[0])
    averages = [_labelled(scores.frame(decisions.averaging), data, r, f) for r, f, scores in cases]
    comparisons = [
        _labelled(comparison.rows, data, r, f)
        for (r, f, _), comparison in zip(cases, compared)
        if comparison is not None
    ]
    tables = pl.concat(averages), pl.concat(comparisons or [pl.DataFrame()])
    return Findings(data, whole, main, *tables, decisions.averaging)


def _scores_of(line: Pipeline, part: Unit) -> Scores:
    """Return the scores of a part, by session if each of its beginnings has a list."""
    record = line.artifact(SPLITS, part).facts["splits"][part.fold]["split"]
    return by_session(line.read(SCORES, part), Step.of(record))


def _stated(line: Pipeline, unit: Unit, comparison: Comparison) -> Comparison:
    """Return a comparison with what it cannot know: what was trained once, and whether all splits are the same."""
    return replace(comparison, trained_once=_trained_once(line, unit), same_split=has_same_splits(line, unit))


def _compared(scores: Scores, decisions: Decisions, seed: int, *, in_words: bool) -> Comparison | None:
    if len(scores.systems) < 2 or not np.isfinite(scores.values).any():
        return None
    scores.check_measured()
    comparing = decisions.comparing
    averaging = tested_average(comparing.significance, decisions.tested)
    comparison = compare_scores(scores, comparing, averaging, seed=seed, among_served=in_words)
    is_shown = decisions.tested == decisions.averaging
    return comparison if is_shown else replace(comparison, beside=str(decisions.averaging.average))


def _labelled(frame: pl.DataFrame, data: str, repetition: int | None, fold: int | None) -> pl.DataFrame:
    labels = [
        pl.lit(data).alias("data"),
        pl.lit(repetition, dtype=pl.Int64).alias("repetition"),
        pl.lit(fold, dtype=pl.Int64).alias("fold"),
    ]
    return frame.select(*labels, pl.all())


def _rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return frame.with_columns(pl.selectors.float().fill_nan(None)).to_dicts() if frame.width else []


def _write(path: Path, text: str) -> Path:
    return write_text(path, text.rstrip("\n") + "\n")


def _write_frames(frames: Mapping[str, pl.DataFrame], home: Path, tables: Path, data: str) -> list[Path]:
    """Write each frame as Parquet, and as CSV among the tables."""
    paths = [write_table(frame, home / f"{name}.parquet") for name, frame in frames.items()]
    return paths + [write_table(frame, tables / f"{data}-{name}.csv") for name, frame in frames.items()]


_COMPARISON = "comparison.parquet"


class _Results(Stage[Findings]):
    name, title, level = "results", "Comparing", "source"
    exported, version = True, 13

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        decisions = line.decisions
        return {
            "data": unit.source.name,
            "phrase": line.decisions.words(labels=line.experiment.labels),
            "scores": [line.artifact(SCORES, part).digest for part in line.units("part", unit)],
            "averaging": decisions.averaging.as_dict(),
            "weights": weights_checksum(line.experiment),
            "comparing": decisions.comparing.as_dict(),
            "own": [
                *own_of(SIGNIFICANCE_TESTS, [decisions.significance]),
                *own_of(CORRECTIONS, [decisions.correction]),
            ],
            "once": list(_trained_once(line, unit)),
            **({"same split": True} if has_same_splits(line, unit) else {}),
            "seed": line.experiment.seed,
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        result = _findings(line, unit)
        paths = [
            *result.write(place / OUT, line.decisions, line.experiment.labels),
            *keep_weights(line.experiment, place),
        ]
        if result.comparison is None:
            return paths, {"comparison": None}
        files, compared = encoding.save_comparison(result.comparison, place / _COMPARISON)
        return [*paths, *files], {"comparison": compared}

    def read(self, line: Pipeline, unit: Unit) -> Findings:
        artifact, parts = line.artifact(self, unit), line.units("part", unit)
        home = artifact.path(f"{OUT}/results/{unit.source.name}")
        compared = artifact.facts["comparison"]
        scores = join_folds([_scores_of(line, part) for part in parts], [part.repetition for part in parts])
        return Findings(
            unit.source.name,
            replace(scores, user_columns=user_weights(line.experiment, artifact.home)),
            None if compared is None else encoding.read_comparison(artifact.path(_COMPARISON), compared),
            read_parquet(home / "averages.parquet"),
            pl.DataFrame() if compared is None else read_parquet(home / "comparisons.parquet"),
            line.decisions.averaging,
        )


def _trained_once(line: Pipeline, unit: Unit) -> tuple[str, ...]:
    """Return the randomised systems, unless they are trained with several seeds."""
    if line.experiment.repetitions > 1:
        return ()
    cells = line.units("cell", line.units("part", unit)[0])
    return tuple(cell.system.name for cell in cells if cell.system.run is None and "seed" in parameters_of(line, cell))


RESULTS = _Results()


SegmentResults = tuple[Segments | SegmentComparison, ...]


class _Segments(Stage[SegmentResults]):
    name, title, level = "segments", "Comparing groups", "source"
    exported, version = True, 13

    def wants(self, line: Pipeline, unit: Unit) -> bool:  # noqa: ARG002
        return bool(line.decisions.segment or line.decisions.apart)

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        decisions, parts = decided(line, unit), line.units("part", unit)
        return {
            "data": unit.source.name,
            "splits": [line.artifact(SPLITS, part).digest for part in parts],
            "judged": [line.artifact(JUDGED, cell).digest for cell in line.units("cell", unit)],
            "scores": [line.artifact(SCORES, part).digest for part in parts],
            "segments": {text: _file(line, unit, text) for text in named_segments(line, unit)},
            "measuring": decisions.measuring.as_dict(),
            "own": own_metrics(decisions.metrics, line.experiment),
            "averaging": decisions.averaging.as_dict(),
            "weights": weights_checksum(line.experiment),
            "comparing": decisions.comparing.as_dict(),
            "seed": line.experiment.seed,
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        results = self._results(line, unit)
        home, tables = place / OUT / "results" / unit.source.name, place / OUT / "tables"
        averaging = line.decisions.averaging
        if not results:
            return [], {"segments": []}
        frames = {"segments": pl.concat(segment.averaged.frame(averaging) for segment in results)}
        compared = [segment for segment in results if isinstance(segment, SegmentComparison)]
        if compared:
            frames["segment-comparisons"] = pl.concat(segment.frame(detail=True) for segment in compared)
            frames["segment-interactions"] = pl.concat(
                segment.interactions.select(pl.lit(segment.segments.name).alias("segment"), pl.all())
                for segment in compared
            )
        paths = _write_frames(frames, home, tables, unit.source.name)
        shown = [segment.averaged.table(averaging) for segment in results]
        words = line.decisions.words(IN_TABLES, line.experiment.labels)
        printed = [
            (segment.summary() if isinstance(segment, SegmentComparison) else table).titled(
                unit.source.name, f"segments {k}", words
            )
            for k, (segment, table) in enumerate(zip(results, shown), start=1)
        ]
        texts = {"tex": [table.latex() for table in printed], "md": [table.markdown() for table in shown]}
        for ending, several in texts.items():
            text = "\n\n".join(text.rstrip("\n") for text in several)
            paths.append(_write(tables / f"{unit.source.name}-segments.{ending}", text))
        kept = [encoding.save_segments(segment, place, f"{k}") for k, segment in enumerate(results)]
        paths += [path for files, _ in kept for path in files] + keep_weights(line.experiment, place)
        return paths, {"segments": [facts for _, facts in kept]}

    def read(self, line: Pipeline, unit: Unit) -> SegmentResults:
        artifact, users = line.artifact(self, unit), list_vocabularies(line, unit).users
        assert artifact.home is not None
        weights = user_weights(line.experiment, artifact.home)
        return tuple(
            encoding.read_segments(artifact.home, f"{k}", facts, users, weights)
            for k, facts in enumerate(artifact.facts["segments"])
        )

    def _results(self, line: Pipeline, unit: Unit) -> SegmentResults:
        segments = [self._segments(line, unit, text) for text in named_segments(line, unit)]
        if len(line.experiment.systems) < 2:
            return tuple(segments)
        options = {**line.decisions.comparing.as_dict(), **line.decisions.tested.as_dict()}
        return tuple(compare_segments(segment, seed=line.experiment.seed, **options) for segment in segments)

    def _segments(self, line: Pipeline, unit: Unit, text: str) -> Segments:
        """Return the scores by a grouping, over all folds and repetitions."""
        measuring, file = decided(line, unit).measuring, file_and_column(text, line.experiment.path)
        is_file = file is not None and not Segmenting.is_built_in(text)
        by = ":".join(str(part) for part in file or () if part is not None) if is_file else text
        parts = []
        for part in line.units("part", unit):
            train, test = split_of(line, part).train, measured_test(line, part)
            judged = as_judged(lists_of(line, part), None, measuring.threshold, Context(train))
            where: dict[str, Any] = {"data": segment_data(line.experiment, unit.source), "reading": unit.source.reading}
            parts.append(Segments.measured(judged, measuring, by, test=test, train=train, name=text, **where))
        joined = Segments.join(parts, [part.repetition for part in line.units("part", unit)])
        return replace(joined, scores=replace(joined.scores, user_columns=user_weights(line.experiment)))


def named_segments(line: Pipeline, unit: Unit) -> tuple[str, ...]:
    """Return the segments that an experiment names, and those that its split calls for if they have several groups."""
    decisions = line.decisions
    apart = [text for text in decisions.apart if text not in decisions.segment]
    parts = line.units("part", unit) if apart else []
    return (*decisions.segment, *(text for text in apart if all(_divides(line, part, text) for part in parts)))


def _divides(line: Pipeline, part: Unit, text: str) -> bool:
    """Whether both warm and cold users, or items, are in the test part."""
    if line.artifact(SPLITS, part).home is None:  # a plan cannot read what has not been made yet
        return True
    return Segments.divide(text, measured_test(line, part), split_of(line, part).train)


def _file(line: Pipeline, unit: Unit, text: str) -> str | None:
    """Return a hash of the file of a segment, if it comes from a file."""
    if Segmenting.is_built_in(text):
        return None
    file = file_and_column(text, line.experiment.path)
    data = segment_data(line.experiment, unit.source)
    return input_checksum(file[0]) if file is not None else None if data is None else input_checksum(data)


SEGMENTS = _Segments()


def facts_of_groups(results: SegmentResults) -> list[Fact]:
    """Return the facts of the verdicts on groups; without any results, why there are none."""
    if not results:
        return [experiment_facts.Inconclusive("one group")]
    return [fact for segment in results if isinstance(segment, SegmentComparison) for fact in segment.facts()]


STUDIES = ("robustness", "power", "correlation", "groups", "advice", "samples", "curves")
"""The frames of an assessment that are stored."""

_NAMES = ("systems", "metrics", "averages", "lower_is_better")
# Seconds to load libraries; and per sample, system, metric and rating, for all scenarios on one thread.
_LOADING, _ASSESSED = 3.0, 5e-8


class _Assess(Stage[Assessment]):
    name, title, level = "assess", "Assessing", "source"
    exported, version = True, 4

    def wants(self, line: Pipeline, unit: Unit) -> bool:  # noqa: ARG002
        return line.experiment.assess is not None

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        options = options_of(line.experiment)
        test = own_of(SIGNIFICANCE_TESTS, [options["significance"]])
        return {
            "data": unit.source.name,
            "scores": [line.artifact(SCORES, part).digest for part in line.units("part", unit)],
            "judged": [line.artifact(JUDGED, cell).digest for cell in line.units("cell", unit)],
            "asked": options,
            "own": [*own_metrics(options["metrics"], line.experiment), *test],
            "studies": list(STUDIES),
            "seed": line.experiment.seed,
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        from cranfield.assessments import assess_folds

        measuring, parts = decided(line, unit).measuring, line.units("part", unit)
        assessment = assess_folds(
            [(lists_of(line, part), None) for part in parts],
            threshold=measuring.threshold,
            lists=measuring.lists,
            trains=[split_of(line, part).train for part in parts],
            seed=line.experiment.seed,
            **options_of(line.experiment),
        )
        home = place / OUT / "results" / unit.source.name
        files = [write_table(assessment.frame(study), home / f"assess-{study}.parquet") for study in STUDIES]
        return files, {
            **{name: list(getattr(assessment, name)) for name in _NAMES},
            "whole": encoding.plain(assessment.whole),
            "step": assessment.step.as_dict(),
        }

    def read(self, line: Pipeline, unit: Unit) -> Assessment:
        artifact = line.artifact(self, unit)
        files = {Path(file).stem.removeprefix("assess-"): artifact.path(file) for file in artifact.files}
        named: dict[str, Any] = {name: tuple(artifact.facts[name]) for name in _NAMES}
        frames: dict[str, Any] = {name: read_parquet(files[name]) for name in ("samples", "power", "curves")}
        whole = np.array(artifact.facts["whole"], dtype=np.float64)
        return Assessment(**named, **frames, whole=whole, step=Step.of(artifact.facts["step"]))

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        options, systems = options_of(line.experiment), len(line.experiment.systems)
        each = options.get("samples", 50) * systems * len(options["metrics"]) * _ASSESSED / settings.workers
        return _LOADING + float(each) * size.ratings


def options_of(experiment: Experiment) -> dict[str, Any]:
    """Return the settings of `cranfield.assess`: those of the experiment, otherwise taken from the decisions."""
    decisions, stated = experiment.decisions, dict(experiment.assess or {})
    if isinstance(stated.get("metrics"), str):
        stated["metrics"] = [stated["metrics"]]
    return {
        "metrics": list(decisions.metrics),
        "averages": [decisions.average],
        "undefined": decisions.undefined,
        "significance": decisions.significance,
        "alpha": decisions.alpha,
        **stated,
    }


ASSESS = _Assess()
