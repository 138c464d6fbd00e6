"""``cranfield audit``: whether the winner survives other decisions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cranfield.cli._measuring import LIST_OPTIONS, Loaded, list_options, threshold_option
from cranfield.cli._options import HelpfulCommand, common_options, is_given, jobs_option, refuse_idle
from cranfield.cli._output import inform, refuse_file, say, stages
from cranfield.cli._reading import READING_OPTIONS
from cranfield.cli._report import can_draw, experiment_options, experiment_report, out_option, say_where

_EXAMPLES = """\b
Examples:
  cranfield audit experiment.toml
  cranfield audit experiment.toml --preset canamares2020 --dry-run
  cranfield audit --test test.csv runs/*.tsv --train train.csv --out audited
"""


@click.command(cls=HelpfulCommand, epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@out_option
@click.option("--preset", metavar="NAME", help="usual, canamares2020 or measuring; overrides the file.")
@click.option("--budget", type=int, metavar="N", help="The maximum number of universes.  [default: 5000]")
@click.option(
    "--fewest",
    type=click.FloatRange(min=0),
    metavar="N|SHARE",
    help="The users that a universe must have to count: a number, or below 1 a share of the most.  [default: 0.1]",
)
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
@threshold_option
@click.option("-m", "--metric", default="P@10", help="With --test: the metric to start from.")
@experiment_options
@list_options
@jobs_option
@common_options
def audit_command(
    files: tuple[str, ...],
    load: Callable[..., Loaded],
    reading: dict[str, Any],  # noqa: ARG001, `load` has it
    out: str | None,
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
    **options: Any,
) -> None:
    """Audit a comparison: whether the winner survives other decisions.

    Give an experiment file, or ranked lists with --test. What is given here overrides the file.
    """
    if not wanted:
        refuse_idle("with --no-report", "show")
    if test is not None:
        refuse_idle("with --test", "dry_run", "jobs", "allow_code")
        if out is None:
            refuse_idle("without --out", "wanted", "show")
        else:
            refuse_file(out)
        options |= {"metric": metric, "threshold": threshold, "seed": seed}
        _audit_lists(load(files, test, train, threshold), out, wanted, show, **options)
        return
    refuse_idle("without --test", "train", "threshold", "metric", *LIST_OPTIONS, *READING_OPTIONS)
    if len(files) != 1:
        raise click.UsageError("an audit takes one experiment file; give --test to audit ranked lists")
    options["seed"] = seed if is_given("seed") else None
    from cranfield.audits import HOME, audit, plan_audit
    from cranfield.experiments import experiment_and_folder

    planned = plan_audit(files[0], out, **options)
    if dry_run:
        refuse_idle("with --dry-run", "wanted", "show")
        say(planned)
        return
    inform(planned.estimate, err=True)
    _, folder = experiment_and_folder(files[0], out, options["seed"])
    report = experiment_report(wanted)
    say(audit(files[0], out, jobs=jobs, stages=stages, report=report, allow_code=allow_code, **options))
    page = folder / HOME / "report.html"
    say_where([f"The audit: {folder / HOME}"], [page] if page.is_file() else [], show)


def _audit_lists(loaded: Loaded, out: str | None, wanted: bool, show: bool, **options: Any) -> None:
    """Audit given lists, and write the audit to a folder, with its page if that is wanted and can be drawn."""
    from cranfield.audits import audit

    audited = audit(loaded.runs, test=loaded.test, train=loaded.train, strict=loaded.options.strict, **options)
    say(audited)
    if out is None:
        return
    audited.save(Path(out))
    pages: list[Path] = []
    if wanted and can_draw():
        from cranfield.reports import write_audit

        pages = [write_audit(audited, Path(out))[0]]
    say_where([f"The audit: {Path(out)}"], pages, show)
