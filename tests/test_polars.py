"""Polars' files: the one that is named is read and written, and a damaged one is one line."""

from __future__ import annotations

import contextlib
import io
import os
import threading

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield import CranfieldError
from cranfield._polars import panics_unheard, read_parquet, scan_parquet, write_csv, write_parquet
from cranfield.rankings import read_run, read_test

NAMES = ["fold[1]", "x?", "a*", "{a,b}", "~", "~nobody", "#1", "a b", "a\nb", "%20", "s3:x", "byte\udcff"]


@pytest.mark.parametrize("name", NAMES)
def test_the_file_that_is_named_is_read_and_written(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for other in ("fold1", "x1", "ab", "a", "b"):
        write_parquet(pl.DataFrame({"name": [other]}), tmp_path / f"{other}.parquet")
    path = (tmp_path / f"{name}.parquet").relative_to(tmp_path)
    write_parquet(pl.DataFrame({"name": ["own"]}), path)
    assert (tmp_path / path).is_file()
    assert read_parquet(path)["name"].to_list() == ["own"]
    assert scan_parquet(path).collect()["name"].to_list() == ["own"]
    assert scan_parquet([path, path]).collect()["name"].to_list() == ["own"] * 2
    write_csv(pl.DataFrame({"name": ["own"]}), path)
    assert (tmp_path / path).read_text() == "name\nown\n"


def test_a_missing_file_and_an_address_are_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("none.parquet", "*.parquet", "s3://bucket/a.parquet", "hf://datasets/a/b.parquet"):
        with pytest.raises(CranfieldError, match="cannot be read"):
            read_parquet(name)
        for reader in (cf.read, read_run, read_test):
            with pytest.raises(CranfieldError, match="there is no such file"):
                reader(name)


def _whole() -> bytes:
    buffer = io.BytesIO()
    frame = pl.DataFrame({"user": [k // 5 for k in range(50)], "item": [f"i{k % 5}" for k in range(50)]})
    write_parquet(frame.with_columns(rating=pl.lit(2.5), rank=pl.col("user") % 5 + 1), buffer)
    return buffer.getvalue()


WHOLE = _whole()


@given(cut=st.integers(5, len(WHOLE) - 1))
def test_a_parquet_file_that_is_cut_is_one_line_that_names_it(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("cut") / "cut.parquet"
    path.write_bytes(WHOLE[:cut])
    for reader in (read_parquet, cf.read, read_run, read_test, lambda path: read_test(path, format="ratings")):
        with pytest.raises(CranfieldError, match=r"cut\.parquet: .*cannot be read") as caught:
            reader(path)
        assert "\n" not in str(caught.value)


@given(place=st.integers(4, len(WHOLE) - 1), bit=st.integers(0, 7))
def test_a_parquet_file_with_a_flipped_bit_is_read_or_is_an_error_of_ours(tmp_path_factory, place, bit):
    path = tmp_path_factory.mktemp("flip") / "flip.parquet"
    data = bytearray(WHOLE)
    data[place] ^= 1 << bit
    path.write_bytes(data)
    for reader in (read_parquet, cf.read, read_run, read_test):
        with contextlib.suppress(CranfieldError):
            reader(path)


def _panic():
    os.write(2, b"thread panicked at range.rs\n")
    raise pl.exceptions.PanicException("range end index")


def test_what_rust_writes_of_a_panic_is_dropped(capfd):
    with pytest.raises(pl.exceptions.PanicException), panics_unheard():
        _panic()
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"


def test_without_a_panic_what_was_written_comes_out(capfd):
    with panics_unheard():
        os.write(2, b"a warning\n")
        assert capfd.readouterr().err == ""
    assert capfd.readouterr().err == "a warning\n"


def test_another_error_loses_nothing(capfd):
    def fail():
        os.write(2, b"a warning\n")
        raise KeyError

    with pytest.raises(KeyError), panics_unheard():
        fail()
    assert capfd.readouterr().err == "a warning\n"


def test_threads_that_read_at_once_leave_the_standard_error_as_it_was(capfd):
    def read():
        for _ in range(50):
            with panics_unheard():
                pass

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"
