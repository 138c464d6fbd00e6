"""Values of systems per user and fold, from which means and their intervals are computed by definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield.data import Ratings
from cranfield.measures import measure, row_percentiles, user_draws
from cranfield.rankings import Run

Floats = NDArray[np.float64]
_TAILS = (2.5, 97.5)


@dataclass(frozen=True, eq=False)
class Sums:
    """The contribution of each user to each number in each fold.

    Parameters
    ----------
    labels
        What is counted.
    systems
        The names of the systems.
    values
        Labels × systems × folds × users.
    served
        Folds × users: 1 for a user who counts.
    folds
        Number of folds per repetition.
    """

    labels: tuple[str, ...]
    systems: tuple[str, ...]
    values: Floats
    served: Floats
    folds: int = 1

    def means(self, label: str, weights: Floats | None = None) -> Floats:
        """Return draws × systems: the mean over folds of the mean over users who count; one draw without weights."""
        users = np.ones((1, self.served.shape[1])) if weights is None else weights
        return np.asarray((self._weighted(label, users) / (self.served @ users.T)).mean(axis=1).T)

    def precision(self, label: str) -> tuple[Floats, Floats, Floats]:
        """Return the mean of each system and its interval, of a number that is a precision.

        None is above 1, though an estimate from few weighted judgments can be.
        """
        lower, upper = (np.minimum(end, 1.0) for end in self.interval(label))
        return np.minimum(self.means(label)[0], 1.0), lower, upper

    def ratios(self, above: str, below: str, weights: Floats | None = None) -> Floats:
        """Return draws × systems: the ratio of two numbers, each summed over folds and users."""
        users = np.ones((1, self.served.shape[1])) if weights is None else weights
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((self._weighted(above, users).sum(axis=1) / self._weighted(below, users).sum(axis=1)).T)

    def by_fold(self, label: str) -> Floats:
        """Return folds × systems: the mean over the users who count."""
        return np.asarray((self.values[self.labels.index(label)].sum(axis=2) / self.served.sum(axis=1)).T)

    def interval(self, above: str, below: str | None = None, *, resamples: int = 500) -> tuple[Floats, Floats]:
        """Return the 95 % interval of each system: percentiles over bootstrap samples of users and of repetitions.

        The interval is that of `means`, or of `ratios` if ``below`` is given.
        """
        weights = user_draws(self.served.shape[1], resamples, 0)
        top = self._weighted(above, weights)
        bottom = (self.served @ weights.T)[None] if below is None else self._weighted(below, weights)
        repeated = [
            np.moveaxis(part.reshape(len(part), -1, self.folds, resamples), 3, 1) for part in (top, bottom)
        ]  # systems × draws × repetitions × folds
        count = repeated[0].shape[2]
        picks = (stream(0, "truth", "repetitions").random((resamples, count)) * count).astype(np.int64)
        top, bottom = (part[:, np.arange(resamples)[:, None], picks] for part in repeated)
        with np.errstate(invalid="ignore", divide="ignore"):
            if below is None:
                drawn = (top / bottom).mean(axis=(2, 3))
            else:
                drawn = top.sum(axis=(2, 3)) / bottom.sum(axis=(2, 3))
        lower, upper = row_percentiles(drawn, _TAILS)
        return lower, upper

    def _weighted(self, label: str, weights: Floats) -> Floats:
        return np.asarray(self.values[self.labels.index(label)] @ weights.T)

    def arrays(self, prefix: str) -> dict[str, Any]:
        """Return everything as arrays, to be saved in a file under names that begin with ``prefix``."""
        return {
            f"{prefix}labels": np.array(self.labels),
            f"{prefix}systems": np.array(self.systems),
            f"{prefix}values": self.values.astype(np.float32),
            f"{prefix}served": self.served.astype(np.float32),
            f"{prefix}folds": np.array(self.folds),
        }

    @staticmethod
    def of_arrays(arrays: Mapping[str, Any], prefix: str) -> Sums:
        """Return the sums that `arrays` were made of."""
        return Sums(
            tuple(map(str, arrays[f"{prefix}labels"])),
            tuple(map(str, arrays[f"{prefix}systems"])),
            arrays[f"{prefix}values"].astype(np.float64),
            arrays[f"{prefix}served"].astype(np.float64),
            int(arrays[f"{prefix}folds"]),
        )

    @staticmethod
    def joined(parts: Sequence[Sums], *, folds: int | None = None) -> Sums:
        """Return the folds of several sums as one object; ``folds`` sets how many folds form a repetition."""
        values = np.concatenate([part.values for part in parts], axis=2)
        served = np.concatenate([part.served for part in parts])
        return Sums(parts[0].labels, parts[0].systems, values, served, parts[0].folds if folds is None else folds)


def per_user(runs: Sequence[Run], test: Ratings, metrics: Sequence[str], threshold: float) -> Floats:
    """Return metrics × systems × users: the score of each list, 0 if it is undefined or there is no test rating."""
    scores = measure(list(runs), test, metrics, threshold=threshold)
    values = np.zeros((len(metrics), len(runs), test.n_users))
    values[:, :, scores.users] = np.nan_to_num(np.swapaxes(scores.values, 0, 1))
    return values
