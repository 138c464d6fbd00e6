"""``cranfield evaluate`` and ``dialects``: measure ranked lists, and show what a metric means in other tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click
import polars as pl

from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._result import check_frame_file, frame_text, write_frame
from cranfield._table import MOST_REMARKS
from cranfield.cli import _measuring
from cranfield.cli._options import (
    HelpfulCommand,
    choice_option,
    common_options,
    decision_option,
    process_options,
    refuse_idle,
)
from cranfield.cli._output import (
    output_options,
    put,
    put_tables,
    put_values,
    tell,
)
from cranfield.cli._report import report_option, write_page
from cranfield.comparisons import Comparing
from cranfield.facts import Fact
from cranfield.facts import scores as scores_facts
from cranfield.judgments import NONE
from cranfield.measures import DEFAULT_METRICS, Averaging, Measuring, compare_tools, dialects_table, examine_for

_EXAMPLES = """\b
Examples:
  cranfield evaluate --test test.csv runs/*.tsv --threshold 4
  cranfield evaluate --test qrels.txt bm25.trec -m P@10 -m 'nDCG(gain=exp)@100'
  cranfield evaluate --test test.csv a.csv b.csv -m Recall@50 --average 'weighted(by=relevant)'
  cranfield evaluate --test test.csv a.csv --per-user values.parquet --format json
  cranfield evaluate --test test.csv a.csv b.csv --train train.csv --segment activity --segment users.csv:age
  cranfield evaluate --test test.csv --train train.csv a.csv b.csv --times-random
  cranfield evaluate --test test.csv --train train.csv ranks.parquet -m HitRate@10 --correct-sampled
  cranfield evaluate --test test.csv a.csv b.csv -m nDCG@10 -m SDCSE@10 -m RMSE@10 --levels all
"""


@click.command(cls=HelpfulCommand, epilog=_EXAMPLES)
@_measuring.measuring_options
@_measuring.metric_option(DEFAULT_METRICS)
@_measuring.levels_option
@_measuring.averaging_options(
    average="How to average: mean, median, 'weighted(by=judged|relevant|train|FILE:COLUMN)', "
    "'geometric(form=trec_eval|adjusted)', trimmed, standardised, 'urisk(baseline=SYSTEM, alpha=1)', "
    "'trisk(baseline=SYSTEM)' or georisk."
)
@choice_option("--interval", ["analytic", "bootstrap"], "The method of the confidence intervals of averages.")
@decision_option(Comparing.decisions()["alpha"], help="The intervals have the confidence 1 - alpha.")
@click.option(
    "--bounds", is_flag=True, help="Also show the averages if no unjudged item were relevant, and if all were."
)
@_measuring.catalogue_option
@_measuring.engine_options
@click.option(
    "--times-random", is_flag=True, help="Also show how many times better than a random ranking each system is."
)
@click.option(
    "--over-draws",
    type=click.IntRange(min=1),
    metavar="N",
    help="Measure the expected value over random draws of N non-relevant items per list; the runs must rank all "
    "candidates.",
)
@choice_option(
    "--relevant", ["all", "one"], "With --over-draws: one list per user, or one list for each relevant item."
)
@choice_option(
    "--candidates",
    ["all", "test"],
    "With --times-random, --over-draws or --correct-sampled: the candidates, all items or those with a test rating.",
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
@_measuring.segment_option
@report_option
@output_options("table", "csv", "json", "latex", "markdown")
@common_options
def evaluate_command(
    measuring: _measuring.MeasuringOptions,
    metrics: tuple[str, ...],
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
    format: str,
    out: str | None,
    interval: Any,
    alpha: float,
    seed: int,
    **decisions: Any,
) -> None:
    """Measure ranked lists against held-out ratings."""
    for file in (per_user, migration):
        if file is not None:
            check_frame_file(file)
    loaded = measuring.open()
    wanted = {"--over-draws": over_draws, "--times-random": times_random, "--segment": by_segment, "--report": report,
              "--migration": migration, "--correct-sampled": correct_sampled}  # fmt: skip
    loaded.refuse_in_parts(wanted)
    metrics = loaded.at_levels(metrics)
    averaging, level = Averaging(**decisions), 1 - alpha
    of_design: dict[str, Any] = {"train": loaded.train, "threshold": measuring.threshold, "candidates": candidates}
    if over_draws is None:
        refuse_idle("without --over-draws", "relevant")
        if not times_random and not correct_sampled:
            refuse_idle("without --times-random, --over-draws or --correct-sampled", "candidates")
        scores = loaded.measure(metrics, bounds=bounds)
    else:
        from cranfield.biases import expected_over_draws

        extras = {"--bounds": bounds, "--times-random": times_random, "--segment": by_segment, "--report": report,
                  "--catalogue": measuring.catalogue != NONE, "--correct-sampled": correct_sampled,
                  "--lists condensed": measuring.lists == "condensed",
                  "--negative-grades": measuring.negative_grades != "judged"}  # fmt: skip
        if idle := [option for option, value in extras.items() if value]:
            raise SettingError(f"--over-draws does not work with {idle[0]}; leave one of them out")
        drawn: dict[str, Any] = {"nonrelevant": over_draws, "relevant": relevant, **of_design}
        scores = expected_over_draws(loaded.runs, loaded.test, metrics, **drawn)
    scores.check_measured()
    scores = replace(scores, notes=(*scores.notes, *_notes_on_reading(loaded.histories)))
    if per_user is not None:
        put_values(scores, per_user)
    if migration is not None:
        predictions = examine_for((*metrics, "CSE"), loaded.runs, loaded.test, train=loaded.train)
        assert predictions is not None  # CSE needs them
        write_frame(predictions.migration(), migration)
    segments = loaded.segments(metrics, by_segment) if by_segment else []
    times, corrected = None, {}
    if times_random:
        from cranfield.biases import ratio_to_random

        times = ratio_to_random(
            loaded.lists, loaded.test, metrics, lists=measuring.lists, negative_grades=measuring.negative_grades,
            seed=seed, average=averaging, **of_design,
        )  # fmt: skip
    if correct_sampled:
        from cranfield.biases import correct_runs

        corrected = correct_runs(loaded.runs, loaded.test, metrics, level=level, **of_design)
    how: dict[str, Any] = {"interval": interval, "level": level, "seed": seed}
    if format in ("csv", "json"):
        frame = scores.frame(averaging, **how)
        frame = frame if times is None else frame.join(times.frame().drop("mean"), on=["system", "metric"], how="left")
        if corrected:
            columns = {"estimate": "whole_catalogue", "lower": "whole_lower", "upper": "whole_upper"}
            estimates = pl.concat(
                values.frame().drop("sampled").rename(columns).with_columns(system=pl.lit(system))
                for system, values in corrected.items()
            )
            frame = frame.join(estimates, on=["system", "metric"], how="left")
        frame = _measuring.with_groups(frame, [segment.frame(averaging, **how) for segment in segments])
        put(frame_text(frame, format), out)
        tell(filter(None, [scores.relevance]))
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
        put_tables(tables, format, out, MOST_REMARKS)
    sections = []
    if report is not None and times is not None:
        from cranfield.reports import beside_random

        sections = [beside_random(times)]
    write_page(report, loaded, scores, metrics, average=averaging, level=level, segments=segments, sections=sections)


_DIALECTS = """\b
Examples:
  cranfield dialects --test test.csv run.tsv -m nDCG@100 --threshold 4
  cranfield dialects --test test.csv run.tsv -m AP@10 -m Recall@10 --format csv
  cranfield dialects --test test.csv run.tsv -m nDCG@100 --published 0.2163
"""


@click.command(cls=HelpfulCommand, epilog=_DIALECTS)
@_measuring.measuring_options
@_measuring.metric_option(("nDCG@10",))
@click.option(
    "--published", metavar="NUMBER", help="A number as printed in a paper; the dialects that round to it are marked."
)
@output_options("table", "csv", "json", "latex", "markdown")
@process_options
def dialects_command(
    measuring: _measuring.MeasuringOptions,
    metrics: tuple[str, ...],
    published: str | None,
    format: str,
    out: str | None,
) -> None:
    """Show what a metric's name means in other tools, on your data."""
    loaded = measuring.load()
    frame = compare_tools(
        loaded.runs, loaded.test, metrics, threshold=measuring.threshold, lists=measuring.lists, train=loaded.train,
        published=published, negative_grades=measuring.negative_grades, strict=measuring.strict,
    )  # fmt: skip
    tell(Measuring(metrics=metrics).notes_on_grades(loaded.test, measuring.negative_grades))
    if format in ("csv", "json"):
        put(frame_text(frame, format), out)
    else:
        put_tables([dialects_table(frame)], format, out)


def _notes_on_reading(histories: Sequence[tuple[str, Sequence[Step]]]) -> tuple[Fact, ...]:
    """Return a note on the format that each source was read as; nothing for what was made here."""
    said: dict[str, list[str]] = {}
    for name, history in histories:
        if history and "format" in history[-1].settings:
            said.setdefault(str(history[-1].settings["format"]), []).append(name)
    return (scores_facts.ReadAs(tuple((kind, tuple(who)) for kind, who in said.items())),) if said else ()
