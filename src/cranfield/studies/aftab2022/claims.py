"""Claims of Aftab and Ramampiaro (2022) about SDCSE, checked on splits and users."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from cranfield.metrics import kendall_tau_b
from cranfield.studies.aftab2022 import work
from cranfield.studies.aftab2022.work import ErrorNumbers
from cranfield.studies.frame.claims import ClaimFindings, Floats, Part, Parts, Saying, counted, each, findings

KEPT = 0.75  # the tau that all metrics keep with half of the test ratings, according to the paper
_US_DS = "us-ds, half a step"
_LOW, _MEDIUM, _HIGH = "Low-High", "Medium-High", "High"


def claims_of(panels: Sequence[ErrorNumbers]) -> ClaimFindings:
    """Return the verdicts on the paper's claims; those that need a model that was not run cannot be decided."""
    groups = (_of_power, _of_robustness, _of_migration, _of_levels, _of_errors, _of_implicit)

    def sayings(panel: ErrorNumbers) -> list[Saying]:
        users = panel.series("lists", setting=work.EXPLICIT, metric="users").mean()
        said = [said for group in groups for said in group(panel)]
        return counted(said, users=round(float(users)), systems=len(panel.models))

    return findings(__package__, [sayings], {panel.name: panel for panel in panels})


def _of_power(panel: ErrorNumbers) -> list[Saying]:
    power = {metric: panel.power(metric) for metric in work.METRICS}
    pairs = power[work.MAP][1]
    sums = {metric: values for metric, (values, _) in power.items()}
    evidence = f"DP over {pairs} pair{'s' if pairs != 1 else ''}: {each(sums, 4)}"
    better = {f"than {name}": Part(sums[name] - sums[work.SDCSE]) for name in (work.MAP, work.NDCG)}
    return [
        Saying("power SDCSE", better, evidence),
        Saying("power NDCG", Part(sums[work.MAP] - sums[work.NDCG]), evidence),
    ]


def _of_robustness(panel: ErrorNumbers) -> list[Saying]:
    half = {metric: panel.tau("ratings", metric, work.HALF) for metric in work.METRICS}
    ratings, popular = ({metric: panel.tau(way, metric) for metric in work.METRICS} for way in ("ratings", "popular"))
    rivals = {f"than {name}": Part(ratings[work.NDCG] - ratings[name]) for name in (work.MAP, work.SDCSE)}
    bearing = {name: Part(popular[name] - popular[work.NDCG]) for name in (work.SDCSE, work.MAP)}
    return [
        Saying("half", {name: Part(values - KEPT) for name, values in half.items()}, "tau with half: " + each(half)),
        Saying("robust", rivals, "mean tau: " + each(ratings)),
        Saying("popular", bearing, "mean tau without the most popular items: " + each(popular)),
    ]


def _of_migration(panel: ErrorNumbers) -> list[Saying]:
    shares = {model: panel.of(_US_DS, model) for model in panel.models}
    evidence = "us-ds: " + each(shares)
    orders = {metric: _agreement(panel, metric, _US_DS) for metric in work.METRICS}
    more = {f"than {name}": Part(orders[work.SDCSE] - orders[name]) for name in (work.NDCG, work.MAP)}
    tau = "tau between the order of the models by us-ds and by: " + each(orders)
    return [
        Saying("migrate MF", panel.above(_US_DS, _bpr(panel), work.MF), evidence),
        Saying("migrate LC-NN", panel.above(_US_DS, work.NCF, work.LCNN), evidence),
        Saying("migrate order", more, tau),
    ]


def _of_levels(panel: ErrorNumbers) -> list[Saying]:
    sayings = []
    for level, model in ((_LOW, work.MF), (_MEDIUM, work.MF), (_HIGH, work.LCNN)):
        parts = _above(panel, work.SDCSE, model, level)
        sayings.append(Saying("first", parts, named={"model": model, "level": level}))
    for level in (_LOW, _MEDIUM):
        sayings.append(Saying("NDCG BPR", panel.above(work.NDCG, _bpr(panel), work.MF, level), named={"level": level}))
    if panel.known == "RR":
        sayings.append(Saying("NCF", _above(panel, work.NDCG, work.NCF, work.EXPLICIT)))
    for metric in (work.NDCG, work.SDCSE):
        falls = {
            f"{model}, {before} to {after}": Part(
                panel.level(before, metric, model) - panel.level(after, metric, model)
            )
            for model in panel.models
            for before, after in ((_LOW, _MEDIUM), (_MEDIUM, _HIGH))
        }
        named = {"metric": "1 − SDCSE" if metric == work.SDCSE else metric}
        sayings.append(Saying("falls", falls, named=named))
    gaps = {
        f"{model}, {metric}": Part(panel.of(metric, model) - panel.of("SDCSEacc", model))
        for model in panel.models
        for metric in (work.MAP, work.NDCG)
    }
    return [*sayings, Saying("below", gaps)]


def _of_errors(panel: ErrorNumbers) -> list[Saying]:
    """Return what the paper assumes: that a model with a lower SDCSE predicts better."""
    parts = {}
    for pair in combinations(panel.models, 2):
        low, high = sorted(pair, key=lambda model: panel.mean(work.SDCSE, model))
        parts[f"{low} against {high}"] = panel.above("DCSE", high, low)
    taus = {name: _agreement(panel, work.SDCSE, name) for name in ("DCSE", "RMSE", "RMSE, all items")}
    agree = sum(float(part.margins.mean()) > 0 for part in parts.values())
    return [
        Saying("errors DCSE", parts, f"in {agree} of the {len(parts)} pairs of models DCSE prefers the same one"),
        Saying("errors RMSE", Part(taus["RMSE"]), "tau between SDCSE and: " + each(taus)),
    ]


def _of_implicit(panel: ErrorNumbers) -> list[Saying]:
    values = {model: panel.of("SDCSEacc", model, work.IMPLICIT) for model in panel.models}
    evidence = "1 − SDCSE: " + each({model: own for model, own in values.items() if len(own)})
    return [Saying("implicit", _above(panel, "SDCSEacc", work.MF, work.IMPLICIT), evidence)]


def _bpr(panel: ErrorNumbers) -> str:
    """Return the paper's BPR, or matrix factorisation by BPR if that was not run."""
    return work.BPR if work.BPR in panel.models else work.BPRMF


def _above(panel: ErrorNumbers, metric: str, model: str, where: str) -> Parts:
    """Return by how much a model is above each of the others, at a level or in a version."""
    return {f"above {rival}": panel.above(metric, model, rival, where) for rival in panel.models if rival != model}


def _agreement(panel: ErrorNumbers, first: str, second: str) -> Floats:
    """Return tau between the orders of the models by two averages, for each split; metrics of gain are reversed."""
    sign = {work.MAP: -1.0, work.NDCG: -1.0}
    metrics = (first, second)
    orders = (sign.get(name, 1.0) * np.array([panel.of(name, model) for model in panel.models]).T for name in metrics)
    return np.array([float(kendall_tau_b(a, b)) for a, b in zip(*orders)])
