"""What cranfield wrote carries a checksum, and whoever reads it is told of a change."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield import CranfieldError, CranfieldWarning, Ratings, splits
from cranfield._files import record_path, write_text
from cranfield._record import check_unchanged, is_as_written, made_of, record
from cranfield.rankings import read_run, read_test

RATINGS = Ratings.of([u for u in range(6) for _ in range(5)], [*range(5)] * 6, [k % 5 + 1 for k in range(30)])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A split, as Parquet and as CSV."""
    home = tmp_path_factory.mktemp("written")
    for form in ("parquet", "csv"):
        splits.write(splits.random(RATINGS, seed=1), home / form, format=form)
    return home


def _flip(path, share, bit):
    data = bytearray(path.read_bytes())
    place = int(share * (len(data) - 1))
    data[place] ^= 1 << bit
    path.write_bytes(data)


@given(share=st.floats(0, 1), bit=st.integers(0, 7))
def test_a_flipped_bit_anywhere_in_a_parquet_file_is_an_error_for_every_reader(written, share, bit):
    path = written / "parquet" / "test.parquet"
    before = path.read_bytes()
    _flip(path, share, bit)
    try:
        for reader in (cf.read, read_run, read_test, lambda path: read_test(path, format="ratings")):
            with pytest.raises(CranfieldError, match=r"test\.parquet: the file has changed since cranfield wrote it"):
                reader(path)
    finally:
        path.write_bytes(before)
    assert len(cf.read(path)) == len(splits.random(RATINGS, seed=1).test)


@given(share=st.floats(0, 1), bit=st.integers(0, 7))
def test_a_flipped_bit_anywhere_in_a_text_file_is_noted_by_every_reader(written, share, bit):
    path = written / "csv" / "test.csv"
    before = path.read_bytes()
    _flip(path, share, bit)
    try:
        for reader in (cf.read, read_run, read_test):
            # The file may now contain anything.
            with (
                pytest.warns(CranfieldWarning, match=r"test\.csv has changed since it was written"),
                contextlib.suppress(CranfieldError),
            ):
                reader(path)
    finally:
        path.write_bytes(before)
    cf.read(path)


@given(share=st.floats(0, 1), bit=st.integers(0, 7))
def test_a_flipped_bit_in_a_record_never_makes_a_changed_file_good(tmp_path_factory, share, bit):
    path = tmp_path_factory.mktemp("record") / "a.parquet"
    path.write_bytes(b"PAR1 and so on")
    _flip(record(path, {"seed": 1}), share, bit)
    path.write_bytes(b"PAR1 and other")
    assert not is_as_written(path)
    with pytest.raises(CranfieldError, match="has changed since"):
        check_unchanged(path)


def test_a_file_that_is_as_written_or_has_no_record_is_read(written, tmp_path):
    (tmp_path / "copy.parquet").write_bytes((written / "parquet" / "test.parquet").read_bytes())
    assert cf.read(tmp_path / "copy.parquet").fingerprint == cf.read(written / "parquet" / "test.parquet").fingerprint


def test_what_cranfield_writes_over_a_file_makes_its_old_record_go(tmp_path):
    path = tmp_path / "a.csv"
    write_text(path, "user,item\n1,2\n")
    record(path, {"seed": 1})
    assert made_of(path) == {"seed": 1}
    write_text(path, "user,item\n1,3\n")
    assert not record_path(path).exists()
    assert made_of(path) is None
    assert len(cf.read(path)) == 1


def test_the_record_says_what_it_is_of(tmp_path):
    path = tmp_path / "a.csv"
    write_text(path, "user,item\n1,2\n")
    told = json.loads(record(path).read_text())
    assert (told["cranfield"], told["file"]) == (cf.__version__, "a.csv")
    path.rename(tmp_path / "b.csv")
    record_path(path).rename(record_path(tmp_path / "b.csv"))
    assert not is_as_written(tmp_path / "b.csv")


@pytest.mark.parametrize("text", ["[]", "1", "{", '{"file": "a.csv"}', "[" * 100_000])
def test_a_record_that_holds_something_else_is_no_traceback(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text("user,item\n1,2\n")
    record(path).write_text(text)
    with pytest.warns(CranfieldWarning, match="has changed since"):
        check_unchanged(path)


@pytest.mark.parametrize("length", [200, 249, 250, 251, 255])
def test_a_name_of_any_length_that_the_system_takes_is_written_and_recorded(tmp_path, length):
    path = tmp_path / ("n" * (length - 4) + ".csv")
    write_text(path, "user,item\n1,2\n")
    record(path, {"seed": 1})
    assert is_as_written(path)
    write_text(path, "user,item\n1,3\n")
    assert made_of(path) is None


def test_a_link_to_a_file_that_has_changed_is_not_believed_either(tmp_path):
    splits.write(splits.random(RATINGS, seed=1), tmp_path / "parts")
    link = tmp_path / "link.parquet"
    link.symlink_to(tmp_path / "parts" / "test.parquet")
    assert len(cf.read(link))
    _flip(tmp_path / "parts" / "test.parquet", 0.5, 3)
    with pytest.raises(CranfieldError, match="has changed since cranfield wrote it"):
        cf.read(link)
