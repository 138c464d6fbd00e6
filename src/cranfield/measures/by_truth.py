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
from cranfield.tables import UNKNOWN

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TrueValues:
    """The true values of the lists of several systems, for every user with training ratings.

    Parameters
    ----------
    systems
        The names of the systems.
    users
        The codes of the users, in the vocabulary of the truth.
    cutoff
        How many items of a list count.
    relevant
        Systems × users: the summed weights of the relevant judgments in the list.
    judged
        Systems × users: the summed weights of all judgments in the list.
    counts
        Systems × users: the number of relevant judgments in the list.
    """

    systems: tuple[str, ...]
    users: NDArray[np.int64]
    cutoff: int
    relevant: Floats
    judged: Floats
    counts: Floats

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
        """Return percentiles × rows: percentiles of the defined values of each row, NaN for a row without any.

        Examples
        --------
        >>> TrueValues.row_percentiles(np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]]), (50.0,))
        array([[ 2., nan]])
        """
        percentiles = np.full((len(tails), len(draws)), np.nan)
        has_values = ~np.isnan(draws).all(axis=1)
        if has_values.any():
            percentiles[:, has_values] = np.nanpercentile(draws[has_values], tails, axis=1)
        return percentiles


def true_values(runs: Any, truth: Truth, *, cutoff: int = 10, threshold: float | str | None = AUTO) -> TrueValues:
    """Estimate the true precision of lists from the judgments of a truth.

    Parameters
    ----------
    runs
        Runs, or anything that `measure` accepts as runs. A user without a list counts as 0.
    truth
        A design of `cranfield.splits.truths`.
    cutoff
        How many items of a list count.
    threshold
        The lowest rating of a relevant item.

    Examples
    --------
    >>> import cranfield as cf
    >>> train = cf.Ratings.of(["ann", "bob"], ["x", "y"], [4, 5])
    >>> judged = cf.Ratings.of(["ann", "bob"], ["y", "z"], [5, 2])
    >>> truth = cf.splits.truths.given(train, judged, probability=0.5)
    >>> lists = {"mine": {"ann": ["y", "z"], "bob": ["z", "x"]}}
    >>> true_values(lists, truth, cutoff=2, threshold=4).precision.tolist()
    [[1.0, 0.0]]
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
    users = _codes(run.users[lists], run.user_ids, judged.user_ids)
    items = _codes(run.items[places], run.item_ids, judged.item_ids)
    inside = (users != UNKNOWN) & (items != UNKNOWN)
    keys = judged.users.astype(np.int64) * judged.n_items + judged.items
    wanted = users[inside].astype(np.int64) * judged.n_items + items[inside]
    spots = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    hits = keys[spots] == wanted
    owners, spots = users[inside][hits], spots[hits]
    weights, relevant = truth.weights[spots], judged.values[spots] >= lowest
    columns: Sequence[Floats] = (weights * relevant, weights, relevant.astype(np.float64))
    return np.array([np.bincount(owners, weights=column, minlength=judged.n_users) for column in columns])


def _codes(codes: NDArray[np.int32], own: Any, other: Any) -> NDArray[np.int32]:
    translation = other.translation(own)
    return codes if translation is None else translation[codes]
