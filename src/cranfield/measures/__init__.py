"""Measuring: judged lists, metrics, averages and coverage (decisions C2, C3 and C4)."""

from cranfield.measures.averages import Average, known_averages
from cranfield.measures.definition import Metric, known_metrics, metric
from cranfield.measures.judged import Judged
from cranfield.measures.judging import judge
from cranfield.measures.judgments import Judgments
from cranfield.measures.measuring import DEFAULT_METRICS, measure
from cranfield.measures.metrics.gains import gain
from cranfield.measures.popularity_groups import by_popularity
from cranfield.measures.risks import risk
from cranfield.measures.scores import Scores
from cranfield.measures.standardised import standardise
from cranfield.measures.unjudged_bounds import bounds

__all__ = [
    "DEFAULT_METRICS",
    "Average",
    "Judged",
    "Judgments",
    "Metric",
    "Scores",
    "bounds",
    "by_popularity",
    "gain",
    "judge",
    "known_averages",
    "known_metrics",
    "measure",
    "metric",
    "risk",
    "standardise",
]
