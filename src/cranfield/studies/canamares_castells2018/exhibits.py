"""Tables and figures of Cañamares and Castells (2018): designs of a truth, and protocols compared with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from cranfield._figures import altair, data_of, series, themed, tips
from cranfield.studies.canamares_castells2018 import designs, protocols
from cranfield.studies.canamares_castells2018.designs import Ranged, Sums
from cranfield.studies.canamares_castells2018.orders import BASE, KNOBS, SCHEMA, order_scores, worlds_frame
from cranfield.studies.canamares_castells2018.protocols import Readings
from cranfield.studies.frame.exhibits import Exhibit, Printed, exhibit

PRINTED = Printed(__package__)  # the numbers of 2018 for the actual discovery, and those of 2021, both on CM100k
CM100K = "CM100k"
SHOWN = (
    *((protocols.FULL_LISTS, metric) for metric in ("P@10", "AntiP@10", "IPS@10")),
    (protocols.ESTIMATED, "P@10 by DR (svd)"), (protocols.CONDENSED_LISTS, "P@10"), (protocols.P1R, "HitRate@10"),
    (protocols.UAR, "P@10"),
)  # fmt: skip
"""The readings in the figure of simulated worlds; its table has all of them."""
_KNOBS = {
    "popularity_bias": "popularity bias of exposure",
    "relevance_bias": "relevance bias of rating",
    "ratings": "observed ratings",
}
_LABELS = (designs.OBSERVED_P1, designs.TRUE_P1, designs.OBSERVED_NDCG, designs.TRUE_NDCG)
_INTERVALS = "95 % intervals over users and repetitions"
_FLAW = (
    "in the published truth, four fifths of the known pairs were used for training, so known pairs are judged about "
    "five times less often than others; the last columns do not have that flaw"
)


@dataclass(frozen=True, eq=False)
class Found:
    """The results of the parts of the study; parts that the ratings do not allow are empty."""

    readings: Mapping[str, Sequence[Readings]]  # of every protocol, by variant, one per draw
    lists: Mapping[str, Sums]  # the true values of the lists, by variant
    # The paper's systems under its own protocol, by variant and by which pairs can become known in it:
    published: Mapping[str, Mapping[str, Sums]] = field(default_factory=dict)
    half: Sums | None = None  # the paper's systems with a random half as the truth
    weighted: Sums | None = None  # all systems by the published division with weights
    fifths: tuple[Sums, Sums] | None = None  # the design of 2021: observed and true
    worlds: pl.DataFrame | None = None  # the results of every protocol on simulated worlds


def exhibits_of(results: Found) -> list[Exhibit]:
    """Return the tables and figures."""
    drawn = []
    if results.published:
        variants = [name for name in results.published if name != "actual"]
        drawn += [_published_table(results), *(_variant_table(results, name) for name in variants)]
    drawn.append(_designs_table(results))
    if results.fifths is not None:
        drawn.append(_fifths_table(results.fifths))
    orders = pl.concat(
        order_scores(draws).select(pl.lit(variant).alias("variant"), *SCHEMA)
        for variant, draws in results.readings.items()
    )
    caption = "Kendall's tau with the true order, by protocol and metric, with 95 % intervals over users and draws"
    drawn += [_orders_table(orders), Exhibit("figure-1-orders", caption, orders, draw=partial(_draw_orders, orders))]
    if results.worlds is not None:
        worlds = worlds_frame(results.worlds)
        caption = (
            "How well protocols, metrics and estimators find the truth on simulated worlds as the biases of what is "
            "observed vary: Kendall's tau with the true order (above), and how often the true winner is found (below), "
            "with 95 % intervals"
        )
        drawn += [_worlds_table(worlds), Exhibit("figure-2-worlds", caption, worlds, draw=partial(draw_worlds, worlds))]
    return drawn


def _ranged(number: Sequence[float], form: str = ".4f") -> str:
    value, lower, upper = number
    return f"{value:{form}} [{lower:{form}}, {upper:{form}}]"


def _tidy(rows: Iterable[tuple[Any, ...]], *more: str) -> pl.DataFrame:
    kinds = dict.fromkeys(("value", "lower", "upper", "printed"), pl.Float64)
    return pl.DataFrame(
        list(rows), schema={**dict.fromkeys((*more, "system", "number"), pl.String), **kinds}, orient="row"
    )


def _published_table(results: Found) -> Exhibit:
    here, half = results.published["actual"][designs.JUDGED_PAIRS], results.half
    assert half is not None
    beside = [(label, here.ranged(label)) for label in _LABELS]
    clean = {
        designs.COMPLETE_P1: (half.precision(designs.COMPLETE_P1), ".3f"),
        designs.TRUE_NDCG: (half.ranged(designs.TRUE_NDCG), ".4f"),
    }
    rows: list[list[str]] = []
    tidy: list[tuple[Any, ...]] = []
    for s, system in enumerate(here.systems):
        rows.append([system])
        for label, number in beside:
            own = [float(part[s]) for part in number]
            rows[-1] += [_ranged(own), PRINTED.text("2018", CM100K, system, label)]
            tidy.append((system, f"published {label}", *own, PRINTED.number("2018", CM100K, system, label)))
        for label, (number, form) in clean.items():
            own = [float(part[s]) for part in number]
            rows[-1].append(_ranged(own, form))
            tidy.append((system, f"random half: {label}", *own, None))
    header = ["System", *(name for label in _LABELS for name in (label, "printed"))]
    header += [f"Random half: {label}" for label in clean]
    caption = "The published protocol with the printed numbers, and a random half of the judgments as the truth"
    return exhibit("table-1-published", caption, header, rows, [_INTERVALS, _FLAW], _tidy(tidy))


def _variant_table(results: Found, variant: str) -> Exhibit:
    rows: list[list[str]] = []
    tidy: list[tuple[Any, ...]] = []
    for way, here in results.published[variant].items():
        numbers = {label: here.ranged(label) for label in _LABELS}
        for s, system in enumerate(here.systems):
            own = {label: [float(part[s]) for part in number] for label, number in numbers.items()}
            rows.append([way, system, *(_ranged(values) for values in own.values())])
            tidy += [(way, system, f"published {label}", *values, None) for label, values in own.items()]
    caption = f"The published protocol with {variant} discovery: the known pairs are drawn again"
    notes = [
        _INTERVALS,
        "drawn among judged pairs, or among all pairs; a pair without a judgment that becomes known counts as rated 0",
    ]
    header = ["Drawn among", "System", *_LABELS]
    return exhibit(f"table-2-{variant}", caption, header, rows, notes, _tidy(tidy, "drawn"))


def _designs_table(results: Found) -> Exhibit:
    """Return all systems by the published truth, by weights and by a random half, or by the judgments given."""
    lists, folds = next(iter(results.lists.values())), results.weighted
    columns: dict[str, Ranged] = {}
    caption, notes, of = "All systems by the judgments that are given", [_INTERVALS], ""
    if folds is not None:
        caption, notes, of = "All systems by three designs of the truth", [_INTERVALS, _FLAW], "random half: "
        columns["published: true P@10"] = folds.precision(designs.TRUE_P10)
        columns["weighted: P@10 if all were judged"] = folds.precision(designs.COMPLETE_P10)
    columns[f"{of}{designs.COMPLETE_P10}"] = lists.precision(designs.COMPLETE_P10)
    columns[f"{of}liked among judged"] = lists.ratios(designs.RELEVANT, designs.JUDGED)
    if folds is not None:
        columns[f"{of}{designs.TRUE_P10}"] = lists.precision(designs.TRUE_P10)
    columns[designs.OBSERVED_P10] = lists.precision(designs.OBSERVED_P10)
    order = np.argsort(-columns[f"{of}{designs.COMPLETE_P10}"][0], kind="stable")
    rows, tidy = [], []
    for s in order:
        own = {label: [float(part[s]) for part in number] for label, number in columns.items()}
        rows.append([lists.systems[s], *(_ranged(values) for values in own.values())])
        tidy += [(lists.systems[s], label, *values, None) for label, values in own.items()]
    return exhibit("table-3-designs", caption, ["System", *columns], rows, notes, _tidy(tidy))


def _fifths_table(fifths: tuple[Sums, Sums]) -> Exhibit:
    """Return the design of 2021 next to the printed numbers."""
    names = dict.fromkeys(row for _, row, _, _ in PRINTED.table("2021"))
    columns = {
        f"{kind} {metric}": sums.ranged(metric)
        for kind, sums in zip(("observed", "true"), fifths)
        for metric in designs.FIFTHS
    }
    rows: list[list[str]] = []
    tidy = []
    for s, (name, system) in enumerate(zip(names, fifths[0].systems, strict=True)):
        rows.append([system])
        for label, number in columns.items():
            own, printed = [float(part[s]) for part in number], PRINTED.number("2021", CM100K, name, label)
            rows[-1].append(f"{own[0]:.4f} ({printed:.4f})")
            tidy.append((system, label, *own, printed))
    caption = "The design of Mena-Maldonado et al. (2021): a fifth of all judgments is the truth (printed in brackets)"
    notes = [
        "systems other than popularity and random have our settings, not those of LibRec, so only their order compares",
        "this design draws the truth from known and unknown pairs alike, and so does not have the flaw of 2018",
    ]
    return exhibit("table-4-fifths", caption, ["System", *columns], rows, notes, _tidy(tidy))


def _orders_table(orders: pl.DataFrame) -> Exhibit:
    variants = orders["variant"].unique(maintain_order=True).to_list()
    lead = orders.filter(variant=variants[0]).sort("tau", descending=True, nulls_last=True, maintain_order=True)
    of = {(row["variant"], row["protocol"], row["metric"]): row for row in orders.iter_rows(named=True)}
    rows = []
    for protocol, metric in lead.select("protocol", "metric").iter_rows():
        cells = [of[variant, protocol, metric] for variant in variants]
        rows.append(
            [protocol, metric, *(_ranged([row["tau"], row["lower"], row["upper"]], ".2f") for row in cells)]
            + [_ranged([row["winner"], row["winner_lower"], row["winner_upper"]], ".0%") for row in cells]
        )
    pairs = ", ".join(
        f"{of_variant['pairs'][0]} ({variant})"
        for (variant,), of_variant in orders.group_by("variant", maintain_order=True)
    )
    caption = "How well protocols, metrics and estimators find the true order of all systems"
    notes = [
        f"Kendall's tau over the pairs of systems that differ significantly in truth: {pairs}; 95 % intervals over "
        "users and draws",
        "winner: how often the first system is one that no other truly beats",
        "truth: P@10 if all were judged, by a random half of the judgments or by those that are given; the observed "
        "test ratings are among the judgments of a half",
    ]
    header = ["Protocol", "Metric", *(f"{what}, {variant}" for what in ("tau", "winner") for variant in variants)]
    return exhibit("table-5-orders", caption, header, rows, notes, orders)


def _worlds_table(worlds: pl.DataFrame) -> Exhibit:
    settings = worlds.select("knob", "value").unique(maintain_order=True).rows()
    of = {(row["knob"], row["value"], row["protocol"], row["metric"]): row for row in worlds.iter_rows(named=True)}
    readings = worlds.select("protocol", "metric").unique(maintain_order=True).rows()
    rows = []
    for reading in readings:
        own = [of[(*setting, *reading)] for setting in settings]
        rows.append([*reading, *(f"{row['tau']:.2f} ({row['winner']:.0%})" for row in own)])
    header = ["Protocol", "Metric", *(f"{knob} {value:g}" for knob, value in settings)]
    caption = (
        "Kendall's tau with the true order on simulated worlds, and how often the true winner is found (in brackets)"
    )
    notes = [
        f"means over {worlds['worlds'][0]} worlds for each setting; one parameter varies at a time, the others stay at "
        + ", ".join(f"{knob} {value:g}" for knob, value in BASE.items() if knob in KNOBS),
        "tau is over the pairs of systems that differ significantly in truth; a winner is right if no other system "
        "truly beats it; the file has the intervals of both",
    ]
    return exhibit("table-6-worlds", caption, header, rows, notes, worlds)


def _draw_orders(orders: pl.DataFrame) -> Any:
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
