"""Joining of scores: of disjoint users or of folds, over one vocabulary of users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError
from cranfield._registry import parse
from cranfield.measures.scores import Scores
from cranfield.tables import UNKNOWN, Vocabulary


def join_scores(parts: Sequence[Scores]) -> Scores:
    """Return the scores of disjoint users as one, as if they had been measured together.

    The parts must have the same systems and metrics in the same order. Properties of all lists together cannot be
    computed from parts: metrics of the whole system are refused, and the share of the catalogue that is recommended is
    left out. Metrics that depend on the highest rating of the test set (``ERR``, ``gain=exp1``), and bounds, are the
    same as when measured together only if every part contains that rating.

    Examples
    --------
    >>> import cranfield as cf
    >>> runs = {"mine": {"ann": ["x", "z"], "bob": ["z", "y"]}}
    >>> tests = [cf.Ratings.of(["ann"], ["x"]), cf.Ratings.of(["bob"], ["y"])]
    >>> joined = cf.Scores.join([cf.measure(runs, test, "RR") for test in tests])
    >>> joined.n_lists, joined.average().tolist()
    (2, [[0.75]])
    """
    check_alike(parts, "part")
    first = parts[0]
    whole = [m for part in parts if part.overall is not None for m in np.flatnonzero(~np.isnan(part.overall).all(0))]
    if whole:
        raise SettingError(
            f"{first.metrics[whole[0]]} belongs to all lists together and cannot be combined from parts; leave it "
            "out, or measure all lists at once"
        )
    if len(parts) == 1:
        return first
    lists = lists_of(parts)
    owner = np.repeat(np.arange(len(parts)), [part.n_lists for part in parts])
    users = lists["users"]
    order = None if (users[1:] >= users[:-1]).all() else np.argsort(users, kind="stable")
    if order is not None:
        users, owner = users[order], owner[order]
    again = np.flatnonzero((users[1:] == users[:-1]) & (owner[1:] != owner[:-1]))
    if len(again):
        twice = lists["user_ids"].ids(users[again[:1]])[0]
        raise InputError(f"user {twice} is in more than one part", remedy="give every user's lists in one part")
    return replace(
        first,
        **{name: values if name == "user_ids" else _taken(values, order) for name, values in lists.items()},
        **_services(parts),
        overall=first.overall,
        item_coverage=None,
        nonexistent=None,
        counts=_summed(parts),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        warnings=tuple(dict.fromkeys(note for part in parts for note in part.warnings)),
        step=replace(first.step, settings={**first.step.settings, "test": None, "parts": len(parts)}),
    )


def check_alike(parts: Sequence[Scores], what: str) -> None:
    """Refuse parts that do not have the same systems and metrics."""
    if not parts:
        raise InputError(f"there are no {what}s", remedy="give the scores of one or more")
    first = parts[0]
    for place, part in enumerate(parts[1:], start=2):
        for kind in ("systems", "metrics"):
            if getattr(part, kind) != getattr(first, kind):
                raise InputError(
                    f"{what} {place} has other {kind} ({', '.join(getattr(part, kind))}) than {what} 1 "
                    f"({', '.join(getattr(first, kind))})",
                    remedy=f"measure every {what} with the same systems and metrics",
                )


def lists_of(parts: Sequence[Scores]) -> dict[str, Any]:
    """Return the fields of `Scores` with one value per list, concatenated over the parts; users are matched by id."""
    groups, names = _groups(parts)
    ids, users = users_of(parts)
    bounds = [part.bounds for part in parts if part.bounds is not None]
    return {
        "values": np.concatenate([part.values for part in parts], axis=2),
        "covered": np.concatenate([part.covered for part in parts], axis=1),
        "users": users,
        "user_ids": ids,
        "judged": np.concatenate([part.judged for part in parts]),
        "relevant": np.concatenate([part.relevant for part in parts]),
        "bounds": np.concatenate(bounds, axis=3) if len(bounds) == len(parts) else None,
        "groups": groups,
        "group_names": names,
        "repetitions": _of_all([part.repetitions for part in parts]),
        "trained": _of_all([part.trained for part in parts]),
    }


def _of_all(columns: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Return a column of all parts; None if a part has none."""
    known = [column for column in columns if column is not None]
    return np.concatenate(known) if len(known) == len(columns) else None


def users_of(parts: Sequence[Scores]) -> tuple[Vocabulary, NDArray[np.int32]]:
    """Return the users of all parts, and the user of each list."""
    ids = Vocabulary.union([part.user_ids for part in parts])
    return ids, np.concatenate([_codes(ids, part) for part in parts])


def _codes(ids: Vocabulary, part: Scores) -> NDArray[np.int32]:
    codes = ids.translation(part.user_ids)
    return part.users if codes is None else codes[part.users]


def _groups(parts: Sequence[Scores]) -> tuple[NDArray[np.int16] | None, tuple[str, ...]]:
    """Return the group of each list over the names of all parts; None if any part has none."""
    if any(part.groups is None for part in parts):
        return None, ()
    names = max((part.group_names for part in parts), key=len)
    if any(part.group_names != names[: len(part.group_names)] for part in parts):
        names = tuple(dict.fromkeys(name for part in parts for name in part.group_names))
    place = [np.array([*(names.index(name) for name in part.group_names), UNKNOWN]) for part in parts]
    codes = [code_of_name[part.groups] for code_of_name, part in zip(place, parts)]  # -1 selects the last cell
    return np.concatenate(codes).astype(np.int16), names


def _taken(values: Any, order: NDArray[np.intp] | None) -> Any:
    return values[..., order] if isinstance(values, np.ndarray) and order is not None else values


def _services(parts: Sequence[Scores]) -> dict[str, Any]:
    """Return Coverage@d and the share of unjudged items over all parts, from counts of items."""
    if any(part.recommended is None or part.unjudged is None for part in parts):
        return {"recommended": None, "filled": None, "unjudged": None, "longest": 0}
    return reduce(add, map(Services.of, parts)).fields


@dataclass(frozen=True, eq=False)
class Services:
    """The number of items in lists, and of judged ones, as systems × metrics; those of parts add up."""

    metrics: tuple[str, ...]
    recommended: NDArray[np.int64]
    judged: NDArray[np.float64]
    longest: int
    lists: int

    @classmethod
    def of(cls, scores: Scores) -> Services:
        """Count the items of a part."""
        assert scores.recommended is not None
        assert scores.unjudged is not None
        # Convert the share back to a count.
        judged = np.rint((1.0 - np.nan_to_num(scores.unjudged, nan=1.0)) * scores.recommended)
        return cls(scores.metrics, scores.recommended, judged, scores.longest, scores.n_lists)

    def __add__(self, other: Services) -> Services:
        return Services(
            self.metrics,
            self.recommended + other.recommended,
            self.judged + other.judged,
            max(self.longest, other.longest),
            self.lists + other.lists,
        )

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of `Scores` that follow from the counts."""
        places = self.lists * np.array([parse(metric).cutoff or self.longest for metric in self.metrics])
        nothing = np.full(self.recommended.shape, np.nan)
        return {
            "recommended": self.recommended,
            "longest": self.longest,
            "filled": np.divide(self.recommended, places, out=nothing.copy(), where=places > 0),
            "unjudged": 1.0 - np.divide(self.judged, self.recommended, out=nothing, where=self.recommended > 0),
        }


def _summed(parts: Sequence[Scores]) -> dict[str, dict[str, int]]:
    """Return the summed counts of each system over all parts."""
    total: dict[str, dict[str, int]] = {}
    for part in parts:
        for system, counts in part.counts.items():
            of_system = total.setdefault(system, {})
            for name, count in counts.items():
                of_system[name] = of_system.get(name, 0) + count
    return total
