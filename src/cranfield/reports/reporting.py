"""Reports: turn the results of an evaluation, or of an experiment, into pages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from cranfield._checks import share
from cranfield._decisions import takes_decisions
from cranfield._errors import CranfieldError
from cranfield._figures import drawn_beside, unchecked_charts
from cranfield._files import write_text
from cranfield._numbers import count_text
from cranfield._own_code import may_be_called
from cranfield._record import Step
from cranfield._registry import Spelling, parse
from cranfield.assessments import Assessment
from cranfield.audits import AUDITED, Audit, audit_of
from cranfield.audits import HOME as AUDIT_HOME
from cranfield.biases import bias, ratio_to_random
from cranfield.comparisons import Comparison, SegmentComparison
from cranfield.data import Ratings
from cranfield.experiments import Decisions, Measured, Results
from cranfield.facts import across as across_facts
from cranfield.facts import experiment as experiment_facts
from cranfield.judgments import Context, NegativeGrades, as_judged
from cranfield.measures import (
    LEVEL,
    PLAIN,
    Averaging,
    AveragingOptions,
    Kind,
    Measuring,
    PredictedRatings,
    Scores,
    Segments,
    examine_for,
    join_folds,
    measure,
    measure_judged,
)
from cranfield.metrics import Metric, metric_label, properties_of
from cranfield.reports import figures
from cranfield.reports.audit_page import write_audit
from cranfield.reports.html_page import Reported, Section, page, sections_of
from cranfield.reports.sections.across import across_sections, datasets_section
from cranfield.reports.sections.bias import beside_random, bias_section
from cranfield.reports.sections.groups import file_name
from cranfield.splits import split_phrase

_TITLE = "Which system is better?"
_TITLE_OF_METRICS = "Which metric to trust?"


@takes_decisions(Averaging)
@drawn_beside
def report(
    scores: Scores,
    comparison: Comparison | None = None,
    assessment: Assessment | None = None,
    *,
    average: str | Averaging = "mean",
    level: float = LEVEL,
    variants: Iterable[Scores] = (),
    other_lists: Scores | None = None,
    segments: Sequence[Segments | SegmentComparison] = (),
    audit: Audit | None = None,
    predictions: PredictedRatings | None = None,
    title: str = _TITLE,
    lead: str = "",
    data: str = "",
    steps: Sequence[tuple[str, Step]] = (),
    sections: Sequence[Section] = (),
    **decisions: Unpack[AveragingOptions],
) -> str:
    """Return the report of an evaluation as one self-contained HTML page.

    Parameters
    ----------
    scores
        What was measured.
    comparison
        The results of the tests, if there were tests.
    assessment
        The assessment of the metrics themselves, if they were assessed.
    average, coverage, undefined, by, groups, level
        How the leaderboard averages, and the confidence of its intervals; see `Scores.frame`.
    variants
        The same systems measured under other decisions (threshold, condensed lists, further metrics and cut-offs), for
        the reader to choose from: see `other_decisions`. Kinds of average and coverage policies are varied in any case.
    other_lists
        The same metrics with the other kind of lists (condensed instead of full), shown for comparison; by default
        taken from the variants.
    segments
        The scores by group, compared or not; see `measure_segments` and `compare_segments`.
    audit
        Whether the winner survives other decisions, if it was audited; see `cranfield.audit`.
    predictions
        Predicted and true ratings, if systems predict ratings; see `cranfield.examine_predictions`.
    title, lead
        The heading, and a line below it.
    data
        The name of the data, for captions.
    steps
        Earlier stages by name, for the card.
    sections
        Further sections, shown before the card.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "y"], [5, 2, 4])
    >>> runs = {"mine": {"ann": ["x", "z"], "bob": ["z", "y"]}, "other": {"ann": ["z", "y"], "bob": ["y"]}}
    >>> html = report(cf.measure(runs, test, ["P@2", "RR"], threshold=4))
    >>> html.startswith("<!doctype html>") and "has the best average" in html
    True
    """
    averaging, level = Averaging.of(average, **decisions), share("level", level)
    others = (list(variants), steps, tuple(segments), data, other_lists, audit, predictions)
    reported = Reported(scores, comparison, assessment, averaging, level, *others)
    if title == _TITLE and comparison is None and assessment is not None:
        title = _TITLE_OF_METRICS
    return page(title, sections_of(reported, sections), lead=lead or _set_up(scores, comparison))


def _set_up(scores: Scores, comparison: Comparison | None, *more: str) -> str:
    """Return the set-up in a line: users, how they were tested, systems, and the main metric."""
    main = None if comparison is None else comparison.main
    metric = metric_label(scores.metrics[0]) if main is None else main.name
    return " · ".join([scores.whom, *more, count_text(len(scores.systems), "system"), metric])


def write_report(scores: Scores, path: str | Path, *results: Any, **options: Any) -> Path:
    """Write the report of an evaluation to an HTML file, and return its path; the options are those of `report`.

    Examples
    --------
    >>> import tempfile
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "bob"], ["x", "y"])
    >>> scores = cf.measure({"mine": {"ann": ["x"], "bob": ["z"]}}, test, "P@1")
    >>> write_report(scores, Path(tempfile.mkdtemp()) / "report.html", title="Mine").name
    'report.html'
    """
    return write_text(path, report(scores, *results, **options))


def _with_path(signature: inspect.Signature) -> inspect.Signature:
    first, *others = signature.parameters.values()
    path = inspect.Parameter("path", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="str | Path")
    return signature.replace(parameters=[first, path, *others], return_annotation="Path")


write_report.__signature__ = _with_path(inspect.signature(report))  # type: ignore[attr-defined]


_CUTOFFS = (5, 10, 20, 50, 100)
_GAINS = ("exp", "binary")
_MOST_VALUES, _CUTS = 6, (0.2, 0.4, 0.6, 0.8)


def other_decisions(
    runs: Any,
    test: Ratings,
    metrics: Sequence[str],
    *,
    thresholds: Sequence[float] | None = None,
    lists: Sequence[Kind] = ("full", "condensed"),
    train: Ratings | None = None,
    negative_grades: NegativeGrades = "judged",
) -> Iterator[Scores]:
    """Measure runs under other thresholds, with full and condensed lists, at further cut-offs and with other gains.

    Parameters
    ----------
    runs, test, train, negative_grades
        As for `measure`; runs are judged only once.
    metrics
        What was measured: each metric with winners (accuracy or value) is measured at the cut-offs 5, 10, 20, 50 and
        100 that the lists reach, and nDCG also with the gains ``exp`` and ``binary``.
    thresholds
        The lowest relevant ratings to try; by default every value of the scale except the lowest, if there are at most
        six, otherwise the values that divide the ratings into five equal parts.
    lists
        The kinds of lists to try: ``full`` and ``condensed``.

    Notes
    -----
    Lists with one relevant item were made for one threshold and one set of candidates, so nothing is varied for them.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "y"], [5, 2, 4])
    >>> runs = cf.read_runs({"mine": {"ann": list("abcdxy"), "bob": list("yabcde")}})
    >>> others = other_decisions(runs, test, ["P@5"], lists=["full"])
    >>> [(one.step.settings["threshold"], one.metrics) for one in others]
    [(4.0, ('P@5',)), (5.0, ('P@5',))]
    """
    judged = as_judged(runs, test, None, Context(train), negative_grades=negative_grades)
    systems = [judged_run.ranked for judged_run in judged if judged_run.ranked is not None]
    if any(system.one_relevant for system in systems):
        return
    winnable = [metric for metric in metrics if properties_of(metric).has_winners]
    varied = further_metrics(winnable, max(system.longest for system in systems))
    if not varied:
        return
    for threshold in _scale(test, negative_grades) if thresholds is None else thresholds:
        for kind in lists:
            measuring = Measuring(metrics=varied, threshold=threshold, lists=kind)
            judgments = judged[0].judgments.at(measuring.threshold)
            yield measure_judged([judged_run.fresh(judgments=judgments) for judged_run in judged], measuring)


def further_metrics(metrics: Sequence[str], depth: int) -> list[str]:
    """Return the metrics at all cut-offs within the lists' depth, and nDCG with other gains."""
    spellings: list[str] = []
    for metric in map(parse, metrics):
        cutoffs = [None] if metric.cutoff is None else sorted({metric.cutoff, *(n for n in _CUTOFFS if n <= depth)})
        gains = _GAINS if metric.name == "nDCG" and not metric.parameters else ()
        for parameters in (metric.parameters, *((("gain", gain),) for gain in gains)):
            spellings += [str(Spelling(metric.name, parameters, cutoff)) for cutoff in cutoffs]
    return list(dict.fromkeys(spellings))


def _scale(test: Ratings, negative_grades: NegativeGrades) -> list[float]:
    """Return the values of a rating scale except the lowest; for a long scale, those that cut it into five parts."""
    ratings = test.values if negative_grades == "judged" else test.values[test.values >= 0]
    values = np.unique(ratings)
    if len(values) > _MOST_VALUES:
        values = np.union1d(values[:1], np.quantile(ratings, _CUTS, method="higher"))
    return values[1:].tolist() if len(values) > 1 else [1.0]


@unchecked_charts()
def report_experiment(results: Results, folder: Path | None = None) -> list[Path]:
    """Write a page and figures for each set of ratings of an experiment; return the files.

    They are written into the folder of the experiment unless another is given. Several sets of ratings also have a page
    over all of them, ``report.html``. An audit has a section on each page, and
    its own page, figures and tables in the folder ``audit``.

    Pass this function as ``report`` to `cranfield.experiments.run`, so that the report is stored and updated together
    with the results that it shows.
    """
    home: Path = results.path if folder is None else folder
    paths = _over_datasets(results, home)
    audited = results.line.made(AUDITED, results.line.units("experiment")[0]) is not None
    audit = audit_of(results) if audited else None
    for data in results.data:
        predictions = _predictions(results, data)
        drawings, finish = _begin_figures(results, data, home, predictions)
        paths += [_page(results, data, home, audit, predictions), *drawings]
        finish()
    if audit is not None:
        experiment, names = results.experiment, ", ".join(results.data)
        title = f"{experiment.title.rstrip('?!.: ')}: does the winner survive other decisions?"
        paths += write_audit(audit, home / AUDIT_HOME, title=title, data=names)
    return paths


def _over_datasets(results: Results, folder: Path) -> list[Path]:
    """Write the page over all sets of ratings, its figures and its table; nothing for one set."""
    comparison = results.over_all
    if comparison is None:
        return []
    answers = {data: str(results.facts(data)[0]) for data in results.data}
    pages = {data: f"report-{data}.html" for data in results.data}
    sections = [*across_sections(comparison), datasets_section(answers, pages)]
    lead = f"{count_text(len(results.data), 'dataset')} · {count_text(len(results.experiment.systems), 'system')}"
    title = results.experiment.title
    if isinstance(comparison, across_facts.NothingOverDatasets):
        return [write_text(folder / "report.html", page(title, sections, lead=lead))]
    charts = {f"across-{kind}": comparison.plot(kind, style="paper") for kind in ("forest", "ranks", "rules")}
    drawings, finish = figures.begin_drawing(charts, folder / "figures")
    html = drawn_beside(page)(title, sections, lead=f"{lead} · {comparison.metrics[0]}")
    table = comparison.summary().titled("", "Over datasets").latex()
    paths = [write_text(folder / "report.html", html), write_text(folder / "tables" / "across.tex", table)]
    finish()
    return [*paths, *drawings]


def _page(results: Results, data: str, folder: Path, audit: Audit | None, predictions: PredictedRatings | None) -> Path:
    findings, parts = results.findings(data), list(results.measured(data))
    several, decisions = len(results.data) > 1, results.decided(data)
    experiment = replace(results.experiment, decisions=decisions)
    # Several folds or repetitions cannot be measured again as one.
    alone = parts[0] if len(parts) == 1 else None
    metrics = [metric for metric in findings.scores.metrics if may_be_called(metric)]
    columns, condensed = findings.scores.user_columns, _condensed(parts, decisions)
    variants: Iterable[Scores] = ()
    if alone is not None and metrics:
        # Drawn nonrelevant items depend on one threshold, and all other items are missing from the lists.
        thresholds = None if decisions.nonrelevant == "all" else [decisions.threshold]
        varied: dict[str, Any] = {"thresholds": thresholds, "lists": _lists(decisions), "train": alone.train}
        others = other_decisions(alone.judged, alone.test, metrics, **varied)
        variants = (replace(variant, user_columns=columns) for variant in others)
    return write_report(
        findings.scores,
        folder / (f"report-{data}.html" if several else "report.html"),
        findings.comparison,
        results.assessment(data),
        average=decisions.averaging,
        variants=variants,
        other_lists=None if condensed is None else replace(condensed, user_columns=columns),
        segments=results.segments(data),
        predictions=predictions,
        audit=audit,
        sections=_popularity_sections(parts, decisions, results.experiment.seed),
        title=f"{experiment.title} ({data})" if several else experiment.title,
        lead=_set_up(findings.scores, findings.comparison, *_test_part(results, data)),
        data=data,
        steps=results.steps(data),
    )


def _test_part(results: Results, data: str) -> list[str]:
    """Return how the test part was made, in words, and how often."""
    decisions, times = results.decided(data), results.experiment.repetitions
    words = results.experiment.labels.get(decisions.split) or split_phrase(decisions.split)
    return [words, *([f"{times} repetitions"] if times > 1 else [])]


def _predictions(results: Results, data: str) -> PredictedRatings | None:
    """Return predicted and true ratings of all folds, if a metric uses predicted ratings."""
    metrics = results.findings(data).scores.metrics
    examined = [examine_for(metrics, part.judged, train=part.train) for part in results.measured(data)]
    return PredictedRatings.join([part for part in examined if part is not None]) if any(examined) else None


def _condensed(parts: list[Measured], decisions: Decisions) -> Scores | None:
    """Return the scores with condensed lists, for all folds and repetitions together; None if that is not possible."""
    # A list with one relevant item has fixed candidates.
    if decisions.relevant == "one" or _lists(decisions) != ("full", "condensed"):
        return None
    measuring = {**decisions.measuring.as_dict(), "lists": "condensed"}
    measured = [(part.window, measure(part.judged, **measuring, train=part.train)) for part in parts]
    return join_folds([scores if window is None else scores.in_window(window) for window, scores in measured])


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
    charts = {"averages": findings.scores.plot(metric=metric, averaging=averaging, style="paper")}
    if findings.comparison is not None and findings.comparison.main is not None:
        charts["differences"] = findings.comparison.plot(style="paper")
        charts["wins"] = findings.comparison.plot("wins", metric=findings.comparison.main.metric, style="paper")
    for segment in results.segments(data):
        if len(segment.averaged.scores.systems) > 1:
            chart = segment.averaged.plot(metric=metric, averaging=averaging, style="paper")
            charts[f"segments-{file_name(segment.averaged.name)}"] = chart
    if predictions is not None:
        charts |= {f"predictions-{kind}": predictions.plot(kind, style="paper") for kind in predictions.figures}
    return figures.begin_drawing({f"{data}-{name}": chart for name, chart in charts.items()}, folder / "figures")


_MOST = 10_000_000
"""Maximum total number of items in the lists; for more, use `cranfield bias`, because a report should not take long."""


def _popularity_sections(parts: Sequence[Measured], decisions: Decisions, seed: int) -> list[Section]:
    """Return the sections of an experiment's first part, whose lists are measured again; none for other designs."""
    part = parts[0]
    metrics = _metrics(decisions)
    items = sum(judged.ranked.n_entries for judged in part.judged if judged.ranked is not None)
    if not metrics or not _is_plain(decisions) or items > _MOST:
        return []
    options = {"test": part.test, "train": part.train, "threshold": decisions.threshold, "seed": seed}
    again = experiment_facts.MeasuredAgain(len(parts), plain_means=decisions.averaging != PLAIN)
    try:
        times = ratio_to_random(part.judged, metrics=metrics, **options)
        answer = bias(runs=part.judged, metric=metrics[0], alpha=decisions.alpha, **options)
    except CranfieldError:  # for example, lists for users who are not test users
        return []
    return [bias_section(answer, *([again] if again.sentence else [])), beside_random(times)]


def _is_plain(decisions: Decisions) -> bool:
    """Whether lists hold all items that the user has not rated in training, relevant or not (AR, AI)."""
    ranking = decisions.ranking
    plain = (ranking.lists, ranking.candidates, ranking.relevant, ranking.keep_seen) == ("full", "all", "all", False)
    return plain and ranking.drawn is None and not decisions.averages_draws


def _metrics(decisions: Decisions) -> list[str]:
    """Return the metrics that have a cut-off and a closed form for a random ranking; the first is the main one."""
    wanted = [Metric.of(metric) for metric in decisions.metrics if may_be_called(metric)]
    return [str(metric) for metric in wanted if metric.definition.averages_ties and metric.cutoff is not None]
