"""`spark-als`: alternating least squares by Spark's own library, for ratings in memory or on Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.recommenders.model import PairModel, setting
from cranfield.recommenders.registry import register
from cranfield.tables import as_polars, spark_session, to_spark

# Number of buckets in which ids are numbered, so that no task has to see all ids.
_BUCKETS = 256
# Spark's ALS numbers users and items with 32 bits.
_MOST_IDS = 2**31 - 1


class SparkFactors(NamedTuple):
    """The factors of users and items, two Spark dataframes: the id (``user`` or ``item``) and ``features``."""

    users: Any
    items: Any


@register("spark-als")
@dataclass
class SparkLeastSquares(PairModel):
    r"""Alternating least squares on Spark (``pyspark.ml.recommendation.ALS``); the score is :math:`x_u \cdot y_i`.

    With ``implicit`` (Hu, Koren and Volinsky 2008):

    .. math::
        \min \sum_{u, i} c_{ui} (p_{ui} - x_u \cdot y_i)^2
        + λ \Bigl(\sum_u n_u \lVert x_u \rVert^2 + \sum_i n_i \lVert y_i \rVert^2\Bigr),
        \quad c_{ui} = 1 + α |r_{ui}|, \quad p_{ui} = [r_{ui} > 0]

    Otherwise the sum is over :math:`(r_{ui} - x_u \cdot y_i)^2` of the given ratings only (Zhou, Wilkinson, Schreiber
    and Pan 2008), and scores are predicted ratings. n is the number of ratings of a user or item; with ``implicit``,
    only of ratings above 0. NaN for users and items without training ratings.

    Ratings in memory are sent to Spark, and the factors come back. Ratings in a Spark dataframe stay there, and so do
    the lists; see `recommend`.

    Parameters
    ----------
    factors, epochs
        The length of the vectors, and how often both sides are solved.
    regularization, alpha
        λ, and α, which is only used with ``implicit``.
    implicit
        Whether ratings are weights of implicit feedback; otherwise they are predicted.
    seed
        Seed of the initial vectors.
    """

    factors: int = setting(64, low=1)
    epochs: int = setting(10, low=1)
    regularization: float = setting(0.1, low=0)
    alpha: float = setting(1.0, low=0)
    implicit: bool = setting(True)
    seed: int = setting(0, low=0)

    @property
    def predicts_ratings(self) -> bool:
        """Whether the scores are predicted ratings, on the scale of the training ratings."""
        return not self.implicit

    def _fit(self, train: Ratings) -> None:
        session = spark_session(wanted_by=self.name)
        codes = np.repeat(np.arange(train.n_users, dtype=np.int32), train.user_counts)
        rows = pl.DataFrame({"user": codes, "item": train.items, "rating": train.values.astype(np.float32)})
        model = self._learned(to_spark(rows, session))
        self._users, self._items = (
            vectors(as_polars(side).sort("id")["features"]) for side in (model.userFactors, model.itemFactors)
        )

    def _learned(self, rows: Any) -> Any:
        """Return Spark's model of rows with integers ``user`` and ``item``, and ``rating``."""
        from pyspark.ml.recommendation import ALS

        return ALS(
            rank=self.factors, maxIter=self.epochs, regParam=self.regularization, alpha=self.alpha,
            implicitPrefs=self.implicit, seed=self.seed, userCol="user", itemCol="item", ratingCol="rating",
        ).fit(rows)  # fmt: skip

    def fit_on_spark(self, ratings: Any) -> SparkFactors:
        """Return the factors of a Spark dataframe of ratings: ``user``, ``item``, ``rating``; ids of any type."""
        users, items = (_numbered(ratings, side) for side in ("user", "item"))
        rows = ratings.join(users, "user").join(items, "item")
        model = self._learned(rows.selectExpr("user_number as user", "item_number as item", "rating"))
        of_users, of_items = (
            frame.withColumnRenamed("id", f"{side}_number").join(ids, f"{side}_number").select(side, "features")
            for side, frame, ids in (("user", model.userFactors, users), ("item", model.itemFactors, items))
        )
        return SparkFactors(of_users, of_items)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float32]:
        scores: NDArray[np.float32] = self._users[users] @ self._items.T
        return scores

    def _score_pairs(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.asarray(np.einsum("pf,pf->p", self._users[users], self._items[items]))


def vectors(features: pl.Series) -> NDArray[np.float32]:
    """Return a column of vectors as a matrix."""
    rows = features.explode().to_numpy().reshape(len(features), -1)
    return np.ascontiguousarray(rows, dtype=np.float32)


def _numbered(ratings: Any, side: str) -> Any:
    """Return the distinct ids of users or items with a number each; only the sizes of buckets are collected."""
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    bucket = F.pmod(F.xxhash64(side), F.lit(_BUCKETS)).cast("int").alias("bucket")
    ids = ratings.select(side).distinct().select(side, bucket)
    sizes = np.zeros(_BUCKETS, dtype=np.int64)
    for row in ids.groupBy("bucket").count().collect():
        sizes[row["bucket"]] = row["count"]
    if sizes.sum() > _MOST_IDS:
        raise SettingError(
            f"spark-als takes at most {_MOST_IDS:,} {side}s, and there are {sizes.sum():,}; leave some out"
        )
    starts = F.array(*(F.lit(int(start)) for start in np.cumsum(sizes) - sizes))
    within = F.row_number().over(Window.partitionBy("bucket").orderBy(side)) - 1
    return ids.select(side, (starts[F.col("bucket")] + within).cast("int").alias(f"{side}_number"))
