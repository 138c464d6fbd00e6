"""One registry for everything that has a name: metrics, systems, splits, filters, tests, averages and more.

Functions, classes and objects can be registered. A name can be spelled with parameters and a cut-off, as in
``knn(k=100)`` or ``nDCG(gain=exp)@10``; spellings are checked in one place, before anything is computed. The annotation
of a parameter says which values it may have: ``int``, ``float``, ``bool``, ``str``, ``None``, ``Literal["a", "b"]``, a
union of these, or ``Annotated[float, Limits(above=0)]`` for a range. Any other annotation, or none, allows every value.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from cranfield._checks import Limits
from cranfield._errors import SettingError, nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Thing = TypeVar("Thing")
_Registered = TypeVar("_Registered")
Cutoff = Literal["optional", "required", "none"]

REQUIRED = inspect.Parameter.empty
"""The default of a parameter that has none."""

# Ranks are stored in 32 bits.
_DEEPEST = 2**31 - 1
_KINDS = (bool, int, float, str, NoneType)
_FORM = re.compile(r"^\s*(?P<name>[^\s()@,]+)\s*(?:\((?P<parameters>[^()]*)\))?\s*(?:@\s*(?P<cutoff>[^@]+?))?\s*$")
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "none": None, "inf": float("inf")}


@dataclass(frozen=True)
class Spelling:
    """A parsed name: ``nDCG(gain=exp)@100`` is ``Spelling("nDCG", (("gain", "exp"),), 100)``."""

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()
    cutoff: int | None = None

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={_written(value)}" for key, value in self.parameters)
        return self.name + (f"({inside})" if inside else "") + ("" if self.cutoff is None else f"@{self.cutoff}")


def parse(text: str) -> Spelling:
    """Read a name with optional parameters and cut-off.

    Examples
    --------
    >>> parse("nDCG(gain=exp)@100")
    Spelling(name='nDCG', parameters=(('gain', 'exp'),), cutoff=100)
    >>> print(parse("knn( k=100,similarity = cosine )"))
    knn(k=100, similarity=cosine)
    """
    form = _FORM.match(text) if isinstance(text, str) else None
    if form is None:
        raise SettingError(f"{text!r} cannot be read; write name, name@10 or name(parameter=value)@10")
    parameters: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in (form["parameters"] or "").split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise SettingError(f"{part!r} in {text!r} cannot be read; write parameter=value")
        if key.strip() in parameters:
            raise SettingError(f"{key.strip()!r} is given twice in {text!r}; give it once")
        parameters[key.strip()] = _value(value.strip())
    cutoff = form["cutoff"]
    if cutoff is not None and not (cutoff.isascii() and cutoff.isdigit() and len(cutoff) < 20 and int(cutoff) > 0):
        raise SettingError(f"the cut-off {cutoff!r} in {text!r} is not a positive whole number; write @10")
    return Spelling(form["name"], tuple(parameters.items()), None if cutoff is None else int(cutoff))


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip("'\"")


def _written(value: Any) -> str:
    if value is True or value is False or value is None:
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


@dataclass(frozen=True)
class Entry(Generic[Thing]):
    """A registered thing and the facts about it; kinds of things with more facts have a subclass.

    A thing is a function, whose first parameter is what it works on and whose other parameters can be spelled; a class,
    whose fields can all be spelled; or an object, which has no parameters.
    """

    name: str
    thing: Thing
    aliases: tuple[str, ...] = ()
    cutoff: Cutoff = "none"  # whether @n may, must or cannot follow the name

    works_on: ClassVar[int] = 1
    """Number of leading parameters of a function that are its input, not settings."""
    common: ClassVar[Mapping[str, Limits]] = MappingProxyType({})
    """Parameters that every entry of the kind takes in addition to its own."""

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """Its own parameters with their defaults, or `REQUIRED` if there is none."""
        if not callable(self.thing):
            return {}
        parameters = list(inspect.signature(self.thing).parameters.values())
        return {
            parameter.name: parameter.default
            for parameter in (parameters if isinstance(self.thing, type) else parameters[self.works_on :])
            if parameter.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
            and parameter.name != "cutoff"
        }

    @cached_property
    def limits(self) -> Mapping[str, Limits]:
        """The values that each parameter may have."""
        declared = _declared(self.thing) if is_dataclass(self.thing) else _annotated(self.thing)
        return {**{name: declared.get(name, Limits()) for name in self.parameters}, **self.common}

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.thing) or "").split("\n", 1)[0]

    def signature(self, without: Container[str] = ()) -> str:
        """Return how it is spelled with its parameters and their defaults, except those in ``without``."""
        stated = {name: "..." if value is REQUIRED else value for name, value in self.parameters.items()}
        return str(Spelling(self.name, tuple((name, value) for name, value in stated.items() if name not in without)))

    def read(self, spelling: Spelling, offered: Container[str] = (), called: str | None = None) -> Spelling:
        """Return the spelling with its parameters in the order of the entry, or say what is wrong with it.

        Parameters that are ``offered`` otherwise may be missing; ``called`` is the entry's name in messages.
        """
        given, called = dict(spelling.parameters), called or self.name
        for name, value in given.items():
            if name not in self.limits:
                hint = nearest(name, self.limits) if self.limits else "; it takes none"
                raise SettingError(f"{called} has no parameter {name!r}{hint}")
            self.limits[name].check(name, value, called)
        for name, default in self.parameters.items():
            if default is REQUIRED and name not in given and name not in offered:
                raise SettingError(f"{self.name} needs {name}; write {self.signature(without=offered)}")
        self._check_cutoff(spelling)
        return Spelling(self.name, tuple((name, given[name]) for name in self.limits if name in given), spelling.cutoff)

    def _check_cutoff(self, spelling: Spelling) -> None:
        if spelling.cutoff is not None and self.cutoff == "none":
            raise SettingError(f"{spelling} has a cut-off, which {self.name} does not take; leave out '@'")
        if spelling.cutoff is None and self.cutoff == "required":
            raise SettingError(f"{spelling} needs a cut-off; write {replace(spelling, name=self.name, cutoff=10)}")
        if spelling.cutoff is not None and spelling.cutoff > _DEEPEST:
            raise SettingError(f"the cut-off of {spelling} is too large; give at most @{_DEEPEST}")


class Registry(Mapping[str, Thing]):
    """Things of one kind by name: to add one, write a function or a class and decorate it with `register`.

    A name is unique regardless of case, unless ``replace=True`` is given. A definition may be run again, as in a
    notebook: a thing with the same module and qualified name as an old one replaces it.

    Examples
    --------
    >>> shapes = Registry("shape")
    >>> @shapes.register
    ... def repeat(text, times: Annotated[int, Limits(low=1)] = 2):
    ...     return text * times
    >>> @shapes.register("reverse", aliases=["backwards"])
    ... def turned_round(text):
    ...     return text[::-1]
    >>> shapes.call("repeat(times=3)", "ab"), shapes.call("backwards", "ab")
    ('ababab', 'ba')
    >>> shapes.call("repaet", "ab")
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: there is no shape 'repaet'; did you mean 'repeat'?
    >>> shapes.call("repeat(times=0)", "ab")
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: times=0 of repeat is out of range; give a number at least 1
    >>> shapes.register("Repeat")(str.upper)
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: 'Repeat' already means 'repeat'; choose another name, or give replace=True
    """

    def __init__(
        self,
        kind: str,  # for messages: "filter", "split"
        entry: type[Entry[Any]] = Entry,
        *,
        any_case: bool = False,  # whether names are matched regardless of case
        plugins: str | None = None,  # the entry points of installed packages, where an unknown name is looked up
        of_code: Callable[[str], Entry[Any]] | None = None,  # makes the entry of the user's package.module:Name
    ) -> None:
        self.kind = kind
        self._plugins, self._of_code = plugins, of_code
        self._entry, self._any_case = entry, any_case
        self._entries: dict[str, Entry[Any]] = {}
        self._names: dict[str, str] = {}

    def __getitem__(self, name: str) -> Thing:
        thing: Thing = self._entries[name].thing
        return thing

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    # Registries compare by identity, not by content, so that they can be keys of a cache.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @overload
    def register(
        self, name: str | None = None, /, *, aliases: Iterable[str] = (), replace: bool = False, **about: Any
    ) -> Callable[[_Registered], _Registered]: ...

    @overload
    def register(self, name: _Registered, /) -> _Registered: ...

    def register(self, name: Any = None, /, *, aliases: Iterable[str] = (), replace: bool = False, **about: Any) -> Any:
        """Register the decorated function or class under ``name``, or its own name with ``@registry.register`` alone.

        It replaces things that already have one of its names only with ``replace``; otherwise that is an error.
        ``about`` are the other fields of the kind's entries.
        """
        if name is not None and not isinstance(name, str):
            return self.add(getattr(name, "__name__", str(name)), name)

        def below(thing: Any) -> Any:
            return self.add(thing.__name__ if name is None else name, thing, aliases=aliases, replace=replace, **about)

        return below

    def add(self, name: str, thing: Any, *, aliases: Iterable[str] = (), replace: bool = False, **about: Any) -> Any:
        """Register a thing under a name, and return it."""
        entry = self._entry(name, thing, tuple(aliases), **about)
        for taken in (name, *entry.aliases):
            self.check_name(taken)
            owner = self._owner(taken)
            if owner is not None and not replace and not (owner.name == name and _same(owner.thing, thing)):
                conflict = (
                    f"there is already a {self.kind} {taken!r}"
                    if taken == owner.name
                    else f"{taken!r} already means {owner.name!r}"
                )
                raise SettingError(f"{conflict}; choose another name, or give replace=True")
        for taken in (name, *entry.aliases):
            self._free(taken)
        self._entries[name] = entry
        self._names |= {taken.casefold(): name for taken in (name, *entry.aliases)}
        return thing

    def check_name(self, name: str) -> None:
        """Refuse a name that cannot be spelled."""
        if not isinstance(name, str) or parse(name) != Spelling(name):
            raise SettingError(f"{name!r} cannot be the name of a {self.kind}; use a word without '(' and '@'")

    def find(self, name: str) -> Any:
        """Return the entry of a name or an alias, or raise an error that suggests the nearest name."""
        return self._find(name, ())

    def spelling(self, text: str, *, offered: Container[str] = (), besides: Iterable[str] = ()) -> Spelling:
        """Return the spelling in ``text``, its parameters in the order of the entry, or say what is wrong with it.

        Parameters that are ``offered`` may be missing; ``besides`` are further names to suggest.
        """
        spelling = parse(text)
        return self._find(spelling.name, besides).read(spelling, offered)

    def call(self, text: str, *subjects: Any, **offered: Any) -> Any:
        """Call the thing that ``text`` spells with the ``subjects`` that it works on.

        It gets those of the ``offered`` parameters (a seed, for instance) that it has and that ``text`` does not give.
        """
        spelling = parse(text)
        entry = self._find(spelling.name, ())
        spelling = entry.read(spelling, offered)
        chosen = {name: value for name, value in offered.items() if name in entry.parameters}
        return entry.thing(*subjects, **chosen | dict(spelling.parameters))

    def signatures(self, without: Container[str] = ()) -> list[str]:
        """Return how each is spelled, with its parameters and their defaults, except those in ``without``."""
        return [entry.signature(without) for entry in self._entries.values()]

    def entries(self) -> Mapping[str, Any]:
        """Return every entry by name."""
        return dict(self._entries)

    def _find(self, name: str, besides: Iterable[str]) -> Entry[Any]:
        if self._of_code is not None and isinstance(name, str) and ":" in name:
            return self._of_code(name)
        owner = self._owner(name) if isinstance(name, str) else None
        if owner is None and self._load_plugin(name):
            owner = self._owner(name)
        if owner is None or not (self._any_case or name in (owner.name, *owner.aliases)):
            aliases = {alias for entry in self._entries.values() for alias in entry.aliases}
            known = {*self, *aliases, *besides, *(offer.name for offer in self._offered())}
            raise SettingError(f"there is no {self.kind} {name!r}{nearest(str(name), known)}")
        return owner

    def _offered(self) -> list[EntryPoint]:
        """Return what installed packages offer, without importing it."""
        return [] if self._plugins is None else _entry_points(self._plugins, tuple(map(_last_changed, sys.path)))

    def _load_plugin(self, name: str) -> bool:
        """Import the thing of that name that an installed package offers; return whether there is one."""
        offered = next((offer for offer in self._offered() if offer.name == name), None)
        if offered is None:
            return False
        try:
            thing = offered.load()
        except Exception as error:
            raise SettingError(
                f"the {self.kind} {name!r} of an installed package cannot be imported ({type(error).__name__}: "
                f"{error}); fix or remove {offered.value}"
            ) from error
        if self._owner(name) is None:  # unless the import itself registered it
            self._add_plugin(name, thing)
        return True

    def _add_plugin(self, name: str, thing: Any) -> None:
        """Register what an installed package offers; a kind may refuse things."""
        self.add(name, thing)

    def _owner(self, name: str) -> Entry[Any] | None:
        """Return the entry that a name or an alias belongs to, regardless of case."""
        return self._entries.get(self._names.get(name.casefold(), ""))

    def _free(self, name: str) -> None:
        """Free a name: remove the entry with that name, or only the alias."""
        owner = self._owner(name)
        if owner is None:
            return
        if owner.name.casefold() == name.casefold():
            del self._entries[owner.name]
            for freed in (owner.name, *owner.aliases):
                del self._names[freed.casefold()]
        else:
            kept = tuple(alias for alias in owner.aliases if alias.casefold() != name.casefold())
            self._entries[owner.name] = replace(owner, aliases=kept)
            del self._names[name.casefold()]


@lru_cache(8)
def _entry_points(group: str, _changed: tuple[tuple[str, int], ...]) -> list[EntryPoint]:
    """Return what packages offer, read again when a folder of packages has changed: reading takes 10 ms each time."""
    from importlib.metadata import entry_points

    return list(entry_points(group=group))


def _last_changed(folder: str) -> tuple[str, int]:
    try:
        return folder, Path(folder).stat().st_mtime_ns
    except OSError:
        return folder, 0


def _same(before: Any, after: Any) -> bool:
    """Whether two things are the same definition, run twice."""
    places = [(getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)) for thing in (before, after)]
    return places[0] == places[1] if None not in places[0] else bool(before == after)


def _declared(thing: Any) -> dict[str, Limits]:
    """Return the limits of the fields of a dataclass, as declared by `cranfield.recommenders.model.setting`."""
    return {field.name: field.metadata["limits"] for field in fields(thing) if "limits" in field.metadata}


def _annotated(thing: Any) -> dict[str, Limits]:
    """Return the limits of the parameters of a function, as far as its annotations tell."""
    try:
        hints = get_type_hints(thing, include_extras=True)
    except (NameError, TypeError, AttributeError):  # the user's annotations need not resolve
        return {}
    return {name: _limits(hint) for name, hint in hints.items()}


def _limits(hint: Any) -> Limits:
    if get_origin(hint) is Annotated:
        base, *others = get_args(hint)
        stated = next((note for note in others if isinstance(note, Limits)), Limits())
        return replace(stated, kinds=_limits(base).kinds)
    kinds: list[type] = []
    choices: list[str] = []
    for part in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        if get_origin(part) is Literal and all(isinstance(word, str) for word in get_args(part)):
            kinds.append(str)
            choices.extend(get_args(part))
        elif part in _KINDS:
            kinds.append(part)
        else:
            return Limits()
    return Limits(tuple(kinds), choices or None)


def import_modules(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, so that whatever its files register is registered.

    Modules with a leading underscore register nothing, and may be slow to import.
    """
    for module in pkgutil.iter_modules(path):
        if not module.name.startswith("_"):
            importlib.import_module(f"{package}.{module.name}")
