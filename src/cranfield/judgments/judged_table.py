"""The judged lists of all users, filled block by block: arrays, or mapped files if they are too large for memory."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield._files import TEMPORARY
from cranfield.judgments.context import Context
from cranfield.judgments.judged import Judged
from cranfield.tables import Vocabulary

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
