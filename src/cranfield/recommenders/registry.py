"""The systems by name: ``knn(k=100, similarity=cosine)`` becomes a recommender."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cranfield._errors import SettingError
from cranfield._registry import Registry
from cranfield.recommenders.model import Model

_Class = TypeVar("_Class", bound=type[Model])

SYSTEMS: Registry[type[Model]] = Registry("system")
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
    SYSTEMS.check_name(name)

    def add(system: _Class) -> _Class:
        if not (isinstance(system, type) and issubclass(system, Model)):
            raise SettingError(f"{system!r} is not a class derived from cranfield.recommenders.Model; derive it")
        SYSTEMS.add(name, system, replace=replace)
        system.name = name
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
    >>> recommender("popularity(threshold=4)")
    Popularity(threshold=4)
    >>> recommender("random", seed=7)
    Random(seed=7)
    """
    system: Model = SYSTEMS.call(spelling, **({} if seed is None else {"seed": seed}))
    return system


def signatures() -> list[str]:
    """Return how each system is spelled, with its parameters and their defaults.

    Examples
    --------
    >>> signatures()[:3]
    ['random(seed=0)', 'popularity(threshold=none)', 'average(damping=0, support=1, threshold=none)']
    """
    return SYSTEMS.signatures()
