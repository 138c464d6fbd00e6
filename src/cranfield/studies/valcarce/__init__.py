"""Valcarce, Bellogín, Parapar and Castells (2018, 2020): which metrics and cut-offs are robust and discriminative.

Robustness and discriminative power of IR metrics for top-N recommendation. RecSys 2018: cut-offs of seven metrics.
Assessing ranking metrics in top-N recommendation. Information Retrieval Journal 23, 2020: nine metrics, five kinds of
incompleteness, two means.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from cranfield._streams import stream
from cranfield.assessments import SIZES, Assessment, draws_of_systems
from cranfield.facts import study as study_facts
from cranfield.studies.frame.claims import ClaimFindings, Floats, Saying, finding
from cranfield.studies.frame.study import Study
from cranfield.studies.valcarce import exhibits
from cranfield.studies.valcarce.exhibits import arithmetic, at_100, cutoffs_of, geometric, title_of
from cranfield.studies.valcarce.work import OPTIONS, MetricPaper, MetricResults

DRAWS = 200
SHALLOW, DEEP = (5, 10), tuple(cutoff for cutoff in exhibits.CUTOFFS if cutoff >= 50)
"""The usual cut-offs, and those that the paper of 2018 finds better."""


class Standing:
    """How the metrics of an assessment compare, for all systems and for bootstrap draws of them.

    A criterion is ``power`` (minus the mean p-value of a pair, so that a low DP is a high power), a scenario (the mean
    tau with the whole test set, over sizes below 1) or ``agreement`` (the mean tau with the other metrics).

    Bootstrap samples of the *systems* show how certain a verdict is. The papers could have studied other systems of the
    same kinds, and a claim about metrics should not depend on a few of them.
    """

    def __init__(self, assessment: Assessment, seed: int = 0) -> None:
        self.metrics, self.systems = assessment.metrics, len(assessment.systems)
        held = np.ones((1, self.systems))
        self.drawn = draws_of_systems(self.systems, DRAWS, stream(seed, "studies", "claims", self.systems))
        evidence = assessment.evidence
        whole, draws = evidence.judge(held), evidence.thinned().judge(self.drawn)
        self._scores: dict[str, Floats] = {
            name: np.concatenate([whole[:, c], draws[:, c]]) for c, name in enumerate([*evidence.criteria, "agreement"])
        }
        self._scores["power"] = -_mean_p(assessment, np.concatenate([held, self.drawn]))

    def scores(self, criterion: str, names: Sequence[str]) -> Floats:
        """Return (1 + draws) × metrics: the scores of these metrics, first for all systems, then for each draw."""
        return self._scores[criterion][:, [self.metrics.index(name) for name in names]]

    def others(self, names: Sequence[str]) -> list[str]:
        """Return the metrics that are not named."""
        return [name for name in self.metrics if name not in names]

    def evidence(self, criterion: str) -> str:
        """Return the metrics with their scores, best first."""
        scores = self._scores[criterion][0]
        order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")
        sign = -1.0 if criterion == "power" else 1.0
        return ", ".join(f"{self.metrics[m]} {sign * scores[m]:.3f}" for m in order)

    # What a paper can claim about metrics. Each method returns the margin: by how much the claim is true.

    def first(self, criterion: str, name: str) -> Floats:
        """``name`` scores more than every other metric."""
        return self.scores(criterion, [name])[:, 0] - self.scores(criterion, self.others([name])).max(axis=1)

    def last(self, criterion: str, names: Sequence[str]) -> Floats:
        """Each named metric scores less than every other."""
        return self.scores(criterion, self.others(names)).min(axis=1) - self.scores(criterion, names).max(axis=1)

    def above(self, criterion: str, names: Sequence[str]) -> Floats:
        """Each named metric scores more than the others do on average."""
        return self.scores(criterion, names).min(axis=1) - self.scores(criterion, self.others(names)).mean(axis=1)

    def below(self, criterion: str, names: Sequence[str]) -> Floats:
        """Each named metric scores less than the others do on average."""
        return self.scores(criterion, self.others(names)).mean(axis=1) - self.scores(criterion, names).max(axis=1)

    def mean(self, criterion: str) -> Floats:
        """Return the average score of the metrics."""
        return self._scores[criterion].mean(axis=1)


def _mean_p(assessment: Assessment, multiplicity: Floats) -> Floats:
    """Return draws × metrics: the mean p-value of a pair of systems; each pair counts as often as it is drawn."""
    place = {system: s for s, system in enumerate(assessment.systems)}
    p = np.full((len(assessment.metrics), len(place), len(place)), np.nan)
    of = {metric: m for m, metric in enumerate(assessment.metrics)}
    for metric, a, b, value in assessment.curves.select("metric", "system_a", "system_b", "p").iter_rows():
        p[of[metric], *sorted((place[a], place[b]))] = value
    first, second = np.triu_indices(len(place), 1)
    weights = multiplicity[:, first] * multiplicity[:, second]
    return weights @ p[:, first, second].T / weights.sum(axis=1)[:, None]


def claims_of_2018(results: MetricResults) -> ClaimFindings:
    """Return the verdicts on the claims of 2018."""
    assessment = results.assessment
    sayings = [_alike(assessment), *_of_cutoffs(assessment), *_of_seven(Standing(at_100(assessment)))]
    return [finding(saying, len(assessment.systems)) for saying in sayings]


def _alike(assessment: Assessment) -> Saying:
    """Claim that cut-offs above 20 order the systems similarly."""
    deeper = [k for k, cutoff in enumerate(exhibits.CUTOFFS) if cutoff > 20]
    tau = {label: cutoffs_of(assessment, metric).correlation() for metric, label in exhibits.LABELS_2018.items()}
    lowest = {label: float(matrix[np.ix_(deeper, deeper)].min()) for label, matrix in tau.items()}
    evidence = "lowest tau: " + ", ".join(f"{label} {value:.3f}" for label, value in lowest.items())
    margin = np.array([np.min(list(lowest.values())) - 0.85])  # NaN if any of them is
    return Saying("Cut-offs above 20 order the systems similarly (tau above 0.85)", "6", margin, evidence)


def _of_cutoffs(assessment: Assessment) -> list[Saying]:
    """Return the claims of section 6 about deeper cut-offs, for nDCG (its figures) and for all metrics together."""
    standings = {label: Standing(cutoffs_of(assessment, metric)) for metric, label in exhibits.LABELS_2018.items()}
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
        compared = f"the mean {quantity} of cut-offs from {DEEP[0]} is better than that of 5 and 10"
        gains = ", ".join(f"{label} {margin[0]:+.3f}" for label, margin in gain.items())
        evidence, together = f"by how much {compared}: {gains}", np.mean(list(gain.values()), axis=0)
        sayings += [
            Saying(f"Deeper cut-offs of nDCG are {better}", "6", gain["nDCG"], evidence),
            Saying(f"Deeper cut-offs are {better}, over all metrics", "6", together, evidence),
        ]
    return sayings


def _mean(standing: Standing, criterion: str, cutoffs: Sequence[int]) -> Floats:
    return standing.scores(criterion, [f"@{cutoff}" for cutoff in cutoffs]).mean(axis=1)


def _of_seven(seven: Standing) -> list[Saying]:
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


def claims_of_2020(results: MetricResults) -> ClaimFindings:
    """Return the verdicts on the claims of 2020."""
    assessment = results.assessment
    mean, geo = Standing(arithmetic(assessment)), Standing(geometric(assessment))
    sayings = [*_of_nine(mean), *_of_scenarios(mean), _half(arithmetic(assessment)), *_of_geometric_means(geo, mean)]
    return [finding(saying, len(assessment.systems)) for saying in sorted(sayings, key=lambda saying: saying.where)]


def _of_nine(mean: Standing) -> list[Saying]:
    """Return the claims of sections 6.1 to 6.3.2 about metrics."""
    power, sparse, popular, agreement = (
        mean.evidence(criterion) for criterion in ("power", "ratings", "popular", "agreement")
    )
    unlike, failing = mean.below("agreement", ["MRR", "ERR"]), mean.below("ratings", ["Bpref", "InfAP"])
    less = {name: _more(mean, "MAP", mean, name, "ratings") for name in ("Bpref", "InfAP")}
    return [
        Saying("MRR and ERR order the systems differently from the other metrics", "6.1", unlike, agreement),
        Saying("NDCG is the most discriminative", "6.2", mean.first("power", "NDCG"), power),
        Saying("Bpref and InfAP are not robust to sparsity", "6.3.1", failing, sparse),
        Saying("Bpref is less robust to sparsity than MAP", "6.3.1", less["Bpref"], sparse),
        Saying("InfAP is less robust to sparsity than MAP", "6.3.1", less["InfAP"], sparse),
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
    for scenario in exhibits.FIGURES:
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
    return first.scores(criterion, [name])[:, 0] - second.scores(criterion, [than])[:, 0]


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
    study_facts.OF_SYSTEMS,
)

# The paper says "from 100 to 1 %" without giving the steps. Up to a fifth of the items, the most popular ones, are
# removed, as in 2018: beyond that the order of the systems is reversed, which figure 6 shows for one dataset only.
_SIZES = (*SIZES["fives"], 0.01)
PAPER_2020 = MetricPaper(
    metrics=tuple(exhibits.LABELS_2020),
    averages=("mean", exhibits.GEOMETRIC),
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
    study_facts.OF_SYSTEMS,
)
