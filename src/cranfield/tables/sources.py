"""Sources of data: files and their contents, opened the same way for ratings and for runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cranfield._errors import InputError, SettingError
from cranfield._files import meant
from cranfield.tables.compressed import zip_and_member
from cranfield.tables.layout import as_utf8, find_layout
from cranfield.tables.text import TextTable

PARQUET = b"PAR1"
"""The first bytes of a Parquet file."""


def file_and_member(path: Path) -> tuple[Path, str | None]:
    """Return the file that a path names and, for ``archive.zip/file.csv``, the member of the archive."""
    path = meant(path)
    if path.is_dir():
        files = ", ".join(sorted(entry.name for entry in path.iterdir() if entry.is_file())[:5]) or "no file"
        raise InputError("this is a folder", source=str(path), remedy=f"name a file in it; it holds {files}")
    if path.exists():
        return path, None
    inside = zip_and_member(path)
    if inside is None:
        raise InputError("there is no such file", source=str(path), remedy="check the name and the folder")
    return inside


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet; for a pipe this is only known once it is read."""
    return path.is_file() and contents(path, len(PARQUET)) == PARQUET


def contents(path: Path, size: int = -1) -> bytes:
    """Return the first ``size`` bytes of a file, or all of them."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except FileNotFoundError:
        raise InputError("there is no such file", source=str(path), remedy="check the name and the folder") from None
    except OSError as error:
        raise InputError(
            f"the file cannot be read ({error.strerror})", source=str(path), remedy="check its permissions"
        ) from error


def refuse_text_options(
    label: str, separator: str | None, header: bool | None, quote: str | None, encoding: str, option: str = "--"
) -> None:
    """Refuse options of text files for a source that is not text.

    ``option`` is the prefix of the command-line options: those of runs have their own.
    """
    given = {
        f"separator ({option}separator)": separator is not None,
        f"header ({option}header)": header is not None,
        "quote (--no-quote)": quote != '"',
        "encoding (--encoding)": encoding != "utf-8",
    }
    name = next((name for name, is_given in given.items() if is_given), None)
    if name is not None:
        raise SettingError(f"{label} is not a text file, and {name} is only for text; leave it out")


def text_table(
    data: bytes,
    label: str,
    *,
    separator: str | None = None,
    header: bool | None = None,
    quote: str | None = '"',
    encoding: str = "utf-8",
    wanted: Sequence[str] = (),
) -> TextTable:
    """Return the table of a text; ``wanted`` are names that its header may hold."""
    data = as_utf8(data, encoding, label)
    return TextTable(data, find_layout(data, label, separator, header, quote, wanted), label)
