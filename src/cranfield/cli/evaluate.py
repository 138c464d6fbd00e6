"""``cranfield evaluate``: measure ranked lists against held-out ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from cranfield._errors import SettingError
from cranfield.cli._given import refuse_idle
from cranfield.cli._group import common_options
from cranfield.cli._measuring import (
    Loaded,
    MeasuringOptions,
    averaging_options,
    catalogue_option,
    levels_option,
    measuring_options,
    metric_option,
    tell,
)
from cranfield.cli._output import check_frame_file, output_options, put, put_frame, put_tables, written
from cranfield.cli._report import report_option, write_page
from cranfield.cli._segments import segment_option, segments_of, with_groups
from cranfield.measures import DEFAULT_METRICS, Averaging, Scores
from cranfield.measures.catalogue import NONE
from cranfield.measures.notes import notes_on_reading
from cranfield.measures.predicted_ratings import examine_for

if TYPE_CHECKING:
    from cranfield.biases import TimesRandom
    from cranfield.reports.section import Section

_EXAMPLES = """\b
Examples:
  cranfield evaluate --test test.csv runs/*.tsv --threshold 4
  cranfield evaluate --test qrels.txt bm25.trec -m P@10 -m 'nDCG(gain=exp)@100'
  cranfield evaluate --test test.csv a.csv b.csv -m Recall@50 --average 'weighted(by=relevant)'
  cranfield evaluate --test test.csv a.csv --per-user values.parquet --format json
  cranfield evaluate --test test.csv a.csv b.csv --train train.csv --segment activity --segment users.csv:age
  cranfield evaluate --test test.csv --train train.csv a.csv b.csv --times-random
  cranfield evaluate --test test.csv a.csv b.csv -m nDCG@10 -m SDCSE@10 -m RMSE@10 --levels all
"""


@click.command(epilog=_EXAMPLES)
@measuring_options
@metric_option(DEFAULT_METRICS)
@levels_option
@averaging_options(
    average="mean, median, 'weighted(by=judged|relevant|train|FILE:COLUMN)', 'geometric(form=trec_eval|adjusted)', "
    "trimmed, standardised, 'urisk(baseline=SYSTEM, alpha=1)', 'trisk(baseline=SYSTEM)', georisk.",
    coverage="Users without a list count 0, or only covered users are averaged.",
)
@click.option(
    "--interval",
    type=click.Choice(["analytic", "bootstrap"]),
    default="analytic",
    show_default=True,
    help="How the confidence interval of an average is made.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="The confidence of the interval; those of a report are analytic.",
)
@click.option("--bounds", is_flag=True, help="Also what the averages would be if all unjudged items were relevant.")
@catalogue_option
@click.option(
    "--times-random",
    is_flag=True,
    help="Also how many times better than a random ranking of all items each system is, without those that --train "
    "holds for the user.",
)
@click.option(
    "--over-draws",
    type=click.IntRange(min=1),
    metavar="N",
    help="Measure in expectation over the draw of N non-relevant items for each list, without drawing; the runs rank "
    "all candidates.",
)
@click.option(
    "--relevant",
    type=click.Choice(["all", "one"]),
    default="all",
    show_default=True,
    help="With --over-draws: all relevant items of a user in one list, or each in a list of its own.",
)
@click.option(
    "--candidates",
    type=click.Choice(["all", "test"]),
    default="all",
    show_default=True,
    help="With --times-random or --over-draws: what was ranked, all items or those with a test rating.",
)
@click.option(
    "--migration",
    metavar="FILE",
    help="Write where each rating migrates to: true by predicted rating (Parquet, CSV, TSV or JSON).",
)
@click.option("--per-user", metavar="FILE", help="Write every list's value (Parquet, CSV, TSV or JSON).")
@segment_option
@report_option
@output_options("table", "csv", "json", "latex", "markdown")
@common_options
def command(
    measuring: MeasuringOptions,
    metrics: tuple[str, ...],
    levels: str,
    bounds: bool,
    catalogue: str,
    times_random: bool,
    over_draws: int | None,
    relevant: Any,
    candidates: Any,
    migration: str | None,
    per_user: str | None,
    by_segment: tuple[str, ...],
    report: str | None,
    format: str,
    out: str | None,
    interval: Any,
    level: float,
    seed: int,
    **decisions: Any,
) -> None:
    """Measure ranked lists against held-out ratings."""
    for file in (per_user, migration):
        if file is not None:
            check_frame_file(file)
    loaded = measuring.load()
    metrics = loaded.at_levels(metrics, levels)
    averaging = Averaging(**decisions)
    if over_draws is None:
        refuse_idle("without --over-draws", "relevant")
        if not times_random:
            refuse_idle("without --times-random or --over-draws", "candidates")
        scores = loaded.measure(metrics, bounds=bounds, catalogue=catalogue)
    else:
        extras = {"--bounds": bounds, "--times-random": times_random, "--segment": by_segment, "--report": report,
                  "--catalogue": catalogue != NONE}  # fmt: skip
        scores = _over_draws(
            loaded, metrics, over_draws, relevant, candidates, [name for name, given in extras.items() if given]
        )
    scores.check_measured()
    scores = replace(scores, notes=(*scores.notes, *notes_on_reading(loaded.runs, loaded.test)))
    if per_user is not None:
        put_frame(scores.per_user(), per_user)
    if migration is not None:
        predictions = examine_for((*metrics, "CSE"), loaded.runs, loaded.test, train=loaded.train)
        assert predictions is not None  # CSE looks at them
        put_frame(predictions.migration(), migration)
    segments = segments_of(loaded, metrics, by_segment)
    times = _times_random(loaded, metrics, averaging, candidates, seed) if times_random else None
    how: dict[str, Any] = {"interval": interval, "level": level, "seed": seed}
    if format in ("csv", "json"):
        frame = scores.frame(averaging, **how)
        frame = frame if times is None else frame.join(times.frame().drop("mean"), on=["system", "metric"], how="left")
        frame = with_groups(frame, [segment.frame(averaging, **how) for segment in segments])
        put(written(frame, format), out)
        tell([scores.relevance] if scores.relevance else [])
        tell([*scores.notes, *(note for segment in segments for note in segment.notes)])
    else:
        tables = [
            scores.table(averaging, **how, services=True),
            *([] if times is None else [times.table()]),
            *(segment.table(averaging, **how) for segment in segments),
        ]
        if format == "latex":
            names = ["averages", *(f"averages {k}" for k in range(1, len(tables)))]
            tables = [table.titled(loaded.test.name or "", name) for table, name in zip(tables, names)]
        put_tables(tables, format, out)
    write_page(
        report,
        loaded,
        scores,
        metrics,
        averaging=averaging,
        level=level,
        segments=segments,
        sections=[] if report is None or times is None else [_section(times)],
    )


def _times_random(
    loaded: Loaded, metrics: tuple[str, ...], averaging: Averaging, candidates: Any, seed: int
) -> TimesRandom:
    """Measure the runs beside random rankings of the same targets."""
    from cranfield.biases import times_random

    return times_random(
        loaded.runs, loaded.test, metrics, threshold=loaded.options.threshold, lists=loaded.options.lists,
        train=loaded.train, negative_grades=loaded.options.negative_grades, seed=seed, average=averaging,
        candidates=candidates,
    )  # fmt: skip


def _over_draws(
    loaded: Loaded, metrics: tuple[str, ...], number: int, relevant: Any, candidates: Any, extras: Sequence[str]
) -> Scores:
    """Measure the runs in expectation over the draw of so many items."""
    from cranfield.biases import expected_over_draws

    options = loaded.options
    if options.lists == "condensed" or options.negative_grades != "judged":
        extras = [*extras, "--lists condensed" if options.lists == "condensed" else "--negative-grades"]
    if extras:
        raise SettingError(f"--over-draws has no {extras[0]}; leave one of them out")
    return expected_over_draws(
        loaded.runs, loaded.test, metrics, nonrelevant=number, relevant=relevant, train=loaded.train,
        threshold=options.threshold, candidates=candidates,
    )  # fmt: skip


def _section(times: TimesRandom) -> Section:
    from cranfield.reports.sections.times_random import beside_random

    return beside_random(times)
