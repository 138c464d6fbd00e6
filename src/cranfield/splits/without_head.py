"""A random split that is tested on the long tail only: the most popular items are removed from the test part."""

from __future__ import annotations

import numpy as np

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError
from cranfield._streams import stream
from cranfield.data import Ratings, head_items
from cranfield.splits._parts import TRAIN, coins, divide, some, validation_share
from cranfield.splits.methods import registry
from cranfield.splits.split import Split

_LEFT_OUT = np.uint8(255)


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
    ratings
        The ratings to split.
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
    some(ratings)
    head, of = check.share("head", head), check.one_of("of", of, ("items", "ratings"))
    train, share = check.share("train", train), validation_share(validation)
    generator = stream(check.whole("seed", seed, at_least=0), "split", "tail_test")
    parts = coins(len(ratings), train, share, generator)
    popular = head_items(ratings, head, of)
    rated = int(np.count_nonzero(ratings.item_counts))
    if np.count_nonzero(popular) in (0, rated):
        taken = "all" if popular.any() else "none"
        raise ImpossibleSplitError(
            f"the head of {head:g} of the {of} is {taken} of the {rated:,} items; choose another share"
        )
    left_out = popular[ratings.items] & (parts != TRAIN)
    parts[left_out] = _LEFT_OUT
    settings = {"head": head, "of": of, "train": train, "seed": seed, "validation": validation}
    effect = {"head_items": int(np.count_nonzero(popular)), "left_out": int(np.count_nonzero(left_out))}
    notes = [
        f"the {effect['head_items']:,} most popular items are not tested: {effect['left_out']:,} ratings are in no part"
    ]
    return divide(ratings, parts, "tail_test", settings, effect=effect, notes=notes)
