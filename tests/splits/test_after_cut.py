"""The global temporal split: where the cut lies, what the test ratings are, and who is new there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import ImpossibleSplitError, Ratings, SettingError, splits

ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)),
    min_size=2,
    max_size=36,
    unique_by=lambda row: row[:2],
)
TARGETS = st.sampled_from(["all", "first", "last", "random", 1, 2])
POLICIES = st.sampled_from(["keep", "drop", "apart"])


def _ratings(rows):
    users, items, times = zip(*rows)
    return Ratings.of(users, items, times=times)


def _rows(part):
    return set(part.frame().select("user", "item", "time").rows())


@given(ROWS, TARGETS, POLICIES, POLICIES, st.sampled_from([None, 0.4]), st.randoms(use_true_random=False))
def test_the_parts_after_a_cut_are_those_of_the_rule(rows, target, new_users, new_items, validation, random):
    policy = {"target": target, "new_users": new_users, "new_items": new_items, "validation": validation}
    try:
        split = splits.temporal(_ratings(rows), train=0.6, seed=3, **policy)
    except ImpossibleSplitError:
        return
    shuffled = splits.temporal(_ratings(random.sample(rows, len(rows))), train=0.6, seed=3, **policy)
    assert shuffled.record()["fingerprints"] == split.record()["fingerprints"]
    parts = {name: _rows(part) for name, part in split.parts.items()}
    assert sum(map(len, parts.values())) == len(set.union(*parts.values()))
    cut = min(time for *_, time in rows if all(time > before for *_, before in parts["train"]))
    before, after = ({row for row in rows if (row[2] < cut) is early} for early in (True, False))
    if validation is None:
        assert parts["train"] == before
        _check_chosen(parts["test"], before, after, target, new_users, new_items)
    else:
        assert max(time for *_, time in parts["train"]) < min(time for *_, time in parts["validation"])
        assert max(time for *_, time in parts["validation"]) < min(time for *_, time in parts["test"])
        without = splits.temporal(_ratings(rows), train=0.6, seed=3, **{**policy, "validation": None})
        assert without.test.fingerprint == split.test.fingerprint


def _check_chosen(test, before, after, target, new_users, new_items):
    users, items = ({row[place] for row in before} for place in (0, 1))
    allowed = {
        row for row in after if (new_users != "drop" or row[0] in users) and (new_items != "drop" or row[1] in items)
    }
    assert test <= allowed
    for user in {row[0] for row in allowed}:
        own = sorted(row[2] for row in allowed if row[0] == user)
        chosen = sorted(row[2] for row in test if row[0] == user)
        number = {"all": len(own), "first": 1, "last": 1, "random": 1}.get(target, target)
        assert len(chosen) == min(number, len(own))
        if target == "last":
            assert chosen == own[-1:]
        elif target != "random":
            assert chosen == own[: len(chosen)]


@given(ROWS)
def test_most_users_is_the_last_cut_at_which_most_users_have_both_parts(rows):
    ratings = _ratings(rows)
    both = {
        cut: len({u for u, _, t in rows if t < cut} & {u for u, _, t in rows if t >= cut})
        for cut in {time for *_, time in rows}
    }
    best = max(both.values())
    if best == 0:
        with pytest.raises(ImpossibleSplitError, match="rated at one moment only"):
            splits.temporal(ratings, at="most_users")
        return
    expected = max(cut for cut, users in both.items() if users == best)
    split = splits.temporal(ratings, at="most_users")
    assert split.test.times.min() == expected
    assert split.train.times.max() < expected


def test_the_seed_decides_which_rating_is_the_random_one():
    ratings = _ratings([(user, item, item) for user in range(20) for item in range(10)])
    one, same, other = (
        splits.temporal(ratings, train=0.5, target="random", seed=seed).test.fingerprint for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_the_record_counts_what_is_new_dropped_and_unused():
    rows = [(1, 1, 0), (1, 2, 1), (2, 1, 0), (1, 3, 5), (1, 4, 6), (2, 2, 5), (3, 1, 5), (3, 2, 6)]
    split = splits.temporal(_ratings(rows), at=2, target="first", new_users="drop", new_items="apart")
    assert _rows(split.test) == {(1, 3, 5), (2, 2, 5)}
    effect = split.step.effect
    assert (effect["ratings_of_new_users"], effect["ratings_of_new_items"]) == (2, 2)
    assert (effect["dropped"], effect["unused"]) == (2, 1)
    assert any(note.startswith("1 user has no rating before") and "dropped" in note for note in split.notes)
    assert any("show them separately with the segment cold_items" in note for note in split.notes)
    assert split.step.settings["new_users"] == "drop"


def test_new_users_that_are_kept_and_policies_that_meet_none_have_no_note():
    rows = [(1, 1, 0), (1, 2, 1), (2, 1, 0), (2, 2, 5), (3, 1, 5)]
    split = splits.temporal(_ratings(rows), at=2, new_users="keep", new_items="drop")
    assert not any("no rating before" in note for note in split.notes)


def test_what_the_validation_part_leaves_out_is_counted():
    rows = [(1, 1, 0), (2, 1, 1), (1, 2, 2), (1, 3, 3), (2, 2, 4), (1, 4, 9), (2, 3, 9)]
    split = splits.temporal(_ratings(rows), at=9, target="first", validation=0.6)
    assert _rows(split.validation) == {(1, 2, 2), (2, 2, 4)}
    assert split.step.effect["validation_unused"] == 1
    assert "validation part: each user's first rating from 1970-01-01 00:00:02 on; 1 other rating in no part" in (
        split.notes
    )


def test_a_plain_cut_is_recorded_as_it_always_was():
    split = splits.temporal(_ratings([(1, 1, 0), (1, 2, 1)]), train=0.5)
    assert dict(split.step.settings) == {"train": 0.5, "at": None, "validation": None}


def test_users_with_fewer_ratings_than_the_target_are_counted():
    rows = [(1, 1, 0), (1, 2, 5), (1, 3, 6), (2, 1, 0), (2, 2, 5)]
    split = splits.temporal(_ratings(rows), at=3, target=2)
    assert len(split.test) == 3
    assert any(note.startswith("1 user with fewer than 2 ratings from") for note in split.notes)
    with pytest.raises(ImpossibleSplitError, match=r"none of the 2 users .* choose target=2 or less"):
        splits.temporal(_ratings(rows), at=3, target=3)


def test_a_cut_after_which_everybody_is_new_is_refused_with_their_number():
    rows = [(1, 1, 0), (2, 2, 5), (3, 2, 6)]
    with pytest.raises(ImpossibleSplitError, match="the ratings of the 2 users there are dropped"):
        splits.temporal(_ratings(rows), at=3, new_users="drop")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "next"}, "target='next' is neither all, first, last, random nor a whole number"),
        ({"target": 0}, "target=0 is neither all, first, last, random nor a whole number"),
        ({"new_users": "forget"}, "new_users='forget' is not one of keep, drop, apart"),
        ({"new_items": True}, "new_items=True is not one of keep, drop, apart"),
        ({"seed": -1}, "seed=-1 is not a whole number"),
    ],
)
def test_a_wrong_rule_is_named(settings, message):
    with pytest.raises(SettingError) as error:
        splits.temporal(_ratings([(1, 1, 0), (1, 2, 1)]), **settings)
    assert message in str(error.value)
