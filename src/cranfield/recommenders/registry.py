"""The registry of systems, which turns ``knn(k=100, similarity=cosine)`` into a recommender."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import Any, TypeVar, dataclass_transform

from cranfield._errors import SettingError
from cranfield._own_code import imported
from cranfield._registry import Entry, Registry, parse
from cranfield.recommenders.model import Model

_Class = TypeVar("_Class", bound=type[Model])


class _Systems(Registry[type[Model]]):
    def _add_plugin(self, name: str, thing: Any) -> None:
        self.add(name, checked_class(thing, f"the system {name!r} of an installed package"))


def checked_class(thing: Any, called: str) -> type[Any]:
    """Check that a class can be a recommender, before any of its methods are called."""
    methods = ("fit", "score")
    if not isinstance(thing, type) or not all(callable(getattr(thing, name, None)) for name in methods):
        raise SettingError(f"{called} is not a class with fit(train) and score(users); name such a class")
    return thing


def _of_code(name: str) -> Entry[type[Any]]:
    """Return the registry entry of a user's own class."""
    system = checked_class(imported(name), name)
    if issubclass(system, Model) and not hasattr(system, "name"):
        system.name = name
    return Entry(name, system)


SYSTEMS: Registry[type[Model]] = _Systems("system", plugins="cranfield.recommenders", of_code=_of_code)
"""The recommenders by name; the fields of each are its parameters. The package imports all of its modules, so that
a new file is enough to add a system."""


@dataclass_transform()
def register(name: str, *, displayed: str = "", replace: bool = False) -> Callable[[_Class], _Class]:
    """Make a dataclass of a `Model`, unless it is one, and register it under ``name``.

    Parameters
    ----------
    name
        The name of the system, which also becomes the attribute ``name`` of the class.
    displayed
        The name in sentences, tables and figures, if ``name`` could be misunderstood; ``name`` by default.
    replace
        Replace a system that already has this name, which is an error otherwise.

    Examples
    --------
    >>> @register("popularity")
    ... class Mine(Model):
    ...     pass
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: there is already a system 'popularity'; choose another name, or give replace=True
    """
    SYSTEMS.check_name(name)

    def add(system: _Class) -> _Class:
        if not (isinstance(system, type) and issubclass(system, Model)):
            raise SettingError(f"{system!r} is not a class derived from cranfield.recommenders.Model; derive it")
        if "__dataclass_fields__" not in vars(system):
            dataclass(system)
        SYSTEMS.add(name, system, replace=replace)
        system.name, system.displayed = name, displayed or name
        return system

    return add


def displayed_name(spelling: str) -> str:
    """Return the display name of a spelled system: its spelling, unless its name could be misunderstood."""
    spelled = parse(spelling)
    system = SYSTEMS.get(spelled.name)
    # An unregistered subclass inherits the display name of its parent, which is another system.
    displayed = spelled.name if system is None else vars(system).get("displayed", spelled.name)
    return str(changed(spelled, name=displayed))


def system_among(name: str, systems: Sequence[str]) -> str | None:
    """Return the system that a name refers to, as a spelling or a display name; None if there is none."""
    if name in systems:
        return name
    with suppress(SettingError):
        return next((system for system in systems if system == displayed_name(name)), None)
    return None


def recommender(spelling: str, seed: int | None = None) -> Model:
    """Make the recommender that ``spelling`` names, not yet fitted.

    Parameters
    ----------
    spelling
        A name, with the parameters that differ from the defaults: ``"knn"``, ``"knn(k=50, overlap=5)"``.
    seed
        The seed of a system that uses random numbers, unless the spelling gives one.

    Examples
    --------
    >>> recommender("popularity(threshold=4)")
    Popularity(threshold=4)
    >>> recommender("random", seed=7)
    Random(seed=7)
    """
    system: Model = SYSTEMS.call(spelling, **({} if seed is None else {"seed": seed}))
    return system
