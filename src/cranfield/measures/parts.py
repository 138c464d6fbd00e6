"""Parts of the users, which are judged and measured separately, and combined as if measured at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._record import Step
from cranfield.data import Ratings, Relevance
from cranfield.judgments import (
    COPY,
    ENOUGH_FOR_A_COPY,
    NO_ITEMS,
    Context,
    Judged,
    JudgedTable,
    Judgments,
    NegativeGrades,
    Ranked,
    accepted,
    judged_by,
    named_once,
    nothing_judged,
    on_few_met,
    on_items,
    on_no_hits,
    on_seen,
    on_shared,
    on_swapped,
    on_unread_grades,
    refuse_other_users,
    same_lists_note,
    without_runs,
)
from cranfield.measures.joined_scores import Services
from cranfield.measures.measuring import Measuring, measure_judged
from cranfield.measures.off_catalogue import Outside, with_outside
from cranfield.measures.scores import Scores
from cranfield.measures.tallies import RatingsTally, SystemTally
from cranfield.measures.value_table import ValueTable
from cranfield.metrics import Graded, Metric, check_scores, levels_note, notes_on, notes_on_whom
from cranfield.rankings import Run
from cranfield.tables import UNKNOWN, Vocabulary


@dataclass(frozen=True, eq=False)
class PartPlan:
    """What is measured on every part of the users, and the facts about the whole that each part needs.

    Parameters
    ----------
    measuring
        The metrics and the kind of lists.
    relevance
        What is relevant in the whole test set.
    negative_grades, bounds, strict
        As for `measure`.
    train, similarity
        As for `measure`.
    live
        The items that can be recommended; None if there is no catalogue.
    several
        Whether there are several systems, of which some might be the same under different names.
    keeps_judged
        Whether the judged lists are kept as well, without the items that are not judged.
    """

    measuring: Measuring
    relevance: Relevance
    negative_grades: NegativeGrades = "judged"
    bounds: bool = False
    strict: bool = False
    train: Ratings | None = None
    similarity: Any = None
    live: Vocabulary | None = None
    several: bool = False
    keeps_judged: bool = False
    context: Context = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "context", Context(self.train, self.similarity, self.live))

    @property
    def whole(self) -> list[Metric]:
        """The metrics of the whole system."""
        return [metric for metric in self.measuring.wanted if metric.definition.whole_system]

    @property
    def cutoffs(self) -> list[int]:
        """The cut-offs down to which items are counted for a catalogue."""
        wanted = {metric.cutoff for metric in self.measuring.wanted if metric.cutoff is not None}
        return [] if self.live is None else sorted(wanted)


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts for some of the users; the tallies of disjoint parts add up to that of all users.

    Parameters
    ----------
    test
        The counts of their test ratings.
    systems
        The counts of the lists of each system.
    of_scores
        The number of items in their lists, and everything about their scores except the values; None if nobody is
        judged.
    notes
        Warnings about the first of the parts, by system.
    """

    test: RatingsTally
    systems: tuple[SystemTally, ...]
    of_scores: tuple[Services, Scores] | None
    notes: tuple[tuple[str, str], ...] = ()

    def __add__(self, other: Tally) -> Tally:
        of_scores = self.of_scores or other.of_scores
        if self.of_scores is not None and other.of_scores is not None:
            (services, facts), (further, _) = self.of_scores, other.of_scores
            of_scores = services + further, facts
        return Tally(
            self.test + other.test,
            tuple(mine + theirs for mine, theirs in zip(self.systems, other.systems)),
            of_scores,
            self.notes,
        )


@dataclass(frozen=True, eq=False)
class Part:
    """The result of measuring some of the users: the values of their lists (None if nobody is judged) and a tally.

    ``judged`` are their judged lists, if the plan keeps them.
    """

    scores: Scores | None
    tally: Tally
    judged: Sequence[Judged] = ()


def measure_part(runs: Sequence[Run], test: Ratings, plan: PartPlan) -> Part:
    """Measure some of the users, given their lists and their test ratings, either of which may be missing."""
    judgments = _judgments(test, plan)
    judged = [None if judgments is None else judged_by(run, judgments, plan.context) for run in runs]
    measured = [lists for lists in judged if lists is not None]
    scores = None
    if measured:
        scores = measure_judged(measured, plan.measuring, bounds=plan.bounds, of_part=True)
    train = None if plan.train is None else _of_users(plan.train, [test, *runs])
    tally = Tally(
        RatingsTally.of(test, judgments, train),
        tuple(
            SystemTally.of(
                run,
                lists,
                test,
                train,
                cutoffs=plan.cutoffs,
                digest=plan.several,
                sums=() if lists is None else _sums(lists, plan),
            )
            for run, lists in zip(runs, judged)
        ),
        None if scores is None else (Services.of(scores), _facts_of(scores)),
        tuple((run.name, note) for run, note in on_swapped(runs, test if len(test) else None)),
    )
    return Part(scores, tally, without_runs(measured) if plan.keeps_judged else ())


def _facts_of(scores: Scores) -> Scores:
    """Return scores without their lists, but with the facts about all of them."""
    names = ("overall", "filled", "unjudged", "nonexistent", "item_coverage", "recommended", "counts")
    facts = {name: getattr(scores, name) for name in names}
    return replace(scores.of_lists(np.zeros(scores.n_lists, dtype=bool)), **facts)


def _judgments(test: Ratings, plan: PartPlan) -> Judgments | None:
    """Return the judgments of some users; None if there are none."""
    reading = plan.negative_grades
    if not len(test) or (reading != "judged" and not (test.values >= 0).any()):
        return None
    judgments = Judgments.of(test, plan.relevance.threshold, reading)
    return replace(judgments, negative_grades=reading, grades_of_all=plan.relevance.grades)


def _sums(judged: Judged, plan: PartPlan) -> tuple[Any, ...]:
    view = judged.condensed() if plan.measuring.lists == "condensed" else judged
    return tuple(metric.sums(view) for metric in plan.whole)


def _of_users(train: Ratings, others: Sequence[Ratings | Run]) -> Ratings:
    """Return the training ratings from the first to the last of some users."""
    codes = np.concatenate([train.user_ids.codes(other.user_ids.all) for other in others])
    codes = codes[codes != UNKNOWN]
    return train.of_consecutive(int(codes.min()), int(codes.max()) + 1) if len(codes) else train.of_consecutive(0, 0)


History = tuple[Step, ...]
"""The steps by which something was read."""


class Blocks:
    """The results of blocks of users, which add up to the results of all users.

    Parameters
    ----------
    plan
        What is measured.
    histories
        How the run of each system was read.
    most
        How many bytes of values, and of judged lists, may stay in memory; the others go to files.
    """

    def __init__(self, plan: PartPlan, histories: Sequence[History], most: float) -> None:
        self._plan, self._histories = plan, histories
        self._values, self._judged = ValueTable(most), JudgedTable(most)
        self.tally: Tally | None = None
        self._count = 0

    def add(self, part: Part) -> None:
        """Add the result of a block."""
        self.tally = part.tally if self.tally is None else self.tally + part.tally
        self.keep(part.scores, part.judged)

    def keep(self, scores: Scores | None, judged: Sequence[Judged]) -> None:
        """Add the values and the judged lists of a block whose tally is added elsewhere."""
        self._count += scores is not None
        self._values.add(scores)
        if judged:
            self._judged.add(judged)

    @cached_property
    def scores(self) -> Scores:
        """The scores of all users, as if they had been measured at once."""
        assert self.tally is not None  # there is at least one block
        scores = _put_together(self._values, self.tally, self._plan, self._histories)
        settings = {**scores.step.settings, "blocks": self._count}
        return replace(scores, step=replace(scores.step, settings=settings))

    @property
    def judged(self) -> list[Judged]:
        """The judged lists of all users."""
        return self._judged.judged(self._plan.context)


def _put_together(table: ValueTable, tally: Tally, plan: PartPlan, histories: Sequence[History]) -> Scores:
    """Return the scores of all users, as if they had been measured at once."""
    test, systems = tally.test, tally.systems
    warnings = accepted(list(_warnings(tally, plan, histories)), strict=plan.strict)
    relevance, of_predictions = plan.relevance, plan.measuring.of_predictions
    for system in systems if of_predictions else ():
        if system.rated_scores is not None:
            check_scores(
                system.ranked.name, system.ranked.only_ranks, system.rated_scores, relevance.scale, of_predictions
            )
    if tally.of_scores is None:
        raise nothing_judged(plan.negative_grades)
    services, facts = tally.of_scores
    ranked = [_whole_ranked(system, test.items.ids) for system in systems]
    counts = [{**of_run.counts, **_counts(system, test)} for of_run, system in zip(ranked, systems)]
    unread = on_unread_grades(test.negative, test.unread, plan.negative_grades)
    notes = tuple(unread) if plan.negative_grades != "judged" else ()
    highest = float(relevance.grades.max(initial=0.0))
    graded = Graded(notes, highest, relevance.threshold, test.lists, test.without_relevant)
    of_levels = [] if plan.measuring.levels == "none" else [levels_note(relevance.scale)]
    strangers = {item for of_run in ranked for item in of_run.unknown_items}
    catalogue = max(len(test.items.ids) + len(strangers), 1)
    whole = replace(
        facts,
        **services.fields,
        overall=_overall(systems, plan),
        item_coverage=np.array([of_run.n_distinct_items / catalogue for of_run in ranked]),
        catalogue="the data" if all(of_run.shares_items for of_run in ranked) else "test and lists",
        counts={of_run.name: count for of_run, count in zip(ranked, counts)},
        notes=(*warnings, *of_levels, *notes_on(ranked, counts, graded, plan.measuring.wanted)),
        warnings=warnings,
        step=Step(facts.step.action, {**facts.step.settings, "test": None}),
    )
    if plan.live is not None:
        whole = with_outside(whole, *zip(*(_outside(system, plan) for system in systems)), strict=plan.strict)
    scores = table.scores(whole)
    few = [of_run for of_run, served in zip(ranked, scores.n_covered) if served < scores.n_lists]
    return replace(scores, made_for=notes_on_whom(few))


def _whole_ranked(system: SystemTally, items: Vocabulary) -> Ranked:
    """Return the facts about a whole run; ``items`` are those of the test set."""
    codes = items.translation(system.items.ids)
    unknown = [] if codes is None else system.items.ids.text.filter(pl.Series(codes == UNKNOWN)).to_list()
    return replace(
        system.ranked,
        n_distinct_items=int(np.count_nonzero(system.items.counts[0])),
        shares_items=codes is None,
        unknown_items=tuple(unknown),
    )


def _counts(system: SystemTally, test: RatingsTally) -> dict[str, int]:
    """Return the counts from joining the lists of a system with the test set."""
    codes = test.items.ids.translation(system.items.ids)
    unknown = 0 if codes is None else int(system.items.counts[1, codes == UNKNOWN].sum())
    return {**system.counts, "recommended items unknown to the test set": unknown}


def _overall(systems: Sequence[SystemTally], plan: PartPlan) -> Any:
    """Return systems × metrics: the values of metrics of the whole system, NaN for the others."""
    wanted, whole = plan.measuring.wanted, plan.whole
    values = np.full((len(systems), len(wanted)), np.nan)
    for s, system in enumerate(systems):
        for metric, sums in zip(whole, system.sums):
            values[s, wanted.index(metric)] = float(sums)
    return values


def _warnings(tally: Tally, plan: PartPlan, histories: Sequence[History]) -> Iterator[str]:
    """Look for implausible inputs in all parts together, as `check_inputs` does for everything at once."""
    test, train = tally.test, plan.train
    if train is not None and len(train):
        yield from on_shared(test.shared, test.ratings, len(train), None)
    runs = [_like_a_run(system, history) for system, history in zip(tally.systems, histories)]
    of_runs: list[tuple[Run, str]] = []
    for run, system in zip(runs, tally.systems):
        others = Vocabulary.of(system.unmet[1])
        if not system.met:
            refuse_other_users(run, others, test.items.ids)
        if system.met < system.users:
            known = system.users, test.lists
            of_runs += [(run, note) for note in on_few_met("users", system.met, known, (run.user_ids, others))]
        if system.ranked.n_entries:
            of_runs += [(run, note) for note in on_items(run, test.items.ids, train)]
        else:
            of_runs.append((run, NO_ITEMS))
    by_name = {run.name: run for run in runs}
    of_runs += [(by_name[name], note) for name, note in tally.notes]
    pairs = list(zip(runs, tally.systems))
    without = [(run, _by_chance(system, test)) for run, system in pairs if not system.hits]
    of_runs += list(on_no_hits(without, len(runs)))
    of_runs += [(run, COPY) for run, system in pairs if system.is_copy and system.hits >= ENOUGH_FOR_A_COPY]
    yield from named_once(of_runs, len(runs))
    yield from on_seen([(run.name, system.seen, system.ranked.n_entries) for run, system in pairs])
    same: dict[int, list[str]] = {}
    for run, system in pairs:
        same.setdefault(system.digest, []).append(run.name)
    for names in same.values():
        if len(names) > 1:
            yield same_lists_note(names)


def _like_a_run(system: SystemTally, history: History) -> Run:
    """Return a run with the items of a system, and some users that are not in the test set, for messages."""
    nothing, users = np.zeros(0, dtype=np.int32), Vocabulary.of(system.unmet[0])
    start = np.zeros(1, dtype=np.int64)
    return Run(system.ranked.name, users, system.items.ids, nothing, start, nothing, history=history)


def _by_chance(system: SystemTally, test: RatingsTally) -> float:
    """Return the expected number of hits if test profiles were assigned to the users at random."""
    codes = test.items.ids.codes(system.items.ids.all)
    known = codes != UNKNOWN
    return float(system.items.counts[1, known] @ test.items.counts[0, codes[known]]) / max(test.lists, 1)


def _outside(system: SystemTally, plan: PartPlan) -> tuple[Outside, NDArray[np.float64], float]:
    """Count the items of a system outside the catalogue, as `outside_of` does."""
    assert plan.live is not None
    ids = system.items.ids
    strange = plan.live.codes(ids.all) == UNKNOWN
    down_to: dict[int | None, int] = {None: 0, **{cutoff: 1 + place for place, cutoff in enumerate(plan.cutoffs)}}
    rows = [down_to[metric.cutoff] for metric in plan.measuring.wanted]
    places, there = system.places, system.items.counts[1:, strange].sum(axis=1)
    shares = np.divide(there, places, out=np.full(len(places), np.nan), where=places > 0)[rows]
    items = np.flatnonzero(strange & (system.items.counts[1] > 0))
    examples = tuple(str(name) for name in ids.text.gather(items[:3]))
    shown = np.count_nonzero(system.items.counts[0, ~strange]) / max(len(plan.live), 1)
    return Outside(int(there[0]), int(places[0]), len(items), examples), shares, shown
