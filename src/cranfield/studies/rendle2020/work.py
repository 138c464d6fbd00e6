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
from cranfield.biases import correct_runs
from cranfield.comparisons import Comparison, compare
from cranfield.data import Ratings
from cranfield.measures import Scores, measure
from cranfield.rankings import Drawn, Ranker, Ranking, Run, Serving, fitted, rank_with
from cranfield.recommenders import EpochModel, recommender
from cranfield.splits import Split, predefined
from cranfield.store import Artifact, Made, Store, encoding
from cranfield.studies.frame.claims import Floats, Part, users_error
from cranfield.studies.frame.exhibits import Printed
from cranfield.tables import UNKNOWN, is_parquet

SAMPLED, FULL = "sampled", "full"
PROTOCOLS = (SAMPLED, FULL)  # rank the test item among the published items, or among all items that are not in training

HR, NDCG = "HitRate@10", "nDCG@10"
METRICS = {"HR@10": HR, "nDCG@10": NDCG}
"""The metrics of the paper, as they are spelled here; a list has one relevant item."""

POPULARITY, ITEM_KNN, SLIM = "popularity", "itemknn", "SLIM"
IALS_2019, IALS_2022 = "iALS, 46 factors", "iALS, 192 factors"
MF, NEUMF, EASE = "MF", "NeuMF", "EASE"
SIZES = {MF: (8, 16, 24, 32, 64, 192), NEUMF: (8, 16, 32, 64)}
DIMENSIONS = {8: 24, 64: 192}
"""The factors of NeuMF, and of the MF it is compared with: the paper counts 3 numbers for each factor of NeuMF."""
RIDGES = (100, 300, 1000, 3000)
PRINTED = Printed(__package__)
"""HR@10 and nDCG@10 on MovieLens 1M.

Popularity and NeuMF with 8 factors: the published results of Ferrari Dacrema et al. (2019). EASE, with λ = 1320: a
later work of the authors. All others: Rendle et al. (2020), as quoted in the literature.
"""


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

    The table is a Parquet file or a frame with the columns ``user``, ``item`` (the test item) and ``negatives``, a list
    of items; or with one row per negative, in a column ``negative``, also as CSV.

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
    """The training data, and how the test items are ranked."""

    split: Split  # all ratings except one per user for training, and that one for testing
    drawn: Drawn  # the published items of each user
    doubled: int  # how many of the published items are the test item itself; these are left out

    @classmethod
    def of(cls, data: Ratings, negatives: pl.DataFrame) -> NcfBenchmark:
        """Take the test item of each user out of the ratings; it must be rated, and the published items must not be."""
        users, items = data.user_ids.codes(negatives["user"]), data.item_ids.codes(negatives["item"])
        others = data.item_ids.codes(negatives["negative"])
        pairs = data.pairs
        keys = users.astype(np.int64) * data.n_items
        unknown = (users == UNKNOWN) | (items == UNKNOWN) | ~np.isin(keys + items, pairs)
        rated = np.isin(keys + others, pairs) & (others != UNKNOWN) & (others != items)
        for wrong, words in (
            (unknown, "user {user} did not rate the test item {item}"),
            (rated, "user {user} rated {negative}, which is among the negatives"),
        ):
            if wrong.any():
                problem = words.format(**negatives.row(int(np.argmax(wrong)), named=True))
                remedy = "check that they belong to these ratings"
                raise InputError(problem, source="the negatives", remedy=remedy)
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

    @property
    def lowest(self) -> float:
        """The threshold: every test item is relevant, whatever its rating."""
        return float(self.split.test.values.min())

    @cached_property
    def rankers(self) -> list[Ranker]:
        """The rankers of the test items among the published items, and among all items."""
        ranking = Ranking(relevant="one", candidates="all", threshold=self.lowest, length="all")
        full = Ranker.of(self.split, Serving(), ranking, 0)
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
        return measure(runs, self.split.test, list(METRICS.values()), threshold=self.lowest)


_WORTH_SAYING = 2.0  # trainings that take longer than this many seconds are announced


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
        named = dict(zip(PROTOCOLS, runs, strict=True))
        paths = [encoding.save_run(run, place / f"{protocol}.parquet") for protocol, run in named.items()]
        facts = {protocol: encoding.run_facts(run) for protocol, run in named.items()}
        history = [entry["loss"] for entry in system.history] if isinstance(system, EpochModel) else []
        return paths, {**facts, "losses": history}

    def _read(self, artifact: Artifact) -> dict[str, Run]:
        train = self._benchmark.split.train
        ids = encoding.Vocabularies(train.user_ids, train.item_ids)
        return {
            protocol: encoding.read_run(artifact.path(f"{protocol}.parquet"), "", ids, artifact.facts[protocol])
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


def of_size(kind: str, factors: int) -> str:
    """Return the row of MF or NeuMF with a given number of factors."""
    return f"{kind}, {factors} factors"


@dataclass(frozen=True, eq=False)
class NcfNumbers:
    """The measurements, under both protocols."""

    benchmark: NcfBenchmark
    runs: dict[Trained, dict[str, Run]]  # of each training, by protocol
    failed: Mapping[str, str]  # why some rows could not be made
    known: str | None  # the dataset of the papers that the ratings are
    epochs: int | None = None  # of MF and NeuMF, if not as in the paper

    @cached_property
    def rows(self) -> list[str]:
        """The rows, in order."""
        return list(dict.fromkeys(trained.row for trained in self.runs))

    def rows_of(self, kind: str) -> list[str]:
        """Return the rows of MF, NeuMF or EASE, which have several sizes or settings."""
        return [row for row in self.rows if row.startswith(f"{kind}, ")]

    @cached_property
    def values(self) -> pl.DataFrame:
        """One row per training, protocol and metric: columns row, seed, protocol, metric, value."""
        lines = []
        for protocol in PROTOCOLS:
            for trained, own in self.runs.items():
                means = self.benchmark.scores([own[protocol]]).average()[0]
                for metric, value in zip(METRICS, means, strict=True):
                    lines.append((trained.row, trained.seed, protocol, metric, float(value)))
        return pl.DataFrame(lines, schema=["row", "seed", "protocol", "metric", "value"], orient="row")

    def of(self, row: str, protocol: str, metric: str) -> Floats:
        """Return the values of a row, one per seed; empty if it was not run."""
        return self.values.filter(row=row, protocol=protocol, metric=metric).sort("seed")["value"].to_numpy()

    def mean(self, row: str, protocol: str, metric: str) -> float:
        """Return the mean over seeds; NaN if the row was not run."""
        values = self.of(row, protocol, metric)
        return float(values.mean()) if len(values) else float("nan")

    def printed(self, row: str, metric: str) -> float | None:
        """Return the printed value of a row, if these are the paper's ratings."""
        return PRINTED.number("table 1", self.known, row, metric)

    @property
    def users(self) -> int:
        """How many users have a test item."""
        return int(np.count_nonzero(self.benchmark.split.test.user_counts))

    def lead(self, first: str, second: str, protocol: str, metric: str) -> Part:
        """Return by how much one row is above another, over seeds; the error over users is that of the first seeds."""
        values = self._user_values(protocol, metric, (first, second))
        margin = self.mean(first, protocol, metric) - self.mean(second, protocol, metric)
        return Part(np.array([margin]), users_error(values[0] - values[1], np.arange(values.shape[1])))

    def error(self, row: str, protocol: str, metric: str) -> float:
        """Return the error over users of the first seed of a row."""
        values = self._user_values(protocol, metric, (row,))
        return users_error(values[0], np.arange(values.shape[1]))

    def _user_values(self, protocol: str, metric: str, rows: Sequence[str]) -> Floats:
        first = self._first(protocol)
        scores = self.benchmark.scores([first[row] for row in rows])
        return np.nan_to_num(scores.values[:, scores.metric(METRICS[metric])])

    def compared(self, protocol: str) -> Comparison:
        """Compare the main rows under a protocol, by nDCG@10 over users, using the training with the first seed."""
        first = self._first(protocol)
        return compare(self.benchmark.scores([first[row] for row in self.main]), metrics=[NDCG])

    def _first(self, protocol: str) -> dict[str, Run]:
        """Return the run of each row's first seed."""
        return {trained.row: replace(own[protocol], name=trained.row) for trained, own in reversed(self.runs.items())}

    @cached_property
    def corrected(self) -> pl.DataFrame:
        """Estimates for the full catalogue from the sampled ranks of each row's first seed, and the true values."""
        split, lowest, metrics = self.benchmark.split, self.benchmark.lowest, list(METRICS.values())
        runs = [self._first(SAMPLED)[row] for row in self.rows]
        results = correct_runs(runs, split.test, metrics, train=split.train, threshold=lowest)
        names, frames = pl.Series(list(METRICS)), []
        for row, result in results.items():
            full = pl.Series([self.of(row, FULL, metric)[0] for metric in METRICS])
            frames.append(result.frame().with_columns(row=pl.lit(row), metric=names, full=full))
        inside = pl.col("full").is_between("lower", "upper")
        return pl.concat(frames).select("row", pl.exclude("row")).with_columns(inside=inside)

    @cached_property
    def main(self) -> list[str]:
        """The rows to compare: one each of MF, NeuMF and EASE; all rows if these are fewer than two."""
        kinds = {kind: self.rows_of(kind) for kind in (MF, NEUMF, EASE)}
        chosen = {kinds[kind][-1] for kind in (MF, NEUMF) if kinds[kind]}
        if kinds[EASE]:
            chosen.add(max(kinds[EASE], key=lambda row: self.mean(row, SAMPLED, "nDCG@10")))
        several = {row for own in kinds.values() for row in own}
        rows = [row for row in self.rows if row in chosen or row not in several]
        return rows if len(rows) > 1 else self.rows

    def best_ease(self, protocol: str, metric: str) -> str | None:
        """Return the best row of EASE under a protocol."""
        eases = self.rows_of(EASE)
        return max(eases, key=lambda row: self.mean(row, protocol, metric)) if len(eases) > 1 else None
