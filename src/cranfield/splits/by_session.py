"""Splits by session: the first events of a held-out session are known, and the next ones are to be found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError, InputError, SettingError
from cranfield._numbers import count_text, nearest_count
from cranfield._record import Step
from cranfield.data import Features, Merging, Ratings
from cranfield.facts import Fact
from cranfield.facts import split as facts
from cranfield.splits.parts import PROFILES, TEST, TRAIN, UNUSED, VALIDATION, Division, describe, places
from cranfield.splits.split import Split, registry
from cranfield.tables import Vocabulary, day


@registry.register
def sessions(
    ratings: Ratings,
    *,
    given: Any = 1,
    target: str = "next",
    test: float = 0.2,
    min_events: int = 1,
    seed: int = 0,
    validation: float | None = None,
) -> Split:
    """Hold out the latest sessions: their first events are the input, and the next one, or all later ones, the test.

    Nothing is learned from a held-out session (strong generalisation). The users of the split are the sessions: those
    of the data, or the baskets; without them, each user's events are one session. A session has the id of its user if
    no user has several, and else is ``user/1``, ``user/2``, ... in the order of time. The input is the part
    ``profiles`` of the split. Items that training does not know stay in the test part, as misses.

    Parameters
    ----------
    given
        The number of events that are input. Held-out sessions without any later event are in no part; the notes say how
        many. ``"each"``: every beginning of a session is a list of its own, from the first event alone to all but the
        last; the one with k events is the user ``session@k``.
    target
        The test part: the ``"next"`` event, or the ``"rest"`` of the session.
    test
        The share of the sessions to hold out, the latest: in the order of their last events, those that end at or after
        the moment at which the first of that share ends. So there may be slightly more than requested.
    min_events
        Sessions with fewer events are in no part, neither in training.
    seed
        Seed of the order of events in the same second.
    validation
        The share of the other sessions to hold out for validation in the same way, the latest; it does not change the
        test part.

    Notes
    -----
    Averages of metrics are over the users of the split, that is, over sessions. With ``given="each"`` the beginnings of
    a session are averaged first, so that every session counts once, and tests compare sessions. Lists that are read
    from files do not say that ``session@k`` are beginnings of one session, so there every beginning counts once.

    Examples
    --------
    >>> ratings = Ratings.of([*"aaabbbccc"], [*"xyzxzyzyx"], times=range(9))
    >>> split = sessions(ratings, given=1, test=0.34)
    >>> split, split.profiles.frame()["item"].to_list(), split.test.frame()["item"].to_list()
    (Split(sessions: train 6, profiles 1, test 1), ['z'], ['y'])
    >>> sessions(ratings, given="each", test=0.34).test.frame().select("user", "item").rows()
    [('c@1', 'y'), ('c@2', 'x')]
    """
    given, target = _given(given), check.one_of("target", target, ("next", "rest"))
    settings = {"given": given, "target": target, "test": check.share("test", test)}
    settings |= {"min_events": check.whole("min_events", min_events), "seed": seed, "validation": validation}
    division = Division(ratings, "sessions", settings, "session")
    division.times()
    return _Sessions.of(division).split(given, target == "rest")


def _given(given: Any) -> Any:
    if given == "each":
        return "each"
    try:
        return check.whole("given", given)
    except SettingError:
        raise SettingError(f"given={given!r} is neither 'each' nor a whole number of at least 1") from None


@dataclass(frozen=True, eq=False)
class _Sessions:
    """Events by session, and within a session in the order of time."""

    division: Division
    indptr: NDArray[np.int64]  # the events of session s are the slice indptr[s]:indptr[s + 1]
    rows: NDArray[np.int64]  # the row of each event among those of the ratings
    ends: NDArray[np.int64]  # when each session ends
    owners: NDArray[np.int32]  # the user of each session
    names: pl.Series

    @classmethod
    def of(cls, division: Division) -> _Sessions:
        ratings, rows = division.ratings, division.ratings.rows()
        assert rows.times is not None
        baskets = None if ratings.events is None else ratings.events.baskets
        # Codes of baskets ascend by user, and then by time.
        _, first, session = np.unique(
            rows.users if baskets is None else baskets, return_index=True, return_inverse=True
        )
        indptr = np.append(np.int64(0), np.cumsum(np.bincount(session)))
        order = np.argsort(session, kind="stable")
        place = places(indptr, division.stream("order"), rows.times[order])
        in_order = np.empty(len(order), dtype=np.int64)
        in_order[np.repeat(indptr[:-1], np.diff(indptr)) + place] = order
        ends = rows.times[in_order[indptr[1:] - 1]]
        owners = rows.users[first]
        return cls(division, indptr, in_order, ends, owners, _names(ratings, owners))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of events of each session."""
        return np.diff(self.indptr)

    def split(self, given: Any, rest: bool) -> Split:
        """Return the split in which the latest sessions are held out."""
        settings, sizes = self.division.settings, self.sizes
        enough = sizes >= settings["min_events"]
        if not enough.any():
            raise ImpossibleSplitError(
                f"none of the {count_text(len(sizes), 'session')} of {self.division.users} has "
                f"{settings['min_events']} events; choose a smaller min_events"
            )
        parts, effect = np.where(enough, TRAIN, UNUSED), dict[str, Any](sessions=int(np.count_nonzero(enough)))
        shares = {TEST: ("", settings["test"])}
        if self.division.validation:
            shares[VALIDATION] = ("validation_", self.division.validation)
        notes: list[Fact] = []
        if not enough.all():
            notes.append(facts.SessionsTooSmall(int(np.count_nonzero(~enough)), settings["min_events"]))
        for part, (name, share) in shares.items():
            held, cut = self._latest(parts == TRAIN, share)
            parts[held] = part
            long = held & (sizes > (1 if given == "each" else given))
            if not long.any():
                first = "first" if given in ("each", 1) else f"first {given}"
                raise ImpossibleSplitError(
                    f"none of the {count_text(int(np.count_nonzero(held)), 'session')} from {day(cut)} on has an event "
                    f"after the {first}; choose a smaller given, or a larger share"
                )
            parts[held & ~long] = UNUSED
            effect |= {f"{name}cut": day(cut), f"{name or 'test_'}sessions": int(np.count_nonzero(long))}
            effect[f"{name}too_short"] = int(np.count_nonzero(held & ~long))
            if not name:
                numbers = int(np.count_nonzero(held)), effect["sessions"], day(cut), effect["too_short"]
                notes.append(facts.SessionsHeldOut(*numbers, 1 if given == "each" else given))
        return self._described(parts, given, rest, effect, notes)

    def _latest(self, among: NDArray[np.bool_], share: float) -> tuple[NDArray[np.bool_], int]:
        """Return the latest share of some sessions, and the moment from which on they end."""
        ends = np.sort(self.ends[among])
        wanted = max(1, int(nearest_count(share, len(ends))))
        cut = int(ends[len(ends) - wanted]) if len(ends) else 0
        return among & (self.ends >= cut), cut

    def _described(
        self, parts: NDArray[np.uint8], given: Any, rest: bool, effect: dict[str, Any], notes: list[Fact]
    ) -> Split:
        settings = self.division.settings
        begun = _Begun.of(self, parts, given, rest)
        tied = self._tied(begun)
        if tied:
            notes.append(facts.SessionsTied(tied))
        used = np.zeros(len(self.rows), dtype=np.bool_)
        used[begun.events] = True
        effect["unused"] = int(np.count_nonzero(~used))
        by_name = dict(begun.ratings(self))
        if settings["validation"] is None:
            del by_name["validation"]
        step = Step("split.sessions", settings, effect, tuple(notes))
        return describe(by_name.pop("train"), by_name.pop("test"), step, **by_name)

    def _tied(self, begun: _Begun) -> int:
        """Count the held-out sessions in which a target is in the same second as the last input."""
        times = self.division.ratings.rows().times
        assert times is not None
        targets = begun.first_target
        same = times[self.rows[targets]] == times[self.rows[targets - 1]]
        return len(np.unique(np.searchsorted(self.indptr, targets[same], side="right")))


@dataclass(frozen=True, eq=False)
class _Begun:
    """Training sessions, and the beginnings of held-out ones, event after event."""

    names: pl.Series  # all different
    sessions: NDArray[np.int64]
    rows: NDArray[np.int64]  # which of these each event is of
    events: NDArray[np.int64]  # its place among the events of all sessions
    parts: NDArray[np.uint8]
    first_target: NDArray[np.int64]  # the place of the first target of each beginning

    @classmethod
    def of(cls, sessions: _Sessions, parts: NDArray[np.uint8], given: Any, rest: bool) -> _Begun:
        held = np.flatnonzero((parts == TEST) | (parts == VALIDATION))
        sizes, starts = sessions.sizes, sessions.indptr[:-1]
        counts = sizes[held] - 1 if given == "each" else np.ones(len(held), dtype=np.int64)
        session = np.repeat(held, counts)
        inputs = _from_one(counts) if given == "each" else np.full(len(held), given)
        names = sessions.names.gather(session)
        trained = np.flatnonzero(parts == TRAIN)
        if given == "each":
            names = names.cast(pl.String) + "@" + pl.Series(inputs).cast(pl.String)
        lengths = np.append(sizes[trained], sizes[session] if rest else inputs + 1)
        whole = np.append(trained, session)
        place = _from_one(lengths) - 1
        row = np.repeat(np.arange(len(whole)), lengths)
        part, first = parts[whole][row], np.append(np.zeros(len(trained), dtype=np.int64), inputs)[row]
        every = pl.concat([sessions.names.gather(trained).cast(names.dtype), names])
        if every.n_unique() < len(every):
            raise InputError(
                "two sessions would have the same id with the number of their known events, session@1",
                remedy="rename the users so that no id ends in @ and a number",
            )
        parts_of = np.where(place < first, PROFILES, part)
        return cls(every, whole, row, starts[whole][row] + place, parts_of, starts[session] + inputs)

    def ratings(self, sessions: _Sessions) -> Iterator[tuple[str, Ratings]]:
        """Yield the parts by name, each merged by itself."""
        ratings, rows = sessions.division.ratings, sessions.division.ratings.rows()
        merging = Merging() if ratings.events is None else ratings.events.merging
        user_ids, codes = Vocabulary.encode(self.names)
        users, features = codes[self.rows], ratings.user_features
        assert rows.times is not None
        if features is not None:
            owners = np.empty(len(codes), dtype=np.int64)
            owners[codes] = sessions.owners[self.sessions]
            features = Features(user_ids, features.rows(ratings.user_ids).select(pl.all().gather(owners)))
        kinds = {"train": TRAIN, "profiles": PROFILES, "validation": VALIDATION, "test": TEST}
        for name, part in kinds.items():
            kept = self.parts == part
            event = sessions.rows[self.events[kept]]
            merged = Ratings.from_codes(
                user_ids,
                ratings.item_ids,
                users[kept],
                rows.items[event],
                rows.values[event],
                rows.times[event],
                repeated=merging.train if name in ("train", "profiles") else merging.test,
                name=ratings.name,
                history=ratings.history,
            )
            events = None if merged.events is None else replace(merged.events, merging=merging)
            yield name, replace(merged, events=events, user_features=features, item_features=ratings.item_features)


def _names(ratings: Ratings, owners: NDArray[np.int32]) -> pl.Series:
    """Return the names of sessions, given their users, in order: the user, with a number if some have several."""
    ids = ratings.user_ids
    _, counts = np.unique(owners, return_counts=True)
    if (counts == 1).all():
        return ids.ids(owners)
    return ids.text.gather(owners) + "/" + pl.Series(_from_one(counts)).cast(pl.String)


def _from_one(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 1, 2, ..., n for each count n, one after the other."""
    ends = np.cumsum(counts)
    return np.arange(1, int(counts.sum()) + 1) - np.repeat(ends - counts, counts)
