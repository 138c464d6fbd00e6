"""The values of all users, filled block by block: an array, or a mapped file if they are too large for memory."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._files import TEMPORARY
from cranfield.measures.joined_scores import join_scores, users_of
from cranfield.measures.scores import Scores

_LISTS = ("values", "covered", "users", "user_ids", "judged", "relevant", "bounds", "trained")
"""The fields of `Scores` with one value per list that blocks have."""


@dataclass
class ValueTable:
    """Collects the scores of blocks of users, and puts them together over all users.

    A block has the values of some users, systems × metrics × users. At most ``most`` bytes wait in memory; beyond that,
    values go to files. At the end they are written column by column to one file, in the order of the users, and mapped:
    its pages are read when they are needed, and the system drops them when memory is short.
    """

    most: float
    _blocks: list[Scores] = field(default_factory=list)
    _bytes: float = 0.0
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def add(self, block: Scores | None) -> None:
        """Add a block; None if nobody in it is judged."""
        if block is None:
            return
        self._bytes += block.values.nbytes + (0 if block.bounds is None else block.bounds.nbytes)
        self._blocks.append(block)
        if self._bytes > self.most and self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix=TEMPORARY)
            self._blocks = [self._spooled(place, waiting) for place, waiting in enumerate(self._blocks)]
        elif self._folder is not None:
            self._blocks[-1] = self._spooled(len(self._blocks) - 1, block)

    def scores(self, facts: Scores) -> Scores:
        """Return the scores of all users, with the facts about all of them; there is at least one block."""
        if self._folder is None:
            whole = join_scores(self._blocks)
            return replace(facts, **{name: getattr(whole, name) for name in _LISTS})
        user_ids, users = users_of(self._blocks)
        order = np.argsort(users, kind="stable")
        first = self._blocks[0]

        def of_lists(name: str) -> Any:
            columns = [getattr(block, name) for block in self._blocks]
            return None if columns[0] is None else np.concatenate(columns, axis=-1)[..., order]

        bounds = None if first.bounds is None else self._mapped("bounds", order)
        return replace(
            facts,
            values=self._mapped("values", order),
            bounds=bounds,
            users=users[order],
            user_ids=user_ids,
            **{name: of_lists(name) for name in ("covered", "judged", "relevant", "trained")},
            files=self._folder,
        )

    def _spooled(self, place: int, block: Scores) -> Scores:
        """Return a block whose values are in files."""
        opened: dict[str, Any] = {}
        for name in ("values", "bounds"):
            table = getattr(block, name)
            if table is not None:
                np.save(self._path(f"{name}-{place}"), table)
                opened[name] = _opened(self._path(f"{name}-{place}"))
        return replace(block, **opened)

    def _path(self, name: str) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / f"{name}.npy"

    def _mapped(self, name: str, order: NDArray[np.intp]) -> NDArray[np.float64]:
        """Write a table of all blocks column by column, and return it mapped; the files of the blocks are removed."""
        parts: Sequence[NDArray[np.float64]] = [getattr(block, name) for block in self._blocks]
        shape = (*parts[0].shape[:-1], len(order))
        table = np.lib.format.open_memmap(self._path(name), mode="w+", dtype=np.float64, shape=shape)
        for column in np.ndindex(shape[:-1]):
            table[column] = np.concatenate([part[column] for part in parts])[order]
        table.flush()
        del table
        for place in range(len(self._blocks)):
            self._path(f"{name}-{place}").unlink()
        return _opened(self._path(name))


def _opened(path: Path) -> NDArray[np.float64]:
    """Return a file as a plain array; NumPy advises against passing its own class of mapped arrays on."""
    return np.asarray(np.load(path, mmap_mode="r"))
