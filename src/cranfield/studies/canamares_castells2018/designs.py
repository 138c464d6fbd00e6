"""The designs of a truth, for data in which people said which items they knew: the published and the clean designs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cranfield import splits
from cranfield._errors import CranfieldWarning
from cranfield._streams import stream
from cranfield.data import Ratings, over_one_vocabulary
from cranfield.measures import TrueValues, measure, true_values
from cranfield.rankings import Ranking, Run
from cranfield.recommenders import recommender
from cranfield.splits import Truth, truths
from cranfield.studies.canamares_castells2018 import protocols
from cranfield.studies.canamares_castells2018.protocols import Arrays, Readings, fit_systems, ranked
from cranfield.studies.frame.claims import Floats

Variant = Literal["actual", "relevance-independent", "item-independent"]
VARIANTS: tuple[Variant, ...] = ("actual", "relevance-independent", "item-independent")
JUDGED_PAIRS = "judged pairs"
WAYS = (JUDGED_PAIRS, "all pairs")  # which pairs can become known when discovery is resampled

FOLDS = 5
NDCG = "nDCG(gain=exprelevant)@10"
OBSERVED_P1, TRUE_P1, OBSERVED_NDCG, TRUE_NDCG = "observed P@1", "true P@1", "observed nDCG@10", "true nDCG@10"
OBSERVED_P10, TRUE_P10 = "observed P@10", "true P@10"
COMPLETE_P1, COMPLETE_P10 = "P@1 if all were judged", "P@10 if all were judged"
RELEVANT, JUDGED = "weight of liked items", "weight of judged items"
FIFTHS = ("P@10", "Recall@10", NDCG, "AntiP@10")  # the metrics in the tables of Mena-Maldonado et al. (2021)


Ranged = tuple[Floats, Floats, Floats]  # the number of each system, and the lower and the upper end of its interval


@dataclass(frozen=True, eq=False)
class Sums(Arrays):
    """The contribution of each user to each number in each fold."""

    labels: tuple[str, ...]  # what is counted
    systems: tuple[str, ...]
    values: Floats  # labels × systems × folds × users
    served: Floats  # folds × users: 1 for a user who counts
    folds: int = 1  # per repetition

    def means(self, label: str) -> Floats:
        """Return the mean of each system: over folds, of the mean over users who count."""
        return np.asarray(self.by_fold(label).mean(axis=0))

    def ranged(self, label: str) -> Ranged:
        """Return the mean of each system and its interval."""
        return self.means(label), *self.interval(label)

    def precision(self, label: str) -> Ranged:
        """Return the same of a precision; none is above 1, though an estimate from few weighted judgments can be."""
        mean, lower, upper = (np.minimum(part, 1.0) for part in self.ranged(label))
        return mean, lower, upper

    def ratios(self, above: str, below: str) -> Ranged:
        """Return the ratio of two numbers of each system, each summed over folds and users, and its interval."""
        top, bottom = (self.values[self.labels.index(label)].sum(axis=(1, 2)) for label in (above, below))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(top / bottom), *self.interval(above, below)

    def by_fold(self, label: str) -> Floats:
        """Return folds × systems: the mean over the users who count."""
        return np.asarray((self.values[self.labels.index(label)].sum(axis=2) / self.served.sum(axis=1)).T)

    def interval(self, above: str, below: str | None = None, *, resamples: int = 500) -> tuple[Floats, Floats]:
        """Return the 95 % bootstrap interval over users and repetitions of `means`, or of `ratios` with ``below``."""
        weights = TrueValues.user_draws(self.served.shape[1], resamples, 0)
        top = self._weighted(above, weights)
        bottom = (self.served @ weights.T)[None] if below is None else self._weighted(below, weights)
        count = top.shape[1] // self.folds
        picks = (stream(0, "truth", "repetitions").random((resamples, count)) * count).astype(np.int64)
        chosen = (slice(None), np.arange(resamples)[:, None], picks)
        top, bottom = (  # systems × draws × repetitions × folds
            np.moveaxis(part.reshape(len(part), -1, self.folds, resamples), 3, 1)[chosen] for part in (top, bottom)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = (top / bottom).mean(axis=(2, 3)) if below is None else top.sum((2, 3)) / bottom.sum((2, 3))
        lower, upper = TrueValues.row_percentiles(drawn, (2.5, 97.5))
        return lower, upper

    def _weighted(self, label: str, weights: Floats) -> Floats:
        return np.asarray(self.values[self.labels.index(label)] @ weights.T)

    @staticmethod
    def joined(parts: Sequence[Sums], *, folds: int | None = None) -> Sums:
        """Return the folds of several sums as one object; ``folds`` sets how many folds form a repetition."""
        values = np.concatenate([part.values for part in parts], axis=2)
        served = np.concatenate([part.served for part in parts])
        return Sums(parts[0].labels, parts[0].systems, values, served, parts[0].folds if folds is None else folds)


def per_user(runs: Sequence[Run], test: Ratings, metrics: Sequence[str], threshold: float) -> Floats:
    """Return metrics × systems × users: the score of each list, 0 if it is undefined or there is no test rating."""
    scores = measure(list(runs), test, metrics, threshold=threshold)
    values = np.zeros((len(metrics), len(runs), test.n_users))
    values[:, :, scores.users] = np.nan_to_num(np.swapaxes(scores.values, 0, 1))
    return values


def discovery(
    known: Ratings, judged: Ratings, variant: Variant, threshold: float, seed: int, *, unrated: bool
) -> NDArray[np.float64]:
    """Return users × items: the probability that a user discovers an item in a variant of the paper.

    Both arguments share one vocabulary. *Relevance-independent* (c): the share of known judgments of each item is that
    of an item drawn at random (a permutation), the same for all users. *Item-independent* (d): P(known | relevant) and
    P(known | not relevant) over the judged pairs; with ``unrated`` over all pairs, and pairs without a judgment count
    as not relevant.
    """
    shape = (judged.n_users, judged.n_items)
    if variant == "relevance-independent":
        order = np.argsort(stream(seed, "discovery", "items").random(judged.n_items), kind="stable")
        shares = known.item_counts / np.maximum(judged.item_counts, 1)
        return np.broadcast_to(shares[order], shape).copy()
    liked = np.zeros(shape, dtype=np.bool_)
    relevant = judged.values >= threshold
    liked[judged.users[relevant], judged.items[relevant]] = True
    discovered = int((known.values >= threshold).sum())
    of_liked = discovered / max(int(relevant.sum()), 1)
    others = (liked.size if unrated else len(judged)) - int(relevant.sum())
    of_others = (len(known) - discovered) / max(others, 1)
    return np.where(liked, of_liked, of_others)


def resampled(
    known: Ratings, judged: Ratings, variant: Variant, threshold: float, seed: int, *, unrated: bool
) -> tuple[Ratings, Ratings]:
    """Draw the known pairs in a variant of the paper; return them with the judgments.

    With ``unrated``, pairs without a judgment can become known too. They are observed with a rating of 0 and are added
    to the judgments that are returned. Otherwise only judged pairs can become known, and the judgments do not change:
    they remain a random sample.
    """
    known, judged = over_one_vocabulary([known, judged])
    if variant == "actual":
        return known, judged
    chances = discovery(known, judged, variant, threshold, seed, unrated=unrated)
    drawn = stream(seed, "discovery", "pairs").random(chances.shape) < chances
    if not unrated:
        return judged.keep(drawn[judged.users, judged.items]), judged
    grades = np.full(chances.shape, -1.0)
    grades[drawn] = 0.0
    grades[judged.users, judged.items] = judged.values
    users, items = np.nonzero(grades >= 0)
    values = grades[users, items].astype(np.float32)
    everything = Ratings.from_codes(
        judged.user_ids, judged.item_ids, users.astype(np.int32), items.astype(np.int32), values, name=judged.name
    )
    return everything.keep(drawn[everything.users, everything.items]), everything


class ItemScores:
    """A system with given item scores, the same for every user."""

    def __init__(self, scores: NDArray[np.float64]) -> None:
        self._scores = scores

    def fit(self, _: Ratings) -> ItemScores:
        """Return self; there is nothing to learn."""
        return self

    def score(self, users: NDArray[Any]) -> NDArray[np.float64]:
        """Return the item scores for each user."""
        return np.tile(self._scores, (len(users), 1))


def paper_systems(truth: Truth, threshold: float, seed: int) -> dict[str, Any]:
    """Return the seven systems of Cañamares and Castells (2018), fitted on the training part of a truth.

    Popularity counts relevant ratings; the average is damped by the mean number of ratings of an item; kNN has all
    users as neighbours and uses max(r − threshold + 1, 0) as ratings, also in the similarity; the optimal rankings look
    at the test set.
    """
    train, counts = truth.train, truth.train.item_counts
    truncated = replace(train, values=np.maximum(train.values - np.float32(threshold) + 1, 0))
    assert truth.observed is not None

    def optimal(test: Ratings) -> ItemScores:
        relevant = np.bincount(test.items[test.values >= threshold], minlength=test.n_items)
        outside = np.maximum(train.n_users - counts, 1)
        return ItemScores(np.where(counts > 0, relevant / outside, np.nan))

    damping = len(train) / train.n_items
    everybody = f"k={train.n_users}"
    return {
        "random": recommender(f"random(seed={seed})").fit(train),
        "popularity": recommender(f"popularity(threshold={threshold:g})").fit(train),
        "average": recommender(f"average(threshold={threshold:g}, damping={damping!r})").fit(train),
        "optimal observed ranking": optimal(truth.observed),
        "optimal true ranking": optimal(truth.judged),
        "kNN, not normalised": recommender(f"knn({everybody})").fit(truncated),
        "kNN, normalised": recommender(f"knn({everybody}, normalised=true, min_neighbours=3)").fit(truncated),
    }


def published_sums(
    known: Ratings, judged: Ratings, variant: Variant, unrated: bool, threshold: float, seed: int
) -> Sums:
    """Run the protocol of Cañamares and Castells (2018) once: five folds, seven systems; see `resampled`."""
    observed, everything = resampled(known, judged, variant, threshold, seed, unrated=unrated)
    with warnings.catch_warnings():  # the report explains what is wrong with the published division
        warnings.simplefilter("ignore", CranfieldWarning)
        divisions = [truths.published(observed, everything, folds=FOLDS, fold=fold, seed=seed) for fold in range(FOLDS)]
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
    observed, _ = over_one_vocabulary([split.test, truth.train])
    return _read(replace(truth, observed=observed), systems, threshold, seed)


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
    worth = protocols.by_truth(truth, threshold)
    readings = protocols.read_protocols(truth.train, truth.observed, fitted, worth, threshold, seed)
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
    labels: Sequence[str], systems: Sequence[str], columns: Sequence[Floats], users: NDArray[Any], n_users: int
) -> Sums:
    values, served = np.zeros((len(labels), len(systems), 1, n_users)), np.zeros((1, n_users))
    values[:, :, 0, users], served[0, users] = np.array(columns), 1.0
    return Sums(tuple(labels), tuple(systems), values, served)
