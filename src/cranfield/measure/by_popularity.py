"""Any metric by the popularity of the test items: which part of the catalogue a system is good at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._checks import one_of, share, whole
from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.measure.judged import Judged
from cranfield.measure.metric import Metric
from cranfield.measure.metrics._train import item_counts, train_of, translated

HEAD_MID_TAIL: Mapping[str, float] = {"head": 0.2, "mid": 0.6, "tail": 0.2}
"""The most popular items that make up a fifth of the ratings, the least popular ones that do, and those between."""


def by_popularity(
    judged: Mapping[str, Judged],
    metrics: Sequence[str | Metric] | str | Metric,
    *,
    groups: int | Mapping[str, float] = HEAD_MID_TAIL,
    of: str = "ratings",
) -> pl.DataFrame:
    """Return metrics as if the test set held only the items of one popularity group, for each of the groups.

    The lists stay as they are; a test item of another group counts as unjudged. Popularity is the number of training
    ratings; of equally popular items the smaller id comes first.

    Parameters
    ----------
    judged
        The judged lists of each system, by name, with the training ratings in their context.
    metrics
        As they are spelled: ``Recall@10``.
    groups
        Shares by name, from the most to the least popular, or a number of groups of equal shares (1 is the most
        popular).
    of
        What is shared out: ``"ratings"`` (the head makes up a fifth of the training ratings) or ``"items"`` (a fifth
        of the items, as the percentiles of Bellogín et al. 2017).

    Returns
    -------
    pl.DataFrame
        A row a system, group and metric: how many items and test ratings the group has, over how many lists the metric
        is defined, and its mean over these.

    Examples
    --------
    >>> import cranfield as cf
    >>> from cranfield.measure import Judgments, judge
    >>> from cranfield.measure.context import Context
    >>> from cranfield.rank import read_run
    >>> train = cf.Ratings.of([1, 2, 3, 4, 1], ["hit", "hit", "hit", "hit", "gem"])
    >>> judgments = Judgments.of(cf.Ratings.of([5, 5], ["hit", "gem"]), 1.0)
    >>> run = read_run({5: {"hit": 2.0, "new": 1.0}}, name="mine")
    >>> lists, _ = judge(run, judgments, Context(train))
    >>> by_popularity({"mine": lists}, "Recall@1", groups=2, of="items").select("group", "lists", "mean").rows()
    [('1', 1, 1.0), ('2', 1, 0.0)]
    """
    wanted = [Metric.of(one) for one in ([metrics] if isinstance(metrics, str | Metric) else metrics)]
    shares = _shares(groups)
    one_of("of", of, ("ratings", "items"))
    rows = []
    for system, lists in judged.items():
        train = train_of(lists, "by_popularity")
        group_of_item = _group_of_items(train, list(shares.values()), of)
        judgments = lists.judgments
        codes = translated(group_of_item, train.item_ids, judgments.item_ids, missing=len(shares) - 1.0)
        for number, name in enumerate(shares):
            mask = codes[judgments.items] == number
            part = lists.only(mask)
            for metric in wanted:
                rows.append(
                    (system, name, str(metric), int((codes == number).sum()), int(mask.sum()), *_mean(metric, part))
                )
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


def _shares(groups: int | Mapping[str, float]) -> Mapping[str, float]:
    if not isinstance(groups, Mapping):
        count = whole("groups", groups)
        return {str(number): 1.0 / count for number in range(1, count + 1)}
    if len(groups) > 1:
        for name, value in groups.items():
            share(name, value)
    if abs(sum(groups.values()) - 1.0) > 1e-9:
        raise SettingError(f"the shares of the popularity groups sum to {sum(groups.values()):g}; make them sum to 1")
    return groups


def _group_of_items(train: Ratings, shares: Sequence[float], of: str) -> NDArray[np.float64]:
    """Return the number of the group of each item of the training ratings.

    An item belongs where the middle of its share of the ratings (or of the items) falls.
    """
    counts = item_counts(train)
    order = np.argsort(-counts, kind="stable")
    weight = counts[order] if of == "ratings" else np.ones(len(counts))
    middles = (np.cumsum(weight) - weight / 2.0) / max(float(weight.sum()), 1.0)
    groups = np.empty(len(counts))
    groups[order] = np.minimum(np.searchsorted(np.cumsum(shares), middles, side="right"), len(shares) - 1)
    return groups
