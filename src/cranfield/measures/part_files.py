"""Scores of parts of the users, in memory or, if they are large, in files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from cranfield._files import TEMPORARY
from cranfield._polars import read_parquet, write_parquet
from cranfield._settings import settings
from cranfield.data import Vocabulary
from cranfield.measures.parts import Tally, joined
from cranfield.measures.score_parts import ScoreParts
from cranfield.measures.scores import Scores

T = TypeVar("T")


@dataclass
class KeptParts:
    """Scores of parts, of which at most ``most`` bytes stay in memory."""

    most: float
    _held: list[Scores] = field(default_factory=list)
    _bytes: float = 0.0
    _files: FileStore | None = None

    def add(self, scores: Scores | None) -> None:
        """Add the scores of a part, if it has any."""
        if scores is None:
            return
        self._bytes += scores.values.nbytes + 32.0 * scores.n_lists
        self._held.append(scores)
        if self._bytes > self.most and self._files is None:
            self._files = FileStore.made()
        if self._files is not None:
            for part in self._held:
                self._files.add(part)
            self._held.clear()

    def scores(self, facts: Scores, tally: Tally) -> Scores | ScoreParts:
        """Return the scores of all parts: as one, or in parts if they are in files."""
        if self._files is None:
            return joined(self._held, facts)
        assert tally.of_scores is not None
        return ScoreParts(facts, replace(self._files, facts=facts), tally.of_scores[0])


@dataclass(frozen=True)
class FileStore:
    """Parts of scores in files of a temporary folder, which is removed with the last reference to it."""

    folder: tempfile.TemporaryDirectory[str]
    paths: list[Path] = field(default_factory=list)
    facts: Scores | None = None

    @classmethod
    def made(cls) -> FileStore:
        """Make an empty store."""
        return cls(tempfile.TemporaryDirectory(prefix=TEMPORARY))

    def add(self, scores: Scores) -> None:
        """Write a part."""
        path = Path(self.folder.name) / f"{len(self.paths)}.parquet"
        write_parquet(rows_of(scores), path, compression="lz4")
        self.paths.append(path)

    def _part(self, path: Path) -> Scores:
        assert self.facts is not None
        return scores_of(read_parquet(path), self.facts)

    def each(self, function: Callable[[Scores], T]) -> list[T]:
        """Call a function on the scores of every part."""
        with ThreadPoolExecutor(settings.workers) as pool:
            return list(pool.map(lambda path: function(self._part(path)), self.paths))

    def per_user(self) -> Iterator[pl.DataFrame]:
        """Yield the rows of `Scores.per_user`, part by part."""
        for path in self.paths:
            yield self._part(path).per_user()


def rows_of(scores: Scores) -> pl.DataFrame:
    """Return scores as a table with one row per list, for `scores_of`."""
    columns: dict[str, Any] = {
        "user": scores.user_ids.ids(scores.users),
        "judged": scores.judged,
        "relevant": scores.relevant,
    }
    if scores.trained is not None:
        columns["trained"] = scores.trained
    for s in range(len(scores.systems)):
        columns[f"covered {s}"] = scores.covered[s]
        for m in range(len(scores.metrics)):
            columns[f"value {s} {m}"] = scores.values[s, m]
            for end in range(0 if scores.bounds is None else 2):
                assert scores.bounds is not None
                columns[f"bound {end} {s} {m}"] = scores.bounds[end, s, m]
    return pl.DataFrame(columns)


def scores_of(rows: pl.DataFrame, facts: Scores) -> Scores:
    """Return the scores of a part from its table, given everything except the lists."""
    ids, users = Vocabulary.encode(rows["user"])
    order = np.argsort(users, kind="stable")
    systems, metrics = range(len(facts.systems)), range(len(facts.metrics))

    def column(name: str) -> Any:
        return rows[name].to_numpy()[order]

    def table(name: str) -> Any:
        return np.stack([[column(f"{name} {s} {m}") for m in metrics] for s in systems])

    return replace(
        facts,
        values=table("value"),
        covered=np.stack([column(f"covered {s}") for s in systems]),
        users=users[order],
        user_ids=ids,
        judged=column("judged"),
        relevant=column("relevant"),
        trained=None if facts.trained is None else column("trained"),
        bounds=None if facts.bounds is None else np.stack([table(f"bound {end}") for end in range(2)]),
        groups=None,
        group_names=(),
    )
