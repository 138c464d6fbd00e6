"""Splits along the global timeline: one cut, or several with a window of time after each (rolling evaluation)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError, SettingError
from cranfield._numbers import count_text, listed, nearest_count
from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.facts import Fact
from cranfield.facts import split as facts
from cranfield.splits.parts import TEST, TRAIN, UNUSED, VALIDATION, Division, Mask, by_profile, places, validation_share
from cranfield.splits.split import Split, Splits, registry
from cranfield.tables import day, seconds

_TARGETS = ("all", "first", "last", "random")
_UNKNOWN = ("keep", "drop", "apart")

MOST_USERS = "most_users"
"""The cut at which the most users have ratings on both sides."""


@dataclass(frozen=True)
class AfterCut:
    """The rule that selects test ratings from the ratings after a cut; see `temporal`."""

    target: str | int = "all"
    new_users: str = "keep"
    new_items: str = "keep"
    seed: int = 0

    @classmethod
    def checked(cls, target: Any, new_users: Any, new_items: Any, seed: Any) -> AfterCut:
        """Return the rule with these settings, or say which of them is wrong."""
        if not (isinstance(target, str) and target in _TARGETS):
            try:
                target = check.whole("target", target)
            except SettingError:
                raise SettingError(
                    f"target={target!r} is neither {', '.join(_TARGETS)} nor a whole number of at least 1"
                ) from None
        users, items = (
            check.one_of(f"new_{kind}", rule, _UNKNOWN) for kind, rule in (("users", new_users), ("items", new_items))
        )
        return cls(target, users, items, check.whole("seed", seed, at_least=0))

    def settings(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults, so that the record of a plain split stays short."""
        usual = {**vars(AfterCut()), "seed": self.seed if self.target == "all" else None}
        return {name: value for name, value in vars(self).items() if value != usual[name]}

    def choose(
        self, division: Division, before: Mask, after: Mask, cut: int
    ) -> tuple[Mask, dict[str, Any], list[Fact]]:
        """Return which rows after the cut are test ratings, the effect for the record, and notes for the reader.

        ``before`` and ``after`` say whether a row is in the training period, and whether it is in the test period.
        """
        ratings = division.rows
        kept, effect, notes = after.copy(), dict[str, Any](), list[Fact]()
        policies = {"users": self.new_users, "items": self.new_items}
        for kind, policy in policies.items():
            if policy != "keep":
                codes = ratings.users if kind == "users" else ratings.items
                # Use masks: copying the ratings before the cut, most of all ratings, would double the memory.
                known = np.zeros(ratings.n_users if kind == "users" else ratings.n_items, dtype=bool)
                known[codes[before]] = True
                new = ~known[codes] & after
                count = effect[f"ratings_of_new_{kind}"] = int(np.count_nonzero(new))
                kept &= ~new if policy == "drop" else True
                if count:
                    number = len(np.unique(codes[new]))
                    notes.append(facts.NewAfterCut(number, kind[:-1], day(cut), count, policy == "drop"))
        if "drop" in policies.values():
            effect["dropped"] = int(np.count_nonzero(after & ~kept))
        if not kept.any():
            users = count_text(len(np.unique(ratings.users[after])), "user")
            raise ImpossibleSplitError(
                f"no test rating is left after {day(cut)}: the ratings of the {users} there are dropped, because these "
                "users or the items have no earlier rating; keep them with new_users=keep and new_items=keep, or "
                "choose a later cut"
            )
        if self.target == "all":
            return kept, effect, notes
        test, short = self._targets(division, kept, cut)
        effect["unused"] = int(np.count_nonzero(kept & ~test))
        notes.append(facts.TakenAfterCut("test", self.target, day(cut), effect["unused"]))
        if short:
            notes.append(facts.ShortProfiles(short, "tested whole", int(self.target), since=day(cut)))
        return test, effect, notes

    def _targets(self, division: Division, kept: Mask, cut: int) -> tuple[Mask, int]:
        """Return the test rows, and how many users have fewer than the target."""
        units = division.units_of(kept)
        generator = stream(self.seed, "split", "after cut", str(self.target), cut)
        times = None if self.target == "random" else units.times
        place, size = places(units.indptr, generator, times), units.counts
        if self.target == "last":
            chosen = place == np.repeat(size - 1, size)
        else:
            chosen = place < (self.target if isinstance(self.target, int) else 1)
        short = int(np.count_nonzero((size > 0) & (size < self.target))) if isinstance(self.target, int) else 0
        some = int(np.count_nonzero(size))
        if short == some:
            raise ImpossibleSplitError(
                f"target={self.target}: none of the {count_text(some, 'user')} with ratings after {day(cut)} has "
                f"{self.target} of them; choose target={int(size.max())} or less, or an earlier cut"
            )
        test = kept.copy()
        test[kept] = units.of_rows(chosen)
        return test, short


@registry.register
def temporal(
    ratings: Ratings,
    *,
    train: float | None = None,
    at: Any = None,
    target: Any = "all",
    new_users: str = "keep",
    new_items: str = "keep",
    unit: str | None = None,
    seed: int = 0,
    validation: float | None = None,
) -> Split:
    """Train on the ratings before a moment, and test on the ratings from that moment on; all must have times.

    Parameters
    ----------
    train
        The share of the ratings to train with, the oldest: in the order of time, the moment is the time of the rating
        at position n·train, rounded to the nearest. Ratings in the same second are not separated, so training may be
        slightly smaller than requested. 0.8 if neither ``train`` nor ``at`` is given.
    at
        The moment itself: a date, a datetime, an ISO text (``"2001-12-31"``, in UTC unless it names a zone) or seconds
        since 1970. ``"most_users"``: the moment at which most users have ratings both before it and from it on; if
        there are several such moments, the last.
    target
        Which of a user's ratings from the moment on are test ratings: ``"all"``, the ``"first"``, the ``"last"``, a
        ``"random"`` one, or a number for that many next ones (all, if a user has fewer). The others are in no part.
    new_users, new_items
        What to do with users, and with items, that have no rating before the moment: ``"keep"`` them in the test part,
        ``"drop"`` their ratings before the target is chosen, or keep them and count them ``"apart"`` (an experiment
        then shows the segments ``cold_users`` and ``cold_items``).
    unit
        What is never divided, and counted by ``target``, if pairs repeat: the ``"basket"`` (or ``"session"``), which is
        at the time of its last event, or without baskets the ``"event"``.
    seed
        Seed of the random target; for the first, last or next ones, of the order of ratings in the same second.
    validation
        The share of the training ratings to set aside, the newest. They are cut in the same way, with the same target
        and rule for new users and items; this does not change the test part.

    Notes
    -----
    For a temporal split within each user, see ``per_user(which="last")``; for several cuts, see `rolling`.

    Examples
    --------
    >>> ratings = Ratings.of(range(4), range(4), times=[0, 86_400, 86_400, 200_000])
    >>> temporal(ratings, at="1970-01-03")
    Split(temporal: train 3, test 1)
    >>> temporal(ratings, train=0.5)
    Split(temporal: train 1, test 3)
    >>> ratings = Ratings.of(["a", "a", "a", "b", "b"], [1, 2, 3, 1, 2], times=[0, 20, 30, 10, 20])
    >>> temporal(ratings, at="most_users", target="first").test.frame().select("user", "item").rows()
    [('a', 2), ('b', 2)]
    """
    if train is not None and at is not None:
        raise SettingError("temporal takes train or at, not both; the moment decides the share")
    rule = AfterCut.checked(target, new_users, new_items, seed)
    share = None if at is not None else check.share("train", 0.8 if train is None else train)
    settings = {"train": share, "at": at, **rule.settings(), "validation": validation, "unit": unit}
    division = Division(ratings, "temporal", settings, "basket")
    times = division.times()
    if share is not None:
        cut = _cut(times, share)
    elif at == MOST_USERS:
        cut = _most_users(division)
    else:
        cut = seconds("at", at)
        division = replace(division, settings={**division.settings, "at": day(cut)})
    oldest, newest = int(times.min()), int(times.max())
    if not oldest < cut <= newest:
        raise ImpossibleSplitError(
            f"a cut at {day(cut)} leaves one part empty: the {count_text(len(times), 'rating')} of "
            f"{division.users} span {day(oldest)} to {day(newest)}; choose another moment or share"
        )
    return _divided(division, (oldest, cut, newest + 1), rule, {"cut": day(cut)})


def _divided(
    division: Division, moments: tuple[int, int, int], rule: AfterCut, effect: dict[str, Any], **fields: Any
) -> Split:
    """Divide ratings at a cut, the middle of three moments, into training before it and test ratings after it."""
    times, (start, cut, stop) = division.times(), moments
    before, after = (times >= start) & (times < cut), (times >= cut) & (times < stop)
    test, chosen, notes = rule.choose(division, before, after, cut)
    parts = np.where(before, TRAIN, UNUSED)
    parts[test] = TEST
    effect |= chosen
    if division.unit in ("basket", "session") and (across := division.straddling(cut)):
        effect["straddling"] = across
        notes.append(facts.StraddlingBaskets(across, division.unit, day(cut)))
    if division.validation:
        # The newest ratings of the training period, by the rule of the test part.
        inner = _cut(times[before], 1 - division.validation)
        newest = validation = before & (times >= inner)
        if not (newest == before).all():  # else no training rating is left, which is refused
            validation = rule.choose(division, before & ~newest, newest, inner)[0]
            effect["validation_cut"] = day(inner)
            if unused := int(np.count_nonzero(newest & ~validation)):
                effect["validation_unused"] = unused
                notes.append(facts.TakenAfterCut("validation", rule.target, day(inner), unused))
        parts[newest] = UNUSED
        parts[validation] = VALIDATION
        del newest, validation
    del test, before, after  # free the masks, which are as long as the ratings
    return division.split(parts, effect, notes, **fields)


def _most_users(division: Division) -> int:
    """Return the last moment at which most users have ratings both before it and from it on."""
    oldest, newest = (
        np.sort(by_profile(division.rows, extreme, division.times())) for extreme in (np.minimum, np.maximum)
    )
    # The number only falls just after some user's last rating, so the maximum is at one of these moments.
    moments = np.unique(newest)
    both = np.searchsorted(oldest, moments) - np.searchsorted(newest, moments)
    if not both.any():
        raise ImpossibleSplitError(
            f"at=most_users: each of the {division.users} rated at one moment only, so no cut has "
            "ratings of a user on both sides; choose a date, or a random split"
        )
    return int(moments[np.flatnonzero(both == both.max())[-1]])


def _cut(times: NDArray[np.int64], share: float) -> int:
    """Return the moment before which that share of the ratings is, or less if several ratings are at that moment."""
    place = min(int(nearest_count(share, len(times))), len(times) - 1)
    return int(np.partition(times, place)[place])


class Windows(Splits):
    """The splits of a rolling evaluation: when each window starts and how long it is, in seconds."""

    def __init__(self, division: Division, cuts: Sequence[int], horizon: int, rule: AfterCut) -> None:
        self.division, self.cuts, self.horizon, self.rule = division, tuple(cuts), horizon, rule

    def __len__(self) -> int:
        return len(self.cuts)

    def __repr__(self) -> str:
        return f"Windows({len(self)} of {self.division.ratings!r})"

    def at(self, window: int) -> Split:
        """Return the split of a window."""
        cut, times = self.cuts[window], self.division.times()
        start, stop = int(times.min()), cut + self.horizon
        start += cut - self.cuts[0] if self.division.settings["train"] == "slide" else 0
        if not ((times >= start) & (times < cut)).any():
            raise ImpossibleSplitError(
                f"window {window + 1} of {len(self)} has no training rating: none of the {self.division.users} "
                f"rated from {day(start)} to {day(cut)}; use train=grow, or fewer windows"
            )
        outside = int(np.count_nonzero((times < start) | (times >= stop)))
        effect = {"cut": day(cut), "until": day(stop), "outside_window": outside}
        return _divided(self.division, (start, cut, stop), self.rule, effect, fold=window, folds=len(self))


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
    unit: str | None = None,
    seed: int = 0,
    validation: float | None = None,
) -> Windows:
    """Cut at several moments; at each one, train on the ratings before it and test on the next period of time.

    The last window ends with the newest rating, and each of the others where the next one starts. The test part of a
    window is that of `temporal` at its cut, up to the end of the window.

    Parameters
    ----------
    windows
        W, the number of windows.
    horizon
        The length of each window: a number of ``s``, ``min``, ``h``, ``d`` or ``w`` (weeks), or of seconds.
    train
        ``"grow"``: everything before a cut is training. ``"slide"``: only as long a period as there is before the first
        cut, so that every window learns from the same length of time.
    target, new_users, new_items, unit, seed, validation
        As for `temporal`, in each window.

    Examples
    --------
    >>> ratings = Ratings.of(range(8), range(8), times=[day * 86_400 for day in range(8)])
    >>> for split in rolling(ratings, windows=2, horizon="2d"):
    ...     print(split, split.step.effect["cut"])
    Split(rolling: train 4, test 2, fold 1 of 2) 1970-01-04 00:00:01
    Split(rolling: train 6, test 2, fold 2 of 2) 1970-01-06 00:00:01
    """
    windows, length = check.whole("windows", windows), check.duration("horizon", horizon)
    check.one_of("train", train, ("grow", "slide"))
    rule = AfterCut.checked(target, new_users, new_items, seed)
    validation_share(validation)
    settings = {"windows": windows, "horizon": horizon, "train": train, **rule.settings(), "validation": validation}
    division = Division(ratings, "rolling", {**settings, "unit": unit}, "basket")
    end = int(division.times().max()) + 1
    cuts = [end - (windows - window) * length for window in range(windows)]
    _check_span(division, cuts, length)
    return Windows(division, cuts, length, rule)


def _check_span(division: Division, cuts: Sequence[int], length: int) -> None:
    """Refuse windows that start before the first rating, and windows without ratings."""
    times = division.times()
    oldest, newest = int(times.min()), int(times.max())
    if cuts[0] <= oldest:
        most = (newest - oldest) // length
        raise ImpossibleSplitError(
            f"{count_text(len(cuts), 'window')} of {division.settings['horizon']} "
            f"{'does' if len(cuts) == 1 else 'do'} not fit: the "
            f"{count_text(len(times), 'rating')} of {division.users} span {day(oldest)} to {day(newest)}, "
            "and the first window must begin after the first rating; "
            + (f"choose at most windows={most}, or a shorter horizon" if most else "choose a shorter horizon")
        )
    counts = np.bincount(np.searchsorted(cuts, times, side="right"), minlength=len(cuts) + 1)[1:]
    empty = [f"{day(cuts[window])} to {day(cuts[window] + length)}" for window in np.flatnonzero(counts == 0).tolist()]
    if empty:
        shown = listed(empty[:3]) if len(empty) <= 3 else f"{', '.join(empty[:3])} and {len(empty) - 3} more"
        raise ImpossibleSplitError(
            f"{len(empty)} of {count_text(len(cuts), 'window')} {'has' if len(empty) == 1 else 'have'} no test user: "
            f"none of the {division.users} rated in {shown}; "
            "choose a longer horizon, or fewer windows"
        )
