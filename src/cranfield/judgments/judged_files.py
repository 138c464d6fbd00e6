"""Judged lists outside memory: saved files, and the table of all users that is filled block by block."""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError
from cranfield._files import TEMPORARY, whole_file
from cranfield.data import AUTO, Ratings
from cranfield.facts import Fact
from cranfield.judgments.context import Context, Draw, RunFacts
from cranfield.judgments.joining import one_relevant
from cranfield.judgments.judged import Judged
from cranfield.judgments.judging import judgments_under
from cranfield.judgments.judgments import Judgments, NegativeGrades
from cranfield.rankings import Run
from cranfield.tables import Vocabulary

FORMAT = 2
"""Version of the layout of the file; files of any other version are refused."""

_NEEDED = ("lists", "ranks", "pointers", "lengths")
_OPTIONAL = ("tied_from", "tied_to", "places", "offsets", "pooled_above", "groups")


def write_judged(judged: Judged, path: str | Path) -> Path:
    """Write judged lists to a file (``.npz``): the positions of the judged items, and the facts about the run.

    The file contains neither the run nor the test set; pass both to `read_judged`.

    Examples
    --------
    >>> import tempfile
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "bob"], ["x", "y"])
    >>> judged = cf.judge({"mine": {"ann": ["z", "x"], "bob": ["y"]}}, test)
    >>> path = write_judged(judged, Path(tempfile.mkdtemp()) / "mine.npz")
    >>> cf.measure(read_judged(path, test), metrics="RR").average().tolist()
    [[0.75]]
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise SettingError(f"{path} does not end in .npz; name the file {path.name}.npz")
    about = {
        "format": FORMAT,
        "ranked": vars(judged.known_run),
        "counts": dict(judged.counts),
        "group_names": list(judged.group_names),
        "is_condensed": judged.is_condensed,
        "judgments": _digest(judged.judgments),
    }
    if judged.draw is not None:
        about["draw"] = {name: getattr(judged.draw, name) for name in ("number", "unrated", "longest")}
    arrays = {name: getattr(judged, name) for name in _NEEDED}
    arrays |= {name: getattr(judged, name) for name in _OPTIONAL if getattr(judged, name) is not None}
    if judged.known_run.one_relevant:
        arrays["keys"] = judged.judgments.keys
    if judged.draw is not None:
        arrays["sizes"] = judged.draw.sizes
    with whole_file(path) as temporary:
        np.savez(temporary, about=np.array(json.dumps(about, default=Fact.as_dict)), **arrays)
    return path


def read_judged(
    path: str | Path,
    test: Any,
    run: Run | Callable[[], Run] | None = None,
    *,
    threshold: float | str | None = AUTO,
    train: Ratings | None = None,
    similarity: Any = None,
    negative_grades: NegativeGrades = "judged",
) -> Judged:
    """Read judged lists that `write_judged` wrote.

    Parameters
    ----------
    path
        The file.
    test
        The test set that the lists were judged by (`Ratings`, or `Judgments` of it); another one is refused.
    run
        The run that was judged, or a function that reads it, which is called only if a metric needs whole lists, scores
        or predictions. Without it such metrics are refused.
    threshold, train, similarity, negative_grades
        As for `judge`; the file does not contain a threshold.

    Examples
    --------
    >>> import tempfile
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann"], ["x"])
    >>> run = cf.read_run({"user": ["ann"], "item": ["x"], "score": [1.0]}, name="mine")
    >>> path = write_judged(cf.judge(run, test), Path(tempfile.mkdtemp()) / "mine.npz")
    >>> read_judged(path, test).judgments.users.tolist()
    [0]
    """
    path = Path(path)
    about, arrays = _opened(path)
    ranked = RunFacts(**Fact.read(about["ranked"]))
    sizes = arrays.pop("sizes", None)
    judgments = judgments_under(test, threshold, negative_grades, train)
    lists_judgments = _of_keys(judgments.base, arrays.pop("keys")) if ranked.one_relevant else judgments
    if lists_judgments is None or _digest(lists_judgments) != about["judgments"]:
        raise InputError("these lists were judged by another test set", source=path, remedy="judge the run again")
    return Judged(
        judgments=lists_judgments.at(judgments.threshold),
        **arrays,
        source=_checked(run, ranked, path),
        is_condensed=about["is_condensed"],
        context=Context(train, similarity),
        group_names=tuple(about["group_names"]),
        counts=about["counts"],
        ranked=ranked,
        draw=None if sizes is None else Draw(sizes=sizes, **about["draw"]),
    )


def _opened(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metadata of a file, and its arrays."""
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            arrays = {name: file[name] for name in file.files if name != "about"}
    except FileNotFoundError:
        raise InputError("there is no such file", source=path, remedy="name a file that write_judged wrote") from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            "it is not a file of judged lists, or it is damaged", source=path, remedy="write it again"
        ) from error
    if about.get("format") != FORMAT or not set(_NEEDED) <= set(arrays):
        raise InputError("it was written by another version of cranfield", source=path, remedy="judge the run again")
    return about, arrays


def _of_keys(judgments: Judgments, keys: Any) -> Judgments | None:
    """Return the judgments of one-relevant lists, or None if the test set does not have them all."""
    chosen = np.searchsorted(judgments.keys, keys)
    known = np.append(judgments.keys, -1)[chosen] == keys
    return one_relevant(judgments, chosen) if known.all() else None


def _checked(run: Run | Callable[[], Run] | None, ranked: RunFacts, path: Path) -> Run | Callable[[], Run] | None:
    """Check that a run is the one that was judged; a function is called once, and its run is checked then."""

    def same(candidate: Run) -> Run:
        if (candidate.name, len(candidate), len(candidate.items)) != (ranked.name, ranked.n_lists, ranked.n_entries):
            raise InputError(
                f"the run {candidate.name} is not the one that was judged ({ranked.name}, {ranked.n_lists:,} lists)",
                source=path,
                remedy="judge the run again",
            )
        return candidate

    if run is None or isinstance(run, Run):
        return None if run is None else same(run)
    return cache(lambda: same(run()))


def _digest(judgments: Judgments) -> str:
    """Return a hash of the judgments, which does not depend on the threshold."""
    digest = hashlib.sha256(f"{len(judgments.user_ids)} {len(judgments.item_ids)}".encode())
    for array, kind in ((judgments.users, "<i4"), (judgments.indptr, "<i8"), (judgments.items, "<i4")):
        digest.update(array.astype(kind).tobytes())
    digest.update(judgments.grades.astype("<f8").tobytes())
    digest.update(b"" if judgments.pool is None else judgments.pool.astype("<i8").tobytes())
    return digest.hexdigest()[:16]


_OF_HITS = ("lists", "ranks", "pointers", "tied_from", "tied_to", "pooled_above")
"""The arrays of `Judged` with one number per hit."""


def without_runs(judged: Sequence[Judged]) -> list[Judged]:
    """Return judged lists without the runs they came from, of which metrics of judged items need nothing."""
    return [lists.fresh(source=None, places=None, offsets=None, context=Context()) for lists in judged]


@dataclass
class _Column:
    """One array that grows block by block, in memory or at the end of a file."""

    path: Path
    _parts: list[NDArray[Any]] = field(default_factory=list)
    _dtype: Any = None

    def add(self, part: NDArray[Any]) -> None:
        if self._dtype is None:
            self._parts.append(part)
            return
        with self.path.open("ab") as file:
            np.ascontiguousarray(part, dtype=self._dtype).tofile(file)

    def spool(self) -> None:
        """Move the array to its file."""
        parts, self._parts = self._parts, []
        self._dtype = parts[0].dtype
        for part in parts:
            self.add(part)

    def whole(self, order: NDArray[np.intp] | None = None) -> NDArray[Any]:
        """Return the array of all blocks, in an order; a spooled array is mapped."""
        if self._dtype is None:
            joined = np.concatenate(self._parts)
            return joined if order is None else joined[order]
        mapped = np.asarray(np.memmap(self.path, self._dtype, "r")) if self.path.stat().st_size else np.zeros(0)
        if order is None or not len(order):
            return mapped.astype(self._dtype, copy=False)
        ordered = self.path.with_suffix(".ordered")
        mapped[order].tofile(ordered)
        return np.asarray(np.memmap(ordered, self._dtype, "r"))


class _Block(NamedTuple):
    """The ids of a block, and the number of lists and of judgments up to its end."""

    user_ids: Vocabulary
    item_ids: Vocabulary
    lists: int
    judgments: int


@dataclass
class JudgedTable:
    """Collects the judged lists of blocks of users, and puts them together over all users.

    At most about ``most`` bytes stay in memory; beyond that, arrays go to files and are mapped. A judged list takes 20
    to 100 times less than the list itself.
    """

    most: float
    _columns: dict[str, _Column] = field(default_factory=dict)
    _blocks: list[_Block] = field(default_factory=list)
    _first: list[Judged] | None = None
    _bytes: float = 0.0
    _folder: tempfile.TemporaryDirectory[str] | None = None
    _is_spooled: bool = False

    def add(self, judged: Sequence[Judged]) -> None:
        """Add the lists of every system for the users of a block, as `without_runs` returns them."""
        judgments = judged[0].judgments
        first_list, first_judgment = (self._blocks[-1].lists, self._blocks[-1].judgments) if self._blocks else (0, 0)
        self._first = self._first or list(judged)
        self._put("users", judgments.users)
        self._put("items", judgments.items)
        self._put("grades", judgments.grades)
        self._put("sizes", judgments.n_judged)
        for s, lists in enumerate(judged):
            self._put(f"lengths {s}", lists.lengths)
            self._put(f"lists {s}", lists.lists.astype(np.int64) + first_list)
            self._put(f"pointers {s}", lists.pointers + first_judgment)
            for name in ("ranks", "tied_from", "tied_to", "pooled_above"):
                if getattr(lists, name) is not None:
                    self._put(f"{name} {s}", getattr(lists, name))
        ends = first_list + judgments.n_lists, first_judgment + len(judgments)
        self._blocks.append(_Block(judgments.user_ids, judgments.item_ids, *ends))
        if self._bytes > self.most and not self._is_spooled:
            self._is_spooled = True
            for column in self._columns.values():
                column.spool()

    def _put(self, name: str, part: NDArray[Any]) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix=TEMPORARY)
        if name not in self._columns:
            self._columns[name] = _Column(Path(self._folder.name) / name)
        self._columns[name].add(part)
        self._bytes += part.nbytes

    def judged(self, context: Context) -> list[Judged]:
        """Return the lists of every system for all users; there is at least one block."""
        assert self._first is not None
        user_ids = Vocabulary.union([block.user_ids for block in self._blocks])
        item_ids = Vocabulary.union([block.item_ids for block in self._blocks])
        users = self._translated("users", user_ids, [(block.user_ids, block.lists) for block in self._blocks])
        order = np.argsort(users, kind="stable")
        moved = not (order == np.arange(len(order))).all()
        sizes = self._columns["sizes"].whole()
        starts = np.cumsum(sizes) - sizes
        entries = _of_slices(starts[order], sizes[order]) if moved else None
        items = self._translated("items", item_ids, [(block.item_ids, block.judgments) for block in self._blocks])
        judgments = self._first[0].judgments.changed(
            users=users[order],
            indptr=np.append(0, np.cumsum(sizes[order])),
            items=items if entries is None else items[entries],
            grades=self._columns["grades"].whole(entries),
            user_ids=user_ids,
            item_ids=item_ids,
            pool=None,
        )
        new_list, new_entry = (_inverse(order), _inverse(entries)) if entries is not None else (None, None)
        return [
            replace(
                self._of_system(s, order if moved else None, new_list, new_entry),
                judgments=judgments,
                context=context,
                files=self._folder,
            )
            for s in range(len(self._first))
        ]

    def _of_system(
        self,
        s: int,
        order: NDArray[np.intp] | None,
        new_list: NDArray[np.int64] | None,
        new_entry: NDArray[np.int64] | None,
    ) -> Judged:
        """Return the hits of a system, in the order of all users."""
        assert self._first is not None
        hits = {name: f"{name} {s}" for name in _OF_HITS if f"{name} {s}" in self._columns}
        lengths = self._columns[f"lengths {s}"].whole(order)
        if new_list is None or new_entry is None:
            arrays: dict[str, Any] = {name: self._columns[column].whole() for name, column in hits.items()}
        else:
            lists = new_list[self._columns[hits["lists"]].whole()]
            by_list = np.argsort(lists, kind="stable")
            arrays = {name: self._columns[column].whole(by_list) for name, column in hits.items()}
            arrays["lists"], arrays["pointers"] = lists[by_list], new_entry[arrays["pointers"]]
        arrays["lists"] = arrays["lists"].astype(np.int32)
        return replace(self._first[s], lengths=lengths, **arrays)

    def _translated(self, name: str, ids: Vocabulary, blocks: Sequence[tuple[Vocabulary, int]]) -> NDArray[np.int32]:
        """Return codes of all blocks as codes of one vocabulary, given the vocabulary and the end of each block."""
        codes = self._columns[name].whole().astype(np.int32)
        start = 0
        for own, end in blocks:
            translation = ids.translation(own)
            if translation is not None:
                codes[start:end] = translation[codes[start:end]]
            start = end
        return codes


def _of_slices(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of slices one after the other."""
    return np.arange(int(sizes.sum())) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)


def _inverse(order: NDArray[Any]) -> NDArray[np.int64]:
    """Return the new place of each old one."""
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places
