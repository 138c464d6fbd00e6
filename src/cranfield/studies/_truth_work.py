"""The designs of a truth, for data in which people said which items they knew: the published and the clean designs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import splits
from cranfield._errors import CranfieldWarning
from cranfield.data import Ratings
from cranfield.measures import true_values
from cranfield.rankings import Ranking, Run
from cranfield.splits import Truth, truths
from cranfield.studies._resampled import Variant, resampled
from cranfield.studies._truth_protocols import Readings, by_truth, read_protocols
from cranfield.studies._truth_sums import Floats, Sums, per_user
from cranfield.studies._truth_systems import fit_systems, paper_systems, ranked

FOLDS = 5
NDCG = "nDCG(gain=exprelevant)@10"
OBSERVED_P1, TRUE_P1, OBSERVED_NDCG, TRUE_NDCG = "observed P@1", "true P@1", "observed nDCG@10", "true nDCG@10"
OBSERVED_P10, TRUE_P10 = "observed P@10", "true P@10"
COMPLETE_P1, COMPLETE_P10 = "P@1 if all were judged", "P@10 if all were judged"
RELEVANT, JUDGED = "weight of liked items", "weight of judged items"
FIFTHS = ("P@10", "Recall@10", NDCG, "AntiP@10")
"""The metrics in the tables of Mena-Maldonado et al. (2021)."""


def published_sums(
    known: Ratings, judged: Ratings, variant: Variant, unrated: bool, threshold: float, seed: int
) -> Sums:
    """Run the protocol of Cañamares and Castells (2018) once: five folds, seven systems; see `resampled`."""
    observed, everything = resampled(known, judged, variant, threshold, seed, unrated=unrated)
    divisions = [_published(observed, everything, fold, seed) for fold in range(FOLDS)]
    return Sums.joined([_of_paper(truth, threshold, seed) for truth in divisions], folds=FOLDS)


def half_sums(known: Ratings, judged: Ratings, variant: Variant, threshold: float, seed: int) -> Sums:
    """Measure the seven systems with a random half of the judgments as the truth."""
    observed, judged = resampled(known, judged, variant, threshold, seed, unrated=False)
    return _of_paper(truths.half(observed, judged, seed=seed), threshold, seed)


def half_readings(
    known: Ratings, judged: Ratings, variant: Variant, systems: Sequence[str], threshold: float, seed: int
) -> tuple[Readings, Sums]:
    """Read every protocol on the observed part of a random half, and measure the lists by the whole half."""
    observed, judged = resampled(known, judged, variant, threshold, seed, unrated=False)
    return _read(truths.half(observed, judged, seed=seed), systems, threshold, seed)


def given_readings(
    train: Ratings, judged: Ratings, systems: Sequence[str], threshold: float, seed: int
) -> tuple[Readings, Sums]:
    """Read every protocol on a fifth of the training ratings, and measure the lists by the given judgments."""
    split = splits.random(train, train=1.0 - 1.0 / FOLDS, seed=seed)
    truth = truths.given(split.train, judged)
    observed = _over(split.test, truth.train)
    design = Truth(truth.train, truth.judged, truth.probability, truth.weighted, truth.step, observed)
    return _read(design, systems, threshold, seed)


def folded_sums(known: Ratings, judged: Ratings, systems: Sequence[str], threshold: float, seed: int) -> Sums:
    """Measure the panel by the published truth, plain and weighted; each seed uses another fold."""
    truth = truths.weighted(known, judged, folds=FOLDS, fold=seed % FOLDS, seed=seed // FOLDS)
    return _list_sums(_lists(fit_systems(systems, truth.train), truth, seed), truth, threshold)


def fifth_sums(
    known: Ratings, judged: Ratings, systems: Sequence[str], threshold: float, seed: int
) -> tuple[Sums, Sums]:
    """Run a fold of Mena-Maldonado et al. (2021): a fifth of all judgments is the truth, its known ones are observed.

    Means are over users with ratings in the test set, the observed or the true one.
    """
    truth = truths.half(known, judged, share=1.0 / FOLDS, seed=seed)
    assert truth.observed is not None
    runs = _lists(fit_systems(systems, truth.train), truth, seed)

    def of(test: Ratings) -> Sums:
        users = np.flatnonzero(test.user_counts)
        values = per_user(runs, test, FIFTHS, threshold)[:, :, users]
        return _one_fold(FIFTHS, systems, list(values), users, test.n_users)

    return of(truth.observed), of(truth.judged)


def _published(observed: Ratings, judged: Ratings, fold: int, seed: int) -> Truth:
    """Return the published division without a warning; the report explains what is wrong with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CranfieldWarning)
        return truths.published(observed, judged, folds=FOLDS, fold=fold, seed=seed)


def _of_paper(truth: Truth, threshold: float, seed: int) -> Sums:
    """Return the scores of the seven systems on the observed and on the true test set of a truth."""
    assert truth.observed is not None
    fitted = paper_systems(truth, threshold, seed)
    names = tuple(fitted)
    # Random lists may hold any item; the other lists only hold items that the system can score.
    plain = Ranking(fill="none", lists="full", length=10)
    lists = ranked(fitted, truth.train, [plain], seed)[0]
    lists["random"] = ranked({"random": fitted["random"]}, truth.train, [plain.with_(fill="random")], seed)[0]["random"]
    runs = [lists[name] for name in names]
    seen = per_user(runs, truth.observed, ["P@1", NDCG], threshold)
    true = per_user(runs, truth.judged, ["P@1", NDCG], threshold)
    complete = true_values(runs, truth, cutoff=1, threshold=threshold)
    users = complete.users
    labels = (OBSERVED_P1, OBSERVED_NDCG, TRUE_P1, TRUE_NDCG, COMPLETE_P1)
    columns = [*(values[:, users] for values in (*seen, *true)), complete.precision]
    return _one_fold(labels, names, columns, users, truth.train.n_users)


def _read(truth: Truth, systems: Sequence[str], threshold: float, seed: int) -> tuple[Readings, Sums]:
    assert truth.observed is not None
    fitted = fit_systems(systems, truth.train)
    worth = by_truth(truth, threshold)
    readings = read_protocols(truth.train, truth.observed, fitted, worth, threshold, seed)
    return readings, _list_sums(_lists(fitted, truth, seed), truth, threshold)


def _list_sums(runs: Sequence[Run], truth: Truth, threshold: float) -> Sums:
    """Return the scores of lists of ten on the observed and on the true test set, plain and weighted."""
    assert truth.observed is not None
    values = true_values(list(runs), truth, threshold=threshold)
    seen = per_user(runs, truth.observed, ["P@10"], threshold)[0]
    columns = [values.counts / 10, values.precision, values.relevant, values.judged, seen[:, values.users]]
    labels = (TRUE_P10, COMPLETE_P10, RELEVANT, JUDGED, OBSERVED_P10)
    return _one_fold(labels, [run.name for run in runs], columns, values.users, truth.train.n_users)


def _lists(fitted: Mapping[str, Any], truth: Truth, seed: int) -> list[Run]:
    return list(ranked(fitted, truth.train, [Ranking(fill="none", lists="full", length=10)], seed)[0].values())


def _one_fold(
    labels: Sequence[str],
    systems: Sequence[str],
    columns: Sequence[Floats],
    users: NDArray[Any],
    n_users: int,
) -> Sums:
    values = np.zeros((len(labels), len(systems), 1, n_users))
    values[:, :, 0, users] = np.array(columns)
    served = np.zeros((1, n_users))
    served[0, users] = 1.0
    return Sums(tuple(labels), tuple(systems), values, served)


def _over(ratings: Ratings, other: Ratings) -> Ratings:
    """Return ratings with the codes of other vocabularies, which must contain all their ids."""
    return Ratings.from_codes(
        other.user_ids,
        other.item_ids,
        other.user_ids.codes(ratings.user_ids.ids(ratings.users)),
        other.item_ids.codes(ratings.item_ids.ids(ratings.items)),
        ratings.values,
        name=ratings.name,
    )
