"""The verb `compare`: scores in, `Comparison` out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypedDict, Unpack

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._decisions import DecisionGroup, checked_field, decision, of_groups, takes_decisions, unless
from cranfield._errors import SettingError
from cranfield._numbers import nearest_count
from cranfield._record import Step
from cranfield._registry import parse
from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.comparisons.comparison import Comparison
from cranfield.comparisons.effects import effects, outcomes_of
from cranfield.comparisons.errors import chosen_test
from cranfield.comparisons.intervals import largest_statistics, relative_differences
from cranfield.comparisons.p_values import CORRECTIONS, TestResult, spelled_test
from cranfield.comparisons.sample import Floats, Sample
from cranfield.comparisons.samples import as_scores, make_samples, population
from cranfield.comparisons.unjudged import Unjudged, unknown_tipping
from cranfield.facts import comparison as comparison_facts
from cranfield.measures import Averaging, AveragingOptions, Errors, Scores
from cranfield.metrics import properties_of
from cranfield.recommenders import system_among


def rejected_share(
    data: Sequence[Sample],
    test: Callable[[Sequence[Sample]], list[TestResult]],
    *,
    subsets: int,
    size: float,
    alpha: float,
    seed: int,
) -> list[Floats]:
    """Return, for each sample and pair, the share of user subsets in which the test rejects at ``alpha``.

    Decision D of Cañamares, Castells and Moffat (2020): ``subsets`` random subsets of the users, each a share ``size``
    of them (rounded half up, at least one user) drawn without replacement, with the test repeated in each.
    """
    n_users = data[0].values.shape[1]
    n_drawn = max(1, int(nearest_count(size, n_users)))
    rejected = [np.zeros(sample.n_pairs) for sample in data]
    with progress("Testing subsets of users", total=subsets, unit="subsets") as bar:
        for k in range(subsets):
            keys = stream(seed, "compare", "subset", k).random(n_users)
            users = np.sort(np.argsort(keys, kind="stable")[:n_drawn])
            for count, test_result in zip(rejected, test([sample.restrict(users) for sample in data])):
                count += test_result.p < alpha
            bar.advance()
    return [count / subsets for count in rejected]


def _correction(_: str, value: Any) -> str:
    return str(CORRECTIONS.spelling(value))


def _baseline(name: str, value: Any) -> str:
    if value is None:
        return NO_BASELINE
    if not isinstance(value, str):
        raise SettingError(f"{name}={value!r} is not the name of a system; write it in quotes")
    return value


def usual_correction(significance: str) -> str:
    """Return the default correction of a test.

    ``max_t`` for tests of averages, so that their intervals and corrected p-values agree; ``none`` for Tukey's test,
    which includes its own correction; ``holm`` for all others.
    """
    name = parse(significance).name
    return "none" if name == "tukey" else CORRECTION if name in _WITH_INTERVALS else "holm"


def check_correction(significance: str, correction: str) -> None:
    """Raise an error if the test includes its own correction, or if the correction does not suit the test."""
    name = parse(significance).name
    if name == "tukey" and correction != "none":
        raise SettingError(
            f"significance='tukey' looks at all systems at once, so correction='{correction}' would correct twice; set "
            "correction='none', or leave it out"
        )
    if correction == CORRECTION and usual_correction(significance) != CORRECTION:
        raise SettingError(
            f"correction='{CORRECTION}' is for tests of averages ({', '.join(_WITH_INTERVALS)}), and "
            f"significance='{name}' is not one; set correction='holm', or leave it out"
        )


NO_BASELINE = "none"
"""The baseline that means that every pair is compared."""

CORRECTION = "max_t"
"""The default correction of tests of averages; see `usual_correction`."""

# Tests of the same averages as the intervals that are shown.
_WITH_INTERVALS = ("permutation", "student", "bootstrap")


@dataclass(frozen=True)
class Comparing(DecisionGroup):
    """How systems are compared (decision D).

    Examples
    --------
    >>> Comparing(significance="t").significance, Comparing().significance
    ('student', 'permutation')
    >>> Comparing(significance="tukey").correction
    'none'
    """

    significance: Any = decision(
        "D",
        "permutation",
        "the paired test: permutation, student, wilcoxon, sign, bootstrap, ...",
        check=lambda _, value: spelled_test(value),
        phrase=unless("permutation", "tested by {}"),
    )
    # ``none``, ``max_t``, ``bonferroni``, ``holm`` or ``benjamini_hochberg``, over the pairs of each metric. The
    # default depends on the test: see `usual_correction`.
    correction: Any = decision(
        "D",
        CORRECTION,
        "the correction for many pairs: max_t, holm, bonferroni, benjamini_hochberg or none",
        check=_correction,
        phrase=unless(CORRECTION, "correction {}"),
    )
    alpha: Any = decision(
        "D", 0.05, "the level of significance", check=_checks.share, phrase=unless(0.05, "alpha {!r}")
    )
    baseline: Any = decision(
        "D",
        NO_BASELINE,
        "the system that all others are compared with, or 'none' for every pair",
        check=_baseline,
        phrase=unless(NO_BASELINE, "against {}"),
    )
    unjudged: Any = decision(
        "D",
        "check",
        "what unjudged items mean: check (nobody is better if they could plausibly reverse the order) or ignore",
        choices=("check", "ignore"),
        phrase=unless("check", "unjudged items: {}"),
    )
    # The number of random subsets of the users in which the test is repeated, and the share of the users in each.
    subsets: Any = checked_field(0, partial(_checks.whole, at_least=0, at_most=_checks.MOST_DRAWS))
    subset_size: Any = checked_field(0.5, _checks.share)

    def _check_together(self) -> None:
        if self.correction == CORRECTION:
            object.__setattr__(self, "correction", usual_correction(self.significance))
        check_correction(self.significance, self.correction)

    @property
    def base(self) -> str | None:
        """The baseline, or None if every pair is compared."""
        return None if self.baseline == NO_BASELINE else self.baseline


class ComparingOptions(TypedDict, total=False):
    """The fields of `Comparing` that `compare` accepts unchanged as keyword arguments."""

    alpha: float
    unjudged: str
    subsets: int
    subset_size: float


class CompareOptions(ComparingOptions, AveragingOptions, total=False):
    """All decisions that `compare` accepts as keyword arguments."""


@takes_decisions(Comparing, Averaging)
def compare(
    scores: Scores | Sequence[Scores] | Any,
    *,
    significance: str = Comparing.significance,
    method: str | None = None,
    metrics: str | Sequence[str] | None = None,
    baseline: str | None = None,
    correction: str | None = None,
    average: str = "mean",
    resamples: int | None = None,
    seed: int = 0,
    **decisions: Unpack[CompareOptions],
) -> Comparison:
    """Test every pair of systems, or each system against a baseline, for every metric (decision D).

    Parameters
    ----------
    scores
        The `Scores` returned by ``measure``; a list of them, one per repetition (new splits, new
        seeds); or per-user values as ``{system: values}`` or as a dataframe (Spark dataframes too) with one column per
        system. With repetitions, the test is over users crossed with repetitions: see `Errors`.
    significance
        ``permutation``, ``student`` (or ``t``), ``wilcoxon``, ``sign``, ``bootstrap``, ``tukey``, ``log_student``; with
        settings as in ``wilcoxon(zeros=pratt)``.
    method
        For the permutation test: ``exact`` (the default) or ``monte-carlo``.
    metrics
        Which metrics; all by default.
    baseline
        The system that all others are compared with. By default, every pair is compared.
    correction
        ``max_t``, ``holm``, ``bonferroni``, ``benjamini_hochberg`` or ``none``, over the pairs of each metric. The
        default is ``max_t`` for ``permutation``, ``student`` and ``bootstrap``: its p-values and the intervals, which
        hold for all pairs at once, agree. It is ``none`` for Tukey's test, which includes its own correction, and
        ``holm`` for the others.
    alpha
        The level of significance; intervals hold with probability 1 − alpha.
    coverage
        ``full``: a missing list is scored as an empty list. ``reduced``: only users that every system serves count, in
        all pairs and in the averages.
    undefined
        What to do with lists for which the metric is undefined: count them as ``zero``, or ``leave out``. They are
        always left out for metrics in which 0 has a meaning: errors, correlations, shares, novelty.
    average
        ``mean``, ``weighted(by=judged)``, ``weighted(by=relevant)``, ``geometric`` or
        ``geometric(form=adjusted, epsilon=0.01)``. The test is of the difference between these averages;
        ``log_student`` tests geometric means and shows them by default.
    by
        ``user``: each user's lists are averaged first, since they are not independent; ``list``: each list counts
        separately.
    groups
        ``equal``: the averages within each group are averaged over groups (see `Averaging`). Users remain the units of
        the test. A user's weight is Σ_k 1/n_k over the groups k in which the user has lists, with n_k users in group k,
        so the test is of the difference that is reported. If every user has lists in every group, all users weigh the
        same, and a user's value is the mean over groups.
    resamples
        The number of sign patterns, resamples or shuffles. The default is 100,000 for Monte Carlo, 1,000 for the
        bootstrap and 5,000 for Tukey's test.
    unjudged
        ``check``: nobody is called better where unjudged items could plausibly reverse the order (`Unjudged.tipping`),
        and `Comparison.frame` has the tipping point; ``ignore``: by the judgments alone.
    subsets, subset_size
        If ``subsets`` is above 0, the test is repeated in this many random subsets of the users, each with this share
        of them. ``rejected`` is the share of the subsets in which it rejects at alpha (without correction).
    seed
        Fixes every random choice.

    Examples
    --------
    >>> result = compare({"a": [0.9, 0.8, 0.7, 0.9, 0.6, 0.8], "b": [0.1, 0.2, 0.6, 0.3, 0.5, 0.2]})
    >>> result.frame()["p_corrected"].item(), result.rows["method"].item()
    (0.03125, 'enumeration')
    >>> print(result.verdict[0])
    value: a beats b by 147 % (31 to 679 %, p = 0.0312).
    """
    comparing, averaging = of_groups((Comparing, Averaging), dict(decisions), "compare")
    significance = spelled_test(significance, method, resamples)
    comparing = comparing.with_(significance=significance, baseline=baseline)
    if correction is not None:
        comparing = comparing.with_(correction=correction)
        check_correction(significance, _correction("correction", correction))
    averaging = tested_average(significance, averaging.with_(average=average))
    chosen = [metrics] if isinstance(metrics, str) else metrics
    seed = _checks.whole("seed", seed, at_least=0)
    measured = as_scores(scores)
    measured.check_measured()
    return compare_scores(measured, comparing, averaging, metrics=chosen, seed=seed)


def compare_scores(
    scores: Scores,
    comparing: Comparing,
    averaging: Averaging,
    *,
    metrics: Sequence[str] | None = None,
    seed: int = 0,
    among_served: bool = True,
) -> Comparison:
    """Compare systems as decided; see `compare`.

    With ``among_served``, if some users have no list, the verdict also gives the result among the users that all
    systems serve. That is a second comparison, which takes as long as the first.
    """
    significance, alpha = comparing.significance, comparing.alpha
    if comparing.base is not None:
        comparing = comparing.with_(baseline=system_among(comparing.base, scores.systems) or comparing.base)
    data, counted = make_samples(scores, averaging, metrics=metrics, baseline=comparing.base)
    # The averages are over the users of the test: over other users, the systems could be in the opposite order.
    data = [sample.of_common_users() for sample in data]
    run = chosen_test(data, significance, alpha, seed)
    test_results: list[TestResult] = run(data)
    entries = [Unjudged.of(scores, part.metric) if comparing.unjudged == "check" else None for part in data]
    rows = [comparison_rows(*parts, comparing, seed) for parts in zip(data, test_results, entries)]
    if comparing.subsets:
        size = comparing.subset_size
        shares = rejected_share(data, run, subsets=comparing.subsets, size=size, alpha=alpha, seed=seed)
        rows = [frame.with_columns(rejected=pl.Series(share)) for frame, share in zip(rows, shares)]
    names = [sample.metric for sample in data]
    return Comparison(
        rows=pl.concat(rows),
        systems=data[0].systems,
        metrics=tuple(names),
        averages=np.stack([sample.system_averages for sample in data], axis=1),
        lower_is_better=tuple(sample.lower_is_better for sample in data),
        significance=significance,
        correction=comparing.correction,
        alpha=alpha,
        baseline=comparing.base,
        population=population(scores, averaging),
        relevance=(scores if len(data) == len(scores.metrics) else scores.only(names)).relevance,
        nothing_relevant=scores.nothing_relevant,
        repetitions=1 if scores.repetitions is None else int(scores.repetitions.max()) + 1,
        spread=tuple(_spread_of_systems(part) for part in data if part.cells is not None),
        samples=tuple(data),
        trained_once=scores.trained_once,
        **(_shortfall(scores, comparing, averaging, metrics, seed) if among_served else {}),
        made_for=(*scores.made_for, *comparison_facts.OnRepeats.of(scores.notes)),
        warnings=scores.warnings,
        left_out=tuple(name for name in scores.left_out_by(averaging) if name in names),
        counted=counted,
        nothing_disliked=tuple(part.metric for part, own in zip(data, entries) if own is not None and own.all_liked),
        entries=tuple(entries),
        step=Step("compare", comparison_settings(comparing, averaging, seed)),
    )


def _spread_of_systems(sample: Sample) -> tuple[float, ...]:
    """Return the standard deviation of each average between repetitions."""
    spread = Errors.crossed(sample.system_cells()).spread
    assert spread is not None
    return tuple(sample.in_units(spread, sample.system_averages).tolist())


def _shortfall(
    scores: Scores, comparing: Comparing, averaging: Averaging, metrics: Sequence[str] | None, seed: int
) -> dict[str, Any]:
    """Return how many lists each system provides and the comparison among users that all serve, if some have none."""
    if averaging.coverage == "reduced" or scores.covered.all():
        return {}
    counts = dict(zip(scores.systems, scores.n_covered.tolist()))
    served = comparison_facts.Served(counts, scores.n_lists, scores.n_users, scores.serve_alike)
    if not scores.covered.all(axis=0).any():
        return {"served": served}
    alone, reduced = comparing.with_(subsets=0), averaging.with_(coverage="reduced")
    common = compare_scores(scores, alone, reduced, metrics=metrics, seed=seed, among_served=False)
    plain = replace(common, samples=(), trained_once=(), repetitions=1, spread=(), warnings=(), made_for=())
    return {"served": served, "common": plain}


def comparison_settings(comparing: Comparing, averaging: Averaging, seed: int) -> dict[str, Any]:
    """Return the decisions of a comparison, without those that were not taken."""
    settings = {**comparing.as_dict(), "baseline": comparing.base, **averaging.as_dict(), "seed": seed}
    if averaging.groups == "pooled":
        del settings["groups"]
    if not comparing.subsets:
        del settings["subsets"], settings["subset_size"]
    return settings


def tested_average(significance: str, averaging: Averaging) -> Averaging:
    """Return the average that a test compares: Student's test of the logarithms compares geometric means."""
    test = parse(significance)
    if test.name != "log_student" or averaging.average != "mean":
        return averaging
    return averaging.with_(average=f"geometric(form=adjusted, epsilon={dict(test.parameters).get('epsilon', 1e-5)})")


def comparison_rows(
    sample: Sample, test_result: TestResult, entries: Unjudged | None, comparing: Comparing, seed: int
) -> pl.DataFrame:
    """Return the rows of one metric, one per pair; see `Comparison.frame`."""
    together, outcomes = comparing.correction != "none", outcomes_of(sample)
    largest = largest_statistics(sample, outcomes[1], seed, test_result.largest) if together else None
    effect = effects(sample, outcomes, comparing.alpha, None if largest is None else largest.level(comparing.alpha))
    # A test's own intervals hold for each pair alone, except those of Tukey's test.
    by_the_test = not together or parse(comparing.significance).name == "tukey"
    lower, upper = effect.lower, effect.upper
    if by_the_test and test_result.lower is not None and test_result.upper is not None:
        lower, upper = test_result.lower, test_result.upper
    relative = relative_differences(sample, lower, upper, effect.users_error)
    reach = (upper - lower) / 2
    difference = effect.mean_a - effect.mean_b
    most = np.maximum(sample.largest, np.abs(difference))
    lower, upper = (np.clip(sample.in_units(end, effect.mean_b), -most, most) for end in (lower, upper))
    corrected: Floats = CORRECTIONS.call(comparing.correction, test_result.p)
    level = np.full(sample.n_pairs, comparing.alpha / max(np.count_nonzero(~np.isnan(test_result.p)) * together, 1))
    if largest is not None and comparing.correction == CORRECTION:
        corrected, level[:] = largest.corrected(test_result.p, effect.p_of_t), largest.level(comparing.alpha)
    elif parse(comparing.significance).name == "tukey":
        level = effect.level_of(reach)
    significant = corrected < comparing.alpha
    direction = difference if test_result.direction is None else test_result.direction
    a_better = (direction > 0) != sample.lower_is_better
    ordered = properties_of(sample.metric).role != "description"
    winners, losers = (
        np.where(a_better, *places) for places in ((sample.first, sample.second), (sample.second, sample.first))
    )
    if entries is None or entries.all_liked:
        tipping = unknown_tipping(sample.n_pairs)
    else:
        tipping = entries.tipping(winners, losers)
    first, second = ([sample.systems[place] for place in places] for places in (sample.first, sample.second))
    better = [
        (a if leads else b) if ordered and differs and holds and d != 0 else None
        for a, b, differs, holds, leads, d in zip(first, second, significant, tipping.holds, a_better, direction)
    ]
    spread = [None] * sample.n_pairs if effect.spread is None else sample.in_units(effect.spread, effect.mean_b)
    return pl.DataFrame(
        {
            "metric": [sample.metric] * sample.n_pairs,
            "system_a": first,
            "system_b": second,
            "mean_a": effect.mean_a,
            "mean_b": effect.mean_b,
            "difference": difference,
            "lower": lower,
            "upper": upper,
            "standard_error": sample.in_units(effect.standard_error, effect.mean_b),
            "degrees": effect.degrees,
            "spread": pl.Series(spread, dtype=pl.Float64),
            "relative": relative.difference,
            "relative_lower": relative.lower,
            "relative_upper": relative.upper,
            **{name: getattr(effect, name) for name in ("effect", "effect_lower", "effect_upper")},
            **{name: getattr(effect, name).astype(np.int64) for name in ("wins", "ties", "losses")},
            "superiority": effect.superiority,
            "p": test_result.p,
            "p_corrected": corrected,
            "significant": significant,
            "better": pl.Series(better, dtype=pl.String),
            "tipping": tipping.share,
            "tipping_ratio": tipping.ratio,
            "n": sample.n,
            "level": level,
            "test": [comparing.significance] * sample.n_pairs,
            "method": [str(method) for method in test_result.method],
            "error_bound": test_result.error,
        }
    )
