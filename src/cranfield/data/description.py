"""Statistics of a set of ratings: its size, its inequality, its profiles, its values and its times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError
from cranfield._figures import Style, intervals
from cranfield._numbers import amount_text
from cranfield._record import Step
from cranfield._result import Figures, Result
from cranfield._table import Table
from cranfield._terminal import shown
from cranfield.data.ratings import Ratings, check_ratings
from cranfield.facts import Fact
from cranfield.facts import ratings as ratings_facts

# Up to this many distinct ratings have a row each in the histogram; more are put into bins.
_DISTINCT, _BINS = 20, 10
_SIZES = ("min", "q1", "median", "q3", "max", "mean")
_RENAMED = {"per_user": "ratings_per_user", "per_item": "ratings_per_item", "mean": "mean_rating"}


def _drawn(description: Description, *, style: Style = "screen") -> Any:
    return intervals(description.histogram, "ratings", (), ["rating"], style=style)


def gini(counts: Any) -> float:
    """Return the Gini index of inequality of ``counts``: 0 if all are equal, near 1 if one has everything.

    G = Σ_j (2j − n − 1) x_(j) / (n Σ_j x_(j)), with the counts x_(1) ≤ … ≤ x_(n) in ascending order. (This form divides
    by n; the unbiased one divides by n − 1.) NaN if there is nothing to count.
    """
    x = np.sort(np.asarray(counts, dtype=np.float64))
    n, total = len(x), x.sum()
    if n == 0 or total == 0:
        return float("nan")
    return float((2.0 * np.arange(1, n + 1) - n - 1.0) @ x / (n * total))


@dataclass(frozen=True)
class Description(Result):
    """The statistics of a set of ratings; made by `describe`, and printed as a readable table.

    Parameters
    ----------
    name
        The name of the ratings.
    users, items, ratings
        The numbers of users and items with at least one rating, and of ratings.
    density
        ratings / (users × items).
    gini_users, gini_items
        The inequality of the number of ratings over users and over items (`gini`).
    per_user, per_item
        The sizes of the profiles: min, q1, median, q3, max (quartiles by linear interpolation) and mean.
    mean
        The mean rating.
    histogram
        Columns rating, low, high, ratings and share; ``low == high`` for a single value, else ``low <= r < high`` (and
        ``r <= high`` in the last bin).
    start, end
        The first and the last time in UTC, or None without times.
    history
        The steps since the ratings were read.
    """

    name: str | None
    users: int
    items: int
    ratings: int
    density: float
    gini_users: float
    gini_items: float
    per_user: Mapping[str, float]
    per_item: Mapping[str, float]
    mean: float
    histogram: pl.DataFrame
    start: datetime | None
    end: datetime | None
    history: tuple[Step, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries and lists, ready for JSON."""
        plain = {_RENAMED.get(name, name): value for name, value in vars(self).items()}
        return plain | {
            "histogram": self.histogram.to_dicts(),
            "start": None if self.start is None else self.start.isoformat(),
            "end": None if self.end is None else self.end.isoformat(),
            "history": [step.as_dict() for step in self.history],
        }

    def frame(self) -> pl.DataFrame:
        """Return the numbers as a tidy frame: columns group, statistic and value (times in seconds since 1970)."""
        rows: list[tuple[str, str, float]] = [
            *(("size", name, getattr(self, name)) for name in ("users", "items", "ratings", "density")),
            *(("inequality", name, getattr(self, name)) for name in ("gini_users", "gini_items")),
            *(("ratings_per_user", statistic, value) for statistic, value in self.per_user.items()),
            *(("ratings_per_item", statistic, value) for statistic, value in self.per_item.items()),
            ("rating", "mean", self.mean),
            *(("histogram", label, count) for label, count in self.histogram.select("rating", "ratings").iter_rows()),
        ]
        if self.start is not None and self.end is not None:
            rows += [("time", "start", self.start.timestamp()), ("time", "end", self.end.timestamp())]
        kinds = {"group": pl.String, "statistic": pl.String, "value": pl.Float64}
        return pl.DataFrame(rows, schema=kinds, orient="row")

    def facts(self) -> list[Fact]:
        """Return the numbers of ratings, users and items, and the density."""
        return [ratings_facts.RatingsInNumbers(self.name, self.ratings, self.users, self.items, self.density)]

    def table(self) -> Table:
        """Return the numbers as a table for people."""
        known = self.frame().filter(pl.col("group") != "histogram")
        rows = [[group, statistic, amount_text(value)] for group, statistic, value in known.iter_rows()]
        return Table(["", "", "value"], rows)

    @property
    def figures(self) -> Figures:
        """``ratings``: how many ratings have each value."""
        return {"ratings": _drawn}

    def __str__(self) -> str:
        parts = [self._size(), self._profiles(), self._ratings(), *self._time(), *self._record()]
        return "\n\n".join(([shown(self.name)] if self.name else []) + parts)

    def _size(self) -> str:
        numbers = [
            ("users", f"{self.users:,}"),
            ("items", f"{self.items:,}"),
            ("ratings", f"{self.ratings:,}"),
            ("density", f"{100 * self.density:.3f} %"),
            ("Gini over users", f"{self.gini_users:.3f}"),
            ("Gini over items", f"{self.gini_items:.3f}"),
        ]
        width = max(len(value) for _, value in numbers)
        return "\n".join(f"{label:<16} {value:>{width}}" for label, value in numbers)

    def _profiles(self) -> str:
        rows = [
            [label, *(amount_text(sizes[statistic]) for statistic in _SIZES)]
            for label, sizes in (("per user", self.per_user), ("per item", self.per_item))
        ]
        return Table(["ratings", "min", "25 %", "median", "75 %", "max", "mean"], rows).text()

    def _ratings(self) -> str:
        most = int(self.histogram["ratings"].to_numpy().max())
        rows = [
            (label, f"{count:,}", f"{100 * share:.1f} %", "▇" * round(20 * count / most))
            for label, count, share in self.histogram.select("rating", "ratings", "share").iter_rows()
        ]
        rows.insert(0, ("rating", "ratings", "share", ""))
        a, b, c = (max(len(row[column]) for row in rows) for column in range(3))
        lines = [f"{row[0]:<{a}}  {row[1]:>{b}}  {row[2]:>{c}}  {row[3]}".rstrip() for row in rows]
        return "\n".join([*lines, f"mean {amount_text(self.mean)}"])

    def _time(self) -> list[str]:
        if self.start is None or self.end is None:
            return ["no times"]
        days = (self.end - self.start) / timedelta(days=1)
        return [f"from {self.start:%Y-%m-%d %H:%M:%S} to {self.end:%Y-%m-%d %H:%M:%S} UTC ({amount_text(days)} days)"]

    def _record(self) -> list[str]:
        lines = [line for step in self.history for line in (_told(step), *(f"  {note}" for note in step.notes))]
        return ["\n".join(lines)] if lines else []


def describe(ratings: Ratings) -> Description:
    """Count users, items and ratings, and describe their distributions.

    Users and items without ratings do not count. Quartiles are interpolated linearly. If there are more than 20
    distinct ratings, they are put into bins: with edges 1, 2, 5, 10, 20, ... if they span a factor over 100, as play
    counts do, else ten of equal width.

    Examples
    --------
    >>> found = describe(Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"], [5, 3, 4]))
    >>> found.users, found.items, found.ratings, found.density
    (2, 2, 3, 0.75)
    >>> found.histogram.select("rating", "ratings").rows()
    [('3', 1), ('4', 1), ('5', 1)]
    """
    check_ratings(ratings)
    if not len(ratings):
        problem = "there are no ratings to describe"
        raise InputError(problem, source=ratings.name, remedy="check the file or the filters")
    per_user, per_item = ratings.user_counts, ratings.item_counts
    per_user, per_item = per_user[per_user > 0], per_item[per_item > 0]
    start, end = _span(ratings.times)
    return Description(
        name=ratings.name,
        users=len(per_user),
        items=len(per_item),
        ratings=len(ratings),
        density=len(ratings) / (len(per_user) * len(per_item)),
        gini_users=gini(per_user),
        gini_items=gini(per_item),
        per_user=_sizes(per_user),
        per_item=_sizes(per_item),
        mean=float(ratings.values.mean(dtype=np.float64)),
        histogram=_histogram(ratings.values),
        start=start,
        end=end,
        history=ratings.history,
    )


def _sizes(counts: NDArray[np.int64]) -> dict[str, float]:
    quartiles = np.quantile(counts, [0, 0.25, 0.5, 0.75, 1])
    return dict(zip(_SIZES, [*quartiles.tolist(), float(counts.mean())]))


def _span(times: NDArray[np.int64] | None) -> tuple[datetime | None, datetime | None]:
    if times is None:
        return None, None
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    try:
        return epoch + timedelta(seconds=int(times.min())), epoch + timedelta(seconds=int(times.max()))
    except OverflowError:
        # Numbers that are not seconds, far outside the calendar.
        return None, None


def _histogram(values: NDArray[Any]) -> pl.DataFrame:
    table = pl.Series("value", values).value_counts().sort("value")
    distinct, counts = table["value"].to_numpy(), table["count"].to_numpy()
    if len(distinct) <= _DISTINCT:
        low = high = distinct.astype(np.float64)
        labels = [amount_text(value) for value in low]
    else:
        edges = _edges(float(distinct[0]), float(distinct[-1]))
        bin_of = np.clip(np.searchsorted(edges, distinct, side="right") - 1, 0, len(edges) - 2)
        counts = np.bincount(bin_of, weights=counts, minlength=len(edges) - 1).astype(np.int64)
        low, high = edges[:-1], edges[1:]
        labels = [f"{amount_text(a)} to {amount_text(b)}" for a, b in zip(low, high)]
    return pl.DataFrame(
        {"rating": labels, "low": low, "high": high, "ratings": counts.astype(np.int64), "share": counts / len(values)}
    )


def _edges(low: float, high: float) -> NDArray[np.float64]:
    if low > 0 and high / low > 100:
        decades = range(int(np.floor(np.log10(low))), int(np.floor(np.log10(high))) + 2)
        steps = np.array([step * 10.0**decade for decade in decades for step in (1, 2, 5)])
        return steps[
            max(int(np.searchsorted(steps, low, side="right")) - 1, 0) : np.searchsorted(steps, high, "right") + 1
        ]
    return np.linspace(low, high, _BINS + 1)


def _told(step: Step) -> str:
    """Describe a step on one line."""
    return shown(f"{step.action}: " + ", ".join(f"{name} {_quoted(value)}" for name, value in step.settings.items()))


def _quoted(value: Any) -> str:
    """Quote separators, and show words and numbers unchanged."""
    if isinstance(value, Mapping):
        return " ".join(f"{key}={_quoted(inner)}" for key, inner in value.items())
    return repr(value) if isinstance(value, str) and not any(letter.isalnum() for letter in value) else str(value)
