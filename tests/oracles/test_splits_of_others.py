"""Our splits in time have the rows of the splitters of RecTools 0.19.0 and RecPack 0.3.6, run on the same ratings.

RecTools: `TimeRangeSplitter("7D", n_splits=3)` with its filters of cold users and items is `rolling`, where the newest
rating is in the last second of a day, and `LastNSplitter(2)` is `leave_out(which=last)` where a user's times differ.

RecPack: `TimestampSplitter(t, delta_out, delta_in)` is `temporal` and each window of `rolling`, growing and sliding;
`Timed(t, t_validation)` is `temporal` with a validation part; `MostRecentSplitter(2)` is `leave_out(l=2, which=last)`;
`UserSplitter` and `MostRecentSplitter(-3)` are `strong_generalisation(given=3, which=last)` for the users it holds out.
"""

from __future__ import annotations

import hashlib

import pytest

from cranfield import Ratings, splits

DAY = 86_400
RECTOOLS = {
    "rolling(windows=3, horizon=7d)": [
        (538, "439de857f281", 99, "2c6526df2a4b"),
        (637, "de1f1834b349", 88, "100b5bf54fa8"),
        (725, "dbc22749d8a7", 85, "c0db4528390f"),
    ],
    "rolling(windows=3, horizon=7d, new_users=drop)": [
        (538, "439de857f281", 96, "c625b9a054e9"),
        (637, "de1f1834b349", 79, "7b95f685a256"),
        (725, "dbc22749d8a7", 73, "4b5816bb402d"),
    ],
    "rolling(windows=3, horizon=7d, new_items=drop)": [
        (538, "439de857f281", 98, "0ca626ba08da"),
        (637, "de1f1834b349", 85, "363eb9874421"),
        (725, "dbc22749d8a7", 80, "6c54e72a9ecf"),
    ],
    "rolling(windows=3, horizon=7d, new_users=drop, new_items=drop)": [
        (538, "439de857f281", 96, "c625b9a054e9"),
        (637, "de1f1834b349", 79, "7b95f685a256"),
        (725, "dbc22749d8a7", 72, "349bd9c32aee"),
    ],
    "leave_out(l=2, which=last, short=train)": [
        (450, "ba9e0b35cd55", 80, "c4d42b1c1974"),
    ],
}


RECPACK = {
    "temporal(at=3888000)": [(620, "c0d54237656d", 190, "0c7f9cd71bfb")],
    "rolling(windows=3, horizon=7d)": RECTOOLS["rolling(windows=3, horizon=7d)"],
    "rolling(windows=3, horizon=7d, train=slide)": [
        (538, "439de857f281", 99, "2c6526df2a4b"),
        (560, "ceebadb9c241", 88, "100b5bf54fa8"),
        (498, "bcefd2c3d77e", 85, "c0db4528390f"),
    ],
    "leave_out(l=2, which=last, short=train)": RECTOOLS["leave_out(l=2, which=last, short=train)"],
}


def _rows():
    """Return the ratings that they divided: users and items that are new in the last weeks among them."""
    pairs = [(u, i) for u in range(40) for i in range(30) if (u * 7 + i * 5) % (i % 4 + 2) < 2]
    rows = [(u, i, DAY * ((u * 31 + i * 17 + u * i) % 60) + DAY - 1) for u, i in pairs]
    rows += [(100 + k, i, DAY * (45 + 2 * k) + DAY - 1) for k in range(8) for i in (1, 2, 90 + k)]
    return [*rows, (0, 99, DAY * 60 - 1)]


def _digest(part):
    pairs = sorted(part.frame().select("user", "item").rows())
    return hashlib.sha256("\n".join(f"{user} {item}" for user, item in pairs).encode()).hexdigest()[:12]


def _ratings(rows):
    users, items, times = zip(*rows)
    return Ratings.of(users, items, times=times)


def _rows_at_different_times():
    """Return the ratings of users with several, none of the same second."""
    return list({(user, time): (user, item, time) for user, item, time in reversed(_rows()) if user < 100}.values())


@pytest.mark.parametrize(
    ("method", "theirs"),
    [*RECTOOLS.items(), *RECPACK.items()],
    ids=[f"{tool} {method}" for tool, methods in (("rectools", RECTOOLS), ("recpack", RECPACK)) for method in methods],
)
def test_the_rows_of_each_part_are_theirs(method, theirs):
    # Users with fewer than two ratings are treated differently there.
    ratings = _ratings(_rows_at_different_times() if method.startswith("leave_out") else _rows())
    ours = [
        (len(split.train), _digest(split.train), len(split.test), _digest(split.test))
        for split in splits.apply(ratings, method)
    ]
    assert ours == theirs


def test_the_validation_part_of_a_temporal_split_is_that_of_recpack():
    split = splits.temporal(_ratings(_rows()), at=45 * DAY, validation=218 / 620)
    assert [(len(part), _digest(part)) for part in (split.train, split.validation, split.test)] == [
        (402, "a41722ff5159"),
        (218, "fc5424887338"),
        (190, "0c7f9cd71bfb"),
    ]


def test_the_input_and_the_test_part_of_held_out_users_are_those_of_recpack():
    split = splits.strong_generalisation(_ratings(_rows_at_different_times()), users=0.2, given=3, which="last")
    assert sorted(split.test.frame()["user"].unique()) == [12, 14, 21, 24, 26, 33, 37, 39]
    assert [(len(part), _digest(part)) for part in (split.train, split.profiles, split.test)] == [
        (416, "c7b62274b59b"),
        (24, "3fb0a6f2922b"),
        (90, "488c7c92b660"),
    ]
