"""Tipping points: how many unjudged items would have to be relevant to reverse the order of two systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import SettingError
from cranfield._figures import Style
from cranfield._numbers import DASH
from cranfield._result import Figures, Result
from cranfield._streams import stream
from cranfield._table import Table
from cranfield.data import AUTO, Ratings, Relevance
from cranfield.facts import Fact
from cranfield.facts import unjudged as unjudged_facts
from cranfield.judgments import as_runs, as_test, judge
from cranfield.measures import measure
from cranfield.metrics import Metric, as_metrics
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
    if not metric.definition.bounds or metric.definition.lower_is_better:
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
                    f"ties of {run.name} are averaged, so its items have no individual ranks; use ties='trec_eval'"
                )
            run.refuse_gaps("the effect of unjudged items")
        self.runs, self.test, self.threshold = (first, second), test, threshold
        self.item_ids = Vocabulary.union([test.item_ids, first.item_ids, second.item_ids])
        relevant = test.values[test.values >= threshold]
        if not len(relevant):
            highest = float(test.values.max(initial=-np.inf))
            raise SettingError(
                f"nothing can be measured: no test rating is {threshold:g} or more; the highest is {highest:g}; lower "
                "threshold=..."
            )
        self.grade = float(relevant.mean())

    def unjudged(self, metric: Metric) -> tuple[Pairs, Pairs, Pairs]:
        """Return the unjudged pairs above the cut-off that only the first system lists, only the second, and both."""
        first, second = (self.unjudged_of(run, metric)[0] for run in self.runs)
        only_first, only_second = np.setdiff1d(first, second), np.setdiff1d(second, first)
        return self.pairs(only_first), self.pairs(only_second), self.pairs(np.intersect1d(first, second))

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

    def pairs(self, keys: NDArray[np.int64]) -> Pairs:
        """Return the pairs of some keys."""
        return Pairs(keys // len(self.item_ids), keys % len(self.item_ids))

    def unjudged_of(self, run: Run, metric: Metric) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the unjudged pairs of a run above the cut-off as keys, user × items + item, and their ranks."""
        judged = judge(run, self.test, threshold=self.threshold)
        entries = judged.entries
        assert judged.places is not None  # it has entries
        missing = ~np.isin(entries.places, judged.places)
        if metric.cutoff is not None:
            missing &= entries.ranks <= metric.cutoff
        codes = self.item_ids.codes(run.item_ids.all)
        users = judged.judgments.users[entries.lists[missing]].astype(np.int64)
        return users * len(self.item_ids) + codes[entries.items[missing]], entries.ranks[missing]


DifferenceFunction = Callable[[Sequence[Pairs]], float]
"""Returns how much the winner leads if more pairs are liked."""

_RATES = (0.0, 0.25, 0.5, 0.75, 1.0)
_STEPS, _NEAR = 12, 0.005
"""Maximum number of steps towards the tipping point, and the tolerance for a tie as a share of the lead."""


@dataclass(frozen=True, eq=False)
class TippingPoints(Result):
    """The tipping points of pairs of systems by metrics; the result of `tipping_points`.

    Parameters
    ----------
    points
        One for each metric and pair.
    curves
        The differences if a share of one system's unjudged items is liked, all of them or those of a popularity group:
        ``metric, winner, loser, group, system, assumed, difference``.
    """

    points: tuple[unjudged_facts.TippingPoint, ...]
    curves: pl.DataFrame

    def facts(self) -> Sequence[Fact]:
        """Return one fact per pair and metric."""
        return self.points

    def frame(self) -> pl.DataFrame:
        """Return one row per pair and metric.

        Columns: ``metric, winner, loser, difference, share, error, items, unjudged_winner, unjudged_loser,
        unjudged_both, base``.
        """
        columns = (
            "metric", "winner", "loser", "difference", "share", "error", "items", "unjudged_winner", "unjudged_loser",
            "unjudged_both", "base",
        )  # fmt: skip
        schema = {"share": pl.Float64, "items": pl.Int64}
        rows = [{name: getattr(point, name) for name in columns} for point in self.points]
        return pl.DataFrame(rows, schema_overrides=schema).select(columns)

    def table(self) -> Table:
        """Return the tipping points as a table for people."""
        rows = [
            [
                point.metric,
                point.winner,
                point.loser,
                f"{point.difference:.4f}",
                DASH if point.share is None else f"{100 * point.share:.3g} %",
                DASH if point.items is None else f"{point.items:,} of {point.unjudged_loser:,}",
                f"{point.unjudged_winner:,}",
            ]
            for point in self.points
        ]
        header = ["metric", "winner", "loser", "lead", "tipping point", "of the loser's unjudged", "winner's unjudged"]
        note = "tipping point: how many more of the loser's unjudged items than of the winner's would have to be liked"
        return Table(header, rows, "", [note, f"{DASH}: not even all of them would be enough"])

    @property
    def figures(self) -> Figures:
        """``curves``: the difference against the assumed relevance of unjudged items."""
        return {"curves": TippingPoints._curves}

    def _curves(self, *, style: Style = "screen") -> Any:
        from cranfield._figures import altair, data_of, series, themed, tips

        alt = altair()
        rows = self.curves.with_columns(pair=pl.format("{}: {} − {}", "metric", "winner", "loser"))
        base = alt.Chart(data_of(rows))
        line = base.mark_line(point={"size": 18, "filled": True}).encode(
            x=alt.X("assumed:Q", title="unjudged, liked", axis=alt.Axis(format="%")),
            y=alt.Y("difference:Q", title="difference"),
            **series("system", list(dict.fromkeys(rows["system"]))),
            tooltip=tips(
                pair="pair", group="items", system="whose", assumed=("liked", ".0%"), difference=("difference", ".4f")
            ),
        )
        zero = base.mark_rule(strokeDash=[4, 3]).encode(y=alt.datum(0))
        panels = (zero + line).properties(width=150, height=150)
        order = ["all", *GROUPS]
        return themed(
            panels.facet(column=alt.Column("group:N", sort=order, title=None), row=alt.Row("pair:N", title=None)),
            style,
        )

    def __str__(self) -> str:
        return "\n".join(self.verdict) + "\n\n" + self.table().text()

    def __repr__(self) -> str:
        return f"TippingPoints({len(self.points)} comparisons)"


def tipping_points(
    runs: Any,
    test: Any,
    metrics: Any = "P@10",
    *,
    baseline: str | None = None,
    threshold: float | str | None = AUTO,
    base: float = 0.0,
    draws: int = 10,
    seed: int = 0,
) -> TippingPoints:
    r"""Compute how many more of the loser's unjudged items would have to be liked to reverse the order.

    An unjudged item counts as not relevant only because nobody rated it. Let a share :math:`a` (``base``) of the
    unjudged items that only the winner's lists have be liked, and a share :math:`a + x` of those that only the loser's
    lists have. Items in both have the same relevance for both systems; a share :math:`a + x/2` of them is liked. The
    tipping point is the :math:`x` at which the two systems are level. A liked item has the mean rating of the relevant
    test items.

    For P, DCG and RBP it is exact: the difference is linear in the shares. For metrics whose ideal depends on the
    number of liked items (Recall, nDCG, AP), judgments are simulated ``draws`` times, and the standard error is given.

    Parameters
    ----------
    runs
        Two or more runs, in any form that `measure` accepts.
    test
        The held-out ratings.
    metrics
        The names of ranking metrics.
    baseline
        Compare each system with this one; every pair by default.
    threshold
        The lowest rating of a relevant item.
    base
        The share of the winner's own unjudged items that is assumed to be liked.
    draws, seed
        The number of simulations, and the seed that fixes them.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"], [5, 5, 5])
    >>> lists = {"a": {"ann": ["x", "y"], "bob": ["p", "x"]}, "b": {"ann": ["x", "z"], "bob": ["q", "r"]}}
    >>> point = tipping_points(lists, test, "P@2", threshold=4).points[0]
    >>> point.winner, point.items, point.unjudged_loser
    ('a', 2, 3)
    """
    systems, ratings = as_runs(runs), as_test(test)
    wanted = as_metrics(metrics)
    for metric in wanted:
        check_metric(metric, "tipping point")
    base = check.number("base", base)
    if not 0 <= base < 1:
        raise SettingError(
            f"base={base:g} is not a share below 1; give 0 or the share of unjudged items that are liked"
        )
    lowest = Relevance.of(ratings, threshold).threshold
    draws, seed = check.whole("draws", draws, at_most=check.MOST_DRAWS), check.whole("seed", seed, at_least=0)
    points = [
        _point(TwoSystems(first, second, ratings, lowest), metric, base, draws, seed)
        for metric in wanted
        for first, second in _pairs(systems, baseline)
    ]
    return TippingPoints(tuple(point for point, _ in points), pl.concat([curve for _, curve in points]))


def _pairs(systems: Sequence[Run], baseline: str | None) -> Iterator[tuple[Run, Run]]:
    names = [run.name for run in systems]
    if len(systems) < 2:
        raise SettingError("a tipping point compares two systems; give at least two runs")
    if baseline is None:
        yield from combinations(systems, 2)
        return
    if baseline not in names:
        raise SettingError(f"there is no system {baseline!r} to compare with; the systems are {', '.join(names)}")
    reference = systems[names.index(baseline)]
    yield from ((run, reference) for run in systems if run is not reference)


def _point(
    systems: TwoSystems, metric: Metric, base: float, draws: int, seed: int
) -> tuple[unjudged_facts.TippingPoint, pl.DataFrame]:
    """Return the tipping point of two systems by a metric, and the curve of their difference."""
    lead = systems.difference(metric)
    ahead, behind, sign = (0, 1, 1.0) if lead >= 0 else (1, 0, -1.0)
    kinds = systems.unjudged(metric)
    winner, loser, shared = kinds[ahead], kinds[behind], kinds[2]

    def difference(liked: Sequence[Pairs]) -> float:
        return sign * systems.difference(metric, liked)

    share: float | None = 0.0
    error = 0.0
    if lead != 0 and metric.definition.name in LINEAR:
        share = _exact(abs(lead), difference, (winner, loser, shared), base)
    elif lead != 0:
        share, error = _simulated(difference, (winner, loser, shared), base, draws, seed)
    names = (systems.runs[ahead].name, systems.runs[behind].name)
    point = unjudged_facts.TippingPoint(
        metric=str(metric),
        winner=names[0],
        loser=names[1],
        difference=abs(lead),
        share=None if share is None or share > 1 - base else share,
        error=error,
        unjudged_winner=len(winner),
        unjudged_loser=len(loser),
        unjudged_both=len(shared),
        base=base,
    )
    return point, _curve(metric, names, abs(lead), difference, (winner, loser), systems.popularity(), seed)


def _exact(lead: float, difference: DifferenceFunction, kinds: tuple[Pairs, Pairs, Pairs], base: float) -> float | None:
    """Solve lead + a W − (a + x) L + (a + x/2) S = 0, where W, L and S are what all items of each kind add."""
    gained, lost, both = (difference([kind]) - lead for kind in kinds)
    slope = -lost - both / 2
    return None if slope <= 0 else (lead + base * (gained + lost + both)) / slope


def _simulated(
    difference: DifferenceFunction, kinds: tuple[Pairs, Pairs, Pairs], base: float, draws: int, seed: int
) -> tuple[float | None, float]:
    """Find the share at which the two are level in each draw of judgments; return the mean and its standard error."""
    shares = []
    for draw in range(draws):
        keys = [
            stream(seed, "tipping point", draw, name).random(len(kind))
            for name, kind in zip(("winner", "loser", "both"), kinds)
        ]
        share = _level(difference, kinds, keys, base)
        if share is None:
            return None, 0.0
        shares.append(share)
    spread = float(np.std(shares, ddof=1) / np.sqrt(draws)) if draws > 1 else 0.0
    return float(np.mean(shares)), spread


def _level(
    difference: DifferenceFunction, kinds: tuple[Pairs, Pairs, Pairs], keys: Sequence[NDArray[np.float64]], base: float
) -> float | None:
    """Return the share at which the two are level; an item is liked if its key is below its rate. None if nowhere.

    The difference is nearly linear in the rate, so a few steps of false position (the Illinois rule) find it.
    """

    def at(more: float) -> float:
        rates = (base, base + more, base + more / 2)
        return difference([kind.only(key < rate) for kind, key, rate in zip(kinds, keys, rates)])

    low, high = 0.0, 1.0 - base
    lead, deficit = at(low), at(high)
    if deficit > 0:
        return None
    near, middle = _NEAR * lead, low
    for _ in range(_STEPS):
        middle = low + (high - low) * lead / (lead - deficit)
        margin = at(middle)
        if abs(margin) <= near:
            break
        if margin > 0:
            low, lead, deficit = middle, margin, deficit / 2
        else:
            high, deficit, lead = middle, margin, lead / 2
    return middle


def _curve(
    metric: Metric,
    names: tuple[str, str],
    lead: float,
    difference: DifferenceFunction,
    own: tuple[Pairs, Pairs],
    popularity: NDArray[np.int16],
    seed: int,
) -> pl.DataFrame:
    """Return the difference if a share of one system's own unjudged items is liked, by popularity group."""
    rows, is_linear = [], metric.definition.name in LINEAR
    for group in ("all", *GROUPS):
        for name, kind in zip(names, own):
            part = kind if group == "all" else kind.only(popularity[kind.items] == GROUPS.index(group))
            keys = stream(seed, "tipping point", "curve", name, group).random(len(part))
            whole = lead if not len(part) else difference([part])
            for rate in _RATES:
                if is_linear or rate in (0, 1) or not len(part):
                    value = lead + rate * (whole - lead)
                else:
                    value = difference([part.only(keys < rate)])
                rows.append((str(metric), *names, group, name, rate, value))
    columns = ["metric", "winner", "loser", "group", "system", "assumed", "difference"]
    return pl.DataFrame(rows, schema=columns, orient="row")
