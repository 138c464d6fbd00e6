"""The commands about an experiment and its folder: ``new``, ``run``, ``show``, ``checklist``, ``diff``, ``clean``."""

from __future__ import annotations

import json
from typing import Any

import click

from cranfield._errors import SettingError
from cranfield._files import meant
from cranfield._result import as_json
from cranfield.cli._options import (
    AGAIN,
    HelpfulCommand,
    common_options,
    is_given,
    jobs_option,
    process_options,
    refuse_idle,
    resumes,
    unpack_option,
)
from cranfield.cli._output import inform, output_options, put, put_result, say, say_line, stages, tell_beside
from cranfield.cli._reading import reading_options
from cranfield.cli._report import experiment_options, experiment_report, out_option, say_where
from cranfield.experiments import PRESETS, clean, diff, new_experiment, plan, review, run, schema, show

_NEW = """\b
Examples:
  cranfield new
  cranfield new movies.toml
  cranfield new --preset canamares2020
  cranfield new --schema > experiment.schema.json
"""


@click.command(cls=HelpfulCommand, epilog=_NEW)
@click.argument("path", default="experiment.toml", metavar="[FILE]")
@click.option(
    "--preset",
    metavar="NAME",
    help="Start from the decisions of a paper: "
    + "; ".join(f"{name}, {preset.summary}" for name, preset in PRESETS.items())
    + ".  [default: cranfield's defaults]",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--schema", "schema_only", is_flag=True, help="Instead print a JSON schema for editors.")
def new_command(path: str, preset: str | None, force: bool, schema_only: bool) -> None:
    """Write an experiment file with every decision, its default and what it means."""
    if schema_only:
        refuse_idle("with --schema, which only prints", "path", "preset", "force")
        say(json.dumps(schema(), indent=1))
        return
    say_line(f"{new_experiment(path, preset=preset, force=force)}: change it, then: cranfield run {path}")


_RUN = """\b
Examples:
  cranfield run experiment.toml
  cranfield run experiment.toml --dry-run
  cranfield run experiment.toml --out elsewhere --open
"""


@click.command(cls=HelpfulCommand, epilog=_RUN)
@click.argument("experiment", metavar="FILE")
@out_option
@click.option("--dry-run", is_flag=True, help="Only print what would be done, and roughly how long it would take.")
@experiment_options
@click.option("--strict", is_flag=True, help="Turn warnings about likely mistakes in given lists into errors.")
@jobs_option
@unpack_option
@common_options
@resumes(AGAIN)
def run_command(
    experiment: str,
    out: str | None,
    dry_run: bool,
    wanted: bool,
    show: bool,
    allow_code: bool,
    strict: bool,
    jobs: int | None,
    seed: int,
) -> None:
    """Run an experiment from data to report. Results that already exist are not computed again.

    A seed given here overrides the file.
    """
    if not wanted:
        refuse_idle("with --no-report", "show")
    from cranfield.audits import AUDITED, audit_of

    options: dict[str, Any] = {"seed": seed if is_given("seed") else None, "extra_stages": (AUDITED,), "strict": strict}
    if dry_run:
        say(plan(experiment, out, report=wanted, **options))
        return
    report = experiment_report(wanted)
    results = run(experiment, out, jobs=jobs, stages=stages, report=report, allow_code=allow_code, **options)
    say(results)
    intervals = (result["intervals"] for result in results.card()["results"].values())
    tell_beside("table", (f"in brackets: {kind}" for kind in dict.fromkeys(intervals) if kind))
    if results.experiment.audit is not None:
        say(audit_of(results))
    if missing := results.missing():
        inform(f"not reported: {'; '.join(missing)}", err=True)
    say_where([f"The results: {results.path}"], results.pages, show)


_SHOW = """\b
Examples:
  cranfield show experiment
  cranfield show experiment --format json
"""


@click.command(cls=HelpfulCommand, epilog=_SHOW)
@click.argument("folder", metavar="FOLDER")
@output_options("text", "csv", "json")
def show_command(folder: str, format: str, out: str | None) -> None:
    """Show what was run in FOLDER, what it contains, sizes and times, and the verdict."""
    put_result(show(folder), format, out)


_CHECKLIST = """\b
Examples:
  cranfield checklist experiment                  the folder of an experiment that cranfield ran
  cranfield checklist experiment --format latex --out checklist.tex
  cranfield checklist train.csv test.csv mine.tsv theirs.tsv       the files of another experiment
"""


@click.command(cls=HelpfulCommand, epilog=_CHECKLIST)
@click.argument("sources", nargs=-1, required=True, metavar="FOLDER | TRAIN TEST [RUN...]")
@output_options("markdown", "latex", "json")
@reading_options
@process_options
def checklist_command(sources: tuple[str, ...], format: str, out: str | None, reading: dict[str, Any]) -> None:
    """Print a reviewer's checklist, filled in from the record of an experiment, and say what is missing.

    It covers data, filters, split, candidates, the tuning of every system (ranges and budget), metrics and definitions,
    tests, code, seeds, hardware and time.
    """
    if len(sources) == 1 or meant(sources[0]).is_dir():
        if len(sources) > 1:
            raise SettingError(
                f"{sources[0]} is a folder; give it alone, or the training and the test file of one split"
            )
        checked = review(sources[0])
    else:
        train, test, *runs = sources
        checked = review(train, test, runs, **{name: value for name, value in reading.items() if name != "repeated"})
    if format == "json":
        put(as_json(checked.as_dict()), out)
    else:
        put(checked.markdown() if format == "markdown" else checked.latex(), out)


_DIFF = """\b
Examples:
  cranfield diff experiment condensed
  cranfield diff experiment condensed --format csv --out moved.csv
"""


@click.command(cls=HelpfulCommand, epilog=_DIFF)
@click.argument("before", metavar="FOLDER")
@click.argument("after", metavar="FOLDER")
@output_options("text", "csv", "json")
def diff_command(before: str, after: str, format: str, out: str | None) -> None:
    """Show which decisions differ between two experiments, and how the results changed."""
    put_result(diff(before, after), format, out)


_CLEAN = """\b
Examples:
  cranfield clean experiment
  cranfield clean experiment --force
"""


@click.command(cls=HelpfulCommand, epilog=_CLEAN)
@click.argument("folder", metavar="FOLDER")
@click.option("--force", "free", is_flag=True, help="Delete it.")
@output_options("text", "csv", "json")
def clean_command(folder: str, free: bool, format: str, out: str | None) -> None:
    """Show what FOLDER contains that the current experiment does not use, and delete it with --force."""
    put_result(clean(folder, free=free), format, out)
