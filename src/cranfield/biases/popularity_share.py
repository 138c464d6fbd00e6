"""How much of a system's score popularity explains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield.judgments import Judged
from cranfield.measures import HEAD_MID_TAIL, Scores, by_popularity, group_of_items
from cranfield.rankings import Run
from cranfield.splits import Split
from cranfield.tables import UNKNOWN

Values = NDArray[np.float64]


def popularity_shares(scores: Scores, popularity: str, runs: Sequence[Run], split: Split, n: int) -> pl.DataFrame:
    """Return how much of each system's score popularity explains.

    Parameters
    ----------
    scores
        The scores of all systems and of ranking by popularity, by one metric.
    popularity
        The name of the system that ranks by popularity.
    runs, split
        The lists and the split that they were measured on.
    n
        The number of items of a list that are considered.

    Returns
    -------
    pl.DataFrame
        One row per system: its average (``mean``); ``reached``, the average of popularity over its own;
        ``partial_correlation`` with popularity over users, given the number of relevant test items of the user; and of
        its first ``n`` items ``recommended``, the mean share of users who rated them in training, over that of the
        catalogue, and ``head``, the share that is among the most popular items that make up a fifth of all ratings.
    """
    means = scores.average()[:, 0]
    place = scores.systems.index(popularity)
    size = np.log1p(scores.relevant.astype(np.float64))
    values = np.nan_to_num(scores.values[:, 0])
    rows = []
    for s, system in enumerate(scores.systems):
        run = next(run for run in runs if run.name == system)
        recommended, head = _popularity_of_lists(run, split, n)
        partial = partial_correlation(values[s], values[place], size)
        rows.append((system, means[s], means[place] / means[s] if means[s] else None, partial, recommended, head))
    names = ("mean", "reached", "partial_correlation", "recommended", "head")
    return pl.DataFrame(rows, schema={"system": pl.String, **dict.fromkeys(names, pl.Float64)}, orient="row")


def partial_correlation(x: Values, y: Values, given: Values) -> float:
    """Return the correlation of x and y after removing what is linear in ``given``; NaN if one is constant.

    Examples
    --------
    >>> z = np.array([1.0, 2.0, 3.0, 4.0])
    >>> round(partial_correlation(z + [1, -1, -1, 1], z + [1, -1, -1, 1], z), 6)
    1.0
    """
    left, right = _residuals(x, given), _residuals(y, given)
    scale = float(np.sqrt((left @ left) * (right @ right)))
    tiny = 1e-12 * (1.0 + float(np.abs(x).max(initial=0)) * float(np.abs(y).max(initial=0))) * max(len(x), 1)
    return float(left @ right) / scale if scale > tiny else float("nan")


def _residuals(values: Values, given: Values) -> Values:
    centred, covariate = values - values.mean(), given - given.mean()
    spread = float(covariate @ covariate)
    return centred - covariate * (float(covariate @ centred) / spread) if spread > 0 else centred


def _popularity_of_lists(run: Run, split: Split, n: int) -> tuple[float, float]:
    """Return the mean popularity of the first n items of all lists relative to the catalogue, and the head's share."""
    train = split.train
    items = top_items(run, split, n)
    counts = np.append(train.item_counts, 0).astype(np.float64)
    head = np.append(group_of_items(train, list(HEAD_MID_TAIL.values()), "ratings") == 0, False)
    usual = float(train.item_counts.mean())
    if len(items) == 0 or usual == 0:
        return float("nan"), float("nan")
    return float(counts[items].mean()) / usual, float(head[items].mean())


def top_items(run: Run, split: Split, n: int) -> NDArray[np.int64]:
    """Return the first n items of every list of a test user, in the codes of the split; the last code is unknown."""
    codes = split.train.item_ids.translation(run.item_ids)
    users = split.test.user_ids.translation(run.user_ids)
    own = run.users if users is None else users[run.users]
    tested = np.append(split.test.user_counts > 0, False)[own]
    keep = (run.entry_ranks <= n) & np.repeat(tested, np.diff(run.indptr))
    items = run.items[keep].astype(np.int64)
    items = items if codes is None else codes[items].astype(np.int64)
    return np.where(items == UNKNOWN, split.train.n_items, items)


def by_popularity_group(judged: Sequence[Judged], split: Split, n: int) -> pl.DataFrame:
    """Return Recall@n of each system by head, mid and tail of the catalogue."""
    frame = by_popularity(list(judged), split.test, f"Recall@{n}", train=split.train)
    return frame.select("system", "group", "items", "ratings", "lists", "mean")
