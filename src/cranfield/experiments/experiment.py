"""`Experiment`: data, systems, decisions and seed; what an experiment file states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from cranfield import _checks as check
from cranfield._errors import SettingError, nearest
from cranfield._files import meant
from cranfield._numbers import listed
from cranfield._own_code import check_form, names_code
from cranfield._registry import parse
from cranfield.comparisons import check_repeated
from cranfield.experiments.decisions import Decisions
from cranfield.experiments.searching import Tuning
from cranfield.experiments.source import Source, at_key, check_keys, check_name, check_table, check_text
from cranfield.metrics import Metric
from cranfield.rankings import Gaps, Ties
from cranfield.recommenders import from_profiles, predicts_ratings, recommender, system_among

LIST_READING = {"ties": get_args(Ties), "gaps": get_args(Gaps)}
"""Options for reading a file of ranked lists, and their values."""


@dataclass(frozen=True)
class System:
    """A system to compare: a spelled recommender, or a file of ranked lists."""

    name: str  # its name in tables
    spelling: str | None = None  # the recommender, with its parameters
    run: str | None = None  # the file; ``{data}`` in its name stands for the name of the data
    tuning: Tuning | None = None  # hyper-parameters to search on a validation part; None for no search
    # How items of equal score are ordered, and what ranks mean that leave places out, as for `read_run`; None for its
    # default.
    ties: Ties | None = None
    gaps: Gaps | None = None

    def __post_init__(self) -> None:
        check_name("systems", self.name)
        for text in (text for text in (self.spelling, self.run) if text is not None):
            check_text(f"systems.{self.name}", text)
        if (self.spelling is None) == (self.run is None):
            raise SettingError(f"systems.{self.name} needs a recommender, or run = 'file' for ranked lists")
        if self.spelling is not None:
            with at_key(f"systems.{self.name}"):
                check_form(self.spelling) if names_code(self.spelling) else recommender(self.spelling)
            object.__setattr__(self, "spelling", str(parse(self.spelling)))
        for key, value in self.reading.items():
            if self.run is None:
                raise SettingError(f"systems.{self.name}: {key} is for ranked lists, run = 'file'; leave it out")
            check.one_of(f"systems.{self.name}.{key}", value, LIST_READING[key])
        if self.tuning is not None:
            if self.spelling is None:
                raise SettingError(f"systems.{self.name} is a file, so there is nothing to search; leave search out")
            with at_key(f"systems.{self.name}"):
                self.tuning.check(self.spelling)

    @property
    def reading(self) -> dict[str, Any]:
        """How the file of ranked lists is read, where the experiment says so."""
        return {key: value for key in LIST_READING if (value := getattr(self, key)) is not None}

    def run_file(self, data: str) -> str | None:
        """Return the file of ranked lists for a set of ratings."""
        return None if self.run is None else self.run.replace("{data}", data)


ASSESSING = ("metrics", "scenarios", "sizes", "samples", "averages", "cutoffs", "correlation")
"""The options of `assess` that an experiment may set."""

AUDITING = ("preset", "budget", "fewest", "vary", "systems", "kinds", "weights", "invalid", "truth")
"""The keys of an experiment's table ``audit``; `cranfield.audit` checks their values."""

NOTES = ("data", "tuning", "code", "hardware")
"""Free-text notes that an experiment may have, for the card."""


_WORLD = Source("world", simulate="world(users=1000, items=500, ratings=50000)")
_THREE = tuple(System(spelling, spelling) for spelling in ("popularity", "knn(k=100)", "puresvd(factors=50)"))


@dataclass(frozen=True)
class Experiment:
    """Everything that an experiment file states; decisions have the same defaults as the commands and functions.

    Parameters
    ----------
    title
        The heading of the report.
    data
        The sources of ratings; every system is tried on each.
    systems
        What is compared.
    decisions
        A1 to D.
    seed
        Fixes every random choice; repetition k has the seed ``seed + k - 1``.
    repetitions
        How often the ratings are split again; a user's values are averaged over folds and repetitions. If every split
        is the same (``temporal``, ``predefined``), repetitions are training seeds of the systems that draw.
    assess
        Options of `assess`; None if the metrics are not assessed.
    audit
        The decisions that `cranfield.audit` opens; None if the experiment is not audited.
    notes
        Additional information for the card and the reviewer's list: where the ``data`` and the ``code`` are available,
        how hyper-parameters were chosen (``tuning``), and what ``hardware`` it ran on, if the log does not describe it
        well.
    labels
        Names for people, by the spelling that they stand for: ``{"temporal(train=0.8)": "newest ratings"}``. Pages and
        captions show them instead of the words that are derived from a decision.
    base
        The folder that file names are relative to.

    Examples
    --------
    >>> print(Experiment())  # doctest: +ELLIPSIS
    popularity, knn(k=100) and puresvd(factors=50) on world: a random 20 % of ratings as test, full lists, P@10, ...
    """

    title: str = "Which system is better?"
    data: tuple[Source, ...] = (_WORLD,)
    systems: tuple[System, ...] = _THREE
    decisions: Decisions = field(default_factory=Decisions)
    seed: int = 0
    repetitions: int = 1
    assess: Mapping[str, Any] | None = None
    audit: Mapping[str, Any] | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    base: Path = field(default=Path(), compare=False)

    def __post_init__(self) -> None:
        check_text("title", self.title)
        object.__setattr__(self, "seed", check.whole("seed", self.seed, at_least=0))
        object.__setattr__(self, "repetitions", check.whole("repetitions", self.repetitions))
        for kind, named in (("data", self.data), ("systems", self.systems)):
            if not named:
                raise SettingError(f"{kind} is empty; name at least one")
            _check_twice(kind, [entry.name for entry in named])
        for contradiction in _contradictions(self):
            raise SettingError(contradiction)
        for name, text in self.notes.items():
            check.one_of("notes", name, NOTES)
            check_text(f"notes.{name}", text)
        for name, text in self.labels.items():
            check_text(f"labels.{name}", text)
        if self.assess is not None:
            _check_assess(self.assess, len(self.systems))
        if self.audit is not None:
            _check_audit(self.audit, len(self.systems))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seed of each repetition."""
        return tuple(self.seed + k for k in range(self.repetitions))

    def path(self, name: str) -> Path:
        """Return the path of a file that the experiment names."""
        return meant(name, self.base)

    def __str__(self) -> str:
        systems, data = (listed([entry.name for entry in named]) for named in (self.systems, self.data))
        return f"{systems} on {data}: {self.decisions.words(labels=self.labels)}"


def _draws(system: System) -> bool:
    """Whether a system may differ between training seeds."""
    return system.spelling is not None and (names_code(system.spelling) or "seed" in vars(recommender(system.spelling)))


def _contradictions(experiment: Experiment) -> Iterator[str]:
    """Yield the contradictions between settings that are each valid by themselves."""
    decisions, split = experiment.decisions, parse(experiment.decisions.split)
    parameters = dict(split.parameters)
    names = [entry.name for entry in experiment.systems]
    if decisions.baseline != "none" and system_among(decisions.baseline, names) is None:
        yield f"baseline={decisions.baseline!r} is not one of the systems{nearest(decisions.baseline, names)}"
    average = dict(parse(decisions.average).parameters)
    if "baseline" in average and system_among(str(average["baseline"]), names) is None:
        yield f"the baseline of average='{decisions.average}' is not a system{nearest(str(average['baseline']), names)}"
    for source in experiment.data:
        if decisions.overlap is not None and not source.divided:
            yield (
                f"split='predefined' needs data that are already divided; give data.{source.name} as train and test, "
                "or split it"
            )
        if decisions.overlap is None and source.train is not None:
            yield f"data.{source.name} is given as train and test; set split='predefined', or give it as one file"
        times = split.name in ("temporal", "rolling") or parameters.get("which") == "last"
        if times and source.timeless:
            yield f"split='{split}' needs times, and data.{source.name} has none; choose a random split, or other data"
    if experiment.repetitions > 1:
        check_repeated(decisions.significance)
    # Randomised systems differ in their training seeds even if the split is the same.
    same = (decisions.overlap is not None or "seed" in parameters) and not any(map(_draws, experiment.systems))
    if experiment.repetitions > 1 and same:
        yield f"repetitions={experiment.repetitions} of split='{split}' would all be the same; set repetitions=1"
    if split.name == "cold_users" and not parameters.get("left") and decisions.new_users == "unserved":
        yield (
            f"split='{split}' holds out whole users, and new_users='unserved' gives them no list; set "
            "new_users='served', or leave them some ratings, as in cold_users(left=5)"
        )
    if split.name == "cold_items" and not any(map(parameters.get, ("left", "warm"))):
        yield from _unable_for_new_items(experiment)
    if split.name == "strong_generalisation":
        yield from _unable(experiment)
    if decisions.averages_draws and experiment.assess is not None:
        yield "assess needs drawn lists, and draws='exact' draws none; set draws='sampled'"
    if decisions.averaging.coverage == "own" and len(experiment.systems) > 1:
        yield "coverage='own' averages systems over other users, so no test compares them; open it in [audit.vary]"
    yield from _unmeasurable(experiment)
    yield from _unpredicted(experiment)
    for system in experiment.systems:
        if system.run is None:
            continue
        if decisions.overlap is None:
            yield (
                f"systems.{system.name} is a file made before the ratings are split, so it may have seen the test "
                "part; give data as train and test with split='predefined', or train the system here"
            )
        if decisions.one_relevant or decisions.nonrelevant != "all":
            yield (
                f"systems.{system.name} is a file of whole lists; relevant='{decisions.relevant}' and "
                f"nonrelevant={decisions.nonrelevant!r} need systems that are trained here"
            )
        if decisions.unrated != "all":
            yield (
                f"systems.{system.name} is a file of whole lists; unrated={decisions.unrated} needs systems that are "
                "trained here"
            )


def _unable(experiment: Experiment) -> Iterator[str]:
    """Yield the systems that cannot score from a profile alone; user code is only checked during the run."""
    for system in experiment.systems:
        if system.spelling is None or names_code(system.spelling):
            continue
        try:
            from_profiles(f"systems.{system.name}", recommender(system.spelling))
        except SettingError as error:
            yield str(error)


def _unable_for_new_items(experiment: Experiment) -> Iterator[str]:
    """Yield a message if no system can recommend an item without training ratings; cranfield's own systems cannot."""
    spellings = [system.spelling for system in experiment.systems if system.spelling is not None]
    own = any(
        names_code(spelling) or not type(recommender(spelling)).__module__.startswith("cranfield.")
        for spelling in spellings
    )
    if not own and experiment.decisions.fill == "none":
        yield (
            f"split='{experiment.decisions.split}' tests only items without training ratings, which none of the "
            "systems can recommend; leave some ratings, as in cold_items(left=5), or add your own system"
        )


def _unmeasurable(experiment: Experiment) -> Iterator[str]:
    """Yield the metrics that a search optimises and for which the lists are too short."""
    length = experiment.decisions.length
    for system in experiment.systems:
        metric = None if system.tuning is None else system.tuning.metric
        depth = None if metric is None else parse(metric).cutoff
        if length != "all" and depth is not None and depth > int(length):
            yield f"length={length} is too short for {metric}, by which systems.{system.name} is searched"


def _unpredicted(experiment: Experiment) -> Iterator[str]:
    """Yield the systems whose scores are not ratings, if a metric needs predicted ratings."""
    decisions = experiment.decisions
    metrics = [name for name in decisions.metrics if not names_code(name)]
    wanting = [name for name in metrics if "predictions" in Metric.of(name).definition.needs]
    if not wanting or decisions.calibration != "none":
        return
    spread = next((name for name in wanting if dict(parse(name).parameters).get("margin") == "spread"), None)
    if spread is not None:
        yield f"{spread} needs residuals on held-out ratings; set calibration='isotonic' or 'linear'"
    if decisions.fill != "none":
        yield f"fill={decisions.fill!r} lists items without a predicted rating; leave out either fill or {wanting[0]}"
    for system in experiment.systems:
        spelling = system.spelling
        if spelling is None or names_code(spelling) or predicts_ratings(recommender(spelling)):
            continue
        yield (
            f"systems.{system.name} gives scores that only rank, and {wanting[0]} needs predicted ratings; set "
            "calibration='isotonic' or 'linear' to map scores onto the rating scale, or leave one of them out"
        )


def _check_twice(kind: str, names: list[str]) -> None:
    # Names become file names without spaces, and some file systems do not distinguish upper and lower case.
    stems = [name.replace(" ", "").casefold() for name in names]
    for name, stem in zip(names, stems):
        if stems.count(stem) > 1:
            raise SettingError(f"{kind} has {name!r} twice; give each its own name")


def _check_assess(options: Mapping[str, Any], systems: int) -> None:
    check_keys("assess", options, ASSESSING)
    for name in ("metrics", "scenarios", "averages"):
        several = [options[name]] if isinstance(options.get(name), str) else options.get(name, [])
        if not isinstance(several, list | tuple) or not all(isinstance(spelling, str) for spelling in several):
            raise SettingError(
                f"assess: {name}={options[name]!r} is not a list of names; write {name} = ['...', '...']"
            )
    if systems < 2:
        raise SettingError("assess compares orders of systems; name at least two systems")


def _check_audit(table: Mapping[str, Any], systems: int) -> None:
    check_keys("audit", table, AUDITING)
    for name, value in table.items():
        if name not in ("preset", "budget", "fewest", "truth"):
            check_table(f"audit.{name}", value)
    if systems < 2:
        raise SettingError("audit asks which of several systems is better; name at least two systems")
