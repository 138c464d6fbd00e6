"""Discriminative power: how well a metric tells systems apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._record import Step
from cranfield._result import Result
from cranfield._table import Cell, Table
from cranfield.comparisons import (
    Comparing,
    Comparison,
    as_scores,
    cannot_differ,
    compare_scores,
    make_samples,
    resampled,
    spelled_test,
    tested_average,
)
from cranfield.facts import Fact, p_text, sentences
from cranfield.facts import assessment as assessment_facts
from cranfield.measures import Averaging, Scores, Undefined, join_folds


@dataclass(frozen=True, eq=False)
class DiscriminativePower(Result):
    """The result of `discriminative_power`.

    Parameters
    ----------
    rows
        One row per metric (and per fold, if folds were kept separate); see `frame`.
    curves
        Every p-value of every metric, in decreasing order; see `curve`.
    alpha
        The level of significance.
    step
        How it was computed, with notes on the users that count.
    """

    rows: pl.DataFrame
    curves: pl.DataFrame
    alpha: float
    drawn = ("dp", "metric")
    step: Step = field(default_factory=lambda: Step("discriminative_power"))

    def frame(self) -> pl.DataFrame:
        """Return one row per metric, the most discriminative first.

        Columns: ``rank``; ``dp``, the sum of the p-values over all unordered pairs of systems; ``median_p``;
        ``significant``, the share of pairs with p < α; ``pairs``; and, if there was a bootstrap, ``asl_significant``,
        Sakai's share of pairs, and ``required_difference``. Folds that were kept separate have a column ``fold``.
        """
        return self.rows

    def curve(self, metric: str | None = None, first: int | None = 20) -> pl.DataFrame:
        """Return the p-value curve: ``metric, place, p, system_a, system_b``, p decreasing.

        The papers plot the ``first`` 20 values; None gives all.
        """
        rows = self.curves if metric is None else self.curves.filter(pl.col("metric") == metric)
        return rows if first is None else rows.filter(pl.col("place") <= first)

    def table(self) -> Table:
        """Return the metrics as a table for people."""
        kept_apart, resampled_too = ("fold" in self.rows.columns), ("asl_significant" in self.rows.columns)
        cells: list[list[str | Cell]] = []
        for row in self.rows.iter_rows(named=True):
            metric = row["metric"] + (f", fold {row['fold']}" if kept_apart else "")
            power = Cell(f"{row['dp']:.4f}", best=row["rank"] == 1)
            cells.append([metric, power, p_text(row["median_p"]), f"{row['significant']:.1%}"])
            if resampled_too:
                cells[-1] += [f"{row['asl_significant']:.1%}", f"{row['required_difference']:.4f}"]
        pairs = int(self.rows["pairs"].max() or 0)  # type: ignore[arg-type]
        header = ["metric", "DP", "median p", f"p < {self.alpha:g}"]
        header += ["ASL", "required difference"] if resampled_too else []
        test = self.step.settings.get("significance")
        caption = f"{pairs} pairs of systems; test: {test}; a low DP is a high discriminative power"
        return Table(header, cells, caption, sentences(self.step.notes))

    def facts(self) -> list[Fact]:
        """Return the metric that tells most systems apart."""
        best = {name: self.rows[name][0] for name in ("metric", "pairs", "dp", "significant")}
        return [assessment_facts.ToldApart(**best, alpha=self.alpha)]

    def __str__(self) -> str:
        return f"{self.facts()[0].brief}\n\n{self.table().text()}"

    def __repr__(self) -> str:
        return f"DiscriminativePower({self.rows['metric'].n_unique()} metrics)"


def ranking_alike(curves: pl.DataFrame) -> tuple[assessment_facts.RankAlike, ...]:
    """Return pairs of systems with p = 1 by every metric; the curves are those of `discriminative_power`."""
    least = curves.group_by("system_a", "system_b", maintain_order=True).agg(pl.col("p").min())
    pairs = least.filter(pl.col("p") > 1.0 - 1e-9).select("system_a", "system_b").rows()
    return tuple(assessment_facts.RankAlike(pair) for pair in pairs)


def discriminative_power(
    scores: Scores | Sequence[Scores],
    *,
    significance: str = "permutation",
    method: str | None = None,
    metrics: str | Sequence[str] | None = None,
    alpha: float = 0.05,
    folds: str = "average",
    coverage: Literal["full", "reduced"] = "full",
    undefined: Undefined = "zero",
    average: str = "mean",
    resamples: int = 1000,
    seed: int = 0,
) -> DiscriminativePower:
    """Measure how well each metric tells the systems apart.

    DP = Σ p over all unordered pairs of systems, the area under the p-value curve (Valcarce et al. 2018, 2020): the
    lower, the more discriminative. It depends on the systems and the data, so it only ranks metrics on the same systems
    and data. Table 3 of Valcarce et al. (2018) sums over ordered pairs, which gives twice this value. The result also
    has the share of pairs with p < α, the median p-value (Lu et al. 2016) and, from Sakai's (2006) bootstrap, the share
    of pairs with ASL < α and the required difference: the largest over pairs of |mean w*| in the resample with the (B
    α)-th largest t.

    Parameters
    ----------
    scores
        The scores of one split, or of several folds.
    significance, method, metrics, alpha, coverage, undefined, average, seed
        As in ``compare``.
    folds
        ``average``: a user's values are averaged over the folds in which the user appears; ``pool``: every list of
        every fold is a separate case; ``each``: every fold separately.
    resamples
        The number of bootstrap resamples. 0: no bootstrap, which takes longer than the tests, and no columns for it.

    Examples
    --------
    >>> from cranfield.comparisons.samples import as_scores
    >>> values = {"a": [0.9, 0.8, 0.7, 0.9], "b": [0.1, 0.2, 0.3, 0.3], "c": [0.1, 0.3, 0.2, 0.3]}
    >>> result = discriminative_power(as_scores(values))
    >>> result.frame()["dp"].item(), result.curve()["p"].to_list()
    (1.25, [1.0, 0.125, 0.125])
    """
    parts = [as_scores(part) for part in (scores if isinstance(scores, list | tuple) else [scores])]
    return power_of(
        parts,
        Comparing(significance=spelled_test(significance, method), correction="none", alpha=alpha),
        Averaging(average=average, coverage=coverage, undefined=undefined),
        metrics=[metrics] if isinstance(metrics, str) else metrics,
        folds=folds,
        resamples=resamples,
        seed=seed,
    )


def power_of(
    parts: Sequence[Scores],
    comparing: Comparing,
    averaging: Averaging,
    *,
    metrics: Sequence[str] | None = None,
    folds: str = "average",
    resamples: int = 0,
    seed: int = 0,
) -> DiscriminativePower:
    """Measure discriminative power; see `discriminative_power`."""
    _checks.one_of("folds", folds, ("average", "pool", "each"))
    resamples, seed = _checks.whole("resamples", resamples, at_least=0), _checks.whole("seed", seed, at_least=0)
    counted = parts if folds == "each" else [join_folds(parts)]
    averaging = averaging.with_(by="list" if folds == "pool" else "user")
    tested = tested_average(comparing.significance, averaging)
    comparisons = [
        compare_scores(part, comparing, tested, metrics=metrics, seed=seed, among_served=False) for part in counted
    ]
    sakai = [
        _bootstrapped(part, averaging, metrics, resamples, comparing.alpha, seed) if resamples else []
        for part in counted
    ]
    rows = [_summary(comparison).with_columns(by_bootstrap) for comparison, by_bootstrap in zip(comparisons, sakai)]
    curves = [_curves(comparison) for comparison in comparisons]
    if folds == "each":
        rows, curves = (
            [frame.with_columns(fold=pl.lit(k)) for k, frame in enumerate(part, 1)] for part in (rows, curves)
        )
    settings = {**comparisons[0].step.settings, "folds": folds, "n_folds": len(parts), "resamples": resamples}
    notes = tuple(dict.fromkeys(note for comparison in comparisons for note in comparison.notes))
    step = Step("discriminative_power", settings, notes=notes)
    return DiscriminativePower(_ranked(pl.concat(rows)), pl.concat(curves), comparing.alpha, step)


def _summary(compared: Comparison) -> pl.DataFrame:
    """Return one row per metric: DP, the median p-value and the share of pairs that differ."""
    p = pl.col("p").drop_nans()
    return compared.rows.group_by("metric", maintain_order=True).agg(
        dp=p.sum(), median_p=p.median(), significant=(p < compared.alpha).mean(), pairs=p.len()
    )


def _bootstrapped(
    scores: Scores, averaging: Averaging, metrics: Sequence[str] | None, resamples: int, alpha: float, seed: int
) -> list[pl.Series]:
    """Return, for each metric, Sakai's share of significant pairs and the required difference."""
    data = [sample.of_common_users() for sample in make_samples(scores, averaging, metrics=metrics)[0]]
    place = max(1, int(resamples * alpha + 1e-9))  # 100 times 0.29 is 29
    shares, required = [], []
    for sample, (shift, t, observed, _) in zip(data, resampled(data, resamples, seed)):
        asl = np.where(cannot_differ(sample, observed), 1.0, (t >= observed * (1 - 1e-12)).mean(axis=0))
        tested = asl[sample.n > 0]
        shares.append(float((tested < alpha).mean()) if len(tested) else np.nan)
        order = np.argsort(-t, axis=0, kind="stable")[place - 1]
        required.append(float(np.abs(np.take_along_axis(shift, order[None], axis=0)).max()))
    return [pl.Series("asl_significant", shares), pl.Series("required_difference", required)]


def _curves(compared: Comparison) -> pl.DataFrame:
    return (
        compared.rows.filter(pl.col("p").is_not_nan())
        .sort("p", descending=True, maintain_order=True)
        .with_columns(place=pl.int_range(1, pl.len() + 1).over("metric"))
        .select("metric", "place", "p", "system_a", "system_b")
        .sort(pl.col("metric").cast(pl.Enum(compared.metrics)), "place")
    )


def _ranked(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the metrics, the most discriminative first; each fold is ranked separately."""
    by = ["fold"] if "fold" in rows.columns else []
    rank = pl.col("dp").rank("min")
    rows = rows.with_columns(rank=(rank.over(by) if by else rank).cast(pl.Int64)).sort(*by, "rank", maintain_order=True)
    return rows.select(*by, "rank", "metric", pl.exclude(*by, "rank", "metric"))
