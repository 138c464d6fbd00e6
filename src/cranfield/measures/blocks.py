"""Blocks of users: each is judged and measured by itself, and all together give what measuring at once would."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._files import TEMPORARY
from cranfield._record import Step
from cranfield.data import Ratings, Relevance
from cranfield.facts import Fact
from cranfield.facts import scores as scores_facts
from cranfield.judgments import (
    Context,
    Groups,
    Judged,
    JudgedTable,
    Judgments,
    NegativeGrades,
    RatingsTally,
    RunFacts,
    SystemTally,
    check_tallies,
    digests,
    group_of_lists,
    judged_by,
    nothing_judged,
    without_runs,
)
from cranfield.measures.joining import check_owners, users_of
from cranfield.measures.measuring import Measuring, Services, measure_judged
from cranfield.measures.notes import with_outside, with_runs
from cranfield.measures.scores import Scores
from cranfield.metrics import Metric, check_scores, levels_of
from cranfield.rankings import Run
from cranfield.tables import UNKNOWN, Vocabulary


@dataclass(frozen=True, eq=False)
class BlockPlan:
    """What is measured on every block of users, and the facts about the whole that each block needs."""

    measuring: Measuring  # the metrics and the kind of lists
    relevance: Relevance  # what is relevant in the whole test set
    # The training ratings, the similarity, and the items that can be recommended if there is a catalogue.
    context: Context
    negative_grades: NegativeGrades = "judged"  # this and the next three are those of `measure`
    bounds: bool = False
    strict: bool = False
    groups: Groups | None = None
    keeps_judged: bool = False  # whether the judged lists are kept as well, without the items that are not judged

    @property
    def whole(self) -> list[Metric]:
        """The metrics of the whole system."""
        return [metric for metric in self.measuring.wanted if metric.definition.whole_system]

    @property
    def cutoffs(self) -> list[int]:
        """The cut-offs down to which items are counted for a catalogue."""
        return [] if self.context.live is None else self.measuring.cutoffs


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts for some of the users; the tallies of disjoint blocks add up to that of all users."""

    test: RatingsTally  # the counts of their test ratings
    systems: tuple[SystemTally, ...]  # the counts of the lists of each system
    services: Services | None  # the number of items in their lists; None if nobody is judged
    facts: Scores | None  # everything about their scores except the values; None if nobody is judged

    def __add__(self, other: Tally) -> Tally:
        services = self.services or other.services
        if self.services is not None and other.services is not None:
            services = self.services + other.services
        systems = tuple(mine + theirs for mine, theirs in zip(self.systems, other.systems))
        return Tally(self.test + other.test, systems, services, self.facts or other.facts)


@dataclass(frozen=True, eq=False)
class UserBlock:
    """The result of measuring some of the users: the values of their lists (None if nobody is judged) and a tally.

    ``judged`` are their judged lists, if the plan keeps them.
    """

    scores: Scores | None
    tally: Tally
    judged: Sequence[Judged] = ()


def measure_block(runs: Sequence[Run], test: Ratings, plan: BlockPlan) -> UserBlock:
    """Measure some of the users, given their lists and their test ratings, either of which may be missing."""
    judgments, measuring = _judgments(test, plan), plan.measuring
    judged = [None if judgments is None else judged_by(run, judgments, plan.context) for run in runs]
    measured = [lists for lists in judged if lists is not None]
    scores, services, facts = None, None, None
    if measured:
        scores = measure_judged(measured, measuring, bounds=plan.bounds, of_block=True)
        services, facts = Services.of_scores(scores), scores.without_lists()
    train = None if plan.context.train is None else _of_users(plan.context.train, [test, *runs])
    systems = [
        SystemTally.of(
            run,
            lists,
            test.user_ids,
            train,
            digest=digest,
            cutoffs=plan.cutoffs,
            sums=() if lists is None else tuple(metric.sums(measuring.view(lists)) for metric in plan.whole),
        )
        for run, lists, digest in zip(runs, judged, digests(runs))
    ]
    tally = Tally(RatingsTally.of(test, judgments, train), tuple(systems), services, facts)
    return UserBlock(scores, tally, without_runs(measured) if plan.keeps_judged else ())


def _judgments(test: Ratings, plan: BlockPlan) -> Judgments | None:
    """Return the judgments of some users; None if there are none."""
    reading = plan.negative_grades
    if not len(test) or (reading != "judged" and not (test.values >= 0).any()):
        return None
    judgments = Judgments.of(test, plan.relevance.threshold, reading)
    return replace(judgments, negative_grades=reading, grades_of_all=plan.relevance.grades)


def _of_users(train: Ratings, others: Sequence[Ratings | Run]) -> Ratings:
    """Return the training ratings from the first to the last of some users."""
    codes = np.concatenate([train.user_ids.codes(other.user_ids.all) for other in others])
    codes = codes[codes != UNKNOWN]
    return train.of_consecutive(int(codes.min()), int(codes.max()) + 1) if len(codes) else train.of_consecutive(0, 0)


class Blocks:
    """The results of blocks of users, which add up to the results of all users.

    At most ``most`` bytes of values, and of judged lists, stay in memory; the others go to files.
    """

    def __init__(self, plan: BlockPlan, most: float) -> None:
        self._plan = plan
        self._values, self._judged = ValueTable(most), JudgedTable(most)
        self.tally: Tally | None = None

    def add(self, block: UserBlock) -> None:
        """Add the result of a block."""
        self.tally = block.tally if self.tally is None else self.tally + block.tally
        self.keep(block.scores, block.judged)

    def keep(self, scores: Scores | None, judged: Sequence[Judged]) -> None:
        """Add the values and the judged lists of a block whose tally is added elsewhere."""
        if scores is not None:
            self._values.add(scores)
        if judged:
            self._judged.add(judged)

    @property
    def judged(self) -> list[Judged]:
        """The judged lists of all users."""
        judged = self._judged.judged(self._plan.context)
        own = self._own_groups(judged[0].judgments.user_ids, judged[0].judgments.users) if judged else {}
        return [replace(lists, **own) for lists in judged] if own else judged

    def _own_groups(self, user_ids: Vocabulary, users: NDArray[Any]) -> dict[str, Any]:
        """Return the fields of the given groups of all lists, if there are any."""
        if self._plan.groups is None:
            return {}
        return dict(zip(("groups", "group_names"), group_of_lists(self._plan.groups, user_ids, users)))

    @cached_property
    def scores(self) -> Scores:
        """The scores of all users, as if they had been measured at once."""
        assert self.tally is not None  # there is at least one block
        plan, tally, measuring = self._plan, self.tally, self._plan.measuring
        test, systems, relevance = tally.test, tally.systems, plan.relevance
        warnings = check_tallies(test, systems, plan.context.train, strict=plan.strict)
        for system in systems if measuring.of_predictions else ():
            if system.rated_scores is not None:
                ranked, rated = system.ranked, system.rated_scores
                check_scores(ranked.name, ranked.only_ranks, rated, relevance.scale, measuring.of_predictions)
        if tally.facts is None or tally.services is None:
            raise nothing_judged(plan.negative_grades)
        runs = [_whole_run(system, test.items.ids) for system in systems]
        counts = [{**run.counts, **_counts(system, test)} for run, system in zip(runs, systems)]
        on_test: list[Fact] = [] if measuring.levels == "none" else [levels_of(relevance.scale)]
        if test.negative and plan.negative_grades != "judged":
            on_test.append(scores_facts.GradesBelowZero(test.negative, test.unread, plan.negative_grades))
        highest = float(relevance.grades.max(initial=0.0))
        of_all = replace(
            tally.facts,
            **tally.services.fields,
            overall=_overall(systems, plan),
            step=Step("measure", {**tally.facts.step.settings, "test": None, "blocks": self._values.count}),
        )
        scores = with_runs(
            self._values.scores(of_all),
            runs,
            counts,
            measuring.wanted,
            warnings=warnings,
            on_test=on_test,
            relevant=scores_facts.WithoutRelevant(test.without_relevant, test.lists, relevance.threshold, highest),
            known_items=len(test.items.ids),
        )
        scores = replace(scores, **self._own_groups(scores.user_ids, scores.users))
        if plan.context.live is None:
            return scores
        counted = [(system.items, system.places) for system in systems]
        return with_outside(scores, counted, plan.context.live, strict=plan.strict)


def _whole_run(system: SystemTally, items: Vocabulary) -> RunFacts:
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


def _overall(systems: Sequence[SystemTally], plan: BlockPlan) -> NDArray[np.float64]:
    """Return systems × metrics: the values of metrics of the whole system, NaN for the others."""
    wanted, whole = plan.measuring.wanted, plan.whole
    values = np.full((len(systems), len(wanted)), np.nan)
    for s, system in enumerate(systems):
        for metric, sums in zip(whole, system.sums):
            values[s, wanted.index(metric)] = float(sums)
    return values


_SPOOLED = ("values", "bounds")
"""The tables of a block that go to files."""


@dataclass
class ValueTable:
    """Collects the scores of blocks of users, and puts them together over all users.

    A block has the values of some users, systems × metrics × users. At most ``most`` bytes wait in memory; beyond that,
    values go to files. At the end they are written column by column to one file, in the order of the users, and mapped:
    its pages are read when they are needed, and the system drops them when memory is short.
    """

    most: float
    _blocks: list[Scores] = field(default_factory=list)
    _bytes: float = 0.0
    _folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def count(self) -> int:
        """The number of blocks."""
        return len(self._blocks)

    def add(self, block: Scores) -> None:
        """Add a block."""
        self._bytes += block.values.nbytes + (0 if block.bounds is None else block.bounds.nbytes)
        self._blocks.append(block)
        if self._bytes > self.most and self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix=TEMPORARY)
            self._blocks = [self._spooled(place, waiting) for place, waiting in enumerate(self._blocks)]
        elif self._folder is not None:
            self._blocks[-1] = self._spooled(len(self._blocks) - 1, block)

    def scores(self, facts: Scores) -> Scores:
        """Return the scores of all users, with the facts about all of them; there is at least one block."""
        user_ids, users = users_of(self._blocks)
        order = np.argsort(users, kind="stable")
        check_owners(user_ids, users[order], np.repeat(range(self.count), [len(b.users) for b in self._blocks])[order])
        names = ("values", "bounds", "covered", "judged", "relevant", "trained")
        lists: dict[str, Any] = {name: self._ordered(name, order) for name in names}
        return replace(facts, users=users[order], user_ids=user_ids, **lists, files=self._folder)

    def _spooled(self, place: int, block: Scores) -> Scores:
        """Return a block whose values are in files."""
        opened: dict[str, Any] = {}
        for name in _SPOOLED:
            table = getattr(block, name)
            if table is not None:
                np.save(self._path(f"{name}-{place}"), table)
                opened[name] = _opened(self._path(f"{name}-{place}"))
        return replace(block, **opened)

    def _path(self, name: str) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / f"{name}.npy"

    def _ordered(self, name: str, order: NDArray[np.intp]) -> NDArray[Any] | None:
        """Return a table of all blocks in the order of the users; None if they have none.

        If the tables of the blocks are in files, it is written to a file column by column, and they are removed.
        """
        parts: Sequence[NDArray[Any] | None] = [getattr(block, name) for block in self._blocks]
        known = [part for part in parts if part is not None]
        if not known:
            return None
        shape, dtype = (*known[0].shape[:-1], len(order)), known[0].dtype
        in_file = self._folder is not None and name in _SPOOLED
        table = np.empty(shape, dtype)
        if in_file:
            table = np.lib.format.open_memmap(self._path(name), mode="w+", dtype=dtype, shape=shape)
        for column in np.ndindex(shape[:-1]):
            table[column] = np.concatenate([part[column] for part in known])[order]
        if not in_file:
            return table
        del table  # which writes it
        for place in range(self.count):
            self._path(f"{name}-{place}").unlink()
        return _opened(self._path(name))


def _opened(path: Path) -> NDArray[np.float64]:
    """Return a file as a plain array; NumPy advises against passing its own class of mapped arrays on."""
    return np.asarray(np.load(path, mmap_mode="r"))
