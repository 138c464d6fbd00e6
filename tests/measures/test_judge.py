"""`judge`: what happens to the lists on the way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings
from cranfield.judgments import Judgments, judge
from cranfield.rankings import read_run

LISTS = st.dictionaries(st.integers(0, 5), st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True), min_size=1)
PROFILES = st.dictionaries(st.integers(0, 5), st.lists(st.integers(0, 9), min_size=1, unique=True), min_size=1)


@given(LISTS, PROFILES)
def test_strangers_are_counted_as_often_as_they_are_recommended(lists, profiles):
    run = read_run(lists, name="run")
    test = Ratings.of(*zip(*((user, item) for user, items in profiles.items() for item in items)))
    known = {item for items in profiles.values() for item in items}
    measured = [items for user, items in lists.items() if user in profiles]
    counts = judge(run, Judgments.of(test, 1.0)).counts
    assert counts == {
        "users without test ratings": len(lists.keys() - profiles.keys()),
        "test users without a list": len(profiles.keys() - lists.keys()),
        "recommended items unknown to the test set": sum(item not in known for items in measured for item in items),
    }
