"""Valcarce, Bellogín, Parapar and Castells (2018): which cut-off and which metric are robust and discriminative.

Robustness and discriminative power of IR metrics for top-N recommendation. RecSys 2018.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from cranfield._numbers import number_text
from cranfield._table import Table
from cranfield.assessments import SIZES, Assessment
from cranfield.studies._claims import Finding, Floats, Saying, Standing, finding
from cranfield.studies._exhibits import (
    Printed,
    correlation_figure,
    dataset_table,
    numbers_table,
    power_figure,
    power_table,
    robustness_figure,
    robustness_table,
    systems_table,
)
from cranfield.studies._study import Exhibit, Study, StudyResults

LABELS = {
    "P": "P", "Recall": "Recall", "AP": "MAP", "nDCG": "nDCG", "RR": "MRR", "bpref": "bpref", "infAP": "infAP",
}  # fmt: skip
"""The paper's names of its seven metrics."""

CUTOFFS = (5, *range(10, 101, 10))
"""The cut-offs of the paper's figures 1 to 4."""

SHALLOW, DEEP = (5, 10), tuple(cutoff for cutoff in CUTOFFS if cutoff >= 50)
"""The usual cut-offs, and those that the paper finds better."""

_NAMES = tuple(LABELS.values())

PRINTED = {
    "MovieLens 1M": Printed(
        6040, 3706, 1_000_209, ("4.468%", "0.634"), dict(zip(_NAMES, (2.6, 7.0, 2.8, 1.4, 15.5, 9.9, 8.4)))
    ),
    "LibraryThing": Printed(
        7279, 37_232, 749_401, ("0.277%", "0.581"), dict(zip(_NAMES, (1.5, 5.9, 3.6, 0.2, 2.9, 5.4, 3.8)))
    ),
    "BeerAdvocate": Printed(
        33_388, 66_055, 1_571_808, ("0.071%", "0.865"), dict(zip(_NAMES, (1.9, 8.3, 10.7, 4.4, 5.8, 12.7, 4.8)))
    ),
}
"""Tables 2 and 3 as printed; DP there is a sum over ordered pairs of systems."""

# The rows of figure 1 below its diagonal, cut-offs 10 to 100, as printed for nDCG on MovieLens 1M.
_FIGURE_1 = (
    (0.95,),
    (0.93, 0.98),
    (0.92, 0.97, 0.99),
    (0.92, 0.97, 0.99, 1.00),
    (0.92, 0.97, 0.99, 1.00, 1.00),
    (0.92, 0.97, 0.99, 1.00, 1.00, 1.00),
    (0.91, 0.96, 0.98, 0.99, 0.99, 0.99, 0.99),
    (0.90, 0.95, 0.97, 0.98, 0.98, 0.98, 0.98, 0.99),
    (0.90, 0.95, 0.97, 0.98, 0.98, 0.98, 0.98, 0.99, 1.00),
    (0.90, 0.95, 0.97, 0.98, 0.98, 0.98, 0.98, 0.99, 1.00, 1.00),
)


def at_100(assessment: Assessment) -> Assessment:
    """Return the seven metrics at the cut-off of 100."""
    return assessment.part({f"{metric}@100": label for metric, label in LABELS.items()})


def cutoffs_of(assessment: Assessment, metric: str) -> Assessment:
    """Return one metric at all cut-offs."""
    return assessment.part({f"{metric}@{cutoff}": f"@{cutoff}" for cutoff in CUTOFFS})


def _exhibits(results: StudyResults) -> list[Exhibit]:
    whole = results.assessment
    seven, ndcg = at_100(whole), cutoffs_of(whole, "nDCG")
    data = results.data
    among = "P, Recall, MAP, nDCG, MRR, bpref and infAP at 100"
    return [
        dataset_table(data, PRINTED, {"Gini": data.gini_items}, "Table 2: the datasets"),
        power_table(
            seven,
            data,
            PRINTED,
            f"Table 3: discriminative power (DP, lower is better) of {among}",
            ordered=True,
            total=False,
        ),
        _figure_1_table(ndcg),
        numbers_table(data, PRINTED, _numbers(whole), "Numbers that the text of section 6 states"),
        robustness_table(seven, "robustness", "Mean tau with the whole test set, the numbers behind figures 6 and 7"),
        robustness_table(ndcg, "robustness-cutoffs", "The same for nDCG by cut-off, behind figures 2 and 3"),
        systems_table(seven),
        correlation_figure(ndcg, "figure-1", "Figure 1: tau between the cut-offs of nDCG"),
        robustness_figure(ndcg, "ratings", "figure-2", "Figure 2: nDCG by cut-off as ratings are missing at random"),
        robustness_figure(
            ndcg, "popular", "figure-3", "Figure 3: nDCG by cut-off as the most popular items are missing"
        ),
        power_figure(ndcg, "figure-4", "Figure 4: the largest p-values of nDCG by cut-off"),
        correlation_figure(seven, "figure-5", f"Figure 5: tau between {among}"),
        robustness_figure(seven, "ratings", "figure-6", f"Figure 6: {among} as ratings are missing at random"),
        robustness_figure(seven, "popular", "figure-7", f"Figure 7: {among} as the most popular items are missing"),
        power_figure(seven, "figure-8", f"Figure 8: the largest p-values of {among}"),
    ]


def _figure_1_table(ndcg: Assessment) -> Exhibit:
    tau = ndcg.correlation()
    header = ["nDCG", *ndcg.metrics]
    rows = [
        [name, *(_beside(float(tau[i, j]), _FIGURE_1[i - 1][j] if j < i else None) for j in range(len(ndcg.metrics)))]
        for i, name in enumerate(ndcg.metrics)
    ]
    caption = "Figure 1 in numbers: tau between cut-offs of nDCG here, and as printed for MovieLens 1M in brackets"
    frame = pl.DataFrame(
        [
            {"a": a, "b": ndcg.metrics[j], "here": float(tau[i, j]), "printed": _FIGURE_1[i - 1][j]}
            for i, a in enumerate(ndcg.metrics)
            for j in range(i)
        ]
    )
    return Exhibit("figure-1-numbers", caption, frame, Table(header, rows, caption))


def _beside(here: float, printed: float | None) -> str:
    number = number_text(here, 2)
    return number if printed is None else f"{number} ({printed:.2f})"


def _numbers(assessment: Assessment) -> list[tuple[str, str, str, float]]:
    def tau(metric: str) -> float:
        matrix = cutoffs_of(assessment, metric).correlation()
        return float(matrix[0, -1])

    return [
        ("tau of P@5 and P@100", "MovieLens 1M", "0.76", tau("P")),
        ("tau of Recall@5 and Recall@100", "MovieLens 1M", "0.76", tau("Recall")),
        ("tau of nDCG@5 and nDCG@100", "MovieLens 1M", "0.90", tau("nDCG")),
    ]


def _claims(results: StudyResults) -> list[Finding]:
    assessment = results.assessment
    sayings = [_alike(assessment), *_of_cutoffs(assessment), *_of_metrics(Standing(at_100(assessment)))]
    return [finding(saying, len(assessment.systems)) for saying in sayings]


def _alike(assessment: Assessment) -> Saying:
    """Claim that cut-offs above 20 order the systems similarly."""
    deeper = [k for k, cutoff in enumerate(CUTOFFS) if cutoff > 20]
    tau = {label: cutoffs_of(assessment, metric).correlation() for metric, label in LABELS.items()}
    lowest = {label: float(matrix[np.ix_(deeper, deeper)].min()) for label, matrix in tau.items()}
    evidence = "lowest tau: " + ", ".join(f"{label} {value:.3f}" for label, value in lowest.items())
    margin = np.array([np.min(list(lowest.values())) - 0.85])  # NaN if any of them is
    return Saying("Cut-offs above 20 order the systems similarly (tau above 0.85)", "6", margin, evidence)


def _of_cutoffs(assessment: Assessment) -> list[Saying]:
    """Return the claims of section 6 about deeper cut-offs, for nDCG (its figures) and for all metrics together."""
    standings = {label: Standing(cutoffs_of(assessment, metric)) for metric, label in LABELS.items()}
    sayings = []
    for criterion, better in (
        ("ratings", "more robust to sparsity"),
        ("popular", "more robust to the popularity bias"),
        ("power", "more discriminative"),
    ):
        gain = {
            label: _mean(standing, criterion, DEEP) - _mean(standing, criterion, SHALLOW)
            for label, standing in standings.items()
        }
        quantity = "p-value" if criterion == "power" else "tau"
        evidence = ", ".join(f"{label} {margin[0]:+.3f}" for label, margin in gain.items())
        compared = f"the mean {quantity} of cut-offs from {DEEP[0]} is better than that of 5 and 10"
        evidence = f"by how much {compared}: {evidence}"
        together = np.mean(list(gain.values()), axis=0)
        sayings += [
            Saying(f"Deeper cut-offs of nDCG are {better}", "6", gain["nDCG"], evidence),
            Saying(f"Deeper cut-offs are {better}, over all metrics", "6", together, evidence),
        ]
    return sayings


def _mean(standing: Standing, criterion: str, cutoffs: Sequence[int]) -> Floats:
    mean: Floats = standing.scores(criterion, [f"@{cutoff}" for cutoff in cutoffs]).mean(axis=1)
    return mean


def _of_metrics(seven: Standing) -> list[Saying]:
    """Return the claims of section 7 about metrics at the cut-off of 100."""
    margins = {
        "MRR orders the systems differently from the others": ("agreement", seven.last("agreement", ["MRR"])),
        "P and nDCG are among the most robust to sparsity": ("ratings", seven.above("ratings", ["P", "nDCG"])),
        "bpref and infAP are not robust to sparsity": ("ratings", seven.below("ratings", ["bpref", "infAP"])),
        "MRR is not robust to sparsity": ("ratings", seven.below("ratings", ["MRR"])),
        "P is the most robust to the popularity bias": ("popular", seven.first("popular", "P")),
        "MRR is the least robust to the popularity bias": ("popular", seven.last("popular", ["MRR"])),
        "nDCG is the most discriminative": ("power", seven.first("power", "nDCG")),
        "nDCG and P are among the most discriminative": ("power", seven.above("power", ["nDCG", "P"])),
        "bpref and infAP are little discriminative": ("power", seven.below("power", ["bpref", "infAP"])),
    }
    return [Saying(claim, "7", margin, seven.evidence(criterion)) for claim, (criterion, margin) in margins.items()]


VALCARCE_2018 = Study(
    name="valcarce2018",
    reference=(
        "Daniel Valcarce, Alejandro Bellogín, Javier Parapar, Pablo Castells: On the Robustness and Discriminative "
        "Power of Information Retrieval Metrics for Top-N Recommendation. RecSys 2018."
    ),
    metrics=tuple(f"{metric}@{cutoff}" for metric in LABELS for cutoff in CUTOFFS),
    averages=("mean",),
    sizes={"ratings": SIZES["fives"], "popular": SIZES["top"]},
    folds=1,
    per_user=True,
    exhibits=_exhibits,
    claims=_claims,
)
