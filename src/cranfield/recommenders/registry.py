"""The systems by name: ``knn(k=100, similarity=cosine)`` becomes a recommender."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import TypeVar

from cranfield._errors import SettingError
from cranfield._spelling import Spelling, nearest, parse
from cranfield.recommenders.model import Model

_Class = TypeVar("_Class", bound=type[Model])

_CLASSES: dict[str, type[Model]] = {}

SYSTEMS: Mapping[str, type[Model]] = MappingProxyType(_CLASSES)
"""The recommenders by name; the fields of each are its parameters. The package imports all of its modules, so that a
system is there once its file is."""


def register(name: str, *, replace: bool = False) -> Callable[[_Class], _Class]:
    """Make a `Model` a system that can be spelled by ``name``; to be written above its ``@dataclass``.

    Parameters
    ----------
    name
        The name of the system, which also becomes the attribute ``name`` of the class.
    replace
        Take the place of the system that has the name already, which is an error otherwise.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @register("popularity")
    ... @dataclass
    ... class Mine(Model):
    ...     pass
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: there is a system 'popularity' already; choose another name, or give replace=True
    """
    if parse(name) != Spelling(name):
        raise SettingError(f"{name!r} cannot be the name of a system; leave out parameters, '@' and spaces")

    def add(system: _Class) -> _Class:
        if not (isinstance(system, type) and issubclass(system, Model)):
            raise SettingError(f"{system!r} is not a class derived from cranfield.recommenders.Model; derive it")
        if name in _CLASSES and not replace:
            raise SettingError(f"there is a system {name!r} already; choose another name, or give replace=True")
        system.name = name
        _CLASSES[name] = system
        return system

    return add


def recommender(spelling: str, seed: int | None = None) -> Model:
    """Make the recommender that ``spelling`` names, not yet fitted.

    Parameters
    ----------
    spelling
        A name, with parameters where they are not the defaults: ``"knn"``, ``"knn(k=50, overlap=5)"``.
    seed
        The seed of a system that draws at random, unless the spelling gives one.

    Examples
    --------
    >>> recommender("knn(k=50)")
    UserNeighbours(k=50, similarity='cosine', overlap=0, q=1.0, binary=False)
    >>> recommender("random", seed=7)
    Random(seed=7)
    """
    parsed = parse(spelling)
    if parsed.cutoff is not None:
        raise SettingError(f"{spelling!r} has a cut-off, which belongs to metrics; write {spelling.split('@')[0]!r}")
    if parsed.name not in SYSTEMS:
        raise SettingError(f"there is no system {parsed.name!r}{nearest(parsed.name, SYSTEMS)}")
    system = SYSTEMS[parsed.name]
    known = [one.name for one in fields(system)]
    given = dict(parsed.parameters)
    for name in given:
        if name not in known:
            hint = nearest(name, known) if known else "; it has none"
            raise SettingError(f"{parsed.name} has no parameter {name!r}{hint}")
    if seed is not None and "seed" in known:
        given.setdefault("seed", seed)
    return system(**given)


def signatures() -> list[str]:
    """Return how each system is spelled, with its parameters and their defaults.

    Examples
    --------
    >>> signatures()[:3]
    ['random(seed=0)', 'popularity(threshold=none)', 'average(damping=0, support=1)']
    """
    spelled = []
    for name, system in SYSTEMS.items():
        parameters = tuple((one.name, one.default) for one in fields(system))
        spelled.append(str(Spelling(name, parameters)))
    return spelled
