"""`ScoreParts`: scores of many users that stay in parts, of which only sums are returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal, Protocol, TypeVar, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._checks import one_of, share, whole
from cranfield._decisions import takes_decisions
from cranfield._errors import SettingError
from cranfield._numbers import count_text
from cranfield.measures.averages import Average
from cranfield.measures.averaging import Averaging, AveragingOptions, Undefined
from cranfield.measures.scores import Scores
from cranfield.measures.scores_table import LEVEL, Tabled

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Census:
    """Counts of scores that add up over parts.

    Parameters
    ----------
    lists, served, relevant
        The number of lists, of lists that every system gives, and of lists with a relevant item.
    covered
        The number of lists that each system gives.
    defined
        2 × systems × metrics: the number of lists with a value, among all lists and among those that every system
        gives.
    largest
        systems × metrics: the largest absolute value.
    alike
        Whether all systems give the same lists.
    """

    lists: int
    served: int
    relevant: int
    covered: NDArray[np.int64]
    defined: NDArray[np.int64]
    largest: NDArray[np.float64]
    alike: bool

    @classmethod
    def of(cls, scores: Scores) -> Census:
        """Count scores."""
        values = ~np.isnan(scores.values)
        return cls(
            scores.n_lists,
            scores.n_served,
            int(np.count_nonzero(scores.relevant)),
            scores.n_covered,
            np.stack([values.sum(axis=2), values[:, :, scores.served].sum(axis=2)]),
            np.fmax.reduce(np.abs(scores.values), axis=2, initial=0.0),
            scores.serve_alike,
        )

    def __add__(self, other: Census) -> Census:
        return Census(
            self.lists + other.lists,
            self.served + other.served,
            self.relevant + other.relevant,
            self.covered + other.covered,
            self.defined + other.defined,
            np.maximum(self.largest, other.largest),
            self.alike and other.alike,
        )


class PartStore(Protocol):
    """Where the parts are kept: in files, or on a cluster."""

    def each(self, function: Callable[[Scores], T]) -> list[T]:
        """Call a function on the scores of every part, where they are, and return the result of each."""

    def per_user(self) -> Iterator[pl.DataFrame]:
        """Yield the rows of `Scores.per_user`, part by part."""


# The facts about scores, apart from the values of single lists.
_FACTS = (
    *("systems", "metrics", "lower_is_better", "zero_if_undefined", "step", "overall", "filled", "unjudged"),
    *("nonexistent", "item_coverage", "catalogue", "counts", "notes", "warnings", "recommended", "longest"),
    *("highest_rating", "trained_once", "made_for", "outside_catalogue", "relevance", "repetitions"),
)


@dataclass(frozen=True, eq=False)
class ScoreParts(Tabled):
    """Scores whose per-user values are not in memory: averages, intervals and tests are computed from sums over parts.

    Use it like `Scores`. Anything that needs all values at once, such as a median, is refused.

    Parameters
    ----------
    facts
        Everything except the values: scores without lists.
    store
        Where the parts are kept.
    census
        The counts over all parts.
    studied
        The result of the study of the lists that was made while they were measured; see `PartPlan`.
    """

    facts: Scores
    store: PartStore
    census: Census
    studied: Any = None

    def __getattr__(self, name: str) -> Any:
        if name in _FACTS:
            return getattr(self.facts, name)
        if name in Scores.__dataclass_fields__ or hasattr(Scores, name):
            raise SettingError(
                f"{name} needs the values of all users at once, and these are kept in parts; see per_user_parts, or "
                "measure in memory (engine='memory', --engine memory)"
            )
        raise AttributeError(name)

    def sum(self, function: Callable[[Scores], Any]) -> Any:
        """Return the sum of the results of a function over all parts."""
        return reduce(lambda total, part: total + part, self.store.each(function))

    def with_facts(self, **facts: Any) -> ScoreParts:
        """Return the same values with other facts, such as further notes."""
        return replace(self, facts=replace(self.facts, **facts))

    @property
    def n_lists(self) -> int:
        """The number of lists that every system is scored on."""
        return self.census.lists

    @property
    def n_users(self) -> int:
        """The number of users; each user has one list."""
        return self.census.lists

    @property
    def n_covered(self) -> NDArray[np.int64]:
        """The number of lists that each system gives."""
        return self.census.covered

    @property
    def n_served(self) -> int:
        """The number of lists that every system gives."""
        return self.census.served

    @property
    def n_served_users(self) -> int:
        """The number of users that every system serves."""
        return self.census.served

    @property
    def serve_alike(self) -> bool:
        """Whether all systems give the same lists."""
        return self.census.alike

    @property
    def unit(self) -> str:
        """The word for what is averaged; each user has one list."""
        return "user"

    @property
    def whom(self) -> str:
        """Who was measured, in words."""
        return count_text(self.n_lists, "user")

    @property
    def user_coverage(self) -> NDArray[np.float64]:
        """The share of lists that each system gives."""
        return self.census.covered / max(self.n_lists, 1)

    @property
    def bounds(self) -> Any:
        """The bounds, if they were measured; otherwise None."""
        return self.facts.bounds

    def system(self, name: str) -> int:
        """Return the index of a system, or raise an error that suggests the nearest name."""
        return self.facts.system(name)

    def metric(self, name: str) -> int:
        """Return the index of a metric, or raise an error that suggests the nearest name."""
        return self.facts.metric(name)

    def counts_zero(self, m: int, undefined: Undefined) -> bool:
        """Return whether an undefined value of the m-th metric counts as 0 under a policy, or is left out."""
        return self.facts.counts_zero(m, undefined)

    @property
    def nothing_relevant(self) -> str:
        """Why no list has a relevant item, as a clause; empty if some list has one."""
        return "" if self.census.relevant else _with_a_list(self.facts).nothing_relevant

    def check_measured(self) -> None:
        """Refuse scores without any value because nothing is relevant."""
        if not self.census.relevant:
            _with_a_list(self.facts).check_measured()

    @takes_decisions(Averaging)
    def average(
        self, average: str | Average | Averaging = "mean", **decisions: Unpack[AveragingOptions]
    ) -> NDArray[np.float64]:
        """Return systems × metrics averages; see `Scores.average`."""
        averaging = Averaging.of(average, **decisions)
        return self.frame(averaging)["mean"].to_numpy().reshape(len(self.systems), -1)

    @takes_decisions(Averaging)
    def frame(
        self,
        average: str | Average | Averaging = "mean",
        *,
        level: float = LEVEL,
        interval: Literal["analytic", "bootstrap"] = "analytic",
        seed: int = 0,
        **decisions: Unpack[AveragingOptions],
    ) -> pl.DataFrame:
        """Return one row for each system and metric; see `Scores.frame`. The bootstrap uses Poisson weights."""
        from cranfield.measures.part_averages import part_averages_frame

        one_of("interval", interval, ("analytic", "bootstrap"))
        level, seed = share("level", level), whole("seed", seed, at_least=0)
        return part_averages_frame(self, Averaging.of(average, **decisions), level=level, interval=interval, seed=seed)

    def left_out(self, m: int, averaging: Averaging) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return how many lists of each system count in its average, and how many are left out as undefined."""
        if self.counts_zero(m, averaging.undefined) or (self.census.defined[0, :, m] == self.n_lists).all():
            return (), ()
        rows = self.frame(averaging).filter(metric=self.metrics[m])
        return tuple(rows["lists"]), tuple(rows["undefined"].fill_null(0))

    @property
    def on_spark(self) -> bool:
        """Whether the values are on Spark."""
        return hasattr(self.store, "spark_frame")

    def spark_frame(self) -> Any:
        """Return the rows of `Scores.per_user` as a Spark dataframe, if the scores were measured on Spark."""
        if not self.on_spark:
            raise SettingError("these scores were not measured on Spark; see per_user_parts")
        store: Any = self.store
        return store.spark_frame()

    def per_user_parts(self) -> Iterator[pl.DataFrame]:
        """Yield the rows of `Scores.per_user`, part by part."""
        return self.store.per_user()

    def __repr__(self) -> str:
        return f"ScoreParts({len(self.systems)} systems, {len(self.metrics)} metrics, {self.n_lists:,} lists)"


def _with_a_list(facts: Scores) -> Scores:
    """Return the facts with one list without relevant items or values, to get the text for that case."""
    shape = (len(facts.systems), len(facts.metrics), 1)
    return replace(
        facts,
        values=np.full(shape, np.nan),
        users=np.zeros(1, dtype=np.int32),
        relevant=np.zeros(1, dtype=np.int64),
    )


def facts_of(scores: Scores, census: Census) -> Scores:
    """Return scores without their lists, but with the facts about all of them."""
    return replace(
        scores.of_lists(np.zeros(scores.n_lists, dtype=bool)),
        **{name: getattr(scores, name) for name in ("overall", "filled", "unjudged", "nonexistent", "item_coverage",
                                                    "recommended", "counts")},
        measured=census.defined > 0,
    )  # fmt: skip
