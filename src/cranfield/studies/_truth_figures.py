"""The figures of protocols compared with a truth: for real users, and for simulated worlds."""

from __future__ import annotations

from typing import Any

import polars as pl

from cranfield._figures import altair, data_of, series, themed, tips
from cranfield.studies._truth_protocols import CONDENSED_LISTS, ESTIMATED, FULL_LISTS, P1R, UAR

SHOWN = (
    (FULL_LISTS, "P@10"), (FULL_LISTS, "AntiP@10"), (FULL_LISTS, "IPS@10"), (ESTIMATED, "P@10 by DR (svd)"),
    (CONDENSED_LISTS, "P@10"), (P1R, "HitRate@10"), (UAR, "P@10"),
)  # fmt: skip
"""The readings in the figure of simulated worlds; its table has all of them."""
_KNOBS = {
    "popularity_bias": "popularity bias of exposure",
    "relevance_bias": "relevance bias of rating",
    "ratings": "observed ratings",
}


def draw_orders(orders: pl.DataFrame) -> Any:
    """Return tau of every reading, with its interval, one colour per variant of discovery."""
    alt = altair()
    rows = orders.with_columns(reading=pl.format("{}: {}", "protocol", "metric"))
    variants = orders["variant"].unique(maintain_order=True).to_list()
    order = rows.filter(variant=variants[0]).sort("tau", descending=True)["reading"].to_list()
    base = alt.Chart(data_of(rows)).encode(
        y=alt.Y("reading:N", sort=order, title=None),
        tooltip=tips(
            reading="reading", variant="discovery", tau=("tau", ".2f"), lower=("from", ".2f"), upper=("to", ".2f")
        ),
        **series("variant", variants, mark="point"),
    )
    points = base.mark_point(filled=True, size=40).encode(
        x=alt.X("tau:Q", title="Kendall's tau with the true order", scale=alt.Scale(domain=[-1, 1]))
    )
    bars = base.mark_rule().encode(x="lower:Q", x2="upper:Q")
    return themed((bars + points).properties(width=360, height=14 * len(order)))


def draw_worlds(worlds: pl.DataFrame) -> Any:
    """Return the figure of simulated worlds: one column per knob, tau above and winners found below."""
    alt = altair()
    names = [f"{protocol}: {metric}" for protocol, metric in SHOWN]
    rows = worlds.with_columns(reading=pl.format("{}: {}", "protocol", "metric")).filter(pl.col("reading").is_in(names))
    shown = {"tau": ("tau with the true order", [-0.6, 1.0], ".1f"), "winner": ("true winner found", [0, 1.0], ".0%")}
    knobs = worlds["knob"].unique(maintain_order=True).to_list()
    across = []
    for column, (title, domain, form) in shown.items():
        ends = ("lower", "upper") if column == "tau" else ("winner_lower", "winner_upper")
        panels = []
        for knob in knobs:
            own = rows.filter(knob=knob)
            places = own["value"].unique().to_list()
            kind = "log" if knob == "ratings" else "linear"
            scale = alt.Scale(type=kind, domain=[min(places), max(places)], nice=False, zero=False)
            up = {"scale": alt.Scale(domain=domain, clamp=True), "axis": alt.Axis(format=form)}
            base = alt.Chart(data_of(own)).encode(
                x=alt.X("value:Q", title=_KNOBS[knob], scale=scale, axis=alt.Axis(values=places, format=",~f")),
                tooltip=tips(
                    reading="reading", value=(_KNOBS[knob], ",~f"), tau=("tau", ".2f"), winner=("winner found", ".0%")
                ),
                **series("reading", names),
            )
            band = base.mark_area(fillOpacity=0.15, strokeOpacity=0, clip=True).encode(
                y=alt.Y(f"{ends[0]}:Q", title=title if knob == knobs[0] else None, **up), y2=f"{ends[1]}:Q"
            )
            line = base.mark_line(point={"size": 18, "filled": True}, clip=True).encode(y=alt.Y(f"{column}:Q", **up))
            panels.append((band + line).properties(width=210, height=190))
        across.append(alt.hconcat(*panels))
    return themed(alt.vconcat(*across))
