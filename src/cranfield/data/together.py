"""Parts of a dataset over one vocabulary of users and one of items, so that codes mean the same in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cranfield.data.ratings import Ratings
from cranfield.tables import Vocabulary


def over_one_vocabulary(parts: Sequence[Ratings]) -> list[Ratings]:
    """Return the parts over the union of their vocabularies.

    Examples
    --------
    >>> train, test = over_one_vocabulary([Ratings.of(["ann"], ["x"]), Ratings.of(["bob"], ["x"])])
    >>> train.n_users, test.users.tolist(), train.item_ids is test.item_ids
    (2, [1], True)
    """
    users = Vocabulary.union([part.user_ids for part in parts])
    items = Vocabulary.union([part.item_ids for part in parts])
    return [
        replace(part, user_ids=users, item_ids=items)
        if part.user_ids == users and part.item_ids == items
        else replace(
            Ratings.from_codes(
                users,
                items,
                np.repeat(users.codes(part.user_ids.all), part.user_counts),
                items.codes(part.item_ids.all)[part.items],
                part.values,
                part.times,
                name=part.name,
                history=part.history,
            ),
            user_features=part.user_features,
            item_features=part.item_features,
        )
        for part in parts
    ]
