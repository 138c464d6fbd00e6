"""The figures of a split check: ratings over time and by value, gaps, and the sizes of the profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield._figures import (
    QUANTILES,
    Style,
    altair,
    data_of,
    histogram,
    look,
    quantile_bars,
    series,
    sized,
    themed,
    tips,
)
from cranfield.splits.part_counts import gap_days
from cranfield.tables import day

if TYPE_CHECKING:
    from cranfield.splits.checking import SplitCheck

_BINS = 40


def figures_of(check: SplitCheck) -> Mapping[str, Callable[..., Any]]:
    """Return the figures that a check has, by kind: those of time need times."""
    gaps = _gaps(check)
    return {
        **({"time": _over_time} if all(part.times is not None for part in check.parts.values()) else {}),
        **({} if gaps is None or not len(gaps) else {"gaps": _gaps_chart}),
        "ratings": _shares,
        "profiles": _sizes,
    }


def _gaps(check: SplitCheck) -> Any:
    return gap_days(check.parts.get("profiles", check.parts["train"]), check.parts["test"])


def _gaps_chart(check: SplitCheck, **options: Any) -> Any:
    return histogram(_gaps(check), "days", "users", **options)


def _over_time(check: SplitCheck, *, style: Style = "screen") -> Any:
    alt = altair()
    known = {name: part.times for name, part in check.parts.items() if part.times is not None}
    oldest, newest = (reduce([reduce(part) for part in known.values()]) for reduce in (min, max))
    edges = np.linspace(int(oldest), int(newest) + 1, _BINS + 1)
    rows = [
        {"part": name, "start": int(edge), "from": day(edge), "ratings": int(count)}
        for name, part in known.items()
        for edge, count in zip(edges, np.histogram(part, edges)[0])
    ]
    order = [day(edge) for edge in edges[:-1]]
    axis = alt.Axis(labelAngle=0, values=order[:: max(1, _BINS // 5)], labelExpr="slice(datum.value, 0, 10)")
    chart = (
        alt.Chart(data_of(rows))
        .mark_line(strokeWidth=2, interpolate="step-after")
        .encode(
            x=alt.X("from:O", sort=order, title=None, axis=axis),
            y=alt.Y("ratings:Q", title="ratings"),
            tooltip=tips(part="part", **{"from": "from"}, ratings=("ratings", ",d")),
            **series("part", list(known)),
        )
    )
    return sized(chart, style)


def _shares(check: SplitCheck, *, style: Style = "screen") -> Any:
    alt = altair()
    values = np.unique(np.concatenate([np.unique(part.values) for part in check.parts.values()]))
    many = len(values) > _BINS
    edges = np.linspace(values.min(), values.max(), _BINS + 1) if many else None
    rows = []
    for name, part in check.parts.items():
        if edges is None:
            counts = np.bincount(np.searchsorted(values, part.values), minlength=len(values))
            at = values
        else:
            counts, at = np.histogram(part.values, edges)[0], edges[:-1]
        rows += [{"part": name, "rating": f"{value:g}", "share": count / len(part)} for value, count in zip(at, counts)]
    chart = (
        alt.Chart(data_of(rows))
        .mark_bar()
        .encode(
            x=alt.X("rating:N", sort=None, title="rating", axis=alt.Axis(labelAngle=0)),
            xOffset="part:N",
            y=alt.Y("share:Q", title="share", axis=alt.Axis(format="%")),
            tooltip=tips(part="part", rating="rating", share=("share", ".1%")),
            **series("part", list(check.parts), mark="point"),
        )
    )
    return sized(chart, style)


def _sizes(check: SplitCheck, *, style: Style = "screen") -> Any:
    alt = altair()
    rows = []
    for name, part in check.parts.items():
        sizes = part.user_counts[part.user_counts > 0]
        levels = np.quantile(sizes, list(QUANTILES.values())).tolist()
        rows.append({"part": name, **dict(zip(QUANTILES, levels))})
    y = alt.Y("part:N", sort=list(check.parts), title=None)
    base = alt.Chart(data_of(rows)).encode(
        tooltip=tips(part="part", median=("median", ",.0f"), q10=("10 % below", ",.0f"), q90=("90 % below", ",.0f"))
    )
    bars = quantile_bars(base, y, "ratings of a user")
    return themed(bars.properties(width=look(style)["width"]), style)
