"""The verb `compare`: scores in, `Comparison` out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._record import Step
from cranfield._spelling import parse
from cranfield.comparisons.comparison import Comparison
from cranfield.comparisons.corrections import corrections
from cranfield.comparisons.effect import effects
from cranfield.comparisons.sample import Floats, Sample
from cranfield.comparisons.samples import as_scores, make_samples
from cranfield.comparisons.subsampling import rejected_share
from cranfield.comparisons.verdict import Verdict, significance_tests, spelled_test
from cranfield.measures.scores import Scores


def compare(
    scores: Scores | Any,
    *,
    test: str = "permutation",
    method: str | None = None,
    metrics: str | Sequence[str] | None = None,
    baseline: str | None = None,
    correction: str | None = None,
    alpha: float = 0.05,
    coverage: str = "full",
    undefined: str = "zero",
    average: str = "mean",
    by: str = "user",
    samples: int | None = None,
    subsets: int = 0,
    subset_size: float = 0.5,
    seed: int = 0,
) -> Comparison:
    """Test, for every metric, every pair of systems, or each system against a baseline (decision D).

    Parameters
    ----------
    scores
        The `Scores` of ``measure``; or per-user values as ``{system: values}`` or a frame with a column a system.
    test
        ``permutation``, ``student`` (or ``t``), ``wilcoxon``, ``sign``, ``bootstrap``, ``tukey``, ``log_student``; with
        settings as in ``wilcoxon(zeros=pratt)``.
    method
        Of the permutation test: ``exact`` (the default) or ``monte-carlo``.
    metrics
        Which metrics; all by default.
    baseline
        A system that each of the others is compared with. Without it every pair is.
    correction
        ``none``, ``bonferroni``, ``holm`` (the default) or ``benjamini_hochberg``, over the pairs of each metric.
        Tukey's test is corrected by itself, so its default is ``none``.
    alpha
        The level of significance; intervals hold with probability 1 − alpha.
    coverage
        ``full``: a list that a system does not give counts what an empty one scores. ``common``: a pair is compared
        over the users that both systems serve.
    undefined
        What a list counts for which the metric is undefined: ``zero``, or ``leave out``. Where 0 says something
        (errors, correlations, shares, novelty) it is always left out.
    average
        ``mean``, ``weighted(by=judged)``, ``weighted(by=relevant)``, ``geometric`` or
        ``geometric(form=adjusted, epsilon=0.01)``. The test is of the difference of these averages; ``log_student``
        tests geometric means, and shows them unless told otherwise.
    by
        ``user``: a user's lists are averaged first, since they are not independent; ``list``: each list by itself.
    samples
        How many sign patterns, resamples or shuffles: by default 100,000 for Monte Carlo, 1,000 for the bootstrap,
        5,000 for Tukey's test.
    subsets, subset_size
        If ``subsets`` is above 0, the test is repeated in so many random subsets of the users, each of this share, and
        ``rejected`` is the share of them in which it rejects at alpha (without correction).
    seed
        Fixes every random choice.

    Examples
    --------
    >>> result = compare({"a": [0.9, 0.8, 0.7, 0.9, 0.6, 0.8], "b": [0.1, 0.2, 0.6, 0.3, 0.5, 0.2]})
    >>> result.frame()["p"].item(), result.frame()["method"].item()
    (0.03125, 'enumeration')
    >>> print(result.sentences()[0])  # doctest: +ELLIPSIS
    value: a (0.7833) is better than b (0.3167) by 0.4667 [0.1577, 0.7756] (p = 0.0312; 6 users: better for 6, ...
    """
    _checks.share("alpha", alpha)
    _checks.whole("subsets", subsets, at_least=0)
    _checks.share("subset_size", subset_size)
    seed = _checks.whole("seed", seed, at_least=0)
    test = spelled_test(test, method, samples)
    name = parse(test).name
    correction = correction or ("none" if name == "tukey" else "holm")
    if name == "log_student" and average == "mean":
        average = _geometric(test)
    counting: dict[str, Any] = {"coverage": coverage, "undefined": undefined, "average": average, "by": by}
    asked = [metrics] if isinstance(metrics, str) else metrics
    data, notes = make_samples(as_scores(scores), metrics=asked, baseline=baseline, **counting)
    if name == "tukey":
        # It deals every user's values to all systems, so what stands beside it is over the same users.
        data = [sample.of_common_users() for sample in data]
    run = partial(significance_tests.call, test, seed=seed, alpha=alpha)
    verdicts: list[Verdict] = run(data)
    rows = [_rows(sample, verdict, test, correction, alpha) for sample, verdict in zip(data, verdicts)]
    settings = {"test": test, "correction": correction, "alpha": alpha, "baseline": baseline, **counting, "seed": seed}
    if subsets:
        shares = rejected_share(data, run, subsets=subsets, size=subset_size, alpha=alpha, seed=seed)
        rows = [one.with_columns(rejected=pl.Series(share)) for one, share in zip(rows, shares)]
        settings |= {"subsets": subsets, "subset_size": subset_size}
    return Comparison(
        rows=pl.concat(rows),
        systems=data[0].systems,
        metrics=tuple(sample.metric for sample in data),
        averages=np.stack([sample.system_averages() for sample in data], axis=1),
        lower_is_better=tuple(sample.lower_is_better for sample in data),
        test=test,
        correction=correction,
        alpha=alpha,
        baseline=baseline,
        step=Step("compare", settings, notes=notes),
    )


def _geometric(log_student: str) -> str:
    """Return the average that Student's test of the logarithms is a test of."""
    return f"geometric(form=adjusted, epsilon={dict(parse(log_student).parameters).get('epsilon', 1e-5)})"


def _rows(sample: Sample, verdict: Verdict, test: str, correction: str, alpha: float) -> pl.DataFrame:
    """Return the rows of one metric, a pair each; see `Comparison.frame`."""
    effect = effects(sample, alpha)
    corrected: Floats = corrections.call(correction, verdict.p)
    significant = corrected < alpha
    direction = effect.difference if verdict.direction is None else verdict.direction
    a_better = (direction > 0) != sample.lower_is_better
    first, second = ([sample.systems[place] for place in places] for places in (sample.first, sample.second))
    better = [
        (a if leads else b) if found and d != 0 else None
        for a, b, found, leads, d in zip(first, second, significant, a_better, direction)
    ]
    return pl.DataFrame(
        {
            "metric": [sample.metric] * sample.n_pairs,
            "system_a": first,
            "system_b": second,
            "mean_a": effect.mean_a,
            "mean_b": effect.mean_b,
            "difference": effect.difference,
            "lower": effect.lower if verdict.lower is None else verdict.lower,
            "upper": effect.upper if verdict.upper is None else verdict.upper,
            "standard_error": effect.standard_error,
            "effect": effect.effect,
            "effect_lower": effect.effect_lower,
            "effect_upper": effect.effect_upper,
            "wins": effect.wins.astype(np.int64),
            "ties": effect.ties.astype(np.int64),
            "losses": effect.losses.astype(np.int64),
            "superiority": effect.superiority,
            "p": verdict.p,
            "p_corrected": corrected,
            "significant": significant,
            "better": pl.Series(better, dtype=pl.String),
            "n": sample.n,
            "test": [test] * sample.n_pairs,
            "method": [str(one) for one in verdict.method],
            "error_bound": verdict.error,
        }
    )
