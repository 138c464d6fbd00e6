"""Measuring: judged lists, metrics, averages and coverage (decisions C2, C3 and C4)."""

from cranfield.measure.averages import Average, known_averages
from cranfield.measure.bounds import bounds
from cranfield.measure.by_popularity import by_popularity
from cranfield.measure.judge import judge
from cranfield.measure.judged import Judged
from cranfield.measure.judgments import Judgments
from cranfield.measure.measure import DEFAULT_METRICS, measure
from cranfield.measure.metric import Metric, known_metrics, metric
from cranfield.measure.metrics.gains import gain
from cranfield.measure.risk import risk
from cranfield.measure.scores import Scores
from cranfield.measure.standardise import standardise

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
