"""Claims of Valcarce et al. (2018, 2020) about metrics and cut-offs, checked on splits and on draws of the systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from cranfield._streams import stream
from cranfield.assessments import Assessment, draws_of_systems
from cranfield.metrics import kendall_tau_b
from cranfield.studies.frame.claims import ClaimFindings, Floats, Part, Parts, Saying, claim_table, counted, finding
from cranfield.studies.frame.study import recognised
from cranfield.studies.valcarce import exhibits
from cranfield.studies.valcarce.exhibits import arithmetic, at_100, cutoffs_of, geometric, skipping, title_of
from cranfield.studies.valcarce.work import MetricResults

DRAWS = 200
SHALLOW, DEEP = (5, 10), tuple(cutoff for cutoff in exhibits.CUTOFFS if cutoff >= 50)
"""The usual cut-offs, and those that the paper of 2018 finds better."""


class Standing:
    """How the metrics of an assessment compare, on each fold with all systems, and in bootstrap draws of the systems.

    A criterion is ``power`` (minus the mean p-value of a pair, so that a low DP is a high power), a scenario (the mean
    tau with the whole test set, over sizes below 1) or ``agreement`` (the mean tau with the other metrics).

    Bootstrap samples of the *systems* show how certain a verdict is. The papers could have studied other systems of the
    same kinds, and a claim about metrics should not depend on a few of them.
    """

    def __init__(self, assessment: Assessment, seed: int = 0) -> None:
        self.metrics, self.systems, self.folds = assessment.metrics, len(assessment.systems), len(assessment.whole)
        held = np.ones((1, self.systems))
        self.drawn = draws_of_systems(self.systems, DRAWS, stream(seed, "studies", "claims", self.systems))
        evidence = assessment.evidence
        rows = []
        for fold in range(self.folds):
            own = {name: signs[evidence.folds[name] == fold] for name, signs in evidence.samples.items()}
            first = {name: np.zeros(len(signs), dtype=np.int64) for name, signs in own.items()}
            rows.append(replace(evidence, whole=evidence.whole[[fold]], samples=own, folds=first).judge(held))
        whole = np.concatenate([*rows, evidence.thinned().judge(self.drawn)])
        self._scores: dict[str, Floats] = {
            name: whole[:, c] for c, name in enumerate([*evidence.criteria, "agreement"])
        }
        p = _p_values(assessment, self.folds)
        self._scores["power"] = -np.concatenate([*(_mean_p(own, held) for own in p), _mean_p(p.mean(0), self.drawn)])

    def scores(self, criterion: str, names: Sequence[str]) -> Floats:
        """Return (folds + draws) × metrics: the scores of these metrics on each fold, then in each draw of systems."""
        return self._scores[criterion][:, [self.metrics.index(name) for name in names]]

    def others(self, names: Sequence[str]) -> list[str]:
        """Return the metrics that are not named."""
        return [name for name in self.metrics if name not in names]

    def evidence(self, criterion: str) -> str:
        """Return the metrics with their scores, best first."""
        scores = self._scores[criterion][: self.folds].mean(axis=0)
        order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")
        sign = -1.0 if criterion == "power" else 1.0
        return ", ".join(f"{self.metrics[m]} {sign * scores[m]:.3f}" for m in order)

    def part(self, margins: Floats) -> Part:
        """Return a part of a claim, given its margin on each fold and then in each draw of systems."""
        drawn = margins[self.folds :]
        return Part(margins[: self.folds], float(np.nanstd(drawn, ddof=1)) if len(drawn) > 1 else 0.0)

    # What a paper can claim about metrics, with a part for each metric that it names.

    def first(self, criterion: str, names: Sequence[str]) -> Parts:
        """The first scores more than every other metric, the second more than all but the first, and so on."""
        parts = {}
        for place, name in enumerate(names):
            rivals = self.scores(criterion, self.others(names[: place + 1])).max(axis=1)
            parts[name] = self.part(self.scores(criterion, [name])[:, 0] - rivals)
        return parts

    def last(self, criterion: str, names: Sequence[str]) -> Parts:
        """Each named metric scores less than every one that is not named."""
        rivals = self.scores(criterion, self.others(names)).min(axis=1)
        return {name: self.part(rivals - self.scores(criterion, [name])[:, 0]) for name in names}

    def above(self, criterion: str, names: Sequence[str], sign: float = 1.0) -> Parts:
        """Each named metric scores more than those that are not named do on average."""
        rivals = self.scores(criterion, self.others(names)).mean(axis=1)
        return {name: self.part(sign * (self.scores(criterion, [name])[:, 0] - rivals)) for name in names}

    def below(self, criterion: str, names: Sequence[str]) -> Parts:
        """Each named metric scores less than those that are not named do on average."""
        return self.above(criterion, names, sign=-1.0)

    def more(self, criterion: str, better: Sequence[str], worse: Sequence[str]) -> Parts:
        """Each of the first metrics scores more than each of the second."""
        return {
            f"{a} above {b}": self.part(np.subtract(*self.scores(criterion, [a, b]).T)) for a in better for b in worse
        }

    def mean(self, criterion: str) -> Floats:
        """Return the average score of the metrics."""
        return self._scores[criterion].mean(axis=1)


def _p_values(assessment: Assessment, folds: int) -> Floats:
    """Return folds × metrics × systems × systems: p-values, in the upper triangle."""
    systems = {system: s for s, system in enumerate(assessment.systems)}
    metrics = {metric: m for m, metric in enumerate(assessment.metrics)}
    p = np.full((folds, len(metrics), len(systems), len(systems)), np.nan)
    columns = assessment.curves.select("fold", "metric", "system_a", "system_b", "p")
    for fold, metric, a, b, value in columns.iter_rows():
        p[fold - 1, metrics[metric], *sorted((systems[a], systems[b]))] = value
    return p


def _mean_p(p: Floats, multiplicity: Floats) -> Floats:
    """Return draws × metrics: the mean p-value of a pair of systems; each pair counts as often as it is drawn."""
    first, second = np.triu_indices(p.shape[-1], 1)
    weights = multiplicity[:, first] * multiplicity[:, second]
    return np.asarray(weights @ p[:, first, second].T / weights.sum(axis=1)[:, None])


def _by_fold(results: MetricResults) -> Assessment:
    """Return the assessment with the p-values of each fold instead of those of users' averages over folds."""
    power = results.assessment.power
    averages = results.by_fold["average"].unique(maintain_order=True)
    tested = pl.concat(power.with_columns(average=pl.lit(average)) for average in averages)
    return replace(results.assessment, curves=results.by_fold, power=tested)


def _found(sayings: Sequence[Saying], assessment: Assessment) -> ClaimFindings:
    return [finding(__package__, said) for said in counted(sayings, systems=len(assessment.systems))]


def claims_of_2018(results: MetricResults) -> ClaimFindings:
    """Return the verdicts on the claims of 2018."""
    assessment = _by_fold(results)
    of_seven = at_100(assessment)
    sayings = [_cutoffs_alike(assessment), *_of_cutoffs(assessment), *_of_table("2018", Standing(of_seven))]
    return _found([*sayings, _half("2018 half", of_seven), _pair("2018 MAP with nDCG", of_seven, "MAP", "nDCG")],
                  assessment)  # fmt: skip


def _cutoffs_alike(assessment: Assessment) -> Saying:
    """Claim that cut-offs above 20 order the systems similarly."""
    deeper = [k for k, cutoff in enumerate(exhibits.CUTOFFS) if cutoff > 20]
    parts = {}
    for metric, label in exhibits.LABELS_2018.items():
        values = _ordered(cutoffs_of(assessment, metric))[:, deeper]
        parts[label] = Part(np.array([_taus(own).min() for own in values]) - 0.85)
    lowest = ", ".join(f"{label} {part.margins.mean() + 0.85:.3f}" for label, part in parts.items())
    return Saying("2018 cut-offs alike", parts, f"lowest tau: {lowest}")


def _ordered(assessment: Assessment) -> Floats:
    """Return folds × metrics × systems: averages as they are ordered."""
    return np.round(assessment.whole[:, 0], assessment.step.settings["decimals"])


def _taus(values: Floats) -> Floats:
    """Return tau between every two rows of metrics × systems."""
    first, second = np.triu_indices(len(values), 1)
    return np.array([kendall_tau_b(values[a], values[b]) for a, b in zip(first, second)])


def _of_cutoffs(assessment: Assessment) -> list[Saying]:
    """Return the claims of section 6 about deeper cut-offs, for nDCG (its figures) and for all metrics together."""
    standings = {label: Standing(cutoffs_of(assessment, metric)) for metric, label in exhibits.LABELS_2018.items()}
    some = next(iter(standings.values()))
    sayings = []
    for criterion in ("ratings", "popular", "power"):
        gain = {
            label: _mean(standing, criterion, DEEP) - _mean(standing, criterion, SHALLOW)
            for label, standing in standings.items()
        }
        quantity = "p-value" if criterion == "power" else "tau"
        compared = f"the mean {quantity} of cut-offs from {DEEP[0]} is better than that of 5 and 10"
        gains = ", ".join(f"{label} {margin[: some.folds].mean():+.3f}" for label, margin in gain.items())
        for words, margins in (("nDCG", gain["nDCG"]), ("all metrics together", np.mean(list(gain.values()), axis=0))):
            said = Saying(f"2018 deep {criterion}", some.part(margins), f"by how much {compared}: {gains}",
                          {"metric": words})  # fmt: skip
            sayings.append(said)
    return sayings


def _mean(standing: Standing, criterion: str, cutoffs: Sequence[int]) -> Floats:
    return standing.scores(criterion, [f"@{cutoff}" for cutoff in cutoffs]).mean(axis=1)


def _of_table(paper: str, standing: Standing) -> list[Saying]:
    """Return the claims of a paper about metrics that its table states: a rule of `Standing`, for a criterion."""
    sayings = []
    for key, row in claim_table(__package__).items():
        if key.startswith(paper) and row["rule"]:
            metrics = [names.split() for names in row["metrics"].split(" > ")]
            parts = getattr(standing, row["rule"])(row["criterion"], *metrics)
            sayings.append(Saying(key, parts, standing.evidence(row["criterion"])))
    return sayings


def claims_of_2020(results: MetricResults) -> ClaimFindings:
    """Return the verdicts on the claims of 2020."""
    assessment = _by_fold(results)
    nine = arithmetic(assessment)
    mean = Standing(nine)
    other = "2020 MAP above" if recognised(results.data) == "MovieLens 1M" else "2020 InfAP above"
    sayings = [said for said in _of_table("2020", mean) if said.key != other] + _costs(mean)
    sayings += [_half("2020 half", nine), _pair("2020 MRR with ERR", nine, "MRR", "ERR")]
    sayings += [_pair("2020 MAP with NDCG", nine, "MAP", "NDCG"), *_of_geometric_means(assessment, mean)]
    return sorted(_found(sayings, assessment), key=lambda claim: claim.where)


def _costs(mean: Standing) -> list[Saying]:
    """Return what missing items and missing users cost, beside missing ratings."""
    costs = {
        "2020 items cost": mean.mean("ratings") - mean.mean("items"),
        "2020 users cost": mean.mean("users") - mean.mean("ratings"),
    }
    values = ", ".join(f"{name} {mean.mean(name)[: mean.folds].mean():.3f}" for name in ("ratings", "items", "users"))
    return [Saying(key, mean.part(margins), f"mean tau of all metrics: {values}") for key, margins in costs.items()]


def _of_geometric_means(assessment: Assessment, mean: Standing) -> list[Saying]:
    """Return the claims of section 7, of GF1 and GMRR under both readings of a geometric mean of zeros."""
    plain = geometric(assessment)
    readings = {"zeros as 0.00001": plain, "zeros left out of GF1 and GMRR, as rec_eval does": skipping(assessment)}
    geo = Standing(plain)
    sayings = [_same_power(geo, mean)]
    for reading, own in readings.items():
        standing, words = Standing(own), {"reading": reading}
        sayings.append(_own_taus(own, assessment, words))
        differ = standing.last("agreement", ["GF1", "GMRR"])
        sayings.append(Saying("2020 G differ", differ, standing.evidence("agreement"), words))
        for scenario in exhibits.FIGURES:
            last = standing.last(scenario, ["GF1", "GMRR"])
            named = {**words, "removed": title_of(scenario)}
            sayings.append(Saying("2020 G worst", last, standing.evidence(scenario), named))
    for scenario in exhibits.FIGURES:
        if scenario != "large":
            best, named = geo.above(scenario, ["GP", "GNDCG"]), {"removed": title_of(scenario)}
            sayings.append(Saying("2020 G best", best, geo.evidence(scenario), named))
    for name in ("P", "NDCG"):
        with_g, without = geo.scores("large", [f"G{name}"])[:, 0], mean.scores("large", [name])[:, 0]
        evidence = f"G{name} {with_g[: geo.folds].mean():.3f}, {name} {without[: geo.folds].mean():.3f}"
        sayings.append(Saying("2020 G large", geo.part(with_g - without), evidence, {"metric": name}))
    return sayings


def _same_power(geo: Standing, mean: Standing) -> Saying:
    """Claim that the p-values of the metrics are the same, whichever mean of users is compared.

    This is said of any systems, so draws of them add nothing.
    """
    own, other = (standing.scores("power", standing.metrics)[: mean.folds] for standing in (mean, geo))
    denied = float(np.ptp(own.mean(axis=0)))
    parts = {name: Part(own[:, m] - other[:, m], denied=denied) for m, name in enumerate(mean.metrics)}
    return Saying("2020 power same", parts, f"mean p: {mean.evidence('power')}; {geo.evidence('power')}")


def _own_taus(geo: Assessment, assessment: Assessment, words: Mapping[str, str]) -> Saying:
    """Claim that F1 and MRR agree less with their geometric means than the other metrics do on average."""
    plain = arithmetic(assessment)
    taus = np.array(
        [[kendall_tau_b(a, b) for a, b in zip(*of_fold)] for of_fold in zip(_ordered(plain), _ordered(geo))]
    )
    named = {name: plain.metrics.index(name) for name in ("F1", "MRR")}
    others = np.delete(taus, list(named.values()), axis=1).mean(axis=1)
    evidence = "tau with its geometric mean: " + ", ".join(
        f"{name} {taus[:, m].mean():.2f}" for m, name in enumerate(plain.metrics)
    )
    return Saying("2020 own tau", {name: Part(others - taus[:, m]) for name, m in named.items()}, evidence, words)


def _pair(key: str, assessment: Assessment, a: str, b: str) -> Saying:
    """Claim that two metrics agree more than two metrics do on average."""
    places = [assessment.metrics.index(name) for name in (a, b)]
    own = np.array([kendall_tau_b(*values[places]) for values in _ordered(assessment)])
    mean = np.array([_taus(values).mean() for values in _ordered(assessment)])
    return Saying(key, Part(own - mean), f"tau {own.mean():.3f}, of two metrics on average {mean.mean():.3f}")


def _half(key: str, assessment: Assessment) -> Saying:
    """Claim that all metrics keep a tau above 0.9 with half of the test ratings; undefined if no size is 0.5."""
    names, size = assessment.metrics, pl.col("size") == 0.5
    rows = assessment.samples.filter(pl.col("scenario") == "ratings", size)
    parts = {}
    for name in names:
        taus = rows.filter(metric=name).sort("fold", maintain_order=True)["tau"].fill_nan(0.0).fill_null(0.0)
        by_fold = taus.to_numpy().reshape(len(assessment.whole), -1)
        parts[name] = Part(by_fold.mean(axis=1) - 0.9 if by_fold.size else np.full(1, np.nan))
    halves = ", ".join(f"{name} {part.margins.mean() + 0.9:.3f}" for name, part in parts.items())
    return Saying(key, parts, f"tau with 50% of the ratings: {halves if len(rows) else 'no such size'}")
