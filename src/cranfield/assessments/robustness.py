"""Robustness to incompleteness: whether the order of the systems stays the same if test ratings are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield._numbers import to_decimals
from cranfield._terminal import Progress
from cranfield.assessments.chunks import Chunks
from cranfield.assessments.scenarios import Scenario
from cranfield.assessments.subset_scores import MaskedScores
from cranfield.assessments.verdicts import verdicts
from cranfield.measures import Average
from cranfield.metrics import Metric, Paired
from cranfield.recommenders import blas_threads, in_threads

Correlation = Literal["tau-b", "tau-ap"]
CORRELATIONS = ("tau-b", "tau-ap")
_MOST_DECIMALS = 15
QUANTILES: Mapping[str, float] = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}


@dataclass(frozen=True)
class Sampling:
    """How smaller test sets are drawn and studied.

    Parameters
    ----------
    averages
        How the values of the lists become one number per system.
    correlation
        The correlation between two orders of systems: ``tau-b`` or ``tau-ap``.
    decimals
        The number of decimals to which averages are rounded before systems are ordered: 12 only removes rounding
        errors, so that ties are found; rec_eval prints 4.
    alpha
        The level of significance of the verdicts.
    samples, seed
        The number of samples per size in random scenarios, and the seed that fixes them.
    """

    averages: tuple[Average, ...]
    correlation: Correlation = "tau-b"
    decimals: int = 12
    alpha: float = 0.05
    samples: int = 50
    seed: int = 0


def rounded_to(decimals: object) -> int:
    """Check and return the number of decimals to which averages are rounded.

    Examples
    --------
    >>> rounded_to(4)
    4
    """
    places = _checks.whole("decimals", decimals, at_least=0)
    if places > _MOST_DECIMALS:
        raise SettingError(f"decimals={decimals!r} is more than a number holds; give at most {_MOST_DECIMALS}")
    return places


@dataclass(frozen=True, eq=False)
class SmallerTest:
    """The result of one smaller test set."""

    averages: NDArray[np.float64]
    """Averages × metrics × systems."""
    verdicts: NDArray[np.int8]
    """Metrics × pairs: which system is significantly better."""
    ratings: int
    users: int


@dataclass(frozen=True, eq=False)
class AgainstWhole:
    """Compares smaller test sets with the averages and verdicts of the whole one."""

    metrics: Sequence[Metric]
    sampling: Sampling
    whole: SmallerTest

    def _ordered(self, averages: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return averages for ordering systems: rounded, higher is better."""
        return to_decimals(averages, self.sampling.decimals) * signs_of(self.metrics)[:, None]

    def rows(self, scenario: Scenario, size: float, samples: Sequence[SmallerTest]) -> pl.DataFrame:
        """Return one row per sample, average and metric."""
        metrics = [str(metric) for metric in self.metrics]
        values = np.stack([test.averages for test in samples])
        n_samples, n_averages, n_metrics, n_systems = values.shape
        now = self._ordered(values)
        whole = np.broadcast_to(self._ordered(self.whole.averages), values.shape)
        cells = n_samples * n_averages * n_metrics
        kept, reversed_ = self._verdicts_that_hold(samples)
        missing = np.array([test.ratings == 0 for test in samples])[:, None, None]  # a hashed mask may be empty

        def defined(shares: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.where(missing, np.nan, shares.reshape(-1, n_averages, n_metrics)).reshape(-1)

        taus = correlations(whole.reshape(-1, n_systems), now.reshape(-1, n_systems), self.sampling.correlation)
        return pl.DataFrame(
            {
                "scenario": [scenario.name] * cells,
                "size": [size] * cells,
                "sample": np.repeat(np.arange(n_samples), n_averages * n_metrics),
                "average": np.tile(
                    np.repeat([str(average) for average in self.sampling.averages], n_metrics), n_samples
                ),
                "metric": metrics * (n_samples * n_averages),
                "ratings": np.repeat([test.ratings for test in samples], n_averages * n_metrics),
                "users": np.repeat([test.users for test in samples], n_averages * n_metrics),
                "tau": defined(taus),
                "flipped": defined(flipped(whole, now)),
                "verdicts_lost": defined(np.repeat((1.0 - kept)[:, None], n_averages, axis=1)),
                "verdicts_reversed": defined(np.repeat(reversed_[:, None], n_averages, axis=1)),
                "values": values.reshape(-1, n_systems),
            },
            schema_overrides={"values": pl.Array(pl.Float64, n_systems)},
        )

    def _verdicts_that_hold(self, samples: Sequence[SmallerTest]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return samples × metrics: the shares of significant verdicts that are found again and that are reversed."""
        now, then = np.stack([test.verdicts for test in samples]), self.whole.verdicts
        significant = np.count_nonzero(then, axis=1)
        with np.errstate(invalid="ignore"):
            same = np.count_nonzero((now == then) & (then != 0), axis=2) / significant
            opposite = np.count_nonzero((now == -then) & (then != 0), axis=2) / significant
        return same, opposite


def signs_of(metrics: Sequence[Metric]) -> NDArray[np.float64]:
    """Return -1 for each metric for which lower is better, otherwise 1."""
    return np.array([-1.0 if metric.lower_is_better else 1.0 for metric in metrics])


class Robustness:
    """The study of one set of systems on one test set, which all smaller test sets are compared with.

    Two orders of systems are compared by Kendall's tau-b, which is undefined (NaN) if all systems are equal in either;
    such samples are counted and excluded from means.
    """

    def __init__(self, masked: MaskedScores, sampling: Sampling) -> None:
        self._masked, self._sampling = masked, sampling
        whole = self._measure(np.ones(len(masked.judgments), dtype=np.bool_))
        self._against = AgainstWhole(masked.metrics, sampling, whole)

    @property
    def averages(self) -> NDArray[np.float64]:
        """The averages × metrics × systems of the whole test set."""
        return self._against.whole.averages

    def study(
        self, scenario: Scenario, sizes: Sequence[float], bar: Progress, chunks: Chunks, inputs: Mapping[str, Any]
    ) -> pl.DataFrame:
        """Return one row per size, sample, average and metric; see `Assessment.frame`."""
        frames = []
        for size in sizes:
            made_of, before = {**inputs, "scenario": scenario.name, "size": size}, bar.done
            frames.append(chunks.get(f"{scenario.name}-{size:g}", made_of, partial(self._chunk, scenario, size, bar)))
            if bar.done == before:
                bar.advance(self.n_samples(scenario, size))
        return pl.concat(frames)

    def n_samples(self, scenario: Scenario, size: float) -> int:
        """Return the number of samples of a size; the whole test set has one."""
        return 1 if size == 1.0 else scenario.n_samples(self._sampling.samples)

    def _chunk(self, scenario: Scenario, size: float, bar: Progress) -> pl.DataFrame:
        sampling = self._sampling

        def measured(sample: int) -> SmallerTest:
            return self._measure(scenario.mask(self._masked.judgments, size, sample, sampling.seed))

        # Each sample has its own random stream, so results do not depend on threads; those of BLAS would change the
        # last digits.
        with blas_threads(1):
            samples = in_threads(measured, range(self.n_samples(scenario, size)), bar)
        return self._against.rows(scenario, size, samples)

    def _measure(self, mask: NDArray[np.bool_]) -> SmallerTest:
        masked, sampling = self._masked, self._sampling
        n_systems, n_metrics = len(masked.judged), len(masked.metrics)
        averages = np.empty((len(sampling.averages), n_metrics, n_systems))
        signs = np.zeros((n_metrics, n_systems * (n_systems - 1) // 2), dtype=np.int8)
        users = 0
        if not mask.any():
            averages[:] = np.nan
            return SmallerTest(averages, signs, 0, 0)
        for part in masked.parts(mask):
            users = len(part.judged)
            for a, average in enumerate(sampling.averages):
                averages[a, part.places] = part.averages(average)
            if part.overall is None:
                for m, values in zip(part.places, part.values):
                    signs[m] = verdicts(values, sampling.alpha)
        better = (signs * signs_of(masked.metrics)[:, None]).astype(np.int8)
        return SmallerTest(averages, better, int(np.count_nonzero(mask)), users)


def correlations(truth: NDArray[np.float64], estimate: NDArray[np.float64], kind: str = "tau-b") -> NDArray[np.float64]:
    """Return the rank correlation of each row of systems' averages with its row of the truth.

    Examples
    --------
    >>> correlations(np.array([[0.3, 0.3, 0.2, 0.1]]), np.array([[0.4, 0.3, 0.3, 0.1]])).round(12).tolist()
    [0.8]
    """
    rows, width = truth.shape
    pairs = Paired(np.repeat(np.arange(rows), width), rows, truth.reshape(-1), estimate.reshape(-1))
    return pairs.kendall_tau_b() if kind == "tau-b" else pairs.tau_ap()


def flipped(truth: NDArray[np.float64], estimate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of the pairs of systems ordered by the truth that the estimate orders the opposite way.

    A pair that becomes tied has not flipped. NaN if the truth orders no pair.
    """
    first, second = np.triu_indices(truth.shape[-1], 1)
    then, now = (np.sign(averages[..., first] - averages[..., second]) for averages in (truth, estimate))
    with np.errstate(invalid="ignore"):
        share: NDArray[np.float64] = np.count_nonzero(then * now < 0, axis=-1) / np.count_nonzero(then, axis=-1)
    return share


def summary(samples: pl.DataFrame) -> pl.DataFrame:
    """Return one row per scenario, size, average and metric: tau over samples of all folds, and what flips.

    Samples whose tau is undefined are counted in ``undefined`` and excluded.
    """
    tau = pl.col("tau").drop_nans()
    by = ["scenario", "size", "average", "metric"]
    each = samples.group_by([*by, "fold"], maintain_order=True).agg(tau=tau.mean())
    between = each.group_by(by, maintain_order=True).agg(fold_sd=pl.col("tau").std())
    return (
        samples.group_by(by, maintain_order=True)
        .agg(
            samples=pl.len(),
            undefined=pl.col("tau").is_nan().sum(),
            tau=tau.mean(),
            standard_error=tau.std() / tau.len().sqrt(),
            **{name: tau.quantile(share, "linear") for name, share in QUANTILES.items()},
            flipped=pl.col("flipped").drop_nans().mean(),
            verdicts_lost=pl.col("verdicts_lost").drop_nans().mean(),
            verdicts_reversed=pl.col("verdicts_reversed").drop_nans().mean(),
            ratings=pl.col("ratings").mean(),
            users=pl.col("users").mean(),
        )
        .join(between, on=by, how="left", maintain_order="left")
    )


def absolute_values(samples: pl.DataFrame, systems: Sequence[str]) -> pl.DataFrame:
    """Return one row per scenario, size, average, metric and system: its value, averaged over samples and folds."""
    by = ["scenario", "size", "average", "metric"]
    names = {str(s): system for s, system in enumerate(systems)}

    def means(by: list[str]) -> pl.DataFrame:
        wide = samples.group_by(by, maintain_order=True).agg(
            pl.col("values").arr.get(s).drop_nans().mean().alias(str(s)) for s in range(len(systems))
        )
        long = wide.unpivot(index=by, on=list(names), variable_name="system", value_name="value")
        return long.with_columns(pl.col("system").replace_strict(names, return_dtype=pl.String))

    between = means([*by, "fold"]).group_by([*by, "system"]).agg(fold_sd=pl.col("value").std())
    return means(by).join(between, on=[*by, "system"], how="left", maintain_order="left")
