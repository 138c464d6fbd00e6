"""Anybody's split, examined."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import InputError, Ratings, SettingError, check_split, splits

ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 6), st.integers(0, 9)),
    min_size=1,
    max_size=25,
    unique_by=lambda r: r[:2],
)


def _ratings(rows):
    users, items, times = zip(*rows)
    return Ratings.of(users, items, [1 + (u + i) % 5 for u, i, _ in rows], times)


def _grid(users=30, items=20):
    rows = [(u, i, (u * 31 + i * 17) % 97) for u in range(users) for i in range(items) if (u * 7 + i * 5) % 3]
    return _ratings(rows)


@given(ROWS, ROWS)
def test_overlap_leakage_and_cold_starts_are_counted_as_defined(train, test):
    facts = check_split(_ratings(train), _ratings(test)).counts
    assert facts["overlap"]["train and test"] == len({r[:2] for r in train} & {r[:2] for r in test})
    assert facts["cold"]["users"] == len({r[0] for r in test} - {r[0] for r in train})
    assert facts["cold"]["items"] == len({r[1] for r in test} - {r[1] for r in train})
    leakage = facts["leakage"]
    own = [t for t in test if any(r[0] == t[0] and t[2] < r[2] for r in train)]
    assert (leakage["own"], leakage["own_users"]) == (len(own), len({t[0] for t in own}))
    assert leakage["before_training_ends"] == sum(t[2] < max(r[2] for r in train) for t in test)
    assert leakage["training_after_test_begins"] == sum(r[2] > min(t[2] for t in test) for r in train)
    later = [t for t in test if any(r[1] == t[1] for r in train) and all(r[2] > t[2] for r in train if r[1] == t[1])]
    assert leakage["items_seen_later"] == len(later)
    gaps = [
        min(t[2] for t in test if t[0] == user) - max(r[2] for r in train if r[0] == user)
        for user in {r[0] for r in train} & {t[0] for t in test}
    ]
    if gaps:
        assert facts["gaps"]["negative"] == sum(gap < 0 for gap in gaps)
        assert facts["gaps"]["days"]["median"] == pytest.approx(np.median(gaps) / 86_400)


@pytest.mark.parametrize(
    ("method", "promise", "wrong"),
    [
        ("random(train=0.8)", "any", 0),
        ("temporal(train=0.8)", "global", 0),
        ("rolling(windows=2, horizon=10)", "global", 0),
        ("leave_out(l=1, which=last)", "user", 0),
        ("strong_generalisation", "any", 0),
        ("strong_generalisation(which=last)", "user", 0),
        ("cold_users", "any", 0),
        ("cold_users(left=2, which=last, warm=0.3)", "any", 0),
        ("cold_items(left=2, which=last)", "any", 0),
    ],
)
def test_our_own_splits_keep_what_they_promise(method, promise, wrong):
    for split in splits.apply(_grid(), method, seed=1):
        examined = check_split(split)
        assert examined.promise == promise
        assert len(examined.wrong) == wrong


def test_a_random_split_breaks_the_promise_of_a_temporal_one():
    split = splits.random(_grid(), train=0.8, seed=1)
    by_user, everywhere = ("\n".join(check_split(split, promise=kind).wrong) for kind in ("user", "global"))
    assert "older than a training rating of the same user" in by_user
    assert "training contains the future of other users" not in by_user
    assert "training contains the future of other users" in everywhere


def test_files_without_a_record_promise_no_leakage_for_a_user(tmp_path):
    split = splits.random(_grid(), train=0.8, seed=1)
    for name, part in split.parts.items():
        part.frame().write_csv(tmp_path / f"{name}.csv")
    assert check_split(tmp_path / "train.csv", tmp_path / "test.csv").promise == "user"
    assert check_split(tmp_path).wrong
    assert not check_split(tmp_path, promise="any").wrong


def test_repeated_pairs_of_a_file_are_wrong_and_counted(tmp_path):
    frame = pl.DataFrame({"user": [1, 1, 2], "item": [1, 1, 2], "rating": [3, 4, 5]})
    frame.write_csv(tmp_path / "train.csv")
    pl.DataFrame({"user": [1], "item": [2], "rating": [4]}).write_csv(tmp_path / "test.csv")
    examined = check_split(tmp_path / "train.csv", tmp_path / "test.csv")
    assert examined.counts["repeated"] == {"train": 1, "test": 0}
    assert any(sentence.startswith("1 row of the train part repeats") for sentence in examined.wrong)


def test_the_validation_part_must_lie_between_the_others_on_a_global_timeline():
    train, test = _ratings([(1, 1, 0), (2, 1, 4)]), _ratings([(1, 2, 6), (2, 2, 9)])
    late, early = _ratings([(1, 3, 7)]), _ratings([(1, 3, 3)])
    assert not check_split(train, test, _ratings([(1, 3, 5)]), promise="global").wrong
    assert check_split(train, test, late, promise="global").wrong == (
        "1 test rating (50.0%) is older than the newest validation rating: hyper-parameters are chosen with knowledge "
        "of the future.",
    )
    assert check_split(train, test, early, promise="global").wrong == (
        "1 validation rating (100.0%) is older than the newest training rating.",
    )
    assert not check_split(train, test, late, promise="user").wrong


def test_a_folder_with_two_files_of_one_part_is_refused(tmp_path):
    for name in ("train.csv", "test.csv", "val.csv", "valid.tsv"):
        (tmp_path / name).write_text("user,item\n1,1\n")
    with pytest.raises(InputError, match=r"valid\.tsv and val\.csv are both there"):
        check_split(tmp_path)


def test_an_id_that_has_no_rating_left_in_either_part_is_not_a_cold_start():
    parts = splits.random(_grid(), seed=1)
    train, test = (part.keep((part.users != 3) & (part.items != 5)) for part in (parts.train, parts.test))
    assert check_split(train, test).counts["cold"] == {"users": 0, "items": 0, "ratings": 0}


def test_parts_without_a_common_user_are_wrong():
    examined = check_split(Ratings.of(["a", "b"], [1, 2]), Ratings.of(["1", "2"], [1, 2]))
    assert any(
        "no test user is known, so the parts may write the ids differently" in sentence for sentence in examined.wrong
    )


def test_without_times_nothing_is_promised_unless_it_is_said():
    train, test = Ratings.of([1, 1, 2], [1, 2, 1]), Ratings.of([1, 2], [3, 2])
    assert not check_split(train, test).wrong
    assert any("no times" in sentence for sentence in check_split(train, test, promise="user").wrong)


def test_a_random_split_shows_no_shift_and_a_split_by_popularity_a_large_one():
    rng = np.random.default_rng(0)
    popularity = rng.random(60) ** 2
    rows = [(u, i, 0) for u in range(150) for i in range(60) if rng.random() < popularity[i]]
    ratings = _ratings(rows)
    fine = check_split(splits.random(ratings, train=0.8, seed=1)).counts["shift"]
    assert max(change["D"] for change in fine.values()) < 0.1
    rare = ratings.item_counts[ratings.items] < np.median(ratings.item_counts)
    odd = check_split(ratings.keep(~rare | (rng.random(len(ratings)) < 0.3)), ratings.keep(rare))
    assert odd.counts["shift"]["popularity"]["D"] > 0.25
    assert any("shift of item popularity from training to test is large" in one for one in odd.verdict)


def test_leaving_one_rating_of_each_user_out_is_no_shift_of_activity():
    rows = [(u, (u + k) % 20, k) for u in range(30) for k in range(8)]
    change = check_split(splits.leave_out(_ratings(rows), which="last")).counts["shift"]["activity"]
    assert change["D"] == 0


def test_the_sentences_say_what_can_and_cannot_be_answered():
    said = check_split(splits.temporal(_grid(), validation=0.1)).verdict
    assert said[0].startswith("Split(temporal: train")
    can = next(sentence for sentence in said if sentence.startswith("It can show"))
    assert "knowing only the past" in can
    assert "choose hyper-parameters" in can


def test_one_test_item_of_each_user_cannot_show_how_several_are_ranked():
    said = check_split(splits.leave_out(_grid(), which="last")).verdict
    assert "how several test items of a user are ranked" in next(one for one in said if one.startswith("It cannot"))


def test_everything_is_ready_for_json_and_for_tables():
    examined = check_split(splits.random(_grid(), validation=0.1))
    assert json.loads(json.dumps(examined.as_dict()))["wrong"] is False
    assert examined.frame().columns == ["split", "about", "level", "sentence"]
    assert "test before own training" in examined.table().text()


def test_a_written_split_is_read_with_its_promise(tmp_path):
    splits.write(splits.apply(_grid(), "rolling(windows=2, horizon=10)"), tmp_path)
    assert check_split(tmp_path / "fold-1").promise == "global"
    with pytest.raises(InputError, match="give one of its folds, such as fold-1"):
        check_split(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Ratings.of([1], [1]),), "check_split needs a test part"),
        ((Ratings.of([1], [1]), Ratings.of([], [])), "the test part has no ratings"),
        ((splits.random(_grid()), Ratings.of([1], [1])), "a split has its own parts"),
    ],
)
def test_what_is_no_split_is_refused(arguments, message):
    with pytest.raises((SettingError, InputError), match=message):
        check_split(*arguments)
