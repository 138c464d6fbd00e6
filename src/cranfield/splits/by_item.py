"""Splits that look at items and their popularity: the same number of ratings per item, percentiles, the long tail."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError
from cranfield.data import Ratings, by_popularity, check_ratings, head_items
from cranfield.facts import Fact
from cranfield.facts import split as facts
from cranfield.splits.parts import TEST, TRAIN, UNUSED, Division, item_places
from cranfield.splits.split import Split, registry

NO_GROUP = -1
"""The group of an item without ratings."""


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
    l
        Number of training ratings per item.
    seed, validation
        As for `random`.

    Examples
    --------
    >>> ratings = Ratings.of([1, 2, 3, 1, 2, 1], ["a", "a", "a", "b", "b", "c"])
    >>> train_per_item(ratings, l=1).test.item_counts.tolist()
    [2, 1, 0]
    """
    l = check.whole("l", l)  # noqa: E741
    division = Division(ratings, "train_per_item", {"l": l, "seed": seed, "validation": validation})
    counts = ratings.item_counts
    untested, rated = int(np.count_nonzero((counts > 0) & (counts <= l))), int(np.count_nonzero(counts))
    if untested == rated:
        raise ImpossibleSplitError(
            f"none of the {rated:,} items has more than {l} ratings, so nothing is left for test; "
            f"choose l below {counts.max()}"
        )
    parts = np.where(item_places(ratings, division.stream()) < l, TRAIN, TEST)
    division.set_aside(parts)
    short = int(np.count_nonzero((counts > 0) & (counts < l)))
    notes = [facts.ShortProfiles(untested, "training", l, "item", rated)] if untested else []
    effect = {"items_without_test": untested, "items_short_of_l": short}
    return division.split(parts, effect, notes)


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
    seed, validation
        As for `random`; ε then holds for training and validation together.

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
    sigma, epsilon = check.share("sigma", sigma), check.share("epsilon", epsilon)
    rounding = check.one_of("rounding", rounding, ("nearest", "down"))
    settings = {"sigma": sigma, "epsilon": epsilon, "rounding": rounding, "seed": seed, "validation": validation}
    division = Division(ratings, "uniform_test", settings)
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
    parts = np.where(item_places(ratings, division.stream()) < limit[ratings.items], TEST, TRAIN)
    division.set_aside(parts)
    kept = 1 - eta / ratings.item_counts[chosen]
    share, least = len(chosen) * eta / len(ratings), float(kept.min())
    effect = {"zeta": len(chosen), "eta": eta, "eta_before_rounding": float(exact), "test_share": share}
    effect["least_train_share"] = least
    notes: list[Fact] = [facts.UniformItems(len(chosen), eta)]
    needed = max(1.0, sigma * len(ratings) / len(chosen))
    if exact - needed >= 1:
        # η, which follows from ε, exceeds what σ needs. The ε that gives σ is rounded down, so that ζ stays.
        enough = math.floor((1 - needed / rarest) * 1e4 + 1e-6) / 1e4
        notes.append(facts.AboveSigma(share, sigma, rarest, enough))
    if below := int(np.count_nonzero(kept < epsilon - 1e-12)):
        notes.append(facts.BelowEpsilon(float(exact), eta, below, least, epsilon))
    return division.split(parts, effect, notes)


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


def popularity_groups(ratings: Ratings, groups: int = 10) -> NDArray[np.int16]:
    """Partition the items into popularity percentiles of equal size.

    Parameters
    ----------
    ratings
        The ratings that define popularity |R(i)|: give those before the split.
    groups
        m, the number of groups. Their sizes differ by at most one item; the more popular groups are the larger ones.

    Returns
    -------
    array
        The group of each item code: 0 for the most popular items, m - 1 for the least, `NO_GROUP` (-1) for an item
        without ratings. If items at a border are equally popular, those with the smaller id are in the more popular
        group.

    Examples
    --------
    >>> ratings = Ratings.of([1, 2, 3, 1, 2, 1, 1], ["a", "a", "a", "b", "b", "c", "d"])
    >>> popularity_groups(ratings, 2).tolist()
    [0, 0, 1, 1]
    """
    check_ratings(ratings)
    groups = check.whole("groups", groups, at_least=2)
    order = by_popularity(ratings)
    if groups > min(len(order), np.iinfo(np.int16).max):
        raise ImpossibleSplitError(
            f"{len(order):,} rated items do not fill {groups:,} popularity groups; choose fewer groups"
        )
    group = np.full(ratings.n_items, NO_GROUP, dtype=np.int16)
    for number, members in enumerate(np.array_split(order, groups)):
        group[members] = number
    return group


@registry.register
def percentiles(
    ratings: Ratings, *, groups: int = 10, train: float = 0.8, seed: int = 0, validation: float | None = None
) -> Split:
    """Split at random, and record the popularity percentile of each item (the design P1R).

    The ratings are split as in `random`, with a coin toss for each. The rest of the design comes later: each list is
    drawn from the items of one group only, a metric is computed for each group, and the ``groups`` values are averaged.
    Within a group popular items have little advantage over the others (Bellogín et al., 2017).

    Parameters
    ----------
    groups
        m, the number of percentiles; a list then has candidates from at most ``|I| / m`` items.
    train, seed, validation
        As for `random`.

    Returns
    -------
    Split
        With ``item_groups``, the group of each item (see `popularity_groups`).

    References
    ----------
    A. Bellogín, P. Castells, I. Cantador (2017). Statistical biases in information retrieval metrics for recommender
    systems. Information Retrieval Journal 20, section 6.1.

    Examples
    --------
    >>> users, items = zip(*[(u, i) for i in range(6) for u in range(12 - 2 * i)])
    >>> percentiles(Ratings.of(users, items), groups=3).item_groups.tolist()
    [0, 0, 1, 1, 2, 2]
    """
    settings = {"groups": groups, "train": check.share("train", train), "seed": seed, "validation": validation}
    division = Division(ratings, "percentiles", settings)
    group = popularity_groups(ratings, groups)
    group.flags.writeable = False
    rated = group != NO_GROUP
    of_group = np.bincount(group[rated], weights=ratings.item_counts[rated], minlength=groups)
    effect = {
        "items_by_group": np.bincount(group[rated]).tolist(),
        "ratings_by_group": of_group.astype(int).tolist(),
    }
    return division.split(division.coins(), effect, item_groups=group)


@registry.register
def tail_test(
    ratings: Ratings,
    *,
    head: float = 0.1,
    of: str = "items",
    train: float = 0.8,
    seed: int = 0,
    validation: float | None = None,
) -> Split:
    """Split at random, and leave out the test ratings of the most popular items.

    Systems learn from all items and are tested on the long tail. Set ``candidates="test"``, so that the head is not
    among the items to rank either. Unlike the filter `drop_head`, this split keeps the head in training.

    Parameters
    ----------
    head
        The share of the head to leave out.
    of
        ``"items"``: that share of the items, rounded to the nearest number (halves up), as in Bellogín et al. (2017).
        ``"ratings"``: the fewest most popular items that hold at least that share of the ratings, like the short head
        of Cremonesi et al. (2010), which holds 33 %.
    train, seed, validation
        As for `random`. The validation part has no ratings of the head either.

    References
    ----------
    A. Bellogín, P. Castells, I. Cantador (2017). Statistical biases in information retrieval metrics for recommender
    systems. Information Retrieval Journal 20, section 6.3.

    P. Cremonesi, Y. Koren, R. Turrin (2010). Performance of recommender algorithms on top-N recommendation tasks.
    RecSys.

    Examples
    --------
    >>> users, items = zip(*[(u, i) for i in range(6) for u in range(12 - 2 * i)])
    >>> split = tail_test(Ratings.of(users, items), head=0.34, train=0.5, seed=1)
    >>> split.test.item_counts.tolist()[:2], split.step.effect["head_items"]
    ([0, 0], 2)
    """
    head, of = check.share("head", head), check.one_of("of", of, ("items", "ratings"))
    settings = {"head": head, "of": of, "train": check.share("train", train), "seed": seed, "validation": validation}
    division = Division(ratings, "tail_test", settings)
    parts = division.coins()
    popular = head_items(ratings, head, of)
    rated = int(np.count_nonzero(ratings.item_counts))
    if np.count_nonzero(popular) in (0, rated):
        taken = "all" if popular.any() else "none"
        raise ImpossibleSplitError(
            f"the head of {head:g} of the {of} is {taken} of the {rated:,} items; choose another share"
        )
    left_out = popular[ratings.items] & (parts != TRAIN)
    parts[left_out] = UNUSED
    effect = {"head_items": int(np.count_nonzero(popular)), "left_out": int(np.count_nonzero(left_out))}
    return division.split(parts, effect, [facts.UntestedHead(effect["head_items"], effect["left_out"])])
