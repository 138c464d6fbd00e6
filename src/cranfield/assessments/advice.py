"""Advice: which metric to trust on these data, on what evidence, and how certain that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks
from cranfield._errors import SettingError, nearest
from cranfield._numbers import listed, number_text
from cranfield._streams import stream
from cranfield._table import Cell, Table
from cranfield.assessments.scenarios import SCENARIOS

LIMITS = (
    "The whole test set is itself incomplete: robustness says how much further loss a metric tolerates, not how far it "
    "is from the truth.",
    "This is about these systems on these data: other systems, or another split, may rank the metrics differently.",
    "A metric that is robust and tells systems apart may still measure something that your users do not want; whether "
    "the first hit matters or all of them is for you to decide.",
    "Agreement with other metrics is not correctness: many metrics that look at the same thing agree with each other.",
)
"""What an assessment of metrics on such data cannot show."""

_SURE = {0.9: "sure", 0.5: "likely", 0.0: "not sure"}
"""How sure it is that a metric is best, by the minimum share of the draws of the systems in which it comes first."""

FEWEST_SYSTEMS = 8
"""Minimum number of systems; fewer say too little about metrics to choose among them."""

NAMES = {"power": "discriminative power"}
"""Displayed names of criteria, if they differ from the criterion; tests have a power, too."""

# Maximum number of signs of differences per block.
_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence on each candidate (a metric under an average), by pair of systems.

    Parameters
    ----------
    candidates
        (average, metric), in the order of the first axis of the arrays.
    systems
        The number of systems.
    apart
        candidates × pairs: 1 if the systems of the pair differ significantly, otherwise 0; NaN if no test applies: to
        metrics of the whole system, or to two systems that share no list with a value.
    whole
        folds × candidates × pairs: the sign of the difference between the systems of a pair on the whole test set.
    samples
        For each scenario, samples × candidates × pairs: the same on smaller test sets.
    folds
        For each scenario, the fold of each sample.
    """

    candidates: tuple[tuple[str, str], ...]
    systems: int
    apart: NDArray[np.float64]
    whole: NDArray[np.int8]
    samples: Mapping[str, NDArray[np.int8]]
    folds: Mapping[str, NDArray[np.int64]]

    @property
    def criteria(self) -> list[str]:
        """The criteria by which candidates are judged."""
        return ["power", *self.samples, "agreement"]

    def judge(self, multiplicity: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return draws × criteria × candidates, given how many times each draw contains each system.

        ``multiplicity`` is draws × systems. A pair counts once for each combination of its copies; a system is not
        compared with its own copy. The criteria are the share of the tested pairs that differ significantly, the mean
        tau-b with the whole test set in each scenario, and the mean tau-b with the other metrics under the same
        average.
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
class Advice:
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

    rows: pl.DataFrame
    weights: Mapping[str, float]
    criteria: tuple[str, ...]
    draws: int
    systems: int
    limits: ClassVar[tuple[str, ...]] = LIMITS
    """What the advice cannot take into account."""

    def frame(self) -> pl.DataFrame:
        """Return one row per metric and average, the recommended one first.

        ``score`` is the weighted mean of the criteria: ``power``, discriminative power, the share of pairs of systems
        that differ significantly; one column per scenario, the mean tau with the whole test set over all sizes;
        ``agreement``, the mean tau with the other metrics. ``lower, upper`` is the score's 95 % interval, and ``first``
        the share of bootstrap draws of the systems in which the metric comes first; if k metrics share the first place,
        each counts 1/k, so the column adds up to 1.
        """
        return self.rows

    @property
    def best(self) -> tuple[str, str]:
        """The recommended metric and its average."""
        row = self.rows.row(0, named=True)
        return row["metric"], row["average"]

    @property
    def unclear(self) -> str:
        """A clause on why there is no clear choice; empty if there is one.

        There is none with fewer than eight systems, or if the interval of another candidate's score overlaps with that
        of the best.
        """
        reasons = []
        if self.systems < FEWEST_SYSTEMS:
            reasons.append(f"there are fewer than eight systems ({self.systems})")
        rivals = [
            _candidate(row) for row in self.rows[1:].iter_rows(named=True) if row["upper"] >= self.rows["lower"][0]
        ]
        if rivals:
            others = listed(rivals if len(rivals) <= 3 else [*rivals[:2], f"{len(rivals) - 2} more"])
            best = _candidate(self.rows.row(0, named=True))
            reasons.append(f"the intervals of the scores of {best} and of {others} overlap")
        return " and ".join(reasons)

    def sentence(self) -> str:
        """Return the advice in words: the metric, or that there is no clear choice; the evidence; how certain it is."""
        row = self.rows.row(0, named=True)
        evidence, best = self._evidence(row), _candidate(row)
        if len(self.rows) == 1:
            return f"{best} was assessed alone ({evidence}), so there is nothing to compare it with."
        rivals = self.rows[1:].filter(pl.col("first") > 0).sort("first", descending=True, maintain_order=True).head(2)
        others = "".join(
            f", {_candidate(rival)} in {_percent(rival['first'])}" for rival in rivals.iter_rows(named=True)
        )
        first = f"of {self.draws} draws of the systems it comes first in {_percent(row['first'])}{others}"
        best_rows = self.rows.filter(pl.col("score") == row["score"])
        equal = [_candidate(candidate) for candidate in best_rows.iter_rows(named=True)]
        if len(equal) > 1:
            return (
                f"No clear choice: {', '.join(equal[:-1])} and {equal[-1]} score the same on these data "
                f"({best}: {evidence}); {first.replace(' it ', f' {best} ')}."
            )
        if self.unclear:
            return f"No clear choice: {self.unclear}. {best} scores highest ({evidence}); {first}."
        # The share is rounded as it is printed, so that the word never contradicts the number.
        sure = next(word for share, word in _SURE.items() if round(row["first"], 3) >= share)
        return f"Trust {best} most on these data ({evidence}). This is {sure}: {first}."

    def _evidence(self, row: Mapping[str, Any]) -> str:
        """Return the criteria of a candidate in words."""
        known = {name: f"{row[name]:.2f}" for name in self.criteria if row[name] is not None}
        power, agreement = known.pop("power", None), known.pop("agreement", None)
        kept = [f"{SCENARIOS[name].title if name in SCENARIOS else name} {tau}" for name, tau in known.items()]
        said = [f"discriminative power {power}"] if power else []
        said += [f"tau with the order of the whole test set: {', '.join(kept)}"] if kept else []
        said += [f"tau with other metrics {agreement}"] if agreement else []
        return "; ".join(said)

    def table(self, first: int | None = 10) -> Table:
        """Return the ``first`` metrics as a table for people."""
        rows = self.rows if first is None else self.rows.head(_checks.whole("first", first))
        several = self.rows["average"].n_unique() > 1
        cells = [
            [
                row["metric"] + (f", {row['average']}" if several else ""),
                Cell(number_text(row["score"], 3), best=place == 0),
                f"{number_text(row['lower'], 3)}–{number_text(row['upper'], 3)}",
                _percent(row["first"]),
                *(number_text(row[name], 3) for name in self.criteria),
            ]
            for place, row in enumerate(rows.iter_rows(named=True))
        ]
        names = [NAMES.get(name, name) for name in self.criteria]
        weights = ", ".join(f"{shown} {self.weights[name]:g}" for shown, name in zip(names, self.criteria))
        caption = f"Weights: {weights}; {_CRITERIA}"
        return Table(["metric", "score", "95 %", "first", *names], cells, caption, self.limits)

    def __str__(self) -> str:
        return f"{self.sentence()}\n\n{self.table().text()}"

    def __repr__(self) -> str:
        return f"Advice({self.best[0]}, of {len(self.rows)} candidates)"

    def _repr_html_(self) -> str:
        return self.table().html()


_CRITERIA = (
    "discriminative power is the share of pairs of systems that are told apart, agreement is the mean tau with "
    "other metrics, and each of the others is the mean tau with the whole test set when that part is missing"
)


def advise(
    evidence: Evidence, weights: Mapping[str, float] | None = None, *, draws: int = 200, seed: int = 0
) -> Advice:
    """Rank the candidates by the weighted mean of the criteria.

    ``weights`` are by criterion: ``power``, the scenarios and ``agreement``; those not named count 1. A candidate that
    cannot be judged by a criterion, such as a metric of the whole system by significance, gets 0 there. Bootstrap draws
    of the systems show how certain the ranking is.
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
    columns = {
        "metric": [metric for _, metric in evidence.candidates],
        "average": [average for average, _ in evidence.candidates],
        "score": score,
        "lower": lower,
        "upper": upper,
        "first": first,
        **{name: whole[c] for c, name in enumerate(evidence.criteria)},
    }
    rows = pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))
    rows = rows.sort("score", descending=True, nulls_last=True, maintain_order=True)
    rows = rows.with_columns(rank=pl.int_range(1, pl.len() + 1))
    named = tuple(evidence.criteria[c] for c in known)
    return Advice(rows.select("rank", pl.exclude("rank")), counted, named, draws, evidence.systems)


def weights_of(weights: Mapping[str, float] | None, criteria: Sequence[str]) -> dict[str, float]:
    """Return the weight of each criterion: as given, otherwise 1.

    Examples
    --------
    >>> weights_of({"power": 2}, ["power", "ratings", "agreement"])
    {'power': 2.0, 'ratings': 1.0, 'agreement': 1.0}
    """
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


def _candidate(row: Mapping[str, str]) -> str:
    """Return a metric with its average, if that is not the mean."""
    return row["metric"] + ("" if row["average"] == "mean" else f" ({row['average']} over users)")


def _percent(share: float) -> str:
    """Return a share as a percentage, with a decimal if needed."""
    return f"{round(100 * share, 1):g}%"
