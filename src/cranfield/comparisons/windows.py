"""Comparing windows of time: which system leads in each, and whether the latest window disagrees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield.measures import Averaging, Scores, windows_of

FEWEST_WINDOWS = 6
"""With fewer windows, even a lead in all of them has a p-value above .05, so none is reported."""


class WindowLeads(NamedTuple):
    """The system that leads in each window by a metric.

    Parameters
    ----------
    metric, windows
        The metric, and when each window starts.
    best
        The system that leads over all windows, by the mean of the windows' averages.
    leaders
        The system that leads in each window.
    second
        The system that comes second over all windows.
    won, lost
        The numbers of windows in which the best system is ahead of the second and behind it.
    p
        The p-value of the two-sided sign test over windows; None with fewer than `FEWEST_WINDOWS`.
    """

    metric: str
    windows: tuple[str, ...]
    best: str
    leaders: tuple[str, ...]
    second: str
    won: int
    lost: int
    p: float | None

    def sentence(self) -> str:
        """Return whether the lead is stable, whether the latest window disagrees, and how many windows were won."""
        number, latest = len(self.windows), self.leaders[-1]
        led = self.leaders.count(self.best)
        if led == number:
            said = f"the winner is stable: {self.best} leads in {'both' if number == 2 else f'all {number}'} windows"
        elif latest != self.best:
            said = (
                f"the latest window disagrees: {self.best} leads over all windows and in {led} of {number}, but "
                f"{latest} leads from {self.windows[-1]} on"
            )
        else:
            said = f"the winner is not stable: {self.best} leads in {led} of {number} windows, including the latest"
        tested = (
            f"no p-value with fewer than {FEWEST_WINDOWS} windows" if self.p is None else f"sign test p = {self.p:.3f}"
        )
        return (
            f"{self.metric}: {said}. The test over users applies to these windows only; for other times, "
            f"{self.best} is ahead of {self.second} in {self.won} of {number} windows and behind in {self.lost} "
            f"({tested})."
        )

    def row(self) -> dict[str, object]:
        """Return the leads as a row of a table."""
        return {
            "metric": self.metric,
            "best": self.best,
            "second": self.second,
            "windows": len(self.windows),
            "won": self.won,
            "lost": self.lost,
            "p": self.p,
            "latest": self.leaders[-1],
            "stable": len(set(self.leaders)) == 1,
        }


def window_leads(scores: Scores, averaging: Averaging) -> list[WindowLeads]:
    """Return which system leads in each window of joined scores, for each metric that has a value for every list.

    Parameters
    ----------
    scores
        The joined scores of several windows; without windows, or with one system, there is nothing to say.
    averaging
        How lists are averaged within a window; the overall average is the mean over windows.
    """
    windows = windows_of(scores)
    if not windows or len(scores.systems) < 2:
        return []
    within = averaging.with_(groups="pooled")
    means = np.stack([scores.group(start).average(within) for start in windows])
    return list(_leads(scores, windows, means))


def _leads(scores: Scores, windows: tuple[str, ...], means: NDArray[np.float64]) -> Iterator[WindowLeads]:
    from scipy import stats

    for m, metric in enumerate(scores.metrics):
        signed = -means[:, :, m] if scores.lower_is_better[m] else means[:, :, m]
        if np.isnan(signed).any():
            continue
        order = np.argsort(-signed.mean(axis=0), kind="stable")
        best, second = int(order[0]), int(order[1])
        leaders = [best if row[best] == row.max() else int(np.argmax(row)) for row in signed]
        ahead = signed[:, best] - signed[:, second]
        won, lost = int(np.count_nonzero(ahead > 0)), int(np.count_nonzero(ahead < 0))
        enough = len(windows) >= FEWEST_WINDOWS
        p = min(1.0, 2 * float(stats.binom.cdf(min(won, lost), won + lost, 0.5))) if won + lost else 1.0
        yield WindowLeads(
            metric,
            windows,
            scores.systems[best],
            tuple(scores.systems[leader] for leader in leaders),
            scores.systems[second],
            won,
            lost,
            p if enough else None,
        )


def leads_frame(leads: list[WindowLeads]) -> pl.DataFrame:
    """Return one row per metric: the leading system, in how many windows it leads, and the latest leader."""
    return pl.DataFrame([lead.row() for lead in leads], schema_overrides={"p": pl.Float64})
