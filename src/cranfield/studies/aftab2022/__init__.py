"""Aftab and Ramampiaro (2022): rank and rating error in one metric, SDCSE.

Evaluating top-N recommendations using ranked error approach: an empirical analysis. IEEE Access 10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield.data import Ratings, Relevance
from cranfield.metrics import kendall_tau_b
from cranfield.studies.aftab2022 import work
from cranfield.studies.aftab2022.exhibits import exhibits_of, missing
from cranfield.studies.aftab2022.work import ErrorNumbers, ErrorWork, models_for, units
from cranfield.studies.frame.claims import ClaimFindings, Floats, Saying, each, findings
from cranfield.studies.frame.study import Study, StudyFiles, StudyResults, data_names, measured, recognised

SEEDS, SAMPLES = 3, 20

KNOWN = {
    "MovieLens 25M": ("ML", True),
    "MovieLens 1M": ("ML", False),
    "MovieLens 100K": ("ML", False),
    "Book-Crossing": ("BOOK", True),
    "RentTheRunway": ("RR", True),
}
"""The column of the paper's tables for a dataset, and whether it is for exactly these ratings."""


def _plan(
    data: Sequence[Ratings],
    *,
    threshold: float | None,
    seed: int,
    seeds: int | None,
    samples: int | None,
    systems: Sequence[str] | None,
    epochs: int | None,
) -> Callable[[StudyFiles], StudyResults]:
    splits = range(seed, seed + _checks.whole("seeds", SEEDS if seeds is None else seeds))
    wanted = _checks.whole("samples", SAMPLES if samples is None else samples)
    works = {
        name: ErrorWork(
            f"panel-{place}",
            ratings,
            _liked(ratings, threshold),
            {split: models_for(ratings, systems, split, epochs) for split in splits},
            wanted,
        )
        for place, (name, ratings) in enumerate(data_names(data).items(), start=1)
    }

    def results(files: StudyFiles) -> StudyResults:
        """Train, rank and measure everything that the study needs, with one panel per set of ratings."""
        numbers = measured(files, {name: units(files, own, splits) for name, own in works.items()})
        known = {name: KNOWN.get(recognised(own.data) or "", (None, False)) for name, own in works.items()}
        panels = [ErrorNumbers(name, own, known[name][0], numbers[name], known[name][1]) for name, own in works.items()]
        first = {name: system for panel in panels for name, system in panel.work.models[seed].spelled.items()}
        run = dict.fromkeys(model for panel in panels for model in panel.models)
        absent = {f"{name} ({why})": None for panel in panels for name, why in panel.absent().items()}
        settings = {
            "models": [f"{name} = {first[name]}" for name in run],
            "models not run": list(absent) or "none",
            "datasets of the paper not given": missing(panels) or "none",
            "liked from": [panel.work.threshold for panel in panels],
            "training": work.TRAIN,
            "held out of training, for calibration": work.VALIDATION,
            "calibration": "isotonic, of models that do not predict ratings",
            "lists": "test items of each user with training ratings",
            "metrics": list(work.METRICS.values()),
            "splits": len(splits),
            "samples": wanted,
            "seed": seed,
        }
        return StudyResults(exhibits_of(panels), claims_of(panels), settings)

    return results


def _liked(data: Ratings, threshold: float | None) -> float:
    """Return the lowest rating that counts as liked: 4 of 5, 8 of 10, or the one that is given."""
    if len(data.grades) < 2:
        raise SettingError(
            f"every rating of {data.name or 'the ratings'} is {data.grades[0]:g}, so there is no error to rank "
            "by; give explicit ratings"
        )
    liked = Relevance.of(data).threshold if threshold is None else threshold
    if not data.grades[0] < liked <= data.grades[-1]:
        raise SettingError(
            f"threshold={liked:g} makes all or none of {data.name or 'the ratings'} liked; they are from "
            f"{data.grades[0]:g} to {data.grades[-1]:g}, so give a threshold in between"
        )
    return liked


KEPT = 0.75  # the tau that all metrics keep with half of the test ratings, according to the paper


def claims_of(panels: Sequence[ErrorNumbers]) -> ClaimFindings:
    """Return the verdicts on the paper's claims; those that need a model that was not run cannot be decided."""
    groups = (_of_power, _of_robustness, _of_migration, _of_levels, _of_errors, _of_implicit)
    return findings(groups, {panel.name: panel for panel in panels})


def _of_power(panel: ErrorNumbers) -> list[Saying]:
    power = {metric: panel.power(metric) for metric in work.METRICS}
    pairs = power[work.MAP][1]
    sums = {metric: values for metric, (values, _) in power.items()}
    evidence = f"DP over {pairs} pair{'s' if pairs != 1 else ''}: {each(sums, 4)}"
    return [
        Saying(f"{a} is more discriminative than {b}", "V-A, Table 1", sums[b] - sums[a], evidence)
        for a, b in ((work.SDCSE, work.MAP), (work.SDCSE, work.NDCG), (work.NDCG, work.MAP))
    ]


def _of_robustness(panel: ErrorNumbers) -> list[Saying]:
    half = {metric: panel.tau("ratings", metric, work.HALF) for metric in work.METRICS}
    ratings, popular = ({metric: panel.tau(way, metric) for metric in work.METRICS} for way in ("ratings", "popular"))
    return [
        Saying(f"Every metric keeps a tau above {KEPT} with half of the test ratings", "V-B, Figure 3",
               np.min(list(half.values()), axis=0) - KEPT, "tau with half: " + each(half)),
        Saying("NDCG is the most robust to missing ratings", "V-B, V-E",
               ratings[work.NDCG] - np.maximum(ratings[work.MAP], ratings[work.SDCSE]), "mean tau: " + each(ratings)),
        Saying("SDCSE is more robust than NDCG to missing popular items", "V-B, V-E",
               popular[work.SDCSE] - popular[work.NDCG], "mean tau without the most popular items: " + each(popular)),
    ]  # fmt: skip


def _of_migration(panel: ErrorNumbers) -> list[Saying]:
    name = "us-ds, half a step"
    shares = {model: panel.of(name, model) for model in panel.models}
    evidence = "us-ds: " + each(shares)
    orders = {metric: _agreement(panel, metric, name) for metric in work.METRICS}
    tau = "tau between the order of the models by us-ds and by: " + each(orders)
    return [
        Saying("MF migrates less than BPR (us-ds)", "Table 2", _more(shares, _bpr(panel), work.MF), evidence),
        Saying("LC-NN migrates less than NCF (us-ds)", "Table 2", _more(shares, work.NCF, work.LCNN), evidence),
        Saying("SDCSE orders the models as their us-ds does, more than NDCG and MAP do", "V-D",
               orders[work.SDCSE] - np.maximum(orders[work.NDCG], orders[work.MAP]), tau),
    ]  # fmt: skip


def _of_levels(panel: ErrorNumbers) -> list[Saying]:
    low, medium, high = "Low-High", "Medium-High", "High"
    sayings = []
    for level, model in ((low, work.MF), (medium, work.MF), (high, work.LCNN)):
        values = {name: panel.level(level, work.SDCSE, name) for name in panel.models}
        claim = f"By SDCSE, {model} is first at {level}"
        sayings.append(Saying(claim, "V-D, Figure 4", _first(values, model), "1 − SDCSE: " + each(values)))
    for level in (low, medium):
        gains = {model: panel.level(level, work.NDCG, model) for model in panel.models}
        claim, margin = f"NDCG puts BPR above MF at {level}", _more(gains, _bpr(panel), work.MF)
        sayings.append(Saying(claim, "V-D, Figure 4", margin, "NDCG: " + each(gains)))
    for metric in (work.NDCG, work.SDCSE):
        falls = {
            model: np.minimum(
                panel.level(low, metric, model) - panel.level(medium, metric, model),
                panel.level(medium, metric, model) - panel.level(high, metric, model),
            )
            for model in panel.models
        }
        claim = f"{'1 − SDCSE' if metric == work.SDCSE else metric} falls from low to high relevance"
        evidence = "smallest fall from a level to the next: " + each(falls)
        sayings.append(Saying(claim, "V-D, Figure 4", np.min(list(falls.values()), axis=0), evidence))
    gaps = {
        model: np.minimum(panel.of(work.MAP, model), panel.of(work.NDCG, model)) - panel.of("SDCSEacc", model)
        for model in panel.models
    }
    sayings.append(
        Saying("1 − SDCSE is below NDCG and MAP for every model", "V-D", np.min(list(gaps.values()), axis=0),
               "the lower of NDCG and MAP, minus 1 − SDCSE: " + each(gaps))
    )  # fmt: skip
    return sayings


def _of_errors(panel: ErrorNumbers) -> list[Saying]:
    """Return what the paper assumes: that a model with a lower SDCSE predicts better."""
    agree = [
        np.prod([np.sign(panel.of(metric, a) - panel.of(metric, b)) for metric in (work.SDCSE, "DCSE")], axis=0)
        for a, b in combinations(panel.models, 2)
    ]
    shares = np.mean([pair > 0 for pair in agree], axis=0)
    taus = {name: _agreement(panel, work.SDCSE, name) for name in ("DCSE", "RMSE", "RMSE, all items")}
    evidence = f"in {np.mean(shares):.0%} of the {len(agree)} pairs of models DCSE prefers the same one"
    return [
        Saying("Of two models, the one with the lower SDCSE has the lower DCSE", "III", np.min(agree, axis=0),
               evidence),
        Saying("SDCSE orders the models as RMSE at the top does (tau above 0.5)", "III", taus["RMSE"] - 0.5,
               "tau between SDCSE and: " + each(taus)),
    ]  # fmt: skip


def _of_implicit(panel: ErrorNumbers) -> list[Saying]:
    values = {model: panel.of("SDCSEacc", model, work.IMPLICIT) for model in panel.models}
    values = {model: own for model, own in values.items() if len(own)}
    return [
        Saying("MF has the best 1 − SDCSE on implicit feedback", "Table 3", _first(values, work.MF),
               "1 − SDCSE: " + each(values)),
    ]  # fmt: skip


def _bpr(panel: ErrorNumbers) -> str:
    """Return the paper's BPR, or matrix factorisation by BPR if that was not run."""
    return work.BPR if work.BPR in panel.models else work.BPRMF


_UNKNOWN = np.array([np.nan])


def _first(values: dict[str, Floats], model: str) -> Floats:
    """Return the lead of a model over the best of the others; NaN if it was not run."""
    others = [own for name, own in values.items() if name != model]
    if model not in values or not others:
        return _UNKNOWN
    return values[model] - np.max(others, axis=0)


def _more(values: dict[str, Floats], first: str, second: str) -> Floats:
    return values[first] - values[second] if first in values and second in values else _UNKNOWN


def _agreement(panel: ErrorNumbers, first: str, second: str) -> Floats:
    """Return tau between the orders of the models by two averages, for each split; metrics of gain are reversed."""
    sign = {work.MAP: -1.0, work.NDCG: -1.0}
    metrics = (first, second)
    orders = (sign.get(name, 1.0) * np.array([panel.of(name, model) for model in panel.models]).T for name in metrics)
    return np.array([float(kendall_tau_b(a, b)) for a, b in zip(*orders)])


AFTAB_2022 = Study(
    "aftab2022",
    "Sofia Aftab, Heri Ramampiaro: Evaluating Top-N Recommendations Using Ranked Error Approach: An Empirical "
    "Analysis. IEEE Access 10, 2022.",
    ("seeds", "samples", "systems", "epochs"),
    _plan,
    several=True,
    threshold=None,
)
