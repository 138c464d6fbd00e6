"""Ids and codes."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield._errors import InputError
from cranfield.data import Ratings, over_one_vocabulary
from cranfield.tables import UNKNOWN, Vocabulary

INT64 = st.integers(-(2**63), 2**63 - 1)
IDS = st.one_of(
    st.lists(st.integers(0, 50), min_size=1),
    st.lists(st.integers(-100, 100), min_size=1),
    st.lists(INT64, min_size=1),
    st.lists(st.text(max_size=3), min_size=1),
    st.lists(st.dates(date(1950, 1, 1), date(2050, 1, 1)), min_size=1),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1).map(lambda ids: [one + 0.0 for one in ids]),
)


@given(IDS)
def test_codes_are_places_among_the_sorted_distinct_ids(ids):
    vocabulary, codes = Vocabulary.encode(ids)
    distinct = sorted(set(ids))
    assert vocabulary.all.to_list() == distinct
    assert codes.dtype == np.int32
    assert codes.tolist() == [distinct.index(one) for one in ids]
    assert vocabulary == Vocabulary.of(ids)
    assert vocabulary.codes(ids).tolist() == codes.tolist()
    assert vocabulary.ids(codes).to_list() == ids


@given(st.lists(INT64, min_size=1), st.lists(INT64 | st.integers(-9, 9)))
def test_unknown_ids_have_no_code(ids, asked):
    distinct = sorted(set(ids))
    expected = [distinct.index(one) if one in distinct else UNKNOWN for one in asked]
    assert Vocabulary.of(ids).codes(pl.Series(asked, dtype=pl.Int64)).tolist() == expected


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64])
def test_the_ends_of_every_integer_type(dtype):
    bits = int(str(dtype).lstrip("UInt"))
    low, high = (0, 2**bits - 1) if str(dtype).startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for values in ([low, high, low + 1], [high, high - 2, high], [low, low + 3, low]):
        ids = pl.Series(values, dtype=dtype)
        vocabulary, codes = Vocabulary.encode(ids)
        assert vocabulary.all.to_list() == sorted(set(values))
        assert vocabulary.dtype == dtype
        assert vocabulary.ids(codes).to_list() == values
        assert vocabulary.codes(ids).tolist() == codes.tolist()


def test_text_and_integers_meet():
    assert Vocabulary.of([7, 12]).codes(["12", "7", "007", "x", "7.0"]).tolist() == [1, 0, UNKNOWN, UNKNOWN, UNKNOWN]
    assert Vocabulary.of(["7", "12"]).codes([12, 7, 8]).tolist() == [0, 1, UNKNOWN]
    assert Vocabulary.of([7, 12]).codes([12.0, 7.5]).tolist() == [1, UNKNOWN]


_KINDS = {
    "text": ["1", "2001-01-01"],
    "integers": [1, 2],
    "wide integers": pl.Series([1, 2**100], dtype=pl.Int128),
    "floats": [1.0, 2.5],
    "decimals": pl.Series(["1", "2.5"]).cast(pl.Decimal(10, 2)),
    "truths": [False, True],
    "bytes": [b"1", b"\xff"],
    "dates": [date(2001, 1, 1), date(2002, 1, 1)],
    "moments": [datetime(2001, 1, 1, 0), datetime(2002, 1, 1, 12)],
    "spans": [timedelta(1), timedelta(2)],
    "hours": [time(1), time(2)],
}


def _read_out(one):
    return one.decode("latin-1") if isinstance(one, bytes) else str(one).removesuffix(" 00:00:00")


@pytest.mark.parametrize("known", _KINDS)
@pytest.mark.parametrize("asked", _KINDS)
def test_ids_of_any_two_types_meet_only_where_they_are_the_same(known, asked):
    vocabulary, ids = Vocabulary.of(_KINDS[known]), pl.Series(_KINDS[asked])
    for code, one in zip(vocabulary.codes(ids).tolist(), ids, strict=True):
        found = None if code == UNKNOWN else vocabulary.all[code]
        assert found is None or found == one or _read_out(found) == _read_out(one)
    if known == asked:
        assert sorted(vocabulary.codes(ids).tolist()) == [0, 1]


def test_dates_and_dates_as_text_meet():
    days = Vocabulary.of(_KINDS["dates"])
    assert days.codes(["2001-01-01", "2001-01-02"]).tolist() == [0, UNKNOWN]
    assert Vocabulary.of(["2001-01-01"]).codes(_KINDS["dates"]).tolist() == [0, UNKNOWN]


def test_wider_integers_do_not_wrap_around():
    small = Vocabulary.of(pl.Series([1, 2], dtype=pl.Int8))
    assert small.codes([257, 2, -255]).tolist() == [UNKNOWN, 1, UNKNOWN]
    signed = Vocabulary.of([-1, 5])
    assert signed.codes(pl.Series([2**64 - 1, 5], dtype=pl.UInt64)).tolist() == [UNKNOWN, 1]


def test_missing_ids_are_unknown():
    assert Vocabulary.of([1, 2]).codes([2, None]).tolist() == [1, UNKNOWN]
    assert Vocabulary.of(["a"]).codes(["a", None]).tolist() == [0, UNKNOWN]


def test_a_single_id():
    vocabulary = Vocabulary.of(["a", "b"])
    assert vocabulary.code("b") == 1
    assert "a" in vocabulary
    assert "c" not in vocabulary
    with pytest.raises(KeyError):
        vocabulary.code("c")


def test_nothing():
    vocabulary, codes = Vocabulary.encode([])
    assert len(vocabulary) == len(codes) == 0
    assert Vocabulary.of([]).codes([1, 2]).tolist() == [UNKNOWN, UNKNOWN]


def test_order_as_text():
    assert Vocabulary.of([2, 10, 1]).string_order.tolist() == [0, 2, 1]


def test_ids_of_two_types_are_refused():
    with pytest.raises(InputError, match="ids of one type"):
        Vocabulary.of([1, "a"])


def test_parts_over_one_vocabulary_keep_their_ratings():
    parts = [Ratings.of([3, 1], ["x", "y"], [5, 4]), Ratings.of([2], ["w"], [3])]
    joined = over_one_vocabulary(parts)
    assert [part.frame().rows() for part in joined] == [part.frame().rows() for part in parts]
    assert all(part.user_ids == Vocabulary.of([1, 2, 3]) for part in joined)
    assert all(part.item_ids == Vocabulary.of(["w", "x", "y"]) for part in joined)


def test_the_union_of_equal_vocabularies_is_one_of_them_and_text_makes_all_text():
    first = Vocabulary.of([1, 2])
    assert Vocabulary.union([first, Vocabulary.of([2, 1])]) is first
    assert Vocabulary.union([first, Vocabulary.of([np.int8(7)])]).all.to_list() == [1, 2, 7]
    assert Vocabulary.union([first, Vocabulary.of(["b"])]).all.to_list() == ["1", "2", "b"]
