"""Measures rankings of all candidates in expectation over the draw of targets; see `measures.over_draws`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import InputError, SettingError
from cranfield._record import Step
from cranfield.biases.random_rankings import RandomTargets
from cranfield.data import AUTO, Ratings
from cranfield.facts import Fact
from cranfield.facts import scores as scores_facts
from cranfield.judgments import Context, Draw, Judged, as_judged, as_test, judged_by
from cranfield.measures import DEFAULT_METRICS, Measuring, Scores, measure_judged
from cranfield.metrics import Metric, check_expected
from cranfield.rankings import Gaps, Run, Ties

_MANY = 0.01  # a note is added if more than this share of the candidates is in no list


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
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    keep_seen: bool = False,
    candidates: Literal["all", "test"] = "all",
) -> Scores:
    r"""Return metrics in expectation over the draw of N_u, from rankings of all candidates.

    A fixed item with f − 1 fixed items and a of the M other candidates above it has the rank f + X, where

    .. math:: P(X = x) = \binom{a}{x}\binom{M - a}{N - x} / \binom{M}{N}

    Values measured on drawn lists (`recommend` with ``nonrelevant`` or ``unrated``) differ from it only by the random
    draw.

    Parameters
    ----------
    runs, test, metrics, threshold, ties, gaps
        As for `measure`. The runs rank all candidates (``length="all"``); metrics are P, Recall, HitRate, RR, AP, DCG
        and nDCG, P with a cut-off.
    nonrelevant, unrated
        N: the number of items drawn for a list that are not relevant, or that the user never rated; give one of the
        two. A user with fewer such items has all of them.
    relevant
        ``all``: one list per user, with all relevant items (with ``unrated``, all test items). ``one``: one list per
        relevant item (1R).
    train, keep_seen
        The training ratings, whose items are not candidates for their user unless ``keep_seen`` is true.
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
    check_expected(measuring.wanted)
    check.one_of("relevant", relevant, ("all", "one"))
    number = _number_drawn(nonrelevant, unrated, relevant)
    judged = as_judged(runs, as_test(test), threshold, Context(train), ties=ties, gaps=gaps)
    baseline = RandomTargets.of(judged, check.flag("keep_seen", keep_seen), candidates)
    for lists in judged:
        _check_whole(lists, baseline.sizes)
    judgments = judged[0].judgments
    # A test item that is also a training item is not a candidate, and is in no list.
    outside = ~baseline.inside & (judgments.relevant | (unrated is not None))
    sizes = baseline.sizes + np.bincount(judgments.lists[outside], minlength=judgments.n_lists)
    draw = Draw(number, sizes, unrated is not None)
    of_lists = _each_alone(judged, draw) if relevant == "one" else [lists.fresh(draw=draw) for lists in judged]
    scores = measure_judged(of_lists, measuring)
    name = "nonrelevant" if unrated is None else "unrated"
    step = Step("measure", {**scores.step.settings, name: number, "relevant": relevant, "over": "all draws"})
    return replace(scores, step=step, notes=(*scores.notes, *_on_unranked(judged, baseline.sizes)))


def _on_unranked(judged: Sequence[Judged], sizes: NDArray[np.int64]) -> list[Fact]:
    """Return notes on systems for which many candidates are in no list, such as training items that were not given."""
    notes: list[Fact] = []
    for lists in judged:
        served = lists.lengths > 0
        missing = 1.0 - lists.lengths[served].sum() / max(int(sizes[served].sum()), 1)
        if missing > _MANY:
            name = "" if lists.ranked is None else lists.ranked.name
            notes.append(scores_facts.Unranked(name, float(missing)))
    return notes


def _number_drawn(nonrelevant: int | None, unrated: int | None, relevant: str) -> int:
    if (nonrelevant is None) == (unrated is None):
        raise SettingError("give either nonrelevant=... or unrated=...: the number of items drawn for a list")
    if unrated is not None and relevant == "one":
        raise SettingError(
            "unrated=... keeps all test items of a user in one list; use nonrelevant=... for relevant='one'"
        )
    if unrated is not None:
        return check.whole("unrated", unrated, at_least=0)
    return check.whole("nonrelevant", nonrelevant)


def _check_whole(judged: Judged, sizes: NDArray[np.int64]) -> None:
    """Raise an error if lists were cut: missing items would be mistaken for items that the system cannot rank."""
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
            f"the lists of {name} end at {longest:,} of {int(sizes.max()):,} candidates, so the ranks beyond are "
            "not known",
            remedy="rank all candidates: recommend with length='all'",
        )


def _each_alone(judged: Sequence[Judged], draw: Draw) -> list[Judged]:
    """Return a list for each relevant test item: the item and all candidates that are not relevant."""
    judgments = judged[0].judgments
    relevant = np.flatnonzero(judgments.relevant)
    owner = judgments.lists[relevant]
    sizes = (draw.sizes - judgments.n_relevant)[owner] + 1
    alone = []
    for lists in judged:
        ranks = np.zeros(len(judgments), dtype=np.int32)
        ranks[lists.pointers] = lists.ranks - lists.relevant_above
        run = Run(
            name="" if lists.ranked is None else lists.ranked.name,
            user_ids=judgments.user_ids,
            item_ids=judgments.item_ids,
            users=judgments.users[owner],
            indptr=np.arange(len(relevant) + 1, dtype=np.int64),
            items=judgments.items[relevant],
            ranks=ranks[relevant],
            lengths=sizes.astype(np.int32),
            one_relevant=True,
        )
        alone.append(judged_by(run, judgments, lists.context))
    return [lists.fresh(judgments=alone[0].judgments, draw=replace(draw, sizes=sizes)) for lists in alone]
