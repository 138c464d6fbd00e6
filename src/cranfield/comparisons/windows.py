"""Comparing windows of time: which system leads in each, and whether the latest window disagrees."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield.facts import segment as segment_facts
from cranfield.measures import Averaging, Scores, windows_of


def window_leads(scores: Scores, averaging: Averaging) -> list[segment_facts.WindowLeads]:
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


def _leads(scores: Scores, windows: tuple[str, ...], means: NDArray[np.float64]) -> Iterator[segment_facts.WindowLeads]:
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
        enough = len(windows) >= segment_facts.FEWEST_WINDOWS
        p = min(1.0, 2 * float(stats.binom.cdf(min(won, lost), won + lost, 0.5))) if won + lost else 1.0
        yield segment_facts.WindowLeads(
            metric,
            windows,
            scores.systems[best],
            tuple(scores.systems[leader] for leader in leaders),
            scores.systems[second],
            won,
            lost,
            p if enough else None,
        )


def leads_frame(leads: list[segment_facts.WindowLeads]) -> pl.DataFrame:
    """Return one row per metric: the leading system, in how many windows it leads, and the latest leader."""
    rows = [
        {
            "metric": lead.metric,
            "best": lead.best,
            "second": lead.second,
            "windows": len(lead.windows),
            "won": lead.won,
            "lost": lead.lost,
            "p": lead.p,
            "latest": lead.leaders[-1],
            "stable": len(set(lead.leaders)) == 1,
        }
        for lead in leads
    ]
    return pl.DataFrame(rows, schema_overrides={"p": pl.Float64})
