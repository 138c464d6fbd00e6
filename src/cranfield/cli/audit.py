"""``cranfield audit``: whether the winner survives other decisions."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cranfield._settings import settings
from cranfield.cli._decisions import decision_option
from cranfield.cli._given import is_given, refuse_idle
from cranfield.cli._group import common_options, jobs_option
from cranfield.cli._measuring import LIST_OPTIONS, Loaded, list_options
from cranfield.cli._output import refuse_file, say, say_line
from cranfield.cli._reading import READING_OPTIONS
from cranfield.cli._report import can_draw, experiment_report
from cranfield.cli._stages import stages
from cranfield.measures import Measuring

if TYPE_CHECKING:
    from cranfield.audits import Audit

_EXAMPLES = """\b
Examples:
  cranfield audit experiment.toml
  cranfield audit experiment.toml --preset canamares2020 --dry-run
  cranfield audit --test test.csv runs/*.tsv --train train.csv --out audited
"""


@click.command(epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--out", metavar="FOLDER", help="The output folder.  [default: the file's name without its ending]")
@click.option("--preset", metavar="NAME", help="usual, canamares2020 or measuring; overrides the file.")
@click.option("--budget", type=int, metavar="N", help="The maximum number of universes.  [default: 5000]")
@click.option(
    "--truth",
    metavar="FILE|METRIC",
    help="The true values: a file (system, value), or P@n, Recall@n or nDCG@n of a simulated world.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only print the numbers of training runs, rankings and universes, and an estimate of the time.",
)
@click.option("--test", metavar="FILE", help="The held-out ratings; FILE... are then ranked lists.")
@click.option("--train", metavar="FILE", help="With --test: the training ratings.")
@decision_option(Measuring.decisions()["threshold"], metavar="R")
@click.option("-m", "--metric", default="P@10", show_default=True, help="With --test: the metric to start from.")
@click.option(
    "--report/--no-report", "wanted", default=True, show_default=True, help="Also write a report and figures."
)
@click.option("--open", "show", is_flag=True, help="Open the report in a browser.")
@click.option(
    "--allow-code", is_flag=True, help="Allow the file to run the code that it names. Look at the code first."
)
@list_options()
@jobs_option
@common_options
def command(
    files: tuple[str, ...],
    load: Callable[..., Loaded],
    reading: dict[str, Any],  # noqa: ARG001, `load` has it
    out: str | None,
    preset: str | None,
    budget: int | None,
    truth: str | None,
    dry_run: bool,
    test: str | None,
    train: str | None,
    threshold: Any,
    metric: str,
    wanted: bool,
    show: bool,
    allow_code: bool,
    jobs: int | None,
    seed: int,
) -> None:
    """Audit a comparison: whether the winner survives other decisions.

    Give an experiment file, or ranked lists with --test. A seed, a preset or a budget given here overrides the file.
    """
    if not wanted:
        refuse_idle("with --no-report", "show")
    if test is not None:
        refuse_idle("with --test", "dry_run", "jobs", "allow_code")
        if out is None:
            refuse_idle("without --out", "wanted", "show")
        else:
            refuse_file(out)
        loaded = load(files, test, train, threshold)
        options = {"metric": metric, "threshold": threshold, "preset": preset, "budget": budget, "truth": truth}
        audited = _of_lists(loaded, seed=seed, **options)
        say(audited)
        if out is not None:
            _write(audited, Path(out), wanted, show)
        return
    refuse_idle("without --test", "train", "threshold", "metric", *LIST_OPTIONS, *READING_OPTIONS)
    if len(files) != 1:
        raise click.UsageError("an audit takes one experiment file; give --test to audit ranked lists")
    own_seed = seed if is_given("seed") else None
    from cranfield.audits import HOME, audit, plan_audit
    from cranfield.experiments import experiment_and_folder

    planned = plan_audit(files[0], out, preset=preset, budget=budget, truth=truth, seed=own_seed)
    if dry_run:
        refuse_idle("with --dry-run", "wanted", "show")
        say(planned)
        return
    if not settings.quiet:
        say_line(planned.estimate, err=True)
    _, folder = experiment_and_folder(files[0], out, own_seed)
    say(
        audit(
            files[0],
            out,
            preset=preset,
            budget=budget,
            truth=truth,
            seed=own_seed,
            jobs=jobs,
            stages=stages,
            report=experiment_report(wanted),
            allow_code=allow_code,
        )
    )
    page = folder / HOME / "report.html"
    _say_where(folder / HOME, page if page.is_file() else None, show)


def _write(audited: Audit, folder: Path, wanted: bool, show: bool) -> None:
    """Write an audit of given lists, with its page if that is wanted and can be drawn."""
    audited.save(folder)
    page = None
    if wanted and can_draw():
        from cranfield.reports import write_audit

        page, *_ = write_audit(audited, folder)
    _say_where(folder, page, show)


def _say_where(folder: Path, page: Path | None, show: bool) -> None:
    for line in ("", f"The audit: {folder}", *([] if page is None else [f"The report: {page}"])):
        say_line(line)
    if show and page is not None:
        webbrowser.open(page.resolve().as_uri())


def _of_lists(loaded: Loaded, **options: Any) -> Audit:
    from cranfield.audits import audit

    return audit(loaded.runs, test=loaded.test, train=loaded.train, strict=loaded.options.strict, **options)
