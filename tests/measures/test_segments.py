"""Results by group of users, items or test ratings."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield.facts import segment as segment_facts
from cranfield.measures.segmenting import Segmenting, file_and_column

USERS = ["ann", "bob", "cid", "dee"]


@pytest.fixture(scope="module")
def test_set():
    return cf.Ratings.of(
        ["ann", "ann", "bob", "cid", "cid", "dee"], ["x", "y", "y", "x", "z", "z"], times=[10, 20, 30, 40, 50, 60]
    )


@pytest.fixture(scope="module")
def train():
    sizes = {"ann": 1, "bob": 5, "cid": 8, "eve": 6, "fay": 20}
    pairs = [(user, f"item{n}") for user, size in sizes.items() for n in range(size)]
    pairs += [("fay", "x"), ("eve", "x"), ("fay", "y")]
    return cf.Ratings.of([user for user, _ in pairs], [item for _, item in pairs])


@pytest.fixture(scope="module")
def runs():
    lists = {"one": ["x", "y", "z"], "two": ["z", "y", "x"]}
    return {name: dict.fromkeys(USERS, items) for name, items in lists.items()}


@pytest.fixture(scope="module")
def scores(runs, test_set):
    return cf.measure(runs, test_set, ["P@1", "RR"])


def _means(segments, metric="P@1"):
    rows = segments.frame().filter(metric=metric).select("group", "system", "mean").rows()
    return {(group, system): mean for group, system, mean in rows}


def test_groups_of_users_are_averaged_by_themselves(scores):
    found = scores.segments({"ann": "north", "bob": "south", "cid": "north", "dee": "south"})
    assert found.names == ("north", "south")
    assert _means(found) == {
        ("north", "one"): 1.0, ("north", "two"): 0.5, ("south", "one"): 0.0, ("south", "two"): 0.5,
    }  # fmt: skip
    assert set(found.frame().columns) >= {"segment", "group", "lower", "upper", "lists"}


def test_new_light_and_heavy_users_are_told_by_their_training_ratings(scores, train):
    # Half of the users with at least 5 training ratings (5, 7, 8 and 22) have at most 7; dee has none.
    found = scores.segments("activity", train=train)
    assert {name: found.users(name) for name in found.names} == {"new": "2", "light": "1", "heavy": "1"}
    assert found.notes == (segment_facts.ByActivity(new=5, limit=7.0),)
    other = scores.segments("activity(new=1, light=0.9)", train=train)
    assert {name: other.users(name) for name in other.names} == {"new": "1", "light": "3"}


def test_activity_without_training_ratings_says_what_it_needs(scores):
    with pytest.raises(cf.SettingError, match="activity needs the training ratings; give them as train"):
        scores.segments("activity")


def test_only_the_test_items_of_a_group_count(runs, test_set):
    genres = pl.DataFrame({"item": ["x", "y", "z"], "genre": ["old", "old", "new"]})
    found = cf.measure_segments(runs, test_set, "RR", by=genres)
    assert (found.of, found.names) == ("items", ("new", "old"))
    old = cf.Ratings.of(["ann", "ann", "bob", "cid"], ["x", "y", "y", "x"])
    expected = cf.measure(runs, old, "RR").average()[:, 0]
    assert [_means(found, "RR")["old", system] for system in ("one", "two")] == expected.tolist()
    assert found.users("new") == "2"


def test_popularity_groups_are_those_of_by_popularity(runs, test_set):
    train = cf.Ratings.of(["p", "q", "r", "p", "q"], ["x", "x", "x", "y", "z"])
    found = cf.measure_segments(runs, test_set, "Recall@1", by="popularity(groups=2)", train=train)
    expected = cf.measures.by_popularity(runs, test_set, "Recall@1", train=train, groups=2)
    assert _means(found, "Recall@1") == {
        (row["group"], row["system"]): row["mean"] for row in expected.iter_rows(named=True)
    }


def test_periods_are_those_of_the_times_of_test_ratings(runs, test_set):
    found = cf.measure_segments(runs, test_set, "P@1", by="period(parts=2)")
    early = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "y"])
    expected = cf.measure(runs, early, "P@1").average()[:, 0]
    assert [_means(found)["period 1", system] for system in ("one", "two")] == expected.tolist()
    assert found.notes[0].periods[0] == ("period 1", "1970-01-01 00:00:10", "1970-01-01 00:00:30")


def test_there_are_three_periods_unless_another_number_is_given(runs, test_set):
    usual, given = (cf.measure_segments(runs, test_set, "P@1", by=by) for by in ("period", "period(parts=3)"))
    assert _means(usual) == _means(given)


def test_periods_need_times(runs):
    timeless = cf.Ratings.of(["ann", "bob"], ["x", "y"])
    with pytest.raises(cf.SettingError, match="period needs times, and the test set has none"):
        cf.measure_segments(runs, timeless, "P@1", by="period")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_names_a_group_for_each_user_and_the_others_are_unknown(scores, tmp_path, ending):
    path = tmp_path / f"users.{ending}"
    frame = pl.DataFrame({"userId": ["ann", "cid", "zoe"], "age": ["old", "young", "old"], "sex": ["f", "m", "f"]})
    frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
    found = scores.segments(f"{path}:age")
    assert found.names == ("old", "young", "unknown")
    assert found.users("unknown") == "2"
    assert found.notes == (segment_facts.WithoutGroup(f"{path}:age", "users", 2, 4),)


def test_numbered_groups_stand_in_the_order_of_numbers(scores):
    assert scores.segments({"ann": 10, "bob": 9, "cid": 10, "dee": 100}).names == ("9", "10", "100")


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ({"q1": "a", "q2": "b"}, "none of its users is in the test set .users of the segments: q1, q2; of the test"),
        (dict.fromkeys(USERS, "a"), r"everything is in one group \(a\); choose a grouping with two or more"),
        ({"user": ["ann", "ann"], "group": ["a", "b"]}, "user ann is in the groups a and b; give every user one"),
        ({"user": ["ann"], "age": ["a"], "sex": ["b"]}, "not clear which column holds the groups .columns: user, age"),
        ({"name_of": ["ann"], "group": ["a"]}, "no column is known to hold users or items"),
        ({"user": list(range(60)), "group": list(range(60))}, "60 different groups are too many"),
        ("activty", "is not a file, a column of the test file or a built-in segment; did you mean 'activity'"),
        ("activity(old=1)", "activity has no parameter 'old'"),
        (pl.DataFrame({"item": ["x", "y"], "group": ["a", "b"]}), "groups items, for which lists are measured again"),
    ],
)
def test_what_divides_nothing_is_refused_in_one_line(scores, by, message):
    with pytest.raises(cf.CranfieldError, match=message) as caught:
        scores.segments(by)
    assert "\n" not in str(caught.value)


def test_a_column_that_is_not_there_is_answered_with_the_nearest(scores, tmp_path):
    path = tmp_path / "users.csv"
    path.write_text("user,age\nann,old\nbob,young\n")
    with pytest.raises(cf.InputError, match="there is no column 'agee'; did you mean 'age'"):
        scores.segments(f"{path}:agee")


def test_a_column_of_the_test_file_groups_its_users_or_else_its_items(runs, tmp_path):
    path = tmp_path / "test.csv"
    path.write_text("user,item,town,genre\nann,x,oslo,old\nann,y,oslo,new\nbob,y,rome,new\ncid,x,rome,old\n")
    assert cf.measure_segments(runs, str(path), "P@1", by="town").of == "users"
    found = cf.measure_segments(runs, str(path), "P@1", by="genre")
    assert (found.of, found.names) == ("items", ("new", "old"))


def test_a_table_marks_the_best_of_each_group(scores):
    table = scores.segments({"ann": "a", "bob": "b", "cid": "a", "dee": "b"}).table()
    best = [(row[0].text, row[1].text) for row in table.rows if row[3].best]
    assert best == [("a", "one"), ("b", "two")]
    assert "by given, groups of users; full lists" in table.caption


def test_the_same_groups_of_several_folds_are_joined(scores):
    groups = {"ann": "a", "bob": "b", "cid": "a", "dee": "b"}
    part = scores.segments(groups)
    joined = cf.Segments.join([part, part])
    assert joined.names == part.names
    assert _means(joined) == _means(part)
    assert np.array_equal(joined.scores.groups, np.tile(part.scores.groups, 2))


def test_a_segment_is_a_decision_that_is_spelled_in_one_way():
    assert Segmenting(["activity( new=10 )", "activity(new=10)"]).segment == ("activity(new=10)",)
    with pytest.raises(cf.SettingError, match="segment=7 is not text"):
        Segmenting(7)


def test_a_spelled_segment_is_not_taken_for_a_file():
    assert Segmenting.is_built_in("activity(new=10)")
    assert not Segmenting.is_built_in("users.csv")
    assert file_and_column("activity") is None
