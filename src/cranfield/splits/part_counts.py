"""What is counted of a split: sizes, overlap, leakage in time, cold starts, gaps and shifts between the parts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield.data import Ratings
from cranfield.facts import split as facts
from cranfield.splits.parts import before_own_training, cold_counts, in_both, in_time, moments
from cranfield.splits.shifts import shifts

_QUANTILES = {"min": 0.0, "q1": 0.25, "median": 0.5, "q3": 0.75, "max": 1.0}
_DAY = 86_400


def columns_of(part: Ratings) -> Mapping[str, Any]:
    """Return the columns that a part was read from, by role; none if it was made in another way."""
    first = part.history[0] if part.history else None
    return first.settings.get("columns", {}) if first is not None and first.action == "read" else {}


def part_counts(
    parts: Mapping[str, Ratings], repeated: Mapping[str, int], repeats: facts.RepeatsInTest | None
) -> dict[str, Any]:
    """Return all counts, ready for JSON.

    ``repeated`` are the rows of each part that repeated a pair of that part; ``repeats`` those of events, which may
    repeat pairs and are compared with each other instead.
    """
    rows = {name: in_time(part) for name, part in parts.items()}
    train, test, validation = rows["train"], rows["test"], rows.get("validation")
    inputs = rows.get("profiles", train)
    in_two = in_both if repeats is None else _same_events
    inner = None if validation is None else _leakage(train, validation, inputs)
    if inner is not None and validation is not None and validation.times is not None and test.times is not None:
        inner["test_before_it_ends"] = int(np.count_nonzero(test.times < validation.times.max()))
    days, gaps = gap_days(inputs, test), None
    if days is not None and len(days):
        gaps = {"users": len(days), "negative": int(np.count_nonzero(days < 0)), "days": _quantiles(days)}
    return {
        "parts": {name: _part(part) for name, part in parts.items()},
        "repeated": {name: int(repeated.get(name, 0)) for name in parts},
        "overlap": {
            f"{a} and {b}": int(np.count_nonzero(in_two(*sorted((rows[a], rows[b]), key=len))))
            for a, b in combinations(parts, 2)
        },
        "repeats": None if repeats is None else repeats.as_dict(),
        # Whether times are the numbers of baskets, which cannot be compared between users.
        "numbered": any("basket" in columns and "time" not in columns for columns in map(columns_of, parts.values())),
        "cold": cold_counts(parts["train"], parts["test"], parts.get("profiles", parts["train"])),
        "leakage": _leakage(train, test, inputs),
        "validation_leakage": inner if test.times is not None else None,
        "gaps": gaps,
        "shift": shifts(parts),
    }


def _same_events(part: Ratings, other: Ratings) -> NDArray[np.bool_]:
    """Return which rows of a part, in which pairs may repeat, are in another part too, at the same time."""
    frames = []
    for own in (part, other):
        columns = {"pair": own.pairs, "time": own.times, "value": own.values.astype(np.float64)}
        frames.append(pl.DataFrame({name: column for name, column in columns.items() if column is not None}))
    rows = frames[0].with_row_index("row").join(frames[1].unique(), on=frames[1].columns, how="semi")["row"]
    same = np.zeros(len(part), dtype=np.bool_)
    same[rows.to_numpy()] = True
    return same


def _quantiles(values: NDArray[Any]) -> dict[str, float]:
    return dict(zip(_QUANTILES, map(float, np.quantile(values, list(_QUANTILES.values())))))


def _part(part: Ratings) -> dict[str, Any]:
    sizes = part.user_counts[part.user_counts > 0]
    return {
        "ratings": len(part),
        "rows": len(part) if part.events is None else len(part.events),
        "users": len(sizes),
        "items": int(np.count_nonzero(part.item_counts)),
        "mean": float(part.values.mean()),
        "profiles": _quantiles(sizes),
        "oldest": None if part.times is None else int(part.times.min()),
        "newest": None if part.times is None else int(part.times.max()),
    }


def _leakage(train: Ratings, test: Ratings, inputs: Ratings) -> dict[str, Any] | None:
    """Count how many test ratings are older than training ratings; None without times."""
    if train.times is None or test.times is None or inputs.times is None:
        return None
    own = before_own_training(test, inputs)
    first_test = int(test.times.min())
    first_seen = np.full(train.n_items, np.iinfo(np.int64).max)
    np.minimum.at(first_seen, train.items, train.times)
    later = (test.times < first_seen[test.items]) & (train.item_counts[test.items] > 0)
    return {
        "own": int(np.count_nonzero(own)),
        "own_users": int(np.count_nonzero(np.bincount(test.users[own], minlength=test.n_users))),
        "before_training_ends": int(np.count_nonzero(test.times < int(train.times.max()))),
        "training_after_test_begins": int(np.count_nonzero(train.times > first_test)),
        "items_seen_later": int(np.count_nonzero(later)),
        "items_seen_later_items": len(np.unique(test.items[later])),
    }


def gap_days(inputs: Ratings, test: Ratings) -> NDArray[np.float64] | None:
    """Return the days from each user's last known rating to the first test rating; None without times."""
    if inputs.times is None or test.times is None:
        return None
    both = (inputs.user_counts > 0) & (test.user_counts > 0)
    days: NDArray[np.float64] = (moments(test, np.minimum)[both] - moments(inputs, np.maximum)[both]) / _DAY
    return days
