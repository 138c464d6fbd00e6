"""``cranfield evaluate``: measure ranked lists against held-out ratings."""

from __future__ import annotations

from typing import Any

import click

from cranfield.cli._biases import (
    corrected_runs,
    measured_over_draws,
    times_random_of,
    times_random_section,
    with_corrected,
)
from cranfield.cli._given import refuse_idle
from cranfield.cli._group import common_options
from cranfield.cli._measuring import (
    MeasuringOptions,
    all_at_once,
    averaging_options,
    catalogue_option,
    engine_options,
    levels_option,
    measuring_options,
    metric_option,
    refuse_for_ranges,
    tell,
)
from cranfield.cli._output import check_frame_file, output_options, put, put_frame, put_tables, put_values, written
from cranfield.cli._report import report_option, write_page
from cranfield.cli._segments import segment_option, segments_of, with_groups
from cranfield.judgments import NONE
from cranfield.measures import DEFAULT_METRICS, Averaging, examine_for
from cranfield.metrics import notes_on_reading

_EXAMPLES = """\b
Examples:
  cranfield evaluate --test test.csv runs/*.tsv --threshold 4
  cranfield evaluate --test qrels.txt bm25.trec -m P@10 -m 'nDCG(gain=exp)@100'
  cranfield evaluate --test test.csv a.csv b.csv -m Recall@50 --average 'weighted(by=relevant)'
  cranfield evaluate --test test.csv a.csv --per-user values.parquet --format json
  cranfield evaluate --test test.csv a.csv b.csv --train train.csv --segment activity --segment users.csv:age
  cranfield evaluate --test test.csv --train train.csv a.csv b.csv --times-random
  cranfield evaluate --test test.csv --train train.csv ranks.parquet -m HitRate@10 --correct-sampled
  cranfield evaluate --test test.csv a.csv b.csv -m nDCG@10 -m SDCSE@10 -m RMSE@10 --relevance-levels all
"""


@click.command(epilog=_EXAMPLES)
@measuring_options
@metric_option(DEFAULT_METRICS)
@levels_option
@averaging_options(
    average="How to average: mean, median, 'weighted(by=judged|relevant|train|FILE:COLUMN)', "
    "'geometric(form=trec_eval|adjusted)', trimmed, standardised, 'urisk(baseline=SYSTEM, alpha=1)', "
    "'trisk(baseline=SYSTEM)' or georisk.",
    coverage="Count users without a list as 0, or average only over users that every system serves.",
)
@click.option(
    "--interval",
    type=click.Choice(["analytic", "bootstrap"]),
    default="analytic",
    show_default=True,
    help="The method of the confidence intervals of averages.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="The confidence level of the intervals.",
)
@click.option(
    "--bounds", is_flag=True, help="Also show the averages if no unjudged item were relevant, and if all were."
)
@catalogue_option
@engine_options
@click.option(
    "--times-random",
    is_flag=True,
    help="Also show how many times better than a random ranking each system is.",
)
@click.option(
    "--over-draws",
    type=click.IntRange(min=1),
    metavar="N",
    help="Measure the expected value over random draws of N non-relevant items per list; the runs must rank all "
    "candidates.",
)
@click.option(
    "--relevant",
    type=click.Choice(["all", "one"]),
    default="all",
    show_default=True,
    help="With --over-draws: one list per user, or one list for each relevant item.",
)
@click.option(
    "--candidates",
    type=click.Choice(["all", "test"]),
    default="all",
    show_default=True,
    help="With --times-random, --over-draws or --correct-sampled: the candidates, all items or those with a test "
    "rating.",
)
@click.option(
    "--correct-sampled",
    is_flag=True,
    help="For runs that rank one relevant item among sampled items: also estimate the metrics on the whole "
    "catalogue, with intervals. The candidates are derived from --train.",
)
@click.option(
    "--migration",
    metavar="FILE",
    help="Write the migration matrix, true by predicted rating (Parquet, CSV, TSV or JSON).",
)
@click.option("--per-user", metavar="FILE", help="Write the values of every list (Parquet, CSV, TSV or JSON).")
@segment_option
@report_option
@output_options("table", "csv", "json", "latex", "markdown")
@common_options
def command(
    measuring: MeasuringOptions,
    metrics: tuple[str, ...],
    levels: str,
    bounds: bool,
    times_random: bool,
    over_draws: int | None,
    relevant: Any,
    candidates: Any,
    correct_sampled: bool,
    migration: str | None,
    per_user: str | None,
    by_segment: tuple[str, ...],
    report: str | None,
    engine: str,
    memory: str | None,
    master: str | None,
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
    loaded = measuring.open(engine, memory, master)
    wanted = {"--over-draws": over_draws, "--times-random": times_random, "--segment": by_segment, "--report": report,
              "--migration": migration, "--correct-sampled": correct_sampled}  # fmt: skip
    refuse_for_ranges(loaded, [option for option, given in wanted.items() if given])
    metrics = loaded.at_levels(metrics, levels)
    averaging = Averaging(**decisions)
    if over_draws is None:
        refuse_idle("without --over-draws", "relevant")
        if not times_random and not correct_sampled:
            refuse_idle("without --times-random, --over-draws or --correct-sampled", "candidates")
        scores = loaded.measure(metrics, bounds=bounds)
    else:
        extras = {"--bounds": bounds, "--times-random": times_random, "--segment": by_segment, "--report": report,
                  "--catalogue": measuring.catalogue != NONE, "--correct-sampled": correct_sampled}  # fmt: skip
        others = [name for name, given in extras.items() if given]
        scores = measured_over_draws(all_at_once(loaded), metrics, over_draws, relevant, candidates, others)
    scores.check_measured()
    scores = scores.with_facts(notes=(*scores.notes, *notes_on_reading(loaded.histories)))
    if per_user is not None:
        put_values(scores, per_user)
    if migration is not None:
        whole = all_at_once(loaded)
        predictions = examine_for((*metrics, "CSE"), whole.runs, whole.test, train=whole.train)
        assert predictions is not None  # CSE needs them
        put_frame(predictions.migration(), migration)
    segments = segments_of(all_at_once(loaded), metrics, by_segment) if by_segment else []
    times = times_random_of(all_at_once(loaded), metrics, averaging, candidates, seed) if times_random else None
    corrected = corrected_runs(all_at_once(loaded), metrics, candidates, level) if correct_sampled else {}
    how: dict[str, Any] = {"interval": interval, "level": level, "seed": seed}
    if format in ("csv", "json"):
        frame = scores.frame(averaging, **how)
        frame = frame if times is None else frame.join(times.frame().drop("mean"), on=["system", "metric"], how="left")
        frame = with_corrected(frame, corrected)
        frame = with_groups(frame, [segment.frame(averaging, **how) for segment in segments])
        put(written(frame, format), out)
        tell([scores.relevance] if scores.relevance else [])
        tell([*scores.notes, *(note for segment in segments for note in segment.notes)])
    else:
        tables = [
            scores.table(averaging, **how, services=True),
            *([] if times is None else [times.table()]),
            *(values.table(system) for system, values in corrected.items()),
            *(segment.table(averaging, **how) for segment in segments),
        ]
        if format == "latex":
            names = ["averages", *(f"averages {k}" for k in range(1, len(tables)))]
            tables = [table.titled(loaded.test.name or "", name) for table, name in zip(tables, names)]
        put_tables(tables, format, out)
    if report is None:
        return
    write_page(
        report,
        all_at_once(loaded),
        scores,
        metrics,
        averaging=averaging,
        level=level,
        segments=segments,
        sections=[] if times is None else [times_random_section(times)],
    )
