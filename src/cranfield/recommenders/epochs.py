"""Systems that learn in epochs: progress, early stopping and checkpoints."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError
from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.data import Ratings
from cranfield.recommenders.model import Model
from cranfield.recommenders.saving import about_model, read_arrays, write_arrays
from cranfield.tables import UNKNOWN

# Maximum number of users to evaluate; all of them would take longer than an epoch.
_USERS = 1000
# Number of users scored per block.
_BLOCK = 64
_CUTOFF = 10


@dataclass(frozen=True, eq=False)
class ValidationPart:
    """Held-out ratings of known users and items, with the codes of the training ratings."""

    users: NDArray[np.int64]  # ascending
    indptr: NDArray[np.int64]  # where the items and ratings of each begin
    items: NDArray[np.int64]
    values: NDArray[Any]
    train: Ratings  # whose items are excluded from lists
    predicts: bool  # systems that predict ratings are evaluated by RMSE, others by nDCG@10 of all held-out items

    @classmethod
    def of(cls, train: Ratings, validation: Ratings, predicts: bool, seed: int) -> ValidationPart | None:
        """Return what can be evaluated of a validation part, for at most 1,000 users; None if there is nothing."""
        user_codes = train.user_ids.codes(validation.user_ids.all)[validation.users]
        item_codes = train.item_ids.codes(validation.item_ids.all)[validation.items]
        known = (user_codes != UNKNOWN) & (item_codes != UNKNOWN)
        users, items, values = user_codes[known], item_codes[known], validation.values[known]
        distinct = np.unique(users)
        if not len(distinct):
            return None
        chosen = np.argsort(stream(seed, "validation").random(len(distinct)), kind="stable")[:_USERS]
        distinct = np.sort(distinct[chosen])
        order = np.argsort(users, kind="stable")
        order = order[np.isin(users[order], distinct)]
        counts = np.bincount(np.searchsorted(distinct, users[order]), minlength=len(distinct))
        indptr = np.append(np.int64(0), np.cumsum(counts))
        return cls(distinct.astype(np.int64), indptr, items[order].astype(np.int64), values[order], train, predicts)

    @property
    def metric(self) -> str:
        """The name of the metric."""
        return "RMSE" if self.predicts else f"nDCG@{_CUTOFF}"

    def better(self, value: float, than: float | None) -> bool:
        """Whether a value is better than another; any value is better than none."""
        return than is None or (value < than if self.predicts else value > than)

    def value(self, score: Callable[[NDArray[np.int64]], NDArray[Any]]) -> float:
        """Return the metric of a system, given a function that scores the items for some users."""
        parts = [
            self._part(slice(start, start + _BLOCK), score(self.users[start : start + _BLOCK]))
            for start in range(0, len(self.users), _BLOCK)
        ]
        values = np.concatenate(parts)
        return float(np.sqrt(values.mean()) if self.predicts else values.mean())

    def _part(self, block: slice, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Return the squared errors of some users, or their nDCG."""
        users = self.users[block]
        first, last = self.indptr[block.start], self.indptr[block.start + len(users)]
        items = self.items[first:last]
        rows = np.repeat(np.arange(len(users)), np.diff(self.indptr[block.start : block.start + len(users) + 1]))
        if self.predicts:
            return (scores[rows, items].astype(np.float64) - self.values[first:last]) ** 2
        scores = np.where(np.isnan(scores), -np.inf, scores)
        for row, user in enumerate(users):
            scores[row, self.train.items[self.train.profile(int(user))]] = -np.inf
        relevant = np.zeros(scores.shape, dtype=np.bool_)
        relevant[rows, items] = True
        depth = min(_CUTOFF, scores.shape[1])
        order = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
        discounts = 1 / np.log2(np.arange(depth) + 2)
        ideal = np.cumsum(discounts)[np.minimum(relevant.sum(axis=1), depth) - 1]
        return (np.take_along_axis(relevant, order, axis=1) * discounts).sum(axis=1) / ideal


Numbers = Mapping[str, NDArray[Any]]
"""Everything that the next epoch depends on, as arrays by name."""

Epoch = Callable[[Numbers, int], tuple[Numbers, float]]
"""Passes once over the ratings: takes the numbers and the index of the epoch, returns new numbers and the mean loss."""


class CheckpointError(InputError):
    """A checkpoint that is damaged, or belongs to another training."""


# Minimum number of ratings for timing an epoch.
_TIMED = 5000
# The default number of epochs if it depends on the data: see `EpochModel.most_epochs`.
_FEWEST, _MOST = 2, 20
# Settings that may change when a training is resumed.
_FREE = ("epochs", "patience")


class EpochModel(Model):
    """A `Model` that passes over the ratings several times.

    A subclass has the settings ``epochs``, ``patience`` and ``seed``. It implements ``_start``, which returns the
    initial numbers and a function that runs one epoch, and ``_take``, which stores what was learned. Every epoch has
    its own random stream, so that a training that was interrupted continues as if it had not been.
    """

    steps_by: ClassVar[tuple[str, ...]] = ("rate",)
    """The settings to lower if the training does not converge."""
    epochs: int | None
    patience: int
    seed: int

    def fit(self, train: Ratings, validation: Ratings | None = None, *, checkpoint: str | Path | None = None) -> Self:
        """Learn from the training ratings.

        With a ``validation`` part, every epoch is evaluated on it: by nDCG@10, or by RMSE if the system predicts
        ratings. With a ``patience``, training stops after this many epochs without improvement, and the best epoch is
        kept. A file ``checkpoint`` keeps the state after every epoch, and training resumes from it. A checkpoint of
        another system, other settings, other ratings, another version or more epochs is refused.
        """
        known = self._learnable(train)
        self._trained_by = self._machinery()
        numbers, epoch = self._start(known)
        about, held_out = {**about_model(self, train), "validation": None}, None
        if validation is not None:
            held_out = ValidationPart.of(known, validation, self.predicts_ratings, self.seed)
            about["validation"] = validation.fingerprint
        log = _Log(about, None if checkpoint is None else Path(checkpoint), numbers)
        self._epochs = epochs = self.most_epochs(len(known) / known.n_users, stops_early=held_out is not None)
        if len(log.losses) > epochs:
            raise CheckpointError(
                f"this checkpoint has {len(log.losses)} epochs, more than epochs={epochs}",
                source=checkpoint,
                remedy=_REMEDY,
            )
        with progress(f"Fitting {self.name}", total=epochs, unit="epochs") as bar:
            bar.done = len(log.losses)
            while len(log.losses) < epochs and not log.is_over(self.patience):
                with np.errstate(over="ignore", invalid="ignore"):  # refused by the next line
                    numbers, loss = epoch(log.numbers, len(log.losses))
                self._check_settled(numbers, loss)
                value = None
                if held_out is not None:
                    self._take(numbers)
                    value = held_out.value(self._score)
                log.add(numbers, loss, value, held_out)
                measured = "" if held_out is None else f", validation {held_out.metric} {value:.4f}"
                bar.advance(note=f"loss {loss:.4f}{measured}")
        self._take(log.best if self.patience and log.best is not None else log.numbers)
        self._losses, self._validations = np.array(log.losses), np.array(log.values, dtype=np.float64)
        return self.fitted_on(train)

    def most_epochs(self, ratings_per_user: float, *, stops_early: bool = False) -> int:
        """Return the number of epochs, or the maximum if a validation part can stop the training early.

        ``epochs=None`` means 20 with a validation part. Without one, it means half of the average number of ratings per
        user, from 2 to 20: if users have few ratings, further epochs overfit.
        """
        if self.epochs is not None:
            return self.epochs
        return _MOST if stops_early else min(_MOST, max(_FEWEST, round(ratings_per_user / 2)))

    @property
    def history(self) -> list[dict[str, float | int | None]]:
        """The loss of each epoch, and its value on the validation part, if there is one."""
        return [
            {"epoch": number + 1, "loss": float(loss), "validation": None if np.isnan(value) else float(value)}
            for number, (loss, value) in enumerate(zip(self._losses, self._validations))
        ]

    @property
    def best_epoch(self) -> int:
        """The epoch that was kept: the best on the validation part with early stopping, otherwise the last."""
        if not self.patience or np.isnan(self._validations).all():
            return len(self._losses)
        return 1 + int(np.nanargmin(self._validations) if self.predicts_ratings else np.nanargmax(self._validations))

    @property
    def training(self) -> dict[str, Any]:
        """How the system was trained, for the record."""
        return {"epochs": len(self._losses), "by": self._trained_by}

    def seconds_per_epoch(self, train: Ratings) -> float:
        """Estimate the seconds of an epoch from two on some of the ratings; the first may include compilation."""
        share = min(1.0, max(_TIMED / max(len(train), 1), 0.02))
        some = self._learnable(train.keep(stream(self.seed, "timing").random(len(train)) < share))
        numbers, epoch = self._start(some)
        numbers, _ = epoch(numbers, 0)
        start = time.perf_counter()
        epoch(numbers, 1)
        return (time.perf_counter() - start) / share

    def _check_settled(self, numbers: Numbers, loss: float) -> None:
        """Refuse numbers that are not finite; they come from too large a setting, such as the rate."""
        if np.isfinite(loss) and all(np.isfinite(values).all() for values in numbers.values()):
            return
        spelled = " and ".join(f"{name}={getattr(self, name):g}" for name in self.steps_by)
        grown = "its weights are no longer finite" if np.isfinite(loss) else f"the loss is {loss:g}"
        remedy = f"change {' or '.join(self.steps_by)}"
        raise SettingError(f"{self.name} does not converge with {spelled}: {grown}; {remedy}")

    def _machinery(self) -> str:
        """Return the library that trains the system and the number of threads, for the record."""
        return "numpy, on any number of threads"

    def _start(self, train: Ratings) -> tuple[Numbers, Epoch]:
        """Return the initial numbers, and a function that runs one epoch."""
        raise NotImplementedError

    def _take(self, numbers: Numbers) -> None:
        """Store what was learned, so that `_score` uses it."""
        raise NotImplementedError


def from_threshold(train: Ratings, threshold: float | None, system: str) -> Ratings:
    """Return the ratings that reach a threshold, or all without one; at least one rating must reach it."""
    if threshold is None:
        return train
    kept = train.keep(train.values >= threshold)
    if not len(kept) and len(train):
        raise InputError(
            f"no training rating reaches threshold={threshold:g} of {system}; the highest is {train.values.max():g}",
            remedy="give a lower threshold, or leave it out",
        )
    return kept


class _Log:
    """The progress of a training, saved as a checkpoint after every epoch, from which it starts if there is one."""

    def __init__(self, about: dict[str, Any], path: Path | None, numbers: Numbers) -> None:
        self._about, self._path = about, path
        self.numbers: Numbers = numbers
        self.losses: list[float] = []
        self.values: list[float] = []
        self.best: Numbers | None = None
        self.best_epoch: int | None = None
        self._best_value: float | None = None
        if path is not None and path.exists():
            self._read(path, numbers)

    def is_over(self, patience: int) -> bool:
        """Whether there were more epochs without improvement than the patience allows; 0 allows any number."""
        return patience > 0 and self.best_epoch is not None and len(self.losses) - self.best_epoch > patience

    def add(self, numbers: Numbers, loss: float, value: float | None, held_out: ValidationPart | None) -> None:
        """Record the results of an epoch."""
        self.numbers = numbers
        self.losses.append(loss)
        self.values.append(np.nan if value is None else value)
        if held_out is not None and value is not None and held_out.better(value, self._best_value):
            self.best, self.best_epoch, self._best_value = numbers, len(self.losses) - 1, value
        if self._path is not None:
            self._write(self._path)

    def _write(self, path: Path) -> None:
        arrays = {f"now.{name}": values for name, values in self.numbers.items()}
        if self.best is not None:
            arrays |= {f"best.{name}": values for name, values in self.best.items()}
        about = {**self._about, "best_epoch": self.best_epoch}
        arrays |= {"checkpoint": np.array(json.dumps(about)), "losses": np.array(self.losses)}
        write_arrays(path, {**arrays, "values": np.array(self.values)})

    def _read(self, path: Path, start: Numbers) -> None:
        try:
            arrays = read_arrays(path, _DAMAGED, _REMEDY)
            about = json.loads(str(arrays["checkpoint"]))
            self._check(path, about)
            self.losses, self.values = arrays["losses"].tolist(), arrays["values"].tolist()
            self.best_epoch = about["best_epoch"]
            self.numbers = {name: arrays[f"now.{name}"] for name in start}
            if self.best_epoch is not None:
                self.best = {name: arrays[f"best.{name}"] for name in start}
                self._best_value = self.values[self.best_epoch]
            shapes = {name: (self.numbers[name].shape, self.numbers[name].dtype) for name in start}
            if shapes != {name: (np.shape(values), np.asarray(values).dtype) for name, values in start.items()}:
                raise ValueError(shapes)
        except CheckpointError:
            raise
        except (InputError, KeyError, ValueError, TypeError, IndexError) as error:
            raise CheckpointError(_DAMAGED, source=path, remedy=_REMEDY) from error

    def _check(self, path: Path, about: dict[str, Any]) -> None:
        """Refuse the checkpoint of another training."""
        kept, wanted = _plain(about), _plain(self._about)
        differs = [name for name in wanted if kept.get(name) != wanted[name]]
        if differs:
            named = ", ".join(f"{name} {kept.get(name)}, not {wanted[name]}" for name in differs)
            raise CheckpointError(
                f"this checkpoint is from a different training run ({named})", source=path, remedy=_REMEDY
            )


_DAMAGED = "this is not a checkpoint, or it is damaged"
_REMEDY = "name another file, or remove this one to train from the start"


def _plain(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that two trainings must share."""
    settings = {name: value for name, value in about["settings"].items() if name not in _FREE}
    others = {name: about.get(name) for name in ("cranfield", "system", "train", "validation")}
    return {**others, **settings}
