"""What cranfield knows about a dataset: where it is, whose it is, how large it is and how its files are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import polars as pl

from cranfield._errors import DownloadError
from cranfield.data import About, Repeated

FeaturesParser = Callable[[Path], pl.DataFrame]
"""Turns a file that describes users or items into a frame: the ids, and columns of numbers or text."""

Parser = Callable[[list[Path]], pl.DataFrame]
"""Turns the files of a dataset into a frame with the columns user, item, rating and, where known, time."""

_GIB = 1 << 30


@dataclass(frozen=True)
class Counts:
    """The numbers of users, items and ratings; None for a number that nobody has published.

    ``rows`` is the number of rows in the files, before repeated (user, item) pairs are merged into one rating.

    Examples
    --------
    >>> print(Counts(6040, 3706, 1_000_209))
    6,040 users, 3,706 items, 1,000,209 ratings
    """

    users: int | None = None
    items: int | None = None
    ratings: int | None = None
    rows: int | None = None

    def __str__(self) -> str:
        shown = [(self.users, "users"), (self.items, "items"), (self.ratings, "ratings")]
        if self.ratings is None:
            shown.append((self.rows, "rows"))
        return ", ".join(f"{count:,} {what}" for count, what in shown if count is not None)


@dataclass(frozen=True)
class Dataset:
    """An entry of the catalogue; make one by hand for your own data."""

    name: str  # its name on the command line, and its folder in the cache
    title: str  # what it is, in one line
    home: str  # the page that presents it, what its licence allows, and the paper to cite
    licence: str
    citation: str
    counts: Counts  # the counts of a faithful copy (of the training part, if there are parts)
    parse: Parser  # the function that reads its files
    # Patterns of its file names, by part; the first pattern that matches counts. A dataset without published parts
    # has the one part ``"all"``.
    files: Mapping[str, tuple[str, ...]]
    address: str | None = None  # where to download it, or None if one must register, ask or look for it
    checksum: str | None = None  # ``"md5:..."`` or ``"sha256:..."`` of the download, if its publisher gives it
    repeated: Repeated = "error"  # what to do with repeated (user, item) pairs, as in `cranfield.read`
    scale: str = "1 to 5"  # the ratings in it, in words
    times: bool = False  # whether the ratings have times
    # How far the counts of a copy may be from ``counts``, as a share of them; None if the data are still growing, so
    # that counts prove nothing.
    tolerance: float | None = 0.0
    test_counts: Counts | None = None  # the counts of the published test part, if there is one
    # The rows that belong to each part, if one file holds several parts.
    rows: Mapping[str, pl.Expr] = field(default_factory=dict)
    nested: tuple[str, ...] = ()  # archives inside the archive, by name, that hold the files
    limit: int = field(default=8 * _GIB)  # the most bytes that the download, and its files once unpacked, may have
    # The files that describe users (``"user"``) and items (``"item"``): a pattern of their names, and the function
    # that reads them. A copy without these files has no features.
    features: Mapping[About, tuple[str, FeaturesParser]] = field(default_factory=dict)
    note: str = ""  # what else a user should know

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", MappingProxyType(dict(self.files)))

    def __repr__(self) -> str:
        return f"Dataset({self.name}: {self.title}; {self.counts})"

    @property
    def parts(self) -> tuple[str, ...]:
        """The published parts: ``("all",)``, or ``("train", "test")``."""
        return tuple(self.files)

    @property
    def is_one_file(self) -> bool:
        """Whether one file holds all parts."""
        return len(set(self.files.values())) == 1

    @property
    def download_name(self) -> str:
        """The file name of the download."""
        return "download" if self.address is None else self.address.rstrip("/").rsplit("/", 1)[-1]

    def expected(self, part: str) -> Counts:
        """Return the counts that a part should have."""
        return self.test_counts or Counts() if part == "test" else self.counts

    def failed(self, problem: str) -> DownloadError:
        """Return the error that says what went wrong and how to get the data by hand."""
        given = "PATH" if self.address is None else self.download_name
        return DownloadError(
            f"{self.name} could not be fetched: {problem}; get it from {self.home} "
            f"and run: cranfield data fetch {self.name} --from {given}"
        )
