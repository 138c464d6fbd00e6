"""Averages that depend on all systems: risks against a baseline, where losses count more, and standardised scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._checks import Limits, number
from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._registry import Spelling
from cranfield.measures.averages import AVERAGES, Average, mean_of
from cranfield.measures.averaging import PLAIN, Averaging
from cranfield.measures.scores import Scores
from cranfield.metrics import power_for, power_of_two

Values = NDArray[np.float64]
Alpha = Annotated[float, Limits(low=0)]

ROUNDING = 1e-12
"""Values whose relative spread is at most this count as equal: rounding of their mean alone gives them some spread."""


def urisk(differences: Values, alpha: float) -> float:
    """URisk_α = (1/n) [Σ_{δ>0} δ + (1 + α) Σ_{δ<0} δ], δ = system − baseline (Wang et al. 2012)."""
    return float(_weighed(differences, alpha).mean()) if len(differences) else float("nan")


def trisk(differences: Values, alpha: float) -> float:
    """TRisk_α = √n · mean(δ') / sd(δ'), δ' = δ if δ ≥ 0 else (1 + α) δ (Dinçer et al. 2014); beyond ±2 is significant.

    The standard deviation has n − 1 in the denominator. NaN if all δ' are equal.
    """
    weighed = _weighed(differences, alpha)
    spread = weighed.std(ddof=1) if len(weighed) > 1 else 0.0
    if not spread > ROUNDING * np.abs(weighed).max(initial=0.0):
        return float("nan")
    return float(np.sqrt(len(weighed)) * weighed.mean() / spread)


def georisk(values: Values, alpha: float) -> Values:
    """GeoRisk_α of every system at once, without a baseline (Dinçer et al. 2016).

    For the matrix x of systems × lists, e_ij = S_i T_j / N from its row and column sums, z_ij = (x_ij − e_ij)/√e_ij
    (0 where e is 0), ZRisk_i = Σ_{z>0} z + (1 + α) Σ_{z<0} z and GeoRisk_i = √(S_i/n · Φ(ZRisk_i/n)).
    """
    from scipy.special import ndtr

    power = power_for(values)
    values, root = np.ldexp(values, -power), 2.0 ** (power // 2)
    total = values.sum()
    expected = np.outer(values.sum(axis=1), values.sum(axis=0)) / (total if total > 0 else 1.0)
    z = np.divide(values - expected, np.sqrt(expected), out=np.zeros_like(values), where=expected > 0)
    zrisk = root * _weighed(z, alpha).sum(axis=1)
    n = values.shape[1]
    return np.asarray(root * np.sqrt(values.mean(axis=1) * ndtr(zrisk / n)), dtype=np.float64)


def _weighed(differences: Values, alpha: float) -> Values:
    return np.where(differences < 0, (1.0 + alpha) * differences, differences)


def risk(scores: Scores, baseline: str, alpha: float = 1.0) -> pl.DataFrame:
    """Return the risk of each system against a baseline, for each metric.

    Undefined values count as 0 or, if 0 is a meaningful value, their lists are left out, as in averages. Columns:
    system, metric, baseline, alpha, urisk, trisk, georisk. For metrics where lower is better the differences have the
    opposite sign. GeoRisk is defined for gains: it is NaN for these metrics, and if a value is negative. A metric with
    one value for the whole system has no risk (NaN). As averages, they are ``urisk(baseline=NAME)``,
    ``trisk(baseline=NAME)`` and ``georisk``.
    """
    _check_alpha(alpha)
    base, rows = scores.system(baseline), []
    for m, metric in enumerate(scores.metrics):
        values = scores.counted_values(m, PLAIN)
        geometric = _georisk_of(values, scores.lower_is_better[m], alpha)
        power = power_for(values)
        values = np.ldexp(values, -power)  # URisk is scaled back below, and TRisk does not depend on the scale
        for s, system in enumerate(scores.systems):
            differences = _differences(values, base, scores.lower_is_better[m])[s]
            differences = differences[~np.isnan(differences)]
            utility = float(np.ldexp(urisk(differences, alpha), power))
            measured = utility, trisk(differences, alpha), float(geometric[s])
            rows.append((system, metric, baseline, float(alpha), *measured))
    columns = ["system", "metric", "baseline", "alpha", "urisk", "trisk", "georisk"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def _check_alpha(alpha: float) -> None:
    if number("alpha", alpha) < 0:
        raise SettingError(f"alpha={alpha} is negative; a loss cannot count less than a win; give 0 or more")
    if np.isinf(alpha):
        raise SettingError("alpha=inf would count only losses; give a finite number, such as alpha=5")


def _differences(values: Values, base: int, lower_is_better: bool) -> Values:
    """Return systems × lists: by how much each system is better than the baseline."""
    return values[base] - values if lower_is_better else values - values[base]


def _of_each_metric(scores: Scores, baseline: str, averaging: Averaging) -> list[Values]:
    """Return the differences from the baseline for each metric."""
    base = scores.system(baseline)
    lower = scores.lower_is_better
    return [_differences(scores.counted_values(m, averaging), base, lower[m]) for m in range(len(scores.metrics))]


def _georisk_of(values: Values, lower_is_better: bool, alpha: float) -> Values:
    """Return GeoRisk of each system over the lists with values of all systems; NaN if it is not defined for them."""
    everywhere = values[:, ~np.isnan(values).any(axis=0)]
    if lower_is_better or not everywhere.size or everywhere.min() < 0:
        return np.full(len(values), np.nan)
    return georisk(everywhere, alpha)


def _holding(scores: Scores, values: Values, overall: Values | None) -> Scores:
    """Return scores with other values, for which higher is better and undefined values do not count as 0."""
    several = len(scores.metrics)
    return replace(
        scores,
        values=values,
        overall=overall,
        bounds=None,
        lower_is_better=(False,) * several,
        zero_if_undefined=(False,) * several,
    )


@AVERAGES.register("urisk")
def _urisk(spelling: Spelling, baseline: str, alpha: Alpha = 1.0) -> Average:
    """URisk_α against a baseline: the mean of δ if δ ≥ 0 else (1 + α) δ, δ = system − baseline (Wang et al. 2012)."""
    _check_alpha(alpha)

    def weighed(scores: Scores, averaging: Averaging) -> Scores:
        columns = [_weighed(table, alpha) for table in _of_each_metric(scores, str(baseline), averaging)]
        return _holding(scores, np.stack(columns, axis=1), None)

    return mean_of(spelling, weighed)


@AVERAGES.register("trisk")
def _trisk(spelling: Spelling, baseline: str, alpha: Alpha = 1.0) -> Average:
    """TRisk_α against a baseline: the t statistic of URisk_α (Dinçer et al. 2014), one value for the whole system."""
    _check_alpha(alpha)

    def measured(scores: Scores, averaging: Averaging) -> Scores:
        tables = _of_each_metric(scores, str(baseline), averaging)
        overall = [[trisk(row[~np.isnan(row)], alpha) for row in table] for table in tables]
        return _holding(scores, np.full_like(scores.values, np.nan), np.array(overall).T)

    return mean_of(spelling, measured)


@AVERAGES.register("georisk")
def _georisk(spelling: Spelling, alpha: Alpha = 1.0) -> Average:
    """GeoRisk_α of all systems at once (Dinçer et al. 2016), one value for the whole system."""
    _check_alpha(alpha)

    def measured(scores: Scores, averaging: Averaging) -> Scores:
        lower = scores.lower_is_better
        places = range(len(scores.metrics))
        tables = [_georisk_of(scores.counted_values(m, averaging), lower[m], alpha) for m in places]
        return _holding(scores, np.full_like(scores.values, np.nan), np.array(tables).T)

    return mean_of(spelling, measured)


Form = Literal["z", "normal", "linear", "empirical"]


def standardise(scores: Scores, *, reference: Sequence[str] | None = None, form: Form = "normal") -> Scores:
    """Return the scores with every value standardised over the reference systems on the same list.

    With mean μ_j and standard deviation σ_j (n − 1) of the reference systems on list j, z = (x − μ_j)/σ_j, 0 if σ_j is
    0 up to rounding (Webber et al. 2008). ``normal`` gives Φ(z), ``linear`` min(1, max(0, 0.15 z + 0.5)) (Sakai 2016),
    ``empirical`` the share of reference values that are at most x (Urbano et al. 2019). Undefined values stay
    undefined, and are left out of averages.

    Parameters
    ----------
    reference
        The systems to standardise against; all of them by default.
    """
    if form not in ("z", "normal", "linear", "empirical"):
        raise SettingError(f"form={form!r} is not known; write z, normal, linear or empirical")
    chosen = [scores.system(name) for name in (scores.systems if reference is None else reference)]
    if len(chosen) < 2 and form != "empirical":
        raise SettingError("standardising needs at least two reference systems; name more of them")
    against = scores.values[chosen]
    values = _empirical(scores.values, against) if form == "empirical" else _z(scores.values, against)
    if form == "normal":
        from scipy.special import ndtr

        values = ndtr(values)
    elif form == "linear":
        values = np.clip(0.15 * values + 0.5, 0.0, 1.0)
    settings = {**scores.step.settings, "standardised": form, "reference": [scores.systems[s] for s in chosen]}
    step = Step(scores.step.action, settings, scores.step.effect)
    # Bounds are those of the original values. A standardised 0 is an average or the worst value, so undefined is not 0.
    nowhere_zero = (False,) * len(scores.metrics)
    return replace(scores, values=np.asarray(values), bounds=None, zero_if_undefined=nowhere_zero, step=step)


def _z(values: NDArray[np.float64], against: NDArray[np.float64]) -> NDArray[np.float64]:
    # z does not change if all values of a list are divided by a power of two.
    power = power_of_two(np.abs(np.concatenate([values, against])).max(axis=0))
    values, against = np.ldexp(values, -power), np.ldexp(against, -power)
    spread = against.std(axis=0, ddof=1)
    away = values - against.mean(axis=0)
    differ = spread > ROUNDING * np.abs(against).max(axis=0)
    return np.divide(away, spread, out=np.where(np.isnan(away), np.nan, 0.0), where=differ)


def _empirical(values: NDArray[np.float64], against: NDArray[np.float64]) -> NDArray[np.float64]:
    share = np.stack([(against <= row).mean(axis=0) for row in values])
    return np.where(np.isnan(values), np.nan, share)


@AVERAGES.register("standardised")
def _standardised(spelling: Spelling, form: Form = "normal") -> Average:
    """Mean of standardised values: the value of each list relative to all systems; see `standardise`."""

    def standing(scores: Scores, averaging: Averaging) -> Scores:
        values = np.stack([scores.counted_values(m, averaging) for m in range(len(scores.metrics))], axis=1)
        return standardise(replace(scores, values=values), form=form)

    return mean_of(spelling, standing)
