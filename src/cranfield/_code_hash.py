"""What a function or a table is made of, as a hash: once it has changed, what it gave is computed again."""

from __future__ import annotations

import hashlib
import pickle
import secrets
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np


def made_of(thing: Any) -> str:
    """Return a hash of a value, or of all that the result of a function depends on, as far as its code shows.

    That is its instructions and the names and constants in them, its defaults, the variables it closes over, and what
    its names mean in its own module; of a class, all its methods and values. What cannot be hashed gets a new hash
    every time, so it is never taken for known.

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
    """Tell whether a function is part of cranfield, so that the version stands for it."""
    return (getattr(function, "__module__", None) or "").startswith("cranfield.")


def _parts(thing: Any, seen: set[int]) -> Iterator[bytes]:
    if isinstance(thing, FunctionType):
        # A function may call itself.
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
    """Go through the values that a function reaches beside its arguments; functions of other modules by their names."""
    if is_ours(function):
        return  # the version stands for what ours reach
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
    """Go through the methods and values of a class and of its parents; parents of other modules by their names."""
    for parent in kind.__mro__:
        yield f"{parent.__module__}.{parent.__qualname__}"
        if parent.__module__ != kind.__module__:
            continue
        for name, value in sorted(vars(parent).items()):
            held = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            # Other names of two underscores, and what abstract classes remember, are Python's own.
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
