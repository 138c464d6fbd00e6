"""Splits that treat items alike: the same number of ratings per item in training, or in test."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError
from cranfield._streams import stream
from cranfield.data import Ratings, by_popularity
from cranfield.splits._parts import TEST, TRAIN, coins, divide, some, validation_share
from cranfield.splits._places import item_places
from cranfield.splits.methods import registry
from cranfield.splits.split import Split


@registry.register
def train_per_item(
    ratings: Ratings,
    *,
    l: int,  # noqa: E741  the papers' ℓ
    seed: int = 0,
    validation: float | None = None,
) -> Split:
    """Send ``l`` ratings of each item to training, drawn at random, and the rest to test.

    All items are then equally popular in training, so popularity has no advantage (Bellogín et al., 2017). An item with
    ``l`` ratings or fewer keeps all of them in training; the notes say how many such items there are.

    Parameters
    ----------
    ratings
        The ratings to split.
    l
        Number of training ratings per item.
    seed
        Seed of the draw.
    validation
        The probability of each training rating to be set aside; it does not change the test part.

    Examples
    --------
    >>> ratings = Ratings.of([1, 2, 3, 1, 2, 1], ["a", "a", "a", "b", "b", "c"])
    >>> train_per_item(ratings, l=1).test.item_counts.tolist()
    [2, 1, 0]
    """
    some(ratings)
    l, share = check.whole("l", l), validation_share(validation)  # noqa: E741
    seed = check.whole("seed", seed, at_least=0)
    counts = ratings.item_counts
    untested, rated = int(np.count_nonzero((counts > 0) & (counts <= l))), int(np.count_nonzero(counts))
    if untested == rated:
        raise ImpossibleSplitError(
            f"none of the {rated:,} items has more than {l} ratings, so nothing is left for test; "
            f"choose l below {counts.max()}"
        )
    parts = np.where(item_places(ratings, stream(seed, "split", "train_per_item")) < l, TRAIN, TEST)
    if validation is not None:
        parts = coins(len(parts), 1.0, share, stream(seed, "split", "train_per_item", "validation"), parts)
    short = int(np.count_nonzero((counts > 0) & (counts < l)))
    notes = [f"{untested:,} of {rated:,} items have {l} ratings or fewer, all kept in training"] if untested else []
    settings = {"l": l, "seed": seed, "validation": validation}
    effect = {"items_without_test": untested, "items_short_of_l": short}
    return divide(ratings, parts, "train_per_item", settings, effect=effect, notes=notes)


@registry.register
def uniform_test(
    ratings: Ratings,
    *,
    sigma: float = 0.2,
    epsilon: float = 0.2,
    rounding: str = "nearest",
    seed: int = 0,
    validation: float | None = None,
) -> Split:
    r"""Give every item of a set T the same number η of test ratings, and other items none (uniform test items).

    Items with many training ratings then have no more positive test ratings than others, so popularity alone brings no
    advantage (the designs UAR and U1R). With the items :math:`i_k` in decreasing order of popularity,

    .. math::
        \zeta = \max\{k : (1 - \varepsilon)\,|R(i_k)|\,k / |R| \ge \sigma\}, \quad
        T = \{i_k : k \le \zeta\}, \quad \eta = (1 - \varepsilon)\,|R(i_\zeta)|,

    which makes T as large as possible.

    Parameters
    ----------
    ratings
        The ratings to split.
    sigma
        σ, the share of the ratings to test with. η follows from ε and the rarest item of T, so the share may be larger,
        for example if T is all items; the notes then say which ε gives σ.
    epsilon
        ε, the minimum share of an item's ratings to keep in training; for n-fold cross-validation at least 1/n.
    rounding
        How η is rounded. ``"nearest"`` (halves down), as in the paper, where MovieLens 1M with σ = ε = 0.2 has
        :math:`|R(i_\zeta)| = 147`, so 117.6, printed as 118. The rarest items of T may then keep up to half a rating
        less than ε requires (29 of 147 there); at least one rating always stays in training. ``"down"`` satisfies ε
        strictly, with a test part slightly smaller than σ.
    seed
        Seed of the draw.
    validation
        The probability of each training rating to be set aside; it does not change the test part, and ε then holds for
        training and validation together.

    Notes
    -----
    T does not depend on the order of equally popular items: of two such items neither is in T without the other,
    because the condition is weaker for the later one. In the design U1R the candidates should be the items of T,
    which are the ones with test ratings.

    References
    ----------
    A. Bellogín, P. Castells, I. Cantador (2017). Statistical biases in information retrieval metrics for recommender
    systems. Information Retrieval Journal 20, section 6.2.

    Examples
    --------
    >>> users, items = zip(*[(u, i) for i in range(6) for u in range(12 - 2 * i)])
    >>> split = uniform_test(Ratings.of(users, items), sigma=0.3, epsilon=0.2)
    >>> split.test.item_counts.tolist(), split.step.effect["zeta"], split.step.effect["eta"]
    ([3, 3, 3, 3, 3, 0], 5, 3)
    """
    some(ratings)
    sigma, epsilon = check.share("sigma", sigma), check.share("epsilon", epsilon)
    rounding = check.one_of("rounding", rounding, ("nearest", "down"))
    seed, share = check.whole("seed", seed, at_least=0), validation_share(validation)
    chosen, exact = _largest_set(ratings, sigma, epsilon)
    rarest = int(ratings.item_counts[chosen[-1]])
    eta = min(math.ceil(exact - Fraction(1, 2)) if rounding == "nearest" else math.floor(exact), rarest - 1)
    if eta < 1:
        raise ImpossibleSplitError(
            f"sigma={sigma} and epsilon={epsilon} ask for {float(exact):.2f} test ratings of each of "
            f"{len(chosen):,} items, the rarest of which has {rarest}: that leaves no whole rating for each part; "
            "filter with min_ratings(item=5) or choose a larger sigma"
        )
    limit = np.zeros(ratings.n_items, dtype=np.int32)
    limit[chosen] = eta
    parts = np.where(item_places(ratings, stream(seed, "split", "uniform_test")) < limit[ratings.items], TEST, TRAIN)
    if validation is not None:
        parts = coins(len(parts), 1.0, share, stream(seed, "split", "uniform_test", "validation"), parts)
    kept = 1 - eta / ratings.item_counts[chosen]
    settings = {"sigma": sigma, "epsilon": epsilon, "rounding": rounding, "seed": seed, "validation": validation}
    effect = {
        "zeta": len(chosen),
        "eta": eta,
        "eta_before_rounding": float(exact),
        "test_share": len(chosen) * eta / len(ratings),
        "least_train_share": float(kept.min()),
    }
    notes = [
        f"the {len(chosen):,} most popular items are T, and {eta:,} ratings of each are test",
        *_more_than_asked(
            max(1.0, sigma * len(ratings) / len(chosen)), float(exact), rarest, sigma, effect["test_share"]
        ),
        *_less_than_asked(kept, epsilon, float(exact), eta),
    ]
    return divide(ratings, parts, "uniform_test", settings, effect=effect, notes=notes)


def _more_than_asked(needed: float, eta: float, rarest: int, sigma: float, share: float) -> list[str]:
    """Say that η, which follows from ε, exceeds what σ needs by a rating or more, and which ε would give σ."""
    if eta - needed < 1:
        return []
    # Rounded down, so that the condition on ζ still holds.
    epsilon = math.floor((1 - needed / rarest) * 1e4 + 1e-6) / 1e4
    return [
        f"the test part is {share:.1%} of the ratings, more than σ = {sigma:.1%}, because the rarest item of T has "
        f"{rarest:,} ratings; epsilon={epsilon:g} keeps T and comes nearest to σ"
    ]


def _less_than_asked(kept: NDArray[np.float64], epsilon: float, exact: float, eta: int) -> list[str]:
    """Say that rounding η up leaves items of T with less than ε of their ratings in training."""
    below = np.count_nonzero(kept < epsilon - 1e-12)
    if not below:
        return []
    return [
        f"rounding η = {exact:.4g} up to {eta} leaves {below:,} items of T with as little as {kept.min():.2%} of their "
        f"ratings in training, a little less than ε = {epsilon:g}; rounding=down keeps to it"
    ]


def _largest_set(ratings: Ratings, sigma: float, epsilon: float) -> tuple[NDArray[np.int64], Fraction]:
    """Return the items of T, the most popular first, and η before rounding."""
    order = by_popularity(ratings)
    popularity = ratings.item_counts[order]
    reach = (1 - epsilon) * popularity * np.arange(1, len(popularity) + 1) / len(ratings)
    # A ratio that equals σ in exact arithmetic counts as equal.
    solutions = np.flatnonzero(reach >= sigma - 1e-12)
    if len(solutions) == 0:
        most = np.floor(reach.max() * 1e4) / 1e4
        raise ImpossibleSplitError(
            f"no set of items allows sigma={sigma} with epsilon={epsilon}: these ratings of "
            f"{np.count_nonzero(ratings.user_counts):,} users allow sigma={most:g} or less; choose a smaller one"
        )
    zeta = int(solutions[-1]) + 1
    # A fraction, so that ε = 0.7 of 5 ratings leaves exactly 1.5.
    return order[:zeta], (1 - Fraction(str(epsilon))) * int(popularity[zeta - 1])
