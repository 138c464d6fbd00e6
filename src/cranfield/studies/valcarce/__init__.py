"""Valcarce, Bellogín, Parapar and Castells (2018, 2020): which metrics and cut-offs are robust and discriminative.

Robustness and discriminative power of IR metrics for top-N recommendation. RecSys 2018: cut-offs of seven metrics.
Assessing ranking metrics in top-N recommendation. Information Retrieval Journal 23, 2020: nine metrics, five kinds of
incompleteness, two means.
"""

from __future__ import annotations

from cranfield.assessments import SIZES
from cranfield.studies.frame.study import Study
from cranfield.studies.valcarce import exhibits
from cranfield.studies.valcarce.claims import claims_of_2018, claims_of_2020
from cranfield.studies.valcarce.work import OPTIONS, MetricPaper

PAPER_2018 = MetricPaper(
    metrics=tuple(f"{metric}@{cutoff}" for metric in exhibits.LABELS_2018 for cutoff in exhibits.CUTOFFS),
    averages=("mean",),
    sizes={"ratings": SIZES["fives"], "popular": SIZES["top"]},
    folds=1,
    per_user=True,
    exhibits=exhibits.exhibits_of_2018,
    claims=claims_of_2018,
)
VALCARCE_2018 = Study(
    "valcarce2018",
    "Daniel Valcarce, Alejandro Bellogín, Javier Parapar, Pablo Castells: On the Robustness and Discriminative "
    "Power of Information Retrieval Metrics for Top-N Recommendation. RecSys 2018.",
    OPTIONS,
    PAPER_2018.plan,
)

# The paper says "from 100 to 1 %" without giving the steps. Up to a fifth of the items, the most popular ones, are
# removed, as in 2018: beyond that the order of the systems is reversed, which figure 6 shows for one dataset only.
_SIZES = (*SIZES["fives"], 0.01)
PAPER_2020 = MetricPaper(
    metrics=tuple(exhibits.LABELS_2020),
    averages=("mean", exhibits.GEOMETRIC, exhibits.ZEROS_SKIPPED),
    sizes={name: SIZES["top"] if name == "popular" else _SIZES for name in exhibits.FIGURES},
    folds=5,
    per_user=False,
    exhibits=exhibits.exhibits_of_2020,
    claims=claims_of_2020,
)
VALCARCE_2020 = Study(
    "valcarce2020",
    "Daniel Valcarce, Alejandro Bellogín, Javier Parapar, Pablo Castells: Assessing ranking metrics in top-N "
    "recommendation. Information Retrieval Journal 23, 2020.",
    OPTIONS,
    PAPER_2020.plan,
)
