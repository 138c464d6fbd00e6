"""Metrics by the popularity of the test items, which show the part of the catalogue a system is good at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._checks import one_of, share, whole
from cranfield._errors import SettingError
from cranfield.data import AUTO, Ratings
from cranfield.judgments import Context, Judged, NegativeGrades
from cranfield.measures.measuring import Kind, Measuring, as_judged
from cranfield.metrics import Metric, translated
from cranfield.rankings import Gaps, Ties

HEAD_MID_TAIL: Mapping[str, float] = {"head": 0.2, "mid": 0.6, "tail": 0.2}
"""The most popular items with a fifth of the ratings, the least popular items with a fifth, and those between."""

_DIGITS = 9


def by_popularity(
    runs: Any,
    test: Any,
    metrics: Sequence[str | Metric] | str | Metric,
    *,
    train: Ratings,
    groups: int | Mapping[str, float] = HEAD_MID_TAIL,
    of: str = "ratings",
    threshold: float | str | None = AUTO,
    lists: Kind = "full",
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    negative_grades: NegativeGrades = "judged",
) -> pl.DataFrame:
    """Return metrics for each popularity group, as if the test set contained only the items of that group.

    The lists stay as they are; a test item of another group counts as unjudged. Popularity is the number of training
    ratings; of equally popular items, the smaller id comes first. Items without training ratings are the least popular.

    Parameters
    ----------
    runs, test, metrics, threshold, lists, ties, gaps, negative_grades
        As for `measure`.
    train
        The training ratings, which define the popularity of items.
    groups
        Shares by name, from the most to the least popular, or a number of groups of equal shares (1 is the most
        popular).
    of
        What the shares are of: ``"ratings"`` (the head has a fifth of the training ratings) or ``"items"`` (a fifth of
        the items, like the percentiles of Bellogín et al. 2017).

    Returns
    -------
    pl.DataFrame
        One row per system, group and metric: the numbers of items and test ratings of the group, the number of lists
        for which the metric is defined, and its mean over these.

    Examples
    --------
    >>> import cranfield as cf
    >>> train = cf.Ratings.of([1, 2, 3, 4, 1], ["hit", "hit", "hit", "hit", "gem"])
    >>> test = cf.Ratings.of([5, 5], ["hit", "gem"])
    >>> runs = {"mine": {5: {"hit": 2.0, "new": 1.0}}}
    >>> by_popularity(runs, test, "Recall@1", train=train, groups=2, of="items").select("group", "lists", "mean").rows()
    [('1', 1, 1.0), ('2', 1, 0.0)]
    """
    measuring = Measuring(metrics=metrics, threshold=threshold, lists=lists)
    shares, wanted = shares_of(groups), measuring.wanted
    one_of("of", of, ("ratings", "items"))
    every = as_judged(runs, test, threshold, Context(train), ties=ties, gaps=gaps, negative_grades=negative_grades)
    judgments = every[0].judgments
    group_of_item = translated(
        group_of_items(train, list(shares.values()), of), train.item_ids, judgments.item_ids, missing=len(shares) - 1.0
    )
    rows = []
    for judged in every:
        system = "" if judged.ranked is None else judged.ranked.name
        judged = judged.condensed() if measuring.lists == "condensed" else judged
        for number, name in enumerate(shares):
            mask = group_of_item[judgments.items] == number
            part, items = judged.only(mask), int((group_of_item == number).sum())
            rows += [(system, name, str(metric), items, int(mask.sum()), *_mean(metric, part)) for metric in wanted]
    names = {"system": pl.String, "group": pl.String, "metric": pl.String, "items": pl.Int64}
    return pl.DataFrame(
        rows, schema={**names, "ratings": pl.Int64, "lists": pl.Int64, "mean": pl.Float64}, orient="row"
    )


def _mean(metric: Metric, judged: Judged) -> tuple[int, float]:
    """Return the number of lists for which the metric is defined, and its mean over these."""
    if metric.definition.whole_system:
        return judged.n_lists, float(metric(judged))
    values = np.asarray(metric(judged))
    values = values[~np.isnan(values)]
    return len(values), float(values.mean()) if len(values) else float("nan")


def shares_of(groups: int | Mapping[str, float]) -> Mapping[str, float]:
    """Return the share of each popularity group by name, or raise an error if they are not valid shares."""
    if not isinstance(groups, Mapping):
        count = whole("groups", groups)
        return {str(number): 1.0 / count for number in range(1, count + 1)}
    if len(groups) > 1:
        for name, value in groups.items():
            share(name, value)
    if abs(sum(groups.values()) - 1.0) > 1e-9:
        raise SettingError(f"the shares of the popularity groups sum to {sum(groups.values()):g}; make them sum to 1")
    return groups


def group_of_items(train: Ratings, shares: Sequence[float], of: str) -> NDArray[np.float64]:
    """Return the number of the group of each item of the training ratings.

    An item belongs to the group that contains the middle of its share of the ratings (or of the items).
    """
    counts = train.item_counts.astype(np.float64)
    order = np.argsort(-counts, kind="stable")
    weight = counts[order] if of == "ratings" else np.ones(len(counts))
    middles = (np.cumsum(weight) - weight / 2.0) / max(float(weight.sum()), 1.0)
    groups = np.empty(len(counts))
    # Sums of floats such as 0.1 are not exact.
    ends, middles = np.round(np.cumsum(shares), _DIGITS), np.round(middles, _DIGITS)
    groups[order] = np.minimum(np.searchsorted(ends, middles, side="right"), len(shares) - 1)
    return groups
