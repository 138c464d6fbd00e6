"""Metrics in expectation over the draw of non-relevant targets, without drawing any.

A sampled list holds fixed items (the relevant ones, or all test items) and N of the M other candidates, by chance.
Of the a candidates that the system puts above a fixed item, the number drawn is hypergeometric, and so the rank of the
item, and every metric that is a sum over ranks, has an exact expectation. It needs the ranks in the whole ranking only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import InputError, SettingError
from cranfield._record import Step
from cranfield.biases.random_rankings import RandomTargets
from cranfield.data import Ratings
from cranfield.data.relevance import AUTO
from cranfield.measures.context import Context
from cranfield.measures.definition import Metric
from cranfield.measures.inputs import as_test
from cranfield.measures.judged import Judged
from cranfield.measures.judging import judged_by
from cranfield.measures.measuring import DEFAULT_METRICS, Measuring, as_judged, measure_judged
from cranfield.measures.metrics.gains import gain_of, kept_name, relative_gain_of, within_reach
from cranfield.measures.metrics.graded import logarithmic
from cranfield.measures.scores import Scores
from cranfield.rankings.lists import Ties
from cranfield.rankings.run import Run

SUPPORTED = ("P", "Recall", "HitRate", "RR", "AP", "DCG", "nDCG")
"""The metrics whose expectation over the draw is known exactly."""

# So many probabilities are held at a time.
_CELLS = 1 << 22


def expected_over_draws(
    runs: Any,
    test: Any,
    metrics: Sequence[str | Metric] | str | Metric = DEFAULT_METRICS,
    *,
    nonrelevant: int | None = None,
    unrated: int | None = None,
    relevant: Literal["all", "one"] = "all",
    train: Ratings | None = None,
    threshold: float | str | None = AUTO,
    ties: Ties = "trec_eval",
    keep_seen: bool = False,
    candidates: Literal["all", "test"] = "all",
) -> Scores:
    r"""Return metrics in expectation over the draw of N_u, from rankings of all candidates.

    A fixed item with f − 1 fixed items and a of the M other candidates above it has the rank f + X, where

    .. math:: P(X = x) = \binom{a}{x}\binom{M - a}{N - x} / \binom{M}{N}

    What is measured on drawn lists (`recommend` with ``nonrelevant`` or ``unrated``) differs from it by the luck of the
    draw only.

    Parameters
    ----------
    runs, test, metrics, threshold, ties
        As for `measure`. The runs rank all candidates (``length="all"``); metrics are P, Recall, HitRate, RR, AP, DCG
        and nDCG, P with a cut-off.
    nonrelevant, unrated
        N: how many items that are not relevant, or that the user never rated, are drawn for a list; one of the two. A
        user with fewer has all of them.
    relevant
        ``all``: one list per user, with all relevant items (with ``unrated``, all test items). ``one``: a list for each
        relevant item (1R).
    train, keep_seen
        The training ratings, whose items are no candidates of their user unless ``keep_seen`` is true.
    candidates
        What the runs rank: ``all`` items of training set, test set and lists, or those with a ``test`` rating.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of([1], ["b"])
    >>> runs = {"mine": {1: ["a", "b", "c", "d"]}}
    >>> expected_over_draws(runs, test, "P@1", nonrelevant=2).values.round(4).tolist()
    [[[0.3333]]]
    """
    measuring = Measuring(metrics=metrics, threshold=threshold)
    for metric in measuring.wanted:
        _check_metric(metric)
    check.one_of("relevant", relevant, ("all", "one"))
    number = _number_drawn(nonrelevant, unrated, relevant)
    judged = as_judged(runs, as_test(test), threshold, Context(train), ties=ties)
    if any(lists.tied_from is not None for lists in judged):
        raise SettingError("the expectation over draws needs lists without averaged ties; choose ties='trec_eval'")
    baseline = RandomTargets.of(judged, keep_seen=check.flag("keep_seen", keep_seen), candidates=candidates)
    for lists in judged:
        _check_whole(lists, baseline.sizes)
    fixed = baseline.inside & (judged[0].judgments.relevant | (unrated is not None))
    others = baseline.sizes - np.bincount(judged[0].judgments.lists[fixed], minlength=judged[0].n_lists)
    draws = [_DrawnLists(lists, others, np.minimum(number, others), unrated is not None) for lists in judged]
    if relevant == "one":
        scores = _one_relevant_scores(draws, measuring, train)
    else:
        values = [[_expected(metric, system) for metric in measuring.wanted] for system in draws]
        scores = replace(measure_judged(judged, measuring), values=np.array(values))
    name = "nonrelevant" if unrated is None else "unrated"
    step = Step("measure", {**scores.step.settings, name: number, "relevant": relevant, "over": "all draws"})
    return replace(scores, step=step)


def _number_drawn(nonrelevant: int | None, unrated: int | None, relevant: str) -> int:
    if (nonrelevant is None) == (unrated is None):
        raise SettingError("give one of nonrelevant=... and unrated=...: how many items are drawn for a list")
    if unrated is not None and relevant == "one":
        raise SettingError(
            "unrated=... keeps all test items of a user in one list; use nonrelevant=... for relevant='one'"
        )
    if unrated is not None:
        return check.whole("unrated", unrated, at_least=0)
    return check.whole("nonrelevant", nonrelevant)


def _check_metric(metric: Metric) -> None:
    """Refuse a metric without an exact expectation."""
    extra = {name for name, _ in metric.parameters} - {"gain"}
    if metric.definition.name not in SUPPORTED or extra:
        raise SettingError(
            f"{metric} has no exact expectation over draws; ask for {', '.join(SUPPORTED)}, or measure drawn lists"
        )
    if metric.definition.name == "P" and metric.cutoff is None:
        raise SettingError("P without cut-off divides by the length of the list; give it a cut-off, as in P@10")


def _check_whole(judged: Judged, sizes: NDArray[np.int64]) -> None:
    """Refuse lists that were cut: what is beyond their end would be taken for what the system cannot rank."""
    lengths, longest = judged.lengths, judged.depth
    at_end = lengths == longest
    run = judged.run
    length = next(
        (step.settings.get("length") for step in (run.history if run else ()) if step.action == "recommend"), "all"
    )
    cut = length != "all" and longest == length and bool((sizes[at_end] > longest).any())
    if cut or (at_end.mean() > 0.5 and (sizes[at_end] > longest).all()):
        name = "" if judged.ranked is None else judged.ranked.name
        raise InputError(
            f"the lists of {name} end at {longest:,} of {int(sizes.max()):,} candidates, so that the ranks beyond are "
            "not known",
            remedy="rank all candidates: recommend with length='all' (--length all)",
        )


@dataclass(frozen=True, eq=False)
class _DrawnLists:
    """Whole rankings, and from how many candidates how many are drawn for each list."""

    judged: Judged
    others: NDArray[np.int64]
    drawn: NDArray[np.int64]
    all_rated_fixed: bool

    @property
    def fixed(self) -> NDArray[np.bool_]:
        """Whether each hit is in every list."""
        return np.ones(len(self.judged), dtype=np.bool_) if self.all_rated_fixed else self.judged.relevant

    def weighed(self, weights: NDArray[np.float64], where: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return E[weight of its rank] of the hits in ``where``, 0 of others; ``weights`` are of ranks 1, 2, ..."""
        judged, fixed = self.judged, self.fixed
        fixed_above = judged.above(fixed)
        above = judged.ranks - 1 - fixed_above
        others, drawn = self.others[judged.lists], self.drawn[judged.lists]
        # A hit that is drawn itself leaves one candidate and one draw less.
        own = (~fixed).astype(np.int64)
        share = np.where(fixed, 1.0, np.divide(drawn, others, out=np.zeros(len(judged)), where=others > 0))
        values = np.zeros(len(judged))
        chosen = np.flatnonzero(where & (share > 0))
        values[chosen] = share[chosen] * mean_weight(
            weights, fixed_above[chosen], above[chosen], (others - own)[chosen], (drawn - own)[chosen]
        )
        return values


def mean_weight(
    weights: NDArray[np.float64],
    before: NDArray[np.int64],
    above: NDArray[np.int64],
    others: NDArray[np.int64],
    drawn: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return E[w(before + 1 + X)], X being how many of ``drawn`` from ``others`` are among those ``above``.

    ``weights`` are w(1), w(2), ...; w is 0 beyond.

    Examples
    --------
    >>> unit = np.array([1])
    >>> mean_weight(np.array([1.0]), 0 * unit, unit, 3 * unit, 2 * unit).round(4).tolist()
    [0.3333]
    """
    logs = np.append(0.0, np.cumsum(np.log(np.arange(1, int(others.max(initial=0)) + 1))))
    result = np.zeros(len(before))
    depth = int(np.minimum(np.minimum(drawn, above), len(weights) - 1 - before).max(initial=-1)) + 1
    if depth <= 0:
        return result
    places = np.arange(depth)
    padded = np.append(weights, 0.0)
    block = max(1, _CELLS // depth)
    for start in range(0, len(before), block):
        part = slice(start, start + block)
        chance = _hypergeometric(places, above[part, None], others[part, None], drawn[part, None], logs)
        at = np.minimum(before[part, None] + places, len(weights))
        result[part] = (chance * padded[at]).sum(axis=1)
    return result


def _hypergeometric(
    x: NDArray[np.int64],
    good: NDArray[np.int64],
    total: NDArray[np.int64],
    drawn: NDArray[np.int64],
    logs: NDArray[Any],
) -> NDArray[np.float64]:
    """Return P(x of the drawn are good); ``logs`` are the logarithms of factorials."""
    bad, rest = total - good, drawn - x
    possible = (x <= good) & (rest >= 0) & (rest <= bad)
    inside = np.where(possible, x, 0), np.where(possible, rest, 0)

    def choose(n: NDArray[np.int64], k: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(logs[n] - logs[k] - logs[np.maximum(n - k, 0)])

    log = choose(good, inside[0]) + choose(bad, inside[1]) - choose(total, drawn)
    return np.where(possible, np.exp(np.minimum(log, 0.0)), 0.0)


def _ranks(metric: Metric, draws: _DrawnLists) -> NDArray[np.float64]:
    """Return the ranks that count: down to the cut-off, or to the end of the longest drawn list."""
    longest = int((draws.drawn + draws.judged.judgments.n_judged).max(initial=0))
    return np.arange(1, (longest if metric.cutoff is None else min(metric.cutoff, longest)) + 1, dtype=np.float64)


def _expected(metric: Metric, draws: _DrawnLists) -> NDArray[np.float64]:
    """Return the expected value of a metric for each list."""
    judged, ranks, name = draws.judged, _ranks(metric, draws), metric.definition.name
    relevant, n_relevant = judged.relevant, judged.n_relevant.astype(np.float64)
    if name in ("DCG", "nDCG"):
        return _expected_dcg(metric, draws, logarithmic(len(ranks)))
    first = relevant & (judged.relevant_above == 0)
    if name == "P":
        assert metric.cutoff is not None
        values = judged.total(draws.weighed(np.ones(len(ranks)), relevant)) / metric.cutoff
    elif name == "Recall":
        values = judged.total(draws.weighed(np.ones(len(ranks)), relevant)) / np.maximum(n_relevant, 1.0)
    elif name == "AP":
        terms = draws.weighed(1.0 / ranks, relevant) * (judged.relevant_above + 1)
        values = judged.total(terms) / np.maximum(n_relevant, 1.0)
    else:
        values = judged.total(draws.weighed(np.ones(len(ranks)) if name == "HitRate" else 1.0 / ranks, first))
    return np.where(n_relevant > 0, values, np.nan)


def _expected_dcg(metric: Metric, draws: _DrawnLists, discount: NDArray[np.float64]) -> NDArray[np.float64]:
    judged, judgments = draws.judged, draws.judged.judgments
    gain = str(dict(metric.parameters).get("gain", "rating"))
    if metric.definition.name == "DCG":
        gains = gain_of(gain)(judgments)[judged.pointers]
        return judged.total(draws.weighed(discount, gains != 0) * gains)
    relative = relative_gain_of(gain)
    kept = kept_name(gain)
    gains = judgments.gains(kept, lambda of: within_reach(of, relative(of)))[judged.pointers]
    longest = int(judgments.n_judged.max(initial=0))
    depth = longest if metric.cutoff is None else min(metric.cutoff, longest)
    ideal = judgments.ideal(kept, lambda of: within_reach(of, relative(of)), logarithmic(depth))
    gained = judged.total(draws.weighed(discount, gains != 0) * gains)
    return np.divide(gained, ideal, out=np.full(len(ideal), np.nan), where=ideal > 0)


def _one_relevant_scores(draws: Sequence[_DrawnLists], measuring: Measuring, train: Ratings | None) -> Scores:
    """Return the expected scores of one list for each relevant test item."""
    judgments = draws[0].judged.judgments
    relevant = np.flatnonzero(judgments.relevant)
    owner = judgments.lists[relevant]
    singles, values = [], []
    for system in draws:
        judged = system.judged
        ranks = np.zeros(len(judgments), dtype=np.int64)
        ranks[judged.pointers] = judged.ranks
        above_it = np.zeros(len(judgments), dtype=np.int64)
        above_it[judged.pointers] = judged.ranks - 1 - judged.relevant_above
        rank, above = ranks[relevant], above_it[relevant]
        name = "" if judged.ranked is None else judged.ranked.name
        run = Run(
            name=name,
            user_ids=judgments.user_ids,
            item_ids=judgments.item_ids,
            users=judgments.users[owner],
            indptr=np.arange(len(relevant) + 1, dtype=np.int64),
            items=judgments.items[relevant],
            ranks=np.minimum(rank, system.drawn[owner] + 1).astype(np.int32),
            lengths=(system.drawn[owner] + 1).astype(np.int32),
            one_relevant=True,
        )
        single = judged_by(run, judgments, Context(train))
        singles.append(single)
        chance = _OneRelevant(single, rank > 0, above, system.others[owner], system.drawn[owner])
        values.append([chance.expected(metric) for metric in measuring.wanted])
    first = singles[0]
    same = [first, *(single.fresh(judgments=first.judgments) for single in singles[1:])]
    return replace(measure_judged(same, measuring), values=np.array(values))


@dataclass(frozen=True, eq=False)
class _OneRelevant:
    """Lists of one relevant item each: whether it is ranked, and how many of the other candidates stand above it."""

    judged: Judged
    ranked: NDArray[np.bool_]
    above: NDArray[np.int64]
    others: NDArray[np.int64]
    drawn: NDArray[np.int64]

    def expected(self, metric: Metric) -> NDArray[np.float64]:
        """Return the expected value of a metric for each list: AP is RR, and nDCG does not depend on the rating."""
        longest = int(self.drawn.max(initial=0)) + 1
        ranks = np.arange(1, (longest if metric.cutoff is None else min(metric.cutoff, longest)) + 1)
        name = metric.definition.name
        weights = {
            "P": np.full(len(ranks), 1.0 / (metric.cutoff or 1)),
            "Recall": np.ones(len(ranks)),
            "HitRate": np.ones(len(ranks)),
            "RR": 1.0 / ranks,
            "AP": 1.0 / ranks,
        }.get(name, logarithmic(len(ranks)))
        value = mean_weight(weights, np.zeros_like(self.above), self.above, self.others, self.drawn)
        value = np.where(self.ranked, value, 0.0)
        if name not in ("DCG", "nDCG"):
            return value
        gain = str(dict(metric.parameters).get("gain", "rating"))
        gains = gain_of(gain)(self.judged.judgments)
        return value * gains if name == "DCG" else np.where(gains > 0, value, np.nan)
