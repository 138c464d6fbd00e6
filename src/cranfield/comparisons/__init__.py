"""Comparing systems: paired tests, corrections, effect sizes, power and equivalence (decision D)."""

# The tests register themselves when they are imported.
from cranfield.comparisons import bootstrap as _bootstrap  # noqa: F401
from cranfield.comparisons import permutations as _permutation  # noqa: F401
from cranfield.comparisons import sign as _sign  # noqa: F401
from cranfield.comparisons import student as _student  # noqa: F401
from cranfield.comparisons import tukey as _tukey  # noqa: F401
from cranfield.comparisons import wilcoxon as _wilcoxon  # noqa: F401
from cranfield.comparisons.answers import add_judgments, is_answered
from cranfield.comparisons.bootstrap import cannot_differ, resampled
from cranfield.comparisons.by_segment import SegmentComparison, compare_segments
from cranfield.comparisons.comparing import (
    CORRECTION,
    Comparing,
    check_correction,
    compare,
    compare_scores,
    tested_average,
)
from cranfield.comparisons.comparison import Comparison, ends_text, share_text
from cranfield.comparisons.corrections import CORRECTIONS, holm
from cranfield.comparisons.errors import check_repeated, chosen_test
from cranfield.comparisons.gate import Gate, Margin
from cranfield.comparisons.labelling import CAVEATS, Labelling, label, labelling_curve
from cranfield.comparisons.sample import Sample
from cranfield.comparisons.samples import AVERAGES, as_scores, make_samples, pairs_of
from cranfield.comparisons.sentences import p_text
from cranfield.comparisons.student import moments, p_of_t
from cranfield.comparisons.tipping import TippingPoint, TippingPoints, tipping_points
from cranfield.comparisons.unjudged_pairs import LINEAR
from cranfield.comparisons.verdict import SIGNIFICANCE_TESTS, Verdict, spelled_test
from cranfield.comparisons.windows import leads_frame, window_leads

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
    "Margin",
    "Sample",
    "SegmentComparison",
    "TippingPoint",
    "TippingPoints",
    "Verdict",
    "add_judgments",
    "as_scores",
    "cannot_differ",
    "check_correction",
    "check_repeated",
    "chosen_test",
    "compare",
    "compare_scores",
    "compare_segments",
    "ends_text",
    "holm",
    "is_answered",
    "label",
    "labelling_curve",
    "leads_frame",
    "make_samples",
    "moments",
    "p_of_t",
    "p_text",
    "pairs_of",
    "resampled",
    "share_text",
    "spelled_test",
    "tested_average",
    "tipping_points",
    "window_leads",
]
