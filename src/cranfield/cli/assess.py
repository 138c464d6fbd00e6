"""``cranfield assess``: which metric can be trusted on these data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import polars as pl

from cranfield import _checks
from cranfield._errors import InputError, SettingError
from cranfield._figures import Style, check_libraries
from cranfield._result import as_json, frame_text
from cranfield.assessments import NINE, PAPERS, SCENARIOS, SIZES, STUDIES, assess_folds
from cranfield.cli import _measuring
from cranfield.cli._options import (
    AGAIN,
    HelpfulCommand,
    choice_option,
    common_options,
    decision_option,
    numbers,
    refuse_idle,
    resumes,
)
from cranfield.cli._output import inform, put, put_text
from cranfield.cli._report import report_option, style_option, write_page
from cranfield.comparisons import Comparing
from cranfield.measures import Averaging

_EXAMPLES = """\b
Examples:
  cranfield assess --test test.csv runs/*.tsv --threshold 4 --out assessed
  cranfield assess --test test.csv runs/*.tsv --scenario ratings --scenario popular --samples 20
  cranfield assess --test test.csv runs/*.tsv -m nDCG@100 -m P@100 --cutoffs 5,10,20,50,100
  cranfield assess --test test.csv runs/*.tsv --average mean --average geometric --weight significant=2
  cranfield assess --test test.csv runs/*.tsv --sizes fives --sizes popular=top
  cranfield assess --test test.csv runs/*.tsv --format csv --study robustness
  cranfield assess --test fold-1/test.csv runs-1/*.tsv --fold fold-2/test.csv runs-2 --fold fold-3/test.csv runs-3
"""


def _how_to_go_on(out: str | None, **_: Any) -> str:
    return "nothing is kept without --out FOLDER; with it, the same command continues" if out is None else AGAIN


@click.command(cls=HelpfulCommand, epilog=_EXAMPLES)
@_measuring.measuring_options
@_measuring.metric_option(NINE)
@click.option(
    "--fold",
    "folds",
    multiple=True,
    nargs=2,
    metavar="TEST RUNS",
    help="A further fold: its held-out ratings and the folder of its runs (of the same systems). Repeat for more.",
)
@click.option(
    "--fold-train",
    "trains",
    multiple=True,
    metavar="FILE",
    help="The training ratings of each further fold, in the same order.",
)
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    type=click.Choice(list(SCENARIOS)),
    help="What to remove from the test set. Repeat for more.  [default: all five]",
)
@click.option(
    "--sizes",
    multiple=True,
    default=("papers",),
    metavar="GRID",
    help="How much of the test set remains: fives (100 to 5 %), ones (100 to 1 %), top (100 to 80 %), papers (top for "
    "popular, otherwise fives), or shares such as 1,0.5,0.1; for one scenario: popular=fives.",
)
@click.option("--samples", type=int, default=50, help="The number of samples per size in random scenarios.")
@_measuring.engine_options
@click.option(
    "--average",
    "averages",
    multiple=True,
    default=("mean",),
    metavar="AVERAGE",
    help="How to average: mean, median, geometric, 'geometric(form=adjusted)', 'weighted(by=judged)', "
    "'weighted(by=relevant)' or trimmed. Repeat for more.",
)
@click.option(
    "--cutoffs", metavar="LIST", help="Also assess every metric at these cut-offs: 5,10,20, or all (5 to 100)."
)
@choice_option("--correlation", ["tau-b", "tau-ap"], "The correlation between two orders of systems.")
@click.option("--decimals", type=int, default=12, help="Round averages before ordering systems.")
@decision_option(Averaging.decisions()["undefined"])
@decision_option(Comparing.decisions()["significance"], metavar="TEST", help="The test behind discriminative power.")
@decision_option(Comparing.decisions()["alpha"])
@click.option(
    "--resamples", type=int, default=0, help="The number of resamples of Sakai's bootstrap; 0: do not compute it."
)
@click.option("--weight", "weights", multiple=True, metavar="NAME=W", help="The weight of a criterion in the advice.")
@click.option("--figures/--no-figures", default=True, help="Whether to write figures to --out.")
@style_option
@choice_option("--format", ["table", "csv", "json"], "The output format.")
@click.option(
    "--study", type=click.Choice([*STUDIES, "samples"]), default="robustness", help="The study to print as CSV or JSON."
)
@click.option(
    "--out", metavar="FOLDER", help="The folder for finished parts, tables and figures; a second run continues."
)
@report_option
@common_options
@resumes(_how_to_go_on)
def assess_command(
    measuring: _measuring.MeasuringOptions,
    metrics: tuple[str, ...],
    folds: tuple[tuple[str, str], ...],
    trains: tuple[str, ...],
    sizes: tuple[str, ...],
    scenarios: tuple[str, ...],
    cutoffs: str | None,
    weights: tuple[str, ...],
    figures: bool,
    style: Style,
    format: str,
    study: str,
    out: str | None,
    report: str | None,
    **settings: Any,
) -> None:
    """Assess metrics: which one can be trusted on these systems and these data."""
    if folds and report is not None:
        raise SettingError("--report shows one test set; leave it out with --fold, or use cranfield run for folds")
    if format == "table":
        refuse_idle("without --format csv or json", "study")
    if out is None:
        refuse_idle("without --out", "figures", "style")
    elif not figures:
        refuse_idle("with --no-figures", "style")
    else:
        check_libraries()
    opened = (replace(measuring, engine="memory") if folds else measuring).open()
    if folds:
        refuse_idle("with --fold", "engine", "memory", "master")
    opened.refuse_in_parts({"--report": report})
    loaded = [opened] if opened.in_parts else _alike([opened, *_further(measuring, folds, trains)])
    assessment = assess_folds(
        [(fold.runs, fold.test) for fold in loaded],
        metrics,
        trains=[fold.train for fold in loaded],
        threshold=measuring.threshold,
        lists=measuring.lists,
        negative_grades=measuring.negative_grades,
        strict=measuring.strict,
        scenarios=scenarios or tuple(SCENARIOS),
        sizes=_sizes(sizes, scenarios or tuple(SCENARIOS)),
        cutoffs=_cutoffs(cutoffs),
        weights=_weights(weights),
        out=None if out is None else Path(out) / "samples",
        engine=measuring.engine if opened.in_parts else "memory",
        memory=measuring.memory if opened.in_parts else None,
        **settings,
    )
    if format == "table":
        put_text(assessment, None)
    else:
        rows = _plain(assessment.frame(study))
        about = {"sentences": assessment.verdict, "study": study}
        put(frame_text(rows, format) if format == "csv" else as_json({**about, "rows": rows.to_dicts()}), None)
    if out is not None:
        files = assessment.save(out, figures=figures, style=style)
        if format == "table":
            inform(f"{len(files)} files in {out}")
    if report is not None:
        write_page(report, loaded[0], loaded[0].measure(metrics), metrics, assessment=assessment)


def _further(
    measuring: _measuring.MeasuringOptions, folds: Sequence[tuple[str, str]], trains: Sequence[str]
) -> list[_measuring.Loaded]:
    """Read the further folds: for each the test set, the runs of a folder, and possibly the training set."""
    if (len(trains) != len(folds)) if measuring.train else trains:
        raise SettingError(
            f"{len(folds)} further folds and {len(trains)} --fold-train; give --train, and --fold-train for each --fold"
        )
    own: Sequence[str | None] = trains or [None] * len(folds)
    return [
        replace(measuring, test=test, runs=_runs_in(runs), train=train).load()
        for (test, runs), train in zip(folds, own)
    ]


def _runs_in(folder: str) -> tuple[str, ...]:
    if not Path(folder).is_dir():
        raise InputError(f"{folder} is not a folder of runs", remedy="give --fold a test file and a folder: TEST RUNS")
    files = sorted(str(path) for path in Path(folder).iterdir() if not path.name.startswith("."))
    if not files:
        raise InputError(f"there are no runs in {folder}", remedy="give the folder that holds the runs of the fold")
    return tuple(files)


def _alike(folds: list[_measuring.Loaded]) -> list[_measuring.Loaded]:
    """Return the folds with their systems in the order of the first fold, whatever the order of the files."""
    order = {run.name: place for place, run in enumerate(folds[0].runs)}
    for fold in folds[1:]:
        fold.runs.sort(key=lambda run: order.get(run.name, len(order)))
    return folds


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with the systems' averages in each sample as text, because CSV cannot hold lists."""
    if "values" not in frame.columns:
        return frame
    texts = [" ".join(f"{value:.12g}" for value in row) for row in frame["values"].to_list()]
    return frame.with_columns(pl.Series("values", texts, dtype=pl.String))


def _sizes(given: tuple[str, ...], scenarios: tuple[str, ...]) -> dict[str, Any]:
    """Return the grid of each scenario; later options override earlier ones, so one for all scenarios comes first."""
    grids: dict[str, Any] = {}
    for option in given:
        name, equals, text = option.rpartition("=")
        grid = text if text in (*SIZES, PAPERS) else numbers("--sizes", text)
        grids.update(dict.fromkeys([name] if equals else scenarios, grid))
    return grids


def _cutoffs(text: str | None) -> list[int] | bool:
    if text is None or text == "all":
        return text == "all"
    return [_checks.whole("--cutoffs", number) for number in numbers("--cutoffs", text)]


def _weights(given: tuple[str, ...]) -> dict[str, float]:
    weights = {}
    for text in given:
        name, equals, value = text.partition("=")
        try:
            weights[name.strip()] = float(value if equals else "")
        except ValueError as error:
            raise SettingError(
                f"--weight {text!r} cannot be read; write a criterion and a number: significant=2"
            ) from error
    return weights
