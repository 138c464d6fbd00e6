"""Comparing systems: paired tests, corrections, effect sizes, power and equivalence (decision D)."""

# The tests register themselves when they are imported.
from cranfield.comparisons import bootstrap as _bootstrap  # noqa: F401
from cranfield.comparisons import permutations as _permutation  # noqa: F401
from cranfield.comparisons import sign as _sign  # noqa: F401
from cranfield.comparisons import student as _student  # noqa: F401
from cranfield.comparisons import tukey as _tukey  # noqa: F401
from cranfield.comparisons import wilcoxon as _wilcoxon  # noqa: F401
from cranfield.comparisons.by_segment import SegmentComparison, compare_segments
from cranfield.comparisons.comparing import compare
from cranfield.comparisons.comparison import Comparison

__all__ = ["Comparison", "SegmentComparison", "compare", "compare_segments"]
