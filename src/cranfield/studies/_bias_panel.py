"""How Bellogín et al. (2017) prepare a set of ratings before the split, and how their datasets are recognised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from cranfield import _checks
from cranfield._errors import ImpossibleSplitError, SettingError
from cranfield.data import Ratings, counts_to_ratings, describe, min_ratings, positives
from cranfield.splits import Split, predefined, uniform_test
from cranfield.studies._bias_work import EPSILON, GROUPS, SIGMA, BiasWork

MOVIELENS, HETREC, LASTFM = "MovieLens 1M", "HetRec 2011 Last.fm", "Last.fm (lastfm-1k)"
ABSENT = "Last.fm (lastfm-1k), the paper's own extract of nearly 1,000 listeners"
THRESHOLD = 5.0
TARGETS = 100


RatingsOrSplit = TypeVar("RatingsOrSplit", bound=Ratings | Split)


@dataclass(frozen=True)
class KnownRatings:
    """A dataset that is recognised by its numbers of users, items and ratings."""

    size: tuple[int, int, int]
    threshold: float
    play_counts: bool
    drawn: int | None = None


KNOWN = {
    MOVIELENS: KnownRatings((6040, 3706, 1_000_209), 5.0, False),
    HETREC: KnownRatings((1892, 17_632, 92_834), 3.0, True),
}
DIVIDED = {"lastfm-1k-temporal": (LASTFM, KnownRatings((0, 0, 0), 3.0, True, drawn=2_500))}
"""Datasets that come with their own split, which are recognised by name."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A set of ratings, ready to be split.

    Parameters
    ----------
    name
        Its name.
    known
        The known dataset that it is; None for other ratings.
    work
        The measurements to make on it.
    dropped
        Number of the rarest items that uniform-test splits leave out.
    positive
        Whether every rating is positive.
    uniform
        The properties of a uniform-test split: ``zeta``, ``eta``.
    """

    name: str
    known: str | None
    work: BiasWork
    dropped: int
    positive: bool
    uniform: Mapping[str, int]


def prepared(
    name: str,
    data: Ratings | Split,
    *,
    threshold: float | None,
    play_counts: bool | None,
    targets: int | None,
    folds: int,
    seed: int,
) -> Prepared:
    """Return a set of ratings as the study uses it.

    Play counts below the threshold are dropped. The others are positive and become ratings from 1 to 5 as in Celma and
    Herrera (2008). A split is used as it is.
    """
    known, usual = _recognised(data)
    parts = list(data) if isinstance(data, Split) else [data]
    at = usual.threshold if threshold is None else threshold
    highest = min(float(part.values.max()) for part in parts)
    if highest < at:
        raise SettingError(f"no rating reaches threshold={at:g}, the highest is {highest:g}; lower it")
    if usual.play_counts if play_counts is None else play_counts:
        parts, at = [counts_to_ratings(positives(part, threshold=at)) for part in parts], 1.0
    divided = predefined(*parts, overlap="train") if len(parts) == 2 else None
    ratings = parts[0] if divided is None else together(divided)
    uniform, dropped = _with_solution(ratings)
    effect = uniform_test(uniform, sigma=SIGMA, epsilon=EPSILON, seed=seed).step.effect
    chosen = int(effect["zeta"])
    wanted = _checks.whole("targets", TARGETS if targets is None else targets, at_least=11)
    _check_sizes(ratings, wanted, chosen)
    work = BiasWork(
        data=ratings,
        uniform_data=uniform,
        threshold=at,
        other=_other(ratings, at),
        folds=folds,
        targets=wanted,
        nonrelevant=chosen // 100 * 100 if chosen >= 100 else chosen,
        seed=seed,
        divided=divided,
        drawn=None if divided is None else usual.drawn,
    )
    uniform_sizes = {key: int(effect[key]) for key in ("zeta", "eta")}
    return Prepared(name, known, work, dropped, bool(ratings.values.min() >= at), uniform_sizes)


def _recognised(data: Ratings | Split) -> tuple[str | None, KnownRatings]:
    """Return which dataset it is and how the paper treats it; None and the defaults for others."""
    usual = KnownRatings((0, 0, 0), THRESHOLD, False)
    if isinstance(data, Split):
        return DIVIDED.get(name_of(data), (None, usual))
    size = describe(data)
    sizes = {entry.size: title for title, entry in KNOWN.items()}
    title = sizes.get((size.users, size.items, size.ratings))
    return title, usual if title is None else KNOWN[title]


def together(split: Split) -> Ratings:
    """Return the ratings of both parts of a split, with its vocabularies."""
    return Ratings.from_codes(
        split.train.user_ids,
        split.train.item_ids,
        *(np.concatenate([getattr(part, column) for part in split]) for column in ("users", "items", "values")),
        name=split.train.name,
    )


def _with_solution(ratings: Ratings) -> tuple[Ratings, int]:
    """Return the ratings without the rarest items, as few as possible so that a uniform-test split exists."""
    counts = ratings.item_counts
    failed: ImpossibleSplitError | None = None
    for fewest in np.unique(counts[counts > 0]).tolist():
        kept = ratings if fewest == counts[counts > 0].min() else min_ratings(ratings, item=fewest)
        try:
            uniform_test(kept, sigma=SIGMA, epsilon=EPSILON)
        except ImpossibleSplitError as error:
            failed = failed or error
            continue
        return kept, int(np.count_nonzero((counts > 0) & (counts < fewest)))
    assert failed is not None
    raise failed


def _check_sizes(ratings: Ratings, targets: int, chosen: int) -> None:
    """Reject target sets that are larger than a percentile or than the items of a uniform test."""
    percentile = int(np.count_nonzero(ratings.item_counts)) // GROUPS
    smallest = min(percentile, chosen)
    if targets > smallest:
        where = f"the smallest of {GROUPS} popularity percentiles" if percentile == smallest else "a uniform test set"
        raise SettingError(
            f"targets={targets} is more than the {smallest:,} items of {where}; give targets={smallest} or less"
        )


def _other(ratings: Ratings, threshold: float) -> float | None:
    """Return the next lower rating as another threshold, if some ratings are below it too."""
    lower = np.unique(ratings.values[ratings.values < threshold])
    return float(lower[-1]) if len(lower) > 1 else None


def name_of(data: Ratings | Split) -> str:
    """Return the name of a set of ratings; for a split, the name of its training part without "(train)"."""
    if isinstance(data, Split):
        return (data.train.name or "the ratings").removesuffix(" (train)")
    return data.name or "the ratings"


def numbered(data: Sequence[RatingsOrSplit]) -> dict[str, RatingsOrSplit]:
    """Return the ratings by name, with numbers if names are missing or not unique."""
    names: dict[str, RatingsOrSplit] = {}
    for place, ratings in enumerate(data, start=1):
        name = name_of(ratings)
        names[f"{name} ({place})" if name in names else name] = ratings
    return names
