"""``cranfield run``: everything from an experiment file to a report."""

from __future__ import annotations

import webbrowser

import click

from cranfield._settings import settings
from cranfield.audits import AUDITED, audit_of
from cranfield.cli._given import is_given, refuse_idle
from cranfield.cli._going_on import AGAIN, goes_on
from cranfield.cli._group import common_options, jobs_option, unpack_option
from cranfield.cli._measuring import tell
from cranfield.cli._output import say, say_line
from cranfield.cli._report import experiment_report
from cranfield.cli._stages import stages
from cranfield.experiments import plan, run

_EXAMPLES = """\b
Examples:
  cranfield run experiment.toml
  cranfield run experiment.toml --dry-run
  cranfield run experiment.toml --out elsewhere --open
"""


@click.command(epilog=_EXAMPLES)
@click.argument("experiment", metavar="FILE")
@click.option("--out", metavar="FOLDER", help="The output folder.  [default: the file's name without its ending]")
@click.option("--dry-run", is_flag=True, help="Only print what would be done, and roughly how long it would take.")
@click.option(
    "--report/--no-report", "wanted", default=True, show_default=True, help="Also write a report and figures."
)
@click.option("--open", "show", is_flag=True, help="Open the report in a browser.")
@click.option(
    "--allow-code", is_flag=True, help="Allow the file to run the code that it names. Look at the code first."
)
@click.option("--strict", is_flag=True, help="Turn warnings about likely mistakes in given lists into errors.")
@jobs_option
@unpack_option
@common_options
@goes_on(AGAIN)
def command(
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
    given_seed = seed if is_given("seed") else None
    if dry_run:
        say(plan(experiment, out, seed=given_seed, further=(AUDITED,), report=wanted, strict=strict))
        return
    results = run(
        experiment,
        out,
        seed=given_seed,
        jobs=jobs,
        stages=stages,
        further=(AUDITED,),
        report=experiment_report(wanted),
        allow_code=allow_code,
        strict=strict,
    )
    say(results)
    intervals = (result["intervals"] for result in results.card()["results"].values())
    tell(f"in brackets: {kind}" for kind in dict.fromkeys(intervals) if kind)
    if results.experiment.audit is not None:
        say(audit_of(results))
    if (missing := results.missing()) and not settings.quiet:
        say(f"not reported: {'; '.join(missing)}", err=True)
    pages = results.pages
    for line in ("", f"The results: {results.path}", *(f"The report: {page}" for page in pages)):
        say_line(line)
    if show and pages:
        webbrowser.open(pages[0].resolve().as_uri())
