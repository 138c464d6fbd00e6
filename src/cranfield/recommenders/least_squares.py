"""Factor models by alternating least squares: WRMF, iALS, and Spark's own."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.recommenders.epochs import Epoch, EpochModel, Numbers, from_threshold
from cranfield.recommenders.factors import FactorModel, check_settled
from cranfield.recommenders.matrices import nan_for_empty, ones_like, rating_matrix
from cranfield.recommenders.model import ProfileModel, setting
from cranfield.recommenders.registry import register
from cranfield.recommenders.work import blas_threads, blocks, compiled_loops, in_threads, over_rows, read_only
from cranfield.tables import as_polars, spark_session


@register("wrmf")
class WeightedFactors(ProfileModel):
    r"""Weighted matrix factorisation: factors fitted to all cells, with more weight on rated ones.

    .. math::
        \min \sum_{u, i} c_{ui} (t_{ui} - x_u \cdot y_i)^2
        + λ \Bigl(\sum_u \lVert x_u \rVert^2 + \sum_i \lVert y_i \rVert^2\Bigr), \qquad c_{ui} = 1 + α r_{ui}

    by alternating least squares, with a few steps of conjugate gradients for each system of equations (Takács, Pilászy
    and Tikk 2011). NaN for users and items without training ratings.

    Parameters
    ----------
    factors, iterations
        The length of the vectors, and how often both sides are solved.
    alpha, regularization
        α and λ.
    target
        The target of a rated cell: ``one`` (the original), or its ``rating``, as in RankSys.
    binary
        Whether every rating counts 1 in the confidence.
    steps
        Steps of conjugate gradients for each solution.
    start
        The initial factors are drawn uniformly from 0 to this. With a large α the start matters for many iterations;
        RankSys uses √(1/factors).
    seed
        Seed of the initial factors.
    """

    needs_positive: ClassVar[bool] = True

    factors: int = setting(50, low=1)
    iterations: int = setting(20, low=1)
    alpha: float = setting(10.0, low=0)
    regularization: float = setting(100.0, low=0)
    target: str = setting("one", choices=("one", "rating"))
    binary: bool = setting(True)
    steps: int = setting(3, low=1)
    start: float = setting(0.01, above=0)
    seed: int = setting(0, low=0)

    def _fit(self, train: Ratings) -> None:
        solve = compiled_loops(self.name).weighted_least_squares
        by_user = rating_matrix(train)
        weight = ones_like(by_user) if self.binary else by_user
        by_item, weight_by_item = by_user.T.tocsr(), weight.T.tocsr()
        self._users, self._items = self._start(train)
        sides = (
            (self._users, self._items, *self._system(by_user, weight)),
            (self._items, self._users, *self._system(by_item, weight_by_item)),
        )
        ridge = self.regularization * np.eye(self.factors, dtype=np.float32)
        for _ in range(self.iterations):
            for solved, fixed, ratings, extra, pull in sides:
                gram = (fixed.T @ fixed + ridge).astype(np.float32)
                over_rows(
                    solve, range(len(solved)), len(train),
                    solved, fixed, gram, ratings.indptr, read_only(ratings.indices), extra, pull, self.steps,
                )  # fmt: skip
        check_settled(self.name, (self._users, self._items), alpha=self.alpha, regularization=self.regularization)

    def _start(self, train: Ratings) -> tuple[NDArray[np.float32], ...]:
        draw = stream(self.seed, "wrmf")
        shapes = (train.n_users, self.factors), (train.n_items, self.factors)
        return tuple((draw.random(shape) * self.start).astype(np.float32) for shape in shapes)

    def _system(self, ratings: Any, weight: Any) -> tuple[Any, NDArray[np.float32], NDArray[np.float32]]:
        """Return c − 1 and c t at the positions of the ratings."""
        extra = self.alpha * weight.data
        target = ratings.data if self.target == "rating" else 1.0
        return ratings, extra.astype(np.float32), ((1 + extra) * target).astype(np.float32)

    def _score(self, users: NDArray[np.int64]) -> NDArray[np.float32]:
        scores: NDArray[np.float32] = self._users[users] @ self._items.T
        return scores

    def _score_profiles(self, profiles: Any) -> NDArray[np.float64]:
        """Solve exactly for the factors of each profile, with fixed item factors."""
        weight = ones_like(profiles) if self.binary else profiles
        _, extra, pull = self._system(profiles, weight)
        items = self._items.astype(np.float64)
        gram = items.T @ items + self.regularization * np.eye(self.factors)
        folded = np.zeros((profiles.shape[0], self.factors))
        for row in range(profiles.shape[0]):
            place = slice(profiles.indptr[row], profiles.indptr[row + 1])
            rated = items[profiles.indices[place]]
            system = gram + (rated * extra[place][:, None]).T @ rated
            # Without regularisation a short profile has many solutions; take the one with the smallest norm.
            folded[row] = np.linalg.lstsq(system, rated.T @ pull[place], rcond=None)[0]
        return nan_for_empty(folded @ items.T, profiles)


# Initial vectors are drawn from N(0, _SPREAD / sqrt(factors)).
_SPREAD = 0.1


@register("ials")
class ImplicitLeastSquares(FactorModel, EpochModel, ProfileModel):
    r"""Implicit alternating least squares, with regularisation that depends on the number of ratings.

    .. math::
        \min \sum_{(u, i) \in S} (x_u \cdot y_i - 1)^2 + α_0 \sum_{u, i} (x_u \cdot y_i)^2
        + λ \Bigl(\sum_u (|S_u| + α_0 |I|)^ν \lVert x_u \rVert^2
        + \sum_i (|S_i| + α_0 |U|)^ν \lVert y_i \rVert^2\Bigr)

    (S. Rendle, W. Krichene, L. Zhang and Y. Koren 2022, Revisiting the performance of iALS on item recommendation
    benchmarks, RecSys; after Hu, Koren and Volinsky 2008), solved exactly for all users, then for all items, in every
    epoch. Each vector is solved independently, so results do not depend on the number of threads. NaN for users and
    items without training ratings.

    Parameters
    ----------
    factors, epochs
        The length of the vectors, and how often both sides are solved.
    unobserved, regularization, exponent
        α₀, the weight of unrated cells; λ; and ν: with 1, the regularisation of a vector grows with its number of
        ratings; with 0, it is the same for all.
    threshold
        Only ratings of at least this much count; None for all.
    patience
        With a validation part: stop after this many epochs without improvement; 0 for never.
    seed
        Seed of the initial vectors.
    """

    steps_by = ("regularization",)

    factors: int = setting(128, low=1)
    epochs: int = setting(12, low=1)
    unobserved: float = setting(0.3, low=0)
    regularization: float = setting(0.007, low=0)
    exponent: float = setting(1.0, low=0)
    threshold: float | None = setting(None, or_none=float)
    patience: int = setting(5, low=0)
    seed: int = setting(0, low=0)

    def _start(self, train: Ratings) -> tuple[Numbers, Epoch]:
        kept = from_threshold(train, self.threshold, self.name)
        by_user = rating_matrix(kept, binary=True)
        by_item = by_user.T.tocsr()
        draw = stream(self.seed, "ials")
        sizes = {"users": train.n_users, "items": train.n_items}
        numbers = {
            name: (draw.standard_normal((size, self.factors)) * _SPREAD / np.sqrt(self.factors)).astype(np.float32)
            for name, size in sizes.items()
        }

        def epoch(numbers: Numbers, _: int) -> tuple[Numbers, float]:
            with blas_threads(1):
                users = self._solved(by_user, numbers["items"])
                items = self._solved(by_item, users)
                return {"users": users, "items": items}, self._loss(by_user, users, items)

        return numbers, epoch

    def _take(self, numbers: Numbers) -> None:
        self._users, self._items = numbers["users"], numbers["items"]

    def _solved(self, rated: Any, fixed: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the vectors of the rows of ``rated``, given the ``fixed`` vectors of its columns."""
        from scipy.linalg import lapack

        gram = np.float32(self.unobserved) * (fixed.T @ fixed)
        shrinkage = self._shrinkage(np.diff(rated.indptr), len(fixed))
        solved = np.zeros((rated.shape[0], self.factors), dtype=np.float32)
        diagonal = np.diag_indices(self.factors)

        def solve(block: slice) -> None:
            for row in range(block.start, block.stop):
                own = fixed[rated.indices[rated.indptr[row] : rated.indptr[row + 1]]]
                if len(own):
                    system = gram + own.T @ own
                    system[diagonal] += shrinkage[row]
                    _, vector, failed = lapack.sposv(system, own.sum(axis=0))
                    if failed:
                        raise SettingError(
                            f"{self.name} has no solution with regularization={self.regularization:g} and "
                            f"unobserved={self.unobserved:g}; give a larger regularization"
                        )
                    solved[row] = vector

        in_threads(solve, blocks(rated.shape[0], self.factors**2))
        return solved

    def _shrinkage(self, counts: NDArray[Any], others: int) -> NDArray[np.float32]:
        """Return λ (|S| + α₀ n)^ν for each row, with n the number of rows on the other side."""
        scale = (counts + self.unobserved * others) ** self.exponent
        return (self.regularization * scale).astype(np.float32)

    def _loss(self, rated: Any, users: NDArray[np.float32], items: NDArray[np.float32]) -> float:
        """Return the objective divided by the number of ratings."""
        sides = [side.astype(np.float64) for side in (users, items)]
        total = self.unobserved * float(np.sum((sides[0].T @ sides[0]) * (sides[1].T @ sides[1])))
        for block in blocks(len(users), self.factors):
            part = rated[block]
            rows = np.repeat(np.arange(block.start, block.stop), np.diff(part.indptr))
            total += float(np.square(np.einsum("rf,rf->r", users[rows], items[part.indices]) - 1.0).sum())
        for side, counts, others in (
            (sides[0], np.diff(rated.indptr), len(items)),
            (sides[1], np.bincount(rated.indices, minlength=len(items)), len(users)),
        ):
            total += float(self._shrinkage(counts, others) @ np.square(side).sum(axis=1))
        return total / max(rated.nnz, 1)

    def _score_profiles(self, profiles: Any) -> NDArray[np.float32]:
        """Solve for the factors of each profile, with fixed item factors."""
        rated = ones_like(profiles)
        if self.threshold is not None:
            rated.data[profiles.data < self.threshold] = 0
            rated.eliminate_zeros()
        with blas_threads(1):
            folded = self._solved(rated, self._items)
        return nan_for_empty(folded @ self._items.T, profiles)


# Number of buckets in which ids are numbered, so that no task has to see all ids.
_BUCKETS = 256
# Spark's ALS numbers users and items with 32 bits.
_MOST_IDS = 2**31 - 1


class SparkFactors(NamedTuple):
    """The factors of users and items, two Spark dataframes: the id (``user`` or ``item``) and ``features``."""

    users: Any
    items: Any


@register("spark-als")
class SparkLeastSquares(FactorModel):
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
        model = self._learned(session.createDataFrame(rows.to_arrow()))
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
