"""Fetching datasets into the cache, loading them from it, and listing them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import polars as pl

from cranfield._checks import whole
from cranfield._errors import CranfieldError, DownloadError, InputError, SettingError
from cranfield._files import whole_file
from cranfield._polars import read_parquet, write_parquet
from cranfield._record import Step, file_checksum
from cranfield._settings import settings
from cranfield.data import Ratings, Repeated, over_one_vocabulary, read, with_features
from cranfield.datasets.cache import Cached, CachedPart, cached, folder_of, locked, write_record
from cranfield.datasets.download import SUFFIXES, check_plain, download, is_archive, unpack
from cranfield.datasets.entry import Counts, Dataset
from cranfield.datasets.index import catalogue, find
from cranfield.datasets.parsers import parsing


def fetch(
    name: str | Dataset, *, from_path: str | Path | None = None, force: bool = False, verify: bool = True
) -> Cached:
    """Bring a dataset into the cache: download it, or take it from disk; check it; parse it.

    A dataset that is already in the cache is not fetched again.

    Parameters
    ----------
    name
        A name from `known`, or an entry made by hand.
    from_path
        An archive, a file or a folder on disk that holds the dataset, instead of the download.
    force
        Fetch it again even if it is in the cache.
    verify
        Compare the counts with those expected. The checksum of a download is always compared.

    Returns
    -------
    Cached
        Its folder, and its counts by part.
    """
    dataset = find(name)
    with locked(folder_of(dataset)):
        if from_path is not None:
            source = Path(from_path)
            if not source.exists():
                remedy = "check from_path=..."
                raise InputError("there is no such file or folder", source=source, remedy=remedy)
            return _take(dataset, source, verify)
        there = cached(dataset)
        if there is not None and not force and there.whole:
            return there
        if there is not None and not force and there.source != _downloaded(dataset).name:
            # Rebuild damaged files from the source on disk that they came from.
            if Path(there.source).exists():
                return _take(dataset, Path(there.source), verify)
            if dataset.address is None:
                gone = f"{there.source}, where they came from, no longer exists"
                raise dataset.failed(f"its cached files are damaged, and {gone}")
        return _take_download(dataset, force, verify)


def load(
    name: str | Dataset,
    *,
    part: str | None = None,
    from_path: str | Path | None = None,
    force: bool = False,
    verify: bool = True,
) -> Ratings:
    """Return the ratings of a known dataset, fetching it first if it is not in the cache.

    Parameters
    ----------
    name
        A name from `known`, or an entry made by hand.
    part
        ``"train"`` or ``"test"`` of a dataset that is published in parts; the training part by default. The parts
        share their vocabularies.
    from_path, force, verify
        As in `fetch`.
    """
    dataset = find(name)
    part = dataset.parts[0] if part is None else part
    if part not in dataset.parts:
        parts = "no parts" if dataset.parts == ("all",) else "the parts " + " and ".join(dataset.parts)
        raise SettingError(f"there is no part {part!r} of {dataset.name}: it is published in {parts}")
    return _load(dataset, from_path, force, verify)[dataset.parts.index(part)]


def load_pair(
    name: str | Dataset, *, from_path: str | Path | None = None, force: bool = False, verify: bool = True
) -> tuple[Ratings, Ratings]:
    """Return the published training and test parts of a dataset, over one vocabulary of users and one of items.

    Coat and Yahoo! R3 are published this way: people chose what to rate in the training part, and rated randomly drawn
    items in the test part, which is therefore free of popularity and selection bias.

    CM100k is one file in which people rated randomly drawn tracks and said which of them they had known before. Its
    training part holds the tracks they had known, the ratings that a service would have observed; its test part holds
    all ratings, including the training part. `cranfield.splits.truths` divides the two into training and a truth.
    """
    dataset = find(name)
    if dataset.parts != ("train", "test"):
        raise SettingError(f"{dataset.name} is not published as a training and a test part; split it instead")
    train, test = _load(dataset, from_path, force, verify)
    return train, test


def _load(dataset: Dataset, from_path: str | Path | None, force: bool, verify: bool) -> list[Ratings]:
    there = None if force or from_path is not None else cached(dataset)
    if there is None or not there.whole:
        there = fetch(dataset, from_path=from_path, force=force, verify=verify)
    step = Step("dataset", {"name": dataset.name, "source": there.source, "citation": dataset.citation})
    parts = [_read(read_parquet(there.path(part)), dataset, part, "error") for part in dataset.parts]
    shared = parts if len(parts) == 1 else over_one_vocabulary(parts)
    features = {name: read_parquet(there.path(name)) for name in there.features}
    return [with_features(replace(ratings, history=(step, *ratings.history)), **features) for ratings in shared]


def _take_download(dataset: Dataset, force: bool, verify: bool) -> Cached:
    """Download a dataset, unless it was downloaded before, and put it into the cache."""
    target = _downloaded(dataset)
    if target.is_file() and not force:
        try:
            return _take(dataset, target, verify)
        except CranfieldError:
            # It was damaged after the download, so download it again.
            target.unlink(missing_ok=True)
    if dataset.address is None:
        raise dataset.failed(f"it cannot be downloaded without a person's consent ({dataset.note or dataset.licence})")
    try:
        download(dataset.address, target, checksum=dataset.checksum, limit=dataset.limit, what=dataset.name)
    except DownloadError as error:
        raise dataset.failed(str(error)) from error
    except OSError as error:
        raise _no_room(dataset, error) from error
    try:
        return _take(dataset, target, verify)
    except CranfieldError:
        target.unlink(missing_ok=True)
        raise


def _take(dataset: Dataset, source: Path, verify: bool) -> Cached:
    """Parse an archive, a file or a folder, check its counts, and write it to the cache."""
    folder = folder_of(dataset)
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".unpacked-") as scratch:
            files = _files(dataset, source, Path(scratch))
            parts = {part: _parse(dataset, part, files[part], verify, source) for part in files}
            features = _features(dataset, files, [Path(scratch), *([source] if source.is_dir() else [])])
        written = {
            part: _write(folder, "ratings" if part == "all" else part, ratings.frame(), _counts(ratings))
            for part, ratings in parts.items()
        }
        tables = {name: _write(folder, name, table, Counts()) for name, table in features.items()}
    except OSError as error:
        if Path(error.filename or "").is_relative_to(source):
            problem = f"it cannot be read ({error.strerror})"
            raise InputError(problem, source=source, remedy="check its permissions") from error
        raise _no_room(dataset, error) from error
    name = source.name if source.parent == folder else str(source.resolve())
    return write_record(dataset, name, written, tables)


def _features(dataset: Dataset, files: dict[str, list[Path]], folders: list[Path]) -> dict[str, pl.DataFrame]:
    """Return the tables that describe users and items, if the copy holds their files."""
    tables = {}
    for about, (pattern, parse) in dataset.features.items():
        # Some features are in the file of the ratings, which may have another name.
        beside = [file for part, file in files.items() if pattern in dataset.files[part]]
        beside += [paths for folder in folders if (paths := _find(folder, (pattern,)))]
        if beside:
            check_plain(beside[0][0])
            tables[f"{about}_features"] = parse(beside[0][0])
    return tables


def _files(dataset: Dataset, source: Path, scratch: Path) -> dict[str, list[Path]]:
    """Return the files of each part, unpacked if they are compressed."""
    if source.is_file() and not is_archive(source):
        if not dataset.is_one_file:
            problem = f"{dataset.name} consists of several files ({_wanted(dataset)})"
            remedy = "give the folder or the archive that holds them"
            raise InputError(problem, source=source, remedy=remedy)
        return {part: [source] for part in dataset.parts}
    if source.is_dir():
        parts = {part: _find(source, patterns) for part, patterns in dataset.files.items()}
        if all(parts.values()):
            return {part: _expanded(files, dataset, scratch / part) for part, files in parts.items()}
        archives = _find(source, (dataset.download_name, *dataset.nested))
        if not archives:
            raise _nothing_found(dataset, source)
        source = archives[0]
    patterns = tuple(pattern for group in dataset.files.values() for pattern in group)
    patterns += tuple(pattern for pattern, _ in dataset.features.values())
    alone = _unpacked(dataset, source, scratch / "archive", (*patterns, *dataset.nested))
    if alone is not None and dataset.is_one_file:
        # A single compressed file needs no matching name.
        return {part: [alone] for part in dataset.parts}
    parts = {part: _find(scratch / "archive", group) for part, group in dataset.files.items()}
    if not all(parts.values()):
        raise _nothing_found(dataset, source)
    return parts


def _unpacked(dataset: Dataset, source: Path, folder: Path, wanted: tuple[str, ...]) -> Path | None:
    """Unpack into ``folder``; return the file if the source was one compressed file rather than an archive."""
    limit = dataset.limit
    if settings.unpack_limit is not None:
        limit = whole("unpack_limit", settings.unpack_limit, at_least=1)
    folder.mkdir(parents=True)
    unpack(source, folder, wanted=wanted, limit=limit)
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_file() else None


def _expanded(files: list[Path], dataset: Dataset, scratch: Path) -> list[Path]:
    """Return the files, with compressed ones replaced by their content."""
    patterns = dataset.files[scratch.name]
    return [
        (_unpacked(dataset, file, scratch / str(number), patterns) or file) if is_archive(file) else file
        for number, file in enumerate(files)
    ]


def _find(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Return the files that match the first pattern with a match; of equal names, the one nearest to the top."""
    files = sorted(
        (path for path in folder.rglob("*") if path.is_file()), key=lambda path: (len(path.parts), str(path))
    )
    for pattern in patterns:
        nearest_of: dict[str, Path] = {}
        for path in files:
            plain = path.name if path.suffix not in SUFFIXES else path.stem
            if fnmatch(path.name, pattern) or fnmatch(plain, pattern):
                nearest_of.setdefault(plain, path)
        if nearest_of:
            return [nearest_of[name] for name in sorted(nearest_of)]
    return []


def _parse(dataset: Dataset, part: str, files: list[Path], verify: bool, source: Path) -> Ratings:
    for file in files:
        check_plain(file)
    with parsing(files[0]):
        frame = dataset.parse(files)
    if part in dataset.rows:
        frame = frame.filter(dataset.rows[part])
    try:
        ratings = _read(frame, dataset, part, dataset.repeated)
    except InputError as error:
        place = "" if error.row is None else f"rating {error.row:,} of it cannot be used: "
        problem = f"{place}{error.problem}"
        raise InputError(problem, source=source, column=error.column, remedy=_compare(dataset)) from error
    if verify:
        _check(dataset, part, _counts(ratings, rows=frame.height), source)
    return ratings


def _read(frame: pl.DataFrame, dataset: Dataset, part: str, repeated: Repeated) -> Ratings:
    name = dataset.name if part == "all" else f"{dataset.name} ({part})"
    time = "time" if "time" in frame.columns else False
    return read(frame, user="user", item="item", rating="rating", time=time, repeated=repeated, name=name)


def _counts(ratings: Ratings, rows: int | None = None) -> Counts:
    return Counts(ratings.n_users, ratings.n_items, len(ratings), rows)


def _check(dataset: Dataset, part: str, counts: Counts, source: Path) -> None:
    """Compare the counts of a copy with the expected ones."""
    if dataset.tolerance is None:
        return
    expected = dataset.expected(part)
    for what in ("users", "items", "ratings", "rows"):
        wanted, have = getattr(expected, what), getattr(counts, what)
        if wanted is not None and abs(have - wanted) > dataset.tolerance * wanted:
            of_part = "" if part == "all" else f" in its {part} part"
            raise DownloadError(
                f"{source} is not the dataset {dataset.name}: it holds {have:,} {what}{of_part} instead of "
                f"{wanted:,}; compare it with {dataset.home}, or take it as it is with verify=False"
            )


def _write(folder: Path, name: str, table: pl.DataFrame, counts: Counts) -> CachedPart:
    path = folder / f"{name}.parquet"
    with whole_file(path) as temporary:
        write_parquet(table, temporary)
    return CachedPart(path.name, file_checksum(path), counts)


def _downloaded(dataset: Dataset) -> Path:
    return folder_of(dataset) / dataset.download_name


def _wanted(dataset: Dataset) -> str:
    return ", ".join(" or ".join(patterns) for patterns in dataset.files.values())


def _nothing_found(dataset: Dataset, source: Path) -> InputError:
    problem = f"it holds no file of {dataset.name} ({_wanted(dataset)})"
    return InputError(problem, source=source, remedy=_compare(dataset))


def _compare(dataset: Dataset) -> str:
    return f"check that it is what {dataset.home} offers"


def _no_room(dataset: Dataset, error: OSError) -> CranfieldError:
    return CranfieldError(
        f"{dataset.name} cannot be written to {folder_of(dataset)} ({error.strerror or error}); free some space or "
        "set CRANFIELD_CACHE to another folder"
    )


def known() -> tuple[str, ...]:
    """Return the names of the known datasets.

    Examples
    --------
    >>> known()[:3]
    ('ml-100k', 'ml-1m', 'ml-10m')
    """
    return tuple(catalogue())


def listing() -> pl.DataFrame:
    """Return the known datasets as a frame, one per row: what, how large, whose, how to get it, and if it is cached.

    Counts are of the training part if a dataset is published in parts, and null if nobody has published them.

    Examples
    --------
    >>> listing().filter(pl.col("name") == "coat").select("name", "users", "items", "ratings", "get").row(0)
    ('coat', 290, 300, 6960, 'download')
    """
    return pl.DataFrame(
        [
            {
                "name": entry.name,
                **{what: getattr(entry.counts, what) for what in ("users", "items", "ratings")},
                "scale": entry.scale,
                "times": entry.times,
                "get": "by hand" if entry.address is None else "download",
                "cached": cached(entry) is not None,
                **{what: getattr(entry, what) for what in ("licence", "title", "home", "citation", "note")},
            }
            for entry in catalogue().values()
        ]
    )
