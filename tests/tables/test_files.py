"""A compressed file is unpacked to so many bytes and no more."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from pathlib import Path

import polars as pl
import pytest
import zstandard

import cranfield as cf
from cranfield import InputError, SettingError
from cranfield.tables.frames import _partition
from cranfield.tables.spark import _retrying

TEXT = b"user,item,rating\n" + b"".join(b"%d,%d,%d\n" % (u, i, 1 + i % 5) for u in range(40) for i in range(20))


def _zipped(content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ratings.csv", content)
    return buffer.getvalue()


PACKED = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.compress,
    "zip": _zipped,
    "gzip in zip": lambda content: _zipped(gzip.compress(content)),
}
several = pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED)


@several
def test_what_unpacks_to_more_than_the_limit_is_refused_with_the_way_to_raise_it(tmp_path, pack):
    path = tmp_path / "ratings"
    path.write_bytes(pack(TEXT))
    cf.settings.unpack_limit = len(TEXT) - 1
    for read in (cf.read, cf.read_run, cf.read_test):
        with pytest.raises(InputError, match=rf"more than {len(TEXT) - 1:,} bytes; .*unpack_limit"):
            read(path)
    cf.settings.unpack_limit = len(TEXT)
    assert len(cf.read(path)) == 800


@several
def test_a_small_file_does_not_unpack_to_a_large_one_unless_that_is_allowed(tmp_path, pack, monkeypatch):
    monkeypatch.setattr("cranfield.tables.files._ALWAYS", 1 << 16)
    path = tmp_path / "ratings"
    path.write_bytes(pack(b"user,item,rating\n1,2,3" + b"0" * (1 << 20)))
    with pytest.raises(InputError, match="unpacks to more than"):
        cf.read(path)
    cf.settings.unpack_limit = 1 << 21
    with pytest.raises(InputError, match="not a finite number"):
        cf.read(path)


def test_by_default_64_mib_are_unpacked_whatever_the_file_and_100_times_its_size(tmp_path):
    path = tmp_path / "ratings.csv.gz"
    path.write_bytes(gzip.compress(b"1,2\n" * (1 << 24) + b"1,2\n", 1))
    assert path.stat().st_size * 100 < 1 << 26
    with pytest.raises(InputError, match="more than 67,108,864 bytes"):
        cf.read(path)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_streams_that_follow_each_other_are_one_text(tmp_path, pack):
    path = tmp_path / "ratings"
    path.write_bytes(pack(TEXT[:5000]) + pack(TEXT[5000:]))
    assert len(cf.read(path)) == 800
    cf.settings.unpack_limit = 5001
    with pytest.raises(InputError, match="more than 5,001 bytes"):
        cf.read(path)


@pytest.mark.parametrize("limit", [0, -1, 1.5, "4GiB"])
def test_a_limit_that_is_not_a_number_of_bytes_is_refused(tmp_path, limit):
    path = tmp_path / "ratings.csv.gz"
    path.write_bytes(gzip.compress(TEXT))
    cf.settings.unpack_limit = limit
    with pytest.raises(SettingError, match="unpack_limit"):
        cf.read(path)


@pytest.mark.parametrize("read", [cf.read, cf.read_run, cf.read_test])
def test_a_small_parquet_file_with_very_many_rows_is_refused_unless_that_is_allowed(tmp_path, read):
    path = tmp_path / "ratings.parquet"
    pl.DataFrame({"user": range(40_000), "item": range(40_000)}).write_parquet(path)
    assert read(path) is not None
    cf.settings.unpack_limit = 500_000
    with pytest.raises(InputError, match="unpacks to more than 500,000 bytes"):
        read(path)


def test_the_folders_above_a_file_name_its_partition():
    assert _partition(Path("system=a%20b/day=1/part-0.parquet")) == {"system": "a b", "day": "1"}


def test_a_task_is_tried_again_on_this_machine():
    assert [_retrying(master) for master in ("local[2]", "local", "yarn")] == ["local[2,4]", "local[1,4]", "yarn"]
