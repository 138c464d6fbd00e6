"""Comparing systems: paired tests, corrections, effect sizes, power and equivalence (decision D)."""

from cranfield._registry import import_modules
from cranfield.comparisons.answers import add_judgments, is_answered
from cranfield.comparisons.by_segment import SegmentComparison, compare_segments, leads_frame, window_leads
from cranfield.comparisons.comparing import (
    CORRECTION,
    Comparing,
    check_correction,
    compare,
    compare_scores,
    tested_average,
)
from cranfield.comparisons.comparison import Comparison
from cranfield.comparisons.effects import users_needed
from cranfield.comparisons.errors import check_repeated, chosen_test, moments, p_of_t
from cranfield.comparisons.gate import Gate
from cranfield.comparisons.p_values import CORRECTIONS, SIGNIFICANCE_TESTS, TestResult, holm, spelled_test
from cranfield.comparisons.sample import Sample
from cranfield.comparisons.samples import AVERAGES, as_scores, make_samples, pairs_of
from cranfield.comparisons.significance import cannot_differ, resampled
from cranfield.comparisons.suggestions import CAVEATS, Labelling, labelling_curve, suggest_judgments
from cranfield.comparisons.tipping import LINEAR, TippingPoints, tipping_points

__all__ = [
    "AVERAGES",
    "CAVEATS",
    "CORRECTION",
    "CORRECTIONS",
    "LINEAR",
    "SIGNIFICANCE_TESTS",
    "Comparing",
    "Comparison",
    "Gate",
    "Labelling",
    "Sample",
    "SegmentComparison",
    "TestResult",
    "TippingPoints",
    "add_judgments",
    "as_scores",
    "cannot_differ",
    "check_correction",
    "check_repeated",
    "chosen_test",
    "compare",
    "compare_scores",
    "compare_segments",
    "holm",
    "is_answered",
    "labelling_curve",
    "leads_frame",
    "make_samples",
    "moments",
    "p_of_t",
    "pairs_of",
    "resampled",
    "spelled_test",
    "suggest_judgments",
    "tested_average",
    "tipping_points",
    "users_needed",
    "window_leads",
]

import_modules(__name__, __path__)
