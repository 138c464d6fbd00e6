"""The benchmark of neural collaborative filtering: one test item of each user, among published items and among all.

The ranks of a trained system are an artifact of the store, and training saves checkpoints there, so an interrupted
study continues even in the middle of a training.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import CranfieldError, InputError, MissingExtraError
from cranfield._numbers import time_text
from cranfield._polars import read_parquet, scan_csv
from cranfield._settings import settings
from cranfield._terminal import announce, progress
from cranfield.data import Ratings
from cranfield.measures import Scores, measure
from cranfield.rankings import EVERYONE, Drawn, Ranker, Ranking, Run, fitted, rank_with
from cranfield.recommenders import EpochModel, recommender
from cranfield.splits import Split, predefined
from cranfield.store import Artifact, Made, Store, Vocabularies, read_run, run_facts, save_run
from cranfield.tables import UNKNOWN, is_parquet

SAMPLED, FULL = "sampled", "full"
PROTOCOLS = (SAMPLED, FULL)
"""Rank the test item among the published items, or among all items that are not in training."""

HR, NDCG = "HitRate@10", "nDCG@10"
METRICS = {"HR@10": HR, "nDCG@10": NDCG}
"""The metrics of the paper, as they are spelled here; a list has one relevant item."""


@dataclass(frozen=True)
class Trained:
    """One system to train: the name of its row, its spelling, and its seed among those of the row."""

    row: str
    spelling: str
    seed: int

    @property
    def stem(self) -> str:
        """Its name in the store."""
        return f"ranks/{self.row.replace(', ', '-').replace(' ', '-')}/seed-{self.seed}"

    def system(self) -> Any:
        """Return the system, not trained yet."""
        return recommender(self.spelling, self.seed)


def read_negatives(table: Any) -> pl.DataFrame:
    """Return the columns user, item and negative of a table, one row per negative.

    Parameters
    ----------
    table
        A Parquet file or a frame with the columns ``user``, ``item`` (the test item) and ``negatives``, a list of
        items; or with one row per negative, in a column ``negative``, also as CSV.

    Examples
    --------
    >>> read_negatives({"user": [1, 2], "item": [7, 8], "negatives": [[3, 4], [5, 6]]}).rows()
    [(1, 7, 3), (1, 7, 4), (2, 8, 5), (2, 8, 6)]
    """
    source = str(table) if isinstance(table, str | Path) else "the negatives"
    frame = _frame(table, source)
    columns = set(frame.columns)
    listed = "negatives" in columns
    if not {"user", "item"} <= columns or not (listed or "negative" in columns):
        raise InputError(
            f"the columns are {', '.join(frame.columns)}",
            source=source,
            remedy="give user, item (the test item) and negatives (a list of items), or one negative per row",
        )
    if listed:
        frame = frame.rename({"negatives": "negative"})
        if isinstance(frame.schema["negative"], pl.Array):
            frame = frame.with_columns(pl.col("negative").arr.to_list())
        if not isinstance(frame.schema["negative"], pl.List):
            raise InputError("the negatives are not lists", source=source, remedy="name the column negative")
        frame = frame.explode("negative")
    frame = frame.select("user", "item", "negative")
    if frame.null_count().sum_horizontal().item() or frame.is_empty():
        raise InputError("a user, an item or a negative is missing", source=source, remedy="fix the file")
    several = frame.group_by("user").agg(pl.col("item").n_unique()).filter(pl.col("item") > 1)
    if not several.is_empty():
        raise InputError(
            f"user {several['user'][0]} has {several['item'][0]} test items", source=source, remedy="give one for each"
        )
    return frame.unique(maintain_order=True)


def _frame(table: Any, source: str) -> pl.DataFrame:
    if not isinstance(table, str | Path):
        return pl.DataFrame(table)
    path = Path(table)
    if not path.is_file():
        raise InputError("there is no such file", source=source, remedy="check the name and the folder")
    try:
        return read_parquet(path) if is_parquet(path) else scan_csv(path).collect()
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"it cannot be read ({str(error).splitlines()[0]})", source=source, remedy="give Parquet or CSV"
        ) from error


@dataclass(frozen=True, eq=False)
class NcfBenchmark:
    """The training data, and how the test items are ranked.

    Parameters
    ----------
    split
        All ratings except one per user for training, and that one for testing.
    drawn
        The published items of each user.
    doubled
        How many of the published items are the test item itself; these are left out.
    """

    split: Split
    drawn: Drawn
    doubled: int

    @classmethod
    def of(cls, data: Ratings, negatives: pl.DataFrame) -> NcfBenchmark:
        """Take the test item of each user out of the ratings; it must be rated, and the published items must not be."""
        users, items = data.user_ids.codes(negatives["user"]), data.item_ids.codes(negatives["item"])
        others = data.item_ids.codes(negatives["negative"])
        pairs = data.users.astype(np.int64) * data.n_items + data.items
        keys = users.astype(np.int64) * data.n_items
        unknown = (users == UNKNOWN) | (items == UNKNOWN) | ~np.isin(keys + items, pairs)
        if unknown.any():
            row = negatives.row(int(np.argmax(unknown)), named=True)
            raise InputError(
                f"user {row['user']} did not rate the test item {row['item']}",
                source="the negatives",
                remedy="check that they belong to these ratings",
            )
        rated = np.isin(keys + others, pairs) & (others != UNKNOWN) & (others != items)
        if rated.any():
            row = negatives.row(int(np.argmax(rated)), named=True)
            raise InputError(
                f"user {row['user']} rated {row['negative']}, which is among the negatives",
                source="the negatives",
                remedy="check that they belong to these ratings",
            )
        is_test = np.isin(pairs, keys + items)
        doubled = others == items
        known = (others != UNKNOWN) & ~doubled  # unknown items have no ratings, so no system can score them
        order = np.lexsort((others[known], users[known]))
        served, counts = np.unique(users[known], return_counts=True)
        drawn = Drawn(
            served.astype(np.int32),
            np.append(np.int64(0), np.cumsum(counts)),
            others[known][order].astype(np.int32),
            np.zeros(int(known.sum()), dtype=np.int32),
            int(np.count_nonzero(counts < counts.max())),
        )
        return cls(predefined(data.keep(~is_test), data.keep(is_test)), drawn, int(doubled.sum()))

    @cached_property
    def rankers(self) -> list[Ranker]:
        """The rankers of the test items among the published items, and among all items."""
        # Every test item is relevant, whatever its rating.
        lowest = float(self.split.test.values.min())
        ranking = Ranking(relevant="one", candidates="all", threshold=lowest, length="all")
        full = Ranker.of(self.split, EVERYONE, ranking, 0)
        users = self.drawn.users
        targets = replace(full.targets, ranking=full.targets.ranking.with_(nonrelevant=99), drawn=self.drawn)
        return [replace(full, targets=targets, users=users), replace(full, users=users)]

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that ranks depend on besides the system."""
        drawn = (self.drawn.users, self.drawn.indptr, self.drawn.items)
        return {
            "train": self.split.train.fingerprint,
            "test": self.split.test.fingerprint,
            "negatives": hashlib.sha256(b"".join(part.tobytes() for part in drawn)).hexdigest()[:16],
        }

    def scores(self, runs: Sequence[Run]) -> Scores:
        """Measure runs of one protocol."""
        lowest = float(self.split.test.values.min())
        return measure(runs, self.split.test, list(METRICS.values()), threshold=lowest)


# Trainings that take longer than this many seconds are announced.
_WORTH_SAYING = 2.0


class NcfWork:
    """Trains and ranks what is missing."""

    def __init__(self, store: Store, benchmark: NcfBenchmark) -> None:
        self._store, self._benchmark = store, benchmark

    def runs(self, wanted: Sequence[Trained]) -> tuple[dict[Trained, dict[str, Run]], dict[str, str]]:
        """Return the runs of each training by protocol, and why some rows could not be made."""
        there = {trained: self._store.kept(trained.stem, self._made_of(trained)) for trained in wanted}
        missing = [trained for trained, artifact in there.items() if artifact is None]
        self._announce(missing)
        failed: dict[str, str] = {}
        with progress("Training and ranking", total=len(missing), unit="trainings") as bar:
            for trained in missing:
                made_of = self._made_of(trained)
                try:
                    there[trained] = self._store.make(trained.stem, made_of, partial(self._make, trained))
                except MissingExtraError as error:
                    failed[trained.row] = str(error)
                bar.advance(note=trained.row)
        return {trained: self._read(artifact) for trained, artifact in there.items() if artifact is not None}, failed

    def _made_of(self, trained: Trained) -> dict[str, Any]:
        return {
            **self._benchmark.identity,
            "system": trained.spelling,
            "version": trained.system().version,
            "seed": trained.seed,
        }

    def _make(self, trained: Trained, place: Path) -> Made:
        checkpoint = self._store.checkpoint(trained.stem, self._made_of(trained))
        system = fitted(trained.system(), self._benchmark.split.train, None, checkpoint)
        runs = rank_with(system, self._benchmark.rankers, name=trained.row)
        facts = {protocol: run_facts(run) for protocol, run in zip(PROTOCOLS, runs, strict=True)}
        history = [entry["loss"] for entry in system.history] if isinstance(system, EpochModel) else []
        paths = [save_run(run, place / f"{protocol}.parquet") for protocol, run in zip(PROTOCOLS, runs, strict=True)]
        return paths, {**facts, "losses": history}

    def _read(self, artifact: Artifact) -> dict[str, Run]:
        train = self._benchmark.split.train
        ids = Vocabularies(train.user_ids, train.item_ids)
        return {
            protocol: read_run(artifact.path(f"{protocol}.parquet"), "", ids, artifact.facts[protocol])
            for protocol in PROTOCOLS
        }

    def _announce(self, missing: Iterable[Trained]) -> None:
        """Estimate how long the trainings will take, from one epoch on some of the ratings, and show it."""
        if settings.quiet:
            return
        train, total = self._benchmark.split.train, 0.0
        guesses: dict[str, float] = {}
        for trained in missing:
            system = trained.system()
            if not isinstance(system, EpochModel):
                continue
            if trained.spelling not in guesses:
                try:
                    epochs = system.most_epochs(len(train) / train.n_users)
                    guesses[trained.spelling] = system.seconds_per_epoch(train) * epochs
                except CranfieldError:  # the error is reported when the system is trained
                    guesses[trained.spelling] = 0.0
            total += guesses[trained.spelling]
        if total > _WORTH_SAYING:
            announce(f"Training by epochs will take about {time_text(total)}; finished work is kept if you stop it.")


def by_row(runs: Mapping[Trained, Mapping[str, Run]], protocol: str) -> dict[str, list[Run]]:
    """Return the runs of each row under a protocol, one for each seed."""
    rows: dict[str, list[Run]] = {}
    for trained, own in runs.items():
        rows.setdefault(trained.row, []).append(own[protocol])
    return rows
