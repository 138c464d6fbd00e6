"""Claims of Aftab and Ramampiaro (2022) about SDCSE, MAP and NDCG, checked on the splits of a set of ratings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from cranfield.metrics import kendall_tau_b
from cranfield.studies._claims import Finding, Floats, Saying, finding_over_splits
from cranfield.studies._error_models import BPR, BPRMF, LCNN, MF, NCF
from cranfield.studies._error_numbers import ErrorNumbers
from cranfield.studies._error_work import HALF, IMPLICIT, MAP, METRICS, NDCG, SDCSE

KEPT = 0.75
"""The tau that all metrics keep with half of the test ratings, according to the paper."""


def claims_of(panel: ErrorNumbers) -> list[Finding]:
    """Return the verdicts on the paper's claims; those that need a model that was not run cannot be decided."""
    sayings = [
        *_of_power(panel),
        *_of_robustness(panel),
        *_of_migration(panel),
        *_of_levels(panel),
        *_of_errors(panel),
        *_of_implicit(panel),
    ]
    return [finding_over_splits(saying) for saying in sayings]


def _of_power(panel: ErrorNumbers) -> list[Saying]:
    power = {metric: panel.power(metric) for metric in METRICS}
    pairs = power[MAP][1]
    evidence = f"DP over {pairs} pair{'s' if pairs != 1 else ''}: " + ", ".join(
        f"{metric} {values.mean():.4f}" for metric, (values, _) in power.items()
    )

    def lower(first: str, second: str) -> Floats:
        margin: Floats = power[second][0] - power[first][0]
        return margin

    return [
        Saying("SDCSE is more discriminative than MAP", "V-A, Table 1", lower(SDCSE, MAP), evidence),
        Saying("SDCSE is more discriminative than NDCG", "V-A, Table 1", lower(SDCSE, NDCG), evidence),
        Saying("NDCG is more discriminative than MAP", "V-A, Table 1", lower(NDCG, MAP), evidence),
    ]


def _of_robustness(panel: ErrorNumbers) -> list[Saying]:
    half = {metric: panel.tau("ratings", metric, HALF) for metric in METRICS}
    ratings, popular = ({metric: panel.tau(way, metric) for metric in METRICS} for way in ("ratings", "popular"))
    return [
        Saying(f"Every metric keeps a tau above {KEPT} with half of the test ratings", "V-B, Figure 3",
               np.min(list(half.values()), axis=0) - KEPT, "tau with half: " + _each(half)),
        Saying("NDCG is the most robust to missing ratings", "V-B, V-E",
               ratings[NDCG] - np.maximum(ratings[MAP], ratings[SDCSE]), "mean tau: " + _each(ratings)),
        Saying("SDCSE is more robust than NDCG to missing popular items", "V-B, V-E",
               popular[SDCSE] - popular[NDCG], "mean tau without the most popular items: " + _each(popular)),
    ]  # fmt: skip


def _of_migration(panel: ErrorNumbers) -> list[Saying]:
    name = "us-ds, half a step"
    shares = {model: panel.of(name, model) for model in panel.models}
    evidence = "us-ds: " + _each(shares)
    orders = {metric: _agreement(panel, metric, name) for metric in METRICS}
    tau = "tau between the order of the models by us-ds and by: " + _each(orders)
    return [
        Saying("MF migrates less than BPR (us-ds)", "Table 2", _less(panel, name, MF, _bpr(panel)), evidence),
        Saying("LC-NN migrates less than NCF (us-ds)", "Table 2", _less(panel, name, LCNN, NCF), evidence),
        Saying("SDCSE orders the models as their us-ds does, more than NDCG and MAP do", "V-D",
               orders[SDCSE] - np.maximum(orders[NDCG], orders[MAP]), tau),
    ]  # fmt: skip


def _of_levels(panel: ErrorNumbers) -> list[Saying]:
    low, medium, high = "Low-High", "Medium-High", "High"
    sayings = []
    for level in (low, medium):
        values = {model: panel.level(level, SDCSE, model) for model in panel.models}
        sayings.append(
            Saying(
                f"By SDCSE, MF is first at {level}", "V-D, Figure 4", _first(values, MF), "1 − SDCSE: " + _each(values)
            )
        )
    values = {model: panel.level(high, SDCSE, model) for model in panel.models}
    sayings.append(
        Saying(
            f"By SDCSE, LC-NN is first at {high}", "V-D, Figure 4", _first(values, LCNN), "1 − SDCSE: " + _each(values)
        )
    )
    for level in (low, medium):
        gains = {model: panel.level(level, NDCG, model) for model in panel.models}
        sayings.append(
            Saying(f"NDCG puts BPR above MF at {level}", "V-D, Figure 4", _more(gains, _bpr(panel), MF),
                   "NDCG: " + _each(gains))
        )  # fmt: skip
    for metric in (NDCG, SDCSE):
        falls = {
            model: np.minimum(
                panel.level(low, metric, model) - panel.level(medium, metric, model),
                panel.level(medium, metric, model) - panel.level(high, metric, model),
            )
            for model in panel.models
        }
        sayings.append(
            Saying(f"{'1 − SDCSE' if metric == SDCSE else metric} falls from low to high relevance", "V-D, Figure 4",
                   np.min(list(falls.values()), axis=0), "smallest fall from a level to the next: " + _each(falls))
        )  # fmt: skip
    gaps = {
        model: np.minimum(panel.of(MAP, model), panel.of(NDCG, model)) - panel.of("SDCSEacc", model)
        for model in panel.models
    }
    sayings.append(
        Saying("1 − SDCSE is below NDCG and MAP for every model", "V-D", np.min(list(gaps.values()), axis=0),
               "the lower of NDCG and MAP, minus 1 − SDCSE: " + _each(gaps))
    )  # fmt: skip
    return sayings


def _of_errors(panel: ErrorNumbers) -> list[Saying]:
    """Return what the paper assumes: that a model with a lower SDCSE predicts better."""
    agree: list[Floats] = []
    for a, b in combinations(panel.models, 2):
        by = [panel.of(metric, a) - panel.of(metric, b) for metric in (SDCSE, "DCSE")]
        agree.append(np.sign(by[0]) * np.sign(by[1]))
    shares = np.mean([pair > 0 for pair in agree], axis=0)
    taus = {name: _agreement(panel, SDCSE, name) for name in ("DCSE", "RMSE", "RMSE, all items")}
    evidence = f"in {np.mean(shares):.0%} of the {len(agree)} pairs of models DCSE prefers the same one"
    return [
        Saying("Of two models, the one with the lower SDCSE has the lower DCSE", "III", np.min(agree, axis=0),
               evidence),
        Saying("SDCSE orders the models as RMSE at the top does (tau above 0.5)", "III", taus["RMSE"] - 0.5,
               "tau between SDCSE and: " + _each(taus)),
    ]  # fmt: skip


def _of_implicit(panel: ErrorNumbers) -> list[Saying]:
    values = {model: panel.of("SDCSEacc", model, IMPLICIT) for model in panel.models}
    values = {model: own for model, own in values.items() if len(own)}
    return [
        Saying("MF has the best 1 − SDCSE on implicit feedback", "Table 3", _first(values, MF),
               "1 − SDCSE: " + _each(values)),
    ]  # fmt: skip


def _bpr(panel: ErrorNumbers) -> str:
    """Return the paper's BPR, or matrix factorisation by BPR if that was not run."""
    return BPR if BPR in panel.models else BPRMF


_UNKNOWN = np.array([np.nan])


def _first(values: dict[str, Floats], model: str) -> Floats:
    """Return the lead of a model over the best of the others; NaN if it was not run."""
    others = [own for name, own in values.items() if name != model]
    if model not in values or not others:
        return _UNKNOWN
    margin: Floats = values[model] - np.max(others, axis=0)
    return margin


def _more(values: dict[str, Floats], first: str, second: str) -> Floats:
    return values[first] - values[second] if first in values and second in values else _UNKNOWN


def _less(panel: ErrorNumbers, metric: str, first: str, second: str) -> Floats:
    values = {model: panel.of(metric, model) for model in panel.models}
    return _more(values, second, first)


def _agreement(panel: ErrorNumbers, first: str, second: str) -> Floats:
    """Return tau between the orders of the models by two averages, for each split; metrics of gain are reversed."""
    sign = {MAP: -1.0, NDCG: -1.0}
    columns = []
    for metric in (first, second):
        columns.append(sign.get(metric, 1.0) * np.array([panel.of(metric, model) for model in panel.models]))
    return np.array([float(kendall_tau_b(a, b)) for a, b in zip(columns[0].T, columns[1].T)])


def _each(values: dict[str, Floats]) -> str:
    return ", ".join(f"{name} {np.mean(own):.3f}" for name, own in values.items() if len(own))


def together(panels: Sequence[ErrorNumbers]) -> list[Finding]:
    """Return the claims of all sets of ratings, with the name of the ratings if there are several."""
    claims = [(panel, claim) for panel in panels for claim in claims_of(panel)]
    return [claim if len(panels) == 1 else claim.on(panel.name) for panel, claim in claims]
