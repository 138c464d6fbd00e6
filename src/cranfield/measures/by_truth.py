"""The true value of ranked lists, estimated from a `Truth`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._streams import stream
from cranfield.data import AUTO, Relevance
from cranfield.judgments import as_runs
from cranfield.rankings import Run
from cranfield.splits import Truth

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TrueValues:
    """The true values of the lists of several systems, for every user with training ratings."""

    systems: tuple[str, ...]
    users: NDArray[np.int64]  # the codes of the users, in the vocabulary of the truth
    cutoff: int  # how many items of a list count
    relevant: Floats  # systems × users: the summed weights of the relevant judgments in the list
    judged: Floats  # systems × users: the summed weights of all judgments in the list
    counts: Floats  # systems × users: the number of relevant judgments in the list

    @property
    def precision(self) -> Floats:
        r"""Systems × users: the true precision, :math:`\frac1n \sum_{k \le n} o_k\, rel_k / \pi_k`.

        :math:`o_k` is 1 if the k-th item is judged, and :math:`\pi_k` is the probability of that. Its expectation is
        the precision of the list if every pair were judged, as long as the truth is weighted or all probabilities are
        the same (Horvitz and Thompson 1952). It can be above 1 for one user.
        """
        return self.relevant / self.cutoff

    @property
    def mean_precision(self) -> Floats:
        """The true precision of each system: the mean over users, and 1 if few weighted judgments make it more."""
        return np.minimum(self.precision.mean(axis=1), 1.0)

    def frame(self, *, level: float = 0.95, resamples: int = 1_000, seed: int = 0) -> pl.DataFrame:
        """Return one row per system: ``system, precision, lower, upper, liked, liked_lower, liked_upper, counted``.

        ``liked`` is the weighted share of the judged items in the lists that are relevant; ``counted`` is the
        unweighted precision, in which unjudged items count as 0. The intervals are bootstrap percentiles over users. A
        precision and the ends of its interval are at most 1 (`mean_precision`).
        """
        level = check.number("level", level)
        draws = self.user_draws(len(self.users), resamples, seed)
        tails = (50 * (1 - level), 50 * (1 + level))
        values = np.minimum(self.precision @ draws.T, 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = (self.relevant @ draws.T) / (self.judged @ draws.T)
            liked = self.relevant.sum(axis=1) / self.judged.sum(axis=1)
        lower, upper = np.percentile(values, tails, axis=1)
        liked_lower, liked_upper = self.row_percentiles(shares, tails)
        return pl.DataFrame(
            {
                "system": self.systems,
                "precision": self.mean_precision,
                "lower": lower,
                "upper": upper,
                "liked": liked,
                "liked_lower": liked_lower,
                "liked_upper": liked_upper,
                "counted": self.counts.mean(axis=1) / self.cutoff,
            }
        )

    @staticmethod
    def user_draws(users: int, resamples: int, seed: int) -> Floats:
        """Return resamples × users: the share of each user in a bootstrap sample."""
        generator = stream(check.whole("seed", seed, at_least=0), "true values", "users")
        resamples = check.whole("resamples", resamples, at_most=check.MOST_DRAWS)
        picks = (generator.random((resamples, users)) * users).astype(np.int64)
        flat = picks + np.arange(len(picks))[:, None] * users
        counts = np.bincount(flat.ravel(), minlength=len(picks) * users).reshape(len(picks), users)
        return np.asarray(counts / max(users, 1))

    @staticmethod
    def row_percentiles(draws: Floats, tails: Sequence[float]) -> Floats:
        """Return percentiles × rows: percentiles of the defined values of each row, NaN for a row without any."""
        percentiles = np.full((len(tails), len(draws)), np.nan)
        has_values = ~np.isnan(draws).all(axis=1)
        if has_values.any():
            percentiles[:, has_values] = np.nanpercentile(draws[has_values], tails, axis=1)
        return percentiles


def true_values(runs: Any, truth: Truth, *, cutoff: int = 10, threshold: float | str | None = AUTO) -> TrueValues:
    """Estimate the true precision of lists down to a cut-off from the judgments of a truth (`cranfield.splits.truths`).

    The runs are anything that `measure` accepts as runs; a user without a list counts as 0.
    """
    cutoff = check.whole("cutoff", cutoff)
    lowest = Relevance.of(truth.judged, threshold, truth.train).threshold
    systems = as_runs(runs)
    users = np.flatnonzero(truth.train.user_counts)
    sums = np.array([_sums(run, truth, cutoff, lowest)[:, users] for run in systems])
    names = tuple(run.name for run in systems)
    return TrueValues(names, users, cutoff, *(np.ascontiguousarray(sums[:, part]) for part in range(3)))


def _sums(run: Run, truth: Truth, cutoff: int, lowest: float) -> Floats:
    """Return for each user the summed weights of relevant and of all judgments in the list, and the relevant count."""
    judged = truth.judged
    places = np.flatnonzero(run.entry_ranks <= cutoff)
    lists = np.searchsorted(run.indptr, places, side="right") - 1
    users = judged.user_ids.recoded(run.users[lists], run.user_ids)
    items = judged.item_ids.recoded(run.items[places], run.item_ids)
    spots = judged.places(users, items)
    owners, spots = users[spots >= 0], spots[spots >= 0]
    weights, relevant = truth.weights[spots], judged.values[spots] >= lowest
    columns: Sequence[Floats] = (weights * relevant, weights, relevant.astype(np.float64))
    return np.array([np.bincount(owners, weights=column, minlength=judged.n_users) for column in columns])
