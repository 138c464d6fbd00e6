"""Measuring: judged lists, metrics, averages and coverage (decisions C2, C3 and C4)."""

from cranfield.measures.averages import Average, over_groups, read_column
from cranfield.measures.averages_frame import LEVEL
from cranfield.measures.averaging import PLAIN, Averaging, AveragingOptions, Undefined
from cranfield.measures.by_truth import TrueValues, true_values
from cranfield.measures.crossed import Errors
from cranfield.measures.engines import Engine, is_large, judged_and_measured, opened_run, opened_test
from cranfield.measures.joining import by_session, join_folds
from cranfield.measures.measuring import DEFAULT_METRICS, Kind, Measuring, measure, measure_judged
from cranfield.measures.notes import catalogue_warnings
from cranfield.measures.other_tools import compare_tools, dialects_table
from cranfield.measures.predicted_ratings import PredictedRatings, examine_for, examine_predictions
from cranfield.measures.repeats import with_repeats
from cranfield.measures.risks import risk, standardise
from cranfield.measures.scores import Scores
from cranfield.measures.segmenting import Segmenting, file_and_column, group_of_items
from cranfield.measures.segments import Segments, by_popularity, measure_segments

__all__ = [
    "DEFAULT_METRICS",
    "LEVEL",
    "PLAIN",
    "Average",
    "Averaging",
    "AveragingOptions",
    "Engine",
    "Errors",
    "Kind",
    "Measuring",
    "PredictedRatings",
    "Scores",
    "Segmenting",
    "Segments",
    "TrueValues",
    "Undefined",
    "by_popularity",
    "by_session",
    "catalogue_warnings",
    "compare_tools",
    "dialects_table",
    "examine_for",
    "examine_predictions",
    "file_and_column",
    "group_of_items",
    "is_large",
    "join_folds",
    "judged_and_measured",
    "measure",
    "measure_judged",
    "measure_segments",
    "opened_run",
    "opened_test",
    "over_groups",
    "read_column",
    "risk",
    "standardise",
    "true_values",
    "with_repeats",
]
