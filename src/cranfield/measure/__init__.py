"""Measuring: judged lists, metrics, averages and coverage (decisions C2, C3 and C4)."""

from cranfield.measure.judge import judge
from cranfield.measure.judged import Judged
from cranfield.measure.judgments import Judgments
from cranfield.measure.measure import measure
from cranfield.measure.metric import Metric, known_metrics, metric
from cranfield.measure.metrics.graded import gain
from cranfield.measure.scores import Scores

__all__ = ["Judged", "Judgments", "Metric", "Scores", "gain", "judge", "known_metrics", "measure", "metric"]
