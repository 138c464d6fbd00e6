"""The bytes of a file, taken out of gzip, Zstandard, bzip2, xz or a zip archive by what they begin with."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from cranfield._errors import InputError, MissingExtraError

_GZIP, _ZSTD, _ZIP, _BZIP2, _XZ = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"BZh", b"\xfd7zXZ\x00"
# What the libraries raise on bytes that are not what they should be; zipfile lets slip what it stumbles over.
_DAMAGE = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, struct.error)
_FETCH_AGAIN = "the file is cut short or damaged: fetch or write it again"
_NOT_DATA = {".md", ".html", ".pdf", ".ds_store"}


def unpacked(data: bytes, label: str, member: str | None = None) -> tuple[bytes, str]:
    """Return what is inside compressed ``data``, and what to call it; plain data are returned as they are.

    Parameters
    ----------
    data
        The content of the file.
    label
        The name of the file, for messages.
    member
        Which file of a zip archive; by default the one whose name speaks of ratings, or the only one.
    """
    if data.startswith(_ZIP):
        data, label = _from_zip(data, label, member)
        return unpacked(data, label) if not data.startswith(_ZIP) else (data, label)
    if data.startswith(_ZSTD):
        return _from_zstd(data, label), label
    for magic, kind, decompress in (
        (_GZIP, "gzip", gzip.decompress),
        (_BZIP2, "bzip2", bz2.decompress),
        (_XZ, "xz", lzma.decompress),
    ):
        if data.startswith(magic):
            try:
                return decompress(data), label
            except _DAMAGE as error:
                raise _damaged(kind, label, error) from error
    return data, label


def zip_and_member(path: Path) -> tuple[Path, str] | None:
    """Split ``archive.zip/folder/file.csv`` into the archive and the file in it, if that is what ``path`` is."""
    for archive in path.parents:
        if archive.is_file():
            return archive, path.relative_to(archive).as_posix()
    return None


def _from_zip(data: bytes, label: str, member: str | None) -> tuple[bytes, str]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            chosen = member or _chosen(archive.namelist(), label)
            if chosen not in archive.namelist():
                raise InputError(
                    f"there is no {chosen} in the archive",
                    source=label,
                    remedy=f"it holds {_listed(archive.namelist())}",
                )
            return archive.read(chosen), f"{label}/{chosen}"
    except _DAMAGE as error:
        raise _damaged("zip", label, error) from error
    except RuntimeError as error:  # so zipfile calls a password, and a compression that it does not know
        problem = f"the zip data cannot be unpacked ({error})"
        raise InputError(problem, source=label, remedy="unpack it with another program first") from error


def _chosen(names: list[str], label: str) -> str:
    files = [
        name
        for name in names
        if not name.endswith("/") and "__MACOSX" not in name and PurePosixPath(name).suffix.lower() not in _NOT_DATA
    ]
    spoken = [name for name in files if "rating" in PurePosixPath(name).name.lower()]
    for found in (files, spoken):
        if len(found) == 1:
            return found[0]
    if not files:
        raise InputError("the archive holds no file of ratings", source=label, remedy="check that it is the right one")
    raise InputError(
        "the archive holds several files",
        source=label,
        remedy=f"name one of them, as in {label}/{files[0]}; it holds {_listed(files)}",
    )


def _from_zstd(data: bytes, label: str) -> bytes:
    try:
        from compression import zstd  # Python 3.14 and newer
    except ImportError:
        return _from_zstandard(data, label)
    try:
        plain: bytes = zstd.decompress(data)
        return plain
    except (zstd.ZstdError, EOFError) as error:
        raise _damaged("Zstandard", label, error) from error


def _from_zstandard(data: bytes, label: str) -> bytes:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError(f"{label}: Zstandard-compressed text", library="zstandard", extra="zstd") from error
    parts = []
    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        try:
            parts.append(frame.decompress(data))
        except zstandard.ZstdError as error:
            raise _damaged("Zstandard", label, error) from error
        if not frame.eof:
            raise _damaged("Zstandard", label, EOFError("it ends too early"))
        data = frame.unused_data
    return b"".join(parts)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _damaged(kind: str, label: str, error: BaseException) -> InputError:
    problem = f"the {kind} data cannot be unpacked ({str(error)[:100]})"
    return InputError(problem, source=label, remedy=_FETCH_AGAIN)
