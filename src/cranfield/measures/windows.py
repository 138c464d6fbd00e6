"""Scores of consecutive time windows: one group of lists per window, and averages by window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from cranfield.measures.averaging import Averaging
from cranfield.measures.scores import Scores
from cranfield.measures.scores_table import LEVEL

_MARK = "window"


def in_window(scores: Scores, start: str) -> Scores:
    """Return scores with all lists in the window that starts at ``start``, for `join_folds`."""
    return replace(
        scores,
        groups=np.zeros(scores.n_lists, dtype=np.int16),
        group_names=(start,),
        step=replace(scores.step, settings={**scores.step.settings, _MARK: start}),
    )


def windows_of(scores: Scores) -> tuple[str, ...]:
    """Return the starts of the windows of joined scores, in order; empty without several windows."""
    return scores.group_names if _MARK in scores.step.settings and len(scores.group_names) > 1 else ()


def window_frame(scores: Scores, averaging: Averaging, *, level: float = LEVEL) -> pl.DataFrame:
    """Return one row per window, system and metric: the average, its interval, and the number of lists."""
    within = averaging.with_(groups="pooled")
    frames = [
        scores.group(start)
        .frame(within, level=level)
        .select(pl.lit(start).alias("window"), "system", "metric", "mean", "lower", "upper", "lists")
        for start in windows_of(scores)
    ]
    return pl.concat(frames)
