"""Averages over lists or users (decision C3), each with an interval for the value it estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._checks import Limits
from cranfield._errors import InputError, SettingError, nearest
from cranfield._numbers import share_of
from cranfield._polars import UNREADABLE, read_parquet, scan_csv
from cranfield._registry import Registry, Spelling, parse
from cranfield._streams import MOST_BLOCKS, Keys, stream, user_blocks
from cranfield.metrics import power_for, power_of_two
from cranfield.tables import place_by_name

Values = NDArray[np.float64]
Interval = tuple[float, float]

_RESAMPLES = 1000


@dataclass(frozen=True)
class Average:
    """A kind of average."""

    spelling: Spelling  # its name with parameters, as in ``geometric(form=adjusted, epsilon=0.01)``
    value: Callable[[Values, Values], Any]  # the average of values under weights, taken along the last axis
    interval: Callable[[Values, Values, float], Interval]  # the interval of that average at a level of confidence
    method: str  # the method of the interval, in words
    # Which weights it uses: None, ``"judged"``, ``"relevant"``, ``"train"``, or ``"FILE:COLUMN"``.
    weights: str | None = None
    # For an average that depends on all systems: a function that transforms their scores, under an `Averaging`,
    # before each system is averaged.
    of_all: Callable[[Any, Any], Any] | None = None

    @classmethod
    def of(cls, spelling: str | Average) -> Average:
        """Parse the spelling of an average."""
        if isinstance(spelling, Average):
            return spelling
        average: Average = AVERAGES.call(spelling, parse(spelling))
        return average

    @property
    def is_of_groups(self) -> bool:
        """Whether it can be taken within each group and then over the groups."""
        return self.spelling.name in ("mean", "weighted")

    @property
    def is_weighted_by_file(self) -> bool:
        """Whether its weights are a column of a file."""
        return self.weights not in (None, *_WEIGHTS)

    def __str__(self) -> str:
        return str(self.spelling)

    def __call__(self, values: Values, weights: Values | None = None) -> float:
        """Return the average; NaN of nothing."""
        if len(values) == 0:
            return float("nan")
        return float(self.value(values, np.ones(len(values)) if weights is None else weights))

    def of_rows(self, rows: Values, weights: Values | None = None) -> Values:
        """Return the average of each row, much faster than row by row."""
        if rows.shape[1] == 0:
            return np.full(len(rows), np.nan)
        averages: Values = self.value(rows, np.ones(rows.shape[1]) if weights is None else weights)
        return averages

    def bootstrap(
        self, values: Values, weights: Values | None, level: float, seed: int, keys: Callable[[], Keys]
    ) -> Interval:
        """Return the percentile interval over 1,000 resamples of the users, the same ones for every system.

        More than 10,000 users are put into 10,000 blocks by a hash of ``keys``, and blocks are drawn (`user_blocks`).
        """
        if len(values) < 2:
            return float("nan"), float("nan")
        weights = np.ones(len(values)) if weights is None else weights
        rng, n = stream(seed, "bootstrap", len(values)), min(len(values), MOST_BLOCKS)
        block = None if n == len(values) else user_blocks(keys(), n, seed, "average")
        draws = np.empty(_RESAMPLES)
        for b in range(_RESAMPLES):
            chosen = (rng.random(n) * n).astype(np.intp)
            if block is None:
                draws[b] = self.value(values[chosen], weights[chosen])
            else:
                times = np.bincount(chosen, minlength=n)[block]
                draws[b] = self.value(np.repeat(values, times), np.repeat(weights, times))
        tail = (1.0 - level) / 2.0
        lower, upper = np.quantile(draws, [tail, 1.0 - tail])
        return float(lower), float(upper)


AVERAGES: Registry[Callable[..., Average]] = Registry("average")
"""The averages by name: functions from a spelling, with its parameters, to an `Average`."""


def _value_in_reach(value: Callable[[Values, Values], Any]) -> Callable[[Values, Values], Any]:
    """Return the same average, computed on values scaled by a power of two if they are huge or tiny."""

    def scaled(x: Values, w: Values) -> Any:
        power = power_of_two(np.fmax.reduce(np.abs(x), axis=-1, initial=0.0))
        return np.ldexp(value(np.ldexp(x, -power[..., None]), w), power) if power.any() else value(x, w)

    return scaled


def _interval_in_reach(interval: Callable[[Values, Values, float], Interval]) -> Callable[..., Interval]:
    """Return the same interval, computed on values scaled by a power of two if they are huge or tiny."""

    def scaled(x: Values, w: Values, level: float) -> Interval:
        power = power_for(x)
        if not power:
            return interval(x, w, level)
        with np.errstate(over="ignore"):  # an end may overflow, and is then infinite
            lower, upper = np.ldexp(interval(np.ldexp(x, -power), w, level), power)
        return float(lower), float(upper)

    return scaled


def _student(values: Values, level: float, degrees: float | None = None, error: float | None = None) -> Interval:
    """Return mean ± t · standard error."""
    from scipy.special import stdtrit

    if len(values) < 2:
        return float("nan"), float("nan")
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if error is None else error
    half = float(stdtrit(len(values) - 1 if degrees is None else degrees, 0.5 + level / 2.0)) * error
    middle = float(values.mean())
    return middle - half, middle + half


def mean_of(spelling: Spelling, of_all: Callable[[Any, Any], Any] | None = None) -> Average:
    """Return the arithmetic mean, (1/n) Σ x, of the scores of all systems after ``of_all``."""
    return Average(
        spelling,
        value=_value_in_reach(lambda x, _: x.mean(axis=-1)),
        interval=_interval_in_reach(lambda x, _, level: _student(x, level)),
        method="Student's t",
        of_all=of_all,
    )


@AVERAGES.register("mean")
def _mean(spelling: Spelling) -> Average:
    """Arithmetic mean: (1/n) Σ x."""
    return mean_of(spelling)


# What lists can be weighted by, in addition to the columns of files.
_WEIGHTS = ("judged", "relevant", "train")


@AVERAGES.register("weighted")
def _weighted(spelling: Spelling, by: str = "judged") -> Average:
    """Weighted mean: Σ w x / Σ w.

    ``by`` chooses w: the number of test ratings of a list (``judged``), the relevant ones (``relevant``), the user's
    training ratings (``train``), or a column of a file with one row per user (``users.csv:spend``).
    """
    file, colon, column = str(by).rpartition(":")
    if by not in _WEIGHTS and not (file and colon and column):
        raise SettingError(
            f"weighted(by={by}) cannot be read; write by=judged, relevant or train, or a column of a file with one row "
            "per user, as in by=users.csv:spend"
        )

    def value(x: Values, w: Values) -> Any:
        total = float(w.sum())
        return (w * x).sum(axis=-1) / (total if total > 0 else np.nan)

    def interval(x: Values, w: Values, level: float) -> Interval:
        if len(x) < 2 or not w.sum() > 0:
            return float("nan"), float("nan")
        middle, mean_weight = float(value(x, w)), float(w.mean())
        # The linearised ratio estimator: residuals w (x − mean) over the mean weight.
        residuals = w * (x - middle) / mean_weight
        return _student(residuals - residuals.mean() + middle, level)

    return Average(
        spelling, _value_in_reach(value), _interval_in_reach(interval), "Student's t, linearised ratio", weights=by
    )


@AVERAGES.register("median")
def _median(spelling: Spelling) -> Average:
    """Median, with the exact interval of its order statistics."""

    def interval(x: Values, _: Values, level: float) -> Interval:
        from scipy.special import bdtrik

        if len(x) < 2:
            return float("nan"), float("nan")
        place = int(np.floor(bdtrik((1.0 - level) / 2.0, len(x), 0.5)))
        ordered = np.sort(x)
        return float(ordered[max(place, 0)]), float(ordered[min(len(x) - 1 - place, len(x) - 1)])

    return Average(spelling, _value_in_reach(lambda x, _: np.median(x, axis=-1)), interval, "exact order statistics")


@AVERAGES.register("geometric")
def _geometric(
    spelling: Spelling,
    form: Literal["trec_eval", "adjusted", "skipping"] = "trec_eval",
    epsilon: Annotated[float, Limits(above=0)] = 1e-5,
) -> Average:
    """Geometric mean, of values that may be 0.

    ``trec_eval``: exp(mean log max(x, ε)), ε = 1e-5. ``adjusted``: exp(mean log(x + ε)) − ε (Robertson 2006; Cañamares
    et al. 2020 with ε = 0.01). ``skipping``: zeros add nothing to the sum of logarithms but are counted, as rec_eval of
    Valcarce et al. averages F1 and RR; so a 0 counts like a 1, and this is only for comparing with their numbers.
    """
    shift = epsilon if form == "adjusted" else 0.0

    def logs(x: Values) -> Values:
        if form == "adjusted":
            return np.log(x + epsilon)
        return np.log(np.where((x == 0) & (form == "skipping"), 1.0, np.maximum(x, epsilon)))

    def back(log: Any) -> Any:
        return np.exp(log) - shift

    def interval(x: Values, _: Values, level: float) -> Interval:
        lower, upper = _student(logs(x), level)
        return float(back(lower)), float(back(upper))

    method = "Student's t of the logs"
    return Average(spelling, lambda x, _: back(logs(x).mean(axis=-1)), interval, method)


@AVERAGES.register("trimmed")
def _trimmed(spelling: Spelling, share: Annotated[float, Limits(low=0, below=0.5)] = 0.1) -> Average:
    """Trimmed mean: the mean without the lowest and highest share of the values."""

    def kept(x: Values) -> Values:
        n = x.shape[-1]
        cut = int(share_of(n, share))
        return np.sort(x, axis=-1)[..., cut : n - cut]

    def interval(x: Values, _: Values, level: float) -> Interval:
        if len(x) < 3:
            return float("nan"), float("nan")
        middle = kept(x)
        winsorised = np.clip(x, middle[0], middle[-1])
        error = float(winsorised.std(ddof=1) / ((1.0 - 2.0 * share) * np.sqrt(len(x))))
        return _student(middle, level, degrees=len(middle) - 1, error=error)

    return Average(
        spelling,
        _value_in_reach(lambda x, _: kept(x).mean(axis=-1)),
        _interval_in_reach(interval),
        "Student's t, winsorised (Tukey-McLaughlin)",
    )


class Counted(NamedTuple):
    """The values that an average includes."""

    kind: Average  # the average that is taken of the values
    values: Values  # of lists or users
    weights: Values | None  # None if all weigh the same
    missing: int  # the number of lists for which the metric is undefined
    users: NDArray[np.int32]  # the user of each list that counts

    @property
    def units(self) -> NDArray[np.int32]:
        """The user of each value."""
        return self.users if len(self.users) == len(self.values) else np.unique(self.users)

    @property
    def mean(self) -> float:
        """The average; NaN of nothing."""
        return self.kind(self.values, self.weights)


def by_user(values: Values, users: NDArray[Any], weights: Values) -> tuple[Values, Values]:
    """Return the mean value and the summed weight of each user's lists."""
    if (users[1:] > users[:-1]).all():
        return values, weights  # each user has one list
    _, user = np.unique(users, return_inverse=True)
    count, power = np.bincount(user), power_for(values)
    means = np.bincount(user, weights=np.ldexp(values, -power)) / count
    return np.ldexp(means, power), np.bincount(user, weights=weights).astype(np.float64)


def over_groups(
    values: Values, groups: NDArray[Any], weights: Values | None, users: NDArray[Any] | None
) -> tuple[Values, Values]:
    """Return values and weights whose weighted mean is the mean over groups of the mean within each group.

    With x_uk the mean of the lists of user u in group k and n_k the users of the group, the mean over the m groups of
    the mean within each is Σ_u w_u x_u / Σ_u w_u with w_u = Σ_k 1/n_k and x_u = Σ_k (x_uk / n_k) / w_u, where k runs
    over the groups in which the user has a list. Users who have lists in every group weigh the same, and x_u is the
    mean over groups. With weights, w_uk / Σ_u w_uk replaces 1/n_k. The values are rows × lists; without users, every
    list is a separate unit.
    """
    lists = np.arange(values.shape[1]) if users is None else users
    _, unit = np.unique(lists, return_inverse=True)
    n_groups = int(groups.max(initial=-1)) + 1
    pairs, pair = np.unique(unit * max(n_groups, 1) + groups, return_inverse=True)
    n_units, n_pairs = int(unit.max(initial=-1)) + 1, len(pairs)
    unit_of_pair, group_of_pair = pairs // max(n_groups, 1), pairs % max(n_groups, 1)
    weight = np.ones(n_pairs) if weights is None else np.bincount(pair, weights, n_pairs)
    total = np.bincount(group_of_pair, weight, n_groups)
    share = np.divide(weight, total[group_of_pair], out=np.zeros(n_pairs), where=total[group_of_pair] > 0)
    unit_weight = np.bincount(unit_of_pair, share, n_units).astype(np.float64)
    table, size = np.empty((len(values), n_units)), np.bincount(pair, minlength=n_pairs)
    for row, list_values in zip(table, values):
        power = power_for(list_values)
        of_pair = np.bincount(pair, np.ldexp(list_values, -power), n_pairs) / size
        sums = np.bincount(unit_of_pair, share * of_pair, n_units)
        row[:] = np.ldexp(np.divide(sums, unit_weight, out=np.zeros(n_units), where=unit_weight > 0), power)
    return table, unit_weight * (n_units / max(int(np.count_nonzero(total)), 1))


def read_column(path: Path, column: str) -> pl.DataFrame:
    """Return a column of a file with one row per user: ``user``, as text, and ``value``.

    The file is CSV, TSV or Parquet.
    """
    if not path.is_file():
        raise InputError("it is not a file", source=path, remedy="name a file with one row per user, as FILE:COLUMN")
    return _read(path, column, path.stat().st_mtime_ns)


def column_of(place: str, users: pl.Series, tables: Mapping[str, pl.DataFrame]) -> NDArray[np.float64]:
    """Return the values of a file's column for some users, by ``FILE:COLUMN``; ids are matched as text.

    Every user must be in it, with a number of at least 0. ``tables`` are columns that were read before, by
    ``FILE:COLUMN``.
    """
    name, _, column = place.rpartition(":")
    path = Path(name)
    known = tables[place] if place in tables else read_column(path, column)
    joined = pl.DataFrame({"user": users.cast(pl.String)}).join(known, on="user", how="left", maintain_order="left")
    values = joined["value"].to_numpy().astype(np.float64)
    wrong = np.flatnonzero(~(values >= 0) | np.isinf(values))
    if len(wrong):
        raise InputError(
            f"user {joined['user'][int(wrong[0])]} has no number of at least 0 in the column {column!r}",
            source=path,
            remedy="give every user of the test set one",
        )
    return values


@lru_cache(maxsize=4)
def _read(path: Path, column: str, _: int) -> pl.DataFrame:
    """Return the columns ``user``, as text, and ``value``; read once for each state of the file."""
    table = _table(path)
    user = place_by_name(table.columns, "user")
    if user is None:
        raise InputError("no column names the user", source=path, remedy="call one of its columns 'user'")
    if column not in table.columns:
        known = f"there is no column {column!r}{nearest(column, table.columns)}"
        raise InputError(known, source=path, remedy="name one of its columns")
    values = table.select(
        user=pl.col(table.columns[user]).cast(pl.String), value=pl.col(column).cast(pl.Float64, strict=False)
    )
    if values["user"].is_duplicated().any():
        twice = values["user"].filter(values["user"].is_duplicated())[0]
        raise InputError(f"user {twice} has more than one row", source=path, remedy="give one row per user")
    return values


def _table(path: Path) -> pl.DataFrame:
    if path.suffix.lower() == ".parquet":
        return read_parquet(path)
    try:
        separator = "\t" if path.suffix.lower() == ".tsv" else ","
        return scan_csv(path, separator=separator, infer_schema=False).collect()
    except UNREADABLE as error:
        raise InputError("it cannot be read as CSV", source=path, remedy="write columns separated by commas") from error
