"""The unjudged pairs of a user and an item in the lists of two systems, and what they could change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.judgments import judge
from cranfield.measures import measure
from cranfield.metrics import Metric, has_bounds
from cranfield.rankings import Run
from cranfield.splits import popularity_groups
from cranfield.tables import Vocabulary

LINEAR = ("P", "DCG", "RBP")
"""Metrics that are sums over the items of a list: the contribution of an unjudged item depends on no other item."""
GROUPS = ("popular", "middle", "rare")


@dataclass(frozen=True)
class Pairs:
    """Pairs of a user and an item as codes of the test set's users and of all items in the test set and the lists."""

    users: NDArray[np.int64]
    items: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.users)

    def only(self, mask: NDArray[np.bool_]) -> Pairs:
        """Return the pairs selected by a mask."""
        return Pairs(self.users[mask], self.items[mask])


def check_metric(metric: Metric, wanted: str) -> None:
    """Raise an error for metrics that liked unjudged items do not raise."""
    if not has_bounds(metric) or metric.definition.lower_is_better:
        raise SettingError(f"{metric} has no {wanted}; use a ranking metric in which more is better, such as P@10")
    if metric.definition.condensed or dict(metric.parameters).get("condensed"):
        raise SettingError(f"{metric} is measured on condensed lists, which hold no unjudged items; use P@10")


class TwoSystems:
    """Two runs with one test set, and their scores if unjudged items are liked.

    A liked item has the mean rating of the relevant test items.
    """

    def __init__(self, first: Run, second: Run, test: Ratings, threshold: float) -> None:
        for run in (first, second):
            if run.ties == "average":
                raise SettingError(
                    f"ties of {run.name} are averaged, so its items have no individual ranks; use --ties trec_eval"
                )
            run.refuse_gaps("the effect of unjudged items")
        self.runs, self.test, self.threshold = (first, second), test, threshold
        self.item_ids = Vocabulary.union([test.item_ids, first.item_ids, second.item_ids])
        relevant = test.values[test.values >= threshold]
        if not len(relevant):
            highest = float(test.values.max(initial=-np.inf))
            raise SettingError(
                f"nothing can be measured: no test rating is {threshold:g} or more; the highest is {highest:g}; lower "
                "--threshold (threshold=...)"
            )
        self.grade = float(relevant.mean())

    def unjudged(self, metric: Metric) -> tuple[Pairs, Pairs, Pairs]:
        """Return the unjudged pairs above the cut-off that only the first system lists, only the second, and both."""
        first, second = (self._keys(run, metric) for run in self.runs)
        only_first, only_second = np.setdiff1d(first, second), np.setdiff1d(second, first)
        return self._pairs(only_first), self._pairs(only_second), self._pairs(np.intersect1d(first, second))

    def difference(self, metric: Metric, liked: Sequence[Pairs] = ()) -> float:
        """Return the first system's average minus the second's if these pairs are judged as liked."""
        averages = measure(list(self.runs), self.judged(liked), [metric], threshold=self.threshold).average()[:, 0]
        return float(averages[0] - averages[1])

    def judged(self, liked: Sequence[Pairs]) -> Ratings:
        """Return the test set with these pairs added as liked."""
        if not sum(map(len, liked)):
            return self.test
        users = np.concatenate([self.test.users, *(kind.users for kind in liked)]).astype(np.int32)
        own = self.item_ids.codes(self.test.item_ids.all)[self.test.items]
        items = np.concatenate([own, *(kind.items for kind in liked)]).astype(np.int32)
        grades = np.full(sum(map(len, liked)), self.grade)
        values = np.concatenate([self.test.values.astype(np.float64), grades])
        return Ratings.from_codes(self.test.user_ids, self.item_ids, users, items, values)

    def popularity(self) -> NDArray[np.int16]:
        """Return the popularity group of each item by its test ratings; an item without any is rare."""
        of_all = np.full(len(self.item_ids), len(GROUPS) - 1, dtype=np.int16)
        if np.count_nonzero(self.test.item_counts) >= len(GROUPS):
            groups = popularity_groups(self.test, len(GROUPS))
            codes = self.item_ids.codes(self.test.item_ids.all)
            of_all[codes[groups >= 0]] = groups[groups >= 0]
        return of_all

    def _pairs(self, keys: NDArray[np.int64]) -> Pairs:
        size = len(self.item_ids)
        return Pairs(keys // size, keys % size)

    def _keys(self, run: Run, metric: Metric) -> NDArray[np.int64]:
        judged = judge(run, self.test, threshold=self.threshold)
        entries = judged.entries
        assert judged.places is not None  # it has entries
        missing = ~np.isin(entries.places, judged.places)
        if metric.cutoff is not None:
            missing &= entries.ranks <= metric.cutoff
        codes = self.item_ids.codes(run.item_ids.all)
        users = judged.judgments.users[entries.lists[missing]].astype(np.int64)
        return users * len(self.item_ids) + codes[entries.items[missing]]
