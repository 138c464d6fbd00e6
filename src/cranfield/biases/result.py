"""`Bias`: how much of an evaluation is due to popularity, and which conclusions hold without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape

import numpy as np
import polars as pl

from cranfield._numbers import DASH, listed, number_text, percent_text
from cranfield._table import Table
from cranfield.biases.densities import Density
from cranfield.biases.estimators import Estimates
from cranfield.biases.protocols import CHOSEN, SAYS, Protocol
from cranfield.biases.random_rankings import RatioToRandom
from cranfield.comparisons import Comparison
from cranfield.metrics import kendall_tau_b

# Maximum number of changed conclusions that are listed one by one.
_SPELLED = 4


@dataclass(frozen=True, eq=False)
class Bias:
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
    notes: tuple[str, ...]
    caveats: tuple[str, ...]
    departures: tuple[str, ...] = ()
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
        """One row per pair and neutral protocol: which system is significantly better, and what changes.

        ``change`` is ``is reversed``, ``is lost`` (significant under the chosen protocol only), ``appears`` (under the
        neutral one only) or ``stays``.
        """
        chosen = {(a, b): better for a, b, better in self._better(CHOSEN)}
        rows = []
        for protocol in self.protocols[1:]:
            for a, b, better in self._better(protocol.name):
                before = chosen.get((a, b))
                rows.append((a, b, protocol.name, before, better, _change(before, better)))
        names = ("system_a", "system_b", "protocol", "chosen", "neutral", "change")
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")

    def _better(self, protocol: str) -> list[tuple[str, str, str | None]]:
        """Return each pair with the system that is significantly better, or None if neither is."""
        frame = self.comparisons[protocol].frame()
        return [
            (row["system_a"], row["system_b"], row["better"] if row["significant"] else None)
            for row in frame.iter_rows(named=True)
        ]

    @cached_property
    def agreement(self) -> Mapping[str, float]:
        """Kendall's tau-b of the averages under each neutral protocol with those under the chosen one."""
        means = [protocol.scores.average(protocol.averaging)[:, 0] for protocol in self.protocols]
        return {
            protocol.name: kendall_tau_b(means[0], values) for protocol, values in zip(self.protocols[1:], means[1:])
        }

    @property
    def verdict(self) -> list[str]:
        """The results in words; the first sentence says whether the winner depends on popularity."""
        return [*self._on_winner(), *self._on_shares(), *self._on_orders(), *self._on_changes()]

    def _on_winner(self) -> list[str]:
        """Return a sentence on whether the winner under the chosen protocol is beaten under neutral ones."""
        names = [protocol.name for protocol in self.protocols[1:]]
        if not names or len(self.protocols[0].scores.systems) < 2:
            return []
        (first, *level) = self.orders.filter(protocol=CHOSEN, place=1)["system"].to_list()
        if level:
            return [f"{listed([first, *level])} are level under {CHOSEN}, so there is no winner to look at."]
        beaten_by: dict[str, list[str]] = {}
        for name in names:
            for a, b, better in self._better(name):
                if first in (a, b) and better not in (None, first):
                    beaten_by.setdefault(str(better), []).append(name)
        if not beaten_by:
            return [self._on_unbeaten(first, names)]
        others = listed([f"{system} (under {listed(under)})" for system, under in beaten_by.items()])
        better = "is" if len(beaten_by) == 1 else "are"
        return [
            f"The winner depends on the protocol: {first} is first under {CHOSEN}, and {others} {better} significantly "
            "better than it without popularity's advantage."
        ]

    def _on_unbeaten(self, first: str, names: list[str]) -> str:
        """Return a sentence on who leads under neutral protocols if none is significantly better than the winner."""
        leaders: dict[str, list[str]] = {}
        level: dict[str, list[str]] = {}
        for name in names:
            at_the_top = self.orders.filter(protocol=name, place=1)["system"].to_list()
            for system in at_the_top:
                if system != first:
                    (level if first in at_the_top else leaders).setdefault(system, []).append(name)
        if not leaders and not level:
            return (
                f"The winner is the same without popularity's advantage: {first} is first under {CHOSEN} and under "
                f"{listed(names)}."
            )
        others = [
            f"{listed([f'{system} (under {listed(under)})' for system, under in systems.items()])} {says}"
            for systems, says in (
                (leaders, f"{'leads' if len(leaders) == 1 else 'lead'} without it, though not significantly"),
                (level, f"{'is' if len(level) == 1 else 'are'} level with {first}"),
            )
            if systems
        ]
        return (
            f"It is open whether the winner is the same without popularity's advantage: {first} is first under "
            f"{CHOSEN}, and {'; '.join(others)}."
        )

    def _on_shares(self) -> list[str]:
        rows = {row["system"]: row for row in self.shares.iter_rows(named=True)}
        others = [name for name in rows if name != self.popularity and rows[name]["mean"] > 0]
        if not others:
            return ["Popularity is the only system with a score; name others to compare it with."]
        lower = self.protocols[0].scores.lower_is_better[0]
        order = sorted(others, key=lambda name: rows[name]["mean"], reverse=not lower)
        best = rows[order[0]]
        times = self.ratios.frame().filter(system=order[0])["times_random"][0]
        beside = f", {times:,.1f} times the score of a random ranking" if times is not None else ""
        sentences = [
            f"{best['system']} has the best {self.metric} of the systems other than popularity, "
            f"{number_text(best['mean'])}{beside}. Ranking by popularity alone reaches "
            f"{percent_text(best['reached'], ' %')} of it."
        ]
        correlated = [
            f"{name} {number_text(rows[name]['partial_correlation'], 2)}"
            for name in order
            if rows[name]["partial_correlation"] is not None and not np.isnan(rows[name]["partial_correlation"])
        ]
        if correlated:
            sentences.append(
                "Over users, given how many relevant items each has, the scores correlate with those of popularity by "
                f"{', '.join(correlated)}."
            )
        known = [row for row in (rows[name] for name in order) if not np.isnan(row["recommended"])]
        if known:
            sentences.append(
                f"The items that {known[0]['system']} recommends are {known[0]['recommended']:.1f} times as popular as "
                f"the average item of the catalogue; {percent_text(known[0]['head'], ' %')} of them are in the head, "
                "the most popular items with a fifth of all ratings."
            )
        return sentences

    def _on_orders(self) -> list[str]:
        if len(self.protocols) == 1:
            return ["No neutral protocol is possible with these ratings, so nothing can be said about the order."]
        sentences = []
        places = {(row["protocol"], row["system"]): row["place"] for row in self.orders.iter_rows(named=True)}
        for name, tau in self.agreement.items():
            before, after = places[CHOSEN, self.popularity], places[name, self.popularity]
            moved = (
                f"popularity stays at place {before}"
                if before == after
                else f"popularity goes from place {before} to {after}"
            )
            agrees = f"the order agrees with that of {CHOSEN} by tau {number_text(tau, 2)}"
            if np.isnan(tau):
                agrees = "all systems are level"
            sentences.append(f"Under {name} ({SAYS[name]}) {agrees}: {moved}.")
        return sentences

    def _on_changes(self) -> list[str]:
        if len(self.protocols) == 1:
            return []
        changed = self.conclusions.filter(pl.col("change").is_in(["is reversed", "is lost"]))
        pairs = changed.select("system_a", "system_b").unique().height
        every = self.conclusions.select("system_a", "system_b").unique().height
        firm = sum(better is not None for *_, better in self._better(CHOSEN))
        if firm == 0:
            return [f"No pair of systems differs significantly under {CHOSEN}."]
        if changed.height == 0:
            differences = "The only significant difference" if firm == 1 else f"All {firm} significant differences"
            return [f"{differences} under {CHOSEN} {'holds' if firm == 1 else 'hold'} under every neutral protocol."]
        have = "has" if pairs == 1 else "have"
        sentences = [
            f"{pairs} of {every} pairs of systems {have} another conclusion under a neutral protocol; {firm} differ "
            f"significantly under {CHOSEN}."
        ]
        kinds = changed.sort(pl.col("change") == "is lost").group_by(
            "system_a", "system_b", "chosen", "change", maintain_order=True
        )
        for place, ((a, b, chosen, change), rows) in enumerate(kinds):
            if place == _SPELLED:
                sentences.append("More changes are in the table of conclusions.")
                break
            other = b if chosen == a else a
            where = listed(rows["protocol"].to_list())
            ending = "the order is reversed" if change == "is reversed" else "that is not significant"
            sentences.append(f"{chosen} is better than {other} under {CHOSEN}; under {where} {ending}.")
        return sentences

    def tables(self) -> dict[str, Table]:
        """Return the tables by name: what popularity explains, the orders, the changed conclusions, and others."""
        tables = {"popularity": self._shares_table(), "orders": self._orders_table()}
        changed = self.conclusions.filter(pl.col("change") != "stays")
        if changed.height:
            tables["conclusions"] = self._changes_table(changed)
        tables["groups"] = self._groups_table()
        tables["predicted"] = self._predicted_table()
        if self.estimates is not None:
            tables["estimates"] = self.estimates.table()
        return tables

    def _predicted_table(self) -> Table:
        rows = [
            [row["system"], row["equation"], number_text(row["predicted"]), number_text(row["measured"])]
            for row in self.predicted.iter_rows(named=True)
        ]
        notes = [f"Targets under {CHOSEN}: {self.density.symbols}."]
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
        popular = ["reached by popularity", "partial correlation", "times as popular", "in the head"]
        header = ["system", self.metric, *popular]
        return Table(header, rows, f"How much of {self.metric} popularity explains under {CHOSEN}", [])

    def _orders_table(self) -> Table:
        names = [protocol.name for protocol in self.protocols]
        cells = {
            (row["protocol"], row["system"]): f"{number_text(row['mean'])} ({row['place']})"
            for row in self.orders.iter_rows(named=True)
        }
        rows = [[system, *(cells[name, system] for name in names)] for system in self.protocols[0].scores.systems]
        notes = [f"{name}: {SAYS[name]}." for name in names]
        return Table(["system", *names], rows, f"{self.metric}, and the place, under each protocol", notes)

    def _changes_table(self, changed: pl.DataFrame) -> Table:
        rows = [
            [f"{a} / {b}", protocol, chosen or DASH, neutral or DASH, change]
            for a, b, protocol, chosen, neutral, change in changed.iter_rows()
        ]
        header = ["pair", "protocol", f"better under {CHOSEN}", "better under it", "the conclusion"]
        return Table(header, rows, "Conclusions that change under a neutral protocol", [])

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
            "caveats": list(self.caveats),
            "notes": list(self.notes),
            "popularity": self.shares.to_dicts(),
            "groups": self.groups.to_dicts(),
            "orders": self.orders.to_dicts(),
            "agreement": dict(self.agreement),
            "conclusions": self.conclusions.to_dicts(),
            "density": self.density.as_dict(),
            "predicted": self.predicted.to_dicts(),
            "departures": list(self.departures),
            "estimates": None if self.estimates is None else self.estimates.frame.to_dicts(),
        }

    def __str__(self) -> str:
        verdict = "\n".join(self.verdict)
        tables = "\n\n".join(table.text().rstrip("\n") for table in self.tables().values())
        unknown = "\n".join(["What cannot be known:", *self.caveats])
        return f"{verdict}\n\n{tables}\n\n{unknown}"

    def _repr_html_(self) -> str:
        sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in [*self.verdict, *self.caveats])
        return sentences + "".join(table.html() for table in self.tables().values())


def _change(before: str | None, after: str | None) -> str:
    if before == after:
        return "stays"
    if before is None:
        return "appears"
    return "is lost" if after is None else "is reversed"
