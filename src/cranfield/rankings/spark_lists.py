"""Training and ranking on Spark: lists are made where the ratings are, in blocks of many users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError
from cranfield.data import read, repeated_pair
from cranfield.rankings.decisions import EVERYONE, Ranking, Serving
from cranfield.rankings.ranged import HeldOutTable
from cranfield.rankings.top import TieOrder, top
from cranfield.recommenders import SparkFactors, SparkLeastSquares, named_systems, vectors
from cranfield.tables import (
    Schema,
    SparkTable,
    Vocabulary,
    as_polars,
    by_user,
    named_by_ids,
    quoted,
    spark_session,
    user_blocks,
)

# Approximate number of rows read at a time, and number of scores computed at a time.
_BLOCK_ROWS, _CELLS = 1_000_000, 1 << 22
_ONLY = ("length", "keep_seen", "threshold")


def recommend_on_spark(
    train: Any, systems: Any, serving: Serving = EVERYONE, ranking: Ranking | None = None, *, seed: int = 0,
    label: str = "the training ratings", **reading: Any,
) -> Any:  # fmt: skip
    """Train systems on a Spark dataframe of ratings and rank items for all its users, without collecting either.

    Returns a Spark dataframe of lists: ``system``, ``user``, ``item``, ``rank``, ``score``, as `measure` takes it.
    """
    ranking = ranking or Ranking()
    named: dict[str, Any] = {**named_systems(systems, seed)}
    for name, system in named.items():
        if not isinstance(system, SparkLeastSquares):
            raise SettingError(
                f"{name} is not trained on Spark; use spark-als there, or read the ratings into memory (cf.read)"
            )
    _refuse_others(serving, ranking)
    spark_session(of=train)
    ratings = _ratings(SparkTable(train, label), reading)
    lists = [lists_on_spark(ratings, system.fit_on_spark(ratings), ranking, name) for name, system in named.items()]
    return reduce(lambda above, below: above.unionByName(below), lists)


def _refuse_others(serving: Serving, ranking: Ranking) -> None:
    """Refuse decisions that need more than the training ratings."""
    for group in (serving, ranking):
        usual = type(group)()
        for name, value in group.as_dict().items():
            if name not in _ONLY and value != usual.as_dict()[name]:
                raise SettingError(f"{name}={value!r} is not for ratings on Spark; leave it out, or rank in memory")


def _ratings(table: SparkTable, reading: dict[str, Any]) -> Any:
    """Return ratings as ``user``, ``item``, ``rating``; refuse what reading in memory would refuse."""
    from pyspark.sql import functions as F

    roles = HeldOutTable.of_table(table, **reading).roles
    kinds = dict(table.frame.dtypes)
    rating = F.col(quoted(roles["rating"])) if "rating" in roles else F.lit(1.0)
    own = {side: kinds[roles[side]] for side in ("user", "item")}
    ids = [table.ids(roles[side], [own[side]]).alias(side) for side in own]
    number = rating.try_cast("double")
    is_bad = number.isNull() | F.isnan(number) | (F.abs(number) > float(np.finfo(np.float32).max))
    for side, kind in own.items():
        is_bad = is_bad | F.col(quoted(roles[side])).isNull()
        is_bad = is_bad | F.isnan(quoted(roles[side])) if kind in ("float", "double") else is_bad
    columns = [quoted(name) for name in dict.fromkeys(roles.values())]
    bad = as_polars(table.frame.filter(is_bad).select(*columns).limit(1))
    if len(bad):
        chosen: Any = {role: roles.get(role, False) for role in ("user", "item", "rating", "time")}
        try:
            read(bad, **chosen)
        except InputError as error:
            raise named_by_ids(error, bad, roles, table.label) from None
    ratings = table.frame.select(*ids, number.alias("rating"))
    again = repeated_pair(ratings)
    if again is not None:
        raise InputError(again.problem, source=table.label, remedy="keep one of them")
    return ratings


def lists_on_spark(ratings: Any, factors: SparkFactors, ranking: Ranking, name: str) -> Any:
    """Rank items by factors for all users of the ratings; every worker gets the factors of all items."""
    from pyspark.sql import functions as F

    kinds = dict(ratings.dtypes)
    items = as_polars(factors.items).sort("item")
    ids = Vocabulary(items["item"])
    sides = {side: kinds[side] for side in ("user", "item")}
    task = _RankBlocks(vectors(items["features"]), ids, ranking.most(len(ids)), sides)
    of_users = factors.users.select("user", F.lit(None).cast(kinds["item"]).alias("item"), "features")
    seen = ratings.select("user", "item", F.lit(None).cast("array<float>").alias("features"))
    rows = of_users if ranking.keep_seen else of_users.unionByName(seen)
    lists = by_user(rows).mapInArrow(task, task.schema.ddl)
    return lists.select(F.lit(name).alias("system"), *task.schema).persist()  # measuring reads lists several times


@dataclass(frozen=True, eq=False)
class _RankBlocks:
    """A worker's task for a partition, whose rows are factors and seen items, sorted by user."""

    items: NDArray[np.float32]
    ids: Vocabulary
    length: int
    kinds: Mapping[str, str]

    @property
    def schema(self) -> Schema:
        """The columns of the result."""
        return Schema(self.kinds, rank="int", score="double")

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Rank the users of a partition, block by block."""
        ties = TieOrder(self.ids)
        for frame in user_blocks(batches, _BLOCK_ROWS):
            for lists in self._lists(frame.with_columns(place=pl.col("user").rle_id()), ties):
                yield from self.schema.batches(lists)

    def _lists(self, frame: pl.DataFrame, ties: TieOrder) -> Iterator[pl.DataFrame]:
        """Yield the lists in blocks of users, so that their scores of all items stay in the cache."""
        has_factors = frame["features"].is_not_null()
        of_users, seen = frame.filter(has_factors), frame.filter(~has_factors)
        factors = vectors(of_users["features"])
        rows, items = seen["place"].to_numpy(), self.ids.codes(seen["item"])
        step = max(1, _CELLS // len(self.ids))
        for start in range(0, len(of_users), step):
            scores = factors[start : start + step] @ self.items.T
            here = slice(*np.searchsorted(rows, [start, start + step]))
            scores[rows[here] - start, items[here]] = np.nan
            sizes, listed, values = top(scores, self.length, ties)
            places = np.repeat(np.arange(start, start + len(scores)), sizes)
            ranks = np.arange(len(listed)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
            yield pl.DataFrame(
                {"user": of_users["user"].gather(places), "item": self.ids.ids(listed), "rank": ranks, "score": values}
            )
