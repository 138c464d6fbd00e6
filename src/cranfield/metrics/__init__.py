"""Metrics: what a ranked list is worth, one family per file; new files are found and registered automatically."""

from cranfield._registry import import_modules
from cranfield.metrics.arithmetic import power_for, power_of_two
from cranfield.metrics.correlation import Paired, kendall_tau_b
from cranfield.metrics.definition import METRICS, Definition, Metric, metric
from cranfield.metrics.dialects import TOOLS, Dialect
from cranfield.metrics.error import margin_of
from cranfield.metrics.gains import EXPONENTIAL, GAINS, above_one, gain, powers_less_one
from cranfield.metrics.graded import logarithmic
from cranfield.metrics.incomplete import bounds
from cranfield.metrics.over_draws import check_expected
from cranfield.metrics.predicted import Predicted, check_predictions, check_scores, scale_of
from cranfield.metrics.spellings import (
    as_metrics,
    at_levels,
    average_phrase,
    averaging_phrases,
    deepest,
    known_metrics,
    legend,
    levels_of,
    metric_label,
    metrics_phrase,
    properties_of,
    relevant_items,
    some_metrics,
    spelled_metric,
    threshold_phrase,
    undefined_phrase,
)
from cranfield.metrics.training import translated

__all__ = [
    "EXPONENTIAL",
    "GAINS",
    "METRICS",
    "TOOLS",
    "Definition",
    "Dialect",
    "Metric",
    "Paired",
    "Predicted",
    "above_one",
    "as_metrics",
    "at_levels",
    "average_phrase",
    "averaging_phrases",
    "bounds",
    "check_expected",
    "check_predictions",
    "check_scores",
    "deepest",
    "gain",
    "kendall_tau_b",
    "known_metrics",
    "legend",
    "levels_of",
    "logarithmic",
    "margin_of",
    "metric",
    "metric_label",
    "metrics_phrase",
    "power_for",
    "power_of_two",
    "powers_less_one",
    "properties_of",
    "relevant_items",
    "scale_of",
    "some_metrics",
    "spelled_metric",
    "threshold_phrase",
    "translated",
    "undefined_phrase",
]

import_modules(__name__, __path__)
