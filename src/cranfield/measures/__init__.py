"""Measuring: judged lists, metrics, averages and coverage (decisions C2, C3 and C4)."""

from cranfield.measures.averages import Average
from cranfield.measures.averaging import Averaging
from cranfield.measures.by_truth import TrueValues, true_values
from cranfield.measures.definition import Metric, known_metrics, metric
from cranfield.measures.judged import Judged
from cranfield.measures.judged_files import read_judged, save_judged
from cranfield.measures.judging import judge
from cranfield.measures.judgments import Judgments
from cranfield.measures.measuring import DEFAULT_METRICS, Measuring, measure
from cranfield.measures.metrics.gains import gain
from cranfield.measures.popularity_groups import by_popularity
from cranfield.measures.predicted_ratings import PredictedRatings, examine_predictions
from cranfield.measures.risks import risk
from cranfield.measures.scores import Scores
from cranfield.measures.segmenting import Segmenting
from cranfield.measures.segments import Segments, judged_segments, measure_segments
from cranfield.measures.standardised import standardise
from cranfield.measures.unjudged_bounds import bounds

__all__ = [
    "DEFAULT_METRICS",
    "Average",
    "Averaging",
    "Judged",
    "Judgments",
    "Measuring",
    "Metric",
    "PredictedRatings",
    "Scores",
    "Segmenting",
    "Segments",
    "TrueValues",
    "bounds",
    "by_popularity",
    "examine_predictions",
    "gain",
    "judge",
    "judged_segments",
    "known_metrics",
    "measure",
    "measure_segments",
    "metric",
    "read_judged",
    "risk",
    "save_judged",
    "standardise",
    "true_values",
]
