"""Sessions held out: what is known of them, what is to be found, and that nothing of them is in training."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield import Ratings, SettingError, read, splits
from cranfield._errors import ImpossibleSplitError

ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 5), st.integers(0, 30)), min_size=1, max_size=40
)
SPELLED = ["sessions(given=1)", "sessions(given=2, target=rest, test=0.4)", "sessions(test=0.5, min_events=2)"]


def _log(rows):
    """Read rows of user, session, item and time."""
    frame = pl.DataFrame(rows, schema=["user", "basket", "item", "time"], orient="row")
    return read(frame, basket="basket", time="time", repeated="sum/max")


def _events(part):
    """Count the events of a part: session, item, time."""
    rows = part.rows()
    users = rows.user_ids.text.gather(rows.users).to_list()
    return Counter(zip(users, rows.item_ids.all.gather(rows.items).to_list(), rows.times.tolist()))


def _whole(rows):
    """The events of each session by name, in order of the end of the session, and then of its id."""
    ends = {}
    for user, session, _, time in rows:
        ends[user, session] = max(time, ends.get((user, session), time))
    names = {}
    for user in {user for user, _ in ends}:
        own = sorted((end, session) for (other, session), end in ends.items() if other == user)
        names |= {(user, session): f"{user}/{number}" for number, (_, session) in enumerate(own, 1)}
    if all(name.endswith("/1") for name in names.values()):
        names = {key: name.split("/")[0] for key, name in names.items()}
    events = {}
    for user, session, item, time in rows:
        events.setdefault(names[user, session], []).append((time, item))
    return {name: sorted(one) for name, one in events.items()}


@pytest.mark.parametrize("method", SPELLED)
@pytest.mark.parametrize("validation", [None, 0.3])
@given(rows=ROWS)
def test_sessions_are_divided_as_said(method, validation, rows):
    whole = _whole(rows)
    try:
        (split,) = splits.apply(_log(rows), method, validation=validation)
    except ImpossibleSplitError:
        return
    settings = split.step.settings
    known = settings["given"]
    parts = {name: _events(part) for name, part in split.parts.items()}
    everything = Counter((name, item, time) for name, events in whole.items() for time, item in events)
    assert not sum(parts.values(), Counter()) - everything
    assert sum(sum(one.values()) for one in parts.values()) + split.step.effect["unused"] == sum(everything.values())
    sessions = {name: {session for session, _, _ in events} for name, events in parts.items()}
    held = sessions["profiles"]
    assert not sessions["train"] & held
    assert sessions["test"] | sessions.get("validation", set()) == held
    assert not sessions["test"] & sessions.get("validation", set())
    # Training sessions are whole, and end before those of the test part.
    for name in sessions["train"]:
        assert Counter(whole[name]) == Counter({(t, i): n for (s, i, t), n in parts["train"].items() if s == name})
    ends = {name: events[-1][0] for name, events in whole.items()}
    assert max(ends[name] for name in sessions["train"]) < min(ends[name] for name in held)
    for name in held:
        inputs = sorted(t for s, _, t in parts["profiles"].elements() if s == name)
        targets = sorted(
            t for part in ("test", "validation") for s, _, t in parts.get(part, Counter()).elements() if s == name
        )
        times = [t for t, _ in whole[name]]
        assert inputs == times[:known]
        assert targets == (times[known:] if settings["target"] == "rest" else times[known : known + 1])
    assert all(len(events) >= settings["min_events"] for name, events in whole.items() if name in sessions["train"])


@given(rows=ROWS)
def test_each_beginning_is_a_list(rows):
    whole = _whole(rows)
    try:
        split = splits.sessions(_log(rows), given="each", test=0.5)
    except ImpossibleSplitError:
        return
    profiles, test = _events(split.profiles), _events(split.test)
    users = {user for user, _, _ in test}
    tested = {user.rpartition("@")[0] for user in users}
    assert users == {f"{name}@{k}" for name in tested for k in range(1, len(whole[name]))}
    for user in users:
        name, _, k = user.rpartition("@")
        times = [t for t, _ in whole[name]]
        assert sorted(t for s, _, t in profiles.elements() if s == user) == times[: int(k)]
        assert [t for s, _, t in test.elements() if s == user] == [times[int(k)]]
    assert not {user for user, _, _ in _events(split.train)} & tested


@pytest.mark.parametrize("method", [*SPELLED, "sessions(given=each)"])
@given(rows=ROWS, random=st.randoms(use_true_random=False))
def test_the_order_of_rows_and_a_validation_part_do_not_matter(method, rows, random):
    outcomes = []
    for shuffled in (rows, random.sample(rows, len(rows))):
        try:
            (split,) = splits.apply(_log(shuffled), method)
            outcomes.append([split.record()["fingerprints"], split.notes])
        except ImpossibleSplitError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
    if isinstance(outcomes[0], list):
        try:
            (with_it,) = splits.apply(_log(rows), method, validation=0.4)
        except ImpossibleSplitError:
            return
        assert _events(with_it.test) == _events(split.test)


def test_a_user_is_a_session_if_there_are_none():
    ratings = Ratings.of([1, 1, 1, 2, 2, 3, 3, 3], [*"xyzxyxyz"], times=range(8))
    split = splits.sessions(ratings, given=1, target="rest", test=0.4)
    assert split.train.frame()["user"].unique().to_list() == [1, 2]
    assert split.profiles.frame().rows() == [(3, "x", 1.0, 5)]
    assert split.test.frame()["item"].to_list() == ["y", "z"]


def test_what_is_too_short_is_counted_and_unknown_items_stay():
    ratings = Ratings.of([*"aabbcdd"], [*"xyxyxxq"], times=range(7))
    split = splits.sessions(ratings, given=1, test=0.5)
    assert split.step.effect["too_short"] == 1
    assert split.test.frame()["item"].to_list() == ["q"]
    assert split.step.effect["cold_items"] == 1
    assert split.notes[0] == (
        "2 of 4 sessions end from 1970-01-01 00:00:04 on and are not in training; 1 of them has no event after the "
        "first and is left out"
    )
    assert splits.sessions(ratings, given=1, test=0.25, min_events=2).notes[0] == (
        "1 session with fewer than 2 events: in no part"
    )


def test_events_in_the_same_second_are_drawn_and_counted():
    ratings = Ratings.of([*"aabbbb"], [*"xywxyz"], times=[0, 1, 5, 5, 5, 5])
    drawn = {splits.sessions(ratings, test=0.5, seed=seed).test.frame()["item"][0] for seed in range(20)}
    assert len(drawn) > 1
    assert "in 1 session the last known event and the target are in the same second" in " ".join(
        splits.sessions(ratings, test=0.5).notes
    )


@pytest.mark.parametrize(
    ("spelling", "said"),
    [
        ("sessions(given=0)", "given=0 is neither 'each' nor a whole number"),
        ("sessions(target=all)", "target='all'"),
        ("sessions(test=1.5)", "test=1.5 is not a share"),
    ],
)
def test_a_wrong_setting_is_one_line(spelling, said):
    with pytest.raises(SettingError, match=said):
        splits.apply(Ratings.of([1, 2], [1, 2], times=[1, 2]), spelling)


@pytest.mark.parametrize(
    ("ratings", "options", "said"),
    [
        (Ratings.of([1, 2], [1, 2]), {}, "sessions needs times"),
        (Ratings.of([1, 2], [1, 2], times=[1, 2]), {}, "has an event after the first; choose a smaller given"),
        (Ratings.of([1, 2], [1, 2], times=[1, 2]), {"min_events": 3}, "has 3 events; choose a smaller min_events"),
        (Ratings.of([1, 1, 2, 2], [1, 2, 1, 2], times=[1, 2, 1, 2]), {}, "leaves the training part empty"),
    ],
)
def test_what_is_impossible_says_why(ratings, options, said):
    with pytest.raises(ImpossibleSplitError, match=said):
        splits.sessions(ratings, **options)


SYSTEMS = ["sknn", "vsknn", "itemknn-decay", "tifu-knn", "topfreq(scope=both)", "popularity", "ease"]


@pytest.mark.parametrize("known", [1, 2, "each"])
def test_lists_are_made_from_the_known_events_in_their_order(known):
    draw = np.random.default_rng(0)
    rows = [(user, session, int(draw.integers(0, 9)), 1000 * session + 10 * user + place)
            for user in range(9) for session in range(4) for place in range(int(draw.integers(1, 6)))]  # fmt: skip
    split = splits.sessions(_log(rows), given=known, validation=0.2)
    for run in cf.recommend(split, SYSTEMS, length=5):
        assert len(run.users) == np.count_nonzero(split.profiles.user_counts)
        assert (np.diff(run.indptr) > 0).mean() > 0.8
        assert not np.isin(run.frame()["user"].to_list(), split.train.frame()["user"].to_list()).any()
    assert cf.check_split(split).promise == "user"


def test_the_order_of_the_known_events_decides():
    rows = [("a", "p", 1), ("a", "x", 2), ("b", "q", 3), ("b", "y", 4), ("c", "p", 5), ("c", "q", 6), ("c", "x", 7)]
    split = splits.sessions(Ratings.of(*zip(*[row[:2] for row in rows]), times=[row[2] for row in rows]), given=2)
    (run,) = cf.recommend(split, "vsknn", length=3)
    assert run.frame()["item"].to_list() == ["y", "x"]


@given(seed=st.integers(0, 10**6))
def test_the_beginnings_of_a_session_are_averaged_first(seed):
    draw = np.random.default_rng(seed)
    rows = [(user, session, int(draw.integers(0, 9)), 1000 * session + 10 * user + place)
            for user in range(9) for session in range(4) for place in range(int(draw.integers(2, 7)))]  # fmt: skip
    split = splits.sessions(_log(rows), given="each")
    (run,) = cf.recommend(split, "popularity", repeats="allow", length=5)
    scores = cf.measure(run, split.test, "RR@5", threshold=1)
    lists = {user: lists["item"].to_list() for (user,), lists in run.frame().group_by("user")}
    by_session: dict[str, list[float]] = {}
    for user, item in split.test.frame().select("user", "item").rows():
        listed = lists.get(user, [])
        value = 1 / (1 + listed.index(item)) if item in listed else 0.0
        by_session.setdefault(user.rsplit("@", 1)[0], []).append(value)
    assert scores.n_users == len(by_session)
    assert scores.average()[0, 0] == pytest.approx(np.mean([np.mean(values) for values in by_session.values()]))
