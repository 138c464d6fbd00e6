"""`Assessment`: the results on the metrics, as frames, figures and advice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks
from cranfield._errors import SettingError, nearest
from cranfield._figures import Style
from cranfield._files import whole_file, write_text
from cranfield._numbers import to_decimals
from cranfield._polars import write_parquet
from cranfield._record import Step
from cranfield._result import Figures, Result
from cranfield._table import Table, answer_and_table, csv_of
from cranfield._terminal import progress
from cranfield.assessments import summary
from cranfield.assessments.advice import Advice, Evidence, advise
from cranfield.assessments.power import ranking_alike
from cranfield.assessments.scenarios import SCENARIOS
from cranfield.facts import Fact
from cranfield.facts import assessment as assessment_facts
from cranfield.metrics import properties_of
from cranfield.rankings import file_name

STUDIES = ("robustness", "values", "power", "curves", "correlation", "groups", "cutoffs", "aggregation", "advice")
"""What `Assessment.frame` can return, in addition to ``samples``, which has every single sample."""


@dataclass(frozen=True, eq=False)
class Assessment(Result):
    """The result of `assess`.

    Parameters
    ----------
    systems, metrics, averages
        Names.
    lower_is_better
        For each metric, whether a smaller value is the better one.
    samples
        One row per fold, scenario, size, sample, average and metric; see `frame`.
    whole
        folds × averages × metrics × systems: the averages on the whole test sets, as measured.
    power
        One row per average and metric: how well the metric tells the systems apart.
    curves
        The p-values that ``power`` summarises.
    step
        The decisions, with notes.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "bob", "cid"], ["x", "y", "y"])
    >>> runs = {"mine": {"ann": ["x"], "bob": ["x"]}, "other": {"ann": ["z"], "cid": ["y"]}}
    >>> cf.assess(runs, test, "P@1", scenarios="users", sizes=[1, 0.5], samples=2)
    Assessment(2 systems, 1 metrics, 1 averages, 1 scenarios)
    """

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    averages: tuple[str, ...]
    lower_is_better: tuple[bool, ...]
    samples: pl.DataFrame
    whole: NDArray[np.float64]
    power: pl.DataFrame
    curves: pl.DataFrame
    step: Step = field(default_factory=lambda: Step("assess"))

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The scenarios that were studied."""
        studied = set(self.samples["scenario"].unique().to_list())
        return tuple(name for name in SCENARIOS if name in studied)

    def frame(self, study: str = "robustness") -> pl.DataFrame:
        """Return a study as a tidy frame.

        ``robustness``
            One row per scenario, size, average and metric: the number of ``samples``, those with an ``undefined`` tau,
            the mean ``tau`` with the whole test set, its ``standard_error``, quantiles, its standard deviation between
            folds ``fold_sd``; the mean share of pairs of systems whose order is ``flipped``; the shares of the
            significant verdicts (Student's paired t-test of the mean difference, for every average) that are lost and
            that are reversed; and the numbers of ``ratings`` and ``users`` that remain.
        ``values``
            One row per scenario, size, average, metric and system: its averaged ``value``, and ``fold_sd``.
        ``power``, ``curves``
            Discriminative power, with the ``fold_sd`` of its ``dp``, and the p-value curves; see
            `discriminative_power`.
        ``correlation``, ``groups``
            tau between metrics, and between a metric and itself under another average; the group of agreeing metrics to
            which each belongs.
        ``cutoffs``
            For metrics measured at several cut-offs: the evidence at each.
        ``aggregation``
            One row per metric and average: the correlation with the metric's first average, its ``fold_sd``, and the
            evidence.
        ``advice``
            The metrics, the recommended one first.
        ``samples``
            Every single sample, with the systems' averages.
        """
        _checks.one_of("study", study, (*STUDIES, "samples"))
        made_here: dict[str, Callable[[], pl.DataFrame]] = {
            "robustness": lambda: summary.robustness_frame(self.samples),
            "values": lambda: summary.values_frame(self.samples, self.systems),
            "correlation": lambda: self._correlation,
            "groups": self._groups,
            "cutoffs": lambda: summary.cutoff_frame(self.advice().frame()),
            "aggregation": self._aggregation,
            "advice": lambda: self.advice().frame(),
        }
        return made_here[study]() if study in made_here else getattr(self, study)

    def correlation(self, average: str | None = None) -> NDArray[np.float64]:
        """Return metrics × metrics: tau between their orders of systems, under one average (the first one)."""
        average = _checks.one_of("average", average or self.averages[0], self.averages)
        tau = self._correlation.filter(average_a=average, average_b=average)["tau"].to_numpy(writable=True)
        return tau.reshape(len(self.metrics), -1)

    def advice(self, weights: Mapping[str, float] | None = None, *, draws: int = 200, seed: int = 0) -> Advice:
        """Return which metric to trust: the criteria are ``significant`` (the share of pairs) and each scenario.

        ``weights`` are by criterion; a criterion that is not named has the weight given to `assess`, or 1.
        """
        if weights is None and (draws, seed) == (200, 0):
            return self._advice
        weights = self.step.settings.get("weights") if weights is None else weights
        return advise(self.evidence, weights, draws=draws, seed=seed)

    def part(self, metrics: Iterable[str] | None = None, average: str | None = None) -> Assessment:
        """Return the assessment of some of the metrics (by default all) under one average (by default the first).

        A mapping renames the metrics: ``found.part({"AP@100": "MAP"}, "geometric")``. They keep their order. An average
        without a test has the power of the first average with one.
        """
        average = _checks.one_of("average", average or self.averages[0], self.averages)
        wanted = self.metrics if metrics is None else [metrics] if isinstance(metrics, str) else metrics
        labels = dict(wanted) if isinstance(wanted, Mapping) else {name: name for name in wanted}
        for name in labels:
            _checks.one_of("metrics", name, self.metrics)
        if not labels or len(set(labels.values())) < len(labels):
            raise SettingError("a part needs one metric or more; give each metric a different name")
        places = [m for m, metric in enumerate(self.metrics) if metric in labels]
        tested = self.power["average"].unique(maintain_order=True).to_list()
        shown = average if average in tested or not tested else tested[0]

        def named(frame: pl.DataFrame, under: str) -> pl.DataFrame:
            chosen = frame.filter((pl.col("average") == under) & pl.col("metric").is_in(list(labels)))
            return chosen.with_columns(pl.col("metric").replace_strict(labels, return_dtype=pl.String))

        return replace(
            self,
            metrics=tuple(labels[self.metrics[m]] for m in places),
            averages=(average,),
            lower_is_better=tuple(self.lower_is_better[m] for m in places),
            samples=named(self.samples, average),
            whole=self.whole[:, [self.averages.index(average)]][:, :, places],
            power=named(self.power, shown),
            curves=named(self.curves, shown),
        )

    @property
    def figures(self) -> Figures:
        """One figure per study; see `cranfield.assessments.figures`."""
        from cranfield.assessments import figures

        return figures.FIGURES

    def _save_all(self, folder: Path, *, figures: bool = True, style: Style = "paper", **_: Any) -> list[Path]:
        """Write every study as CSV, and every figure as SVG, PDF and PNG in a style; return the files.

        The figures show the first average; those of each further average are in a folder with its name.
        """
        frames = {folder / "frames" / f"{study}.csv": self.frame(study) for study in STUDIES}
        written = [write_text(path, csv_of(frame)) for path, frame in frames.items() if frame.height]
        with whole_file(folder / "frames" / "samples.parquet") as temporary:
            write_parquet(self.samples, temporary)
        written.append(folder / "frames" / "samples.parquet")
        return written + (self._draw(folder / "figures", style) if figures else [])

    def _draw(self, folder: Path, style: Style) -> list[Path]:
        from cranfield.assessments.figures import save_all

        with progress("Drawing", total=len(self.averages), unit="averages") as bar:
            written = save_all(self, folder, style=style)
            bar.advance()
            for average, stem in file_name(self.averages[1:]).items():
                part = self.part(average=average)
                if not (part.power["average"] == average).any():  # an average without a test has no curves
                    part = replace(part, power=part.power.clear(), curves=part.curves.clear())
                written += save_all(part, folder / stem, style=style)
                bar.advance()
        return written

    @cached_property
    def _advice(self) -> Advice:
        return advise(self.evidence, self.step.settings.get("weights"))

    @cached_property
    def _correlation(self) -> pl.DataFrame:
        return summary.correlation_frame(self._ordered, self.averages, self.metrics, self.step.settings["correlation"])

    @cached_property
    def _ordered(self) -> NDArray[np.float64]:
        """The averages on the whole test sets for ordering systems: rounded, higher is better."""
        signs = np.where(self.lower_is_better, -1.0, 1.0)
        return to_decimals(self.whole, self.step.settings["decimals"]) * signs[:, None]

    def _groups(self) -> pl.DataFrame:
        frames = []
        for average in self.averages:
            group, order = summary.groups(self.correlation(average))
            columns = {"average": average, "metric": self.metrics, "group": group, "place": np.argsort(order) + 1}
            frames.append(pl.DataFrame(columns))
        return pl.concat(frames)

    def _aggregation(self) -> pl.DataFrame:
        first = self.averages[0]
        agreement = self._correlation.filter(
            (pl.col("average_a") == first) & (pl.col("metric_a") == pl.col("metric_b"))
        ).select("fold_sd", metric="metric_a", average="average_b", tau_with_first="tau")
        frame = agreement.join(self.advice().frame(), on=["metric", "average"], how="left")
        frame = frame.sort(pl.col("metric").cast(pl.Enum(self.metrics)), pl.col("average").cast(pl.Enum(self.averages)))
        first_columns = ("metric", "average", "tau_with_first", "fold_sd")
        return frame.select(*first_columns, pl.exclude(*first_columns))

    @cached_property
    def _advised(self) -> tuple[str, ...]:
        """The metrics that have winners, or all if none has: others do not say which system is better."""
        return tuple(name for name in self.metrics if properties_of(name).has_winners) or self.metrics

    @cached_property
    def evidence(self) -> Evidence:
        """The evidence for the advice, by pair of systems."""
        first, second = np.triu_indices(len(self.systems), 1)

        def signs(values: NDArray[np.float64]) -> NDArray[np.int8]:
            return np.nan_to_num(np.sign(values[..., first] - values[..., second])).astype(np.int8)

        n_candidates = len(self.averages) * len(self.metrics)
        better = np.tile(np.where(self.lower_is_better, -1.0, 1.0), len(self.averages))[:, None]
        samples, folds, sizes = {}, {}, {}
        for name in self.scenarios:
            rows = self.samples.filter((pl.col("scenario") == name) & (pl.col("size") < 1.0))
            if rows.height == 0:
                continue
            values = rows["values"].to_numpy().reshape(-1, n_candidates, len(self.systems))
            samples[name] = signs(to_decimals(values, self.step.settings["decimals"]) * better)
            folds[name] = rows["fold"].to_numpy()[::n_candidates].astype(np.int64) - 1
            sizes[name] = rows["size"].to_numpy()[::n_candidates]
        candidates, apart = tuple(product(self.averages, self.metrics)), self._apart()
        whole = signs(self._ordered.reshape(len(self.whole), n_candidates, -1))
        places = [k for k, (_, metric) in enumerate(candidates) if metric in self._advised]
        samples = {name: own[:, places] for name, own in samples.items()}
        kept = tuple(candidates[place] for place in places)
        return Evidence(kept, len(self.systems), apart[places], whole[:, places], samples, folds, sizes)

    def _apart(self) -> NDArray[np.float64]:
        """Return candidates × pairs: whether the systems differ significantly; untested averages use the first."""
        place = {frozenset(pair): k for k, pair in enumerate(combinations(self.systems, 2))}
        tested = {key: np.full(len(place), np.nan) for key in self.power.select("average", "metric").iter_rows()}
        for row in self.curves.iter_rows(named=True):
            pair = place[frozenset((row["system_a"], row["system_b"]))]
            tested[row["average"], row["metric"]][pair] = row["p"] < self.step.settings["alpha"]
        nothing, stand_in = np.full(len(place), np.nan), next(iter(tested), (self.averages[0], ""))[0]
        keys = product(self.averages, self.metrics)
        return np.array([tested.get(key, tested.get((stand_in, key[1]), nothing)) for key in keys])

    def facts(self) -> list[Fact]:
        """Return the facts of the studies in the order in which they are said."""
        kept = [fact for name in self.scenarios for fact in self._order_kept(name)]
        return [*self.advice().facts(), *kept, *self._told_apart(), *self._rank_alike(), *self._agreeing()]

    def _order_kept(self, scenario: str) -> list[Fact]:
        mean = (
            self.frame("robustness")
            .filter(pl.col("metric").is_in(self._advised), scenario=scenario, average=self.averages[0])
            .filter(pl.col("size") < 1.0, pl.col("tau").is_not_null())
            .group_by("metric", maintain_order=True)
            .agg(pl.col("tau").mean(), pl.col("flipped").mean())
            .sort("tau", descending=True, maintain_order=True)
        )
        if mean.height == 0:
            return []
        return [assessment_facts.OrderKept(SCENARIOS[scenario].title, mean.height, mean.row(0), mean.row(-1))]

    def _told_apart(self) -> list[Fact]:
        power = self.power.filter(pl.col("metric").is_in(self._advised), average=self.averages[0])
        power = power.sort("dp", maintain_order=True)
        if power.height == 0:
            return []
        best = {name: power[name][0] for name in ("metric", "pairs", "dp", "significant")}
        alike = power.height > 1 and round(power["dp"][-1] - best["dp"], 12) == 0.0
        alpha = self.step.settings["alpha"]
        return [assessment_facts.ToldApart(**best, alpha=alpha, rivals=power.height - 1, alike=alike)]

    def _rank_alike(self) -> list[Fact]:
        curves = self.curves.filter(average=self.averages[0])
        facts: list[Fact] = []
        for pair in ranking_alike(curves) if self.power.height else ():
            others = curves.filter(~pl.any_horizontal(pl.col("system_a", "system_b") == pair.systems[1]))
            dp = others.group_by("metric", maintain_order=True).agg(pl.col("p").sum()).sort("p", maintain_order=True)
            facts.append(replace(pair, without=tuple(dp.rows())))
        return facts

    def _agreeing(self) -> list[Fact]:
        rows = self._groups().filter(pl.col("average") == self.averages[0])
        groups = [tuple(part["metric"]) for _, part in rows.group_by("group", maintain_order=True) if part.height > 1]
        return [assessment_facts.Agreeing(tuple(groups))] if groups else []

    def of_family(self, family: str) -> list[str]:
        """Return the metrics that differ from ``family`` only in their cut-off, in ascending order."""
        members = [name for name in self.metrics if summary.family_of(name) == family]
        if not members:
            known = sorted({summary.family_of(name) for name in self.metrics})
            raise SettingError(f"no metric {family!r} was assessed{nearest(family, known)}")
        return sorted(members, key=lambda name: int(name.rpartition("@")[2]) if "@" in name else 1 << 60)

    def table(self) -> Table:
        """Return the advice as a table for people."""
        return self.advice().table()

    def __str__(self) -> str:
        answer, *others = self.verdict
        table = self.table()
        return answer_and_table(answer, table, [*others, *table.notes, *self.step.notes])

    def __repr__(self) -> str:
        return (
            f"Assessment({len(self.systems)} systems, {len(self.metrics)} metrics, {len(self.averages)} averages, "
            f"{len(self.scenarios)} scenarios)"
        )
