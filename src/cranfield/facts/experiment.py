"""Facts of an experiment and of its pages: averages without a test, what moved, and what is reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from cranfield._numbers import count_text, listed, number_text, time_text
from cranfield.facts.fact import Fact


class UntestedAverage(Fact):
    """The average of a system by a metric, where systems are not tested against each other."""

    metric: str
    system: str
    mean: float | None
    standing: Literal["", "best", "highest"] = ""  # among several systems; highest, if no value is better than another
    nothing_relevant: Any = ""  # why no test item is relevant, if that is why there is no average

    def _said(self) -> str:
        if self.mean is None:
            why = self.nothing_relevant or "it is undefined for every user"
            return f"{self.metric}: nothing can be said, since {why}."
        if self.standing:
            return (
                f"{self.metric}: {self.system} has the {self.standing} average ({self.mean:.4f}); nothing was tested."
            )
        return f"{self.metric}: {self.system} has {self.mean:.4f}"


class Inconclusive(Fact):
    """Why systems, or groups of users, cannot be told apart: what is missing, or the same for all."""

    reason: Literal["no users", "no values", "one system", "equal averages", "one group"]
    system: str = ""
    nothing_relevant: Any = ""

    def _said(self) -> str:
        return {
            "no users": "There are no users to measure, so nothing can be said.",
            "no values": f"Nothing can be said: {self.nothing_relevant or 'no system has a value by any metric'}.",
            "one system": f"There is one system, {self.system}, and nothing to compare it with.",
            "equal averages": "All systems have the same averages, by every metric: these data do not tell them apart.",
            "one group": "Warm and cold are not shown separately: at least one test part holds only one of them.",
        }[self.reason]


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


class MeasuredAgain(Fact):
    """What another protocol was measured on, where that differs from the rest of a page."""

    parts: int  # folds, repetitions or windows, of which it was the first
    plain_means: bool  # and the rest of the page has other averages

    def _said(self) -> str:
        said = [f"Measured on the first of {self.parts} parts (folds, repetitions or windows)."] * (self.parts > 1)
        if self.plain_means:
            said.append("Averages here are plain means over all users; those without a list count as 0.")
        return " ".join(said)


class WrongSplits(Fact):
    """The splits in which something is wrong."""

    names: tuple[str, ...]

    def _said(self) -> str:
        return f"Something is wrong with {listed(self.names)}." if self.names else "Nothing is wrong."


class OnData(Fact):
    """A fact about one of several sets of ratings."""

    data: str
    note: Any

    def _said(self) -> str:
        return f"{self.data}: {self.note}"


class BestSetting(Fact):
    """The best of all settings of a system that a search tried."""

    system: str
    trials: int
    metric: str
    value: float

    def _said(self) -> str:
        return f"{self.system} is the best of {self.trials} by {self.metric}: {self.value:.4f}"


FEWEST_USERS = 100
"""A search on fewer validation users is said to be uncertain."""


class Searched(Fact):
    """How the settings of a system were chosen."""

    system: str
    trials: int
    validation: str
    users: int
    refit: bool

    def _said(self) -> str:
        then = "refitted on all training ratings" if self.refit else "not refitted on the validation ratings"
        return (
            f"{self.system}: {count_text(self.trials, 'trial')} on {self.validation} "
            f"({count_text(self.users, 'user')}), {then}."
        )


class EndsRange(Fact):
    """The best value of a parameter is the last one that was tried."""

    system: str
    parameter: str
    value: float
    upper: bool

    def _said(self) -> str:
        other = "larger" if self.upper else "smaller"
        return f"{self.system}: the best {self.parameter} = {self.value:g} ends the range; try {other} values."


class FewValidationUsers(Fact):
    """Few users of the validation part have a list and a value."""

    systems: tuple[str, ...]
    users: int
    validation: str

    def _said(self) -> str:
        return (
            f"{listed(self.systems)}: only {count_text(self.users, 'user')} of {self.validation} "
            f"{'is' if self.users == 1 else 'are'} served, so chance decides much of the choice; take a larger "
            "validation part, or average over several (validation_windows = 3)."
        )


class FlatSearch(Fact):
    """Settings that the validation part does not tell from the best one."""

    system: str
    level: int
    metric: str

    def _said(self) -> str:
        return (
            f"{self.system}: {count_text(self.level, 'other setting')} {'lies' if self.level == 1 else 'lie'} within "
            f"one standard error (paired by user) of the best by {self.metric}, so the validation part does not decide."
        )


class UnusedInSearch(Fact):
    """Training ratings that are in neither part of a search, because of the target of the split."""

    system: str
    ratings: int
    refit: bool

    def _said(self) -> str:
        them = "it" if self.ratings == 1 else "them"
        later = f"the refit learns from {them}" if self.refit else f"without a refit nothing learns from {them}"
        targets = "it is not a target" if self.ratings == 1 else "they are not targets"
        unused = f"the search does not use {self.ratings:,} of the newest training ratings, since {targets}"
        return f"{self.system}: {unused}; {later}."


class UnevenBudget(Fact):
    """Two searches of which one had more than twice the budget of the other."""

    what: Literal["trials", "seconds"]
    most: tuple[str, float]
    least: tuple[str, float]

    def _said(self) -> str:
        more, less = (
            f"{system} {count_text(int(size), 'trial') if self.what == 'trials' else time_text(size)}"
            for system, size in (self.most, self.least)
        )
        return f"The searches differ more than twofold in their budget: {more}, {less}; give them about the same."


class SearchedAlone(Fact):
    """Systems whose settings were searched, next to others with settings that were not."""

    searched: tuple[str, ...]
    others: tuple[str, ...]

    def _said(self) -> str:
        were = "was" if len(self.searched) == 1 else "were"
        return (
            f"{listed(self.searched)} {were} searched and {listed(self.others)} not, which favours what was searched; "
            "search all of them with the same budget."
        )


class NewestForValidation(Fact):
    """A predefined split whose test part is later than its training part, but whose validation part is random."""

    data: str

    def _said(self) -> str:
        return (
            f"Every test rating of {self.data} is later than its training ratings, but the validation part is drawn at "
            "random; set validation = 'temporal(train=0.8)'."
        )


class NotRefitted(Fact):
    """Systems that take a validation part and do not say how many epochs were best, so that they cannot be refitted."""

    systems: tuple[str, ...]

    def _said(self) -> str:
        are = "is" if len(self.systems) == 1 else "are"
        return (
            f"{listed(self.systems)} {are} not refitted: fit takes a validation part, and only systems that learn by "
            "epochs say when to stop without one."
        )


class NotLearnedFrom(Fact):
    """Validation ratings that some systems use for nothing, because they are not refitted."""

    ratings: int
    systems: tuple[str, ...]

    def _said(self) -> str:
        return (
            f"{listed(self.systems)} {'learns' if len(self.systems) == 1 else 'learn'} nothing from the "
            f"{count_text(self.ratings, 'validation rating')}, because refit = false."
        )


class TrainingSeeds(Fact):
    """Repetitions of a split that is the same each time, so that only the training of randomised systems differs."""

    times: int
    random: tuple[str, ...]  # the systems that draw

    def _said(self) -> str:
        drawn = listed(self.random) if self.random else "no system"
        return (
            f"The split is the same in all {self.times} repetitions: they are {self.times} training seeds of {drawn}, "
            "not new splits, and intervals do not say how results vary between test periods; for several of them, use "
            "rolling."
        )


def of_search(system: str, search: Mapping[str, Any]) -> list[Fact]:
    """Return what is to be kept in mind about a search, given its record; nothing if all is well."""
    warnings: list[Fact] = []
    if search["users"] < FEWEST_USERS:
        warnings.append(FewValidationUsers((system,), search["users"], search["validation"]))
    warnings += [EndsRange(system, name, value, upper) for name, (value, upper) in search["ends"].items()]
    if search["level"]:
        warnings.append(FlatSearch(system, len(search["level"]), search["metric"]))
    return warnings


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


class OrderChange(Fact):
    """How well two experiments agree on the order of the systems: Kendall's tau by the first metric of each."""

    data: str
    tau: float

    def _said(self) -> str:
        same = "the same order of systems" if self.tau == 1 else "a different order of systems"
        return f"On {self.data} the first metrics give {same} (Kendall's tau {self.tau:.2f})."


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


class Point(Fact):
    """Something to report: the decision or area it belongs to, the topic, and what is reported."""

    area: str
    topic: str
    reported: str | None
    remedy: str = ""  # how to report it
    warning: Any = ""  # what is weak about what is reported

    @property
    def state(self) -> str:
        """What is reported, with a warning if it is weak, or that it is missing."""
        weak = f" WARNING: {self.warning}" if self.warning else ""
        return f"MISSING: {self.remedy}" if self.reported is None else f"{self.reported}{weak}"

    @property
    def mark(self) -> str:
        """The mark in a list: a cross if it is reported, an exclamation mark if that is weak."""
        return " " if self.reported is None else "!" if self.warning else "x"

    @property
    def entry(self) -> tuple[str, str, str | None, str, str]:
        """The fields as a card and a list for reviewers show them: a remedy only if it is needed."""
        missing = self.reported is None
        return self.area, self.topic, self.reported, self.remedy if missing else "", "" if missing else self.warning

    def _said(self) -> str:
        return f"{self.topic}: {self.state}"


class Completeness(Fact):
    """How many points are reported, and the topics of those that are not."""

    points: int
    missing: tuple[str, ...]
    weak: tuple[str, ...] = ()  # the topics of those that are reported, but with a warning

    @classmethod
    def of(cls, points: tuple[Point, ...]) -> Completeness:
        """Return which of these points are missing or weak."""
        topics = {mark: tuple(point.topic for point in points if point.mark == mark) for mark in " !"}
        return cls(len(points), topics[" "], topics["!"])

    @property
    def count(self) -> str:
        """How many points are missing, without their topics."""
        return f"{len(self.missing)} of {self.points} are missing." if self.missing else "Nothing is missing."

    def _said(self) -> str:
        weak = f" Warnings: {'; '.join(self.weak)}." if self.weak else ""
        if not self.missing:
            return f"All {self.points} points are reported.{weak}"
        return f"{len(self.missing)} of {self.points} points are missing: {'; '.join(self.missing)}.{weak}"


def _value_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_value_text, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
