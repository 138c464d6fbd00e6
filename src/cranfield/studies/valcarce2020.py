"""Valcarce, Bellogín, Parapar and Castells (2020): nine metrics, five kinds of incompleteness, two means.

Assessing ranking metrics in top-N recommendation. Information Retrieval Journal 23.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from cranfield.assessments import SIZES, Assessment
from cranfield.studies._claims import Finding, Floats, Saying, Standing, finding, title_of
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
    values_figure,
)
from cranfield.studies._study import Exhibit, Study, StudyResults

LABELS = {
    "P@100": "P", "Recall@100": "Recall", "F1@100": "F1", "AP@100": "MAP", "nDCG@100": "NDCG", "RR@100": "MRR",
    "ERR@100": "ERR", "bpref@100": "Bpref", "infAP@100": "InfAP",
}  # fmt: skip
"""The paper's names of its nine metrics."""

GEOMETRIC = "geometric"
"""exp(mean log max(x, 1e-5)), as the authors' tool computes it."""

_NAMES = tuple(LABELS.values())

PRINTED = {
    "MovieLens 1M": Printed(
        6040,
        3706,
        1_000_209,
        ("4.468%", "0.529", "0.634"),
        dict(zip(_NAMES, (3.774, 3.066, 6.316, 2.335, 1.044, 6.063, 4.603, 3.000, 2.984))),
    ),
    "LibraryThing": Printed(
        7279,
        37_232,
        749_401,
        ("0.277%", "0.493", "0.581"),
        dict(zip(_NAMES, (2.783, 4.059, 1.879, 1.889, 0.001, 0.753, 0.411, 2.115, 0.493))),
    ),
    "BeerAdvocate": Printed(
        33_388,
        66_055,
        1_571_808,
        ("0.071%", "0.868", "0.865"),
        dict(zip(_NAMES, (1.989, 2.909, 1.949, 7.009, 3.119, 4.940, 8.127, 6.310, 2.181))),
    ),
}
"""Tables 2 and 3 as printed."""

# The paper says "from 100 to 1 %" without giving the steps. Up to a fifth of the items, the most popular ones, are
# removed, as in 2018: beyond that the order of the systems is reversed, which figure 6 shows for one dataset only.
_SIZES = (*SIZES["fives"], 0.01)

_FIGURES = {"ratings": (3, 10), "items": (5, 11), "popular": (6, 12), "users": (7, 13), "large": (8, 14)}
"""The figures of each scenario: for the arithmetic mean and for the geometric mean."""


def arithmetic(assessment: Assessment) -> Assessment:
    """Return the nine metrics, averaged by the arithmetic mean."""
    return assessment.part(LABELS)


def geometric(assessment: Assessment) -> Assessment:
    """Return the nine metrics, averaged by the geometric mean."""
    return assessment.part({metric: f"G{label}" for metric, label in LABELS.items()}, GEOMETRIC)


def _exhibits(results: StudyResults) -> list[Exhibit]:
    mean, geo, data = arithmetic(results.assessment), geometric(results.assessment), results.data
    nine = ", ".join(_NAMES[:-1]) + f" and {_NAMES[-1]} at 100"
    ginis = {"User Gini": data.gini_users, "Item Gini": data.gini_items}
    exhibits = [
        dataset_table(data, PRINTED, ginis, "Table 2: the datasets"),
        power_table(
            mean, data, PRINTED, f"Table 3: discriminative power (DP, lower is better) of {nine}", ordered=False,
            total=True,
        ),
        numbers_table(data, PRINTED, _numbers(results), "Numbers that the text of sections 6.3.1 and 7.1 states"),
        robustness_table(mean, "robustness", "Mean tau with the whole test set, behind figures 3 and 5 to 8"),
        robustness_table(geo, "robustness-geometric", "The same for geometric means, behind figures 10 to 14"),
        systems_table(mean),
        correlation_figure(mean, "figure-01", f"Figure 1: tau between {nine}"),
        power_figure(mean, "figure-02", f"Figure 2: the 20 largest p-values of {nine}"),
        values_figure(mean, "ratings", "figure-04", "Figure 4: averaged values as ratings are missing at random"),
        correlation_figure(geo, "figure-09", "Figure 9: tau between the geometric means"),
    ]  # fmt: skip
    for scenario, (figure, geometric_figure) in _FIGURES.items():
        for assessment, number, of in ((mean, figure, "metrics"), (geo, geometric_figure, "geometric means")):
            caption = f"Figure {number}: tau of the {of} with themselves, {title_of(scenario)}"
            exhibits.append(robustness_figure(assessment, scenario, f"figure-{number:02}", caption))
    tables, drawn = ([exhibit for exhibit in exhibits if (exhibit.draw is None) == kind] for kind in (True, False))
    return [*tables, *sorted(drawn, key=lambda exhibit: exhibit.name)]


def _numbers(results: StudyResults) -> list[tuple[str, str, str, float]]:
    judged = "share of the recommended items with a test rating"
    between = results.assessment.frame("correlation").filter(average_a="mean", average_b=GEOMETRIC)
    taus = dict(between.select("metric_a", "tau").iter_rows())
    return [
        *((judged, name, printed, results.judged) for name, printed in zip(PRINTED, ("0.050", "0.022", "0.014"))),
        ("tau of MAP and GMAP", "MovieLens 1M", "0.92", taus["AP@100"]),
        ("tau of F1 and GF1", "MovieLens 1M", "0.42", taus["F1@100"]),
    ]


def _claims(results: StudyResults) -> list[Finding]:
    assessment = results.assessment
    mean, geo = Standing(arithmetic(assessment)), Standing(geometric(assessment))
    sayings = [*_of_metrics(mean), *_of_scenarios(mean), _half(arithmetic(assessment)), *_of_geometric_means(geo, mean)]
    return [finding(saying, len(assessment.systems)) for saying in sorted(sayings, key=lambda saying: saying.where)]


def _of_metrics(mean: Standing) -> list[Saying]:
    """Return the claims of sections 6.1 to 6.3.2 about metrics."""
    power, sparse, popular, agreement = (
        mean.evidence(criterion) for criterion in ("power", "ratings", "popular", "agreement")
    )
    unlike, failing = mean.below("agreement", ["MRR", "ERR"]), mean.below("ratings", ["Bpref", "InfAP"])
    return [
        Saying("MRR and ERR order the systems differently from the other metrics", "6.1", unlike, agreement),
        Saying("NDCG is the most discriminative", "6.2", mean.first("power", "NDCG"), power),
        Saying("Bpref and InfAP are not robust to sparsity", "6.3.1", failing, sparse),
        Saying(
            "Bpref is less robust to sparsity than MAP", "6.3.1", _more(mean, "MAP", mean, "Bpref", "ratings"), sparse
        ),
        Saying(
            "InfAP is less robust to sparsity than MAP", "6.3.1", _more(mean, "MAP", mean, "InfAP", "ratings"), sparse
        ),
        Saying("P is the most robust to the popularity bias", "6.3.2", mean.first("popular", "P"), popular),
    ]


def _of_scenarios(mean: Standing) -> list[Saying]:
    """Return the claims of section 6.3 about each scenario."""
    sayings = []
    for scenario, section in {"ratings": "6.3.1", "items": "6.3.2", "popular": "6.3.2", "users": "6.3.3"}.items():
        evidence, removed = mean.evidence(scenario), title_of(scenario)
        best, worst = mean.above(scenario, ["P", "NDCG"]), mean.below(scenario, ["MRR", "ERR"])
        sayings += [
            Saying(f"P and NDCG are among the most robust: {removed}", section, best, evidence),
            Saying(f"MRR and ERR are among the least robust: {removed}", section, worst, evidence),
        ]
    items, users = mean.mean("ratings") - mean.mean("items"), mean.mean("users") - mean.mean("ratings")
    best, worst = mean.above("large", ["MRR", "ERR"]), mean.below("large", ["P", "F1", "NDCG"])
    evidence = ", ".join(f"{name} {mean.mean(name)[0]:.3f}" for name in ("ratings", "items", "users"))
    return [
        *sayings,
        Saying("Missing items cost more than missing ratings", "6.3.2", items, f"mean tau of all metrics: {evidence}"),
        Saying("Missing users cost less than missing ratings", "6.3.3", users, f"mean tau of all metrics: {evidence}"),
        Saying("MRR and ERR are robust to missing large users", "6.3.3", best, mean.evidence("large")),
        Saying("P, F1 and NDCG are less robust to missing large users", "6.3.3", worst, mean.evidence("large")),
    ]


def _of_geometric_means(geo: Standing, mean: Standing) -> list[Saying]:
    """Return the claims of section 7."""
    unlike = geo.last("agreement", ["GF1", "GMRR"])
    sayings = [
        Saying("GF1 and GMRR order the systems differently from the others", "7.1", unlike, geo.evidence("agreement"))
    ]
    for scenario in _FIGURES:
        evidence, removed = geo.evidence(scenario), title_of(scenario)
        worst, best = geo.last(scenario, ["GF1", "GMRR"]), geo.above(scenario, ["GP", "GNDCG"])
        sayings.append(Saying(f"GF1 and GMRR are the least robust: {removed}", "7.2", worst, evidence))
        if scenario != "large":
            sayings.append(Saying(f"GP and GNDCG are among the most robust: {removed}", "7.2", best, evidence))
    for name in ("P", "NDCG"):
        margin = _more(geo, f"G{name}", mean, name, "large")
        evidence = ", ".join(
            f"{metric} {at.scores('large', [metric])[0, 0]:.3f}" for at, metric in ((geo, f"G{name}"), (mean, name))
        )
        sayings.append(Saying(f"G{name} is more robust to missing large users than {name}", "7.2", margin, evidence))
    return sayings


def _more(first: Standing, name: str, second: Standing, than: str, criterion: str) -> Floats:
    """Return how much more one metric scores than another."""
    margin: Floats = first.scores(criterion, [name])[:, 0] - second.scores(criterion, [than])[:, 0]
    return margin


def _half(mean: Assessment) -> Saying:
    """Claim that all metrics keep a tau above 0.9 with half of the test ratings; undefined if no size is 0.5."""
    rows = mean.frame("robustness").filter(scenario="ratings", size=0.5)
    # The mean is null if tau is undefined for every sample.
    taus = dict(rows.select("metric", pl.col("tau").fill_null(float("nan"))).iter_rows())
    evidence = "tau with 50% of the ratings: " + (
        ", ".join(f"{name} {tau:.3f}" for name, tau in taus.items()) or "no such size"
    )
    margin = np.array([np.min(list(taus.values())) - 0.9 if taus else np.nan])
    return Saying("Every metric keeps a tau above 0.9 with half of the test ratings", "6.3.1", margin, evidence)


VALCARCE_2020 = Study(
    name="valcarce2020",
    reference=(
        "Daniel Valcarce, Alejandro Bellogín, Javier Parapar, Pablo Castells: Assessing ranking metrics in top-N "
        "recommendation. Information Retrieval Journal 23, 2020."
    ),
    metrics=tuple(LABELS),
    averages=("mean", GEOMETRIC),
    sizes={name: SIZES["top"] if name == "popular" else _SIZES for name in _FIGURES},
    folds=5,
    per_user=False,
    exhibits=_exhibits,
    claims=_claims,
)
