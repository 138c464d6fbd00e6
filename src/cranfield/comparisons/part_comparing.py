"""Comparing systems whose users are stored in parts: passes over the parts replace arrays of all users."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from cranfield._errors import InputError, SettingError
from cranfield._record import Step
from cranfield.comparisons.comparing import Comparing, comparison_rows, comparison_settings
from cranfield.comparisons.comparison import Comparison
from cranfield.comparisons.part_samples import gather
from cranfield.comparisons.part_tests import verdicts_by_parts
from cranfield.comparisons.relative import relative_differences
from cranfield.comparisons.samples import population
from cranfield.comparisons.shortfall import shortfall_sentences
from cranfield.measures.averaging import Averaging
from cranfield.measures.part_averages import check_additive
from cranfield.measures.score_parts import ScoreParts
from cranfield.recommenders.registry import system_among


def compare_parts(
    scores: ScoreParts,
    comparing: Comparing,
    averaging: Averaging,
    *,
    metrics: Sequence[str] | None = None,
    seed: int = 0,
    among_served: bool = True,
) -> Comparison:
    """Compare systems; see `compare`. The result is the same as in memory, but without per-user values."""
    check_additive(averaging)
    if comparing.subsets:
        raise SettingError(
            "subsets of users are drawn from all of them at once, and these are kept in parts; leave subsets "
            "(--subsets) out, or measure in memory"
        )
    if len(scores.systems) < 2:
        raise InputError("there is 1 system to compare", remedy="give two or more")
    if comparing.base is not None:
        comparing = comparing.with_(baseline=system_among(comparing.base, scores.systems) or comparing.base)
    compared = gather(scores, averaging, metrics=metrics, baseline=comparing.base, seed=seed)
    data = compared.samples
    verdicts = verdicts_by_parts(compared, comparing.significance, comparing.alpha, seed)
    relative = relative_differences(data, comparing.alpha, seed)
    rows = [comparison_rows(*parts, comparing, seed) for parts in zip(data, verdicts, relative)]
    return Comparison(
        rows=pl.concat(rows),
        systems=scores.systems,
        metrics=tuple(sample.metric for sample in data),
        averages=np.stack([sample.system_averages() for sample in data], axis=1),
        lower_is_better=tuple(sample.lower_is_better for sample in data),
        significance=comparing.significance,
        correction=comparing.correction,
        alpha=comparing.alpha,
        baseline=comparing.base,
        population=population(scores, averaging),
        relevance=scores.facts.only([sample.metric for sample in data]).relevance,
        nothing_relevant=scores.nothing_relevant,
        trained_once=scores.trained_once,
        shortfall=(
            *(_shortfall(scores, comparing, averaging, metrics, seed) if among_served else ()),
            *scores.made_for,
        ),
        warnings=scores.warnings,
        step=Step("compare", comparison_settings(comparing, averaging, seed), notes=compared.notes),
    )


def _shortfall(
    scores: ScoreParts, comparing: Comparing, averaging: Averaging, metrics: Sequence[str] | None, seed: int
) -> tuple[str, ...]:
    """Return how many users each system serves and the result among users that all serve; nothing if all are served."""
    if averaging.coverage == "reduced" or scores.n_served == scores.n_lists:
        return ()
    common = None
    if scores.n_served:
        reduced = averaging.with_(coverage="reduced")
        common = compare_parts(scores, comparing, reduced, metrics=metrics, seed=seed, among_served=False)
    return shortfall_sentences(scores, common)
