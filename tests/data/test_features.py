"""Columns that describe users and items: read, carried by ratings, and looked up by id."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield._errors import InputError
from cranfield.data import Ratings, filters
from cranfield.data.features import Features
from cranfield.facts.ratings import WithoutFeatures
from cranfield.splits import registry as splits
from cranfield.tables import Vocabulary

_USERS = [user for user in range(1, 31) for _ in range(10)]
_ITEMS = [item for user in range(30) for item in range(user % 5, user % 5 + 10)]
_AGES = {"user": list(range(1, 31)), "age": [20 + user for user in range(30)], "sex": ["f", "m", None] * 10}


@pytest.fixture
def ratings():
    return cf.read(
        {"user": _USERS, "item": _ITEMS, "rating": [1 + i % 5 for i in range(300)], "time": list(range(300))},
        user_features=_AGES,
        item_features={"item": list(range(14)), "genre": ["a", "b"] * 7},
    )


def _ages(ratings):
    return dict(zip(ratings.user_ids.all, ratings.user_features.rows(ratings.user_ids)["age"]))


def test_a_file_of_features_is_found_by_its_ids(tmp_path):
    (tmp_path / "users.csv").write_text("user_id,age,zip\n2,30,0123\n1,,99\n3,5.5,7\n")
    ratings = cf.read({"user": [1, 2, 4], "item": [1, 1, 1]}, user_features=tmp_path / "users.csv")
    assert ratings.user_features.rows(ratings.user_ids).rows() == [(None, "99"), (30.0, "0123"), (None, None)]
    assert ratings.history[-1].notes == (WithoutFeatures(1, 3, "user"),)


def test_ids_written_as_text_meet_ids_that_are_numbers():
    ratings = cf.read({"user": ["1", "x"], "item": [1, 1]}, user_features={"id": [1, 7], "age": [30, 40]})
    assert ratings.user_features.rows(ratings.user_ids)["age"].to_list() == [30.0, None]


@pytest.mark.parametrize("name", [name for name in splits if name not in ("predefined",)])
def test_features_survive_every_split(ratings, name):
    settings = {
        "temporal": "temporal(train=0.5)",
        "rolling": "rolling(windows=2, horizon=50s)",
        "train_per_item": "train_per_item(l=1)",
    }
    parts = cf.splits.apply(ratings, settings.get(name, name))
    for split in [parts] if isinstance(parts, cf.Split) else parts:
        for part in split.parts.values():
            assert _ages(part) == {user: 19 + user for user in part.user_ids.all}
            assert part.item_features is ratings.item_features


def test_features_survive_filters_that_drop_users(ratings):
    kept = filters.apply(ratings, ["sample(share=0.4, of=users)", "min_ratings(item=2)"])
    assert 0 < len(kept.user_ids) < 30
    assert _ages(kept) == {user: 19 + user for user in kept.user_ids.all}


def test_a_train_and_a_test_file_keep_their_features(ratings):
    split = cf.splits.predefined(ratings.keep(np.arange(300) % 2 == 0), Ratings.of([99], [99]))
    assert _ages(split.train) == {**{user: 19 + user for user in range(1, 31)}, 99: None}


def test_ratings_without_features_are_the_same_data(ratings):
    plain = cf.read({"user": _USERS, "item": _ITEMS, "rating": ratings.values, "time": list(range(300))})
    assert plain.user_features is None
    assert plain.n_users == ratings.n_users


def test_features_have_a_fingerprint_of_all_values():
    table = {"a": [1, 2], "b": ["x", None]}
    same, other = Features.of([1, 2], table), Features.of([1, 2], {**table, "b": ["x", "y"]})
    assert Features.of([2, 1], {"a": [2, 1], "b": [None, "x"]}).fingerprint == same.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"user": [1, 2, 1], "age": [3, 4, 5]}, r"row 3.*user 1 is described twice"),
        ({"user": [1, None], "age": [3, 4]}, r"row 2.*the user is missing"),
        ({"user": [8, 9], "age": [3, 4]}, r"none of its 2 users has ratings \(such as 8\)"),
        ({"user": [1, 2]}, r"no column other than that of the users"),
        ({"user": [1, 2], "age": [3.5, float("inf")]}, r"row 2, column 'age'.*infinite"),
        ({"user": [1, 2], "when": pl.Series([1, 2]).cast(pl.Date)}, r"type Date is neither numbers nor text"),
    ],
)
def test_what_cannot_describe_anybody_is_refused(table, message):
    with pytest.raises(InputError, match=message):
        cf.read({"user": [1, 2], "item": [1, 1]}, user_features=pl.DataFrame(table))


def test_missing_numbers_are_missing_however_they_are_written():
    features = Features.of([1, 2, 3], {"age": [1.0, float("nan"), None], "sex": ["f", " ", None]})
    assert features.columns.rows() == [(1.0, "f"), (None, None), (None, None)]


def test_rows_are_in_the_order_of_any_vocabulary():
    features = Features.of(["c", "a"], {"n": [3, 1]})
    assert features.rows(Vocabulary.of(["a", "b", "c"]))["n"].to_list() == [1.0, None, 3.0]
    assert features.only(Vocabulary.of(["c"])).columns["n"].to_list() == [3.0]
