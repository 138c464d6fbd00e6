"""`Decisions`: how an experiment is set up, A1 to D (Cañamares, Castells and Moffat 2020, section 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from cranfield import _checks as check
from cranfield import splits
from cranfield._errors import SettingError
from cranfield._registry import Registry
from cranfield._spelling import Spelling, nearest, parse
from cranfield.comparisons.corrections import corrections
from cranfield.comparisons.verdict import tests
from cranfield.data import filters as data_filters
from cranfield.experiments.phrase import phrase
from cranfield.measures import Average, Metric
from cranfield.recommenders import recommender

GIVEN = Registry("split")
"""The split of data that come as a training and a test part, beside those of `cranfield.splits.registry`."""


@GIVEN.register
def given(_: Any, overlap: str = "error") -> str:
    """Return what to do with pairs that are in both parts; see `cranfield.splits.given`."""
    return check.one_of("overlap", overlap, ("error", "test", "train"))


def _decision(letter: str, default: Any, says: str, *choices: str) -> Any:
    """Declare a decision: its letter in the paper, its default, what it decides, and the words it may be."""
    return field(default=default, metadata={"letter": letter, "says": says, "choices": choices})


@dataclass(frozen=True)
class Decisions:
    """The decisions A1 to D of an experiment; the defaults are the starting configuration of the paper.

    A value: equal decisions are equal and have one hash, and `with_` copies it with some decisions changed. What
    cannot be, or what contradicts itself, raises `SettingError` when it is made.

    Parameters
    ----------
    filters
        A1, which ratings the experiment is about: filters as they are spelled, in order.
    split
        A2, what to learn from and what to judge by: a split as it is spelled, or ``given`` for data that come divided
        (``given(overlap=test)`` where some pairs are in both parts).
    min_ratings, sample
        B1, who is served: users with so many training ratings, and of these ``all``, a number or a share. Who is not
        served is not measured.
    fill
        B2, what becomes of items that a system cannot score: ``none`` leaves them out; else the system that orders
        them, after all others.
    lists, candidates, relevant, nonrelevant, keep_seen, length
        C1, what a list may hold; see `cranfield.rankings.Targets`. Condensed lists hold only items with a test rating.
    metrics, threshold, undefined
        C2, what is measured; the lowest relevant rating; what a user counts for whom a metric is undefined.
    average
        C3, how one number is made of the users' values.
    coverage
        C4, ``full``: users without a list count 0. ``reduced``: they are left out, and pairs of systems are compared
        over the users that both serve.
    test, correction, alpha, baseline
        D, how systems are compared: see `compare`.

    Examples
    --------
    >>> start = Decisions()
    >>> print(start)
    random 50/50, full lists, P@10 and nDCG@10 with binary gain, plain mean
    >>> print(start.with_(split="random(train=0.8)", metrics="nDCG(gain=exp)@10"))
    random 80/20, full lists, nDCG@10 with exponential gain, plain mean
    >>> start.with_(average="mean") == start, len({start, Decisions()})
    (True, 1)
    >>> start.with_(lists="condensed", nonrelevant=100)
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: lists='condensed' keeps only rated items, so nonrelevant=100 cannot be ...
    """

    filters: tuple[str, ...] = _decision("A1", (), "filters of the ratings, applied in order, as in ['k_core(k=5)']")
    split: str = _decision("A2", "random(train=0.5)", "the split into training and test, or 'given'")
    min_ratings: int = _decision("B1", 1, "users with fewer training ratings are removed")
    sample: str | int | float = _decision("B1", "all", "of these users 'all', a number, or a share")
    fill: str = _decision(
        "B2", "none", "items that a system cannot score: 'none' leaves them out, a system's name puts them last"
    )
    lists: str = _decision(
        "C1", "full", "rank every item, or only those the user rated in the test set", "full", "condensed"
    )
    candidates: str = _decision("C1", "all", "the items to rank: all, or those with a test rating", "all", "test")
    relevant: str = _decision("C1", "all", "one list a user, or one for each relevant item", "all", "one")
    nonrelevant: str | int = _decision("C1", "all", "non-relevant items in a list: 'all', or a number drawn at random")
    keep_seen: bool = _decision("C1", False, "whether training items may be recommended again")
    length: str | int = _decision("C1", 100, "the length of the lists, or 'all'")
    metrics: tuple[str, ...] = _decision("C2", ("P@10", "nDCG(gain=binary)@10"), "the metrics, the first one leads")
    threshold: float = _decision("C2", 4.0, "the lowest rating that makes an item relevant")
    undefined: str = _decision(
        "C2", "zero", "users for whom a metric is undefined: count 0, or are left out", "zero", "leave out"
    )
    average: str = _decision(
        "C3", "mean", "mean, median, trimmed, weighted(by=judged) or geometric(form=adjusted, epsilon=0.01)"
    )
    coverage: str = _decision("C4", "full", "users without a list count 0, or are left out", "full", "reduced")
    test: str = _decision("D", "student", "the paired test: student, permutation, wilcoxon, sign, bootstrap, ...")
    correction: str = _decision("D", "holm", "for many pairs: none, bonferroni, holm or benjamini_hochberg")
    alpha: float = _decision("D", 0.05, "the level of significance")
    baseline: str = _decision("D", "none", "the system that all others are compared with, or 'none' for every pair")

    def __post_init__(self) -> None:
        for name, value in _normal(self).items():
            object.__setattr__(self, name, value)
        _consistent(self)

    def with_(self, **changes: Any) -> Decisions:
        """Return a copy with some decisions changed."""
        for name in changes:
            known_decision(name)
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Return the decisions by name, ready for JSON and TOML."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    def differences(self, other: Decisions) -> dict[str, tuple[Any, Any]]:
        """Return the decisions in which two differ, by name, each with both values.

        Examples
        --------
        >>> Decisions().differences(Decisions(threshold=5))
        {'threshold': (4.0, 5.0)}
        """
        mine, theirs = self.as_dict(), other.as_dict()
        return {name: (mine[name], theirs[name]) for name in mine if mine[name] != theirs[name]}

    def __str__(self) -> str:
        return phrase(self)

    @property
    def overlap(self) -> str | None:
        """What becomes of pairs that are in both parts of data that come divided; None if they are split here."""
        return str(GIVEN.call(self.split, None)) if parse(self.split).name == "given" else None

    @property
    def one_relevant(self) -> bool:
        """Whether there is a list for each relevant item."""
        return self.relevant == "one"

    def recommending(self) -> dict[str, Any]:
        """Return the settings of `cranfield.recommend`: decisions B1, B2 and C1."""
        needs_relevance = self.one_relevant or self.nonrelevant != "all"
        return {
            "n": None if self.length == "all" else self.length,
            "min_ratings": self.min_ratings,
            "sample": None if self.sample == "all" else self.sample,
            "fill": None if self.fill == "none" else self.fill,
            "candidates": self.candidates,
            "relevant": self.relevant,
            "nonrelevant": None if self.nonrelevant == "all" else self.nonrelevant,
            "condensed": self.lists == "condensed",
            "keep_seen": self.keep_seen,
            "threshold": self.threshold if needs_relevance else None,
        }

    def measuring(self) -> dict[str, Any]:
        """Return the settings of `cranfield.measure`: decisions C1 and C2."""
        # A list that was made for one relevant item is ranked among condensed candidates already.
        lists = "full" if self.one_relevant else self.lists
        return {"metrics": list(self.metrics), "threshold": self.threshold, "lists": lists}

    def averaging(self) -> dict[str, Any]:
        """Return the settings of `Scores.frame`: decisions C3 and C4; a user's lists are averaged first."""
        return {"average": self.average, "coverage": self.coverage, "undefined": self.undefined, "by": "user"}

    def comparing(self) -> dict[str, Any]:
        """Return the settings of `cranfield.compare`: decision D, with C3 and C4."""
        by_sign = parse(self.average).name in _UNTESTED
        return {
            "significance": self.test,
            "correction": self.correction,
            "alpha": self.alpha,
            "baseline": None if self.baseline == "none" else self.baseline,
            "coverage": self.coverage,
            "undefined": self.undefined,
            "average": "mean" if by_sign else self.average,
        }


DECISIONS: Mapping[str, Field[Any]] = {one.name: one for one in fields(Decisions)}
"""The decisions by name, in order; ``metadata`` has the letter, what it decides, and its words."""

_UNTESTED = ("median", "trimmed")


def known_decision(name: str) -> Field[Any]:
    """Return a decision by its name, or say which one is nearest."""
    if name not in DECISIONS:
        raise SettingError(f"there is no decision {name!r}{nearest(name, DECISIONS)}")
    return DECISIONS[name]


def _normal(asked: Decisions) -> dict[str, Any]:
    """Return every decision in the one form it has, or say what is wrong with it."""
    for name, one in DECISIONS.items():
        if one.metadata["choices"]:
            check.one_of(name, getattr(asked, name), one.metadata["choices"])
    return {
        "filters": tuple(_spelled(data_filters.registry, "filters", one) for one in _texts("filters", asked.filters)),
        "split": _split(asked.split),
        "min_ratings": check.whole("min_ratings", asked.min_ratings, at_least=0),
        "sample": _sample(asked.sample),
        "fill": _system("fill", asked.fill),
        "nonrelevant": _all_or_whole("nonrelevant", asked.nonrelevant),
        "keep_seen": check.flag("keep_seen", asked.keep_seen),
        "length": _all_or_whole("length", asked.length),
        "metrics": tuple(dict.fromkeys(_metric(one) for one in _texts("metrics", asked.metrics, some=True))),
        "threshold": _finite("threshold", asked.threshold),
        "average": str(Average.of(_text("average", asked.average))),
        "test": _spelled(tests, "test", asked.test),
        "correction": _spelled(corrections, "correction", asked.correction),
        "alpha": check.share("alpha", asked.alpha),
        "baseline": _text("baseline", asked.baseline),
    }


def _consistent(asked: Decisions) -> None:
    """Refuse decisions that contradict each other."""
    if asked.lists == "condensed" and asked.nonrelevant != "all":
        raise SettingError(
            f"lists='condensed' keeps only rated items, so nonrelevant={asked.nonrelevant} cannot be drawn from the "
            "unrated ones; set lists='full' or nonrelevant='all'"
        )
    if asked.overlap is not None and asked.filters:
        raise SettingError(
            f"split='{asked.split}' takes the data as they come divided, so filters={list(asked.filters)} cannot be "
            "applied; filter before dividing, or choose a split"
        )
    deep = [one for one in asked.metrics if asked.length != "all" and (_cutoff(one) or 0) > int(asked.length)]
    if deep:
        raise SettingError(
            f"length={asked.length} is too short for {deep[0]}; set length={_cutoff(deep[0])} or 'all', or a smaller "
            "cut-off"
        )
    if parse(asked.test).name == "tukey" and asked.correction != "none":
        raise SettingError(
            f"test='tukey' looks at all systems at once, so correction='{asked.correction}' would correct twice; set "
            "correction='none'"
        )
    _consistent_test(parse(asked.average), parse(asked.test))


def _consistent_test(average: Spelling, test: Spelling) -> None:
    """Refuse a test that is not of the average that is reported."""
    if test.name == "log_student":
        shift = dict(test.parameters).get("epsilon", 1e-5)
        wanted = f"geometric(form=adjusted, epsilon={shift:g})"
        told = dict(average.parameters)
        if (average.name, told.get("form"), told.get("epsilon", 1e-5)) != ("geometric", "adjusted", shift):
            raise SettingError(
                f"test='{test}' is of another average than average='{average}'; set average='{wanted}', or give the "
                "test the epsilon of the average"
            )
    elif average.name == "geometric" and test.name == "student":
        told = dict(average.parameters)
        adjusted = f"geometric(form=adjusted, epsilon={told.get('epsilon', 1e-5):g})"
        remedy = f"test='log_student(epsilon={told.get('epsilon', 1e-5):g})'"
        raise SettingError(
            f"test='student' is of arithmetic means and average='{average}' is geometric; set {remedy}, the log form"
            + ("" if told.get("form") == "adjusted" else f", and average='{adjusted}'")
        )
    elif average.name in _UNTESTED and test.name != "sign":
        raise SettingError(
            f"test='{test.name}' is not of a {average.name}, since paired tests look at averages of differences; "
            "set test='sign', or average='mean'"
        )


def _finite(name: str, value: object) -> float:
    number = check.number(name, value)
    if math.isinf(number):
        raise SettingError(f"{name}={value!r} is no rating; give a number, such as {name}=4")
    return number


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise SettingError(f"{name}={value!r} is not text; write it in quotes")
    return value


def _texts(name: str, value: object, some: bool = False) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, tuple | list) or not all(isinstance(one, str) for one in texts):
        raise SettingError(f"{name}={value!r} is not a list of names; write {name} = ['...', '...']")
    if some and not texts:
        raise SettingError(f"{name} is empty; name at least one, as in {name} = ['nDCG@10']")
    return tuple(texts)


def _split(value: object) -> str:
    text = _text("split", value)
    if parse(text).name != "given":
        return _spelled(splits.registry, "split", text, "given")
    GIVEN.call(text, None)
    return _spelled(GIVEN, "split", text)


def _sample(value: object) -> str | int | float:
    if value == "all":
        return "all"
    if isinstance(value, float) and 0 < value < 1:
        return value
    try:
        # 1.0 would be one user to one reader and all of them to another.
        return check.whole("sample", None if isinstance(value, float) else value)
    except SettingError:
        raise SettingError(f"sample={value!r} is neither 'all' nor a number of users nor a share below 1") from None


def _all_or_whole(name: str, value: object) -> str | int:
    if value == "all":
        return "all"
    try:
        return check.whole(name, value)
    except SettingError:
        raise SettingError(f"{name}={value!r} is neither 'all' nor a whole number of at least 1") from None


def _system(name: str, value: object) -> str:
    if value == "none":
        return "none"
    text = _text(name, value)
    try:
        recommender(text)
    except SettingError as error:
        raise SettingError(f"{name}={value!r}: {error}; or write 'none'") from None
    return str(parse(text))


@lru_cache(maxsize=4096)
def _metric(spelling: str) -> str:
    return str(Metric.of(spelling))


def _cutoff(metric: str) -> int | None:
    return parse(metric).cutoff


def _spelled(known: Registry, name: str, value: object, *more: str) -> str:
    """Return a spelling in its one form, its settings in the order of the function's, or say what is wrong with it."""
    return _in_order(known, name, _text(name, value), more)


@lru_cache(maxsize=4096)
def _in_order(known: Registry, name: str, text: str, more: tuple[str, ...]) -> str:
    try:
        return str(known.spelling(text, besides=more))
    except SettingError as error:
        raise SettingError(f"{name}={text!r}: {error}") from error
