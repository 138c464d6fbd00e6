"""The decision explorer: the reader changes decisions and sees how the order changes; all numbers are precomputed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import CranfieldError, SettingError
from cranfield._registry import parse
from cranfield._terminal import shown
from cranfield.comparisons import AVERAGES as TESTABLE
from cranfield.comparisons import Comparison, chosen_test, make_samples, pairs_of
from cranfield.facts import scores as scores_facts
from cranfield.measures import PLAIN, Averaging, Scores
from cranfield.metrics import properties_of
from cranfield.reports import figures
from cranfield.reports.html_page import Reported, Section, on_page
from cranfield.reports.markup import figure, packed, paragraphs

AVERAGES = ("mean", "weighted(by=relevant)", "median", "trimmed(share=0.1)", "geometric(form=adjusted, epsilon=0.01)")
"""The kinds of average that a reader may choose from."""

# Maximum number of averages, about 3 MB in the page. Beyond it only the page's own kind of average is offered, and then
# fewer other decisions.
_MOST_NUMBERS = 300_000

DIMENSIONS = ("test", "threshold", "lists", "metric", "parameters", "cutoff", "average", "coverage")
_TITLES = (
    "Test set",
    "Relevant from",
    "Lists",
    "Metric",
    "Gain and other parameters",
    "Cut-off",
    "Average",
    "Users without a list",
)


@dataclass(frozen=True, eq=False)
class Explored:
    """Averages and p-values under many combinations of decisions.

    The p-values compare each system with the best one of its combination, corrected for all pairs; they are NaN for
    that system itself, and for averages that have no test. The test is Student's paired t-test with Bonferroni's
    correction, which is fast and never gives smaller p-values than max_t; `with_comparison` replaces these by the
    p-values shown elsewhere on the page.
    """

    systems: tuple[str, ...]
    options: tuple[tuple[Any, ...], ...]  # the choices for each of `DIMENSIONS`
    rows: NDArray[np.int64]  # combinations × dimensions: the index of each choice among the options
    means: NDArray[np.float64]  # combinations × systems
    p: NDArray[np.float64]  # combinations × systems
    lower_is_better: tuple[bool, ...]  # for each option of the dimension ``metric``
    has_winners: tuple[bool, ...]  # likewise
    left_out: str = ""  # what was not computed because the page would become too large
    alpha: float = 0.05
    has_tests: bool = False  # whether the p-values include those of the page's own tests

    def find(self, **choices: Any) -> int:
        """Return the row of a combination; dimensions with a single choice may be omitted."""
        wanted = np.ones(len(self.rows), dtype=bool)
        for place, name in enumerate(DIMENSIONS):
            if name in choices:
                if choices[name] not in self.options[place]:
                    raise SettingError(f"{name}={choices[name]!r} was not computed; known: {self.options[place]}")
                wanted &= self.rows[:, place] == self.options[place].index(choices[name])
        if np.count_nonzero(wanted) != 1:
            raise SettingError(f"{choices} matches {np.count_nonzero(wanted)} combinations, not one; give more choices")
        return int(np.argmax(wanted))

    def with_comparison(self, comparison: Comparison, test: str, scores: Scores, averaging: Averaging) -> Explored:
        """Return a copy with the p-values of a comparison of these scores, so that a pair has only one on the page."""
        p = self.p.copy()
        for metric in comparison.metrics:
            label = self.label(test, scores, metric, averaging)
            if not all(value in choices for value, choices in zip(label.values(), self.options)):
                continue
            row = self.find(**label)
            lower = self.lower_is_better[self.rows[row, DIMENSIONS.index("metric")]]
            best = self.systems[_best(self.means[row], lower)]
            for pair in comparison.of_metric(metric).iter_rows(named=True):
                systems = [pair["system_a"], pair["system_b"]]
                if best in systems:
                    systems.remove(best)
                    p[row, self.systems.index(systems[0])] = pair["p_corrected"]
        return replace(self, p=p, alpha=comparison.alpha, has_tests=True)

    def label(self, test: str, scores: Scores, metric: str, averaging: Averaging = PLAIN) -> dict[str, Any]:
        """Return the choices that an average of a metric belongs to, for `find`."""
        # If every user has a list, both policies are the same and only one is offered.
        known = averaging.coverage in self.options[DIMENSIONS.index("coverage")]
        policy = averaging.coverage if known else "full"
        return dict(zip(DIMENSIONS, _label(test, scores, metric, str(averaging.average), policy)))

    def stays_first(self, start: int) -> scores_facts.ScoredFirst | None:
        """Return how often the best system of a row is best in all rows; None if nothing was varied."""
        won = [self.has_winners[metric] for metric in self.rows[:, DIMENSIONS.index("metric")]]
        kept = np.flatnonzero(won)
        if start not in kept or len(kept) < 2:
            return None
        lower = [self.lower_is_better[metric] for metric in self.rows[:, DIMENSIONS.index("metric")]]
        leader = _best(self.means[start], lower[start])
        first = np.array([_best(self.means[row], lower[row]) == leader for row in kept])
        by_option = tuple(
            (title, _said(name, option), int(first[chosen].sum()), int(chosen.sum()))
            for name, title, options, column in zip(DIMENSIONS, _TITLES, self.options, self.rows[kept].T)
            for option, chosen in ((option, column == place) for place, option in enumerate(options))
            if chosen.any() and not chosen.all()
        )
        return scores_facts.ScoredFirst(self.systems[leader], int(first.sum()), len(kept), by_option)

    def as_dict(self) -> dict[str, Any]:
        """Return everything in compact form, ready for JSON; numbers are 32-bit floats in base64."""
        strides = np.cumprod([1, *(len(choices) for choices in self.options[:-1])])
        return {
            "systems": list(map(shown, self.systems)),
            "dimensions": [
                {"name": name, "title": title, "options": [_said(name, option) for option in options]}
                for name, title, options in zip(DIMENSIONS, _TITLES, self.options)
            ],
            "keys": (self.rows @ strides).tolist(),
            "means": packed(self.means, "<f4"),
            "p": packed(self.p, "<f4"),
            "lower": list(self.lower_is_better),
            "alpha": self.alpha,
        }


def explore(variants: Sequence[tuple[str, Scores]], *, averaging: Averaging = PLAIN) -> Explored:
    """Average the same systems under every combination of decisions, and test each system against the best.

    Each of the ``variants`` comes with the name of its test set. Thresholds, condensed lists, metrics and cut-offs are
    those of the scores; kinds of average and coverage policies (``reduced``: over the lists that every system gives)
    are varied here. The page's own kind of average is offered in addition to `AVERAGES`; if there are too many, only
    that one is kept. If groups count equally, only averages that can be taken of groups are offered.
    """
    systems = variants[0][1].systems
    for _, scores in variants:
        if scores.systems != systems:
            raise SettingError("the explorer needs the same systems in the same order under all decisions")
    policies = ("full",) if all(scores.covered.all() for _, scores in variants) else ("full", "reduced")
    variants, kinds, left_out = _within(variants, len(systems) * len(policies), averaging)
    labels, means, p = [], [], []
    for test, scores in variants:
        for kind in kinds:
            for policy in policies:
                # If every user has a list, the coverage policies give the same result.
                if policy == "full" or not scores.covered.all():
                    varied = averaging.with_(average=kind, coverage=policy)
                    averages = scores.average(varied)
                    # Tests are over users, because the lists of one user are not independent.
                    chances = _against_best(scores, averages, varied.with_(by="user"))
                means.append(averages.T)
                p.append(chances.T)
                labels += [_label(test, scores, metric, kind, policy) for metric in scores.metrics]
    options = _options(labels)
    rows = np.array([[own.index(value) for own, value in zip(options, label)] for label in labels], dtype=np.int64)
    of_metrics: dict[str, tuple[bool, bool]] = {}
    for _, scores in variants:
        for metric, lower in zip(scores.metrics, scores.lower_is_better):
            of_metrics[parse(metric).name] = lower, properties_of(metric).has_winners
    lower_is_better, has_winners = zip(*(of_metrics[name] for name in options[DIMENSIONS.index("metric")]))
    kept = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    numbers = np.concatenate(means)[kept], np.concatenate(p)[kept]
    return Explored(systems, options, rows[kept], *numbers, lower_is_better, has_winners, left_out)


def _options(labels: Sequence[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
    """Return the choices of each dimension; thresholds and cut-offs are in ascending order."""
    options = []
    for name, column in zip(DIMENSIONS, zip(*labels)):
        choices = list(dict.fromkeys(column))
        if name in ("threshold", "cutoff"):
            choices.sort(key=lambda value: np.inf if value is None else value)
        options.append(tuple(choices))
    return tuple(options)


def _within(
    variants: Sequence[tuple[str, Scores]], each: int, averaging: Averaging
) -> tuple[Sequence[tuple[str, Scores]], tuple[str, ...], str]:
    """Return the variants (at least the first) and kinds of average that fit on a page, and what is left out."""
    numbers = each * np.cumsum([len(scores.metrics) for _, scores in variants])
    average = str(averaging.average)
    offered = AVERAGES if averaging.groups == "pooled" else ("mean", "weighted(by=relevant)")
    kinds = tuple(dict.fromkeys([*offered, average]))
    if numbers[-1] * len(kinds) <= _MOST_NUMBERS:
        return variants, kinds, ""
    kept = max(1, int(np.searchsorted(numbers, _MOST_NUMBERS, side="right")))
    fewer = f" and {len(variants) - kept} sets of other decisions" if kept < len(variants) else ""
    return variants[:kept], (average,), f"kinds of average other than the {average}{fewer}"


def _label(test: str, scores: Scores, metric: str, kind: str, policy: str) -> tuple[Any, ...]:
    spelling, settings = parse(metric), scores.step.settings
    parameters = ", ".join(f"{name}={value}" for name, value in spelling.parameters)
    lists = settings.get("lists", "full")
    return test, settings.get("threshold"), lists, spelling.name, parameters, spelling.cutoff, kind, policy


def _against_best(scores: Scores, averages: NDArray[np.float64], averaging: Averaging) -> NDArray[np.float64]:
    """Return systems × metrics: p-values against the best system of each metric, corrected for all pairs."""
    p = np.full(averages.shape, np.nan)
    if len(scores.systems) < 2 or averaging.kind.spelling.name not in TESTABLE:
        return p
    try:
        samples, _ = make_samples(scores, averaging)
    except CranfieldError:
        # Nothing can be tested, for example if all weights are 0; the page then shows averages without a verdict.
        return p
    places = [scores.metric(sample.metric) for sample in samples]
    best = [_best(averages[:, place], scores.lower_is_better[place]) for place in places]
    against = []
    for sample, system in zip(samples, best):
        first, second = pairs_of(sample.systems, sample.systems[system])
        against.append(replace(sample, first=first, second=second))
    pairs = len(scores.systems) * (len(scores.systems) - 1) // 2
    test = chosen_test(against, "student", alpha=0.05, seed=0)
    for sample, place, verdict in zip(against, places, test(against)):
        p[sample.first, place] = np.minimum(pairs * verdict.p, 1.0)
    return p


def _best(averages: NDArray[np.float64], lower_is_better: bool) -> int:
    """Return the index of the best system, as 32-bit floats like the page; the first one if several are equal."""
    signed = (-averages if lower_is_better else averages).astype(np.float32)
    return int(np.argmax(np.where(np.isnan(signed), -np.inf, signed)))


_NONE = {"threshold": "any rating of at least 1", "cutoff": "none", "parameters": "standard"}


def _said(dimension: str, value: Any) -> str:
    """Return an option in words."""
    if value is None or value == "":
        return _NONE[dimension]
    if dimension == "coverage":
        return {"full": "count as 0", "reduced": "are left out"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


_QUICK = "They come from a t-test with Bonferroni's correction."
_TESTED = (
    "Under the decisions of this page they are those of the table of pairs; under other decisions they come from a "
    "t-test with Bonferroni's correction, which is quick and a little stricter."
)


def explorer(explored: Explored, start: int, truth: Mapping[str, float] | None = None) -> Section:
    """Return the explorer, which starts at the row that the page reports; ``truth`` has the true values, if known."""
    facts = [
        "Every number was computed beforehand from the same recommendations. Arrows show how many places a system "
        "moves compared with the decisions of this page. "
        f"The best system and those not significantly worse (n.s., level {explored.alpha:g}) are blue. p-values "
        "compare each system with the best and are corrected for all pairs. "
        f"{_TESTED if explored.has_tests else _QUICK}"
    ]
    if explored.left_out:
        facts.append(f"To keep this page small it leaves out {explored.left_out}.")
    data = {**explored.as_dict(), "start": start}
    if truth is not None:
        data["truth"] = [float(np.float32(truth[system])) for system in explored.systems]
    counts, drawn = explored.stays_first(start), ""
    opening: Any = "Choose another metric, cut-off, threshold or average and see what it does to the order."
    if counts is not None:
        opening, caption = counts, f"How often {counts.system} is first, for each choice."
        drawn = figure("explorer-first", figures.stays_first(counts), caption)
    more = '<div id="explorer-root" class="explorer"></div>' + paragraphs(facts)
    more += "<noscript><p>The explorer needs the script of this page.</p></noscript>"
    return Section("explorer", "What if I decide otherwise?", paragraphs([opening]) + drawn, more, data=data)


@on_page(60)
def _on_page(reported: Reported) -> Section | None:
    scores = reported.scores
    if len(scores.systems) < 2 or scores.n_lists == 0:
        return None
    measured = [("test", part) for part in (scores, *reported.variants)]
    explored = explore(measured, averaging=reported.averaging)
    if reported.comparison is not None:
        explored = explored.with_comparison(reported.comparison, "test", scores, reported.averaging)
    start = explored.find(**explored.label("test", scores, scores.metrics[0], reported.averaging))
    return explorer(explored, start)
