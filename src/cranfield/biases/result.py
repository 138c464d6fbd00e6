"""`Bias`: how much of an evaluation is due to popularity, and which conclusions hold without it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._figures import ACCENT, Style, altair, data_of, themed, tips
from cranfield._numbers import DASH, number_text, percent_text
from cranfield._result import Figures, Result
from cranfield._settings import settings
from cranfield._table import Table, answer_and_table
from cranfield.biases.densities import Density
from cranfield.biases.estimators import Estimates
from cranfield.biases.protocols import Protocol
from cranfield.biases.random_rankings import RatioToRandom
from cranfield.comparisons import Comparison
from cranfield.facts import Fact, sentences
from cranfield.facts import bias as bias_facts
from cranfield.metrics import kendall_tau_b

_SPELLED = 4  # maximum number of changed conclusions that are listed one by one
_CAUSES = ("popularity", "design", "unclear")
_OF_PAIR = ("system_a", "system_b", "after", "cause")


@dataclass(frozen=True, eq=False)
class Bias(Result):
    """The result of `bias`.

    Parameters
    ----------
    metric, threshold
        The metric, and the lowest relevant rating.
    popularity
        The system that ranks by popularity.
    shares
        How much of each system's score is explained by popularity: see `popularity_shares`.
    groups
        Recall of each system by popularity group of the test items.
    protocols, comparisons
        The systems under the chosen protocol, which comes first, and under neutral ones; and the tests of each.
    ratios
        The scores under the chosen protocol compared with those of a random ranking.
    density
        ρ, σ, δ and t of the targets under the chosen protocol.
    predicted, departures
        The precision of random ranking and of popularity, as predicted by equations (4) and (3) of Bellogín et al.
        (2017) and as measured; and the assumptions of the formulas that do not hold.
    notes
        How it was computed, and which protocols were not possible.
    caveats
        What cannot be known from these ratings.
    estimates
        IPS, SNIPS and doubly robust estimates under the chosen protocol, if propensities were requested.
    """

    metric: str
    threshold: float
    popularity: str
    shares: pl.DataFrame
    groups: pl.DataFrame
    protocols: tuple[Protocol, ...]
    comparisons: Mapping[str, Comparison]
    ratios: RatioToRandom
    density: Density
    predicted: pl.DataFrame
    notes: tuple[Fact, ...]
    caveats: tuple[Fact, ...]
    departures: tuple[Fact, ...] = ()
    estimates: Estimates | None = None

    @cached_property
    def orders(self) -> pl.DataFrame:
        """One row per protocol and system: its average, the interval, and its rank among the systems."""
        frames = []
        for name, scores, averaging in self.protocols:
            place = pl.col("mean").rank("min", descending=not scores.lower_is_better[0]).cast(pl.Int64).alias("place")
            columns = (pl.lit(name).alias("protocol"), "system", "mean", "lower", "upper", place)
            frames.append(scores.frame(averaging).select(columns))
        return pl.concat(frames)

    @cached_property
    def conclusions(self) -> pl.DataFrame:
        """One row per pair and protocol: which system is significantly better than under its control.

        ``change`` is ``is reversed``, ``is lost`` (significant under the control only), ``appears`` (under the protocol
        only) or ``stays``. ``cause`` is ``design`` for a control itself. For a neutral protocol it is ``popularity`` if
        the difference between the systems is another one than under the control: z = (d − d') / √(s² + s'²), corrected
        over the pairs by Bonferroni, and otherwise ``unclear``: significance can be lost because there are fewer
        ratings. (Both have the same users, so the standard error is too large rather than too small.)
        """
        verdicts = {name: {(a, b): better for a, b, better in self._better(name)} for name in self.comparisons}
        margins = {name: compared.rows for name, compared in self.comparisons.items()}
        rows = []
        for protocol in self.protocols[1:]:
            name, control = protocol.name, bias_facts.CONTROLS[protocol.name]
            moved = _moved(margins[control], margins[name], self.comparisons[name].alpha)
            for (pair, after), has_moved in zip(verdicts[name].items(), moved):
                cause = "design" if name not in bias_facts.NEUTRAL else "popularity" if has_moved else "unclear"
                before = verdicts[control][pair]
                rows.append((*pair, name, control, before, after, _change(before, after), cause))
        names = ("system_a", "system_b", "protocol", "control", "before", "after", "change", "cause")
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")

    @cached_property
    def changes(self) -> pl.DataFrame:
        """The rows of `conclusions` in which something changes: because of popularity first, reversed ones first."""
        changed, kinds = self.conclusions.filter(pl.col("change") != "stays"), ["is reversed", "is lost", "appears"]
        causes = pl.col("cause").cast(pl.Enum(_CAUSES))
        return changed.sort(causes, pl.col("change").cast(pl.Enum(kinds)), maintain_order=True)

    def _better(self, protocol: str) -> list[tuple[str, str, str | None]]:
        """Return each pair with the system that is significantly better, or None if neither is."""
        columns = self.comparisons[protocol].rows.select("system_a", "system_b", "better", "significant")
        return [(a, b, better if significant else None) for a, b, better, significant in columns.iter_rows()]

    @cached_property
    def agreement(self) -> Mapping[str, float]:
        """Kendall's tau-b of the averages under each protocol with those under its control."""
        means = {name: scores.average(averaging)[:, 0] for name, scores, averaging in self.protocols}
        return {
            protocol.name: kendall_tau_b(means[bias_facts.CONTROLS[protocol.name]], means[protocol.name])
            for protocol in self.protocols[1:]
        }

    def frame(self) -> pl.DataFrame:
        """Return `orders`."""
        return self.orders

    @property
    def figures(self) -> Figures:
        """``orders``: the averages under each protocol with their intervals."""
        return {"orders": _orders}

    def facts(self) -> list[Fact]:
        """Return whether the winner depends on popularity, what popularity explains, and what it changes."""
        return [*self._on_winner(), *self._on_shares(), *self._on_orders(), *self._on_changes()]

    def _on_winner(self) -> Iterator[Fact]:
        """Yield whether the winner under each control is first under the protocols that are compared with it."""
        others = tuple(protocol.name for protocol in self.protocols[1:])
        if not others or len(self.protocols[0].scores.systems) < 2:
            return
        first = {name: tuple(self.orders.filter(protocol=name, place=1)["system"]) for name in self.comparisons}
        design, popularity, opened = (defaultdict[str, tuple[str, ...]](tuple) for _ in range(3))
        for name in others:
            winner = first[bias_facts.CONTROLS[name]][0]
            responsible = {"popularity": popularity, "design": design, "unclear": opened}
            ahead = set[str]()
            for a, b, better, cause in self.conclusions.filter(protocol=name).select(*_OF_PAIR).iter_rows():
                if winner in (a, b) and better not in (None, winner):
                    responsible[cause][better] += (name,)
                    ahead.add(better)
            for system in () if ahead else first[name]:
                if system != winner:
                    opened[system] += (name,)
        yield bias_facts.WinnerWithoutPopularity(
            first[bias_facts.CHOSEN], others, dict(design), dict(popularity), dict(opened)
        )

    def _on_shares(self) -> Iterator[Fact]:
        rows = {row["system"]: row for row in self.shares.iter_rows(named=True)}
        others = [row for name, row in rows.items() if name != self.popularity and row["mean"] > 0]
        if not others:
            yield bias_facts.PopularityRemark("only popularity")
            return
        lower = self.protocols[0].scores.lower_is_better[0]
        ranked = sorted(others, key=lambda row: row["mean"], reverse=not lower)
        best = ranked[0]
        times = self.ratios.frame().filter(system=best["system"])["times_random"][0]
        yield bias_facts.ReachedByPopularity(self.metric, best, times)
        correlations = {row["system"]: row["partial_correlation"] for row in ranked}
        known = {name: value for name, value in correlations.items() if value is not None and not np.isnan(value)}
        if known:
            yield bias_facts.CorrelatedWithPopularity(known)
        for row in ranked:
            if not np.isnan(row["recommended"]):
                yield bias_facts.PopularItems(row)
                return

    def _on_orders(self) -> Iterator[Fact]:
        if len(self.protocols) == 1:
            yield bias_facts.PopularityRemark("no neutral protocol")
        of_popularity = self.orders.filter(system=self.popularity)
        places = dict(zip(of_popularity["protocol"], of_popularity["place"]))
        for name, tau in self.agreement.items():
            yield bias_facts.OrderUnder(name, tau, places[bias_facts.CONTROLS[name]], places[name])

    def _on_changes(self) -> Iterator[Fact]:
        if len(self.protocols) == 1:
            return
        changed = self.changes
        by_popularity, by_design, unclear, pairs = (
            frame.select("system_a", "system_b").unique().height
            for frame in (*(changed.filter(cause=cause) for cause in _CAUSES), self.conclusions)
        )
        yield bias_facts.ChangedConclusions(by_popularity, by_design, unclear, pairs)
        kinds = (
            changed.filter(pl.col("cause") != "unclear")
            .with_columns(better=pl.coalesce("before", "after"))
            .group_by("system_a", "system_b", "control", "better", "change", maintain_order=True)
        )
        for place, ((a, b, control, better, change), rows) in enumerate(kinds):
            if place == _SPELLED:
                yield bias_facts.PopularityRemark("more changes")
                return
            pair = (str(better), str(b if better == a else a))
            yield bias_facts.ChangedConclusion(*pair, str(control), tuple(rows["protocol"]), str(change))

    def tables(self) -> dict[str, Table]:
        """Return the tables by name: what popularity explains, the orders, the changed conclusions, and others."""
        tables = {"popularity": self._shares_table(), "orders": self.table()}
        if self.changes.height:
            tables["conclusions"] = self._changes_table()
        tables["groups"] = self._groups_table()
        tables["predicted"] = self._predicted_table()
        if self.estimates is not None:
            tables["estimates"] = self.estimates.table()
        return tables

    def _predicted_table(self) -> Table:
        rows = [[name, equation, *map(number_text, values)] for name, equation, *values in self.predicted.iter_rows()]
        notes = [f"Targets under {bias_facts.CHOSEN}: {self.density.symbols}."]
        notes += [f"Measured and predicted values can differ, because {reason}." for reason in self.departures]
        header = ["system", "formula", "predicted", "measured"]
        return Table(header, rows, "Precision as Bellogín et al. (2017) predict it, and as measured", notes)

    def _shares_table(self) -> Table:
        rows = [
            [
                row["system"],
                number_text(row["mean"]),
                percent_text(row["reached"], " %"),
                number_text(row["partial_correlation"], 2),
                number_text(row["recommended"], 1),
                percent_text(row["head"], " %"),
            ]
            for row in self.shares.iter_rows(named=True)
        ]
        explained = ["reached by popularity", "partial correlation", "times as popular", "in the head"]
        header = ["system", self.metric, *explained]
        return Table(header, rows, f"How much of {self.metric} popularity explains under {bias_facts.CHOSEN}", [])

    def table(self) -> Table:
        """Return the average and the place of each system under each protocol as a table for people."""
        names = [protocol.name for protocol in self.protocols]
        cells = {
            (row["protocol"], row["system"]): f"{number_text(row['mean'])} ({row['place']})"
            for row in self.orders.iter_rows(named=True)
        }
        order = self.orders.filter(protocol=names[0]).sort("place", maintain_order=True)["system"]
        rows = [[system, *(cells[name, system] for name in names)] for system in order]
        notes = [f"{name}: {bias_facts.SAYS[name]}." for name in names]
        return Table(["system", *names], rows, f"{self.metric}, and the place, under each protocol", notes)

    def _changes_table(self) -> Table:
        rows = [
            [f"{a} / {b}", f"{control} to {protocol}", before or DASH, after or DASH, change, cause]
            for a, b, protocol, control, before, after, change, cause in self.changes.iter_rows()
        ]
        header = ["pair", "protocols", "better under the first", "under the second", "the conclusion", "because of"]
        return Table(header, rows, "Conclusions that change, and whether popularity or the design changes them", [])

    def _groups_table(self) -> Table:
        rows, sizes = [], {}
        for (system,), own in self.groups.group_by("system", maintain_order=True):
            rows.append([str(system), *map(number_text, own["mean"])])
            sizes = dict(zip(own["group"], own["ratings"]))
        notes = [", ".join(f"{group}: {count:,} test ratings" for group, count in sizes.items())]
        return Table(["system", *sizes], rows, "Recall by popularity group of the test items", notes)

    def as_dict(self) -> dict[str, object]:
        """Return all results, ready for JSON."""
        return {
            "metric": self.metric,
            "threshold": self.threshold,
            "verdict": self.verdict,
            "caveats": sentences(self.caveats),
            "notes": sentences(self.notes),
            "popularity": self.shares.to_dicts(),
            "groups": self.groups.to_dicts(),
            "orders": self.orders.to_dicts(),
            "agreement": dict(self.agreement),
            "conclusions": self.conclusions.to_dicts(),
            "density": self.density.as_dict(),
            "predicted": self.predicted.to_dicts(),
            "departures": sentences(self.departures),
            "estimates": None if self.estimates is None else self.estimates.frame().to_dicts(),
        }

    def __str__(self) -> str:
        answer, *remarks = self.facts()
        shown = answer_and_table(answer, self.table(), [*remarks, *self.caveats])
        if not settings.details:
            return shown
        others = (table for name, table in self.tables().items() if name != "orders")
        return "\n\n".join([shown, *(table.text() for table in others)])


def _orders(answer: Bias, *, style: Style = "screen") -> Any:
    """Return the averages under each protocol, with their intervals, one panel per protocol."""
    alt = altair()
    names = [protocol.name for protocol in answer.protocols]
    systems = answer.orders.filter(protocol=names[0]).sort("place", maintain_order=True)["system"].to_list()
    charts = []
    for k, name in enumerate(names):
        rows = answer.orders.filter(pl.col("protocol") == name)
        # Two panels in a row, which a phone shows whole; the first has the names.
        named = alt.Axis(labels=k % 2 == 0, ticks=k % 2 == 0)
        base = alt.Chart(data_of(rows)).encode(y=alt.Y("system:N", sort=systems, title=None, axis=named))
        title = [bias_facts.NAMES[name], f"({name})"]
        tooltip = tips(system="system", mean=("mean", ".4f"), lower=("lower end", ".4f"), upper=("upper end", ".4f"))
        line = base.mark_rule(color=ACCENT, strokeWidth=2).encode(x=alt.X("lower:Q", title=title), x2="upper:Q")
        point = base.mark_point(filled=True, size=60, color=ACCENT, opacity=1)
        point = point.encode(x=alt.X("mean:Q", title=title), tooltip=tooltip)
        charts.append((line + point).properties(width=125, height=24 * len(systems)))
    return themed(alt.concat(*charts, columns=2), style)


def _moved(control: pl.DataFrame, other: pl.DataFrame, alpha: float) -> NDArray[np.bool_]:
    """Return for each pair whether the difference between its systems changes significantly between two protocols."""
    changes, squared = (
        control["difference"].to_numpy() - other["difference"].to_numpy(),
        control["standard_error"].to_numpy() ** 2 + other["standard_error"].to_numpy() ** 2,
    )
    critical = NormalDist().inv_cdf(1 - alpha / (2 * max(len(changes), 1)))
    return np.asarray(np.abs(changes) > critical * np.sqrt(squared))


def _change(before: str | None, after: str | None) -> str:
    if before == after:
        return "stays"
    if before is None:
        return "appears"
    return "is lost" if after is None else "is reversed"
