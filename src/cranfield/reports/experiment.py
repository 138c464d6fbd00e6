"""The report of an experiment: a page and figures for each of its sets of ratings, in its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield._figures import unchecked_charts
from cranfield._own_code import may_be_called
from cranfield.audits import AUDITED, Audit, audit_of
from cranfield.audits import HOME as AUDIT_HOME
from cranfield.experiments import Decisions, Measured, Results
from cranfield.measures import (
    FIGURES,
    Kind,
    PredictedRatings,
    Scores,
    examine_for,
    in_window,
    join_folds,
    measure,
    over_folds,
)
from cranfield.reports import figures
from cranfield.reports.audit_page import write_audit
from cranfield.reports.decisions import other_decisions
from cranfield.reports.popularity import popularity_sections
from cranfield.reports.reporting import write_report
from cranfield.reports.sections.segments import file_name


@unchecked_charts()
def report_experiment(results: Results, folder: Path | None = None) -> list[Path]:
    """Write a page and figures for each set of ratings of an experiment; return the files.

    They are written into the folder of the experiment unless another is given. An audit has a section on each page, and
    its own page, figures and tables in the folder ``audit``.

    Pass this function as ``report`` to `cranfield.experiments.run`, so that the report is stored and updated together
    with the results that it shows.
    """
    home, audit = results.path if folder is None else folder, _audit(results)
    paths = []
    for data in results.data:
        predictions = _predictions(results, data)
        drawings, finish = _begin_figures(results, data, home, predictions)
        paths += [_page(results, data, home, audit, predictions), *drawings]
        finish()
    if audit is not None:
        experiment, names = results.experiment, ", ".join(results.data)
        title = f"{experiment.title.rstrip('?!.: ')}: does the winner survive other decisions?"
        paths += write_audit(audit, home / AUDIT_HOME, title=title, lead=str(experiment), data=names)
    return paths


def _audit(results: Results) -> Audit | None:
    """Return the audit, if the experiment was run with one."""
    whole = results.line.units("experiment")[0]
    return None if results.line.made(AUDITED, whole) is None else audit_of(results)


def _page(results: Results, data: str, folder: Path, audit: Audit | None, predictions: PredictedRatings | None) -> Path:
    findings, parts = results.findings(data), list(results.measured(data))
    several, decisions = len(results.data) > 1, results.decided(data)
    experiment = replace(results.experiment, decisions=decisions)
    # Several folds or repetitions cannot be measured again as one.
    alone = parts[0] if len(parts) == 1 else None
    metrics = [metric for metric in findings.scores.metrics if may_be_called(metric)]
    columns, condensed = findings.scores.user_columns, _condensed(parts, decisions)
    return write_report(
        folder / (f"report-{data}.html" if several else "report.html"),
        findings.scores,
        findings.comparison,
        results.assessment(data),
        average=decisions.averaging,
        variants=()
        if alone is None or not metrics
        else (
            replace(variant, user_columns=columns)
            for variant in other_decisions(
                alone.judged,
                alone.test,
                metrics,
                thresholds=_thresholds(decisions),
                lists=_lists(decisions),
                train=alone.train,
            )
        ),
        other_lists=None if condensed is None else replace(condensed, user_columns=columns),
        segments=results.segments(data),
        predictions=predictions,
        audit=audit,
        sections=popularity_sections(parts, decisions, results.experiment.seed),
        title=f"{experiment.title} ({data})" if several else experiment.title,
        lead=str(experiment),
        data=data,
        steps=results.steps(data),
    )


def _predictions(results: Results, data: str) -> PredictedRatings | None:
    """Return predicted and true ratings of all folds, if a metric uses predicted ratings."""
    metrics = results.findings(data).scores.metrics
    examined = [examine_for(metrics, part.judged, train=part.train) for part in results.measured(data)]
    return over_folds([part for part in examined if part is not None]) if any(examined) else None


def _condensed(parts: list[Measured], decisions: Decisions) -> Scores | None:
    """Return the scores with condensed lists, for all folds and repetitions together; None if that is not possible."""
    # A list with one relevant item has fixed candidates.
    if decisions.relevant == "one" or _lists(decisions) != ("full", "condensed"):
        return None
    measuring = {**decisions.measuring.as_dict(), "lists": "condensed"}
    return join_folds([_measured(part, measuring) for part in parts])


def _measured(part: Measured, measuring: Mapping[str, Any]) -> Scores:
    scores = measure(part.judged, **measuring, train=part.train)
    return scores if part.window is None else in_window(scores, part.window)


def _thresholds(decisions: Decisions) -> list[float] | None:
    """Return the thresholds that the lists can be measured with; None for all values of the scale."""
    # Drawn nonrelevant items depend on one threshold, and all other items are missing from the lists.
    return None if decisions.nonrelevant == "all" else [decisions.threshold]


def _lists(decisions: Decisions) -> tuple[Kind, ...]:
    """Return the kinds of lists (full, condensed) that can be measured."""
    if decisions.ranking.drawn is not None:
        return ("full",)
    return ("condensed",) if decisions.lists == "condensed" else ("full", "condensed")


def _begin_figures(
    results: Results, data: str, folder: Path, predictions: PredictedRatings | None
) -> tuple[list[Path], Callable[[], None]]:
    findings, averaging = results.findings(data), results.experiment.decisions.averaging
    metric = findings.scores.metrics[0]
    charts = {"averages": figures.averages(findings.scores, metric, averaging=averaging, style="paper")}
    if findings.comparison is not None and metric in findings.comparison.metrics:
        charts["wins"] = figures.wins(findings.comparison, metric, style="paper")
    for segment in results.segments(data):
        if len(segment.averaged.scores.systems) > 1:
            chart = figures.segments(segment.averaged, metric, averaging=averaging, style="paper")
            charts[f"segments-{file_name(segment.averaged.name)}"] = chart
    if predictions is not None:
        charts |= {f"predictions-{kind}": predictions.plot(kind, style="paper") for kind in FIGURES}
    files = folder / "figures"
    written = {(files / f"{data}-{name}.pdf", files / f"{data}-{name}.svg"): chart for name, chart in charts.items()}
    return [path for both in written for path in both], figures.begin_saving(written)
