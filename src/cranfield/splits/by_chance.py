"""Random splits: every rating goes to training with the same chance."""

from __future__ import annotations

import numpy as np

from cranfield import _checks as check
from cranfield._numbers import nearest_count
from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.splits._parts import along, coins, divide, some, validation_share
from cranfield.splits._places import places
from cranfield.splits.methods import registry
from cranfield.splits.split import Split


@registry.register
def random(
    ratings: Ratings, *, train: float = 0.8, exact: bool = False, seed: int = 0, validation: float | None = None
) -> Split:
    """Send each rating to training with probability ``train``, to test otherwise.

    Parameters
    ----------
    ratings
        The ratings to split.
    train
        The split ratio.
    exact
        False: a coin is tossed for each rating, so the ratio holds in expectation, overall and within each user and
        item. True: exactly that share of the ratings, rounded to the nearest number (halves to training), drawn
        regardless of users; `per_user` does the same within each user.
    seed
        Seed of the draw.
    validation
        The share of the training ratings to set aside; it does not change the test part.

    Examples
    --------
    >>> ratings = Ratings.of([1] * 10 + [2] * 10, list(range(10)) * 2)
    >>> random(ratings, train=0.75, exact=True, seed=7)
    Split(random: train 15, test 5)
    """
    some(ratings)
    train, share = check.share("train", train), validation_share(validation)
    generator = stream(check.whole("seed", seed, at_least=0), "split", "random")
    if check.flag("exact", exact):
        everything = np.array([0, len(ratings)], dtype=np.int64)
        size = np.diff(everything)
        learn = nearest_count(train, size)
        parts = along(places(everything, generator), size, size - learn, nearest_count(share, learn))
    else:
        parts = coins(len(ratings), train, share, generator)
    settings = {"train": train, "exact": exact, "seed": seed, "validation": validation}
    return divide(ratings, parts, "random", settings)
