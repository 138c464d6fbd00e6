"""Advice: which metric to trust on these data, on what evidence, and how certain that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks
from cranfield._errors import SettingError, nearest
from cranfield._numbers import number_text
from cranfield._result import Result
from cranfield._streams import stream
from cranfield._table import Cell, Table
from cranfield.assessments.holding import held
from cranfield.facts import Fact
from cranfield.facts import assessment as assessment_facts
from cranfield.metrics import metric_label

NAMES = {"significant": "significant pairs"}
"""Displayed names of criteria, if they differ from the criterion."""

# A lead counts as chance if it is gone in more than this share of the draws.
_CHANCE = 0.01
_CELLS = 1 << 22  # maximum number of signs of differences per block


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence on each candidate (a metric under an average), by pair of systems."""

    candidates: tuple[tuple[str, str], ...]  # (average, metric)
    systems: int
    # Candidates × pairs: 1 if the systems of the pair differ significantly, otherwise 0; NaN if no test applies: to
    # metrics of the whole system, or to two systems that share no list with a value.
    apart: NDArray[np.float64]
    whole: NDArray[np.int8]  # folds × candidates × pairs: the sign of the difference on the whole test set
    samples: Mapping[str, NDArray[np.int8]]  # by scenario, samples × candidates × pairs: the same on smaller test sets
    folds: Mapping[str, NDArray[np.int64]]  # by scenario, the fold of each sample
    sizes: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)  # by scenario, the size of each sample

    @property
    def criteria(self) -> list[str]:
        """The criteria by which candidates are judged; agreement with other metrics is shown, but is no quality."""
        return ["significant", *self.samples]

    def judge(self, multiplicity: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return draws × criteria and agreement × candidates, given how often each draw contains each system.

        ``multiplicity`` is draws × systems. A pair counts once for each combination of its copies; a system is not
        compared with its own copy. The criteria are the share of the tested pairs that differ significantly, and the
        mean tau-b with the whole test set in each scenario. The last row is the mean tau-b with the other metrics under
        the same average.
        """
        first, second = np.triu_indices(self.systems, 1)
        weights = multiplicity[:, first] * multiplicity[:, second]
        with np.errstate(invalid="ignore"):
            criteria = [weights @ np.nan_to_num(self.apart).T / (weights @ ~np.isnan(self.apart).T)]
        for name, signs in self.samples.items():
            truth = self.whole[self.folds[name]]
            criteria.append(_mean_tau(truth, signs, weights))
        criteria.append(self._agreement(weights))
        return np.stack(criteria, axis=1)

    def thinned(self) -> Evidence:
        """Return the evidence with fewer, evenly spaced samples if there are too many for repeated judging."""
        pairs = len(self.candidates) * self.systems * (self.systems - 1) // 2
        step = {name: max(1, len(signs) * pairs // _CELLS) for name, signs in self.samples.items()}
        return replace(
            self,
            samples={name: signs[:: step[name]] for name, signs in self.samples.items()},
            folds={name: fold[:: step[name]] for name, fold in self.folds.items()},
            sizes={},
        )

    def _agreement(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return draws × candidates: the mean tau with the other metrics under the same average, over the folds."""
        agreement = np.full((len(weights), len(self.candidates)), np.nan)
        averages = [average for average, _ in self.candidates]
        for average in dict.fromkeys(averages):
            places = np.array([place for place, name in enumerate(averages) if name == average])
            if len(places) < 2:
                continue
            total = np.zeros((len(weights), len(places)))
            for shift in range(1, len(places)):
                mine, others = self.whole[:, places], self.whole[:, np.roll(places, shift)]
                total += _mean_tau(mine, others, weights)
            agreement[:, places] = total / (len(places) - 1)
        return agreement


def _mean_tau(x: NDArray[np.int8], y: NDArray[np.int8], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return draws × candidates: the mean over samples of tau-b, with weighted pairs of systems.

    tau-b = Σ w s_x s_y / √(Σ w |s_x| Σ w |s_y|), where s are the signs of the differences. An undefined tau counts as
    0: a metric that orders no systems agrees with nothing.
    """
    samples, candidates, pairs = x.shape
    total = np.zeros((candidates, len(weights)))
    block = max(1, _CELLS // max(1, candidates * max(pairs, len(weights))))
    for start in range(0, samples, block):
        a, b = (signs[start : start + block].astype(np.float64) for signs in (x, y))
        with np.errstate(invalid="ignore", divide="ignore"):
            tau = (a * b) @ weights.T / np.sqrt((np.abs(a) @ weights.T) * (np.abs(b) @ weights.T))
        total += np.nan_to_num(tau).sum(axis=0)
    return total.T / samples


@dataclass(frozen=True, eq=False)
class Advice(Result):
    """A ranked recommendation of metrics.

    Parameters
    ----------
    rows
        One row per metric and average, best first; see `frame`.
    weights
        The weight of each criterion.
    criteria
        The criteria that could be judged.
    draws
        The number of bootstrap draws of systems that show how certain the advice is.
    systems
        The number of systems.
    """

    drawn = ("score", "lower", "upper", "metric", "average")
    rows: pl.DataFrame
    weights: Mapping[str, float]
    criteria: tuple[str, ...]
    draws: int
    systems: int
    holds: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # see `held`
    needed: int | None = None  # about how many systems would tell the first two apart
    limits: ClassVar[tuple[str, ...]] = assessment_facts.LIMITS
    """What the advice cannot take into account."""

    def frame(self) -> pl.DataFrame:
        """Return one row per metric and average, the recommended one first.

        ``score`` is the weighted mean of the criteria: ``significant``, the share of pairs of systems that differ
        significantly, and one column per scenario, the mean tau with the whole test set over all sizes. ``lower,
        upper`` is the score's 95 % interval and ``lead_lower`` the lower end of the 98 % interval of the best score
        minus this one, over the same bootstrap draws of the systems; ``first`` is the share of draws in which the
        metric comes first; if k metrics share the first place, each counts 1/k, so the column adds up to 1.
        ``agreement`` is the mean tau with the other metrics, which is not part of the score.
        """
        return self.rows

    @property
    def best(self) -> tuple[str, str]:
        """The recommended metric and its average."""
        row = self.rows.row(0, named=True)
        return row["metric"], row["average"]

    @cached_property
    def fact(self) -> assessment_facts.MetricChoice:
        """The metric to trust, or that there is no clear choice."""
        rows = self.rows.rows(named=True)
        candidates = tuple(
            assessment_facts.Candidate(metric_label(row["metric"]), row["average"], row["first"]) for row in rows
        )
        return assessment_facts.MetricChoice(
            candidates,
            equal=sum(row["score"] == rows[0]["score"] for row in rows),
            level=tuple(rival for rival, row in zip(candidates[1:], rows[1:]) if row["lead_lower"] <= 0),
            draws=self.draws,
            systems=self.systems,
        )

    def facts(self) -> list[Fact]:
        """The metric to trust, over which other choices it stays first, and what to do without a clear choice."""
        choice, facts = self.fact, list[Fact]([self.fact])
        if len(choice.candidates) < 2:
            return facts
        best = str(choice.candidates[0])
        if self.holds:
            facts.append(assessment_facts.AdviceScope(best, self.holds))
        if choice.unclear or choice.equal > 1:
            level = dict.fromkeys([*choice.candidates[: max(choice.equal, 1)], *choice.level])
            facts.append(assessment_facts.NextStep(tuple(map(str, level)), self.needed))
        return facts

    @property
    def unclear(self) -> str:
        """A clause on why there is no clear choice; empty if there is one.

        There is none with fewer than eight systems, or if the interval of the best score's lead over another candidate
        includes 0.
        """
        return self.fact.unclear

    def sentence(self) -> str:
        """Return the advice in words: the metric, or that there is no clear choice, and how certain it is."""
        return self.fact.sentence

    def table(self, first: int | None = 10) -> Table:
        """Return the ``first`` metrics as a table for people."""
        rows = self.rows if first is None else self.rows.head(_checks.whole("first", first))
        several = self.rows["average"].n_unique() > 1
        cells: list[list[str | Cell]] = [
            [
                metric_label(row["metric"]) + (f", {row['average']}" if several else ""),
                Cell(number_text(row["score"], 3), best=place == 0),
                f"{number_text(row['lower'], 3)}–{number_text(row['upper'], 3)}",
                candidate.share,
                *(number_text(row[name], 3) for name in self.criteria),
            ]
            for place, (row, candidate) in enumerate(zip(rows.iter_rows(named=True), self.fact.candidates))
        ]
        names = [NAMES.get(name, name) for name in self.criteria]
        weights = ", ".join(f"{shown} {self.weights[name]:g}" for shown, name in zip(names, self.criteria))
        caption = f"Weights: {weights}; {_CRITERIA}"
        return Table(["metric", "score", "95 %", "first", *names], cells, caption, self.limits)

    def __str__(self) -> str:
        return f"{self.sentence()}\n\n{self.table().text()}"

    def __repr__(self) -> str:
        return f"Advice({self.best[0]}, of {len(self.rows)} candidates)"


_CRITERIA = (
    "significant pairs is the share of pairs of systems that differ significantly, and each of the others is the mean "
    "tau with the whole test set when that part is missing"
)


def advise(
    evidence: Evidence, weights: Mapping[str, float] | None = None, *, draws: int = 200, seed: int = 0
) -> Advice:
    """Rank the candidates by the weighted mean of the criteria.

    ``weights`` are by criterion: ``significant`` and the scenarios; those not named count 1. A candidate that cannot be
    judged by a criterion, such as a metric of the whole system by significance, gets 0 there. Bootstrap draws of the
    systems show how certain the ranking is.
    """
    draws, seed = _checks.whole("draws", draws), _checks.whole("seed", seed, at_least=0)
    whole = evidence.judge(np.ones((1, evidence.systems)))[0]
    counted = weights_of(weights, evidence.criteria)
    known = [c for c, name in enumerate(evidence.criteria) if not np.isnan(whole[c]).all() and counted[name] > 0]
    if not known:
        raise SettingError(
            "no criterion with a weight could be computed; weight one of " + ", ".join(evidence.criteria)
        )
    share = np.array([counted[evidence.criteria[c]] for c in known])
    score = _weighted(whole[None], known, share)[0]
    drawn_systems = draws_of_systems(evidence.systems, draws, stream(seed, "assess", "advice", evidence.systems))
    drawn = _weighted(evidence.thinned().judge(drawn_systems), known, share)
    ahead = drawn == drawn.max(axis=1, keepdims=True)
    first = (ahead / ahead.sum(axis=1, keepdims=True)).mean(axis=0)
    lower, upper = np.quantile(drawn, [0.025, 0.975], axis=0)
    # Scores go up and down together, so their own intervals may overlap although the lead is certain.
    lead = np.quantile(drawn[:, [int(np.argmax(score))]] - drawn, _CHANCE, axis=0)
    averages, metrics = zip(*evidence.candidates)
    columns = {"metric": metrics, "average": averages, "score": score, "lower": lower, "upper": upper}
    columns |= {"lead_lower": lead, "first": first}
    columns |= {name: whole[c] for c, name in enumerate([*evidence.criteria, "agreement"])}
    rows = pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))
    rows = rows.sort("score", descending=True, nulls_last=True, maintain_order=True)
    rows = rows.with_columns(rank=pl.int_range(1, pl.len() + 1))
    named = tuple(evidence.criteria[c] for c in known)
    choices = held(evidence, {evidence.criteria[c]: weight for c, weight in zip(known, share / share.max())})
    rows = rows.select("rank", pl.exclude("rank"))
    return Advice(rows, counted, named, draws, evidence.systems, choices, _needed(score, drawn, evidence.systems))


def _needed(score: NDArray[np.float64], drawn: NDArray[np.float64], systems: int) -> int | None:
    """Return about how many systems would tell the first two apart: n (1.96 s / d)², as errors go by 1/√n."""
    best, *others = np.argsort(-score, kind="stable")[:2].tolist()
    ahead = score[best] - score[others[0]] if others else 0.0
    error = float((drawn[:, best] - drawn[:, others[0]]).std(ddof=1)) if others and len(drawn) > 1 else np.nan
    return int(np.ceil(systems * (1.96 * error / ahead) ** 2)) if ahead > 0 and error > 0 else None


def weights_of(weights: Mapping[str, float] | None, criteria: Sequence[str]) -> dict[str, float]:
    """Return the weight of each criterion: as given, otherwise 1."""
    if not isinstance(weights, Mapping | None):
        raise SettingError(f"weights={weights!r} is not a mapping; give a mapping, such as {{'power': 2}}")
    given = dict(weights or {})
    for name, weight in given.items():
        if name not in criteria:
            raise SettingError(f"there is no criterion {name!r} to weight{nearest(name, criteria)}")
        if not 0 <= _checks.number(f"the weight of {name}", weight) < float("inf"):
            raise SettingError(f"the weight {weight!r} of {name} is not a number of at least 0; give one")
    return {name: float(given.get(name, 1.0)) for name in criteria}


def _weighted(criteria: NDArray[np.float64], known: Sequence[int], share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return draws × candidates: the weighted mean of the criteria, rounded so that equal scores are equal."""
    share = share / share.max()
    return np.round(np.einsum("dcm,c->dm", np.nan_to_num(criteria[:, known]), share) / share.sum(), 12)


def draws_of_systems(systems: int, draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return draws × systems: how often each bootstrap draw contains each system; at least two different ones."""
    drawn: list[NDArray[np.float64]] = []
    while len(drawn) < draws:
        chosen = (rng.random(systems) * systems).astype(np.intp)
        counts = np.bincount(chosen, minlength=systems).astype(np.float64)
        if np.count_nonzero(counts) > 1:
            drawn.append(counts)
    return np.array(drawn)
