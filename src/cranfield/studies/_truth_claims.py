"""Claims from the printed numbers about systems and truths, checked on the run and on a truth without the flaw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cranfield.studies._claims import Finding, Saying, finding_over_splits
from cranfield.studies._resampled import JUDGED_PAIRS
from cranfield.studies._truth_exhibits import Found
from cranfield.studies._truth_orders import TruePairs, values_of
from cranfield.studies._truth_protocols import FULL_LISTS, Readings
from cranfield.studies._truth_sums import Floats, Sums
from cranfield.studies._truth_work import (
    COMPLETE_P1,
    COMPLETE_P10,
    OBSERVED_NDCG,
    OBSERVED_P10,
    TRUE_NDCG,
    TRUE_P1,
    TRUE_P10,
)

_NDCG, _P1, _KNN = "Figure 5, nDCG@10", "Figure 5, P@1", "Figure 6, nDCG@10"
_CLEAN = "beyond the paper"
_TOIS = "Mena-Maldonado et al. 2021"
_PLAIN, _NORMALISED = "kNN, not normalised", "kNN, normalised"


def claims(results: Found) -> list[Finding]:
    """Return the claims that the data allow, each with one margin per repetition or draw."""
    sayings = [*_of_protocol(results), *_of_fifths(results), *_of_orders(results)]
    return [finding_over_splits(saying) for saying in sayings]


def _of_protocol(results: Found) -> list[Saying]:
    if not results.published:
        return []
    published, half = results.published["actual"][JUDGED_PAIRS], results.halves["actual"]
    assert results.weighted is not None
    return [
        _above(published, OBSERVED_NDCG, "popularity", "average", "observed: popularity is above the average", _NDCG),
        _above(
            published, TRUE_NDCG, "average", "popularity", "published truth: the average is above popularity", _NDCG
        ),
        _above(published, TRUE_P1, "random", "popularity", "published truth: popularity is below random", _P1),
        _above(published, OBSERVED_NDCG, _PLAIN, _NORMALISED, "observed: plain kNN is above normalised kNN", _KNN),
        _above(published, TRUE_NDCG, _NORMALISED, _PLAIN, "published truth: normalised kNN is above plain kNN", _KNN),
        _above(half, TRUE_NDCG, "average", "popularity", "random half: the average is above popularity", _CLEAN),
        _above(half, COMPLETE_P1, "random", "popularity", "random half: popularity is below random", _CLEAN),
        _above(half, TRUE_NDCG, _NORMALISED, _PLAIN, "random half: normalised kNN is above plain kNN", _CLEAN),
        _agrees(results.weighted, TRUE_P10, "published truth: the order by observed P@10 agrees with it"),
        _agrees(results.weighted, COMPLETE_P10, "published truth, weighted: the order by observed P@10 agrees with it"),
        _agrees(results.lists["actual"], COMPLETE_P10, "random half: the order by observed P@10 agrees with it"),
    ]


def _of_fifths(results: Found) -> list[Saying]:
    """Return the claims from the printed numbers of 2021 about the order by observed and by true judgments."""
    if results.fifths is None:
        return []
    sayings = []
    for metric, claim in (
        ("P@10", "design of 2021: the orders by observed and by true P@10 agree"),
        ("AntiP@10", "design of 2021: the orders by observed and by true anti-precision disagree"),
    ):
        observed, true = (sums.by_fold(metric) for sums in results.fifths)
        taus = _taus_of_pairs(observed, true)
        evidence = f"tau {taus.mean():.2f} over all pairs of {observed.shape[1]} systems"
        sayings.append(Saying(claim, _TOIS, taus if metric == "P@10" else -taus, evidence))
    return sayings


def _above(sums: Sums, label: str, high: str, low: str, claim: str, where: str) -> Saying:
    """Return the claim that one system is above another, with the margin of each repetition."""
    values = sums.by_fold(label)
    means = values.reshape(-1, sums.folds, values.shape[1]).mean(axis=1)
    first, second = means[:, sums.systems.index(high)], means[:, sums.systems.index(low)]
    return Saying(claim, where, first - second, f"{label}: {high} {first.mean():.4f}, {low} {second.mean():.4f}")


def _agrees(sums: Sums, label: str, claim: str) -> Saying:
    """Return the claim that the order by observed P@10 agrees with a truth, with tau over all pairs in each draw."""
    observed = sums.by_fold(OBSERVED_P10)
    taus = _taus_of_pairs(observed, sums.by_fold(label))
    return Saying(claim, _CLEAN, taus, f"tau {taus.mean():.2f} over all pairs of {observed.shape[1]} systems")


def _taus_of_pairs(observed: Floats, true: Floats) -> Floats:
    """Return Kendall's tau of each draw over all pairs of systems; a tie counts as 0."""
    first, second = np.triu_indices(observed.shape[1], 1)
    signs = np.sign(observed[:, first] - observed[:, second]) * np.sign(true[:, first] - true[:, second])
    return np.asarray(signs.mean(axis=1))


def _of_orders(results: Found) -> list[Saying]:
    sayings = []
    for variant, draws in results.readings.items():
        for metric, claim in (
            ("P@10", "P@10 on full lists finds the true order"),
            ("AntiP@10", "anti-precision on full lists finds the true order"),
        ):
            taus = _taus(draws, (FULL_LISTS, metric))
            evidence = f"tau {taus.mean():.2f} on the pairs that differ in truth"
            sayings.append(Saying(f"{variant}: {claim} better than chance", _CLEAN, taus, evidence))
    return sayings


def _taus(draws: Sequence[Readings], name: tuple[str, str]) -> Floats:
    """Return tau with the true order of each draw."""
    taus = []
    for draw in draws:
        values = values_of(draw, np.ones((1, draw.truth.shape[1])))[draw.names.index(name), 0]
        taus.append(float(TruePairs.of(draw.truth).tau(values)))
    return np.array(taus)
