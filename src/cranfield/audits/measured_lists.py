"""Measured lists: those of a set-up are measured once per measurement, and every average is a view of the values."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._numbers import percent_text
from cranfield.audits.grid import Floats
from cranfield.judgments import Judged
from cranfield.measures import Average, Averaging, Scores, over_groups
from cranfield.metrics import Metric, bounds
from cranfield.tables import Vocabulary

LINEAR = ("mean", "weighted", "geometric", "standardised")
"""The averages that are, on some scale, a sum of one term per user; joint tests leave out all others.

A standardised value compares a system with all systems on a user's list. Swapping two systems swaps their values and
changes no others, so the mean of standardised values is one of these averages. If losses against a baseline count more
(URisk), swapping the system and the baseline does not turn a loss into an equal win.
"""

_UNDEFINED = "the metric is undefined for every user: no test rating is relevant"


@dataclass(frozen=True)
class Measurement:
    """What is measured on the lists of a set-up; without a threshold, by that which follows from their ratings."""

    metric: str
    threshold: float | None
    missing_judgments: str = "not relevant"


@dataclass(frozen=True, eq=False)
class SetupLists:
    """The judged lists of a set-up, for every fold and repetition, and their users.

    A given list was cut somewhere, and the items below the cut are not known. A system can be measured at a cut-off n
    only if its longest list has n items. If lists are condensed, each of them must contain n items with a test rating,
    or all that the system could score. Users without a list are ignored.
    """

    parts: Sequence[Sequence[Judged]]  # the lists of every system, for each fold and repetition
    users: Sequence[NDArray[np.int64]]  # for each part, the index of each list's user among all users of the audit
    length: int | None = None  # of lists if a metric has no cut-off; None for the full length
    windows: Sequence[int] | None = None  # of time, for each part, if there are several: each counts equally
    given: Sequence[bool] = ()  # whether the lists of each system are given
    served: Sequence[Sequence[NDArray[np.bool_]]] = ()  # parts × systems × users: whether there is a list

    def with_given(self, given: Sequence[bool], *, condensed: bool) -> Self:
        """Return the lists, condensed or not, of systems some of which are given."""
        parts = [[judged.condensed() for judged in part] for part in self.parts] if condensed else self.parts
        served = [[judged.lengths > 0 for judged in part] for part in self.parts]
        return replace(self, parts=parts, given=given, served=served)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The users, ascending."""
        return np.unique(np.concatenate(self.users))

    @cached_property
    def unit(self) -> NDArray[np.int64]:
        """The index of each list's user in ``places``."""
        return np.searchsorted(self.places, np.concatenate(self.users))

    @cached_property
    def _order(self) -> NDArray[np.int64] | slice:
        """The lists in the order of their users, if every user has one."""
        ordered = bool((np.diff(self.unit) > 0).all())
        return slice(None) if ordered else np.argsort(self.unit, kind="stable")

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems."""
        ranked = [judged.ranked for judged in self.parts[0]]
        return tuple(f"system {place}" if own is None else own.name for place, own in enumerate(ranked))

    @property
    def is_single(self) -> bool:
        """Whether every user has one list."""
        return len(self.unit) == len(self.places)

    def at(self, threshold: float) -> Self:
        """Return the lists under a threshold of relevance, without cached results."""
        judgments = [part[0].judgments.at(threshold) for part in self.parts]
        parts = [[judged.fresh(judgments=shared) for judged in part] for part, shared in zip(self.parts, judgments)]
        return replace(self, parts=parts)

    def measured(self, measurement: Measurement) -> MeasuredLists:
        """Measure the lists of every system under their own threshold; raise an error if given ones are too short."""
        metric = Metric.of(measurement.metric)
        for place in np.flatnonzero(self.given).tolist():
            served = np.concatenate([part[place] for part in self.served])
            _check_length([part[place] for part in self.parts], served, metric.cutoff)
        missing = measurement.missing_judgments
        values = [[self._values(metric, judged, missing) for judged in part] for part in self.parts]
        judgments = [part[0].judgments for part in self.parts]
        return MeasuredLists(
            self,
            np.concatenate(values, axis=1),
            np.concatenate([shared.n_judged for shared in judgments]),
            np.concatenate([shared.n_relevant for shared in judgments]),
            metric.zero_if_undefined,
            metric.lower_is_better,
        )

    def _values(self, metric: Metric, judged: Judged, missing: str) -> Floats:
        if metric.cutoff is None and self.length is not None:
            judged = judged.cut(self.length)
        if missing == "relevant" and metric.definition.bounds:
            return bounds(metric, judged)[1]
        return metric(judged)

    @cached_property
    def covered(self) -> NDArray[np.bool_]:
        """Systems × lists: whether the system provides a list with at least one item."""
        return np.concatenate([[judged.lengths > 0 for judged in part] for part in self.parts], axis=1)

    @cached_property
    def groups(self) -> NDArray[np.int16] | None:
        """The group of each list; None if the lists are not grouped."""
        if self.windows is not None:
            return np.repeat(np.array(self.windows, dtype=np.int16), [len(users) for users in self.users])
        known = [part[0].groups for part in self.parts if part[0].groups is not None]
        return np.concatenate(known) if len(known) == len(self.parts) else None

    @cached_property
    def trained(self) -> Floats:
        """The number of training ratings of each list's user, divided by the number of the user's lists."""
        counts = np.concatenate([_training_counts(part[0]) for part in self.parts])
        return counts / np.bincount(self.unit)[self.unit]

    def by_user(self, values: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return systems × users: the mean of each user's values under weights of lists, and the sum of weights."""
        if self.is_single:
            return values[:, self._order], weights[:, self._order]
        total: Floats = np.stack([np.bincount(self.unit, row, len(self.places)) for row in weights])
        sums: Floats = np.stack([np.bincount(self.unit, row, len(self.places)) for row in weights * values])
        return np.divide(sums, total, out=np.zeros_like(sums), where=total > 0), total


def _check_length(parts: Sequence[Judged], served: NDArray[np.bool_], cutoff: int | None) -> None:
    """Raise an error if the lists of a system are too short for a cut-off."""
    ranked = parts[0].ranked
    name = "a system" if ranked is None else ranked.name
    longest = max(judged.depth for judged in parts)
    if not parts[0].is_condensed:
        if cutoff is not None and cutoff > longest:
            raise SettingError(
                f"the longest list of {name} has {longest} items, so a cut-off of {cutoff} cannot be shown; give "
                "longer lists"
            )
        return
    short = served & np.concatenate([_too_short(judged, cutoff) for judged in parts])
    if short.any():
        depth = "whole lists" if cutoff is None else f"cut-off {cutoff}"
        raise SettingError(
            f"the lists of {name} are too short to be condensed: at {depth} items are missing for "
            f"{percent_text(float(short.mean()), ' %')} of the users; give longer lists"
        )


def _too_short(judged: Judged, cutoff: int | None) -> NDArray[np.bool_]:
    """Return which condensed lists neither reach a cut-off nor contain every test item with a training rating."""
    judgments, train = judged.judgments, judged.context.train
    wanted = judgments.n_judged
    if train is not None:
        known = train.item_ids.codes(judgments.item_ids.ids(np.arange(len(judgments.item_ids))))
        trained = np.append(train.item_counts > 0, False)[known]
        wanted = np.bincount(judgments.lists, trained[judgments.items], judgments.n_lists).astype(np.int64)
    return judged.lengths < (wanted if cutoff is None else np.minimum(wanted, cutoff))


def _training_counts(judged: Judged) -> Floats:
    train, judgments = judged.context.train, judged.judgments
    if train is None:
        raise SettingError("weighted(by=train) needs the training ratings; give them as train=...")
    codes = train.user_ids.codes(judgments.user_ids.ids(judgments.users))
    return np.append(train.user_counts, 0)[codes].astype(np.float64)


@dataclass(frozen=True, eq=False)
class MeasuredLists:
    """The result of one measurement of a set-up: systems × lists, NaN where the metric is undefined."""

    lists: SetupLists
    values: Floats
    judged: NDArray[np.int64]  # the number of test ratings of each list
    relevant: NDArray[np.int64]  # the number of relevant ones
    zero_if_undefined: bool
    lower_is_better: bool
    _kept: dict[bool, tuple[Floats, NDArray[np.bool_], bytes]] = field(default_factory=dict, repr=False)

    def averaged(self, averaging: Averaging) -> Averaged:
        """Return the average of every system, and the contribution of each user.

        A list for which the metric is undefined counts as 0 or is left out, depending on ``averaging``; it is left out
        for all systems if it is left out for one.
        """
        kind, lists = averaging.kind, self.lists
        if kind.of_all is not None:
            return self._of_all(averaging)
        values, kept, digest = self._counted(self._scores.counts_zero(0, averaging.undefined))
        own = self._weights(kind)
        if lists.windows is not None and not kind.is_of_groups:
            raise SettingError(
                f"each window of time is averaged, then all together, and average='{kind}' is not a mean; use "
                "average='mean' or 'weighted'"
            )
        if averaging.groups == "equal" and lists.groups is None:
            raise SettingError("groups='equal' needs lists in groups; split with percentiles, or set groups='pooled'")
        kept = kept & self._scores.lists_that_count(averaging)
        if averaging.coverage == "own" and not lists.covered.all():
            return self._of_own_users(averaging, values, kept)
        if averaging.groups == "equal" or lists.windows is not None:
            return self._over_groups(averaging, values, kept, own)
        per_user, counts = lists.by_user(values, np.broadcast_to(kept, values.shape).astype(np.float64))
        weights = np.ones(len(lists.places))
        if own is not None:
            weights = np.bincount(lists.unit, own * kept, len(lists.places)).astype(np.float64)
        digest = digest if lists.is_single else b""
        return averaged(lists.places, per_user, weights, counts[0] > 0, kind, self.lower_is_better, digest)

    def _of_own_users(self, averaging: Averaging, values: Floats, kept: NDArray[np.bool_]) -> Averaged:
        """Average each system over the users whom it serves; terms and users are those of the full average.

        Systems have other users, so the difference is no sum over users, and the joint test leaves the universe out.
        """
        lists, kind, averages, users = self.lists, averaging.kind, list[float](), list[int]()
        if averaging.groups == "equal" or lists.windows is not None:
            raise SettingError("coverage='own' is for averages over all lists together; set coverage='reduced'")
        own = self._weights(kind)
        for system, row in enumerate(values):
            served = kept & lists.covered[system]
            per_user, counts = lists.by_user(row[None], served[None].astype(np.float64))
            weights = counts[0] if own is None else np.bincount(lists.unit, own * served, len(lists.places))
            inside = (counts[0] > 0) & (weights > 0)
            users.append(int(np.count_nonzero(inside)))
            averages.append(kind(per_user[0][inside], np.ones(inside.sum()) if own is None else weights[inside]))
        if np.isnan(averages).any():
            raise SettingError("a system serves no user who counts")
        full = self.averaged(averaging.with_(coverage="full"))
        digest = _digest(full.digest.encode(), b"own", np.array(averages).tobytes())
        return replace(full, averages=np.array(averages), linear=False, digest=digest, fewest=min(users))

    def _of_all(self, averaging: Averaging) -> Averaged:
        """Return an average that depends on all systems: the mean of values on its scale, or one value per system.

        A single value per system (TRisk, GeoRisk) has no terms, so those of the plain values are used for effect sizes.
        The TRisk of a system that never differs from the baseline, such as the baseline itself, is 0: there is nothing
        to win or to lose. If the average is undefined for another system, the universe cannot be computed.
        """
        lists, kind, scores = self.lists, averaging.kind, self._scores
        on_scale = averaging.taken_of(scores)
        if on_scale.overall is not None:
            whole = on_scale.overall[:, 0].copy()
            base = dict(kind.spelling.parameters).get("baseline")
            if base is not None:
                differs = self.values != self.values[scores.system(str(base))]
                whole[~(differs & ~np.isnan(self.values)).any(axis=1)] = 0.0
            if np.isnan(whole).any():
                undefined = lists.systems[int(np.flatnonzero(np.isnan(whole))[0])]
                raise SettingError(f"the average {kind} is undefined for {undefined}")
            plain = self.averaged(averaging.with_(average="mean"))
            digest = _digest(plain.digest.encode(), str(kind).encode())
            return replace(plain, averages=whole, linear=False, lower_is_better=False, digest=digest)
        values = on_scale.values[:, 0]
        inside = ~np.isnan(values)
        if not inside.any():
            raise SettingError(_UNDEFINED)
        inside = inside & inside.all(axis=0) & scores.lists_that_count(averaging)
        per_user, counts = lists.by_user(np.nan_to_num(values), inside.astype(np.float64))
        weights = np.ones(len(lists.places))
        return averaged(lists.places, per_user, weights, counts[0] > 0, kind, on_scale.lower_is_better[0])

    @cached_property
    def _scores(self) -> Scores:
        """The values of each list as scores, which decide what counts."""
        lists, n_lists = self.lists, self.values.shape[1]
        users, ids = np.arange(n_lists, dtype=np.int32), Vocabulary.of(np.arange(n_lists))
        ones, lower, zero = np.ones(n_lists, dtype=np.int64), (self.lower_is_better,), (self.zero_if_undefined,)
        of_lists = (self.values[:, None], lists.covered, users, ids, ones, ones, lower)
        return Scores(lists.systems, ("value",), *of_lists, zero_if_undefined=zero, groups=lists.groups)

    def _counted(self, as_zero: bool) -> tuple[Floats, NDArray[np.bool_], bytes]:
        """Return the values without NaN, which lists count, and a hash of both."""
        if as_zero not in self._kept:
            undefined = np.isnan(self.values)
            if undefined.all():
                raise SettingError(_UNDEFINED)
            kept = np.full(self.values.shape[1], True) if as_zero else ~np.logical_or.reduce(undefined, axis=0)
            values = np.where(undefined | ~kept, 0.0, self.values)
            self._kept[as_zero] = values, kept, _hash(values.tobytes(), kept.tobytes())
        return self._kept[as_zero]

    def _weights(self, kind: Average) -> Floats | None:
        """Return the weight of each list in a kind of average; None if all weigh the same."""
        if kind.weights is None:
            return None
        if kind.weights == "train":
            return self.lists.trained
        return (self.judged if kind.weights == "judged" else self.relevant).astype(np.float64)

    def _over_groups(
        self, averaging: Averaging, values: Floats, kept: NDArray[np.bool_], own: Floats | None
    ) -> Averaged:
        """Average within each group of lists, then over the groups: a weighted mean over users (`over_groups`)."""
        groups = self.lists.groups
        assert groups is not None
        if not kept.any():
            raise SettingError("no user has a value that counts")
        weights = None if own is None else own[kept]
        table, share = over_groups(values[:, kept], groups[kept], weights, self.lists.unit[kept])
        places = self.lists.places[np.unique(self.lists.unit[kept])]
        inside = np.ones(table.shape[1], dtype=np.bool_)
        weighted = averaging.with_(average="weighted", groups="pooled", coverage="full").kind
        return averaged(places, table, share, inside, weighted, self.lower_is_better)


@dataclass(frozen=True, eq=False)
class Averaged:
    """A universe: the average of each system as reported, and the contribution of each user."""

    places: NDArray[np.int64]  # the users, as indices among all users of the audit
    averages: Floats
    terms: NDArray[np.float32]  # systems × users, where larger is better (`UserContributions`)
    users: int  # the number of those that count
    even: bool  # whether they weigh the same
    linear: bool  # whether the average is a sum of terms
    lower_is_better: bool
    digest: str  # a hash of values and weights: universes with the same one are equal
    fewest: int | None = None  # the users of the system with the fewest, if systems are averaged over other users


def averaged(
    places: NDArray[np.int64],
    values: Floats,
    weights: Floats,
    inside: NDArray[np.bool_],
    kind: Average,
    lower_is_better: bool,
    digest: bytes = b"",
) -> Averaged:
    """Return the averages of systems × users values over the users ``inside``, and the contribution of each user."""
    counts = inside & (weights > 0)
    if not counts.any():
        raise SettingError("no user has a value that counts")
    averages = np.array([kind(row[counts], weights[counts]) for row in values])
    even = bool((weights[counts] == weights[counts][0]).all())
    digest = digest or _hash(values.tobytes())
    scaled = on_linear_scale(values, kind) * (-1.0 if lower_is_better else 1.0)
    name, terms = kind.spelling.name, (weights * counts * scaled).astype(np.float32)
    shares = b"" if even else (weights / weights[counts].sum()).tobytes()
    mean = ("mean" if name in ("mean", "weighted") else str(kind)).encode()
    own = _digest(digest, places.tobytes(), counts.tobytes(), shares, mean, bytes([lower_is_better]))
    users = int(np.count_nonzero(counts))
    return Averaged(places, averages, terms, users, even, name in LINEAR, lower_is_better, own)


def on_linear_scale(values: Floats, kind: Average) -> Floats:
    """Return logarithms for a geometric mean, log max(x, ε) or ``adjusted`` log(x + ε); other values do not change."""
    if kind.spelling.name != "geometric":
        return values
    settings = dict(kind.spelling.parameters)
    epsilon = float(settings.get("epsilon", 1e-5))
    return np.log(values + epsilon if settings.get("form") == "adjusted" else np.maximum(values, epsilon))


def _digest(*parts: bytes) -> str:
    return hashlib.blake2b(b"".join(map(_hash, parts)), digest_size=16).hexdigest()


def _hash(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"".join(parts), digest_size=16).digest()
