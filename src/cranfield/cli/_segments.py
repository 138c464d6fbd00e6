"""``--segment``: results by group besides those over all, for any command that measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
import polars as pl

from cranfield.cli._measuring import Loaded

if TYPE_CHECKING:
    from cranfield.measures import Segments

Command = TypeVar("Command", bound=Callable[..., Any])


def segment_option(command: Command) -> Command:
    """Give a command the option ``--segment``, which may be repeated."""
    return click.option(
        "--segment",
        "by_segment",
        multiple=True,
        metavar="SEGMENT",
        help="Also show results by group: activity (new, light, heavy users), popularity, period, a FILE or "
        "FILE:COLUMN of users or items with their group, or a column of the test file. Repeat for more.",
    )(command)


def segments_of(loaded: Loaded, metrics: Sequence[str], by: Sequence[str]) -> list[Segments]:
    """Measure the runs by each of the segments."""
    from cranfield.measures import Segmenting, measure_segments

    options = loaded.options
    reading = options.reading_of_test
    return [
        measure_segments(
            loaded.lists, loaded.test, metrics, by=segment, threshold=options.threshold, lists=options.lists,
            train=loaded.train, negative_grades=options.negative_grades, data=options.test,
            reading=reading,
        )
        for segment in Segmenting(by).segment
    ]  # fmt: skip


def with_groups(whole: pl.DataFrame, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the rows over all, followed by those of groups, which name their segment and group."""
    if not parts:
        return whole
    labels = [pl.lit(None, dtype=pl.String).alias(name) for name in ("segment", "group")]
    return pl.concat([whole.select(*labels, pl.all()), *parts], how="diagonal_relaxed")
