"""Archives cannot write outside of their folder, link anywhere or fill the disk."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import stat
import tarfile
import zipfile

import pytest

from cranfield import InputError
from cranfield.datasets.download import is_archive, unpack


def _tar(path, members, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            else:
                for key, value in content.items():
                    setattr(member, key, value)
                archive.addfile(member)
    return path


def _zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def run(tmp_path):
    def run(source, wanted=("*",), limit=1_000_000):
        folder = tmp_path / "out"
        folder.mkdir()
        unpack(source, folder, wanted=wanted, limit=limit)
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    return run


def test_only_the_wanted_members_are_unpacked(run, tmp_path):
    members = {"a/ratings.dat": b"1", "a/movies.dat": b"2", "a/b/ratings.dat": b"3"}
    assert run(_zip(tmp_path / "x.zip", members), ["ratings.dat"]) == {"a/ratings.dat": b"1", "a/b/ratings.dat": b"3"}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_is_known_by_its_content(run, tmp_path, mode):
    source = _tar(tmp_path / "whatever", {"a/x.txt": b"one", "a/y.txt": b"two"}, mode)
    assert is_archive(source)
    assert run(source, ["x.*"]) == {"a/x.txt": b"one"}


@pytest.mark.parametrize(("module", "suffix"), [(gzip, ".gz"), (bz2, ".bz2"), (lzma, ".xz")])
def test_a_single_compressed_file_loses_its_ending(run, tmp_path, module, suffix):
    source = tmp_path / f"data.json{suffix}"
    source.write_bytes(module.compress(b"{}\n"))
    assert run(source, ["other"]) == {"data.json": b"{}\n"}


def test_plain_text_is_no_archive(tmp_path):
    (tmp_path / "r.csv").write_text("1,2,3\n")
    assert not is_archive(tmp_path / "r.csv")


def test_an_archive_in_an_archive_is_unpacked_too(run, tmp_path):
    inner = _tar(tmp_path / "inner", {"set/mv_1.txt": b"1:\n"}, "w").read_bytes()
    source = _tar(tmp_path / "outer", {"download/set.tar": inner, "download/readme": b"hi"})
    assert run(source, ["mv_*.txt", "set.tar"]) == {"download/set.tar.unpacked/set/mv_1.txt": b"1:\n"}


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/tmp/evil", "C:/evil", "..\\evil", "a\\..\\..\\evil"])
@pytest.mark.parametrize("make", [_tar, _zip])
def test_a_path_outside_of_the_folder_is_refused(run, tmp_path, make, name):
    source = make(tmp_path / "x", {"fine": b"1", name: b"evil"})
    with pytest.raises(InputError, match=r"refused: its member .* would be written outside"):
        run(source)
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize(
    "member",
    [
        {"type": tarfile.SYMTYPE, "linkname": "/etc/hostname"},
        {"type": tarfile.LNKTYPE, "linkname": "../x"},
        {"type": tarfile.CHRTYPE},
        {"type": tarfile.FIFOTYPE},
    ],
)
def test_links_and_devices_in_a_tar_are_refused(run, tmp_path, member):
    with pytest.raises(InputError, match="is a link or a device"):
        run(_tar(tmp_path / "x", {"link": member}))


def test_a_link_in_a_zip_is_refused(run, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/hostname")
    with pytest.raises(InputError, match="is a link or a device"):
        run(tmp_path / "x.zip")


@pytest.mark.parametrize("wanted", ["ratings.dat", "other"])
def test_a_tar_bomb_is_stopped_whether_its_content_is_wanted_or_not(run, tmp_path, wanted):
    source = _tar(tmp_path / "x", {"ratings.dat": bytes(20_000_000)})
    assert source.stat().st_size < 100_000
    with pytest.raises(InputError, match="more than the 1,000,000 bytes"):
        run(source, [wanted])


def test_a_gzip_bomb_is_stopped(run, tmp_path):
    (tmp_path / "x.gz").write_bytes(gzip.compress(bytes(20_000_000)))
    with pytest.raises(InputError, match="more than the 1,000,000 bytes"):
        run(tmp_path / "x.gz")
    assert sum(path.stat().st_size for path in (tmp_path / "out").rglob("*")) < 2_000_000


def test_the_sizes_of_all_members_add_up(run, tmp_path):
    with pytest.raises(InputError, match="more than the 1,000,000 bytes"):
        run(_zip(tmp_path / "x.zip", {f"{number}.dat": bytes(200_000) for number in range(10)}))


def test_a_zip_that_lies_about_its_size_is_stopped(run, tmp_path):
    source = _zip(tmp_path / "x.zip", {"ratings.dat": bytes(20_000_000)})
    lie = source.read_bytes().replace((20_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    source.write_bytes(lie)
    with pytest.raises(InputError):
        run(source)
    assert sum(path.stat().st_size for path in (tmp_path / "out").rglob("*")) < 2_000_000


@pytest.mark.parametrize("keep", [100, -200])
def test_a_truncated_tar_is_called_damaged(run, tmp_path, keep):
    source = _tar(tmp_path / "x", {"ratings.dat": random.Random(0).randbytes(10_000)})
    source.write_bytes(source.read_bytes()[:keep])
    with pytest.raises(InputError, match="damaged"):
        run(source)


def _overwrite(path, start, stop, content):
    whole = bytearray(path.read_bytes())
    whole[start:stop] = content
    path.write_bytes(whole)


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_a_tar_with_bad_bytes_is_called_damaged(run, tmp_path, mode):
    source = _tar(tmp_path / "x", {"ratings.dat": random.Random(0).randbytes(10_000)}, mode)
    _overwrite(source, 60, 160, bytes(100))
    with pytest.raises(InputError, match="damaged"):
        run(source)


def test_a_zip_whose_members_lie_nowhere_is_called_damaged(run, tmp_path):
    source = _zip(tmp_path / "x", {"ratings.dat": b"1::2::3"})
    _overwrite(source, -6, -2, (2**31).to_bytes(4, "little"))
    with pytest.raises(InputError, match="damaged"):
        run(source)


@pytest.mark.parametrize("keep", [30, 80, -1])
def test_a_truncated_zip_is_called_damaged(run, tmp_path, keep):
    path = _zip(tmp_path / "x.zip", {"ratings.dat": random.Random(0).randbytes(100)})
    path.write_bytes(path.read_bytes()[:keep])
    assert is_archive(path)
    with pytest.raises(InputError, match="damaged"):
        run(path)


def test_a_zip_with_another_content_than_it_says_is_called_damaged(run, tmp_path):
    source = _zip(tmp_path / "x", {"ratings.dat": bytes(range(256)) * 400})
    _overwrite(source, 60, 160, bytes(100))
    with pytest.raises(InputError, match="damaged"):
        run(source)


def test_a_member_twice_in_an_archive_is_refused(run, tmp_path):
    with tarfile.open(tmp_path / "x", "w") as archive:
        for content in (b"1", b"2"):
            member = tarfile.TarInfo("ratings.dat")
            member.size = 1
            archive.addfile(member, io.BytesIO(content))
    with pytest.raises(InputError, match="twice"):
        run(tmp_path / "x")
