"""Comparing systems: paired tests, corrections, effect sizes, power and equivalence (decision D)."""

# The tests register themselves when they are imported.
from cranfield.compare import bootstrap as _bootstrap  # noqa: F401
from cranfield.compare import permutation as _permutation  # noqa: F401
from cranfield.compare import sign as _sign  # noqa: F401
from cranfield.compare import student as _student  # noqa: F401
from cranfield.compare import tukey as _tukey  # noqa: F401
from cranfield.compare import wilcoxon as _wilcoxon  # noqa: F401
from cranfield.compare.compare import compare
from cranfield.compare.comparison import Comparison

__all__ = ["Comparison", "compare"]
