"""The paired tests of users that are stored in parts: each test needs a few sums over the parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield._hashing import poisson_weights
from cranfield._spelling import parse
from cranfield.comparisons.bootstrap import bootstrap_verdict, statistics_of
from cranfield.comparisons.part_samples import ComparedParts, FirstSums, PairTotals, unit_for
from cranfield.comparisons.permutations.passes import exact_by_passes
from cranfield.comparisons.sample import Floats, Sample
from cranfield.comparisons.sign import sign_verdict
from cranfield.comparisons.student import p_of_t, zero_if_rounding
from cranfield.comparisons.verdict import Verdict
from cranfield.measures.moments import Moments
from cranfield.measures.scores import Scores

# Maximum number of weights (users × resamples) drawn per block.
_BLOCK = 1 << 22

_REASONS = {
    "wilcoxon": "it ranks the differences of all users at once",
    "tukey": "it shuffles the values of all users at once",
}


def verdicts_by_parts(compared: ComparedParts, significance: str, alpha: float, seed: int) -> list[Verdict]:
    """Return the verdict of a test on every metric; raise an error for tests that need all users at once."""
    spelling = parse(significance)
    parameters = dict(spelling.parameters)
    if spelling.name not in _TESTS or parameters.get("method", "exact") != "exact":
        name = f"significance='{significance}'"
        reason = _REASONS.get(spelling.name, "it needs the values of all users at once")
        raise SettingError(
            f"{name} cannot be used for users that are kept in parts: {reason}; use {', '.join(_TESTS)}, or "
            "measure in memory (engine='memory', --engine memory)"
        )
    return _TESTS[spelling.name](compared, parameters, alpha, seed)


def _student(compared: ComparedParts, _: Mapping[str, Any], __: float, ___: int) -> list[Verdict]:
    return [
        Verdict.by_formula(_p_of(sums.influences if sample.weighted else sums.differences), "student", sample)
        for sums, sample in zip(compared.pairs, compared.samples)
    ]


def _p_of(moments: Moments) -> Floats:
    """Return the p-value of t; a mean over no users gives NaN."""
    mean, n = np.where(moments.n > 0, moments.mean, np.nan), moments.n
    return p_of_t(mean, zero_if_rounding(moments.sd, moments.mean) / np.sqrt(np.maximum(n, 1)), n)


def _log_student(compared: ComparedParts, parameters: Mapping[str, Any], _: float, __: int) -> list[Verdict]:
    epsilon = _checks.number("epsilon", parameters.get("epsilon", 1e-5))
    parts = replace(compared.parts, totals=(), epsilon=epsilon)
    first: list[FirstSums] = parts.sum(FirstSums.of, [parts.averaging] * len(parts.metrics))
    parts = replace(parts, totals=tuple(sums.totals for sums in first))
    pairs: list[PairTotals] = parts.sum(PairTotals.of, [unit_for(sums.largest_tested) for sums in first])
    return [
        Verdict.by_formula(_p_of(sums.differences), "student", sample) for sums, sample in zip(pairs, compared.samples)
    ]


def _sign(compared: ComparedParts, parameters: Mapping[str, Any], _: float, __: int) -> list[Verdict]:
    ties = _checks.one_of("ties", parameters.get("ties", "drop"), ("drop", "split"))
    verdicts = []
    for sums, sample in zip(compared.pairs, compared.samples):
        if sample.weighted:
            raise SettingError("the sign test has no weighted form; use average='mean', or test='permutation'")
        equal = sample.n - sums.wins - sums.losses
        verdicts.append(sign_verdict(sums.wins, sums.losses, equal, ties, sample))
    return verdicts


def _bootstrap(compared: ComparedParts, parameters: Mapping[str, Any], alpha: float, seed: int) -> list[Verdict]:
    n_samples = _checks.whole("resamples", parameters.get("resamples", 1000))
    plus_one = _checks.flag("plus_one", parameters.get("plus_one", True))
    if parameters.get("weights") == "multinomial":
        raise SettingError(
            "users that are kept in parts are drawn with Poisson weights; write significance='bootstrap' or "
            "'bootstrap(weights=poisson)'"
        )
    means, arguments = [], []
    for sums, unit in zip(compared.pairs, compared.units):
        rounding = 1e-12 * sums.reach
        mean = np.where(np.abs(sums.influences.mean) <= rounding, 0.0, sums.influences.mean)
        mean = np.where(sums.influences.n > 0, mean, np.nan)
        means.append(mean)
        arguments.append((unit, mean, rounding, n_samples, seed))
    drawn = compared.parts.sum(_drawn, arguments)
    verdicts = []
    for sample, sums, mean, unit, (totals, squares, n) in zip(
        compared.samples, compared.pairs, means, compared.units, drawn
    ):
        shift, t = statistics_of(totals, squares, n)
        sd, count = zero_if_rounding(sums.influences.sd, sums.influences.mean), sums.influences.n
        with np.errstate(divide="ignore", invalid="ignore"):
            observed = np.where(mean == 0, 0.0, np.abs(mean) * np.sqrt(count) / sd)
        result = shift * unit, t, observed, mean * unit
        verdicts.append(bootstrap_verdict(sample, result, n_samples, plus_one, alpha, "poisson"))
    return verdicts


def _drawn(sample: Sample, _: Scores, argument: tuple[float, Floats, Floats, int, int]) -> Floats:
    """Return 3 × resamples × pairs: Σ k w, Σ k w² and Σ k over the users that count, with weights k."""
    unit, mean, rounding, n_samples, seed = argument
    influences = sample.influences(slice(0, sample.n_pairs)) / unit
    w = influences - mean[:, None]
    w[np.abs(w) <= rounding[:, None]] = 0.0
    counted = (~np.isnan(w)).astype(np.float64)
    w = np.nan_to_num(w, copy=False)
    columns = np.concatenate([w, w**2, counted]).T
    keys = np.arange(sample.n_users, dtype=np.uint64) if sample.keys is None else sample.keys
    sums, step = np.zeros((n_samples, columns.shape[1])), max(1, _BLOCK // n_samples)
    for start in range(0, sample.n_users, step):
        block = slice(start, start + step)
        sums += poisson_weights(keys[block], seed, n_samples).T.astype(np.float64) @ columns[block]
    return np.stack(np.split(sums, 3, axis=1))


def _permutation(compared: ComparedParts, parameters: Mapping[str, Any], _: float, __: int) -> list[Verdict]:
    return exact_by_passes(compared, _checks.number("tolerance", parameters.get("tolerance", 1e-6)))


PartTest = Callable[[ComparedParts, Mapping[str, Any], float, int], list[Verdict]]

_TESTS: Mapping[str, PartTest] = {
    "permutation": _permutation,
    "student": _student,
    "log_student": _log_student,
    "sign": _sign,
    "bootstrap": _bootstrap,
}
