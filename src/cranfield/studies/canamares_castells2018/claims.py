"""Claims of Cañamares and Castells (2018) about observed and true orders, checked on repetitions and users."""

from __future__ import annotations

import numpy as np

from cranfield.studies.canamares_castells2018 import designs
from cranfield.studies.canamares_castells2018.designs import Sums
from cranfield.studies.canamares_castells2018.exhibits import Found
from cranfield.studies.canamares_castells2018.orders import world_scores
from cranfield.studies.canamares_castells2018.protocols import FULL_LISTS
from cranfield.studies.frame.claims import ClaimFindings, Floats, Part, Saying, findings

_PLAIN, _NORMALISED = "kNN, not normalised", "kNN, normalised"


def claims_of(numbers: Found) -> ClaimFindings:
    """Return the verdicts on the claims of the papers of 2018 and 2021, and on what we found beyond them."""
    return findings(__package__, [_of_protocol, _of_fifths, _of_orders], {"": numbers})


def _of_protocol(numbers: Found) -> list[Saying]:
    if not numbers.published:
        return []
    published, half, weighted = numbers.published["actual"][designs.JUDGED_PAIRS], numbers.half, numbers.weighted
    assert half is not None
    assert weighted is not None
    observed, true, complete = designs.OBSERVED_NDCG, designs.TRUE_NDCG, designs.COMPLETE_P10
    p10 = designs.OBSERVED_P10
    return [
        _above("observed popularity", published, observed, "popularity", "average"),
        _above("published average", published, true, "average", "popularity"),
        _above("published random", published, designs.TRUE_P1, "random", "popularity"),
        _above("observed kNN", published, observed, _PLAIN, _NORMALISED),
        _above("published kNN", published, true, _NORMALISED, _PLAIN),
        _above("half average", half, true, "average", "popularity"),
        _above("half random", half, designs.COMPLETE_P1, "random", "popularity"),
        _above("half kNN", half, true, _NORMALISED, _PLAIN),
        _agree("agrees published", weighted.by_fold(p10), weighted.by_fold(designs.TRUE_P10)),
        _agree("agrees weighted", weighted.by_fold(p10), weighted.by_fold(complete)),
        _agree("agrees half", numbers.lists["actual"].by_fold(p10), numbers.lists["actual"].by_fold(complete)),
    ]


def _above(key: str, sums: Sums, label: str, high: str, low: str) -> Saying:
    """Return the claim that one system is above another: a margin per repetition, with the error over users."""
    first, second = (sums.systems.index(system) for system in (high, low))
    by_fold = sums.by_fold(label)
    means = by_fold.reshape(-1, sums.folds, by_fold.shape[1]).mean(axis=1)
    values, served = sums.values[sums.labels.index(label)], sums.served
    lead = (by_fold[:, first] - by_fold[:, second])[:, None]
    away = (values[first] - values[second] - served * lead) / served.sum(axis=1, keepdims=True)
    error = float(np.sqrt((away.mean(axis=0) ** 2).sum()))
    evidence = f"{label}: {high} {means[:, first].mean():.4f}, {low} {means[:, second].mean():.4f}"
    users = int(np.count_nonzero(served.any(axis=0)))
    return Saying(key, Part(means[:, first] - means[:, second], error), evidence, users=users)


def _agree(key: str, observed: Floats, true: Floats, *, sign: float = 1.0) -> Saying:
    """Return a claim whose margin is Kendall's tau of each draw over all pairs of systems; a tie counts as 0."""
    first, second = np.triu_indices(observed.shape[1], 1)
    signs = np.sign(observed[:, first] - observed[:, second]) * np.sign(true[:, first] - true[:, second])
    taus, systems = np.asarray(signs.mean(axis=1)), observed.shape[1]
    evidence = f"tau {taus.mean():.2f} over all pairs of {systems} systems"
    return Saying(key, Part(sign * taus), evidence, systems=systems)


def _of_fifths(numbers: Found) -> list[Saying]:
    """Return the claims from the printed numbers of 2021 about the order by observed and by true judgments."""
    if numbers.fifths is None:
        return []
    observed, true = numbers.fifths
    return [
        _agree("fifths P", observed.by_fold("P@10"), true.by_fold("P@10")),
        _agree("fifths AntiP", observed.by_fold("AntiP@10"), true.by_fold("AntiP@10"), sign=-1.0),
    ]


def _of_orders(numbers: Found) -> list[Saying]:
    sayings = []
    for variant, draws in numbers.readings.items():
        by_draw = [world_scores(draw).filter(protocol=FULL_LISTS) for draw in draws]
        for metric, name in (("P@10", "P@10"), ("AntiP@10", "anti-precision")):
            taus = np.array([scores.filter(metric=metric)["tau"].item() for scores in by_draw])
            evidence = f"tau {taus.mean():.2f} on the pairs that differ in truth"
            sayings.append(Saying("order", Part(taus), evidence, {"variant": variant, "metric": name}))
    return sayings
