"""Rolling evaluation: several cuts in time, with a split at each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError, SettingError
from cranfield._numbers import count_text, listed
from cranfield.data import Ratings
from cranfield.splits._after_cut import AfterCut
from cranfield.splits._parts import TEST, TRAIN, UNUSED, divide, some, timed, validation_share
from cranfield.splits.by_time import set_newest_aside
from cranfield.splits.methods import registry
from cranfield.splits.split import Split, Splits
from cranfield.tables import day

_UNITS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,6})?) ?(s|min|h|d|w)", re.ASCII)


def duration(name: str, value: Any) -> int:
    """Return a duration, such as ``"7d"`` or a number of seconds, in whole seconds.

    Examples
    --------
    >>> duration("horizon", "7d"), duration("horizon", "12h"), duration("horizon", "1s"), duration("horizon", 90)
    (604800, 43200, 1, 90)
    """
    form = _DURATION.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if form is not None and round(float(form[1]) * _UNITS[form[2]]) >= 1:
        return round(float(form[1]) * _UNITS[form[2]])
    try:
        return check.whole(name, value)
    except SettingError:
        raise SettingError(
            f"{name}={value!r} is not a duration; write a number of s, min, h, d or w, such as {name}=7d, or seconds"
        ) from None


class Windows(Splits):
    """The splits of a rolling evaluation.

    Parameters
    ----------
    ratings
        The ratings to split.
    cuts, horizon
        When each window starts, in seconds since 1970, and how long it is.
    rule
        Which ratings of a window are test ratings.
    settings
        The settings of `rolling`.
    """

    def __init__(
        self, ratings: Ratings, cuts: Sequence[int], horizon: int, rule: AfterCut, settings: dict[str, Any]
    ) -> None:
        self.ratings, self.cuts, self.horizon, self.rule, self.settings = ratings, tuple(cuts), horizon, rule, settings

    def __len__(self) -> int:
        return len(self.cuts)

    def __repr__(self) -> str:
        return f"Windows({len(self)} of {self.ratings!r})"

    def at(self, window: int) -> Split:
        """Return the split of a window."""
        cut, times = self.cuts[window], timed(self.ratings, "rolling")
        before, after = times < cut, (times >= cut) & (times < cut + self.horizon)
        if self.settings["train"] == "slide":
            before &= times >= int(times.min()) + cut - self.cuts[0]
        if not before.any():
            raise ImpossibleSplitError(
                f"window {window + 1} of {len(self)} has no training rating: none of the "
                f"{count_text(int(np.count_nonzero(self.ratings.user_counts)), 'user')} rated from "
                f"{day(int(times.min()) + cut - self.cuts[0])} to {day(cut)}; use train=grow, or fewer windows"
            )
        chosen = self.rule.choose(self.ratings, before, after, cut)
        parts = np.where(before, TRAIN, UNUSED)
        parts[chosen.test] = TEST
        effect: dict[str, Any] = {"cut": day(cut), "until": day(cut + self.horizon), **chosen.effect()}
        effect["outside_window"] = int(np.count_nonzero(~before & ~after))
        notes = list(chosen.notes())
        if self.settings["validation"] is not None:
            share = self.settings["validation"]
            inner_effect, inner_notes = set_newest_aside(parts, self.ratings, before, share, self.rule)
            effect |= inner_effect
            notes += inner_notes
        del chosen, before, after  # free the masks, which are as long as the ratings
        named = {"fold": window, "folds": len(self)}
        return divide(self.ratings, parts, "rolling", self.settings, effect=effect, notes=notes, **named)


@registry.register
def rolling(
    ratings: Ratings,
    *,
    windows: int = 6,
    horizon: Any = "7d",
    train: str = "grow",
    target: Any = "all",
    new_users: str = "keep",
    new_items: str = "keep",
    seed: int = 0,
    validation: float | None = None,
) -> Windows:
    """Cut at several moments; at each one, train on the ratings before it and test on the next period of time.

    The last window ends with the newest rating, and each of the others where the next one starts. The test part of a
    window is that of `temporal` at its cut, up to the end of the window.

    Parameters
    ----------
    ratings
        The ratings to split; they must have times.
    windows
        W, the number of windows.
    horizon
        The length of each window: a number of ``s``, ``min``, ``h``, ``d`` or ``w`` (weeks), or of seconds.
    train
        ``"grow"``: everything before a cut is training. ``"slide"``: only as long a period as there is before the first
        cut, so that every window learns from the same length of time.
    target, new_users, new_items, seed
        As for `temporal`.
    validation
        The share of a window's training ratings to set aside, the newest; it does not change the test part.

    Examples
    --------
    >>> ratings = Ratings.of(range(8), range(8), times=[day * 86_400 for day in range(8)])
    >>> for split in rolling(ratings, windows=2, horizon="2d"):
    ...     print(split, split.step.effect["cut"])
    Split(rolling: train 4, test 2, fold 1 of 2) 1970-01-04 00:00:01
    Split(rolling: train 6, test 2, fold 2 of 2) 1970-01-06 00:00:01
    """
    some(ratings)
    times = timed(ratings, "rolling")
    windows, length = check.whole("windows", windows), duration("horizon", horizon)
    check.one_of("train", train, ("grow", "slide"))
    rule = AfterCut.checked(target, new_users, new_items, seed)
    validation_share(validation)
    end = int(times.max()) + 1
    cuts = [end - (windows - window) * length for window in range(windows)]
    _check_span(ratings, cuts, length, horizon)
    settings = {
        "windows": windows, "horizon": horizon, "train": train, **rule.settings(), "validation": validation,
    }  # fmt: skip
    return Windows(ratings, cuts, length, rule, settings)


def _check_span(ratings: Ratings, cuts: Sequence[int], length: int, horizon: Any) -> None:
    """Refuse windows that start before the first rating, and windows without ratings."""
    times = timed(ratings, "rolling")
    oldest, newest = int(times.min()), int(times.max())
    users = int(np.count_nonzero(ratings.user_counts))
    if cuts[0] <= oldest:
        most = (newest - oldest) // length
        raise ImpossibleSplitError(
            f"{count_text(len(cuts), 'window')} of {horizon} {'does' if len(cuts) == 1 else 'do'} not fit: the "
            f"{count_text(len(times), 'rating')} of {count_text(users, 'user')} span {day(oldest)} to {day(newest)}, "
            "and the first window must begin after the first rating; "
            + (f"choose at most windows={most}, or a shorter horizon" if most else "choose a shorter horizon")
        )
    counts = np.bincount(np.searchsorted(cuts, times, side="right"), minlength=len(cuts) + 1)[1:]
    empty = [f"{day(cuts[window])} to {day(cuts[window] + length)}" for window in np.flatnonzero(counts == 0).tolist()]
    if empty:
        shown = listed(empty[:3]) if len(empty) <= 3 else f"{', '.join(empty[:3])} and {len(empty) - 3} more"
        raise ImpossibleSplitError(
            f"{len(empty)} of {count_text(len(cuts), 'window')} {'has' if len(empty) == 1 else 'have'} no test user: "
            f"none of the {count_text(users, 'user')} rated in {shown}; "
            "choose a longer horizon, or fewer windows"
        )
