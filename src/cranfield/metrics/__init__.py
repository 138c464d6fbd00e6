"""Metrics: what a ranked list is worth, one family per file; new files are found and registered automatically."""

from cranfield._registry import import_modules
from cranfield.metrics._scale import power_for, power_of_two
from cranfield.metrics._train import translated
from cranfield.metrics.correlation import Paired, kendall_tau_b
from cranfield.metrics.definition import (
    METRICS,
    Definition,
    Metric,
    as_metrics,
    as_several,
    known_metrics,
    metric,
    possible_values,
    some_metrics,
    spelled_metric,
)
from cranfield.metrics.dialects.peers import Dialect, Users, tools
from cranfield.metrics.error import ROUNDING, margin_of
from cranfield.metrics.gains import EXPONENTIAL, GAINS, above_one, gain, powers_less_one
from cranfield.metrics.graded import logarithmic
from cranfield.metrics.id_counts import IdCounts
from cranfield.metrics.levels import at_levels, levels_note
from cranfield.metrics.notes import Graded, notes_on, notes_on_grades, notes_on_reading, notes_on_whom
from cranfield.metrics.over_draws import check_expected
from cranfield.metrics.phrases import (
    average_phrase,
    averaging_phrases,
    legend,
    metric_phrase,
    metrics_phrase,
    relevance_phrase,
    threshold_phrase,
    undefined_phrase,
)
from cranfield.metrics.predicted import (
    Predicted,
    calibration_curve,
    check_predictions,
    check_scores,
    predicted_of,
    scale_of,
)
from cranfield.metrics.unjudged_bounds import bounds, has_bounds

__all__ = [
    "EXPONENTIAL",
    "GAINS",
    "METRICS",
    "ROUNDING",
    "Definition",
    "Dialect",
    "Graded",
    "IdCounts",
    "Metric",
    "Paired",
    "Predicted",
    "Users",
    "above_one",
    "as_metrics",
    "as_several",
    "at_levels",
    "average_phrase",
    "averaging_phrases",
    "bounds",
    "calibration_curve",
    "check_expected",
    "check_predictions",
    "check_scores",
    "gain",
    "has_bounds",
    "kendall_tau_b",
    "known_metrics",
    "legend",
    "levels_note",
    "logarithmic",
    "margin_of",
    "metric",
    "metric_phrase",
    "metrics_phrase",
    "notes_on",
    "notes_on_grades",
    "notes_on_reading",
    "notes_on_whom",
    "possible_values",
    "power_for",
    "power_of_two",
    "powers_less_one",
    "predicted_of",
    "relevance_phrase",
    "scale_of",
    "some_metrics",
    "spelled_metric",
    "threshold_phrase",
    "tools",
    "translated",
    "undefined_phrase",
]

import_modules(__name__, __path__)
