"""`Decisions`: how an experiment is set up, A1 to D (Cañamares, Castells and Moffat 2020, section 3).

A decision is declared where it is taken, as a field of a group (`cranfield._decisions`). This module only combines the
groups: a field added to one of them becomes a decision of the experiment, with an entry in its file, its schema,
`cranfield new` and the phrase.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import Field, dataclass, field, fields, make_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Self, TypeVar

from cranfield import _checks as check
from cranfield import splits
from cranfield._decisions import DecisionGroup, in_one_form
from cranfield._errors import SettingError, nearest
from cranfield._registry import Spelling, parse
from cranfield.comparisons import Comparing
from cranfield.data import AUTO, Filtering, RatingScale, usual_threshold
from cranfield.judgments import NONE, Cataloguing, Drawing
from cranfield.measures import Average, Averaging, Measuring, Segmenting
from cranfield.metrics import at_levels, check_expected, relevant_items
from cranfield.rankings import Ranking, Serving
from cranfield.splits import Splitting

GROUPS: tuple[type[DecisionGroup], ...] = (
    *(Filtering, Splitting, Serving, Ranking, Drawing, Cataloguing, Measuring, Averaging, Comparing),
    Segmenting,
)
"""The groups of decisions, in the order of the stages."""


IN_TABLES = (
    *("lists", "metrics", "threshold", "undefined", "average", "coverage"),
    *("significance", "correction", "alpha", "baseline", "segment"),
)
"""The decisions that tables of results already state in their headers and captions."""

_UNTESTED = ("median", "trimmed", "trisk", "georisk")

Group = TypeVar("Group", bound=DecisionGroup)


@dataclass(frozen=True)
class _Decisions(DecisionGroup):
    def __new__(cls, *_: Any, **stated: Any) -> Self:
        """Reject unknown names with a helpful message, before Python raises its own error."""
        for name in stated:
            known_decision(name)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for name, declared in DECISIONS.items():
            object.__setattr__(self, name, _written(name, getattr(self, name), declared))
        super().__post_init__()

    def _check_together(self) -> None:
        if (threshold := self._of("threshold")) in (None, math.inf, -math.inf):
            raise SettingError(f"threshold={threshold!r} is not a rating; give a number, such as threshold=4")
        for group in GROUPS:
            self.group(group)
        # The default correction depends on the test.
        object.__setattr__(self, "correction", self.group(Comparing).correction)
        _consistent(self)  # type: ignore[arg-type]

    def _of(self, name: str) -> Any:
        return getattr(self, name)

    def differences(self, other: DecisionGroup) -> dict[str, tuple[Any, Any]]:
        """Return the decisions that differ from another set, by name, each with both values."""
        mine, theirs = self.as_dict(), other.as_dict()
        return {name: (mine[name], theirs[name]) for name in mine if mine[name] != theirs[name]}

    def __str__(self) -> str:
        return self.words()

    def words(self, without: Collection[str] = (), labels: Mapping[str, str] | None = None) -> str:
        """Return the decisions in words, optionally without some; ``labels`` are names by spelling.

        Examples
        --------
        >>> Decisions(metrics="P@10").words(without=IN_TABLES)
        'a random 20 % of ratings as test'
        """
        labelled = labels or {}
        said = {
            name: labelled.get(str(self._of(name))) or _phrase(name, self._of(name))
            for name in _SAID
            if name not in without
        }
        plain = said.get("threshold")
        if plain is not None:
            relevance = str(relevant_items(self._of("metrics"), self._of("threshold")) or "")
            unused = f"no metric uses the threshold, {self._of('threshold'):g}"
            said["threshold"] = relevance if plain in relevance else ", ".join(filter(None, (relevance, unused)))
        return ", ".join(phrase for phrase in said.values() if phrase)

    def group(self, kind: type[Group]) -> Group:
        """Return a group of the decisions: those that it declares or borrows."""
        # Cached, because checking every value again takes longer than most callers need for their own work.
        groups: dict[type[Any], Any] = self.__dict__.setdefault("_groups", {})
        if kind not in groups:
            known = [declared.name for declared in fields(kind) if declared.name in DECISIONS]
            groups[kind] = kind(**{name: self._of(name) for name in known})
        return groups[kind]

    def on(self, lowest: float, highest: float, least_event: float | None = None) -> Any:
        """Return the decisions resolved for ratings from ``lowest`` to ``highest``.

        The threshold ``auto`` becomes a number, for events the smallest value of one, and metrics at levels of
        relevance are spelled out.

        Examples
        --------
        >>> Decisions().on(1, 1).threshold, Decisions().on(0.5, 5).threshold
        (1.0, 4.0)
        """
        usual = usual_threshold(lowest, highest, least_event)
        decisions = self.with_(threshold=usual) if self._of("threshold") == AUTO else self
        if self._of("levels") == "none":
            return decisions
        return decisions.with_(metrics=tuple(map(str, at_levels(self._of("metrics"), RatingScale(lowest, highest)))))

    @property
    def overlap(self) -> str | None:
        """How to treat pairs in both parts of data that are already divided; None if the data are split here."""
        return self.group(Splitting).overlap

    @property
    def apart(self) -> tuple[str, ...]:
        """The segments to report separately because of the split; see `Splitting.apart`."""
        return self.group(Splitting).apart

    @property
    def has_windows(self) -> bool:
        """Whether the split makes windows that follow each other in time."""
        return self.group(Splitting).has_windows

    @property
    def one_relevant(self) -> bool:
        """Whether there is a list for each relevant item."""
        return self.ranking.one_relevant

    @property
    def averages_draws(self) -> bool:
        """Whether metrics are the expectation over all draws of targets, so that nothing is drawn."""
        return bool(self._of("draws") == "exact")

    @property
    def serving(self) -> Serving:
        """Decision B1: who is served."""
        return self.group(Serving)

    @property
    def ranking(self) -> Ranking:
        """Decisions B2 and C1: how scores become lists; the threshold is None unless they depend on it."""
        ranking = self.group(Ranking)
        if self.averages_draws:  # all candidates are ranked, because measuring averages over the draws
            ranking = ranking.with_(nonrelevant="all", unrated="all", length="all")
        return ranking if ranking.needs_relevance else ranking.with_(threshold=None)

    @property
    def measuring(self) -> Measuring:
        """Decision C2: what is measured."""
        # The candidates of a list for one relevant item are already condensed when it is ranked.
        return self.group(Measuring).with_(lists="full") if self.one_relevant else self.group(Measuring)

    @property
    def averaging(self) -> Averaging:
        """Decisions C3 and C4: how values are averaged; a user's lists are averaged first.

        Time windows have equal weight, regardless of how many users each has.
        """
        averaging = self.group(Averaging)
        return averaging.with_(groups="equal") if self.has_windows else averaging

    @property
    def tested(self) -> Averaging:
        """The average that a test compares: the reported one, or the mean if there is no test of the reported one."""
        averaging = self.averaging
        return averaging.with_(average="mean") if parse(averaging.average).name in _UNTESTED else averaging

    @property
    def comparing(self) -> Comparing:
        """Decision D: how systems are compared."""
        return self.group(Comparing)


DECISIONS: Mapping[str, Field[Any]] = {
    name: declared for group in GROUPS for name, declared in group.decisions().items()
}
"""The decisions by name, in order; `cranfield._decisions.decision` describes their ``metadata``."""


if TYPE_CHECKING:

    class Decisions(
        _Decisions,
        Segmenting,
        Comparing,
        Averaging,
        Measuring,
        Cataloguing,
        Drawing,
        Ranking,
        Serving,
        Splitting,
        Filtering,
    ):
        """See below."""

else:
    Decisions = make_dataclass(
        "Decisions",
        [
            (name, Any, field(default=declared.default, metadata=declared.metadata))
            for name, declared in DECISIONS.items()
        ],
        bases=(_Decisions,),
        frozen=True,
    )
    # Needed for pickling, and for doctest to find the examples.
    Decisions.__module__ = __name__
    Decisions.__doc__ = (
        """The decisions A1 to D of an experiment, with the defaults of the commands and functions that take them.

    Instances are immutable. Equal decisions compare equal and have the same hash, and `with_` returns a copy with some
    decisions changed. Impossible or contradictory decisions raise `SettingError`.

    Parameters
    ----------
"""
        + "".join(
            f"    {name}\n        {declared.metadata['letter']}, {declared.metadata['says']}.\n"
            for name, declared in DECISIONS.items()
        )
        + """
    Examples
    --------
    >>> start = Decisions()
    >>> print(start)
    a random 20 % of ratings as test, full lists, P@10, Recall@10, nDCG@10, nDCG@100, AP@100 and RR@100, plain mean
    >>> print(start.with_(split="random(train=0.5)", metrics="nDCG(gain=exp)@10"))
    a random 50 % of ratings as test, full lists, nDCG@10 with exponential gain, plain mean
    >>> start.with_(average="mean") == start, len({start, Decisions()})
    (True, 1)
    >>> start.with_(lists="condensed", nonrelevant=100)
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: lists='condensed' keeps only rated items, so nonrelevant=100 cannot be ...
    """
    )


def known_decision(name: str) -> Field[Any]:
    """Return a decision by its name; the error for an unknown one gives the nearest match."""
    if name not in DECISIONS:
        raise SettingError(f"there is no decision {name!r}{nearest(name, DECISIONS)}")
    return DECISIONS[name]


def checked_value(name: str, value: Any) -> Any:
    """Return the value of a decision in canonical form, or raise an error; other decisions are not considered.

    Examples
    --------
    >>> checked_value("split", "random( train=0.8 )"), checked_value("filters", "k_core(k=5)")
    ('random(train=0.8)', ('k_core(k=5)',))
    """
    declared = known_decision(name)
    return in_one_form(declared, _written(name, value, declared))


@cache
def takes(name: str, value: Any) -> bool:
    """Whether a decision accepts a value."""
    about = DECISIONS[name].metadata
    try:
        if about["choices"]:
            check.one_of(name, value, about["choices"])
        if about["check"]:
            about["check"](name, value)
    except Exception:
        # A check may raise any exception for a value of another type.
        return False
    return bool(about["choices"] or about["check"])


def _written(name: str, value: Any, declared: Field[Any]) -> Any:
    """Return a value as given in a file, with its type checked: text, a list of texts, or what the decision accepts."""
    if isinstance(declared.default, tuple):
        texts = (value,) if isinstance(value, str) else value
        if not isinstance(texts, tuple | list) or not all(isinstance(text, str) for text in texts):
            raise SettingError(f"{name}={value!r} is not a list of names; write {name} = ['...', '...']")
        if declared.default and not texts:
            raise SettingError(f"{name} is empty; name at least one, as in {name} = ['{declared.default[0]}']")
        return tuple(texts)
    spelled = isinstance(declared.default, str) and not declared.metadata["choices"] and not takes(name, 7)
    if spelled and not isinstance(value, str):
        raise SettingError(f"{name}={value!r} is not text; write it in quotes")
    return value


def _phrase(name: str, value: Any) -> str | None:
    """Return a decision in words: the phrase of its group, or its name and value if it is not the default."""
    declared = DECISIONS[name]
    if declared.metadata["phrase"] is not None:
        return declared.metadata["phrase"](value)
    return None if value == declared.default else f"{name.replace('_', ' ')} {value!r}"


def phrases(letter: str, stated: Mapping[str, Any], but: Collection[str] = ()) -> list[str]:
    """Return the decisions of a letter in words, except for those in ``but`` and those that need no mention."""
    names = [name for name, declared in DECISIONS.items() if declared.metadata["letter"] == letter and name not in but]
    return [said for name in names if name in stated and (said := _phrase(name, stated[name])) is not None]


def _is_said_later(name: str) -> bool:
    """Whether a paper need not state a decision: not about data or lists, and without a phrase for the default."""
    declared = DECISIONS[name]
    return declared.metadata["letter"] not in ("A1", "A2", "C1") and _phrase(name, declared.default) is None


_SAID = sorted(DECISIONS, key=_is_said_later)


def _consistent(decisions: Decisions) -> None:
    """Reject decisions of different groups that contradict each other."""
    if decisions.lists == "condensed" and decisions.nonrelevant != "all":
        raise SettingError(
            f"lists='condensed' keeps only rated items, so nonrelevant={decisions.nonrelevant} cannot be drawn from "
            "the unrated ones; set lists='full' or nonrelevant='all'"
        )
    if decisions.overlap is not None and decisions.filters:
        raise SettingError(
            f"split='{decisions.split}' takes data that are already divided, so filters={list(decisions.filters)} "
            "cannot be applied; filter before dividing, or choose a split"
        )
    if decisions.candidates == "group" and _without_groups(decisions):
        raise SettingError(
            f"candidates='group' needs items in popularity groups, which split='{decisions.split}' does not make; set "
            "split='percentiles(groups=10)' or candidates='all'"
        )
    if decisions.catalogue != NONE and decisions.one_relevant:
        raise SettingError(
            f"catalogue='{decisions.catalogue}' needs whole lists, and with relevant='one' a list holds only its "
            "relevant item; set relevant='all' or catalogue='none'"
        )
    if decisions.has_windows and not Average.of(decisions.average).is_of_groups:
        raise SettingError(
            f"split='{decisions.split}' averages each window and then the windows, and average='{decisions.average}' "
            f"is not a mean; set average='mean' or 'weighted'"
        )
    if decisions.averages_draws:
        if decisions.group(Ranking).drawn is None:
            raise SettingError(
                "draws='exact' is the expectation over drawn items, but none are drawn; set nonrelevant or unrated to "
                "a number, or draws='sampled'"
            )
        check_expected(decisions.measuring.wanted)
    for metric in decisions.metrics:
        cutoff = parse(metric).cutoff or 0
        if decisions.length != "all" and cutoff > int(decisions.length):
            raise SettingError(
                f"length={decisions.length} is too short for {metric}; set length={cutoff} or 'all', or a smaller "
                "cut-off"
            )
    _consistent_test(parse(decisions.average), parse(decisions.significance))


def _without_groups(decisions: Decisions) -> bool:
    """Whether a split is known to make no popularity groups; user-defined splits may make some."""
    split = parse(decisions.split).name
    ours = decisions.overlap is not None or splits.registry[split].__module__.startswith("cranfield.")
    return ours and split != "percentiles"


def _consistent_test(average: Spelling, test: Spelling) -> None:
    """Reject a test that does not test the reported average."""
    settings = dict(average.parameters)
    if test.name == "log_student":
        shift = dict(test.parameters).get("epsilon", 1e-5)
        wanted = f"geometric(form=adjusted, epsilon={shift:g})"
        if (average.name, settings.get("form"), settings.get("epsilon", 1e-5)) != ("geometric", "adjusted", shift):
            raise SettingError(
                f"significance='{test}' tests a different average than average='{average}'; set average='{wanted}', or "
                "give the test the epsilon of the average"
            )
    elif average.name in _UNTESTED and test.name != "sign":
        raise SettingError(
            f"significance='{test.name}' does not test a {average.name}, because paired tests look at averages of "
            "differences; set significance='sign', or average='mean'"
        )
