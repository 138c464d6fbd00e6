"""The figures of comparisons: differences with simultaneous intervals, and the shares of users that win."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield._figures import ACCENT, INK, MOST_SYSTEMS, MUTED, RULE, WARN, Style, altair, by_name, data_of, look, tips
from cranfield._terminal import shown

if TYPE_CHECKING:
    from cranfield.comparisons.comparison import Comparison

_LONGEST_LINE = 28  # letters of a name in a line
_MOST_TIMES = 10  # a difference of more times the reference is shown as it is


def differences(comparison: Comparison, *, most: int | None = None, style: Style = "screen") -> Any:
    """Return the differences of the main metric from the baseline, or from the best system, with their intervals.

    They are relative where every pair has a ratio. The intervals belong to the corrected p-values: they hold for all
    pairs at once. A filled point is significant. The best ``most`` systems are shown.
    """
    alt, sizes, main = altair(), look(style), comparison.main
    assert main is not None  # something was measured
    leads = [main.pair(system, main.reference) for system in main.against]
    leads = leads[: most or comparison.most_drawn]
    relative = leads[0].base > 0 and all(abs(lead.share) <= _MOST_TIMES for lead in leads)
    rows = []
    for lead in leads:
        size, ends = (lead.share, lead.share_interval) if relative else (lead.gain, lead.interval)
        if relative and np.isnan(ends).any():  # without an interval of the ratio: that of the difference, as a share
            least = -np.inf if main.lower_is_better else -1.0
            ends = [max(end / lead.base, least) for end in lead.interval]
        kind = main.against[lead.systems[0]].replace("untold", "undecided")
        numbers = {"size": size, "lower": ends[0], "upper": ends[1], "p": lead.row["p_corrected"]}
        label = lead.signed_in(percent=relative)
        rows.append({"system": lead.systems[0], "shown": kind, "label": label, **numbers})
    form = ".0%" if relative else ".3~g"
    x = alt.X("lower:Q", title=None, axis=alt.Axis(format=form, tickCount=5))
    # A long name takes several lines: cut off, it might be that of another system.
    lines = {shown(row["system"]): textwrap.wrap(shown(row["system"]), _LONGEST_LINE) for row in rows}
    axis = alt.Axis(labelExpr=f"({json.dumps(lines)})[datum.value] || datum.value")
    y = alt.Y("system:N", sort=[row["system"] for row in rows], title=None, axis=axis)
    tooltip = tips(
        system="system", label=f"against {main.reference}", lower=("from", form), upper=("to", form), p=("p", ".3g")
    )
    base = alt.Chart(data_of(rows)).encode(y=y, tooltip=tooltip)
    colour = alt.Scale(domain=["better", "undecided", "worse"], range=[ACCENT, MUTED, WARN])
    color = alt.Color("shown:N", scale=colour, legend=None)
    fill = alt.condition(
        "datum.shown == 'undecided'", alt.value("transparent"), alt.Color("shown:N", scale=colour, legend=None)
    )
    zero = alt.Chart(data_of([{"zero": 0}])).mark_rule(color=INK).encode(x="zero:Q")
    interval = base.mark_rule(strokeWidth=2).encode(x=x, x2="upper:Q", color=color)
    points = base.mark_point(filled=False, size=70, strokeWidth=2, opacity=1).encode(
        x="size:Q", stroke=color, fill=fill
    )
    beside = base.mark_text(align="left", dx=6, color=INK, fontSize=sizes["size"])
    beside = beside.encode(x=alt.value("width"), text="label:N")
    words = {"align": "left", "baseline": "bottom", "color": MUTED, "fontSize": sizes["size"] - 1, "dy": -4}
    sides = [
        alt.Chart(data_of([{"said": word}]))
        .mark_text(**{**words, "align": align})
        .encode(x=x, y=alt.value(0), text="said:N")
        for word, align, x in (("worse", "left", alt.value(0)), ("better", "right", alt.value("width")))
    ]
    step = max(sizes["step"], 1.2 * sizes["size"] * max(map(len, lines.values())) + 4)
    return by_name(alt.layer(zero, interval, points, beside, *sides).properties(height={"step": step}), style)


def wins(comparison: Comparison, metric: str | None = None, *, style: Style = "screen") -> Any:
    """Return the shares of users for whom the best system is better than, equal to and worse than each other system."""
    alt, metric = altair(), metric or comparison.metrics[0]
    order = [comparison.systems[s] for s in comparison.order(comparison.metrics.index(metric))]
    best, rows = comparison.baseline or order[0], []
    for row in comparison.of_metric(metric).iter_rows(named=True):
        if best not in (row["system_a"], row["system_b"]) or not row["n"]:
            continue
        first = row["system_a"] == best
        counts = (row["wins"], row["ties"], row["losses"])
        for name, count in zip(("better", "equal", "worse"), counts if first else counts[::-1]):
            other = row["system_b"] if first else row["system_a"]
            rows.append({"system": other, "users": name, "share": count / row["n"]})
    shown = [system for system in order if system != best][:MOST_SYSTEMS]
    rows = [row for row in rows if row["system"] in shown]
    colours = alt.Scale(domain=["better", "equal", "worse"], range=[ACCENT, RULE, WARN])
    legend = alt.Legend(orient="top", titleOrient="left")
    chart = (
        alt.Chart(data_of(rows))
        .transform_calculate(part="indexof(['better', 'equal', 'worse'], datum.users)")
        .mark_bar(height={"band": 0.7})
        .encode(
            y=alt.Y("system:N", sort=shown, title=None),
            x=alt.X("share:Q", title=f"share of users, by {metric}", axis=alt.Axis(format="%"), stack="zero"),
            color=alt.Color("users:N", title=f"{best} is", scale=colours, legend=legend),
            order="part:Q",
            tooltip=tips(system=f"{best} against", users="is", share=("share of users", ".1%")),
        )
    )
    return by_name(chart, style)
