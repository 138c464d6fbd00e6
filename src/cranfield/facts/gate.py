"""Facts of a gate: whether each claim about a system is shown, left undecided, or its opposite is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cranfield._errors import SettingError
from cranfield._numbers import count_text, number_text
from cranfield.facts.fact import Fact
from cranfield.facts.numbers import p_equals

GateOutcome = Literal["shown", "undecided", "worse"]


@dataclass(frozen=True)
class Margin:
    """How much worse a system may be: a share of the baseline's average, or an amount."""

    size: float
    relative: bool

    @classmethod
    def read(cls, value: str | float) -> Margin:
        """Parse a margin such as ``1%`` (relative) or ``0.01`` (absolute)."""
        text = str(value).strip()
        relative = text.endswith("%")
        try:
            size = float(text.removesuffix("%")) / (100 if relative else 1)
        except ValueError:
            size = float("nan")
        if isinstance(value, bool) or not 0 < size < (1 if relative else float("inf")):
            raise SettingError(
                f"{value!r} is not a margin; write a share of the baseline's average, such as 1%, or an amount, such "
                "as 0.01"
            )
        return cls(size, relative)

    def __str__(self) -> str:
        return f"{100 * self.size:g} %" if self.relative else f"{self.size:g}"

    def claim(self, base: str) -> str:
        """Return what is claimed of a system."""
        return f"no worse than {base} by more than {self}" if self.size else f"better than {base}"


class Claim(Fact):
    """The claim about one system by one metric; the numbers are those of `Gate.frame`, under the same names."""

    metric: str
    system: str
    baseline: str
    outcome: GateOutcome
    mean: float
    baseline_mean: float
    gain: float
    limit: float
    is_relative: bool
    p_corrected: float
    p_worse: float
    n: int
    users_needed: float
    users_needed_lower: float  # its 80 % interval
    users_needed_upper: float
    users_if_equal: float
    allowed: Margin  # how much worse the system may be
    alpha: float  # the level of the test
    systems: int  # the number of systems over which p-values are corrected
    # Of the unjudged items, the share that must be liked to reverse the outcome, and whether that is implausible.
    tipping: float = np.inf
    holds: bool = True

    def _said(self) -> str:
        if self.n == 0:
            return (
                f"{self.metric}: undecided: there is no user for whom it is defined for {self.system} and "
                f"{self.baseline}."
            )
        name = f"{self.system} ({number_text(self.mean)})"
        base = f"{self.baseline} ({number_text(self.baseline_mean)})"
        opening = f"{self.metric}: {self.outcome}: {name} is"
        limit = "" if np.isnan(self.limit) else self._amount(self.limit)
        if self.outcome == "worse":
            end = f" by more than {self.allowed}" if self.allowed.size else ""
            least = f"; it is at least {limit}" if limit else ""
            return f"{opening} worse than {base}{end}{least} {self._evidence}."
        side = "least" if self.limit > 0 else "worst"
        worst = f"it is at {side} {limit}" if limit else "no limit can be found"
        if not self.holds:
            return f"{self.metric}: undecided: {name} against {base} cannot be told{self._reversed}."
        if self.outcome == "shown":
            return f"{opening} {self.allowed.claim(base)}; {worst} {self._evidence}."
        goal = f"within {self.allowed}" if self.allowed.size else "better"
        worst = f"{worst}, not {goal}" if limit else worst
        than = "as good as" if self.gain == 0 else f"{self._amount(self.gain)} than"
        return f"{opening} {than} {base}; {worst} {self._evidence}. {self._wanted}"

    @property
    def _reversed(self) -> str:
        if np.isnan(self.tipping):
            return ": no item of the lists is judged"
        share = f"{100 * max(self.tipping, 0):.0f} %"
        return f" from these judgments: if {share} of the unjudged items are liked, the outcome is reversed"

    @property
    def brief(self) -> str:
        """The outcome, how bad the system may be, and p: at most 25 words."""
        if self.n == 0:
            return self.sentence
        opening = f"{self.metric}: {self.outcome}: {self.system} is"
        if not self.holds:
            return (
                f"{self.metric}: undecided: {self.system} against {self.baseline} cannot be told: too much is unjudged."
            )
        if self.outcome == "worse":
            by = f" by more than {self.allowed}" if self.allowed.size else ""
            return f"{opening} worse than {self.baseline}{by} (p {p_equals(self.p_worse)})."
        claim = self.allowed.claim(self.baseline)
        side = "least" if self.limit > 0 else "worst"
        limit = "" if np.isnan(self.limit) else f"; at {side} {self._amount(self.limit)}"
        shown = "" if self.outcome == "shown" else "not shown to be "
        return f"{opening} {shown}{claim}{limit} (p {p_equals(self.p_corrected)})."

    @property
    def _evidence(self) -> str:
        correction = f", Holm over {self.systems} systems" * (self.systems > 1)
        limit = f"one-sided {100 * (1 - self.alpha):g} % limit{correction}"
        p = p_equals(self.p_worse if self.outcome == "worse" else self.p_corrected)
        return f"({limit}; p {p}; {count_text(self.n, 'user')})"

    def _amount(self, gain: float) -> str:
        if gain == 0:
            return "as good"
        word = "better" if gain > 0 else "worse"
        return f"{100 * abs(gain):.3g} % {word}" if self.is_relative else f"{abs(gain):.4f} {word}"

    @property
    def _wanted(self) -> str:
        if self.users_needed == float("inf"):
            equal = f"; if the two are equally good, it takes about {self.users_if_equal:,.0f} (power 0.8)"
            otherwise = equal if np.isfinite(self.users_if_equal) else ""
            return f"If the difference stays as it is, no number of users would show it{otherwise}."
        if np.isnan(self.users_needed):
            return "There are too few users to say how many it would take."
        most = "or more" if self.users_needed_upper == float("inf") else f"to {self.users_needed_upper:,.0f}"
        return (
            f"If the difference stays as it is, it takes about {self.users_needed:,.0f} users to show it (power 0.8); "
            f"these users leave a range of {self.users_needed_lower:,.0f} {most} (80 % interval)."
        )


class Claims(Fact):
    """The outcome of several claims together."""

    claim: str
    outcome: GateOutcome
    shown: int
    of: int

    def _said(self) -> str:
        return f"{self.outcome}: “{self.claim}” is shown for {self.shown} of {self.of} systems and metrics."

    @property
    def brief(self) -> str:
        """The same, as the first sentence of a page."""
        return self.sentence[0].upper() + self.sentence[1:]
