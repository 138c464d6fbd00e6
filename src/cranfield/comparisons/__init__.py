"""Comparing systems: paired tests, corrections, effect sizes, power and equivalence (decision D)."""

# The tests register themselves when they are imported.
from cranfield.comparisons import bootstrap as _bootstrap  # noqa: F401
from cranfield.comparisons import permutations as _permutation  # noqa: F401
from cranfield.comparisons import sign as _sign  # noqa: F401
from cranfield.comparisons import student as _student  # noqa: F401
from cranfield.comparisons import tukey as _tukey  # noqa: F401
from cranfield.comparisons import wilcoxon as _wilcoxon  # noqa: F401
from cranfield.comparisons.answers import add_judgments
from cranfield.comparisons.by_segment import SegmentComparison, compare_segments
from cranfield.comparisons.comparing import compare
from cranfield.comparisons.comparison import Comparison
from cranfield.comparisons.labelling import Labelling, label, labelling_curve
from cranfield.comparisons.tipping import TippingPoint, TippingPoints, tipping_points

__all__ = [
    "Comparison",
    "Labelling",
    "SegmentComparison",
    "TippingPoint",
    "TippingPoints",
    "add_judgments",
    "compare",
    "compare_segments",
    "label",
    "labelling_curve",
    "tipping_points",
]
