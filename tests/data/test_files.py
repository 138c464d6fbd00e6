"""Reading ratings: what is found out, what is kept, what is refused and how."""

from __future__ import annotations

import bz2
import csv
import datetime
import gzip
import io
import lzma
import uuid
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield._errors import CranfieldError, InputError, SettingError
from cranfield.data import Ratings, read, write
from cranfield.facts.ratings import KeptEvents
from cranfield.rankings import read_test

ROWS = [("ann", 10, 4.5), ("bob", 10, 3.0), ("bob", 20, 1.0)]
CSV = b"userId,movieId,rating\nann,10,4.5\nbob,10,3\nbob,20,1\n"


def text(data: bytes | str, **options):
    return read(io.BytesIO(data.encode() if isinstance(data, str) else data), **options)


def rows(ratings):
    return ratings.frame().rows()


def refusal(data, **options) -> str:
    with pytest.raises(CranfieldError) as caught:
        text(data, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


class TestKindsOfText:
    @pytest.mark.parametrize("separator", [",", "\t", ";", "|", " ", "::"])
    def test_the_separator_is_found(self, separator):
        ratings = text(CSV.decode().replace(",", separator))
        assert rows(ratings) == ROWS
        assert ratings.history[0].settings["separator"] == separator

    @pytest.mark.parametrize("separator", ["||", "=>", " , ", "~", "::::", "§"])
    def test_any_separator_can_be_named(self, separator):
        assert rows(text(CSV.decode().replace(",", separator), separator=separator)) == ROWS

    def test_double_colons_leave_single_ones_in_peace(self):
        assert rows(text("a:b::x::3\na::x:y::4\n")) == [("a", "x:y", 4.0), ("a:b", "x", 3.0)]

    @pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b"\r\r\n"])
    def test_line_ends_of_every_system(self, end):
        assert rows(text(CSV.replace(b"\n", end))) == ROWS

    @pytest.mark.parametrize(
        "data",
        [
            b"\xef\xbb\xbf" + CSV,
            CSV.rstrip(),
            CSV + b"\n\n \n",
            CSV.replace(b"bob,10", b"\n\nbob,10"),
            b"\n\n" + CSV,
            CSV.replace(b"\n", b"\n\n", 1),
        ],
        ids=["byte order mark", "no last line end", "blank lines at the end", "between", "at the start", "below names"],
    )
    def test_marks_and_blank_lines_are_not_ratings(self, data):
        assert rows(text(data)) == ROWS

    def test_quotes_enclose_separators_line_ends_and_quotes(self):
        data = 'user,item,rating\n"ann, a","x ""1""",5\n"bob\nb",y,4\n'
        assert rows(text(data)) == [("ann, a", 'x "1"', 5.0), ("bob\nb", "y", 4.0)]

    @pytest.mark.parametrize("separator", [",", "\t", " ", "::"])
    def test_the_last_field_may_be_empty(self, separator):
        lines = [["user", "item", "title"], ["ann", "x", ""], ["bob", "x", ""]]
        assert len(text("\n".join(separator.join(line) for line in lines) + "\n\n")) == 2

    def test_names_may_hold_line_ends(self):
        assert rows(text('"user\n","item",rating\nann,x,5\n')) == [("ann", "x", 5.0)]

    def test_a_quote_inside_a_field_is_a_character(self):
        assert rows(text('user\titem\trating\n5"\tx\t3\n')) == [('5"', "x", 3.0)]

    def test_quotes_can_be_switched_off(self):
        assert rows(text('user\titem\trating\n"a\tx\t3\n', quote=None)) == [('"a', "x", 3.0)]

    def test_another_encoding(self):
        data = "user,item,rating\nJosé,Ñandú,4\n".encode("latin-1")
        assert rows(text(data, encoding="latin-1")) == [("José", "Ñandú", 4.0)]
        assert "encoding='latin-1'" in refusal(data)
        assert "row 2" in refusal(data)

    def test_utf_16(self):
        assert rows(text("user,item,rating\né,x,4\n".encode("utf-16"), encoding="utf-16")) == [("é", "x", 4.0)]
        assert "utf-16" in refusal("user,item,rating\né,x,4\n".encode("utf-16"))


FIELD = st.text('a0,;\t"\n é', max_size=4)


class TestAgainstTheCsvModule:
    @given(
        st.lists(st.tuples(FIELD, FIELD, FIELD), min_size=1, unique_by=lambda row: row[:2]),
        st.sampled_from([",", "\t", ";", "|"]),
        st.sampled_from(["\n", "\r\n"]),
        st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        st.booleans(),
    )
    def test_what_csv_writes_is_read_back(self, table, separator, end, quoting, blank_lines):
        table = [row for row in table if row[0].strip() and row[1].strip()]
        if not table:
            return
        out = io.StringIO()
        writer = csv.writer(out, delimiter=separator, lineterminator=end, quoting=quoting)
        for row in [("title", "item", "user"), *((title, item, user) for user, item, title in table)]:
            writer.writerow(row)
            out.write(end if blank_lines else "")
        got = text(out.getvalue(), separator=separator, header=True).frame()
        found = sorted(zip(got["user"].cast(pl.String), got["item"].cast(pl.String)))
        assert found == sorted((user, item) for user, item, _ in table)


class TestHeaders:
    def test_a_row_with_usual_names_is_a_header(self):
        assert text(CSV).history[0].settings["header"] is True

    def test_numbers_are_not_a_header(self):
        ratings = text("1,10,5\n2,10,4\n")
        assert ratings.history[0].settings["header"] is False
        assert rows(ratings) == [(1, 10, 5.0), (2, 10, 4.0)]

    def test_words_above_words_are_not_a_header(self):
        assert len(text("ann,book\nbob,book\n")) == 2

    def test_words_above_numbers_are_a_header(self):
        assert rows(text("wer,was,wie\n1,2,3\n", user="wer", item=2, rating=3)) == [(1, 2, 3.0)]

    @pytest.mark.parametrize("rating", ["", "--", "good"])
    def test_a_row_with_a_date_is_not_a_header(self, rating):
        message = refusal(f"ann,x,{rating},2001-01-01\nann,y,5,2001-01-01\n")
        assert "row 1, column '3'" in message

    def test_the_header_can_be_denied_and_declared(self):
        assert len(text("user,item\nann,x\n", header=False)) == 2
        assert len(text("ann,x\nbob,x\n", header=True, user=1, item=2)) == 1

    @pytest.mark.parametrize(
        "names",
        [
            "user,item,rating,timestamp",
            "user_id,item_id,score,time",
            "userId,movieId,rating,timestamp",
            "u,i,r,t",
            "uid,iid,stars,date",
            "reviewerID,asin,overall,unixReviewTime",
            "User-ID,ISBN,Book-Rating,ts",
            "userID,artistID,weight,created_at",
            "user_id:token,item_id:token,rating:float,timestamp:float",
            "customer_id,product_id,star_rating,review_date",
            "review/profileName,beer/beerId,review/overall,review/time",
        ],
    )
    def test_the_names_of_the_field_are_known(self, names):
        ratings = text(f"x,{names},y\n0,7,8,4.5,978300760,0\n")
        assert rows(ratings) == [(7, 8, 4.5, 978300760)]
        assert list(ratings.history[0].settings["columns"].values()) == names.split(",")

    def test_columns_in_another_order(self):
        assert rows(text("rating,timestamp,item,user\n5,100,x,ann\n")) == [("ann", "x", 5.0, 100)]

    def test_the_more_telling_of_two_names_wins(self):
        assert rows(text("username,user_id,title,movie_id\nann,1,Heat,2\n")) == [(1, 2, 1.0)]

    def test_positions_count_from_one(self):
        assert rows(text("0,ann,x,5\n1,bob,x,4\n", user=2, item=3, rating=4, time=False)) == [
            ("ann", "x", 5.0),
            ("bob", "x", 4.0),
        ]
        assert "count from 1" in refusal("1,2,3\n", user=0)

    def test_a_position_may_be_text_as_on_the_command_line(self):
        assert rows(text("0,ann,x\n", user="2", item="3")) == [("ann", "x", 1.0)]

    def test_a_third_column_of_times_is_not_taken_for_ratings(self):
        assert rows(text("1,2,978300760\n1,3,978300761\n")) == [(1, 2, 1.0, 978300760), (1, 3, 1.0, 978300761)]

    def test_a_fourth_column_of_text_is_not_taken_for_times(self):
        assert rows(text("1,2,5,fine\n")) == [(1, 2, 5.0)]

    @pytest.mark.parametrize("bad", ["soon", ""])
    def test_one_bad_row_at_the_head_hides_no_times(self, bad):
        lines = [f"1,2,5,{bad}", *(f"{user},3,5,978300760" for user in range(9))]
        assert "row 1, column '4'" in refusal("\n".join(lines))

    def test_one_column_is_not_used_twice(self):
        assert "both" in refusal("user,item,rating\n1,2,3\n", user="item", item="item")

    def test_the_rating_column_can_be_left_aside(self):
        ratings = text(CSV, rating=False)
        assert set(ratings.values.tolist()) == {1.0}
        assert "implicit" in ratings.history[0].notes[0].sentence


class TestIds:
    def test_integers_come_back_as_integers(self):
        assert text("1,2,3\n10,-2,3\n").user_ids.all.to_list() == [1, 10]

    @pytest.mark.parametrize("odd", ["007", "+7", " 7", "-0", "7.0", "x7", "1e3", "99999999999999999999", "７"])
    @pytest.mark.parametrize("separator", [",", "::"])
    def test_one_odd_id_makes_the_column_text(self, odd, separator):
        lines = [["user", "item", "rating"], *[[str(number), "5", "1"] for number in range(1, 300)], [odd, "5", "1"]]
        ratings = text("\n".join(separator.join(line) for line in lines))
        assert ratings.user_ids.all.to_list() == sorted([str(number) for number in range(1, 300)] + [odd])
        assert ratings.item_ids.all.to_list() == [5]

    def test_quoted_ids_keep_their_zeros(self):
        assert text('user,item,rating\n"1","007","3"\n').frame().rows() == [(1, "007", 3.0)]

    @pytest.mark.parametrize("late", ["3.5", ".5", "1e-3", "-2.25", "12345678901234567890"])
    def test_whole_stars_at_the_head_may_have_others_behind(self, late):
        ratings = text("\n".join([*(f"{user},5,4" for user in range(2000)), f"2000,5,{late}"]))
        assert ratings.values.tolist() == [4.0] * 2000 + [float(late)]

    @pytest.mark.parametrize("before", range(1, 12))
    def test_a_leading_zero_is_seen_wherever_the_file_is_cut_into_blocks(self, before, monkeypatch):
        monkeypatch.setattr("cranfield.tables.text._BLOCK", 8)
        lines = [f"{10**before},2,3.05", "1,2,0.5", "02,2,3.05"]
        assert text("\n".join(lines)).user_ids.all.to_list() == sorted([str(10**before), "1", "02"])
        assert text("\n".join(lines[:2])).user_ids.all.to_list() == [1, 10**before]

    def test_a_zero_alone_is_an_integer(self):
        assert rows(text("0,0,0\n0,10,0.5\n")) == [(0, 0, 0.0), (0, 10, 0.5)]

    @given(
        st.lists(
            st.tuples(
                st.one_of(st.integers(-(2**63), 2**63 - 1).map(str), st.text("0123-+ x", min_size=1, max_size=4)),
                st.integers(0, 99).map(str),
            ),
            min_size=1,
            unique=True,
        ),
        st.sampled_from([",", "\t", "::", "|"]),
    )
    def test_ids_return_as_they_were_written(self, pairs, separator):
        written = [(user, item) for user, item in pairs if user.strip()]
        if not written:
            return
        data = f"user{separator}item\n" + "\n".join(separator.join(pair) for pair in written)
        got = text(data, separator=separator, header=True).frame()
        assert sorted(zip(got["user"].cast(pl.String), got["item"].cast(pl.String))) == sorted(written)
        canonical = all(_is_canonical(user) for user, _ in written)
        assert (got["user"].dtype == pl.Int64) == canonical

    def test_row_order_does_not_matter(self):
        backwards = b"\n".join([CSV.splitlines()[0], *CSV.splitlines()[:0:-1]])
        assert text(CSV).fingerprint == text(backwards).fingerprint


def _is_canonical(user: str) -> bool:
    try:
        return str(int(user)) == user and -(2**63) <= int(user) < 2**63
    except ValueError:
        return False


class TestTimes:
    @pytest.mark.parametrize(
        ("written", "seconds"),
        [
            ("978300760", 978300760),
            ("978300760000", 978300760),
            ("978300760000000", 978300760),
            ("978300760000000000", 978300760),
            ("978300760.9", 978300760),
            ("0", 0),
            ("-1", -1),
            ("2000-12-31", 978220800),
            ("2000-12-31T22:12:40", 978300760),
            ("2000-12-31 22:12:40", 978300760),
            ("2000-12-31T22:12", 978300720),
            ("2000-12-31T22:12:40.75", 978300760),
            ("2000-12-31T22:12:40Z", 978300760),
            ("2000-12-31 22:12:40 UTC", 978300760),
            ("2001-01-01T00:12:40+02:00", 978300760),
            ("2001-01-01 00:12+02:00", 978300720),
            ("20001231", 978220800),
        ],
    )
    def test_seconds_milliseconds_and_iso_dates(self, written, seconds):
        assert text(f"user,item,timestamp\n1,2,{written}\n").times.tolist() == [seconds]

    def test_the_unit_is_that_of_the_largest(self):
        assert text("user,item,timestamp\n1,2,5000\n1,3,978300760000\n").times.tolist() == [5, 978300760]

    def test_numbers_are_dates_only_if_every_one_is(self):
        assert text("user,item,timestamp\n1,2,20001231\n1,3,20001232\n").times.tolist() == [20001231, 20001232]

    def test_what_is_no_time_is_named(self):
        message = refusal("user,item,timestamp\n1,2,2000-12-31\n1,3,soon\n")
        assert "row 3, column 'timestamp': 'soon' is not a time" in message

    @pytest.mark.parametrize("bad", ["soon", "2001-01-01", "978300760!"])
    def test_one_bad_time_among_numbers_is_named_and_not_the_numbers(self, bad):
        lines = ["user,item,timestamp", *(f"{user},2,978300760" for user in range(300)), f"300,2,{bad}"]
        assert f"row 302, column 'timestamp': {bad!r} is not a time" in refusal("\n".join(lines))

    def test_one_number_among_dates_is_named(self):
        lines = ["user,item,date", "1,2,978300760", *(f"{user},3,2001-01-01" for user in range(300))]
        assert "row 2, column 'date': '978300760' is not a time" in refusal("\n".join(lines))

    @pytest.mark.parametrize(("most", "odd"), [(10**9, 10**12), (10**12, 10**9), (10**15, 10**12), (10**18, 10**9)])
    def test_one_time_in_another_unit_is_named(self, most, odd):
        lines = ["user,item,timestamp", "0,2,0", *(f"{user},2,{most + user}" for user in range(1, 300)), f"300,2,{odd}"]
        assert f"row 302, column 'timestamp': {odd} is a time in a different unit" in refusal("\n".join(lines))

    def test_a_clock_that_began_at_zero_is_one_unit(self):
        times = range(0, 2 * 10**11, 10**9)
        data = "user,item,timestamp\n" + "\n".join(f"{user},2,{time}" for user, time in enumerate(times))
        assert text(data).times.tolist() == [time // 1000 for time in times]

    @pytest.mark.parametrize("huge", ["99999999999999999999", "1e30", "-1e19"])
    def test_a_number_too_large_for_a_time_is_named(self, huge):
        assert "row 3, column 'timestamp'" in refusal(f"user,item,timestamp\n1,2,5\n1,3,{huge}\n")

    def test_times_can_be_left_aside(self):
        assert text("user,item,timestamp\n1,2,soon\n", time=False).times is None


class TestRepeatedPairs:
    DATA = "user,item,rating,time\na,x,1,30\nb,x,5,1\na,x,2,10\na,x,4,30\n"

    def test_they_are_refused_with_both_rows(self):
        message = refusal(self.DATA)
        assert "row 4: user 'a' rates item 'x' more than once (2 repeated ratings in all), already in row 2" in message
        assert "repeated='last'" in message

    @pytest.mark.parametrize(
        ("policy", "value", "time"),
        [("last", 4, 30), ("first", 2, 10), ("mean", 7 / 3, 30), ("max", 4, 30), ("sum", 7, 30)],
    )
    def test_each_policy_makes_one_of_them(self, policy, value, time):
        ratings = text(self.DATA, repeated=policy)
        assert rows(ratings) == [("a", "x", pytest.approx(value), time), ("b", "x", 5.0, 1)]
        assert ratings.history[0].effect["rows"] == 4
        assert ratings.history[0].notes == (KeptEvents(4, 2, policy, policy),)

    @pytest.mark.parametrize(("policy", "value"), [("last", 4), ("first", 1)])
    def test_without_times_the_order_of_rows_decides(self, policy, value):
        assert rows(text(self.DATA, repeated=policy, time=False))[0] == ("a", "x", value)

    def test_an_unknown_policy_is_refused(self):
        with pytest.raises(SettingError, match="did you mean 'last'"):
            text(CSV, repeated="latest")

    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-5, 5), st.integers(0, 3)), min_size=1))
    def test_policies_are_those_of_a_plain_loop(self, table):
        groups: dict = {}
        for user, item, value, time in table:
            groups.setdefault((user, item), []).append((time, value))
        by_time = {pair: sorted(group) for pair, group in groups.items()}
        expected = {
            "last": {pair: group[-1][1] for pair, group in by_time.items()},
            "first": {pair: group[0][1] for pair, group in by_time.items()},
            "mean": {pair: np.mean([value for _, value in group]) for pair, group in groups.items()},
            "max": {pair: max(value for _, value in group) for pair, group in groups.items()},
            "sum": {pair: sum(value for _, value in group) for pair, group in groups.items()},
            "count": {pair: len(group) for pair, group in groups.items()},
            "binary": dict.fromkeys(groups, 1),
        }
        for policy, values in expected.items():
            got = {row[:2]: row[2] for row in rows(read(table, repeated=policy))}
            assert got == pytest.approx(values, rel=1e-6)


class TestBadText:
    def test_a_missing_column(self):
        message = refusal("who,item,rating\n1,2,3\n")
        assert "no column is known to hold the users (columns: 'who', 'item', 'rating')" in message
        assert "user=NAME" in message
        assert "did you mean 'rating'" in refusal(CSV, rating="ratin")

    def test_text_in_a_rating(self):
        message = refusal("user,item,rating\n1,2,3\n1,3,good\n")
        assert "the open file, row 3, column 'rating': 'good' is not a number" in message

    def test_a_decimal_comma(self):
        assert "decimal point" in refusal("user;item;rating\n1;2;3,5\n")

    @pytest.mark.parametrize("value", ["nan", "NaN", "inf", "-Infinity"])
    def test_what_is_not_finite(self, value):
        message = refusal(f"user,item,rating\n1,2,3\n\n1,3,{value}\n")
        assert "row 4, column 'rating'" in message
        assert "not a finite number" in message

    def test_a_missing_rating(self):
        assert "row 2, column 'rating': the rating is missing" in refusal("user,item,rating\n1,2,\n")

    @pytest.mark.parametrize("empty", ["", '""', "  ", '" "'])
    def test_a_missing_id(self, empty):
        assert "row 3, column 'item': the item is missing" in refusal(f"user,item,rating\n1,2,3\n1,{empty},3\n")
        assert "row 3, column 'user': the user is missing" in refusal(f"user,item,rating\na,2,3\n{empty},2,3\n")

    def test_too_few_and_too_many_fields(self):
        assert "row 3: the row has 2 fields instead of 3" in refusal("user,item,rating\n1,2,3\n1,3\n")
        assert "row 3: the row has 4 fields instead of 3" in refusal("user,item,rating\n1,2,3\n1,3,4,5\n")
        assert "row 2: the row has 2 fields" in refusal("1::2::3\n1::3\n")
        assert "row 2: the row has 5 fields" in refusal("user,item,rating,title\n1,3,4,a,b\n")

    @pytest.mark.parametrize("separator", [",", "::"])
    @pytest.mark.parametrize("first", ["1,2", "1,2,3", "1,2,3,4,5", '1,2,"3'])
    def test_a_first_row_without_names_may_be_the_one_at_fault(self, separator, first):
        data = "\n".join([first, *(f"{user},3,4,5" for user in range(9))]).replace(",", separator)
        assert f"row 1: the row has {len(first.split(','))} fields instead of 4" in refusal(data, quote=None)

    @pytest.mark.parametrize("separator", [",", "::"])
    def test_too_few_fields_where_nobody_looks(self, separator):
        def data(*rows):
            return "\n".join(("user,item,rating,title,genre", *rows)).replace(",", separator)

        assert "row 3: the row has 3 fields instead of 5" in refusal(data("1,2,3,a,b", "1,3,4", "1,4,5,a,b"))
        assert "row 4: the row has 4 fields instead of 5" in refusal(data("1,2,3,a,", "", "1,3,4,a"))
        assert len(text(data("1,2,3,a,", "", "1,3,4,a,", "1,4,5,,"))) == 3

    @pytest.mark.parametrize("separator", [",", "\t", "::", "||", "=>"])
    @pytest.mark.parametrize("names", [True, False])
    def test_too_many_fields_where_nobody_looks(self, separator, names):
        def data(*rows):
            header = ["user,title,item,rating"] if names else []
            return "\n".join((*header, "1,a,2,3", *rows, "3,b,2,3")).replace(",", separator)

        options = {"separator": separator} if names else {"separator": separator, "item": 3, "rating": 4, "time": False}
        assert len(text(data("2,b,2,3"), **options)) == 3
        for row in ("2,Heat, The,2,3", "2,b,2,3,", "2,Heat,,2,"):
            fields = len(row.split(","))
            assert f"row {2 + names}: the row has {fields} fields instead of 4" in refusal(data(row), **options)
        # One field too many and one too few leave the total number of separators correct.
        assert f"row {2 + names}: the row has 5 fields" in refusal(data("2,Heat, The,2,3", "2,b,2"), **options)

    def test_too_many_fields_beside_quotes(self):
        data = 'user,title,item,rating\n1,"a, b",2,3\n2,Heat, The,2,3\n'
        assert "row 3: the row has 5 fields instead of 4" in refusal(data)

    def test_one_field_too_many_and_an_empty_one_beside_one_too_few(self):
        rows = ["1,a,2,3,x", "2,Heat, The,2,3,x", "3,a,2,3,", "4,a,2,3"]
        data = "\n".join(["user,title,item,rating,note", *rows])
        assert "row 3: the row has 6 fields instead of 5" in refusal(data)

    def test_too_few_fields_beside_quotes(self):
        assert "row 3: the row has 3 fields" in refusal('user,item,rating,title\n1,2,3,"a,b"\n1,3,4\n')
        assert len(text('user,item,rating,title\n1,2,3,"a,b"\n1,3,4,\n')) == 2

    def test_faults_beside_blank_lines_keep_their_line(self):
        assert "row 5, column 'user': the user is missing" in refusal("user,item,rating\n1,2,3\n\n\n,,\n4,5,6\n")
        assert "row 4: the row has 2 fields" in refusal("user,item,rating\n1,2,3\n\n4,5\n")

    def test_a_field_may_be_very_long(self):
        data = f'user,item,rating,review\n1,2,3,"{"x" * 200_000}"\n1,3,bad,"fine"\n'
        assert "row 3, column 'rating': 'bad'" in refusal(data)

    def test_a_row_of_separators_is_not_blank(self):
        assert "row 3, column 'user': the user is missing" in refusal("user,item,rating\n1,2,3\n,,\n")

    @pytest.mark.parametrize("data", [b"", b"\n\n", b"  \n"])
    def test_an_empty_file(self, data):
        assert "the file is empty" in refusal(data)

    def test_a_header_alone(self):
        assert "no ratings under the header" in refusal("user,item,rating\n")

    def test_one_field_a_row(self):
        assert "separator" in refusal("ann\nbob\n")

    @pytest.mark.parametrize("encoding", ["utf-9", "base64", "rot13", "a\0b"])
    def test_an_unknown_encoding(self, encoding):
        assert f"{encoding!r} is not known" in refusal(CSV, encoding=encoding)

    @pytest.mark.parametrize("data", [b"\x00\x01\x02,\x00\n", b"\x89PNG\r\n\x1a\n\x00\x00\x00"])
    def test_binary_data(self, data):
        assert "not text" in refusal(data)

    @pytest.mark.parametrize("data", ['{"user": 1, "item": 2}\n', '[{"user": 1, "item": 2}]'])
    def test_json(self, data):
        assert "the file is JSON; give CSV" in refusal(data)

    def test_a_separator_or_a_quote_that_cannot_be_one(self):
        for separator in ("", "a\nb", 5):
            assert f"the separator {separator!r} cannot divide fields" in refusal(CSV, separator=separator)
        for quote in ("", "ab"):
            assert f"the quote {quote!r} is not a single character" in refusal(CSV, quote=quote)

    def test_a_long_value_is_shown_in_part(self):
        message = refusal(f"user,item,rating\n1,2,{'x' * 100_000}\n")
        assert "row 2, column 'rating': 'xxxx" in message
        assert len(message) < 200

    def test_a_negative_count(self):
        message = refusal("user,artist,plays\n1,2,3\n1,3,-4\n", counts="to_ratings")
        assert "row 3, column 'plays': a play count of -4 is negative" in message

    def test_repeated_ratings_whose_sum_is_no_number(self):
        assert "too large" in refusal("user,item,rating\n1,2,1e308\n1,2,1e308\n", repeated="sum")

    def test_a_quote_that_does_not_close(self):
        assert "quote" in refusal('user,item,rating\n1,2,3\n1,"3,4\n1,4,5\n')

    @pytest.mark.parametrize("end", ['1,4,5\n"', '1,4,"', '1,4,"35', '"1","4","4.5'])
    def test_a_file_cut_short_inside_quotes(self, end):
        assert "quote" in refusal(f"user,item,rating\n1,2,3\n{end}")

    def test_a_quote_in_a_name_swallows_no_rows(self):
        assert len(text('user,item,rating,size (6")\n1,2,3,"a"\n1,3,4,"b"\n1,4,5,c\n')) == 3

    def test_carriage_returns_elsewhere_lose_no_rows(self):
        assert rows(text("user,item,rating\r\r\na,x,1\r\nb,x,2\r\n")) == [("a", "x", 1.0), ("b", "x", 2.0)]

    def test_lines_are_counted_as_an_editor_does(self):
        data = 'user,item,rating\n"a\nb",x,1\n\n"c\n\nd",x,1\ne,x,bad\n'
        assert "row 8, column 'rating'" in refusal(data)

    @pytest.mark.parametrize("separator", [",", "::"])
    def test_one_bad_row_in_very_many_is_named(self, separator, tmp_path):
        lines = [separator.join((str(n // 100), str(n % 100), "3")) for n in range(300_000)]
        lines[276_543] = separator.join(("2765", "43", "3!"))
        path = tmp_path / "big.csv"
        path.write_text("\n".join(lines))
        with pytest.raises(InputError, match=r"big\.csv, row 276544, column '3': '3!' is not a number"):
            read(path)

    def test_one_text_id_in_very_many_makes_the_column_text(self):
        lines = [f"{n // 100},{n % 100},3" for n in range(299_999)] + ["x12,1,3"]
        ratings = text("\n".join(lines))
        assert ratings.user_ids.dtype == pl.String
        assert "x12" in ratings.user_ids
        assert ratings.item_ids.dtype == pl.Int64


class TestFiles:
    @pytest.fixture
    def write(self, tmp_path):
        def write(name: str, data: bytes):
            path = tmp_path / name
            path.write_bytes(data)
            return path

        return write

    def test_the_name_is_that_of_the_file(self, write):
        assert read(write("my-ratings.csv", CSV)).name == "my-ratings"
        assert read(write("x.csv.gz", gzip.compress(CSV)), name="films").name == "films"

    @pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
    def test_compressed_text(self, write, pack):
        assert rows(read(write("ratings.csv.packed", pack(CSV)))) == ROWS

    def test_zstandard(self, write):
        zstandard = pytest.importorskip("zstandard")
        packed = zstandard.compress(CSV[:20]) + zstandard.compress(CSV[20:])
        path = write("ratings.csv.zst", packed)
        assert rows(read(path)) == ROWS
        with pytest.raises(InputError, match="Zstandard data cannot be unpacked"):
            read(write("short.csv.zst", packed[:-3]))

    def test_zstandard_without_its_library(self, write, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
        monkeypatch.setitem(__import__("sys").modules, "compression", None)
        with pytest.raises(CranfieldError, match=r"pip install 'cranfield\[zstd\]'"):
            read(write("ratings.csv.zst", b"\x28\xb5\x2f\xfd" + b"x" * 20))

    @pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
    def test_cut_short(self, write, pack):
        with pytest.raises(InputError, match=r"cannot be unpacked .*; the file is cut short or damaged"):
            read(write("short.csv.gz", pack(CSV * 100)[:-12]))

    def test_gzip_that_is_damaged_within(self, write):
        packed = bytearray(gzip.compress(CSV * 1000))
        packed[len(packed) // 2] ^= 0xFF
        with pytest.raises(InputError, match="gzip"):
            read(write("bad.csv.gz", bytes(packed)))

    def test_zip(self, tmp_path):
        path = tmp_path / "ml.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("ml/README.md", "read me")
            archive.writestr("ml/ratings.csv", CSV)
            archive.writestr("ml/movies.csv", "movieId,title\n1,Heat\n")
        assert rows(read(path)) == ROWS
        assert rows(read(path / "ml" / "ratings.csv")) == ROWS
        with pytest.raises(InputError, match=r"no ml/none\.csv in the archive"):
            read(path / "ml/none.csv")

    def test_a_zip_of_many_files_asks_which(self, tmp_path):
        path = tmp_path / "many.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.csv", CSV)
            archive.writestr("b.csv", CSV)
        with pytest.raises(InputError, match=r"name one of them, as in .*many\.zip/a\.csv"):
            read(path)

    def test_a_zip_cut_short(self, write, tmp_path):
        with zipfile.ZipFile(tmp_path / "whole.zip", "w") as archive:
            archive.writestr("a.csv", CSV)
        with pytest.raises(InputError, match="zip data cannot be unpacked"):
            read(write("short.zip", (tmp_path / "whole.zip").read_bytes()[:-30]))

    def test_parquet(self, tmp_path):
        pl.DataFrame(ROWS, schema=["user", "item", "rating"], orient="row").write_parquet(tmp_path / "r.parquet")
        assert rows(read(tmp_path / "r.parquet")) == ROWS
        pl.DataFrame({"a": [1], "b": [1]}).write_parquet(tmp_path / "r.parquet")
        with pytest.raises(InputError, match=r"r\.parquet: no column is known to hold the users"):
            read(tmp_path / "r.parquet")

    def test_parquet_cut_short(self, write, tmp_path):
        pl.DataFrame(ROWS, schema=["user", "item", "rating"], orient="row").write_parquet(tmp_path / "r.parquet")
        with pytest.raises(InputError, match=r"short\.parquet: the data cannot be read.*cut short"):
            read(write("short.parquet", (tmp_path / "r.parquet").read_bytes()[:-20]))
        with pytest.raises(InputError, match="not Parquet"):
            read(write("not.parquet", CSV))

    def test_parquet_names_the_data_row(self, tmp_path):
        pl.DataFrame({"user": [1, 2], "item": [1, 2], "rating": [1.0, float("nan")]}).write_parquet(
            tmp_path / "r.parquet"
        )
        with pytest.raises(InputError, match=r"r\.parquet, row 2, column 'rating': nan is not a finite number"):
            read(tmp_path / "r.parquet")

    def test_a_zip_whose_members_lie_nowhere(self):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("ratings.csv", CSV)
        content = bytearray(packed.getvalue())
        content[-6:-2] = (2**31).to_bytes(4, "little")
        assert "the zip data cannot be unpacked" in refusal(bytes(content))

    def test_a_zip_with_a_password_is_not_called_damaged(self):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("ratings.csv", CSV)
        content = bytearray(packed.getvalue())
        for place in (6, content.index(b"PK\x01\x02") + 8):
            content[place] |= 1
        message = refusal(bytes(content))
        assert "is encrypted" in message
        assert message.endswith("unpack it with another program first")

    @pytest.mark.parametrize("kind", ["csv", "gzip", "parquet"])
    def test_a_pipe_is_read_as_a_file_is(self, piped, kind):
        packed = io.BytesIO()
        pl.read_csv(CSV).write_parquet(packed)
        content = {"csv": CSV, "gzip": gzip.compress(CSV), "parquet": packed.getvalue()}[kind]
        assert rows(read(piped(content))) == rows(text(CSV))

    def test_no_file_and_a_folder(self, tmp_path):
        with pytest.raises(InputError, match="there is no such file"):
            read(tmp_path / "none.csv")
        (tmp_path / "a.csv").touch()
        with pytest.raises(InputError, match=r"this is a folder; name a file in it; it holds a\.csv"):
            read(tmp_path)


FRAME = pl.DataFrame({"user": ["ann", "bob", "bob"], "item": [10, 10, 20], "rating": [4.5, 3.0, 1.0]})


def _plain_strings():
    import pyarrow

    return pyarrow.schema([("user", pyarrow.string()), ("item", pyarrow.int64()), ("rating", pyarrow.float64())])


class TestFrames:
    def test_polars(self):
        assert rows(read(FRAME)) == rows(read(FRAME.lazy())) == ROWS

    def test_pandas(self):
        pytest.importorskip("pandas")
        assert rows(read(FRAME.to_pandas())) == ROWS

    def test_pandas_with_what_it_calls_missing(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"user": ["ann", None], "item": [1, 2], "rating": [1.0, 2.0]})
        with pytest.raises(InputError, match="row 2, column 'user': the user is missing"):
            read(frame)
        frame = pandas.DataFrame({"user": ["ann", "bob"], "item": [1, None], "rating": [1.0, 2.0]})
        with pytest.raises(InputError, match="row 2, column 'item': the item is missing"):
            read(frame)

    def test_pandas_text_of_any_storage(self):
        pandas = pytest.importorskip("pandas")
        for dtype in (object, "string[python]", "category"):
            frame = pandas.DataFrame({"user": pandas.Series(["b", "a"], dtype=dtype), "item": [1, 2]})
            assert rows(read(frame)) == [("a", 2, 1.0), ("b", 1, 1.0)]

    def test_pandas_objects_keep_their_type(self):
        pandas = pytest.importorskip("pandas")
        for ids in ([2, 1], [b"b", b"a"], [datetime.date(2020, 1, 2), datetime.date(2020, 1, 1)]):
            frame = pandas.DataFrame({"user": pandas.Series(ids, dtype=object), "item": [1, 2]})
            assert read(frame).frame()["user"].to_list() == sorted(ids)

    def test_pandas_without_names_is_taken_in_order(self):
        pandas = pytest.importorskip("pandas")
        assert rows(read(pandas.DataFrame([[1, 10, 5.0, 7], [2, 10, 4.0, 8]]))) == [(1, 10, 5.0, 7), (2, 10, 4.0, 8)]

    def test_pandas_columns_that_cannot_be_read_are_named(self):
        pandas = pytest.importorskip("pandas")
        with pytest.raises(InputError, match=r"column 'user': the column cannot be read .* one type"):
            read(pandas.DataFrame({"user": ["ann", 1], "item": [1, 2]}))
        with pytest.raises(InputError, match="two columns have the name 'user'; rename one"):
            read(pandas.DataFrame([[1, 2, 3]], columns=["user", "user", "item"]))

    def test_pandas_categories_and_dates(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(
            {
                "user": pandas.Categorical(["b", "a"]),
                "item": [1, 2],
                "date": pandas.to_datetime(["2000-12-31", "2001-01-01"]),
            }
        )
        assert rows(read(frame)) == [("a", 2, 1.0, 978307200), ("b", 1, 1.0, 978220800)]

    def test_pandas_columns_that_arrow_does_not_know(self):
        pandas = pytest.importorskip("pandas")
        for values in (np.array([4.5, 3.0], dtype=">f8"), pandas.arrays.SparseArray([4.5, 3.0])):
            assert rows(read(pandas.DataFrame({"user": [1, 2], "item": 1, "rating": values})))[0] == (1, 1, 4.5)
        with pytest.raises(InputError, match=r"row 1, column 'rating': \(1\+2j\) is not a number"):
            read(pandas.DataFrame({"user": [1, 2], "item": 1, "rating": [1 + 2j, 2]}))
        with pytest.raises(InputError, match=r"column 'user': .* cannot be an id"):
            read(pandas.DataFrame({"user": pandas.interval_range(0, 2), "item": 1}))
        with pytest.raises(InputError, match="a Series of pandas is one column"):
            read(pandas.Series([1, 2], name="user"))

    def test_pandas_categories_of_ratings_and_times(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"user": [1], "item": [2], "rating": ["4.5"], "date": ["2001-01-01"]})
        assert rows(read(frame.astype({"rating": "category", "date": "category"}))) == [(1, 2, 4.5, 978307200)]

    def test_uuids_become_text(self):
        one, two = uuid.UUID(int=1), uuid.UUID(int=2)
        for source in ([(two, 1), (one, 2)], {"user": [two, one], "item": [1, 2]}):
            assert rows(read(source)) == [(str(one), 2, 1.0), (str(two), 1, 1.0)]
        with pytest.raises(InputError, match=r"row 2, column '1': .* cannot be an id"):
            read([(one, 1), (object, 2)])

    def test_pandas_uuids_become_text(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"user": [uuid.UUID(int=2), uuid.UUID(int=1)], "item": [1, 2]})
        assert read(frame).user_ids.all.to_list() == [str(uuid.UUID(int=1)), str(uuid.UUID(int=2))]

    def test_dates_of_numpy_in_any_unit(self):
        for unit in ("D", "h", "s", "ns"):
            times = np.array(["2001-01-01"], dtype=f"M8[{unit}]")
            assert read({"user": [1], "item": [2], "time": times}).times.tolist() == [978307200]

    def test_pyarrow(self):
        pytest.importorskip("pyarrow")
        assert rows(read(FRAME.to_arrow())) == ROWS

    def test_duckdb(self):
        duckdb = pytest.importorskip("duckdb")
        connection = duckdb.connect()
        connection.register("ratings", FRAME.to_arrow())
        assert rows(read(connection.sql("select * from ratings"))) == ROWS

    def test_the_interchange_protocol(self):
        pytest.importorskip("pyarrow")

        class Frame:
            def __dataframe__(self, **options):
                return FRAME.to_arrow().cast(_plain_strings()).__dataframe__(**options)

        assert rows(read(Frame())) == ROWS

    def test_a_dictionary_and_a_list(self):
        assert rows(read(FRAME.to_dict(as_series=False))) == ROWS
        assert rows(read(FRAME.rows())) == ROWS
        assert rows(read(np.array([[1, 10, 5], [2, 10, 4]]))) == [(1, 10, 5.0), (2, 10, 4.0)]

    def test_a_list_of_dictionaries_names_its_columns(self):
        assert rows(read([{"item": 10, "user": "ann"}, {"item": 20, "user": "bob"}])) == [
            ("ann", 10, 1.0),
            ("bob", 20, 1.0),
        ]

    @pytest.mark.parametrize("source", [["train.csv", "test.csv"], ("ann", "x", 5), [1, 2]])
    def test_a_list_of_something_else_is_refused(self, source):
        with pytest.raises(InputError, match=f"{source[0]!r} is not a rating.*give a path"):
            read(source)

    @pytest.mark.parametrize(
        "ids",
        [
            pl.Series([3, 1], dtype=pl.Int8),
            pl.Series([2**64 - 1, 2**64 - 2], dtype=pl.UInt64),
            pl.Series([3, 1], dtype=pl.Int128),
            pl.Series(["007", "7"]),
            pl.Series([datetime.date(2020, 1, 2), datetime.date(2020, 1, 1)]),
            pl.Series([2.5, -1.5]),
            pl.Series([True, False]),
            pl.Series([b"b", b"a"]),
            pl.Series([b"\xff", b"\x80"]),
            pl.Series([datetime.timedelta(2), datetime.timedelta(1)]),
        ],
        ids=lambda ids: str(ids.dtype),
    )
    def test_ids_of_any_type_come_back_as_they_came(self, ids):
        ratings = read(pl.DataFrame({"user": ids, "item": [1, 2]}))
        assert ratings.fingerprint
        assert sorted(ratings.user_ids.string_order.tolist()) == [0, 1]
        back = ratings.frame()
        assert back["user"].dtype == ids.dtype
        assert dict(zip(back["item"], back["user"])) == {1: ids[0], 2: ids[1]}

    def test_missing_ids(self):
        for gone in (None, float("nan")):
            with pytest.raises(InputError, match="the DataFrame, row 2, column 'user': the user is missing"):
                read(pl.DataFrame({"user": [1.0, gone], "item": [1, 2]}))
        with pytest.raises(InputError, match="row 1, column 'item': the item is missing"):
            read(pl.DataFrame({"user": [1, 2], "item": ["", "x"]}))

    def test_floats_that_may_stand_for_several_whole_numbers_are_no_ids(self):
        rows = {"user": [1.0, 2.0**53, 2.0**53 + 2], "item": [1, 2, 3]}
        problem = r"row 2, column 'user': 9007199254740992.0 is a float of 2\^53 or more"
        for source in (rows, pl.DataFrame(rows), pd.DataFrame(rows), list(zip(*rows.values()))):
            with pytest.raises(InputError, match=problem if not isinstance(source, list) else "row 2, column '1'"):
                read(source)
        with pytest.raises(InputError, match=r"row 2: 9007199254740992.0 is a float of 2\^53 or more"):
            Ratings.of(*rows.values())
        with pytest.raises(InputError, match=r"is a float of 2\^53 or more"):
            read_test({"ann": {2.0**53: 1, 7.0: 2}})
        assert read(io.BytesIO(b"user,item\n9007199254740993,9\n")).user_ids.all.to_list() == [2**53 + 1]

    def test_ratings_of_any_number_type(self):
        for dtype in (pl.Int8, pl.UInt32, pl.Int64, pl.Float32, pl.Decimal(10, 2), pl.String, pl.Boolean):
            frame = pl.DataFrame({"user": [1], "item": [1], "rating": pl.Series([1]).cast(dtype)})
            assert read(frame).values.tolist() == [1.0]

    def test_ratings_that_float32_would_change_stay_float64(self):
        assert read([(1, 1, 0.1)]).values.tolist() == [0.1]
        assert read([(1, 1, 2**24 + 1)]).values.tolist() == [2**24 + 1]

    def test_huge_ratings_are_finite(self):
        assert read([(1, 1, 1e308), (1, 2, 1e308)]).values.tolist() == [1e308, 1e308]

    def test_what_is_no_rating_or_time(self):
        with pytest.raises(InputError, match="column 'rating'"):
            read(pl.DataFrame({"user": [1], "item": [1], "rating": [datetime.date(2020, 1, 1)]}))
        with pytest.raises(InputError, match="column 'time'"):
            read(pl.DataFrame({"user": [1], "item": [1], "time": [[1]]}))
        with pytest.raises(InputError, match="column 'item'"):
            read(pl.DataFrame({"user": [1], "item": [[1]]}))
        with pytest.raises(InputError, match="row 2, column 'time': the time is missing"):
            read(pl.DataFrame({"user": [1, 2], "item": [1, 1], "time": [1, None]}))

    def test_times_of_any_type(self):
        moment = datetime.datetime(2000, 12, 31, 22, 12, 40)
        for time in (
            pl.Series([moment]),
            pl.Series([moment]).cast(pl.Datetime("ms")),
            pl.Series([moment]).dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Madrid"),
            pl.Series([978300760.5]),
            pl.Series([978300760], dtype=pl.UInt32),
            pl.Series(["2000-12-31T22:12:40"]),
        ):
            assert read(pl.DataFrame({"user": [1], "item": [1], "time": time})).times.tolist() == [978300760]

    def test_no_rows_and_no_frame(self):
        with pytest.raises(InputError, match="no ratings"):
            read(FRAME.head(0))
        for nothing in ([], {}, pl.DataFrame()):
            with pytest.raises(InputError, match="no ratings"):
                read(nothing)
        with pytest.raises(InputError, match="cannot be read"):
            read(object())
        with pytest.raises(InputError, match=r"a path, a dataframe"):
            read(3)


class TestRealData:
    def test_movielens_1m(self, real_data):
        ratings = read(real_data("ml-1m.parquet"))
        assert (ratings.n_users, ratings.n_items, len(ratings)) == (6040, 3706, 1000209)

    def test_every_way_in_gives_the_same_ratings(self, real_data, tmp_path):
        frame = pl.read_parquet(real_data("ml-100k.parquet"))
        expected = read(frame)
        frame.write_csv(tmp_path / "r.csv")
        frame.sample(fraction=1, shuffle=True, seed=1).write_csv(tmp_path / "r.tsv", separator="\t")
        dat = tmp_path / "r.dat"
        dat.write_text("\n".join("::".join(map(str, row)) for row in frame.iter_rows()))
        assert {read(path).fingerprint for path in (tmp_path / "r.csv", tmp_path / "r.tsv", dat)} == {
            expected.fingerprint
        }

    def test_ids_with_leading_spaces_and_zeros(self, real_data, tmp_path):
        frame = pl.read_parquet(real_data("book-crossing-explicit.parquet")).head(20000).unique(["user", "item"])
        frame.write_csv(tmp_path / "r.csv")
        assert read(tmp_path / "r.csv").fingerprint == read(frame).fingerprint


# Ratings written to a file come back as they were, or are refused in one line


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "CSV"])
@pytest.mark.parametrize("ids", [["a,b", 'c"d', "e\tf\n"], ["007", "7", " 7"], [3, -1, 2]])
def test_what_is_written_is_read_back(tmp_path, ending, ids):
    ratings = Ratings.of(ids, ["x", "y", "x"], [4.5, 0.1, 3], [978300760, 0, 5])
    assert read(write(ratings, tmp_path / f"r.{ending}")).fingerprint == ratings.fingerprint


def test_ids_that_are_bytes_need_parquet_unless_they_are_text(tmp_path):
    assert read(write(Ratings.of([b"ann"], [1]), tmp_path / "r.csv")).user_ids.all.to_list() == ["ann"]
    ratings = Ratings.of([b"\xff"], [1])
    with pytest.raises(SettingError, match=r"r\.csv cannot hold the column 'user' .*name the file \.parquet"):
        write(ratings, tmp_path / "r.csv")
    assert read(write(ratings, tmp_path / "r.parquet")).user_ids.all.to_list() == [b"\xff"]


def test_an_ending_that_names_no_format(tmp_path):
    with pytest.raises(SettingError, match=r"name it \.parquet, \.csv or \.tsv"):
        write(Ratings.of([1], [1]), tmp_path / "r.txt")
