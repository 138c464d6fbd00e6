"""Measurements of `evaluate` about the design of the test: random rankings, draws, sampled ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from cranfield._errors import SettingError
from cranfield.cli._measuring import Loaded
from cranfield.measures import Averaging, Scores

if TYPE_CHECKING:
    from cranfield.biases import CorrectedMetrics, TimesRandom
    from cranfield.reports import Section


def times_random_of(
    loaded: Loaded, metrics: tuple[str, ...], averaging: Averaging, candidates: Any, seed: int
) -> TimesRandom:
    """Measure the runs and random rankings of the same targets."""
    from cranfield.biases import times_random

    return times_random(
        loaded.lists, loaded.test, metrics, threshold=loaded.options.threshold, lists=loaded.options.lists,
        train=loaded.train, negative_grades=loaded.options.negative_grades, seed=seed, average=averaging,
        candidates=candidates,
    )  # fmt: skip


def measured_over_draws(
    loaded: Loaded, metrics: tuple[str, ...], number: int, relevant: Any, candidates: Any, extras: Sequence[str]
) -> Scores:
    """Measure the runs in expectation over the draw of candidates."""
    from cranfield.biases import expected_over_draws

    options = loaded.options
    if options.lists == "condensed" or options.negative_grades != "judged":
        extras = [*extras, "--lists condensed" if options.lists == "condensed" else "--negative-grades"]
    if extras:
        raise SettingError(f"--over-draws does not work with {extras[0]}; leave one of them out")
    return expected_over_draws(
        loaded.runs, loaded.test, metrics, nonrelevant=number, relevant=relevant, train=loaded.train,
        threshold=options.threshold, candidates=candidates,
    )  # fmt: skip


def times_random_section(times: TimesRandom) -> Section:
    """Return the section of a page on times random."""
    from cranfield.reports import beside_random

    return beside_random(times)


def corrected_runs(
    loaded: Loaded, metrics: tuple[str, ...], candidates: Any, level: float
) -> dict[str, CorrectedMetrics]:
    """Estimate the values over the whole catalogue of one-relevant runs among drawn items."""
    from cranfield.biases import correct_runs

    return correct_runs(
        loaded.runs, loaded.test, metrics, train=loaded.train, candidates=candidates,
        threshold=loaded.options.threshold, level=level,
    )  # fmt: skip


def with_corrected(frame: pl.DataFrame, corrected: Mapping[str, CorrectedMetrics]) -> pl.DataFrame:
    """Return averages, with the estimates for the whole catalogue next to them if there are any."""
    if not corrected:
        return frame
    names = {"estimate": "whole_catalogue", "lower": "whole_lower", "upper": "whole_upper"}
    estimates = pl.concat(
        values.frame.drop("sampled").rename(names).with_columns(system=pl.lit(system))
        for system, values in corrected.items()
    )
    return frame.join(estimates, on=["system", "metric"], how="left")
