"""From `Scores`, or from plain values, to the samples for the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError, nearest
from cranfield._streams import Keys
from cranfield.comparisons.sample import Floats, Sample
from cranfield.facts import comparison as comparison_facts
from cranfield.measures import Average, Averaging, Errors, Scores, join_folds, over_groups
from cranfield.metrics import properties_of
from cranfield.tables import Vocabulary, as_polars, is_spark

# Weights that differ by less than this share of the largest are equal.
_BALANCED = 1e-12

AVERAGES = ("mean", "weighted", "geometric", "standardised", "urisk")
# With larger values, differences or weighted sums over many users may overflow.
_LARGEST = 1e290


def make_samples(
    scores: Scores, averaging: Averaging, *, metrics: Sequence[str] | None = None, baseline: str | None = None
) -> tuple[list[Sample], comparison_facts.UsersThatCount]:
    """Return one sample for each metric, and which users count.

    With reduced coverage, only lists that every system provides count, in all pairs, so that all averages and tests are
    over the same users. If groups count equally, a list counts if every system has a value for it, and a user's value
    and weight are those of `over_groups`: the weighted mean of the users is the mean over groups of the mean within
    each, so the test is of the averages that `Scores.frame` reports.
    """
    scale = averaging.kind
    if averaging.coverage == "own":
        raise SettingError(
            "coverage='own' averages each system over other users, so their differences cannot be tested; set "
            "coverage='reduced' for the users that every system serves, or open it in an audit"
        )
    if scale.spelling.name not in AVERAGES:
        raise SettingError(
            f"systems cannot be compared by their {scale.spelling.name}, since a paired test looks at averages of "
            f"differences; use average={', '.join(AVERAGES)}; to test which is better for more users, set "
            "average='mean' and significance='sign'"
        )
    _check(scores)
    scores = averaging.taken_of(scores)
    first, second = pairs_of(scores.systems, baseline)
    samples: list[Sample] = []
    undefined: dict[tuple[int, bool], list[str]] = {}
    if metrics is not None and not metrics:
        raise SettingError("no metric was given; name at least one")
    unit, cells_of = _units(scores, averaging, scale), _cells(scores, averaging)
    keys = _keys(scores, averaging)
    compared, not_compared = _compared_metrics(scores, metrics)
    for place in compared:
        values = scores.counted_values(place, averaging)
        zero = scores.counts_zero(place, averaging.undefined)
        if not zero and np.isnan(values).any():  # then it is a copy
            # If a user has several lists, the same ones count for every system.
            values[:, ~defined_for_all(values)] = np.nan
        without = _lists_without(scores, place, averaging)
        if without:
            undefined.setdefault((without, zero), []).append(scores.metrics[place])
        cells = None if cells_of is None else cells_of(values)
        values, weights = unit(values)
        low, high = properties_of(scores.metrics[place]).between
        samples.append(
            Sample(
                scores.metrics[place],
                scores.systems,
                values,
                first,
                second,
                weights,
                **logarithm(scale),
                lower_is_better=scores.lower_is_better[place],
                cells=cells,
                keys=keys,
                largest=high - low if averaging.kind.of_all is None else np.inf,
            )
        )
    uncovered = dict(zip(scores.systems, (scores.n_lists - scores.n_covered).tolist()))
    return samples, comparison_facts.UsersThatCount(
        unit=scores.unit,
        lists=scores.n_lists,
        users=scores.n_users,
        by_user=averaging.by == "user",
        undefined=tuple((*rule, tuple(names)) for rule, names in undefined.items()),
        missing={system: lists for system, lists in uncovered.items() if lists},
        population=population(scores, averaging),
        equal_groups=averaging.groups == "equal",
        not_compared=not_compared,
    )


def population(scores: Scores, averaging: Averaging) -> comparison_facts.Population | None:
    """Return which users are compared; None if all count."""
    if averaging.coverage == "full" or scores.n_served == scores.n_lists:
        return None
    return comparison_facts.Population(scores.n_served_users, scores.n_users, len(scores.systems))


def _units(scores: Scores, averaging: Averaging, scale: Average) -> Callable[[Floats], tuple[Floats, Floats | None]]:
    """Return a function from values of lists to values and weights of users or lists."""
    list_weights = scores.weights(scale)
    if list_weights is not None and not list_weights.any():
        raise InputError(f"no list has any {scale.weights} items, so all weights are 0", remedy="use average='mean'")
    users = scores.users if averaging.by == "user" else None
    if averaging.groups == "equal":
        return partial(_over_groups, groups=scores.grouped_by(), weights=list_weights, users=users)
    lists_of = None if users is None else _UserLists(users)
    weights = list_weights if list_weights is None or lists_of is None else lists_of.sums(list_weights)
    return lambda values: (values if lists_of is None else lists_of.means(values), weights)


def _keys(scores: Scores, averaging: Averaging) -> Keys | None:
    """Return a number for each user derived from the user's id; None if the units are not users."""
    if averaging.groups == "equal" or (averaging.by != "user" and scores.unit != "user"):
        return None
    return scores.user_ids.keys[distinct_users(scores)]


def distinct_users(scores: Scores) -> NDArray[np.int32]:
    """Return the user of each unit of a sample: all users once, in the order of their lists if each has one."""
    if scores.n_users == scores.n_lists:
        return scores.users
    return np.asarray(np.unique(scores.users))


def _cells(scores: Scores, averaging: Averaging) -> Callable[[Floats], Floats] | None:
    """Return a function from values of lists to values by user and repetition; None without repetitions."""
    if scores.repetitions is None:
        return None
    if averaging.by != "user":
        raise SettingError("by='list' cannot include the spread between repetitions; set by='user'")
    if averaging.groups == "equal":
        return partial(_cells_over_groups, scores=scores, weights=scores.weights(averaging.kind))
    return partial(Errors.cells, users=scores.users, repetitions=scores.repetitions)


def _cells_over_groups(values: Floats, scores: Scores, weights: Floats | None) -> Floats:
    """Return values by user and repetition such that each group counts equally, over lists that all systems have."""
    assert scores.repetitions is not None
    times = int(scores.repetitions.max()) + 1
    place = scores.users.astype(np.int64) * times + scores.repetitions
    table, _ = _over_groups(values, scores.grouped_by(), weights, place)
    places = np.unique(place[_in_groups(values, scores.grouped_by())])
    return Errors.cells(table, places // times, places % times)


def _in_groups(values: Floats, groups: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Return which lists are in a group and have a value for every system."""
    return np.asarray((groups >= 0) & ~np.isnan(values).any(axis=0))


def _over_groups(
    values: Floats, groups: NDArray[np.int16], weights: Floats | None, users: NDArray[Any] | None
) -> tuple[Floats, Floats | None]:
    """Return values and weights of units such that each group counts equally, over lists that all systems have."""
    keep = _in_groups(values, groups)
    if not keep.any():
        raise InputError(
            "there is no list in a group for which every system has a value", remedy="compare with groups='pooled'"
        )
    table, share = over_groups(
        values[:, keep],
        groups[keep],
        None if weights is None else weights[keep],
        None if users is None else users[keep],
    )
    balanced = weights is None and float(np.ptp(share)) <= _BALANCED * float(share.max())
    return table, None if balanced else share


def as_scores(values: Scores | Mapping[str, Any] | Any) -> Scores:
    """Return ``values`` as `Scores`: a mapping of per-user values by system, or a frame with one column per system.

    In a frame, also of Spark, the column ``user`` holds the ids of the rows. A list of `Scores` holds several
    repetitions.
    """
    if isinstance(values, Scores):
        return values
    if isinstance(values, Sequence) and values and all(isinstance(part, Scores) for part in values):
        return join_folds(values, range(len(values)))
    if is_spark(values):
        values = as_polars(values, in_parts=True)
    columns = _columns(values)
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(
            f"the systems have values for different numbers of users ({counts})",
            remedy="give every system a value for the same users in the same order, NaN where it has none",
        )
    n = next(iter(lengths.values()), 0)
    table = np.array(list(columns.values()), dtype=np.float64).reshape(len(columns), 1, n)
    has_users = not isinstance(values, Mapping) and "user" in values.columns
    user_ids, users = Vocabulary.encode(values["user"] if has_users else np.arange(n))
    order = np.argsort(users, kind="stable")
    return Scores(
        tuple(columns),
        ("value",),
        table[:, :, order],
        np.ones((len(columns), n), dtype=bool),
        users[order],
        user_ids,
        np.ones(n, dtype=np.int64),
        np.ones(n, dtype=np.int64),
        (False,),
    )


def _columns(values: Any) -> dict[str, Floats]:
    if isinstance(values, Mapping):
        names = list(values)
    elif hasattr(values, "columns"):
        names = [name for name in values.columns if name != "user"]
    else:
        raise InputError(
            f"a {type(values).__name__} cannot be compared",
            remedy="give the Scores of measure(...), or per-user values as {system: values}",
        )
    columns = {}
    for name in names:
        try:
            column = np.asarray(values[name])
            if column.dtype.kind in "USO" and any(isinstance(value, str) for value in column.reshape(-1)):
                raise TypeError("text")
            columns[str(name)] = column.astype(np.float64).reshape(-1)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the values of {name!r} are not numbers ({error})", remedy="give one number per user"
            ) from error
    return columns


def _check(scores: Scores) -> None:
    if len(scores.systems) < 2:
        raise InputError(
            f"there {'is 1 system' if len(scores.systems) == 1 else 'are no systems'} to compare",
            remedy="give two or more",
        )
    for kind, names in (("system", scores.systems), ("metric", scores.metrics)):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"the {kind} {twice[0]!r} is listed twice", remedy="give each its own name")
    if scores.n_lists == 0:
        raise InputError("there are no users to compare over", remedy="give a test set with ratings")
    for system, metric in np.ndindex(scores.values.shape[:2]):
        values = scores.values[system, metric]
        if not (np.fmin.reduce(values) < -_LARGEST or np.fmax.reduce(values) > _LARGEST):
            continue
        place = int(np.flatnonzero(np.abs(values) > _LARGEST)[0])
        value = values[place]
        reason = "infinite" if np.isinf(value) else f"{value:.3g}, too large to sum,"
        raise InputError(
            f"{scores.metrics[metric]} of {scores.systems[system]} is {reason} for user "
            f"{scores.user_ids.ids([scores.users[place]])[0]}",
            remedy="fix the value, or give NaN and undefined='leave out'",
        )


def pairs_of(systems: tuple[str, ...], baseline: str | None) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the two systems of each pair: all pairs, or each system with the baseline."""
    if baseline is None:
        return np.triu_indices(len(systems), 1)
    if baseline not in systems:
        raise SettingError(f"there is no system {baseline!r} for a baseline{nearest(str(baseline), systems)}")
    base = systems.index(baseline)
    others = np.array([place for place in range(len(systems)) if place != base], dtype=np.intp)
    return others, np.full(len(others), base, dtype=np.intp)


def logarithm(scale: Average) -> dict[str, Any]:
    """Return how a sample takes logarithms, for a geometric mean."""
    if scale.spelling.name != "geometric":
        return {}
    parameters = dict(scale.spelling.parameters)
    epsilon = float(parameters.get("epsilon", 1e-5))
    adjusted = parameters.get("form", "trec_eval") == "adjusted"
    return {"geometric": True, "floor": 0.0 if adjusted else epsilon, "shift": epsilon if adjusted else 0.0}


class _UserLists:
    """The lists of each user."""

    def __init__(self, users: NDArray[np.int32]) -> None:
        self._single = bool((users[1:] > users[:-1]).all())
        if not self._single:
            _, self._group = np.unique(users, return_inverse=True)
            self._n = int(self._group.max(initial=-1)) + 1
            self._single = self._n == len(users)

    def means(self, values: Floats) -> Floats:
        """Return, for each row, the mean over each user's lists, ignoring NaN."""
        if self._single:
            return values
        counted = ~np.isnan(values)
        totals = np.array([np.bincount(self._group, row, self._n) for row in np.where(counted, values, 0.0)])
        counts = np.array([np.bincount(self._group, row, self._n) for row in counted.astype(np.float64)])
        with np.errstate(invalid="ignore"):
            means: Floats = totals / counts
        return means

    def sums(self, values: Floats) -> Floats:
        """Return the sum over each user's lists."""
        return values if self._single else np.bincount(self._group, values, self._n).astype(np.float64)


def defined_for_all(values: Floats) -> NDArray[np.bool_]:
    """Return the lists for which every system has a value, from systems × lists; systems without any are ignored."""
    defined = ~np.isnan(values)
    measured: NDArray[np.bool_] = defined[defined.any(axis=1)]
    return np.asarray(measured.all(axis=0), dtype=np.bool_)


def _lists_without(scores: Scores, place: int, averaging: Averaging) -> int:
    """Return the number of counted lists, of any group, for which a metric is undefined for any system."""
    counted = scores.lists_that_count(averaging.with_(groups="pooled"))
    return int((np.isnan(scores.values[:, place]).any(axis=0) & counted).sum())


def _compared_metrics(scores: Scores, metrics: Sequence[str] | None) -> tuple[list[int], tuple[str, ...]]:
    """Return the places of the metrics with a value per user, given or all, and those with one value per system."""
    wanted = range(len(scores.metrics)) if metrics is None else [scores.metric(m) for m in metrics]
    whole: list[str] = []
    if scores.overall is not None:
        whole = [scores.metrics[place] for place in wanted if not np.isnan(scores.overall[:, place]).all()]
    if whole and (metrics is not None or len(whole) == len(scores.metrics)):
        raise SettingError(f"{whole[0]} has one value per system and none per user; compare by another metric")
    return [place for place in wanted if scores.metrics[place] not in whole], tuple(whole)
