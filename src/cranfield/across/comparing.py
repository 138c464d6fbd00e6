"""The verb `compare_datasets`: the scores of several datasets, or a table of averages, in; one verdict out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from cranfield import _checks
from cranfield._decisions import takes_decisions
from cranfield._errors import CranfieldError, InputError, SettingError, nearest
from cranfield._numbers import listed
from cranfield._record import Step
from cranfield.across.comparison import DatasetComparison
from cranfield.across.effects import SCALES, DatasetEffects, effects_of_means, effects_of_samples
from cranfield.across.families import check_families, known_families
from cranfield.across.pasted import is_table, read_table
from cranfield.across.pooling import WEIGHTS
from cranfield.comparisons import AVERAGES, Sample, as_scores, make_samples, pairs_of
from cranfield.facts import gate as gate_facts
from cranfield.measures import Averaging, AveragingOptions, Scores
from cranfield.metrics import properties_of
from cranfield.recommenders import system_among

_VALUE = "value"


@takes_decisions(Averaging)
def compare_datasets(
    datasets: Mapping[str, Scores | Sequence[Scores] | Any] | Any,
    *,
    metrics: str | Sequence[str] | None = None,
    baseline: str | None = None,
    scale: str = "ratio",
    weights: str = "equal",
    families: Mapping[str, str] | None = None,
    margin: str | float | None = None,
    alpha: float = 0.05,
    average: str = "mean",
    **decisions: Unpack[AveragingOptions],
) -> DatasetComparison:
    """Compare systems over several datasets: on these datasets, and for datasets like these.

    Parameters
    ----------
    datasets
        The `Scores` of each dataset by name, or what `compare` takes in their place; or a table of averages, a frame or
        a CSV file: see `read_table`.
    metrics
        Which metrics; by default those of accuracy and value that all datasets have. The averages of a table are of
        one metric, which may be named here.
    baseline
        The system that all others are compared with. By default, every pair is compared.
    scale
        What is averaged over datasets: ``ratio``, the logarithm of the ratio of two averages; ``difference``;
        or ``effect``, the standardised paired difference.
    weights
        ``equal``, or by ``precision``, as in a meta-analysis.
    families
        For datasets of one site or with the same users, the family of each: a family counts as one dataset.
    margin
        The smallest lead that matters, such as ``"2%"``: adds the chances of a larger one on a new dataset.
    alpha
        The level of significance. p-values are corrected by Holm's procedure over the pairs of each metric; intervals
        hold for each pair alone.
    average, coverage, undefined, by, groups
        How users are averaged; see `Averaging`.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"dataset": ["x", "y", "z"], "a": [0.30, 0.12, 0.052], "b": [0.25, 0.10, 0.050]})
    >>> print(compare_datasets(table).verdict[0])
    On these three datasets a is 14 % above b; for datasets like these it is not settled (-7 to 40 %).
    """
    _checks.one_of("scale", scale, SCALES)
    _checks.one_of("weights", weights, WEIGHTS)
    alpha = _checks.share("alpha", alpha)
    averaging = Averaging.of(average, **decisions)
    chosen = [metrics] if isinstance(metrics, str) else None if metrics is None else list(metrics)
    if chosen is not None and not chosen:
        raise SettingError("no metric was given; name at least one")
    rounding: float | None = None
    repeated = False
    if is_table(datasets):
        table = read_table(datasets)
        if chosen is not None and len(chosen) > 1:
            raise SettingError(f"a table holds the averages of one metric, not of {listed(chosen)}; name one")
        metric, names, rounding = _VALUE if chosen is None else chosen[0], table.datasets, table.rounding
        _check_several(names)
        lower = properties_of(metric).lower_is_better
        pairs, baseline = _pairs(table.systems, baseline)
        tables = [
            effects_of_means(
                metric, table.systems, names, table.means, pairs,
                errors=table.errors, scale=scale, lower_is_better=lower,
            )
        ]  # fmt: skip
    elif isinstance(datasets, Mapping):
        names = tuple(str(name) for name in datasets)
        _check_several(names)
        measured = {str(name): _measured(str(name), values) for name, values in datasets.items()}
        repeated = any(scores.repetitions is not None for scores in measured.values())
        systems = tuple(dict.fromkeys(system for scores in measured.values() for system in scores.systems))
        pairs, baseline = _pairs(systems, baseline)
        samples = {name: _samples(name, scores, averaging) for name, scores in measured.items()}
        tables = [
            effects_of_samples({name: own[metric] for name, own in samples.items()}, systems, pairs, scale)
            for metric in _common(samples, chosen)
        ]
    else:
        raise InputError(
            f"a {type(datasets).__name__} holds no datasets", remedy="give {name: scores}, or a table of averages"
        )
    for measured_table in tables:
        _check_shared(measured_table)
    settings = {"scale": scale, "weights": weights, "baseline": baseline, "alpha": alpha, "families": families}
    return DatasetComparison(
        tables=tuple(tables),
        families=check_families(families, names),
        known=known_families({name: name for name in names}),
        baseline=baseline,
        scale=scale,
        weights=weights,
        margin=None if margin is None else _margin(margin, scale),
        alpha=alpha,
        rounding=rounding,
        repeated=repeated,
        step=Step("compare_datasets", {**settings, "margin": margin, **averaging.as_dict()}),
    )


def _check_several(datasets: Sequence[str]) -> None:
    if len(datasets) < 2:
        raise InputError(
            f"there {'is 1 dataset' if datasets else 'are no datasets'}, and one verdict is over several",
            remedy="give two or more, or use compare for one",
        )


def _pairs(systems: tuple[str, ...], baseline: str | None) -> tuple[Any, str | None]:
    if len(systems) < 2:
        raise InputError(f"there is {len(systems)} system to compare", remedy="give two or more")
    if baseline is not None:
        baseline = system_among(baseline, systems) or baseline
    return pairs_of(systems, baseline), baseline


def _margin(margin: str | float, scale: str) -> float:
    size = gate_facts.Margin.read(margin)
    if size.relative and scale != "ratio":
        raise SettingError(f"margin={margin!r} is a share, and scale={scale!r} has amounts; give one, such as 0.01")
    return float(np.log1p(size.size)) if scale == "ratio" else size.size


def _measured(name: str, values: Any) -> Scores:
    """Return the scores of a dataset; an error says which one it is."""
    try:
        scores = as_scores(values)
        scores.check_measured()
    except CranfieldError as error:
        raise InputError(str(error), source=name) from error
    return scores


def _samples(name: str, scores: Scores, averaging: Averaging) -> dict[str, Sample]:
    if averaging.kind.spelling.name not in AVERAGES:
        raise SettingError(
            f"datasets cannot be compared by average={averaging.kind.spelling.name!r}; use {', '.join(AVERAGES)}"
        )
    try:
        samples, _ = make_samples(scores, averaging)
    except InputError as error:
        raise InputError(str(error), source=name) from error
    return {sample.metric: sample.of_common_users() for sample in samples}


def _common(samples: Mapping[str, Mapping[str, Sample]], chosen: Sequence[str] | None) -> list[str]:
    """Return the metrics of all datasets, or those chosen; refuse metrics whose direction differs."""
    first, *others = samples.values()
    common = [metric for metric in first if all(metric in own for own in others)]
    if chosen is None:
        common = [metric for metric in common if properties_of(metric).has_winners] or common
    for metric in chosen or ():
        for name, own in samples.items():
            if metric not in own:
                raise SettingError(f"there is no metric {metric!r} on {name}{nearest(metric, own)}")
    if not (chosen or common):
        raise InputError(
            "the datasets have no metric in common",
            remedy="measure one on all of them; for ranks alone, give their averages as a table",
        )
    for metric in chosen or common:
        directions = {own[metric].lower_is_better for own in samples.values()}
        if len(directions) > 1:
            raise InputError(
                f"lower values of {metric} are better on some datasets and worse on others",
                remedy="give each direction its own metric",
            )
    return list(dict.fromkeys(chosen)) if chosen else common


def _check_shared(table: DatasetEffects) -> None:
    """Refuse a table in which no pair has a result on two datasets."""
    if (~np.isnan(table.effects)).sum(axis=1).max(initial=0) < 2:
        raise InputError(
            f"no two systems have results by {table.metric} on two of the same datasets",
            remedy="give systems the same names on all datasets",
        )
