"""Splits that hold out whole users or items: cold start, and strong generalisation."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings, SettingError, splits
from cranfield._errors import ImpossibleSplitError

ROWS = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 9)),
    min_size=2,
    max_size=50,
    unique_by=lambda row: row[:2],
)
METHODS = st.sampled_from(
    [
        "cold_users(users=0.3)",
        "cold_users(users=0.3, left=2, warm=0.3)",
        "cold_users(users=0.3, left=1, which=last)",
        "cold_items(items=0.3)",
        "cold_items(items=0.3, left=2, warm=0.3)",
        "cold_items(items=0.3, left=1, which=last)",
        "strong_generalisation(users=0.3)",
        "strong_generalisation(users=0.3, given=2, which=last)",
    ]
)


def _ratings(rows):
    users, items, times = zip(*rows)
    return Ratings.of(users, items, times=times)


def _rows(part):
    return set(part.frame().select("user", "item", "time").rows())


@given(ROWS, METHODS, st.sampled_from([None, 0.4]), st.randoms(use_true_random=False))
def test_the_parts_are_disjoint_together_the_whole_and_the_same_for_any_order_of_rows(rows, method, validation, random):
    try:
        (split,) = splits.apply(_ratings(rows), method, seed=5, validation=validation)
    except ImpossibleSplitError:
        return
    (shuffled,) = splits.apply(_ratings(random.sample(rows, len(rows))), method, seed=5, validation=validation)
    assert shuffled.record()["fingerprints"] == split.record()["fingerprints"]
    parts = [_rows(part) for part in split.parts.values()]
    assert sum(map(len, parts)) == len(rows)
    assert set.union(*parts) == set(rows)
    if validation is not None:
        (without,) = splits.apply(_ratings(rows), method, seed=5)
        assert without.test.fingerprint == split.test.fingerprint


@pytest.mark.parametrize(("kind", "place"), [("users", 0), ("items", 1)])
@given(rows=ROWS, left=st.sampled_from([0, 2]))
def test_a_cold_owner_keeps_exactly_the_ratings_that_are_left(kind, place, rows, left):
    method = getattr(splits, f"cold_{kind}")
    try:
        split = method(_ratings(rows), **{kind: 0.4}, left=left, which="last")
    except ImpossibleSplitError:
        return
    train, test = _rows(split.train), _rows(split.test)
    held = {row[place] for row in test}
    assert len(held) == split.step.effect[f"held_out_{kind}"]
    for owner in held:
        kept = [row[2] for row in train if row[place] == owner]
        assert len(kept) == left
        assert all(time <= row[2] for time in kept for row in test if row[place] == owner)
    if left == 0:
        assert split.step.effect[f"cold_{kind}"] == len(held)


def test_warm_test_ratings_are_drawn_of_the_others_only():
    rows = [(user, item, 0) for user in range(30) for item in range(20)]
    split = splits.cold_users(_ratings(rows), users=0.2, left=3, warm=0.25, seed=2)
    counts = dict(zip(range(30), split.train.user_counts.tolist()))
    assert sorted(counts.values())[:6] == [3] * 6
    warm = sum(20 - count for count in counts.values() if count != 3)
    assert 0.2 < warm / (24 * 20) < 0.3


@given(ROWS, st.sampled_from([0.5, 0.8, 1, 3]), st.sampled_from([None, 0.3]))
def test_held_out_users_are_in_no_training_part_and_have_input_and_test(rows, given, validation):
    ratings = _ratings(rows)
    try:
        split = splits.strong_generalisation(ratings, users=0.4, given=given, which="last", validation=validation)
    except ImpossibleSplitError:
        return
    train, profiles, test = (_rows(part) for part in (split.train, split.profiles, split.test))
    judged = [test] if validation is None else [test, _rows(split.validation)]
    held = {row[0] for part in judged for row in part}
    assert held == {row[0] for row in profiles}
    assert not held & {row[0] for row in train}
    for user in held:
        known = [row[2] for row in profiles if row[0] == user]
        rest = [row[2] for part in judged for row in part if row[0] == user]
        assert known
        assert rest
        assert max(known) <= min(rest)
        if given >= 1:
            assert len(known) == given
    assert split.step.effect["cold_users"] == 0
    assert split.inputs is split.profiles


def test_the_profiles_are_written_and_are_files_of_the_split(tmp_path):
    rows = [(user, item, item) for user in range(10) for item in range(6)]
    split = splits.strong_generalisation(_ratings(rows), given=2)
    splits.write(split, tmp_path)
    assert (tmp_path / "profiles.parquet").is_file()
    splits.write(splits.random(_ratings(rows)), tmp_path, force=True)
    assert not (tmp_path / "profiles.parquet").exists()


@pytest.mark.parametrize(
    ("method", "number"),
    [
        ("cold_users(users=0.5, left=4)", "3 of them have 4 ratings or fewer"),
        ("cold_users(users=0.25, left=4, validation=0.4)", "cannot hold out 2 of 4 users"),
        ("cold_items(items=0.5, left=9)", "5 of them have 9 ratings or fewer"),
        ("strong_generalisation(users=0.5, given=4)", "3 of them have 4 ratings or fewer"),
    ],
)
def test_profiles_too_short_for_what_is_left_are_counted(method, number):
    rows = [(user, item, 0) for user in range(4) for item in range(4)] + [(0, 9, 0)]
    with pytest.raises(ImpossibleSplitError, match=number):
        splits.apply(_ratings(rows), method)


def test_users_too_short_to_be_held_out_are_noted():
    rows = [(user, item, 0) for user in range(4) for item in range(4)] + [(0, 9, 0)]
    (split,) = splits.apply(_ratings(rows), "cold_users(users=0.25, left=4)")
    assert "3 users with 4 ratings or fewer: not held out, because no test rating would be left" in split.notes
    (split,) = splits.apply(_ratings(rows), "cold_users(users=0.25, left=1)")
    assert not any("not held out" in note for note in split.notes)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("cold_users(users=2)", "users=2 is not a share"),
        ("cold_users(left=-1)", "left=-1 is not a whole number"),
        ("cold_users(warm=1)", "warm=1 is not a share"),
        ("cold_items(which=first)", "which='first' is not one of random, last"),
        ("strong_generalisation(given=0)", "given=0 is neither a share below 1 nor a whole number"),
        ("strong_generalisation(given=1.0)", "given=1.0 is neither a share below 1 nor a whole number"),
        ("strong_generalisation(given=some)", "given='some' is neither a share below 1 nor a whole number"),
    ],
)
def test_a_wrong_setting_is_named(method, message):
    rows = [(user, item, 0) for user in range(4) for item in range(4)]
    with pytest.raises(SettingError) as error:
        splits.apply(_ratings(rows), method)
    assert message in str(error.value)


@pytest.mark.parametrize("method", ["cold_users", "cold_items", "strong_generalisation"])
def test_the_last_ratings_need_times_and_nothing_cannot_be_split(method):
    ratings = Ratings.of([1, 1, 2, 2], [1, 2, 1, 2])
    with pytest.raises(ImpossibleSplitError, match="the ratings of the 2 users have none"):
        splits.apply(ratings, f"{method}(which=last)")
    with pytest.raises(ImpossibleSplitError, match="no ratings to split"):
        splits.apply(Ratings.of([], []), method)


FROZEN = {
    "cold_users(left=2, warm=0.2)": "57cbc64aaf1f",
    "cold_items(left=1)": "62ee8bc7cef2",
    "strong_generalisation(given=0.5)": "29731968e2d4",
    "temporal(train=0.6, target=random)": "ce9c25d81ddb",
    "temporal(train=0.6, target=2)": "4d3fa367e289",
}


@pytest.mark.parametrize("method", FROZEN)
def test_a_seed_gives_the_split_it_has_always_given(method):
    """If this fails, the random stream of a split has changed: people's recorded experiments would too."""
    rows = [(u, i, (u * 31 + i * 17) % 23) for u in range(20) for i in range(15) if (u * 7 + i * 5) % (i + 2) < 3]
    digest = hashlib.sha256()
    (split,) = splits.apply(_ratings(rows), method, seed=7, validation=0.2)
    for part in split.parts.values():
        for codes in (part.users, part.items):
            digest.update(codes.astype("<i4").tobytes() + b"\x1e")
    assert digest.hexdigest()[:12] == FROZEN[method]
