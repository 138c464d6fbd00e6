"""The temporal split has one boundary."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings, SettingError, splits
from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError

TIMES = st.lists(st.integers(0, 12), min_size=1, max_size=40)


@given(TIMES, st.sampled_from([0.05, 0.25, 0.5, 0.7, 0.95]), st.sampled_from([None, 0.3]))
def test_training_is_older_than_validation_and_validation_than_test(times, train, validation):
    ratings = Ratings.of(range(len(times)), range(len(times)), times=times)
    try:
        made = splits.temporal(ratings, train=train, validation=validation)
    except ImpossibleSplitError:
        return
    parts = [part.times for part in made.parts.values()]
    for older, newer in pairwise(parts):
        assert older.max() < newer.min()
    # No later boundary between two moments leaves less than the requested share for training.
    assert len(times) - len(made.test) <= train * len(times) + 0.5
    oldest_test = made.test.times.min()
    assert np.count_nonzero(ratings.times <= oldest_test) > np.floor(train * len(times) + 0.5) - 1
    assert made.step.effect["test_before_own_train"] == 0
    assert made.step.effect["test_share_older_than_train_median"] == 0


@pytest.mark.parametrize(
    "at", [86_400, "1970-01-02", "1970-01-02T01:00+01:00", date(1970, 1, 2), datetime(1970, 1, 2, tzinfo=UTC)]
)
def test_the_moment_itself_is_test(at):
    made = splits.temporal(Ratings.of(range(3), range(3), times=[86_399, 86_400, 86_401]), at=at)
    assert made.train.times.tolist() == [86_399]
    assert made.step.effect["cut"] == "1970-01-02 00:00:00"


@pytest.mark.parametrize("at", [1.5, "1970-01-01T00:00:01.5"])
def test_a_moment_between_two_seconds_separates_them(at):
    assert splits.temporal(Ratings.of(range(4), range(4), times=range(4)), at=at).train.times.tolist() == [0, 1]


@pytest.mark.parametrize("at", ["1969-01-01", "1970-01-01", "2001-01-01"])
def test_a_moment_outside_the_data_is_refused_with_their_span(at):
    with pytest.raises(ImpossibleSplitError, match="3 ratings of 3 users span 1970-01-01 00:00:00 to 1970-01-02"):
        splits.temporal(Ratings.of(range(3), range(3), times=[0, 1, 86_400]), at=at)


def test_ratings_of_one_second_cannot_be_cut():
    with pytest.raises(ImpossibleSplitError, match="leaves one part empty"):
        splits.temporal(Ratings.of(range(9), range(9), times=[5] * 9))


def test_the_share_of_movielens_100k_is_that_of_polars(real_data):
    frame = pl.read_parquet(real_data("ml-100k.parquet")).sort("timestamp")
    cut = frame["timestamp"][80_000]
    made = splits.temporal(Ratings.of(frame["user"], frame["item"], frame["rating"], frame["timestamp"]))
    assert len(made.train) == len(frame.filter(pl.col("timestamp") < cut))
    cold = set(frame.filter(pl.col("timestamp") >= cut)["user"]) - set(frame.filter(pl.col("timestamp") < cut)["user"])
    assert made.step.effect["cold_users"] == len(cold)


@given(st.integers(20, 60), st.integers(10, 90), st.sampled_from([None, 20, 33, 50]))
def test_the_shares_are_rounded_to_the_nearest_number_of_ratings(n, train, validation):
    ratings = Ratings.of(range(n), range(n), times=range(n))
    made = splits.temporal(ratings, train=train / 100, validation=None if validation is None else validation / 100)
    learn = n - len(made.test)
    assert 2 * abs(100 * learn - train * n) <= 100
    if validation is not None:
        share = min((100 - validation) * learn, 100 * (learn - 1))  # the validation part is never empty
        assert 2 * abs(100 * len(made.train) - share) <= 100


# Rolling evaluation: several cuts, and a split at each


DAY = 86_400
ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 7), st.integers(0, 20)),
    min_size=3,
    max_size=40,
    unique_by=lambda row: row[:2],
)


def _ratings(rows):
    users, items, times = zip(*rows)
    return Ratings.of(users, items, times=times)


def _daily(days, users=4):
    return Ratings.of(
        [user for _ in range(days) for user in range(users)],
        [day for day in range(days) for _ in range(users)],
        times=[day * DAY for day in range(days) for _ in range(users)],
    )


@given(
    ROWS,
    st.integers(1, 4),
    st.integers(1, 6),
    st.sampled_from(["grow", "slide"]),
    st.sampled_from([None, 0.3]),
    st.randoms(use_true_random=False),
)
def test_windows_follow_each_other_and_learn_from_the_past_only(rows, windows, horizon, train, validation, random):
    options = {"windows": windows, "horizon": horizon, "train": train, "validation": validation}
    try:
        made = list(splits.rolling(_ratings(rows), **options))
    except ImpossibleSplitError:
        return
    shuffled = splits.rolling(_ratings(random.sample(rows, len(rows))), **options)
    assert [split.record()["fingerprints"] for split in shuffled] == [split.record()["fingerprints"] for split in made]
    newest = max(time for *_, time in rows)
    oldest = min(time for *_, time in rows)
    cuts = [newest + 1 - (windows - window) * horizon for window in range(windows)]
    assert len(made) == windows
    for cut, split in zip(cuts, made, strict=True):
        start = oldest + cut - cuts[0] if train == "slide" else oldest
        assert sorted(split.test.times) == sorted(time for *_, time in rows if cut <= time < cut + horizon)
        learned = [*split.train.times, *([] if validation is None else split.validation.times)]
        assert sorted(learned) == sorted(time for *_, time in rows if start <= time < cut)
        assert split.step.effect["test_before_own_train"] == 0
        assert split.step.effect["outside_window"] == len(rows) - len(learned) - len(split.test)
    for earlier, later in pairwise(made):
        assert earlier.test.times.max() < later.test.times.min()


@given(ROWS, st.integers(1, 15), st.sampled_from(["all", "first", 2]), st.sampled_from(["keep", "drop"]))
def test_one_window_is_the_plain_split(rows, horizon, target, new):
    ratings = _ratings(rows)
    rule = {"target": target, "new_users": new, "new_items": new, "seed": 4}
    cut = max(time for *_, time in rows) + 1 - horizon
    outcomes = []
    for divide in (
        lambda: splits.rolling(ratings, windows=1, horizon=horizon, **rule)[0],
        lambda: splits.temporal(ratings, at=cut, **rule),
    ):
        try:
            outcomes.append(divide().record()["fingerprints"])
        except ImpossibleSplitError:
            outcomes.append(None)
    assert outcomes[0] == outcomes[1]


def test_growing_windows_add_and_sliding_ones_keep_their_length():
    grow = [len(split.train) for split in splits.rolling(_daily(30), windows=3, horizon="5d")]
    slide = [len(split.train) for split in splits.rolling(_daily(30), windows=3, horizon="5d", train="slide")]
    assert grow == [60, 80, 100]
    assert slide == [60, 60, 60]


def test_horizons_longer_than_the_data_are_refused_with_their_span_and_users():
    with pytest.raises(ImpossibleSplitError) as error:
        splits.rolling(_daily(10), windows=6, horizon="7d")
    assert "6 windows of 7d do not fit: the 40 ratings of 4 users span 1970-01-01" in str(error.value)
    assert "choose at most windows=1" in str(error.value)
    with pytest.raises(ImpossibleSplitError, match="choose a shorter horizon"):
        splits.rolling(_daily(10), windows=1, horizon="52w")


def test_windows_without_test_users_are_named():
    ratings = Ratings.of([1, 2, 1, 2], [1, 1, 2, 2], times=[0, 0, 10 * DAY, 10 * DAY])
    with pytest.raises(ImpossibleSplitError) as error:
        splits.rolling(ratings, windows=4, horizon="2d")
    assert "3 of 4 windows have no test user: none of the 2 users rated in 1970-01-03" in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"windows": 0}, "windows=0 is not a whole number"),
        ({"horizon": "soon"}, "horizon='soon' is not a duration; write a number of s, min, h, d or w"),
        ({"horizon": "0d"}, "horizon='0d' is not a duration"),
        ({"horizon": -5}, "horizon=-5 is not a duration"),
        ({"train": "all"}, "train='all' is not one of grow, slide"),
        ({"target": "next"}, "target='next' is neither all, first, last, random"),
    ],
)
def test_a_wrong_setting_is_named(settings, message):
    with pytest.raises(SettingError) as error:
        splits.rolling(_daily(30), **settings)
    assert message in str(error.value)


def test_a_rolling_split_needs_times():
    with pytest.raises(ImpossibleSplitError, match="the ratings of the 1 user have none"):
        splits.rolling(Ratings.of([1, 1], [1, 2]))


@pytest.mark.parametrize(("text", "seconds"), [("7d", 604_800), ("1.5 h", 5_400), ("2w", 1_209_600), ("30min", 1_800)])
def test_durations_are_read(text, seconds):
    assert check.duration("horizon", text) == seconds


def test_the_folds_of_a_rolling_split_are_spelled_written_and_read(tmp_path):
    made = splits.apply(_daily(30), "rolling(windows=2, horizon=3d)")
    splits.write(made, tmp_path)
    assert sorted(path.name for path in tmp_path.glob("fold-*")) == ["fold-1", "fold-2"]


# The global temporal split: where the cut lies, what the test ratings are, and who is new there


ROWS_AFTER_CUT = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)),
    min_size=2,
    max_size=36,
    unique_by=lambda row: row[:2],
)
TARGETS = st.sampled_from(["all", "first", "last", "random", 1, 2])
POLICIES = st.sampled_from(["keep", "drop", "apart"])


def _rows(part):
    return set(part.frame().select("user", "item", "time").rows())


@given(ROWS_AFTER_CUT, TARGETS, POLICIES, POLICIES, st.sampled_from([None, 0.4]), st.randoms(use_true_random=False))
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


@given(ROWS_AFTER_CUT)
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
