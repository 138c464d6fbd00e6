"""Features of users and items, encoded as numbers for a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield.data import About, Ratings

_BETWEEN = "\x1f"


@dataclass(frozen=True, eq=False)
class FeatureCoding:
    """An encoding learned in training: the categories of text columns, and the mean and spread of number columns.

    A missing text or an unseen category has no category, and a missing number is replaced by the mean. Neither adds
    anything to what a network computes.

    Parameters
    ----------
    texts, numbers
        The names of the columns of text and of numbers.
    categories
        Every category as its column, a separator and its text, in ascending order.
    means, spreads
        The mean and the standard deviation of each column of numbers.

    Examples
    --------
    >>> known = FeatureCoding.of(pl.DataFrame({"age": [20.0, 40.0, None], "town": ["Oslo", "Rome", None]}))
    >>> categories, numbers = known.encoded(pl.DataFrame({"age": [50.0, None], "town": ["Paris", "Rome"]}))
    >>> categories.tolist(), numbers.tolist()
    ([[2], [1]], [[2.0], [0.0]])
    """

    texts: NDArray[np.str_]
    numbers: NDArray[np.str_]
    categories: NDArray[np.str_]
    means: NDArray[np.float64]
    spreads: NDArray[np.float64]

    @classmethod
    def of(cls, rows: pl.DataFrame) -> FeatureCoding:
        """Learn the encoding from the columns of the training users or items."""
        texts = [name for name, kind in rows.schema.items() if kind == pl.String]
        numbers = [name for name in rows.columns if name not in texts]
        categories = sorted(f"{name}{_BETWEEN}{value}" for name in texts for value in rows[name].unique().drop_nulls())
        scales = [_mean_and_spread(rows[name].drop_nulls().to_numpy()) for name in numbers]
        return cls(
            np.array(texts, dtype=np.str_),
            np.array(numbers, dtype=np.str_),
            np.array(categories, dtype=np.str_),
            np.array([mean for mean, _ in scales], dtype=np.float64),
            np.array([spread if spread > 0 else 1.0 for _, spread in scales], dtype=np.float64),
        )

    def encoded(self, rows: pl.DataFrame) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the category in each text column (the number of categories if none), and the scaled numbers."""
        none, places = len(self.categories), {key: place for place, key in enumerate(self.categories.tolist())}
        codes = [
            [places.get(f"{name}{_BETWEEN}{value}", none) for value in rows[name].to_list()]
            for name in self.texts.tolist()
        ]
        values = [rows[name].to_numpy() for name in self.numbers.tolist()]
        categories = np.array(codes, dtype=np.int32).reshape(len(codes), rows.height).T
        scaled = (np.array(values, dtype=np.float64).reshape(len(values), rows.height).T - self.means) / self.spreads
        return categories, np.nan_to_num(scaled).astype(np.float32)


def _mean_and_spread(column: NDArray[Any]) -> tuple[float, float]:
    """Return the mean and the standard deviation, 0 for no values; large numbers do not overflow when squared."""
    unit = 2.0 ** np.floor(np.log2(max(np.abs(column).max(initial=0.0), 1.0)))
    shrunk = column / unit
    return (float(shrunk.mean() * unit), float(shrunk.std() * unit)) if len(column) else (0.0, 0.0)


SIDES: dict[str, tuple[About, ...]] = {"users": ("user",), "items": ("item",), "both": ("user", "item")}
"""What each value of a setting ``context`` takes columns from."""


def rows_of(train: Ratings, about: About, system: str) -> pl.DataFrame:
    """Return the features of the users or items of the training ratings, one row per code."""
    features = train.user_features if about == "user" else train.item_features
    if features is None:
        raise InputError(
            f"{system} uses features of {about}s, and the ratings have none",
            remedy=f"give a table of them with {about}_features (--{about}-features), or leave context out",
        )
    ids: Any = train.user_ids if about == "user" else train.item_ids
    return features.rows(ids)
