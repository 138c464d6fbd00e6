"""Functions that can be called by a spelling, such as ``k_core(k=5)``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from cranfield._errors import SettingError
from cranfield._spelling import Spelling, nearest, parse, suggestion

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Registry:
    """Functions of one kind, by name; a new one is the function and `register` above it.

    The first parameter of each is what it works on; the others are its settings, and can be spelled.

    Parameters
    ----------
    kind
        What they are, for messages: ``"filter"``, ``"split"``.

    Examples
    --------
    >>> shapes = Registry("shape")
    >>> @shapes.register
    ... def repeat(text, times=2):
    ...     return text * times
    >>> shapes.call("repeat(times=3)", "ab")
    'ababab'
    >>> shapes.call("repaet", "ab")
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: there is no shape 'repaet'; did you mean 'repeat'?
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._functions: dict[str, Callable[..., Any]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """Return the function of that name."""
        return self._functions[name]

    def register(self, function: _Function) -> _Function:
        """Add ``function`` under its own name."""
        self._functions[function.__name__] = function
        return function

    def signatures(self, without: Container[str] = ()) -> list[str]:
        """Return how each function is spelled, with its settings and their defaults, save those ``without``."""
        return [
            _spelled(name, {key: one for key, one in _settings(function).items() if key not in without})
            for name, function in self._functions.items()
        ]

    def call(self, text: str, subject: Any, **offered: Any) -> Any:
        """Call the function that ``text`` spells on ``subject``.

        Of the ``offered`` settings (a seed, for instance) it gets those that it has and that ``text`` does not set.
        """
        spelling = self.spelling(text, offered=offered)
        function = self._functions[spelling.name]
        chosen = {name: value for name, value in offered.items() if name in _settings(function)}
        return function(subject, **chosen | dict(spelling.parameters))

    def spelling(self, text: str, *, offered: Container[str] = (), besides: Iterable[str] = ()) -> Spelling:
        """Return what ``text`` spells, its settings in the function's own order, or say what is wrong with it.

        It need not set what is ``offered``; ``besides`` are names that the caller knows, for suggestions.
        """
        spelling = parse(text)
        if spelling.cutoff is not None:
            raise SettingError(f"{text!r} has a cut-off, which a {self.kind} does not know; leave out '@'")
        if spelling.name not in self._functions:
            raise SettingError(f"there is no {self.kind} {spelling.name!r}{nearest(spelling.name, (*self, *besides))}")
        known, given = _settings(self._functions[spelling.name]), dict(spelling.parameters)
        for name in given:
            if name not in known:
                raise SettingError(
                    f"{spelling.name} has no setting {name!r}; write {_spelled(spelling.name, known)}"
                    f"{suggestion(name, known)}"
                )
        for name, parameter in known.items():
            if parameter.default is inspect.Parameter.empty and name not in given and name not in offered:
                raise SettingError(f"{spelling.name} needs {name}; write {_spelled(spelling.name, known)}")
        return Spelling(spelling.name, tuple((name, given[name]) for name in known if name in given))


def _settings(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return dict(list(inspect.signature(function).parameters.items())[1:])


def _spelled(name: str, settings: Mapping[str, inspect.Parameter]) -> str:
    inside = (
        f"{key}=..." if parameter.default in (inspect.Parameter.empty, None) else f"{key}={_text(parameter.default)}"
        for key, parameter in settings.items()
    )
    return f"{name}({', '.join(inside)})"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
