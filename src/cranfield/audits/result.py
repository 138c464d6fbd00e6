"""`Audit`: whether the winner remains the same under other decisions, with all results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from cranfield import _checks
from cranfield._errors import SettingError, suggestion
from cranfield._result import Figures, Result
from cranfield._table import Table, answer_and_table
from cranfield.audits import verdict
from cranfield.audits.contributions import RESAMPLES, UserContributions, resampled_averages, user_counts
from cranfield.audits.flips import Rule
from cranfield.audits.grid import Floats, Grid, VariedDecision
from cranfield.audits.joint import DRAWS, STATISTICS, Question, seed_noise
from cranfield.audits.pair import Effort, PairAudit, PairView, audit_pair, rank_shares
from cranfield.audits.significance import SIGNIFICANCE_KINDS, rows_of_tests
from cranfield.audits.tables import pair_tables
from cranfield.audits.truth import OPTION_KINDS, PAIR_KINDS, KnownValues, TruthFindings, truth_of
from cranfield.comparisons import holm
from cranfield.facts import Fact, sentences
from cranfield.facts import audit as audit_facts

OWN_COLUMNS = (
    "cell", "universe", "start", "weight", "users", "system_a", "system_b", "average_a", "average_b", "difference",
    "relative", "d_z", "z", "p", "leader", "significant",
)  # fmt: skip
"""The columns of `Audit.frame` other than the decisions."""

ADVICE_KINDS = {
    **dict.fromkeys(("setup", "metric", "average"), pl.String),
    "rank": pl.Int64,
    **dict.fromkeys(("score", "lower", "upper", "first", "tau"), pl.Float64),
    "clear": pl.Boolean,
    "reason": pl.String,
}
"""The columns of `Audit.advice`."""

_INFLUENCE_KINDS = {
    **dict.fromkeys(("with_decision", "kind"), pl.String),
    **dict.fromkeys(("main", "total", "shapley", "lower", "upper", "error", "interaction"), pl.Float64),
}
_FLIP_KINDS = {
    "system_a": pl.String, "system_b": pl.String, "changes": pl.Int64, "decision": pl.String, "kind": pl.String,
    "before": pl.String, "after": pl.String, "cell": pl.Int64, "leader": pl.String, "difference": pl.Float64,
    "d_z": pl.Float64, "p": pl.Float64, "significant": pl.Boolean, "turns_winner": pl.Boolean,
    "turns_significance": pl.Boolean,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Audit(Result):
    """What happens to the winner under other decisions.

    It is made by `Audit.of` and prints as its verdict.

    Parameters
    ----------
    grid
        The varied decisions and the cells.
    systems, averages
        The systems, and systems × universes: their averages as shown.
    lower_is_better, users
        For each universe, whether a smaller average is the better one, and the number of users.
    pairs
        The results for each pair of systems.
    rank_rows
        The rank distribution of every system: over all universes (question None) and within each question.
    noise
        How often a system differs from itself because of chance options alone.
    effort
        The numbers of draws, the seed, and the level of tests.
    notes
        Notes for the reader, for example on universes that were left out.
    tests
        The results of other tests and corrections: one row per pair, question, test and correction (`significance`).
    known
        The comparison with a known truth (`TruthFindings`); None if no truth is known.
    advised
        The advice on metrics under each split and target design (`advice_rows`), if metrics are assessed.
    baseline
        The system that the experiment compares all others with, if there is one.
    """

    grid: Grid
    systems: tuple[str, ...]
    averages: Floats
    lower_is_better: NDArray[np.bool_]
    users: NDArray[np.int64]
    pairs: tuple[PairAudit, ...]
    rank_rows: tuple[dict[str, Any], ...]
    noise: tuple[audit_facts.SeedNoise, ...]
    effort: Effort
    notes: tuple[Fact, ...] = ()
    tests: tuple[dict[str, Any], ...] = ()
    known: TruthFindings | None = None
    advised: tuple[dict[str, Any], ...] = ()
    baseline: str | None = None

    @classmethod
    def of(
        cls,
        grid: Grid,
        systems: Sequence[str],
        averages: ArrayLike,
        terms: UserContributions | NDArray[Any],
        *,
        lower_is_better: ArrayLike = False,
        draws: int = DRAWS,
        resamples: int = RESAMPLES,
        alpha: float = 0.05,
        seed: int = 0,
        notes: Sequence[Fact] = (),
        testings: Sequence[audit_facts.PairedTest] = (),
        truth: KnownValues | Mapping[str, float] | None = None,
        advance: Callable[[], None] = lambda: None,
    ) -> Audit:
        """Return the audit of universes that have been computed.

        Parameters
        ----------
        grid, systems
            The varied decisions with the cells, and the names of at least two systems.
        averages
            Systems × universes: the averages as shown. They determine which system leads.
        terms
            The terms of each user: `UserContributions`, or its values, systems × universes × users, where larger is
            always better.
        lower_is_better
            For each universe (or for all of them), whether a smaller average is better.
        draws, resamples, seed
            The number of draws of signs for the joint test, and of resamples of users for intervals; the seed of both.
        alpha
            The level of significance.
        notes
            Further notes for the reader.
        testings
            The tests and corrections that `significance` shows side by side.
        truth
            The true value of every system if known, where larger is better.
        advance
            A function that is called after each pair of systems, and after each further test of a pair.
        """
        terms = terms if isinstance(terms, UserContributions) else UserContributions(terms)
        systems, averages = tuple(systems), np.asarray(averages, dtype=np.float64)
        _check(grid, systems, averages, terms)
        draws, resamples = _checks.whole("draws", draws), _checks.whole("resamples", resamples)
        effort = Effort(draws, resamples, _checks.share("alpha", alpha), seed)
        lower = np.broadcast_to(np.asarray(lower_is_better, dtype=bool), (grid.n_universes,))
        counts = user_counts(terms.values.shape[2], effort.resamples, seed)
        drawn = resampled_averages(terms, counts)
        better = np.where(lower, -averages, averages)
        pairs = []
        for first, second in combinations(range(len(systems)), 2):
            names, x = (systems[first], systems[second]), terms.between(first, second)
            pairs.append(audit_pair(grid, names, x, terms, averages[[first, second]], lower, counts, effort))
            advance()
        return cls(
            grid,
            systems,
            averages,
            lower,
            terms.users,
            tuple(_corrected(pairs)),
            tuple(
                {"question": question.name, **row}
                for question in Question.of(grid, terms.linear)
                for row in rank_shares(systems, better, drawn, question)
            ),
            tuple(seed_noise(grid, systems, terms, effort.alpha)),
            effort,
            (*notes, *verdict.facts_of_omissions(grid, terms)),
            tuple(rows_of_tests(grid, terms, pairs, testings, effort, advance)),
            truth_of(grid, systems, truth, better, drawn, terms, [pair.leads for pair in pairs]),
        )

    def frame(self) -> pl.DataFrame:
        """Return one row per cell and pair of systems: the options, the numbers and the leader.

        Cells of the same ``universe`` have the same numbers. `` (decision)`` is appended to the name of a decision that
        is also the name of another column.
        """
        return pl.concat([self._rows(pair) for pair in self.pairs])

    def _rows(self, pair: PairAudit) -> pl.DataFrame:
        grid, leads, cells = self.grid, pair.leads, self.grid.universe
        first, second = (self.systems.index(system) for system in pair.systems)
        leaders = np.array([pair.systems[1], None, pair.systems[0]], dtype=object)
        columns: dict[str, Any] = {
            "cell": np.arange(grid.n_cells),
            "universe": cells,
            "start": np.arange(grid.n_cells) == grid.start,
            "weight": grid.weights,
        }
        for decision, numbers in zip(grid.varied, grid.cells.T):
            options = np.array(decision.options, dtype=object)[numbers]
            columns[column_of(decision)] = pl.Series(options, dtype=pl.Enum(decision.options))
        columns |= {
            "users": self.users[cells],
            "system_a": [pair.systems[0]] * grid.n_cells,
            "system_b": [pair.systems[1]] * grid.n_cells,
            "average_a": self.averages[first][cells],
            "average_b": self.averages[second][cells],
            **{name: getattr(leads, name)[cells] for name in ("difference", "relative", "d_z", "z", "p")},
            "leader": pl.Series(leaders[leads.lead[cells] + 1].tolist(), dtype=pl.String),
            "significant": leads.significant[cells],
        }
        return pl.DataFrame(columns)

    def _answers(self) -> Iterator[tuple[audit_facts.QuestionAnswer, dict[str, Any]]]:
        """Yield every answer of every pair, with the columns that name it."""
        for pair in self.pairs:
            for answer in pair.answers:
                question = answer.question and audit_facts.question_text(answer.question)
                yield answer, {**_names(pair), "question": question}

    def shares(self) -> pl.DataFrame:
        """Return how often each system of a pair leads: one row per pair, question, outcome and denominator.

        ``question`` is null for all universes together; ``lower`` and ``upper`` are the 95 % interval over
        resampled users; ``chance`` is the share that is reached or exceeded in 5 % of cases if the systems are equally
        good.
        """
        rows = [{**named, **vars(share)} for answer, named in self._answers() for share in answer.shares]
        return pl.DataFrame(rows, infer_schema_length=None)

    def effects(self) -> pl.DataFrame:
        """Return the range and quantiles of d_z over the cells: one row per pair and question."""
        answers = self._answers()
        rows = [named | {f"q{100 * level:g}": q for level, q in answer.effects.items()} for answer, named in answers]
        return pl.DataFrame(rows, infer_schema_length=None)

    def joint(self) -> pl.DataFrame:
        """Return the joint test: one row per pair, question and statistic.

        ``p_retrained``, the one to rely on, adds the spread of chance options to that of users (null without chance
        options); it and ``p_corrected`` have Holm's correction over the pairs of systems, ``p`` is uncorrected.
        """
        rows = [
            {
                **named,
                "universes": answer.joint.universes,
                "statistic": name,
                "observed": answer.joint.observed[name],
                "expected": answer.joint.expected[name],
                "p_retrained": answer.corrected_retrained.get(name),
                "p_corrected": answer.corrected[name],
                "p": answer.joint.p[name],
            }
            for answer, named in self._answers()
            if answer.joint is not None
            for name in STATISTICS
        ]
        kinds = {"p_retrained": pl.Float64} if rows else None
        return pl.DataFrame(rows, schema_overrides=kinds, infer_schema_length=None)

    def significance(self) -> pl.DataFrame:
        """Return the results of other tests: one row per pair, question, test and correction; empty if none is opened.

        ``universes`` is the number of universes to which the test applies: tests of ranks and signs do not apply with
        weights. Shares are over the cells of these universes; ``start_p`` is the p-value under the starting point, and
        ``start_p_corrected`` the same with the correction over the pairs of systems.
        """
        return pl.DataFrame(list(self.tests), schema=SIGNIFICANCE_KINDS)

    def truth(self, what: str = "options") -> pl.DataFrame:
        """Return the comparison with a known truth; no rows if none is known.

        ``options``: one row for all cells, then one per decision and option: the mean of Kendall's tau-b with the true
        order over the cells with the option, and its 95 % interval over resampled users. ``pairs``: one row per pair of
        systems: their true values, and the share of the cells in which the truly better one leads.
        """
        if _checks.one_of("what", what, ("options", "pairs")) == "options":
            return pl.DataFrame(list(self.known.options if self.known else ()), schema=OPTION_KINDS)
        return pl.DataFrame(list(self.known.pairs if self.known else ()), schema=PAIR_KINDS)

    def advice(self) -> pl.DataFrame:
        """Return the advice on metrics under each split and target design; no rows if metrics are not assessed.

        There is one row per set-up, metric and average, best first: the score with its interval, the share of draws of
        systems in which the metric comes first, whether the choice is ``clear``, and ``tau`` between the scores of the
        metrics and those under the starting point.
        """
        return pl.DataFrame(list(self.advised), schema=ADVICE_KINDS)

    def ranks(self) -> pl.DataFrame:
        """Return the rank distribution: one row per question, system and rank, the share of the cells."""
        return pl.DataFrame(list(self.rank_rows), infer_schema_length=None)

    def influence(self) -> pl.DataFrame:
        """Return which decisions matter: one row per pair of systems, answer and decision or two decisions.

        ``answer`` is d_z or the sign of the lead. ``main``, ``total`` and ``shapley`` are shares of its ``variance``
        over the cells (`cranfield.audits.influence`); ``lower`` and ``upper`` are the 95 % interval of ``shapley``, or
        of the ``interaction`` of two decisions, over resampled users. Rows of kind chance are the noise floor.
        """
        rows = [{**_names(pair), **row} for pair in self.pairs for row in pair.influence]
        return pl.DataFrame(rows, schema_overrides=_INFLUENCE_KINDS, infer_schema_length=None)

    def flips(self) -> pl.DataFrame:
        """Return the changes of the starting point that change a result: one row per pair of systems and change.

        All single changes that affect the winner or the significance and, if none changes the winner, the changes of
        two decisions that do.
        """
        rows = [
            {**_names(pair), **_flip_row(flip, pair)}
            for pair in self.pairs
            for flip in (*pair.flips.singles, *pair.flips.pairs)
            if flip.turns_winner or flip.turns_significance
        ]
        return pl.DataFrame(rows, schema=_FLIP_KINDS)

    def rule(self, first: str | None = None, second: str | None = None) -> Rule:
        """Return the tree of at most three conditions that best predicts the leader of a pair (given as for `pair`)."""
        return self.pair(first, second).rule

    def pair(self, first: str | None = None, second: str | None = None) -> PairAudit:
        """Return the results for a pair, by default for the two first of `systems_asked`."""
        if (first is None) != (second is None):
            raise SettingError(f"a pair needs two systems, and only {first or second!r} was given; name both")
        wanted = self.systems_asked[:2] if first is None or second is None else (first, second)
        for name in wanted:
            if name not in self.systems:
                raise SettingError(f"no system {name!r} was audited{suggestion(name, self.systems)}")
        for pair in self.pairs:
            if set(pair.systems) == set(wanted):
                return pair
        raise SettingError(f"a pair needs two systems, and {wanted[0]!r} was given twice; name another one")

    @cached_property
    def systems_at_start(self) -> tuple[str, ...]:
        """The systems under the starting point, best first."""
        universe = self.grid.universe[self.grid.start]
        values = self.averages[:, universe] * (1 if self.lower_is_better[universe] else -1)
        return tuple(self.systems[place] for place in np.argsort(values, kind="stable"))

    @property
    def systems_asked(self) -> tuple[str, ...]:
        """The systems under the starting point, best first, with the baseline among the first two."""
        first, *others = self.systems_at_start
        if self.baseline not in others:
            return self.systems_at_start
        return (first, self.baseline, *(system for system in others if system != self.baseline))

    def facts(self) -> list[Fact]:
        """Return how often systems rank first, and the result for the two best ones of the starting point."""
        answer, *others = self.pair_facts()
        return [answer, *self.rank_facts(), *others, *self.advice_facts()]

    def rank_facts(self) -> list[Fact]:
        """Return how often systems rank first, if there are more than two."""
        first = tuple(row for row in self.rank_rows if row["rank"] == 1 and row["question"] is None)
        return [audit_facts.FirstPlaces(first)] if len(first) > 2 else []

    def pair_facts(self, first: str | None = None, second: str | None = None) -> list[Fact]:
        """Return the facts about a pair of systems; by default the two best under the starting point."""
        pair = self.pair(first, second)
        return [
            *verdict.facts_of_pair(self.grid, pair, self.noise, self.effort.alpha),
            *verdict.facts_of_tests(self.tests, pair.systems),
            *verdict.facts_of_truth(self.known, pair.systems),
        ]

    def advice_facts(self) -> list[Fact]:
        """Return whether the advice on metrics is the same under each split and target design, if it was given."""
        return verdict.facts_of_advice(self.advised)

    def sentences(self, first: str | None = None, second: str | None = None) -> list[str]:
        """Return the verdict on a pair of systems; by default the two best under the starting point."""
        return sentences(self.pair_facts(first, second))

    @property
    def figures(self) -> Figures:
        """The kinds ``curve`` (the specification curve), ``map`` (the share led, by option), ``influence``, ``ranks``.

        Their options are in `cranfield.audits.figures`: the pair of systems (``first``, ``second``; signs are positive
        where the first leads), ``answer`` of the influence, ``style``.
        """
        from cranfield.audits import figures

        return figures.FIGURES

    def table(self) -> Table:
        """Return the decisions that change who leads, for the two systems of the verdict, as a table for people."""
        return pair_tables(self, PairView.of(self))["flips"]

    def _save_all(self, folder: Path, **_: Any) -> list[Path]:
        """Write ``universes.parquet``, ``influence.csv``, ``flips.csv`` and ``audit.json``; return the files.

        Also writes ``significance.csv`` if other tests or corrections were opened, ``truth.csv`` if a truth is known,
        and ``advice.csv`` if metrics were assessed.
        """
        from cranfield.audits.files import save_audit

        return save_audit(self, folder)

    def __str__(self) -> str:
        answer, *others = self.facts()
        return answer_and_table(answer, self.table(), [*others, *self.notes])

    def __repr__(self) -> str:
        return f"Audit({len(self.systems)} systems, {self.grid!r})"


def _check(grid: Grid, systems: tuple[str, ...], averages: Floats, terms: UserContributions) -> None:
    """Raise an error if systems, averages and terms do not match."""
    if len(systems) < 2:
        raise SettingError("an audit needs at least two systems; give two or more")
    if len(set(systems)) < len(systems):
        raise SettingError(f"two systems have the same name in {', '.join(systems)}; give each its own name")
    wanted = (len(systems), grid.n_universes)
    if averages.shape != wanted or terms.values.shape[:2] != wanted:
        raise SettingError(
            f"averages and terms must be for {wanted[0]} systems × {wanted[1]} universes, and are for "
            f"{averages.shape} and {terms.values.shape[:2]}"
        )
    if not np.isfinite(averages).all():
        universe = int(np.flatnonzero(~np.isfinite(averages).all(axis=0))[0])
        raise SettingError(f"universe {universe} has an average that is not a number; list its cells as invalid")


def _corrected(pairs: Sequence[PairAudit]) -> list[PairAudit]:
    """Return the pairs with Holm's correction over them, within each question and for each statistic."""
    corrected = [list(pair.answers) for pair in pairs]
    for place in range(len(pairs[0].answers)):
        tests = [pair.answers[place].joint for pair in pairs]
        plain = _holm([None if test is None else test.p for test in tests])
        retrained = _holm([None if test is None else test.retrained for test in tests])
        for answers, p, p_retrained in zip(corrected, plain, retrained):
            answers[place] = replace(answers[place], corrected=p, corrected_retrained=p_retrained)
    return [replace(pair, answers=tuple(answers)) for pair, answers in zip(pairs, corrected)]


def _holm(tests: Sequence[Mapping[str, float] | None]) -> list[dict[str, float]]:
    """Return the corrected p-values of each test; none if there was no test."""
    if any(test is None for test in tests):
        return [{} for _ in tests]
    columns = {name: holm(np.array([test[name] for test in tests if test])).tolist() for name in STATISTICS}
    return [{name: columns[name][place] for name in STATISTICS} for place in range(len(tests))]


def column_of(decision: VariedDecision) -> str:
    """Return the name of the column of a decision in `Audit.frame`."""
    return f"{decision.name} (decision)" if decision.name in OWN_COLUMNS else decision.name


def _names(pair: PairAudit) -> dict[str, str]:
    return {"system_a": pair.systems[0], "system_b": pair.systems[1]}


def _flip_row(flip: audit_facts.Flip, pair: PairAudit) -> dict[str, Any]:
    of_swaps = ("decision", "kind", "before", "after")
    parts = {name: " + ".join(str(getattr(swap, name)) for swap in flip.swaps) for name in of_swaps}
    leader = {1: pair.systems[0], -1: pair.systems[1], 0: None}[flip.lead]
    names = ("difference", "d_z", "p", "significant", "turns_winner", "turns_significance")
    results = {name: getattr(flip, name) for name in names}
    return {"changes": len(flip.swaps), **parts, "cell": flip.cell, "leader": leader, **results}
