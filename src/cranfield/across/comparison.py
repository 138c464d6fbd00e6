"""`DatasetComparison`: systems compared over several datasets, as a verdict, frames, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._errors import SettingError, nearest
from cranfield._numbers import DASH, number_text
from cranfield._record import Step
from cranfield._settings import settings
from cranfield._table import Cell, Table, answer_and_table, html_paragraphs, places
from cranfield.across.effects import DatasetEffects
from cranfield.across.standing import OverDatasets, effect_text
from cranfield.facts import Fact, p_text, sentences
from cranfield.facts import across as across_facts
from cranfield.metrics import metric_label

_TOO_ROUNDED = 0.02
_SCALES = {"ratio": "ratios of averages", "difference": "differences", "effect": "effect sizes d_z"}
_WEIGHTS = {"equal": "each dataset weighs the same", "precision": "datasets weigh by precision"}


@dataclass(frozen=True, eq=False)
class DatasetComparison:
    """The result of `compare_datasets`.

    Two claims are told apart everywhere: on these datasets, where only the users are uncertain; and for datasets like
    these, where the dataset is the unit.
    """

    tables: tuple[DatasetEffects, ...] = field(repr=False)  # one for each metric, the main one first
    families: Mapping[str, str]
    known: Mapping[str, str]  # the sources of datasets that come from a known one
    baseline: str | None
    scale: str
    weights: str
    margin: float | None  # on the scale of the effects
    alpha: float
    rounding: float | None = None  # of a pasted table: half a printed digit, relative to the smallest value
    repeated: bool = False  # whether any dataset was measured with repetitions
    step: Step = field(default_factory=lambda: Step("compare_datasets"))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics, the main one first."""
        return tuple(table.metric for table in self.tables)

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems."""
        return self.tables[0].systems

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the datasets, with each family as one."""
        return self.standings[0].table.datasets

    @cached_property
    def standings(self) -> tuple[OverDatasets, ...]:
        """How systems stand by each metric."""
        how = (self.families, self.known, self.baseline, self.weights, self.margin, self.alpha, len(self.tables) > 1)
        return tuple(OverDatasets(table, *how) for table in self.tables)

    def of_metric(self, metric: str | None = None) -> OverDatasets:
        """Return how systems stand by a metric; the main one if it is not named."""
        if metric is None:
            return self.standings[0]
        if metric not in self.metrics:
            raise SettingError(f"there is no comparison by {metric!r}{nearest(metric, self.metrics)}")
        return self.standings[self.metrics.index(metric)]

    def frame(self) -> pl.DataFrame:
        """Return one row per metric and pair of systems.

        Columns: ``metric, system_a, system_b``; the ``scale`` of its effects (a ratio becomes a difference where an
        average is not above 0); ``datasets``, how many both have, with ``wins, ties, losses``; the average ``effect``
        with its error over users, ``users_error``, and over datasets, ``error``; the average with equal weights on
        ``these`` datasets with its interval, ``these_lower, these_upper``; for datasets like these the interval
        ``lower, upper`` of the effect, ``p, p_corrected, significant, better``; how much effects differ between
        datasets: ``tau`` with ``tau_lower, tau_upper``, ``q`` and ``i2``; on a new dataset the interval ``new_lower,
        new_upper`` and the ``chance`` that the order holds, and with a margin ``new_better, new_equal, new_worse``;
        ``datasets_needed`` to settle the pair alone (power 0.8); and Wilcoxon's test of the effects over datasets,
        ``p_wilcoxon, p_wilcoxon_corrected``. Effects on the scale ``ratio`` are logarithms. What so few datasets do
        not tell is NaN: see `pooled`.
        """
        return pl.concat([standing.frame() for standing in self.standings])

    def effects(self, metric: str | None = None) -> pl.DataFrame:
        """Return one row per pair and dataset of a metric, the main one if it is not named.

        Columns: ``metric, system_a, system_b, dataset, users``; the averages ``mean_a, mean_b``; the ``effect`` with
        its ``error`` over users and interval ``lower, upper``; ``shrunken``, the effect drawn towards the average; and
        the average ``without`` this dataset.
        """
        return self.of_metric(metric).effects()

    def ranks(self, metric: str | None = None) -> pl.DataFrame:
        """Return one row per system, best first: its ``mean_rank``, and its rank on each dataset that all have."""
        ranks = self.of_metric(metric).ranks
        columns = {name: ranks.table[ranks.order, d] for d, name in enumerate(ranks.datasets)}
        systems = [ranks.systems[place] for place in ranks.order]
        return pl.DataFrame({"system": systems, "mean_rank": ranks.averages[ranks.order], **columns})

    def rules(self, metric: str | None = None) -> pl.DataFrame:
        """Return one row per rule and system: its ``score``, whether it ``leads``, and how firmly the leaders do.

        ``stays`` counts the tables without one dataset, of ``datasets``, in which the leaders are the same;
        ``subsets_stay`` the subsets of at least three datasets, of ``subsets``; ``decisive`` says whether leaving this
        system out changes who leads among the others, although it does not lead.
        """
        standing = self.of_metric(metric)
        rows = [
            {"rule": rule.rule, "system": system, "score": float(score), "leads": system in rule.leaders,
             "decisive": system in rule.decisive, "stays": rule.stays, "datasets": rule.datasets,
             "subsets_stay": rule.subsets_stay, "subsets": rule.subsets}
            for rule in standing.rules
            for system, score in zip(standing.table.systems, rule.scores)
        ]  # fmt: skip
        return pl.DataFrame(rows)

    @cached_property
    def verdict(self) -> list[str]:
        """The verdict in words; the first sentence, of at most 25 words, makes both claims about the best system."""
        return sentences(self.facts())

    def facts(self) -> list[Fact]:
        """Return the facts of the verdict in the order in which they are said."""
        main, *others = self.standings
        facts = [*main.facts(), *(standing.answer for standing in others)]
        ranks = main.ranks
        if len(ranks.datasets) > 1:
            averages = {ranks.systems[place]: float(ranks.averages[place]) for place in ranks.order}
            exact = not np.isnan(ranks.p_exact)
            facts.append(across_facts.RankTest(len(ranks.datasets), averages, ranks.p, exact, ranks.critical))
        if self.rounding is not None and self.rounding > _TOO_ROUNDED:
            facts.append(across_facts.RoundedTable(self.rounding))
        if self.rounding is None and not self.repeated:
            facts.append(across_facts.OneTraining())
        return facts

    @property
    def caption(self) -> str:
        """How it was averaged and tested, in one line."""
        said = [f"{_SCALES[self.scale]}, {_WEIGHTS[self.weights]}", "t over datasets, Holm's correction over the pairs"]
        return "; ".join([*said, f"{100 * (1 - self.alpha):g} % intervals of each pair alone"])

    def table(self, metric: str | None = None) -> Table:
        """Return each system against the baseline, or against the best system: on each dataset and over them."""
        standing = self.of_metric(metric)
        base, names = standing.reference, standing.table.datasets
        header = [f"{metric_label(standing.table.metric)} against {base}", *names, "these", "datasets like these", "p",
                  "on a new dataset", "chance of this order", "wins"]  # fmt: skip
        rows: list[list[str | Cell]] = []
        for system in (standing.table.systems[place] for place in standing.order):
            if system == base:
                continue
            place, sign = standing.pair(system, base)
            scale, pools = standing.table.scales[place], standing.pools
            effects = sign * standing.table.effects[place]
            known = effects[~np.isnan(effects)]
            cells = [effect_text(effect, scale) for effect in (*effects, sign * float(pools.these_mean[place]))]
            p = float(standing.corrected[place])
            cells += [_range(sign, pools.lower[place], pools.upper[place], scale), p_text(p)]
            cells += [_range(sign, pools.new_lower[place], pools.new_upper[place], scale)]
            cells += [number_text(float(pools.chance[place]), 2), f"{(known > 0).sum()} of {len(known)}"]
            rows.append([Cell(system, raised=standing.mark(system)), *cells])
        return Table(header, rows, f"{self.caption}{standing.key_to_marks}")

    def summary(self, metric: str | None = None) -> Table:
        """Return systems × datasets with the averages, best first: best in bold, second underlined; and mean ranks."""
        standing = self.of_metric(metric)
        own = standing.by_dataset
        ranks = [places(own.means[:, d], own.lower_is_better, 4) for d in range(len(own.datasets))]
        mean_ranks = standing.ranks.averages
        rows = []
        for s in standing.order:
            cells = [Cell(number_text(own.means[s, d]), rank[s] == 0, rank[s] == 1) for d, rank in enumerate(ranks)]
            rows.append(
                [
                    Cell(own.systems[s], raised=standing.mark(own.systems[s])),
                    *cells,
                    Cell(number_text(float(mean_ranks[s]), 2)),
                ]
            )
        header = ["system", *own.datasets, "mean rank"]
        named = "" if standing.several else f"{metric_label(own.metric)}. "
        return Table(header, rows, f"{named}{standing.answer}{standing.key_to_marks}")

    def to_latex(self) -> str:
        """Return `summary` of the main metric in LaTeX."""
        return self.summary().latex()

    def markdown(self) -> str:
        """Return `table` of the main metric in Markdown."""
        return self.table().markdown()

    def as_dict(self) -> dict[str, Any]:
        """Return the settings, the verdict and the rows, ready for JSON (NaN and infinity become null)."""
        return {
            **self.step.as_dict(),
            "verdict": self.verdict,
            "datasets": list(self.datasets),
            "rows": _plain(self.frame()),
            "effects": [row for metric in self.metrics for row in _plain(self.effects(metric))],
            "rules": _plain(self.rules()),
        }

    @property
    def figures(self) -> Mapping[str, Callable[..., Any]]:
        """The kinds of figures: the ``forest`` plot of the best two systems, the ``ranks`` and the ``rules``."""
        from cranfield.across.figures import FIGURES

        return FIGURES

    def plot(self, kind: str | None = None, **options: Any) -> Any:
        """Return a figure: the first of `figures`, or another kind; the options are ``metric`` and ``style``."""
        return self.figures[_checks.one_of("kind", kind or next(iter(self.figures)), self.figures)](self, **options)

    def __str__(self) -> str:
        answer, *remarks = self.verdict
        tables = "\n\n".join(self.table(metric).text() for metric in self.metrics[1:]) if settings.details else ""
        said = answer_and_table(answer, self.table(), remarks)
        return f"{said}\n\n{tables}" if tables else said

    def __repr__(self) -> str:
        counts = f"{len(self.systems)} systems, {len(self.metrics)} metrics, {len(self.datasets)} datasets"
        return f"DatasetComparison({counts})"

    def _repr_html_(self) -> str:
        return html_paragraphs(self.verdict[:1]) + self.table().html()


def _plain(frame: pl.DataFrame) -> list[dict[str, Any]]:
    numbers = pl.selectors.float()
    return frame.with_columns(pl.when(numbers.is_finite()).then(numbers)).to_dicts()


def _range(sign: int, lower: float, upper: float, scale: str) -> str:
    """Return an interval, in percent for a ratio."""
    if np.isnan(lower) or np.isnan(upper):
        return DASH
    ends = sorted((sign * lower, sign * upper))
    return f"{effect_text(ends[0], scale)} to {effect_text(ends[1], scale)}".replace(" % to", " to")
