"""Hashes of functions and tables: when the hash changes, cached results are computed again."""

from __future__ import annotations

import hashlib
import pickle
import secrets
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np


def made_of(thing: Any) -> str:
    """Return a hash of a value, or of everything that the result of a function depends on, as far as its code shows.

    For a function that is its instructions with their names and constants, its defaults, the variables it closes over,
    and what its names refer to in its own module. For a class it is all its methods and values. A value that cannot be
    hashed gets a new hash every time, so it never counts as known.

    Examples
    --------
    >>> made_of(lambda x: x.min()) == made_of(lambda x: x.min())
    True
    >>> made_of(lambda x: x.min()) == made_of(lambda x: x.max())
    False
    """
    digest = hashlib.sha256()
    for part in _parts(thing, set()):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:16]


def is_ours(function: Any) -> bool:
    """Whether a function is part of cranfield, so that the version number identifies its code."""
    return (getattr(function, "__module__", None) or "").startswith("cranfield.")


def _parts(thing: Any, seen: set[int]) -> Iterator[bytes]:
    if isinstance(thing, FunctionType):
        # A function may call itself: stop the recursion.
        if id(thing) not in seen:
            seen.add(id(thing))
            yield from _parts(thing.__code__, seen)
            for value in _reached(thing):
                yield from _parts(value, seen)
    elif isinstance(thing, type):
        if id(thing) not in seen:
            seen.add(id(thing))
            for value in _members(thing):
                yield from _parts(value, seen)
    elif isinstance(thing, CodeType):
        yield from (thing.co_code, repr((thing.co_names, thing.co_freevars)).encode())
        for constant in thing.co_consts:
            yield from _parts(constant, seen)
    elif isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
        yield from (repr((thing.dtype.str, thing.shape)).encode(), np.ascontiguousarray(thing).tobytes())
    else:
        yield _pickled(thing)


def _reached(function: FunctionType) -> Iterator[Any]:
    """Yield the values a function uses besides its arguments; functions of other modules by name."""
    if is_ours(function):
        return  # the version number covers it
    closed = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    named = [function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__]
    for value in (function.__defaults__, function.__kwdefaults__, *closed, *named):
        if isinstance(value, FunctionType | type) and value.__module__ != function.__module__:
            yield f"{value.__module__}.{value.__qualname__}"
        elif isinstance(value, ModuleType):
            yield value.__name__
        else:
            yield value


def _members(kind: type) -> Iterator[Any]:
    """Yield the methods and values of a class and its parents; parents from other modules by name."""
    for parent in kind.__mro__:
        yield f"{parent.__module__}.{parent.__qualname__}"
        if parent.__module__ != kind.__module__:
            continue
        for name, value in sorted(vars(parent).items()):
            held = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            # Other dunder names and the caches of abstract classes belong to Python.
            if isinstance(held, FunctionType) or not name.startswith(("__", "_abc_")):
                yield name
                yield held


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _pickled(thing: Any) -> bytes:
    try:
        return pickle.dumps(thing)
    except (pickle.PicklingError, TypeError, AttributeError):
        return secrets.token_bytes(16)
