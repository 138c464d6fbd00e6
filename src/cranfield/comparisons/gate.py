"""A gate for a build: whether a system is shown to be no worse than another, or better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._figures import Style, intervals
from cranfield._numbers import number_text
from cranfield._registry import parse
from cranfield._result import Figures, Result
from cranfield._roots import enclosed
from cranfield._table import Table
from cranfield.comparisons.effects import noncentralities, users_needed
from cranfield.comparisons.errors import standard_errors
from cranfield.comparisons.p_values import TestResult, holm
from cranfield.comparisons.sample import Floats, Sample
from cranfield.comparisons.unjudged import Unjudged
from cranfield.facts import Fact, p_text
from cranfield.facts import gate as gate_facts
from cranfield.measures import Errors

GateTest = Callable[[Sequence[Sample]], list[TestResult]]

# A limit is found to within this share of a standard error.
_CLOSE = 4e-6
_DOUBLINGS = 40
_POWER = 0.8
# The range of the users needed leaves out so much, half of it on either side.
_DOUBT = 0.2

NONE = gate_facts.Margin(0.0, False)
"""The margin of a claim that a system is better."""


@dataclass(frozen=True, eq=False)
class Gate(Result):
    """Whether a claim about systems is shown, for every system and metric that it names.

    It is true only if the claim is shown for all: ``assert comparison.no_worse("new", than="old", by="1%")``.

    Parameters
    ----------
    rows
        One row per metric and system; see `frame`.
    margin
        How much worse a system may be; 0 for the claim that it is better.
    alpha
        The probability of showing a false claim, over all systems of a metric together.
    """

    rows: pl.DataFrame
    margin: gate_facts.Margin
    alpha: float

    def frame(self) -> pl.DataFrame:
        """Return one row per metric and system.

        Columns: ``metric, system, baseline``, ``outcome`` (``shown``, ``undecided`` or ``worse``); ``mean`` and
        ``baseline_mean``; ``gain``, how much better the system is, ``limit``, its lower confidence limit (for ``worse``
        its upper one), and ``margin``, all three as shares of the baseline's average if ``is_relative``; the one-sided
        ``p`` of the claim, ``p_corrected`` (Holm over the systems of the metric) and ``p_worse``, that of the opposite
        claim, corrected in the same way; ``tipping``, the share of unjudged entries that must be liked to reverse the
        outcome, and ``holds``, whether that is implausible; ``n`` users, the ``users_needed`` to show the claim with
        power 0.8 if the gain stays as it is (infinite if no number is enough), with an 80 % interval
        ``users_needed_lower, users_needed_upper``, since the difference is known from these users only, and
        ``users_if_equal``, the number if the two are equally good.
        """
        return self.rows

    @property
    def outcome(self) -> gate_facts.GateOutcome:
        """``shown`` if the claim is shown for all, ``worse`` if any system is worse, otherwise ``undecided``."""
        outcomes = set(self.rows["outcome"])
        return "worse" if "worse" in outcomes else "undecided" if "undecided" in outcomes else "shown"

    @property
    def claim(self) -> str:
        """The claim in words."""
        return self.margin.claim(self.rows["baseline"][0])

    def facts(self) -> list[Fact]:
        """One claim per metric and system; if there are several, their outcome together comes first."""
        systems = dict(self.rows.group_by("metric").len().iter_rows())
        kept = {declared.name for declared in fields(gate_facts.Claim)}
        claims: list[Fact] = [
            gate_facts.Claim(
                **{name: value for name, value in row.items() if name in kept},
                allowed=self.margin,
                alpha=self.alpha,
                systems=systems[row["metric"]],
            )
            for row in self.rows.iter_rows(named=True)
        ]
        if len(claims) == 1:
            return claims
        shown = int((self.rows["outcome"] == "shown").sum())
        return [gate_facts.Claims(self.claim, self.outcome, shown, len(claims)), *claims]

    def as_dict(self) -> dict[str, Any]:
        """Return the claim, the outcome, the sentences and the rows, ready for JSON (NaN and infinity become null)."""
        numbers = pl.selectors.float()
        rows = self.rows.with_columns(pl.when(numbers.is_finite()).then(numbers)).to_dicts()
        return {"claim": self.claim, "outcome": self.outcome, "sentences": self.verdict, "rows": rows}

    def table(self) -> Table:
        """Return the rows as a table for people."""
        header = ["metric", "system", "outcome", "mean", self.rows["baseline"][0], "gain", "limit", "margin"]
        header += [f"p {word}" for word in ("no worse" if self.margin.size else "better", "worse")]
        rows = [
            [
                row["metric"],
                row["system"],
                row["outcome"],
                number_text(row["mean"]),
                number_text(row["baseline_mean"]),
                *(
                    f"{100 * row[name]:+.2f} %" if row["is_relative"] else number_text(row[name], sign="+")
                    for name in ("gain", "limit")
                ),
                str(self.margin) if self.margin.size else "0",
                p_text(row["p_corrected"]),
                p_text(row["p_worse"]),
            ]
            for row in self.rows.iter_rows(named=True)
        ]
        return Table(header, rows, f"{self.claim}: one-sided tests at alpha {self.alpha:g}, Holm within each metric")

    @property
    def figures(self) -> Figures:
        """``intervals``: how much better each system is, with the limit that the claim is about."""
        return {"intervals": _intervals}

    def __bool__(self) -> bool:
        return self.outcome == "shown"

    def __str__(self) -> str:
        return "\n".join(self.verdict)

    def __repr__(self) -> str:
        return f"Gate({self.outcome}: {' '.join(self.verdict)})"


def _intervals(gate: Gate, *, style: Style = "screen") -> Any:
    ends = pl.col("gain", "limit")
    rows = gate.rows.with_columns(lower=pl.min_horizontal(ends), upper=pl.max_horizontal(ends))
    return intervals(rows, "gain", ("lower", "upper"), ("metric", "system"), style=style)


def gate(
    data: Sequence[Sample],
    test: GateTest,
    significance: str,
    alpha: float,
    margin: gate_facts.Margin,
    entries: Sequence[Unjudged | None] = (),
) -> Gate:
    """Test the claim that the first system of each pair is not worse than the second by the margin or more.

    If higher values are better, the claim is a > b − margin, or a > (1 − margin) b for a relative margin. A relative
    margin is applied user by user, so the test includes the error of the baseline's average. The claim is shown if the
    chosen test, one-sided, rejects the opposite; the outcome is ``worse`` if it rejects the claim itself, one-sided at
    the same level. p-values are corrected by Holm's method over the systems of each metric. Over metrics there is no
    correction: the claim counts as shown only if it is shown for all of them, which is an intersection-union test
    (Berger 1982) and keeps its level.

    There is one sample per metric, each pair is a system and the baseline, and the ``test`` returns two-sided p-values.
    Where the ``entries`` of the lists show that unjudged items could plausibly reverse an outcome, it is ``undecided``.
    """
    if parse(significance).name == "tukey":
        raise SettingError("Tukey's test has no one-sided form; use significance='student' or 'permutation'")
    known = entries or [None] * len(data)
    frames = [_Claim(sample, test, alpha, margin, own).frame() for sample, own in zip(data, known)]
    return Gate(pl.concat(frames), margin, alpha)


class _Claim:
    """The claim for one metric, about every pair of a sample."""

    def __init__(
        self, sample: Sample, test: GateTest, alpha: float, margin: gate_facts.Margin, entries: Unjudged | None
    ) -> None:
        self._sample, self._test, self._alpha, self._margin, self._entries = sample, test, alpha, margin, entries
        self._sign = -1.0 if sample.lower_is_better else 1.0
        self._means = sample.averages(slice(0, sample.n_pairs))
        if margin.relative and not (self._means[1] > 0).all():
            base = sample.systems[sample.second[0]]
            raise SettingError(
                f"{margin} of {sample.metric} of {base} has no meaning, because that average is not above 0; give an "
                "amount, such as 0.01"
            )
        if sample.geometric and margin.size and not margin.relative:
            raise SettingError(f"an amount of {margin} has no test for geometric means; give a share, such as 1%")
        # An average that cannot be negative is never further below the baseline's average than the latter is above 0.
        everything = sample.values.size and not sample.lower_is_better and np.fmin.reduce(sample.values, None) >= 0
        if everything and margin.size > 0 and not margin.relative and (margin.size >= self._means[1]).any():
            raise SettingError(
                f"a margin of {margin} lets every system through, since {sample.metric} of "
                f"{sample.systems[sample.second[0]]} is {number_text(self._means[1][0])}; give a smaller amount, or a "
                f"share, such as 1%"
            )
        self._margins = np.full(sample.n_pairs, margin.size)
        # Geometric means are compared by their ratios, so all sizes are shares.
        self._relative = margin.relative or sample.geometric
        self._base = self._means[1] + (sample.shift if sample.geometric else 0.0)
        gain = self._sign * (self._means[0] - self._means[1])
        self._gain = gain / self._base if self._relative else gain

    def frame(self) -> pl.DataFrame:
        """Return one row for each pair; see `Gate.frame`."""
        sample = self._sample
        p, against = self._p(self._margins)
        corrected, levels = holm(p), _holm_levels(p, self._alpha)
        p_worse = holm(against)
        shown, worse = corrected < self._alpha, p_worse < self._alpha
        limit = self._limit(levels, rising=False)
        if worse.any():
            limit = np.where(worse, self._limit(_holm_levels(against, self._alpha), rising=True), limit)
        least, most = self._range_of_users(levels)
        tipping, holds = self._tipping(worse)
        shown, worse = shown & holds, worse & holds
        outcome = np.where(shown, "shown", np.where(worse, "worse", "undecided"))
        return pl.DataFrame(
            {
                "metric": [sample.metric] * sample.n_pairs,
                "system": [sample.systems[place] for place in sample.first],
                "baseline": [sample.systems[place] for place in sample.second],
                "outcome": [str(verdict) for verdict in outcome],
                "mean": self._means[0],
                "baseline_mean": self._means[1],
                "gain": self._gain,
                "limit": limit,
                "margin": self._margins,
                "is_relative": [self._relative] * sample.n_pairs,
                "p": p,
                "p_corrected": corrected,
                "p_worse": p_worse,
                "tipping": tipping,
                "holds": holds,
                "n": sample.n,
                "users_needed": self._users_needed(levels, self._ahead(self._means[0])),
                "users_needed_lower": least,
                "users_needed_upper": most,
                "users_if_equal": self._users_needed(levels, self._ahead(self._means[1])),
            }
        )

    def _tipping(self, worse: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the share of unjudged entries that reverses each outcome, and whether the judgments tell it."""
        sample, entries = self._sample, self._entries
        if entries is None or entries.all_liked:
            return np.full(sample.n_pairs, np.inf), np.ones(sample.n_pairs, dtype=bool)
        # A margin of the metric is the same share of the baseline's precision.
        share = self._margins if self._margin.relative else self._margins / np.abs(self._means[1])
        ahead = np.where(worse, -1.0, 1.0) * share * entries.liked[sample.second]
        winners, losers = np.where(worse, [sample.second, sample.first], [sample.first, sample.second])
        tipping = entries.tipping(winners, losers, ahead)
        return tipping.share, tipping.holds

    def _moved(self, margins: Floats) -> Sample:
        """Return pairs of a system and the baseline lowered by the margin: the claim is that the first is better."""
        sample, pairs = self._sample, self._sample.n_pairs

        def moved(values: Floats) -> Floats:
            shape = (-1,) + (1,) * (values.ndim - 1)
            system, base, step = values[sample.first], values[sample.second], (self._sign * margins).reshape(shape)
            if sample.geometric:  # a share of exp(mean(log(x + shift))); the floor is applied first
                system, base = (np.maximum(part, sample.floor) for part in (system, base))
                base = (base + sample.shift) * (1 - step) - sample.shift
            else:
                base = base * (1 - step) if self._margin.relative else base - step
            return np.concatenate([system, base])

        return replace(
            sample,
            systems=tuple(str(place) for place in range(2 * pairs)),
            values=moved(sample.values),
            first=np.arange(pairs),
            second=np.arange(pairs, 2 * pairs),
            floor=-np.inf if sample.geometric else sample.floor,
            cells=None if sample.cells is None else moved(sample.cells),
        )

    def _p(self, margins: Floats) -> tuple[Floats, Floats]:
        """Return the one-sided p-values of the claim and of its opposite."""
        claimed = self._moved(margins)
        (verdict,) = self._test([claimed])
        a, b = claimed.averages(slice(0, claimed.n_pairs))
        direction = self._sign * (a - b if verdict.direction is None else verdict.direction)
        half = verdict.p / 2
        return np.where(direction > 0, half, 1 - half), np.where(direction < 0, half, 1 - half)

    def _limit(self, levels: Floats, *, rising: bool) -> Floats:
        """Return the smallest gain that the test does not reject at its level; the largest if ``rising``.

        The p-value of the claim falls with the margin and that of its opposite rises, so the margin at which the
        p-value equals the level can be enclosed ever more closely; a limit that cannot be told from 0 is 0. NaN if no
        margin reaches the level, for example with very few users.
        """
        from scipy.special import ndtri

        side, error = -1.0 if rising else 1.0, self._errors.error
        unit = 1 / self._base if self._relative and not self._sample.geometric else 1.0
        step = np.nan_to_num(error) * unit
        near = -self._gain
        # A share of the baseline is at most 1.
        most = 1.0 if self._relative and self._sign > 0 and not rising else np.inf

        def beyond(margins: Floats) -> Floats:
            """Return how far p is above its level in normal deviates, which are almost linear in the margin."""
            p = np.clip(self._p(margins)[1 if rising else 0], 1e-300, 1 - 1e-16)
            return np.asarray(ndtri(p) - ndtri(levels))

        # Student's limit, and a little more.
        reach = 1.001 * np.nan_to_num(self._errors.reach(2 * levels)) * unit
        far = np.minimum(near + side * np.where(step > 0, reach, 1.0), most)
        for _ in range(_DOUBLINGS):
            at_far = beyond(far)
            short = (at_far >= 0) & (far < most) & (step > 0)
            if not short.any():
                break
            far = np.where(short, np.minimum(near + 2 * (far - near), most), far)
        # Where the two are equally good, p is about one half.
        near, far = enclosed(beyond, near, far, -ndtri(levels), at_far, _CLOSE * step)
        limit = np.where(step > 0, np.where(np.abs(far) <= _CLOSE * step, 0.0, -far), self._gain)
        return np.where(np.isnan(error) | (at_far >= 0), np.nan, limit)

    @cached_property
    def _claimed(self) -> Sample:
        return self._moved(self._margins)

    @cached_property
    def _errors(self) -> Errors:
        return standard_errors(self._claimed)

    def _ahead(self, mean: Floats) -> Floats:
        """Return how far a system with such an average is ahead of what is claimed, on the scale of the test."""
        claimed = self._claimed.averages(slice(0, self._sample.n_pairs))[1]
        return self._sign * self._sample.tested_difference(mean, claimed)

    def _users_needed(self, levels: Floats, ahead: Floats) -> Floats:
        """Return how many users show a claim with power 0.8 if the system is ``ahead`` of it; infinite if none do.

        More users do not make the spread between repetitions smaller: if that alone is too large, no number is enough.
        """
        from scipy.special import ndtri

        errors, n = self._errors, self._sample.n.astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self._sample.cells is None:
                needed = users_needed(np.clip(ahead / (errors.error * np.sqrt(n)), 0.0, 1e6), 2 * levels, _POWER)
            else:
                wanted = (ahead / (ndtri(_POWER) - ndtri(levels))) ** 2
                fixed = errors.error**2 - errors.users_error**2
                needed = np.ceil(np.where(wanted > fixed, n * errors.users_error**2 / (wanted - fixed), np.inf))
        return np.where(np.isnan(errors.error), np.nan, np.where(ahead > 0, needed, np.inf))

    def _range_of_users(self, levels: Floats) -> tuple[Floats, Floats]:
        """Return the 80 % interval of the users needed: the numbers at the ends of that of the standardised effect.

        That is the interval of the non-centrality of t = ahead / error; over repetitions, ``ahead`` ± `Errors.reach`.
        """
        errors, ahead = self._errors, self._ahead(self._means[0])
        if self._sample.cells is None:
            with np.errstate(divide="ignore", invalid="ignore"):
                t = np.where(ahead == 0, 0.0, ahead / errors.error)
            least, most = (end * errors.error for end in noncentralities(t, errors.users_degrees, _DOUBT))
        else:
            least, most = ahead - errors.reach(_DOUBT), ahead + errors.reach(_DOUBT)
        return self._users_needed(levels, most), self._users_needed(levels, least)


def _holm_levels(p: Floats, alpha: float) -> Floats:
    """Return the level at which Holm's method tests each p-value: after the first failure the level stays the same."""
    order = np.argsort(p, kind="stable")
    steps = alpha / (len(p) - np.arange(len(p)))
    failed = np.flatnonzero(~(p[order] < steps))
    if len(failed):
        steps[failed[0] :] = steps[failed[0]]
    levels = np.empty(len(p))
    levels[order] = steps
    return levels


def pairs_with(data: Sequence[Sample], systems: Sequence[str], base: str) -> list[Sample]:
    """Return the samples with only the pairs of some systems and a baseline."""
    known = data[0].systems
    first = np.array([known.index(system) for system in systems], dtype=np.intp)
    second = np.full(len(first), known.index(base), dtype=np.intp)
    return [replace(sample, first=first, second=second) for sample in data]
