"""Truths: judgments that represent what all users think of all items, each with the probability that it was made.

A truth is designed like any test set. In data such as CM100k people rated items drawn at random and said which of them
they had known before. A service would have observed only the known ones, so training is drawn from these. The
judgments *outside* training are then no longer a uniform sample of the pairs: a known pair may have gone to training,
an unknown one cannot. Each design here therefore states that probability for every judgment. All users should have
judged about the same number of items.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import CranfieldWarning, InputError, SettingError
from cranfield._record import Step
from cranfield._streams import stream
from cranfield.data import Ratings, check_ratings, over_one_vocabulary
from cranfield.facts import split as facts
from cranfield.splits.parts import Mask, by_profile, in_both

_LARGEST_SPREAD = 1.25
"""If probabilities of judgments differ by more than this factor, an unweighted truth is called flawed."""
_SURE = 4.0
"""A sample is uneven if it is at least this many standard errors away from an even one."""


@dataclass(frozen=True, eq=False)
class Truth:
    """Judgments of pairs outside training, each with the probability that its pair was judged."""

    train: Ratings  # the ratings that systems learn from
    judged: Ratings  # the judgments of pairs outside training
    probability: NDArray[np.float64]  # for each judgment, P(judged | the pair is not in training)
    # Whether a judgment counts 1 / probability. Without weights every judgment counts the same, which gives the true
    # order only if the probabilities are nearly equal.
    weighted: bool
    step: Step  # how it was made
    # The held-out ratings that a service would have, a part of ``judged``; None if they cannot be told apart.
    observed: Ratings | None = None

    def __post_init__(self) -> None:
        if self.probability.shape != (len(self.judged),):
            raise SettingError(
                f"there are {len(self.probability):,} probabilities for {len(self.judged):,} judgments; "
                "give one for each"
            )
        if not ((self.probability > 0) & (self.probability <= 1)).all():
            raise SettingError(
                "a probability of a judgment is above 0 and at most 1; a pair never judged has no weight"
            )

    def __repr__(self) -> str:
        low, high = self.probability.min(), self.probability.max()
        weights = "weighted" if self.weighted else "unweighted"
        return (
            f"Truth({self.step.action.removeprefix('truth.')}: train {len(self.train):,}, judged {len(self.judged):,} "
            f"with probability {low:.3g} to {high:.3g}, {weights})"
        )

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weight of each judgment: 1 / its probability, or 1 / the mean probability without weights."""
        if self.weighted:
            return 1.0 / self.probability
        return np.full(len(self.judged), 1.0 / float(self.probability.mean()))

    @property
    def flaw(self) -> facts.UnequalProbabilities | None:
        """What is wrong with the design; None if it is sound."""
        highest, lowest = (by_profile(self.judged, extreme, self.probability) for extreme in (np.maximum, np.minimum))
        spread = float((highest / lowest).max())
        return None if self.weighted or spread <= _LARGEST_SPREAD else facts.UnequalProbabilities(spread)


def half(observed: Ratings, judged: Ratings, *, share: float = 0.5, seed: int = 0) -> Truth:
    r"""Take a random half of all judgments as the truth; only the observed ratings of the other half are for training.

    Each judgment goes to the truth with probability ``share`` :math:`h`, whether its pair was known or not. With
    :math:`j` the share of all pairs that were judged, an unknown pair is in the truth with probability :math:`hj`, and
    a known one that is not in training with :math:`hj / (1 - (1 - h) j)`: nearly the same. The judgments are weighted
    nevertheless.

    Parameters
    ----------
    observed
        The judgments that a service would have, as from `cranfield.datasets.load_pair("cm100k")`.
    judged
        All judgments of items drawn at random, including the observed ones.
    share
        The share of the judgments that becomes the truth.
    seed
        Seed of the draw.
    """
    observed, judged, known = _known(observed, judged)
    share = check.number("share", share)
    if not 0 < share < 1:
        raise SettingError(f"share={share} leaves no truth or no training; choose a number above 0 and below 1")
    draws = stream(check.whole("seed", seed, at_least=0), "truth", "half").random(len(judged))
    in_truth = draws < share
    rate = _judged_share(judged)
    probability = np.where(known, share * rate / (1.0 - (1.0 - share) * rate), share * rate)
    step = Step("truth.half", {"share": share, "seed": seed}, {"judged": int(in_truth.sum())})
    return _divided(judged, known, in_truth, probability, step)


def published(observed: Ratings, judged: Ratings, *, folds: int = 5, fold: int = 0, seed: int = 0) -> Truth:
    r"""Take one fold of the observed ratings and all judgments of unknown pairs as the truth, unweighted.

    This is the protocol of Cañamares and Castells (2018): the observed ratings are divided into ``folds``, all but one
    are for training, and the remaining one is the observed test set. With :math:`j` the share of all pairs that were
    judged and :math:`k` folds, an unknown pair is judged with probability :math:`j` and a known one outside training
    with :math:`(j / k) / (1 - (1 - 1/k) j)`, about :math:`k` times less often. Items that people know are therefore
    missing from this truth. A `CranfieldWarning` says so; `weighted` is the same division with weights.
    """
    truth = replace(_folded(observed, judged, folds, fold, seed, "published"), weighted=False)
    if truth.flaw is not None:
        warnings.warn(str(truth.flaw), CranfieldWarning, stacklevel=2)
    return truth


def weighted(observed: Ratings, judged: Ratings, *, folds: int = 5, fold: int = 0, seed: int = 0) -> Truth:
    """Divide as in `published`, and weight each judgment by 1 / P(judged | not in training)."""
    return _folded(observed, judged, folds, fold, seed, "weighted")


def given(train: Ratings, judged: Ratings, *, probability: Any = None) -> Truth:
    """Take given judgments as a truth, such as the random test part of Coat.

    Parameters
    ----------
    train
        The ratings that systems learn from.
    judged
        The judgments. Those of pairs in training are left out.
    probability
        P(judged | not in training) for each rating of ``judged``. By default a user's judgments are assumed to be an
        even sample of the items outside the user's training. A `CranfieldWarning` says so if items that are popular in
        training were judged less often, or more often, than that.
    """
    check_ratings(train)
    check_ratings(judged)
    train, judged = over_one_vocabulary([train, judged])
    outside = ~in_both(judged, train)
    kept = judged.keep(outside)
    if not len(kept):
        raise InputError("all judgments are in training", remedy="give judgments of other pairs")
    step = Step("truth.given", {"probability": "even" if probability is None else "given"}, {"judged": len(kept)})
    if probability is not None:
        stated = np.broadcast_to(np.asarray(probability, dtype=np.float64), (len(judged),))[outside]
        return Truth(train, kept, stated, True, step)
    even = _even_shares(train, kept)[kept.users]
    if uneven := unevenness(train, kept):
        warnings.warn(str(uneven), CranfieldWarning, stacklevel=2)
    return Truth(train, kept, even, True, step)


def unevenness(train: Ratings, judged: Ratings) -> facts.JudgedByPopularity | None:
    r"""Say whether judgments outside training follow the popularity in training; None if they do not.

    Over one vocabulary, let :math:`p_i` be the number of training ratings of an item, :math:`n_i` that of its judgments
    and :math:`E_i` the number that an even sample of each user's items outside training would give. The statistic is
    :math:`\sum_i p_i n_i / \sum_i p_i E_i`: 1 for an even sample. It is compared with its standard error under
    independent judgments.
    """
    shares = _even_shares(train, judged)
    popularity = train.item_counts.astype(np.float64)
    # The sums over the users for whom an item is outside training.
    candidates, variance = (
        each.sum() - np.bincount(train.items, weights=each[train.users], minlength=train.n_items)
        for each in (shares, shares * (1.0 - shares))
    )
    expected = float(popularity @ candidates)
    if expected <= 0:
        return None
    # The shares are estimated from the same judgments, so the popularities are centred on their mean.
    centred = popularity - expected / float(candidates.sum())
    error = float(np.sqrt((centred**2) @ variance)) / expected
    ratio = float(popularity @ judged.item_counts) / expected
    is_even = abs(ratio - 1.0) < max(_SURE * error, 0.1)
    return None if is_even else facts.JudgedByPopularity(ratio)


def _folded(observed: Ratings, judged: Ratings, folds: int, fold: int, seed: int, design: str) -> Truth:
    observed, judged, known = _known(observed, judged)
    folds = check.whole("folds", folds, at_least=2)
    fold = check.whole("fold", fold, at_least=0)
    if fold >= folds:
        raise SettingError(f"there is no fold {fold} of {folds}; folds are numbered from 0 to {folds - 1}")
    draws = stream(check.whole("seed", seed, at_least=0), "truth", "folds").random(len(judged))
    rate = _judged_share(judged)
    trained = 1.0 - 1.0 / folds
    probability = np.where(known, rate / folds / (1.0 - trained * rate), rate)
    in_truth = ~known | (np.floor(draws * folds) == fold)
    step = Step(f"truth.{design}", {"folds": folds, "fold": fold, "seed": seed}, {"judged": int(in_truth.sum())})
    return _divided(judged, known, in_truth, probability, step)


def _divided(judged: Ratings, known: Mask, in_truth: Mask, probability: NDArray[np.float64], step: Step) -> Truth:
    """Divide judgments into the truth and, of the others, the known ones for training."""
    train, truth, observed = (judged.keep(mask, step) for mask in (known & ~in_truth, in_truth, known & in_truth))
    return Truth(train, truth, probability[in_truth], True, step, observed)


def _known(observed: Ratings, judged: Ratings) -> tuple[Ratings, Ratings, Mask]:
    """Return both over one vocabulary, and whether each judgment is among the observed ratings."""
    check_ratings(observed)
    check_ratings(judged)
    observed, judged = over_one_vocabulary([observed, judged])
    known = in_both(judged, observed)
    if known.sum() != len(observed):
        raise InputError(
            f"{len(observed) - int(known.sum()):,} of {len(observed):,} observed ratings are not among the judgments",
            remedy="give all judgments, including the observed ones",
        )
    if not known.any() or known.all():
        which = "no judgment is" if not known.any() else "all judgments are"
        raise InputError(f"{which} observed", remedy="a truth needs judgments of observed and of other pairs")
    return observed, judged, known


def _judged_share(judged: Ratings) -> float:
    """Return the share of all pairs of a user and an item that were judged.

    It is pooled over users: users with training ratings are those who happened to judge more, so their own shares would
    be too high.
    """
    return len(judged) / (int(np.count_nonzero(judged.user_counts)) * judged.n_items)


def _even_shares(train: Ratings, judged: Ratings) -> NDArray[np.float64]:
    """Return the share of the items outside training that each user judged."""
    return np.asarray(judged.user_counts / np.maximum(judged.n_items - train.user_counts, 1))
