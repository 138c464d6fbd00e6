"""`Source`: where the ratings of an experiment come from."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from cranfield import simulate
from cranfield._errors import SettingError, nearest
from cranfield._registry import Entry, Registry, parse
from cranfield.data import READING as READ_OPTIONS
from cranfield.data import Ratings, read

if TYPE_CHECKING:
    from cranfield.datasets import Dataset

# Names become file and folder names.
_NAME = re.compile(r"[\w(][\w.()=,+-]*( [\w.()=,+-]+)*")


def check_name(kind: str, name: object) -> None:
    """Reject a name that is not a valid file or folder name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name.encode()) > 200:
        raise SettingError(f"{kind} has the name {name!r}; use letters, digits, spaces and _ . , ( ) = + -")


def check_text(where: str, value: object) -> None:
    """Reject a value that is not text."""
    if not isinstance(value, str):
        raise SettingError(f"{where}={value!r} is not text; write it in quotes")


def check_table(where: str, value: object) -> Mapping[str, Any]:
    """Return a table of the experiment file; reject anything else."""
    if not isinstance(value, Mapping):
        raise SettingError(f"{where}={value!r} is not a table; write [{where}] and below it key = value")
    return value


def check_keys(where: str, table: Mapping[str, Any], known: Collection[str]) -> Mapping[str, Any]:
    """Return a table of the experiment file; reject keys that it does not have."""
    for key in table:
        if key not in known:
            raise SettingError(f"{where}: no key {key!r}{nearest(key, known)}")
    return table


@contextmanager
def at_key(key: str) -> Iterator[None]:
    """Add the key of the experiment file to setting errors."""
    try:
        yield
    except SettingError as error:
        raise SettingError(f"{key}: {error}") from error


def _kinds(hint: Any) -> tuple[type, ...]:
    """Return the types that a parameter accepts; choices from a list of words are text."""
    if get_origin(hint) is Literal:
        return (str,)
    kinds = [get_origin(kind) or kind for kind in (() if get_origin(hint) is Mapping else get_args(hint)) or (hint,)]
    return tuple(dict if kind is Mapping else kind for kind in kinds if kind is not type(None))


FEATURES = ("user_features", "item_features")
"""The files that describe users and items; any source may have them."""

READING: Mapping[str, tuple[type, ...]] = {name: _kinds(get_type_hints(read)[name]) for name in READ_OPTIONS}
"""The options of `read` that an experiment may set for its files, with their types."""

_CALLED = {str: "text", int: "a position", bool: "true or false", dict: "a table of numbers"}

KINDS = ("file", "dataset", "simulate", "train")
"""Where ratings come from; a source has exactly one of these."""


class Simulation(Entry[Callable[..., Any]]):
    """A registered simulation: a function whose parameters can be written as text, apart from a few that cannot."""

    works_on: ClassVar[int] = 0

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters that can be written as text, with their defaults."""
        return {name: value for name, value in super().parameters.items() if name != "like"}


SIMULATIONS: Registry[Callable[..., Any]] = Registry("simulation", Simulation)
"""The simulations that an experiment may take its ratings from."""

SIMULATIONS.add("world", simulate.world)
SIMULATIONS.add("popularity", simulate.popularity)


@dataclass(frozen=True)
class Source:
    """Where a set of ratings comes from."""

    name: str  # its name in the experiment
    file: str | None = None  # a file of ratings
    dataset: str | None = None  # a known dataset; see ``cranfield data list``
    simulate: str | None = None  # a spelled simulation: ``world(users=1000, items=500, ratings=50000)``
    train: str | None = None  # two files, for data that are already split
    test: str | None = None
    # Files that describe the users and the items, for systems that use features. A known dataset may come with its
    # own.
    user_features: str | None = None
    item_features: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)  # options of `read`, for files
    family: str | None = None  # what it shares with other sets: those of one site count as one dataset

    def __post_init__(self) -> None:
        check_name("data", self.name)
        for key in (*KINDS, "test", *FEATURES, "family"):
            if getattr(self, key) is not None:
                check_text(f"data.{self.name}.{key}", getattr(self, key))
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            problem = f"has {' and '.join(given)}" if given else "does not say where the ratings come from"
            raise SettingError(f"data.{self.name} {problem}; give one of {', '.join(KINDS)}")
        if (self.train is None) != (self.test is None):
            raise SettingError(f"data.{self.name} has one of train and test; give both files")
        check_keys(f"data.{self.name}", self.reading, READING)
        for name, value in self.reading.items():
            if type(value) not in READING[name]:
                may = " or ".join(_CALLED[kind] for kind in READING[name])
                raise SettingError(f"data.{self.name}.{name}={value!r} is not possible; give {may}")
        if self.reading and not self.files:
            key = next(iter(self.reading))
            raise SettingError(f"data.{self.name} is not a file, so {key} does not apply; leave it out")
        if self.simulate is not None:
            with at_key(f"data.{self.name}.simulate"):
                object.__setattr__(self, "simulate", str(SIMULATIONS.spelling(self.simulate)))
        if self.dataset is not None:
            object.__setattr__(self, "dataset", self._known.name)

    @property
    def _known(self) -> Dataset:
        """The known dataset."""
        from cranfield.datasets import find

        return find(str(self.dataset))

    @property
    def files(self) -> dict[str, str]:
        """The files it is read from, by part: ``ratings``, or ``train`` and ``test``."""
        if self.train is not None and self.test is not None:
            return {"train": self.train, "test": self.test}
        return {} if self.file is None else {"ratings": self.file}

    @property
    def features(self) -> dict[str, str]:
        """The files that describe users and items, by key."""
        return {key: file for key in FEATURES if (file := getattr(self, key)) is not None}

    @property
    def divided(self) -> bool:
        """Whether it comes as a training and a test part."""
        return self.train is not None if self.dataset is None else self._known.parts == ("train", "test")

    @property
    def timeless(self) -> bool:
        """Whether it is known in advance to have no times."""
        if self.simulate is not None:
            spelling = parse(self.simulate)
            return spelling.name == "popularity" or dict(spelling.parameters).get("times") is False
        return self.reading.get("time") is False if self.dataset is None else not self._known.times


def simulated(spelling: str) -> Ratings:
    """Return the ratings that a spelled simulation makes."""
    ratings = SIMULATIONS.call(spelling)
    return ratings.ratings if isinstance(ratings, simulate.World) else ratings
