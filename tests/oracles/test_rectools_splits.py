"""Our splits in time have the rows of RecTools' splitters (RecTools 0.19.0, run on the same ratings).

`TimeRangeSplitter("7D", n_splits=3)` with its filters of cold users and items is `rolling`, where the newest rating is
in the last second of a day, and `LastNSplitter(2)` is `leave_out(which=last)` where a user's times differ.
"""

from __future__ import annotations

import hashlib

import pytest

from cranfield import Ratings, splits

DAY = 86_400
THEIRS = {
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


def _rows():
    """Return the ratings that RecTools divided: users and items that are new in the last weeks among them."""
    pairs = [(u, i) for u in range(40) for i in range(30) if (u * 7 + i * 5) % (i % 4 + 2) < 2]
    rows = [(u, i, DAY * ((u * 31 + i * 17 + u * i) % 60) + DAY - 1) for u, i in pairs]
    rows += [(100 + k, i, DAY * (45 + 2 * k) + DAY - 1) for k in range(8) for i in (1, 2, 90 + k)]
    return [*rows, (0, 99, DAY * 60 - 1)]


def _digest(part):
    pairs = sorted(part.frame().select("user", "item").rows())
    return hashlib.sha256("\n".join(f"{user} {item}" for user, item in pairs).encode()).hexdigest()[:12]


@pytest.mark.parametrize("method", THEIRS)
def test_the_rows_of_each_part_are_those_of_rectools(method):
    rows = _rows()
    if method.startswith("leave_out"):
        # What becomes of users with fewer than two ratings is another rule there.
        rows = list({(user, time): (user, item, time) for user, item, time in reversed(rows) if user < 100}.values())
    users, items, times = zip(*rows)
    made = splits.apply(Ratings.of(users, items, times=times), method)
    ours = [(len(split.train), _digest(split.train), len(split.test), _digest(split.test)) for split in made]
    assert ours == THEIRS[method]
