"""Facts of an experiment and of its pages: averages without a test, what moved, and what is reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from cranfield._numbers import listed, number_text
from cranfield.facts.fact import Fact


@dataclass(frozen=True)
class UntestedAverage(Fact):
    """The average of a system by a metric, where systems are not tested against each other."""

    metric: str
    system: str
    mean: float | None
    is_best: bool = False  # of several systems
    nothing_relevant: Any = ""  # why no test item is relevant, if that is why there is no average

    def _said(self) -> str:
        if self.mean is None:
            why = self.nothing_relevant or "it is undefined for every user"
            return f"{self.metric}: nothing can be said, since {why}."
        if self.is_best:
            return f"{self.metric}: {self.system} has the best average ({self.mean:.4f})."
        return f"{self.metric}: {self.system} has {self.mean:.4f}"


@dataclass(frozen=True)
class Inconclusive(Fact):
    """Why systems, or groups of users, cannot be told apart: what is missing, or the same for all."""

    reason: Literal["no users", "no values", "one system", "equal averages", "no significant pair", "one group"]
    system: str = ""
    nothing_relevant: Any = ""

    def _said(self) -> str:
        return {
            "no users": "There are no users to measure, so nothing can be said.",
            "no values": f"Nothing can be said: {self.nothing_relevant or 'no system has a value by any metric'}.",
            "one system": f"There is one system, {self.system}, and nothing to compare it with.",
            "equal averages": "All systems have the same averages, by every metric: these data do not tell them apart.",
            "no significant pair": "No pair of systems differs significantly, by any metric.",
            "one group": "Warm and cold are not shown separately: at least one test part holds only one of them.",
        }[self.reason]


@dataclass(frozen=True)
class OrderByLists(Fact):
    """Whether full and condensed lists agree on the best systems of a metric, and on the order."""

    metric: str
    full: tuple[str, ...]  # the best ones; none if fewer than two systems have both averages
    condensed: tuple[str, ...]
    tau: float | None  # Kendall's, between the two orders; None if all systems are equal with one kind of list

    def _said(self) -> str:
        if not self.full:
            return f"{self.metric}: there is nothing to compare."
        full, condensed = (
            f"{listed(names)} {'is' if len(names) == 1 else 'are'} first" for names in (self.full, self.condensed)
        )
        same = self.full == self.condensed
        leaders = f"{full} with both" if same else f"{full} with full lists, {condensed} with condensed ones"
        if self.tau is None:
            order = "there is no order to correlate, because all systems are equal with one kind of list"
        else:
            order = f"Kendall's tau between the two orders is {number_text(self.tau, 2)}"
        return f"{self.metric}: {leaders}; {order}."


@dataclass(frozen=True)
class MeasuredAgain(Fact):
    """What another protocol was measured on, where that differs from the rest of a page."""

    parts: int  # folds, repetitions or windows, of which it was the first
    plain_means: bool  # and the rest of the page has other averages

    def _said(self) -> str:
        said = [f"Measured on the first of {self.parts} parts (folds, repetitions or windows)."] * (self.parts > 1)
        if self.plain_means:
            said.append("Averages here are plain means over all users; those without a list count as 0.")
        return " ".join(said)


@dataclass(frozen=True)
class WrongSplits(Fact):
    """The splits in which something is wrong."""

    names: tuple[str, ...]

    def _said(self) -> str:
        return f"Something is wrong with {listed(self.names)}." if self.names else "Nothing is wrong."


@dataclass(frozen=True)
class OnData(Fact):
    """A fact about one of several sets of ratings."""

    data: str
    note: Any

    def _said(self) -> str:
        return f"{self.data}: {self.note}"


@dataclass(frozen=True)
class BestSetting(Fact):
    """The best of all settings of a system that a search tried."""

    system: str
    trials: int
    metric: str
    value: float

    def _said(self) -> str:
        return f"{self.system} is the best of {self.trials} by {self.metric}: {self.value:.4f}"


@dataclass(frozen=True)
class SettingChange(Fact):
    """A setting that differs between two experiments, with the letter of the decision; no name if nothing differs."""

    name: str = ""
    letter: str = ""
    before: Any = None
    after: Any = None

    def _said(self) -> str:
        if not self.name:
            return "The two state the same experiment."
        letter = f"{self.letter} " if self.letter else ""
        return f"{letter}{self.name}: {_value_text(self.before)} → {_value_text(self.after)}"


@dataclass(frozen=True)
class OrderChange(Fact):
    """How well two experiments agree on the order of the systems: Kendall's tau by the first metric of each."""

    data: str
    tau: float

    def _said(self) -> str:
        same = "the same order of systems" if self.tau == 1 else "a different order of systems"
        return f"On {self.data} the first metrics give {same} (Kendall's tau {self.tau:.2f})."


@dataclass(frozen=True)
class VerdictChange(Fact):
    """Two systems that two experiments judge differently: which one is significantly better, None for neither."""

    data: str
    metric: str
    system_a: str
    system_b: str
    better_before: str | None
    better_after: str | None

    def _said(self) -> str:
        before, after = (better or "no difference" for better in (self.better_before, self.better_after))
        return f"On {self.data} by {self.metric}, {self.system_a} and {self.system_b}: {before} → {after}."


@dataclass(frozen=True)
class Point(Fact):
    """Something to report: the decision or area it belongs to, the topic, and what is reported."""

    area: str
    topic: str
    reported: str | None
    remedy: str = ""  # how to report it

    @property
    def state(self) -> str:
        """What is reported, or that it is missing."""
        return f"MISSING: {self.remedy}" if self.reported is None else self.reported

    @property
    def entry(self) -> tuple[str, str, str | None, str]:
        """The fields as a card and a list for reviewers show them: a remedy only if it is needed."""
        return self.area, self.topic, self.reported, self.remedy if self.reported is None else ""

    def _said(self) -> str:
        return f"{self.topic}: {self.state}"


@dataclass(frozen=True)
class Completeness(Fact):
    """How many points are reported, and the topics of those that are not."""

    points: int
    missing: tuple[str, ...]

    @classmethod
    def of(cls, points: tuple[Point, ...]) -> Completeness:
        """Return which of these points are missing."""
        return cls(len(points), tuple(point.topic for point in points if point.reported is None))

    @property
    def count(self) -> str:
        """How many points are missing, without their topics."""
        return f"{len(self.missing)} of {self.points} are missing." if self.missing else "Nothing is missing."

    def _said(self) -> str:
        if not self.missing:
            return f"All {self.points} points are reported."
        return f"{len(self.missing)} of {self.points} points are missing: {'; '.join(self.missing)}."


def _value_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_value_text, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
