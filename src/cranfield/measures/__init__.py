"""Measuring: judged lists, metrics, averages and coverage (decisions C2, C3 and C4)."""

from cranfield.judgments import Judged, Judgments, judge, read_judged, save_judged
from cranfield.measures.averages import WEIGHTS, Average
from cranfield.measures.averaging import (
    OF_GROUPS,
    PLAIN,
    Averaging,
    AveragingOptions,
    By,
    Coverage,
    GroupPolicy,
    Undefined,
)
from cranfield.measures.by_truth import TrueValues, row_percentiles, true_values, user_draws
from cranfield.measures.counting import defined_for_all, over_groups
from cranfield.measures.engines import Engine, is_large, judged_and_measured, parquet_path
from cranfield.measures.folds import join_folds
from cranfield.measures.measuring import (
    DEFAULT_METRICS,
    Kind,
    Measuring,
    as_judged,
    check_relevance,
    measure,
    measure_judged,
)
from cranfield.measures.off_catalogue import Outside, catalogue_notes, outside_of
from cranfield.measures.other_tools import compare_tools, dialects_table
from cranfield.measures.popularity_groups import HEAD_MID_TAIL, by_popularity, group_of_items
from cranfield.measures.predicted_figures import FIGURES
from cranfield.measures.predicted_ratings import PredictedRatings, examine_for, examine_predictions, over_folds
from cranfield.measures.repetitions import Crossed, cells_of, crossed
from cranfield.measures.risks import risk
from cranfield.measures.scores import Scores
from cranfield.measures.scores_table import LEVEL, deepest, left_out_by, on_left_out
from cranfield.measures.segment_groups import check_column, file_and_column, given_groups
from cranfield.measures.segmenting import SEGMENTS, Basis, Segmenting, is_built_in
from cranfield.measures.segments import Segments, judged_segments, measure_segments
from cranfield.measures.spark import opened_run, opened_test
from cranfield.measures.standardised import standardise
from cranfield.measures.user_columns import read_column
from cranfield.measures.windows import in_window, window_frame, windows_of
from cranfield.metrics import Metric, bounds, gain, known_metrics, metric

__all__ = [
    "DEFAULT_METRICS",
    "FIGURES",
    "HEAD_MID_TAIL",
    "LEVEL",
    "OF_GROUPS",
    "PLAIN",
    "SEGMENTS",
    "WEIGHTS",
    "Average",
    "Averaging",
    "AveragingOptions",
    "Basis",
    "By",
    "Coverage",
    "Crossed",
    "Engine",
    "GroupPolicy",
    "Judged",
    "Judgments",
    "Kind",
    "Measuring",
    "Metric",
    "Outside",
    "PredictedRatings",
    "Scores",
    "Segmenting",
    "Segments",
    "TrueValues",
    "Undefined",
    "as_judged",
    "bounds",
    "by_popularity",
    "catalogue_notes",
    "cells_of",
    "check_column",
    "check_relevance",
    "compare_tools",
    "crossed",
    "deepest",
    "defined_for_all",
    "dialects_table",
    "examine_for",
    "examine_predictions",
    "file_and_column",
    "gain",
    "given_groups",
    "group_of_items",
    "in_window",
    "is_built_in",
    "is_large",
    "join_folds",
    "judge",
    "judged_and_measured",
    "judged_segments",
    "known_metrics",
    "left_out_by",
    "measure",
    "measure_judged",
    "measure_segments",
    "metric",
    "on_left_out",
    "opened_run",
    "opened_test",
    "outside_of",
    "over_folds",
    "over_groups",
    "parquet_path",
    "read_column",
    "read_judged",
    "risk",
    "row_percentiles",
    "save_judged",
    "standardise",
    "true_values",
    "user_draws",
    "window_frame",
    "windows_of",
]
