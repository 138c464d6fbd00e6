"""The optional stage `segments`: averages and comparisons by group of users, items or test ratings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._files import write_text
from cranfield.comparisons import SegmentComparison, compare_segments
from cranfield.experiments.codes import read_segments, save_segments
from cranfield.experiments.decisions import IN_TABLES
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.inputs import input_checksum, segment_data
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stage import OUT, Stage
from cranfield.experiments.stages.data import decided, vocabularies
from cranfield.experiments.stages.judged import JUDGED
from cranfield.experiments.stages.scores import SCORES, lists_of
from cranfield.experiments.stages.splits import SPLITS, measured_test, split_of
from cranfield.experiments.user_code import own_metrics
from cranfield.experiments.weights import keep_weights, weights_checksum, with_weights
from cranfield.judgments import Context
from cranfield.measures import SEGMENTS as BUILT_IN
from cranfield.measures import Basis, Segments, as_judged, file_and_column, is_built_in, judged_segments
from cranfield.store import Made
from cranfield.tables import write_table

_UNDIVIDED = "Warm and cold are not shown separately: at least one test part holds only one of them."

SegmentResults = tuple[Segments | SegmentComparison, ...]


class _Segments(Stage[SegmentResults]):
    name, title, level, inputs = "segments", "Comparing groups", "source", ("splits", "judged", "scores")
    exported, version = True, 4

    def wants(self, line: Pipeline, unit: Unit) -> bool:  # noqa: ARG002
        """Whether the experiment names any segment, or its split calls for separate results for some."""
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
            return [], {"sentences": [_UNDIVIDED], "segments": []}
        frames = {"segments": pl.concat(segment.averaged.frame(averaging) for segment in results)}
        compared = [segment for segment in results if isinstance(segment, SegmentComparison)]
        if compared:
            frames["segment-comparisons"] = pl.concat(segment.frame() for segment in compared)
            frames["segment-interactions"] = pl.concat(
                segment.interactions.select(pl.lit(segment.segments.name).alias("segment"), pl.all())
                for segment in compared
            )
        paths = [write_table(frame, home / f"{name}.parquet") for name, frame in frames.items()]
        paths += [write_table(frame, tables / f"{unit.source.name}-{name}.csv") for name, frame in frames.items()]
        shown = [segment.averaged.table(averaging) for segment in results]
        words = line.decisions.words(without=IN_TABLES)
        titled = [table.titled(unit.source.name, f"segments {k}", words) for k, table in enumerate(shown, start=1)]
        for ending, texts in (
            ("tex", [table.latex() for table in titled]),
            ("md", [table.markdown() for table in shown]),
        ):
            paths.append(tables / f"{unit.source.name}-segments.{ending}")
            write_text(paths[-1], "\n\n".join(text.rstrip("\n") for text in texts) + "\n")
        kept = [save_segments(segment, place, f"{k}") for k, segment in enumerate(results)]
        paths += [path for files, _ in kept for path in files] + keep_weights(line.experiment, place)
        sentences = [sentence for segment in compared for sentence in segment.verdict]
        return paths, {"sentences": sentences, "segments": [facts for _, facts in kept]}

    def read(self, line: Pipeline, unit: Unit) -> SegmentResults:
        """Return the results by group."""
        artifact, users = line.artifact(self, unit), vocabularies(line, unit).users
        assert artifact.home is not None
        return tuple(
            _with_weights(line.experiment, read_segments(artifact.home, f"{k}", facts, users), artifact.home)
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
        by = text if file is None or is_built_in(text) else ":".join(str(part) for part in file if part is not None)
        parts = []
        for part in line.units("part", unit):
            split = split_of(line, part)
            judged = as_judged(lists_of(line, part), None, measuring.threshold, Context(split.train))
            test, data = measured_test(line, part), segment_data(line.experiment, unit.source)
            parts.append(
                judged_segments(
                    judged,
                    measuring,
                    by,
                    test=test,
                    train=split.train,
                    data=data,
                    reading=unit.source.reading,
                    name=text,
                )
            )
        joined = Segments.join(parts, [part.repetition for part in line.units("part", unit)])
        return replace(joined, scores=with_weights(line.experiment, joined.scores))


def _with_weights(
    experiment: Experiment, segment: Segments | SegmentComparison, kept: Path
) -> Segments | SegmentComparison:
    """Return the results by a grouping, with the weights of users added to their scores."""
    if isinstance(segment, SegmentComparison):
        segments = replace(segment.segments, scores=with_weights(experiment, segment.segments.scores, kept))
        return replace(segment, segments=segments)
    return replace(segment, scores=with_weights(experiment, segment.scores, kept))


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
    split, test = split_of(line, part), measured_test(line, part)
    segment = BUILT_IN.call(text, Basis(test.user_ids, test.item_ids, test, split.train))
    members = test.users if segment.of == "users" else test.items
    return len(np.unique(segment.codes[members])) > 1


def _file(line: Pipeline, unit: Unit, text: str) -> str | None:
    """Return a hash of the file of a segment, if it comes from a file."""
    if is_built_in(text):
        return None
    file = file_and_column(text, line.experiment.path)
    data = segment_data(line.experiment, unit.source)
    return input_checksum(file[0]) if file is not None else None if data is None else input_checksum(data)


SEGMENTS = _Segments()
